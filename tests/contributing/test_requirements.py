"""The scripts' own heads say on which versions they are tried: the lowest that they admit, or any."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.contributing.requirements import newest_requirements, oldest_requirements
from builders import SCRIPT, make_project, write


def with_dependencies(project: Project, name: str, *dependencies: str) -> None:
    listed = ", ".join(f'"{each}"' for each in dependencies)
    write(
        project.snippets / f"sums/{name}.py",
        SCRIPT.replace("dependencies = []", f"dependencies = [{listed}]"),
    )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def test_the_oldest_is_the_lowest_that_suits_every_script(project: Project) -> None:
    with_dependencies(project, "add", "torch>=2.11", "NumPy>=2,<3", "tokenizers==0.22.1")
    with_dependencies(project, "sub", "torch>=2.9,!=2.10", "absent>=1; python_version < '3'")
    assert oldest_requirements(project) == ["numpy==2", "tokenizers==0.22.1", "torch==2.11"]


def test_the_newest_is_whatever_they_admit(project: Project) -> None:
    with_dependencies(project, "add", "torch>=2.11")
    with_dependencies(project, "sub", "torch>=2.9,<3")
    assert newest_requirements(project) == ["torch<3,>=2.9", "torch>=2.11"]


@pytest.mark.parametrize(
    ("dependencies", "what"),
    [
        (["torch"], "names no lowest version"),
        (["torch<3"], "names no lowest version"),
        (["a b"], "not a requirement"),
    ],
)
def test_a_script_that_does_not_say_is_named(project: Project, dependencies: list[str], what: str) -> None:
    with_dependencies(project, "add", *dependencies)
    with pytest.raises(BenchbookError, match=rf"snippets/sums/add\.py:4: its dependency .*{what}"):
        oldest_requirements(project)


def test_two_scripts_that_no_version_suits_are_named(project: Project) -> None:
    with_dependencies(project, "add", "torch>=2.11")
    with_dependencies(project, "sub", "torch>=2.9,<2.10")
    with pytest.raises(
        BenchbookError, match=r"sub\.py:4: .* excludes 2\.11, the lowest that snippets/sums/add\.py"
    ):
        oldest_requirements(project)
