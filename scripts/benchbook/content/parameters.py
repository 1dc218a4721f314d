"""Read the parameters that a script shows, and judge what may set them otherwise."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from itertools import product

from benchbook.content.arithmetic import names_in
from benchbook.content.identity import find
from benchbook.content.metadata import (
    RESERVED,
    ParameterValue,
    ScriptMetadata,
    is_parameter_name,
    is_parameter_value,
)
from benchbook.content.problems import Problem, did_you_mean
from benchbook.content.records import MOST_REPEATED

SAFE_VALUE = re.compile(r"[A-Za-z0-9_.+-]+\Z")
LONGEST_NAME = 200
# Seven times what any script has: each variant holds all of them.
MOST_PARAMETERS = 100
# So many characters of what was set are shown.
LONGEST_LINE = 1000
# Every record has the parameters that were set, as they are.
_NO_RECORD = "which can identify someone, so that no record may hold it"
_ANY = "take another value, or read it from a file that `inputs` names"
PLAIN = "give it a finite number, a string of whole characters, a boolean, None or a list of those"


def differs(value: ParameterValue, other: ParameterValue) -> bool:
    """Whether a script can tell the two apart: 1, 1.0 and True are equal, and not the same."""
    return repr(value) != repr(other)


def parameters_text(parameters: Mapping[str, ParameterValue]) -> str:
    """Parameters as Python would assign them, on one line."""
    return on_a_line(", ".join(f"{name} = {value!r}" for name, value in parameters.items()))


def on_a_line(text: str) -> str:
    """`text`, or its beginning where it is too long for one line of a page."""
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"


def axis_text(value: ParameterValue) -> str:
    """A value of an axis as variant names and references write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def shown_parameters(source: str, start: int, path: str) -> tuple[dict[str, ParameterValue], list[Problem]]:
    """What the `parameters` cell assigns, and what is wrong with it.

    Parameters:
        source: The code of that cell.
        start: The line of the file on which it begins.
        path: The file, for messages.

    """
    shown: dict[str, ParameterValue] = {}
    problems: list[Problem] = []
    for statement in ast.parse(source).body:
        line = start + statement.lineno - 1
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case _:
                fix = "leave only `name = literal` in that cell"
                problems.append(Problem(path, line, "the `parameters` cell holds more than parameters", fix))
                continue
        try:
            literal = ast.literal_eval(value)
        except (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
            literal = ()
        if not is_parameter_name(name):
            fix = "use ASCII letters, digits and underscores, 80 at most"
            problems.append(Problem(path, line, f"the parameter `{name}` cannot be referred to", fix))
        if not is_parameter_value(literal):
            fix = PLAIN
            problems.append(Problem(path, line, f"the parameter `{name}` is not a plain value", fix))
            continue
        if (found := _identifying(literal)) is not None:
            problems.append(
                Problem(path, line, f"the parameter `{name}` holds {found!r}, {_NO_RECORD}", _ANY)
            )
        shown[name] = literal
    return shown, problems


def override_problems(
    metadata: ScriptMetadata, shown: Mapping[str, ParameterValue], path: str
) -> Iterator[Problem]:
    """What is wrong with the values that tables of the head give to the parameters `shown`."""
    tables = [(f"on.{kind}", table) for kind, table in metadata.on.items()]
    tables += [("smallest", metadata.smallest)]
    for title, table in tables:
        for name, value in table.items():
            if name not in shown:
                what = f"[tool.benchbook.{title}] sets `{name}`, which is not a parameter"
                yield Problem(path, metadata.line_of(name), what, did_you_mean(name, shown, "parameter"))
            elif not is_parameter_value(value):
                what = f"[tool.benchbook.{title}] sets `{name}` to {value}, which is not a plain value"
                yield Problem(path, metadata.line_of(name), what, PLAIN)
    if metadata.repeats_on and "repeats" in shown:
        what = (
            "`repeats` of a kind of machine is the number of processes, and the script has such a parameter"
        )
        yield Problem(path, metadata.line_of("repeats"), what, "give the parameter another name")
    for key, expression in metadata.work.items():
        for name in sorted(names_in(expression) - set(shown)):
            what = f"the work `{key}` names `{name}`, which is not a parameter"
            yield Problem(path, metadata.line_of(key), what, did_you_mean(name, shown, "parameter"))
    yield from _size_problems(metadata, shown, path)
    environments = (metadata.environment, *(point.get("environment", {}) for point in metadata.matrix))
    given = (*metadata.on.values(), *metadata.matrix, *environments)
    said = ((name, _identifying(value)) for table in given for name, value in table.items())
    for name, found in dict.fromkeys(said):
        if found is not None:
            yield Problem(path, metadata.line_of(name), f"`{name}` is set to {found!r}, {_NO_RECORD}", _ANY)
    names: set[str] = set()
    for point in metadata.matrix:
        for axis, value in point.items():
            if axis in RESERVED and axis in shown:
                what = f"the matrix sweeps `{axis}`, which is not a parameter there, but is of the script"
                yield Problem(path, metadata.line_of(axis), what, "give the parameter another name")
            if axis in RESERVED and axis != "ranks":
                continue
            if axis != "ranks" and axis not in shown:
                what = f"the matrix sweeps `{axis}`, which is not a parameter"
                yield Problem(path, metadata.line_of(axis), what, did_you_mean(axis, shown, "parameter"))
            if not SAFE_VALUE.match(axis_text(value)):
                what = f"the matrix value {value!r} of `{axis}` cannot stand in a reference"
                yield Problem(path, metadata.line_of(axis), what, "use letters, digits and `_ . + -` only")
        name = ",".join(
            f"{axis}={axis_text(point[axis])}" for axis in point if axis == "ranks" or axis in shown
        )
        if name in names:
            what = f"two points of the matrix are called `{name or 'default'}`"
            fix = "tell them apart by a parameter, so that a page can refer to each"
            yield Problem(path, metadata.line_of("matrix"), what, fix)
        names.add(name)
        if len(name) > LONGEST_NAME:
            what = f"a point of the matrix is called by {len(name)} characters ({name[:40]}...)"
            fix = f"sweep fewer parameters at once, or name them shorter ({LONGEST_NAME} at most)"
            yield Problem(path, metadata.line_of("matrix"), what, fix)


def _identifying(value: object) -> str | None:
    """What in a value could identify a person or a machine; None if nothing does."""
    if isinstance(value, list):
        return next(filter(None, map(_identifying, value)), None)
    return find(value) if isinstance(value, str) else None


def _size_problems(
    metadata: ScriptMetadata, shown: Mapping[str, ParameterValue], path: str
) -> Iterator[Problem]:
    """The first variant that sets more than a record holds of what was set."""
    if len(shown) > MOST_PARAMETERS:
        what = f"the `parameters` cell sets {len(shown)}, and {MOST_PARAMETERS} are the most"
        yield Problem(path, 1, what, "leave out what nobody would set, or read a file that `inputs` names")
        return
    for table, point in product(({}, *metadata.on.values()), metadata.matrix or ({},)):
        swept = {axis: value for axis, value in point.items() if axis in shown}
        environment = metadata.environment | dict(point.get("environment", {}))
        for name, held in (("parameters", {**shown, **table, **swept}), ("environment", environment)):
            if (size := len(json.dumps(held, default=str))) > MOST_REPEATED:
                what = f"{name} of {size} characters, and a record holds {MOST_REPEATED} at most"
                fix = "set shorter texts, or read a file that `inputs` names"
                yield Problem(path, metadata.line_of(name), what, fix)
                return
