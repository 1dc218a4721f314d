"""What CLDR knows of a language: its words for units, and its script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Literal

from babel import Locale
from babel.core import get_global, parse_locale
from babel.units import format_unit

# The units that CLDR has words for, and what they are.
CLDR_UNITS = {
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
# What a unit of time is called there, where its name must be CLDR's word.
_MINUTE, _HOUR, SECOND = (f"duration-{name}" for name in ("minute", "hour", "second"))
IN_CLDR = {"min": _MINUTE, "h": _HOUR}
OTHER_TIMES = (_MINUTE, _HOUR, "duration-millisecond", "duration-microsecond")
LARGER_BYTES = tuple(f"digital-{prefix}byte" for prefix in ("kilo", "mega", "giga", "tera"))


@cache
def cldr_unit_words(
    code: str,
    units: tuple[str, ...] = tuple(CLDR_UNITS),
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
    return {word: symbol for unit, symbol in CLDR_UNITS.items() for word in cldr_unit_words(code, (unit,))}


def script_of(locale: Locale) -> str:
    """What script a language is mostly written in, by its code in ISO 15924."""
    likely = get_global("likely_subtags").get(str(locale))
    # Not `Locale.parse`, which forgets the script where a language has data for no other one.
    return locale.script or (parse_locale(likely)[2] if likely else None) or "Latn"
