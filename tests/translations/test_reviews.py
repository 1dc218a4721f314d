"""What a native reader has read is recorded by section, and said of those sections alone while they stand."""

from __future__ import annotations

import datetime
import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchbook.cli import main as cli
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.unfinished import alone
from benchbook.languages.language import load_language
from benchbook.rendering.review_sheet import review_sheet
from benchbook.translations import accept as accepting
from benchbook.translations import reviews
from benchbook.translations.accept import accept, translation_states
from benchbook.translations.documents import Document, read_documents
from benchbook.translations.reviews import record_review, standing_reviews, translated_document
from builders import write
from handbooks import FIXTURE, build_site, edit, whole_handbook
from lessons import found_in

TODAY = datetime.date(2026, 11, 22)
PAGE = "ja/memory.md"
SECTION = "peak-memory"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return whole_handbook(tmp_path / "handbook")


def review(project: Project, section: str = SECTION, native: str = "ja", by: str = "Aiko") -> str:
    return record_review(Project(project.root), PAGE, section, by, native, TODAY)


def said(project: Project) -> set[str]:
    """What a check finds, without lines: an entry in the front matter moves them."""
    problems, warnings = found_in(Project(project.root))
    return {one.what for one in (*problems, *warnings)}


def standing(project: Project) -> list[str]:
    return list(standing_reviews(translated_document(Project(project.root), PAGE)))


def test_no_page_here_claims_a_review_that_nobody_made() -> None:
    for path in (Path(__file__).parents[2] / "docs").glob("*/*.md"):
        assert "\nreviewed:" not in path.read_text("utf-8"), path


def test_a_review_names_who_read_what_when_and_in_which_language(project: Project) -> None:
    assert review(project) == "docs/ja/memory.md#peak-memory"
    (found,) = standing_reviews(translated_document(Project(project.root), PAGE)).values()
    assert (found.by, found.native, found.date) == ("Aiko", "ja", "2026-11-22")
    assert standing(project) == [SECTION]
    (state,) = [
        one
        for one in translation_states(Project(project.root))
        if one.document and one.document.shown == f"docs/{PAGE}"
    ]
    assert state.as_dict()["reviewed"][SECTION]["by"] == "Aiko"


@pytest.mark.parametrize("side", ["ja", "en"])
def test_a_review_holds_until_either_side_changes(project: Project, side: str) -> None:
    before = said(project)
    review(project)
    assert said(project) == before
    page = project.docs / side / "memory.md"
    old = {"ja": "| 通常 |", "en": "The argument is called"}[side]
    edit(page, old, {"ja": "| そのまま |", "en": "The parameter is called"}[side])
    assert standing(project) == []
    assert "`peak-memory` has changed, here or in English, since Aiko read it" in said(project)


def test_one_who_is_not_a_native_reader_records_nothing(project: Project) -> None:
    before = (project.docs / PAGE).read_bytes()
    with pytest.raises(BenchbookError, match="is in ja, and Aiko reads zh as a native"):
        review(project, native="zh")
    with pytest.raises(BenchbookError, match=r"has no section `peak`.*peak-memory"):
        review(project, section="peak")
    with pytest.raises(BenchbookError, match="by: String should match"):
        review(project, by="<b>Aiko</b>")
    with pytest.raises(BenchbookError, match="is not a page that is translated"):
        record_review(project, "ja/nowhere.md", SECTION, "Aiko", "ja", TODAY)
    assert (project.docs / PAGE).read_bytes() == before


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("true", "`reviewed:` is not a table of sections"),
        ("{by: Aiko, date: 2026-01-31}", "reviewed.by: "),
        ("{peak-memory: {by: Aiko}}", "reviewed.peak-memory.native: Field required"),
        (
            "{nowhere: {by: Aiko, native: ja, date: '2026-01-31', read: 0123456789ab, english: 0123456789ab}}",
            "a review of `nowhere` is here, and no such section",
        ),
        (
            "{peak-memory: {by: Ada, native: en, date: '2026-01-31', read: 0123456789ab, english: 0123456789ab}}",
            "`peak-memory` was reviewed by a reader of en",
        ),
    ],
)
def test_a_review_by_hand_that_says_less_is_named(project: Project, entry: str, what: str) -> None:
    page = project.docs / PAGE
    edit(page, "\nsynonyms:", f"\nreviewed: {entry}\nsynonyms:")
    line = page.read_text("utf-8").splitlines().index(f"reviewed: {entry}") + 1
    problems = [str(one) for one in found_in(Project(project.root))[0]]
    assert any(one.startswith(f"docs/{PAGE}:{line}: {what}") for one in problems), problems


