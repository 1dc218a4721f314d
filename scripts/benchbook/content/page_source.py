"""Parse a page as the site writes it: Markdown with tables, admonitions, tabs and front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin

from benchbook.content.fence_names import CLAIM, FENCES
from benchbook.content.yaml_text import InvalidYamlError, parse_yaml

# The keys of a fence under which a page has words of its own: plain text, and the targets of links.
WORDS = ("caption", "title", "notes", "marks")
_LINKS = "links"
# What marks the link of a row of a table.
ROW = "row"
_MARKS = "marks"
_NOTES = "notes"
# How an inline value begins.
VALUE = "#!value "

TAB = re.compile(r'^([ \t]*)===([!+]?) (?=")', re.MULTILINE)
# Code in a line as it is written, which leads nowhere.
CODE_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
# One id, and classes: of several ids, an element has the last.
HEADING_ID = re.compile(r"\{:? *#(?P<id>[^\s{}#.=]+)(?: +\.[A-Za-z0-9_-]+)* *\}\s*$")
# A list of attributes as a page may have one, which is no text of it: ids, classes, the size of a picture.
_ATTRIBUTE = r"(?:[#.][A-Za-z0-9_-]+|(?:dir|height|lang|loading|width)=\"?[A-Za-z0-9%-]+\"?)"
ATTRIBUTE_LIST = re.compile(rf"\{{:? *(?P<attributes>{_ATTRIBUTE}(?: +{_ATTRIBUTE})*) *\}}")


@dataclass(frozen=True)
class Heading:
    """A heading: its line, level, text without attributes, and id (None where it has none)."""

    line: int
    level: int
    text: str
    id: str | None


@dataclass(frozen=True)
class PageSource:
    """A page, parsed.

    Parameters:
        front_matter: The YAML at its head; empty if there is none or it is broken.
        tokens: Block tokens with `map` counted in lines of the file.
        broken: What is wrong with the front matter, if anything.
    """

    front_matter: dict[str, Any]
    tokens: Sequence[Token]
    broken: str | None = None

    def headings(self) -> Iterator[Heading]:
        """Its headings, in order."""
        for opening, inline in zip(self.tokens, self.tokens[1:], strict=False):
            if opening.type == "heading_open" and opening.map is not None:
                found = HEADING_ID.search(inline.content)
                text = HEADING_ID.sub("", inline.content).strip()
                yield Heading(opening.map[0] + 1, int(opening.tag[1]), text, found["id"] if found else None)

    def inlines(self) -> Iterator[Token]:
        """Its blocks of running text: paragraphs, headings, table cells, the words in fences of records."""
        return (token for token in self.tokens if token.type == "inline" and token.map is not None)


def parse_page(text: str, inline: bool = True) -> PageSource:
    """Parse the text of a page.

    Parameters:
        text: Of the file.
        inline: Whether to parse what stands within paragraphs, which takes most of the time.
    """
    front, broken = "", None
    match = re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)
    if match:
        front = match[1]
        # Blank lines in its place keep every later line where it is.
        text = "\n" * match[0].count("\n") + text[match.end() :]
    try:
        matter = parse_yaml(front) or {}
    except InvalidYamlError as error:
        matter, broken = {}, error.why
    if not isinstance(matter, dict):
        matter, broken = {}, "it is not a mapping"
    # A content tab nests like an admonition; to the parser it can be one.
    text = TAB.sub(r"\1!!! tab\2 ", text)
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).use(admon_plugin)
    if not inline:
        parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse(text)
    words = [*_fence_words(tokens), *_claim_words(tokens, parser)]
    return PageSource(matter, [*tokens, *words], broken)


def fence_name(token: Token) -> str:
    """What a fence is called; empty for what is none."""
    return token.info.split(maxsplit=1)[0] if token.type == "fence" and token.info.strip() else ""


def fence_options(token: Token) -> dict[str, str]:
    """The options of a fence's header, as SuperFences reads them: `key=value` or `key="some value"`."""
    _, _, header = token.info.strip().partition(" ")
    pairs = (part.partition("=") for part in _header_words(header))
    return {key: value.strip("\"'") for key, _, value in pairs}


