"""What tests of bundles share: a handbook without a record."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchbook.content.project import Project
from builders import MACHINE, make_project
from handbooks import edit


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A handbook in which nothing is measured yet, and nothing is the reference machine's."""
    project = make_project(tmp_path / "checkout")
    shutil.rmtree(project.records)
    edit(
        project.root / "pyproject.toml", f'reference_machine = "{MACHINE}"', 'reference_machine = "cpu-other"'
    )
    return Project(project.root)
