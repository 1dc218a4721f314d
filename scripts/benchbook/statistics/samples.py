"""Collect the samples of every quantity that a recorded variant holds: its metrics, and its cells' meters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchbook.content.records import Run, VariantRecord
from benchbook.content.script import CHECKS, PARAMETERS
from benchbook.content.units import METERS, UNITS, Unit
from benchbook.statistics.differences import Difference, sample_difference
from benchbook.statistics.summary import median

# What the system charges, by the page, and what is seen of the device between two looks.
NOISY_METERS = ("process_memory", "process_memory_peak", "device_memory", "device_memory_peak")
# Of what takes less, the interpreter and the clock are a large part.
SHORTEST_SECONDS = 0.01


@dataclass(frozen=True)
class QuantitySamples:
    """The samples of one quantity, a list per run: a single number, or the elements of a series.

    Parameters:
        name: `metric` or `cell.meter`, as pages refer to it.
        unit: What the samples are in.
        runs: By run.
        noisy: Whether it scatters from run to run.
    """

    name: str
    unit: Unit
    runs: tuple[tuple[float, ...], ...]
    noisy: bool = False


def quantities(variant: VariantRecord, units: dict[str, str]) -> Iterator[QuantitySamples]:
    """Every quantity of a measured variant; of the cells without those that no page shows.

    Parameters:
        variant: What was recorded.
        units: The symbol of each metric's unit, by name; what is not in it is left out.
    """
    for name in variant.runs[0].metrics if variant.runs else ():
        if units.get(name) in UNITS:
            unit = UNITS[units[name]]
            yield QuantitySamples(name, unit, tuple(_elements(run, name) for run in variant.runs), unit.noisy)
    cells = variant.runs[0].cells if variant.runs else {}
    for cell in cells:
        for meter in METERS if cell not in {PARAMETERS, CHECKS} else ():
            readings = [run.meter(cell, meter) for run in variant.runs]
            known = tuple((float(reading),) for reading in readings if reading is not None)
            if len(known) == len(readings):
                unit = METERS[meter]
                yield QuantitySamples(f"{cell}.{meter}", unit, known, unit.noisy or meter in NOISY_METERS)


def _elements(run: Run, name: str) -> tuple[float, ...]:
    value = run.metrics[name]
    return tuple(map(float, value)) if isinstance(value, list) else (float(value),)


def compared(
    before: VariantRecord, after: VariantRecord, units: dict[str, str]
) -> Iterator[tuple[QuantitySamples, Difference]]:
    """Every quantity of `after` that `before` holds too, and how it stands to what it was.

    Parameters:
        before: What was recorded then.
        after: What was recorded now.
        units: As for `quantities`.
    """
    known = {each.name: each for each in quantities(before, units)}
    for now in quantities(after, units):
        found = compare_quantity(known[now.name], now) if now.name in known else None
        if found is not None:
            yield now, found


def compare_quantity(before: QuantitySamples, after: QuantitySamples) -> Difference | None:
    """How one quantity stands to what it was; None where nothing can be said of it.

    Of a series that scatters the median of each run counts, of any other the element that moved most.
    """
    lengths = {len(run) for run in (*before.runs, *after.runs)}
    if lengths == {0}:
        return None
    if len(lengths) > 1:
        old, new = (float(median([len(run) for run in each.runs])) for each in (before, after))
        return Difference("differs", old, new, None)
    if before.noisy:
        sides = [[float(median(run)) for run in each.runs] for each in (before, after)]
        if before.name.endswith(".seconds") and max(map(median, sides)) < SHORTEST_SECONDS:
            return None
        return sample_difference(sides[0], sides[1], before.unit, noisy=True)
    found = [
        sample_difference([run[at] for run in before.runs], [run[at] for run in after.runs], before.unit)
        for at in range(lengths.pop())
    ]
    rank = {"differs": 2, "undecided": 1, "same": 0}
    return max(found, key=lambda each: (rank[each.agreement], abs(each.after - each.before)))
