"""The times of a script stand in one campaign, whatever is asked for: `record` leaves what `check` accepts."""

from __future__ import annotations

import contextlib
import json
import math
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.bundles import import_bundles
from benchbook.checking.checks import check_project
from benchbook.checking.status import project_status
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import Campaign, Record, load_record
from benchbook.machines.description import describe
from benchbook.recording import campaign as campaigns
from benchbook.recording import command as recording
from benchbook.recording.campaign import gather, header, lay_over
from benchbook.recording.jobs import OK, Result
from benchbook.recording.journal import open_journal
from benchbook.recording.plan import make_plan
from benchbook.recording.session import Session
from builders import make_project
from running import add_script
from stopping import time_for

NAME = "sums/timed.py"
HERE = describe(None, "Ada")
BODY = """
# %% parameters
n = 1

# %% work
import time
began = time.perf_counter()
total = sum(range(100_000 * n))
seconds = time.perf_counter() - began

# %% checks
assert total >= 0
"""
TIMED = """
needs = ["cpu"]
repeats = 3
[tool.benchbook.metrics]
seconds = { unit = "s" }
[tool.benchbook.matrix]
n = [1, 2]
"""
THREE = TIMED.replace("[1, 2]", "[1, 2, 3]")
IN_ONE = "record all its variants in one campaign: `benchbook record --all sums/timed.py`"
BYTES = THREE.replace('seconds = { unit = "s" }', 'total = { unit = "count" }')


