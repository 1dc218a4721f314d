"""What is recorded on each kind of machine passes the validation that a record from outside must pass."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.checking.plausibility import plausibility_problems
from benchbook.content.machines import dump_machine
from benchbook.content.records import Campaign, dump_record
from benchbook.content.validation import machine_problems, record_problems
from benchbook.machines.accelerators import Accelerators, ask_torch
from benchbook.machines.allocators import Allocator, find_allocator
from benchbook.machines.circumstances import DeviceWatch
from benchbook.machines.description import describe
from benchbook.machines.meters import CellMeters
from benchbook.machines.nvml import Nvml, find_all
from benchbook.machines.sampling import Sampler
from benchbook.recording.campaign import Gathered, lay_over
from benchbook.recording.jobs import OK, Result
from benchbook.recording.journal import Finished
from benchbook.recording.plan import Task
from fakes import MIB, FakeGpu, FakeModule, FakeNvml, fake_torch, nvidia
from running import parsed

GIB = 2**30
TABLE = """
needs = ["cpu", "accelerator"]
ranks = 2
[tool.benchbook.metrics]
seconds = { unit = "s" }
losses = { unit = "1" }
held = { unit = "count" }
"""
BODY = "# %% parameters\nsteps = 2\nsizes = [1, 2]\nname = None\n\n# %% work\nx = 1\n\n# %% checks\nassert x"
SCRIPT = parsed(BODY, TABLE)

WHOLE = FakeGpu("GPU-1234", used=4 * MIB)
INSTANCE = FakeGpu("MIG-77", name="NVIDIA H200 MIG 1g.18gb", total=16384 * MIB, reserved=0)
DIVIDED = FakeGpu("GPU-1234", instances=[INSTANCE])
# What a driver holds for each process, and how the wheels of PyTorch are called.
CONTEXT = 500 * MIB
BUILDS = {"cpu": "+cpu", "cuda": "+cu130", "rocm": "+rocm7.0", "xpu": "+xpu", "mps": ""}
APPLE = SimpleNamespace(
    synchronize=lambda: None, current_allocated_memory=lambda: MIB, driver_allocated_memory=lambda: 2 * MIB
)
MI300X = SimpleNamespace(
    name="AMD Instinct MI300X",
    total_memory=192 * GIB - MIB,
    gcnArchName="gfx942:sramecc+:xnack-",
    multi_processor_count=304,
    uuid="30383362-6430-3836-6664-633234353934",
)
PONTE_VECCHIO = SimpleNamespace(
    name="Intel(R) Data Center GPU Max 1550",
    total_memory=64 * GIB - MIB,
    driver_version="1.6.33578+15",
    max_compute_units=512,
)
MACHINES: dict[str, tuple[Any, Nvml | None, str | None]] = {
    "nvidia-h200-141gb": (fake_torch("cuda", FakeModule(nvidia())), Nvml(FakeNvml(WHOLE)), None),
    "nvidia-h200-141gb-x2": (
        fake_torch("cuda", FakeModule(nvidia(), nvidia(uuid="5678", bus=2))),
        Nvml(FakeNvml(WHOLE, FakeGpu("GPU-5678", "00000000:02:00.0"))),
        None,
    ),
    "nvidia-h200-mig-1g-18gb": (
        fake_torch("cuda", FakeModule(nvidia(uuid="77"))),
        Nvml(FakeNvml(DIVIDED)),
        "MIG-77",
    ),
    "amd-mi300x-192gb": (fake_torch("cuda", FakeModule(MI300X), hip="7.0"), None, None),
    "intel-data-center-gpu-max-1550-64gb": (fake_torch("xpu", FakeModule(PONTE_VECCHIO)), None, None),
    "apple-": (fake_torch("mps", APPLE), None, None),
    "cpu-": (fake_torch(None), None, None),
}


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_recorded_passes_validation(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch, nvml, visible = MACHINES[name]
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr("benchbook.machines.accelerators._apple_name", lambda: "Apple M3 Max")
    found = ask_torch(torch, nvml, visible)
    machine = describe(found, "maintainers" if not name.endswith("-") else "someone")
    assert machine.name.startswith(name)
    description = json.loads(dump_machine(machine))
    assert machine_problems(description, "machine.json") == []

    record = json.loads(dump_record(record_on(machine.name, torch, nvml, visible, found)))
    assert record_problems(record, "record.json") == []
    assert list(plausibility_problems(record, description, SCRIPT, "record.json")) == []
    if nvml is not None:
        state = record["campaigns"]["20261120T120000Z-test"]["state"]
        assert (state["driver"], state["foreign_processes"]) == ("580.95.05", [])
        assert record["variants"]["default"]["runs"][0]["cells"]["work"]["device_memory_peak"] is not None


def record_on(
    machine: str, torch: Any, nvml: Nvml | None, visible: str | None, found: Accelerators | None
) -> Any:
    devices = found.identities if found is not None and found.kind == "cuda" else ()
    watch = DeviceWatch(nvml if devices else None, devices)
    variant = replace(SCRIPT.variants((machine,))[0], repeats=3)
    runs = [
        Finished("default", place, place, result(place, torch, nvml, visible, found)) for place in range(3)
    ]
    task = Task(SCRIPT, None, {}, None, ("default",), (variant,), {}, {})  # type: ignore[arg-type]
    campaign = Campaign(
        started="2026-11-20T12:00:00Z",
        finished="2026-11-20T12:01:00Z",
        commit="a" * 40,
        modified=False,
        recorded_by="maintainers",
        packages={"python": "3.12.3", "torch": f"2.11.0{BUILDS[found.kind if found else 'cpu']}"},
        state={**watch.state(), "foreign_processes": watch.foreign(), "shared": False},
    )
    record, problems = lay_over(
        task, machine, "20261120T120000Z-test", campaign, Gathered({"default": runs}, [])
    )
    assert problems == []
    return record


def result(
    place: int, torch: Any, nvml: Nvml | None, visible: str | None, found: Accelerators | None
) -> Result:
    identities = found.identities if found is not None and found.kind == "cuda" and nvml is not None else ()
    handles = find_all(nvml, identities, visible) if nvml is not None else {}
    sampler = Sampler(nvml, handles)
    sampler.begin()
    for gpu in handles.values():
        gpu.used += CONTEXT

    def allocator() -> Allocator | None:
        return find_allocator({"torch": torch})

    meters = CellMeters((), sampler.empty, find=allocator, nvml=lambda: nvml)
    for cell in ("parameters", "work", "checks"):
        with meters.around(cell):
            sampler._next = 0.0
            sampler.sample()
    cells: dict[str, Any] = meters.cells
    for cell, peak in sampler.peaks(meters.device, meters.spans).items():
        cells[cell]["device_memory_peak"] = peak
    for gpu in handles.values():
        gpu.used -= CONTEXT
    metrics = {"seconds": 0.05 + place / 70, "losses": [1.0, 0.5], "held": True}
    rank = {"metrics": metrics, "cells": cells, "baseline_memory": meters.baseline_memory}
    return Result(OK, None, {"work": "done\n"}, [rank, rank], 1.0)


@pytest.mark.parametrize(
    ("name", "model"),
    [("AMD Radeon Graphics", "amd-gfx1151-32gb"), ("", "amd-gfx1151-32gb")],
)
def test_a_device_without_a_name_of_its_own_is_named_by_its_architecture(name: str, model: str) -> None:
    device = SimpleNamespace(
        name=name, total_memory=32 * GIB, gcnArchName="gfx1151", multi_processor_count=40
    )
    machine = describe(ask_torch(fake_torch("cuda", FakeModule(device), hip="7.0"), None, None))
    assert (machine.name, machine.title) == (model, "AMD gfx1151, 32 GB")
    assert machine_problems(json.loads(dump_machine(machine)), "machine.json") == []
