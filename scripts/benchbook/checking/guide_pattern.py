"""Hold a guide to the pattern that readers rely on: short, an answer on top, lines that can be pasted.

A guide is held unless `[tool.benchbook.pattern]` names the digest that its English page had when the pattern
came: such a page has until its next change. A page whose front matter says `draft: true` is only warned of.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchbook.checking.guide_reviews import review_problems
from benchbook.content.fence_names import CLAIM
from benchbook.content.page_source import VALUE, PageSource, fence_name, fence_options
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.references import UnresolvedError, parse_reference
from benchbook.query.judging import claims_of
from benchbook.query.library import Library
from benchbook.rendering.cells import shown_part
from benchbook.translations.documents import read_documents

Pages = Mapping[Path, PageSource]
MOST_WORDS = 5000
MOST_CLAIMS = 20
WIDEST = 60
# A collapsed part of a page that a reader opens for more: `??? more "Title"`.
MORE = "more"
# The class of the line that says what was measured: model, batch, sequence, precision, machine.
MEASURED = re.compile(r"\n\{\s*\.measured\s*\}\s*\Z")
# The block that a page is for, where it is no guide.
TOOL = "calculator"
WORD = re.compile(r"\w+(?:[-'’.]\w+)*")


@dataclass(frozen=True)
class Counts:
    """What a guide's English page comes to.

    Parameters:
        words: Of running text outside of what is collapsed as "more".
        claims: The ids of those that stand alone, not as marks of rows.
        measured: Whether a line says what was measured before the second heading.
        pasted: Whether a cell is shown before the second heading.
        tool: Whether something to work with stands there, which answers a reader by itself.
    """

    words: int
    claims: tuple[str, ...]
    measured: bool
    pasted: bool
    tool: bool = False


def page_digest(text: str) -> str:
    """`sha256:...` of the text of a page."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def pattern_problems(
    library: Library, pages: Mapping[Path, PageSource]
) -> tuple[list[Problem], list[Problem]]:
    """What keeps the guides of a project from the pattern: for those held to it, and for drafts."""
    project = library.project
    problems: list[Problem] = []
    drafts: list[Problem] = []
    older = project.config.pattern
    if older is None:
        return problems, drafts
    guides = {Path(name).parent.name for name in project.scripts()}
    caught_up = _caught_up(project, pages, guides)
    for path, page in pages.items():
        if path.parent != project.docs / "en" or path.stem not in guides:
            continue
        digest = page_digest(path.read_text("utf-8"))
        if older.get(path.stem) == digest:
            continue
        draft = page.front_matter.get("draft") is True
        (drafts if draft else problems).extend(_guide_problems(library, path, page))
        if not draft:
            problems += review_problems(project, path.stem, digest, caught_up.get(path.stem, ()))
    problems += _outdated(project, older, pages)
    return problems, drafts


def _caught_up(project: Project, pages: Pages, guides: Collection[str]) -> dict[str, list[str]]:
    """By guide, the languages in which no section of its page is behind the English one."""
    languages: dict[str, list[str]] = {}
    for document in read_documents(project, pages):
        guide = document.name.removesuffix(".md")
        if document.english is None or guide not in guides:
            continue
        if not any(drift.state in ("changed", "missing") for drift in document.drift):
            languages.setdefault(guide, []).append(document.code)
    return languages


def count(page: PageSource) -> Counts:
    """The counts of a parsed page."""
    words = headings = 0
    claims: list[str] = []
    measured = pasted = tool = False
    collapsed = [
        range(*token.map)
        for token in page.tokens
        if token.type == "admonition_open" and token.meta.get("tag") == MORE and token.map is not None
    ]
    for token in page.tokens:
        if token.type == "heading_open":
            headings += 1
        if fence_name(token) == CLAIM:
            claims.append(fence_options(token).get("id", ""))
        first = headings < 2
        pasted |= first and fence_name(token) == "cell"
        tool |= first and fence_name(token) == TOOL
        line = token.map[0] if token.map is not None else -1
        if token.type == "inline" and not any(line in lines for lines in collapsed):
            words += _words(token.content)
            values = sum(
                child.type == "code_inline" and child.content.startswith(VALUE)
                for child in token.children or ()
            )
            measured |= first and bool(MEASURED.search(token.content)) and values > 0
    return Counts(words, tuple(claims), measured, pasted, tool)


def _words(text: str) -> int:
    """How many words a reader meets: a value is one, an address none."""
    text = re.sub(r"`#!value [^`]*`", " value ", text)
    text = re.sub(r"\]\([^)]*\)|\{[^}]*\}|<[^>]*>", " ", text)
    return len(WORD.findall(text))


def _guide_problems(library: Library, path: Path, page: PageSource) -> Iterator[Problem]:
    shown = library.project.relative(path)
    found = count(page)
    if found.words > MOST_WORDS:
        what = f"has {found.words} words outside of what is collapsed, and a guide has at most {MOST_WORDS}"
        yield Problem(shown, 1, what, 'move what is deeper behind `??? more "..."`, or to a page of its own')
    if len(found.claims) > MOST_CLAIMS:
        what = f"has {len(found.claims)} claims that stand alone, and a guide has at most {MOST_CLAIMS}"
        yield Problem(shown, 1, what, "make those that a table's row shows `marks:` of the table")
    declared = [claims_of(library).by_id.get(name) for name in found.claims]
    quoted = sum(claim is not None and claim.source is not None for claim in declared)
    if 2 * quoted < len(declared):
        what = f"has {len(declared)} claims that stand alone, and {quoted} quote someone; half of them do"
        fix = "give others a `source` in claims.toml; what nobody disputes is an assertion of its script"
        yield Problem(shown, 1, what, fix)
    if not found.measured and not found.tool:
        fix = "put `{ .measured }` on a line below the paragraph that says so, with its values"
        yield Problem(shown, 1, "does not say before its second heading what was measured", fix)
    if not found.pasted and not found.tool:
        fix = "show the first remedy there, as a `cell`"
        yield Problem(shown, 1, "has no lines to paste before its second heading", fix)
    yield from _wide_cells(library, page, shown)


def _wide_cells(library: Library, page: PageSource, path: str) -> Iterator[Problem]:
    for token in page.tokens:
        hidden = fence_options(token).get("source") == "none"
        if fence_name(token) != "cell" or hidden or token.map is None:
            continue
        try:
            reference = parse_reference(token.content)
            part = shown_part(library.script(reference.script), reference.name)
        except (UnresolvedError, BenchbookError):
            continue  # said where the page's references are checked
        for line in part.source.split("\n"):
            if len(line) > WIDEST:
                what = f"shows a line of {len(line)} characters, `{line.strip()}`, and a phone has {WIDEST}"
                yield Problem(path, token.map[0] + 1, what, f"break it in snippets/{reference.script}")


def _outdated(
    project: Project, older: Mapping[str, str], pages: Mapping[Path, PageSource]
) -> Iterator[Problem]:
    for guide in older:
        if project.docs / "en" / f"{guide}.md" not in pages:
            what = f"[tool.benchbook.pattern] names the guide `{guide}`, which is not there"
            yield Problem("pyproject.toml", 1, what, "remove it")