def is_word(token: Token) -> bool:
    """Whether a token is of what readers see of a fence, which a parsed page has behind its blocks."""
    return (token.type == "inline" and token.level == 0) or CLAIM in token.meta


def _header_words(header: str) -> list[str]:
    words: list[str] = []
    quote = ""
    for character in header.strip():
        if character == quote:
            quote = ""
        elif not quote and character in "\"'":
            quote = character
        if character == " " and not quote:
            words.append("")
            continue
        if not words:
            words.append("")
        words[-1] += character
    return [word for word in words if word]


def _claim_words(tokens: Sequence[Token], parser: MarkdownIt) -> Iterator[Token]:
    """The Markdown in `claim` fences, on its lines; `meta` names the claim, and says which part it is."""
    for fence in tokens:
        if fence_name(fence) != CLAIM or fence.map is None:
            continue
        name = fence_options(fence).get("id", "")
        sentence = True
        for token in parser.parse(fence.content):
            if token.map is not None:
                token.map = [line + fence.map[0] + 1 for line in token.map]
            token.meta = {**token.meta, CLAIM: name, "sentence": sentence}
            sentence &= token.type != "paragraph_close"
            yield token


def _fence_words(tokens: Sequence[Token]) -> Iterator[Token]:
    """The words and links in the YAML of tables and pictures, as running text on their lines."""
    for token in tokens:
        if token.map is None or FENCES.get(fence_name(token)) != "yaml":
            continue
        try:
            spec = parse_yaml(token.content)
        except InvalidYamlError:
            continue  # said where the fence is read
        for key, value in spec.items() if isinstance(spec, dict) else ():
            for name, text in value.items() if isinstance(value, dict) else [("", value)]:
                if key in (*WORDS, _LINKS):
                    for found in _at([_said(key, str(text))], token, str(text)):
                        if key == _MARKS:
                            found.meta = {**found.meta, CLAIM: str(name), "sentence": True, "mark": True}
                        yield found


def _said(key: str, text: str) -> Token:
    """An entry of a fence as the site shows it: plain text, in notes with code, or where a row leads."""
    if key == _LINKS:
        opening = Token("link_open", "a", 1, attrs={"href": text})
        children = [opening, Token("text", "", 0, content=key), Token("link_close", "a", -1)]
        return Token("inline", "", 0, content=f"[{key}]({text})", children=children, meta={ROW: True})
    children = []
    for place, part in enumerate(text.split("`") if key == _NOTES else [text]):
        if place % 2:
            children.append(Token("code_inline", "code", 0, content=part))
            continue
        for number, line in enumerate(part.split("\n")):
            if number:
                children.append(Token("softbreak", "br", 0))
            children.append(Token("text", "", 0, content=line))
    return Token("inline", "", 0, content=text, children=children)


def claim_sentences(page: PageSource) -> Iterator[tuple[int, str, str, bool]]:
    """The claims that a page shows: the line, the id, what it says, and whether it is the mark of a row."""
    for token in page.tokens:
        if token.map is None:
            continue
        if fence_name(token) == CLAIM:
            yield token.map[0] + 1, fence_options(token).get("id", ""), token.content, False
        elif token.type == "inline" and token.meta.get("mark"):
            yield token.map[0] + 1, token.meta[CLAIM], token.content, True


def _at(found: Sequence[Token], fence: Token, text: str) -> Iterator[Token]:
    """`found` on the line of `fence` where `text` begins."""
    assert fence.map is not None
    first = text.split("\n", 1)[0]
    lines = fence.content.split("\n")
    line = fence.map[0] + 1 + next((place for place, one in enumerate(lines) if first in one), 0)
    for token in found:
        token.map = [line, line + 1]
        yield token
