"""What was measured once is not measured again: no copy passes for another measurement."""

from __future__ import annotations

import copy
import json
import random
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


def machine_times(seed: int, scatter: float = 0.3, machine: str = "cpu-test") -> dict[str, Any]:
    """A record whose cells take about 5 ms, no two of them as long; its metric is the time of one."""
    table = measured() | {"machine": machine}
    generator = random.Random(seed)
    table["variants"]["default"]["traces"] = {}
    for run in table["variants"]["default"]["runs"]:
        for rank in (run, *run["other_ranks"]):
            for cell in rank["cells"].values():
                cell["seconds"] = 0.005 * generator.uniform(1 - scatter, 1 + scatter)
            rank["metrics"]["took"] = rank["cells"]["add"]["seconds"]
    return table


def near(table: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What is said of a record beside another one, of which no time is known to the last digit."""
    script = parse_script(TIMED, "snippets/sums/add.py", "sums/add.py")
    problems = copy_problems(table, {}, "copied.json", script=script, elsewhere=[other])
    return [problem.what for problem in problems]


def leave_one_process(table: dict[str, Any]) -> None:
    """Leave half of the times of each run."""
    for run in table["variants"]["default"]["runs"]:
        del run["other_ranks"]


def changed(table: dict[str, Any], change: Callable[[float], float]) -> dict[str, Any]:
    """The record as of another machine, each of its times changed."""
    copied = copy.deepcopy(table) | {"machine": "cpu-other"}
    for variant in copied["variants"].values():
        for run in variant["runs"]:
            for rank in (run, *run.get("other_ranks", ())):
                rank["metrics"]["took"] = change(rank["metrics"]["took"])
                for cell in rank["cells"].values():
                    cell["seconds"] = change(cell["seconds"])
    return copied


def to_microseconds(seconds: float) -> float:
    return round(seconds, 6)


def to_digits(seconds: float) -> float:
    return float(f"{seconds:.5g}")


def to_fewer_digits(seconds: float) -> float:
    return float(f"{seconds:.4g}")


def one_microsecond_more(seconds: float) -> float:
    return seconds + 1e-6


def longer_and_rounded(seconds: float) -> float:
    return float(f"{seconds * 1.07:.5g}")


@pytest.mark.parametrize(
    "change", [to_microseconds, to_digits, to_fewer_digits, one_microsecond_more, longer_and_rounded]
)
def test_times_of_another_machine_are_a_copy_when_they_are_rounded_or_moved(
    change: Callable[[float], float],
) -> None:
    table = machine_times(1)
    (what,) = near(changed(table, change), table)
    assert what == f"variant default: its times are nearly those of {table['machine']}"


def test_a_rounded_copy_is_one_in_another_order_of_runs() -> None:
    table = machine_times(1)
    copied = changed(table, to_digits)
    copied["variants"]["default"]["runs"].reverse()
    (what,) = near(copied, table)
    assert what == f"variant default: its times are nearly those of {table['machine']}"


def test_variants_of_few_times_are_a_copy_together() -> None:
    table = machine_times(1)
    leave_one_process(table)
    variant = table["variants"]["default"]
    table["variants"] = {
        f"run={number}": variant | {"runs": [run]} for number, run in enumerate(variant["runs"])
    }
    (what,) = near(changed(table, to_digits), table)
    assert what == f"variant run=0: its times are nearly those of {table['machine']}"


def test_two_machines_whose_times_scatter_by_a_hundredth_hold_no_copy() -> None:
    pairs = [
        (machine_times(seed, 0.01), machine_times(seed + 1, 0.01, "cpu-other")) for seed in range(0, 100, 2)
    ]
    assert [what for one, other in pairs for what in near(other, one)] == []


def test_times_that_hardly_scatter_may_be_nearly_the_same() -> None:
    assert near(machine_times(2, 0.0001, "cpu-other"), machine_times(1, 0.0001)) == []


@pytest.mark.parametrize(("runs", "is_told"), [(1, False), (3, True)])
def test_of_few_times_nobody_can_tell_whether_they_are_nearly_the_same(runs: int, is_told: bool) -> None:
    table = machine_times(1)
    leave_one_process(table)
    del table["variants"]["default"]["runs"][runs:]
    assert bool(near(changed(table, to_digits), table)) is is_told


def test_nearly_the_same_times_are_no_copy_on_one_machine_or_where_they_are_quoted() -> None:
    table = machine_times(1)
    again = changed(table, to_digits)
    assert near(again | {"machine": table["machine"]}, table) == []
    (campaign,) = again["campaigns"].values()
    campaign["source"] = "https://example.org/"
    assert near(again, table) == []
