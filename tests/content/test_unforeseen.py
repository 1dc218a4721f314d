"""An error that nothing foresaw is one line that names a file, and a check or a build that does not end, ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.project import Project
from benchbook.content.unforeseen import TooLongError, unforeseen
from builders import make_project, write
from clones import ROOT, benchbook
from handbooks import copy_handbook


def raised(work: object, project: Project, error: Exception) -> Exception:
    """The error as it comes out of a function of the package that is at one of its files."""
    source = "def look(path, error):\n    raise error\n"
    made: dict[str, Any] = {}
    exec(compile(source, str(ROOT / "scripts/benchbook/content/x.py"), "exec"), made)
    try:
        made["look"](work, error)
    except Exception as caught:
        return caught
    raise AssertionError


@pytest.mark.parametrize("work", ["docs/en/sums.md", Path("docs/en/sums.md")])
def test_the_file_is_that_which_the_innermost_function_was_at(tmp_path: Path, work: object) -> None:
    project = make_project(tmp_path)
    said = str(unforeseen(raised(work, project, ValueError("no\nsense")), tmp_path))
    assert said.startswith(
        "docs/en/sums.md:1: something in it was not foreseen (ValueError: no sense); restore it"
    )


def test_a_file_that_the_system_names_is_named(tmp_path: Path) -> None:
    error = PermissionError(13, "Permission denied", str(tmp_path / "secret"))
    assert unforeseen(error, tmp_path).path == str(tmp_path / "secret")


def test_what_takes_too_long_is_named(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    error = raised("docs/en/sums.md", project, TooLongError("more than 3 s of a processor"))
    assert "docs/en/sums.md:1: something in it takes more than 3 s of a processor" in str(
        unforeseen(error, tmp_path)
    )


def run(folder: Path, program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program with this package in a folder."""
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "scripts"), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


FAILING = """
import sys
from benchbook.checking import checks
from benchbook.cli import main
def fail(path, *rest):
    {what}
checks.parse_page = fail
main.LONGEST_CHECK = 1
sys.argv = ["benchbook", "check"]
main.main()
"""


def test_a_command_ends_in_one_line_and_no_traceback(tmp_path: Path) -> None:
    make_project(tmp_path)
    program = FAILING.format(what="raise KeyError('never thought of')")
    done = run(tmp_path, program)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "docs/en/sums.md:1: something in it was not foreseen (KeyError: 'never thought of')"
    )
    assert "BENCHBOOK_TRACEBACK=1" in line
    asked = run(tmp_path, program, BENCHBOOK_TRACEBACK="1")
    assert "Traceback (most recent call last)" in asked.stderr


def test_a_check_that_does_not_end_ends(tmp_path: Path) -> None:
    make_project(tmp_path)
    done = run(tmp_path, FAILING.format(what="\n    while True: pass"))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("docs/en/sums.md:1: something in it takes more than 1 s of a processor; ")


BUILDING = """
from mkdocs.__main__ import cli
from benchbook.rendering import fences, plugin
def endless(*_):
    while True: pass
fences.tables.render_table = endless
plugin.LONGEST_BUILD = 4
cli(["build", "--quiet"])
"""


def test_a_build_that_does_not_end_ends(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    page = "---\ndescription: Of memory.\n---\n\n# Memory { #memory }\n\n```table\nscript: memory/methods.py\nrows: method\n```\n"
    write(project.docs / "en/memory.md", page)
    done = run(tmp_path, BUILDING)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "docs/en/memory.md:1: something in it takes more than 4 s of a processor; " in done.stderr


def test_outside_of_a_checkout_a_line_is_a_line_too(tmp_path: Path) -> None:
    assert benchbook(tmp_path, "check").stderr.count("\n") == 1
