"""Every claim can fail: its records, pushed past its threshold, turn its verdict."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from benchbook.content.claims import Constant, Outcome
from benchbook.content.project import Project
from benchbook.content.records import load_record
from benchbook.query.judging import Judgement, claims_of, judgements, resolve_sides, side_of_measurement
from benchbook.query.library import Library
from benchbook.query.measurements import measure
from benchbook.statistics.comparison import Side, compare_sides, decide

LIBRARY = Library(Project(Path(__file__).parents[2]))
DECIDED = ("holds", "refuted", "too close to call")


def judged() -> list[Judgement]:
    """Each claim on each machine that has records of it."""
    claims = claims_of(LIBRARY).by_id.values()
    return [one for claim in claims for one in judgements(LIBRARY, claim) if one.outcome in DECIDED]


def sides(one: Judgement) -> tuple[Side, Side]:
    found = []
    for target in resolve_sides(LIBRARY, one.claim):
        if isinstance(target, Constant):
            assert target.unit is not None
            found.append(Side((target.value * target.unit.factor,)))
        else:
            found.append(side_of_measurement(measure(LIBRARY, target, one.machine)))
    return found[0], found[1]


def pushed(side: Side, factor: float, shift: float = 0.0) -> Side:
    """A side whose every sample is another: what a record would hold if that were so."""
    return Side(
        tuple(sample * factor + shift for sample in side.samples),
        timed=side.timed,
        campaign=side.campaign,
        shared=side.shared,
    )


def verdict(one: Judgement, first: Side, second: Side) -> Outcome:
    claim = one.claim
    found = compare_sides(first, second, claim.times)
    return decide(found, claim.relation, claim.ratio, one.tolerance, claim.times)[0]


def beyond(one: Judgement, first: Side, second: Side) -> dict[Outcome, Side]:
    """The first side, pushed to where the claim must hold and to where it must be refuted."""
    claim = one.claim
    middle = sum(first.samples) / len(first.samples)
    aim = claim.times * sum(second.samples) / len(second.samples)
    if middle <= 0 or aim <= 0:
        # Nothing has a ratio to nothing: a byte more or less, or a unit.
        step = max(1.0, abs(aim))
        level, above, below = (
            pushed(first, 0, aim),
            pushed(first, 0, aim + step),
            pushed(first, 0, aim - step),
        )
        return {
            "less": {"holds": below, "refuted": above},
            "greater": {"holds": above, "refuted": below},
            "equal": {"holds": level, "refuted": above},
        }[claim.relation]
    level = aim / middle
    # Far enough that no scatter of the samples leaves it open.
    far = 10 * claim.ratio * (1 + one.tolerance) * (max(first.samples) / min(first.samples)) ** 2
    if not second.constant:
        far *= (max(second.samples) / min(second.samples)) ** 2
    above, below = pushed(first, level * far), pushed(first, level / far)
    if claim.relation == "less":
        return {"holds": below, "refuted": above}
    if claim.relation == "greater":
        return {"holds": above, "refuted": below}
    return {"refuted": above}


@pytest.mark.parametrize("one", judged(), ids=lambda one: f"{one.claim.id}-{one.machine.name}")
def test_records_beyond_its_threshold_turn_the_verdict_of_a_claim(one: Judgement) -> None:
    first, second = sides(one)
    assert verdict(one, first, second) == one.outcome
    if one.found.doubt is not None:
        return  # too few pairs, or two campaigns: no number decides it
    for wanted, mutated in beyond(one, first, second).items():
        assert verdict(one, mutated, second) == wanted
        assert all(math.isfinite(sample) for sample in mutated.samples)


def test_a_number_that_a_constant_is_held_against_is_not_one_itself() -> None:
    """A metric with one value whatever is varied cannot refute a number that someone named."""
    same = []
    for one in judged():
        first, second = one.claim.a, one.claim.b
        record = load_record(LIBRARY.project.record_path(one.machine.name, first.script))
        assert record is not None
        runs = [run for variant in record.variants.values() for run in variant.runs]
        values = {json.dumps(run.metrics[first.name]) for run in runs if first.name in run.metrics}
        if isinstance(second, Constant) and second.value and len(values) == 1 and len(record.variants) > 1:
            same.append(one.claim.id)
    assert same == []
