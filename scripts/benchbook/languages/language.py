"""What a language's `_language.yml` holds: its interface strings, its labels, its names of units."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from babel import Locale, UnknownLocaleError, dates
from babel.core import get_global, parse_locale

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import FALLBACK, Project
from benchbook.content.site_files import LANGUAGE_FILE
from benchbook.content.units import UNITS, Unit
from benchbook.languages.beside_english import unfaithful_texts, unknown_placeholders
from benchbook.languages.cldr import cldr_units
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
from benchbook.languages.language_file import (
    PLACEHOLDER,
    Text,
    language_file_problems,
    read_language_file,
    typed_labels,
)
from benchbook.languages.markup import isolated_words
from benchbook.languages.telling import TIMES

# What each file held when it was last read: a build asks for every language several times.
_kept: dict[Path, tuple[int, dict[str, Any]]] = {}
_HOLE = re.compile(r"\{([a-z_]+)\}")


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
        shown[PLACEHOLDER.sub("", times).strip() if isinstance(times, str) else ""] = TIMES
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
            what = f"`strings:` has no `{key}`"
            raise BenchbookError(Problem(f"docs/{self.code}/{LANGUAGE_FILE}", 1, what, "add it there"))
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
    if code != FALLBACK and (docs / FALLBACK / LANGUAGE_FILE).is_file():
        fallback = _load(docs, FALLBACK, None)
    return _load(docs, code, fallback)


def _load(docs: Path, code: str, fallback: Language | None) -> Language:
    path = docs / code / LANGUAGE_FILE
    shown = f"{docs.name}/{code}/{LANGUAGE_FILE}"
    stamp = path.stat().st_mtime_ns if path.is_file() else 0
    kept = _kept.get(path)
    if kept is None or kept[0] != stamp:
        table = read_language_file(path, shown)
        text = path.read_text("utf-8")
        problems = list(language_file_problems(table, code, shown, text))
        if fallback is not None and not problems:
            english = {"strings": fallback.strings, "labels": fallback.labels, "units": fallback.units}
            problems += unknown_placeholders(table, english, shown, text)
            problems += unfaithful_texts(table, code, english, shown, text)
        elif code == FALLBACK and not problems:
            problems += typed_labels(table, shown, text)
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
                fix = f"translate it from docs/{FALLBACK}/{LANGUAGE_FILE}"
                problems.append(Problem(f"docs/{code}/{LANGUAGE_FILE}", 1, what, fix))
    return problems


def _is_less(ratio: float) -> bool:
    """Whether a ratio is shown as less than 1: 0.9996 is shown as 1."""
    return abs(float(f"{ratio:.3g}")) < 1


def _date(moment: str) -> datetime.date:
    return datetime.date.fromisoformat(moment[:10])
