"""Find what was left in English, and what lost sentences on the way."""

from __future__ import annotations

import statistics
import unicodedata
from collections.abc import Iterator, Sequence

from benchbook.content.problems import Problem
from benchbook.translations.matching import words_of
from benchbook.translations.numbers import is_proper_name
from benchbook.translations.rules import Rules
from benchbook.translations.sections import Section, TextRun

# So many words in a row are no name: they are a sentence.
_SENTENCE = 4
# Below this share of what is usual on its page, a text has lost something; short ones vary too much to tell.
_SHORT = 0.5
_LONG_ENOUGH = 100
_ENOUGH_TEXTS = 5

Pair = tuple[Section, Section]


def english_problems(section: Section, english: Section, rules: Rules, path: str) -> Iterator[Problem]:
    """Headings and sentences that are still in English."""
    if len(section.units) != len(english.units):
        return
    for unit, other in zip(section.units, english.units, strict=True):
        words, theirs = _words(unit), _words(other)
        left = [word for word in words if word.casefold() not in rules.kept_words]
        english_like = words == theirs or (_is_latin(unit.prose) and rules.script != "Latn")
        if unit.kind == "heading" and left and english_like:
            yield Problem(path, unit.line, f"the heading `{section.title}` is in English", "translate it")
        elif unit.kind != "heading" and len(left) >= _SENTENCE and english_like:
            what = f"“{' '.join(words[:_SENTENCE])} …” is in English"
            yield Problem(path, unit.line, what, "translate it; put a quoted error into a code span")


def short_texts(pairs: Sequence[Pair], path: str) -> Iterator[Problem]:
    """Texts much shorter beside their English ones than the rest of the page is."""
    texts = [
        (unit, len(unit.prose.strip()) / len(other.prose.strip()))
        for section, english in pairs
        if len(section.units) == len(english.units)
        for unit, other in zip(section.units, english.units, strict=True)
        if len(other.prose.strip()) >= _LONG_ENOUGH
    ]
    if len(texts) < _ENOUGH_TEXTS:
        return
    usual = statistics.median(share for _, share in texts)
    for unit, share in texts:
        if share < _SHORT * usual:
            what = (
                f"the text is {share / usual:.0%} as long as the page's others are beside their English ones"
            )
            yield Problem(path, unit.line, what, "translate every sentence of it")


def _words(unit: TextRun) -> list[str]:
    """The words of a text but for numbers and names."""
    return [word for word in words_of(unit.prose) if word[0].isalpha() and not is_proper_name(word)]


def _is_latin(text: str) -> bool:
    """Whether all letters of a text are Latin, and there are any."""
    letters = [letter for letter in text if letter.isalpha()]
    return bool(letters) and all(unicodedata.name(letter, "").startswith("LATIN") for letter in letters)
