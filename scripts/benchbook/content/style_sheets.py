"""The styles of the site: how pages look, and no words, which no check of a page would read."""

from __future__ import annotations

from collections.abc import Iterable

import tinycss2
from tinycss2 import ast

# Five times the longest.
LONGEST = 200_000
# What stands around rules; others load, count in words, or give letters other shapes.
_AROUND = frozenset({"container", "keyframes", "layer", "media", "supports"})
# The properties whose strings are names of fonts, and those that write what they are given.
_FONTS = frozenset({"font", "font-family", "--site-mono", "--site-sans"})
_WRITING = frozenset(
    {"content", "hyphenate-character", "list-style", "list-style-type", "quotes", "text-overflow"}
)
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


def _of_rules(rules: Iterable[ast.Node]) -> Worded | None:
    return _first(_of_rule(rule) for rule in rules)


def _of_rule(rule: ast.Node) -> Worded | None:
    """What is wrong with a rule, or with a declaration in one."""
    if isinstance(rule, ast.Declaration):
        return _of_declaration(rule)
    if not isinstance(rule, ast.AtRule | ast.QualifiedRule):
        return _unreadable(rule)
    if isinstance(rule, ast.AtRule) and rule.lower_at_keyword not in _AROUND:
        return rule.source_line, f"`@{rule.at_keyword}` has no place in a style here", "remove it"
    return _of_values(rule.prelude) or _of_rules(
        tinycss2.parse_blocks_contents(rule.content or [], skip_comments=True, skip_whitespace=True)
    )


def _of_declaration(declared: ast.Declaration) -> Worded | None:
    if declared.lower_name in _WRITING and not all(map(_is_sign, declared.value)):
        written = tinycss2.serialize(declared.value).strip()
        return declared.source_line, f"`{declared.name}: {written}` writes more than signs", _FIX
    return _of_values(declared.value, said=declared.lower_name not in _FONTS)


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
