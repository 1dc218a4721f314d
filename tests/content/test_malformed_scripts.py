"""What could not be run, or measured and not recorded, is said before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchbook.content.formats import LONGEST_REFERENCE
from benchbook.content.metadata import BLOCK, blocks_of
from benchbook.content.problems import BenchbookError
from benchbook.content.script import parse_script, read_script
from builders import write
from running import parsed, script_text

ONE_PARAMETER = "# %% parameters\nx = 1\n\n# %% checks\nassert x"


def problems_of(body: str, table: str = "") -> str:
    with pytest.raises(BenchbookError) as caught:
        parsed(body, table)
    return str(caught.value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('# %% work\nx = """\n# %% inner\n"""\n\n# %% checks\nassert True', "`work` does not stand alone"),
        (
            "# %% work\nfor i in (1, 2):\n# %% more\n    print(i)\n\n# %% checks\nassert True",
            "`work` does not",
        ),
        (
            "# %% work\nif 1:\n    x = 1\n# %% more\nelse:\n    x = 2\n# %% checks\nassert x",
            "`more` does not",
        ),
        (
            "# %% parameters\nx = [1,\n# %% more\n 2]\n# %% checks\nassert x",
            "`parameters` does not stand alone",
        ),
    ],
)
def test_a_cell_that_ends_within_a_statement_is_a_problem(body: str, said: str) -> None:
    assert said in problems_of(body)


@pytest.mark.parametrize(
    "body",
    [
        '# %% work\nfixed_parts = {"killed": ["Killed\\ud800"]}\n\n# %% checks\nassert True',
        '# %% work\nx = f"{1}\\udfff"\n\n# %% checks\nassert True',
    ],
)
def test_no_text_of_a_script_is_one_that_no_file_can_hold(body: str) -> None:
    assert "small.py:11: holds half of a letter" in problems_of(body)


def test_no_docstring_is_one_that_no_file_can_hold() -> None:
    text = script_text("# %% work\nx = 1\n\n# %% checks\nassert x")
    with pytest.raises(BenchbookError, match=r"small\.py:1: holds half of a letter"):
        parse_script(text.replace('."""', '\\ud800."""', 1), "snippets/guide/small.py", "guide/small.py")


@pytest.mark.parametrize("deep", ["x = " + "+".join("1" * 300), "x = " + "-" * 201 + "1"])
def test_a_script_is_read_wherever_its_reader_stands(deep: str) -> None:
    said = problems_of(f"# %% work\n{deep}\n\n# %% checks\nassert x")
    assert "small.py:11: nests more than 200 expressions and statements in each other" in said


@pytest.mark.parametrize(
    "line",
    [
        "# @title Twice as fast",
        "#@markdown ![x](https://e.example/)",
        "y = 1  # @param [1]",
        's = """\n# @title\n"""',
    ],
)
def test_no_comment_is_a_form_in_colab(line: str) -> None:
    said = problems_of(f"# %% work\n{line}\n\n# %% checks\nassert True")
    assert "of which Colab makes a form" in said
    number = next(
        i for i, one in enumerate(script_text(f"# %% work\n{line}\n", "").split("\n"), 1) if "@" in one
    )
    assert f":{number}: " in said


def test_a_script_has_a_name_that_its_record_can_hold() -> None:
    text = script_text(ONE_PARAMETER)
    longest = f"guide/{'a' * (LONGEST_REFERENCE - len('guide/.py'))}.py"
    assert parse_script(text, longest, longest).reference == longest
    with pytest.raises(BenchbookError, match="has more than the 120 characters that its record can name"):
        parse_script(text, "a.py", longest.replace("guide", "guides"))


def test_a_marker_indented_within_a_string_begins_no_cell() -> None:
    script = parsed('# %% work\nx = """\n  # %% inner\n"""\n\n# %% checks\nassert x')
    assert [cell.name for cell in script.cells] == ["work", "checks"]


@pytest.mark.parametrize("line", ["return 1", "from __future__ import annotations"])
def test_what_only_a_compiler_refuses_is_a_problem(line: str) -> None:
    assert "is not valid Python" in problems_of(f"# %% work\nx = 1\n{line}\n\n# %% checks\nassert x")


