"""Say what cannot be true of a well-formed record: more memory than there is, times that never scatter."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.problems import Problem
from benchbook.script import Script
from benchbook.units import UNITS
from benchbook.validation import RECORD_AGAIN, find_line

# Some kernels count a process's pages in batches: two readings, one behind the other, need not quite agree.
SLACK = 0.95


def plausibility_problems(
    table: Mapping[str, Any], machine: Mapping[str, Any], script: Script, path: str, text: str = ""
) -> Iterator[Problem]:
    """What cannot be true of a well-formed record of `script` on `machine`.

    Parameters:
        table: The record, already of the right shape.
        machine: The machine description, likewise.
        script: The script as it stands.
        path: The file, for messages.
        text: Its content, to find lines in.
    """
    declared = script.metadata.metrics
    accelerator = machine.get("accelerator") or {}
    device = accelerator.get("memory_bytes") or machine.get("memory_bytes") or math.inf
    device *= accelerator.get("count", 1)
    for name, variant in table["variants"].items():
        line = find_line(text, ("variants", name))
        if variant["outcome"] != "ok":
            continue
        measured = set(variant["runs"][0]["metrics"])
        if measured != set(declared) and variant["code"] == script.code_digest:
            odd = ", ".join(sorted(measured ^ set(declared)))
            yield Problem(
                path, line, f"variant {name}: its metrics differ from the declared ones ({odd})", RECORD_AGAIN
            )
        for what in _odd_memory(variant["runs"], device):
            yield Problem(path, line, f"variant {name}: {what}", RECORD_AGAIN)
        for metric in sorted(measured & set(declared)):
            # A thermometer may well show the same whole degree each time.
            if UNITS[declared[metric].unit].dimension not in {"time", "rate"}:
                continue
            values = [run["metrics"][metric] for run in variant["runs"]]
            if len(values) > 2 and all(v == values[0] for v in values):
                what = f"variant {name}: {metric} is the same in {len(values)} runs, as no time is"
                yield Problem(path, line, what, RECORD_AGAIN)
            if any(item <= 0 for v in values for item in _flat(v)):
                yield Problem(path, line, f"variant {name}: {metric} is not positive", RECORD_AGAIN)


def _odd_memory(runs: Sequence[Mapping[str, Any]], device: float) -> Iterator[str]:
    """What no machine can have read, the first of each meter of each cell."""
    seen: set[tuple[str, str]] = set()
    for rank in (rank for run in runs for rank in (run, *run.get("other_ranks", ()))):
        for cell, meters in rank["cells"].items():
            for meter in ("allocated_peak", "reserved_peak", "device_memory_peak", "process_memory_peak"):
                peak = meters.get(meter)
                if peak is None or (cell, meter) in seen:
                    continue
                # The device is sampled, so that a peak between two samples is missed.
                held = 0 if meter == "device_memory_peak" else meters.get(meter.removesuffix("_peak")) or 0
                if meter != "process_memory_peak" and peak > device:
                    seen.add((cell, meter))
                    yield f"{cell}.{meter} is {peak} B, more than the machine's {device} B"
                elif peak < held * SLACK:
                    seen.add((cell, meter))
                    yield f"{cell}.{meter} is {peak} B, less than the {held} B held at its end"


def _flat(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
