"""What becomes of a recording one of whose processes is killed, finds no memory, or fails."""

from __future__ import annotations

import json
import math

import pytest

from benchbook.content.project import Project
from benchbook.content.records import load_record
from benchbook.recording import hosts
from benchbook.recording.jobs import CRASHED, OK, OUT_OF_MEMORY
from builders import write
from running import add_script
from stopping import (
    HERE,
    PLAIN,
    TIMED,
    after,
    campaigns_in,
    gather,
    good,
    ignore,
    journal_of,
    killed,
    record,
    task_of,
    written,
)

# Counts the runs of the second variant in a file, and falls in those that another file names.
FALLING = """
# %% parameters
n = 1

# %% work
import os, pathlib, signal
doubled = 2.0 * n
beside = pathlib.Path(__file__)
if n == 2:
    with beside.with_name("runs").open("a") as runs:
        runs.write(".")
    fatal = beside.with_name("fatal").read_text().split()
    if str(len(beside.with_name("runs").read_text())) in fatal:
        {fall}

# %% checks
assert doubled
"""
ENDED = FALLING.format(fall="os.kill(os.getpid(), signal.SIGTERM)")
KILLED = FALLING.format(fall="os.kill(os.getpid(), signal.SIGKILL)")
ABORTED = FALLING.format(fall="os.abort()")
STARVED = FALLING.format(fall="raise MemoryError")
RAISED = FALLING.format(fall="raise ValueError('a bad day')")


def falls_in(project: Project, *runs: int) -> None:
    """From now on the second variant falls in these of its runs, counted from 1 on."""
    (project.snippets / "guide/runs").write_text("")
    (project.snippets / "guide/fatal").write_text(" ".join(map(str, runs)))


def runs_of_it(project: Project) -> int:
    return len((project.snippets / "guide/runs").read_text())


def test_a_worker_that_is_killed_is_run_once_more_and_no_campaigns_mix(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, KILLED, TIMED)
    falls_in(project, 2)
    assert record(project) == 0
    assert "n=2: crashed" in (said := capsys.readouterr().err)
    assert "once more" in said
    found = written(project)
    assert {(variant.outcome, len(variant.runs)) for variant in found.variants.values()} == {(OK, 3)}
    assert len(campaigns_in(project)) == 1
    assert sorted(run.place for variant in found.variants.values() for run in variant.runs) == [*range(9)]
    assert record(project) == 0
    assert written(project) == found


def test_a_worker_that_is_told_to_end_in_its_first_run_is_run_once_more(project: Project) -> None:
    add_script(project.root, ENDED, TIMED)
    falls_in(project, 1)
    assert record(project) == 0
    assert runs_of_it(project) == 4
    assert {variant.outcome for variant in written(project).variants.values()} == {OK}


def test_a_script_that_stops_what_watches_over_it_is_named_in_one_line_and_the_next_still_runs(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hosts, "ANSWER_SECONDS", 0.2)
    stops = "import os, signal, time\nos.kill(os.getppid(), signal.SIGSTOP)\ntime.sleep(600)"
    # Long enough for it to begin beside other tests.
    add_script(project.root, stops, 'needs = ["cpu"]\ntimeout = 2')
    add_script(project.root, PLAIN, name="guide/well.py")
    assert record(project) == 1
    [named] = [line for line in capsys.readouterr().err.splitlines() if "no answer" in line]
    assert named.startswith("snippets/guide/small.py:")
    assert "the process that watches over the script gave no answer within 2.2 seconds" in named
    assert load_record(project.root / f"snippets/records/{HERE.name}/guide/well.json")


def test_a_worker_that_is_killed_twice_in_one_run_has_crashed(project: Project) -> None:
    add_script(project.root, KILLED, TIMED)
    falls_in(project, 1, 2)
    assert record(project) == 1
    assert runs_of_it(project) == 2
    crashed = written(project).variants["n=2"]
    assert crashed.outcome == CRASHED
    assert crashed.error
    assert "killed by SIGKILL in the cell `work`, in a second attempt too" in crashed.error


@pytest.mark.parametrize(("fatal", "outcome", "runs"), [(2, OK, 4), (1, CRASHED, 1)])
def test_a_crash_is_taken_for_chance_after_runs_that_went_well(
    project: Project, fatal: int, outcome: str, runs: int
) -> None:
    add_script(project.root, ABORTED, TIMED)
    falls_in(project, fatal)
    record(project)
    assert (written(project).variants["n=2"].outcome, runs_of_it(project)) == (outcome, runs)


def test_a_run_that_finds_no_memory_after_others_that_did_is_run_once_more(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, STARVED, TIMED)
    falls_in(project, 3)
    assert record(project) == 0
    assert "n=2: out of memory" in (said := capsys.readouterr().err)
    assert said.count("once more") == 1
    found = written(project).variants
    assert {(variant.outcome, len(variant.runs)) for variant in found.values()} == {(OK, 3)}


