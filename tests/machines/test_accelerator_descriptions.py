"""Accelerators of four vendors are described, named apart and accepted: whole or divided, one or several."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from benchbook.checking.origins import machine_origin_problems
from benchbook.content.machines import MachineDescription, dump_machine
from benchbook.content.project import Project
from benchbook.content.schemas import schema
from benchbook.content.validation import machine_problems
from benchbook.machines import accelerators
from benchbook.machines.accelerators import amd_partition, ask_torch
from benchbook.machines.description import MAINTAINERS, describe
from benchbook.machines.nvml import Nvml
from builders import write
from fakes import FakeGpu, FakeModule, FakeNvml, fake_torch

FIXTURES = Path(__file__).parents[1] / "fixtures" / "accelerators"
DESCRIPTIONS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FIXTURES.glob("*.json"))
}


def nvml_of(told: dict[str, Any]) -> tuple[Nvml | None, str | None]:
    """NVML as the fixture says, and what CUDA_VISIBLE_DEVICES names."""
    facts = told.get("nvml")
    if facts is None:
        return None, None
    gpus = [
        FakeGpu(f"GPU-{number}", f"00000000:{number + 1:02X}:00.0", facts["name"], facts["total"])
        for number in range(told["count"])
    ]
    if "whole" not in facts:
        return Nvml(FakeNvml(*gpus)), None
    instance = FakeGpu("MIG-0", name=facts["name"], total=facts["total"], reserved=0)
    return Nvml(FakeNvml(FakeGpu("GPU-9", name=facts["whole"], instances=[instance]))), "MIG-0"


def torch_of(told: dict[str, Any]) -> Any:
    if told["kind"] == "mps":
        return fake_torch("mps")
    module = "xpu" if told["kind"] == "xpu" else "cuda"
    devices = [
        SimpleNamespace(
            uuid=str(number), pci_bus_id=number + 1, pci_device_id=0, pci_domain_id=0, **told["torch"]
        )
        for number in range(told["count"])
    ]
    return fake_torch(module, FakeModule(*devices), hip="7.0" if told["kind"] == "rocm" else None)


def described(
    told: dict[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch, owner: str = MAINTAINERS
) -> MachineDescription:
    for name, text in told.get("sysfs", {}).items():
        for card in range(told["count"]):
            write(folder / f"drm/card{card}/device/{name}", text)
    monkeypatch.setattr(accelerators, "amd_partition", lambda: amd_partition(folder / "drm"))
    monkeypatch.setattr(accelerators, "_apple_name", lambda: told.get("apple"))
    write(folder / "proc/meminfo", f"MemTotal: {told.get('host_gib', 256) * 2**20} kB\n")
    nvml, visible = nvml_of(told)
    return describe(ask_torch(torch_of(told), nvml, visible), owner, folder)


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_it_is_described_named_and_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = DESCRIPTIONS[name]
    machine = described(told, tmp_path, monkeypatch)
    assert {key: getattr(machine, key) for key in told["expected"]} == told["expected"]
    table = json.loads(dump_machine(machine))
    assert machine_problems(table, "machine.json") == []
    assert list(machine_origin_problems(Project(tmp_path), table, "bundle.json", reviewed=True)) == []
    (posing,) = machine_origin_problems(Project(tmp_path), table, "bundle.json")
    assert posing.what == f"{machine.name} is described as a machine of the maintainers"
    jsonschema.validate(table, schema("machine-1.json"))


def test_no_two_of_them_are_taken_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [described(told, tmp_path / name, monkeypatch).name for name, told in DESCRIPTIONS.items()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_two_owners_of_one_model_do_not_collide(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {
        described(DESCRIPTIONS[name], tmp_path, monkeypatch, owner).name
        for owner in ("Ada", "Bob", MAINTAINERS)
    }
    expected = DESCRIPTIONS[name]["expected"]["name"]
    assert names == {f"{expected}--ada", f"{expected}--bob", expected}


def test_devices_that_are_divided_differently_are_not_called_by_one_mode(tmp_path: Path) -> None:
    for card, mode in enumerate(("SPX", "CPX")):
        write(tmp_path / f"card{card}/device/current_compute_partition", mode)
    assert amd_partition(tmp_path) is None
    assert amd_partition(tmp_path / "absent") is None


def test_every_fixture_says_where_it_comes_from() -> None:
    for told in DESCRIPTIONS.values():
        assert "Constructed from documentation" in told["about"]
        assert all(source.startswith("https://") for source in told["sources"])
