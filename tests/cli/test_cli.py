"""The commands exit with 0, 1 or 2, and print what a person, or a program, can use."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchbook.cli import main
from benchbook.cli.main import seconds
from builders import MACHINE, PAGE, SCRIPT, make_project, with_table, write
from clones import ROOT, benchbook, unread


def test_status_prints_one_object_per_variant_and_machine(tmp_path: Path) -> None:
    make_project(tmp_path)
    done = benchbook(tmp_path, "status", "--json")
    assert done.returncode == 0
    (row,) = json.loads(done.stdout)
    assert row == {
        "script": "sums/add.py",
        "variant": "default",
        "machine": MACHINE,
        "state": "fresh",
        "reason": "measured as it stands",
        "kind": "record",
    }


def test_status_reads_well_without_json(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert "sums/add.py" in benchbook(tmp_path, "status").stdout


def test_check_exits_0_on_a_sound_tree_and_1_with_every_problem_otherwise(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert benchbook(tmp_path, "check").returncode == 0
    write(tmp_path / "snippets/sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    done = benchbook(tmp_path, "check")
    assert done.returncode == 1
    assert done.stdout.startswith("snippets/sums/add.py:1: its record on cpu-test is stale: code changed")


def test_an_error_is_a_line_never_a_traceback(tmp_path: Path) -> None:
    done = benchbook(tmp_path, "status")
    assert done.returncode == 1
    assert "no handbook here" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_what_the_output_cannot_encode_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    make_project(tmp_path, page=f"{PAGE}\n[x](图.svg)\n")
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    assert r"there is no file `\u56fe.svg` to link to; add it" in benchbook(tmp_path, "check").stdout
    assert r"\u56fe.py:1: is neither a script" in benchbook(tmp_path, "record", "--plan", "图.py").stderr


def test_where_no_space_is_left_for_what_is_printed_one_line_says_so(tmp_path: Path) -> None:
    make_project(tmp_path)
    command = [sys.executable, str(ROOT / "scripts/benchbook"), "status"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    said = "not all of it could be written: no space left on device; make room, and run it again\n"
    assert done.stderr == said


def test_the_exit_code_is_of_the_work_though_nobody_reads_what_is_printed(tmp_path: Path) -> None:
    make_project(tmp_path)
    assert unread("check", folder=tmp_path).returncode == 0
    assert unread("status", "--json", folder=tmp_path).returncode == 0
    write(tmp_path / "docs/en/sums.md", PAGE.replace("#total", "#totals"))
    assert unread("check", folder=tmp_path).returncode == 1


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_whatever_the_system_has_no_room_by_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], number: int
) -> None:
    def command() -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(main, "app", command)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    with pytest.raises(SystemExit):
        main.main()
    (line,) = capfd.readouterr().err.splitlines()
    assert (
        line == f"not all of it could be written: {os.strerror(number).lower()}; make room, and run it again"
    )


def test_a_python_without_our_packages_gets_one_line(tmp_path: Path) -> None:
    make_project(tmp_path)
    command = [sys.executable, "-S", str(ROOT / "scripts/benchbook"), "status"]
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "lacks the package typer; install" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["no-such-command"],
        ["record", "--budget", "soon"],
        ["record", "--stale", "--all"],
        ["record", "--json"],
        ["record", "--verify", "--plan"],
        ["record", "--at", "HEAD"],
        ["record", "--begun", "earlier.json"],
        ["dependencies"],
        ["dependencies", "--oldest", "--newest"],
        ["dependencies", "--oldest", "--newest", "--venv", "own"],
        ["import"],
        ["report"],
    ],
)
def test_wrong_usage_exits_2(tmp_path: Path, words: list[str]) -> None:
    make_project(tmp_path)
    assert benchbook(tmp_path, *words).returncode == 2


@pytest.mark.parametrize("words", [["--venv", "own"], ["--venv", "own", "--newest"]])
def test_the_needs_of_one_environment_are_listed(tmp_path: Path, words: list[str]) -> None:
    project = make_project(tmp_path)
    script = with_table('[tool.benchbook]\nvenv = "own"').replace("[]", '["engine>=0.32"]', 1)
    write(project.snippets / "sums/own.py", script)
    done = benchbook(tmp_path, "dependencies", *words)
    assert (done.returncode, done.stdout) == (0, "engine>=0.32\n")


def test_a_plan_needs_no_environment(tmp_path: Path) -> None:
    make_project(tmp_path)
    done = benchbook(tmp_path, "record", "--venvs", "--plan")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400)])
def test_durations_are_read_with_their_unit(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("module", ["torch", "mkdocs", "pydantic"])
def test_the_command_line_starts_without_heavy_packages(module: str) -> None:
    code = f"import sys; import benchbook.cli.main, benchbook.checking.status; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
