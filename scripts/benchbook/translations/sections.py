"""Split a parsed page into its sections, a section into text and fences, a fence into words and the rest."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import yaml
from markdown_it.token import Token

from benchbook.content.fence_names import FENCES
from benchbook.content.page_source import ATTRIBUTE_LIST, VALUE, WORDS, PageSource, is_word
from benchbook.content.yaml_text import InvalidYamlError, parse_nodes, parse_yaml
from benchbook.translations.front_matter import line_of_entry

# The key of what stands in the front matter for search engines, which is translated like a section.
DESCRIPTION = "description"
TITLE = "title"

Kind = Literal["text", "code", "value", "link", "image", "html", "attributes"]


@dataclass(frozen=True)
class Piece:
    """A part of running text: words, a code span, a reference, where a link leads, or attributes."""

    line: int
    kind: Kind
    text: str


@dataclass(frozen=True)
class TextRun:
    """One run of text: a paragraph, heading, table cell or title.

    Parameters:
        line: Where it begins.
        kind: What kind of block it is, such as "heading", "paragraph", "item" or "cell".
        pieces: What it consists of, in order.
    """

    line: int
    kind: str
    pieces: tuple[Piece, ...]

    def of(self, *kinds: Kind) -> Iterator[Piece]:
        """Its pieces of these kinds."""
        return (piece for piece in self.pieces if piece.kind in kinds)

    @cached_property
    def prose(self) -> str:
        """Its words, without code: a space stands for each code span."""
        return "".join(
            piece.text if piece.kind == "text" else " " for piece in self.of("text", "code", "value")
        )

    @cached_property
    def spoken(self) -> str:
        """Its words and its code spans."""
        return "".join(piece.text for piece in self.of("text", "code"))

    @cached_property
    def has_source(self) -> bool:
        """Whether it links to another site, where its numbers may come from."""
        return any(piece.text.startswith(("http://", "https://")) for piece in self.of("link"))

    def line_at(self, offset: int) -> int:
        """The line that holds the character `offset` of `prose`."""
        end = 0
        for piece in self.of("text", "code", "value"):
            end += len(piece.text) if piece.kind == "text" else 1
            if offset < end:
                return piece.line
        return self.line


@dataclass(frozen=True)
class Fence:
    """A fenced block: its line, its header and its body."""

    line: int
    header: str
    body: str

    @property
    def name(self) -> str:
        """The first word of the header."""
        return self.header.partition(" ")[0]


@dataclass(frozen=True)
class Section:
    """What stands between a heading and the next, of whatever level.

    Parameters:
        key: The id of its heading.
        level: The level of its heading; 0 for the description and the title.
        line: The line of its heading.
        title: Its heading, as it is written, without attributes.
        tokens: Its blocks, the heading among them.
        words: What readers see of its fences, as running text.
    """

    key: str
    level: int
    line: int
    title: str
    tokens: Sequence[Token]
    words: Sequence[Token] = ()

    @property
    def called(self) -> str:
        """How a message names it."""
        return f"section `#{self.key}`" if self.level else f"the {self.key}"

    @cached_property
    def units(self) -> tuple[TextRun, ...]:
        """Its running text, in order, the heading first."""
        return (*_units(self.tokens, "text"), *_units(self.words, "note"))

    @cached_property
    def source(self) -> str:
        """What it says as it is written, with its code and where its links lead."""
        return "\n".join(f"{token.info}\n{token.content}" for token in self.tokens if token.content)

    @cached_property
    def fences(self) -> tuple[Fence, ...]:
        """Its fenced blocks, in order."""
        return tuple(
            Fence(_line(token), token.info.strip(), token.content)
            for token in self.tokens
            if token.type == "fence"
        )


def sections_of(page: PageSource, text: str) -> tuple[Section, ...]:
    """The sections of a page whose headings have ids, its description first.

    Parameters:
        page: The page.
        text: Its file, for the line of the description.
    """
    found: list[Section] = []
    description = page.front_matter.get("description")
    if isinstance(description, str):
        found.append(plain_section(DESCRIPTION, description, text))
    blocks = [token for token in page.tokens if not is_word(token)]
    starts = [place for place, token in enumerate(blocks) if token.type == "heading_open"]
    lines = [_line(blocks[start]) for start in starts]
    # One list more, for what stands above the first heading.
    words: list[list[Token]] = [[] for _ in range(len(lines) + 1)]
    for token in filter(is_word, page.tokens):
        words[bisect_right(lines, _line(token))].append(token)
    parts = zip(page.headings(), starts, [*starts[1:], len(blocks)], words[1:], strict=False)
    for heading, start, end, inside in parts:
        if heading.id is not None:
            tokens = blocks[start:end]
            found.append(Section(heading.id, heading.level, heading.line, heading.text, tokens, inside))
    return tuple(found)


def plain_section(key: str, said: str, text: str) -> Section:
    """What the front matter of the file `text` says under a key, as a section of its own."""
    line = line_of_entry(key, text)
    inline = Token("inline", "", 0, map=[line - 1, line], content=said)
    inline.children = [Token("text", "", 0, content=said)]
    return Section(key, 0, line, said, (inline,))


def _line(token: Token) -> int:
    return token.map[0] + 1 if token.map else 1


def _units(tokens: Sequence[Token], loose: str) -> Iterator[TextRun]:
    """The running text of `tokens`; `loose` is the kind of what stands in no block."""
    holders: list[str] = []
    line = 1
    for token in tokens:
        if token.map is not None:
            line = token.map[0] + 1
        if token.nesting == 1:
            holders.append(token.type.removesuffix("_open"))
        elif token.nesting == -1 and holders:
            holders.pop()
        elif token.type == "inline":
            yield TextRun(
                line, _kind(holders or [loose]), tuple(_pieces(token.children or (), line, holders[-1:]))
            )


def _kind(holders: Sequence[str]) -> str:
    inner = [name for name in holders if name != "paragraph"]
    alone = {"list_item": "item", "td": "cell", "th": "cell"}
    return alone.get(inner[-1] if inner else "", holders[-1])


def _pieces(children: Sequence[Token], line: int, holder: Sequence[str]) -> Iterator[Piece]:
    for place, child in enumerate(children):
        if child.type in ("softbreak", "hardbreak"):
            yield Piece(line, "text", " ")
            line += 1
        elif child.type == "text":
            text = child.content
            if holder == ["heading"] and place == len(children) - 1 and text.rstrip().endswith("}"):
                # The attributes of a heading are not words of it.
                text, mark, after = text.rpartition("{")
                yield from _attributes(f"{mark}{after}", line, heading=True)
            yield from _attributes(text, line)
            yield Piece(line, "text", ATTRIBUTE_LIST.sub("", text))
        elif child.type == "code_inline" and child.content.startswith(VALUE):
            yield Piece(line, "value", " ".join(child.content.removeprefix(VALUE).split()))
        elif child.type == "code_inline":
            yield Piece(line, "code", child.content)
        elif child.type == "link_open":
            yield Piece(line, "link", str(child.attrGet("href") or ""))
        elif child.type == "image":
            yield Piece(line, "image", str(child.attrGet("src") or ""))
            yield Piece(line, "text", child.content)
        elif child.type == "html_inline":
            yield Piece(line, "html", child.content)


def _attributes(text: str, line: int, heading: bool = False) -> Iterator[Piece]:
    """The attributes in a text, but for the id of a heading, by which it is found."""
    for found in ATTRIBUTE_LIST.finditer(text):
        names = found["attributes"].split()
        named = " ".join(sorted(name for name in names if not (heading and name.startswith("#"))))
        if named:
            yield Piece(line, "attributes", named)


def is_prose(header: str) -> bool:
    """Whether all that a fence holds is for readers."""
    return FENCES.get(_name(header)) == "words"


def untranslated_part(header: str, body: str) -> Any:
    """What every translation of a fence repeats; to be compared, not to be read."""
    if is_prose(header):
        return bool(body.strip())
    spec = _spec(body) if FENCES.get(_name(header)) == "yaml" else {}
    # Texts are compared in their order, so it is part of what they are.
    order = [key for key in spec if key in WORDS]
    kept = {key: _without_words(value) if key in WORDS else value for key, value in spec.items()}
    return (kept, order) if kept else body


def lines_for_readers(header: str, body: str) -> frozenset[int]:
    """The lines of a body that hold words for readers, counted from 1."""
    lines = body.splitlines()
    if is_prose(header):
        return frozenset(range(1, len(lines) + 1))
    if FENCES.get(_name(header)) != "yaml":
        return frozenset()
    found: set[int] = set()
    for key, value in _entries(body):
        if key.value in WORDS:
            found.update(
                range(value.start_mark.line + 1, value.end_mark.line + 1 + (value.end_mark.column > 0))
            )
    return frozenset(found)


def _name(header: str) -> str:
    return header.strip().partition(" ")[0]


def _without_words(value: Any) -> Any:
    return list(map(str, value)) if isinstance(value, dict) else True


def _spec(body: str) -> dict[str, Any]:
    try:
        spec = parse_yaml(body)
    except InvalidYamlError:
        return {}
    return spec if isinstance(spec, dict) else {}


def _entries(body: str) -> list[tuple[yaml.Node, yaml.Node]]:
    """The entries of a body that is YAML, with their places in it."""
    try:
        node = parse_nodes(body)
    except InvalidYamlError:
        return []
    return node.value if isinstance(node, yaml.MappingNode) else []
