"""The page of error texts: every text that a script provokes is explained, and found again when it is pasted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchbook.content.page_source import parse_page
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.rendering.error_texts import (
    DATA,
    PAGE,
    error_text_problems,
    known_texts,
    write_error_texts,
)
from builders import SCRIPT, make_project, write

ROOT = Path(__file__).parents[2]
PARTS = 'fixed_parts = {"too_large": ["is too large", "Try a smaller one"]}\n'
EXPLAINED = "---\ndescription: Errors.\n---\n\n# Errors { #errors }\n\n## `x` is too large { #too-large }\n\nTake less.\n"


def project_with(root: Path, parts: str = PARTS, page: str = EXPLAINED) -> Project:
    project = make_project(root, SCRIPT.replace("# %% checks\n", f"# %% fixed\n{parts}\n# %% checks\n"))
    write(project.docs / "en" / PAGE, page)
    return project


def problems(project: Project) -> list[str]:
    pages = {path: parse_page(path.read_text("utf-8")) for path in project.page_paths()}
    return [str(problem) for problem in error_text_problems(project, pages)]


def test_a_text_that_the_page_explains_is_no_problem(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    (text,) = known_texts(project)
    assert (text.id, text.parts) == ("too-large", ("is too large", "Try a smaller one"))
    assert problems(project) == []


def test_a_text_that_is_explained_nowhere_is_named_with_its_line(tmp_path: Path) -> None:
    (found,) = problems(project_with(tmp_path, page=EXPLAINED.replace("#too-large", "#other")))
    assert found.startswith("snippets/sums/add.py:18: the text `too-large` is explained nowhere")


@pytest.mark.parametrize(
    "parts",
    [
        'fixed_parts = {"a": str(1)}',
        'fixed_parts = ["a"]',
        'fixed_parts = {"a": []}',
        'fixed_parts = {"a": [" "]}',
    ],
)
def test_parts_that_are_no_literal_of_names_are_refused(parts: str, tmp_path: Path) -> None:
    with pytest.raises(BenchbookError, match="not a literal of names with parts"):
        known_texts(project_with(tmp_path, parts))


def test_the_site_holds_parts_and_titles_in_each_language(tmp_path: Path) -> None:
    project = project_with(tmp_path)
    write(project.docs / "ja/_language.yml", "strings: {}\nlabels: {}\n")
    write(project.docs / "ja" / PAGE, EXPLAINED.replace("`x` is too large", "大きすぎる"))
    write_error_texts(project, tmp_path / "site")
    (known,) = json.loads((tmp_path / "site" / DATA).read_text("utf-8"))
    assert known["title"] == {"en": "x is too large", "ja": "大きすぎる"}
    assert known["parts"] == ["is too large", "Try a smaller one"]


FIELD = "```error-field\ntoo-large: far too large\n```\n"
NAMED = EXPLAINED.replace("Take less.\n", "`far too large` means the same.\n") + f"\n{FIELD}"


def test_a_text_that_no_script_provokes_leads_to_the_section_that_names_it(tmp_path: Path) -> None:
    project = project_with(tmp_path, page=NAMED)
    assert problems(project) == []
    write_error_texts(project, tmp_path / "site")
    known = json.loads((tmp_path / "site" / DATA).read_text("utf-8"))
    assert [(one["id"], one["parts"]) for one in known] == [
        ("too-large", ["is too large", "Try a smaller one"]),
        ("too-large", ["far too large"]),
    ]


@pytest.mark.parametrize("page", [EXPLAINED + f"\n{FIELD}", NAMED.replace("too-large: far", "small: far")])
def test_a_text_that_its_section_does_not_name_is_a_problem(tmp_path: Path, page: str) -> None:
    (found,) = problems(project_with(tmp_path, page=page))
    assert "docs/en/error_texts.md:12: the section `#" in found
    assert "does not hold the text `far too large`" in found


def test_a_site_without_error_texts_has_no_file_of_them(tmp_path: Path) -> None:
    write_error_texts(make_project(tmp_path), tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_every_text_of_the_handbook_has_a_part_of_twelve_letters() -> None:
    texts = known_texts(Project(ROOT))
    assert texts
    assert all(max(map(len, text.parts)) >= 12 for text in texts)
    assert len({text.id for text in texts}) == len(texts)
