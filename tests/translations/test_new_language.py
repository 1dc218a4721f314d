"""A language is begun with one command, builds at once, and is removed by deleting its folder and its entry."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml
from babel import Locale

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.languages.language import load_language
from benchbook.translations.accept import translation_states, untranslated_lines
from benchbook.translations.new_language import MARK, language_problems, listed_languages, new_language
from builders import make_project, write
from clones import benchbook
from handbooks import build_site
from lessons import copied_tree, found_in, small_site

LISTED = """site_name: Small
site_description: What it is.
plugins:
  - benchbook
  - i18n:
      languages:
        - locale: en
          name: English
          default: true
        - locale: ja
          name: 日本語
          nav_translations:
            Start: はじめに
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return copied_tree(tmp_path).project


@pytest.mark.parametrize(
    "code", ["he", "pt-BR", *(pytest.param(code, marks=pytest.mark.slow) for code in ("fr", "ru", "ko"))]
)
def test_a_new_language_holds_every_promise_and_is_marked_to_be_translated(
    project: Project, code: str
) -> None:
    before = found_in(project)
    done = benchbook(project.root, "new", "language", code)
    assert done.stdout.splitlines() == [f"wrote docs/{code}/_language.yml", "wrote mkdocs.yml"]
    assert found_in(project) == before
    language, english = (load_language(project.docs, name) for name in (code, "en"))
    assert set(language.strings) == set(english.strings)
    assert set(language.labels) == set(english.labels)
    assert untranslated_lines(Project(project.root))[code] > len(language.strings) + len(language.labels)
    states = [one for one in translation_states(Project(project.root)) if one.language == code]
    assert states
    assert {one.document for one in states} == {None}


def test_plural_forms_are_those_of_the_new_language(project: Project) -> None:
    new_language(project, "ru")
    forms = load_language(project.docs, "ru").strings["median_of"]
    assert isinstance(forms, dict)
    assert set(forms) == {*Locale("ru").plural_form.tags, "other"}
    new_language(project, "ko")
    assert load_language(project.docs, "ko").strings["median_of"] == {"other": "median of {n}"}


def test_the_code_of_norwegian_is_a_text(project: Project) -> None:
    new_language(project, "no")
    settings = (project.root / "mkdocs.yml").read_text("utf-8")
    assert '- locale: "no"\n' in settings
    assert "- locale: ja\n" in settings


def test_a_language_is_removed_by_deleting_its_folder_and_its_entry(project: Project) -> None:
    before = (project.root / "mkdocs.yml").read_text("utf-8"), found_in(project)
    new_language(project, "fr")
    shutil.rmtree(project.docs / "fr")
    (problem,) = language_problems(project)
    assert (problem.path, problem.what) == (
        "mkdocs.yml",
        "lists `fr`, which has no docs/fr/_language.yml",
    )
    text = (project.root / "mkdocs.yml").read_text("utf-8")
    begin = sum(len(line) + 1 for line in text.split("\n")[: problem.line - 1])
    end = text.index("\n\nmarkdown_extensions", begin) + 1
    assert text[:begin] + text[end:] == before[0]
    write(project.root / "mkdocs.yml", text[:begin] + text[end:])
    assert found_in(project) == before[1]


def test_a_folder_that_is_not_listed_is_named(project: Project) -> None:
    shutil.copytree(project.docs / "zh", project.docs / "zh-Hant")
    (problem,) = language_problems(Project(project.root))
    assert problem.path == "docs/zh-Hant/_language.yml"
    assert "is of a language that mkdocs.yml does not list" in problem.what


def test_the_entry_stands_behind_the_last_language_and_says_what_to_translate(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    write(tmp_path / "mkdocs.yml", LISTED)
    write(tmp_path / "docs/ja/_language.yml", "strings: {}\n")
    new_language(project, "pt-BR")
    text = (tmp_path / "mkdocs.yml").read_text("utf-8")
    assert text.startswith(LISTED)
    entry = yaml.safe_load(text.replace("!ENV ", ""))["plugins"][1]["i18n"]["languages"][2]
    assert entry == {
        "locale": "pt-BR",
        "name": "Português (Brasil)",
        "build": ["BUILD_PT_BR", True],
        "site_name": "Small",
        "site_description": "What it is.",
        "nav_translations": {"Start": "Start"},
    }
    assert text.count(MARK) == 3
    listed = listed_languages(text)
    assert listed is not None
    assert list(listed.lines) == ["en", "ja", "pt-BR"]


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("xx", "not a language that CLDR knows"),
        ("iw", "begins with a code that was replaced: `iw` is written `he`"),
        ("French", "not a code of a language that the site can have"),
        ("../fr", "not a code of a language that the site can have"),
        ("en", "is there already"),
        ("ja", "is there already"),
    ],
)
def test_what_cannot_be_begun_is_refused_and_changes_nothing(project: Project, code: str, what: str) -> None:
    before = (project.root / "mkdocs.yml").read_text("utf-8")
    with pytest.raises(BenchbookError, match=what):
        new_language(project, code)
    assert (project.root / "mkdocs.yml").read_text("utf-8") == before


def test_a_site_without_languages_is_told_to_list_english_first(tmp_path: Path) -> None:
    with pytest.raises(BenchbookError, match="lists no languages below the plugin i18n"):
        new_language(make_project(tmp_path), "fr")


# Pashto is written from right to left, and the theme has no words in it.
def test_a_new_language_builds_with_english_pages_in_its_own_direction(tmp_path: Path) -> None:
    project = small_site(tmp_path)
    new_language(project, "ps")
    shown = (build_site(project) / "ps" / "index.html").read_text("utf-8")
    assert '<html lang="ps"' in shown
    assert '<body dir="rtl"' in shown
    notice = load_language(project.docs, "ps").text("fallback_notice")
    assert f"<p>{notice}</p>" in shown
    assert '<article class="md-content__inner md-typeset" lang="en" dir="ltr"' in shown
