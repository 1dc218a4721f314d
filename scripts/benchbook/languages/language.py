"""What a language's `_language.yml` holds: its interface strings, its labels, its names of units."""

from __future__ import annotations

import datetime
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any, Literal

from babel import Locale, UnknownLocaleError, dates
from babel.core import get_global, parse_locale
from babel.units import format_unit

from benchbook.content.page_limits import MOST_BYTES, endless
from benchbook.content.positions import yaml_line
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.safe_html import holds_markup
from benchbook.content.units import UNITS, WORDED, Unit
from benchbook.content.yaml_text import InvalidYamlError, parse_yaml
from benchbook.languages.formatting import (
    LARGEST_RATIO,
    RIGHT_TO_LEFT,
    SMALLEST_RATIO,
    FormattedQuantity,
    format_number,
    format_percent,
    format_quantity,
    format_ratio,
    format_ratio_percent,
    format_signed_percent,
)
from benchbook.languages.markup import isolated_words
from benchbook.languages.style import style_problems
from benchbook.languages.telling import (
    IDEOGRAPHS,
    MAGNITUDES,
    NAME,
    TIMES,
    added_words,
    first_typed,
    folded,
    typed_pattern,
)

FILE = "_language.yml"
FALLBACK = "en"
# What each file held when it was last read: a build asks for every language several times.
_kept: dict[Path, tuple[int, dict[str, Any]]] = {}
_HOLE = re.compile(r"\{([a-z_]+)\}")

Text = str | dict[str, str]


