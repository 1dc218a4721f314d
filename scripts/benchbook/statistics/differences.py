"""Collect the samples that a recorded variant holds, and say whether two sets differ, and how surely."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist, variance
from typing import Literal

from benchbook.content.records import Run, VariantRecord
from benchbook.content.script import CHECKS, PARAMETERS
from benchbook.content.units import METERS, UNITS, Unit
from benchbook.statistics.paired import ratio_interval
from benchbook.statistics.summary import median, ratio

Agreement = Literal["same", "differs", "undecided"]

# Bytes of an allocator repeat from run to run; what deviates by less is alignment, not a change.
NEARLY = 0.001
# Two sessions differ in temperature, clocks and neighbours: asv's factor and its p, between two campaigns.
SMALLEST_FACTOR, LARGEST_P = 1.1, 0.002
# Up to so many samples together every division of their ranks is counted; beyond, the normal distribution is
# as good.
EXACT_RANKS = 64


@dataclass(frozen=True)
class Difference:
    """How a quantity stands to what it was.

    Parameters:
        agreement: Whether it is what it was; "undecided" where the samples are too few to tell.
        before: Its median then; for a series that of the element that moved most.
        after: Its median now.
        ratio: `after / before`; None where `before` is 0.
        interval: Where the ratio lies with 95 %; None where the quantity does not scatter, or has no ratio.
        p: Of the rank-sum test; None where none was needed.
    """

    agreement: Agreement
    before: float
    after: float
    ratio: float | None
    interval: tuple[float, float] | None = None
    p: float | None = None


def sample_difference(
    before: Sequence[float], after: Sequence[float], unit: Unit, noisy: bool | None = None
) -> Difference:
    """How the samples `after` stand to those `before`.

    Counts and operations must agree exactly, bytes and shares nearly. Times and rates, and whatever else
    scatters by itself, are held against each other by a rank-sum test and a smallest factor.

    Parameters:
        before: Then.
        after: Now.
        unit: Of both.
        noisy: Whether the quantity scatters even where these samples do not; by default as the unit says.

    Raises:
        ValueError: One of the two has no sample.
    """
    old, new = float(median(before)), float(median(after))
    factor = ratio(new, old)
    noisy = unit.noisy if noisy is None else noisy
    if not noisy and not _scatters(before) and not _scatters(after):
        exact = unit.dimension in {"count", "compute"}
        same = new == old if exact else abs(new - old) <= NEARLY * max(abs(old), abs(new))
        return Difference("same" if same else "differs", old, new, factor)
    p = rank_sum_p(before, after)
    # A ratio needs numbers above nothing.
    interval = ratio_interval(after, before) if min(*before, *after) > 0 else None
    if (factor is not None and 1 / SMALLEST_FACTOR < factor < SMALLEST_FACTOR) or old == new:
        return Difference("same", old, new, factor, interval, p)
    if p <= LARGEST_P:
        return Difference("differs", old, new, factor, interval, p)
    # Where even the clearest order of so many samples would not do, silence says nothing.
    able = rank_sum_p([0.0] * len(before), [1.0] * len(after)) <= LARGEST_P
    return Difference("same" if able else "undecided", old, new, factor, interval, p)


def _scatters(samples: Sequence[float]) -> bool:
    return max(samples) - min(samples) > NEARLY * max(abs(sample) for sample in samples)


def rank_sum_p(first: Sequence[float], second: Sequence[float]) -> float:
    """The two-sided p of the rank-sum test, ties sharing their mean rank; exact up to `EXACT_RANKS` samples.

    Wilcoxon (1945), "Individual Comparisons by Ranking Methods"; Mann and Whitney (1947): the share of all
    ways to divide the ranks whose sum lies at least as far from the middle as the one that was observed.
    """
    pooled = sorted((*first, *second))
    # Twice the mean rank of each value is a whole number.
    double = {value: pooled.index(value) + 1 + len(pooled) - pooled[::-1].index(value) for value in pooled}
    ranks = [double[value] for value in pooled]
    middle = len(first) * (len(pooled) + 1)
    observed = abs(sum(double[value] for value in first) - middle)
    if len(pooled) > EXACT_RANKS:
        return _normal_p(observed, ranks, len(first))
    ways: list[dict[int, int]] = [{0: 1}] + [{} for _ in first]
    for rank in ranks:
        for size in range(len(first), 0, -1):
            for total, count in ways[size - 1].items():
                ways[size][total + rank] = ways[size].get(total + rank, 0) + count
    sums = ways[len(first)]
    return sum(count for total, count in sums.items() if abs(total - middle) >= observed) / sum(sums.values())


def _normal_p(observed: float, ranks: Sequence[int], drawn: int) -> float:
    """How likely a sum of `drawn` of many ranks is to lie at least `observed` from its mean."""
    # The variance of a sum that is drawn without replacement.
    spread = math.sqrt(variance(ranks) * drawn * (len(ranks) - drawn) / len(ranks))
    return 1.0 if spread == 0 else 2 * NormalDist().cdf(-observed / spread)


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
