"""The units a metric can have, and which one a number is read in: what stands side by side shares one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Dimension = Literal["memory", "time", "rate", "power", "temperature", "ratio", "count", "compute"]


@dataclass(frozen=True)
class Unit:
    """A unit of measure.

    Parameters:
        symbol: How scripts and pages write it.
        dimension: What it measures; only units of one dimension convert into each other.
        factor: How many of the dimension's base unit one of it is.
        noisy: Whether repeated runs scatter, so that one needs eight of them rather than three.
        typed: Whether a number followed by it in prose is a measurement that must be bound to a record.

    """

    symbol: str
    dimension: Dimension
    factor: float = 1.0
    noisy: bool = False
    typed: bool = True


UNITS: dict[str, Unit] = {
    unit.symbol: unit
    for unit in (
        Unit("B", "memory"),
        Unit("kB", "memory", 1e3),
        Unit("MB", "memory", 1e6),
        Unit("GB", "memory", 1e9),
        Unit("TB", "memory", 1e12),
        Unit("KiB", "memory", 2.0**10),
        Unit("MiB", "memory", 2.0**20),
        Unit("GiB", "memory", 2.0**30),
        Unit("TiB", "memory", 2.0**40),
        Unit("s", "time", noisy=True),
        Unit("ms", "time", 1e-3, noisy=True),
        Unit("us", "time", 1e-6, noisy=True),
        Unit("min", "time", 60.0, noisy=True),
        Unit("h", "time", 3600.0, noisy=True),
        Unit("1/s", "rate", noisy=True),
        Unit("B/s", "rate", noisy=True),
        Unit("GB/s", "rate", 1e9, noisy=True),
        Unit("samples/s", "rate", noisy=True),
        Unit("tokens/s", "rate", noisy=True),
        Unit("steps/s", "rate", noisy=True),
        Unit("W", "power", noisy=True),
        Unit("degC", "temperature", noisy=True),
        Unit("FLOP", "compute"),
        Unit("GFLOP", "compute", 1e9),
        Unit("TFLOP", "compute", 1e12),
        Unit("TFLOP/s", "rate", 1e12, noisy=True),
        Unit("1", "ratio", typed=False),
        Unit("percent", "ratio", 0.01),
        Unit("count", "count", typed=False),
        Unit("samples", "count", typed=False),
        Unit("tokens", "count", typed=False),
        Unit("steps", "count", typed=False),
        Unit("processes", "count", typed=False),
        Unit("B/parameter", "ratio", typed=False),
    )
}

# Units whose symbol holds words, which a language writes with its own; others are written alike in all.
WORDED = frozenset({"1/s", "samples/s", "tokens/s", "steps/s", "min", "h", "B/parameter"})

# What is read around each cell, and the unit it is recorded in.
METERS: dict[str, Unit] = {
    "seconds": UNITS["s"],
    "process_memory": UNITS["B"],
    "process_memory_peak": UNITS["B"],
    "allocated": UNITS["B"],
    "allocated_peak": UNITS["B"],
    "reserved": UNITS["B"],
    "reserved_peak": UNITS["B"],
    "device_memory": UNITS["B"],
    "device_memory_peak": UNITS["B"],
}

# Meters of the device's own memory: what they read carries over to another device of the same kernels.
DEVICE_METERS = frozenset(
    {"allocated", "allocated_peak", "reserved", "reserved_peak", "device_memory", "device_memory_peak"}
)


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