@dataclass(frozen=True)
class Language:
    """A language of the pages.

    Parameters:
        code: Its folder below `docs/`.
        strings: Interface texts by key; one that counts has a form per plural category.
        labels: What scripts call things, by name, `axis=value` or "guide/script.py#name".
        units: Units whose symbol holds words, as the language writes them.
        own_unit_words: How people write units behind a number in running text, and which unit each is ("" if
            its file does not say); none: as CLDR does.
        fallback: The language whose labels stand in for missing ones.
        style: CSS that its writing system needs.
        dates: How its pages write a date that is known to the `year`, the `month` or the `day`, as patterns
            of CLDR; what is missing is written as CLDR does.
    """

    code: str
    strings: Mapping[str, Text] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    own_unit_words: Mapping[str, str] = field(default_factory=dict)
    fallback: Language | None = None
    style: str = ""
    dates: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def locale(self) -> Locale:
        """What Babel knows of the language."""
        return Locale.parse(self.code.replace("-", "_"))

    @cached_property
    def unit_words(self) -> Mapping[str, str]:
        """How people write units behind a number in running text, in this language and in its fallback.

        By word, the symbol of the unit, "times" or what its file calls it; "" where nothing says which it is.
        Those of CLDR and those that records are shown in are among them, whatever its file says.
        """
        own = dict(cldr_units(self.code))
        if self.own_unit_words:
            # A single letter of CLDR's is too often another word.
            known = {word: symbol for word, symbol in own.items() if len(word) > 1} | self._shown_units
            told = {word: symbol or known.get(word, "") for word, symbol in self.own_unit_words.items()}
            own = known | told
        return {**(self.fallback.unit_words if self.fallback else {}), **own}

    @property
    def _shown_units(self) -> dict[str, str]:
        """The words that stand behind numbers from records: units, what rates are per, and times."""
        per = [name.rpartition("/")[2] for symbol, name in self.units.items() if symbol.endswith("/s")]
        shown = dict.fromkeys(per, "s")
        shown |= {
            name: symbol for symbol, name in self.units.items() if symbol in UNITS and UNITS[symbol].typed
        }
        times = self.strings.get("times", "")
        shown[_BRACES.sub("", times).strip() if isinstance(times, str) else ""] = TIMES
        return {word: symbol for word, symbol in shown.items() if word}

    @cached_property
    def with_territory(self) -> str:
        """The language with the country that most of its speakers live in: "ja_JP", as Open Graph has it."""
        likely = get_global("likely_subtags").get(str(self.locale))
        # Not `Locale.parse`, which knows no "no_Latn_NO".
        territory = self.locale.territory or (parse_locale(likely)[1] if likely else None)
        return "_".join(filter(None, (self.locale.language, territory)))

    @cached_property
    def direction(self) -> str:
        """Which way its text runs: `ltr` or `rtl`."""
        return str(self.locale.text_direction)

    def text(self, key: str, **values: object) -> str:
        """The interface text `key` with its holes filled; `n` chooses the plural form.

        Raises:
            BenchbookError: Neither this language nor its fallback has it.
        """
        found, owner = self.strings.get(key), self
        if found is None and self.fallback is not None:
            found, owner = self.fallback.strings.get(key), self.fallback
        if found is None:
            fix = "add it there"
            raise BenchbookError(Problem(f"docs/{self.code}/{FILE}", 1, f"`strings:` has no `{key}`", fix))
        if not values and isinstance(found, str):
            return found
        if isinstance(found, dict):
            number = values.get("n", 0)
            form = owner.locale.plural_form(number if isinstance(number, int) else 0)
            # A single run is no median, also where CLDR has one form for all numbers.
            found = found["one"] if number == 1 and "one" in found else found.get(form, found["other"])
        shown = {
            name: format_number(value, self.locale) if isinstance(value, int) else self.isolated(str(value))
            for name, value in values.items()
        }
        return _HOLE.sub(lambda match: shown.get(match[1], match[0]), found)

    def label(self, name: str, scope: str = "") -> str | None:
        """What the language calls a metric, axis, meter or `axis=value`; None if it has no word for it.

        Parameters:
            name: The name in the script.
            scope: The script, "guide/script.py", for a label of its own.
        """
        for key in (f"{scope}#{name}", name):
            if key in self.labels:
                return self.labels[key]
        return self.fallback.label(name, scope) if self.fallback else None

    def isolated(self, text: str) -> str:
        """`text` so that neither it nor its neighbours change order in right-to-left text."""
        return f"\u2068{text}\u2069" if self.direction == "rtl" else text

    def listed(self, parts: Iterable[str]) -> str:
        """`parts` as the language joins them, in its direction: "NVIDIA H200, 141 GB"."""
        several = list(parts)
        if len(several) < 2:
            return "".join(several)
        mark = RIGHT_TO_LEFT if self.direction == "rtl" else ""
        return mark + self.text("comma").join(map(self.isolated, several))

    def words(self, text: str) -> str:
        """The HTML of `text`, a text of the language that may hold Latin."""
        return isolated_words(text, right_to_left=self.direction == "rtl")

    def number(self, value: float) -> str:
        """`value` with at most three significant digits."""
        return format_number(value, self.locale)

    def percent(self, share: float) -> str:
        """A share (0.38) as a percentage."""
        return format_percent(share, self.locale)

    def signed_percent(self, share: float) -> str:
        """A share that goes either way as a percentage, with its sign: "+1.2%", "−0.4%", "0.0%"."""
        return format_signed_percent(share, self.locale)

    def ratio(self, value: float) -> str:
        """How many times as much: "1.04×", "0.500×", ">1,000×"; in Chinese "50.0%" of the other."""
        key, end = "times_less" if _is_less(value) else "times", 0.0
        if abs(value) > LARGEST_RATIO:
            key, end = "times_beyond", math.copysign(LARGEST_RATIO, value)
        elif 0 < abs(value) < SMALLEST_RATIO:
            key, end = "times_below", math.copysign(SMALLEST_RATIO, value)
        if end:
            ratio, percent = self.number(end), self.percent(end)
        else:
            ratio, percent = format_ratio(value, self.locale), format_ratio_percent(value, self.locale)
        # Not `format`, which would reach into what it is given wherever a translation says so.
        return self.text(key).replace("{ratio}", ratio).replace("{percent}", percent)

    def ratio_range(self, lower: float, upper: float, beside: float) -> str:
        """The interval of the ratio `beside`, written as that is but for its word: "0.930–1.09"."""
        percent = _is_less(beside) and "{percent}" in self.text("times_less")
        write = format_ratio_percent if percent else format_ratio
        return f"{write(lower, self.locale)}–{write(upper, self.locale)}"

    def quantity(
        self, value: float, unit: Unit, shown: Unit | None = None, full: bool = False
    ) -> FormattedQuantity:
        """`value` in `unit`, shown in the unit `shown` or a sensible one; `full` writes all its digits."""
        return format_quantity(value, unit, self.locale, shown, self.units, full)

    def flag(self, value: bool) -> str:
        """The word for yes or no."""
        return self.text("yes" if value else "no")

    def month(self, moment: str) -> str:
        """Month and year of an ISO 8601 date or time."""
        return self._dated("month", moment) or dates.format_skeleton(
            "yMMM", _date(moment), locale=self.locale
        )

    def date(self, date: str) -> str:
        """A date that is known to the year, the month or the day: "2022", "2022-02", "2022-02-09"."""
        if len(date) > len("2022-02"):
            return self.day(date)
        whole = (date + "-01-01")[: len("2022-02-09")]
        return self.month(whole) if len(date) > len("2022") else self.year(whole)

    def year(self, moment: str) -> str:
        """The year of an ISO 8601 date or time."""
        return self._dated("year", moment) or dates.format_skeleton("y", _date(moment), locale=self.locale)

    def day(self, moment: str) -> str:
        """The full date of an ISO 8601 date or time."""
        return self._dated("day", moment) or dates.format_date(_date(moment), "long", locale=self.locale)

    def _dated(self, known: str, moment: str) -> str:
        """A date by the language's own pattern; empty where it has none."""
        pattern = self.dates.get(known)
        return dates.format_date(_date(moment), pattern, locale=self.locale) if pattern else ""


