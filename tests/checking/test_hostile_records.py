"""Whatever stands in a record from outside, it is refused with its problems or can be read, judged and written."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from benchbook.checking.plausibility import plausibility_problems
from benchbook.content.problems import Problem
from benchbook.content.records import Record, dump_json, dump_record, record_from
from benchbook.content.script import parse_script
from benchbook.content.validation import adapter, machine_problems, parse_json, record_problems
from benchbook.query.freshness import judge_record
from builders import GPU_JSON, MACHINE_JSON, SCRIPT, make_record
from damage import damaged

SOURCE = SCRIPT.replace("dependencies = []", 'dependencies = ["torch>=2"]')
PARSED = parse_script(SOURCE, "snippets/sums/add.py", "sums/add.py")
RECORD: dict[str, Any] = json.loads(dump_record(make_record(SOURCE)))
(CAMPAIGN,) = RECORD["campaigns"]
RECORD["campaigns"][CAMPAIGN]["packages"]["torch"] = "2.11.0+cu130"
RECORD["campaigns"][CAMPAIGN]["state"] = {
    "driver": "580.95.05",
    "clocks_mhz": {"sm": 345, "memory": None},
    "foreign_processes": [7],
    "shared": True,
    "load_average": 0.1,
}
RECORD["history"] = [
    {
        "date": "2026-01-02",
        "campaign": CAMPAIGN,
        "variants": ["default"],
        "medians": {"default": {"total": 7.0}},
    }
]
MACHINE: dict[str, Any] = MACHINE_JSON | GPU_JSON


@settings(max_examples=400, deadline=None)
@given(damaged(RECORD))
def test_a_damaged_record_is_refused_or_can_be_used(table: Any) -> None:
    problems = record_problems(table, "record.json")
    assert all(isinstance(problem, Problem) for problem in problems)
    if not problems:
        record = record_from(table)
        assert record_from(json.loads(dump_record(record).encode())) == record
        judge_record(PARSED, PARSED.variants(("cpu",))[0], record, {})
        list(plausibility_problems(table, MACHINE, PARSED, "record.json"))


@settings(max_examples=200, deadline=None)
@given(damaged(MACHINE))
def test_a_damaged_description_is_refused_or_can_be_used(table: Any) -> None:
    problems = machine_problems(table, "machine.json")
    if not problems:
        dump_json(table).encode()
        list(plausibility_problems(RECORD, table, PARSED, "record.json"))
    assert all(isinstance(problem, Problem) for problem in problems)


def test_the_undamaged_ones_are_accepted() -> None:
    assert record_problems(RECORD, "record.json") == machine_problems(MACHINE, "machine.json") == []


def test_a_value_nested_too_deeply_is_a_problem() -> None:
    table = copy.deepcopy(RECORD)
    deep: Any = 0
    for _ in range(3000):
        deep = [deep]
    table["variants"]["default"]["parameters"]["steps"] = deep
    assert record_problems(table, "record.json") != []
    assert parse_json("[" * 100_000, "record.json")[1] != []


@pytest.mark.parametrize("text", ['{"a": {"b": ["\\ud83d"]}}', '{"a": {"\\uDE00": 1}}'])
def test_half_a_letter_is_refused_wherever_it_stands(text: str) -> None:
    (problem,) = parse_json(f"\n{text}", "record.json")[1]
    assert str(problem).startswith("record.json:2: holds half a letter (a lone surrogate)")
    assert parse_json('{"a": "\\ud83d\\ude00"}', "record.json") == ({"a": "😀"}, [])


def errors_of(table: Any) -> int:
    with pytest.raises(ValidationError) as raised:
        adapter(Record).validate_python(table)
    return raised.value.error_count()


@pytest.mark.parametrize(
    "place", ["series", "blocks", "runs", "regions", "parameters", "variants of the history"]
)
def test_a_list_of_wrong_items_is_a_few_errors(place: str) -> None:
    table, wrong = copy.deepcopy(RECORD), ["?"] * 2000
    variant = table["variants"]["default"]
    run = variant["runs"][0]
    match place:
        case "series":
            run["metrics"]["total"] = wrong
        case "blocks":
            run["blocks"] = {"total": wrong}
        case "runs":
            variant["runs"] = wrong
        case "regions":
            variant["regions"] = wrong
        case "parameters":
            variant["parameters"]["steps"] = [{}] * 2000
        case _:
            table["history"][0]["variants"] = wrong
    assert errors_of(table) < 10
    assert 0 < len(record_problems(table, "record.json")) < 10


def test_a_table_of_too_many_keys_is_one_problem() -> None:
    (problem,) = record_problems(RECORD | {f"k{number}": 0 for number in range(5000)}, "record.json")
    assert problem.what == "the file: it has 5007 keys, and no table of such a file has more than 1000"
    table = copy.deepcopy(RECORD)
    table["variants"]["default"]["runs"][0]["metrics"] = {f"m{number}": "?" for number in range(5000)}
    (problem,) = record_problems(table, "record.json")
    assert problem.what.startswith("variants.default.runs.0.metrics: it has 5000 keys")


def test_of_far_too_many_errors_the_number_is_told_alone() -> None:
    table = copy.deepcopy(RECORD)
    wrong = {f"m{number}": "?" for number in range(1000)}
    table["variants"] = {
        f"steps={number}": RECORD["variants"]["default"]
        | {"output": wrong, "environment": wrong, "code": 3}
        | {"parameters": {f"m{number}": {} for number in range(1000)}}
        for number in range(10)
    }
    (problem,) = record_problems(table, "record.json")
    assert problem.what.endswith(" places in it are not as they should be")


def test_a_series_in_some_runs_and_a_number_in_others_is_refused() -> None:
    table = copy.deepcopy(RECORD)
    table["variants"]["default"]["runs"][1]["metrics"]["total"] = [1, 2]
    assert "total is a series in some of its runs" in str(record_problems(table, "record.json")[0])


def test_a_whole_degree_may_be_the_same_in_each_run() -> None:
    warm = parse_script(SCRIPT.replace('"count"', '"degC"'), "snippets/sums/add.py", "sums/add.py")
    table = copy.deepcopy(RECORD)
    for run in table["variants"]["default"]["runs"]:
        run["metrics"]["total"] = 31
    table["history"][0]["medians"]["default"]["total"] = 31.0
    assert list(plausibility_problems(table, MACHINE, warm, "record.json")) == []


MANY = {f"k{number}": "x" * 300 for number in range(100)}
DIGESTS = {f"k{number}": "sha256:" + "0" * 64 for number in range(200)}


@pytest.mark.parametrize(
    ("place", "value", "most"),
    [
        (("campaigns", CAMPAIGN, "packages"), {f"k{number}": "x" * 30 for number in range(100)}, 3000),
        (("campaigns", CAMPAIGN, "predicates"), DIGESTS, 10000),
        (("campaigns", CAMPAIGN, "state", "clocks_mhz"), {f"k{n}" * 10: 1 for n in range(500)}, 10000),
        (("variants", "default", "inputs"), DIGESTS, 10000),
        (("variants", "default", "regions"), [f"{name}_{'x' * 60}" for name in MANY] * 3, 10000),
    ],
)
def test_what_a_session_may_note_freely_has_an_end(place: tuple[str, ...], value: Any, most: int) -> None:
    (problem,) = record_problems(put(RECORD, place, value), "record.json")
    assert f" characters, and {most} are the most" in problem.what
    assert record_problems(put(RECORD, place, type(value)()), "record.json") == []


def test_what_a_quotation_may_note_freely_has_an_end() -> None:
    source = {"url": "https://example.org/paper", "title": "A paper", "published": "2019-05"}
    quoted = {"source": source, "measured": None, "recorded_by": "Ada", "packages": MANY, "state": {}}
    (problem,) = record_problems(put(RECORD, ("campaigns", CAMPAIGN), quoted), "record.json")
    assert "packages: it takes " in problem.what


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("cpu", "flags"), list(MANY.values())),
        (("system",), MANY),
        (("accelerator", "clocks_mhz"), {f"k{n}" * 10: 1 for n in range(500)}),
    ],
)
def test_what_a_description_may_note_freely_has_an_end(place: tuple[str, ...], value: Any) -> None:
    (problem,) = machine_problems(put(MACHINE, place, value), "machine.json")
    assert " characters, and 10000 are the most" in problem.what


def test_a_variant_has_few_enough_points_for_a_page() -> None:
    series = [list(range(1700)), list(range(1700))]
    for third, problems in ((list(range(1600)), 0), (list(range(1601)), 1)):
        table = copy.deepcopy(RECORD)
        runs = table["variants"]["default"]["runs"]
        for run, points in zip(runs, [*series, third], strict=True):
            run["metrics"]["total"] = points
        found = [problem.what for problem in record_problems(table, "record.json")]
        assert ["points of series and blocks, and 5000 are the most" in what for what in found] == [
            True
        ] * problems


def put(table: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of `table` with `value` at a place."""
    made: dict[str, Any] = copy.deepcopy(table)
    at = made
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return made
