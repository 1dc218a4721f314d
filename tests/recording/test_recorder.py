"""A recording runs what is needed, in an order that is fair, and writes records whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchbook.checking.bundles import import_bundles
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import Campaign, Record, load_record
from benchbook.content.script import Variant
from benchbook.content.validation import machine_problems, record_problems
from benchbook.machines.accelerators import Accelerators, accelerator_table
from benchbook.machines.circumstances import DeviceWatch, commit
from benchbook.machines.description import describe
from benchbook.machines.nvml import Identity, Nvml
from benchbook.recording import campaign as campaigns
from benchbook.recording import command as recording
from benchbook.recording.campaign import Turn, header, order, variant_record
from benchbook.recording.hosts import preload_names
from benchbook.recording.jobs import CRASHED, FAILED, OK, OUT_OF_MEMORY, TIMED_OUT, Failure, Result
from benchbook.recording.journal import Finished, Journal, open_journal
from benchbook.recording.plan import Task, make_plan
from benchbook.recording.session import only_recording
from benchbook.recording.stores import Bundle, Checkout
from builders import write
from fakes import MIB, FakeGpu, FakeNvml
from running import SWEEP, add_script, small_project
from stopping import time_for

BODY = "# %% parameters\nn = 1\n\n# %% work\ndoubled = 2 * n\nprint(doubled)\n\n# %% checks\nassert doubled"
HERE = describe(None)
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
# Gathers at the moment at which the journals of these tests begin.
gather = partial(campaigns.gather, moment=lambda: NOON)


def record(project: Project, *scripts: str, **options: Any) -> int:
    return recording.record_command(project, list(scripts), **options)


def written(project: Project, script: str = "guide/small.py") -> Record:
    found = load_record(project.record_path(HERE.name, script))
    assert found is not None
    return found


# The order of runs


def test_variants_take_turns_in_rounds() -> None:
    turns = order("c", "guide/small.py", {"a": 3, "b": 3, "c": 2})
    assert [turn.place for turn in turns] == list(range(8))
    for number in range(3):
        assert Counter(turn.variant for turn in turns if turn.round == number).most_common(1)[0][1] == 1
    assert Counter(turn.variant for turn in turns) == {"a": 3, "b": 3, "c": 2}


def test_the_order_is_drawn_anew_for_each_round_and_campaign() -> None:
    names = dict.fromkeys("abcdef", 20)
    turns = order("one", "guide/small.py", names)
    rounds = {tuple(turn.variant for turn in turns if turn.round == number) for number in range(20)}
    assert len(rounds) > 15
    assert turns != order("two", "guide/small.py", names)
    assert turns == order("one", "guide/small.py", names)


# What is imported once for all runs


def test_only_what_the_list_allows_is_imported_ahead() -> None:
    sources = [
        "import torch, os\nfrom datasets import load_dataset",
        "from transformers import A\nimport numpy.linalg",
    ]
    assert preload_names(sources) == ("numpy.linalg", "torch", "transformers", "transformers:A")


def test_what_a_function_imports_is_left_to_it() -> None:
    assert preload_names(["def f():\n    import torch"]) == ()


# Records


def test_a_recording_writes_what_strict_validation_accepts(project: Project) -> None:
    add_script(project.root, BODY, SWEEP)
    assert record(project) == 0
    path = project.record_path(HERE.name, "guide/small.py")
    assert record_problems(json.loads(path.read_text("utf-8")), "r") == []
    described = json.loads((path.parents[1] / "machine.json").read_text("utf-8"))
    assert machine_problems(described, "m") == []


def test_every_sample_is_kept_with_its_campaign_and_place(project: Project) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project)
    found = written(project)
    assert list(found.variants) == ["n=1", "n=2"]
    assert [run.metrics for run in found.variants["n=2"].runs] == [{"doubled": 4}, {"doubled": 4}]
    assert sorted(run.place for variant in found.variants.values() for run in variant.runs) == [0, 1, 2, 3]
    assert found.variants["n=1"].output == {"work": "2\n"}
    (campaign,) = found.campaigns.values()
    assert "python" in campaign.packages
    assert campaign.state["load_average"] >= 0
    assert found.history[0].medians == {"n=1": {"doubled": 2.0}, "n=2": {"doubled": 4.0}}


def test_what_is_fresh_does_not_run_again(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project)
    before = written(project)
    assert record(project) == 0
    assert written(project) == before
    assert "everything is fresh" in capsys.readouterr().err


def test_a_row_added_to_a_sweep_leaves_the_others_as_they_are(project: Project) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project)
    before = written(project)
    add_script(project.root, BODY, SWEEP.replace("[1, 2]", "[1, 2, 3]"))
    assert record(project) == 0
    after = written(project)
    assert list(after.variants) == ["n=1", "n=2", "n=3"]
    assert (after.variants["n=1"], after.variants["n=2"]) == (before.variants["n=1"], before.variants["n=2"])
    assert after.history[0] == before.history[0]
    assert after.history[1].variants == ["n=3"]


def test_a_row_whose_times_are_compared_brings_all_others_along(project: Project) -> None:
    timed = SWEEP.replace('"count"', '"s"')
    add_script(project.root, BODY, timed)
    record(project)
    before = written(project)
    add_script(project.root, BODY, timed.replace("[1, 2]", "[1, 2, 3]"))
    record(project)
    after = written(project)
    assert list(after.variants) == ["n=1", "n=2", "n=3"]
    assert len({variant.campaign for variant in after.variants.values()}) == 1
    assert not after.campaigns.keys() & before.campaigns.keys()


def test_a_variant_is_recorded_beside_its_baseline(project: Project) -> None:
    add_script(project.root, BODY, SWEEP.replace("[1, 2]", "[1, 2, 3]"))
    assert record(project, variant="n=3") == 0
    assert list(written(project).variants) == ["n=1", "n=3"]


def test_repeats_are_what_the_command_says(project: Project) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project, repeats=1)
    assert len(written(project).variants["n=1"].runs) == 1


def test_a_script_that_fails_writes_nothing_and_the_next_still_runs(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, "raise ValueError('ouch')", name="guide/a_bad.py")
    add_script(project.root, BODY, SWEEP)
    assert record(project) == 1
    assert not project.record_path(HERE.name, "guide/a_bad.py").exists()
    assert written(project).variants
    error = capsys.readouterr().err
    assert "snippets/guide/a_bad.py:11: ValueError in the cell `work`: ouch; fix the script" in error


def test_a_script_that_cannot_be_read_does_not_keep_the_others_from_running(project: Project) -> None:
    path = add_script(project.root, BODY, name="guide/a_bad.py").path
    (project.root / path).write_text("not a script", "utf-8")
    add_script(project.root, BODY, SWEEP)
    assert record(project) == 1
    assert written(project).variants


def test_leaving_before_the_checks_leaves_no_record(project: Project) -> None:
    add_script(project.root, "import sys\nsys.exit()")
    assert record(project) == 1
    assert not project.records.exists()


def test_out_of_memory_is_recorded_as_what_it_is(project: Project) -> None:
    add_script(project.root, "print('so far')\nx = bytearray(1 << 60)")
    assert record(project) == 0
    variant = written(project).variants["default"]
    assert (variant.outcome, variant.runs) == (OUT_OF_MEMORY, ())
    assert variant.error
    assert variant.error.startswith("snippets/guide/small.py:")
    assert "so far" in variant.output["work"]


@pytest.mark.parametrize(
    ("body", "outcome"),
    [("while True: pass", TIMED_OUT), ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", CRASHED)],
)
def test_a_hang_or_a_crash_is_recorded_and_reported(
    project: Project, body: str, outcome: str, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, body, 'needs = ["cpu"]\ntimeout = 0.2')
    assert record(project) == 1
    variant = written(project).variants["default"]
    assert (variant.outcome, variant.runs) == (outcome, ())
    assert (
        record_problems(json.loads(project.record_path(HERE.name, "guide/small.py").read_text()), "r") == []
    )


def test_a_crash_never_replaces_a_measurement_that_still_holds(project: Project) -> None:
    body = """
        import os, pathlib
        if pathlib.Path(__file__).with_name("crash").exists():
            os.abort()
    """
    add_script(project.root, body)
    record(project)
    before = written(project)
    (project.snippets / "guide/crash").touch()
    assert record(project, everything=True) == 1
    assert written(project) == before


def test_a_crash_replaces_a_measurement_of_other_code(project: Project) -> None:
    add_script(project.root, "x = 1")
    record(project)
    add_script(project.root, "import os\nos.abort()")
    assert record(project) == 1
    assert written(project).variants["default"].outcome == CRASHED


def test_a_crash_replaces_a_measurement_of_a_parameter_of_another_type(project: Project) -> None:
    work = "import os\nif type(fill) is float:\n    os.abort()"
    body = f"# %% parameters\nfill = {{}}\n\n# %% work\n{work}\n\n# %% checks\nassert fill"
    add_script(project.root, body.format(1))
    record(project)
    add_script(project.root, body.format(1.0))
    record(project)
    assert written(project).variants["default"].outcome == CRASHED


def test_ranks_are_recorded_each(project: Project) -> None:
    table = """
        needs = ["cpu"]
        ranks = 2
        repeats = 1
        [tool.benchbook.metrics]
        rank = { unit = "count" }
    """
    add_script(project.root, "import os\nrank = int(os.environ['RANK'])", table)
    assert record(project) == 0
    (run,) = written(project).variants["default"].runs
    assert run.metrics == {"rank": 0}
    assert [other.metrics for other in run.other_ranks] == [{"rank": 1}]


def test_at_its_smallest_a_script_runs_once_and_writes_nothing(project: Project) -> None:
    add_script(project.root, BODY, SWEEP + "    [tool.benchbook.smallest]\n    n = 7\n")
    assert record(project, smallest=True) == 0
    assert not project.records.exists()
    assert not project.journal.exists()


def test_at_its_smallest_a_script_that_fails_is_an_error(project: Project) -> None:
    add_script(project.root, "assert 1 > 2")
    assert record(project, smallest=True) == 1


@pytest.mark.parametrize(("smallest", "servers"), [(True, 1), (False, 2)])
@pytest.mark.usefixtures("with_packages")
def test_scripts_share_the_process_that_imports_where_nothing_is_measured(
    project: Project, tmp_path: Path, smallest: bool, servers: int
) -> None:
    noted = tmp_path / "servers"
    note = f"with open({str(noted)!r}, 'a') as file:\n    print(os.getppid(), file=file)"
    for name, imports in (("arrays", "numpy"), ("norms", "numpy.linalg")):
        add_script(project.root, f"import os\nimport {imports}\n{note}", name=f"guide/{name}.py")
    assert record(project, smallest=smallest) == 0
    assert len(set(noted.read_text().split())) == servers


@pytest.mark.usefixtures("with_packages")
def test_at_its_smallest_a_script_that_leaves_imports_to_itself_finds_none_made(project: Project) -> None:
    add_script(project.root, "import numpy", name="guide/arrays.py")
    body = "import sys\nassert 'numpy' not in sys.modules\nimport importlib\nimportlib.import_module('numpy')"
    add_script(project.root, body, name="guide/imports.py")
    assert record(project, smallest=True) == 0


# The plan


def test_a_plan_says_what_would_run_and_runs_nothing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, SWEEP)
    assert record(project, plan=True, plan_json=True) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["scripts"][0]["runs"] == 4
    assert table["expected_minutes"] is None
    assert not project.records.exists()


def test_a_plan_expects_what_earlier_runs_took(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project)
    capsys.readouterr()
    record(project, plan=True, plan_json=True, everything=True)
    assert json.loads(capsys.readouterr().out)["expected_minutes"] > 0


def test_a_plan_in_words_names_variants_and_reasons(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project, plan=True)
    text = capsys.readouterr().out
    assert "n=2" in text
    assert "never measured" in text


def test_a_guide_means_its_scripts(project: Project) -> None:
    add_script(project.root, BODY, SWEEP, name="one/small.py")
    add_script(project.root, BODY, SWEEP, name="two/small.py")
    plan = make_plan(project, ["two"], HERE, lambda _: None)
    assert [task.script.reference for task in plan.tasks] == ["two/small.py"]


@pytest.mark.parametrize("name", ["guide/small", "guide/small.py", "snippets/guide/small.py", "guide"])
def test_a_script_may_be_named_as_one_would(project: Project, name: str) -> None:
    add_script(project.root, BODY, SWEEP)
    assert len(make_plan(project, [name], HERE, lambda _: None).tasks) == 1


def test_a_name_that_is_none_says_what_is_near(project: Project) -> None:
    add_script(project.root, BODY, SWEEP)
    with pytest.raises(BenchbookError, match=r"guide/small\.py"):
        make_plan(project, ["guide/smal.py"], HERE, lambda _: None)


def test_a_script_for_another_machine_is_left_out_or_named(project: Project) -> None:
    add_script(project.root, BODY, 'needs = ["cuda"]')
    assert make_plan(project, [], HERE, lambda _: None).elsewhere == ("guide/small.py",)
    with pytest.raises(BenchbookError, match="needs cuda"):
        make_plan(project, ["guide/small.py"], HERE, lambda _: None)


def test_an_input_that_is_not_there_is_named(project: Project) -> None:
    add_script(project.root, BODY, 'needs = ["cpu"]\ninputs = ["data.csv"]')
    (problem,) = make_plan(project, [], HERE, lambda _: None).problems
    assert "data.csv" in problem.what


def test_no_run_is_kept_that_saw_another_input_than_the_record_names(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write(project.root / "snippets/guide/data.txt", "1")
    body = f"# %% work\nfrom pathlib import Path\ndata = Path({str(data)!r})\ndoubled = 2 * int(data.read_text())\n"
    body += "data.write_text('2')\n\n# %% checks\nassert doubled"
    add_script(
        project.root,
        body,
        'needs = ["cpu"]\ninputs = ["data.txt"]\n[tool.benchbook.metrics]\ndoubled = { unit = "count" }',
    )
    assert record(project) == 1
    assert load_record(project.record_path(HERE.name, "guide/small.py")) is None
    assert "its input data.txt changed while it was recorded" in capsys.readouterr().err
    # From then on it stays, and so do its runs.
    assert record(project) == 0
    (variant,) = written(project).variants.values()
    assert [run.metrics["doubled"] for run in variant.runs] == [4, 4]


# Interruptions


def task_of(project: Project) -> Task:
    add_script(project.root, BODY, SWEEP)
    (task,) = make_plan(project, [], HERE, lambda _: None).tasks
    return task


def journal_of(project: Project, task: Task, **key: Any) -> Journal:
    campaign = {"id": "c1", "started": "2026-11-20T12:00:00Z"}
    return open_journal(project.root / "j.jsonl", header(task, campaign, key), NOON)


def good(variant: Variant, _limit: float = math.inf) -> Result:
    rank = {"metrics": {"doubled": variant.parameters["n"]}, "cells": {}, "baseline_memory": 1}
    return Result(OK, None, {}, [rank], 1.0)


def ignore(_turn: Turn, _result: Result | None) -> None:
    pass


def forever() -> float:
    return math.inf


def dies_after(count: int) -> Callable[[Variant, float], Result]:
    runs = iter(range(count))

    def run(variant: Variant, _limit: float) -> Result:
        if next(runs, None) is None:
            raise KeyboardInterrupt
        return good(variant)

    return run


@pytest.mark.parametrize("after", range(4))
def test_a_recording_killed_at_any_run_goes_on_from_there(project: Project, after: int) -> None:
    task = task_of(project)
    assert gather(task, journal_of(project, task), dies_after(after), forever, ignore).ended == "interrupted"
    resumed = journal_of(project, task)
    assert len(resumed.finished) == after
    ran: list[str] = []

    def run(variant: Variant, _limit: float) -> Result:
        ran.append(variant.name)
        return good(variant)

    gathered = gather(task, resumed, run, forever, ignore)
    assert len(ran) == 4 - after
    places = [finished.place for runs in gathered.runs.values() for finished in runs]
    assert sorted(places) == [0, 1, 2, 3]


def test_a_line_that_was_being_written_is_forgotten(project: Project) -> None:
    task = task_of(project)
    gather(task, journal_of(project, task), dies_after(2), forever, ignore)
    path = project.root / "j.jsonl"
    path.write_text(path.read_text("utf-8")[:-20], "utf-8")
    assert len(journal_of(project, task).finished) == 1
    assert path.read_text("utf-8").endswith("\n")


def test_runs_of_other_code_packages_or_machine_are_not_gone_on_with(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task, packages={"torch": "2.13"})
    journal.add(Finished("n=1", 0, 0, good(task.variants[0])))
    assert len(journal_of(project, task, packages={"torch": "2.13"}).finished) == 1
    assert journal_of(project, task, packages={"torch": "2.14"}).finished == []


@pytest.mark.parametrize("value", [1.0, True])
def test_runs_of_a_parameter_of_another_type_are_not_gone_on_with(project: Project, value: object) -> None:
    task = task_of(project)
    journal_of(project, task).add(Finished("n=1", 0, 0, good(task.variants[0])))
    first, *others = task.variants
    task = replace(task, variants=(replace(first, parameters={"n": value}), *others))
    assert journal_of(project, task).finished == []


def test_runs_of_circumstances_of_another_type_are_not_gone_on_with(project: Project) -> None:
    task = task_of(project)
    journal_of(project, task, device=[1]).add(Finished("n=1", 0, 0, good(task.variants[0])))
    assert journal_of(project, task, device=[1.0]).finished == []


def test_a_sitting_of_last_month_is_not_gone_on_with(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task)
    journal.add(Finished("n=1", 0, 0, good(task.variants[0])))
    late = open_journal(journal.path, journal.header, NOON + timedelta(days=30))
    assert late.finished == []


def test_a_budget_stops_before_the_run_that_would_overrun_it(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task)
    left = iter([9.0, 9.0, 0.0, 0.0])
    assert gather(task, journal, good, lambda: next(left), ignore).ended == "spent"
    assert len(journal.finished) == 2


def test_the_next_run_is_expected_to_take_what_the_last_one_took(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task)
    # A run took a second: half of one is enough where nothing is known, and then no more.
    gather(task, journal, good, lambda: 0.5, ignore)
    assert {finished.round for finished in journal.finished} == {0}
    assert len(journal.finished) == 2


def test_a_run_ends_with_the_budget_and_that_says_nothing_of_it(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task)

    def hangs(_variant: Variant, limit: float) -> Result:
        assert limit == 3.0
        return Result(TIMED_OUT, Failure(1, "still in the cell", "make it shorter"), seconds=limit)

    left = iter([3.0, 0.0, 0.0, 0.0])
    assert gather(task, journal, hangs, lambda: next(left), ignore).ended == "spent"
    assert journal.finished == []
    (cut,) = journal_of(project, task).cuts
    # The next time it comes last.
    ran: list[str] = []

    def run(variant: Variant, _limit: float) -> Result:
        ran.append(variant.name)
        return good(variant)

    gather(task, journal_of(project, task), run, forever, ignore)
    assert ran[2:] == [cut, cut]


def test_a_run_that_was_given_less_than_its_timeout_after_its_host_ended_has_not_timed_out(
    project: Project,
) -> None:
    task = task_of(project)
    journal = journal_of(project, task)
    asked = task.variants[0].timeout

    def dies_with_its_host(_variant: Variant, limit: float) -> Result:
        # The first attempt took half of the budget, which had room for one.
        return Result(
            TIMED_OUT, Failure(1, "still in the cell", "make it shorter"), seconds=limit - asked / 2
        )

    left = iter([asked + 1, 0.0, 0.0, 0.0])
    gathered = gather(task, journal, dies_with_its_host, lambda: next(left), ignore)
    assert (gathered.runs, gathered.ended) == ({}, "spent")
    resumed = journal_of(project, task)
    assert (resumed.finished, len(resumed.cuts)) == ([], 1)


def timed_out_at(seconds: float) -> Callable[[Variant, float], Result]:
    failure = Failure(1, "still in the cell", "make it shorter")
    return lambda *_: Result(TIMED_OUT, failure, seconds=seconds)


def test_a_run_that_timed_out_is_tried_again_once_its_declared_timeout_was_raised(project: Project) -> None:
    task = task_of(project)
    asked = task.variants[0].timeout
    gather(task, journal_of(project, task), timed_out_at(asked), forever, ignore)
    assert gather(task, journal_of(project, task), good, forever, ignore).runs.keys() == {"n=1", "n=2"}
    assert {one.result.outcome for one in journal_of(project, task).finished} == {TIMED_OUT}
    raised = replace(task, variants=tuple(replace(each, timeout=asked * 2) for each in task.variants))
    gathered = gather(raised, journal_of(project, raised), dies_after(3), forever, ignore)
    assert gathered.ended == "interrupted"
    gathered = gather(raised, journal_of(project, raised), good, forever, ignore)
    for runs in gathered.runs.values():
        assert [one.result.outcome for one in runs] == [OK, OK]
    # What ran in time did so, whatever is declared later.
    assert {one.result.outcome for one in journal_of(project, task).finished} == {OK}


def test_of_a_run_that_timed_out_sooner_than_declared_now_nothing_is_recorded_before_it_is_tried_again(
    project: Project,
) -> None:
    task = task_of(project)
    asked = task.variants[0].timeout
    gather(task, journal_of(project, task), timed_out_at(asked), forever, ignore)
    raised = replace(task, variants=tuple(replace(each, timeout=asked * 2) for each in task.variants))
    gathered = gather(raised, journal_of(project, raised), good, lambda: 0.0, ignore)
    assert (gathered.runs, gathered.ended) == ({}, "spent")


def test_a_run_that_takes_longer_than_is_left_does_not_keep_shorter_ones_from_running(
    project: Project,
) -> None:
    task = replace(task_of(project), run_seconds={"n=1": 60.0, "n=2": None})
    gathered = gather(task, journal_of(project, task), good, lambda: 5.0, ignore)
    assert (list(gathered.runs), gathered.ended) == (["n=2"], "spent")


def test_an_estimate_keeps_no_run_from_being_the_first(project: Project) -> None:
    unknown: dict[str, float | None] = {"n=1": 60.0, "n=2": 60.0}
    task = replace(task_of(project), run_seconds=unknown, estimated=frozenset(unknown))
    ran: list[str] = []

    def run(variant: Variant, _limit: float) -> Result:
        ran.append(variant.name)
        return good(variant)

    gather(task, journal_of(project, task), run, lambda: 5.0, ignore)
    # The first tells how long its variant takes; of the other only the estimate is known.
    assert len(ran) == 2
    assert len(set(ran)) == 1


def test_a_script_that_used_up_a_budget_goes_last_the_next_time(project: Project) -> None:
    hang = "import time\ntime.sleep(60)"
    add_script(project.root, hang, 'needs = ["cpu"]\nworth = 9', "guide/hangs.py")
    add_script(project.root, BODY, SWEEP, "guide/quick.py")
    # So long, that its host starts within it on a busy machine too.
    assert record(project, budget_seconds=6.0) == 0
    assert not project.records.exists()
    assert record(project, budget_seconds=15.0) == 0
    assert len(written(project, "guide/quick.py").variants) == 2


def test_a_run_is_kept_before_anyone_is_told_of_it(project: Project) -> None:
    task = task_of(project)
    journal = journal_of(project, task)

    def interrupted(_turn: Turn, result: Result | None) -> None:
        if result is not None:
            raise KeyboardInterrupt

    assert gather(task, journal, good, forever, interrupted).ended == "interrupted"
    assert len(journal_of(project, task).finished) == 1


def test_a_script_that_hangs_is_ended_within_the_budget(project: Project) -> None:
    add_script(project.root, "import time\ntime.sleep(60)")
    began = time.monotonic()
    assert record(project, budget_seconds=3.0) == 0
    assert time.monotonic() - began < 30
    assert not project.records.exists()


def test_a_budget_that_is_spent_says_what_is_left_and_writes_nothing_yet(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, SWEEP)
    assert record(project, budget_seconds=0.0) == 0
    assert "the budget is spent; left: 1 script(s), 4 run(s)" in capsys.readouterr().err
    assert not project.records.exists()


def stopped(
    project: Project, monkeypatch: pytest.MonkeyPatch, after: int, how: str = "spent", **options: Any
) -> int:
    """Record until so many runs are done, and have no more time, or be interrupted; the exit code."""
    if how == "spent":
        with time_for(after, monkeypatch):
            return record(project, **options)
    run_once, runs = campaigns.run_once, iter(range(after))

    def until(*arguments: Any, **named: Any) -> Result:
        if next(runs, None) is None:
            raise KeyboardInterrupt
        return run_once(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(campaigns, "run_once", until)
        return record(project, **options)


@pytest.mark.parametrize("how", ["spent", "interrupted"])
def test_what_is_whole_is_written_when_a_recording_stops_and_the_rest_comes_later(
    project: Project, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    add_script(project.root, BODY, SWEEP)
    assert stopped(project, monkeypatch, 3, how) == (recording.INTERRUPTED if how == "interrupted" else 0)
    begun = written(project)
    assert [len(variant.runs) for variant in begun.variants.values()] == [2]
    assert record(project) == 0
    done = written(project)
    assert [len(variant.runs) for variant in done.variants.values()] == [2, 2]
    # One campaign, as if nobody had stopped it: its times may be compared, and it is one line of the history.
    assert len({variant.campaign for variant in done.variants.values()}) == len(done.campaigns) == 1
    assert sorted(run.place for variant in done.variants.values() for run in variant.runs) == [0, 1, 2, 3]
    assert [(line.variants, sorted(line.medians)) for line in done.history] == [
        ([*begun.variants, *(set(done.variants) - set(begun.variants))], ["n=1", "n=2"])
    ]


def test_a_record_says_when_its_campaign_was_gone_on_with(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By each session that took runs of it, and by no other."""
    add_script(project.root, BODY, SWEEP.replace("[1, 2]", "[1, 2, 3]"))
    moments = [datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in range(12, 17)]
    for moment, runs in zip(moments, (2, 0, 2, 0), strict=False):
        monkeypatch.setattr(campaigns, "now", lambda moment=moment: moment)
        stopped(project, monkeypatch, runs)
    (campaign,) = written(project).campaigns.values()
    assert isinstance(campaign, Campaign)
    assert (campaign.started, campaign.resumed) == ("2026-11-20T12:00:00Z", ("2026-11-20T14:00:00Z",))
    monkeypatch.setattr(campaigns, "now", lambda: moments[-1])
    assert record(project) == 0
    (campaign,) = written(project).campaigns.values()
    assert isinstance(campaign, Campaign)
    assert campaign.resumed == ("2026-11-20T14:00:00Z", "2026-11-20T16:00:00Z")
    assert campaign.resumed[-1] <= campaign.finished