def load_language(docs: Path, code: str) -> Language:
    """The language of the folder `code` of `docs`.

    Raises:
        BenchbookError: Its `_language.yml` is missing or malformed; carries every problem found.
    """
    fallback = None
    if code != FALLBACK and (docs / FALLBACK / FILE).is_file():
        fallback = _load(docs, FALLBACK, None)
    return _load(docs, code, fallback)


def _load(docs: Path, code: str, fallback: Language | None) -> Language:
    path = docs / code / FILE
    shown = f"{docs.name}/{code}/{FILE}"
    stamp = path.stat().st_mtime_ns if path.is_file() else 0
    kept = _kept.get(path)
    if kept is None or kept[0] != stamp:
        table = _read(path, shown)
        text = path.read_text("utf-8")
        problems = list(_problems(table, code, shown, text))
        if fallback is not None and not problems:
            problems += _unknown_placeholders(table, fallback, shown, text)
            problems += _unfaithful(table, code, fallback, shown, text)
        elif code == FALLBACK and not problems:
            problems += _typed_labels(table, shown, text)
        if problems:
            raise BenchbookError(*problems)
        kept = _kept[path] = (stamp, table)
    table = kept[1]
    strings, labels, units = (table.get(title) or {} for title in ("strings", "labels", "units"))
    said = table.get("unit_words") or {}
    words = (
        {word: symbol for symbol, of_it in said.items() for word in of_it}
        if isinstance(said, dict)
        else dict.fromkeys(said, "")
    )
    style, own_dates = table.get("style") or "", table.get("dates") or {}
    return Language(code, strings, labels, units, words, fallback, style, own_dates)


# The units that CLDR has words for, and what they are.
_CLDR_UNITS = {
    "duration-microsecond": "us",
    "duration-millisecond": "ms",
    "duration-second": "s",
    "duration-minute": "min",
    "duration-hour": "h",
    "digital-byte": "B",
    "digital-kilobyte": "kB",
    "digital-megabyte": "MB",
    "digital-gigabyte": "GB",
    "digital-terabyte": "TB",
    "power-watt": "W",
    "concentr-percent": "percent",
}
# Ratios that people say as units, beside those that records have.
_SAID_RATIOS = (TIMES, "tenths", "percentage points")


