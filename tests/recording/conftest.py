"""What tests of recording share: a project, and no variable of whoever runs them that scripts would be kept from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchbook.content.project import Project
from benchbook.machines.circumstances import withheld
from benchbook.recording import command as recording
from environments import bare_environment
from running import small_project


@pytest.fixture(autouse=True)
def _only_what_scripts_inherit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in withheld(os.environ):
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with what a host needs alone, for each looks at all packages before its first run."""
    return bare_environment(tmp_path_factory.mktemp("bare"), ("packaging", "psutil", "pyyaml")) / "bin/python"


@pytest.fixture
def project(tmp_path: Path, bare_python: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with nothing in it, on a machine that says at once that it has no accelerator."""
    # Asking torch for accelerators takes a second, and the answer is of no matter here.
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    monkeypatch.setenv("BENCHBOOK_PYTHON", str(bare_python))
    return small_project(tmp_path)


@pytest.fixture
def with_packages(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripts of the project import what is installed for the tests."""
    monkeypatch.delenv("BENCHBOOK_PYTHON")