def test_a_campaign_all_of_whose_runs_are_of_one_session_was_not_gone_on_with(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though it was begun by one before, which was killed in its first run."""
    add_script(project.root, BODY, SWEEP)
    stopped(project, monkeypatch, 0)
    monkeypatch.setattr(campaigns, "now", lambda: datetime.now(UTC) + timedelta(minutes=5))
    assert record(project) == 0
    (campaign,) = written(project).campaigns.values()
    assert isinstance(campaign, Campaign)
    assert campaign.resumed == ()


def test_an_interrupted_recording_says_why_the_scripts_before_it_failed(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(
        project.root, "assert 1 == 2, 'two sums differ'", 'needs = ["cpu"]\nworth = 9', "guide/fails.py"
    )
    add_script(project.root, BODY, SWEEP)
    assert stopped(project, monkeypatch, 2, "interrupted") == recording.INTERRUPTED
    assert "two sums differ" in capsys.readouterr().err


def test_a_campaign_that_is_gone_on_with_after_another_is_one_line_of_the_history_where_it_was(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, BODY, SWEEP)
    stopped(project, monkeypatch, 3)
    begun = written(project)
    (line,) = begun.history
    another = replace(line, campaign="another")
    Checkout(project, HERE).save(replace(begun, history=(line, another)))
    assert record(project) == 0
    first, last = written(project).history
    assert (first.campaign, sorted(first.medians), last) == (line.campaign, ["n=1", "n=2"], another)


def test_a_stopped_recording_hands_over_nothing_that_is_not_whole(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, BODY, SWEEP)
    stopped(project, monkeypatch, 2)
    assert not project.records.exists()


TIMED = SWEEP.replace('doubled = { unit = "count" }', 'doubled = { unit = "s" }')


def test_times_of_two_campaigns_never_stand_in_one_record(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, BODY.replace("2 * n", "2.0 * n"), TIMED)
    record(project)
    (before,) = written(project).campaigns
    stopped(project, monkeypatch, 3, everything=True)
    assert set(written(project).campaigns) == {before}
    record(project, everything=True)
    (after,) = written(project).campaigns
    assert after != before


def test_of_a_timed_script_nothing_is_written_without_its_baseline(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of two variants the baseline goes last in each round: the other is whole before it.
    monkeypatch.setattr(campaigns.random.Random, "shuffle", lambda _, names: names.reverse())
    add_script(project.root, BODY.replace("2 * n", "2.0 * n"), TIMED)
    assert stopped(project, monkeypatch, 3) == 0
    assert not project.records.exists()


def test_what_one_variant_is_asked_for_costs_the_others_no_finished_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, BODY, SWEEP.replace("[1, 2]", "[1, 2, 3]"))
    # Of six runs two are left: those of one other variant at least are half done.
    stopped(project, monkeypatch, 4)
    journal = project.journal / HERE.name / "guide/small.jsonl"
    kept = {line for line in journal.read_text("utf-8").splitlines() if '"variant": "n=1"' not in line}
    assert record(project, variant="n=1", everything=True) == 0
    assert kept <= set(journal.read_text("utf-8").splitlines())
    assert record(project) == 0
    assert not journal.exists()
    assert len(written(project).campaigns) == 1


def test_a_stopped_recording_says_what_went_wrong_before(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "# %% parameters\nn = 1\n\n# %% work\ndoubled = 2 * n\n\n# %% checks\nassert n == 2, 'not so'"
    add_script(project.root, body, SWEEP)
    assert stopped(project, monkeypatch, 2) == 1
    assert "a check does not hold" in capsys.readouterr().err


def test_one_bad_run_among_good_ones_is_the_outcome_and_no_sample_is_shown(project: Project) -> None:
    task = task_of(project)
    variant = task.variants[0]
    bad = Result(OUT_OF_MEMORY, Failure(9, "no more", "less"), {"work": "so far"}, [], 2.0)
    record = variant_record(
        task, variant, "c1", [Finished("n=1", 0, 0, good(variant)), Finished("n=1", 1, 2, bad)]
    )
    assert (record.outcome, record.runs) == (OUT_OF_MEMORY, ())
    assert record.error == "snippets/guide/small.py:9: no more (run 2 of 2)"


def test_a_variant_that_fails_once_is_not_recorded_from_its_other_runs(project: Project) -> None:
    task = task_of(project)
    seen: Counter[str] = Counter()

    def run(variant: Variant, _limit: float) -> Result:
        seen[variant.name] += 1
        if variant.name == "n=1" and seen["n=1"] == 2:
            return Result(FAILED, Failure(9, "fell", "fix it"))
        return good(variant)

    gathered = gather(task, journal_of(project, task), run, forever, ignore)
    assert list(gathered.runs) == ["n=2"]
    assert [problem.line for problem in gathered.problems] == [9]


# A shell that starts the tests in the background lets them ignore SIGINT, and what they start with them.
COMMAND = """
import signal
import sys
from pathlib import Path
from benchbook.recording import campaign as campaigns
from benchbook.recording import command as recording
from benchbook.content.project import Project
signal.signal(signal.SIGINT, signal.default_int_handler)
recording.find_accelerators = lambda *_: None
sys.exit(recording.record_command(Project(Path(sys.argv[1])), []))
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_no_process_and_no_record(tmp_path: Path, how: signal.Signals) -> None:
    project = small_project(tmp_path)
    temporary = Path(tempfile.mkdtemp(dir="/tmp"))
    body = """
        import os, pathlib, signal
        with pathlib.Path(__file__).with_name("fifo").open("w") as told:
            told.write(str(os.getpid()))
        signal.pause()
    """
    add_script(tmp_path, body)
    fifo = tmp_path / "snippets/guide/fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": "scripts", "TMPDIR": str(temporary)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert select.select([reader], [], [], 60)[0]
    script = psutil.Process(int(os.read(reader, 100)))
    os.close(reader)
    _server, host, *_ = script.parents()
    command.send_signal(how)
    _, error = command.communicate(timeout=60)
    script.wait(timeout=60)
    host.wait(timeout=60)
    temporary.rmdir()  # which only an empty folder lets happen
    if how == signal.SIGKILL:
        assert command.returncode == -how
    else:
        assert command.returncode == 130
        assert "interrupted" in error
    assert not project.records.exists()


def test_two_recordings_at_once_would_spoil_each_other(project: Project) -> None:
    add_script(project.root, BODY, SWEEP)
    with only_recording(project), pytest.raises(BenchbookError, match="another recording"):
        record(project)


def ends_meanwhile(monkeypatch: pytest.MonkeyPatch, other: Callable[[], object]) -> None:
    """Another recording, which was under way, comes to its end just before the next one can begin."""
    lock = recording.only_recording

    def late(project: Project, bundle: Path | None) -> contextlib.AbstractContextManager[None]:
        monkeypatch.setattr(recording, "only_recording", lock)
        other()
        return lock(project, bundle)

    monkeypatch.setattr(recording, "only_recording", late)


def test_what_another_recording_wrote_last_is_kept_and_not_measured_again(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, SWEEP, name="guide/one.py")
    add_script(project.root, BODY, SWEEP, name="guide/two.py")
    path = tmp_path / "here.json"
    ends_meanwhile(monkeypatch, lambda: record(project, "guide/one.py", bundle=path))
    assert record(project, "guide/two.py", bundle=path) == 0
    held = json.loads(path.read_text("utf-8"))["records"]
    assert [each["script"] for each in held] == ["guide/one.py", "guide/two.py"]
    ends_meanwhile(monkeypatch, lambda: record(project))
    capsys.readouterr()
    assert record(project) == 0
    assert "everything is fresh" in capsys.readouterr().err


def test_recordings_of_two_checkouts_into_one_bundle_would_lose_records(
    project: Project, tmp_path: Path
) -> None:
    add_script(project.root, BODY, SWEEP)
    other, path = small_project(tmp_path / "other"), tmp_path / "out/here.json"
    refused = r"here\.json:1: another recording writes this bundle; wait"
    with only_recording(other, path), pytest.raises(BenchbookError, match=refused):
        record(project, bundle=path)
    assert record(project, bundle=path) == 0
    assert [each.name for each in path.parent.iterdir()] == ["here.json"]


def test_a_link_is_no_lock_of_a_bundle(project: Project, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text("what somebody measured", "utf-8")
    (tmp_path / ".here.json.lock").symlink_to(kept)
    add_script(project.root, BODY, SWEEP)
    with pytest.raises(BenchbookError, match=r"^\.here\.json\.lock:1: is a link to another place; remove it"):
        record(project, bundle=tmp_path / "here.json")
    assert kept.read_text("utf-8") == "what somebody measured"


def test_a_plan_waits_for_no_recording(project: Project, tmp_path: Path) -> None:
    add_script(project.root, BODY, SWEEP)
    with only_recording(project, tmp_path / "here.json"):
        assert record(project, plan=True, bundle=tmp_path / "here.json") == 0


# Bundles


def test_a_bundle_is_what_import_takes(project: Project, tmp_path: Path) -> None:
    add_script(project.root, BODY, SWEEP.replace("repeats = 2", "repeats = 3"))
    bundle = tmp_path / "out" / "here.json.gz"
    assert record(project, bundle=bundle) == 0
    assert not project.records.exists()
    table = json.loads(gzip.decompress(bundle.read_bytes()))
    assert set(table) == {"schema", "digest", "machine", "records"}
    import_bundles(project, [bundle], reviewed=True)
    assert len(written(project).variants["n=1"].runs) == 3


def test_a_record_that_no_file_can_hold_is_named_and_keeps_no_other_from_being_written(
    project: Project, tmp_path: Path
) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project)
    good = written(project)
    bad = replace(good, script="guide/bad.py", variants={"\ud800": good.variants["n=1"]})
    checkout = Checkout(project, HERE)
    for store in (checkout, Bundle(tmp_path / "here.json", checkout, HERE)):
        with pytest.raises(BenchbookError, match=r"guide/bad\.json:1: cannot be written .* half a character"):
            store.save(bad)
        store.save(good)


@pytest.mark.parametrize("bundled", [False, True])
@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (
            "benchbook.content.formats.LARGEST_FILE",
            "no record can hold what its runs yield: it is larger than",
        ),
        (
            "benchbook.content.formats.MOST_VALUES",
            "no record can hold what its runs yield: it holds more than",
        ),
        ("benchbook.recording.stores.LARGEST_BUNDLE", "here.json:1: would be larger than"),
    ],
)
def test_what_could_not_be_read_again_is_not_written_and_no_run_of_it_is_lost(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bundled: bool,
    limit: str,
    said: str,
) -> None:
    add_script(project.root, BODY, SWEEP)
    bundle = tmp_path / "here.json" if bundled else None
    refused = bundled or "BUNDLE" not in limit
    with monkeypatch.context() as patch:
        patch.setattr(limit, 100)
        assert record(project, bundle=bundle) == (1 if refused else 0)
    if not refused:
        return
    assert said in capsys.readouterr().err
    assert not [*tmp_path.rglob("here.json"), *project.records.rglob("*.json")]
    # Nothing is measured twice.
    assert record(project, bundle=bundle) == 0
    assert " ok " not in capsys.readouterr().err


