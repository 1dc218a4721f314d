"""Compare the numbers of a section with those of its translation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from benchbook.content.problems import Problem
from benchbook.languages.telling import (
    IDEOGRAPHIC,
    IDEOGRAPHS,
    folded,
    ideographic,
    outermost,
    typed_pattern,
    typed_places,
    unit_pattern,
)
from benchbook.translations.sections import Section, TextRun
from benchbook.translations.settings import NumberWords, Rules

# Digits that are not part of a name such as bf16 or GPT-2, with their sign, in text that is folded.
_DIGITS = r"\d(?:[\d.,\u066b\u066c]*\d)?"
# Numbers in ideographs: `九十`, `四二`, but not the words for a pair.
_IDEOGRAPH = f"[{''.join(letter for letter in IDEOGRAPHS if letter not in '两両')}]"
_RUN = re.compile(f"{_IDEOGRAPH}+")
# What a fraction is of, and its part: `5 分の 1`, `五分之一`.
_PARTS = rf"\s?分[之の]\s?(?P<part>{_DIGITS}|{_RUN.pattern})"
# A fraction is one number, `1/512` as well, but no date is.
_STROKE = r"\s?[/\u2044\u2215]\s?"
_NUMBER = re.compile(
    r"(?<![A-Za-z_.\d])(?<![A-Za-z]-)(?:(?<!\))[-\u2212])?"
    rf"(?:(?P<whole>{_DIGITS}){_PARTS}|(?<![/\u2044\u2215])(?P<over>{_DIGITS}){_STROKE}(?P<below>{_DIGITS})"
    rf"(?!{_STROKE}\d|\d)|{_DIGITS})"
)
_SHARE = re.compile(rf"(?<!{_IDEOGRAPH})(?P<whole>{_RUN.pattern}){_PARTS}")
# What is counted by: `百枚`, `七台`.
_COUNTER = re.compile(r"\s*[枚台个個回次本块张倍件人つ]")
# A noun that is counted without one: `八プロセス`, `八 GPU`.
_NOUN = re.compile(r"\s*[ァ-ヺA-Za-z]")
# The whole that a fraction is of, behind which its part stands.
_FRACTION = re.compile(r"分[之の]\s*")
# `百分之` is of percent.
_HUNDRED = "百"
_GROUPS = re.compile(r"[,\u066c](?=\d{3}(?!\d))")


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


@dataclass(frozen=True)
class Number:
    """A number in a text that is folded: what it is, from where to where, and whether words say it."""

    value: str
    start: int
    end: int
    in_words: bool = False


@lru_cache(maxsize=8192)
def numbers_in(text: str, rules: Rules) -> tuple[Number, ...]:
    """The numbers of a text that is folded, each with the word behind it that multiplies it."""
    return tuple(_numbers(text, rules))


def _numbers(text: str, rules: Rules) -> Iterator[Number]:
    for found in _NUMBER.finditer(text):
        yield Number(_value(found, rules), found.start(), _multiplied(text, found.end(), rules)[1])
    if rules.matching.by == "text":
        for found in IDEOGRAPHIC.finditer(text):
            for value in ideographic([IDEOGRAPHS[letter] for letter in found[0]]):
                yield Number(value, found.start(), found.end(), in_words=True)
        return
    spans = {(start, end): number for number, start, end in rules.numbers.places(text)}
    # `ثلاثة عشر` is no ten.
    whole = outermost(spans)
    for (start, end), number in spans.items():
        if (start, end) in whole:
            many, last = _multiplied(text, end, rules)
            yield Number(str(number * many), start, last, in_words=True)


def implied_numbers(text: TextRun, english_rules: Rules) -> set[str]:
    """The numbers that words of an English text imply."""
    return _in_words(text, english_rules.implied_numbers, english_rules)


def numbers_of(texts: Sequence[TextRun], english_rules: Rules) -> set[str]:
    """The numbers that English texts say in digits or in words, or imply."""
    said = {number for text in texts for number in _said(text, english_rules)}
    implied = (implied_numbers(text, english_rules) | _fractions(text, english_rules) for text in texts)
    return said.union(*implied)


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
    shares = {found.start(): found for found in _SHARE.finditer(text) if found["whole"] != _HUNDRED}
    parts = {found.end() for found in _FRACTION.finditer(text)}
    end = 0
    for found in _RUN.finditer(text):
        if found.start() < end:
            continue
        if share := shares.get(found.start()):
            end = share.end()
            yield found.start(), share[0], {_fraction(share["part"], share["whole"])}
            continue
        digits = [IDEOGRAPHS[letter] for letter in found[0]]
        behind = unit.match(text, found.end()) or _COUNTER.match(text, found.end())
        counted = behind or found.start() in parts
        several = any(1 < digit < 10 for digit in digits)
        if counted or (several and (len(digits) > 1 or _NOUN.match(text, found.end()))):
            yield found.start(), found[0], ideographic(digits)
    if rules.matching.by == "words":
        for number, start, end in rules.numbers.places(text):
            if number > 1 and (behind := unit.match(text, end)):
                yield start, text[start : behind.end()], {str(number)}


def lost_numbers(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Numbers of the English section, in digits or words, that its translation says nowhere."""
    for ours, theirs in aligned(section, english):
        there = {number for unit in ours for number in _said(unit, rules)}
        # Who says a fraction of the English text says both of its numbers.
        known = numbers_of(theirs, english_rules)
        there |= {part for number in there & known if "/" in number for part in number.split("/")}
        for number in sorted({n for unit in theirs for n in _said(unit, english_rules)} - there):
            # "One" and "a" are often no number, and languages differ in when they say them.
            if number not in ("0", "1"):
                what = f"the number {number} of the English text is not here"
                fix = f"say it, or add its word to `numerals:` of docs/{rules.code}/_language.yml"
                yield Problem(path, ours[0].line, what, fix)


