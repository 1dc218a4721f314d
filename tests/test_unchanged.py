"""A test is left out only where nothing that it imports, or could read, has changed since `main`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from builders import write
from unchanged import ROOT, changed_files, imported_files, must_run

HERE = ROOT / "tests/predictor/test_predictor_cpu.py"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "scripts/house/__init__.py", "")
    write(tmp_path / "scripts/house/roof.py", "def late():\n    from house.cellar import coal\n")
    write(tmp_path / "scripts/house/cellar/__init__.py", "import tools\n")
    write(tmp_path / "scripts/house/cellar/coal.py", "")
    write(tmp_path / "scripts/house/garden.py", "")
    write(tmp_path / "tests/tools.py", "import os\n")
    write(tmp_path / "tests/test_roof.py", "from house import roof\n")
    return tmp_path


def test_imports_are_followed_into_functions_packages_and_helpers(root: Path) -> None:
    assert imported_files(root / "tests/test_roof.py", root) == {
        "tests/test_roof.py",
        "tests/tools.py",
        "scripts/house/__init__.py",
        "scripts/house/roof.py",
        "scripts/house/cellar/__init__.py",
        "scripts/house/cellar/coal.py",
    }


def test_the_predictor_s_tests_depend_on_the_predictor_and_not_on_the_pages() -> None:
    found = imported_files(HERE)
    assert "scripts/benchbook/predictor/prediction.py" in found
    assert "scripts/benchbook/rendering/plugin.py" not in found


@pytest.mark.parametrize(
    ("changed", "runs"),
    [
        (None, True),
        (set(), True),
        ({"scripts/benchbook/predictor/prediction.py"}, True),
        ({"scripts/benchbook/rendering/plugin.py"}, False),
        ({"scripts/benchbook/rendering/plugin.py", "constraints.txt"}, True),
        ({"docs/en/index.md", "README.md", "tests/browser/test_frame.py"}, False),
        ({"tests/rendering/test_templates.py"}, False),
        ({"tests/predictor/test_predictor_cpu.py"}, True),
        ({"tests/fixtures/handbook/snippets/memory/methods.py"}, True),
        ({"snippets/models/bert-large.json"}, True),
    ],
)
def test_it_runs_unless_nothing_it_imports_or_could_read_has_changed(
    changed: set[str] | None, runs: bool
) -> None:
    assert must_run(HERE, (), changed) == runs


def test_a_module_that_it_starts_in_a_process_of_its_own_counts() -> None:
    changed = {"scripts/benchbook/recording/worker.py"}
    assert not must_run(HERE, (), changed)
    assert must_run(HERE, ("benchbook.recording.worker",), changed)


def git(root: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


def test_what_has_changed_is_committed_edited_or_new_and_not_what_git_ignores(root: Path) -> None:
    assert changed_files(root) is None
    write(root / ".gitignore", "*.log\n")
    git(root, "init", "--initial-branch", "main")
    git(root, "add", "--all")
    git(root, "commit", "--message", "begin")
    assert changed_files(root) == set()
    git(root, "switch", "--create", "work")
    write(root / "scripts/house/garden.py", "flowers = 3\n")
    git(root, "commit", "--all", "--message", "plant")
    write(root / "tests/tools.py", "import sys\n")
    write(root / "new.py", "")
    write(root / "noise.log", "")
    assert changed_files(root) == {"scripts/house/garden.py", "tests/tools.py", "new.py"}
