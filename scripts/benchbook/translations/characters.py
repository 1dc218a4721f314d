"""Find characters that no page of a language has: invisible, broken, of another script or language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from babel import Locale

from benchbook.content.page_source import PageSource
from benchbook.content.positions import yaml_line
from benchbook.content.problems import Problem
from benchbook.languages.language import Language
from benchbook.translations.front_matter import line_of_entry
from benchbook.translations.sections import Section
from benchbook.translations.settings import Rules

# What shows nothing: the property Default_Ignorable_Code_Point of Unicode 17.0.0 (DerivedCoreProperties.txt:
# direction marks, joiners, variation selectors, fillers, tags), marks of annotations, the empty pattern of
# Braille, and control characters but for tabs and the ends of lines.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ufff9-\ufffb\u2800\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]"
)
# What stands for a character that was lost, or for none that anyone agreed on.
_LOST = re.compile("[\ufffd\ue000-\uf8ff\U000f0000-\U0010ffff]")
# UTF-8 that was read as Latin-1 or as Windows' code pages for Chinese and Japanese.
_MOJIBAKE = re.compile(
    "[\u00c2-\u00f4][\u0080-\u00bf\u0152-\u0192\u02c6\u02dc\u2013-\u203a\u20ac\u2122]{1,3}|锟斤拷|縺[^\\s]|繧[^\\s]|譁[^\\s]"
)
_GREEK_AND_LATIN = frozenset({"LATIN", "GREEK", "MICRO"})
# What the letters of a script are called, where the script is not called so itself.
_LETTERS = {
    "Jpan": frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC"}),
    "Hans": frozenset({"CJK", "IDEOGRAPHIC"}),
    "Hant": frozenset({"CJK", "IDEOGRAPHIC", "BOPOMOFO"}),
    "Kore": frozenset({"CJK", "HANGUL"}),
}
# So many marks may stand on one letter: a vowel sign, and what doubles the consonant below it.
_MOST_MARKS = 2
# Combining classes of marks below and above a letter, which do not strike it through.
_BELOW, _ABOVE = 220, 230
# What a label may say of its own layout: where it can break, where not, and what keeps its direction.
_LAYOUT = dict.fromkeys(map(ord, "\u200b\u200e\u200f\u2060\u2066\u2067\u2068\u2069"))
_FIX = "write the characters that the language is written in"


def character_problems(section: Section, rules: Rules, path: str) -> Iterator[Problem]:
    """The first damaged place of each kind in each text of a section, and the first in each line of code."""
    for unit in section.units:
        for offset, what in damaged_characters(unit.prose, rules):
            yield Problem(path, unit.line_at(offset), what, _FIX)
        for piece in unit.of("code"):
            for _, what in _loose_marks(piece.text):
                yield Problem(path, piece.line, what, _FIX)
    for fence in section.fences:
        for number, line in enumerate(fence.body.split("\n"), start=fence.line + 1):
            for _, what in _loose_marks(line):
                yield Problem(path, number, what, _FIX)


def front_matter_characters(page: PageSource, text: str, rules: Rules, path: str) -> Iterator[Problem]:
    """Damaged places in the words of a page's head that are no section of it."""
    for key in ("title", "synonyms"):
        value = page.front_matter.get(key)
        for said in value if isinstance(value, list) else [value]:
            if isinstance(said, str):
                for _, what in damaged_characters(said, rules):
                    yield Problem(path, line_of_entry(key, text), f"`{key}:` {what}", _FIX)


def interface_problems(language: Language, rules: Rules, path: str, text: str) -> Iterator[Problem]:
    """Damaged places in the interface texts of a language; `text` is its file, to find lines in."""
    for title, table in (("strings", language.strings), ("labels", language.labels)):
        for key, value in table.items():
            for said in value.values() if isinstance(value, Mapping) else [value]:
                for _, what in damaged_characters(said.translate(_LAYOUT), rules):
                    yield Problem(path, yaml_line(text, (title, key)), f"`{key}` {what}", _FIX)


def repeated_headings(
    sections: Sequence[Section], english: Sequence[Section], path: str
) -> Iterator[Problem]:
    """Headings that say what another of the page says, where the English ones differ."""
    theirs = {section.key: section.title for section in english}
    seen: dict[str, Section] = {}
    for section in sections:
        if not section.level:
            continue
        other = seen.setdefault(section.title, section)
        if other is not section and theirs.get(section.key) != theirs.get(other.key):
            what = f"the heading `{section.title}` is that of section `#{other.key}`, too"
            yield Problem(path, section.line, what, "translate what the English heading says")


def damaged_characters(text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    """What no text of a language holds, with its place: of each kind the first."""
    for pattern, what in (
        (INVISIBLE, "an invisible character"),
        (_LOST, "a character that was lost"),
        (_MOJIBAKE, "text that was read in another encoding"),
    ):
        if found := pattern.search(text):
            yield found.start(), f"holds {what} ({_named(found[0])})"
    whole = unicodedata.normalize("NFC", text)
    if whole != text:
        pairs = enumerate(zip(text, whole, strict=False))
        place = next((place for place, (one, other) in pairs if one != other), len(whole))
        yield place, f"holds a letter in parts ({_named(text[place : place + 2])})"
    yield from _loose_marks(text)
    yield from _foreign_letters(text, rules)


def _loose_marks(text: str) -> Iterator[tuple[int, str]]:
    """The first mark that could stand over other text: around a letter, on a foreign one, or one too many.

    A script has marks for its own letters, two on a letter; a Latin letter may have one below or above it.
    """
    if text.isascii():
        return
    base, marks = "", 0
    for place, sign in enumerate(text):
        category = unicodedata.category(sign)
        if category not in ("Me", "Mn"):
            base, marks = sign, 0
            continue
        marks += 1
        script, own = (unicodedata.name(one, "?").split(" ")[0] for one in (base or "?", sign))
        on_latin = script == "LATIN" and marks == 1 and unicodedata.combining(sign) in (_BELOW, _ABOVE)
        on_own = script == own and marks <= _MOST_MARKS
        if category == "Me" or not (on_latin or on_own):
            yield place, f"holds a mark that can stand over other text ({_named(base + sign)})"
            return


def _foreign_letters(text: str, rules: Rules) -> Iterator[tuple[int, str]]:
    """The first letter of another script, and the first of the language's own script that it does not use."""
    known = _letters_of(rules.script)
    told: set[str] = set()
    for place, letter in enumerate(text):
        if letter.isascii() or not letter.isalpha():
            continue
        script = unicodedata.name(letter, "?").split(" ")[0]
        if known and script not in known | _GREEK_AND_LATIN and "script" not in told:
            told.add("script")
            yield place, f"holds a letter of another script ({_named(letter)})"
        elif rules.charset and script in known and not _has(rules.charset, letter) and "set" not in told:
            told.add("set")
            yield place, f"holds a letter that the language does not use ({_named(letter)})"


@cache
def _letters_of(script: str) -> frozenset[str]:
    """How Unicode's names of a script's letters begin; nothing where that is not known."""
    if script in _LETTERS:
        return _LETTERS[script]
    name = Locale("en").scripts.get(script)
    return frozenset({name.split(" ")[0].upper()}) if name else frozenset()


def _has(charset: str, letter: str) -> bool:
    try:
        letter.encode(charset)
    except UnicodeEncodeError:
        return False
    return True


def _named(text: str) -> str:
    return " ".join(f"U+{ord(letter):04X}" for letter in text)
