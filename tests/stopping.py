"""Recordings that are stopped and gone on with, for tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.project import Project
from benchbook.content.records import Campaign, Record, load_record
from benchbook.content.script import Variant
from benchbook.machines.description import describe
from benchbook.recording import campaign as campaigns
from benchbook.recording import command as recording
from benchbook.recording.campaign import Turn, header
from benchbook.recording.jobs import CRASHED, OK, Failure, Result
from benchbook.recording.journal import Journal, open_journal
from benchbook.recording.plan import Task, make_plan
from benchbook.recording.session import Session
from builders import write
from running import SWEEP, add_script

HERE = describe(None)
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
# Gathers at the moment at which the journals of these tests begin.
gather = partial(campaigns.gather, moment=lambda: NOON)
PLAIN = "# %% parameters\nn = 1\n\n# %% work\ndoubled = 2.0 * n\n\n# %% checks\nassert doubled"
# Three variants whose times are compared, each run three times.
TIMED = SWEEP.replace('"count"', '"s"').replace("[1, 2]", "[1, 2, 3]").replace("repeats = 2", "repeats = 3")


def record(project: Project, **options: Any) -> int:
    return recording.record_command(project, [], **options)


def written(project: Project) -> Record:
    found = load_record(project.record_path(HERE.name, "guide/small.py"))
    assert found is not None
    return found


def campaigns_in(project: Project) -> set[str]:
    return {variant.campaign for variant in written(project).variants.values()}


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


@contextmanager
def time_for(runs: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A recording has time for so many runs, and no more."""
    # Asked once before the script is begun, and before each run.
    asked = iter(range(runs + 1))
    with monkeypatch.context() as patch:
        patch.setattr(Session, "_time_left", lambda _: 60.0 if next(asked, None) is not None else 0.0)
        yield


def stopped(project: Project, monkeypatch: pytest.MonkeyPatch, runs: int, **options: Any) -> None:
    """Record until so many runs are done, and have no more time."""
    with time_for(runs, monkeypatch):
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


def install(site: Path, version: str) -> None:
    """A package `gadget` of this version, in the place of any other."""
    for old in site.glob("*.dist-info"):
        shutil.rmtree(old)
    metadata = f"Metadata-Version: 2.1\nName: gadget\nVersion: {version}\n"
    write(site / f"gadget-{version}.dist-info/METADATA", metadata)


def changes_after(monkeypatch: pytest.MonkeyPatch, runs: int, change: Callable[[], object]) -> None:
    """Once, when so many runs are done."""
    run_once, numbers = campaigns.run_once, iter(range(1, runs + 1))

    def changing(*arguments: Any, **named: Any) -> Result:
        result = run_once(*arguments, **named)
        if next(numbers, 0) == runs:
            change()
        return result

    monkeypatch.setattr(campaigns, "run_once", changing)
