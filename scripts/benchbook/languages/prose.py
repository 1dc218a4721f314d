"""Check the running text of pages: headings that can be linked to, and no measured number typed by hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from markdown_it.token import Token

from benchbook.content.page_source import VALUE, PageSource
from benchbook.content.problems import Problem
from benchbook.languages.telling import (
    BARE_ADDRESS,
    BOUND,
    GLUED,
    first_typed,
    folded,
    typed_pattern,
    typed_places,
)

ID = re.compile(r"[a-z][a-z0-9-]*\Z")
BIND = "bind it to a record with `#!value ...`, or put a link to its source beside it"
LINK = "make it a link, `[words](address)`, or leave it out"
# How large a model or a GPU is, as people call it: `8B`, `24 GB`.
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:B|\s?GB)")

# The halves of a measured number, of which one may stand in code.
_NUMBER, _MEMORY = re.compile(r"\d[\d.,]*"), re.compile(r"[kKMGT]i?B\b")
# The unit in the head of a column: `Memory (GiB)`.
_COLUMN_UNIT = re.compile(r"\((?:in )?([^()\d]+)\)\s*$")


def prose_problems(page: PageSource, path: str, unit_words: Collection[str]) -> Iterator[Problem]:
    """What is wrong with the text of one page, whose language has `unit_words` for units."""
    typed = typed_pattern(frozenset(unit_words))
    if page.broken is not None:
        yield Problem(path, 1, f"its front matter is not YAML ({page.broken})", "fix the YAML")
    elif not isinstance(page.front_matter.get("description"), str):
        yield Problem(
            path, 1, "has no description", "add `description:` to its front matter, for search engines"
        )
    yield from _head_problems(page, path, typed)
    yield from _heading_problems(page, path)
    yield from _cell_problems(page, path, typed)
    for token in page.tokens:
        if token.type == "ordered_list_open" and token.attrGet("start") not in (None, 1):
            assert token.map is not None
            what = f"a list begins with {token.attrGet('start')}, where readers see 1"
            yield Problem(path, token.map[0] + 1, what, "begin it with 1, or say the number in its text")
    for token in page.inlines():
        yield from _bare_addresses(token, path)
        yield from _glued_values(token, path)
        # A claim may be folklore, with its source beside it; what checks claims sees to their sentences.
        if not _has_source(token.children or []) and not token.meta.get("sentence"):
            yield from typed_numbers(token, path, typed)


def _head_problems(page: PageSource, path: str, typed: re.Pattern[str]) -> Iterator[Problem]:
    """Measured numbers in the title, the description and the synonyms: nothing binds them to a record there.

    People search for a figure of folklore: a synonym may hold one that the page names, with its source.
    """
    named = {
        number for token in page.inlines() for found in _typed(token, typed) for number in _digits(found[1])
    }
    for key in ("title", "description", "synonyms"):
        value = page.front_matter.get(key)
        for said in value if isinstance(value, list) else [value]:
            found = first_typed(said, typed) if isinstance(said, str) else None
            folklore = key == "synonyms" and found and (_digits(found) <= named or _SIZE.fullmatch(found))
            if found and not folklore:
                what = f"its {key} holds the number `{found}`"
                yield Problem(path, 1, what, "say it without a number")
            if isinstance(said, str) and (address := BARE_ADDRESS.search(folded(said)[0])):
                yield Problem(path, 1, f"its {key} holds the address `{address[0]}`", "say it in words")


def _cell_problems(page: PageSource, path: str, typed: re.Pattern[str]) -> Iterator[Problem]:
    """Measured numbers in the cells of a table whose unit stands in the head of their column."""
    heads: list[str] = []
    column = -1
    for opening, token in zip(page.tokens, page.tokens[1:], strict=False):
        if opening.type == "table_open":
            heads = []
        elif opening.type == "tr_open":
            column = -1
        elif opening.type == "th_open":
            heads.append(token.content)
        elif opening.type == "td_open":
            column += 1
            unit = _COLUMN_UNIT.search(heads[column]) if column < len(heads) else None
            said = f"{token.content.strip()} {unit[1]}" if unit else ""
            if (
                _NUMBER.match(said)
                and first_typed(said, typed) == said
                and not _has_source(token.children or [])
            ):
                assert token.map is not None
                yield Problem(path, token.map[0] + 1, f"the measured number `{said}` stands in a cell", BIND)


def _digits(text: str) -> set[str]:
    """The numbers in a text; without digits, the text."""
    return set(re.findall(r"\d+", folded(text)[0])) or {text}


def _bare_addresses(token: Token, path: str) -> Iterator[Problem]:
    """Addresses in running text that are no link: readers copy them, and nothing checks where they lead."""
    assert token.map is not None
    line, inside = token.map[0] + 1, 0
    for child in token.children or []:
        inside += child.nesting if child.type in ("link_open", "link_close") else 0
        line += child.type in ("softbreak", "hardbreak")
        if child.type == "text" and not inside and (found := BARE_ADDRESS.search(folded(child.content)[0])):
            yield Problem(path, line, f"the address `{found[0]}` stands in the text", LINK)


def _glued_values(token: Token, path: str) -> Iterator[Problem]:
    """Values whose neighbours make another number of them: `10` before 40 reads 1040."""
    assert token.map is not None
    text = ""
    for child in token.children or []:
        if child.type in {"softbreak", "hardbreak"}:
            text += "\n"
        elif child.type == "code_inline" and child.content.startswith(VALUE):
            text += BOUND
        elif child.type in {"text", "code_inline"}:
            text += child.content
    plain = folded(text)[0] if BOUND in text else ""
    for found in GLUED.finditer(plain):
        line = token.map[0] + 1 + plain.count("\n", 0, found.start())
        said = found[0].replace(BOUND, "").strip()
        what = f"`{said}` stands beside a value, and would be read as part of the number"
        yield Problem(path, line, what, "let the reference compute it (`#!value 1000 * a`), or reword")


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
    for line, found in _typed(token, typed):
        yield Problem(path, line, f"the measured number `{found}` is typed into the text", BIND)


def _typed(token: Token, typed: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The numbers with units in a block of running text, each with its line."""
    assert token.map is not None
    first = token.map[0] + 1
    text = ""
    children = token.children or []
    for child, behind in zip(children, (*children[1:], None), strict=False):
        if child.type in {"softbreak", "hardbreak"}:
            text += "\n"
        elif child.type == "text":
            text += child.content
        elif child.type == "image":
            for words in (child.content, str(child.attrGet("title") or "")):
                if found := first_typed(words, typed):
                    yield first + text.count("\n"), found
        elif child.type == "code_inline" and _is_half(child.content, behind):
            text += child.content
        elif child.type == "code_inline":
            if (
                not child.content.startswith(VALUE)
                and first_typed(child.content, typed) == child.content.strip()
            ):
                yield first + text.count("\n"), child.content.strip()
            # Code is no part of a number, and has lines.
            text += "\0" + "\n" * child.content.count("\n")
    # Bold or not, it is one number.
    for start, end in typed_places(text, typed):
        yield first + text.count("\n", 0, start), text[start:end].strip()


def _is_half(code: str, behind: Token | None) -> bool:
    """Whether code is a unit of memory, or a number with one behind it: half of what may be a measurement."""
    if behind is not None and _NUMBER.fullmatch(code):
        return _MEMORY.match(behind.content.lstrip()) is not None
    return _MEMORY.fullmatch(code) is not None
