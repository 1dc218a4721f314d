"""The sheet of one who reviews a translation: each section beside its English one, with the values."""

from __future__ import annotations

from html import escape
from pathlib import Path

from markdown import Markdown
from mkdocs.config import load_config

from benchbook.content.cleaning import clean
from benchbook.content.project import Project
from benchbook.languages.language import Language, load_languages
from benchbook.languages.markup import finish
from benchbook.query.library import Library
from benchbook.rendering.context import Build, PageContext, activate
from benchbook.rendering.fences import fill
from benchbook.rendering.provenance import Commits
from benchbook.rendering.replay import register_fences
from benchbook.rendering.templates import template
from benchbook.translations.documents import Document
from benchbook.translations.drift import drift_of
from benchbook.translations.reviews import standing_reviews
from benchbook.translations.sections import DESCRIPTION

TEMPLATE = "review_sheet.html"


def review_sheet(project: Project, document: Document) -> str:
    """The HTML of the sheet of a translation, whole in one file.

    Raises:
        BenchbookError: A script or a record of the page is not in order.
    """
    english = document.english
    assert english is not None, "a page without an English one is not a translation"
    languages = load_languages(project)
    config = load_config(str(project.root / "mkdocs.yml"))
    register_fences(config)
    markdown = Markdown(extensions=config.markdown_extensions, extension_configs=config.mdx_configs)
    build = Build(Library(project), languages, Commits(project), repository=config.repo_url or "")
    sides = [_sections(build, markdown, one, languages[one.code]) for one in (english, document)]
    states = {
        one.key: one for one in drift_of(document.page, document.text, document.sections, english.sections)
    }
    reviews = standing_reviews(document)
    rows = [
        {
            "key": section.key,
            "english": sides[0][section.key],
            "translated": sides[1].get(section.key, ""),
            "state": states[section.key].reason if section.key in states else "not translated",
            "review": reviews.get(section.key),
        }
        for section in english.sections
    ]
    styles = "".join(
        (project.docs / "assets" / name).read_text("utf-8") for name in ("site.css", "blocks.css")
    )
    return template(TEMPLATE).render(
        page=f"{document.code}/{document.name}",
        language=document.code,
        direction=languages[document.code].direction,
        rows=rows,
        styles=styles.replace("</", "<\\/"),
    )


def _sections(build: Build, markdown: Markdown, document: Document, language: Language) -> dict[str, str]:
    """The HTML of each section of a page by its id, each rendered by itself."""
    lines = document.text.splitlines(keepends=True)
    written = [section for section in document.sections if section.key != DESCRIPTION]
    found = {one.key: f"<p>{escape(one.title)}</p>" for one in document.sections if one.key == DESCRIPTION}
    for section, after in zip(written, [*written[1:], None], strict=True):
        text = "".join(lines[section.line - 1 : after.line - 1 if after else None])
        found[section.key] = _html(build, markdown, text, document, language)
    return found


def _html(build: Build, markdown: Markdown, text: str, document: Document, language: Language) -> str:
    build.page = PageContext(document.shown, Path(document.name).stem, language, "")
    build.slots.clear()
    activate(build)
    try:
        html = clean(markdown.reset().convert(text))
        return fill(build, finish(html, right_to_left=language.direction == "rtl", permalink=""))
    finally:
        activate(None)
        build.page = None