def test_of_two_reviews_at_once_neither_undoes_the_other(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, turns = translated_document, iter(["where-it-goes"])

    def second() -> None:
        """Record the other review as soon as nobody keeps it from that."""
        with alone(project.root, waiting=False) as free:
            pass
        if free and (section := next(turns, None)):
            review(project, section, by="Kenji")

    def second_first(*arguments: Any) -> Document:
        document = real(*arguments)
        second()
        return document

    monkeypatch.setattr(reviews, "translated_document", second_first)
    review(project)
    second()
    assert standing(project) == [SECTION, "where-it-goes"]


@pytest.mark.parametrize("command", ["accept", "review"])
def test_what_an_editor_saves_while_a_command_reads_the_pages_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    module = {"accept": accepting, "review": reviews}[command]
    real, page = read_documents, project.docs / PAGE

    def read_then_saved(given: Project) -> list[Document]:
        documents = list(real(given))
        write(page, page.read_text("utf-8") + "\n保存された行。\n")
        return documents

    monkeypatch.setattr(module, "read_documents", read_then_saved)
    before = page.read_text("utf-8")
    if command == "accept":
        edit(project.docs / "en/memory.md", "The argument is called", "The parameter is called")
        assert accept(Project(project.root), "ja/memory", None, all_languages=False)
    else:
        review(project)
    assert page.read_text("utf-8") != before
    assert page.read_text("utf-8").endswith("\n保存された行。\n")


def test_the_sheet_shows_each_section_beside_its_english_one_with_the_values(project: Project) -> None:
    html = review_sheet(project, translated_document(project, "ja/measured.md"))
    rows = re.split(r'<section id="', html)[1:]
    keys = [row.partition('"')[0] for row in rows]
    assert keys[0] == "description"
    assert "in-a-sentence" in keys
    (row,) = [row for row in rows if row.startswith("in-a-sentence")]
    english, translated = row.split('<div lang="ja" dir="ltr"')
    for side in (english, translated):
        assert 'class="bb-value' in side
        assert "bb-problem" not in side
    assert "--done in-a-sentence --by" in row
    assert "<script" not in html


def test_the_sheet_of_a_page_from_right_to_left_runs_so(project: Project) -> None:
    assert '<div lang="ar" dir="rtl"' in review_sheet(project, translated_document(project, "ar/measured.md"))


def test_the_command_writes_the_sheet_and_records_what_was_read(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(project.root))
    run = CliRunner().invoke
    out = tmp_path / "sheet.html"
    wrote = run(cli.app, ["translations", "review", PAGE, "--out", str(out)])
    assert (wrote.exit_code, out.read_text("utf-8").startswith("<!doctype html>")) == (0, True), wrote.output
    unsaid = run(cli.app, ["translations", "review", PAGE, "--done", SECTION])
    assert unsaid.exit_code == 2
    done = run(cli.app, ["translations", "review", PAGE, "--done", SECTION, "--by", "Aiko", "--native", "ja"])
    assert "reviewed docs/ja/memory.md#peak-memory" in done.output
    listed = json.loads(run(cli.app, ["translations", "status", "--json"]).output)
    assert [one["page"] for one in listed if one["reviewed"]] == ["memory.md"]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (f"translations accept {PAGE}", f"docs/{PAGE}"),
        (f"translations review {PAGE} --done {SECTION} --by Aiko --native ja", f"docs/{PAGE}"),
        (f"translations review {PAGE} --out sheet.html", "sheet.html"),
        ("new script memory/more", "snippets/memory/more.py"),
        ("new guide more", "snippets/more/first.py"),
    ],
)
def test_what_a_full_disk_has_no_room_for_is_named_and_nothing_else_is_written(
    project: Project, monkeypatch: pytest.MonkeyPatch, command: str, name: str
) -> None:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(project.root))
    monkeypatch.chdir(project.root)
    edit(project.docs / "en/memory.md", "The argument is called", "The parameter is called")
    before = {path: path.read_bytes() for path in sorted(project.root.rglob("*")) if path.is_file()}

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        patch.setattr(os, "replace", full)
        error = CliRunner().invoke(cli.app, command.split()).exception
    assert isinstance(error, BenchbookError)
    assert str(error).startswith(f"{name}:1: cannot be written (No space left on device); make room there")
    assert {path: path.read_bytes() for path in sorted(project.root.rglob("*")) if path.is_file()} == before


def test_a_page_says_it_of_the_sections_that_were_read_and_of_no_other(project: Project) -> None:
    config = project.root / "mkdocs.yml"
    config.write_text(config.read_text("utf-8") + "plugins:\n  benchbook: {search: false}\n", "utf-8")
    accept(project, "ja/memory", None, all_languages=False)
    review(project)
    words = load_language(project.docs, "ja")
    page = build_site(Project(project.root)) / "ja/memory/index.html"
    html = page.read_text("utf-8")
    assert html.count(words.text("section_reviewed")) == 1
    assert (
        html.index('id="peak-memory"')
        < html.index(words.text("section_reviewed"))
        < html.index('id="where-it-goes"')
    )
    assert words.text("unreviewed") in html
    document = translated_document(Project(project.root), PAGE)
    for section in document.sections:
        review(project, section.key)
    html = (build_site(Project(project.root)) / "ja/memory/index.html").read_text("utf-8")
    assert words.text("unreviewed") not in html


def test_the_fixture_s_translation_is_one_that_can_be_reviewed() -> None:
    assert (FIXTURE / "docs" / PAGE).is_file()
