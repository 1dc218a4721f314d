"""What is timed in several blocks of one process stays told apart from what several processes measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.plausibility import plausibility_problems
from benchbook.content.project import Project
from benchbook.content.records import dump_record, load_record
from benchbook.content.units import UNITS
from benchbook.content.validation import record_problems
from benchbook.languages.language import load_language
from benchbook.machines.description import describe
from benchbook.query.measurements import Measurement
from benchbook.recording import command as recording
from benchbook.rendering.provenance import result_rows
from builders import MACHINE_JSON
from running import add_script

HERE = describe(None)
ROOT = Path(__file__).resolve().parents[2]
TABLE = """
    needs = ["cpu"]
    repeats = 2
    [tool.benchbook.metrics]
    step_seconds = { unit = "s", better = "lower", blocks = true }
"""
BODY = "# %% time\nimport time\nbegan = time.perf_counter()\nstep_seconds = [time.perf_counter() - began for _ in range(3)]\n\n# %% checks\nassert step_seconds"


def recorded(project: Project, body: str = BODY) -> dict[str, Any]:
    add_script(project.root, body, TABLE)
    recording.record_command(project, [])
    record = load_record(project.record_path(HERE.name, "guide/small.py"))
    assert record is not None
    table: dict[str, Any] = json.loads(dump_record(record))
    return table


def test_the_sample_of_a_process_is_the_median_of_its_blocks_and_each_is_kept(project: Project) -> None:
    table = recorded(project)
    runs = table["variants"]["default"]["runs"]
    assert [len(run["blocks"]["step_seconds"]) for run in runs] == [3, 3]
    assert [run["metrics"]["step_seconds"] for run in runs] == [
        sorted(run["blocks"]["step_seconds"])[1] for run in runs
    ]
    assert record_problems(table, "small.json") == []


def test_a_metric_without_a_list_has_no_blocks(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    add_script(project.root, "# %% time\nstep_seconds = 1.0\n\n# %% checks\nassert step_seconds", TABLE)
    assert recording.record_command(project, []) == 1
    assert "small.py:14: the metric `step_seconds` has blocks, and is one number" in capsys.readouterr().err


def test_more_points_than_a_record_may_hold_are_a_problem_of_the_script_after_one_run(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, BODY.replace("range(3)", "range(2501)"), TABLE)
    assert recording.record_command(project, []) == 1
    said = capsys.readouterr().err
    assert "a run yields 2501 points of series and blocks, and all 2 may hold 5000; give it fewer" in said
    assert "run 2" not in said
    assert not project.record_path(HERE.name, "guide/small.py").exists()


@pytest.mark.parametrize(
    ("value", "odd"),
    [
        ("1e-300", "1e-300 s, less than any clock tells"),
        ("-1.0", "not positive"),
        ("True", "True, which is no number of s"),
        ("[1.0, 1e11]", "1e+11 s, more than the 1e+10 that there can be"),
    ],
)
def test_a_number_that_no_record_may_hold_is_a_problem_of_the_script(
    project: Project, capsys: pytest.CaptureFixture[str], value: str, odd: str
) -> None:
    table = TABLE.replace(", blocks = true", "")
    add_script(project.root, f"# %% time\nstep_seconds = {value}\n\n# %% checks\nassert step_seconds", table)
    assert recording.record_command(project, []) == 1
    assert f"small.py:10: the metric `step_seconds` is {odd}" in capsys.readouterr().err
    assert not project.record_path(HERE.name, "guide/small.py").exists()


def test_a_record_without_blocks_says_nothing_of_them(project: Project) -> None:
    add_script(project.root, "pass")
    recording.record_command(project, [])
    assert "blocks" not in project.record_path(HERE.name, "guide/small.py").read_text("utf-8")


def test_a_metric_that_is_not_the_median_of_its_blocks_is_refused(project: Project) -> None:
    table = recorded(project)
    table["variants"]["default"]["runs"][0]["metrics"]["step_seconds"] = 0.5
    (problem,) = record_problems(table, "small.json")
    assert "step_seconds is not the median of its blocks" in problem.what


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([0.5, 0.5, 0.5], "step_seconds is the same in 3 blocks, as no time is"),
        ([-1.0, 0.5, 0.6], "a block of step_seconds is not positive"),
        (None, "its runs do not hold blocks of step_seconds alone"),
    ],
)
def test_blocks_that_no_clock_can_have_read_are_refused(
    project: Project, blocks: list[float] | None, said: str
) -> None:
    table = recorded(project)
    run = table["variants"]["default"]["runs"][0]
    if blocks is None:
        del run["blocks"]
    else:
        run["blocks"]["step_seconds"], run["metrics"]["step_seconds"] = blocks, sorted(blocks)[1]
    script = add_script(project.root, BODY, TABLE)
    found = [problem.what for problem in plausibility_problems(table, MACHINE_JSON, script, "small.json")]
    assert any(said in what for what in found), found


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "3 timed blocks, ±10%"),
        ("zh", "3 个计时段，±10%"),
        ("ja", "計時区間 3 個、±10%"),
    ],
)
def test_a_page_shows_how_blocks_scatter_beside_how_processes_do(language: str, said: str) -> None:
    source: Any = type("Quoted", (), {"quoted": False})()
    measured = Measurement(source, UNITS["s"], (1.0, 2.0), blocks=((0.9, 1.0, 1.1), (2.0, 2.0, 2.0)))
    rows = {key: text for key, _, text in result_rows(measured, load_language(ROOT / "docs", language), "x")}
    assert rows["blocks"].replace("\u00a0", "") == said
    assert "1" in rows["samples"]
    assert "2" in rows["samples"]
