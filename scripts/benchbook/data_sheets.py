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
        gigabytes_per_second: To and from that memory.
        tflops: The largest figure of the sheet, in its narrowest format and with sparsity.
        source: The sheet.
    """

    model: str
    memory_gb: int
    gigabytes_per_second: float
    tflops: float
    source: str


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
