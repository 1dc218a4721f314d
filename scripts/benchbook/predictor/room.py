"""How much room a GPU has for torch's allocator: its memory less the context that a process takes of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchbook.content.formats import json_text
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import load_record, shown_order
from benchbook.machines.gpus import sheet_of
from benchbook.predictor.gpus import Gpu, gpu_named
from benchbook.predictor.workload import UnpredictableError

# The cell of a script that does nothing but wake the device.
CONTEXT_CELL = "first_tensor"
# Where nobody measured it: what PyTorch 2.10.0+cu130 takes of an RTX 6000 Ada, by ASSUMED_FROM.
ASSUMED_CONTEXT = 426 * 2**20
ASSUMED_FROM = "https://github.com/unslothai/unsloth-zoo/pull/1053"


@dataclass(frozen=True)
class Room:
    """Bytes of one GPU.

    Parameters:
        gpu: Which.
        memory: What it has; None where neither a record nor a data sheet says.
        context: What the driver and the loaded modules take of it.
        measured: Whether the context was measured; else it is `ASSUMED_CONTEXT`.
        machine: The recorded machine that says so.
    """

    gpu: Gpu
    memory: int | None
    context: int
    measured: bool
    machine: str | None

    @property
    def available(self) -> int | None:
        """What torch's allocator can take; None where the memory is unknown."""
        return None if self.memory is None else max(0, self.memory - self.context)


def room_of(name: str, project: Project | None) -> Room:
    """The room of a GPU by its name, or by that of a machine with records.

    Raises:
        UnpredictableError: It is neither.
    """
    machines = _machines(project) if project is not None else {}
    if project is not None and name in machines:
        try:
            return room_on(project, name, machines[name])
        except UnpredictableError:
            raise UnpredictableError(
                f"the machine {name} has no known GPU", "name a GPU such as H200"
            ) from None
    gpu = gpu_named(name)
    for machine, described in machines.items():
        if project is not None and _gpu_of(described) == gpu:
            return room_on(project, machine, described)
    sheet = sheet_of({"accelerator": {"name": name}}) or sheet_of({"accelerator": {"name": gpu.name}})
    return Room(gpu, sheet.memory_bytes if sheet is not None else None, ASSUMED_CONTEXT, False, None)


def room_on(project: Project, machine: str, described: Mapping[str, Any]) -> Room:
    """The room of a machine's GPU.

    Parameters:
        project: Whose records may say what a context takes there.
        machine: The name of the machine, whether it has records or not.
        described: What its machine.json says, or a data sheet would.

    Raises:
        UnpredictableError: It has no known GPU.
    """
    accelerator = described.get("accelerator") or {}
    gpu = gpu_named(accelerator.get("name") or "")
    sheet = sheet_of(described)
    memory = accelerator.get("memory_bytes") or (sheet.memory_bytes if sheet is not None else None)
    context = _context(project, machine)
    return Room(gpu, memory, ASSUMED_CONTEXT if context is None else context, context is not None, machine)


def _machines(project: Project) -> dict[str, dict[str, Any]]:
    found = {}
    # Of several with one GPU, the maintainers' says what room it has.
    paths = project.records.glob("*/machine.json")
    for path in sorted(paths, key=lambda path: shown_order(path.parent.name)):
        described = json.loads(json_text(path))
        if described.get("accelerator"):
            found[path.parent.name] = described
    return found


def _gpu_of(machine: Mapping[str, Any]) -> Gpu | None:
    try:
        return gpu_named(machine["accelerator"].get("name") or "")
    except UnpredictableError:
        return None


def _context(project: Project, machine: str) -> int | None:
    """What waking the device took in each run on a machine: the median."""
    found = []
    for path in sorted((project.records / machine).glob("*/*.json")):
        try:
            record = load_record(path)
        except BenchbookError:
            continue  # `benchbook check` says what is wrong with it
        for variant in record.variants.values() if record is not None else ():
            held = (run.meter(CONTEXT_CELL, "device_memory") for run in variant.runs)
            found += [each for each in held if isinstance(each, int)]
    return int(median(found)) if found else None
