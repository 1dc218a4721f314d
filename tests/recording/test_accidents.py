"""What becomes of a recording where a disk is full, a clock is set back, a file is damaged, git does not answer."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import MOST_CAMPAIGNS, HistoryLine, Record
from benchbook.machines import circumstances
from benchbook.recording import campaign as campaigns
from benchbook.recording import hosts
from benchbook.recording.journal import open_journal
from benchbook.recording.stores import Bundle, Checkout
from builders import write
from repositories import commit_all
from running import SWEEP, add_script, script_text
from stopping import (
    HERE,
    NOON,
    PLAIN,
    TIMED,
    after,
    gather,
    good,
    ignore,
    journal_of,
    only_campaign,
    record,
    stopped,
    task_of,
    written,
)

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


# A clock that is set back


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