@pytest.mark.parametrize(
    "work",
    [
        "".join(f"{'  ' * n}try: pass\n{'  ' * n}finally:\n" for n in range(30)) + "  " * 30 + "x = 1",
        "def f():\n try:\n" + "  return 1\n" * 2000 + " finally:\n" + "  f()\n" * 2000,
    ],
    ids=["finally in finally", "many ways out"],
)
def test_what_compiling_would_take_minutes_over_is_a_problem(work: str) -> None:
    said = problems_of(f"# %% work\n{work}\n\n# %% checks\nassert True")
    assert "compiles to more than 500000 parts" in said


@pytest.mark.parametrize("scope", ["lambda: 0", "[0 for _ in ()]", "def g(): pass", "class C: pass"])
def test_more_scopes_and_names_than_compiling_takes_seconds_over_are_a_problem(scope: str) -> None:
    names = "".join(f" a{number} = 0\n" for number in range(1000))
    said = problems_of(f"# %% work\ndef f():\n{names}" + f" {scope}\n" * 1001 + "# %% checks\nassert f")
    assert "functions, classes and comprehensions, and 100" in said


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (f"match{' ' * 300}= 2", "100 blanks"),
        (f"x = '%{'0' * 300}'", "100 zeros"),
        (f"# {'データ' * 200}", "500 letters"),
    ],
)
def test_a_line_of_a_script_that_highlighting_takes_minutes_over_is_a_problem(line: str, what: str) -> None:
    said = problems_of(f"# %% work\nmatch = 1\n{line}\n\n# %% checks\nassert match")
    assert f"has {what} in a row" in said


def test_a_cell_that_highlighting_takes_minutes_over_is_a_problem() -> None:
    braces = "{a[\n" * 5001
    said = problems_of(f"# %% work\nx = '''{braces}'''\n\n# %% checks\nassert x")
    assert "the cell `work` has 20014 characters, and 20000 are the most" in said


@pytest.mark.parametrize("blank", ["\f", "  ", "\t", "total = 1\f"])
def test_lines_of_white_space_which_no_digest_has_are_a_problem(blank: str) -> None:
    source = script_text("# %% work\ntotal = 0\n# here\ntotal += 1\n\n# %% checks\nassert total")
    with pytest.raises(BenchbookError, match="holds white space alone, or ends a page"):
        parse_script(source.replace("# here", blank), "snippets/guide/small.py", "guide/small.py")


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200b", "\x1b"])
def test_an_invisible_character_is_a_problem_in_a_comment_too(hidden: str) -> None:
    source = script_text(f"# %% work\nx = 1\n# not{hidden} slow\n\n# %% checks\nassert x")
    line = source.split("\n").index(f"# not{hidden} slow") + 1
    with pytest.raises(BenchbookError, match=f"small.py:{line}: holds an invisible character"):
        parse_script(source, "snippets/guide/small.py", "guide/small.py")


@pytest.mark.parametrize(
    "said",
    [
        "<img src=https://example.org/x.png>",
        "[here](javascript:alert(1))",
        "[here]\n\n[here]: https://example.org",
        "not\\u202e slow",
        "See HTTPS://evil.example/result",
        "See www.evil.example",
        "\n\n```mermaid\ngraph TD\n```",
        "\n\n~~~\n12 GB\n~~~",
        "It saves $12$ GB",
        r"It saves \\(12\\) GB",
    ],
)
def test_a_docstring_is_plain_text_for_notebooks_show_it_as_markdown(said: str) -> None:
    source = script_text("x = 1", title=f"A small one. {said}")
    with pytest.raises(BenchbookError, match=r"small.py:1: its docstring holds markup, a link or"):
        parse_script(source, "snippets/guide/small.py", "guide/small.py")


@pytest.mark.parametrize("value", ["1e999", "5e-324", f"{'9' * 400} + 1j", "{[]: 1}", "[[1]]"])
def test_a_parameter_that_a_record_cannot_hold_is_a_problem(value: str) -> None:
    assert "the parameter `x` is not a plain value" in problems_of(
        f"# %% parameters\nx = {value}\n\n# %% checks\nassert x"
    )


