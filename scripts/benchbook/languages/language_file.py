"""Read a `_language.yml`, and say what in it cannot be, whatever English says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from babel import Locale, UnknownLocaleError

from benchbook.content.page_limits import MOST_BYTES, endless
from benchbook.content.positions import yaml_line
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import FALLBACK
from benchbook.content.records import is_published
from benchbook.content.safe_html import holds_markup
from benchbook.content.units import UNITS, WORDED
from benchbook.content.yaml_text import InvalidYamlError, parse_yaml
from benchbook.languages.cldr import CLDR_UNITS, IN_CLDR, LARGER_BYTES, SECOND, cldr_unit_words
from benchbook.languages.style import style_problems
from benchbook.languages.telling import MAGNITUDES, TIMES, first_typed, folded, typed_pattern

# The blocks of a file that are the interface's; beside them stand those that translations are checked by.
INTERFACE = ("strings", "labels", "units", "dates", "style", "unit_words")
# Twice the longest of ours. A label stands in each row and each cell that it names; that of a machine whose
# figures are quoted, and all other texts, do not.
_LONGEST_TEXT = 400
_LONGEST_LABEL = 150
# A text, or its plural forms.
Text = str | dict[str, str]
# A placeholder: a name, and nothing that could reach into what it stands for.
PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
# A language says a ratio as one, or as percent.
RATIO_TEXTS = frozenset({"times", "times_less", "times_beyond", "times_below"})
OF_RATIOS = {"{ratio}", "{percent}"}
_IN_BRACES = re.compile(r"\{[^{}]*\}")
# Ratios that people say as units, beside those that records have.
_SAID_RATIOS = (TIMES, "tenths", "percentage points")


def read_language_file(path: Path, shown: str) -> dict[str, Any]:
    """The table that a `_language.yml` holds, which messages name `shown`.

    Raises:
        BenchbookError: It is missing, too long, or holds none.
    """
    if path.is_file() and (size := path.stat().st_size) > MOST_BYTES:
        what = f"has {size} bytes, and {MOST_BYTES} are the most"
        raise BenchbookError(Problem(shown, 1, what, "say it in fewer words"))
    try:
        table = parse_yaml(path.read_text("utf-8"))
    except FileNotFoundError as error:
        fix = "copy it from docs/en/ and translate it"
        raise BenchbookError(Problem(shown, 1, "there is no such file", fix)) from error
    except InvalidYamlError as error:
        raise BenchbookError(Problem(shown, error.line, error.what, error.fix)) from error
    if not isinstance(table, dict):
        raise BenchbookError(Problem(shown, 1, "is not a mapping", "begin it with `strings:`"))
    return table


def _values(value: Any, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text in a value that YAML held, by the keys that lead to it."""
    if isinstance(value, str):
        yield keys, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, (*keys, str(key)))
    elif isinstance(value, list):
        for item in value:
            yield from _values(item, keys)


def language_file_problems(table: dict[str, Any], code: str, path: str, text: str) -> Iterator[Problem]:
    """What in the file of a language cannot be.

    Parameters:
        table: What it holds.
        code: The language.
        path: The file, for messages.
        text: What stands in it.
    """
    for keys, value in _values(table):
        if (refused := endless(value)) is not None:
            _, what, fix = refused
            yield Problem(path, yaml_line(text, keys), f"`{'.'.join(keys)}`: {what}", fix)
            return
    try:
        categories = {*Locale.parse(code.replace("-", "_")).plural_form.tags, "one", "other"}
    except (UnknownLocaleError, ValueError):
        yield Problem(
            path, 1, f"`{code}` is not a language that CLDR knows", "name the folder by its language code"
        )
        return
    style = table.get("style") or ""
    # It stands in the head of every page, of every language.
    wrong = (
        list(style_problems(style, code))
        if isinstance(style, str) and "<" not in style
        else ["it is not CSS"]
    )
    for what in wrong:
        fix = "write rules for the letters of the language, as those of docs/ja/_language.yml are"
        yield Problem(path, yaml_line(text, ("style",)), f"`style:`: {what}", fix)
    words = table.get("unit_words") or []
    for said in words.values() if isinstance(words, dict) else (words,):
        if not (isinstance(said, list) and all(isinstance(word, str) and word for word in said)):
            fix = "list words: `unit_words: {s: [seconds], h: [hours]}`"
            yield Problem(path, yaml_line(text, ("unit_words",)), "`unit_words:` is not lists of words", fix)
            return
    for symbol in words if isinstance(words, dict) else ():
        if symbol not in UNITS and symbol not in _SAID_RATIOS:
            fix = f"name a unit as records do, or one of {', '.join(_SAID_RATIOS)}"
            yield Problem(path, yaml_line(text, ("unit_words", str(symbol))), f"`{symbol}` is no unit", fix)
    for keys, what in _mistaken_words(words, code) if isinstance(words, dict) else ():
        fix = "put it below the unit that it is, and below that alone"
        yield Problem(path, yaml_line(text, ("unit_words", *keys)), what, fix)
    patterns = table.get("dates") or {}
    if not (isinstance(patterns, dict) and all(map(_is_date, patterns, patterns.values()))):
        fix = "write `year: y`, `month: y M` and `day: y M d`, with the words of the language between them"
        yield Problem(path, yaml_line(text, ("dates",)), "`dates:` is not patterns of dates", fix)
        patterns = {}
    for known, pattern in patterns.items():
        if (wanted := _unlike_cldr(known, pattern, code)) is not None:
            what = f"`{known}: {pattern}` does not say year, month and day as CLDR does: `{wanted}`"
            fix = "write them in that order, with those words beside them or none"
            yield Problem(path, yaml_line(text, ("dates", known)), what, fix)
    for title in ("strings", "labels", "units"):
        if not isinstance(table.get(title) or {}, dict):
            yield Problem(path, 1, f"`{title}:` is not a mapping", "write `key: text` below it")
            return
        for key, value in (table.get(title) or {}).items():
            if found := _entry_problem(key, value, categories if title == "strings" else set()):
                yield Problem(path, yaml_line(text, (title, str(key))), *found)
            elif title == "units" and (found := _unit_problem(key, value, code)):
                yield Problem(path, yaml_line(text, (title, key)), *found)

    for key, what in _mistaken_labels(table.get("labels") or {}):
        yield Problem(path, yaml_line(text, ("labels", key)), what, "say which value it is, and no other one")


