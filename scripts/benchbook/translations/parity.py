"""Compare what a section and its translation consist of: blocks, fences, references, links and code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser

from benchbook.content.fence_names import CLAIM
from benchbook.content.problems import Problem
from benchbook.languages.telling import folded
from benchbook.translations.numbers import aligned
from benchbook.translations.sections import Kind, Piece, Section, TextRun, untranslated_part

_NAMES = {
    "heading_open": "a heading",
    "paragraph_open": "a paragraph",
    "bullet_list_open": "a bulleted list",
    "bullet_list_close": "the end of the list",
    "ordered_list_open": "a numbered list",
    "ordered_list_close": "the end of the list",
    "list_item_open": "a list item",
    "list_item_close": "the end of the list item",
    "blockquote_open": "a quotation",
    "blockquote_close": "the end of the quotation",
    "table_open": "a table",
    "table_close": "the end of the table",
    "tr_open": "a row of the table",
    "tr_close": "the end of the row",
    "th_open": "a head cell of the table",
    "td_open": "a cell of the table",
    "admonition_close": "the end of the block",
    "code_block": "indented code",
    "hr": "a rule",
}
_SILENT = frozenset({"inline", "heading_close", "paragraph_close", "th_close", "td_close"})
_WORDS: dict[Kind, tuple[str, str]] = {
    "value": ("value", "repeat the references of the English section, each as often as there"),
    "link": ("link", "link to what the English section links to"),
    "image": ("image", "show the images of the English section"),
    "code": ("code span", "copy code from the English section, character by character"),
    "html": ("tag", "copy the tags of the English section"),
    "attributes": ("list of attributes", "give the text the attributes of the English one: `{ … }`"),
}
# What computes and compares, as it is printed and as it is typed; a hyphen does with spaces around it.
_OPERATOR = re.compile(r"[×÷±+\u2212=≠<>≤≥≈]|(?<=\s)[-*/](?=\s)")
_OPERATORS = {"-": "\u2212", "*": "×", "/": "÷"}
# Attributes that hold words for readers.
_SPOKEN = frozenset({"alt", "title", "aria-label", "placeholder"})


def section_problems(section: Section, english: Section, path: str) -> Iterator[Problem]:
    """Where a section differs from its English one in anything but words."""
    if section.level != english.level:
        what = f"the heading `#{section.key}` has level {section.level}, in English {english.level}"
        yield Problem(path, section.line, what, f"begin it with {'#' * english.level}")
    shapes = list(_shape(section)), list(_shape(english))
    if [name for _, name in shapes[0]] != [name for _, name in shapes[1]]:
        yield _shape_problem(section, *shapes, path)
    else:
        yield from _fence_problems(section, english, path)
    # What stands in one paragraph, item, cell or note must not change places with what is in another.
    for ours, theirs in aligned(section, english):
        for kind in _WORDS:
            yield from _piece_problems(kind, ours, theirs, path)
        yield from _operator_problems(ours, theirs, path)


def order_problems(sections: Sequence[Section], english: Sequence[Section], path: str) -> Iterator[Problem]:
    """The first section that stands elsewhere than in English, of those that both pages have."""
    both = {one.key for one in sections} & {one.key for one in english}
    ours = [one for one in sections if one.key in both]
    theirs = [one for one in english if one.key in both]
    for one, other in zip(ours, theirs, strict=False):
        if one.key != other.key:
            what = f"the section `#{one.key}` stands where English has `#{other.key}`"
            yield Problem(path, one.line, what, "put the sections into the English order")
            return


def _operator_problems(ours: Sequence[TextRun], theirs: Sequence[TextRun], path: str) -> Iterator[Problem]:
    """Where a text computes otherwise. Words may stand for an operator, another operator may not."""
    here, there = (
        Counter(_OPERATORS.get(one, one) for unit in side for one in _OPERATOR.findall(folded(unit.prose)[0]))
        for side in (ours, theirs)
    )
    for one, other in zip((here - there).elements(), (there - here).elements(), strict=False):
        what = f"`{one}` stands where the English text has `{other}`"
        yield Problem(path, ours[0].line, what, "compute as the English text does")


def _piece_problems(
    kind: Kind, ours: Sequence[TextRun], theirs: Sequence[TextRun], path: str
) -> Iterator[Problem]:
    name, fix = _WORDS[kind]
    here, there = ([piece for unit in side for piece in unit.of(kind)] for side in (ours, theirs))
    counts = [Counter(_same(piece) for piece in side) for side in (here, there)]
    # With English on the one side and another language on the other: what is too much, and what is missing.
    extra, lost = counts[0] - counts[1], counts[1] - counts[0]
    for piece in here:
        if extra[_same(piece)]:
            extra[_same(piece)] -= 1
            yield Problem(path, piece.line, f"the {name} `{piece.text}` is not in the English text", fix)
    for text in lost.elements():
        yield Problem(path, ours[0].line, f"the {name} `{text}` of the English text is not here", fix)
    # Words lead elsewhere where two links exchange places; values and code follow the words of a language.
    if kind == "link" and (moved := _moved(here, there)):
        piece, other = moved
        what = f"the link `{piece.text}` stands where the English text has `{other.text}`"
        yield Problem(path, piece.line, what, "put the links into the English order")


def exchanged_pieces(
    section: Section, english: Section, kinds: Sequence[Kind], path: str
) -> Iterator[Problem]:
    """Pieces of these kinds in another order than in English, in a language that mostly keeps it."""
    for ours, theirs in aligned(section, english):
        for kind in kinds:
            here, there = ([piece for unit in side for piece in unit.of(kind)] for side in (ours, theirs))
            if moved := _moved(here, there):
                piece, other = moved
                what = (
                    f"the {_WORDS[kind][0]} `{piece.text}` stands where the English text has `{other.text}`"
                )
                yield Problem(path, piece.line, what, "see that it is said of the same, or keep the order")


def _moved(here: Sequence[Piece], there: Sequence[Piece]) -> tuple[Piece, Piece] | None:
    """The first piece that stands elsewhere than in English, and what stands there, if all are the same."""
    if Counter(map(_same, here)) != Counter(map(_same, there)):
        return None
    pairs = zip(here, there, strict=True)
    return next(((piece, other) for piece, other in pairs if _same(piece) != _same(other)), None)


def _same(piece: Piece) -> str:
    return " ".join(piece.text.split()) if piece.kind == "html" else piece.text


def _shape(section: Section) -> Iterator[tuple[int, str]]:
    """Lines and names of the blocks of a section, in order; behind them those in each of its claims."""
    line = section.line
    for token in (*section.tokens, *section.words):
        where = f" of the claim `{token.meta[CLAIM]}`" if CLAIM in token.meta else ""
        if token.map is not None:
            line = token.map[0] + 1
        if token.type == "admonition_open":
            # Whether it can be closed, and all that it is called.
            called = " ".join([token.markup, *token.info.partition('"')[0].lower().split()])
            yield line, f"a `{called}` block{where}"
        elif token.type == "fence":
            yield line, f"a `{token.info.strip()}` fence{where}"
        elif token.type == "html_block":
            for tag in _tags(token.content):
                yield line, f"`{tag}`{where}"
        elif token.type == "ordered_list_open" and (start := token.attrGet("start")) is not None:
            yield line, f"a numbered list from {start} on{where}"
        elif token.type not in _SILENT and token.type in _NAMES:
            yield line, _NAMES[token.type] + where


def _shape_problem(
    section: Section, ours: list[tuple[int, str]], theirs: list[tuple[int, str]], path: str
) -> Problem:
    place = next(
        (at for at, (one, other) in enumerate(zip(ours, theirs, strict=False)) if one[1] != other[1]),
        min(len(ours), len(theirs)),
    )
    end = f"the end of {section.called}"
    line, here = ours[place] if place < len(ours) else (ours[-1][0] if ours else section.line, end)
    there = theirs[place][1] if place < len(theirs) else end
    fix = "give the section the paragraphs, lists, tables and blocks of the English one, in its order"
    return Problem(path, line, f"here is {here} where English has {there}", fix)


def _fence_problems(section: Section, english: Section, path: str) -> Iterator[Problem]:
    fix = "copy it from the English page; translate only what readers see of it"
    for fence, other in zip(section.fences, english.fences, strict=True):
        if untranslated_part(fence.header, fence.body) != untranslated_part(other.header, other.body):
            yield Problem(path, fence.line, f"the `{fence.name}` fence is not the English one", fix)


class _Tags(HTMLParser):
    """Collects tags, without the attributes that hold words."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kept = (f' {name}="{text}"' if text else f" {name}" for name, text in attrs if name not in _SPOKEN)
        self.found.append(f"<{tag}{''.join(kept)}>")

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"</{tag}>")


def _tags(html: str) -> list[str]:
    parser = _Tags()
    parser.feed(html)
    parser.close()
    return parser.found
