"""What differs enough, and what is equal, goes by the kind of quantity, and was settled before the record."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.checks import check_project
from benchbook.content.claims import parse_claims, predicates_about
from benchbook.content.project import Project
from benchbook.content.records import dump_record, load_record
from benchbook.content.tolerances import SMALLEST_RATIO, TOLERANCES, tolerance_for
from benchbook.content.units import UNITS
from benchbook.languages.language import load_language
from benchbook.machines.description import describe
from benchbook.query.judging import Judgement, claims_of, judge_claim
from benchbook.query.library import Library
from benchbook.recording import command as recording
from benchbook.rendering.claims import finding, found_rows
from builders import write
from handbooks import copy_handbook, edit
from running import add_script, small_project

ROOT = Path(__file__).parents[2]
HERE = describe(None)
ENGLISH = load_language(ROOT / "docs", "en")
SEEDS = """
    needs = ["cpu"]
    repeats = 2
    [tool.benchbook.metrics]
    losses = { unit = "1", seeds = true }
    others = { unit = "1", seeds = true }
"""
BODY = """# %% losses
losses = [1.0 + seed / 10 for seed in range(10)]
others = [{factor} * loss * (1 + seed / 1e4) for seed, loss in enumerate(losses)]

# %% checks
assert len(losses) == 10"""
CLAIM = """[[claim]]
id = "the-others-are-as-large"
a = "guide/small.py#others"
relation = "equal"
b = "guide/small.py#losses"
{more}machines = {{ "{machine}" = "holds" }}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    return small_project(tmp_path)


def record(project: Project, factor: float = 1.0, body: str = BODY) -> None:
    add_script(project.root, body.replace("{factor}", str(factor)), SEEDS)
    assert recording.record_command(project, []) == 0


def claim(project: Project, more: str = "") -> None:
    write(project.snippets / "guide/claims.toml", CLAIM.format(more=more, machine=HERE.name))


def judged(project: Project) -> Judgement:
    library = Library(project)
    return judge_claim(
        library, claims_of(library).by_id["the-others-are-as-large"], library.machines[HERE.name]
    )


@pytest.mark.parametrize(
    ("factor", "said"), [(1.0, "holds"), (1.02, "refuted"), (1.0095, "too close to call")]
)
def test_a_metric_with_a_number_for_each_seed_is_compared_seed_by_seed(
    project: Project, factor: float, said: str
) -> None:
    """The losses themselves scatter by a half over the seeds; what decides is each pair."""
    record(project, factor)
    claim(project)
    found = judged(project)
    assert found.outcome == said
    assert found.found.pairs == 10
    assert found.found.interval is not None
    assert "10 seeds" in finding(found, ENGLISH)


def test_a_metric_of_seeds_that_is_one_number_names_its_line(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, "# %% losses\nlosses = 1.0\nothers = [1.0]\n\n# %% checks\nassert losses", SEEDS)
    assert recording.record_command(project, []) == 1
    said = capsys.readouterr().err
    assert "small.py:15: the metric `losses` does not have a number for each seed" in said