def values_of_axes(labels: Iterable[object]) -> dict[str, list[tuple[str, str]]]:
    """The labels of values, by axis: each with the value and its key."""
    axes: dict[str, list[tuple[str, str]]] = {}
    for key in labels:
        axis, is_value, value = str(key).rpartition("=")
        if is_value:
            axes.setdefault(axis, []).append((value, str(key)))
    return axes


def _mistaken_labels(labels: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Labels of an axis' values that are another value of it, or hold another number than theirs."""
    for values in values_of_axes(labels).values():
        others = {value.casefold(): value for value, _ in values}
        for value, key in values:
            said = unicodedata.normalize("NFKC", str(labels.get(key))).casefold().strip()
            if others.get(said, value) != value:
                yield key, f"the label of `{key}` is `{others[said]}`, which is another value"
            elif (
                re.fullmatch(r"\d+(?:\.\d+)?", value) and (held := folded_numbers(said)) and value not in held
            ):
                yield key, f"the label of `{key}` holds the number {held[0]}"


def _mistaken_words(words: Mapping[Any, list[str]], code: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Words that stand below one unit and are another: by CLDR, as a symbol, or by the file itself."""
    meant: dict[str, set[str]] = {symbol: {symbol} for symbol in UNITS}
    for name, symbol in CLDR_UNITS.items():
        for word in cldr_unit_words(code, (name,)) | cldr_unit_words(FALLBACK, (name,)):
            meant.setdefault(word, set()).add(symbol)
    for symbol, said in words.items():
        for word in said:
            # A single letter of CLDR's is too often another word; one that is a symbol is that.
            known = meant.setdefault(word, {symbol}) if len(word) > 1 or word in UNITS else {symbol}
            if symbol not in known:
                yield (str(symbol),), f"`{word}` stands below `{symbol}`, and is `{min(known)}`"


def _unit_problem(symbol: str, name: str, code: str) -> tuple[str, str] | None:
    """What is wrong with a unit's name in any language, English among them, and the fix."""
    if symbol not in WORDED:
        return f"`{symbol}` is written the same in every language", "remove it from `units:`"
    said = unicodedata.normalize("NFKC", name).strip()
    if said in UNITS and said != symbol:
        return f"`{symbol}` is called `{said}`, which is another unit", "name it by words of the language"
    if code == FALLBACK and said not in cldr_unit_words(code, (IN_CLDR.get(symbol, SECOND),)):
        # In English it is its symbol, which may be shortened, or has words for the stroke.
        plain = said.replace("per ", "/").replace(" ", "")
        plain = re.sub(r"second$", "s", plain)
        wanted = symbol.removeprefix("1")
        if not wanted.startswith(plain) or plain.rstrip("/").count("/") != wanted.count("/"):
            return f"`{symbol}` is called `{said}`, which is something else", f"write it as `{symbol}`"
    elif prefix := _multiple(said, code):
        return f"`{symbol}` is called `{said}`, and `{prefix}` multiplies it", f"remove `{prefix}`"
    return None


def _multiple(name: str, code: str) -> str | None:
    """What a unit's name begins with that makes a multiple of it: `kilo` as in a kilobyte, a thousand."""
    bytes_ = {word.casefold() for word in cldr_unit_words(code, ("digital-byte",), ("long",))}
    larger = {word.casefold() for word in cldr_unit_words(code, LARGER_BYTES, ("long",))}
    prefixes = {word.removesuffix(end).strip() for word in larger for end in bytes_ if word.endswith(end)}
    prefixes |= {*MAGNITUDES.get(code.partition("-")[0], ())}
    said = name.casefold()
    letter = re.match(r"[kKMGTµμ](?= )", name)
    return (
        letter[0] if letter else next((one for one in sorted(prefixes - {""}) if said.startswith(one)), None)
    )


# The numbers that a date has, by what is known of it.
_DATES = {"year": "y", "month": "yM", "day": "yMd"}


def _is_date(known: object, pattern: object) -> bool:
    """Whether a pattern has each number of such a date once, and no other letters of Latin or digits."""
    if not isinstance(pattern, str) or holds_markup(pattern):
        return False
    if "%" in pattern or pattern.count("'") % 2:
        return False  # it would be read as a share, or as words without end
    letters = [letter for letter in folded(pattern)[0] if letter.isascii() and letter.isalnum()]
    return sorted(letters) == sorted(_DATES.get(str(known), "?"))


# What CLDR calls the pattern of a date that is known so far.
_SKELETONS = {"year": "y", "month": "yMMM", "day": "yMMMd"}


def _unlike_cldr(known: str, pattern: str, code: str) -> str | None:
    """The pattern of CLDR, where a language's own has its letters in another order or beside other words."""
    skeletons = Locale.parse(code.replace("-", "_")).datetime_skeletons
    if _SKELETONS[known] not in skeletons:
        return None
    cldr = str(skeletons[_SKELETONS[known]].pattern)
    (order, words), (wanted, theirs) = (_parts_of_date(one) for one in (pattern, cldr))
    # Between letters and words stand spaces and marks such as a full stop, and no sign.
    signs = any(unicodedata.category(letter)[0] in "SN" for letter in pattern)
    return cldr if signs or order != wanted or not (words == theirs or not any(words)) else None


def _parts_of_date(pattern: str) -> tuple[str, list[str]]:
    """The letters of a pattern that stand for numbers, in order, and the words around them."""
    # A language's own has no words of Latin letters, which would be read as those of a pattern.
    plain = re.sub(r"'([^']*)'", lambda quoted: "" if quoted[1].isascii() else quoted[1], pattern)
    plain = plain.replace("L", "M")
    parts = re.split(r"y+|M+|d+", plain)
    words = ["".join(letter for letter in part if letter.isalpha()) for part in parts]
    return "".join(found[0] for found in re.findall(r"y+|M+|d+", plain)), words


def folded_numbers(text: str) -> list[str]:
    """The numbers of a text, in digits of any script; the digits are returned as those of ASCII."""
    return re.findall(r"\d+(?:[.,]\d+)*", folded(text)[0])


def typed_labels(table: Mapping[str, Any], path: str, text: str) -> Iterator[Problem]:
    """English labels that hold a measured number, unless it is part of the name that is labelled."""
    typed = typed_pattern(cldr_unit_words(FALLBACK))
    for key, label in (table.get("labels") or {}).items():
        found = first_typed(label, typed)
        if found and not set(folded_numbers(found)) <= set(folded_numbers(key)):
            what = f"the label `{key}` holds the number `{found}`"
            yield Problem(path, yaml_line(text, ("labels", key)), what, "name what is measured, and no value")


def _entry_problem(key: object, value: object, categories: set[str]) -> tuple[str, str] | None:
    """What is wrong with an entry, and the fix; `categories` are the plural forms it may have, if any."""
    if not isinstance(key, str):
        return f"the key `{key}` is not text (YAML reads yes, no and numbers)", "put it in quotes"
    for text in value.values() if isinstance(value, dict) else [value]:
        if isinstance(text, str) and ('"' in text or holds_markup(text)):
            return (
                f"`{key}` holds markup or a straight quotation mark",
                "use the language's marks, and no tags",
            )
        most = _LONGEST_TEXT if categories or is_published(key) else _LONGEST_LABEL
        if isinstance(text, str) and len(text) > most:
            return f"`{key}` has {len(text)} characters, and {most} are the most", "say it in fewer"
        if isinstance(text, str) and _IN_BRACES.search(PLACEHOLDER.sub("", text)):
            return (
                f"`{key}` holds a brace that is not of a placeholder",
                "write placeholders as English has them: {name}",
            )
    if isinstance(value, str):
        # No other text holds English to what stands beside these numbers.
        signs = {"±"} if key == "spread" else set() if key in RATIO_TEXTS else None
        if categories and signs is not None and {*value} & {*"+-\u2212±÷^"} != signs:
            held = "`±` and no other sign" if signs else "no sign but `×`, `<` and `>`"
            return f"`{key}` is `{value}`", f"write it with {held}"
        return None
    if not (categories and isinstance(value, dict)):
        return f"`{key}` is not text", "put it in quotes"
    forms = set(value)
    if "other" not in forms or not forms <= categories:
        fix = f"give it `other` and any of: {', '.join(sorted(categories))}"
        return f"`{key}` has the plural forms {', '.join(sorted(map(str, forms)))}", fix
    if not all(isinstance(form, str) for form in value.values()):
        return f"a plural form of `{key}` is not text", "put it in quotes"
    return None
