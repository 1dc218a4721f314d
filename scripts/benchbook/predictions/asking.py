"""What the predictor is asked of each variant of a declared script on each machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from benchbook.content.formats import json_text
from benchbook.content.metadata import ParameterValue
from benchbook.content.parameters import axis_text
from benchbook.content.prediction_declarations import (
    Case,
    Declaration,
    DeclaredScript,
    Layer,
    OneOrMore,
)
from benchbook.content.predictions import RESERVED, is_parameter
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.references import UnresolvedError, unit_of
from benchbook.content.script import Script, Variant, machine_kinds, read_script
from benchbook.content.validation import UNKNOWN_KEY, adapter, shape_errors
from benchbook.machines.gpus import described, examples
from benchbook.predictor.room import room_on
from benchbook.predictor.workload import WORKLOADS, UnpredictableError

MODELS = "models"
# The kind of question whose model is the script's own.
RUN = "run"
# A setting that stands in a JSON file which the script reads: `{ file = "x.json", at = ["$axis", "key"] }`.
IN_A_FILE = {"file", "at"}
# Where in a script's declaration something is said: () for its own table, ("case", 0) for its first case.
Place = tuple[str | int, ...]
Layers = Sequence[tuple[Place, Layer]]


@dataclass(frozen=True)
class Question:
    """What the predictor is asked of one variant on one machine.

    Parameters:
        script: "guide/script.py".
        variant: Its name.
        machine: Where it would run.
        device: "cpu" or "cuda": whose kernels and allocator.
        parameters: With which values the script would run there.
        model: The configuration, as in a config.json; empty where the script makes its own.
        kind: "training", "inference" or "run".
        workload: Its fields.
        values: By metric or meter ("train.allocated_peak"): the quantities whose sum stands for it.
        room: Bytes that torch's allocator can take of the machine's device; None where that is not known.
        path: Where the script lies.
    """

    script: str
    variant: str
    machine: str
    device: Literal["cpu", "cuda"]
    parameters: dict[str, ParameterValue]
    model: dict[str, Any]
    kind: str
    workload: dict[str, Any]
    values: dict[str, tuple[str, ...]]
    room: int | None = None
    path: Path | None = None


@dataclass(frozen=True)
class Asked:
    """Everything that the declarations ask, and what is wrong with them."""

    questions: tuple[Question, ...]
    problems: tuple[Problem, ...]

    def of(self, script: str, machine: str) -> dict[str, Question]:
        """What is asked of `script` on `machine`, by variant."""
        return {q.variant: q for q in self.questions if (q.script, q.machine) == (script, machine)}


def ask(project: Project, declarations: Sequence[Declaration]) -> Asked:
    """The questions of all `declarations`, in their order."""
    questions: list[Question] = []
    problems: list[Problem] = []
    rooms: dict[str, int | None] = {}
    for declaration in declarations:
        general, unknown = _machines(project, declaration, declaration.content.machines, ("machines",))
        problems += unknown
        for index, entry in enumerate(declaration.content.script):
            machines = general
            if entry.machines is not None:
                own = ("script", index, "machines")
                machines, unknown = _machines(project, declaration, entry.machines, own)
                problems += unknown
            rooms |= {name: room_on_machine(project, name) for name in machines if name not in rooms}
            reader = _Reader(project, declaration, index, entry, rooms)
            questions += reader.questions(machines)
            problems += dict.fromkeys(reader.problems)
    return Asked(tuple(questions), tuple(problems))


def _machines(
    project: Project, declaration: Declaration, names: Sequence[str], keys: Place
) -> tuple[dict[str, tuple[str, ...]], list[Problem]]:
    """What each machine of `names`, declared below `keys`, is; and those that are none."""
    kinds = {name: kinds_of_machine(project, name) for name in names}
    known = [*project.machines, *examples()]
    problems = []
    for name, found in kinds.items():
        if found is None:
            what = f"there is no machine `{name}`, and no data sheet of such a GPU"
            line = declaration.line(*keys)
            problems.append(Problem(declaration.path, line, what, did_you_mean(name, known, "machine")))
    return {name: found for name, found in kinds.items() if found}, problems


def kinds_of_machine(project: Project, machine: str) -> tuple[str, ...] | None:
    """What a machine is (`machine_kinds`): by machine.json, else by data sheet; None if it has neither."""
    table = _description(project, machine)
    try:
        return machine_kinds(str(table["kind"]), machine) if table else None
    except (ValueError, KeyError, TypeError):
        return None  # reported with the records


def room_on_machine(project: Project, machine: str) -> int | None:
    """The bytes that torch's allocator can take of a machine's device; None where that is not known.

    Of a machine that a publication names it is not: its software's context was another.
    """
    table = _description(project, machine)
    try:
        return room_on(project, machine, table).available if table and not table.get("published") else None
    except UnpredictableError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None  # reported with the records


def _description(project: Project, machine: str) -> dict[str, Any] | None:
    """What a machine's machine.json says, or a data sheet would; None if it has neither."""
    try:
        table: dict[str, Any] = json.loads(json_text(project.records / machine / "machine.json"))
        return table
    except FileNotFoundError:
        return described(machine)
    except (OSError, RecursionError, ValueError):
        return None  # reported with the records


