"""Hold files from outside to all that their models say: they are data, and never trusted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from benchbook.content.formats import INVISIBLE, LONE_SURROGATE, Stored, json_text
from benchbook.content.identity import find
from benchbook.content.machines import MachineDescription
from benchbook.content.positions import json_line, repeated_json_key
from benchbook.content.predictions import PREDICT_AGAIN, PredictionRecord, digest_of
from benchbook.content.problems import Problem
from benchbook.content.records import PUBLISHED, Record, is_published

# No description and no record has this many levels; what is below them is refused for its shape.
DEEPEST = 20
# Nor so many keys in one table: each wrong one is an error, which takes more memory than what it is of.
MOST_KEYS = 1000
MOST_ERRORS = 10_000
# So many problems of one file are told.
MOST_TOLD = 20
RECORD_AGAIN = "record it again with `benchbook record`"
QUOTE_AGAIN = "correct it by what the publication says; CONTRIBUTING.md shows what a quotation holds"

# How pydantic calls a key that a dataclass does not have, and what we say of it.
UNKNOWN_KEY, UNKNOWN = "unexpected_keyword_argument", "there is no such key"
UNSEEN = "it holds what is not seen, such as a line break, or markup, or is blank"

Keys = tuple[str | int, ...]
T = TypeVar("T")


def adapter(kind: type[T]) -> TypeAdapter[T]:
    """What validates files of the model `kind`.

    Raises:
        TypeError: A dataclass in it is not below `Stored`, and would let unknown keys and NaN pass.
    """
    return cast(TypeAdapter[T], _adapter(cast(Hashable, kind)))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    made = TypeAdapter(kind)
    for found in _dataclasses(made.core_schema):
        if not issubclass(found, Stored):
            raise TypeError(f"{found.__name__} is a model of a file and is not below Stored")
    return made


def _dataclasses(schema: Any) -> Iterator[type]:
    """Every dataclass that a schema of pydantic's reads."""
    if isinstance(schema, Mapping):
        found = schema.get("cls")
        if isinstance(found, type) and is_dataclass(found):
            yield found
        schema = [value for key, value in schema.items() if key != "metadata"]
    if isinstance(schema, list | tuple):
        for item in schema:
            yield from _dataclasses(item)


def shape_errors(error: ValidationError, most: int = MOST_TOLD) -> Iterator[tuple[Keys, str, str]]:
    """The keys, the kind and the words of each of the first errors; of far too many their number alone."""
    if error.error_count() > MOST_ERRORS:
        yield (), "too_many_errors", f"{error.error_count()} places in it are not as they should be"
        return
    for item in error.errors(include_url=False, include_input=False)[:most]:
        message = item["msg"].removeprefix("Value error, ")
        if INVISIBLE in item.get("ctx", {}).get("pattern", ""):
            message = UNSEEN
        yield tuple(item["loc"]), item["type"], UNKNOWN if item["type"] == UNKNOWN_KEY else message


# How JSON escapes a half of a letter; two that follow each other are a whole one.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str, path: str) -> tuple[Any, list[Problem]]:
    """The value that `text` holds; what JSON has not, or has twice, is a problem, as any other damage."""
    repeated = False

    def refuse(constant: str) -> None:
        raise ValueError(f"it holds {constant}, which is not a number")

    def table_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        table = dict(pairs)
        repeated |= len(table) < len(pairs)
        return table

    try:
        value = json.loads(text, parse_constant=refuse, object_pairs_hook=table_of)
        if repeated and (found := repeated_json_key(text)) is not None:
            key, line = found
            return None, [Problem(path, line, f"has the key `{key}` twice in one table", RECORD_AGAIN)]
        if (half := _SURROGATE.search(text)) and LONE_SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            line = text.count("\n", 0, half.start()) + 1
            return None, [Problem(path, line, "holds half a letter (a lone surrogate)", RECORD_AGAIN)]
        return value, []
    except json.JSONDecodeError as error:
        return None, [Problem(path, error.lineno, f"is not JSON ({error.msg})", RECORD_AGAIN)]
    except (ValueError, RecursionError) as error:
        return None, [Problem(path, 1, f"is not JSON ({error})", RECORD_AGAIN)]


def record_problems(table: Any, path: str, text: str = "") -> list[Problem]:
    """What is wrong with the shape of a record; `text` is its file's, to find lines in."""
    return _shape_first(Record, table, path, text, _of_record)


