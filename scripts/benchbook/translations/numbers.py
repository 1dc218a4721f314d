"""Compare the numbers and the names that stay Latin between a section and its translation."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from benchbook.content.problems import Problem
from benchbook.languages.telling import (
    IDEOGRAPHS,
    NAME,
    folded,
    ideographic,
    typed_pattern,
    typed_places,
    unit_pattern,
)
from benchbook.translations.sections import Section, TextRun
from benchbook.translations.settings import DEVICES, Rules

# Digits that are not part of a name such as bf16 or GPT-2, with their sign, in text that is folded.
_NUMBER = re.compile(r"(?<![A-Za-z_.\d])(?<![A-Za-z]-)(?:(?<!\))[-\u2212])?\d(?:[\d.,\u066b\u066c]*\d)?")
# Numbers in ideographs: `九十`, `四二`, but not the words for a pair.
_RUN = re.compile(f"[{''.join(letter for letter in IDEOGRAPHS if letter not in '两両')}]+")
# What is counted by: `百枚`, `七台`.
_COUNTER = re.compile(r"\s*[枚台个個回次本块张倍件人つ]")
# A noun that is counted without one: `八プロセス`, `八 GPU`.
_NOUN = re.compile(r"\s*[ァ-ヺA-Za-z]")
# The whole that a fraction is of, behind which its part stands.
_FRACTION = re.compile(r"分[之の]\s*\Z")
_GROUPS = re.compile(r"[,\u066c](?=\d{3}(?!\d))")
_DEVICE = re.compile(rf"(?<![A-Za-z])({'|'.join(DEVICES)})s?(?![A-Za-z])")


def added_numbers(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Numbers that the English text has neither in digits nor in words."""
    whole = numbers_of(english.units, english_rules)
    for ours, theirs in aligned(section, english):
        # A sentence may need the numbers of the paragraph before it; an item, a cell or a note stands alone.
        alone = len(ours) == 1 and ours[0].kind != "paragraph"
        known = numbers_of(theirs, english_rules) | whole & {"0", "1"} if alone else whole
        yield from unsaid_numbers(ours, known, rules, path)


def numbers_of(texts: Sequence[TextRun], english_rules: Rules) -> set[str]:
    """The numbers that English texts say in digits or in words, or imply."""
    said = {number for text in texts for number in _said(text, english_rules)}
    return said.union(*(_in_words(text, english_rules.implied, english_rules) for text in texts))


def unsaid_numbers(units: Sequence[TextRun], known: set[str], rules: Rules, path: str) -> Iterator[Problem]:
    """Numbers of texts, in digits or in words, that are not among `known`."""
    typed = typed_pattern(rules.unit_words)
    for unit in units:
        # A number with a unit is wrong in every language and named as such, unless it has a source.
        measured = (
            set()
            if unit.has_source
            else {place for start, end in typed_places(unit.prose, typed) for place in range(start, end)}
        )
        plain, places = folded(unit.prose)
        for found in _NUMBER.finditer(plain):
            place, last = places[found.start()], places[found.end() - 1]
            if _value(found, rules) not in known and last not in measured:
                shown = unit.prose[place : last + 1]
                yield Problem(
                    path, unit.line_at(place), f"the number `{shown}` is not in the English section", _SAME
                )
        for place, shown, values in _spelled(unit.prose, rules):
            if not values <= known | {"0", "1"} and place not in measured:
                yield Problem(
                    path, unit.line_at(place), f"the number `{shown}` is not in the English section", _SAME
                )


def _spelled(text: str, rules: Rules) -> Iterator[tuple[int, str, set[str]]]:
    """Numbers in words that measure, count or are no single ideograph: place, words, what they may be."""
    unit = unit_pattern(rules.unit_words)
    for found in _RUN.finditer(text):
        digits = [IDEOGRAPHS[letter] for letter in found[0]]
        behind = unit.match(text, found.end()) or _COUNTER.match(text, found.end())
        counted = behind or _FRACTION.search(text[: found.start()])
        several = any(1 < digit < 10 for digit in digits)
        if counted or (several and (len(digits) > 1 or _NOUN.match(text, found.end()))):
            yield found.start(), found[0], ideographic(digits)
    if rules.matching.by == "words":
        for number, names in rules.numerals.items():
            for name in names:
                for start, end in rules.matching.places(name, text):
                    if number > 1 and (behind := unit.match(text, end)):
                        yield start, text[start : behind.end()], {str(number)}


