"""Numbers and units as a reader of a language reads them: always Western digits, never a false precision."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from babel import Locale, numbers

from benchbook.content.units import Unit, convert, sensible_unit

# A number and its unit never part at the end of a line.
NO_BREAK_SPACE = "\u00a0"
RIGHT_TO_LEFT = "\u200f"
DIGITS = 3
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SYMBOLS = {"us": "µs", "degC": "°C", "1": "", "count": ""}
# Ratios beyond these are told apart from them, and no further.
LARGEST_RATIO, SMALLEST_RATIO = 1000, 0.001


@dataclass(frozen=True)
class FormattedQuantity:
    """A formatted number with the unit it is in.

    Parameters:
        number: The digits, formatted for a language.
        unit: The unit's symbol as it is written, empty for a bare number.
    """

    number: str
    unit: str = ""

    @property
    def text(self) -> str:
        """Number and unit on one line, the number first in the direction that the unit is read in."""
        if not self.unit:
            return self.number
        # Values stand in left-to-right isolates; this turns one whose unit is a word of Arabic.
        mark = RIGHT_TO_LEFT if unicodedata.bidirectional(self.unit[0]) in {"R", "AL"} else ""
        return f"{mark}{self.number}{NO_BREAK_SPACE}{self.unit}"


@cache
def format_number(value: float, locale: Locale, digits: int = DIGITS, full: bool = False) -> str:
    """`value` to `digits` significant digits, fewer where fewer are exact; integers below a billion whole.

    Beyond a ten-thousandth, and from a billion on, as a power of ten: 7.2 × 10⁻⁸.

    Parameters:
        value: The number.
        locale: The language to format for.
        digits: How many are significant.
        full: Whether to write all of them below 100, but for 0: beside 1.04 stands 1.00, not 1.
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "\u2212∞"}.get(value, "—")
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e9):
        exact = float(f"{value:.0e}") == value
        mantissa, exponent = f"{value:.{0 if exact else digits - 2}e}".split("e")
        shown = _decimal(float(mantissa), "0" if exact else "0.0", locale)
        power = str(int(exponent)).translate(_SUPERSCRIPTS)
        return f"{shown}{NO_BREAK_SPACE}×{NO_BREAK_SPACE}10{power}"
    if full and 0 < size < 10 ** (digits - 1):
        return _decimal(value, "@" * digits, locale)
    if value == int(value) or size >= 100:
        return _decimal(round(value), "#,##0", locale)
    return _plain(value, digits, locale)


@cache
def format_percent(share: float, locale: Locale) -> str:
    """A share (0.38) as a percentage, whole from 10 % on, with one or two digits below."""
    percent = share * 100
    if 0 < abs(percent) < 1e-4 or abs(percent) >= 1e9:
        return f"{format_number(percent, locale)}{NO_BREAK_SPACE}%"
    pattern = (
        "#,##0%"
        if abs(percent) >= 9.95 or percent == round(percent)
        else "@@%"
        if abs(percent) >= 1
        else "@%"
    )
    return _percent(share, pattern, locale)


def format_ratio(ratio: float, locale: Locale) -> str:
    """A ratio or an end of its interval, all written alike: to three digits, whole from 100 on."""
    return format_number(ratio, locale, full=True)


@cache
def format_ratio_percent(ratio: float, locale: Locale) -> str:
    """A ratio as a percentage, to as many digits as `format_ratio` has: 0.493 is 49.3%."""
    if abs(ratio) >= 1e7:
        return format_percent(ratio, locale)
    return _percent(ratio, "@" * DIGITS + "%" if 0 < abs(ratio) < 1 else "#,##0%", locale)


@cache
def format_signed_percent(share: float, locale: Locale) -> str:
    """A share that goes either way as a percentage with its sign: to a tenth below 10 %, else whole."""
    tenths = round(share * 1000) / 1000 if abs(share) < 1e7 else share
    whole = abs(tenths) >= 0.1
    amount = abs(share if whole else tenths)
    if amount >= 1e7:
        text = format_percent(amount, locale)
    else:
        pattern = "#,##0%" if whole else "0.0%"
        text = numbers.format_percent(amount, format=pattern, locale=locale, numbering_system="latn")
    return f"+{text}" if tenths > 0 else f"\u2212{text}" if tenths < 0 else text


def format_quantity(
    value: float,
    unit: Unit,
    locale: Locale,
    target: Unit | None = None,
    names: Mapping[str, str] | None = None,
    full: bool = False,
) -> FormattedQuantity:
    """`value` as text.

    Parameters:
        value: The number, in `unit`.
        unit: The unit it was recorded in.
        locale: The language to format for.
        target: The unit to show it in, by default a sensible one.
        names: How the language writes units whose symbol holds words ("samples/s").
        full: Whether to write all digits, as `format_number` does.
    """
    shown = target or sensible_unit(value, unit)
    amount = convert(value, unit, shown)
    if shown.symbol == "percent":
        return FormattedQuantity(format_percent(amount / 100, locale))
    if shown.dimension == "count":
        return FormattedQuantity(format_number(amount, locale, full=full))
    symbol = (names or {}).get(shown.symbol, _SYMBOLS.get(shown.symbol, shown.symbol))
    return FormattedQuantity(format_number(amount, locale, full=full), symbol)


def _plain(value: float, digits: int, locale: Locale) -> str:
    """`value` to at most `digits` significant digits; trailing zeros only where they are a rounding."""
    for count in range(1, digits):
        if float(f"{value:.{count}g}") == value:
            digits = count
            break
    return _decimal(value, "@" * digits, locale)


def _percent(share: float, pattern: str, locale: Locale) -> str:
    share = _rounded(share, pattern)
    text = numbers.format_percent(share, format=pattern, locale=locale, numbering_system="latn")
    return text.replace("-", "\u2212")


@cache
def _decimal(value: float, pattern: str, locale: Locale) -> str:
    value = _rounded(value, pattern)
    text = numbers.format_decimal(value, format=pattern, locale=locale, numbering_system="latn")
    return text.replace("-", "\u2212")


def _rounded(value: float, pattern: str) -> float:
    """`value` to the significant digits of a pattern.

    Babel takes the place of the first digit from the unrounded number: of 0.00999… it makes 0.00100.
    """
    digits = pattern.count("@")
    return float(f"{value:.{digits - 1}e}") if digits else value
