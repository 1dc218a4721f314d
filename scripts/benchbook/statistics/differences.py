"""Say whether two sets of samples of one quantity differ, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from benchbook.content.units import Unit
from benchbook.statistics.paired import ratio_interval
from benchbook.statistics.summary import median, ratio

Agreement = Literal["same", "differs", "undecided"]

# Bytes of an allocator repeat from run to run; what deviates by less is alignment, not a change.
NEARLY = 0.001
# Two sittings differ in temperature, clocks and neighbours: asv's factor and its p, between two campaigns.
SMALLEST_FACTOR, LARGEST_P = 1.1, 0.002


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
    """The exact two-sided p of the rank-sum test, ties sharing their mean rank.

    Wilcoxon (1945), "Individual Comparisons by Ranking Methods"; Mann and Whitney (1947): the share of all
    ways to divide the ranks whose sum lies at least as far from the middle as the one that was observed.
    """
    pooled = sorted((*first, *second))
    # Twice the mean rank of each value is a whole number.
    double = {value: pooled.index(value) + 1 + len(pooled) - pooled[::-1].index(value) for value in pooled}
    ranks = [double[value] for value in pooled]
    ways: list[dict[int, int]] = [{0: 1}] + [{} for _ in first]
    for rank in ranks:
        for size in range(len(first), 0, -1):
            for total, count in ways[size - 1].items():
                ways[size][total + rank] = ways[size].get(total + rank, 0) + count
    sums = ways[len(first)]
    middle = len(first) * (len(pooled) + 1)
    observed = abs(sum(double[value] for value in first) - middle)
    return sum(count for total, count in sums.items() if abs(total - middle) >= observed) / sum(sums.values())
