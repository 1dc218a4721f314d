"""What was measured once is not measured again: no copy passes for another measurement."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from benchbook.checking.copies import copy_problems, known_samples
from benchbook.content.records import dump_record
from builders import make_record


def measured(runs: int = 3) -> dict[str, Any]:
    """A record of so many runs of two processes, whose times have many digits, with a trace."""
    table: dict[str, Any] = json.loads(dump_record(make_record()))
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
