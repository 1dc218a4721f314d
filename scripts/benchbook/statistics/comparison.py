"""Compare two quantities, decide what that says of a relation between them, and say it in English."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from benchbook.content.claims import Outcome, Relation
from benchbook.statistics.paired import Interval, median_interval, ratio_interval, sign_flip_p
from benchbook.statistics.summary import median

# Why a comparison decides nothing, or a claim is left open.
Doubt = Literal["few pairs", "two campaigns", "shared", "unsteady", "signs", "small", "open", "missing"]

# Closer than that, what every run repeats to the byte is the same.
SAME = 1e-3
# Fewer pairs than five cannot reach p < 0.05; eight leave room for one that disagrees.
LEAST_PAIRS = 8
P = 0.05
# A run alone agrees with itself.
LEAST_RUNS = 2
# Bytes and counts whose runs differ by less than this agree.
AGREE = 0.001
# Where the same differs from itself by more than this, a time has to differ by more than the same does.
STEADY = 0.05
# Of two numbers that are further apart than any two of what is measured, no ratio may be left.
FURTHEST = 1e250


@dataclass(frozen=True)
class Side:
    """One of the two that are compared.

    Parameters:
        samples: One per run, in the order of the runs; of a constant the one number, of a side that was not
            measured none. Both sides are in the same unit.
        timed: Whether it is a time, a rate or the like, which no two runs have alike.
        campaign: In which session it was measured; empty for a constant.
        shared: Whether others used the device meanwhile.
    """

    samples: tuple[float, ...]
    timed: bool = False
    campaign: str = ""
    shared: bool = False

    @property
    def constant(self) -> bool:
        """Whether it is a number that nobody measured here."""
        return not self.campaign

    @property
    def agrees(self) -> bool:
        """Whether its runs yielded the same, which a single one cannot show."""
        middle = median(self.samples)
        if not self.constant and len(self.samples) < LEAST_RUNS:
            return False
        return max(self.samples) - min(self.samples) <= AGREE * abs(middle)


@dataclass(frozen=True)
class Comparison:
    """What two sides say of one another.

    Parameters:
        first: The median of the first; None without a sample.
        second: The median of the second.
        exact: Whether each run yielded the same, so that the medians alone can be compared.
        ratio: The first by the second: the median over the pairs, or the ratio of what does not scatter.
        interval: Where that ratio lies with 95 %; None where it is exact.
        p: How likely it is to be so far from the ratio it was held against, if that were the true one; None
            where it is exact or there are no pairs.
        pairs: How many pairs of runs of one campaign there are.
        same: Where the ratio of each side to itself lies; None where time is not compared.
        doubt: Why the ratio decides nothing, whatever is asked.
    """

    first: float | None = None
    second: float | None = None
    exact: bool = False
    ratio: float | None = None
    interval: Interval | None = None
    p: float | None = None
    pairs: int = 0
    same: Interval | None = None
    doubt: Doubt | None = None

    @property
    def noise(self) -> float:
        """By which factor the same differs from itself; 1 where that is no more than in a steady campaign."""
        if self.same is None or 1 - STEADY <= self.same[0] <= 1 <= self.same[1] <= 1 + STEADY:
            return 1.0
        return max(self.same[1], 1 / self.same[0])


def compare_sides(first: Side, second: Side, times: float = 1.0) -> Comparison:
    """What two sides say of one another; `times` is the ratio that `p` holds theirs against."""
    if not first.samples or not second.samples:
        return Comparison(doubt="missing")
    medians = (float(median(first.samples)), float(median(second.samples)))
    if not (first.timed or second.timed) and first.agrees and second.agrees:
        ratio = None if medians[1] == 0 else medians[0] / medians[1]
        return Comparison(*medians, exact=True, ratio=ratio)
    samples = (*first.samples, *second.samples)
    if min(samples) <= 0 or max(samples) / min(samples) > FURTHEST:
        return Comparison(*medians, doubt="signs")
    apart = first.campaign != second.campaign and not (first.constant or second.constant)
    if apart:
        interval = ratio_interval(first.samples, second.samples)
        ratio = medians[0] / medians[1]
        return Comparison(*medians, ratio=ratio, interval=interval, doubt="two campaigns")
    logs = _paired(first, second)
    ratio = math.exp(median(logs))
    lower, upper = (math.exp(end) for end in median_interval(logs))
    same = _same(first, second) if first.timed or second.timed else None
    return Comparison(
        *medians,
        ratio=ratio,
        interval=(lower, upper),
        p=sign_flip_p([one - math.log(times) for one in logs]),
        pairs=len(logs),
        same=same,
        doubt=_doubt(first, second, len(logs)),
    )


def _paired(first: Side, second: Side) -> list[float]:
    """The logarithm of the ratio in each round of the campaign, in which every variant runs once."""
    rounds = max(len(first.samples), len(second.samples))
    sides = (side.samples * rounds if side.constant else side.samples for side in (first, second))
    return [math.log(one / other) for one, other in zip(*sides, strict=False)]


def _same(first: Side, second: Side) -> Interval | None:
    """The interval of A against A: each side with itself, a round with the next; None with one round.

    Which of two rounds counts as the one and which as the other alternates along the campaign, so that a
    steady drift cancels, and between the sides, so that what befalls a whole round cancels too.
    """
    logs = []
    for turn, side in enumerate(side for side in (first, second) if not side.constant):
        pairs = zip(side.samples[::2], side.samples[1::2], strict=False)
        logs += [math.log(one / other) * (-1) ** (place + turn) for place, (one, other) in enumerate(pairs)]
    if not logs:
        return None
    lower, upper = (math.exp(end) for end in median_interval(logs))
    return lower, upper


def _doubt(first: Side, second: Side, pairs: int) -> Doubt | None:
    if (first.timed and first.shared) or (second.timed and second.shared):
        return "shared"
    if pairs < LEAST_PAIRS:
        return "few pairs"
    return None


def decide(
    found: Comparison, relation: Relation, ratio: float = 1.0, tolerance: float = 0.0, times: float = 1.0
) -> tuple[Outcome, Doubt | None]:
    """Whether the first stands in `relation` to `times` the second, and why that is left open if it is.

    Parameters:
        found: What the two say of one another.
        relation: "less", "greater" or "equal".
        ratio: For "less" and "greater", the smallest ratio that matters, 1 or more.
        tolerance: For "equal", by what share the two may differ.
        times: What the second is multiplied by.
    """
    if found.first is None or found.second is None:
        return "not measured", "missing"
    if found.doubt is not None:
        return "too close to call", found.doubt
    judged = _judge(found, relation, ratio, tolerance, times)
    if judged[1] is None and _judge(_widened(found), relation, ratio, tolerance, times) != judged:
        return "too close to call", "unsteady"
    return judged


def _judge(
    found: Comparison, relation: Relation, ratio: float, tolerance: float, times: float
) -> tuple[Outcome, Doubt | None]:
    if relation == "equal":
        return _equal(found, tolerance, times)
    if relation == "less":
        return _more(_turned(found), ratio, 1 / times)
    return _more(found, ratio, times)


def _widened(found: Comparison) -> Comparison:
    """The same with an interval that takes in how far the same differs from itself."""
    if found.interval is None:
        return found
    return replace(found, interval=(found.interval[0] / found.noise, found.interval[1] * found.noise))


def _equal(found: Comparison, tolerance: float, times: float) -> tuple[Outcome, Doubt | None]:
    if found.exact:
        assert found.first is not None
        assert found.second is not None
        wanted = times * found.second
        near = abs(found.first - wanted) <= tolerance * abs(wanted) * (1 + 1e-9)
        return ("holds" if near else "refuted"), None
    assert found.interval is not None
    lower, upper = (end / times for end in found.interval)
    if 1 - tolerance <= lower and upper <= 1 + tolerance:
        return "holds", None
    if upper < 1 - tolerance or lower > 1 + tolerance:
        return "refuted", None
    return "too close to call", "open"


def _turned(found: Comparison) -> Comparison:
    """The second against the first."""
    interval = None if found.interval is None else (1 / found.interval[1], 1 / found.interval[0])
    return Comparison(found.second, found.first, exact=found.exact, interval=interval, p=found.p)


def _more(found: Comparison, ratio: float, times: float) -> tuple[Outcome, Doubt | None]:
    """Whether the first is at least `ratio` times `times` the second."""
    if found.exact:
        assert found.first is not None
        assert found.second is not None
        least = times * found.second
        if found.first <= least * (1 + (SAME if ratio > 1 and least > 0 else 0)):
            return "refuted", None
        # Above nothing, or less than nothing, is above it by any ratio.
        enough = least <= 0 or found.first >= ratio * least * (1 - 1e-9)
        return ("holds", None) if enough else ("too close to call", "small")
    assert found.interval is not None
    assert found.p is not None
    lower, upper = (end / times for end in found.interval)
    if lower >= ratio and found.p <= P:
        return "holds", None
    if upper < 1:
        return "refuted", None
    return "too close to call", "small" if lower > 1 and upper < ratio else "open"


def direction(found: Comparison, ratio: float = 1.0) -> Relation | None:
    """Which way the two differ by at least `ratio`, "equal" where they are the same; None if that is open."""
    ways: Sequence[Relation] = ("less", "greater", "equal") if found.exact else ("less", "greater")
    return next((way for way in ways if decide(found, way, ratio)[0] == "holds"), None)


def left_open(found: Comparison, ratio: float = 1.0) -> Doubt:
    """Why `direction` names none."""
    ways: Sequence[Relation] = ("less", "greater")
    if "unsteady" in (decide(found, way, ratio)[1] for way in ways):
        return "unsteady"
    return found.doubt or "open"


def found_text(found: Comparison) -> str:
    """The ratio with its interval, p and number of pairs, as far as there are any."""
    if found.ratio is None:
        return ""
    text = f"{found.ratio:.4g}x"
    if found.interval is not None:
        text += f" {interval_text(found.interval)}"
    if found.p is not None:
        text += f", p = {found.p:.2g}, {found.pairs} pair(s)"
    return text if found.interval is not None else f"{text}, the same in every run"


def interval_text(interval: Interval) -> str:
    """An interval in brackets."""
    return f"[{interval[0]:.4g}, {interval[1]:.4g}]"


def doubt_text(doubt: Doubt | None, found: Comparison) -> str:
    """Why a comparison leaves the answer open; empty where it does not."""
    same = "" if found.same is None else interval_text(found.same)
    words: dict[Doubt | None, str] = {
        None: "",
        "few pairs": f"{found.pairs} pair(s) of runs are fewer than the {LEAST_PAIRS} that decide",
        "two campaigns": "the two were not measured in one campaign",
        "shared": "others used the device meanwhile",
        "unsteady": f"the same differs from itself ({same}), and the difference is not beyond that",
        "signs": "numbers that scatter around 0 have no ratio",
        "small": "the difference is smaller than the one that matters",
        "open": "the interval leaves both open",
        "missing": "there is no measurement of both",
    }
    return words[doubt]
