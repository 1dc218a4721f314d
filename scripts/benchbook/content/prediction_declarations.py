"""Read `predictions.toml`: which scripts of a guide are predicted, for what, and what stands for what.

    machines = ["nvidia-h200-141gb", "cpu-2core-24gb"]    # GPUs by data sheet, machines that have records

    [[script]]
    name = "remedies.py"
    model = "bert-large-uncased"                  # snippets/models/bert-large-uncased.json,
    config = { num_hidden_layers = "$layers" }    # with other values of a config.json, or these alone
    training = { batch = "$batch_size", sequence = "$sequence_length", optimizer = "adamw_fused" }
    values = { "train.allocated_peak" = "peak_allocated" }

    [[script.case]]                               # what is otherwise in some variants, or on some machines
    where = { change = "checkpointing" }          # axis values, one or a list; left away: all variants
    on = "cpu"                                    # a kind ("accelerator", "cpu", "cuda") or a machine; or all
    training = { checkpointing = true }           # replaces these keys; later cases win over earlier ones

`"$layers"` is the script's parameter, with the value it has in the variant on the machine. `inference`, in
place of `training`, has the fields of an inference. Beside `name`, `machines` replaces those of the file, and
`where` leaves only some variants. `skip = "why"` in a case says why the predictor is not asked.

`run = { until = "train" }` in place of both has no model: the script's own lines are run up to that cell, on
tensors without values. They read none of them, and call what is trained `model`.

A setting may stand in a JSON file among the script's inputs: `adapters = { file = "methods.json", at =
["$method", "adapters"] }` is what lies there below these keys, or nothing.

`values` names by metric (`peak`) or meter (`train.allocated_peak`) what the script yields in bytes of the
device's memory, and what of a prediction stands for it: `peak_allocated`, `peak_reserved` (no CPU has it),
`categories.weights` (at the peak), `moments.backward.peak`, `moments.backward.held` (at its end), or a list,
which is added up. An item such as `#first_tensor.device_memory` is what the same variant measured on the
machine: what no rule gives, such as the context of a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError

from benchbook.content.formats import Limit, MachineName, Many, Name, Short, Some, Stored, Value
from benchbook.content.positions import parse_toml, toml_line
from benchbook.content.predictions import ValueName, parts_of
from benchbook.content.problems import BenchbookError, Problem, unreadable
from benchbook.content.project import Project
from benchbook.content.validation import adapter, shape_errors

FILE = "predictions.toml"
LIKE = "see the head of scripts/benchbook/content/prediction_declarations.py for what it may hold"

AxisValue = Short | Value
OneOrMore = AxisValue | Annotated[list[AxisValue], Limit(min_length=1)]
Stands = Annotated[tuple[str, ...], BeforeValidator(parts_of)]


# Every variant of a script is asked of each machine, and looks at each case.
MOST_MACHINES, MOST_CASES = 20, 100
Machines = Annotated[Some[MachineName], Limit(max_length=MOST_MACHINES)]


@dataclass(frozen=True, kw_only=True)
class Layer(Stored):
    """What a script and each of its cases may say."""

    where: dict[Name, OneOrMore] = field(default_factory=dict)
    model: Annotated[str, Limit(pattern=r"^[a-z0-9][a-z0-9._-]*$")] | None = None
    config: dict[Name, Any] = field(default_factory=dict)
    training: dict[Name, Any] = field(default_factory=dict)
    inference: dict[Name, Any] = field(default_factory=dict)
    run: dict[Name, Any] = field(default_factory=dict)
    values: dict[ValueName, Stands] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Case(Layer):
    """What is otherwise in some variants, or on some machines."""

    on: MachineName | None = None
    skip: Annotated[str, Limit(min_length=3)] | None = None


@dataclass(frozen=True, kw_only=True)
class DeclaredScript(Layer):
    """A script of the guide, and what the predictor is asked of it."""

    name: Annotated[str, Limit(pattern=r"^[a-z][a-z0-9_]*\.py$")]
    machines: Machines | None = None
    case: Annotated[Many[Case], Limit(max_length=MOST_CASES)] = ()


@dataclass(frozen=True)
class DeclarationFile(Stored):
    """The whole file."""

    machines: Machines
    script: Annotated[Some[DeclaredScript], Limit(max_length=MOST_CASES)]


@dataclass(frozen=True)
class Declaration:
    """A predictions.toml.

    Parameters:
        path: The file, relative to the project.
        guide: The guide whose it is.
        text: Its text, to find lines in.
        content: What it says.
    """

    path: str
    guide: str
    text: str
    content: DeclarationFile

    def line(self, *keys: str | int) -> int:
        """The line on which what lies below `keys` is said, or one near it."""
        return toml_line(self.text, keys)


def load_declarations(project: Project) -> tuple[list[Declaration], list[Problem]]:
    """Every declaration of the project that is well formed, and what is wrong with the others."""
    found: list[Declaration] = []
    problems: list[Problem] = []
    for path in sorted(project.snippets.glob(f"*/{FILE}")):
        shown = project.relative(path)
        try:
            found.append(parse_declaration(path.read_text("utf-8"), shown, path.parent.name))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(unreadable(shown, error))
        except BenchbookError as error:
            problems += error.problems
    return found, problems


def parse_declaration(text: str, path: str, guide: str) -> Declaration:
    """The declaration that `text` is.

    Raises:
        BenchbookError: It is none; carries everything that is wrong with its shape.
    """
    table = parse_toml(text, path)
    try:
        content = adapter(DeclarationFile).validate_python(table)
    except ValidationError as error:
        raise BenchbookError(*_problems(error, path, text)) from None
    names = [script.name for script in content.script]
    for index, name in enumerate(names):
        if name in names[:index]:
            what = f"`{name}` is there twice"
            line = toml_line(text, ("script", index, "name"))
            raise BenchbookError(Problem(path, line, what, "make one of the two, with cases"))
    return Declaration(path, guide, text, content)


def _problems(error: ValidationError, path: str, text: str) -> Iterator[Problem]:
    seen: set[tuple[int, str]] = set()
    for loc, kind, message in shape_errors(error):
        # Pydantic names the kinds that a value could have been behind the keys that the file has.
        keys = tuple(key for key in loc if isinstance(key, int) or re.fullmatch(r"[\w.-]+", key))
        line = toml_line(text, keys)
        where = ".".join(str(key) for key in keys if not isinstance(key, int)) or "the file"
        if (line, kind) not in seen:
            seen.add((line, kind))
            yield Problem(path, line, f"{where}: {message}", LIKE)
