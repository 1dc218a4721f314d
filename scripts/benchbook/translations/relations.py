"""Compare what a text says of a number, that it is more, less, another, or a power, with its English text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from benchbook.content.problems import Problem
from benchbook.languages.telling import folded
from benchbook.translations.numbers import aligned
from benchbook.translations.sections import Section, TextRun
from benchbook.translations.settings import Rules

_POWER = "^"
# Signs, also as they are written elsewhere, and which one each counts as; an arrow is none.
_SIGNS = {"<": "<≤≦≪⩽", ">": ">≥≧≫⩾", "≠": "≠", _POWER: "^"}
_SIGN = re.compile(rf"(?<![-=])[{''.join(map(re.escape, ''.join(_SIGNS.values())))}](?!-)")
_BESIDE = re.compile(r"\d\s?(?:の|的)?\s?\Z"), re.compile(r"\s?\d")


def relation_problems(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Signs, and words for powers beside a number, for which the English text has no sign and no word."""
    for ours, theirs in aligned(section, english):
        known = Counter(sign for unit in theirs for sign, _, _ in _signs(unit, english_rules))
        said = {
            sign
            for sign, words in english_rules.comparisons.items()
            if any(english_rules.matching.has(word, unit.prose) for word in words for unit in theirs)
        }
        for sign, shown, line in (found for unit in ours for found in _signs(unit, rules)):
            if sign not in said and not known[sign]:
                what = f"`{shown}` is of a relation that the English text does not say"
                yield Problem(path, line, what, "say of the number what the English text says")
            known[sign] -= known[sign] > 0


def _signs(unit: TextRun, rules: Rules) -> Iterator[tuple[str, str, int]]:
    """What each sign of a text counts as, how it is written, and its line."""
    plain, places = folded(unit.prose)
    for found in _SIGN.finditer(plain):
        sign = next(sign for sign, written in _SIGNS.items() if found[0] in written)
        yield sign, found[0], unit.line_at(places[found.start()])
    for word in rules.comparisons.get(_POWER, ()):
        for start, end in rules.matching.places(word, plain):
            if _BESIDE[0].search(plain[:start]) or _BESIDE[1].match(plain, end):
                yield _POWER, plain[start:end], unit.line_at(places[start])
