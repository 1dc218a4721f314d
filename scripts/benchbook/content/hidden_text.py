"""What a style may not hide: the numbers and verdicts of a page, and the words around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import tinycss2
from tinycss2 import ast

# Parts of blocks that go where others say the same, where a script is not there, or on paper.
_MAY_GO = frozenset(
    {"bb-live", "bb-plain", "bb-word", "bb-cardname", "bb-ends", "bb-direct", "bb-choice", "bb-filter"}
    | {"bb-figures", "bb-provenance", "bb-details", "headerlink", "md-skip", "calc-quiet", "calc-idle"}
    # Lines that the theme draws beside numbers of code, and below tabs.
    | {"tabbed-labels"}
)
# The frame of a page, around its text.
_FRAME = "site-"
# Elements without words of their own: where the head of a table goes, each cell names its column.
_WORDLESS = frozenset({"thead", "svg"})
_GENERATED = frozenset(
    {"before", "after", "marker", "placeholder", "backdrop"}
    | {"-webkit-details-marker", "-webkit-search-cancel-button"}
)
# Of an element, or of one around it, of which something else hides that there is nothing to read, or not yet.
_PENDING = frozenset({"hidden", "data-bb-pending"})
# Of a claim that holds a sign says so, and its verdict is there for who listens.
_HOLDS, _OUTCOME = '[data-outcome="holds"]', "bb-outcome"
_EITHER = frozenset({"is", "where", "matches", "-webkit-any", "-moz-any"})
# The smallest that can be read, by unit.
_SMALLEST = {"em": 0.5, "rem": 0.5, "px": 8, "pt": 6, "%": 50}

_Compound = list[ast.Node]


def hides(declared: ast.Declaration) -> bool:
    """Whether a declaration hides what it stands for, or may: what is computed is not known here."""
    hidden = _HIDING.get(declared.lower_name)
    parts = [part for part in declared.value if not isinstance(part, ast.WhitespaceToken | ast.Comment)]
    if hidden is None:
        return False
    computed = any(isinstance(part, ast.FunctionBlock) for part in parts)
    return hidden(parts) or (computed and hidden not in (_is_clear, _is_tiny))


def must_be_read(prelude: Sequence[ast.Node], around: bool) -> bool:
    """Whether a selector chooses something that a reader must see.

    Parameters:
        prelude: The selector.
        around: Whether the rule around it chooses such, which `&` stands for.
    """
    return any(_is_held(one, around) for one in _split(prelude))


def _is_held(selector: Sequence[ast.Node], around: bool) -> bool:
    compounds, within = _compounds(selector)
    if not compounds:
        return False
    subject = compounds[-1]
    if any(_attribute(part) in _PENDING for compound in compounds for part in compound):
        return False
    if _may_go(subject, around):
        return False
    names = set(_names(subject))
    told = {
        tinycss2.serialize([part])
        for one in compounds[:-1]
        for part in one
        if isinstance(part, ast.SquareBracketsBlock)
    }
    if names == {_OUTCOME} and _HOLDS in told:
        return False
    # What has no name of its own is where it lies.
    return (
        bool(names)
        or _is_around(subject)
        or not any(_may_go(one, around) for one in (compounds[:-1] if within else ()))
    )


def _may_go(compound: _Compound, around: bool) -> bool:
    """Whether each element that it chooses may be hidden."""
    if any(_is_colon(before) and _is_wordless(part) for before, part in pairwise(compound)):
        return True
    if _is_around(compound):
        return not around
    own = list(_names(compound, nested=False))
    if any(name in _MAY_GO or name.startswith(_FRAME) for name in own):
        return True
    first = compound[0]
    if not own and isinstance(first, ast.IdentToken) and first.lower_value in _WORDLESS:
        return True
    return any(
        all(not _is_held(one, around) for one in _split(part.arguments))
        for part in compound
        if isinstance(part, ast.FunctionBlock) and part.lower_name in _EITHER
    )


def _is_around(compound: _Compound) -> bool:
    """Whether it is what the rule around it chooses."""
    return any(isinstance(part, ast.LiteralToken) and part.value == "&" for part in compound)


def _is_colon(part: ast.Node) -> bool:
    return isinstance(part, ast.LiteralToken) and part.value == ":"


def _is_wordless(part: ast.Node) -> bool:
    """Whether a pseudo-class or pseudo-element is of what has no words of the page."""
    return isinstance(part, ast.IdentToken) and part.lower_value in {*_GENERATED, "empty"}


def _names(compound: Sequence[ast.Node], nested: bool = True) -> Iterator[str]:
    """The classes and ids of what it chooses; with those of `:is()`, where `nested`."""
    for before, part in zip([None, *compound], compound, strict=False):
        dotted = isinstance(before, ast.LiteralToken) and before.value == "."
        if isinstance(part, ast.HashToken) or (dotted and isinstance(part, ast.IdentToken)):
            yield part.value
        elif nested and isinstance(part, ast.FunctionBlock) and part.lower_name in _EITHER:
            for one in _split(part.arguments):
                yield from _names(_compounds(one)[0][-1] if _compounds(one)[0] else ())


def _attribute(part: ast.Node) -> str:
    """The attribute that alone is asked for; empty where there is none."""
    if isinstance(part, ast.SquareBracketsBlock) and len(part.content) == 1:
        (name,) = part.content
        return name.lower_value if isinstance(name, ast.IdentToken) else ""
    return ""


def _split(selectors: Sequence[ast.Node]) -> list[list[ast.Node]]:
    """Selectors between commas."""
    found: list[list[ast.Node]] = [[]]
    for part in selectors:
        if isinstance(part, ast.LiteralToken) and part.value == ",":
            found.append([])
        else:
            found[-1].append(part)
    return found


def _compounds(selector: Sequence[ast.Node]) -> tuple[list[_Compound], bool]:
    """What stands between combinators, and whether each is within the one before."""
    found: list[_Compound] = [[]]
    within = True
    for part in selector:
        sibling = isinstance(part, ast.LiteralToken) and part.value in {"+", "~"}
        within &= not sibling
        child = isinstance(part, ast.LiteralToken) and part.value == ">"
        if sibling or child or isinstance(part, ast.WhitespaceToken | ast.Comment):
            found.append([])
        else:
            found[-1].append(part)
    return [one for one in found if one], within


def _is_only(*words: str) -> Callable[[list[ast.Node]], bool]:
    """Whether a value is other than one of these words."""

    def other(parts: list[ast.Node]) -> bool:
        return not all(isinstance(part, ast.IdentToken) and part.lower_value in words for part in parts)

    return other


def _is_none(parts: list[ast.Node]) -> bool:
    return any(isinstance(part, ast.IdentToken) and part.lower_value == "none" for part in parts)


def _is_faint(parts: list[ast.Node]) -> bool:
    return not all(
        (isinstance(part, ast.NumberToken) and part.value >= 0.5)
        or (isinstance(part, ast.PercentageToken) and part.value >= 50)
        for part in parts
    )


def _is_tiny(parts: list[ast.Node]) -> bool:
    """Whether a size is too small to be read, in no known unit, or computed; families may stand behind it."""
    for part in parts:
        if isinstance(part, ast.FunctionBlock) or (isinstance(part, ast.NumberToken) and part.value < 1):
            return True
        if isinstance(part, ast.PercentageToken):
            return bool(part.value < _SMALLEST["%"])
        if isinstance(part, ast.DimensionToken):
            return bool(part.value < _SMALLEST.get(part.lower_unit, float("inf")))
    return False


def _is_clear(parts: list[ast.Node]) -> bool:
    return any(isinstance(part, ast.IdentToken) and part.lower_value == "transparent" for part in parts)


def _is_not_zero(parts: list[ast.Node]) -> bool:
    return not all(getattr(part, "value", None) == 0 for part in parts)


_still = _is_only("none", "initial", "unset")
_HIDING: dict[str, Callable[[list[ast.Node]], bool]] = {
    "clip": _is_only("auto"),
    "clip-path": _still,
    "-webkit-clip-path": _still,
    "color": _is_clear,
    "content-visibility": _is_only("visible", "auto"),
    "display": _is_none,
    "filter": _still,
    "font": _is_tiny,
    "font-size": _is_tiny,
    "mask": _still,
    "mask-image": _still,
    "-webkit-mask": _still,
    "-webkit-mask-image": _still,
    "opacity": _is_faint,
    "rotate": _still,
    "scale": _still,
    "text-indent": _is_not_zero,
    "transform": _still,
    "translate": _still,
    "visibility": _is_only("visible", "inherit"),
    "-webkit-text-fill-color": _is_clear,
    "zoom": _is_only("normal"),
}
