"""The median of a few numbers with its interval, and the chance of seeing it where there is no difference."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist

Interval = tuple[float, float]

LEVEL = 0.95
# Up to so many pairs, every choice of signs is counted; beyond, the normal distribution is as good.
EXACT = 32
# Likewise up to so many values, the chance of every median that a resample can have: of more, a binomial is
# as the normal distribution, and the two in the middle of an even number are as good as one.
EXACT_RESAMPLES = 128


def median_interval(values: Sequence[float], level: float = LEVEL) -> Interval:
    """The bootstrap interval of the median of `values`: what that of a resample is in `level` of all cases.

    Percentiles (Efron 1979, "Bootstrap Methods: Another Look at the Jackknife"), over every resample there is
    and not over some drawn at random, so that it is the same each time.

    Raises:
        ValueError: There is no value.
    """
    medians = bootstrap_medians(values)
    return _at(medians, (1 - level) / 2), _at(medians, (1 + level) / 2)


def ratio_interval(first: Sequence[float], second: Sequence[float], level: float = LEVEL) -> Interval:
    """The bootstrap interval of the ratio of two medians, where no sample belongs to one of the other side.

    Raises:
        ValueError: A side has no sample, or one that is not positive.
    """
    if min(*first, *second, math.inf) <= 0:
        raise ValueError("a ratio needs positive samples")
    above, below = bootstrap_medians(first), bootstrap_medians(second)
    return _ratio_at(above, below, (1 - level) / 2), _ratio_at(above, below, (1 + level) / 2)


def bootstrap_medians(values: Sequence[float]) -> list[tuple[float, float]]:
    """The medians that resamples of `values` can have, in order, each with its probability.

    A resample of n has its k-th smallest at or below the i-th of `values` where at least k of its n members
    come from the first i: a binomial tail. Of an even number, the two in the middle are taken together.

    Raises:
        ValueError: There is no value.
    """
    if not values:
        raise ValueError("no samples")
    ordered = sorted(values)
    return sorted(
        ((ordered[place] if place == other else (ordered[place] + ordered[other]) / 2), chance)
        for place, other, chance in _middles(len(values))
    )


@lru_cache(maxsize=32)
def _middles(count: int) -> tuple[tuple[int, int, float], ...]:
    """Which two places of `count` values in order can be the middle of a resample, each with its chance."""
    if count > EXACT_RESAMPLES:
        tails = [_normal_tail(count, place) for place in range(count + 1)]
        return tuple((place, place, tails[place + 1] - tails[place]) for place in range(count))
    tails = [_tail(count, (count + 1) // 2, place / count) for place in range(count + 1)]
    found = []
    for place in range(1, count + 1):
        alone = tails[place] - tails[place - 1]
        for other, chance in _next_to(count, place) if count % 2 == 0 else ():
            alone -= chance
            found.append((place - 1, other - 1, chance))
        found.append((place - 1, place - 1, alone))
    return tuple(found)


def _next_to(count: int, place: int) -> Iterator[tuple[int, float]]:
    """For each later place, the chance that it and `place` are the two in the middle of a resample."""
    half = count // 2
    lower = (place / count) ** half - ((place - 1) / count) ** half
    for other in range(place + 1, count + 1):
        upper = (1 - (other - 1) / count) ** half - (1 - other / count) ** half
        yield other, math.comb(count, half) * lower * upper


def _tail(count: int, least: int, share: float) -> float:
    """The chance of at least `least` successes in `count` trials that succeed with `share`."""
    return sum(
        math.comb(count, hits) * share**hits * (1 - share) ** (count - hits)
        for hits in range(least, count + 1)
    )


def _normal_tail(count: int, place: int) -> float:
    """The chance that more than half of a resample of `count` come from the first `place`."""
    if place in (0, count):
        return float(place == count)
    return NormalDist().cdf((place - count / 2) / math.sqrt(place * (1 - place / count)))


def _ratio_at(
    above: Sequence[tuple[float, float]], below: Sequence[tuple[float, float]], share: float
) -> float:
    """The least ratio of a value of `above` to one of `below` that `share` of all pairs are at or below.

    The pairs of two distributions are too many to write down, and not needed to count those below a ratio.
    """
    tops, bottoms = [value for value, _ in above], [value for value, _ in below]
    sums = [0.0, *accumulate(chance for _, chance in above)]

    def counted(ratio: float) -> float:
        """The share of the pairs whose ratio is `ratio` at most."""
        total, place = 0.0, 0
        for bottom, chance in below:
            while place < len(tops) and tops[place] / bottom <= ratio:
                place += 1
            total += chance * sums[place]
        return total

    lower, upper = tops[0] / bottoms[-1], tops[-1] / bottoms[0]
    if counted(lower) >= share - 1e-12:
        return lower
    # Halve until no number is between: the upper end is a ratio of the two then.
    while lower < (middle := _between(lower, upper)) < upper:
        if counted(middle) >= share - 1e-12:
            upper = middle
        else:
            lower = middle
    return upper


def _between(lower: float, upper: float) -> float:
    """A number between two positive ones: what is far apart is halved by its magnitude."""
    return lower + (upper - lower) / 2 if upper < 2 * lower else math.sqrt(lower) * math.sqrt(upper)


def _at(distribution: Sequence[tuple[float, float]], share: float) -> float:
    """The least value that `share` of a distribution, in order, is at or below."""
    below = 0.0
    for value, chance in distribution:
        below += chance
        if below >= share - 1e-12:
            return value
    return distribution[-1][0]


def sign_flip_p(values: Sequence[float]) -> float:
    """How likely a sum at least as far from 0 is if each of `values` might as well have the other sign.

    Fisher's test of paired differences (1935, "The Design of Experiments", section 21): two-sided, over all
    choices of signs; beyond `EXACT` values by the normal distribution.

    Raises:
        ValueError: There is no value.
    """
    if not values:
        raise ValueError("no samples")
    seen = abs(math.fsum(values))
    least = seen - 1e-12 * math.fsum(map(abs, values))
    if len(values) > EXACT:
        spread = math.hypot(*values)
        return 1.0 if spread == 0 else 2 * (1 - NormalDist().cdf(seen / spread))
    # The sums of each half meet in the middle: 2 * 2^(n/2) of them in place of 2^n.
    half = len(values) // 2
    left, right = _sums(values[:half]), sorted(_sums(values[half:]))
    above = sum(len(right) - bisect_left(right, least - one) for one in left)
    return min(1.0, math.ldexp(above, 1 - len(values)))


def _sums(values: Sequence[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums = [one + sign * value for one in sums for sign in (1, -1)]
    return sums
