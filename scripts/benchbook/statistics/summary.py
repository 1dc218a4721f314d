"""Medians, spreads and ratios of samples: pure arithmetic, no records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Of fewer samples, quartiles would be means of their extremes.
FEWEST = 4


@dataclass(frozen=True)
class Summary:
    """What a few samples of one quantity say.

    Parameters:
        count: How many samples there are.
        median: Their median, in the unit of the samples.
        lower: Their first quartile; of fewer than `FEWEST`, the smallest.
        upper: Their third quartile; of fewer than `FEWEST`, the largest.
    """

    count: int
    median: float
    lower: float
    upper: float

    @property
    def spread(self) -> float | None:
        """Half of what lies between both, as a share of the median (0.01 is ±1 %); None if it spans zero."""
        if self.upper == self.lower:
            return 0.0
        if self.median == 0 or self.lower < 0 < self.upper:
            return None
        return (self.upper - self.lower) / 2 / abs(self.median)


def median(samples: Sequence[float]) -> float:
    """The middle of `samples`; an even number of them gives the mean of the two in the middle.

    An odd number of integers, or an even one whose middle two agree, gives an integer: bytes stay bytes.

    Raises:
        ValueError: There is no sample.
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    middle = len(ordered) // 2
    if len(ordered) % 2 or ordered[middle - 1] == ordered[middle]:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def quantile(samples: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of `samples` lie, interpolated linearly between neighbours.

    Type 7 of Hyndman and Fan (1996), "Sample Quantiles in Statistical Packages".

    Raises:
        ValueError: There is no sample.
    """
    if not samples:
        raise ValueError("no samples")
    ordered = sorted(samples)
    place = share * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))


def summary(samples: Sequence[float]) -> Summary:
    """Count, median and quartiles of `samples`.

    Raises:
        ValueError: There is no sample.
    """
    share = 0.25 if len(samples) >= FEWEST else 0.0
    return Summary(len(samples), median(samples), quantile(samples, share), quantile(samples, 1 - share))


def ratio(first: float, second: float) -> float | None:
    """How many times `second` goes into `first`; None if `second` is 0."""
    return None if second == 0 else first / second


def saving(first: float, second: float) -> float | None:
    """The share of `second` that `first` saves: 0.38 where `first` is 38 % less; None if `second` is 0."""
    return None if second == 0 else 1 - first / second
