"""The model of a machine.json: what it says of a machine, without identifying it."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from benchbook.content.formats import (
    Count,
    Label,
    Limit,
    MachineName,
    Name,
    OneOf,
    Short,
    Stored,
    Title,
    Value,
)
from benchbook.content.records import MOST_NAMES, dump_json, write_text
from benchbook.content.script import machine_kinds

# Some ten times what the largest has that is sold: a device, a host, accelerators and cores of one machine.
DeviceBytes = Annotated[int, Limit(ge=0, le=4 * 2**40)]
HostBytes = Annotated[int, Limit(ge=0, le=512 * 2**40)]
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
    power_limit_watts: Value | None
    clocks_mhz: dict[Name, Value | None] | None
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
    threads_per_core: Count | None
    flags: Annotated[list[Short], Limit(max_length=MOST_NAMES, fail_fast=True)]


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
    system: dict[Name, Short | None]
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


def write_machine(path: Path, machine: MachineDescription) -> None:
    """Put the description in place, keeping the wording of an earlier one: a person may have improved it."""
    kept: Mapping[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(path.read_text("utf-8"))
    words = {key: kept[key] for key in ("title", "short") if key in kept}
    write_text(path, dump_machine(replace(machine, **words)))
