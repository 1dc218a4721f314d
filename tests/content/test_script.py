"""A script is read as it stands, and every way it can be malformed is named with its line."""

from __future__ import annotations

import pytest

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.script import Script, machine_kinds, parse_script
from builders import SCRIPT, with_table

CPU = machine_kinds("cpu", "cpu-test")


def parse(source: str) -> Script:
    return parse_script(source, "snippets/sums/add.py", "sums/add.py")


def problems(source: str) -> tuple[Problem, ...]:
    with pytest.raises(BenchbookError) as caught:
        parse(source)
    return caught.value.problems


def test_cells_keep_their_text_byte_for_byte_and_know_their_lines() -> None:
    cell = parse(SCRIPT).cell("add")
    assert cell.source == 'total = sum(range(steps))\nprint(f"total {total}")'
    assert SCRIPT.splitlines()[cell.start - 1] == "total = sum(range(steps))"
    assert SCRIPT.splitlines()[cell.line - 1] == "# %% add"


@pytest.mark.parametrize(
    ("line", "name"), [("# coding: utf-7", "utf-7"), ("# -*- coding: palmos -*-", "palmos")]
)
@pytest.mark.parametrize("before", ["", "#!/usr/bin/env python\n"])
def test_a_script_is_utf_8_whatever_reads_it(before: str, line: str, name: str) -> None:
    (problem,) = problems(f"{before}{line}\n{SCRIPT}")
    assert problem.what.startswith(f"names the encoding {name}, in which it would say something else")
    assert problem.line == before.count("\n") + 1
    assert parse(f"{before}# -*- coding: UTF-8 -*-\n{SCRIPT}").cell("add")


def test_a_script_without_a_matrix_has_one_variant_with_the_shown_parameters() -> None:
    (variant,) = parse(SCRIPT).variants(CPU)
    assert (variant.name, variant.parameters, variant.overridden) == ("default", {"steps": 4}, {})


def test_the_narrowest_kind_of_machine_overrides_the_wider_ones() -> None:
    source = with_table("[tool.benchbook.on.cpu]\nsteps = 2\n[tool.benchbook.on.cpu-test]\nsteps = 3")
    assert parse(source).variants(CPU)[0].parameters == {"steps": 3}
    assert parse(source).variants(CPU)[0].overridden == {"steps": 3}
    assert parse(source).variants(machine_kinds("cpu", "cpu-other"))[0].parameters == {"steps": 2}
    assert parse(source).variants(machine_kinds("cuda", "nvidia-h200-141gb"))[0].overridden == {}


def test_a_matrix_of_lists_is_their_product_in_the_declared_order() -> None:
    source = with_table("[tool.benchbook.matrix]\nranks = [1, 2]\nsteps = [4, 8]")
    names = [variant.name for variant in parse(source).variants(CPU)]
    assert names == ["ranks=1,steps=4", "ranks=1,steps=8", "ranks=2,steps=4", "ranks=2,steps=8"]
    assert [variant.ranks for variant in parse(source).variants(CPU)] == [1, 1, 2, 2]


def test_ranks_get_one_thread_each_as_under_torchrun_unless_the_script_says_more() -> None:
    source = with_table("[tool.benchbook.matrix]\nranks = [1, 2]")
    assert [variant.environment for variant in parse(source).variants(CPU)] == [{}, {"OMP_NUM_THREADS": "1"}]
    source = with_table('[tool.benchbook]\nranks = 2\nenvironment = { OMP_NUM_THREADS = "2" }')
    assert parse(source).variants(CPU)[0].environment == {"OMP_NUM_THREADS": "2"}


def test_a_matrix_of_tables_lists_its_points_each_with_an_environment_of_its_own() -> None:
    table = "[[tool.benchbook.matrix]]\nsteps = 1\n[[tool.benchbook.matrix]]\nsteps = 2\n"
    source = with_table(
        table + 'environment = { OMP_NUM_THREADS = "1" }\nmeters = ["cpu_allocator"]\nrepeats = 5'
    )
    first, second = parse(source).variants(CPU)
    assert (first.environment, second.environment) == ({}, {"OMP_NUM_THREADS": "1"})
    assert (second.meters, second.repeats) == (("cpu_allocator",), 5)