def test_a_bundle_that_was_begun_is_gone_on_with(project: Project, tmp_path: Path) -> None:
    add_script(project.root, BODY, SWEEP, name="guide/one.py")
    add_script(project.root, BODY, SWEEP, name="guide/two.py")
    path = tmp_path / "here.json"
    record(project, "guide/one.py", bundle=path)
    first = json.loads(path.read_text("utf-8"))["records"]
    record(project, bundle=path)
    both = json.loads(path.read_text("utf-8"))["records"]
    assert [each["script"] for each in both] == ["guide/one.py", "guide/two.py"]
    assert both[0] == first[0]


@pytest.mark.parametrize(
    ("target", "begun", "stays", "goes"),
    [
        ("monday", ["tuesday"], "monday", "tuesday"),
        ("tuesday", ["monday"], "tuesday", "monday"),
        ("new", ["monday", "tuesday"], "tuesday", "monday"),
        ("new", ["tuesday", "monday"], "tuesday", "monday"),
    ],
)
def test_a_bundle_keeps_what_it_holds_and_takes_over_what_was_measured_last(
    project: Project,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    target: str,
    begun: list[str],
    stays: str,
    goes: str,
) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project)
    whole = written(project)
    ((name, campaign),) = whole.campaigns.items()
    assert isinstance(campaign, Campaign)
    ended = {"monday": "2026-11-02T12:00:00Z", "tuesday": "2026-11-03T12:00:00Z"}
    variants = {"monday": whole.variants, "tuesday": {"n=1": replace(whole.variants["n=1"], output={})}}
    for day in ended:
        measured = {name: replace(campaign, finished=ended[day])}
        store = Bundle(tmp_path / f"{day}.json", Checkout(project, HERE), HERE)
        store.save(replace(whole, campaigns=measured, variants=variants[day]))
    earlier = [tmp_path / f"{day}.json" for day in begun]
    gone_on = Bundle(tmp_path / f"{target}.json", Checkout(project, HERE), HERE, earlier)
    found = gone_on.load("guide/small.py")
    assert found is not None
    assert found.variants == variants[stays]
    record(project, bundle=tmp_path / f"{target}.json", begun=earlier, plan=True)
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"left out of {target}.json: guide/small.py as it was measured until {ended[goes]}, "
        f"for what was measured until {ended[stays]}"
    )


