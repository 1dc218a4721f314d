"""When a claim holds, is refuted, or is too close to call."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.content.claims import Relation
from benchbook.statistics.comparison import LEAST_PAIRS, Side, compare_sides, decide, direction, left_open

TURNED: dict[Relation, Relation] = {"less": "greater", "greater": "less", "equal": "equal"}
times = st.lists(st.floats(0.5, 2), min_size=LEAST_PAIRS, max_size=12)


def timed(*samples: float, campaign: str = "one") -> Side:
    return Side(samples, timed=True, campaign=campaign)


def measured(*samples: float) -> Side:
    """What several runs yielded; a single number is one that all agree on."""
    return Side(samples * 3 if len(samples) == 1 else samples, campaign="one")


def around(value: float, noise: float = 0.01, seed: int = 0, runs: int = 8) -> Side:
    draw = random.Random(f"{value} {noise} {seed}")
    return timed(*(value * draw.uniform(1 - noise, 1 + noise) for _ in range(runs)))


def outcome(first: Side, second: Side, relation: Relation, **asked: float) -> str:
    return decide(compare_sides(first, second, asked.get("times", 1.0)), relation, **asked)[0]


# Bytes and counts


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (100, 200, "holds"),
        (100, 110, "too close to call"),
        (100, 100, "refuted"),
        (110, 100, "refuted"),
        (0, 100, "holds"),
        (-2, 0, "holds"),
    ],
)
def test_what_agrees_in_every_run_is_compared_as_it_is(first: float, second: float, said: str) -> None:
    assert outcome(measured(*[first] * 3), measured(*[second] * 3), "less", ratio=1.5) == said
    assert outcome(measured(*[second] * 3), measured(*[first] * 3), "greater", ratio=1.5) == said


def test_a_time_that_is_next_to_nothing_has_no_ratio() -> None:
    nothing, much = timed(*(n * 5e-324 for n in range(1, 9))), timed(*range(20, 28))
    for first, second in ((nothing, much), (much, nothing)):
        assert compare_sides(first, second).doubt == "signs"


def test_runs_that_differ_by_less_than_a_thousandth_agree() -> None:
    almost = measured(100_000, 100_090, 100_050)
    assert compare_sides(almost, measured(200_000)).exact
    assert not compare_sides(replace(almost, samples=(100_000, 100_150)), measured(200_000)).exact


def test_bytes_that_are_the_same_refute_that_one_needs_more() -> None:
    same, more = measured(1e9), measured(1e9 + 32)
    assert outcome(more, same, "greater", ratio=1.05) == outcome(same, more, "less", ratio=1.05) == "refuted"
    assert outcome(measured(1.03e9), same, "greater", ratio=1.05) == "too close to call"
    # A number that its words name decides by itself.
    assert outcome(more, same, "greater", ratio=1.0) == "holds"


@pytest.mark.parametrize(("value", "said"), [(4.0, "holds"), (4.19, "holds"), (0.019, "refuted")])
def test_a_number_that_someone_named_is_held_against_the_measured_one(value: float, said: str) -> None:
    assert outcome(measured(value, value), Side((4.0,)), "equal", tolerance=0.05) == said


def test_one_run_of_bytes_is_too_few() -> None:
    once = Side((100.0,), campaign="one")
    assert decide(compare_sides(once, measured(200)), "less") == ("too close to call", "few pairs")


def test_nothing_equals_nothing() -> None:
    assert outcome(measured(0.0, 0.0), Side((0.0,)), "equal") == "holds"
    assert outcome(measured(1e-9, 1e-9), Side((0.0,)), "equal") == "refuted"


def test_twice_as_much_is_equal_to_two_times_the_other() -> None:
    assert outcome(measured(128), measured(64), "equal", times=2) == "holds"
    assert outcome(measured(128), measured(64), "equal", times=3) == "refuted"


def test_bytes_of_two_campaigns_can_be_compared() -> None:
    assert outcome(measured(100), Side((200, 200), campaign="two"), "less") == "holds"


# Times


def test_a_difference_that_every_pair_shows_holds() -> None:
    found = compare_sides(around(2.0), around(1.0, seed=1))
    assert found.pairs == 8
    assert found.p == 1 / 128
    assert decide(found, "greater", ratio=1.5)[0] == "holds"
    assert decide(found, "less", ratio=1.5)[0] == "refuted"


def test_a_difference_smaller_than_the_one_that_matters_is_too_close() -> None:
    found = compare_sides(around(1.1), around(1.0, seed=1))
    assert decide(found, "greater", ratio=1.05) == ("holds", None)
    assert decide(found, "greater", ratio=1.2) == ("too close to call", "small")
    assert decide(found, "greater", ratio=found.ratio or 0) == ("too close to call", "open")


def test_a_difference_that_the_runs_do_not_show_is_too_close() -> None:
    assert decide(compare_sides(around(1.0, seed=2), around(1.0, seed=3)), "less") == (
        "too close to call",
        "open",
    )


@pytest.mark.parametrize("runs", [1, 3, LEAST_PAIRS - 1])
def test_too_few_pairs_are_too_close_however_clear_they_look(runs: int) -> None:
    found = compare_sides(around(2.0, runs=runs), around(1.0, runs=runs))
    assert decide(found, "greater") == ("too close to call", "few pairs")


def test_times_of_two_campaigns_are_not_compared() -> None:
    found = compare_sides(around(2.0), replace(around(1.0), campaign="two"))
    assert decide(found, "greater") == ("too close to call", "two campaigns")
    assert found.interval is not None


def test_times_of_a_shared_device_decide_nothing() -> None:
    found = compare_sides(around(2.0), replace(around(1.0), shared=True))
    assert decide(found, "greater") == ("too close to call", "shared")


def test_bytes_of_a_shared_device_do() -> None:
    assert outcome(replace(measured(100), shared=True), measured(200), "less") == "holds"


def test_where_the_same_differs_from_itself_only_more_than_that_counts() -> None:
    near = compare_sides(around(1.2, noise=0.15), around(1.0, noise=0.15, seed=1))
    assert near.interval is not None
    assert near.interval[0] > 1 > near.interval[0] / near.noise
    assert decide(near, "greater") == ("too close to call", "unsteady")
    assert decide(near, "less") == ("too close to call", "unsteady")
    assert (direction(near), left_open(near)) == (None, "unsteady")
    far = compare_sides(around(3.0, noise=0.15), around(1.0, noise=0.15, seed=1))
    assert far.noise > 1
    assert decide(far, "greater", ratio=2) == ("holds", None)
    assert decide(far, "equal", tolerance=0.1) == ("refuted", None)
    assert decide(far, "greater", ratio=2.8)[0] == "too close to call"


def test_in_a_steady_campaign_the_interval_stands_as_it_is() -> None:
    jumping = timed(*[3.0, 3.1] * 4)
    found = compare_sides(timed(*(value * 2 for value in jumping.samples)), Side((1.0,)))
    assert found.same is not None
    assert found.same[1] <= 1.05


def test_a_warm_up_that_slows_every_second_run_is_seen_against_a_constant() -> None:
    found = compare_sides(timed(*[1.0, 1.5, 1.5, 1.0] * 2), Side((0.9,)))
    assert decide(found, "greater") == ("too close to call", "unsteady")


def test_a_drift_that_both_sides_share_cancels() -> None:
    drift = [1 + place / 100 for place in range(8)]
    first = timed(*(2 * slow for slow in drift))
    found = compare_sides(first, timed(*drift))
    assert found.interval == pytest.approx((2, 2))
    assert decide(found, "greater", ratio=1.9)[0] == "holds"


def test_bytes_that_scatter_are_judged_by_pairs_too() -> None:
    first = measured(*(value * 2**20 for value in (90, 95, 91, 99, 92, 94, 93, 97)))
    second = measured(*(value * 2**20 for value in (190, 195, 191, 199, 192, 194, 193, 197)))
    found = compare_sides(first, second)
    assert (found.exact, found.pairs, found.same) == (False, 8, None)
    assert decide(found, "less", ratio=1.5)[0] == "holds"


def test_numbers_that_scatter_around_zero_have_no_ratio() -> None:
    found = compare_sides(measured(-1.0, 1.0), measured(2.0, 3.0))
    assert decide(found, "less") == ("too close to call", "signs")


def test_what_was_not_measured_is_not_judged() -> None:
    assert decide(compare_sides(Side(()), measured(1.0)), "less") == ("not measured", "missing")


def test_a_difference_is_seen_where_there_is_one_and_hardly_ever_elsewhere() -> None:
    draw = random.Random(1)
    said: dict[float, list[str]] = {1.0: [], 1.05: []}
    for effect, verdicts in said.items():
        for _ in range(200):
            rounds = [draw.gauss(1, 0.01) for _ in range(8)]
            first = timed(*(effect * slow * draw.gauss(1, 0.01) for slow in rounds))
            second = timed(*(slow * draw.gauss(1, 0.01) for slow in rounds))
            verdicts.append(decide(compare_sides(first, second), "greater")[0])
    assert said[1.0].count("holds") <= 5
    assert said[1.05].count("holds") >= 190


# Whatever the numbers are


@given(times, st.floats(1, 3))
def test_a_larger_ratio_never_makes_a_claim_hold(samples: list[float], ratio: float) -> None:
    found = compare_sides(timed(*samples), around(1.0, runs=len(samples)))
    if decide(found, "greater", ratio)[0] == "holds":
        assert decide(found, "greater", 1.0)[0] == "holds"


@given(times, times)
def test_no_two_numbers_are_both_less_and_greater(first: list[float], second: list[float]) -> None:
    found = compare_sides(timed(*first), timed(*second))
    said = [decide(found, way)[0] for way in ("less", "greater")]
    assert said.count("holds") <= 1
    assert said.count("refuted") <= 1


@given(times, times, st.sampled_from(["less", "greater"]))
def test_turning_both_sides_around_turns_the_relation(
    first: list[float], second: list[float], way: Relation
) -> None:
    there = decide(compare_sides(timed(*first), timed(*second)), way, 1.1)
    back = decide(compare_sides(timed(*second), timed(*first)), TURNED[way], 1.1)
    assert there[0] == back[0]


@given(times, times, st.floats(1e-9, 1e9))
def test_the_unit_does_not_matter(first: list[float], second: list[float], factor: float) -> None:
    here = compare_sides(timed(*first), timed(*second))
    there = compare_sides(timed(*(factor * one for one in first)), timed(*(factor * one for one in second)))
    assert there.interval == pytest.approx(here.interval)
    assert there.p == pytest.approx(here.p)


@given(times)
def test_nothing_differs_from_itself(samples: list[float]) -> None:
    found = compare_sides(timed(*samples), timed(*samples))
    assert direction(found) is None
    assert decide(found, "equal", tolerance=0.01)[0] in ("holds", "too close to call")


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_exact_numbers_always_have_a_direction(first: int, second: int) -> None:
    way = direction(compare_sides(measured(first, first), measured(second, second)))
    assert way == ("equal" if first == second else "less" if first < second else "greater")