@pytest.mark.parametrize("table", ["smallest", "on.cpu"])
@pytest.mark.parametrize("value", ["inf", "nan", "5e-324", "1979-05-27", "[[1]]"])
def test_what_a_table_sets_a_parameter_to_is_a_plain_value(table: str, value: str) -> None:
    said = problems_of(ONE_PARAMETER, f"[tool.benchbook.{table}]\nx = {value}")
    assert f"[tool.benchbook.{table}] sets `x` to" in said


def test_an_override_that_equals_what_is_shown_and_is_another_type_is_applied() -> None:
    script = parsed(ONE_PARAMETER, 'needs = ["cpu"]\n[tool.benchbook.on.cpu]\nx = 1.0')
    (variant,) = script.variants(("cpu",))
    assert repr(variant.overridden) == "{'x': 1.0}"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[tool.benchbook.metrics]\n"größe" = { unit = "B" }', "is not a name of a script"),
        ("timeout = inf", "`timeout` is inf"),
        (f"inputs = {['a.json'] * 21}", "make it a list of 20 paths at most, below the script's folder"),
        (
            "".join(f"[tool.benchbook.on.m{n}]\nx = 1\n" for n in range(21)),
            "make it a table of kinds of machine, 20 at most",
        ),
        ('environment = { "A=B" = "1" }', "`environment` is"),
        ('[tool.benchbook.matrix]\nx = [true, "true"]', "two points of the matrix are called `x=true`"),
        (f'[tool.benchbook.matrix]\nx = ["{"a" * 200}"]', "is called by 202 characters"),
    ],
)
def test_what_could_be_measured_and_not_recorded_is_a_problem(table: str, said: str) -> None:
    assert said in problems_of(ONE_PARAMETER, table)


def test_a_parameter_with_a_name_that_matrices_reserve_cannot_be_swept() -> None:
    body = "# %% parameters\nrepeats = 1\n\n# %% checks\nassert repeats"
    assert "the matrix sweeps `repeats`" in problems_of(body, "[tool.benchbook.matrix]\nrepeats = [1, 2]")
    assert parsed(body).shown == {"repeats": 1}


def test_a_parameter_whose_name_records_cannot_hold_is_a_problem() -> None:
    said = problems_of("# %% parameters\ngröße = 1\n\n# %% checks\nassert True")
    assert "the parameter `größe` cannot be referred to" in said


@pytest.mark.parametrize("line", ["tool = 3", "tool = { benchbook = 3 }"])
def test_a_table_that_is_none_is_a_problem(line: str) -> None:
    source = script_text(ONE_PARAMETER).replace("# dependencies = []", f"# dependencies = []\n# {line}")
    with pytest.raises(BenchbookError, match=r"its \[tool.benchbook\] is not a table"):
        parse_script(
            source.replace("# [tool.benchbook]\n", "").replace('# needs = ["cpu"]\n', ""), "x", "g/x.py"
        )


@pytest.mark.parametrize("name", ["guide/Small.py", "guide/small-one.py", "Guide/small.py", "guide/1.py"])
def test_a_file_that_records_cannot_name_is_a_problem(name: str) -> None:
    with pytest.raises(BenchbookError, match=f"`{name}` cannot be referred to"):
        parse_script(script_text(ONE_PARAMETER), f"snippets/{name}", name)


ENDLESS = "0x" + "f" * 6000


@pytest.mark.parametrize(
    "line",
    [
        f"repeats = {'9' * 5000}",
        f"repeats = {ENDLESS}",
        f"timeout = {'9' * 400}",
        f"on = {{ cpu = {{ n = {ENDLESS} }} }}",
        f"matrix = {{ n = {'[' * 4000}{']' * 4000} }}",
        f"{'.'.join('a' * 20_000)} = 1",
        "timeout = 1e10",
        "timeout = inf",
    ],
)
def test_a_head_beyond_what_a_person_writes_is_a_problem(line: str) -> None:
    with pytest.raises(BenchbookError) as caught:
        parsed("# %% parameters\nn = 1\n\n# %% checks\nassert n", f'needs = ["cpu"]\n{line}')
    # Where lists stand in lists, their parser does not say.
    assert all(problem.line == (3 if "[[" in line else 8) for problem in caught.value.problems)


@pytest.mark.parametrize(
    "value", [ENDLESS, f"-{ENDLESS}", "-" * 90_000 + "1", "n" + ".n" * 90_000, "(" * 300]
)
def test_a_parameter_that_no_parser_has_room_for_is_a_problem(value: str) -> None:
    with pytest.raises(BenchbookError, match=r"snippets/guide/small\.py"):
        parsed(f"# %% parameters\nn = {value}\n\n# %% checks\nassert n")


