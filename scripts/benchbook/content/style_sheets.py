"""The styles of the site: how pages look, and no words, which no check of a page would read."""

from __future__ import annotations

import re
import sys

# Five times the longest.
LONGEST = 200_000
# What stands around rules; others load, count in words, or give letters other shapes.
_AROUND = frozenset({"@container", "@keyframes", "@layer", "@media", "@supports"})
# The properties whose strings are names of fonts, and those that write what they are given.
_FONTS = frozenset({"font", "font-family", "--site-mono", "--site-sans"})
_WRITING = frozenset(
    {"content", "hyphenate-character", "list-style", "list-style-type", "quotes", "text-overflow"}
)
_COMMENT_OR_STRING = re.compile(r"""/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""", re.DOTALL)
# Stands in the place of each character of a string.
_SAID = "\0"
# Beside strings, all that is written is what the page has: the name of a column, and where a link leads.
_WRITTEN = re.compile(rf"(?:{_SAID}|attr\((?:data-label|href)\)|[a-z-]++(?!\()|!important|[\s/])*+")
_DECLARED = re.compile(r"(?<![^{};])\s*([\w-]+)\s*:([^{};]*)")
_REFUSED = (
    (re.compile(r"""[\\'"]"""), "is part of no string"),
    (
        re.compile(rf"@(?!(?:{'|'.join(name[1:] for name in sorted(_AROUND))})\b)[\w-]*"),
        "has no place in a style here",
    ),
    (re.compile(r"(?:url|image|image-set|src)\(", re.IGNORECASE), "loads a picture, which may hold words"),
)
_PART = re.compile(r"[^{};]+")
_STRINGS = re.compile(rf"(=\s*)?({_SAID}+)")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_FIX = "write words on a page, or as a text of the interface"


def worded_style(text: str) -> tuple[int, str, str] | None:
    """The first part of a style that says or loads something: its line, what it is, and the fix."""
    if len(text) > LONGEST:
        return 1, f"has {len(text)} characters, and {LONGEST} are the most", "remove what no page needs"
    if _SAID in text:
        return text.count("\n", 0, text.index(_SAID)) + 1, "holds a character that no text has", "remove it"
    # Without comments and strings, each character in its place.
    bare = _COMMENT_OR_STRING.sub(_blank, text)

    def at(place: int) -> int:
        return text.count("\n", 0, place) + 1

    for pattern, what in _REFUSED:
        if found := pattern.search(bare):
            return at(found.start()), f"`{found[0]}` {what}", "remove it"
    for found in _DECLARED.finditer(bare):
        if found[1].lower() in _WRITING and _WRITTEN.fullmatch(found[2].lower()) is None:
            return (
                at(found.start(1)),
                f"`{text[found.start(1) : found.end()].strip()}` writes more than signs",
                _FIX,
            )
    for part in _PART.finditer(bare):
        if part[0].partition(":")[0].strip().lower() in _FONTS:
            continue
        for found in _STRINGS.finditer(bare, part.start(), part.end()):
            said = _ESCAPE.sub(_unescaped, text[found.start(2) : found.end()])
            # What stands behind `=` chooses elements by an attribute.
            if found[1] is None and any(map(str.isalnum, said)):
                return at(found.start()), f"says {said}", _FIX
    return None


def _blank(found: re.Match[str]) -> str:
    if found[0].startswith("/*"):
        return re.sub(r"[^\n]", " ", found[0])
    return _SAID * len(found[0])


def _unescaped(found: re.Match[str]) -> str:
    code = int(found[1], 16) if found[1] else 0
    return found[2] or (chr(code) if code <= sys.maxunicode else "")
