"""Bounds of what files written by hand hold: whatever is read of them can be shown and computed with."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from typing import Any

# What a float holds; Python itself refuses to write out an integer of some thousand digits.
LARGEST = 10**308
# Some twenty times the longest of ours. A key of as many parts takes its square to read.
LONGEST_LINE = 10_000
# Several times the deepest of ours.
DEEPEST = 50
# Ten times the longest of ours: a list of models or claims is gone through for each of them.
LONGEST_TEXT = 250_000


def has_endless_number(value: object) -> bool:
    """Whether an integer in `value`, of tables and lists of whatever depth, is beyond what a float holds."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, Iterable) and not isinstance(one, str | bytes):
            waiting += one
        elif isinstance(one, int) and abs(one) > LARGEST:
            return True
    return False


def _is_too_deep(table: dict[str, Any]) -> bool:
    """Whether tables and lists stand in each other deeper than what looks at them follows."""
    waiting: list[tuple[object, int]] = [(table, 1)]
    while waiting:
        one, depth = waiting.pop()
        if depth > DEEPEST:
            return True
        within = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        waiting += [(value, depth + 1) for value in within]
    return False


def load_toml(text: str) -> dict[str, Any]:
    """The table that `text` holds.

    Raises:
        tomllib.TOMLDecodeError: It is not TOML, or beyond what a person writes: its length, a line, a number,
            a depth.
    """
    if len(text) > LONGEST_TEXT:
        what = f"a text of {len(text)} characters, {LONGEST_TEXT} are the most"
        raise tomllib.TOMLDecodeError(f"{what} (at line 1, column 1)")
    for number, line in enumerate(text.split("\n"), start=1):
        if len(line) > LONGEST_LINE:
            what = f"a line of {len(line)} characters, {LONGEST_LINE} are the most"
            raise tomllib.TOMLDecodeError(f"{what} (at line {number}, column 1)")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError as error:
        raise tomllib.TOMLDecodeError(_TOO_DEEP) from error
    except ValueError as error:
        # It does not say where.
        raise _endless(text) from error
    if _is_too_deep(table):
        raise tomllib.TOMLDecodeError(_TOO_DEEP)
    if has_endless_number(table):
        raise _endless(text)
    return table


_TOO_DEEP = f"tables and lists stand in each other more than {DEEPEST} deep"


def _endless(text: str) -> tomllib.TOMLDecodeError:
    """Where the number stands that is beyond all others: a hexadecimal one has 250 digits or more."""
    found = re.search(r"[\da-fx_]{250}", text, re.IGNORECASE)
    line = text.count("\n", 0, found.start()) + 1 if found else 1
    return tomllib.TOMLDecodeError(f"a number is beyond 10 to the 308th (at line {line}, column 1)")
