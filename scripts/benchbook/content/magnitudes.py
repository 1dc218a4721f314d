"""What a number of a metric can be at all: of its sign, and from the least to the most that there is."""

from __future__ import annotations

from benchbook.content.metadata import Metric
from benchbook.content.units import UNITS, Dimension

# Seconds: what Python takes to read a clock twice.
SHORTEST = 1e-7
# The least and the most that a number other than 0 can be, in the base unit of its dimension: from a bit to
# more than all computers have or do. A ratio may be what a format of numbers holds.
MAGNITUDES: dict[Dimension, tuple[float, float]] = {
    "memory": (0.125, 1e18),
    "time": (SHORTEST, 1e10),
    "rate": (1e-9, 1e24),
    "power": (1e-9, 1e9),
    "temperature": (1e-9, 1e4),
    "ratio": (1e-100, 1e100),
    "count": (1e-9, 1e30),
    "compute": (1e-9, 1e36),
}
# What can be a yes or a no.
FLAGS: frozenset[Dimension] = frozenset({"ratio", "count"})
# What is above 0, and what is not below it.
_POSITIVE: frozenset[Dimension] = frozenset({"time", "rate"})
_NOT_NEGATIVE: frozenset[Dimension] = frozenset({"memory", "count", "compute", "power"})


def odd_number(item: float, metric: Metric) -> str | None:
    """What an item of a metric is that it cannot be; None if it can.

    Parameters:
        item: A number, or a yes or a no, in the unit of the metric.
        metric: As its script declares it.
    """
    unit = UNITS[metric.unit]
    least, most = MAGNITUDES[unit.dimension]
    if isinstance(item, bool):
        return None if unit.dimension in FLAGS else f"{item}, which is no number of {unit.symbol}"
    if unit.dimension in _POSITIVE and item <= 0:
        return "not positive"
    if unit.dimension in _NOT_NEGATIVE and item < 0:
        return f"{item} {unit.symbol}, and there is no less than nothing of it"
    size = abs(item) * unit.factor
    if size > most:
        return f"{item:.4g} {unit.symbol}, more than the {most / unit.factor:.4g} that there can be"
    if 0 < size < least:
        if unit.dimension == "time":
            return f"{item} {unit.symbol}, less than any clock tells"
        return f"{item:.4g} {unit.symbol}, less than the {least / unit.factor:.4g} that there can be"
    if unit.symbol == "B" and metric.memory == "device" and item % 1:
        return f"{item} B, and a device holds whole bytes"
    return None
