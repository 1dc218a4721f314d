"""The command `benchbook compare`: two metrics, variants or sets of records, judged as a claim would be."""

from __future__ import annotations

import itertools
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchbook.content.claims import Constant, Relation, side_of
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.records import LARGEST_BUNDLE, Record, VariantRecord, read_packed, record_from
from benchbook.content.references import Reference, UnresolvedError, parse_reference, target_of, unit_of
from benchbook.content.units import METERS, Unit
from benchbook.content.validation import record_problems
from benchbook.query.judging import check_comparable, judging_machines, side_of_measurement, with_unit
from benchbook.query.library import Library, Machine
from benchbook.query.measurements import find_target, measure
from benchbook.statistics.comparison import (
    Comparison,
    Doubt,
    Side,
    compare_sides,
    decide,
    direction,
    doubt_text,
    found_text,
    interval_text,
    left_open,
)

ANSWERS = {"less": "A is less", "greater": "A is greater", "equal": "they are equal"}


@dataclass(frozen=True)
class SidePair:
    """Two sides of one quantity, and where they are from: a machine, and one of several variants."""

    machine: str
    variant: str
    quantity: str
    unit: Unit
    first: Side
    second: Side


@dataclass(frozen=True)
class PairVerdict:
    """What a row says: the comparison, which way it goes, and whether that was expected."""

    row: SidePair
    found: Comparison
    doubt: Doubt | None
    text: str
    held: bool | None

    def as_dict(self) -> dict[str, Any]:
        """The answer as `benchbook compare --json` prints it; values are in the unit named."""
        found, factor = self.found, self.row.unit.factor
        return {
            "machine": self.row.machine,
            "variant": self.row.variant,
            "quantity": self.row.quantity,
            "unit": self.row.unit.symbol,
            "a": None if found.first is None else found.first / factor,
            "b": None if found.second is None else found.second / factor,
            "ratio": found.ratio,
            "interval": found.interval,
            "p": found.p,
            "pairs": found.pairs,
            "same": found.same,
            "exact": found.exact,
            "answer": self.text,
            "doubt": self.doubt,
            "held": self.held,
        }


@dataclass(frozen=True)
class ComparisonOptions:
    """What is asked of every row: whether the smaller one matters, and what was expected, if anything."""

    ratio: float = 1.0
    tolerance: float = 0.0
    expect: Relation | None = None


def compare_command(
    project: Project,
    a: str,
    b: str,
    machine: str | None,
    question: ComparisonOptions,
    meters: bool,
    as_json: bool,
) -> int:
    """Compare and print; the exit code: 0, or 1 where something was expected and is not so.

    Raises:
        UnresolvedError: `a`, `b` or `machine` names nothing, or the two are not of one kind.
        BenchbookError: There is nothing that both hold, or a file is not in order.
    """
    library = Library(project)
    answers = [_answer(row, question) for row in find_rows(library, a, b, machine, meters)]
    if not any(answer.found.first is not None for answer in answers):
        fix = "record it: benchbook record, or name two that were recorded"
        raise BenchbookError(Problem(a, 1, f"nothing was measured of both it and {b}", fix))
    if as_json:
        print(json.dumps([answer.as_dict() for answer in answers], indent=2))
    else:
        _print(answers)
    return 0 if question.expect is None or all(answer.held for answer in answers) else 1


def find_rows(library: Library, a: str, b: str, machine: str | None, meters: bool) -> list[SidePair]:
    """Everything that `a` and `b` have in common; raises as `compare_command` does."""
    machines = library.machines
    if machine is not None and machine not in machines:
        raise UnresolvedError(f"there is no machine `{machine}`", did_you_mean(machine, machines, "machine"))
    chosen = [machines[machine]] if machine else judging_machines(library)
    if "#" in a:
        return list(_metric_rows(library, a, b, chosen))
    if ".py" in a:
        return list(_variant_rows(library, a, b, chosen, meters))
    first, second = (load_set(library.project, text) for text in (a, b))
    return list(_set_rows(library, first, second, meters))


def _metric_rows(library: Library, a: str, b: str, machines: Sequence[Machine]) -> Iterator[SidePair]:
    first = find_target(library, parse_reference(a))
    named = side_of(_number_or(b))
    second = with_unit(named, first.unit) if isinstance(named, Constant) else find_target(library, named)
    assert second.unit is not None
    check_comparable(first.unit, second.unit)
    for machine in machines:
        side = side_of_measurement(measure(library, first, machine))
        if isinstance(second, Constant):
            other = Side((second.value * second.unit.factor,))
        else:
            other = side_of_measurement(measure(library, second, machine))
        yield SidePair(machine.name, "", a.partition("#")[2], first.unit, side, other)


