"""The styles of the site: how pages look, and no words or numbers, which no check of a page would read."""

from __future__ import annotations

from collections.abc import Iterable

import tinycss2
from tinycss2 import ast

from benchbook.content.hidden_text import hides, must_be_read

# Five times the longest.
LONGEST = 200_000
# What stands around rules; others load, count in words, or give letters other shapes.
_AROUND = frozenset({"container", "keyframes", "layer", "media", "supports"})
# The properties whose strings are names of fonts, and those that write what they are given.
_FONTS = frozenset({"font", "font-family", "--site-mono", "--site-sans"})
_WRITING = frozenset(
    {"content", "hyphenate-character", "list-style", "list-style-type", "quotes", "text-overflow"}
    | {"text-emphasis", "text-emphasis-style"}
)
# What they write; beside a number others could be a part of it, as a minus is, or a point.
_SIGNS = frozenset(" \u00a0ⓘ▸◂▾↕↑↓·✓↵()“”")
# The kinds of mark before an item, none of which counts.
_MARKS = frozenset(
    {"none", "disc", "circle", "square", "inside", "outside", "revert", "inherit", "initial", "unset"}
)
# What puts the digits of a number into another order, or others in their place; with what may be said of it.
_ORDERS = {
    "direction": frozenset({"ltr"}),
    "unicode-bidi": frozenset({"isolate", "plaintext"}),
    "-webkit-text-security": frozenset({"none"}),
}
# A part of a text that may be a part of a number.
_PARTS = frozenset({"first-letter", "first-line"})
# What is written may be what the page has: the name of a column, and where a link leads.
_WRITTEN = frozenset({"data-label", "href"})
_LOADING = frozenset({"image", "image-set", "src", "url"})
_FIX = "write words on a page, or as a text of the interface"

Worded = tuple[int, str, str]


def worded_style(text: str) -> Worded | None:
    """The first part of a style that says or loads something: its line, what it is, and the fix."""
    if len(text) > LONGEST:
        return 1, f"has {len(text)} characters, and {LONGEST} are the most", "remove what no page needs"
    try:
        return _of_rules(tinycss2.parse_stylesheet(text, skip_comments=True, skip_whitespace=True))
    except RecursionError:
        return 1, "nests deeper than parsers follow", "nest no rule in more than a few others"
    except ValueError:
        # Of more digits than Python reads.
        return 1, "holds a number that is beyond all others", "write it in fewer digits"


def _of_rules(rules: Iterable[ast.Node], read: bool = False) -> Worded | None:
    return _first(_of_rule(rule, read) for rule in rules)


def _of_rule(rule: ast.Node, read: bool) -> Worded | None:
    """What is wrong with a rule, or a declaration in one; `read` says whether it is of what must be read."""
    if isinstance(rule, ast.Declaration):
        return _of_declaration(rule, read)
    if not isinstance(rule, ast.AtRule | ast.QualifiedRule):
        return _unreadable(rule)
    if isinstance(rule, ast.AtRule) and rule.lower_at_keyword not in _AROUND:
        return rule.source_line, f"`@{rule.at_keyword}` has no place in a style here", "remove it"
    if isinstance(rule, ast.QualifiedRule):
        if (part := _part_of_a_text(rule.prelude)) is not None:
            return rule.source_line, f"`::{part}` may be a part of a number", "choose an element"
        read = must_be_read(rule.prelude, read)
    return _of_values(rule.prelude) or _of_rules(
        tinycss2.parse_blocks_contents(rule.content or [], skip_comments=True, skip_whitespace=True), read
    )


def _part_of_a_text(parts: Iterable[ast.Node]) -> str | None:
    """The pseudo-element of a part of a text that a selector names."""
    for part in parts:
        if isinstance(part, ast.IdentToken) and part.lower_value in _PARTS:
            return part.lower_value
        if isinstance(part, ast.FunctionBlock) and (found := _part_of_a_text(part.arguments)):
            return found
    return None


def _of_declaration(declared: ast.Declaration, read: bool) -> Worded | None:
    written = tinycss2.serialize(declared.value).strip()
    said = f"`{declared.name}: {written}`"
    allowed = _ORDERS.get(declared.lower_name)
    if allowed is not None and written.lower() not in allowed:
        return declared.source_line, f"{said} gives numbers another order", "remove it"
    if read and hides(declared):
        what = f"{said} hides what is to be read: numbers, verdicts, or words around them"
        fix = "hide only what `scripts/benchbook/content/hidden_text.py` names, with its reason"
        return declared.source_line, what, fix
    if declared.lower_name in _WRITING and not all(map(_is_sign, declared.value)):
        return declared.source_line, f"{said} writes more than signs", _FIX
    if declared.lower_name in _WRITING and (sign := _other_sign(declared)) is not None:
        what = f"{said} writes {sign}, which may be read as a part of a number"
        return declared.source_line, what, f"write one of {''.join(sorted(_SIGNS)).strip()}, or none"
    return _of_values(declared.value, said=declared.lower_name not in _FONTS)


def _other_sign(declared: ast.Declaration) -> str | None:
    """The sign that a declaration writes and that may belong to a number, or a word that makes it count."""
    counts = declared.lower_name.startswith("list-style")
    for part in declared.value:
        if isinstance(part, ast.StringToken) and (others := [one for one in part.value if one not in _SIGNS]):
            # Words are told as such.
            return None if any(map(str.isalnum, others)) else others[0]
        if counts and isinstance(part, ast.IdentToken) and part.lower_value not in _MARKS:
            return part.value
    return None


def _is_sign(part: ast.Node) -> bool:
    """Whether a part of what is written is a sign, by its kind, or stands on the page."""
    if isinstance(part, ast.FunctionBlock) and part.lower_name == "attr":
        return all(_stands_there(argument) for argument in part.arguments)
    return isinstance(part, ast.StringToken | ast.WhitespaceToken | ast.IdentToken | ast.LiteralToken)


def _stands_there(argument: ast.Node) -> bool:
    return isinstance(argument, ast.WhitespaceToken) or (
        isinstance(argument, ast.IdentToken) and argument.value in _WRITTEN
    )


def _of_values(parts: Iterable[ast.Node], said: bool = True) -> Worded | None:
    """What is wrong with parts of a rule; where `said`, with words among them, too."""
    return _first(_of_value(part, said) for part in parts)


def _of_value(part: ast.Node, said: bool) -> Worded | None:
    if isinstance(part, ast.URLToken) or (
        isinstance(part, ast.FunctionBlock) and part.lower_name in _LOADING
    ):
        return part.source_line, "loads a picture, which may hold words", "remove it"
    if isinstance(part, ast.StringToken) and said and any(map(str.isalnum, part.value)):
        return part.source_line, f"says {part.value}", _FIX
    if isinstance(part, ast.ParseError):
        return _unreadable(part)
    if isinstance(part, ast.FunctionBlock):
        return _of_values(part.arguments, said)
    # Square brackets choose elements by an attribute.
    if isinstance(part, ast.CurlyBracketsBlock | ast.ParenthesesBlock):
        return _of_values(part.content, said)
    return None


def _unreadable(part: ast.Node) -> Worded:
    return part.source_line, "is no style that parsers agree on", "fix its syntax"


def _first(found: Iterable[Worded | None]) -> Worded | None:
    return next((one for one in found if one is not None), None)
