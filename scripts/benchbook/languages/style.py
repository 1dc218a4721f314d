"""The style of a language: what its letters need, and nothing that hides or changes what pages say."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What a rule may set, and to what: nothing that adds up in elements within elements until it hides them.
_SPACING = r"0|-?0?\.(?:0\d+|10*)(?:r?em)"
PROPERTIES: dict[str, str] = {
    "--site-sans": r"[\w\s,\"-]+",
    "font-family": r"[\w\s,\"-]+",
    "font-size": r"(?:0\.[7-9]\d*|1(?:\.[0-4]\d*)?)rem",
    "font-style": r"normal|italic",
    "font-weight": r"[4-7]00|normal|bold",
    "hyphens": r"auto|manual|none",
    "letter-spacing": _SPACING,
    "line-break": r"auto|loose|normal|strict",
    "line-height": r"[12](?:\.\d+)?",
    "min-width": r"\d(?:\.\d+)?r?em",
    "overflow-wrap": r"anywhere|break-word|normal",
    "padding-inline": r"0|(?:0?\.\d+|1)(?:r?em)",
    "text-align": r"start|end|justify",
    "text-autospace": r"[\w -]+",
    "text-spacing-trim": r"[\w -]+",
    "word-break": r"auto-phrase|break-all|break-word|keep-all|normal",
    "word-spacing": _SPACING,
}
# Letters and digits that are pictures.
_PICTURES = re.compile(
    r"barcode|blank|dingbat|emoji|icon|marlett|mdl2|outlook|symbol|webding|wingding", re.IGNORECASE
)
# Where our own blocks may break, and how wide their cells are, is all that is theirs to say.
_OF_OURS = frozenset({"line-break", "min-width", "overflow-wrap", "padding-inline", "word-break"})
_OURS = re.compile(r"[.#](?:bb-|calc|site-)|\bdata\b|\[", re.IGNORECASE)
# What a selector is made of: elements of text, classes, the language, and what groups or excludes these.
_SELECTOR = re.compile(
    r"(?:[\s>(),]|:(?:is|not|where)(?=\()|:lang\([\w-]+\)|:(?:first|last)-child|\[lang\]|\.[a-z][a-z-]*(?![\w-])"
    r"|(?<![\w.-])(?:a|blockquote|body|caption|code|dd|dt|em|figcaption|h[1-6]|html|kbd|li|ol|p|pre|strong|summary|table|tbody|td"
    r"|th|thead|tr|ul)(?![\w-]))+"
)
# Begun behind a brace alone, or it would be looked for from each character anew.
_RULE = re.compile(r"(?<![^{}])([^{}]+)\{([^{}]*)\}")
# A comment mark in a string begins no comment, and a brace in one no rule: strings hold names of fonts alone.
_COMMENT = r"/\*(?:[^*]|\*(?!/))*\*/"
_APART = re.compile(rf"""(?:{_COMMENT}|"[\w ,-]*"|/(?!\*)|[^"'/])*""")
# Some twenty times what any language here takes.
LONGEST = 20_000
# What may stand around rules: the width that they are for.
_AROUND = re.compile(r"(?:\s|@(?:media|container) [\w\s():.,-]*\{\s*\})*")
_NESTED = re.compile(r"\([^()]*\)")


def style_problems(style: str, code: str) -> Iterator[str]:
    """What is wrong with the `style:` of the language `code`."""
    if len(style) > LONGEST:
        yield f"it has {len(style)} characters, and {LONGEST} are the most"
        return
    if _APART.fullmatch(style) is None:
        yield "a comment or a string in it has no end, or a string holds more than names of fonts"
        return
    # As a browser reads it, a comment joins nothing.
    rest = re.sub(_COMMENT, " ", style)
    if "\\" in rest or _AROUND.fullmatch(_RULE.sub("", rest)) is None:
        yield "it is not rules alone, in `@media` or `@container` at most"
        return
    for selectors, declared in _RULE.findall(rest):
        ours = _OURS.search(selectors.replace("[lang]", "")) is not None
        for selector in _parts(selectors):
            if _SELECTOR.fullmatch(selector) is None:
                yield f"`{' '.join(selector.split())}` names more than text, classes and languages"
            if f":lang({code})" not in _outermost(selector, code):
                yield f"`{' '.join(selector.split())}` is not of `:lang({code})` alone"
        for line in filter(None, map(str.strip, declared.split(";"))):
            name, _, value = (part.strip() for part in line.partition(":"))
            if re.fullmatch(PROPERTIES.get(name, ""), value) is None or not value:
                yield f"`{line}` is nothing that a language may set"
            elif ours and name not in _OF_OURS:
                yield f"`{line}` is nothing that a language may set for our own blocks"
            elif _PICTURES.search(value):
                yield f"`{line}` names a font whose letters are pictures"


def _parts(selectors: str) -> list[str]:
    """The selectors of a rule: a comma in brackets separates none."""
    found, depth = [""], 0
    for character in selectors:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return found


def _outermost(selector: str, code: str) -> str:
    """A selector without what stands in brackets, but for the language itself."""
    own = f":lang({code})"
    marked = selector.replace(own, "\0")
    while _NESTED.search(marked):
        marked = _NESTED.sub("", marked)
    return marked.replace("\0", own)
