"""Intervals of a median and the chance of seeing it without a difference."""

import bisect
import itertools
import math
import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.statistics.paired import (
    EXACT,
    EXACT_RESAMPLES,
    bootstrap_medians,
    median_interval,
    ratio_interval,
    sign_flip_p,
)
from benchbook.statistics.summary import median

whole = st.lists(st.integers(-9, 9), min_size=1, max_size=5)
logs = st.lists(st.floats(-1, 1), min_size=1, max_size=14)


@given(whole)
def test_every_resample_counts_once(values: list[int]) -> None:
    resamples = [float(median(found)) for found in itertools.product(values, repeat=len(values))]
    chances: dict[float, float] = {}
    for value, chance in bootstrap_medians(values):
        chances[value] = chances.get(value, 0) + chance
    for value in {*resamples, *chances}:
        expected = resamples.count(value) / len(resamples)
        assert chances.get(value, 0) == pytest.approx(expected, abs=1e-12)


@given(logs)
def test_the_interval_holds_the_median_and_lies_within_the_values(values: list[float]) -> None:
    lower, upper = median_interval(values)
    assert min(values) <= lower <= median(values) <= upper <= max(values)


@given(logs, st.randoms(use_true_random=False))
def test_the_order_of_the_values_does_not_matter(values: list[float], draw: random.Random) -> None:
    shuffled = draw.sample(values, len(values))
    assert median_interval(shuffled) == median_interval(values)
    assert sign_flip_p(shuffled) == pytest.approx(sign_flip_p(values))


@given(logs)
def test_the_interval_of_the_opposite_is_the_opposite(values: list[float]) -> None:
    lower, upper = median_interval(values)
    assert median_interval([-value for value in values]) == pytest.approx((-upper, -lower))


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = random.Random(1)
    held = 0
    for _ in range(500):
        lower, upper = median_interval([draw.gauss(0, 1) for _ in range(12)])
        held += lower <= 0 <= upper
    assert 0.9 <= held / 500 <= 0.99


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=9))
def test_every_choice_of_signs_counts_once(values: list[float]) -> None:
    seen = abs(math.fsum(values)) - 1e-12 * math.fsum(map(abs, values))
    flips = itertools.product((1, -1), repeat=len(values))
    sums = [
        abs(math.fsum(sign * value for sign, value in zip(signs, values, strict=True))) for signs in flips
    ]
    expected = sum(one >= seen for one in sums) / len(sums)
    assert sign_flip_p(values) == pytest.approx(expected, abs=2 / len(sums) * 1e-9)


def test_eight_pairs_that_agree_are_one_chance_in_128() -> None:
    assert sign_flip_p([0.1] * 8) == 1 / 128
    assert sign_flip_p([0.1] * 5) == 1 / 16


def test_many_pairs_are_as_good_by_the_normal_distribution() -> None:
    draw = random.Random(2)
    values = [draw.gauss(0.3, 1) for _ in range(EXACT)]
    assert sign_flip_p([*values, 0.0]) == pytest.approx(sign_flip_p(values), abs=0.02)
    assert sign_flip_p([0.0] * (EXACT + 1)) == 1


def test_more_values_than_are_counted_have_the_interval_of_the_normal_distribution() -> None:
    values = [float(value) for value in range(EXACT_RESAMPLES)]
    exact, near = median_interval(values), median_interval([*values, values[-1]])
    assert near == pytest.approx(exact, abs=1)
    lower, upper = median_interval([float(value) for value in range(1100)])
    assert (lower, upper) == pytest.approx((549.5 - 33, 549.5 + 33), abs=1)


@given(
    st.lists(st.floats(0.1, 1e9), min_size=1, max_size=9),
    st.lists(st.floats(0.1, 10), min_size=1, max_size=9),
)
def test_the_interval_of_a_ratio_is_that_of_all_pairs_of_medians(
    first: list[float], second: list[float]
) -> None:
    below = bootstrap_medians(second)
    pairs = sorted((a / b, p * q) for a, p in bootstrap_medians(first) for b, q in below)
    sums = list(itertools.accumulate(chance for _, chance in pairs))
    ends = [pairs[bisect.bisect_left(sums, share - 1e-12)][0] for share in (0.025, 0.975)]
    assert ratio_interval(first, second) == pytest.approx(tuple(ends), rel=1e-15)


def test_the_interval_of_a_ratio_of_many_samples_needs_no_more_memory_than_they() -> None:
    draw = random.Random(5)
    first, second = ([draw.gauss(10, 1) for _ in range(100)] for _ in range(2))
    bootstrap_medians(first)
    tracemalloc.start()
    lower, upper = ratio_interval(first, second)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.9 < lower < 1 < upper < 1.1
    assert peak < 4 * 2**20


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=6), st.floats(0.1, 10))
def test_the_interval_of_a_ratio_scales_with_either_side(samples: list[float], factor: float) -> None:
    lower, upper = ratio_interval([factor * sample for sample in samples], samples)
    alone = ratio_interval(samples, samples)
    assert (lower, upper) == pytest.approx((factor * alone[0], factor * alone[1]))
    assert lower * (1 - 1e-9) <= factor <= upper * (1 + 1e-9)


def test_a_ratio_needs_positive_samples() -> None:
    with pytest.raises(ValueError, match="positive"):
        ratio_interval([1.0], [0.0])


@pytest.mark.parametrize("function", [median_interval, sign_flip_p])
def test_without_values_there_is_nothing_to_say(function: object) -> None:
    with pytest.raises(ValueError, match="no samples"):
        function([])  # type: ignore[operator]