def machine_problems(table: Any, path: str, text: str = "") -> list[Problem]:
    """What is wrong with the shape of a machine description."""
    problems = _shape_first(MachineDescription, table, path, text)
    if not problems and table["published"] != is_published(table["name"]):
        what = f"`published` is {json.dumps(table['published'])} of a machine called {table['name']}"
        fix = f"end the name of a machine in `{PUBLISHED}` where its figures are quoted, and only there"
        problems.append(Problem(path, json_line(text, ("published",)), what, fix))
    return problems


def prediction_problems(table: Any, path: str, text: str = "") -> list[Problem]:
    """What is wrong with the shape of a file of predictions, and with their digests."""
    problems = list(form_problems(PredictionRecord, table, path, text, lambda keys: (keys, PREDICT_AGAIN)))
    return problems or list(_digests(table, path, text))


def _digests(table: Any, path: str, text: str) -> Iterator[Problem]:
    for name, first in table["variants"].items():
        for one, keys in ((first, ()), (first.get("anew"), ("anew",))):
            if one and one.get("digest") != digest_of(one, table["script"], name, table["machine"]):
                what = f"{'.'.join(('variants', name, *keys))}: its digest is not that of what it says"
                fix = "restore the file: predictions are not edited"
                yield Problem(path, json_line(text, ("variants", name, *keys, "digest")), what, fix)


def read_json(path: Path, shown: str) -> tuple[Any, str, list[Problem]]:
    """The value in a file, its text, and what prevented reading it."""
    try:
        text = json_text(path)
    except (OSError, ValueError) as error:
        return None, "", [Problem(shown, 1, f"cannot be read ({error})", RECORD_AGAIN)]
    value, problems = parse_json(text, shown)
    return value, text, problems


def _as_it_is(keys: Keys) -> tuple[Keys, str]:
    return keys, RECORD_AGAIN


def _of_record(keys: Keys) -> tuple[Keys, str]:
    """The keys that the file has, and the fix, for those of an error in a record."""
    if keys[:1] == ("campaigns",) and len(keys) > 2:
        # Pydantic names the kind of campaign, where the file has no such level.
        return (*keys[:2], *keys[3:]), QUOTE_AGAIN if keys[2] == "Publication" else RECORD_AGAIN
    return keys, RECORD_AGAIN


def _shape_first(
    kind: type[object],
    table: Any,
    path: str,
    text: str,
    told: Callable[[Keys], tuple[Keys, str]] = _as_it_is,
) -> list[Problem]:
    """What is wrong with a shape; if nothing is, and its texts have an end, what could identify someone."""
    if (overfull := _overfull(table)) is not None:
        where, count = ".".join(map(str, overfull[0])) or "the file", overfull[1]
        what = f"{where}: it has {count} keys, and no table of such a file has more than {MOST_KEYS}"
        return [Problem(path, json_line(text, overfull[0]), what, RECORD_AGAIN)]
    problems = list(form_problems(kind, table, path, text, told))
    return problems or list(islice(_identity(table, path, text), MOST_TOLD))


def _overfull(value: Any, keys: Keys = ()) -> tuple[Keys, int] | None:
    """The place of the first table that has more than `MOST_KEYS`, and how many it has."""
    if len(keys) > DEEPEST or not isinstance(value, Mapping | list):
        return None
    if isinstance(value, Mapping) and len(value) > MOST_KEYS:
        return keys, len(value)
    items = value.items() if isinstance(value, Mapping) else enumerate(value)
    found = (_overfull(item, (*keys, key)) for key, item in items if isinstance(item, Mapping | list))
    return next((one for one in found if one is not None), None)


def form_problems(
    kind: type[object],
    table: Any,
    path: str,
    text: str,
    told: Callable[[Keys], tuple[Keys, str]] = _as_it_is,
) -> Iterator[Problem]:
    """Where the table in `text` is not of the form `kind`; `told` gives the keys to name, and the fix."""
    try:
        adapter(kind).validate_python(table)
    except ValidationError as error:
        for loc, _, message in shape_errors(error):
            keys, fix = told(loc)
            where = ".".join(str(key) for key in keys) or "the file"
            yield Problem(path, json_line(text, keys), f"{where}: {message}", fix)


def _identity(value: Any, path: str, text: str, keys: tuple[str | int, ...] = ()) -> Iterator[Problem]:
    if isinstance(value, str) and (found := find(value)) is not None:
        what = f"{'.'.join(map(str, keys))} holds {found!r}, which can identify someone's machine"
        yield Problem(
            path, json_line(text, keys), what, "remove it from what the script prints, and record again"
        )
    elif len(keys) > DEEPEST:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _identity(item, path, text, (*keys, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _identity(item, path, text, (*keys, index))
