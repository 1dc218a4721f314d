"""Pair each page of each language with its English one, parsed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchbook.content.page_source import PageSource, parse_page
from benchbook.content.project import Project
from benchbook.languages.language import FALLBACK
from benchbook.translations.drift import Drift, drift_of
from benchbook.translations.sections import Section, sections_of


@dataclass(frozen=True)
class Document:
    """A page of one language.

    Parameters:
        path: Its file.
        shown: Its path, for messages.
        code: Its language.
        name: Its name within the language, such as `index.md`.
        text: The file.
        page: The file, parsed.
        english: The page it translates; None for an English one, and where English has none.
    """

    path: Path
    shown: str
    code: str
    name: str
    text: str
    page: PageSource
    english: Document | None = None

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Its sections, the description first."""
        return sections_of(self.page, self.text)

    @cached_property
    def drift(self) -> list[Drift]:
        """How its sections stand to the English ones; nothing for a page without an English one."""
        theirs = self.english.sections if self.english else ()
        return drift_of(self.page, self.text, self.sections, theirs) if self.english else []


def read_documents(project: Project, pages: Mapping[Path, PageSource] | None = None) -> Iterator[Document]:
    """Every page of every language, the English ones first.

    Parameters:
        project: The checkout.
        pages: Pages that are parsed already.
    """
    english: dict[str, Document] = {}
    for path in project.page_paths():
        code, _, name = path.relative_to(project.docs).as_posix().partition("/")
        text = path.read_text("utf-8")
        page = (pages or {}).get(path) or parse_page(text)
        document = Document(path, project.relative(path), code, name, text, page, english.get(name))
        if code == FALLBACK:
            english[name] = document
        yield document
