"""NVML is asked of the right device, and never answers with an error."""

from __future__ import annotations

import re
from pathlib import Path

import pynvml
import pytest

from benchbook.machines import nvml as module
from benchbook.machines.accelerators import identity_of
from benchbook.machines.nvml import DeviceMemory, Identity, Nvml, find_all, open_nvml
from fakes import MIB, FakeGpu, FakeNvml, nvidia

FIRST = FakeGpu("GPU-aaaa", "00000000:01:00.0", used=10 * MIB)
SECOND = FakeGpu("GPU-bbbb", "00000000:C1:00.0", used=20 * MIB)


def test_every_function_that_is_asked_is_one_of_the_library() -> None:
    source = Path(module.__file__).read_text("utf-8")
    names = set(re.findall(r"\"((?:nvml|NVML_)\w+)\"", source))
    assert len(names) > 15
    assert [name for name in sorted(names) if not hasattr(pynvml, name)] == []
    for kind in ("Compute", "Graphics"):
        assert hasattr(pynvml, f"nvmlDeviceGet{kind}RunningProcesses")


def test_the_second_version_counts_what_the_driver_reserves_apart() -> None:
    nvml = Nvml(FakeNvml(FIRST))
    assert nvml.memory(FIRST) == DeviceMemory(143771 * MIB, 10 * MIB, 600 * MIB)


def test_an_old_driver_answers_in_the_first_version() -> None:
    old = FakeGpu("GPU-cccc", used=10 * MIB, second_version=False)
    assert Nvml(FakeNvml(old)).memory(old) == DeviceMemory(143771 * MIB, 610 * MIB, None)


def test_the_device_is_found_by_its_uuid_whatever_its_number() -> None:
    nvml = Nvml(FakeNvml(FIRST, SECOND))
    # CUDA_VISIBLE_DEVICES=1 makes the second device torch's first.
    assert nvml.find(identity_of(nvidia(uuid="bbbb", bus=0xC1))) is SECOND


def test_the_device_is_found_on_its_bus_where_torch_tells_no_uuid() -> None:
    nvml = Nvml(FakeNvml(FIRST, SECOND))
    assert nvml.find(Identity("", "00000000:c1:00.0")) is None
    assert nvml.find(Identity("", "00000000:C1:00.0")) is SECOND


def test_an_instance_is_found_by_its_own_uuid() -> None:
    small, other = FakeGpu("MIG-1", total=18 * MIB), FakeGpu("MIG-2", total=18 * MIB)
    nvml = Nvml(FakeNvml(FakeGpu("GPU-aaaa", instances=[other, small])))
    assert nvml.find(Identity("1")) is small


def test_an_instance_is_found_by_what_is_visible_where_cuda_names_the_whole() -> None:
    small, other = FakeGpu("MIG-1"), FakeGpu("MIG-2")
    nvml = Nvml(FakeNvml(FakeGpu("GPU-aaaa", instances=[other, small])))
    assert nvml.find(Identity("aaaa"), "MIG-1") is small


def test_of_several_instances_none_is_guessed() -> None:
    nvml = Nvml(FakeNvml(FakeGpu("GPU-aaaa", instances=[FakeGpu("MIG-1"), FakeGpu("MIG-2")])))
    assert nvml.find(Identity("aaaa")) is None


def test_a_device_that_is_not_there_is_left_out() -> None:
    nvml = Nvml(FakeNvml(FIRST))
    assert find_all(nvml, [Identity("aaaa"), Identity("ffff")], None) == {"aaaa": FIRST}


def test_what_a_device_does_not_support_is_null() -> None:
    gpu = FakeGpu("GPU-aaaa", power=None)
    assert Nvml(FakeNvml(gpu)).state(gpu)["power_limit_watts"] is None


def test_a_library_too_old_for_a_question_answers_null() -> None:
    assert Nvml(FakeNvml(FIRST)).ask("nvmlDeviceGetSomethingNew", FIRST) is None


def test_processes_of_both_kinds_are_seen() -> None:
    gpu = FakeGpu("GPU-aaaa", pids=[9, 3])
    assert Nvml(FakeNvml(gpu)).processes(gpu) == [3, 9]


def test_a_machine_without_the_driver_has_no_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    assert open_nvml() is None


def test_a_driver_that_knows_a_question_in_an_older_form_only_answers_null() -> None:
    library = FakeNvml(FIRST)

    def refuse(_gpu: FakeGpu) -> None:
        raise pynvml.NVMLLibraryMismatchError

    library.nvmlDeviceGetComputeRunningProcesses = refuse  # type: ignore[method-assign, assignment]
    library.NVMLLibraryMismatchError = pynvml.NVMLLibraryMismatchError  # type: ignore[attr-defined]
    assert Nvml(library).processes(FIRST) is None


def test_an_instance_that_was_found_is_not_asked_for_instances() -> None:
    class Talkative(FakeNvml):
        def nvmlDeviceGetMigMode(self, gpu: FakeGpu) -> list[int]:  # noqa: N802
            return [1, 1]

    small = FakeGpu("MIG-1")
    nvml = Nvml(Talkative(FakeGpu("GPU-aaaa", instances=[FakeGpu("MIG-2"), small])))
    assert nvml.find(Identity("1")) is small
