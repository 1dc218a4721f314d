"""What is read around a cell is the cell's: peaks begin anew, and nothing is touched that was not in use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchbook.machines import process_memory
from benchbook.machines.allocators import (
    GenericAllocator,
    ModuleAllocator,
    MpsAllocator,
    find_allocator,
    held_by_cell,
)
from benchbook.machines.meters import CellMeters
from benchbook.machines.nvml import Nvml
from benchbook.machines.sampling import Sampler
from benchbook.recording.hosts import Hosts
from benchbook.recording.jobs import OK
from fakes import MIB, FakeGpu, FakeModule, FakeNvml, fake_torch, nvidia
from running import run_in

# Process memory


def test_the_peak_of_a_cell_is_not_that_of_an_earlier_one() -> None:
    meters = CellMeters(find=lambda: None)
    with meters.around("large"):
        bytearray(os.urandom(1) * (64 * MIB))
    with meters.around("small"):
        pass
    large, small = meters.cells["large"], meters.cells["small"]
    assert large["process_memory_peak"] > small["process_memory_peak"] + 32 * MIB  # type: ignore[operator]
    assert small["process_memory_peak"] >= small["process_memory"] - MIB  # type: ignore[operator]


def test_a_sandboxed_kernel_has_no_peak_and_is_no_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "status").write_text("Name:\tpython\nVmRSS:\t    100 kB\n")
    monkeypatch.setattr(process_memory, "SELF", tmp_path / "absent")
    assert process_memory.reset_peak(tmp_path / "absent") is False
    assert process_memory.resident_peak(tmp_path) is None
    assert process_memory.resident(tmp_path) == 100 * 1024
    assert process_memory.resident(tmp_path / "absent") is None


def test_a_peak_that_cannot_begin_anew_is_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "reset_peak", lambda: False)
    meters = CellMeters(find=lambda: None)
    with meters.around("work"):
        pass
    assert meters.cells["work"]["process_memory_peak"] is None
    assert meters.cells["work"]["process_memory"]


def test_what_the_process_held_before_the_first_cell_is_known() -> None:
    assert (CellMeters().baseline_memory or 0) > MIB


# Torch's allocators


def test_without_torch_there_is_no_allocator() -> None:
    assert find_allocator({}) is None


def test_an_accelerator_that_the_script_has_not_touched_is_not_asked() -> None:
    cuda = FakeModule(nvidia(), initialized=False)
    assert find_allocator({"torch": fake_torch("cuda", cuda)}) is None
    assert cuda.asked == []


def test_a_torch_that_is_half_imported_is_not_asked() -> None:
    assert find_allocator({"torch": SimpleNamespace()}) is None


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_the_allocator_in_use_is_found(kind: str) -> None:
    module = FakeModule(nvidia())
    found = find_allocator({"torch": fake_torch(kind, module)})
    assert isinstance(found, ModuleAllocator)
    module.allocate(5)
    assert found.read() == {
        "allocated": 5,
        "allocated_peak": 5,
        "reserved": 5 + MIB,
        "reserved_peak": 5 + MIB,
    }
    assert found.device_used() == 40 * MIB


def test_an_apple_gpu_tells_no_peaks() -> None:
    mps = SimpleNamespace(
        current_allocated_memory=lambda: 7, driver_allocated_memory=lambda: 9, synchronize=lambda: None
    )
    found = find_allocator({"torch": fake_torch("mps", mps)})
    assert isinstance(found, MpsAllocator)
    assert found.read() == {"allocated": 7, "allocated_peak": None, "reserved": None, "reserved_peak": None}
    assert found.device_used() == 9


def test_an_accelerator_we_have_never_heard_of_is_asked_in_general() -> None:
    found = find_allocator({"torch": fake_torch("npu", FakeModule(nvidia()))})
    assert isinstance(found, GenericAllocator)
    assert found.read()["allocated"] == 0
    assert found.device_used() is None


def test_an_accelerator_without_statistics_reads_null() -> None:
    allocator = GenericAllocator(SimpleNamespace())
    allocator.reset()
    assert allocator.read() == dict.fromkeys(("allocated", "allocated_peak", "reserved", "reserved_peak"))


def test_peaks_of_the_allocator_begin_anew_with_each_cell_once_the_device_is_quiet() -> None:
    cuda = FakeModule(nvidia())
    meters = CellMeters(find=lambda: ModuleAllocator(cuda))
    with meters.around("large"):
        cuda.allocate(100)
        cuda.allocate(-90)
    with meters.around("small"):
        cuda.asked.append("work")
        cuda.allocate(5)
    assert meters.cells["large"]["allocated_peak"] == 100
    assert meters.cells["small"]["allocated_peak"] == 15
    assert cuda.asked[-4:] == ["synchronize", "reset", "work", "synchronize"]


def test_an_accelerator_first_used_inside_a_cell_is_metered_from_there() -> None:
    cuda = FakeModule(nvidia())
    used: list[ModuleAllocator] = []
    meters = CellMeters(find=lambda: used[0] if used else None)
    with meters.around("first"):
        used.append(ModuleAllocator(cuda))
        cuda.allocate(3)
    assert meters.cells["first"]["allocated"] == 3


# The device as a whole


def test_device_memory_is_what_the_run_added_on_the_device_it_runs_on() -> None:
    other, ours = FakeGpu("GPU-aaaa", used=5000 * MIB), FakeGpu("GPU-bbbb", used=30 * MIB)
    cuda = FakeModule(nvidia(uuid="bbbb"))
    meters = CellMeters(
        empty={"aaaa": 0, "bbbb": 30 * MIB},
        find=lambda: ModuleAllocator(cuda),
        nvml=lambda: Nvml(FakeNvml(other, ours)),
    )
    with meters.around("work"):
        ours.used += 700 * MIB
    assert meters.cells["work"]["device_memory"] == 700 * MIB
    assert meters.device == "bbbb"


def test_where_there_is_no_nvml_the_driver_is_asked_by_torch() -> None:
    meters = CellMeters(find=lambda: ModuleAllocator(FakeModule(nvidia())))
    with meters.around("work"):
        pass
    assert meters.cells["work"]["device_memory"] == 40 * MIB
    assert meters.device is None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    moments = [100.0]
    monkeypatch.setattr("benchbook.machines.sampling.time.monotonic", lambda: moments[0])
    return moments


def test_the_peak_of_the_device_belongs_to_the_cell_in_which_it_was_seen(clock: list[float]) -> None:
    gpu = FakeGpu("GPU-aaaa", used=50 * MIB)
    sampler = Sampler(Nvml(FakeNvml(gpu)), {"aaaa": gpu})
    sampler.begin()
    for used in (100, 900, 200, 300):
        clock[0] += 0.02
        gpu.used = used * MIB
        sampler.sample()
    spans = {"one": (100.01, 100.05), "two": (100.05, 100.09), "three": (200.0, 201.0)}
    assert sampler.peaks("aaaa", spans) == {"one": 850 * MIB, "two": 250 * MIB, "three": None}
    assert sampler.empty == {"aaaa": 50 * MIB}


def test_samples_are_taken_ten_milliseconds_apart(clock: list[float]) -> None:
    gpu = FakeGpu("GPU-aaaa")
    sampler = Sampler(Nvml(FakeNvml(gpu)), {"aaaa": gpu})
    sampler.begin()
    clock[0] += 0.004
    gpu.used = 900 * MIB
    sampler.sample()
    assert sampler.peaks("aaaa", {"one": (100.0, 101.0)}) == {"one": 0}


def test_without_nvml_nothing_is_sampled() -> None:
    sampler = Sampler(None, {"aaaa": object()})
    sampler.begin()
    assert not sampler.active
    assert sampler.peaks(None, {"one": (0.0, 1.0)}) == {"one": None}


# The CPU allocator, by the profiler


def test_bytes_are_counted_to_the_cell_that_held_them() -> None:
    changes = [(1, 10), (12, 100), (13, -100), (15, 5), (22, -15), (31, 1)]
    ranges = [("one", 10, 20), ("two", 21, 30)]
    assert held_by_cell(changes, ranges) == {
        "one": {"allocated": 15, "allocated_peak": 110},
        "two": {"allocated": 0, "allocated_peak": 15},
    }


def test_the_cpu_allocator_is_exact(tmp_path: Path) -> None:
    table = 'needs = ["cpu"]\nmeters = ["cpu_allocator"]'
    body = """
        # %% hold
        import torch
        kept = torch.ones(1000, 1000)

        # %% pass_by
        passing = torch.ones(2000, 1000)
        del passing

        # %% release
        del kept

        # %% checks
        assert True
    """
    with Hosts() as hosts:
        result = run_in(hosts.host({}, ("torch",), "small.py"), tmp_path, body, table)
    assert result.outcome == OK, (result.failure, result.output)
    cells = result.ranks[0]["cells"]
    held = {name: (cells[name]["allocated"], cells[name]["allocated_peak"]) for name in cells}
    assert held["hold"] == (4_000_000, 4_000_000)
    assert held["release"] == (0, 4_000_000)
    assert held["pass_by"] == (4_000_000, 12_000_000)
    assert result.output == {}


def test_without_being_asked_for_the_cpu_allocator_is_null() -> None:
    meters = CellMeters(find=lambda: None)
    with meters.around("work"):
        pass
    meters.finish()
    assert meters.cells["work"]["allocated"] is None
