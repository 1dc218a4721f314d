"""A record is fresh until what it measured changes, and then says what did."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchbook.checking.status import project_status
from benchbook.content.problems import BenchbookError
from benchbook.content.records import Record
from benchbook.content.script import machine_kinds, parse_script
from benchbook.query.freshness import Verdict, input_digests, judge_record
from builders import MACHINE, SCRIPT, SWEEP, make_project, make_record, with_table, write


def verdict(now: str, record: Record | None, name: str = "default") -> Verdict:
    script = parse_script(now, "snippets/sums/add.py", "sums/add.py")
    variants = {variant.name: variant for variant in script.variants(machine_kinds("cpu", MACHINE))}
    return judge_record(script, variants[name], record, {})


def test_a_record_of_the_script_as_it_stands_is_fresh() -> None:
    assert verdict(SCRIPT, make_record()).state == "fresh"


@pytest.mark.parametrize("comment", ["# so many", "# 四つ", ""])
def test_editing_a_comment_leaves_it_fresh(comment: str) -> None:
    assert verdict(SCRIPT.replace("# how many", comment), make_record()).state == "fresh"


def test_editing_code_makes_it_stale() -> None:
    changed = SCRIPT.replace("range(steps)", "range(1, steps)")
    assert verdict(changed, make_record()) == Verdict("stale", "code changed")


def test_editing_a_parameter_makes_it_stale_and_names_both_values() -> None:
    changed = SCRIPT.replace("steps = 4", "steps = 8")
    assert verdict(changed, make_record()) == Verdict("stale", "parameter changed (steps: 4 -> 8)")


def test_a_number_of_another_kind_within_a_list_makes_it_stale() -> None:
    before = SCRIPT.replace("steps = 4", "steps = 4\nsizes = [1, 2]")
    after = SCRIPT.replace("steps = 4", "steps = 4\nsizes = [1, 2.0]")
    assert verdict(after, make_record(before)).reason == "parameter changed (sizes: [1, 2] -> [1, 2.0])"


def test_a_parameter_that_only_this_machine_overrides_counts_too() -> None:
    changed = with_table(f"[tool.benchbook.on.{MACHINE}]\nsteps = 2")
    assert verdict(changed, make_record()).reason == "parameter changed (steps: 4 -> 2)"


def test_editing_an_input_makes_it_stale(tmp_path: Path) -> None:
    source = with_table('[tool.benchbook]\ninputs = ["data.txt"]')
    script = parse_script(source, "snippets/sums/add.py", "sums/add.py")
    write(tmp_path / "data.txt", "one")
    record = make_record(source, inputs=input_digests(script, tmp_path))
    (variant,) = script.variants(machine_kinds("cpu", MACHINE))
    assert judge_record(script, variant, record, input_digests(script, tmp_path)).state == "fresh"
    write(tmp_path / "data.txt", "two")
    assert (
        judge_record(script, variant, record, input_digests(script, tmp_path)).reason
        == "input changed (data.txt)"
    )


def test_a_changed_environment_makes_it_stale() -> None:
    changed = with_table('[tool.benchbook]\nenvironment = { A = "1" }')
    assert verdict(changed, make_record()).reason == "environment changed"


def test_a_library_outside_the_range_the_script_admits_makes_it_stale() -> None:
    source = SCRIPT.replace("dependencies = []", 'dependencies = ["torch>=2.11"]')
    record = make_record(source)
    assert verdict(source, record).reason == "libraries out of range (torch was not recorded)"
    (name, campaign), *_ = record.campaigns.items()
    for version, reason in [
        ("2.9.1", "libraries out of range (torch 2.9.1 is not >=2.11)"),
        ("2.13.0+cpu", "measured as it stands"),
        # More digits than Python reads as a number.
        ("9" * 5000, f"libraries out of range (torch {'9' * 200} is not >=2.11)"),
    ]:
        packages = {name: dataclasses.replace(campaign, packages={"torch": version})}
        assert verdict(source, dataclasses.replace(record, campaigns=packages)).reason == reason


def test_a_row_added_to_a_sweep_leaves_the_others_fresh() -> None:
    record = make_record(SWEEP)
    wider = SWEEP.replace("[1, 2]", "[1, 2, 3]")
    assert verdict(wider, record, "steps=1").state == "fresh"
    assert verdict(wider, record, "steps=2").state == "fresh"
    assert verdict(wider, record, "steps=3") == Verdict("missing", "never measured here")


def test_a_variant_that_timed_out_or_crashed_is_no_measurement() -> None:
    record = make_record(outcome="timed out", error="after 600 s", runs=())
    assert verdict(SCRIPT, record) == Verdict("invalid", "timed out: after 600 s")


def test_of_an_error_no_more_is_told_than_a_line_of_text() -> None:
    record = make_record(outcome="crashed", error="\x1b[31mred\x1b[0m\nand" + " on" * 60_000, runs=())
    assert verdict(SCRIPT, record).reason == "crashed: " + ("red and" + " on" * 70)[:200]


@pytest.mark.parametrize("outcome", ["timed out", "crashed"])
def test_a_variant_that_failed_is_stale_where_it_ran_from_anything_else(outcome: str) -> None:
    record = make_record(outcome=outcome, error="in the cell `add`", runs=(), parameters={"nonsense": 1})
    assert verdict(SCRIPT, record) == Verdict("stale", "parameter changed (nonsense: 1 -> not set)")


def test_the_reason_is_no_longer_than_a_line() -> None:
    record = make_record(parameters={"steps": "x" * 9000})
    assert len(verdict(SCRIPT, record).reason) < 1100


def test_running_out_of_memory_is_a_measurement() -> None:
    assert (
        verdict(SCRIPT, make_record(outcome="out of memory", error="16 GiB asked", runs=())).state == "fresh"
    )


def test_the_status_of_a_project_lists_every_variant_on_every_machine(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    assert [row.as_dict() for row in project_status(project)] == [
        {
            "script": "sums/add.py",
            "variant": "default",
            "machine": MACHINE,
            "state": "fresh",
            "reason": "measured as it stands",
            "kind": "record",
        }
    ]


def test_a_record_that_cannot_be_read_is_invalid_with_the_reason(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    write(project.record_path(MACHINE, "sums/add.py"), "{")
    (row,) = project_status(project)
    assert row.state == "invalid"
    assert "is not JSON" in row.reason


def test_a_script_is_not_expected_on_a_machine_it_cannot_run_on(tmp_path: Path) -> None:
    source = with_table('[tool.benchbook]\nneeds = ["cuda"]')
    assert project_status(make_project(tmp_path, script=source)) == []


@pytest.mark.parametrize("text", ["[]", "3", "{}", "[" * 10**5, "\xff"])
def test_a_description_that_tells_no_kind_is_a_problem(tmp_path: Path, text: str) -> None:
    project = make_project(tmp_path)
    (project.records / MACHINE / "machine.json").write_text(text, "latin-1")
    with pytest.raises(BenchbookError, match=r"machine\.json:1: does not describe the machine"):
        project_status(project)


def test_a_library_that_only_some_systems_need_may_be_absent(tmp_path: Path) -> None:
    source = SCRIPT.replace("dependencies = []", """dependencies = ["triton>=3; sys_platform == 'linux'"]""")
    (row,) = project_status(make_project(tmp_path, script=source))
    assert row.state == "fresh"


@pytest.mark.parametrize(
    ("marker", "state"),
    [
        ("python_version >= '3'", "stale"),
        ("python_version < '3'", "fresh"),
        ("python_full_version > '3'", "stale"),
    ],
)
def test_a_library_that_the_recorded_python_needed_was_recorded(marker: str, state: str) -> None:
    source = SCRIPT.replace("dependencies = []", f'dependencies = ["torch>=2; {marker}"]')
    assert verdict(source, make_record(source)).state == state
    (name, campaign), *_ = make_record(source).campaigns.items()
    for python in ("3", "any", "9" * 5000):
        packages = {name: dataclasses.replace(campaign, packages={"python": python})}
        verdict(source, dataclasses.replace(make_record(source), campaigns=packages))