def test_seeds_without_end_are_not_recorded(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    body = "# %% losses\nlosses = [1.0] * 101\nothers = [1.0]\n\n# %% checks\nassert losses"
    add_script(project.root, body, SEEDS)
    assert recording.record_command(project, []) == 1
    assert "the metric `losses` has 101 seeds" in capsys.readouterr().err


def test_a_record_from_before_the_seeds_were_told_apart_still_shows(project: Project) -> None:
    record(project)
    claim(project)
    path = project.record_path(HERE.name, "guide/small.py")
    table: dict[str, Any] = json.loads(path.read_text("utf-8"))
    for run in table["variants"]["default"]["runs"]:
        run["metrics"] = {"losses": 1.0, "others": 1.0}
    write(path, json.dumps(table))
    assert judged(project).outcome == "holds"


@pytest.mark.parametrize(
    ("unit", "share"),
    [
        *(("MiB", 0.05), ("B/parameter", 0.05), ("TFLOP", 0.05), ("count", 0)),
        *(("s", 0.1), ("tokens/s", 0.1), ("1", 0.01), ("percent", 0.01)),
    ],
)
def test_each_kind_of_quantity_has_one_tolerance(unit: str, share: float) -> None:
    assert tolerance_for(UNITS[unit]) == pytest.approx(share)


def test_a_ratio_of_times_scatters_as_times_do(project: Project) -> None:
    record(project, 1.06)
    claim(project)
    assert judged(project).outcome == "refuted"
    claim(project, 'kind = "time"\n')
    assert judged(project).outcome == "holds"


def test_seconds_are_no_ratio_of_times(project: Project) -> None:
    record(project)
    claim(project, 'kind = "time"\n')
    edit(project.snippets / "guide/small.py", 'unit = "1"', 'unit = "s"')
    said = [str(one) for one in check_project(project).problems]
    assert any("claims.toml:6: s is no ratio of times; leave `kind` out" in one for one in said), said


def test_contributors_read_the_numbers_that_decide() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for kind, words in {
        "memory": "bytes, bytes per parameter, operations",
        "time": "times, rates",
        "ratio": "losses, shares, differences",
    }.items():
        assert re.search(rf"\| {words} \| {100 * TOLERANCES[kind]:.0f} % \|", text)
    assert "| counts | none |" in text
    assert f"{SMALLEST_RATIO:g}" in text


def test_a_claim_may_be_stricter_than_its_kind_and_not_laxer(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    path = "snippets/memory/claims.toml"
    edit(project.root / path, "tolerance = 0.05\n", "tolerance = 0.06\n")
    (problem,) = (each for each in check_project(project).problems if "a tolerance of" in each.what)
    assert (problem.path, problem.line) == (path, 17)
    assert problem.what == "a tolerance of 0.06 is more than quantities in B have"
    assert problem.fix == "leave it out: theirs is 0.05"


@pytest.mark.parametrize(
    ("numbers", "ratio"), [("", SMALLEST_RATIO), ("times = 3\n", 1.0), ("ratio = 2\n", 2.0)]
)
def test_the_number_that_the_words_name_takes_the_place_of_the_smallest_ratio(
    numbers: str, ratio: float
) -> None:
    text = CLAIM.format(more=numbers, machine="one").replace('"equal"', '"less"')
    (found,), problems = parse_claims(text, "claims.toml", "guide")
    assert problems == []
    assert found.ratio == ratio


def test_a_campaign_notes_what_decided_the_claims_about_its_script(project: Project) -> None:
    claim(project)
    record(project)
    kept = load_record(project.record_path(HERE.name, "guide/small.py"))
    assert kept is not None
    (campaign,) = kept.campaigns.values()
    stood = predicates_about(project, "guide/small.py")
    assert list(stood) == ["the-others-are-as-large"]
    assert getattr(campaign, "predicates", None) == stood
    assert predicates_about(project, "guide/another.py") == {}


def test_a_number_set_after_the_measurement_is_said_to_be(project: Project) -> None:
    claim(project)
    record(project)
    assert not judged(project).set_after
    claim(project, "tolerance = 0.005\n")
    assert judged(project).set_after
    assert "threshold set after this was measured" in finding(judged(project), ENGLISH)


def test_a_new_claim_is_late_only_with_numbers_of_its_own(project: Project) -> None:
    record(project)
    claim(project)
    assert not judged(project).set_after
    claim(project, "times = 1\n")
    assert judged(project).set_after


def test_a_need_that_was_set_after_the_measurement_excuses_nothing(project: Project) -> None:
    needs = 'needs = ["accelerator"]\n'
    claim(project)
    record(project, factor=3)
    assert judged(project).outcome == "refuted"
    claim(project, needs)
    after = judged(project)
    assert (after.outcome, after.set_after) == ("refuted", True)
    record(project, factor=4)
    assert judged(project).outcome == "not applicable"


def test_of_a_record_that_did_not_note_it_nobody_says_so(project: Project) -> None:
    claim(project)
    record(project)
    path = project.record_path(HERE.name, "guide/small.py")
    table: dict[str, Any] = json.loads(path.read_text("utf-8"))
    for campaign in table["campaigns"].values():
        del campaign["predicates"]
    write(path, json.dumps(table))
    kept = load_record(path)
    assert kept is not None
    assert "predicates" not in dump_record(kept)
    claim(project, "times = 1\n")
    assert not judged(project).set_after


def test_the_details_of_a_claim_name_the_tolerance_of_its_kind(project: Project) -> None:
    claim(project)
    record(project)
    rows = found_rows(judged(project), ENGLISH)
    assert ("tolerance", "text", "±1%") in [
        (key, way, str(content).replace(" ", "")) for key, way, content in rows
    ]
