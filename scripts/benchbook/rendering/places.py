"""Find what a page refers to, with its lines, and check it without building the site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchbook.content.fence_names import CLAIM, ERROR_FIELD, FENCES
from benchbook.content.page_source import VALUE, PageSource, fence_name, fence_options, parse_page
from benchbook.content.problems import MOST, BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.readings import made_size
from benchbook.content.references import UnresolvedError
from benchbook.languages.language import Language, load_language
from benchbook.query.library import Library
from benchbook.rendering.calculator_form import check_part
from benchbook.rendering.cells import check_options, resolve_cell, shown_size
from benchbook.rendering.charts import resolve_chart
from benchbook.rendering.claim_list import check_listing, check_place
from benchbook.rendering.claims import resolve_claim
from benchbook.rendering.context import Build
from benchbook.rendering.error_texts import check_field
from benchbook.rendering.specs import COUNTED, HandbookCount, PageCount
from benchbook.rendering.tables import resolve_table
from benchbook.rendering.traces import resolve_trace
from benchbook.rendering.tradeoffs import resolve_tradeoff
from benchbook.rendering.values import resolve_value

# Where a page refers to records: the line, the kind (a fence or "value") and the text.
Place = tuple[int, str, str]


def page_references(path: Path) -> list[Place]:
    """Every fence and inline value of the page `path`, in order."""
    page = parse_page(path.read_text("utf-8"))
    return [(line, kind, text) for line, kind, text, _, _ in _places(page)]


def empty_counts(project: Project) -> dict[str, HandbookCount]:
    """What the pages of each language have asked for before the first is read."""
    recorded = [name for name in project.machines if any((project.records / name).glob("*/*.json"))]
    machines = len(recorded) + len(project.unmeasured)
    return {code: HandbookCount(machines) for code in project.languages}


def check_page(
    path: Path, page: PageSource, library: Library, handbook: HandbookCount | None = None
) -> list[Problem]:
    """What is wrong with the references of a page: `MOST` problems, or few more.

    Parameters:
        path: Its file.
        page: The page.
        library: Scripts and records.
        handbook: What the pages before it in its language ask for; takes in what it asks for itself.
    """
    problems: list[Problem] = []
    try:
        for found, _ in reference_problems(path, page, library, handbook or HandbookCount()):
            problems += found
            if len(problems) >= MOST:
                break
    except BenchbookError as error:
        problems += error.problems
    return problems


def reference_problems(
    path: Path, page: PageSource, library: Library, handbook: HandbookCount
) -> Iterator[tuple[Sequence[Problem], UnresolvedError | BenchbookError]]:
    """What is wrong with each reference of a page, and what it raised.

    The parameters are those of `check_page`.

    Raises:
        BenchbookError: The language cannot be read.
    """
    shown = library.project.relative(path)
    for line, error in _errors(path, page, library, handbook):
        # A claim's problems have a file and a line of their own.
        yield error.problems if isinstance(error, BenchbookError) else [error.at(shown, line)], error


def _errors(
    path: Path, page: PageSource, library: Library, handbook: HandbookCount
) -> Iterator[tuple[int, UnresolvedError | BenchbookError]]:
    """What each reference of a page raises, with its line; as `reference_problems`."""
    docs = library.project.docs
    language = load_language(docs, path.relative_to(docs).parts[0])
    if handbook.is_full:
        return  # which was said where it became so
    count = PageCount(handbook)
    try:
        handbook.add(size=made_size(path.read_text("utf-8")))
    except UnresolvedError as error:
        yield 1, error
    for line, kind, text, options, heading in _places(page):
        if handbook.is_full:
            return
        if heading:
            yield line, UnresolvedError("a heading holds a value", "say it in the text below the heading")
        try:
            handbook.add(places=1)
            _resolve(library, path.stem, kind, text, options, language, count)
            if kind == "claims":
                check_place(path.relative_to(docs / language.code).as_posix())
        except (UnresolvedError, BenchbookError) as error:
            yield line, error


def locate(build: Build, kind: str, text: str) -> list[int]:
    """The lines of the current page on which `text` stands in a fence or value of this kind; at least one."""
    path = build.library.project.root / build.here.path
    places = page_references(path) if path.is_file() else []
    return [line for line, other, body in places if other == kind and body.strip() == text.strip()] or [1]


def _resolve(
    library: Library,
    guide: str,
    kind: str,
    text: str,
    options: dict[str, str],
    language: Language,
    count: PageCount,
) -> None:
    if kind in COUNTED and count.is_full:
        return
    count.name(kind, text)
    if kind == "cell":
        check_options(options)
        _, cell, _, found = resolve_cell(library, guide, text)
        count.handbook.add(size=shown_size(cell, found))
    elif kind == "table":
        resolve_table(library, guide, text, language, count)
    elif kind == "chart":
        resolve_chart(library, guide, text, count)
    elif kind == "tradeoff":
        resolve_tradeoff(library, guide, text, count)
    elif kind == "trace":
        resolve_trace(library, guide, text, count)
    elif kind == CLAIM:
        resolve_claim(library, text, options)
    elif kind == "claims":
        check_listing(library, text, language)
    elif kind == "calculator":
        check_part(library.project, text)
    elif kind == ERROR_FIELD:
        check_field(text)
    elif kind == "value":
        resolve_value(library, guide, text)


def _places(page: PageSource) -> Iterator[tuple[int, str, str, dict[str, str], bool]]:
    """Line, kind, text, fence options and whether it stands in a heading, of every reference."""
    block, heading = 0, False
    for token in page.tokens:
        if token.map is not None:
            block = token.map[0]
        if token.type in ("heading_open", "heading_close"):
            heading = token.type == "heading_open"
        name = fence_name(token)
        if name in FENCES:
            yield block + 1, name, token.content, fence_options(token), False
        if token.type == "inline":
            line = block + 1
            for child in token.children or ():
                if child.type in ("softbreak", "hardbreak"):
                    line += 1
                elif child.type == "code_inline" and child.content.startswith(VALUE):
                    yield line, "value", child.content.removeprefix(VALUE), {}, heading
