"""What becomes of a recording where a process is killed, a disk is full, a clock is set back, a file is damaged."""

from __future__ import annotations

import base64
import contextlib
import errno
import gzip
import hashlib
import json
import math
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import benchbook
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import MOST_CAMPAIGNS, Campaign, HistoryLine, Record, load_record
from benchbook.content.script import Variant
from benchbook.content.unfinished import alone
from benchbook.machines import circumstances
from benchbook.machines.accelerators import Accelerators, accelerator_table
from benchbook.machines.circumstances import deciding_variables, differ
from benchbook.machines.description import describe
from benchbook.recording import campaign as campaigns
from benchbook.recording import command as recording
from benchbook.recording import hosts
from benchbook.recording import session as sessions
from benchbook.recording.campaign import Turn, header
from benchbook.recording.installed_packages import installed_code, versions
from benchbook.recording.jobs import CRASHED, OK, OUT_OF_MEMORY, Failure, Result
from benchbook.recording.journal import LATER_KEYS, Journal, open_journal
from benchbook.recording.loaded_code import changed_code, loaded_code
from benchbook.recording.plan import Task, make_plan
from benchbook.recording.session import Session
from benchbook.recording.stores import Bundle, Checkout
from builders import write
from repositories import commit_all, git
from running import SWEEP, add_script, script_text, small_project

HERE = describe(None)
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
# Gathers at the moment at which the journals of these tests begin.
gather = partial(campaigns.gather, moment=lambda: NOON)
PLAIN = "# %% parameters\nn = 1\n\n# %% work\ndoubled = 2.0 * n\n\n# %% checks\nassert doubled"
# Three variants whose times are compared, each run three times.
TIMED = SWEEP.replace('"count"', '"s"').replace("[1, 2]", "[1, 2, 3]").replace("repeats = 2", "repeats = 3")
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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    return small_project(tmp_path)


def record(project: Project, **options: Any) -> int:
    return recording.record_command(project, [], **options)


def written(project: Project) -> Record:
    found = load_record(project.record_path(HERE.name, "guide/small.py"))
    assert found is not None
    return found


def campaigns_in(project: Project) -> set[str]:
    return {variant.campaign for variant in written(project).variants.values()}


def falls_in(project: Project, *runs: int) -> None:
    """From now on the second variant falls in these of its runs, counted from 1 on."""
    (project.snippets / "guide/runs").write_text("")
    (project.snippets / "guide/fatal").write_text(" ".join(map(str, runs)))


def runs_of_it(project: Project) -> int:
    return len((project.snippets / "guide/runs").read_text())


# A process that is killed


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


def task_of(project: Project) -> Task:
    add_script(project.root, PLAIN, TIMED)
    (task,) = make_plan(project, [], HERE, lambda _: None).tasks
    return task


