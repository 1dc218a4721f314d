"""Find where the interface texts of a language say something else than the English ones."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from babel import Locale

from benchbook.content.positions import yaml_line
from benchbook.content.problems import Problem
from benchbook.content.project import FALLBACK
from benchbook.content.site_files import LANGUAGE_FILE
from benchbook.content.units import UNITS
from benchbook.languages.cldr import IN_CLDR, LARGER_BYTES, OTHER_TIMES, SECOND, cldr_unit_words, script_of
from benchbook.languages.language_file import (
    OF_RATIOS,
    PLACEHOLDER,
    RATIO_TEXTS,
    Text,
    folded_numbers,
    values_of_axes,
)
from benchbook.languages.telling import IDEOGRAPHS, NAME, added_words, folded, visible


def unknown_placeholders(
    table: Mapping[str, Any], english: Mapping[str, Mapping[str, Text]], path: str, text: str
) -> Iterator[Problem]:
    """Placeholders that the English text of the same name does not have, and nothing would fill.

    Parameters:
        table: What the file of a language holds.
        english: The texts of the English file, by their titles there: `strings`, `labels` and `units`.
        path: The language's file, for messages.
        text: What stands in it.
    """
    for title, theirs in english.items():
        for key, value in (table.get(title) or {}).items():
            known = _placeholders(theirs.get(key, "")) | (OF_RATIOS if key in RATIO_TEXTS else set())
            if key in theirs and (extra := _placeholders(value) - known):
                what = f"`{key}` has the placeholder `{min(extra)}`, which its English text does not have"
                fix = f"use those of docs/{FALLBACK}/{LANGUAGE_FILE}: {', '.join(sorted(known)) or 'none'}"
                yield Problem(path, yaml_line(text, (title, str(key))), what, fix)


# Texts that mean nothing unless they differ: verdicts, states, units beside each other.
_TOLD_APART = (
    ("yes", "no"),
    ("fits", "fits_not"),
    ("measured", "predicted", "published", "not_measured"),
    ("verdict_holds", "verdict_refuted", "verdict_too_close", "verdict_too_few", "verdict_any"),
    ("claim_holds", "claim_refuted", "claim_too_close", "claim_too_few"),
    ("claim_holds", "claim_refuted", "claim_not_measured", "claim_not_applicable"),
    ("claim_limit_less", "claim_limit_greater", "claim_limit_equal"),
    ("outcome_out_of_memory", "outcome_timed_out", "outcome_crashed"),
    ("times_beyond", "times_below"),
)
# Plural forms that may say their number in words.
_SPELLED_FORMS = {"zero": 0, "one": 1, "two": 2}
# How much longer than the English text one may be: a factor, and letters.
_LONGER = (3, 40)


def unfaithful_texts(
    table: Mapping[str, Any], code: str, english: Mapping[str, Mapping[str, Text]], path: str, text: str
) -> Iterator[Problem]:
    """Where a language says something else than English does: a text that hides or makes up what is shown.

    `code` is that of the language; the other parameters are those of `unknown_placeholders`.
    """
    latin = script_of(Locale.parse(code.replace("-", "_"))) == "Latn"
    source = f"docs/{FALLBACK}/{LANGUAGE_FILE}"
    units = " ".join(map(str, english["units"].values()))
    for key in table.get("labels") or {}:
        # English says yes or no of a flag, which other languages may say in words of the axis.
        if key not in english["labels"] and not key.endswith(("=true", "=false")):
            shown = "that value" if "=" in key else "the name"
            what = f"`{key}` is a label that English lacks, which shows {shown} as it is"
            yield Problem(path, yaml_line(text, ("labels", key)), what, f"remove it, or add it to {source}")
    for title, texts in english.items():
        own = table.get(title) or {}
        for key in (key for key in own if key in texts):
            theirs = " ".join(_texts(texts[key]).values())
            known = f"{theirs} {units}"
            for form, said in _texts(own[key]).items():
                strict = title == "units" or key in RATIO_TEXTS
                for what in (
                    *_differences(key, form, said, texts[key], strict),
                    *_lost(said, theirs),
                    *(_other_signs(said, theirs) if title != "labels" else ()),
                    *(_other_unit(key, said, theirs, code) if title == "units" and said != theirs else ()),
                ):
                    fix = f"say what {source} does: {theirs}"
                    yield Problem(path, yaml_line(text, (title, key)), f"`{key}` {what}", fix)
                if added := added_words(said, known, latin):
                    what = f"`{key}` holds `{added}`, which its English text does not"
                    yield Problem(path, yaml_line(text, (title, key)), what, "remove it")
        for names in _told_apart(title, texts):
            seen: dict[str, str] = {}
            for key in (name for name in names if name in own):
                said = _read_as(str(_texts(own[key]).get("other")))
                other = seen.setdefault(said, key)
                if texts[key] != texts[other]:
                    what = f"`{key}` says the same as `{other}`"
                    yield Problem(
                        path, yaml_line(text, (title, key)), what, f"tell them apart, as {source} does"
                    )


def _told_apart(title: str, english: Mapping[str, Any]) -> Iterator[list[str]]:
    """The keys of texts that must differ where the English ones do."""
    if title == "units":
        yield list(english)
    elif title == "strings":
        yield from ([key for key in keys if key in english] for keys in _TOLD_APART)
    else:
        yield from ([key for _, key in values] for values in values_of_axes(english).values())
        scopes: dict[str, list[str]] = {}
        for key in (key for key in english if "=" not in key):
            scopes.setdefault(key.rpartition("#")[0], []).append(key)
        yield from scopes.values()


def _read_as(text: str) -> str:
    """A text as a reader tells it from others: by what is seen, without case and width."""
    return " ".join(unicodedata.normalize("NFKC", visible(text)).casefold().split())


def _differences(key: str, form: str, said: str, english: Text, strict: bool) -> Iterator[str]:
    """What is wrong with one form of a text beside its English one; `strict` where it stands by a number."""
    theirs = " ".join(_texts(english).values())
    words, their_words = PLACEHOLDER.sub(" ", said), PLACEHOLDER.sub(" ", theirs)
    wanted = max((Counter(PLACEHOLDER.findall(one)) for one in _texts(english).values()), key=Counter.total)
    there = Counter(PLACEHOLDER.findall(said))
    if key in RATIO_TEXTS:
        wanted, there = (Counter({"{ratio}": sum(c[name] for name in OF_RATIOS)}) for c in (wanted, there))
    spelled = _SPELLED_FORMS.get(form)
    if spelled is not None and "{n}" not in there:
        del wanted["{n}"]
    if there != wanted:
        lost = min((wanted - there) or (there - wanted))
        yield f"has {lost} {there[lost]} times, in English {wanted[lost]} times"
    elif key not in RATIO_TEXTS and (exchanged := _exchanged(said, theirs)):
        yield f"has {exchanged[1]} before {exchanged[0]}"
    if (theirs.strip() and not said.strip()) or (_has_words(their_words) and not _has_words(words)):
        yield "says nothing"
    # Ratios stand beside a word for times.
    if _has_words(words) and not _has_words(their_words) and key not in RATIO_TEXTS:
        yield "holds words"
    numbers = {*folded_numbers(theirs), *(_implied(their_words) if not strict else ())}
    if made_up := [one for one in folded_numbers(words) if one not in numbers | {str(spelled)}]:
        yield f"holds the number {made_up[0]}"
    elif strict and not IDEOGRAPHS.keys().isdisjoint(words):
        yield "holds a number"
    elif _BESIDE.search(folded(said)[0]) and not _BESIDE.search(folded(theirs)[0]):
        yield "has a digit beside its number"
    factor, letters = _LONGER
    if len(said) > factor * max(map(len, _texts(english).values())) + letters:
        yield "is far longer"
    if any(unicodedata.category(letter) == "Cc" for letter in said):
        yield "holds a line break or another control character"


def _exchanged(said: str, english: str) -> tuple[str, str] | None:
    """Two placeholders of an English text in another order: nothing else tells which is which."""
    there = list(dict.fromkeys(PLACEHOLDER.findall(said)))
    wanted = [name for name in dict.fromkeys(PLACEHOLDER.findall(english)) if name in there]
    return next(((ours, theirs) for ours, theirs in zip(wanted, there, strict=True) if ours != theirs), None)


# Signs that make another number of the one beside them; a hyphen does so right before it alone.
_SIGNS = "+\u2212±∓÷×^<>=≈~≤≥√"
_DASH = re.compile(r"[-\u2010-\u2015][\s\u200e\u200f\u2066-\u2069]*(?=\{|$)")


def _other_signs(said: str, english: str) -> Iterator[str]:
    """The signs of a text that its English one does not have; a spread keeps its own."""
    ours, theirs = folded(said)[0], folded(english)[0]
    for sign in sorted({*ours} - {*theirs}):
        if sign in _SIGNS:
            yield f"holds the sign `{sign}`"
    if _DASH.search(ours) and not _DASH.search(theirs):
        yield "has a dash before its number"
    if "±" in theirs and "±" not in ours:
        yield "lacks the sign `±`"


def _lost(said: str, english: str) -> Iterator[str]:
    """What of the names and the numbers of an English text another language does not say."""
    ours = {*NAME.findall(said), *folded_numbers(said)}
    for name in NAME.findall(english):
        if not ours & {name, name.removesuffix("s")}:
            yield f"lacks the name {name}"
    for number in _COUNT.findall(english):
        # Languages say small numbers in words, and by the form of a noun.
        if number not in ours | {"0", "1", "2"}:
            yield f"lacks the number {number}"


# A number that is neither part of a name nor an ordinal.
_COUNT = re.compile(r"(?<![A-Za-z\d.,-])\d+(?:[.,]\d+)*(?![A-Za-z\d])")
_LARGER_SYMBOLS = {symbol for symbol, unit in UNITS.items() if unit.dimension == "memory" and symbol != "B"}


def _other_unit(key: str, said: str, english: str, code: str) -> Iterator[str]:
    """What is wrong with the name of a unit, by its English one, and by the words that CLDR has for units."""
    known = {word.removesuffix("s") for word in re.findall(r"[a-z]+", f"{key} {english}".casefold())}
    if script_of(Locale.parse(code.replace("-", "_"))) != "Latn":
        for word in re.findall(r"[A-Za-z]+", said):
            if word.casefold().removesuffix("s") not in known:
                yield f"holds `{word}`, which its English name does not"
    words = cldr_unit_words(code, (IN_CLDR.get(key, SECOND),))
    # What CLDR has of a language that it knows little of: `h`, `sec`.
    if all(word.isascii() and len(word) <= len("sec") for word in words):
        return
    if key in IN_CLDR and said not in words:
        yield f"is not what CLDR calls this unit, {_listed(words)}"
    elif key.endswith("/s") and not _is_per_second(said, words, code):
        yield f"is not per second, which CLDR calls {_listed(words)}"
    elif key.startswith("B/"):
        larger = cldr_unit_words(code, LARGER_BYTES, ("long",)) | _LARGER_SYMBOLS
        if named := sorted(word for word in larger if word in said):
            yield f"names the unit {named[0]}"


def _is_per_second(said: str, words: Collection[str], code: str) -> bool:
    """Whether the name of a rate says that it is per second: behind a stroke, or in words."""
    _, stroke, per = said.rpartition("/")
    if stroke:
        return per.strip().rstrip(".") in {"s", *(word.rstrip(".") for word in words)}
    # A letter alone is part of many words; one that stands for a word is not.
    told = [word for word in words if len(word) > 1 or not unicodedata.name(word).startswith("LATIN")]
    others = cldr_unit_words(code, OTHER_TIMES, ("long",))
    return any(word in said for word in told) and not any(word in said for word in others)


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words))


# A digit that would be read as one of the number that fills a placeholder.
_BESIDE = re.compile(r"\d[.,]?\s?\{|\}[.,]?\d")
# Words that another language may put a digit for.
_NUMBER_WORDS = {
    "0": "zero no none",
    "1": "one a an each every per single within first quarter",
    "2": "two twice half both second pair",
    "3": "three third thrice",
    "4": "four quarter",
    "5": "five",
    "6": "six",
    "7": "seven",
    "8": "eight",
    "9": "nine",
    "10": "ten",
}


def _implied(english: str) -> set[str]:
    said = set(re.findall(r"[a-z]+", english.lower()))
    return {number for number, words in _NUMBER_WORDS.items() if said & set(words.split())}


def _has_words(text: str) -> bool:
    return any(letter.isalpha() for letter in text)


def _texts(value: Any) -> dict[str, str]:
    """The forms of a text; one without is its only one."""
    return dict(value) if isinstance(value, Mapping) else {"other": value}


def _placeholders(value: object) -> set[str]:
    texts = value.values() if isinstance(value, Mapping) else [value]
    return {found for text in texts for found in PLACEHOLDER.findall(str(text))}
