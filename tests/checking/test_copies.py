"""What was measured once is not measured again: no copy passes for another measurement."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from benchbook.checking.copies import copied_run_problems, copy_problems, known_samples
from benchbook.content.records import dump_record
from benchbook.content.script import parse_script
from builders import SCRIPT, make_record

# With as many cells as are told when one of them is altered.
TIMED = SCRIPT.replace('total = { unit = "count" }', 'took = { unit = "s" }').replace(
    "# %% checks", "# %% more\ntook = 0.01\n\n# %% checks"
)


def measured(runs: int = 3) -> dict[str, Any]:
    """A record of so many runs of two processes, whose times have many digits, with a trace."""
    table: dict[str, Any] = json.loads(dump_record(make_record(TIMED)))
    variant = table["variants"]["default"]
    variant["traces"] = {"steps": {"sha256": "ab" * 32}}
    del variant["runs"][runs:]
    for run in variant["runs"]:
        for number, cell in enumerate(run["cells"].values()):
            cell["seconds"] *= 1.01234567 + run["place"] / 97 + number / 89
        other = {name: copy.deepcopy(run[name]) for name in ("metrics", "cells", "baseline_memory")}
        for cell in other["cells"].values():
            cell["seconds"] *= 1.02345678
        run["other_ranks"] = [other]
    return table


def exchange_processes(run: dict[str, Any]) -> None:
    (other,) = run["other_ranks"]
    for name in other:
        run[name], other[name] = other[name], run[name]


def slow_down(run: dict[str, Any]) -> None:
    for rank in (run, *run["other_ranks"]):
        for number, cell in enumerate(rank["cells"].values()):
            cell["seconds"] *= 1.1 + run["place"] / 83 + number / 79


def leave(run: dict[str, Any]) -> None:
    """Nothing of it changes."""


def told(table: dict[str, Any], change: Callable[[dict[str, Any]], None], **changes: Any) -> list[str]:
    """What is said of a record on another machine, of which each run was changed."""
    copied = copy.deepcopy(table) | {"machine": "cpu-other"}
    for variant in copied["variants"].values():
        variant |= changes
        for run in variant["runs"]:
            change(run)
    return [problem.what for problem in copy_problems(copied, known_samples(table), "copied.json")]


@pytest.mark.parametrize("runs", [1, 2, 3])
@pytest.mark.parametrize("change", [leave, exchange_processes])
def test_a_copy_is_one_in_however_few_runs_and_whichever_process_comes_first(
    runs: int, change: Callable[[dict[str, Any]], None]
) -> None:
    table = measured(runs)
    (what,) = told(table, change, traces={})
    assert what == f"variant default: its times are those of {table['machine']}"


def test_a_copied_trace_is_one_beside_other_times() -> None:
    table = measured()
    (what,) = told(table, slow_down)
    assert what == f"variant default: its traces are those of {table['machine']}"
    assert told(table, slow_down, traces={}) == []


def copied_runs(table: dict[str, Any]) -> list[str]:
    """What is said of the runs of a record beside each other."""
    script = parse_script(TIMED, "snippets/sums/add.py", "sums/add.py")
    return [problem.what for problem in copied_run_problems(table, script, "copied.json")]


def test_a_run_of_another_machine_is_a_copy_among_others_that_are_none() -> None:
    table = measured()
    copied = copy.deepcopy(table) | {"machine": "cpu-other"}
    variant = copied["variants"]["default"]
    first, second, _ = variant["runs"]
    # Each time of the other run is next to one that was copied.
    for name in ("cells", "other_ranks"):
        second[name] = copy.deepcopy(first[name])
    for rank in (second, *second["other_ranks"]):
        for cell in rank["cells"].values():
            cell["seconds"] *= 1.00001
    variant |= {"runs": [first, second], "traces": {}}
    (what,) = (problem.what for problem in copy_problems(copied, known_samples(table), "copied.json"))
    assert what == f"variant default: times of its run in place 0 are those of {table['machine']}"


def test_a_run_with_one_cell_altered_is_a_copy_of_the_other() -> None:
    table = measured()
    first, _, third = table["variants"]["default"]["runs"]
    assert copied_runs(table) == []
    third |= copy.deepcopy({name: first[name] for name in ("cells", "other_ranks")})
    for rank in (third, *third["other_ranks"]):
        rank["cells"]["add"]["seconds"] += 1e-6
    (what,) = copied_runs(table)
    assert what == "variant default: times of its run in place 2, rank 0, are those in place 0, rank 0"


def test_a_process_has_no_times_of_another_but_may_have_its_metrics() -> None:
    table = measured()
    for run in table["variants"]["default"]["runs"]:
        for rank in (run, *run["other_ranks"]):
            rank["metrics"]["took"] = [run["place"] + number / 97 for number in range(1, 9)]
    assert copied_runs(table) == []
    run = table["variants"]["default"]["runs"][1]
    run["other_ranks"][0]["cells"] = copy.deepcopy(run["cells"])
    (what,) = copied_runs(table)
    assert what == "variant default: times of its run in place 1, rank 1, are those in place 1, rank 0"


def test_a_session_that_is_there_already_is_no_copy_of_itself() -> None:
    table = measured()
    assert list(copy_problems(table, known_samples(table), "record.json")) == []


def test_quoted_figures_are_of_no_run() -> None:
    table = measured()
    (campaign,) = table["campaigns"].values()
    campaign["source"] = "https://example.org/"
    first, _, third = table["variants"]["default"]["runs"]
    third["cells"] = copy.deepcopy(first["cells"])
    assert copied_runs(table) == []
