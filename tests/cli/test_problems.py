"""However many problems there are, and however long, what is printed can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from benchbook.checking.checks import CheckReport
from benchbook.cli import main
from benchbook.cli.problems import LONGEST, MOST, print_problems
from benchbook.content.problems import BenchbookError, Problem, printable
from benchbook.content.records import bundle_digest, record_table
from builders import MACHINE_JSON, make_project, make_record, write
from clones import benchbook


def many(count: int) -> tuple[Problem, ...]:
    return tuple(Problem("bundle.json", 1, f"variant {n} is wrong", "record it again") for n in range(count))


def test_of_very_many_problems_the_first_are_printed_and_the_rest_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise BenchbookError(*many(MOST + 4000))

    monkeypatch.setattr(main, "app", command)
    with pytest.raises(SystemExit):
        main.main()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == MOST + 1
    assert said[0] == "bundle.json:1: variant 0 is wrong; record it again"
    assert said[-1] == "... and 4000 more"


def test_check_counts_every_problem_and_prints_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = CheckReport(many(MOST + 1), many(MOST + 2))
    monkeypatch.setattr("benchbook.checking.checks.check_project", lambda project: found)
    with pytest.raises(typer.Exit):
        main.check()
    printed = capsys.readouterr()
    assert printed.out.endswith("; record it again\n... and 1 more\n")
    assert printed.err.endswith(f"warning: ... and 2 more\n{MOST + 1} problem(s), {MOST + 2} warning(s)\n")


def test_as_many_problems_as_are_printed_are_all_printed(capsys: pytest.CaptureFixture[str]) -> None:
    print_problems(many(MOST))
    assert len(capsys.readouterr().out.splitlines()) == MOST


@pytest.mark.parametrize("part", ["path", "what", "fix"])
def test_a_message_as_long_as_a_book_is_cut_and_the_fix_is_still_said(
    capsys: pytest.CaptureFixture[str], part: str
) -> None:
    words = {"path": "bundle.json", "what": "is wrong", "fix": "record again"} | {part: "x" * 200_000}
    print_problems([Problem(line=1, **words)])
    said = capsys.readouterr().out
    assert len(said) < LONGEST + 100
    assert all(text in said for name, text in words.items() if name != part)


@pytest.mark.parametrize("part", ["path", "what", "fix"])
def test_a_problem_is_one_line_that_commands_nothing(capsys: pytest.CaptureFixture[str], part: str) -> None:
    text = "x\n::error::pwn\r\x1b[31mRED \u202e\u2028##[error]pwn"
    print_problems([Problem(line=1, **({"path": "b.json", "what": "is odd", "fix": "go"} | {part: text}))])
    said = capsys.readouterr().out
    assert r"x\n::error::pwn\r\x1b[31mRED \u202e\u2028##\[error]pwn" in said
    assert said.count("\n") == 1
    assert "##[" not in said


def test_no_name_of_a_file_begins_a_line_with_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    print_problems([Problem("::error::pwn.json", 1, "is odd", "go")])
    assert capsys.readouterr().out == "./::error::pwn.json:1: is odd; go\n"


def test_words_of_every_language_are_printed_as_they_are() -> None:
    assert printable("3\u00a0GiB, \u30e1\u30e2\u30ea, \u0630\u0627\u0643\u0631\u0629") == (
        "3\u00a0GiB, \u30e1\u30e2\u30ea, \u0630\u0627\u0643\u0631\u0629"
    )


def test_a_bundle_cannot_fill_the_terminal(tmp_path: Path) -> None:
    make_project(tmp_path / "here")
    table = record_table(make_record()) | {"x" * 200_000: 1}
    digest = bundle_digest(MACHINE_JSON, [table])
    bundle = {"schema": 1, "digest": digest, "machine": MACHINE_JSON, "records": [table]}
    path = write(tmp_path / "bundle.json", json.dumps(bundle))
    done = benchbook(tmp_path / "here", "import", str(path))
    assert done.returncode == 1
    assert done.stderr.endswith("x: there is no such key; record it again with `benchbook record`\n")
    assert len(done.stderr) < 2 * LONGEST
