"""How far equal quantities may differ, and from which ratio on a difference matters: by kind of quantity.

These numbers are older than the records that they judge. A claim may ask for more than its kind does, where
its words name an exact number; it may never ask for less.
"""

from __future__ import annotations

from benchbook.content.units import Dimension, Unit

# The smallest ratio of one measurement to another that matters, whatever they count. Where the words of a
# claim name the number, `times` or a constant, that number decides.
SMALLEST_RATIO = 1.05
# By what share two quantities that are called equal may differ.
TOLERANCES: dict[Dimension, float] = {
    "memory": SMALLEST_RATIO - 1,
    "compute": SMALLEST_RATIO - 1,
    "count": 0.0,
    # Losses, shares and differences.
    "ratio": 0.01,
    "time": 0.1,
    "rate": 0.1,
    "power": 0.1,
    "temperature": 0.1,
}


def tolerance_for(unit: Unit) -> float:
    """By what share two quantities in `unit` may differ and be called equal."""
    return TOLERANCES["memory" if unit.symbol == "B/parameter" else unit.dimension]