def lost_numbers(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Numbers of the English section, in digits or words, that its translation says nowhere."""
    for ours, theirs in aligned(section, english):
        there = {number for unit in ours for number in _said(unit, rules)}
        for number in sorted({n for unit in theirs for n in _said(unit, english_rules)} - there):
            # "One" and "a" are often no number, and languages differ in when they say them.
            if number not in ("0", "1"):
                what = f"the number {number} of the English text is not here"
                fix = f"say it, or add its word to `numerals:` of docs/{rules.code}/_language.yml"
                yield Problem(path, ours[0].line, what, fix)


def device_problems(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Where a translation names another number of CPUs, GPUs and TPUs than its English section."""
    ours, theirs = (Counter(_found(_DEVICE, side)) for side in (section, english))
    implied = _implied_devices(english, rules, english_rules)
    for name in sorted(ours | theirs):
        if not theirs[name] - implied[name] <= ours[name] <= theirs[name]:
            line = next((u.line_at(m.start()) for u in section.units for m in _named(name, u)), section.line)
            what = f"{section.called} says {name} {ours[name]} times, in English {theirs[name]} times"
            yield Problem(path, line, what, f"say {name} where the English section does, and only there")


def lost_names(section: Section, english: Section, path: str) -> Iterator[Problem]:
    """Names such as AdamW that the English section has and its translation lacks."""
    ours = {name for unit in section.units for name in NAME.findall(unit.spoken)}
    for name in sorted({name for unit in english.units for name in NAME.findall(unit.prose)} - ours):
        if not _DEVICE.fullmatch(name) and name.removesuffix("s") not in ours:
            what = f"{section.called} lacks the name {name}"
            yield Problem(path, section.line, what, "keep it, in Latin letters")


def is_proper_name(word: str) -> bool:
    """Whether a word is a name that every language writes the same: AdamW, DDP, bf16."""
    return NAME.fullmatch(word) is not None or _DEVICE.fullmatch(word) is not None


def aligned(section: Section, english: Section) -> list[tuple[Sequence[TextRun], Sequence[TextRun]]]:
    """Which text stands for which: unit by unit where both sections have the same, else as a whole."""
    if [unit.kind for unit in section.units] == [unit.kind for unit in english.units]:
        return [((one,), (other,)) for one, other in zip(section.units, english.units, strict=True)]
    return [(section.units, english.units)] if section.units else []


_SAME = "say the same number as in English; bind a measured one with `#!value ...`"


def _implied_devices(english: Section, rules: Rules, english_rules: Rules) -> Counter[str]:
    """How often a language can do without a device's name, for its word for a term says it."""
    implied: Counter[str] = Counter()
    for unit in english.units:
        for key, often in english_rules.index.found_in(unit.prose).items():
            term = rules.terms.get(key)
            silent = term and not all(_DEVICE.search(text) for text in term.approved)
            for name in _DEVICE.findall(key) if silent else ():
                implied[name] += often
    return implied


def _said(unit: TextRun, rules: Rules) -> set[str]:
    digits = {_value(found, rules) for found in _NUMBER.finditer(folded(unit.prose)[0])}
    return digits | _in_words(unit, rules.numerals, rules)


def _in_words(unit: TextRun, words: Mapping[int, Sequence[str]], rules: Rules) -> set[str]:
    return {
        str(number * _magnitude(unit.prose[end:], rules))
        for number, names in words.items()
        for name in names
        for _, end in rules.matching.places(name, unit.prose)
    }


def _value(found: re.Match[str], rules: Rules) -> str:
    """A number in Western digits, without groups of thousands, times what the word behind it says."""
    western = "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal() else letter
        for letter in _GROUPS.sub("", found[0])
    )
    western = western.replace("\u066b", ".").replace("\u2212", "-")
    try:
        number = Decimal(western)
    except InvalidOperation:
        return western  # a version, or a date
    return f"{(number * _magnitude(found.string[found.end() :], rules)).normalize():f}"


def _magnitude(behind: str, rules: Rules) -> int:
    """What the word behind a number multiplies it by."""
    said = behind.lstrip().casefold()
    return next((many for many, words in rules.magnitudes.items() if said.startswith(tuple(words))), 1)


def _found(pattern: re.Pattern[str], section: Section) -> Iterator[str]:
    return (name for unit in section.units for name in pattern.findall(unit.prose))


def _named(name: str, unit: TextRun) -> Iterator[re.Match[str]]:
    return (match for match in _DEVICE.finditer(unit.prose) if match[1] == name)