def test_a_bundle_says_nothing_of_an_earlier_state_of_what_it_holds(project: Project, tmp_path: Path) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project, bundle=tmp_path / "whole.json")
    (earlier := tmp_path / "earlier.json").write_bytes((tmp_path / "whole.json").read_bytes())
    assert Bundle(tmp_path / "whole.json", Checkout(project, HERE), HERE, [earlier]).left_out == []


def test_a_bundle_that_is_not_there_is_not_gone_on_with(project: Project, tmp_path: Path) -> None:
    with pytest.raises(BenchbookError, match=r"earlier\.json:1: is not there, and was to be gone on with"):
        Bundle(tmp_path / "new.json", Checkout(project, HERE), HERE, [tmp_path / "earlier.json"])


@pytest.mark.parametrize("there", [True, False])
def test_a_bundle_takes_the_place_of_no_link(project: Project, tmp_path: Path, there: bool) -> None:
    add_script(project.root, BODY, SWEEP)
    link = tmp_path / "mine.json"
    link.symlink_to(tmp_path / "elsewhere.json")
    if there:
        assert record(project, bundle=tmp_path / "elsewhere.json") == 0
    with pytest.raises(BenchbookError, match=r"mine\.json:1: is a link to another place; name the file"):
        record(project, bundle=link)
    assert (link.is_symlink(), link.exists()) == (True, there)


