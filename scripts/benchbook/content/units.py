"""The units a metric can have: the one list that scripts, pages and checks agree on."""

from __future__ import annotations

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