def aligned(section: Section, english: Section) -> list[tuple[Sequence[TextRun], Sequence[TextRun]]]:
    """Which text stands for which: unit by unit where both sections have the same, else as a whole."""
    if [unit.kind for unit in section.units] == [unit.kind for unit in english.units]:
        return [((one,), (other,)) for one, other in zip(section.units, english.units, strict=True)]
    return [(section.units, english.units)] if section.units else []


_SAME = "say the same number as in English; bind a measured one with `#!value ...`"


def _said(unit: TextRun, rules: Rules) -> Set[str]:
    return _in_digits(folded(unit.prose)[0], rules) | _in_words(unit, rules.numbers, rules)


@lru_cache(maxsize=8192)
def _in_digits(text: str, rules: Rules) -> Set[str]:
    """The numbers that a text says in digits, and its fractions."""
    shares = {_fraction(found["part"], found["whole"]) for found in _SHARE.finditer(text)}
    return frozenset(shares | {_value(found, rules) for found in _NUMBER.finditer(text)})


def _in_words(unit: TextRun, words: NumberWords, rules: Rules) -> set[str]:
    return {
        str(number * _multiplied(unit.prose, end, rules)[0]) for number, _, end in words.places(unit.prose)
    }


def _value(found: re.Match[str], rules: Rules) -> str:
    """A number in Western digits, without groups of thousands, times what the word behind it says."""
    if whole := found["whole"] or found["below"]:
        return _fraction(found["part"] or found["over"], whole)
    return _western(found[0], _multiplied(found.string, found.end(), rules)[0])


def _fraction(part: str, whole: str) -> str:
    """A fraction as it is compared: `1/5`."""
    first, second = (
        min(ideographic([IDEOGRAPHS[letter] for letter in said])) if _RUN.fullmatch(said) else _western(said)
        for said in (part, whole)
    )
    return f"{first}/{second}"


def _fractions(text: TextRun, english_rules: Rules) -> set[str]:
    """The fractions that words of an English text say: `a fifth`, `two thirds`, `divided by 8`."""
    numbers = numbers_in(folded(text.prose)[0], english_rules)
    parts = {one.value for one in numbers} | {"1"}
    found = {f"{part}/{n}" for n in _in_words(text, english_rules.parts, english_rules) for part in parts}
    begun: dict[int, list[str]] = {}
    for one in numbers:
        begun.setdefault(one.start, []).append(one.value)
    for phrase in english_rules.dividing:
        for _, end in english_rules.matching.places(phrase, folded(text.prose)[0]):
            found |= {f"1/{value}" for value in begun.get(end + 1, ())}
    return found


def _western(said: str, many: int = 1) -> str:
    western = "".join(
        str(unicodedata.decimal(letter)) if letter.isdecimal() else letter for letter in _GROUPS.sub("", said)
    )
    western = western.replace("\u066b", ".").replace("\u2212", "-")
    try:
        number = Decimal(western)
    except InvalidOperation:
        return western  # a version, or a date
    return f"{(number * many).normalize():f}"


def _multiplied(text: str, end: int, rules: Rules) -> tuple[int, int]:
    """What the word at `end` of a text multiplies the number before it by, and where that word ends."""
    start = end
    while text[start : start + 1].isspace():
        start += 1
    said = text[start : start + rules.longest_magnitude].casefold()
    for many, words in rules.magnitudes.items():
        for word in words:
            if said.startswith(word):
                return many, start + len(word)
    return 1, end
