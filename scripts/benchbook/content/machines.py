"""The model of a machine.json: what it says of a machine, without identifying it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from benchbook.content.formats import (
    Count,
    Label,
    Limit,
    MachineName,
    Megahertz,
    Name,
    OneOf,
    Passes,
    Short,
    Stored,
    Title,
    Watts,
    at_most,
    json_text,
)
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import MOST_NAMES, MOST_SET, dump_json
from benchbook.content.script import machine_kinds

# What two descriptions of one machine agree on, whatever was updated between them. Where there is an
# accelerator, it alone is the machine: the same model is lent in hosts of several makes.
HARDWARE = {key: key for key in ("name", "vendor", "memory_bytes", "count", "mig", "partition")}
# A host that hides its processor's model shows by the instructions which generation of it is lent.
PROCESSOR = {"model": "model", "vendor": "vendor", "cores": "cores", "flags": "instruction set"}
# Of two descriptions of one machine the memory differs by what firmware and kernel keep for themselves.
MEMORY_AGREES = 0.05

# Some ten times what the largest has that is sold: a device, a host, accelerators and cores of one machine.
MOST_DEVICE_BYTES, MOST_HOST_BYTES = 4 * 2**40, 512 * 2**40
DeviceBytes = Annotated[int, Limit(ge=0, le=MOST_DEVICE_BYTES)]
HostBytes = Annotated[int, Limit(ge=0, le=MOST_HOST_BYTES)]
Devices = Annotated[int, Limit(ge=1, le=1024)]
Cores = Annotated[int, Limit(ge=1, le=16384)]


@dataclass(frozen=True)
class AcceleratorDescription(Stored):
    """The accelerator of a machine; None where something is unknown.

    Descriptions that were written before partitions were known lack `partition`.
    """

    name: Label
    vendor: Label | None
    memory_bytes: DeviceBytes | None
    count: Devices
    driver: Short | None
    runtime: Short | None
    power_limit_watts: Watts | None
    clocks_mhz: Annotated[dict[Name, Megahertz | None], Passes(at_most(MOST_SET))] | None
    mig: Short | bool | None
    partition: Label | None = field(default=None, kw_only=True)
    ecc: bool | None
    compute_capability: Short | None
    multiprocessors: Count | None


@dataclass(frozen=True)
class CpuDescription(Stored):
    """The processor of a machine, with its instruction sets; None where something is unknown."""

    model: Short | None
    vendor: Short | None
    cores: Cores | None
    threads_per_core: Cores | None
    flags: Annotated[list[Short], Limit(max_length=MOST_NAMES, fail_fast=True), Passes(at_most(MOST_SET))]


@dataclass(frozen=True)
class MachineDescription(Stored):
    """The content of `snippets/records/<machine>/machine.json`.

    Parameters:
        name: Of the folder: model, memory, partition or count, and who measured where not the maintainers.
        title: For a heading, such as "NVIDIA H200, 141 GB".
        short: For a column, such as "H200".
        owner: Who measured, None for the maintainers.
        accelerator: None on a machine without one.
        memory_bytes: Of the machine, or of the container it lends.
        virtualisation: "none", "kvm", ...; None where unknown.
        system: Kernel, operating system, C library.
        published: Whether its figures are quoted from a publication instead of measured.
    """

    name: MachineName
    kind: Annotated[str, OneOf(("cpu", "cuda", "rocm", "xpu", "mps"))]
    title: Title
    short: Title
    owner: Label | None
    accelerator: AcceleratorDescription | None
    cpu: CpuDescription
    memory_bytes: HostBytes | None
    virtualisation: Short | None
    system: Annotated[dict[Name, Short | None], Passes(at_most(MOST_SET))]
    published: bool
    schema: Literal[1]

    @property
    def kinds(self) -> tuple[str, ...]:
        """What it answers to in a script's `needs` and `on`, from the widest to the narrowest."""
        return machine_kinds(self.kind, self.name)


# What a claim can be about: an accelerator, the units of it that multiply matrices of small numbers, and what
# its driver holds for each process.
CAPABILITIES = frozenset({"accelerator", "driver context", "tensor cores"})
# https://docs.nvidia.com/cuda/cuda-c-programming-guide/#features-and-technical-specifications
TENSOR_CORES_FROM = 7.0


def machine_capabilities(described: Mapping[str, Any]) -> frozenset[str]:
    """Which of `CAPABILITIES` a machine has, by what its machine.json says."""
    kind, accelerator = described["kind"], described.get("accelerator") or {}
    found = set() if kind == "cpu" else {"accelerator"}
    if kind in {"cuda", "rocm", "xpu"}:
        found.add("driver context")
    capability = str(accelerator.get("compute_capability") or "")
    if kind == "cuda" and re.fullmatch(r"\d+\.\d+", capability) and float(capability) >= TENSOR_CORES_FROM:
        found.add("tensor cores")
    return frozenset(found)


def dump_machine(machine: MachineDescription) -> str:
    """The text of a `machine.json`."""
    return dump_json(machine_table(machine))


def machine_table(machine: MachineDescription) -> dict[str, Any]:
    """`machine` as JSON objects, the schema first."""
    table = asdict(machine)
    return {"schema": table.pop("schema"), **table}


def text_over(path: Path, machine: MachineDescription) -> str:
    """The text of a description with the wording of the one in `path`: a person may have improved it."""
    kept: Mapping[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(json_text(path))
    words = {key: kept[key] for key in ("title", "short") if key in kept}
    return dump_machine(replace(machine, **words))


def differing_key(here: Mapping[str, Any], there: Mapping[str, Any]) -> str | None:
    """In what two descriptions under one name are not of one machine; None if they are."""
    return next((key for key, one, other in _compared(here, there) if one != other), None)


def description_here(project: Project, name: str) -> Mapping[str, Any] | None:
    """What the machine.json of a machine holds; None where there is none.

    Raises:
        BenchbookError: It cannot be read.
    """
    try:
        table = json.loads(json_text(project.records / name / "machine.json"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise BenchbookError(unreadable_description(project, name, error)) from error
    if not isinstance(table, dict):
        raise BenchbookError(unreadable_description(project, name, "it is no table"))
    return table


def unreadable_description(project: Project, name: str, error: object) -> Problem:
    """That the machine.json of a machine cannot be read."""
    shown = project.relative(project.records / name / "machine.json")
    return Problem(shown, 1, f"cannot be read ({error})", "restore the file")


def _compared(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    yield from ((key, here.get(key), there.get(key)) for key in ("kind", "owner", "published"))
    has_accelerator = here.get("accelerator") is not None and there.get("accelerator") is not None
    part, keys = ("accelerator", HARDWARE) if has_accelerator else ("cpu", PROCESSOR)
    one, other = here.get(part) or {}, there.get(part) or {}
    yield from ((f"{part} {said}", one.get(key), other.get(key)) for key, said in keys.items())
    sizes = [int(side.get("memory_bytes") or 0) for side in (here, there)]
    if not has_accelerator and 0 < min(sizes) < max(sizes) * (1 - MEMORY_AGREES):
        yield "memory", sizes[0], sizes[1]