def _number_or(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _variant_rows(
    library: Library, a: str, b: str, machines: Sequence[Machine], meters: bool
) -> Iterator[SidePair]:
    if "#" in b or ".py" not in b:
        raise UnresolvedError(
            f"`{a}` is a variant, and `{b}` is none", "name two metrics, variants or record sets"
        )
    # Any name will do to read the rest of the reference.
    first, second = (parse_reference(f"{text}#x") for text in (a, b))
    scripts = [library.script(one.script) for one in (first, second)]
    names = [name for name in scripts[0].metadata.metrics if name in scripts[1].metadata.metrics]
    wanted: list[tuple[str, str | None]] = [(name, None) for name in names]
    if meters:
        cells = [
            cell.name for cell in scripts[0].cells if cell.name in {one.name for one in scripts[1].cells}
        ]
        wanted += itertools.product(cells, METERS)
    for machine, (name, meter) in itertools.product(machines, wanted):
        pair = [
            target_of(Reference(one.script, one.axes, name, meter), script)
            for one, script in zip((first, second), scripts, strict=True)
        ]
        try:
            sides = [side_of_measurement(measure(library, target, machine)) for target in pair]
        except UnresolvedError:
            continue  # a series has no single number to compare
        if all(side.samples for side in sides):
            yield SidePair(machine.name, "", f"{name}.{meter}" if meter else name, pair[0].unit, *sides)


def load_set(project: Project, text: str) -> list[Record]:
    """The records that `text` names: a machine, a folder, a record or a bundle.

    Raises:
        UnresolvedError: It is none of them.
        BenchbookError: A file is not in order.
    """
    path = project.records / text if text in project.machines else Path(text)
    if os.path.isdir(path):
        files = [one for one in sorted(path.rglob("*.json")) if one.name != "machine.json"]
    elif os.path.isfile(path):
        files = [path]
    else:
        fix = f"name a file or a folder of records, or {did_you_mean(text, project.machines, 'machine')}"
        raise UnresolvedError(f"`{text}` is not a metric, variant or set of records", fix)
    return [record for file in files for record in _read(file)]


def _read(path: Path) -> list[Record]:
    try:
        table = json.loads(read_packed(path, LARGEST_BUNDLE)[:LARGEST_BUNDLE])
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        fix = "name a record, or a bundle that `benchbook record --bundle` wrote"
        raise BenchbookError(Problem(str(path), 1, f"holds no records ({error})", fix)) from error
    bundled = isinstance(table, dict) and isinstance(table.get("records"), list)
    tables = table["records"] if bundled else [table]
    if problems := [problem for one in tables for problem in record_problems(one, str(path))]:
        raise BenchbookError(*problems)
    return [record_from(one) for one in tables]


def _set_rows(
    library: Library, first: Sequence[Record], second: Sequence[Record], meters: bool
) -> Iterator[SidePair]:
    there = {record.script: record for record in second}
    for record in first:
        other = there.get(record.script)
        if other is None or not (library.project.snippets / record.script).is_file():
            continue
        where = " | ".join(dict.fromkeys((record.machine, other.machine)))
        for name in record.variants:
            if name not in other.variants:
                continue
            title = record.script if name == "default" else f"{record.script} {name}"
            for quantity, unit in _quantities(library, record, name, meters):
                sides = [_recorded_side(one, name, quantity, unit) for one in (record, other)]
                if all(side.samples for side in sides):
                    yield SidePair(where, title, ".".join(filter(None, quantity)), unit, *sides)


def _quantities(
    library: Library, record: Record, variant: str, meters: bool
) -> Iterator[tuple[tuple[str, str | None], Unit]]:
    script = library.script(record.script)
    runs = record.variants[variant].runs
    for name in runs[0].metrics if runs else ():
        if name in script.metadata.metrics and not isinstance(runs[0].metrics[name], list):
            yield (name, None), unit_of(script, name)[0]
    if meters and runs:
        yield from (((cell, meter), METERS[meter]) for cell, read in runs[0].cells.items() for meter in read)


def _recorded_side(record: Record, name: str, quantity: tuple[str, str | None], unit: Unit) -> Side:
    variant = record.variants[name]
    campaign = record.campaigns.get(variant.campaign)
    return Side(
        tuple(value * unit.factor for value in _values(variant, *quantity)),
        timed=unit.noisy,
        campaign=f"{record.machine} {record.script} {variant.campaign}",
        shared=campaign is not None and bool(campaign.state.get("shared")),
    )


def _values(variant: VariantRecord, name: str, meter: str | None) -> Iterator[float]:
    for run in sorted(variant.runs, key=lambda run: run.place):
        value = run.meter(name, meter) if meter else run.metrics.get(name)
        if value is not None and not isinstance(value, list):
            yield value


def _answer(row: SidePair, question: ComparisonOptions) -> PairVerdict:
    found = compare_sides(row.first, row.second)
    way = direction(found, question.ratio)
    held = None
    if question.expect is not None:
        held = decide(found, question.expect, question.ratio, question.tolerance)[0] == "holds"
    if found.first is None:
        return PairVerdict(row, found, found.doubt, "not measured", held)
    if way is not None:
        return PairVerdict(row, found, None, ANSWERS[way], held)
    doubt = left_open(found, question.ratio)
    return PairVerdict(row, found, doubt, f"too close to call: {doubt_text(doubt, found)}", held)


def _print(answers: Sequence[PairVerdict]) -> None:
    console = Console(highlight=False)
    for (machine, variant), group in itertools.groupby(
        answers, key=lambda answer: (answer.row.machine, answer.row.variant)
    ):
        title = "  ".join(filter(None, (machine, variant)))
        table = Table(box=None, title=title, title_justify="left", title_style="bold")
        table.add_column("quantity", no_wrap=True)
        for name in ("A", "B"):
            table.add_column(name, justify="right")
        for name in ("A / B", "answer"):
            table.add_column(name, overflow="fold")
        for answer in group:
            table.add_row(*map(escape, _cells(answer)))
        console.print(table)


def _cells(answer: PairVerdict) -> Iterator[str]:
    found, unit = answer.found, answer.row.unit
    yield answer.row.quantity
    for value in (found.first, found.second):
        yield "" if value is None else f"{value / unit.factor:.6g} {unit.symbol}".removesuffix(" 1")
    same = "" if found.same is None else f"; with itself {interval_text(found.same)}"
    yield found_text(found) + same
    expected = {None: "", True: " (as expected)", False: " (not as expected)"}[answer.held]
    yield answer.text + expected
