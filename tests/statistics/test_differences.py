"""Two sets of samples differ where they do, are the same where they are, and too few of them say neither."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchbook.content.records import Run, VariantRecord
from benchbook.content.units import UNITS
from benchbook.statistics.differences import (
    EXACT_RANKS,
    QuantitySamples,
    compare_quantity,
    quantities,
    rank_sum_p,
    sample_difference,
)

SECONDS, BYTES, COUNT = UNITS["s"], UNITS["B"], UNITS["count"]
EIGHT = [1.0, 1.01, 1.02, 0.99, 0.98, 1.03, 1.005, 0.995]


@pytest.mark.parametrize(
    ("before", "after", "unit", "agreement"),
    [
        ([5, 5, 5], [5, 5, 5], COUNT, "same"),
        ([5, 5, 5], [6, 6, 6], COUNT, "differs"),
        ([10**9] * 3, [10**9 + 10**5] * 3, BYTES, "same"),
        ([10**9] * 3, [10**9 + 2 * 10**6] * 3, BYTES, "differs"),
        ([0, 0, 0], [0, 0, 0], BYTES, "same"),
        ([0, 0, 0], [1, 1, 1], BYTES, "differs"),
        (EIGHT, [2 * each for each in EIGHT], SECONDS, "differs"),
        (EIGHT, [1.05 * each for each in EIGHT], SECONDS, "same"),
        (EIGHT, EIGHT[::-1], SECONDS, "same"),
        (EIGHT[:3], [2 * each for each in EIGHT[:3]], SECONDS, "undecided"),
        ([100, 103, 106], [200, 206, 212], BYTES, "undecided"),
    ],
)
def test_what_differs_is_told_from_what_does_not(
    before: list[float], after: list[float], unit: object, agreement: str
) -> None:
    assert sample_difference(before, after, unit).agreement == agreement  # type: ignore[arg-type]


def test_by_how_much_is_told_with_an_interval() -> None:
    found = sample_difference(EIGHT, [2 * each for each in EIGHT], SECONDS)
    assert found.ratio == pytest.approx(2)
    assert found.interval is not None
    assert found.interval[0] <= 2 <= found.interval[1]
    assert found.interval == sample_difference(EIGHT, [2 * each for each in EIGHT], SECONDS).interval


def test_p_is_the_share_of_all_divisions_that_lie_as_far_out() -> None:
    first, second = [1.0, 2.0, 2.0, 5.0], [2.0, 3.0, 7.0]
    pooled = sorted(first + second)
    ranks = {v: 1 + pooled.index(v) + (pooled.count(v) - 1) / 2 for v in pooled}
    middle = len(first) * (len(pooled) + 1) / 2
    observed = abs(sum(ranks[v] for v in first) - middle)
    ways = [abs(sum(c) - middle) >= observed for c in itertools.combinations([ranks[v] for v in pooled], 4)]
    assert rank_sum_p(first, second) == pytest.approx(sum(ways) / len(ways))


@settings(deadline=None)
@given(
    st.lists(st.floats(0.1, 10), min_size=1, max_size=9), st.lists(st.floats(0.1, 10), min_size=1, max_size=9)
)
def test_p_is_a_share_and_symmetric(first: list[float], second: list[float]) -> None:
    p = rank_sum_p(first, second)
    assert 0 < p <= 1
    assert p == pytest.approx(rank_sum_p(second, first))


def test_many_samples_are_as_good_by_the_normal_distribution() -> None:
    draw = random.Random(4)
    first = [draw.choice([1.0, 2.0, draw.random()]) for _ in range(EXACT_RANKS // 2)]
    second = [draw.random() + 0.1 for _ in range(EXACT_RANKS // 2)]
    assert rank_sum_p([*first, 1.0], second) == pytest.approx(rank_sum_p(first, second), abs=0.02)
    assert rank_sum_p([1.0] * EXACT_RANKS, [1.0] * EXACT_RANKS) == 1


def test_nothing_is_a_multiple_of_nothing() -> None:
    found = sample_difference([0.0] * 8, [1.0] * 8, SECONDS)
    assert (found.agreement, found.ratio, found.interval) == ("differs", None, None)


def of(name: str, unit: str, *runs: tuple[float, ...]) -> QuantitySamples:
    return QuantitySamples(name, UNITS[unit], runs)


def test_of_a_series_the_element_that_moved_counts() -> None:
    before = of("sizes", "count", (1, 2, 3), (1, 2, 3))
    assert compare_quantity(before, of("sizes", "count", (1, 2, 3))).agreement == "same"  # type: ignore[union-attr]
    moved = compare_quantity(before, of("sizes", "count", (1, 9, 3)))
    assert moved is not None
    assert (moved.agreement, moved.before, moved.after) == ("differs", 2, 9)


def test_a_series_of_another_length_differs() -> None:
    found = compare_quantity(of("sizes", "count", (1, 2)), of("sizes", "count", (1, 2, 3)))
    assert found is not None
    assert (found.agreement, found.before, found.after) == ("differs", 2, 3)


def brief(seconds: float) -> QuantitySamples:
    return QuantitySamples("add.seconds", SECONDS, ((seconds,),), noisy=True)


def test_memory_that_the_system_charges_scatters_by_itself() -> None:
    assert sample_difference([10**9] * 8, [1.01 * 10**9] * 8, BYTES, noisy=True).agreement == "same"


def test_what_takes_no_time_is_not_compared() -> None:
    assert compare_quantity(brief(1e-5), brief(3e-5)) is None


def test_the_quantities_are_what_pages_refer_to() -> None:
    meters = {"seconds": 1.0, "allocated": None}
    run = Run(0, {"total": 3, "sizes": [1, 2], "gone": 1}, {"parameters": meters, "add": meters})
    variant = VariantRecord("c", "ok", None, {}, 1, {}, (), "sha256:0", {}, {}, (run,))
    found = {each.name: each.runs for each in quantities(variant, {"total": "count", "sizes": "count"})}
    assert found == {"total": ((3.0,),), "sizes": ((1.0, 2.0),), "add.seconds": ((1.0,),)}
