"""Say which bytes of a record cannot be: more than there is, or was held; a peak below what was held."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchbook.content.machines import MOST_DEVICE_BYTES, MOST_HOST_BYTES
from benchbook.content.metadata import Metric
from benchbook.content.script import Script
from benchbook.content.units import DEVICE_METERS, UNITS

# Some kernels count a process's pages in batches: two readings, one behind the other, need not quite agree.
SLACK = 0.95
# A process can share pages with others that its control group does not charge to it.
SHARED_PAGES = 1.05
# What a rule of thumb says of the bytes of a training is here at most 1.3 times what was held; and
# pages to which nothing was written are counted as a tensor's, and not as the process's.
OF_WHAT_WAS_HELD = 2
# What a script computes, tries or reads in all may be more than the machine holds at once: here 1.3 times it.
MOST_TIMES_THE_HOST = 100
# The metric by which a script tells how many bytes its model's parameters take on the device.
PARAMETER_BYTES = "parameter_bytes"
DEVICE_PEAKS = ("allocated_peak", "reserved_peak", "device_memory_peak")
# Accelerators of which torch reads what a process holds, and its peak.
READ_BY_TORCH = ("cuda", "rocm", "xpu")
# What a script calls the most that its device held.
PEAK = re.compile(r"^peak|_peak$")
# What a script calls the most of a whole run, the most of one phase, and what is held at that moment.
WHOLE, AT_PEAK = ("peak", "peak_memory"), "_at_peak"
OF_PHASE = ("peak_forward", "peak_backward", "peak_step")
# What an optimizer's step finds, however a script calls it: all three are there at once.
AT_STEP = (("weights", "weight_bytes"), ("gradients", "gradient_bytes"), ("optimizer_states", "state_bytes"))


def ranks_of(run: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """What each process of a run held, that of rank 0 first."""
    return (run, *run.get("other_ranks", ()))


def items_of(runs: Sequence[Mapping[str, Any]], name: str) -> Iterator[Any]:
    """Every number that runs hold of a metric: of each rank, each item of a series, each timed block."""
    for rank in (rank for run in runs for rank in ranks_of(run)):
        for value in (rank["metrics"].get(name, ()), rank.get("blocks", {}).get(name, ())):
            yield from value if isinstance(value, list | tuple) else (value,)


def bytes_of_one(machine: Mapping[str, Any]) -> float:
    """The bytes of one device, or of a machine without one of its own; where unknown, the most there are."""
    accelerator = machine.get("accelerator") or {}
    return float(accelerator.get("memory_bytes") or machine.get("memory_bytes") or MOST_DEVICE_BYTES)


def bytes_of_devices(machine: Mapping[str, Any]) -> float:
    """The bytes of all devices of a machine together."""
    return bytes_of_one(machine) * float((machine.get("accelerator") or {}).get("count", 1))


def peak_of(runs: Sequence[Mapping[str, Any]], kind: str) -> float:
    """The most bytes that a process of some runs held, of a kind of machine; infinite where none tells."""
    meters = ("process_memory_peak",) if kind == "cpu" else DEVICE_PEAKS
    cells = [cell for run in runs for rank in ranks_of(run) for cell in rank["cells"].values()]
    read = [float(cell[meter]) for cell in cells for meter in meters if cell.get(meter)]
    return max(read, default=math.inf)


def odd_memory(
    runs: Sequence[Mapping[str, Any]], machine: Mapping[str, Any], campaign: Mapping[str, Any]
) -> Iterator[str]:
    """What no machine can have read, the first of each meter of each cell."""
    # Each process reads one device; who publishes figures may have added them up.
    device = bytes_of_devices(machine) if machine["published"] else bytes_of_one(machine)
    host = (machine.get("memory_bytes") or MOST_HOST_BYTES) * SHARED_PAGES
    # What others hold of a device may fall meanwhile; how other drivers count nobody here has tried.
    alone = machine["kind"] == "cuda" and not campaign["state"].get("shared")
    larger = [("allocated", "reserved"), ("allocated_peak", "reserved_peak")]
    larger += [("reserved", "device_memory")] if alone else []
    ranks = [rank for run in runs for rank in ranks_of(run)]
    if (held := max(rank.get("baseline_memory") or 0 for rank in ranks)) > host:
        yield f"baseline_memory is {held} B, more than the machine's {host:.0f} B"
    yield from itertools.islice(filter(None, map(_odd_course, ranks)), 1)
    told: set[tuple[str, str]] = set()
    for rank in ranks:
        for cell, meters in rank["cells"].items():
            for meter in (*DEVICE_PEAKS, "process_memory_peak"):
                most = host if meter == "process_memory_peak" else device
                for what in _odd_peak(meter, meters, most):
                    if (cell, meter) not in told:
                        yield f"{cell}.{what}"
                    told.add((cell, meter))
            for part, whole in larger:
                one, other = meters.get(part), meters.get(whole)
                if None not in (one, other) and other < one * SLACK and (cell, part) not in told:
                    yield f"{cell}.{part} is {one} B, more than its {whole} of {other} B, which it is part of"
                    told.add((cell, part))


def _odd_course(rank: Mapping[str, Any]) -> str | None:
    """A cell that never held, at its peak, what its process held as it began; None if there is none."""
    named, held = "baseline_memory", rank.get("baseline_memory") or 0
    for cell, meters in rank["cells"].items():
        peak = meters.get("process_memory_peak")
        if peak is not None and peak < held * SLACK:
            return f"{named} is {held} B, and {cell}.process_memory_peak, right after, {peak} B"
        named, held = f"{cell}.process_memory", meters.get("process_memory") or 0
    return None


def odd_device(variant: Mapping[str, Any], script: Script, machine: Mapping[str, Any]) -> Iterator[str]:
    """Readings of a device that the machine lacks; bytes of a device that no process ever used."""
    cells = [meters for run in variant["runs"] for rank in ranks_of(run) for meters in rank["cells"].values()]
    read = sorted({meter for meters in cells for meter in DEVICE_METERS if meters.get(meter) is not None})
    if machine["kind"] == "cpu":
        # The profiler counts what torch allocates on the processor, where a script asks for that.
        known = {"allocated", "allocated_peak"} if "cpu_allocator" in variant["meters"] else set()
        if strange := [meter for meter in read if meter not in known]:
            yield f"it holds {', '.join(strange)}, which nothing reads on this machine"
    elif machine["kind"] in READ_BY_TORCH and not machine["published"]:
        yield from _odd_use(variant["runs"], script)


def _odd_use(runs: Sequence[Mapping[str, Any]], script: Script) -> Iterator[str]:
    """A run that never used the device; a peak that is above all that was read of it."""
    of_device = [name for name, metric in script.metadata.metrics.items() if metric.memory == "device"]
    # What runs on a processor too, and counts no memory, may leave the device alone.
    if not of_device and "cpu" in script.metadata.needs:
        return
    peaks = [name for name in of_device if PEAK.search(name)]
    for run in runs:
        for rank in ranks_of(run):
            cells = rank["cells"].values()
            most = max((meters.get(peak) or 0 for meters in cells for peak in DEVICE_PEAKS), default=0)
            if not any(meters.get("allocated_peak") for meters in cells):
                yield f"run {run['place']} used no memory of the device, in no cell"
                return
            for name in peaks:
                value = rank["metrics"].get(name)
                if isinstance(value, int | float) and value * SLACK > most:
                    yield f"{name} is {value:.0f} B, more than the {most:.0f} B that were read of the device"
                    return


def _odd_peak(meter: str, meters: Mapping[str, Any], most: float) -> Iterator[str]:
    """What a peak and what was held at the end cannot be, where `most` is all there is."""
    end = meter.removesuffix("_peak")
    peak, held = meters.get(meter), meters.get(end) or 0
    for name, value in ((meter, peak or 0), (end, held)):
        if value > most:
            yield f"{name} is {value} B, more than the machine's {most:.0f} B"
    if peak is not None and peak < held * SLACK:
        yield f"{meter} is {peak} B, less than the {held} B held at its end"


def odd_parameters(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A device that never held the parameters which the script says were on it."""
    for rank in (rank for run in runs for rank in ranks_of(run)):
        held = rank["metrics"].get(PARAMETER_BYTES)
        peaks = [meters.get("allocated_peak") for meters in rank["cells"].values()]
        known = [peak for peak in peaks if peak is not None]
        if held is not None and not isinstance(held, list) and known and max(known) < held:
            yield f"its parameters take {held} B, and no cell allocated more than {max(known)} B"
            return