def test_runs_that_went_well_are_not_lost_to_a_lack_of_memory_without_a_word(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, STARVED, TIMED)
    falls_in(project, 3, 4)
    assert record(project) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "went well" in line]
    assert line.startswith("snippets/guide/small.py:1: variant n=2: out of memory (snippets/guide/small.py:")
    assert "(run 3 of 3)), where 2 run(s) went well; see what else takes memory here" in line
    assert (written(project).variants["n=2"].outcome, runs_of_it(project)) == (OUT_OF_MEMORY, 4)


def test_a_variant_that_finds_no_memory_from_its_first_run_on_is_recorded_so(project: Project) -> None:
    add_script(project.root, STARVED, TIMED)
    falls_in(project, 1)
    assert record(project) == 0
    assert (written(project).variants["n=2"].outcome, runs_of_it(project)) == (OUT_OF_MEMORY, 1)


def test_a_variant_that_is_measured_again_takes_those_along_that_its_times_are_compared_with(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, KILLED, TIMED)
    falls_in(project, 2, 3)
    assert record(project) == 1
    assert written(project).variants["n=2"].outcome == CRASHED
    (first,) = campaigns_in(project)
    capsys.readouterr()
    record(project, plan=True, plan_json=True)
    (planned,) = json.loads(capsys.readouterr().out)["scripts"]
    assert [each["reason"].partition(":")[0] for each in planned["variants"]] == [
        "baseline beside what is recorded",
        "crashed",
        "in one campaign with what is recorded",
    ]
    falls_in(project)
    assert record(project) == 0
    (second,) = campaigns_in(project)
    assert first != second
    assert {variant.outcome for variant in written(project).variants.values()} == {OK}


def test_bytes_are_measured_again_alone(project: Project) -> None:
    add_script(project.root, ABORTED, TIMED.replace('"s"', '"B"'))
    falls_in(project, 1)
    record(project)
    before = written(project)
    falls_in(project)
    assert record(project) == 0
    after = written(project)
    assert (after.variants["n=1"], after.variants["n=3"]) == (before.variants["n=1"], before.variants["n=3"])
    assert after.variants["n=2"].outcome == OK


def test_a_campaign_that_lost_a_variant_leaves_the_times_of_another_as_they_are(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, KILLED, TIMED)
    falls_in(project)
    assert record(project) == 0
    before = written(project)
    falls_in(project, 2, 3)
    assert record(project, everything=True) == 1
    assert written(project) == before
    assert "where an earlier campaign measured it" in capsys.readouterr().err


def test_a_crash_replaces_nothing_that_was_measured_under_earlier_checks(project: Project) -> None:
    add_script(project.root, ABORTED, TIMED)
    falls_in(project)
    assert record(project) == 0
    before = written(project)
    code = before.variants["n=1"].code
    path = project.snippets / "guide/small.py"
    mended = path.read_text("utf-8").replace("# %% checks\n", "# %% checks\nassert True\n")
    write(path, mended.replace("# needs =", f'# earlier_checks = ["{code}"]\n# needs ='))
    assert record(project) == 0
    assert written(project) == before
    falls_in(project, 1, 2, 3, 4, 5, 6)
    assert record(project, everything=True) == 1
    assert written(project) == before


def test_a_variant_that_failed_is_gone_on_with_in_its_campaign(project: Project) -> None:
    add_script(project.root, RAISED, TIMED)
    falls_in(project, 3)
    assert record(project) == 1
    assert list(written(project).variants) == ["n=1", "n=3"]
    falls_in(project)
    assert record(project) == 0
    # Of its three runs two had gone well.
    assert runs_of_it(project) == 1
    assert [len(variant.runs) for variant in written(project).variants.values()] == [3, 3, 3]
    assert len(campaigns_in(project)) == 1
    assert not list(project.journal.glob("**/*.jsonl"))


def test_a_second_attempt_is_neither_forgotten_nor_repeated_when_a_recording_resumes(
    project: Project,
) -> None:
    task = task_of(project)
    gathered = gather(task, journal_of(project, task), after(1, killed), lambda: math.inf, ignore)
    assert gathered.ended == "interrupted"
    resumed = journal_of(project, task)
    assert (len(resumed.again), resumed.finished) == (1, [])
    gather(task, resumed, after(1, killed), lambda: math.inf, ignore)
    (finished,) = journal_of(project, task).finished
    assert finished.result.outcome == CRASHED
    assert (finished.variant, finished.round) in resumed.again


def test_a_second_attempt_has_the_place_of_the_first(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task)
    gather(task, journal, after(1, killed), lambda: math.inf, ignore)
    runs = gather(task, journal_of(project, task), good, lambda: math.inf, ignore).runs
    assert sorted(one.place for found in runs.values() for one in found) == [*range(9)]


def test_a_journal_from_before_second_attempts_is_gone_on_with(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task)
    gather(task, journal, after(2, good), lambda: math.inf, ignore)
    first, *lines = journal.path.read_text("utf-8").splitlines()
    tables = [json.loads(line) for line in lines]
    for table in tables:
        del table["result"]["killed"]
    journal.path.write_text("\n".join([first, *map(json.dumps, tables), ""]), "utf-8")
    resumed = journal_of(project, task)
    assert (len(resumed.finished), resumed.instead) == (2, "")