@pytest.fixture
def project(tmp_path: Path, bare_python: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A handbook of which `check` accepts everything, and in which a script has times at two points."""
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    monkeypatch.setenv("BENCHBOOK_PYTHON", str(bare_python))
    made = make_project(tmp_path)
    add_script(made.root, BODY, TIMED, NAME)
    return made


def record(project: Project, **options: Any) -> int:
    return recording.record_command(project, [NAME], recorded_by="Ada", **options)


def written(project: Project) -> Record:
    found = load_record(project.record_path(HERE.name, NAME))
    assert found is not None
    return found


def refused(project: Project) -> list[str]:
    return [str(problem) for problem in check_project(Project(project.root)).problems]


def planned(project: Project, capsys: pytest.CaptureFixture[str], **options: Any) -> dict[str, str]:
    """Why each variant would run."""
    capsys.readouterr()
    record(project, plan=True, plan_json=True, **options)
    scripts = json.loads(capsys.readouterr().out)["scripts"]
    return {each["variant"]: each["reason"] for script in scripts for each in script["variants"]}


def split(project: Project) -> None:
    """Let one variant of the record be of another campaign than the others."""
    path = project.record_path(HERE.name, NAME)
    table = json.loads(path.read_text("utf-8"))
    ((name, campaign),) = table["campaigns"].items()
    *_, (last, variant) = table["variants"].items()
    another = f"{name}-more"
    table["campaigns"][another] = campaign
    variant["campaign"] = another
    (line,) = table["history"]
    line["variants"].remove(last)
    medians = {last: line["medians"].pop(last)}
    table["history"].append(line | {"campaign": another, "variants": [last], "medians": medians})
    path.write_text(json.dumps(table, indent=2), "utf-8")


def test_check_accepts_what_record_leaves_once_a_row_is_added_to_a_timed_sweep(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record(project) == 0
    assert refused(project) == []
    (before,) = written(project).campaigns
    add_script(project.root, BODY, THREE, NAME)
    assert planned(project, capsys) == {
        "n=1": "baseline beside what is recorded",
        "n=2": "in one campaign with what is recorded",
        "n=3": "never measured here",
    }
    assert record(project) == 0
    assert "/9 sums/timed.py n=2: ok" in capsys.readouterr().err
    assert list(written(project).variants) == ["n=1", "n=2", "n=3"]
    (after,) = written(project).campaigns
    assert after != before
    assert refused(project) == []
    assert record(project) == 0
    assert "everything is fresh" in capsys.readouterr().err


@pytest.mark.parametrize("everything", [False, True])
def test_a_variant_that_would_leave_times_of_two_campaigns_is_refused_with_the_command_that_takes_all(
    project: Project, capsys: pytest.CaptureFixture[str], everything: bool
) -> None:
    record(project)
    before = written(project)
    add_script(project.root, BODY, THREE, NAME)
    for plan in (True, False):
        capsys.readouterr()
        assert record(project, variant="n=3", everything=everything, plan=plan) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert line == (
            f"snippets/sums/timed.py:1: variant n=3 alone would leave times of two campaigns in one record; {IN_ONE}"
        )
    assert written(project) == before
    assert record(project, everything=True) == 0
    assert refused(project) == []


def test_a_timed_variant_may_be_the_first_with_its_baseline_and_the_others_take_both_along(
    project: Project,
) -> None:
    add_script(project.root, BODY, THREE, NAME)
    for _ in range(2):
        assert record(project, variant="n=3") == 0
        assert list(written(project).variants) == ["n=1", "n=3"]
        assert len(written(project).campaigns) == 1
    assert record(project) == 0
    assert list(written(project).variants) == ["n=1", "n=2", "n=3"]
    assert refused(project) == []


def test_a_variant_is_recorded_beside_times_of_code_that_is_no_more(project: Project) -> None:
    add_script(project.root, BODY, THREE, NAME)
    record(project)
    add_script(project.root, BODY.replace("100_000", "200_000"), THREE, NAME)
    assert record(project, variant="n=3") == 0
    assert not [line for line in refused(project) if "campaigns" in line]


def test_one_variant_of_a_timed_script_is_run_again_beside_its_record(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, THREE, NAME)
    record(project)
    before = written(project)
    record(project, variant="n=3", verify=True)
    assert "alone" not in (said := capsys.readouterr().err)
    assert "sums/timed.py n=3: ok" in said
    assert written(project) == before


def test_one_variant_of_a_script_of_bytes_leaves_the_others_as_they_are(project: Project) -> None:
    add_script(project.root, BODY, BYTES, NAME)
    record(project)
    before = written(project)
    assert record(project, variant="n=3") == 0
    assert written(project).variants["n=2"] == before.variants["n=2"]
    assert refused(project) == []


@pytest.mark.parametrize("everything", [False, True])
def test_a_record_of_two_campaigns_is_refused_with_the_command_that_fixes_it(
    project: Project, capsys: pytest.CaptureFixture[str], everything: bool
) -> None:
    record(project)
    split(project)
    (line,) = refused(project)
    assert "its variants are of 2 campaigns, whose times cannot be compared" in line
    named = re.search("`benchbook record --all (.*?)`, with the `--recorded-by` of its machine$", line)
    assert named is not None
    assert named[1] == NAME
    assert set(planned(project, capsys).values()) == {"times of two campaigns in one record"}
    assert record(project, everything=everything) == 0
    assert len(written(project).campaigns) == 1
    assert refused(project) == []


def test_a_bundle_that_would_leave_times_of_two_campaigns_is_refused_with_the_command_that_fixes_it(
    project: Project, tmp_path: Path
) -> None:
    add_script(project.root, BODY, THREE, NAME)
    record(project)
    elsewhere = make_project(tmp_path / "elsewhere")
    add_script(elsewhere.root, BODY, THREE, NAME)
    bundle = tmp_path / "ada.json"
    for options, whole in (({"variant": "n=3"}, False), ({"everything": True}, True)):
        record(elsewhere, bundle=bundle, **options)
        named = contextlib.nullcontext() if whole else pytest.raises(BenchbookError, match=IN_ONE)
        with named:
            import_bundles(project, [bundle], replacing=True, machine=HERE.name)
    assert len(written(project).campaigns) == 1


def good(*_: Any) -> Result:
    return Result(OK, None, {}, [{"metrics": {"seconds": 0.5}, "cells": {}, "baseline_memory": 1}], 1.0)


def test_times_of_another_campaign_that_came_in_meanwhile_stay_alone_and_that_is_said(
    project: Project,
) -> None:
    add_script(project.root, BODY, THREE, NAME)
    record(project)
    whole = written(project)
    (task,) = make_plan(project, [NAME], HERE, lambda _: None, variant="n=3").tasks
    began = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    session = {"id": "c1", "started": campaigns.stamp(began), "modified": False}
    journal = open_journal(project.root / "j.jsonl", header(task, session, {}), began)
    gathered = gather(task, journal, good, lambda: math.inf, lambda *_: None)
    other = Record.of(NAME, HERE.name, whole.campaigns, {"n=2": whole.variants["n=2"]})
    (campaign,) = whole.campaigns.values()
    assert isinstance(campaign, Campaign)
    laid, problems = lay_over(replace(task, record=other), HERE.name, "c1", campaign, gathered)
    assert laid is None
    assert [str(problem) for problem in problems] == [
        "snippets/sums/timed.py:1: what was measured would stand beside times of another campaign, "
        f"whose record stays; {IN_ONE}"
    ]
    laid, problems = lay_over(task, HERE.name, "c1", campaign, gathered)
    assert laid is not None
    assert (list(laid.variants), problems) == (["n=1", "n=3"], [])


@pytest.mark.parametrize("carried", [False, True])
def test_a_timed_campaign_that_stopped_goes_on_as_the_same_one_in_a_later_bundle_too(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, carried: bool
) -> None:
    add_script(project.root, BODY, THREE, NAME)
    # In each round the variants run as declared: of nine runs the last is left.
    monkeypatch.setattr(campaigns.random.Random, "shuffle", lambda *_: None)
    earlier, later = tmp_path / "earlier.json", tmp_path / "later.json"
    ran: list[str] = []
    run_once = campaigns.run_once

    def counted(*arguments: Any, **named: Any) -> Result:
        ran.append(arguments[2].name)
        return run_once(*arguments, **named)

    monkeypatch.setattr(campaigns, "run_once", counted)
    with monkeypatch.context() as patch:
        patch.setattr(Session, "_time_left", lambda _: 60.0 if len(ran) < 8 else 0.0)
        assert record(project, **({"bundle": earlier} if carried else {})) == 0
    options = {"bundle": later, "begun": [earlier]} if carried else {}
    if carried:
        (begun,) = json.loads(earlier.read_text("utf-8"))["records"]
        assert list(begun["variants"]) == ["n=1", "n=2"]
    assert record(project, **options) == 0
    assert ran == ["n=1", "n=2", "n=3"] * 3
    if carried:
        (found,) = json.loads(later.read_text("utf-8"))["records"]
        assert [len(found[part]) for part in ("variants", "campaigns", "history")] == [3, 1, 1]
    else:
        assert len(written(project).campaigns) == 1
        assert refused(project) == []


@pytest.mark.parametrize("table", [THREE, BYTES])
def test_what_was_recorded_in_fewer_runs_than_declared_is_recorded_again(
    project: Project, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    add_script(project.root, BODY, table, NAME)
    assert record(project, repeats=1) == 0
    assert sum("holds 1 runs where 3 are asked for" in line for line in refused(project)) == 3
    assert planned(project, capsys, repeats=1) == {}
    assert set(planned(project, capsys).values()) == {"fewer runs than declared"}
    assert record(project) == 0
    assert {len(variant.runs) for variant in written(project).variants.values()} == {3}
    assert refused(project) == []
    assert planned(project, capsys, repeats=5) == {}


def test_the_runs_that_count_are_those_declared_for_the_kind_of_machine(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, f"{THREE}[tool.benchbook.on.cpu]\nrepeats = 2\n", NAME)
    assert record(project, repeats=2) == 0
    assert planned(project, capsys) == {}


def test_bytes_alone_are_recorded_again_of_the_variant_that_has_too_few_runs(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, BYTES, NAME)
    record(project)
    assert record(project, variant="n=1", repeats=1) == 0
    assert planned(project, capsys) == {"n=1": "fewer runs than declared"}


# What the plan and the status say beside it


def said_of_each(project: Project) -> dict[str, str]:
    """What the status says of each variant here, beside its state."""
    rows = [
        row for row in project_status(Project(project.root)) if (row.script, row.machine) == (NAME, HERE.name)
    ]
    return {row.variant: f"{row.state}: {row.reason}" for row in rows}


def test_the_status_calls_a_record_of_two_campaigns_stale_as_check_and_the_plan_do(project: Project) -> None:
    record(project)
    assert set(said_of_each(project).values()) == {"fresh: measured as it stands"}
    split(project)
    assert set(said_of_each(project).values()) == {"stale: times of two campaigns in one record"}
    # Check says so once, of the record.
    assert len(refused(project)) == 1


@pytest.mark.parametrize("table", [THREE, BYTES])
def test_the_status_calls_a_record_of_fewer_runs_than_declared_stale_as_check_and_the_plan_do(
    project: Project, table: str
) -> None:
    add_script(project.root, BODY, table, NAME)
    record(project, repeats=1)
    assert set(said_of_each(project).values()) == {"stale: fewer runs than declared"}
    assert len(refused(project)) == 3


def interrupted(project: Project, monkeypatch: pytest.MonkeyPatch, runs: int, **options: Any) -> None:
    """Record until so many runs are done, each round in the declared order, and have no more time."""
    monkeypatch.setattr(campaigns.random.Random, "shuffle", lambda *_: None)
    with time_for(runs, monkeypatch):
        assert record(project, **options) == 0


def test_the_plan_and_the_status_know_what_an_interrupted_campaign_has_left(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record(project)
    add_script(project.root, BODY, THREE, NAME)
    interrupted(project, monkeypatch, 4)
    kept = "runs are kept of a campaign that `record` goes on with"
    assert said_of_each(project) == {
        "n=1": f"fresh: measured as it stands; 2 of 3 {kept}",
        "n=2": f"fresh: measured as it stands; 1 of 3 {kept}",
        "n=3": f"missing: never measured here; 1 of 3 {kept}",
    }
    capsys.readouterr()
    record(project, plan=True, plan_json=True)
    (script,) = json.loads(capsys.readouterr().out)["scripts"]
    assert (script["runs"], [each["kept"] for each in script["variants"]]) == (5, [2, 1, 1])
    record(project, plan=True)
    said = " ".join(capsys.readouterr().out.split())
    assert f"never measured here; 1 of 3 {kept}" in said
    assert "a campaign is gone on with where packages, machine and variables are as they were" in said
    # As it says, so it does.
    assert record(project) == 0
    assert capsys.readouterr().err.count("timed.py n=") == 5


def test_a_plan_names_the_journal_that_a_recording_would_not_go_on_with(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted(project, monkeypatch, 2)
    add_script(project.root, BODY.replace("100_000", "200_000"), TIMED, NAME)
    capsys.readouterr()
    record(project, plan=True, plan_json=True)
    said = capsys.readouterr()
    line = (
        f".benchbook/{HERE.name}/sums/timed.jsonl is of other code, parameters, packages or circumstances; "
        "a new campaign begins"
    )
    assert said.err.splitlines() == [line]
    assert json.loads(said.out)["scripts"][0]["runs"] == 6
    record(project)
    assert line in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{\n", "[1]\n", "{}\n", '{"key": 3}\n', ""])
def test_a_plan_or_a_status_reads_a_journal_and_leaves_it_as_it_is(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    record(project)
    add_script(project.root, BODY, THREE, NAME)
    interrupted(project, monkeypatch, 1)
    (journal,) = project.journal.rglob("*.jsonl")
    # Another recording is writing a line right now; or it is damaged.
    journal.write_text(text or journal.read_text("utf-8") + '{"variant', "utf-8")
    before = journal.read_bytes()
    assert ("1 of 3 runs are kept" in said_of_each(project)["n=1"]) == (not text)
    record(project, plan=True)
    assert ("cannot be read; a new campaign begins" in capsys.readouterr().err) == bool(text)
    assert journal.read_bytes() == before
