"""The scripts' own heads say on which versions they are tried: the lowest that they admit, or any."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.contributing.requirements import newest_requirements, oldest_requirements
from builders import SCRIPT, make_project, with_table, write


def with_dependencies(project: Project, name: str, *dependencies: str, venv: str = "") -> None:
    listed = ", ".join(f'"{each}"' for each in dependencies)
    script = with_table(f'[tool.benchbook]\nvenv = "{venv}"') if venv else SCRIPT
    write(
        project.snippets / f"sums/{name}.py",
        script.replace("dependencies = []", f"dependencies = [{listed}]"),
    )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def test_the_oldest_is_the_lowest_that_suits_every_script(project: Project) -> None:
    with_dependencies(project, "add", "torch>=2.11", "NumPy>=2,<3", "tokenizers==0.22.1")
    with_dependencies(project, "sub", "torch>=2.9,!=2.10", "absent>=1; python_version < '3'")
    assert oldest_requirements(project) == ["numpy==2", "tokenizers==0.22.1", "torch==2.11"]


def test_the_oldest_has_the_extras_that_any_script_needs(project: Project) -> None:
    with_dependencies(project, "add", "transformers[serving]>=5.23")
    with_dependencies(project, "sub", "Transformers[torch]>=5.24", "numpy>=2")
    assert oldest_requirements(project) == ["numpy==2", "transformers[serving,torch]==5.24"]


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


def test_each_environment_has_the_needs_of_its_own_scripts(project: Project) -> None:
    with_dependencies(project, "add", "torch>=2.11")
    with_dependencies(project, "one", "engine>=0.32", "torch>=2.9", venv="own")
    with_dependencies(project, "two", "engine>=0.30", venv="own")
    assert oldest_requirements(project) == ["torch==2.11"]
    assert newest_requirements(project) == ["torch>=2.11"]
    assert oldest_requirements(project, "own") == ["engine==0.32", "torch==2.9"]
    assert newest_requirements(project, "own") == ["engine>=0.30", "engine>=0.32", "torch>=2.9"]


def test_an_environment_that_no_script_names_is_refused_with_the_near_one(project: Project) -> None:
    with_dependencies(project, "one", "engine>=0.32", venv="own")
    with pytest.raises(BenchbookError, match=r"no script runs in an environment `owm`; .*: own"):
        newest_requirements(project, "owm")