def test_the_smallest_parameters_win_over_the_matrix_and_points_that_fall_together_count_once() -> None:
    source = with_table("[tool.benchbook.matrix]\nsteps = [4, 8]\n[tool.benchbook.smallest]\nsteps = 1")
    assert [variant.parameters for variant in parse(source).variants(CPU, smallest=True)] == [{"steps": 1}]


def test_time_is_measured_eight_times_and_bytes_twice_unless_the_script_says_otherwise() -> None:
    assert parse(SCRIPT).variants(CPU)[0].repeats == 2
    assert parse(SCRIPT.replace('"count"', '"s"')).variants(CPU)[0].repeats == 8
    assert parse(with_table("[tool.benchbook]\nrepeats = 5")).variants(CPU)[0].repeats == 5


def test_the_digest_is_the_same_text_under_every_version_of_python() -> None:
    source = SCRIPT.replace(
        "total = sum(range(steps))", 'total = 6\nnote = f"""a {steps}\n\n # kept\n"""  # gone'
    )
    assert (
        parse(source).code_digest == "sha256:d0307b67c65c7ec034a06bff2e7d6bc9fec23b4c8a2b1a3605904518401d7bac"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# how many", "# so many"),
        ("steps = 4", "steps = 5"),
        ("# %% add\n", "# %% add\n\n# a thought of its own\n\n"),
        ("total = sum(range(steps))", "total = sum(range(steps))  # quick"),
        ("total = sum(range(steps))", "total = sum(\n    range(\n        steps,\n    )\n)"),
        ("Adds numbers.", "Adds up."),
        ('unit = "count"', 'unit = "count", better = "lower"'),
    ],
)
def test_layout_comments_docstring_and_parameters_leave_the_digest_alone(old: str, new: str) -> None:
    assert parse(SCRIPT.replace(old, new)).code_digest == parse(SCRIPT).code_digest


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("range(steps)", "range(steps + 1)"),
        ("# %% add", "# %% add_up"),
        ('"total {total}"', '"total  {total}"'),
        ('unit = "count"', 'unit = "steps"'),
        ("assert total >= 0", "assert total > 0"),
    ],
)
def test_code_cell_names_units_and_checks_change_the_digest(old: str, new: str) -> None:
    assert parse(SCRIPT.replace(old, new)).code_digest != parse(SCRIPT).code_digest


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ('"""Adds numbers."""\n', "", 1, "has no docstring"),
        ("# %% add\n", "# %% Add it\n", 13, "cannot be referred to"),
        ("# %% add\n", "# %% checks\n", 17, "is there twice (first on line 13)"),
        ("# %% checks\nassert total >= 0\n", "", 13, "its last cell is not `checks`"),
        ("assert total >= 0", "print(total)", 17, "asserts nothing"),
        ("steps = 4", "steps = 2 + 2", 11, "is not a plain value"),
        ("steps = 4", "import os", 11, "holds more than parameters"),
        ("total = sum(range(steps))", "total = = 1", 14, "is not valid Python"),
        ("# %% parameters", "x = 1\n\n# %% parameters", 10, "has code before its first cell"),
    ],
)
def test_a_malformed_script_is_named_with_its_line(old: str, new: str, line: int, what: str) -> None:
    (problem,) = problems(SCRIPT.replace(old, new))
    assert problem.line == line
    assert what in problem.what


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("# /// script", "# /// other", 1, "has no inline metadata"),
        ('unit = "count"', 'unit = "bananas"', 7, "unknown unit `bananas`"),
        ('unit = "count"', 'unit = "count', 7, "not valid TOML"),
        ('unit = "count"', 'units = "count"', 7, "has no unit"),
        ("# dependencies = []", "#", 2, "lacks `dependencies`"),
        ('">=3.11"', '"3.11 or so"', 3, "which names no versions"),
        (">=3.11", f">={'9' * 5000}", 3, f"is '>={'9' * 198}', which names no versions"),
        ("= []", '= ["torch @ https://example.org/torch.whl"]', 4, "a character that none needs"),
        ("= []", "= ['torch; python_version > \"$(id)\"']", 4, "a character that none needs"),
        ("= []", """= ["torch; python_version > '3' or os_name == 'nt'"]""", 4, "more than one comparison"),
        ("= []", """= ["torch; '3' < python_version"]""", 4, "more than one comparison"),
        ("= []", """= ["torch; implementation_name != 'x'"]""", 4, "more than one comparison"),
        ("= []", '= ["torch>=2.*"]', 4, "is not a requirement"),
        ("= []", '= ["torch==2.*"]', 4, "is not a requirement"),
        ("= []", '= ["two words"]', 4, "is not a requirement"),
        (
            "[tool.benchbook.metrics]",
            "[tool.benchbook]\n# rank = 2\n# [tool.benchbook.metrics]",
            7,
            "key `rank`",
        ),
        (
            "[tool.benchbook.metrics]",
            "[tool.benchbook]\n# ranks = 0\n# [tool.benchbook.metrics]",
            7,
            "`ranks` is 0",
        ),
    ],
)
def test_broken_metadata_is_named_with_its_line(old: str, new: str, line: int, what: str) -> None:
    (problem,) = problems(SCRIPT.replace(old, new))
    assert problem.line == line
    assert what in problem.what