def odd_bytes(
    runs: Sequence[Mapping[str, Any]], declared: Mapping[str, Metric], machine: Mapping[str, Any]
) -> Iterator[str]:
    """Bytes of tensors far above all that a process of the run ever held, by its meters."""
    if machine["published"]:
        return
    meters = ("process_memory_peak",) if machine["kind"] == "cpu" else DEVICE_PEAKS
    of_device = [
        name
        for name, metric in declared.items()
        if metric.memory == "device" and UNITS[metric.unit].dimension == "memory"
    ]
    for name in of_device:
        factor = UNITS[declared[name].unit].factor
        for rank in (rank for run in runs for rank in ranks_of(run)):
            read = [cell.get(meter) for cell in rank["cells"].values() for meter in meters]
            most = max((peak for peak in read if peak is not None), default=0)
            value = rank["metrics"].get(name, 0)
            largest = factor * (max(value, default=0) if isinstance(value, list) else value)
            if 0 < most * OF_WHAT_WAS_HELD < largest:
                yield f"{name} is {largest:.0f} B, and the process held {most} B at most"
                break


def odd_host_bytes(
    runs: Sequence[Mapping[str, Any]], declared: Mapping[str, Metric], machine: Mapping[str, Any]
) -> Iterator[str]:
    """Bytes that no device held and no host can have: peaks above its memory, others far above it."""
    if machine["published"]:
        return
    host = (machine.get("memory_bytes") or MOST_HOST_BYTES) * SHARED_PAGES
    for name, metric in declared.items():
        unit = UNITS[metric.unit]
        if unit.dimension != "memory" or metric.memory == "device":
            continue
        most = host if PEAK.search(name) else host * MOST_TIMES_THE_HOST
        largest = max(items_of(runs, name), default=0) * unit.factor
        if largest > most:
            than = "" if PEAK.search(name) else f"{MOST_TIMES_THE_HOST} times "
            yield f"{name} is {largest:.0f} B, more than {than}the machine's {host:.0f} B"