class _Reader:
    """Reads one script of a declaration; collects what is wrong with it."""

    def __init__(
        self,
        project: Project,
        declaration: Declaration,
        index: int,
        entry: DeclaredScript,
        rooms: Mapping[str, int | None],
    ) -> None:
        self.project = project
        self.rooms = rooms
        self.declaration = declaration
        self.index = index
        self.entry = entry
        self.problems: list[Problem] = []
        # The inputs of the script that hold settings, by name, each read once.
        self._inputs: dict[str, Any] = {}

    def questions(self, machines: Mapping[str, tuple[str, ...]]) -> Iterator[Question]:
        """What is asked of the script on each of `machines` that it can run on."""
        reference = f"{self.declaration.guide}/{self.entry.name}"
        path = self.project.snippets / reference
        if not path.is_file():
            known = [one.name for one in path.parent.glob("*.py")]
            fix = did_you_mean(self.entry.name, known, "script")
            self._problem((), "name", f"there is no script `{reference}`", fix)
            return
        try:
            script = read_script(path, self.project.root)
        except BenchbookError:
            return  # reported with the scripts
        self._inputs = dict.fromkeys(script.metadata.inputs)
        layers: list[tuple[Place, Layer]] = [((), self.entry)]
        layers += [(("case", place), case) for place, case in enumerate(self.entry.case)]
        for place, layer in layers:
            self._check_layer(script, place, layer)
        if self.problems:
            return
        for machine, kinds in machines.items():
            if not script.runs_on(kinds):
                continue
            for variant in script.variants(kinds):
                if not _matches(self.entry, variant):
                    continue
                asked = [
                    one for one in layers if not isinstance(one[1], Case) or _holds(one[1], variant, kinds)
                ]
                if not any(isinstance(layer, Case) and layer.skip for _, layer in asked):
                    question = self._question(script, variant, machine, kinds, asked)
                    if question is not None:
                        yield question

    def _check_layer(self, script: Script, place: Place, layer: Layer) -> None:
        variants = script.variants(())
        axes = {axis for variant in variants for axis in variant.axes}
        for axis, wanted in layer.where.items():
            if axis not in axes:
                what = f"`{script.reference}` does not sweep `{axis}`"
                self._problem(place, ("where", axis), what, did_you_mean(axis, axes, "axis"))
                continue
            known = {axis_text(variant.at(axis)) for variant in variants}
            for value in _texts(wanted) - known:
                what = f"`{script.reference}` has no variant with {axis}={value}"
                fix = f"use one of its values: {', '.join(sorted(known))}"
                self._problem(place, ("where", axis), what, fix)
        for name in layer.values:
            cell, _, meter = name.partition(".")
            try:
                unit, device = unit_of(script, cell, meter or None)
            except UnresolvedError as error:
                self._problem(place, ("values", name), error.what, error.fix)
                continue
            if unit.dimension != "memory" or not device:
                what = f"`{name}` of `{script.reference}` counts no bytes of the device's memory"
                fix = 'name what the allocator counts, or a metric with `memory = "device"`'
                self._problem(place, ("values", name), what, fix)
            elif unit.symbol != "B":
                what = f"`{name}` of `{script.reference}` is in {unit.symbol}"
                fix = "declare the metric in B: a page shows it in any unit of memory"
                self._problem(place, ("values", name), what, fix)

    def _question(
        self,
        script: Script,
        variant: Variant,
        machine: str,
        kinds: Sequence[str],
        layers: Layers,
    ) -> Question | None:
        before = len(self.problems)
        used = [kind for kind in WORKLOADS if any(getattr(layer, kind) for _, layer in layers)]
        model = self._model(variant, layers) if used != [RUN] else {}
        if len(used) != 1:
            what = f"variant {variant.name} is asked as {' and '.join(used) or 'nothing'}"
            self._problem((), "name", what, "give it `training`, `inference` or `run`, one of them")
            return None
        (kind,) = used
        workload = {
            key: value for key, value in self._merged(kind, variant, layers).items() if value is not None
        }
        if kind == RUN:
            workload["code"] = self._code(script)
        if len(self.problems) > before:
            return None
        try:
            validator = adapter(WORKLOADS[kind])
            said = validator.dump_python(validator.validate_python(workload), mode="json")
        except UnpredictableError as error:
            self._problem((), "name", f"{kind}: {error.what}", error.fix)
            return None
        except ValidationError as error:
            for keys, wrong, message in shape_errors(error):
                key = str(keys[0]) if keys else ""
                known = [one.name for one in fields(WORKLOADS[kind])]
                unknown = wrong == UNKNOWN_KEY
                fix = did_you_mean(key, known, "field") if unknown else "see `benchbook predict --help`"
                self._problem(_layer_of(layers, kind, key), (kind, key), f"{kind}.{key}: {message}", fix)
            return None
        values: dict[str, tuple[str, ...]] = {}
        for _, layer in layers:
            values |= layer.values
        if not values:
            what = f"nothing of variant {variant.name} is said to be predicted"
            self._problem((), "name", what, "give it `values`")
        if len(self.problems) > before or model is None:
            return None
        device: Literal["cpu", "cuda"] = "cpu" if "cpu" in kinds else "cuda"
        if device == "cpu":
            values = {name: parts for name, parts in values.items() if RESERVED not in parts}
        # A default is said only below a field that is set: `targets` of `lora`; and what is younger than the
        # first predictions not even there.
        asked = {key: said[key] for key in workload}
        if isinstance(asked.get("lora"), dict) and not asked["lora"]["four_bit"]:
            asked["lora"] = {key: value for key, value in asked["lora"].items() if key != "four_bit"}
        parameters = dict(variant.parameters)
        room = self.rooms[machine] if device == "cuda" else None
        path = self.project.snippets / script.reference
        return Question(
            script.reference,
            variant.name,
            machine,
            device,
            parameters,
            model,
            kind,
            asked,
            values,
            room,
            path,
        )

    def _code(self, script: Script) -> str:
        """`sha256:...` of what a script computes and of its inputs."""
        folder = self.project.snippets / self.declaration.guide
        whole = hashlib.sha256(script.code_digest.encode())
        for name in sorted(script.metadata.inputs):
            path = folder / name
            whole.update(path.read_bytes() if path.is_file() else b"")
        return f"sha256:{whole.hexdigest()}"

    def _model(self, variant: Variant, layers: Layers) -> dict[str, Any] | None:
        named = [(place, layer.model) for place, layer in layers if layer.model]
        config: dict[str, Any] = {}
        if named:
            place, name = named[-1]
            path = self.project.snippets / MODELS / f"{name}.json"
            try:
                config = dict(json.loads(json_text(path)))
            except (OSError, ValueError, TypeError, RecursionError):
                known = [one.stem for one in path.parent.glob("*.json")]
                what = f"there is no model `{name}` in snippets/{MODELS}"
                self._problem(place, "model", what, did_you_mean(str(name), known, "model"))
                return None
        config |= self._merged("config", variant, layers)
        if not isinstance(config.get("model_type"), str):
            fix = "name one of snippets/models by `model`, or give `config` a `model_type`"
            self._problem((), "name", "its model has no `model_type`", fix)
            return None
        return config

    def _merged(self, table: str, variant: Variant, layers: Layers) -> dict[str, Any]:
        """The settings of `table` over all layers, with the script's parameters in place of their names."""
        merged: dict[str, Any] = {}
        for place, layer in layers:
            for key, value in getattr(layer, table).items():
                if is_parameter(value):
                    name = value.removeprefix("$")
                    if name not in variant.parameters:
                        what = f"`{value}` is not a parameter of `{self.entry.name}`"
                        self._problem(
                            place, (table, key), what, did_you_mean(name, variant.parameters, "parameter")
                        )
                        continue
                    value = variant.parameters[name]
                if isinstance(value, dict) and set(value) == IN_A_FILE:
                    value = self._read_from_file(value, variant, place, (table, key))
                merged[key] = value
        return merged

    def _read_from_file(
        self, named: Mapping[str, Any], variant: Variant, place: Place, keys: tuple[str, str]
    ) -> Any:
        """What a JSON file that the script reads holds below the keys of `at`; None if there is nothing."""
        name = str(named["file"])
        if name not in self._inputs:
            what = f"`{name}` is not among the inputs of `{self.entry.name}`"
            self._problem(place, keys, what, did_you_mean(name, self._inputs, "input"))
            return None
        try:
            if self._inputs[name] is None:
                path = self.project.snippets / self.declaration.guide / name
                self._inputs[name] = json.loads(json_text(path))
            found = self._inputs[name]
            for key in named["at"]:
                found = found.get(variant.parameters[key.removeprefix("$")] if is_parameter(key) else key, {})
        except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
            what = f"`{name}` cannot be read at {named['at']} ({error})"
            self._problem(place, keys, what, "name the keys of objects, or parameters whose values are keys")
            return None
        return found or None

    def _problem(self, place: Place, keys: str | tuple[str, ...], what: str, fix: str) -> None:
        below = (keys,) if isinstance(keys, str) else keys
        line = self.declaration.line("script", self.index, *place, *below)
        self.problems.append(Problem(self.declaration.path, line, what, fix))


def _layer_of(layers: Layers, table: str, key: str) -> Place:
    """The place of the layer that sets a key last."""
    return next((place for place, layer in reversed(layers) if key in getattr(layer, table)), ())


def _texts(wanted: OneOrMore) -> set[str]:
    """The axis values of a `where`, as variants are called by them."""
    return {axis_text(value) for value in (wanted if isinstance(wanted, list) else [wanted])}


def _matches(layer: Layer, variant: Variant) -> bool:
    return all(axis_text(variant.at(axis)) in _texts(wanted) for axis, wanted in layer.where.items())


def _holds(case: Case, variant: Variant, kinds: Sequence[str]) -> bool:
    return _matches(case, variant) and (case.on is None or case.on in kinds)