def test_a_file_that_is_no_bundle_is_not_overwritten(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("precious", "utf-8")
    with pytest.raises(BenchbookError, match="is not a bundle"):
        Bundle(path, Checkout(project, HERE), HERE)
    assert path.read_text("utf-8") == "precious"


def test_a_bundle_that_was_damaged_is_not_gone_on_with(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "bundle.json.gz"
    damaged = {"schema": 1, "variants": [], "campaigns": {}, "history": []}
    table = {"schema": 1, "machine": {"name": HERE.name}, "records": [damaged]}
    # A header of gzip, and then a block of a kind that there is not.
    for content in (gzip.compress(b"x")[:10] + b"\xff" * 20, json.dumps(table).encode(), b"[]"):
        path.write_bytes(content)
        with pytest.raises(BenchbookError, match="is not a bundle"):
            Bundle(path, Checkout(project, HERE), HERE)


def test_a_bundle_that_was_changed_since_is_not_sealed_anew(project: Project, tmp_path: Path) -> None:
    add_script(project.root, BODY, SWEEP, name="guide/one.py")
    path = tmp_path / "here.json"
    record(project, "guide/one.py", bundle=path)
    table = json.loads(path.read_text("utf-8"))
    (campaign,) = table["records"][0]["campaigns"].values()
    campaign["recorded_by"] = "somebody else"
    path.write_text(json.dumps(table), "utf-8")
    with pytest.raises(BenchbookError, match="was changed since it was written"):
        Bundle(path, Checkout(project, HERE), HERE)


# Circumstances


def test_the_commit_and_whether_the_tree_differs_from_it_are_noted(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    assert commit(tmp_path) == (None, True)
    (tmp_path / "snippets/records").mkdir(parents=True)
    (tmp_path / "snippets/a.py").write_text("1\n")
    git("init")
    git("add", ".")
    git("-c", "user.name=n", "-c", "user.email=e@e", "commit", "-m", "m")
    head, modified = commit(tmp_path)
    assert head is not None
    assert len(head) == 40
    assert not modified
    (tmp_path / "snippets/records/r.json").write_text("{}\n")
    assert not commit(tmp_path)[1]
    (tmp_path / "snippets/a.py").write_text("2\n")
    assert commit(tmp_path)[1]


def test_others_on_the_device_are_seen() -> None:
    busy = FakeGpu("GPU-aaaa", pids=[77], used=900 * MIB)
    assert DeviceWatch(Nvml(FakeNvml(busy)), [Identity("aaaa")]).foreign() == [77]


def test_others_that_a_container_hides_are_given_away_by_their_memory() -> None:
    busy = FakeGpu("GPU-aaaa", used=900 * MIB)
    assert DeviceWatch(Nvml(FakeNvml(busy)), [Identity("aaaa")]).foreign() == [0]


def test_an_idle_device_has_no_others() -> None:
    idle = FakeGpu("GPU-aaaa", used=4 * MIB)
    assert DeviceWatch(Nvml(FakeNvml(idle)), [Identity("aaaa")]).foreign() == []


def test_where_nothing_tells_others_are_unknown() -> None:
    watch = DeviceWatch(None, [])
    assert watch.foreign() is None
    assert watch.state()["driver"] is None


def test_a_variant_is_recorded_in_the_scripts_that_have_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, SWEEP, "guide/sweep.py")
    add_script(project.root, BODY, name="guide/plain.py")
    assert record(project, variant="n=2", plan=True, plan_json=True) == 0
    planned = json.loads(capsys.readouterr().out)["scripts"]
    assert [each["script"] for each in planned] == ["guide/sweep.py"]


def test_a_variant_that_no_script_has_is_a_problem_of_each(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY, SWEEP, "guide/sweep.py")
    assert record(project, variant="n=3", plan=True) == 1
    assert (
        "sweep.py:1: has no variant `n=3`; use one of the variants there are: n=" in capsys.readouterr().err
    )
    assert record(project, variant="n=3\n::error::x", plan=True) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "has no variant `n=3\\n::error::x`; use one" in line


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, gpu: FakeGpu) -> str:
    description = accelerator_table(name=gpu.name, vendor="NVIDIA", memory_bytes=gpu.total, count=1)
    found = Accelerators("cuda", description, (Identity(gpu.uuid),))
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: found)
    monkeypatch.setattr("benchbook.recording.session.open_nvml", lambda: Nvml(FakeNvml(gpu)))
    return describe(found).name