@pytest.mark.parametrize(
    "table", ["[tool.benchbook.on.cpu]\nstep = 1", "[tool.benchbook.matrix]\nstep = [1]"]
)
def test_an_override_of_no_parameter_is_refused_with_the_near_one(table: str) -> None:
    (problem,) = problems(with_table(table))
    assert "`step`" in problem.what
    assert "steps" in problem.fix


@pytest.mark.parametrize(
    "table",
    [
        "[tool.benchbook.matrix]\n"
        + "\n".join(f"p{n} = [{', '.join(map(str, range(99)))}]" for n in range(9)),
        "[tool.benchbook]\nmatrix = [" + "\n{ steps = 1 }," * 1001 + "]",
        "[tool.benchbook.matrix]\nsteps = []",
    ],
)
def test_a_matrix_of_more_points_than_anyone_runs_is_refused_before_it_is_made(table: str) -> None:
    assert problems(with_table(table))[0].fix.endswith("of 1000 points at most")


def test_two_points_of_a_matrix_must_differ_in_a_parameter() -> None:
    table = '[[tool.benchbook.matrix]]\nsteps = 1\n[[tool.benchbook.matrix]]\nsteps = 1\nenvironment = { A = "1" }'
    assert "two points of the matrix" in problems(with_table(table))[0].what


@pytest.mark.parametrize(
    "key", ["ranks = 0", 'repeats = "many"', "repeats = 65", "environment = { A = 1 }", 'meters = ["x"]']
)
def test_what_a_point_sets_beside_parameters_is_what_a_script_may_set(key: str) -> None:
    (problem,) = problems(with_table(f"[[tool.benchbook.matrix]]\nsteps = 1\n{key}"))
    assert f"a point of the matrix has the `{key.partition(' ')[0]}`" in problem.what
    assert problem.line == 10


@pytest.mark.parametrize("name", ["", "VLLM", "two-words", "../up", "1st", "a" * 31, "own\\n"])
def test_an_environment_is_named_in_a_few_letters_and_digits(name: str) -> None:
    (problem,) = problems(with_table(f'[tool.benchbook]\nvenv = "{name}"'))
    assert problem.line == 9
    assert problem.fix == "make it a name of up to 30 lower-case letters and digits, a letter first"


def test_a_script_that_names_no_environment_runs_in_that_of_the_others() -> None:
    assert parse(SCRIPT).metadata.venv == ""
    assert parse(with_table('[tool.benchbook]\nvenv = "vllm2"')).metadata.venv == "vllm2"


def test_inputs_stay_below_the_scripts_folder() -> None:
    assert problems(with_table('[tool.benchbook]\ninputs = ["../../secret"]'))[0].fix.endswith(
        "the script's folder"
    )
