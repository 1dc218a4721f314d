"""The texts of errors: what never varies of each, by the script that provokes it, and what explains it.

A script that provokes errors assigns `fixed_parts`, a literal, in one of its cells:

    fixed_parts = {"cuda_out_of_memory": ["CUDA out of memory", "Tried to allocate"]}

and asserts that each text holds its parts in that order. The page `error_texts.md` explains each below a
heading of the same name, with hyphens. Texts that no script provokes lead to a section of that page that
names them; they stand in its `error-field` fence, each on a line of its own:

    cuda-out-of-memory: CUDA error: out of memory

What a reader pastes is matched against the parts and these texts alone, in the search and in the field of
that page, by one matcher: docs/assets/errors.js.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from benchbook.content.fence_names import ERROR_FIELD
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.references import UnresolvedError
from benchbook.content.script import Script, read_script
from benchbook.rendering.context import Build

if TYPE_CHECKING:
    from benchbook.content.page_source import PageSource

NAME = "fixed_parts"
PAGE = "error_texts.md"
DATA = "assets/error_texts.json"


@dataclass(frozen=True)
class ErrorText:
    """A text that a script provokes, or that the page names.

    Parameters:
        id: The id of the heading that explains it.
        parts: What is in every one of its kind, in this order.
        script: Who provokes it; empty for one that only the page names.
        line: Where its parts stand.
    """

    id: str
    parts: tuple[str, ...]
    script: str
    line: int


def error_texts(script: Script) -> list[ErrorText]:
    """The texts that `script` says it provokes; none where it assigns no `fixed_parts`.

    Raises:
        BenchbookError: They are not a literal of names with parts.
    """
    for cell in script.cells:
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == NAME for target in node.targets
            ):
                line = cell.start + node.lineno - 1
                return [
                    ErrorText(name.replace("_", "-"), parts, script.reference, line)
                    for name, parts in _literal(node.value, script, line).items()
                ]
    return []


def known_texts(project: Project) -> list[ErrorText]:
    """Those of all scripts that can be read, in a stable order.

    Raises:
        BenchbookError: As `error_texts`.
    """
    paths = project.scripts().values()
    return [text for path in paths for text in _texts_in(path, project.root, path.stat().st_mtime_ns)]


@cache
def _texts_in(path: Path, root: Path, stamp: int) -> tuple[ErrorText, ...]:
    """The texts of the script in a file, as it was at `stamp`; none where it is not well formed."""
    if NAME not in path.read_text("utf-8"):
        return ()
    try:
        script = read_script(path, root)
    except BenchbookError:
        return ()  # said where scripts are checked
    return tuple(error_texts(script))


def named_texts(page: PageSource) -> list[ErrorText]:
    """Those that no script provokes, from the fence of the page.

    Raises:
        UnresolvedError: The fence holds something else.
    """
    return [
        ErrorText(heading, (text,), "", token.map[0] + 2 + place)
        for token in page.tokens
        if token.map is not None and token.type == "fence" and token.info.strip() == ERROR_FIELD
        for place, (heading, text) in enumerate(_lines(token.content))
    ]


def _lines(body: str) -> list[tuple[str, str]]:
    """The headings and the texts of an `error-field` fence."""
    found = []
    for line in body.strip().splitlines():
        heading, _, text = (part.strip() for part in line.partition(": "))
        if not heading or not text:
            what = f"the fence `{ERROR_FIELD}` holds `{line}`"
            raise UnresolvedError(
                what, "write the id of a heading and a text: `out-of-memory: no memory left`"
            )
        found.append((heading, text))
    return found


def error_text_problems(project: Project, pages: Mapping[Path, PageSource]) -> Iterator[Problem]:
    """Texts that the page does not explain, or does not name, and that two scripts name alike."""
    try:
        found = known_texts(project)
    except BenchbookError as error:
        yield from error.problems
        return
    path = project.docs / "en" / PAGE
    page = pages.get(path)
    headings = {heading.id for heading in page.headings()} if page else set()
    seen: dict[str, ErrorText] = {}
    for text in found:
        shown = f"snippets/{text.script}"
        if text.id in seen:
            what = f"the text `{text.id}` is that of {seen[text.id].script} too"
            yield Problem(shown, text.line, what, "rename one of the two")
        seen.setdefault(text.id, text)
        if text.id not in headings:
            what = f"the text `{text.id}` is explained nowhere"
            fix = f"explain it in {project.relative(path)}, below a heading {{ #{text.id} }}"
            yield Problem(shown, text.line, what, fix)
    yield from _unnamed(page, project.relative(path)) if page else ()


def _unnamed(page: PageSource, shown: str) -> Iterator[Problem]:
    """Texts of the fence whose section does not hold them."""
    try:
        texts = named_texts(page)
    except UnresolvedError:
        return  # said where fences are checked
    headings = [*page.headings()]
    for text in texts:
        begin = next((heading.line for heading in headings if heading.id == text.id), None)
        end = next((heading.line for heading in headings if begin and heading.line > begin), None)
        section = [
            inline.content
            for inline in page.inlines()
            if inline.map and begin and begin <= inline.map[0] + 1 < (end or inline.map[0] + 2)
        ]
        if not any(text.parts[0] in content for content in section):
            what = f"the section `#{text.id}` does not hold the text `{text.parts[0]}`"
            yield Problem(shown, text.line, what, "name it there, in code")


def write_error_texts(project: Project, site: Path) -> None:
    """Write what the matcher needs: parts by heading, and what each language calls the heading."""
    found = known_texts(project)
    if not found:
        return
    source = project.docs / "en" / PAGE
    if source.is_file():
        found += _named_in(source, source.stat().st_mtime_ns)
    titles: dict[str, dict[str, str]] = {}
    for code in project.languages:
        path = project.docs / code / PAGE
        if path.is_file():
            for name, title in _headings(path, path.stat().st_mtime_ns):
                titles.setdefault(name, {})[code] = title
    known = [{"id": text.id, "parts": text.parts, "title": titles.get(text.id, {})} for text in found]
    target = site / DATA
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(known, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


@cache
def _named_in(path: Path, stamp: int) -> tuple[ErrorText, ...]:
    """What the fence of a page names, as the page was at `stamp`."""
    from benchbook.content.page_source import parse_page

    return tuple(named_texts(parse_page(path.read_text("utf-8"), inline=False)))


@cache
def _headings(path: Path, stamp: int) -> tuple[tuple[str, str], ...]:
    """The headings of a page, as it was at `stamp`: id and text."""
    # Loads a second Markdown parser, which a site without error texts does not need.
    from benchbook.content.page_source import parse_page

    found = parse_page(path.read_text("utf-8")).headings()
    return tuple((heading.id or "", heading.text.replace("`", "")) for heading in found)


def check_field(text: str) -> None:
    """Raise UnresolvedError if an `error-field` fence holds anything but headings with texts."""
    _lines(text)


def render_field(build: Build, text: str) -> str:
    """The HTML of an `error-field` fence: where a reader pastes what they see.

    Raises:
        UnresolvedError: It holds anything but headings with texts.
    """
    check_field(text)
    language, root = build.here.language, escape(build.here.root)
    words = {key: escape(language.text(f"error_{key}")) for key in ("field", "hint", "unknown", "known")}
    return (
        f'<div class="bb-live bb-error" data-known="{words["known"]}" data-unknown="{words["unknown"]}" '
        f'data-texts="{root}{DATA}" data-pagefind-ignore>'
        f'<label for="bb-error-text">{words["field"]}</label>'
        f'<textarea id="bb-error-text" rows="4" dir="ltr" spellcheck="false" autocomplete="off" '
        f'placeholder="{words["hint"]}"></textarea>'
        f'<p role="status"></p></div>'
        f'<script type="module" src="{root}assets/errors.js"></script>'
    )


def _literal(node: ast.expr, script: Script, line: int) -> dict[str, tuple[str, ...]]:
    try:
        table = ast.literal_eval(node)
    except ValueError:
        table = None
    whole = isinstance(table, dict) and all(
        isinstance(name, str)
        and isinstance(parts, (list, tuple))
        and parts
        and all(isinstance(part, str) and part.strip() for part in parts)
        for name, parts in table.items()
    )
    if not whole or not isinstance(table, dict):
        fix = 'write it as `{"name": ["first part", "second part"]}`, without names or calls'
        raise BenchbookError(
            Problem(script.path, line, f"`{NAME}` is not a literal of names with parts", fix)
        )
    return {name: tuple(parts) for name, parts in table.items()}
