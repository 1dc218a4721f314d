"""Medians, spreads, ratios."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.statistics.summary import Summary, median, quantile, ratio, saving, summary

samples = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=30)


def test_the_median_is_the_middle_sample() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5


def test_bytes_that_agree_stay_integers() -> None:
    result = median([2**40, 2**40])
    assert result == 2**40
    assert isinstance(result, int)


@given(samples)
def test_quartiles_enclose_the_median(values: list[float]) -> None:
    found = summary(values)
    assert min(values) <= found.lower <= found.median <= found.upper <= max(values)


def test_quantiles_interpolate_between_neighbours() -> None:
    assert quantile([0, 10], 0.25) == 2.5
    assert quantile([0, 1, 2, 3, 4], 0.75) == 3


def test_the_spread_is_half_the_interquartile_range_as_a_share() -> None:
    assert Summary(8, 100.0, 98.0, 102.0).spread == pytest.approx(0.02)
    assert summary([5, 5, 5]).spread == 0
    assert Summary(8, 0.0, -1.0, 1.0).spread is None
    assert Summary(8, 0.1, -0.3, 0.2).spread is None


@pytest.mark.parametrize(("samples", "spread"), [([90, 110], 0.1), ([90, 100, 120], 0.15), ([7], 0)])
def test_of_few_samples_the_spread_is_half_the_range(samples: list[float], spread: float) -> None:
    assert summary(samples).spread == pytest.approx(spread)


def test_without_samples_there_is_no_median() -> None:
    with pytest.raises(ValueError, match="no samples"):
        median([])
    with pytest.raises(ValueError, match="no samples"):
        quantile([], 0.5)


def test_ratio_and_saving_of_nothing_are_unknown() -> None:
    assert ratio(3, 2) == 1.5
    assert saving(62, 100) == pytest.approx(0.38)
    assert ratio(1, 0) is None
    assert saving(1, 0) is None
