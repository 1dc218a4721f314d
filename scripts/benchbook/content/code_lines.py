"""What a piece of Python says, whatever way it is laid out: the lines that a script's digest is made of.

A line that is broken so that a phone can show it, a comment, or another version of the formatter change
nothing that a script computes, and must not make its records stale.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

CLOSING = {"(": ")", "[": "]", "{": "}"}
# Before a bracket, any other name is called or indexed.
WORDS = frozenset(keyword.kwlist) | {"case", "match"}


class PlainToken(NamedTuple):
    """A token as its text stands in the source; a whole f-string is one.

    Parameters:
        kind: The name of its type, such as "OP".
        text: Byte for byte, so that blanks within strings count.
    """

    kind: str
    text: str


@dataclass
class Bracket:
    """An open bracket.

    Parameters:
        text: `(`, `[` or `{`.
        follows: Whether it calls or indexes what stands before it.
        commas: How many stand in it, outside of others.
    """

    text: str
    follows: bool
    commas: int = 0

    @property
    def last_comma_counts(self) -> bool:
        """Whether a comma before its end says something: it makes a tuple of a single element."""
        return self.commas == 1 and (self.text, self.follows) in {("(", False), ("[", True)}


def code_lines(source: str) -> list[str]:
    """The statements of `source`, a line each, whose tokens stand a blank apart, four blanks for each level.

    Left out are comments, blank lines, line breaks within brackets, and commas before a closing bracket that
    say nothing. The tokens' text is kept: their kinds and the syntax tree differ between versions of Python.
    """
    lines: list[str] = []
    words: list[str] = []
    brackets: list[Bracket] = []
    level = 0
    before = PlainToken("NEWLINE", "")
    for piece in _pieces(source):
        if piece.kind in {"COMMENT", "NL", "ENDMARKER"}:
            continue
        if piece.kind in {"INDENT", "DEDENT"}:
            level += 1 if piece.kind == "INDENT" else -1
            continue
        if piece.kind == "NEWLINE":
            lines.append("    " * level + " ".join(words))
            words = []
        else:
            if piece.kind == "OP":
                _count(piece.text, before, brackets, words)
            words.append(piece.text)
        before = piece
    return lines


def _count(text: str, before: PlainToken, brackets: list[Bracket], words: list[str]) -> None:
    """Keep `brackets` for an operator, and take back the comma before it if that says nothing."""
    if text in CLOSING:
        named = before.kind == "NAME" and before.text not in WORDS
        brackets.append(Bracket(text, named or before.text in {")", "]", "}"}))
    elif brackets and text == ",":
        brackets[-1].commas += 1
    elif brackets and text == CLOSING[brackets[-1].text]:
        bracket = brackets.pop()
        if before.text == "," and not bracket.last_comma_counts:
            words.pop()


def _pieces(source: str) -> Iterator[PlainToken]:
    """The tokens of `source`. Since Python 3.12 an f-string is many of them: here it is one, as before."""
    lines = source.split("\n")
    begun: list[tuple[int, int]] = []
    for token in tokenize.generate_tokens(io.StringIO(source + "\n").readline):
        kind = tokenize.tok_name[token.type]
        if kind.endswith("STRING_START"):
            begun.append(token.start)
        elif kind.endswith("STRING_END"):
            start = begun.pop()
            if not begun:
                yield PlainToken("STRING", _between(lines, start, token.end))
        elif not begun:
            yield PlainToken(kind, token.string)


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """The text between two places, each a line counted from 1 and a column counted from 0."""
    (first, left), (last, right) = start, end
    if first == last:
        return lines[first - 1][left:right]
    return "\n".join([lines[first - 1][left:], *lines[first : last - 1], lines[last - 1][:right]])
