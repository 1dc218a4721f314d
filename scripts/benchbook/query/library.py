"""The scripts, records and machines of a project, each read once and kept until its file changes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from benchbook.content.formats import from_table, json_text
from benchbook.content.machines import MachineDescription
from benchbook.content.predictions import PredictionRecord, load_predictions
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.records import Record, is_published, load_record, shown_order
from benchbook.content.references import UnresolvedError
from benchbook.content.script import Script, Variant, machine_kinds, read_script
from benchbook.content.traces import ProfilerTrace, TraceEntry, load_trace
from benchbook.machines.gpus import described
from benchbook.query.freshness import Verdict, input_digests, judge_record

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True)
class Machine:
    """A machine as pages show it.

    Parameters:
        name: Its folder below `snippets/records/`.
        kind: cpu, cuda, rocm, xpu or mps.
        title: What it is called in a sentence.
        short: What it is called beside a number.
        details: The whole of machine.json; of a GPU that is only predicted for, what its data sheet says.
        measured: Whether it has records; without them, all that is known of it is predicted.
    """

    name: str
    kind: str
    title: str
    short: str
    details: dict[str, Any]
    measured: bool = True

    @property
    def has_accelerator(self) -> bool:
        """Whether it has more than a CPU."""
        return self.kind != "cpu"

    @property
    def published(self) -> bool:
        """Whether its figures are quoted from publications: none of them was measured here."""
        return is_published(self.name)

    @property
    def kinds(self) -> tuple[str, ...]:
        """What it is, as a script's `needs` and `on` name it."""
        return machine_kinds(self.kind, self.name)


@dataclass(frozen=True, eq=False)
class Cache(Generic[K, T]):
    """What a library finds once in a build: each of the type T, told apart by a key of the type K."""

    name: str


_SCRIPTS = Cache[str, Script]("scripts")
_RECORDS = Cache[tuple[str, str], Record | None]("records")
_PREDICTIONS = Cache[tuple[str, str], PredictionRecord | None]("predictions")
_MACHINES = Cache[None, dict[str, Machine]]("machines with records")
_KNOWN_MACHINES = Cache[None, dict[str, Machine]]("machines with records or predictions")
_RECORDED_ON = Cache[str, tuple[Machine, ...]]("machines with a record of a script")
_PREDICTED_ON = Cache[str, tuple[Machine, ...]]("machines with predictions of a script")
_VARIANTS = Cache[tuple[str, str], dict[str, Variant]]("variants")
_INPUTS = Cache[str, dict[str, str]]("digests of inputs")


