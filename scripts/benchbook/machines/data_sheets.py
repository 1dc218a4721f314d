"""What vendors' data sheets promise of a device at most: no honest measurement exceeds it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchbook.machines.accelerators import model_words

FILE = Path(__file__).with_name("data_sheets.json")


@dataclass(frozen=True)
class Sheet:
    """The ceilings of one model.

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
def sheets() -> tuple[Sheet, ...]:
    """Every known sheet, the most specific names first."""
    read = (Sheet(**each) for each in json.loads(FILE.read_text("utf-8")))
    return tuple(sorted(read, key=lambda sheet: -len(sheet.model.split())))


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