LONG, CPU = "abcd " * 400, 'needs = ["cpu"]'
NAMED = "# %% parameters\nx = 1\n\n# %% {0}\n{1}\n\n# %% checks\nassert x"


@pytest.mark.parametrize(
    ("body", "table", "said"),
    [
        (
            f"# %% parameters\nx = {LONG * 2!r}\n\n# %% checks\nassert x",
            CPU,
            "parameters of 4009 characters, and a record holds 3000 at most",
        ),
        (
            f"# %% parameters\nx = {LONG!r}\ny = ''\n\n# %% checks\nassert x",
            f"[tool.benchbook.on.cuda]\ny = '{LONG}'",
            "parameters of 4018 characters",
        ),
        (
            "# %% parameters\n" + "\n".join(f"x{n} = 1" for n in range(101)) + "\n\n# %% checks\nassert x1",
            CPU,
            "the `parameters` cell sets 101, and 100 are the most",
        ),
        (
            ONE_PARAMETER,
            "[tool.benchbook.environment]\n" + "\n".join(f"A{n} = '{'b' * 390}'" for n in range(30)),
            "environment of 12020 characters",
        ),
        (ONE_PARAMETER, '[tool.benchbook.environment]\nA = "a\\tb"', "`environment` is"),
        (
            "# %% parameters\nx = 'ada@example.org'\n\n# %% checks\nassert x",
            CPU,
            "the parameter `x` holds 'ada@example.org', which can identify someone, so that no record may",
        ),
        (
            "# %% parameters\nx = ''\n\n# %% checks\nassert x == ''",
            "[tool.benchbook.on.cuda]\nx = ['/home/ada/data']",
            "`x` is set to '/home/ada', which can identify someone",
        ),
        (ONE_PARAMETER, "[tool.benchbook.environment]\nA = '/home/ada'", "`A` is set to '/home/ada', which"),
        (ONE_PARAMETER, "ranks = 1001", "make it a whole number of processes, 1 to 1000"),
        (ONE_PARAMETER, f"inputs = ['{'a' * 401}']", "`inputs` is"),
        (NAMED.format("f" * 81, "y = 1"), CPU, "cannot be referred to; name it with 80 lower-case letters"),
        (
            NAMED.format("f", f"# region {'g' * 81}\ny = 1\n# endregion"),
            CPU,
            "cannot be referred to; name it with 80",
        ),
    ],
)
def test_what_no_record_can_hold_is_a_problem_before_anything_runs(body: str, table: str, said: str) -> None:
    assert said in problems_of(body, table)


def test_a_cell_of_more_regions_than_a_page_shows_is_a_problem() -> None:
    cell = "\n".join(f"# region r{n}\nx = {n}\n# endregion" for n in range(2000))
    with pytest.raises(BenchbookError, match="it has more than 100 regions"):
        parsed(f"# %% parameters\nn = 1\n\n# %% work\n{cell}\n\n# %% checks\nassert n")


def test_a_script_that_no_person_wrote_is_a_problem_and_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "snippets/guide/small.py", script_text(ONE_PARAMETER) + "a=1\n" * 50_000)
    monkeypatch.setattr("benchbook.content.script._parse", None)
    with pytest.raises(
        BenchbookError, match=r"^snippets/guide/small.py:1: has more than 200000 characters; keep"
    ):
        read_script(path, tmp_path)


def test_the_heads_of_a_comment_take_no_longer_than_they_are_many() -> None:
    # What tries each of them up to the end of the comment takes a minute.
    code = "from benchbook.content.metadata import read_metadata; read_metadata('# /// x\\n' * 24_000, 'x')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=10)


LINES = ["# /// script", "# /// x", "# ///", "# /// ", "#", "# a", "#a", "a", "", " # ///", "# ///\r"]


@given(st.lists(st.sampled_from(LINES), max_size=14).map("\n".join))
def test_the_blocks_of_a_script_are_those_that_the_standard_finds(source: str) -> None:
    found = [match.span() for match in blocks_of(source)]
    assert found == [match.span() for match in BLOCK.finditer(source)]
