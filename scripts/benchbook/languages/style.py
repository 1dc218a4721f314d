"""The style of a language: what its letters need, and nothing that hides or changes what pages say."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What a rule may set, and to what.
_LENGTH = r"0|-?(?:0?\.\d+|[12](?:\.\d+)?)(?:r?em)"
PROPERTIES: dict[str, str] = {
    "--site-sans": r"[\w\s,\"-]+",
    "font-family": r"[\w\s,\"-]+",
    "font-size": r"(?:0\.[6-9]\d*|1(?:\.\d+)?)r?em",
    "font-style": r"normal|italic",
    "font-weight": r"[4-7]00|normal|bold",
    "hyphens": r"auto|manual|none",
    "letter-spacing": _LENGTH,
    "line-break": r"auto|loose|normal|strict",
    "line-height": r"[12](?:\.\d+)?",
    "min-width": r"\d{1,2}(?:\.\d+)?r?em",
    "overflow-wrap": r"anywhere|break-word|normal",
    "padding-inline": _LENGTH,
    "text-align": r"start|end|justify",
    "text-autospace": r"[\w -]+",
    "text-spacing-trim": r"[\w -]+",
    "word-break": r"auto-phrase|break-all|break-word|keep-all|normal",
}
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
# What may stand around rules: the width that they are for.
_AROUND = re.compile(r"(?:\s|@(?:media|container) [\w\s():.,-]*\{\s*\})*")
_NESTED = re.compile(r"\([^()]*\)")


def style_problems(style: str, code: str) -> Iterator[str]:
    """What is wrong with the `style:` of the language `code`."""
    rest = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    if "\\" in rest or _AROUND.fullmatch(_RULE.sub("", rest)) is None:
        yield "it is not rules alone, in `@media` or `@container` at most"
        return
    for selectors, declared in _RULE.findall(rest):
        for selector in _parts(selectors):
            if f":lang({code})" not in _outermost(selector, code):
                yield f"`{' '.join(selector.split())}` is not of `:lang({code})` alone"
        for line in filter(None, map(str.strip, declared.split(";"))):
            name, _, value = (part.strip() for part in line.partition(":"))
            if re.fullmatch(PROPERTIES.get(name, ""), value) is None or not value:
                yield f"`{line}` is nothing that a language may set"


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
