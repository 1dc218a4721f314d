"""The model of a file: a dataclass whose annotations say what each field may hold.

Each is a stdlib dataclass below `Stored`. `from_table` builds one from what JSON holds, and needs no further
package: a machine that only records has none. `benchbook.content.validation` holds a file from outside to all
that the annotations say, with pydantic, which reads the same classes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

T = TypeVar("T")
Build = Callable[[Any], Any]
# Ten times the largest record of this handbook; of `count_marks`, fifteen times those of the one with most.
LARGEST_FILE = 8 * 2**20
MOST_VALUES = 500_000
# How files write a moment, in UTC.
MOMENT = "%Y-%m-%dT%H:%M:%SZ"


class Stored:
    """What stands in a file: no unknown key, no conversion, no number that JSON lacks."""

    __pydantic_config__: ClassVar = {"extra": "forbid", "strict": True, "allow_inf_nan": False}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:
        schema = handler(source)
        # Strict it takes instances alone, and a file holds tables.
        cast(dict[str, Any], handler.resolve_ref_schema(schema))["strict"] = False
        return schema


class Limit:
    """What a text, a number or a list may be, in the words of pydantic-core.

    Parameters:
        limits: Of a text `pattern`, `min_length` and `max_length`; of a number `ge`, `gt`, `le` and `lt`; of
            a list the lengths, and `fail_fast=True`, which ends at the first wrong item; of a tuple
            `strict=False` too, for files hold it as a list.
    """

    def __init__(self, **limits: object) -> None:
        self._limits = limits

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return {**handler(source), **self._limits}


def on_calendar(text: str) -> str:
    """A year, a month, a day or a moment, which pages write out.

    Raises:
        ValueError: No calendar has it.
    """
    try:
        date.fromisoformat((text.partition("T")[0] + "-01-01")[: len("2022-02-09")])
        if "T" in text:
            datetime.strptime(text, MOMENT)
    except ValueError:
        raise ValueError(f"{text} is in no calendar") from None
    return text


def no_device(name: str) -> str:
    """A name of a file or a folder, which Windows can make.

    Raises:
        ValueError: Windows keeps it for a device, whatever stands behind its first dot.
    """
    if device := re.match(DEVICE_NAME, name, re.IGNORECASE):
        raise ValueError(f"Windows keeps the name {device[1]} for a device")
    return name


class Passes:
    """That a value is what a function gives back, which raises ValueError where it is not right.

    Parameters:
        function: Takes the value, already of its kind.
    """

    def __init__(self, function: Build) -> None:
        self._function = function

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        function = {"type": "no-info", "function": self._function}
        return {"type": "function-after", "function": function, "schema": handler(source)}


def at_most(characters: int) -> Build:
    """What raises ValueError of a value that takes more than so many characters as JSON."""

    def fitting(value: Any) -> Any:
        try:
            size = len(json.dumps(value, allow_nan=False))
        except RecursionError:
            raise ValueError("it nests too deeply") from None
        if size > characters:
            raise ValueError(f"it takes {size} characters, and {characters} are the most")
        return value

    return fitting


class OneOf:
    """That a value is one of a few that the program knows."""

    def __init__(self, values: Iterable[object]) -> None:
        self._values = list(values)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return {"type": "literal", "expected": self._values}


class KindBy:
    """Which of several classes a table is read as, by a key that only the first of them has."""

    def __init__(self, key: str) -> None:
        self._key = key

    def chosen(self, table: object) -> int:
        """The place of the class among those of the union."""
        return 0 if isinstance(table, Mapping) and self._key in table else 1

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        kinds = get_args(source)
        choices = {kind.__name__: handler.generate_schema(kind) for kind in kinds}

        def chosen(table: object) -> str:
            return str(kinds[self.chosen(table)].__name__)

        return {"type": "tagged-union", "choices": choices, "discriminator": chosen}


class Keys:
    """A table some of whose keys are there, each with a value of its own kind.

    Parameters:
        kinds: The annotation of the value, by key.
    """

    def __init__(self, **kinds: Any) -> None:
        self._kinds = kinds

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        fields = {
            key: {"type": "typed-dict-field", "schema": handler.generate_schema(kind), "required": False}
            for key, kind in self._kinds.items()
        }
        # A table of its own does not take over how the one around it is read.
        config = {"strict": True, "allow_inf_nan": False}
        return {"type": "typed-dict", "fields": fields, "extra_behavior": "forbid", "config": config}


# Model, memory, partition or count, and behind two hyphens who measured.
MACHINE_NAME = r"[a-z0-9]+(?:[.-][a-z0-9]+)*(?:--[a-z0-9]+(?:-[a-z0-9]+)*)?"

# https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file
DEVICE_NAME = r"(aux|con|nul|prn|(?:com|lpt)[1-9])(?:\.|\Z)"

MachineName = Annotated[str, Limit(pattern=f"^{MACHINE_NAME}$", max_length=80), Passes(no_device)]
LONGEST_REFERENCE = 120
Reference = Annotated[
    str, Limit(pattern=r"^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*\.py$", max_length=LONGEST_REFERENCE)
]
Name = Annotated[str, Limit(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)]
VariantName = Annotated[str, Limit(pattern=r"^(?:default|[A-Za-z0-9_.+=,-]+)$", max_length=200)]
Commit = Annotated[str, Limit(pattern=r"^[0-9a-f]{40}$")]
Digest = Annotated[str, Limit(pattern=r"^sha256:[0-9a-f]{64}$")]
Day = Annotated[str, Limit(pattern=r"^[0-9]{4}-[0-9][0-9]-[0-9][0-9]$"), Passes(on_calendar)]
Instant = Annotated[
    str,
    Limit(pattern=r"^[0-9]{4}-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]Z$"),
    Passes(on_calendar),
]
# What is not seen and does something: it breaks a line, turns the direction of a text, commands a terminal.
# All of category Cc, and of Cf what has no shape, as ranges that all dialects of regular expressions read.
INVISIBLE = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0001-\U000e007f"
)
# The same, but for tabs and the ends of lines and pages, in a text of many lines.
HIDDEN = re.compile(rf"(?![\t\n\r\f])[{INVISIBLE}]")
# Half of a character, which no file in UTF-8 can hold: an escape such as \ud800, in Python and JSON.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
Short = Annotated[str, Limit(pattern=f"^[^{INVISIBLE}]*$", max_length=400)]
# What a page names: no markup; and what it calls something: that begins with something to see.
Label = Annotated[str, Limit(pattern=f"^[^{INVISIBLE}<>]*$", max_length=100)]
TITLE = rf"^[^{INVISIBLE}<>\s][^{INVISIBLE}<>]*$"
Title = Annotated[str, Limit(pattern=TITLE, max_length=400)]
CampaignName = Annotated[str, Limit(pattern=r"^[A-Za-z0-9._-]+$", max_length=120)]
Text = Annotated[str, Limit(max_length=200_000)]
# Any that a float can hold: medians and drawings are made of floats.
Whole = Annotated[int, Limit(ge=-(10**308), le=10**308)]
Count = Annotated[int, Limit(ge=1, le=10**6)]
# Some ten times what any device may take, and what it is clocked at.
Watts = Annotated[int, Limit(gt=0, le=20_000)] | Annotated[float, Limit(gt=0, le=20_000)]
Megahertz = Annotated[int, Limit(ge=0, le=100_000)] | Annotated[float, Limit(ge=0, le=100_000)]
# An exabyte is more than any machine has.
Bytes = Annotated[int, Limit(ge=0, le=10**18)]
Value = bool | Whole | float
# Of a list of wrong items the first is told: there may be millions.
Many = Annotated[tuple[T, ...], Limit(strict=False, fail_fast=True)]
Some = Annotated[tuple[T, ...], Limit(strict=False, fail_fast=True, min_length=1)]


def count_marks(text: bytes) -> int:
    """How often a text of JSON begins a table or a list, or parts the items of one.

    Each becomes an object many times as large, so that they are counted before they are read.
    """
    return sum(text.count(mark) for mark in (b"{", b"[", b","))


def too_large(content: bytes) -> str | None:
    """Why a file of JSON that belongs to a checkout is not parsed; None of one that may be."""
    if len(content) > LARGEST_FILE:
        return f"it is larger than {LARGEST_FILE >> 20} MiB"
    if count_marks(content) > MOST_VALUES:
        return f"it holds more than {MOST_VALUES} values"
    return None


def json_text(path: Path) -> str:
    """The text of a file of JSON that belongs to a checkout, for whoever parses it.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not UTF-8, or larger than any honest one.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST_FILE + 1)
    if (what := too_large(content)) is not None:
        raise ValueError(what)
    return content.decode("utf-8")


