"""Find what lies between two revisions: what moved, and records that came or went stale."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from benchbook.checking.status import StatusRow, script_status
from benchbook.content.formats import Limit, Stored
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import Record, load_record
from benchbook.content.revisions import commit_of, laid_out
from benchbook.content.script import Script, read_script
from benchbook.content.validation import (
    adapter,
    machine_problems,
    prediction_problems,
    read_json,
    record_problems,
)
from benchbook.contributing.benchmark_results import BenchmarkResult, load_results
from benchbook.contributing.shortening import shortened
from benchbook.query.freshness import kinds_of
from benchbook.query.judging import claims_of, judgements
from benchbook.query.library import Library
from benchbook.statistics.differences import compared

# What is larger is not read: whoever sends a change writes its report. What is written stays below.
LARGEST_REPORT = 2**20
# So many items of a list are written; claims that moved all are, as long as there is room.
MOST_LISTED = 500
# So many characters of a name or a reason are.
LONGEST_WORD = 160
# The lists of a report, what matters most first: the last are the first to be cut.
CLAIMS = "claims"
LISTS = (
    CLAIMS,
    "directions",
    "changes",
    "undecided",
    "predictions",
    "stale",
    "fresh",
    "came",
    "went",
    "benchmarks",
    "problems",
)

# Behind the quantity of a prediction that was made once a blind one had been put to the test.
ANEW = ", anew"

Tally = Annotated[int, Limit(ge=0, le=10**9)]


@dataclass(frozen=True)
class Change(Stored):
    """A number that is not what it was, or of which too few samples tell.

    Parameters:
        machine: Where it was measured.
        script: "guide/script.py".
        variant: Which of its variants.
        quantity: `metric` or `cell.meter`.
        unit: Of both numbers.
        before: Its median at the base.
        after: Its median at the head.
        ratio: `after / before`, None where that is none.
        interval: 95 % of it, None where the quantity does not scatter.
    """

    machine: str
    script: str
    variant: str
    quantity: str
    unit: str
    before: float
    after: float
    ratio: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class PredictionChange(Stored):
    """A prediction that pages show and that is another; None where there was none, or is none now.

    Parameters:
        machine: What it is of.
        script: "guide/script.py".
        variant: Which of its variants.
        quantity: `metric` or `cell.meter`; with ", anew" behind it, of what was predicted once a blind
            prediction had been put to the test.
        before: Bytes at the base.
        after: Bytes at the head.
    """

    machine: str
    script: str
    variant: str
    quantity: str
    before: int | None
    after: int | None


@dataclass(frozen=True)
class RecordChange(Stored):
    """A variant on a machine that has come, gone, gone stale or become fresh again, and why."""

    machine: str
    script: str
    variant: str
    why: str = ""


@dataclass(frozen=True)
class Moved(Stored):
    """A claim whose outcome on a machine is another; None where there was no such claim, or is none now."""

    claim: str
    machine: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Direction(Stored):
    """A metric of which a script calls another end the better one: tables and fronts turn, no number does.

    Parameters:
        script: "guide/script.py".
        metric: Which of its metrics.
        before: "lower", "higher" or None where neither was better.
        after: What it is now.
    """

    script: str
    metric: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class Timed(Stored):
    """What a benchmark of the package found before and after; None where it found nothing.

    Parameters:
        benchmark: Which, and what it was asked for.
        quantity: What was measured.
        machine: Where.
        unit: Of both numbers.
        before: At the base.
        after: At the head.
        bar: What it is to stay below, at the head if it is there.
    """

    benchmark: str
    quantity: str
    machine: str
    unit: str
    before: float | None
    after: float | None
    bar: float


@dataclass(frozen=True)
class ChangeReport(Stored):
    """What a change does to numbers and claims; all of it is data, none of it to be trusted as text.

    Parameters:
        base: The commit before.
        head: The commit after.
        claims: Those whose outcome on a machine is another.
        directions: Metrics whose better end is another.
        changes: Numbers that the samples show to have changed.
        undecided: Numbers that may have changed.
        predictions: Those that are another, the ones that were there before first.
        same: How many were measured again and are the same.
        came: Records that are new.
        went: Records that are gone.
        stale: Records that became stale.
        fresh: Records that are fresh again.
        problems: What cannot be read.
        benchmarks: Those of the package that found something else.
        left_out: How many more there are than a list holds, by its name.
    """

    base: str
    head: str
    claims: tuple[Moved, ...] = ()
    directions: tuple[Direction, ...] = ()
    changes: tuple[Change, ...] = ()
    undecided: tuple[Change, ...] = ()
    predictions: tuple[PredictionChange, ...] = ()
    same: Tally = 0
    came: tuple[RecordChange, ...] = ()
    went: tuple[RecordChange, ...] = ()
    stale: tuple[RecordChange, ...] = ()
    fresh: tuple[RecordChange, ...] = ()
    problems: tuple[str, ...] = ()
    benchmarks: tuple[Timed, ...] = ()
    left_out: dict[str, Tally] = field(default_factory=dict)

    def count(self, name: str) -> int:
        """How many of a list there are, those that were left out among them."""
        return len(getattr(self, name)) + self.left_out.get(name, 0)


T = TypeVar("T", Moved, PredictionChange)


@dataclass
class _Side:
    """What one revision holds."""

    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    scripts: dict[str, Script] = field(default_factory=dict)
    rows: dict[tuple[str, str, str], StatusRow] = field(default_factory=dict)
    verdicts: dict[tuple[str, str], str] = field(default_factory=dict)
    # By machine, script, variant and quantity.
    predicted: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    problems: set[str] = field(default_factory=set)
    benchmarks: dict[tuple[str, str, str], BenchmarkResult] = field(default_factory=dict)


def make_report(root: Path, base: str, head: str) -> ChangeReport:
    """What lies between two revisions of the repository at `root`.

    Raises:
        BenchbookError: One of them is none.
    """
    names = commit_of(root, base), commit_of(root, head)
    with laid_out(root, names[0]) as project:
        before = _read(project)
    with laid_out(root, names[1]) as project:
        after = _read(project)
    changes, undecided, same = _changes(before, after)
    old, new = _variants(before), _variants(after)
    return ChangeReport(
        *names,
        claims=tuple(_moved(before, after)),
        directions=tuple(_directions(before, after)),
        changes=tuple(changes),
        undecided=tuple(undecided),
        predictions=tuple(_predicted_otherwise(before, after)),
        same=same,
        came=tuple(RecordChange(*each) for each in sorted(new - old)),
        went=tuple(RecordChange(*each) for each in sorted(old - new)),
        stale=tuple(_turned(before, after, to_fresh=False)),
        fresh=tuple(_turned(before, after, to_fresh=True)),
        problems=tuple(sorted(after.problems - before.problems)),
        benchmarks=tuple(_timed(before, after)),
    )


def _read(project: Project) -> _Side:
    """Everything that can be read of a project; what cannot is a problem, not an end."""
    side = _Side()
    for reference, path in project.scripts().items():
        try:
            side.scripts[reference] = read_script(path, project.root)
        except BenchbookError as error:
            side.problems |= {str(problem) for problem in error.problems}
    for machine in project.machines:
        if found := _machine_problems(project, machine):
            side.problems |= {str(problem) for problem in found}
            continue
        for reference, script in side.scripts.items():
            record, wrong = _record(project, machine, reference)
            side.problems |= {str(problem) for problem in wrong}
            if record is not None:
                side.records[machine, reference] = record
            if not wrong:
                rows = script_status(project, script, machine, kinds_of(project, machine))
                side.rows |= {(row.machine, row.script, row.variant): row for row in rows}
    for path in sorted(project.predictions.glob("*/*/*.json")):
        _note_predictions(project, path, side)
    _judge_claims(project, side)
    try:
        side.benchmarks = {one.key: one for one in load_results(project.root)}
    except BenchbookError as error:
        side.problems |= {str(problem) for problem in error.problems}
    return side


def _note_predictions(project: Project, path: Path, side: _Side) -> None:
    """Note what a file of predictions says of each variant."""
    shown = project.relative(path)
    table, _, problems = read_json(path, shown)
    problems = problems or prediction_problems(table, shown)
    side.problems |= {str(problem) for problem in problems}
    if problems:
        return
    for variant, said in table["variants"].items():
        for mark, one in (("", said), (ANEW, said.get("anew"))):
            for name, value in one["values"].items() if one else ():
                side.predicted[table["machine"], table["script"], variant, f"{name}{mark}"] = value


def _judge_claims(project: Project, side: _Side) -> None:
    """Note the outcome of every claim on every machine that has measured it."""
    library = Library(project)
    try:
        claims = claims_of(library)
    except BenchbookError as error:
        side.problems |= {str(problem) for problem in error.problems}
        return
    side.problems |= {str(problem) for problem in claims.problems}
    for claim in claims.by_id.values():
        try:
            found = judgements(library, claim)
        except BenchbookError as error:
            side.problems |= {str(problem) for problem in error.problems}
            continue
        for judgement in found:
            if judgement.outcome != "not measured":
                side.verdicts[claim.id, judgement.machine.name] = judgement.outcome


def _machine_problems(project: Project, machine: str) -> list[Problem]:
    path = project.records / machine / "machine.json"
    shown = project.relative(path)
    table, _, problems = read_json(path, shown)
    return problems or machine_problems(table, shown)


def _record(project: Project, machine: str, reference: str) -> tuple[Record | None, list[Problem]]:
    path = project.record_path(machine, reference)
    if not path.is_file():
        return None, []
    shown = project.relative(path)
    table, _, problems = read_json(path, shown)
    problems = problems or record_problems(table, shown)
    if problems:
        return None, problems
    return load_record(path, shown), []


def _variants(side: _Side) -> set[tuple[str, str, str]]:
    return {
        (machine, script, variant)
        for (machine, script), record in side.records.items()
        for variant in record.variants
    }


def _changes(before: _Side, after: _Side) -> tuple[list[Change], list[Change], int]:
    """The numbers that moved, those that may have, and how many did not."""
    moved: list[Change] = []
    undecided: list[Change] = []
    same = 0
    for (machine, reference), new in after.records.items():
        old = before.records.get((machine, reference))
        if old is None or old == new:
            continue
        units = {
            name: metric.unit
            for side in (before, after)
            for name, metric in side.scripts[reference].metadata.metrics.items()
        }
        for variant in new.variants:
            if variant not in old.variants or old.variants[variant] == new.variants[variant]:
                continue
            for now, difference in compared(old.variants[variant], new.variants[variant], units):
                if difference.agreement == "same":
                    same += 1
                    continue
                # Of the time that each cell took nobody asked for enough samples.
                if difference.agreement == "undecided" and "." in now.name:
                    continue
                (moved if difference.agreement == "differs" else undecided).append(
                    Change(
                        machine,
                        reference,
                        variant,
                        now.name,
                        now.unit.symbol,
                        difference.before,
                        difference.after,
                        difference.ratio,
                        difference.interval,
                    )
                )
    return sorted(moved, key=_weight), sorted(undecided, key=_weight), same


def _weight(change: Change) -> tuple[Any, ...]:
    """By what a reader wants to see first: declared metrics, then by machine and script."""
    meter = "." in change.quantity
    return (meter, change.machine, change.script, change.variant, change.quantity)


def _turned(before: _Side, after: _Side, to_fresh: bool) -> Iterator[RecordChange]:
    for key, row in sorted(after.rows.items()):
        was = before.rows.get(key)
        if row.state == "missing" and (was is None or was.state == "missing"):
            continue
        if to_fresh and row.state == "fresh" and was is not None and was.state in {"stale", "invalid"}:
            yield RecordChange(*key, f"{was.state}: {was.reason}")
        if not to_fresh and row.state in {"stale", "invalid"} and (was is None or was.state != row.state):
            yield RecordChange(*key, f"{row.state}: {row.reason}")


def _moved(before: _Side, after: _Side) -> list[Moved]:
    """The claims whose outcome is another."""
    was, now = before.verdicts, after.verdicts
    return _otherwise([Moved(*key, was.get(key), now.get(key)) for key in sorted(was.keys() | now)])


def _predicted_otherwise(before: _Side, after: _Side) -> list[PredictionChange]:
    """The predictions that are another."""
    was, now = before.predicted, after.predicted
    return _otherwise(
        [PredictionChange(*key, was.get(key), now.get(key)) for key in sorted(was.keys() | now)]
    )


def _otherwise(found: Sequence[T]) -> list[T]:
    """What is another at the head: what has another value, then what has none now, then what is new."""
    moved = [one for one in found if one.before != one.after]
    return sorted(moved, key=lambda one: (one.before is None, one.after is None))


def _directions(before: _Side, after: _Side) -> Iterator[Direction]:
    """The metrics of a script, on both sides, of which it says otherwise what is better."""
    for reference in sorted(before.scripts.keys() & after.scripts.keys()):
        old, new = (side.scripts[reference].metadata.metrics for side in (before, after))
        for name in sorted(old.keys() & new.keys()):
            if old[name].better != new[name].better:
                yield Direction(reference, name, old[name].better, new[name].better)


def _timed(before: _Side, after: _Side) -> Iterator[Timed]:
    for key in sorted(before.benchmarks.keys() | after.benchmarks.keys()):
        was, now = before.benchmarks.get(key), after.benchmarks.get(key)
        told = now or was
        if was == now or told is None:
            continue
        before_, after_ = (one.value if one else None for one in (was, now))
        yield Timed(told.benchmark, told.quantity, told.machine, told.unit, before_, after_, told.bar)


def dump_report(report: ChangeReport) -> str:
    """A report as JSON, for the workflow that shows it.

    However much there is to report, `read_report` reads it: long words are cut, and so are long lists, from
    their ends, with the count of what is left out.
    """
    table = _with_short_words(asdict(report))
    lists = {name: table[name] for name in LISTS}
    counts = {name: report.count(name) for name in LISTS}
    table |= {name: [] for name in LISTS}
    # As long as the counts can become.
    room = LARGEST_REPORT - len(json.dumps(table | {"left_out": counts})) - 1
    for name, items in lists.items():
        for item in items if name == CLAIMS else items[:MOST_LISTED]:
            room -= len(json.dumps(item)) + len(", ")
            if room < 0:
                break
            table[name].append(item)
    left_out = {name: counts[name] - len(table[name]) for name in LISTS}
    table["left_out"] = {name: count for name, count in left_out.items() if count}
    return json.dumps(table) + "\n"


def _with_short_words(value: Any) -> Any:
    """What JSON is made of, with no text longer than a report shows."""
    if isinstance(value, str):
        return shortened(value, LONGEST_WORD)
    if isinstance(value, dict):
        return {key: _with_short_words(item) for key, item in value.items()}
    return [_with_short_words(item) for item in value] if isinstance(value, tuple | list) else value


def read_report(path: Path) -> ChangeReport:
    """A report that was written elsewhere, by whoever: its shape is checked, its words are not.

    Raises:
        BenchbookError: It is none, or larger than any honest one.
    """
    from pydantic import ValidationError

    fix = "pass what `benchbook report --json` wrote"
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_REPORT + 1)
    except OSError as error:
        raise BenchbookError(Problem(path.name, 1, f"cannot be read ({error})", fix)) from error
    if len(raw) > LARGEST_REPORT:
        raise BenchbookError(Problem(path.name, 1, f"is larger than {LARGEST_REPORT >> 10} KiB", fix))
    try:
        return adapter(ChangeReport).validate_json(raw)
    except ValidationError as error:
        what = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise BenchbookError(Problem(path.name, 1, f"is not a report ({what})", fix)) from error
