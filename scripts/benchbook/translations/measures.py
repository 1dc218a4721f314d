"""Compare numbers with units of a text and its translation: `24 GB` is no `24 TB`, `30 %` not 30 times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from benchbook.content.problems import Problem
from benchbook.content.units import UNITS
from benchbook.languages.telling import TIMES, folded, measure_pattern
from benchbook.translations.numbers import Number, aligned, implied_numbers, numbers_in
from benchbook.translations.sections import Section, TextRun
from benchbook.translations.settings import Rules

_SAME = "say the number with the unit of the English text"
# Units that no language calls by an ordinary word, as `second` and `byte` are.
_NEVER_WORDS = {"ms", "us"} | {
    key for key, unit in UNITS.items() if unit.dimension == "memory" and key != "B"
}
_SAME_UNIT = "name the unit of the English text"


@dataclass(frozen=True)
class _Measure:
    """A number and the unit behind it: None without one, "" for one of which nothing says what it is."""

    number: Number
    unit: str | None
    shown: str
    line: int

    @property
    def pair(self) -> tuple[str, str | None]:
        """What it is compared by."""
        return self.number.value, self.unit


def measure_problems(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Numbers whose unit is another one than in the English text, or that lost it."""
    for ours, theirs in aligned(section, english):
        here, there = list(_measures(ours, rules)), list(_measures(theirs, english_rules))
        pairs = {one.pair for one in there}
        implied = {number for unit in theirs for number in implied_numbers(unit, english_rules)}
        bare = implied | {one.number.value for one in there if one.unit is None}
        named = _named_units(theirs, english_rules)
        for one in here:
            # `4 times` may stand for "four"; `1 MB` for "a megabyte"; `20 %` for "a fifth".
            free = one.number.value in bare and (one.unit == TIMES or one.unit in named)
            share = one.unit == "percent" and _whole_of(one.number.value) in implied
            if one.unit and not (one.pair in pairs or free or share):
                yield Problem(path, one.line, f"`{one.shown}` is not what the English text measures", _SAME)
        yield from _other_units(ours, here, there, named, rules, path)
        values, pairs = {one.number.value for one in here}, {one.pair for one in here}
        named = _named_units(ours, rules)
        for one in there:
            kept = one.pair in pairs or one.unit in named or one.number.value not in values
            if one.unit and not one.number.in_words and not kept:
                yield Problem(path, ours[0].line, f"the English text measures `{one.shown}`", _SAME)


def _other_units(
    units: Sequence[TextRun],
    here: Sequence[_Measure],
    there: Sequence[_Measure],
    named: Set[str],
    rules: Rules,
    path: str,
) -> Iterator[Problem]:
    """Units that stand without a number, and that the English text neither names nor measures in."""
    measured = {part for one in (*here, *there) for part in (one.unit or "").split("/")}
    known = named | measured
    for unit in units:
        plain, places = folded(unit.prose)
        for word, symbol in rules.unit_symbols.items():
            if symbol in _NEVER_WORDS and symbol not in known:
                for start in _starts(word, plain):
                    what = f"the unit `{word}` is not in the English text"
                    yield Problem(path, unit.line_at(places[start]), what, _SAME_UNIT)


def _measures(units: Sequence[TextRun], rules: Rules) -> Iterator[_Measure]:
    pattern, symbols = measure_pattern(rules.unit_words), rules.unit_symbols
    for unit in units:
        plain, places = folded(unit.prose)
        for number in numbers_in(plain, rules):
            behind = pattern.match(plain, number.end)
            symbol = symbols[behind["unit"]] if behind else None
            if behind and symbol and behind["per"]:
                symbol = f"{symbol}/{symbols[behind['per']]}"
            end = behind.end() if behind else number.end
            shown = unit.prose[places[number.start] : places[end - 1] + 1]
            yield _Measure(number, symbol, shown, unit.line_at(places[number.start]))


def _named_units(units: Sequence[TextRun], rules: Rules) -> set[str]:
    """The units that texts, or what they link to, name with a number or without."""
    plain = " ".join(folded(piece.text)[0] for unit in units for piece in unit.pieces)
    return {symbol for word, symbol in rules.unit_symbols.items() if len(word) > 1 and _starts(word, plain)}


def _starts(unit: str, plain: str) -> list[int]:
    """Where a unit begins that no letter is joined to."""
    # Most are not there at all, which is found soonest without a pattern.
    if unit not in plain:
        return []
    return [found.start() for found in re.finditer(rf"(?<![A-Za-z]){re.escape(unit)}(?![A-Za-z])", plain)]


def _whole_of(percent: str) -> str:
    """Of how many a share in percent is one: 5 for 20."""
    return f"{100 / float(percent):g}" if re.fullmatch(r"\d+(\.\d+)?", percent) and float(percent) else ""