def journal_of(project: Project, task: Task, now: datetime = NOON) -> Journal:
    campaign = {"id": "c1", "started": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return open_journal(project.root / "j.jsonl", header(task, campaign, {}), now)


def killed(_variant: Variant, _limit: float) -> Result:
    return Result(CRASHED, Failure(9, "killed by SIGKILL in the cell `work`", "fix it"), killed=True)


def good(variant: Variant, _limit: float) -> Result:
    rank = {"metrics": {"doubled": variant.parameters["n"]}, "cells": {}, "baseline_memory": 1}
    return Result(OK, None, {}, [rank], 1.0)


def ignore(_turn: Turn, _result: Result | None) -> None:
    pass


def after(count: int, run: Callable[[Variant, float], Result]) -> Callable[[Variant, float], Result]:
    """Runs that do as `run` does so many times, and are then interrupted."""
    left = iter(range(count))

    def runs(variant: Variant, limit: float) -> Result:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return run(variant, limit)

    return runs


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


# A disk that is full, or may not be written to


def refuse(monkeypatch: pytest.MonkeyPatch, folder: Path, number: int) -> None:
    """Let the system refuse to write below a folder, in the middle of a file where there is no room."""
    write_bytes, fsync, mkdir = Path.write_bytes, os.fsync, Path.mkdir
    error = OSError(number, os.strerror(number))

    def half(path: Path, data: bytes) -> int:
        if path.is_relative_to(folder):
            write_bytes(path, data[: len(data) // 2])
            raise error
        return write_bytes(path, data)

    def none(descriptor: int) -> None:
        if Path(os.readlink(f"/proc/self/fd/{descriptor}")).is_relative_to(folder):
            raise error
        fsync(descriptor)

    def made(path: Path, *arguments: Any, **named: Any) -> None:
        if number == errno.EROFS and path.is_relative_to(folder):
            raise error
        mkdir(path, *arguments, **named)

    monkeypatch.setattr(Path, "write_bytes", half)
    monkeypatch.setattr(os, "fsync", none)
    monkeypatch.setattr(Path, "mkdir", made)


WORDS = {errno.ENOSPC: "No space left on device", errno.EROFS: "Read-only file system"}


def test_a_script_that_finds_no_room_is_told_where_it_writes_and_nothing_is_recorded_of_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    full = 'with open("/dev/full", "w") as file:\n    file.write("x")\n'
    add_script(project.root, PLAIN.replace("doubled = 2.0", f"{full}doubled = 2.0"), SWEEP)
    assert record(project) == 1
    usual = f"by default below {hosts.temporary_folder()}; TMPDIR names another folder"
    assert (
        "OSError in the cell `work`: [Errno 28] No space left on device (variant n=1); "
        f"make room where it writes, and record it again ({usual})"
    ) in capsys.readouterr().err
    assert not list(project.records.glob("*/*/*.json"))


@pytest.mark.parametrize("number", WORDS)
def test_records_that_cannot_be_written_are_one_line_and_no_half(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    with monkeypatch.context() as patch:
        refuse(patch, project.records, number)
        assert record(project) == 1
    shown = f"snippets/records/{HERE.name}/guide/small.json"
    assert f"{shown}:1: cannot be written ({WORDS[number]}); make room" in capsys.readouterr().err
    assert not [path for path in project.records.glob("**/*") if path.is_file()]
    # The runs are kept: the same command goes on.
    assert record(project) == 0
    assert "ok" not in capsys.readouterr().err.partition("wrote")[0]


@pytest.mark.parametrize("name", ["here.json", "here.json.gz"])
@pytest.mark.parametrize("number", WORDS)
def test_a_bundle_that_cannot_be_written_is_one_line_and_stays_as_it_was(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    number: int,
) -> None:
    bundle = tmp_path / "out" / name
    add_script(project.root, PLAIN, SWEEP, "guide/one.py")
    record(project, bundle=bundle)
    before = bundle.read_bytes()
    add_script(project.root, PLAIN, SWEEP)
    with monkeypatch.context() as patch:
        refuse(patch, bundle.parent, number)
        assert record(project, bundle=bundle) == 1
    assert f"{name}:1: cannot be written ({WORDS[number]}); make room" in capsys.readouterr().err
    assert [path.name for path in bundle.parent.iterdir()] == [name]
    assert bundle.read_bytes() == before


@pytest.mark.parametrize("number", WORDS)
def test_a_journal_that_cannot_be_written_ends_the_recording_with_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    add_script(project.root, PLAIN, SWEEP, "guide/one.py")
    add_script(project.root, PLAIN, SWEEP, "guide/two.py")
    refuse(monkeypatch, project.journal / HERE.name, number)
    assert record(project) == 1
    error = capsys.readouterr().err
    # What follows would be lost as well, and is not begun.
    assert error.count("cannot be written") == 1
    assert f".benchbook/{HERE.name}/guide/one.jsonl:1: cannot be written ({WORDS[number]})" in error


def test_a_checkout_that_cannot_be_written_is_refused_with_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    refuse(monkeypatch, project.journal, errno.EROFS)
    with pytest.raises(BenchbookError, match=r"^\.benchbook/lock:1: cannot be written \(Read-only"):
        record(project)


# What comes in while a recording runs


def meanwhile(monkeypatch: pytest.MonkeyPatch, comes_in: Callable[[], object]) -> None:
    """Something comes in once the runs of a script are done, and before its record is written."""
    real = campaigns.gather

    def gathered(*arguments: Any) -> campaigns.Gathered:
        found = real(*arguments)
        comes_in()
        return found

    monkeypatch.setattr(campaigns, "gather", gathered)


def test_what_comes_in_while_a_recording_runs_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    assert record(project) == 0
    before = written(project)
    (campaign,) = before.campaigns
    line = replace(before.history[0], campaign="another")

    def comes_in() -> None:
        further = {"n=3": replace(before.variants["n=2"], campaign="another")}
        Checkout(project, HERE).save(
            replace(
                before,
                variants=before.variants | further,
                campaigns=before.campaigns | {"another": before.campaigns[campaign]},
                history=(*before.history, line),
            )
        )

    meanwhile(monkeypatch, comes_in)
    assert record(project, everything=True) == 0
    after = written(project)
    assert list(after.variants) == ["n=1", "n=2", "n=3"]
    assert after.variants["n=3"].campaign == "another"
    assert [each.campaign for each in after.history][:2] == [campaign, "another"]


def test_nothing_comes_in_between_what_a_recording_reads_and_what_it_writes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    real, free = Checkout.load, []

    def load(store: Checkout, script: str) -> Record | None:
        with alone(project.root, waiting=False) as is_free:
            free.append(is_free)
        return real(store, script)

    monkeypatch.setattr(Checkout, "load", load)
    assert record(project) == 0
    # What is to run is planned while others write; what is written is not.
    assert free == [True, False]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("guide/small.json", "{", "guide/small.json:1: is not JSON"),
        ("machine.json", '{"kind": "cuda"}', "machine.json:1: is of another machine than this"),
    ],
)
def test_what_comes_in_and_cannot_be_gone_on_with_costs_no_runs(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str,
    said: str,
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    path = project.records / HERE.name / name
    with monkeypatch.context() as patch:
        meanwhile(patch, lambda: write(path, content))
        assert record(project) == 1
    assert said in capsys.readouterr().err
    assert path.read_text("utf-8") == content
    path.unlink()
    assert record(project) == 0
    assert "ok" not in capsys.readouterr().err.partition("wrote")[0]


@pytest.mark.parametrize("linked", ["", "guide", "guide/small", "guide/another"])
def test_a_recording_begins_beside_no_link_and_removes_nothing_behind_it(
    project: Project, tmp_path: Path, linked: str
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    inbox = write(tmp_path / "inbox/bob.json.gz", "somebody's bundle").parent
    write(inbox / "small/eve.json.gz", "another bundle")
    link = project.records / HERE.name / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(inbox)
    with pytest.raises(BenchbookError, match=f"{link.name}:1: is a link to another place"):
        record(project)
    assert sorted(path.name for path in inbox.rglob("*.gz")) == ["bob.json.gz", "eve.json.gz"]


def left_finished(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record four days ago, and be ended once the record is in its place, before the journal goes."""

    def ended(_journal: Journal) -> None:
        raise KeyboardInterrupt

    then = campaigns.now() - timedelta(days=4)
    with monkeypatch.context() as patch:
        patch.setattr(campaigns, "now", lambda: then)
        patch.setattr(Journal, "close", ended)
        assert record(project) == recording.INTERRUPTED
    assert list(project.journal.rglob("*.jsonl"))


def test_a_campaign_that_is_in_the_record_is_not_put_there_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    left_finished(project, monkeypatch)
    (before,) = campaigns_in(project)
    capsys.readouterr()
    assert record(project, everything=True) == 0
    said = capsys.readouterr().err
    assert "guide/small.jsonl is in the record already; a new campaign begins" in said
    assert said.count(": ok") == 9
    assert campaigns_in(project) != {before}
    assert not list(project.journal.rglob("*.jsonl"))


NOT_THREE = PLAIN.replace("assert doubled", "assert n < 3")


def test_a_variant_that_failed_and_is_declared_no_more_keeps_nothing_from_being_measured(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, NOT_THREE, SWEEP.replace("[1, 2]", "[1, 2, 3]"))
    assert record(project) == 1
    (before,) = campaigns_in(project)
    add_script(project.root, NOT_THREE, SWEEP)
    capsys.readouterr()
    assert record(project, everything=True) == 0
    assert capsys.readouterr().err.count(": ok") == 4
    assert before not in campaigns_in(project)
    assert not list(project.journal.rglob("*.jsonl"))


@pytest.mark.parametrize("source", [NOT_THREE, NOT_THREE.replace("assert n < 3", "assert n > 0")])
def test_a_campaign_is_over_once_all_that_is_still_declared_is_measured_and_says_which_runs_go(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    add_script(project.root, source, SWEEP.replace("[1, 2]", "[1, 2, 3]"))

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        changes_after(patch, 4, interrupted)
        assert record(project) == recording.INTERRUPTED
    add_script(project.root, source, SWEEP)
    assert record(project) == 0
    assert len(campaigns_in(project)) == 1
    assert not list(project.journal.rglob("*.jsonl"))
    gone = "of variant n=3, which guide/small.py declares no more, go with it"
    assert (gone in capsys.readouterr().err) is (source != NOT_THREE)


def test_runs_whose_script_is_renamed_are_told_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 4)
    old = project.snippets / "guide/small.py"
    old.rename(old.with_name("tiny.py"))
    capsys.readouterr()
    assert record(Project(project.root)) == 0
    left = f".benchbook/{HERE.name}/guide/small.jsonl holds 4 finished run(s) of a script that is not here"
    assert f"warning: {left}" in capsys.readouterr().err


def test_what_was_measured_since_a_journal_was_left_is_not_undone_by_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    left_finished(project, monkeypatch)
    (journal,) = project.journal.rglob("*.jsonl")
    kept = journal.read_text("utf-8")
    assert record(project, everything=True) == 0
    (since,) = campaigns_in(project)
    write(journal, kept)
    capsys.readouterr()
    assert record(project, everything=True) == 0
    said = capsys.readouterr().err
    assert "guide/small.jsonl is older than what the record holds; a new campaign begins" in said
    assert since not in campaigns_in(project)
    assert only_campaign(project).finished >= campaigns.stamp(campaigns.now() - timedelta(minutes=5))


def test_a_campaign_ends_with_its_last_run_whenever_it_is_put_into_the_record(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, PLAIN, TIMED)
    then = campaigns.now() - timedelta(days=4)
    with monkeypatch.context() as patch:
        patch.setattr(campaigns, "now", lambda: then)
        patch.setattr(Checkout, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert record(project) == recording.INTERRUPTED
    assert record(project) == 0
    assert only_campaign(project).finished < campaigns.stamp(then + timedelta(hours=1))
    assert written(project).history[-1].date == only_campaign(project).finished[:10]


def test_a_later_campaign_that_comes_in_while_a_recording_runs_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    assert record(project) == 0
    before = written(project)
    later = campaigns.now() + timedelta(hours=1)

    def comes_in() -> None:
        variants = {name: replace(one, campaign="another") for name, one in before.variants.items()}
        another = replace(only_campaign(project), finished=campaigns.stamp(later))
        Checkout(project, HERE).save(replace(before, variants=variants, campaigns={"another": another}))
        monkeypatch.setattr(campaigns, "now", lambda: later)

    meanwhile(monkeypatch, comes_in)
    assert record(project, everything=True) == 1
    assert campaigns_in(project) == {"another"}
    assert "variant n=2: a later campaign has come in meanwhile" in capsys.readouterr().err


# A clock that is set back


def stopped(project: Project, monkeypatch: pytest.MonkeyPatch, runs: int, **options: Any) -> None:
    """Record until so many runs are done, and have no more time."""
    asked = iter(range(runs + 1))
    with monkeypatch.context() as patch:
        patch.setattr(Session, "_time_left", lambda _: 60.0 if next(asked, None) is not None else 0.0)
        assert record(project, **options) == 0


def begins_anew(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> bool:
    """Record one more run; whether a new campaign begins for it."""
    stopped(project, monkeypatch, 1)
    return "a new campaign begins" in capsys.readouterr().err


def only_campaign(project: Project) -> Campaign:
    (campaign,) = written(project).campaigns.values()
    assert isinstance(campaign, Campaign)
    return campaign


def test_a_journal_that_begins_in_the_future_is_not_gone_on_with_and_that_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    present = campaigns.now()
    with monkeypatch.context() as patch:
        patch.setattr(campaigns, "now", lambda: present + timedelta(hours=5))
        stopped(project, monkeypatch, 4)
    capsys.readouterr()
    assert record(project) == 0
    said = capsys.readouterr().err
    assert f".benchbook/{HERE.name}/guide/small.jsonl begins in the future, at " in said
    assert ": the clock was set back; a new campaign begins" in said
    assert only_campaign(project).started <= only_campaign(project).finished
    assert only_campaign(project).started < campaigns.stamp(present + timedelta(hours=1))


def test_a_journal_that_ends_in_the_future_is_not_gone_on_with_and_that_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    present = campaigns.now()
    for hours in (-5, 5):
        with monkeypatch.context() as patch:
            patch.setattr(campaigns, "now", lambda later=hours: present + timedelta(hours=later))
            stopped(project, monkeypatch, 2)
    capsys.readouterr()
    assert record(project) == 0
    said = capsys.readouterr().err
    assert f".benchbook/{HERE.name}/guide/small.jsonl ends in the future, at " in said
    assert only_campaign(project).finished < campaigns.stamp(present + timedelta(hours=1))


def test_a_campaign_never_ends_before_it_began(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    add_script(project.root, PLAIN, SWEEP)
    clock = iter([NOON, *[NOON - timedelta(hours=1)] * 9])
    monkeypatch.setattr(campaigns, "now", lambda: next(clock))
    assert record(project) == 0
    assert only_campaign(project).started == "2026-11-20T12:00:00Z"
    assert only_campaign(project).finished >= only_campaign(project).started


def test_a_campaign_is_dated_by_the_clock_that_it_began_with_and_that_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    clock = iter([NOON])
    monkeypatch.setattr(campaigns, "now", lambda: next(clock, NOON + timedelta(hours=3)))
    assert record(project) == 0
    assert only_campaign(project).finished < "2026-11-20T12:10:00Z"
    said = capsys.readouterr().err
    assert (
        "warning: the clock was set meanwhile; the campaign is dated by what it said at the start, " in said
    )
    assert "2026-11-20T12:00:00Z" in said


@pytest.mark.parametrize(
    ("days", "committed", "since"),
    [
        (2, True, "commit [0-9a-f]{12} was made, at 20"),
        (3650, False, "anything was measured for this handbook"),
    ],
)
def test_nothing_is_recorded_by_a_clock_that_is_far_behind(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    days: int,
    committed: bool,
    since: str,
) -> None:
    add_script(project.root, PLAIN, SWEEP, "guide/one.py")
    add_script(project.root, PLAIN, SWEEP, "guide/two.py")
    if committed:
        commit_all(project.root)
    wrong = campaigns.now() - timedelta(days=days)
    monkeypatch.setattr(campaigns, "now", lambda: wrong)
    assert record(project) == 1
    said = capsys.readouterr().err
    line = rf"machine\.json:1: this machine's clock says {campaigns.stamp(wrong)}, before {since}"
    assert len(re.findall(line, said)) == 1
    assert not [*project.records.rglob("*.json"), *project.journal.rglob("*.jsonl")]


def test_a_clock_that_is_a_little_behind_the_commit_is_gone_by(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    commit_all(project.root)
    behind = campaigns.now() - timedelta(hours=20)
    monkeypatch.setattr(campaigns, "now", lambda: behind)
    assert record(project) == 0


def recorded_once(project: Project) -> tuple[Record, HistoryLine]:
    """The record of a script that was measured once, and the line of its history."""
    add_script(project.root, PLAIN, SWEEP)
    assert record(project) == 0
    before = written(project)
    (line,) = before.history
    return before, line


def test_a_line_of_the_history_that_a_wrong_clock_dated_goes_when_the_script_is_recorded_again(
    project: Project,
) -> None:
    before, line = recorded_once(project)
    odd = [replace(line, date=date, campaign=f"of-{date}") for date in ("2020-01-01", "2999-01-01")]
    Checkout(project, HERE).save(replace(before, history=(odd[0], line, odd[1])))
    assert record(project, everything=True) == 0
    first, _ = written(project).history
    assert first == line


def test_a_history_that_is_full_loses_its_oldest_line_to_the_next_campaign(project: Project) -> None:
    before, line = recorded_once(project)
    older = [replace(line, campaign=f"older-{number}") for number in range(MOST_CAMPAIGNS - 1)]
    Checkout(project, HERE).save(replace(before, history=(*older, line)))
    assert record(project, everything=True) == 0
    after = written(project)
    assert after.history[:-1] == (*older[1:], line)
    assert list(after.campaigns) == [after.history[-1].campaign]


def test_a_line_that_is_in_the_history_twice_is_there_once_when_the_script_is_recorded_again(
    project: Project,
) -> None:
    before, line = recorded_once(project)
    Checkout(project, HERE).save(replace(before, history=(line,) * MOST_CAMPAIGNS))
    assert record(project, everything=True) == 0
    first, last = written(project).history
    assert (first, last.campaign == line.campaign) == (line, False)


def test_a_campaign_that_is_resumed_still_ends_within_what_a_campaign_may_take(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task)
    gather(task, journal, after(1, good), lambda: math.inf, ignore)
    late = open_journal(journal.path, journal.header, NOON + timedelta(days=6, hours=1))
    assert late.finished == []
    assert late.instead == "is older than 6 days"


# A change in between


@pytest.mark.parametrize(("changed", "modified"), [("scripts/a.py", True), ("docs/en/a.md", False)])
def test_a_campaign_that_is_gone_on_with_at_another_commit_says_so_where_code_changed(
    project: Project, monkeypatch: pytest.MonkeyPatch, changed: str, modified: bool
) -> None:
    add_script(project.root, PLAIN, TIMED)
    write(project.root / ".gitignore", ".benchbook\n")
    first = commit_all(project.root)
    stopped(project, monkeypatch, 2)
    write(project.root / changed, "1\n")
    commit_all(project.root)
    stopped(project, monkeypatch, 2)
    # What ran from the other commit did so, whatever is checked out afterwards.
    git(project.root, "checkout", "--quiet", first)
    assert record(project) == 0
    assert (only_campaign(project).commit, only_campaign(project).modified) == (first, modified)


def on_another(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """From now on this machine has another processor, memory or kernel, and its name all the same."""
    there = replace(HERE, **changes)
    monkeypatch.setattr(recording, "describe", lambda *_: there)


OTHERS: dict[str, dict[str, Any]] = {
    "model": {"cpu": replace(HERE.cpu, model="Another 9000")},
    "vendor": {"cpu": replace(HERE.cpu, vendor="AnotherVendor")},
    "flags": {"cpu": replace(HERE.cpu, flags=["avx9"])},
    "memory": {"memory_bytes": 2**50},
    "kernel": {"system": {**HERE.system, "kernel": "99.0"}},
}


@pytest.mark.parametrize("changed", OTHERS)
def test_a_campaign_is_not_gone_on_with_on_other_hardware(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], changed: str
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 2)
    on_another(monkeypatch, **OTHERS[changed])
    stopped(project, monkeypatch, 2)
    said = capsys.readouterr().err
    assert "is of other code, parameters, packages or circumstances; a new campaign begins" in said


@pytest.mark.parametrize(
    "changed", [{"name": "Another GPU"}, {"memory_bytes": 2**34}, {"count": 2}, {"partition": "1g.10gb"}]
)
def test_a_campaign_is_not_gone_on_with_on_another_accelerator(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: dict[str, Any],
) -> None:
    add_script(project.root, PLAIN, TIMED.replace('"cpu"', '"accelerator"'))
    table = accelerator_table(name="A GPU", vendor="NVIDIA", memory_bytes=2**35, count=1)
    for description in (table, table, table | changed):
        assert "new campaign" not in capsys.readouterr().err
        found = Accelerators("cuda", description, ())
        monkeypatch.setattr(recording, "find_accelerators", lambda *_, found=found: found)
        stopped(project, monkeypatch, 2, machine="a-box")
    said = capsys.readouterr().err
    assert "is of other code, parameters, packages or circumstances; a new campaign begins" in said


def test_a_campaign_is_not_gone_on_with_under_variables_that_decide_its_numbers(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    for name in ("LD_LIBRARY_PATH", "NCCL_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)
    stopped(project, monkeypatch, 2)
    # Scripts never see the second.
    for name in ("UNRELATED", "RAYON_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    assert record(project) == 0
    said = capsys.readouterr().err
    other = "is of an environment with other variables (LD_LIBRARY_PATH, NCCL_SOCKET_IFNAME)"
    assert f"guide/small.jsonl {other}; a new campaign begins" in said
    assert said.count(": ok") == 9


def test_a_campaign_is_not_gone_on_with_where_a_package_that_no_script_declares_is_another(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add_script(project.root, PLAIN, TIMED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    for version, goes_on in (("1.0", True), ("1.0", True), ("2.0", False)):
        install(tmp_path / "site", version)
        stopped(project, monkeypatch, 2)
        assert ("a new campaign begins" not in capsys.readouterr().err) == goes_on
    assert record(project) == 0
    assert "gadget" not in only_campaign(project).packages


MARKED = """
# %% parameters
n = 1

# %% work
doubled = 2.0 * n
# region good
if n > 100:
    doubled = 200.0
    doubled += 0
# endregion

# %% checks
assert doubled
"""
MOVED = MARKED.replace("# region good\nif n > 100:", "if n > 100:\n    # region good")
MOVED = MOVED.replace("# endregion", "    # endregion")
CUT = MARKED.replace("    doubled += 0\n# endregion", "# endregion\n    doubled += 0")


@pytest.mark.parametrize("moved", [MOVED, CUT])
def test_a_campaign_is_not_gone_on_with_where_regions_stand_elsewhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], moved: str
) -> None:
    codes = {add_script(project.root, text, TIMED).code_digest for text in (moved, MARKED)}
    assert len(codes) == 1
    stopped(project, monkeypatch, 2)
    add_script(project.root, MARKED.replace("# region", "# Why it is so.\n\n# region"), TIMED)
    stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    add_script(project.root, moved, TIMED)
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err
    assert {variant.regions for variant in written(project).variants.values()} == {()}


def test_a_journal_that_does_not_tell_of_what_older_ones_left_out_is_gone_on_with(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, MARKED, TIMED)
    stopped(project, monkeypatch, 2)
    (path,) = project.journal.rglob("*.jsonl")
    first, *runs = path.read_text("utf-8").splitlines(keepends=True)
    table = json.loads(first)
    for name in LATER_KEYS:
        del table["key"][name]
    path.write_text(json.dumps(table) + "\n" + "".join(runs), "utf-8")
    capsys.readouterr()
    assert record(project) == 0
    said = capsys.readouterr().err
    assert "new campaign" not in said
    assert said.count(": ok") == 7


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("file_system", "tmpfs"),
        ("disk", {"model": "Slow", "rotational": "1"}),
        ("memory_limits", {"-v": 2**40}),
        ("cpu_quota", 0.25),
        ("cores", {"kinds": {"": 2}, "cores": 1, "nodes": 1}),
        ("priority", {"niceness": 19, "class": 0}),
        ("kernel_settings", {"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}),
    ],
)
def test_a_campaign_is_not_gone_on_with_on_another_file_system_or_under_other_limits(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: str,
    answer: object,
) -> None:
    add_script(project.root, PLAIN, TIMED)
    monkeypatch.setattr(sessions, "file_system", lambda _: "ext4")
    for _ in range(2):
        stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    monkeypatch.setattr(sessions, asked, lambda *_: answer)
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_a_campaign_is_not_gone_on_with_where_path_finds_another_compiler(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 2)
    found = tmp_path / "found"
    write(found / "other", "#!/bin/sh\n").chmod(0o755)
    monkeypatch.setenv("PATH", str(found), prepend=os.pathsep)
    stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    (found / "g++").symlink_to("other")
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_a_compiler_is_told_by_the_file_that_its_name_leads_to(tmp_path: Path) -> None:
    real = write(tmp_path / "real/g++-12", "#!/bin/sh\n")
    real.chmod(0o755)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "g++").symlink_to(real)
    first, second = (circumstances.compilers(str(tmp_path / name)) for name in ("one", "two"))
    assert list(first) == ["g++"]
    assert first == second
    os.utime(real, ns=(1, 1))
    updated = circumstances.compilers(str(tmp_path / "one"))
    assert updated != first
    with real.open("a") as file:
        file.write("exit\n")
    os.utime(real, ns=(1, 1))
    assert circumstances.compilers(str(tmp_path / "one")) != updated
    assert circumstances.compilers(str(tmp_path)) == {}


def test_a_folder_is_of_the_file_system_of_the_innermost_mount_above_it(tmp_path: Path) -> None:
    inner = tmp_path / "a b"
    inner.mkdir()
    place = str(inner).replace(" ", "\\040")
    lines = ["overlay / overlay rw 0 0", f"x {place} ext4 rw 0 0", f"y {place} tmpfs rw 0 0"]
    mounts = write(tmp_path / "mounts", "\n".join(lines))
    kinds = [circumstances.file_system(folder, mounts) for folder in (inner / "c", tmp_path / "a")]
    assert kinds == ["tmpfs", "overlay"]
    assert circumstances.file_system(inner, tmp_path / "none") is None


def test_a_disk_is_told_by_the_whole_of_which_a_part_holds_the_folder(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    assert circumstances.disk(tmp_path, tmp_path / "dev") is None
    for model, part in (("Fast", ""), ("Slow", "/slow1")):
        whole = tmp_path / model
        write(whole / "device/model", f"{model}\n")
        write(whole / "queue/rotational", "0\n")
        if part:
            write(whole / f"{part[1:]}/partition", "1\n")
        (tmp_path / f"dev {model}").mkdir()
        (tmp_path / f"dev {model}" / name).symlink_to(f"{whole}{part}")
        found = circumstances.disk(tmp_path, tmp_path / f"dev {model}")
        assert found == {"model": model, "rotational": "0"}


def test_cores_are_told_by_their_kind_and_by_what_shares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two threads of a large core, another large one, and a small one of another node.
    for number, (core, rate, node) in enumerate([(0, 9, 0), (0, 9, 0), (1, 9, 0), (2, 5, 1)]):
        place = tmp_path / f"cpu{number}"
        write(place / "topology/core_id", f"{core}\n")
        write(place / "topology/physical_package_id", "0\n")
        write(place / "cpufreq/cpuinfo_max_freq", f"{rate}\n")
        (place / f"node{node}").mkdir()

    def on(*numbers: int) -> dict[str, Any]:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(numbers))
        return circumstances.cores(tmp_path)

    assert on(0, 2) == on(1, 2) != on(0, 1)
    assert on(0, 2) != on(0, 3)
    assert on(0, 3) == {"kinds": {"9": 1, "5": 1}, "cores": 2, "nodes": 2}
    # Where nothing tells, each is a core of its own.
    assert on(7, 8) == {"kinds": {"": 2}, "cores": 2, "nodes": 0}


def test_a_limit_of_memory_is_warned_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    limits = {resource.RLIMIT_AS: 2**40}
    usual = (resource.RLIM_INFINITY,) * 2
    monkeypatch.setattr(resource, "getrlimit", lambda each: (limits[each],) * 2 if each in limits else usual)
    assert record(project) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if "ulimit" in line]
    assert line.startswith("warning: processes have a limit of memory here")
    assert line.endswith("of the machine: run `ulimit -v unlimited` first")


@pytest.mark.parametrize(
    ("quota", "warned"), [(0.25, True), (float(HERE.cpu.cores or 1), False), (None, False)]
)
def test_a_quota_of_fewer_processors_than_the_machine_is_described_with_is_warned_of(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quota: float | None,
    warned: bool,
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    monkeypatch.setattr(sessions, "cpu_quota", lambda: quota)
    assert record(project) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "quota" in line]
    assert (
        lines
        == [
            "warning: a quota of 0.25 processors: times would tell of that and not of the machine, which has "
            f"{HERE.cpu.cores}; record in a control group without one"
        ]
        * warned
    )


SEES = """
# %% work
import os
wanted = {"LC_TEST", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONDEVMODE", "UNRELATED"}
found = sorted(wanted & os.environ.keys())
assert found == WANTED, found

# %% checks
assert True
"""
WITHHELD = (
    "set here and not passed to the scripts, for no record would tell; where a script is to run under one"
)


@pytest.mark.parametrize("verify", [False, True])
def test_scripts_are_measured_without_variables_that_no_record_would_tell_and_that_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verify: bool
) -> None:
    for name in ("OMP_NUM_THREADS", "PYTHONDEVMODE", "LD_LIBRARY_PATH", "LC_TEST", "UNRELATED"):
        monkeypatch.setenv(name, "1")
    add_script(project.root, SEES.replace("WANTED", '["LC_TEST", "LD_LIBRARY_PATH"]'))
    assert record(project) == 0
    if verify:
        capsys.readouterr()
        record(project, verify=True)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "not passed" in line]
    assert line.startswith(f"warning: OMP_NUM_THREADS, PYTHONDEVMODE: {WITHHELD}, name it in `environment`")


def test_a_script_that_declares_a_variable_runs_under_it_and_none_is_said_to_be_kept_from_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PYTHONDEVMODE", "LD_LIBRARY_PATH", "UNRELATED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    body = SEES.replace("WANTED", '["OMP_NUM_THREADS"] and os.environ["OMP_NUM_THREADS"] == "3"')
    add_script(project.root, body, 'needs = ["cpu"]\nenvironment = { OMP_NUM_THREADS = "3" }')
    assert record(project) == 0
    assert "not passed" not in capsys.readouterr().err


def test_a_trial_that_measures_nothing_runs_under_every_variable(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("OMP_NUM_THREADS", "PYTHONDEVMODE", "LD_LIBRARY_PATH", "UNRELATED"):
        monkeypatch.setenv(name, "1")
    wanted = '["LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONDEVMODE", "UNRELATED"]'
    add_script(project.root, SEES.replace("WANTED", wanted))
    assert record(project, smallest=True) == 0
    assert "not passed" not in capsys.readouterr().err


@pytest.mark.parametrize(("changed", "named"), [("model", "cpu model"), ("flags", "cpu instruction set")])
def test_a_machine_that_is_here_is_not_described_as_another(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: str, named: str
) -> None:
    add_script(project.root, PLAIN, SWEEP, "guide/one.py")
    bundle = tmp_path / "here.json"
    assert (record(project), record(project, bundle=bundle, everything=True)) == (0, 0)
    described = project.records / HERE.name / "machine.json"
    before = described.read_bytes(), bundle.read_bytes()
    add_script(project.root, PLAIN, SWEEP, "guide/two.py")
    on_another(monkeypatch, **OTHERS[changed])
    line = rf"machine\.json:1: is of another machine than this \(its {named} differs\); record with"
    with pytest.raises(BenchbookError, match=line):
        record(project)
    with pytest.raises(BenchbookError, match=r"here\.json:1: holds records of another machine than this"):
        record(project, bundle=bundle)
    assert (described.read_bytes(), bundle.read_bytes()) == before
    assert record(project, machine="cpu-another") == 0


def test_what_another_machine_of_the_name_measured_is_not_taken_over(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    assert record(project, bundle=tmp_path / "there.json") == 0
    begun = [tmp_path / "there.json"]
    assert Bundle(tmp_path / "b", Checkout(project, HERE), HERE, begun).load("guide/small.py") is not None
    other = replace(HERE, **OTHERS["model"])
    assert Bundle(tmp_path / "b", Checkout(project, other), other, begun).load("guide/small.py") is None


def test_what_the_recorder_sets_itself_and_which_device_it_is_decide_no_numbers() -> None:
    deciding = ["ACCELERATE_MIXED_PRECISION", "BLIS_NUM_THREADS", "GOTO_NUM_THREADS", "LD_PRELOAD"]
    deciding += ["LRU_CACHE_CAPACITY", "MALLOC_ARENA_MAX", "ORT_DISABLE_ALL_OPTIMIZATION", "PYTHONDEVMODE"]
    deciding += ["PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"]
    deciding += ["PYTHONTRACEMALLOC", "RAYON_NUM_THREADS", "TBB_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS"]
    deciding += ["TORCH_LOGS"]
    others = ("TORCHINDUCTOR_CACHE_DIR", "CUDA_VISIBLE_DEVICES", "HOME", "PYTHONUNBUFFERED", "HF_HOME")
    names = (*deciding, *others)
    assert list(deciding_variables(dict.fromkeys(names, "/home/ada"))) == deciding


def test_commits_of_which_nothing_tells_differ(tmp_path: Path) -> None:
    first = commit_all(tmp_path)
    assert not differ(tmp_path, first, commit_all(tmp_path))
    assert not differ(tmp_path, None, None)
    assert differ(tmp_path, None, first)
    assert differ(tmp_path, "0" * 40, first)


# A file that is damaged


@pytest.mark.parametrize("damage", ["[" * 3000 + "]" * 3000 + "\n", "null\n", '{"campaign": 1}\n{}\n', "\n"])
def test_a_journal_that_is_damaged_is_begun_anew_and_that_is_said(project: Project, damage: str) -> None:
    task = task_of(project)
    (project.root / "j.jsonl").write_text(damage, "utf-8")
    journal = journal_of(project, task)
    assert (journal.finished, journal.instead) == ([], "cannot be read")
    assert journal_of(project, task).instead == ""


@pytest.mark.parametrize("loaded", [5, [1], {"gone.py": 1}])
def test_a_journal_that_does_not_tell_what_its_runs_loaded_is_begun_anew(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], loaded: object
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 1)
    (path,) = project.journal.rglob("*.jsonl")
    header, run = path.read_text("utf-8").splitlines()
    table = json.loads(run)
    table["result"]["loaded"] = loaded
    path.write_text(f"{header}\n{json.dumps(table)}\n", "utf-8")
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_a_journal_of_other_code_is_begun_anew_and_that_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 4)
    add_script(project.root, PLAIN.replace("2.0 * n", "n + float(n)"), TIMED)
    assert record(project) == 0
    assert "guide/small.jsonl is of other code, parameters, packages" in capsys.readouterr().err


DEEP = "[" * 3000 + "]" * 3000


@pytest.mark.parametrize(
    ("body", "table"),
    [
        (PLAIN, f'needs = ["cpu"]\n[tool.benchbook.matrix]\nn = {DEEP}'),
        (PLAIN, 'needs = ["cpu"]\nmatrix = [' + "{ n = " * 3000 + "1" + " }" * 3000 + "]"),
        (PLAIN, f'needs = ["cpu"]\n[tool.benchbook.on.cpu]\nn = {DEEP}'),
        (PLAIN.replace("n = 1", f"n = {DEEP}"), 'needs = ["cpu"]'),
        (PLAIN.replace("2.0 * n", "-" * 3000 + "n"), 'needs = ["cpu"]'),
    ],
)
def test_what_is_nested_thousands_deep_is_one_line_and_the_next_script_still_runs(
    project: Project, body: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project.snippets / "guide/deep.py", script_text(body, table))
    add_script(project.root, PLAIN, SWEEP)
    assert record(project) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "deep.py" in line]
    assert line.startswith("snippets/guide/deep.py:")
    assert "; " in line
    assert len(written(project).variants) == 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_bundle_that_is_nested_thousands_deep_is_not_gone_on_with(project: Project, packed: bool) -> None:
    path = project.root / "here.json"
    text = ('{"machine":' * 3000 + "1" + "}" * 3000).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(BenchbookError, match="is not a bundle"):
        Bundle(path, Checkout(project, HERE), HERE)


# A git that does not answer


def hide_git(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(root / "nothing"))


def give_to_another(_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")


def damage_index(root: Path, _monkeypatch: pytest.MonkeyPatch) -> None:
    write(root / ".git/index", "damaged")


def slow_down(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = f'#!/bin/sh\ncase "$*" in *status*) exec sleep 60;; esac\nexec {shutil.which("git")} "$@"\n'
    write(root / "slow/git", slow).chmod(0o755)
    monkeypatch.setenv("PATH", str(root / "slow"), prepend=os.pathsep)
    monkeypatch.setattr(circumstances, "GIT_SECONDS", 2.0)


@pytest.mark.parametrize(
    ("silence", "known", "why", "fix"),
    [
        (hide_git, False, "names no commit, .* does not start", "install git"),
        (
            give_to_another,
            False,
            "names no commit, .* dubious",
            "`git config --global --add safe.directory .*`",
        ),
        (damage_index, True, "does not tell what is edited, .* index", "record in a clone where .* answers"),
        (slow_down, True, "does not tell what is edited, .* 2 seconds", "see what keeps it from ending"),
    ],
)
def test_code_counts_as_modified_where_git_does_not_tell_that_it_is_not(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    silence: Callable[..., None],
    known: bool,
    why: str,
    fix: str,
) -> None:
    head = commit_all(tmp_path)
    assert circumstances.commit(tmp_path) == (head, False)
    silence(tmp_path, monkeypatch)
    warnings: list[str] = []
    assert circumstances.commit(tmp_path, warnings.append) == (head if known else None, True)
    [line] = warnings
    assert re.fullmatch(f"git {why}.*; .*{fix}", line)


def test_a_recording_warns_once_that_git_does_not_tell_which_code_it_is_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    commit_all(project.root)
    give_to_another(project.root, monkeypatch)
    assert record(project) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if "git" in line]
    assert line.startswith("warning: git names no commit, so every record says that its code was modified: ")
    assert line.endswith(f"; run `git config --global --add safe.directory {project.root}`")
    assert (only_campaign(project).commit, only_campaign(project).modified) == (None, True)


# An environment or a checkout that changes meanwhile


def install(site: Path, version: str) -> None:
    """A package `gadget` of this version, in the place of any other."""
    for old in site.glob("*.dist-info"):
        shutil.rmtree(old)
    metadata = f"Metadata-Version: 2.1\nName: gadget\nVersion: {version}\n"
    write(site / f"gadget-{version}.dist-info/METADATA", metadata)


def install_to_edit(site: Path, source: Path, value: int) -> None:
    """A package `gadget` that is imported from its source, where its code holds a value."""
    install(site, "1.0")
    origin = {"url": source.as_uri(), "dir_info": {"editable": True}}
    write(site / "gadget-1.0.dist-info/direct_url.json", json.dumps(origin))
    write(source / "gadget/__init__.py", f"value = {value}\n")
    os.utime(source / "gadget/__init__.py", ns=(value, value))


def needs_gadget(project: Project, table: str) -> None:
    text = script_text(PLAIN, table).replace("dependencies = []", 'dependencies = ["gadget"]')
    write(project.snippets / "guide/small.py", text)


def changes_after(monkeypatch: pytest.MonkeyPatch, runs: int, change: Callable[[], object]) -> None:
    """Once, when so many runs are done."""
    run_once, numbers = campaigns.run_once, iter(range(1, runs + 1))

    def changing(*arguments: Any, **named: Any) -> Result:
        result = run_once(*arguments, **named)
        if next(numbers, 0) == runs:
            change()
        return result

    monkeypatch.setattr(campaigns, "run_once", changing)


def pulls_meanwhile(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Commit a script, and a file of this name once two of its runs are done."""
    add_script(project.root, PLAIN, SWEEP)
    write(project.root / ".gitignore", ".benchbook\n")
    commit_all(project.root)

    def pull() -> None:
        write(project.root / name, "x = 1\n")
        commit_all(project.root)

    changes_after(monkeypatch, 2, pull)


def test_a_package_is_imported_from_where_its_version_is_installed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site := tmp_path / "site", "1.0")
    write(site / "gadget/__init__.py", "")
    # Python has a package of that name too, which nobody imports as the gadget's.
    write(site / "gadget-1.0.dist-info/RECORD", "gadget/__init__.py,,\ntest/__init__.py,,\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    text = script_text(PLAIN, SWEEP).replace("dependencies = []", 'dependencies = ["gadget"]')
    write(project.snippets / "guide/small.py", text)
    (site / "gadget").rename(tmp_path / "kept")
    (site / "gadget").symlink_to(tmp_path / "kept")
    assert record(project) == 0
    before = written(project)
    mine = write(tmp_path / "mine/gadget/__init__.py", "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"), prepend=os.pathsep)
    capsys.readouterr()
    assert record(project, everything=True) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "gadget" in line]
    told = f"`import gadget` takes {mine}, and gadget 1.0 is installed in {site}; take its folder out of"
    assert line.startswith(f"snippets/guide/small.py:1: {told} PYTHONPATH")
    assert written(project) == before


def test_runs_of_two_versions_of_a_package_are_not_kept_and_that_is_said_in_one_line(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site := tmp_path / "site", "1.0")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    text = script_text(PLAIN, SWEEP).replace("dependencies = []", 'dependencies = ["gadget"]')
    write(project.snippets / "guide/small.py", text)
    changes_after(monkeypatch, 2, lambda: install(site, "2.0"))
    assert record(project) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "gadget" in line]
    assert line == (
        "snippets/guide/small.py:4: gadget changed from 1.0 to 2.0 while it was recorded, and no run of this "
        "session is kept; leave its packages as they are until it is recorded, and record it again"
    )
    assert not project.records.exists()
    (journal,) = project.journal.rglob("*.jsonl")
    assert len(journal.read_text("utf-8").splitlines()) == 1
    assert record(project) == 0
    (campaign,) = written(project).campaigns.values()
    assert isinstance(campaign, Campaign)
    assert campaign.packages["gadget"] == "2.0"


@pytest.mark.parametrize("killed", [1, 2])
def test_packages_are_asked_for_once_more_where_what_tells_of_them_is_killed(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], killed: int
) -> None:
    add_script(project.root, PLAIN)
    run, left = subprocess.run, [killed]

    def dying(arguments: list[str], **options: Any) -> Any:
        if hosts.VERSIONS_CODE in arguments and left[0]:
            left[0] -= 1
            raise subprocess.CalledProcessError(-signal.SIGKILL, arguments)
        return run(arguments, **options)

    monkeypatch.setattr(subprocess, "run", dying)
    assert record(project) == killed - 1
    what = "its interpreter does not tell which packages it has, and no run of this session is kept"
    assert (what in capsys.readouterr().err) == (killed == 2)


def test_a_campaign_is_not_gone_on_with_once_a_package_is_edited_that_is_installed_to_be(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, source = tmp_path / "site", tmp_path / "a source"
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    needs_gadget(project, TIMED)
    for value, goes_on in ((1, True), (1, True), (2, False)):
        install_to_edit(site, source, value)
        stopped(project, monkeypatch, 2)
        assert ("a new campaign begins" not in capsys.readouterr().err) == goes_on
        # None of it is code of the package.
        for name in (".git/hook.py", "venv/pyvenv.cfg", "venv/lib/tool.py", "notes.md"):
            write(source / name, "")
        (source / f"{len(list(source.iterdir()))}.py").symlink_to("nowhere.py")
    assert record(project) == 0


def test_a_campaign_is_not_gone_on_with_where_other_code_lies_in_the_folders_of_pythonpath(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    shim = write(tmp_path / "shims/sitecustomize.py", "x = 1\n")
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(shim.parent), prepend=os.pathsep)
        for text in ("x = 1\n", "x = 10\n"):
            if text != shim.read_text("utf-8"):
                write(shim, text)
            capsys.readouterr()
            stopped(project, monkeypatch, 1)
            assert ("new campaign" in capsys.readouterr().err) == (text == "x = 10\n")
            stopped(project, monkeypatch, 1)
            assert "new campaign" not in capsys.readouterr().err
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_a_campaign_is_gone_on_with_where_the_same_code_was_put_into_the_folders_of_pythonpath_later(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_gadget(project, TIMED)
    for day in ("one", "two"):
        install(site := tmp_path / day, "1.0")
        code, own = write(site / "gadget/__init__.py", ""), write(site / "own.py", "x = 1\n")
        listed = write(site / "gadget-1.0.dist-info/RECORD", "gadget/__init__.py,,\n")
        later = {"one": 0, "two": 86_400}[day] + listed.stat().st_mtime
        for path in (code, own, listed):
            os.utime(path, (later, later))
        # Nothing is waited for that is no file.
        os.mkfifo(site / "queue.py")
        monkeypatch.setenv("PYTHONPATH", str(site))
        stopped(project, monkeypatch, 1)
        assert "new campaign" not in capsys.readouterr().err
    assert record(project) == 0
    assert "new campaign" not in capsys.readouterr().err


def code_in_a_link(folder: Path, text: str) -> Path:
    write(folder / "kept/gadget/__init__.py", text)
    (folder / "site").mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "site/gadget").symlink_to(folder / "kept/gadget")
        # It leads back to itself.
        (folder / "kept/gadget/gadget").symlink_to(folder / "kept/gadget")
    return folder / "site"


def code_in_an_archive(folder: Path, text: str) -> Path:
    with zipfile.ZipFile(folder / "site.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("gadget.py"), text)
    return folder / "site.zip"


def code_without_a_source(folder: Path, text: str) -> Path:
    write(folder / "site/__pycache__/gadget.cpython-311.pyc", str(time.time_ns()))
    return write(folder / "site/gadget.pyc", text).parent


def code_in_a_path_file(folder: Path, text: str) -> Path:
    return write(folder / "site/gadget.pth", f"import sys; {text}").parent


def listed_file(site: Path, name: str, text: str) -> Path:
    """A file of an installed package, as the list of its files has it once it is installed."""
    path = site / name
    if not path.is_file():
        install(site, "1.0")
        write(path, text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        lines = (
            f"{name},sha256={digest},{len(text)}\ngadget/__pycache__/a.pyc,,\ngadget-1.0.dist-info/RECORD,,\n"
        )
        write(site / "gadget-1.0.dist-info/RECORD", lines)
    return path


def code_of_an_unnamed_package(folder: Path, text: str) -> Path:
    """A package that the script does not name, edited where it is installed."""
    code = listed_file(folder / "site", "gadget/__init__.py", text)
    later = code.stat().st_mtime + 60
    os.utime(write(code, text), (later, later))
    return folder / "site"


def an_older_file_of_a_package(folder: Path, text: str) -> Path:
    """As `cp -p` puts it there."""
    os.utime(write(listed_file(folder / "site", "gadget/__init__.py", text), text), (1, 1))
    return folder / "site"


def a_library_with_a_version(folder: Path, text: str) -> Path:
    write(listed_file(folder / "site", "gadget.libs/libspeed.so.1", text), text)
    return folder / "site"


def a_library_that_goes(folder: Path, text: str) -> Path:
    """A package may do without it, and be slower."""
    library = listed_file(folder / "site", "gadget/_speedups.so", text)
    if text != "x = 1\n":
        library.unlink()
    return folder / "site"


def another_build_of_a_package(folder: Path, text: str) -> Path:
    shutil.rmtree(folder / "site", ignore_errors=True)
    listed_file(folder / "site", "gadget/__init__.py", text)
    with open(folder / "site/gadget-1.0.dist-info/RECORD", "a") as file:
        file.write(f"../bin/gadget,sha256={time.time_ns()},9\n")
    write(folder / "bin/gadget", "#!python")
    return folder / "site"


@pytest.mark.parametrize(
    "put",
    [
        another_build_of_a_package,
        code_in_a_link,
        code_in_an_archive,
        code_without_a_source,
        code_in_a_path_file,
        code_of_an_unnamed_package,
        an_older_file_of_a_package,
        a_library_with_a_version,
        a_library_that_goes,
    ],
)
def test_a_campaign_is_not_gone_on_with_where_code_that_could_be_imported_is_other_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    put: Callable[[Path, str], Path],
) -> None:
    add_script(project.root, PLAIN, TIMED)
    for text in ("x = 1\n", "x = 1\n", "x = 10\n"):
        monkeypatch.setenv("PYTHONPATH", str(put(tmp_path, text)))
        assert begins_anew(project, monkeypatch, capsys) == (text == "x = 10\n")
    assert record(project) == 0


def in_a_linked_folder(place: Path) -> Path:
    """A folder that a link leads to, and which no file says is a package."""
    (place / "site").mkdir(parents=True)
    (place / "site/gadget").symlink_to(place / "kept")
    return place / "kept/part.py"


def in_an_environment(place: Path) -> Path:
    """A folder that says it is an environment of its own."""
    write(place / "site/gadget/pyvenv.cfg", "")
    return place / "site/gadget/part.py"


def beside_what_was_installed(place: Path) -> Path:
    """A module in the folder of a package that does not list it."""
    listed_file(place / "site", "gadget/__init__.py", "")
    return place / "site/gadget/part.py"


def in_what_was_installed(place: Path) -> Path:
    """A module of a package whose list was written once more: by a copy, or for another owner."""
    return listed_file(place / "site", "gadget/part.py", "n = 1\n")


def beside_a_folder_of_our_name(place: Path) -> Path:
    """A module in a folder that has another package of the name of this one."""
    write(place / "site/benchbook/__init__.py", "")
    write(place / "site/gadget/__init__.py", "")
    return place / "site/gadget/part.py"


def in_an_archive_of_the_script(place: Path) -> Path:
    """In a zip file that is looked into once the script says so; the path of that."""
    (place / "site").mkdir(parents=True)
    return place / "code.zip"


def put_code(path: Path, text: str) -> None:
    """Write a module where it is sought, which may be in an archive."""
    if path.suffix != ".zip":
        write(path, text)
        return
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("gadget/__init__.py"), "")
        archive.writestr(zipfile.ZipInfo("gadget/part.py"), text)


PARTS = [
    in_an_archive_of_the_script,
    in_a_linked_folder,
    in_an_environment,
    in_what_was_installed,
    beside_what_was_installed,
    beside_a_folder_of_our_name,
]


@pytest.mark.parametrize("put", PARTS)
def test_a_campaign_is_not_gone_on_with_where_what_its_runs_imported_is_other_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    put: Callable[[Path], Path],
) -> None:
    code = put(tmp_path / "place")
    searched = f"import sys\nsys.path.append('{tmp_path / 'place/code.zip'}')\nfrom gadget import part\n"
    add_script(project.root, PLAIN.replace("doubled =", f"{searched}doubled = part.n *"), TIMED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "place/site"))
    for text in ("n = 1\n", "n = 1\n", "n = 9\n"):
        put_code(code, text)
        for listed in tmp_path.glob("place/site/*.dist-info/RECORD"):
            listed.touch()
        assert begins_anew(project, monkeypatch, capsys) == (text == "n = 9\n")
    code.unlink()
    assert record(project) == 1
    assert "a new campaign begins" in capsys.readouterr().err


ELSEWHERE = {
    "another rank": ("if os.environ['RANK'] == '1':\n    import part", "ranks = 2\n"),
    "a child": ("if os.fork() == 0:\n    import part\n    os._exit(0)\nos.wait()", ""),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_a_campaign_is_not_gone_on_with_where_other_processes_of_a_run_imported_other_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    case: str,
) -> None:
    imports, table = ELSEWHERE[case]
    code = write(tmp_path / "elsewhere/part.py", "n = 1\n")
    lines = f"import os, sys\nsys.path.append('{code.parent}')\n{imports}\ndoubled ="
    add_script(project.root, PLAIN.replace("doubled =", lines), TIMED.replace("repeats", f"{table}repeats"))
    for text in ("n = 1\n", "n = 1\n", "n = 10\n"):
        write(code, text)
        assert begins_anew(project, monkeypatch, capsys) == (text == "n = 10\n")
    assert record(project) == 0


def two_environments(second: str) -> str:
    """A table of a script whose second variant has variables of its own."""
    matrix = f"matrix = [{{ n = 1 }}, {{ n = 2, environment = {{ {second} }} }}]"
    metrics = '[tool.benchbook.metrics]\ndoubled = { unit = "s" }'
    return f'needs = ["cpu"]\nrepeats = 3\n{matrix}\n{metrics}'


def test_a_campaign_is_not_gone_on_with_where_another_variant_finds_other_code(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = write(tmp_path / "elsewhere/part.py", "n = 1\n")
    add_script(project.root, PLAIN, two_environments(f'PYTHONPATH = "{code.parent}"'))
    for text in ("n = 1\n", "n = 1\n", "n = 10\n"):
        write(code, text)
        assert begins_anew(project, monkeypatch, capsys) == (text == "n = 10\n")


def test_a_campaign_is_not_gone_on_with_where_the_path_of_a_variant_finds_another_compiler(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler = tmp_path / "found/g++"
    add_script(project.root, PLAIN, two_environments(f'PATH = "{compiler.parent}"'))
    for text in ("#!/bin/sh\n", "", "#!/bin/sh\nexit 1\n"):
        if text:
            write(compiler, text).chmod(0o755)
        assert begins_anew(project, monkeypatch, capsys) == ("exit" in text)


@pytest.mark.parametrize("before", ["PYTHONMALLOC=debug exec", "exec nice -n 5", "ulimit -n 512; exec"])
def test_a_campaign_is_not_gone_on_with_by_an_interpreter_that_changes_what_it_is_granted(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    before: str,
) -> None:
    add_script(project.root, PLAIN, TIMED)
    python = tmp_path / "python"
    monkeypatch.setenv("BENCHBOOK_PYTHON", str(python))
    for words in ("exec", "exec", before):
        write(python, f'#!/bin/sh\n{words} {sys.executable} "$@"\n').chmod(0o755)
        assert begins_anew(project, monkeypatch, capsys) == (words == before)


def test_a_campaign_is_not_gone_on_with_by_the_recorder_of_another_checkout(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 2)
    stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    monkeypatch.setattr(sessions, "RECORDER", write(tmp_path / "other/__init__.py", "x = 1\n").parent)
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["x = 1\n", "x = 2\n"])
def test_what_another_recorder_than_the_checkout_s_measures_is_of_modified_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    write(project.root / "scripts/benchbook/__init__.py", "x = 1\n")
    write(project.root / ".gitignore", ".benchbook\nother\n")
    commit_all(project.root)
    monkeypatch.setattr(sessions, "RECORDER", write(tmp_path / "other/__init__.py", text).parent)
    assert record(project) == 0
    said = f"{tmp_path / 'other'} records, which is not as the checkout's own" in capsys.readouterr().err
    assert said == only_campaign(project).modified == (text == "x = 2\n")


def test_runs_from_before_and_after_an_edit_of_what_they_import_are_not_kept(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = write(tmp_path / "site/gadget.py", "n = 1\n")
    add_script(project.root, PLAIN.replace("doubled =", "import gadget\ndoubled = gadget.n *"), SWEEP)
    monkeypatch.setenv("PYTHONPATH", str(code.parent))
    changes_after(monkeypatch, 2, lambda: write(code, "n = 2\n"))
    assert record(project) == 1
    assert (
        "snippets/guide/small.py:1: site/gadget.py changed while it was recorded, and no run of this session is "
        "kept; leave what it imports as it is until it is recorded, and record it again"
    ) in capsys.readouterr().err.splitlines()
    assert not project.records.exists()
    assert record(project) == 0


def test_code_counts_wherever_python_looks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As a `.pth` file has it, or `setup.py develop`.
    code = write(tmp_path / "checkout/gadget.py", "x = 1\n")
    without = installed_code(None, {})
    monkeypatch.syspath_prepend(code.parent)
    before = installed_code(None, {})
    assert before == installed_code(None, {}) != without
    write(code, "x = 2\n")
    assert installed_code(None, {}) not in {before, without}
    # Of two modules of one name the first is imported.
    other = write(tmp_path / "other/gadget.py", "x = 3\n")
    places = [str(code.parent), str(other.parent)]
    assert installed_code(os.pathsep.join(places), {}) != installed_code(
        os.pathsep.join(reversed(places)), {}
    )


def test_what_was_edited_where_it_is_installed_is_told_from_what_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = listed_file(tmp_path, "gadget/__init__.py", "x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = [versions(["gadget"])["sources"]]
    later = (tmp_path / "gadget-1.0.dist-info/RECORD").stat().st_mtime + 60
    for text in ("x = 1\n", "x = 2\n", "x = 3\n", "x = 10\n"):
        os.utime(write(code, text), (later, later))
        found.append(versions(["gadget"])["sources"])
    assert found[0] == found[1]
    assert len({told["gadget"] for told in found}) == 4


def test_what_modules_say_of_their_files_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    code = write(tmp_path / "below/part.py", "x = 1\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    made = write(tmp_path / "temporary/bb-x/made.py", "x = 1\n")
    files = [str(tmp_path / name) for name in ("pipe.py", "below", "gone.py", "below/part.py")]
    root = str(tmp_path / "checkout")
    told = loaded_code([*files, "/dev/zero", os.__file__, benchbook.__file__, str(made)], root)
    assert list(told) == ["../below", "../below/part.py", os.__file__]
    assert changed_code(told, root) == ""
    write(code, "x = 2\n")
    assert changed_code(told, root) == "../below"


def test_a_large_library_is_told_by_its_size_and_its_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    library = tmp_path / "large.so"
    whole = bytearray(6 * 2**20)
    found = []
    for changes in ([0], [-1], []):
        for place in changes:
            whole[place] += 1
        whole += b"" if changes else b"0"
        library.write_bytes(whole)
        found.append(loaded_code([str(library)], str(tmp_path / "checkout"))["../large.so"])
    assert len(set(found)) == 3


def test_an_edit_that_keeps_the_time_of_an_older_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = listed_file(tmp_path, "gadget/__init__.py", "x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    as_installed = versions(["gadget"])["sources"]
    # What was written in the second after the list may be of the installation.
    time.sleep(1.1)
    os.utime(write(code, "x = 2\n"), (1, 1))
    assert versions(["gadget"])["sources"] != as_installed


def test_another_python_of_the_same_version_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write(tmp_path / "bin/python3", "one build")
    found = [installed_code(None, {}), installed_code(None, {})]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(program))
        found.append(installed_code(None, {}))
        write(program, "another build")
        found.append(installed_code(None, {}))
    assert found[0] == found[1]
    assert len(set(found)) == 3


@pytest.mark.parametrize("file", ["direct_url.json", "RECORD"])
def test_a_campaign_is_not_gone_on_with_where_a_package_of_the_same_version_is_of_other_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
) -> None:
    install(site := tmp_path / "site", "1.0")
    origin = {"url": "https://example.org/gadget", "vcs_info": {"vcs": "git", "commit_id": "a" * 40}}
    write(site / "gadget-1.0.dist-info/direct_url.json", json.dumps(origin))
    write(site / "gadget-1.0.dist-info/RECORD", f"gadget/__init__.py,sha256={'a' * 43},9\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    needs_gadget(project, TIMED)
    for _ in range(2):
        stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    path = site / "gadget-1.0.dist-info" / file
    path.write_text(path.read_text("utf-8").replace("aaa", "bbb"), "utf-8")
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_an_edit_of_what_records_is_not_one_of_an_installed_package(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    site = tmp_path / "site"
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    write(site / "benchbook-9.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: benchbook\nVersion: 9.0\n")
    origin = {"url": project.root.as_uri(), "dir_info": {"editable": True}}
    write(site / "benchbook-9.0.dist-info/direct_url.json", json.dumps(origin))
    stopped(project, monkeypatch, 2)
    write(project.root / "scripts/tool.py", "x = 1\n")
    assert record(project) == 0
    assert "new campaign" not in capsys.readouterr().err


def test_runs_from_before_and_after_an_edit_of_a_package_are_not_kept_and_that_is_said_in_one_line(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, source = tmp_path / "site", tmp_path / "source"
    install_to_edit(site, source, 1)
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    needs_gadget(project, SWEEP)
    changes_after(monkeypatch, 2, lambda: install_to_edit(site, source, 2))
    assert record(project) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "gadget" in line]
    assert line == (
        "snippets/guide/small.py:4: the code of gadget changed while it was recorded, and "
        "no run of this session is kept; leave its packages as they are until it is recorded, and record it again"
    )
    assert not project.records.exists()
    assert record(project) == 0


def test_runs_of_two_commits_are_not_kept_and_no_further_script_is_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, SWEEP, "guide/well.py")
    pulls_meanwhile(project, monkeypatch, "scripts/tool.py")
    assert record(project) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "the checkout went from" in line]
    assert line.startswith("snippets/guide/small.py:1: the checkout went from ")
    assert line.endswith("leave the checkout as it is until it is recorded, and record it again")
    assert not project.records.exists()
    assert record(project) == 0


def test_code_that_is_committed_once_it_was_read_is_not_recorded_as_of_that_commit(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    write(project.root / ".gitignore", ".benchbook\n")
    commit_all(project.root)

    def commit_meanwhile(_store: Checkout) -> None:
        add_script(project.root, PLAIN.replace("2.0", "3.0"), SWEEP)
        commit_all(project.root)

    with monkeypatch.context() as patch:
        patch.setattr(Checkout, "hold_machine", commit_meanwhile)
        assert record(project) == 1
    assert "the checkout went from" in capsys.readouterr().err
    assert not project.records.exists()


def test_a_commit_of_pages_and_records_costs_no_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulls_meanwhile(project, monkeypatch, "docs/page.md")
    assert record(project) == 0


def edits_meanwhile(project: Project, monkeypatch: pytest.MonkeyPatch, *edits: Callable[[], object]) -> None:
    """Commit a script and a tool, and make an edit after each of the first runs."""
    add_script(project.root, PLAIN, SWEEP)
    write(project.root / ".gitignore", ".benchbook\n")
    write(project.root / "scripts/tool.py", "x = 1\n")
    write(project.root / "docs/page.md", "x = 1\n")
    commit_all(project.root)
    run_once, left = campaigns.run_once, iter(edits)

    def editing(*arguments: Any, **named: Any) -> Result:
        result = run_once(*arguments, **named)
        if (edit := next(left, None)) is not None:
            edit()
        return result

    monkeypatch.setattr(campaigns, "run_once", editing)


@pytest.mark.parametrize("undone", [False, True])
@pytest.mark.parametrize(
    ("name", "modified"),
    [("scripts/tool.py", True), ("scripts/another.py", True), ("docs/page.md", False)],
)
def test_a_record_says_of_code_that_was_edited_meanwhile_that_it_differed_from_its_commit(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, modified: bool, undone: bool
) -> None:
    path, kept = project.root / name, project.root / "docs/kept.md"

    def undo() -> None:
        # As it was, with the moment at which it was written.
        path.unlink()
        if kept.exists():
            kept.rename(path)

    def edit() -> None:
        if path.exists():
            path.rename(kept)
        write(path, "x = 2\n")

    edits_meanwhile(project, monkeypatch, edit, *([undo] if undone else []))
    assert record(project) == 0
    assert only_campaign(project).modified is modified


def test_an_edit_that_is_made_and_undone_during_one_run_is_noted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.root / "scripts/tool.py"

    def edit_and_undo() -> None:
        write(path, "x = 2\n")
        write(path, "x = 1\n")

    edits_meanwhile(project, monkeypatch, edit_and_undo)
    assert record(project) == 0
    assert only_campaign(project).modified


def test_an_edit_in_a_session_that_was_stopped_is_in_the_record_of_the_one_that_goes_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.root / "scripts/tool.py"
    edits_meanwhile(project, monkeypatch, lambda: write(path, "x = 2\n"))
    stopped(project, monkeypatch, 2)
    write(path, "x = 1\n")
    assert record(project) == 0
    assert only_campaign(project).modified