def is_same(one: object, other: object) -> bool:
    """Whether files hold two values alike, in whichever order their keys stand.

    Python itself takes True for 1 and for 1.0.

    Parameters:
        one: A value of JSON, or a dataclass of such values.
        other: Likewise.
    """
    return one == other and _written(one) == _written(other)


def has_same(values: Iterable[object], value: object) -> bool:
    """Whether one of some values is written as `value` is (`is_same`)."""
    return any(is_same(value, one) for one in values)


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=vars)


def from_table(kind: type[T], table: Mapping[str, Any]) -> T:
    """The dataclass that `table` holds, with those below it; of values, only the kind is looked at.

    Raises:
        TypeError, ValueError, AttributeError: The table has not the shape of one.
    """
    builds = _builds(cast(Hashable, kind))
    if unknown := sorted(set(table) - set(builds)):
        raise TypeError(f"unknown key {unknown[0]!r}")
    return kind(**{key: build(table[key]) for key, build in builds.items() if key in table})


@cache
def _builds(kind: Any) -> dict[str, Build]:
    hints = get_type_hints(kind, include_extras=True)
    return {item.name: _build(hints[item.name]) for item in fields(kind)}


def _build(hint: Any) -> Build:
    """What makes a value of a field from what a file holds for it."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        by = next((one for one in args[1:] if isinstance(one, KindBy)), None)
        return _build(args[0]) if by is None else _choice(by, [_build(kind) for kind in get_args(args[0])])
    if origin is Literal:
        return lambda value: _known(value, args)
    if origin is tuple:
        item = _build(args[0])
        return lambda values: tuple(item(value) for value in _of(list, values, tuple))
    if origin is dict:
        below = _build(args[1])
        if below is _as_it_is:
            return lambda table: _of(dict, table)
        return lambda table: {key: below(value) for key, value in _of(dict, table).items()}
    if origin in (Union, UnionType):
        some = [one for one in args if one is not NoneType]
        build = _build(some[0]) if len(some) == 1 else _as_it_is
        return lambda value: None if value is None else build(value)
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda table: from_table(hint, _of(dict, table))
    if hint is str:
        return lambda value: _of(str, value)
    return _as_it_is


def _choice(by: KindBy, builds: list[Build]) -> Build:
    return lambda table: builds[by.chosen(table)](table)


def _known(value: object, known: tuple[object, ...]) -> object:
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(map(repr, known))}")
    return value


def _of(kind: type[T], value: object, *also: type) -> T:
    """`value`, which is of a kind, or of another that is as good."""
    if not isinstance(value, (kind, *also)):
        raise TypeError(f"{value!r:.40} is no {kind.__name__}")
    return cast(T, value)


def _as_it_is(value: object) -> object:
    return value