@cache
def cldr_unit_words(
    code: str,
    units: tuple[str, ...] = tuple(_CLDR_UNITS),
    lengths: tuple[Literal["short", "long"], ...] = ("short", "long"),
) -> frozenset[str]:
    """How CLDR writes units behind a number: for a language whose file has no `unit_words:`."""
    locale = Locale.parse(code.replace("-", "_"))
    texts = (
        format_unit(number, unit, length, locale=locale)
        for unit, length, number in product(units, lengths, (0, 1, 2, 3, 11, 100))
    )
    words = (re.sub(r"\d", "", text).strip(" \u00a0\u202f") for text in texts)
    return frozenset(word.replace("\u00a0", " ") for word in words if word and "-" not in word)


@cache
def cldr_units(code: str) -> Mapping[str, str]:
    """How CLDR writes units behind a number, and which unit each is."""
    return {word: symbol for unit, symbol in _CLDR_UNITS.items() for word in cldr_unit_words(code, (unit,))}


def unit_words(docs: Path, code: str) -> Mapping[str, str]:
    """How people write units in a language and in English, and which unit each is.

    Those of CLDR where its file is not in order.
    """
    try:
        return load_language(docs, code).unit_words
    except BenchbookError:
        pass  # told with the languages
    try:
        return {**cldr_units(FALLBACK), **cldr_units(code)}
    except (UnknownLocaleError, ValueError):
        return cldr_units(FALLBACK)


def load_languages(project: Project) -> dict[str, Language]:
    """Every language there is, by code."""
    english = _load(project.docs, FALLBACK, None) if FALLBACK in project.languages else None
    others = {code: _load(project.docs, code, english) for code in project.languages if code != FALLBACK}
    return ({FALLBACK: english} if english else {}) | others


def missing_strings(project: Project) -> list[Problem]:
    """Interface texts, labels and units that English has and another language lacks."""
    languages = load_languages(project)
    source = languages.get(FALLBACK)
    problems = []
    for code, language in languages.items():
        if source is None or code == FALLBACK:
            continue
        tables: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any]]] = (
            ("strings", source.strings, language.strings),
            ("labels", source.labels, language.labels),
            ("units", source.units, language.units),
        )
        for title, wanted, there in tables:
            for key in sorted(set(wanted) - set(there)):
                what = f"`{title}:` has no `{key}`"
                problems.append(
                    Problem(f"docs/{code}/{FILE}", 1, what, "translate it from docs/en/_language.yml")
                )
    return problems


def _is_less(ratio: float) -> bool:
    """Whether a ratio is shown as less than 1: 0.9996 is shown as 1."""
    return abs(float(f"{ratio:.3g}")) < 1


def _date(moment: str) -> datetime.date:
    return datetime.date.fromisoformat(moment[:10])


def _read(path: Path, shown: str) -> dict[str, Any]:
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


def _problems(table: dict[str, Any], code: str, path: str, text: str) -> Iterable[Problem]:
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


def _values_of_axes(labels: Iterable[object]) -> dict[str, list[tuple[str, str]]]:
    """The labels of values, by axis: each with the value and its key."""
    axes: dict[str, list[tuple[str, str]]] = {}
    for key in labels:
        axis, is_value, value = str(key).rpartition("=")
        if is_value:
            axes.setdefault(axis, []).append((value, str(key)))
    return axes