def test_a_device_that_others_use_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    on_a_gpu(monkeypatch, FakeGpu("GPU-aaaa", pids=[77]))
    add_script(project.root, BODY, 'needs = ["accelerator"]')
    with pytest.raises(BenchbookError, match="--shared"):
        record(project)
    assert not project.records.exists()


def test_a_shared_device_is_recorded_and_marked(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    name = on_a_gpu(monkeypatch, FakeGpu("GPU-aaaa", pids=[77]))
    add_script(project.root, BODY, 'needs = ["accelerator"]')
    assert record(project, shared=True) == 0
    found = load_record(project.record_path(name, "guide/small.py"))
    assert found is not None
    (campaign,) = found.campaigns.values()
    assert (campaign.state["shared"], campaign.state["foreign_processes"]) == (True, [77])
    assert campaign.state["power_limit_watts"] == 700.0


@pytest.mark.parametrize(
    ("seen", "told"),
    [([77], [77]), ([], []), (None, None)],
)
def test_others_that_one_session_of_a_campaign_saw_are_in_its_record(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    seen: list[int] | None,
    told: list[int] | None,
) -> None:
    monkeypatch.setattr(DeviceWatch, "foreign", lambda _: [])
    add_script(project.root, BODY, SWEEP)
    see_others = Journal.see_others

    def at_the_end(journal: Journal, _: object) -> list[int] | None:
        return see_others(journal, seen)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "see_others", at_the_end)
        stopped(project, patch, 3)
    assert record(project) == 0
    (campaign,) = written(project).campaigns.values()
    assert (campaign.state["foreign_processes"], campaign.state["shared"]) == (told, bool(told))


