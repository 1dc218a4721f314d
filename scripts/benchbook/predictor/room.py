"""How much room a named GPU has: its memory, and the context that a process takes of it where measured."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchbook.data_sheets import sheet_of
from benchbook.predictor.gpus import Gpu, gpu_named
from benchbook.predictor.workload import UnpredictableError
from benchbook.project import Project

# The cell of a script that does nothing but wake the device.
CONTEXT_CELL = "first_tensor"


@dataclass(frozen=True)
class Room:
    """Bytes of one GPU.

    Parameters:
        gpu: Which.
        memory: What it has; None where neither a record nor a data sheet says.
        context: What the driver and the loaded modules take of it; None where nobody measured it.
        machine: The recorded machine that says so.
    """

    gpu: Gpu
    memory: int | None
    context: int | None
    machine: str | None

    def fits(self, reserved: int) -> bool | None:
        """Whether so much fits beside the context; None where the memory is unknown."""
        return None if self.memory is None else reserved + (self.context or 0) <= self.memory


def room_of(name: str, project: Project | None) -> Room:
    """The room of a GPU by its name, or by that of a machine with records.

    Raises:
        UnpredictableError: It is neither.
    """
    machines = dict(_machines(project)) if project is not None else {}
    found: str | None
    if name in machines:
        gpu = _gpu_of(machines[name])
        if gpu is None:
            raise UnpredictableError(f"the machine {name} has no known GPU", "name a GPU such as H200")
        found = name
    else:
        gpu = gpu_named(name)
        found = next((each for each, described in machines.items() if _gpu_of(described) == gpu), None)
    sheet = sheet_of({"accelerator": {"name": gpu.name}})
    recorded = machines[found]["accelerator"].get("memory_bytes") if found is not None else None
    memory = recorded or (sheet.memory_bytes if sheet is not None else None)
    context = _context(project, found) if project is not None and found is not None else None
    return Room(gpu, memory, context, found)


def _machines(project: Project) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(project.records.glob("*/machine.json")):
        described = json.loads(path.read_text("utf-8"))
        if described.get("accelerator"):
            yield path.parent.name, described


def _gpu_of(machine: dict[str, Any]) -> Gpu | None:
    try:
        return gpu_named(machine["accelerator"].get("name") or "")
    except UnpredictableError:
        return None


def _context(project: Project, machine: str) -> int | None:
    found = []
    for path in sorted((project.records / machine).glob("*/*.json")):
        for variant in json.loads(path.read_text("utf-8"))["variants"].values():
            for run in variant["runs"]:
                held = run["cells"].get(CONTEXT_CELL, {}).get("device_memory")
                if held is not None:
                    found.append(held)
    return int(median(found)) if found else None