class Library:
    """What a project holds, read lazily and looked at once per build.

    Parameters:
        project: Where to read.
        shown_machine: The machine to show in place of the reference machine, if any.
    """

    def __init__(self, project: Project, shown_machine: str = "") -> None:
        self.project = project
        self.shown_machine = shown_machine
        self._read_files: dict[Path, tuple[int, Any]] = {}
        self._known: dict[Cache[Any, Any], dict[Any, Any]] = {}

    def refresh(self, shown_machine: str) -> None:
        """Begin a new build: look at the files anew, and show `shown_machine` instead of the reference."""
        self.shown_machine = shown_machine
        self._known.clear()

    def script(self, reference: str) -> Script:
        """The script "guide/script.py".

        Raises:
            UnresolvedError: There is none of that name.
            BenchbookError: It is not well formed.
        """
        return self.once(_SCRIPTS, reference, lambda: self._script(reference))

    def record(self, machine: str, script: str) -> Record | None:
        """What `script` yielded on `machine`; None if it was never recorded there.

        Raises:
            BenchbookError: The file is not a record.
        """
        return self.once(_RECORDS, (machine, script), lambda: self._record(machine, script))

    def trace(self, machine: str, script: str, name: str, entry: TraceEntry) -> ProfilerTrace:
        """The trace `name` of `script` on `machine`, which a record describes by `entry`.

        Raises:
            BenchbookError: It is not there, or is not what the record describes.
        """
        path = self.project.trace_path(machine, script, name, entry.sha256)
        shown = self.project.relative(path)
        if not path.is_file():
            fix = "restore it, or record its variant again"
            raise BenchbookError(Problem(shown, 1, f"is not there, and the record of {script} names it", fix))
        return self.read(path, lambda _: load_trace(path, shown, entry))

    @property
    def machines(self) -> dict[str, Machine]:
        """Every machine that has records, by name: the maintainers', then others', last what is quoted."""
        return self.once(_MACHINES, None, self._machines)

    def machines_with(self, script: str) -> tuple[Machine, ...]:
        """The machines that have a record of `script`, in a stable order."""
        return self.once(
            _RECORDED_ON,
            script,
            lambda: tuple(
                m for m in self.machines.values() if os.path.isfile(self.project.record_path(m.name, script))
            ),
        )

    def predictions(self, machine: str, script: str) -> PredictionRecord | None:
        """What was predicted of `script` on `machine`; None if nothing was.

        Raises:
            BenchbookError: The file holds no predictions.
        """
        return self.once(_PREDICTIONS, (machine, script), lambda: self._predictions(machine, script))

    def predicted_on(self, script: str) -> tuple[Machine, ...]:
        """The machines on which something of `script` was predicted, in a stable order."""
        return self.once(_PREDICTED_ON, script, lambda: self._predicted_on(script))

    def shown_on(self, script: str) -> tuple[Machine, ...]:
        """The machines that have a record of `script`, then those on which it was only predicted."""
        measured = self.machines_with(script)
        return (*measured, *(machine for machine in self.predicted_on(script) if machine not in measured))

    def reference_machine(self, guide: str) -> str:
        """The name of the machine that the pages of `guide` show by default."""
        return self.shown_machine or self.project.config.reference_for(guide)

    def machine_for(self, guide: str, script: str) -> Machine:
        """The machine to show `script` on in `guide`: the reference machine if it has a record, else another.

        Quoted figures show where a block is pinned to them or a reader chooses them, not for want of others.

        Raises:
            UnresolvedError: It was recorded on no machine.
        """
        recorded = {machine.name: machine for machine in self.machines_with(script) if not machine.published}
        wanted = (self.reference_machine(guide), self.project.config.reference_for(guide))
        name = next((name for name in (*wanted, *recorded) if name in recorded), None)
        if name is None:
            fix = f"record it: benchbook record {script}"
            raise UnresolvedError(f"`{script}` has no record on any machine", fix)
        return recorded[name]

    def first_machine(self, guide: str, script: str) -> Machine:
        """The machine of `machine_for`; where `script` was recorded on none, one on which it was predicted.

        Raises:
            UnresolvedError: It was neither recorded nor predicted.
        """
        try:
            return self.machine_for(guide, script)
        except UnresolvedError:
            predicted = {machine.name: machine for machine in self.predicted_on(script)}
            if not predicted:
                raise
            return predicted.get(self.reference_machine(guide)) or next(iter(predicted.values()))

    def pinned_machine(self, name: object) -> Machine | None:
        """The machine that a block shows whatever a reader chooses, by `name`; None if it names none.

        Raises:
            UnresolvedError: There is none of that name.
        """
        if name is None:
            return None
        known = self._known_machines()
        if not isinstance(name, str) or name not in known:
            raise UnresolvedError(f"there is no machine `{name}`", did_you_mean(str(name), known, "machine"))
        return known[name]

    def variant_on(self, script: Script, name: str, machine: Machine) -> Variant:
        """The variant called `name` with the parameters it has on `machine`."""
        variants = self.once(
            _VARIANTS,
            (script.reference, machine.name),
            lambda: {variant.name: variant for variant in script.variants(machine.kinds)},
        )
        return variants[name]

    def verdict(self, script: Script, variant: Variant, record: Record | None) -> Verdict:
        """Whether `record` still describes `variant`, as it runs on the record's machine now."""
        folder = self.project.snippets / script.guide
        inputs = self.once(_INPUTS, script.reference, lambda: input_digests(script, folder))
        return judge_record(script, variant, record, inputs)

    def once(self, cache: Cache[K, T], key: K, find: Callable[[], T]) -> T:
        """What `find` gives, asked for once in this build.

        Parameters:
            cache: What is found.
            key: Which one of its kind.
            find: Finds it.
        """
        known = self._known.setdefault(cache, {})
        if key not in known:
            known[key] = find()
        found: T = known[key]
        return found

    def _script(self, reference: str) -> Script:
        # Path.is_file raises where a name is longer than any that a file can have.
        path = self.project.snippets / reference
        if not re.fullmatch(r"[A-Za-z0-9_-]+/[A-Za-z0-9_-]+\.py", reference) or not os.path.isfile(path):
            what = f"there is no script `{reference}`"
            raise UnresolvedError(what, did_you_mean(reference, self.project.scripts(), "script"))
        return self.read(path, lambda _: read_script(path, self.project.root))

    def _machines(self) -> dict[str, Machine]:
        # Of several that a script was recorded on, pages show the first.
        names = sorted(self.project.machines, key=shown_order)
        return {name: self._machine(name) for name in names}

    def _record(self, machine: str, script: str) -> Record | None:
        path = self.project.record_path(machine, script)
        if not os.path.isfile(path):
            return None
        return self.read(path, lambda _: load_record(path, self.project.relative(path)))

    def _predictions(self, machine: str, script: str) -> PredictionRecord | None:
        path = self.project.prediction_path(machine, script)
        if not os.path.isfile(path):
            return None
        return self.read(path, lambda _: load_predictions(path, self.project.relative(path)))

    def _predicted_on(self, script: str) -> tuple[Machine, ...]:
        known = self._known_machines().values()
        return tuple(m for m in known if os.path.isfile(self.project.prediction_path(m.name, script)))

    def _known_machines(self) -> dict[str, Machine]:
        """The machines that have records, and the GPUs that have predictions alone."""
        return self.once(_KNOWN_MACHINES, None, lambda: self.machines | self._unmeasured())

    def _unmeasured(self) -> dict[str, Machine]:
        sheets = {name: described(name) for name in self.project.unmeasured}
        return {
            name: Machine(name, sheet["kind"], sheet["title"], sheet["short"], sheet, measured=False)
            for name, sheet in sheets.items()
            if sheet is not None
        }

    def _machine(self, name: str) -> Machine:
        path = self.project.records / name / "machine.json"
        try:
            table = json.loads(json_text(path))
            found = from_table(MachineDescription, table)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"does not describe a machine ({error})"
            fix = "restore the file, or record on that machine again"
            raise BenchbookError(Problem(self.project.relative(path), 1, what, fix)) from error
        return Machine(name, found.kind, found.title or name, found.short or found.title or name, table)

    def read(self, path: Path, load: Callable[[Path], T]) -> T:
        """What `load` makes of a file, again only once it has changed; each file is read in one way."""
        stamp = path.stat().st_mtime_ns
        kept = self._read_files.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._read_files[path] = (stamp, load(path))
        value: T = kept[1]
        return value


def found_elsewhere(
    first: Machine, machines: Iterable[Machine], find: Callable[[Machine], T | None]
) -> list[tuple[Machine, T]]:
    """What is found on each of `machines` but the first; raises what `find` raises on any of them."""
    return [(one, more) for one in machines if one != first and (more := find(one)) is not None]
