"""The texts of errors: what never varies of each, by the script that provokes it, and what explains it.

A script that provokes errors assigns `fixed_parts`, a literal, in one of its cells:

    fixed_parts = {"cuda_out_of_memory": ["CUDA out of memory", "Tried to allocate"]}

and asserts that each text holds its parts in that order. The page `error_texts.md` explains each below a
heading of the same name, with hyphens. What a reader pastes is matched against the parts alone, in the search
and in the field of that page, by one matcher: docs/assets/errors.js.
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
FIELD = "error-field"


@dataclass(frozen=True)
class ErrorText:
    """A text that a script provokes.

    Parameters:
        id: The id of the heading that explains it.
        parts: What is in every one of its kind, in this order.
        script: Who provokes it.
        line: Where its parts are assigned.
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


def error_text_problems(project: Project, pages: Mapping[Path, PageSource]) -> Iterator[Problem]:
    """Texts that the page does not explain, and that two scripts name alike."""
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


def write_error_texts(project: Project, site: Path) -> None:
    """Write what the matcher needs: parts by heading, and what each language calls the heading."""
    found = known_texts(project)
    if not found:
        return
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
def _headings(path: Path, stamp: int) -> tuple[tuple[str, str], ...]:
    """The headings of a page, as it was at `stamp`: id and text."""
    # Loads a second Markdown parser, which a site without error texts does not need.
    from benchbook.content.page_source import parse_page

    found = parse_page(path.read_text("utf-8")).headings()
    return tuple((heading.id or "", heading.text.replace("`", "")) for heading in found)


def check_field(text: str) -> None:
    """Raise UnresolvedError if an `error-field` fence has a body."""
    if text.strip():
        raise UnresolvedError(f"the fence `{FIELD}` has a body", "leave it empty")


def render_field(build: Build, text: str) -> str:
    """The HTML of an `error-field` fence: where a reader pastes what they see.

    Raises:
        UnresolvedError: It has a body.
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
