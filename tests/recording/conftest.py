"""What tests of recording share: a project, and no variable of whoever runs them that scripts would be kept from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchbook.content.project import Project
from benchbook.machines.circumstances import withheld
from benchbook.recording import command as recording
from running import small_project


@pytest.fixture(autouse=True)
def _only_what_scripts_inherit(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in withheld(os.environ):
        monkeypatch.delenv(name)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with nothing in it, on a machine that says at once that it has no accelerator."""
    # Asking torch for accelerators takes a second, and the answer is of no matter here.
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    return small_project(tmp_path)