def _mistaken_labels(labels: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Labels of an axis' values that are another value of it, or hold another number than theirs."""
    for values in _values_of_axes(labels).values():
        others = {value.casefold(): value for value, _ in values}
        for value, key in values:
            said = unicodedata.normalize("NFKC", str(labels.get(key))).casefold().strip()
            if others.get(said, value) != value:
                yield key, f"the label of `{key}` is `{others[said]}`, which is another value"
            elif re.fullmatch(r"\d+(?:\.\d+)?", value) and (held := _numbers(said)) and value not in held:
                yield key, f"the label of `{key}` holds the number {held[0]}"


def _mistaken_words(words: Mapping[Any, list[str]], code: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Words that stand below one unit and are another: by CLDR, as a symbol, or by the file itself."""
    meant: dict[str, set[str]] = {symbol: {symbol} for symbol in UNITS}
    for name, symbol in _CLDR_UNITS.items():
        for word in cldr_unit_words(code, (name,)) | cldr_unit_words(FALLBACK, (name,)):
            meant.setdefault(word, set()).add(symbol)
    for symbol, said in words.items():
        for word in said:
            # A single letter of CLDR's is too often another word.
            known = meant.setdefault(word, {symbol}) if len(word) > 1 else {symbol}
            if symbol not in known:
                yield (str(symbol),), f"`{word}` stands below `{symbol}`, and is `{min(known)}`"


def _unit_problem(symbol: str, name: str, code: str) -> tuple[str, str] | None:
    """What is wrong with a unit's name in any language, English among them, and the fix."""
    if symbol not in WORDED:
        return f"`{symbol}` is written the same in every language", "remove it from `units:`"
    said = unicodedata.normalize("NFKC", name).strip()
    if said in UNITS and said != symbol:
        return f"`{symbol}` is called `{said}`, which is another unit", "name it by words of the language"
    if code == FALLBACK and said not in cldr_unit_words(code, (_IN_CLDR.get(symbol, _SECOND),)):
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
    larger = {word.casefold() for word in cldr_unit_words(code, _LARGER_BYTES, ("long",))}
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


# A placeholder: a name, and nothing that could reach into what it stands for.
_BRACES = re.compile(r"\{[a-z_]+\}")
# A language says a ratio as one, or as percent.
_RATIOS = frozenset({"times", "times_less", "times_beyond", "times_below"})
_OF_RATIOS = {"{ratio}", "{percent}"}
_IN_BRACES = re.compile(r"\{[^{}]*\}")


def _unknown_placeholders(
    table: Mapping[str, Any], fallback: Language, path: str, text: str
) -> Iterable[Problem]:
    """Placeholders that the English text of the same name does not have, and nothing would fill."""
    for title, english in (
        ("strings", fallback.strings),
        ("labels", fallback.labels),
        ("units", fallback.units),
    ):
        for key, value in (table.get(title) or {}).items():
            known = _placeholders(english.get(key, "")) | (_OF_RATIOS if key in _RATIOS else set())
            if key in english and (extra := _placeholders(value) - known):
                what = f"`{key}` has the placeholder `{min(extra)}`, which its English text does not have"
                fix = f"use those of docs/{FALLBACK}/{FILE}: {', '.join(sorted(known)) or 'none'}"
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


def _unfaithful(
    table: Mapping[str, Any], code: str, fallback: Language, path: str, text: str
) -> Iterator[Problem]:
    """Where a language says something else than English does: a text that hides or makes up what is shown."""
    latin = script_of(Locale.parse(code.replace("-", "_"))) == "Latn"
    source = f"docs/{FALLBACK}/{FILE}"
    for key in table.get("labels") or {}:
        # English says yes or no of a flag, which other languages may say in words of the axis.
        if key not in fallback.labels and not key.endswith(("=true", "=false")):
            shown = "that value" if "=" in key else "the name"
            what = f"`{key}` is a label that English lacks, which shows {shown} as it is"
            yield Problem(path, yaml_line(text, ("labels", key)), what, f"remove it, or add it to {source}")
    for title, english in (
        ("strings", fallback.strings),
        ("labels", fallback.labels),
        ("units", fallback.units),
    ):
        own = table.get(title) or {}
        for key in (key for key in own if key in english):
            theirs = " ".join(_texts(english[key]).values())
            known = f"{theirs} {' '.join(fallback.units.values())}"
            for form, said in _texts(own[key]).items():
                strict = title == "units" or key in _RATIOS
                for what in (
                    *_differences(key, form, said, english[key], strict),
                    *_lost(said, theirs),
                    *(_other_signs(said, theirs) if title != "labels" else ()),
                    *(_other_unit(key, said, theirs, code) if title == "units" and said != theirs else ()),
                ):
                    fix = f"say what {source} does: {theirs}"
                    yield Problem(path, yaml_line(text, (title, key)), f"`{key}` {what}", fix)
                if added := added_words(said, known, latin):
                    what = f"`{key}` holds `{added}`, which its English text does not"
                    yield Problem(path, yaml_line(text, (title, key)), what, "remove it")
        for names in _told_apart(title, english):
            seen: dict[str, str] = {}
            for key in (name for name in names if name in own):
                said = _read_as(str(_texts(own[key]).get("other")))
                other = seen.setdefault(said, key)
                if english[key] != english[other]:
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
        yield from ([key for _, key in values] for values in _values_of_axes(english).values())
        scopes: dict[str, list[str]] = {}
        for key in (key for key in english if "=" not in key):
            scopes.setdefault(key.rpartition("#")[0], []).append(key)
        yield from scopes.values()


def visible(text: str) -> str:
    """A text without what only says where a line may break, and which way it runs."""
    return "".join(letter for letter in text if unicodedata.category(letter) != "Cf")


def _read_as(text: str) -> str:
    """A text as a reader tells it from others: by what is seen, without case and width."""
    return " ".join(unicodedata.normalize("NFKC", visible(text)).casefold().split())


def _differences(key: str, form: str, said: str, english: Text, strict: bool) -> Iterator[str]:
    """What is wrong with one form of a text beside its English one; `strict` where it stands by a number."""
    theirs = " ".join(_texts(english).values())
    words, their_words = _BRACES.sub(" ", said), _BRACES.sub(" ", theirs)
    wanted = max((Counter(_BRACES.findall(one)) for one in _texts(english).values()), key=Counter.total)
    there = Counter(_BRACES.findall(said))
    if key in _RATIOS:
        wanted, there = (Counter({"{ratio}": sum(c[name] for name in _OF_RATIOS)}) for c in (wanted, there))
    spelled = _SPELLED_FORMS.get(form)
    if spelled is not None and "{n}" not in there:
        del wanted["{n}"]
    if there != wanted:
        lost = min((wanted - there) or (there - wanted))
        yield f"has {lost} {there[lost]} times, in English {wanted[lost]} times"
    elif key not in _RATIOS and (exchanged := _exchanged(said, theirs)):
        yield f"has {exchanged[1]} before {exchanged[0]}"
    if (theirs.strip() and not said.strip()) or (_has_words(their_words) and not _has_words(words)):
        yield "says nothing"
    # Ratios stand beside a word for times.
    if _has_words(words) and not _has_words(their_words) and key not in _RATIOS:
        yield "holds words"
    numbers = {*_numbers(theirs), *(_implied(their_words) if not strict else ())}
    if made_up := [one for one in _numbers(words) if one not in numbers | {str(spelled)}]:
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
    there = list(dict.fromkeys(_BRACES.findall(said)))
    wanted = [name for name in dict.fromkeys(_BRACES.findall(english)) if name in there]
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
    ours = {*NAME.findall(said), *_numbers(said)}
    for name in NAME.findall(english):
        if not ours & {name, name.removesuffix("s")}:
            yield f"lacks the name {name}"
    for number in _COUNT.findall(english):
        # Languages say small numbers in words, and by the form of a noun.
        if number not in ours | {"0", "1", "2"}:
            yield f"lacks the number {number}"


# A number that is neither part of a name nor an ordinal.
_COUNT = re.compile(r"(?<![A-Za-z\d.,-])\d+(?:[.,]\d+)*(?![A-Za-z\d])")
# What units are in CLDR, where their names must be its words.
_MINUTE, _HOUR, _SECOND = (f"duration-{name}" for name in ("minute", "hour", "second"))
_IN_CLDR = {"min": _MINUTE, "h": _HOUR}
_OTHER_TIMES = (_MINUTE, _HOUR, "duration-millisecond", "duration-microsecond")
_LARGER_BYTES = tuple(f"digital-{prefix}byte" for prefix in ("kilo", "mega", "giga", "tera"))
_LARGER_SYMBOLS = {symbol for symbol, unit in UNITS.items() if unit.dimension == "memory" and symbol != "B"}


def _other_unit(key: str, said: str, english: str, code: str) -> Iterator[str]:
    """What is wrong with the name of a unit, by its English one, and by the words that CLDR has for units."""
    known = {word.removesuffix("s") for word in re.findall(r"[a-z]+", f"{key} {english}".casefold())}
    if script_of(Locale.parse(code.replace("-", "_"))) != "Latn":
        for word in re.findall(r"[A-Za-z]+", said):
            if word.casefold().removesuffix("s") not in known:
                yield f"holds `{word}`, which its English name does not"
    words = cldr_unit_words(code, (_IN_CLDR.get(key, _SECOND),))
    # What CLDR has of a language that it knows little of: `h`, `sec`.
    if all(word.isascii() and len(word) <= len("sec") for word in words):
        return
    if key in _IN_CLDR and said not in words:
        yield f"is not what CLDR calls this unit, {_listed(words)}"
    elif key.endswith("/s") and not _is_per_second(said, words, code):
        yield f"is not per second, which CLDR calls {_listed(words)}"
    elif key.startswith("B/"):
        larger = cldr_unit_words(code, _LARGER_BYTES, ("long",)) | _LARGER_SYMBOLS
        if named := sorted(word for word in larger if word in said):
            yield f"names the unit {named[0]}"


def _is_per_second(said: str, words: Collection[str], code: str) -> bool:
    """Whether the name of a rate says that it is per second: behind a stroke, or in words."""
    _, stroke, per = said.rpartition("/")
    if stroke:
        return per.strip().rstrip(".") in {"s", *(word.rstrip(".") for word in words)}
    # A letter alone is part of many words; one that stands for a word is not.
    told = [word for word in words if len(word) > 1 or not unicodedata.name(word).startswith("LATIN")]
    others = cldr_unit_words(code, _OTHER_TIMES, ("long",))
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


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:[.,]\d+)*", folded(text)[0])


def _has_words(text: str) -> bool:
    return any(letter.isalpha() for letter in text)


def _texts(value: Any) -> dict[str, str]:
    """The forms of a text; one without is its only one."""
    return dict(value) if isinstance(value, Mapping) else {"other": value}


def script_of(locale: Locale) -> str:
    """What script a language is mostly written in, by its code in ISO 15924."""
    likely = get_global("likely_subtags").get(str(locale))
    # Not `Locale.parse`, which forgets the script where a language has data for no other one.
    return locale.script or (parse_locale(likely)[2] if likely else None) or "Latn"


def _typed_labels(table: Mapping[str, Any], path: str, text: str) -> Iterator[Problem]:
    """English labels that hold a measured number, unless it is part of the name that is labelled."""
    typed = typed_pattern(cldr_unit_words(FALLBACK))
    for key, label in (table.get("labels") or {}).items():
        found = first_typed(label, typed)
        if found and not set(_numbers(found)) <= set(_numbers(key)):
            what = f"the label `{key}` holds the number `{found}`"
            yield Problem(path, yaml_line(text, ("labels", key)), what, "name what is measured, and no value")


def _placeholders(value: object) -> set[str]:
    texts = value.values() if isinstance(value, Mapping) else [value]
    return {found for text in texts for found in _BRACES.findall(str(text))}


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
        if isinstance(text, str) and _IN_BRACES.search(_BRACES.sub("", text)):
            return (
                f"`{key}` holds a brace that is not of a placeholder",
                "write placeholders as English has them: {name}",
            )
    if isinstance(value, str):
        # No other text holds English to what stands beside these numbers.
        signs = {"±"} if key == "spread" else set() if key in _RATIOS else None
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
