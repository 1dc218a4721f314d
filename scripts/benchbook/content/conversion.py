"""Which unit a number is read in: what stands side by side shares one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchbook.content.units import UNITS, Unit

# Units that scale to the magnitude of the value unless the page asks for one.
_LADDERS: dict[str, tuple[str, ...]] = {
    "B": ("GiB", "MiB", "KiB", "B"),
    "s": ("s", "ms", "us"),
    "B/s": ("GB/s", "B/s"),
    "FLOP": ("TFLOP", "GFLOP", "FLOP"),
}
# A value below so much of the unit beside it has a smaller one of its own; so large a number, a larger one.
_TRACE, _LONG = 1e-3, 1e4
_FAMILIES = (frozenset({"B/s", "GB/s"}), frozenset({"1", "percent"}))


def convertible(unit: Unit, other: Unit) -> bool:
    """Whether a value in `unit` can be shown in `other`."""
    if unit.symbol == other.symbol:
        return True
    if unit.dimension != other.dimension:
        return False
    if unit.dimension in ("memory", "time", "compute"):
        return True
    return any({unit.symbol, other.symbol} <= family for family in _FAMILIES)


def targets(unit: Unit) -> tuple[str, ...]:
    """The symbols of the units a value in `unit` can be shown in."""
    return tuple(symbol for symbol, other in UNITS.items() if convertible(unit, other))


def sensible_unit(value: float, unit: Unit) -> Unit:
    """The unit to show `value` in where the page names none: the largest that it is at least 1 of."""
    ladder = _LADDERS.get(unit.symbol)
    if ladder is None or value == 0:
        return unit
    for symbol in ladder:
        if abs(value) * unit.factor >= UNITS[symbol].factor:
            return UNITS[symbol]
    return UNITS[ladder[-1]]


def shared_unit(amounts: Sequence[tuple[float, Unit]]) -> Unit:
    """The one unit for numbers that are compared: a column of a table, or the two sides of a comparison.

    The rule: the unit of the largest number, so that they compare at a glance. Where one of the others would
    be less than a thousandth of it, and so read as next to 0, a smaller unit in which all of them can be
    told, unless that takes numbers of five digits. Where no unit does for all, it is that of the largest,
    and each such trace alone has a unit of its own (`unit_beside`). A unit that a page names goes before
    this rule, and traces of it keep a unit of their own likewise.

    Parameters:
        amounts: The numbers, each with the unit that it is in, all of one dimension; at least one.
    """
    unit = next((unit for _, unit in amounts if unit.symbol in _LADDERS), amounts[0][1])
    sizes = [abs(convert(value, own, unit)) for value, own in amounts if value and math.isfinite(value)]
    if not sizes:
        return unit
    best = sensible_unit(max(sizes), unit)
    for symbol in _LADDERS.get(unit.symbol, ()):
        smaller = UNITS[symbol]
        if smaller.factor > best.factor:
            continue
        if convert(max(sizes), unit, smaller) >= _LONG:
            break
        if convert(min(sizes), unit, smaller) >= _TRACE:
            return smaller
    return best


def unit_beside(value: float, unit: Unit, shown: Unit) -> Unit:
    """The unit for `value` among numbers in `shown`: that, but for a trace of it that has a smaller unit."""
    trace = 0 < abs(convert(value, unit, shown)) < _TRACE
    return sensible_unit(value, unit) if trace and unit.symbol in _LADDERS else shown


def convert(value: float, unit: Unit, target: Unit) -> float:
    """`value` in `unit`, expressed in `target`; an integer stays one where nothing changes."""
    return value if unit.factor == target.factor else value * unit.factor / target.factor