def odd_peaks(runs: Sequence[Mapping[str, Any]], declared: Mapping[str, Metric]) -> Iterator[str]:
    """A peak of a whole run that is below what the same run says was held at once."""
    of_device = [
        name
        for name, metric in declared.items()
        if metric.memory == "device" and UNITS[metric.unit].dimension == "memory"
    ]
    whole = next((name for name in WHOLE if name in of_device), None)
    if whole is None:
        return
    at_step = [name for names in AT_STEP for name in names if name in of_device]
    together = [[name] for name in of_device if name in OF_PHASE]
    together.append([name for name in of_device if name.endswith(AT_PEAK)])
    # A script that does not tell of all three may hold one without the others.
    together.append(at_step if len(at_step) == len(AT_STEP) else [])
    for names in filter(None, together):
        for rank in (rank for run in runs for rank in ranks_of(run)):
            peak = _bytes_in(rank, [whole], declared)
            held = _bytes_in(rank, names, declared)
            if peak is not None and held is not None and peak < held * SLACK:
                yield f"{whole} is {peak:.0f} B, less than the {held:.0f} B held at once ({', '.join(names)})"
                break


def zero_peaks(runs: Sequence[Mapping[str, Any]], declared: Mapping[str, Metric]) -> Iterator[str]:
    """Peaks of a device of 0 B in a process that allocated memory of it, by the meters of its cells."""
    peaks = [
        name
        for name, metric in declared.items()
        # What is held at the peak may be of other parts alone.
        if metric.memory == "device" and PEAK.search(name) and not name.endswith(AT_PEAK)
    ]
    for name in peaks:
        for rank in (rank for run in runs for rank in ranks_of(run)):
            most = max((meters.get("allocated_peak") or 0 for meters in rank["cells"].values()), default=0)
            value = rank["metrics"].get(name)
            if most and 0 in (value if isinstance(value, list) else [value]):
                yield f"{name} is 0 B, and a cell of its run allocated {most} B of the device"
                break


def _bytes_in(rank: Mapping[str, Any], names: Sequence[str], declared: Mapping[str, Metric]) -> float | None:
    """What metrics of a process say together; None where one is missing, or a series."""
    values = [rank["metrics"].get(name) for name in names]
    if any(value is None or isinstance(value, list) for value in values):
        return None
    return float(
        sum(value * UNITS[declared[name].unit].factor for name, value in zip(names, values, strict=True))
    )
