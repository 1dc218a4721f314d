"""Check the running text of pages: headings that can be linked to, and no measured number typed by hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache

from markdown_it.token import Token

from benchbook.content.page_source import PageSource
from benchbook.content.problems import Problem
from benchbook.content.units import UNITS

# What stands behind a number in every language.
_SIGNS = frozenset({"%", "٪", "％", "µs", "μs", "°C", "x", "×", "tok/s"})
_SYMBOLS = frozenset(unit.symbol for unit in UNITS.values() if unit.typed)
# Those in circles and the like too, which read as numbers.
_DIGITS = r"0-9\u0660-\u0669\uff10-\uff19\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3251-\u325f\u32b1-\u32bf"
ID = re.compile(r"[a-z][a-z0-9-]*\Z")
BIND = "bind it to a record with `#!value ...`, or put a link to its source beside it"


@cache
def typed_pattern(unit_words: frozenset[str]) -> re.Pattern[str]:
    """What finds a number with a unit behind it: a symbol, or one of `unit_words`.

    `4 x 512` is a shape, `1990s` a decade, `bf16` and `GPT-2` are names. Letters of scripts that put no space
    before a number may stand right before it: `需要42毫秒`, `بنسبة38٪`.
    """
    units = "|".join(map(re.escape, sorted(_SYMBOLS | _SIGNS | unit_words, key=len, reverse=True)))
    return re.compile(
        rf"(?<![A-Za-z_.,{_DIGITS}])(?<![A-Za-z]-)(?!\d{{4}}s\b)[{_DIGITS}][{_DIGITS}.,\u066b\u066c]*"
        rf"[\s\u00a0\u202f]?(?:{units})(?![A-Za-z0-9/])(?!\s?\d)"
    )


def prose_problems(page: PageSource, path: str, unit_words: Collection[str]) -> Iterator[Problem]:
    """What is wrong with the text of one page, whose language has `unit_words` for units."""
    typed = typed_pattern(frozenset(unit_words))
    if page.broken is not None:
        yield Problem(path, 1, f"its front matter is not YAML ({page.broken})", "fix the YAML")
    elif not isinstance(page.front_matter.get("description"), str):
        yield Problem(
            path, 1, "has no description", "add `description:` to its front matter, for search engines"
        )
    elif found := typed.search(page.front_matter["description"]):
        yield Problem(path, 1, f"its description holds the number `{found[0]}`", "say it without a number")
    yield from _heading_problems(page, path)
    for token in page.inlines():
        # A claim may be folklore, with its source beside it; what checks claims sees to their sentences.
        if not _has_source(token.children or []) and not token.meta.get("sentence"):
            yield from typed_numbers(token, path, typed)


def _heading_problems(page: PageSource, path: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for heading in page.headings():
        if heading.id is None:
            fix = "end it with an id, the same in every language: `## Title { #title }`"
            yield Problem(path, heading.line, f"the heading `{heading.text}` has no id", fix)
            continue
        if not ID.match(heading.id):
            fix = "use lower-case letters, digits and hyphens, beginning with a letter"
            yield Problem(path, heading.line, f"the id `{heading.id}` is not plain", fix)
        if heading.id in seen:
            what = f"the id `{heading.id}` is there twice (first on line {seen[heading.id]})"
            yield Problem(path, heading.line, what, "rename one of the two")
        seen.setdefault(heading.id, heading.line)


def _has_source(children: Sequence[Token]) -> bool:
    return any(
        token.type == "link_open" and str(token.attrGet("href")).startswith(("http://", "https://"))
        for token in children
    )


def typed_numbers(token: Token, path: str, typed: re.Pattern[str]) -> Iterator[Problem]:
    """The measured numbers that are typed into a block of running text, as `typed` finds them."""
    assert token.map is not None
    text = ""
    for child in token.children or []:
        if child.type in {"softbreak", "hardbreak"}:
            text += "\n"
        elif child.type == "text":
            text += child.content
        elif child.type == "code_inline":
            # Code is no part of a number, and has lines.
            text += "\0" + "\n" * child.content.count("\n")
    # Bold or not, it is one number.
    for found in typed.finditer(text):
        line = token.map[0] + 1 + text.count("\n", 0, found.start())
        yield Problem(path, line, f"the measured number `{found[0].strip()}` is typed into the text", BIND)