def test_a_device_that_nothing_can_watch_is_recorded_with_a_warning(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = on_a_gpu(monkeypatch, FakeGpu("GPU-aaaa", pids=[77]))
    monkeypatch.setattr("benchbook.recording.session.open_nvml", lambda: None)
    add_script(project.root, BODY, 'needs = ["accelerator"]')
    assert record(project) == 0
    assert "install nvidia-ml-py" in capsys.readouterr().err
    found = load_record(project.record_path(name, "guide/small.py"))
    assert found is not None
    assert [campaign.state["foreign_processes"] for campaign in found.campaigns.values()] == [None]


def test_a_machine_may_be_recorded_as_its_processor_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    add_script(project.root, "import os\nassert os.environ['CUDA_VISIBLE_DEVICES'] == ''")
    assert record(project, machine="cpu-quiet") == 0
    assert (project.records / "cpu-quiet/guide/small.json").exists()


def test_a_name_that_cannot_be_a_machines_is_refused(project: Project) -> None:
    with pytest.raises(BenchbookError, match="cannot name this machine"):
        record(project, machine="My Laptop")


def test_who_measured_is_shown(project: Project) -> None:
    add_script(project.root, BODY, SWEEP)
    record(project, recorded_by="someone")
    found = load_record(project.record_path(f"{HERE.name}--someone", "guide/small.py"))
    assert found is not None
    assert next(iter(found.campaigns.values())).recorded_by == "someone"


def test_who_measures_is_not_left_empty(project: Project) -> None:
    for options in ({}, {"plan": True, "machine": "nvidia-h200-141gb"}):
        with pytest.raises(BenchbookError) as refused:
            record(project, recorded_by="", **options)
        assert str(refused.value) == "--recorded-by:1: is empty; say who measures, or leave it out"


def test_the_recorder_needs_neither_torch_nor_what_builds_pages() -> None:
    code = (
        "import sys; import benchbook.recording.command, benchbook.recording.host_process\n"
        "print([name for name in ('torch', 'mkdocs', 'pydantic', 'babel', 'markdown_it') if name in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": "scripts"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == "[]"
