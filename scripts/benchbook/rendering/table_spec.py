"""What a `table` fence asks for: its rows, its columns, and their order."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchbook.content.claims import Claim
from benchbook.content.metadata import ParameterValue
from benchbook.content.parameters import axis_text
from benchbook.content.problems import did_you_mean
from benchbook.content.references import UnresolvedError, cell_of, matching_variants
from benchbook.content.script import CHECKS, PARAMETERS, Script, Variant
from benchbook.content.units import METERS
from benchbook.query.judging import claims_of
from benchbook.query.library import Library, Machine
from benchbook.rendering.specs import (
    CELLS,
    METRICS,
    ShownQuantity,
    quantity_of,
    read_spec,
    text_of,
    variants_of,
)

# What a column may say beside its metric and unit.
OPTIONS = ("bar", "ratio", "predicted", "error")
# A table here has five.
MOST_COLUMNS = 30
KEYS = (
    "script",
    "rows",
    "columns",
    "where",
    "cells",
    "sort",
    "links",
    "notes",
    "marks",
    "caption",
    "machine",
)


@dataclass(frozen=True)
class TableRow:
    """A row: how it is called, and what each of its columns shows.

    Parameters:
        names: The axis values (or the cell) that make it, by axis.
        variant: The variant it shows.
        quantities: One per column.
        link: What its name links to, as the page writes it.
        note: The page's own words below its name.
        marks: The claims about it that the table shows, each with the page's sentence.
    """

    names: tuple[tuple[str, ParameterValue], ...]
    variant: Variant
    quantities: tuple[ShownQuantity, ...]
    link: str = ""
    note: str = ""
    marks: tuple[tuple[Claim, str], ...] = ()


@dataclass(frozen=True)
class Order:
    """The order of the rows of a table: by one of its columns, the best first, or the largest errors first.

    Parameters:
        column: Its place.
        descending: Whether more is better.
        size: Order by the size of errors, whatever their sign.
    """

    column: int
    descending: bool
    size: bool = False


@dataclass(frozen=True)
class Table:
    """A table as its fence asks for it; what it yields depends on the machine.

    Parameters:
        key: A name that is the same in every language.
        script: Whose variants.
        axes: What tells the rows apart, one heading each.
        heads: By what name a language labels each column.
        rows: In the declared order.
        caption: The page's own words above it.
        order: In which order to show the rows; None for the declared one.
        machine: The one it shows whatever a reader chooses; None to follow the choice.
    """

    key: str
    script: Script
    axes: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[TableRow, ...]
    caption: str = ""
    order: Order | None = None
    machine: Machine | None = None


def read_table(text: str, library: Library) -> Table:
    """The table that the body of a fence asks for.

    Raises:
        UnresolvedError: It asks for something that is not there.
    """
    spec = read_spec(text, KEYS, ("script", "rows", "columns"), "table")
    script = library.script(str(spec["script"]))
    variants = variants_of(spec, script)
    columns = spec["columns"] if isinstance(spec["columns"], list) else [spec["columns"]]
    if len(columns) > MOST_COLUMNS:
        what = f"`columns:` has {len(columns)} items, and {MOST_COLUMNS} are the most"
        raise UnresolvedError(what, "make several tables of it")
    axes = tuple(str(axis) for axis in (spec["rows"] if isinstance(spec["rows"], list) else [spec["rows"]]))
    if spec.get("cells") and spec["rows"] != CELLS:
        raise UnresolvedError("`cells:` goes with `rows: cells`", "leave it away")
    if spec["rows"] == CELLS:
        rows = _cell_rows(script, variants, columns, _chosen_cells(spec, script))
    elif spec["rows"] == METRICS:
        rows = _metric_rows(script, variants, columns)
    else:
        quantities = tuple(quantity_of(column, script, OPTIONS) for column in columns)
        _check_swept(axes, script)
        names = [tuple((axis, variant.at(axis)) for axis in axes) for variant in variants]
        rows = tuple(
            TableRow(name, variant, quantities) for name, variant in zip(names, variants, strict=True)
        )
        _check_distinct(rows, axes, script)
    made_from = (script.reference, spec["rows"], columns, spec.get("where"), spec.get("cells"))
    return Table(
        key="table-" + _digest(made_from),
        script=script,
        axes=axes,
        heads=("value",) if spec["rows"] == METRICS else _heads(rows),
        rows=_marked(
            _with_words(rows, _words(spec, "links", rows), _words(spec, "notes", rows)), spec, script, library
        ),
        caption=str(spec.get("caption") or ""),
        order=_order(spec, columns, script, rows),
        machine=library.pinned_machine(spec.get("machine")),
    )


def _words(spec: Mapping[str, Any], key: str, rows: Sequence[TableRow]) -> dict[str, str]:
    """What `links:` or `notes:` says of rows, by the value of their axis."""
    words = _mapping(spec, key, "value of the axis: ...")
    if words and len(rows[0].names) > 1:
        raise UnresolvedError(f"`{key}:` names rows by one axis, and these have several", "leave it away")
    known = [axis_text(row.names[0][1]) for row in rows]
    found = {
        axis_text(value): text_of(text, f"`{axis_text(value)}` of `{key}:`") for value, text in words.items()
    }
    for value in found:
        if value not in known:
            raise UnresolvedError(f"`{key}:` names no row `{value}`", did_you_mean(value, known, "row"))
    return found


def _mapping(spec: Mapping[str, Any], key: str, form: str) -> dict[Any, Any]:
    """What stands below `key`, which has to be a mapping of this form; empty where nothing does."""
    found = spec.get(key) or {}
    if not isinstance(found, dict):
        raise UnresolvedError(f"`{key}:` is not a mapping", f"write `{key}: {{{form}}}`")
    return found


def _with_words(
    rows: Sequence[TableRow], links: Mapping[str, str], notes: Mapping[str, str]
) -> tuple[TableRow, ...]:
    names = [axis_text(row.names[0][1]) for row in rows]
    return tuple(
        replace(row, link=links.get(name, ""), note=notes.get(name, ""))
        for name, row in zip(names, rows, strict=True)
    )


def _marked(
    rows: Sequence[TableRow], spec: Mapping[str, Any], script: Script, library: Library
) -> tuple[TableRow, ...]:
    """`rows` with the claims of `marks:`, each on the row whose number it is about.

    Raises:
        UnresolvedError: A claim is none, or is about a number that the table does not show.
    """
    found: dict[int, list[tuple[Claim, str]]] = {}
    for name, sentence in _mapping(spec, "marks", "claim: The sentence.").items():
        claim = claims_of(library).named(str(name))
        if not str(sentence or "").strip():
            raise UnresolvedError(f"the claim `{name}` says nothing", "write its sentence behind its name")
        place = _row_of(claim, rows, script)
        found.setdefault(place, []).append((claim, text_of(sentence, f"`{name}` of `marks:`")))
    return tuple(replace(row, marks=tuple(found.get(place, ()))) for place, row in enumerate(rows))


def _row_of(claim: Claim, rows: Sequence[TableRow], script: Script) -> int:
    """The place of the row that shows what `claim` is about: its first number."""
    about = claim.a
    if about.script == script.reference:
        variants = [one.name for one in matching_variants(script, about.axes)]
        for place, row in enumerate(rows):
            shown = [(quantity.name, quantity.meter) for quantity in row.quantities]
            if row.variant.name in variants and (about.name, about.meter) in shown:
                return place
    what = f"the claim `{claim.id}` is about {about}, which this table does not show"
    raise UnresolvedError(what, "show it in a column, or mark it in the table that does")


def _order(
    spec: Mapping[str, Any], columns: Sequence[Any], script: Script, rows: Sequence[TableRow]
) -> Order | None:
    """The order that `sort:` asks for."""
    if not spec.get("sort"):
        return None
    if spec["rows"] == METRICS:
        raise UnresolvedError(
            "`sort:` does not go with `rows: metrics`", "list `columns:` in the order to show"
        )
    names = [str(column["metric"] if isinstance(column, dict) else column) for column in columns]
    wanted = str(spec["sort"])
    errors = [place for place, shown in enumerate(rows[0].quantities) if shown.show == "error"]
    if wanted == "error" and errors:
        return Order(errors[0], descending=True, size=True)
    if wanted not in names:
        raise UnresolvedError(f"`sort:` names no column `{wanted}`", did_you_mean(wanted, names, "column"))
    column = names.index(wanted)
    shown = rows[0].quantities[column]
    metric = None if shown.meter else script.metadata.metrics[shown.name]
    return Order(column, descending=metric is not None and metric.better == "higher")


def _check_swept(axes: Sequence[str], script: Script) -> None:
    known = {axis for variant in script.variants(()) for axis in variant.axes}
    for axis in axes:
        if axis not in known:
            fix = did_you_mean(axis, {*known, CELLS, METRICS}, "axis") if known else "use `rows: cells`"
            raise UnresolvedError(f"`{script.reference}` does not sweep `{axis}`", fix)


def _check_distinct(rows: Sequence[TableRow], axes: Sequence[str], script: Script) -> None:
    seen: dict[str, Variant] = {}
    for row in rows:
        other = seen.setdefault(repr(row.names), row.variant)
        if other is not row.variant:
            what = f"two variants of `{script.reference}` share a row: {other.name} and {row.variant.name}"
            open_axes = sorted({*row.variant.axes, *other.axes} - set(axes))
            raise UnresolvedError(what, f"add to `rows:` or fix by `where:` each of: {', '.join(open_axes)}")


def _heads(rows: Sequence[TableRow]) -> tuple[str, ...]:
    return tuple(quantity.label_key for quantity in rows[0].quantities)


def _only(script: Script, variants: Sequence[Variant], rows: str) -> Variant:
    if len(variants) > 1:
        fix = "fix its axes by `where:`"
        raise UnresolvedError(
            f"`{script.reference}` has {len(variants)} variants, and `rows: {rows}` shows one", fix
        )
    return variants[0]


def _metric_rows(script: Script, variants: Sequence[Variant], items: Sequence[Any]) -> tuple[TableRow, ...]:
    """A row per item of `columns:`, all in the one column that compares them."""
    variant = _only(script, variants, METRICS)
    quantities = [quantity_of(item, script, ("bar", "ratio")) for item in items]
    for quantity in quantities:
        if quantity.unit != quantities[0].unit:
            first = quantities[0]
            what = f"`{quantity.name}` is in {quantity.unit.symbol}, `{first.name}` in {first.unit.symbol}"
            raise UnresolvedError(what, "compare metrics of one unit, or make each a column")
    return tuple(TableRow(((METRICS, quantity.label_key),), variant, (quantity,)) for quantity in quantities)


def _chosen_cells(spec: Mapping[str, Any], script: Script) -> list[str]:
    """The cells that `cells:` names, else all that do something."""
    if not spec.get("cells"):
        return [cell.name for cell in script.cells if cell.name not in (PARAMETERS, CHECKS)]
    if not isinstance(spec["cells"], list):
        raise UnresolvedError("`cells:` is not a list", "write `cells: [name, name]`")
    return [cell_of(script, str(name)).name for name in spec["cells"]]


def _cell_rows(
    script: Script, variants: Sequence[Variant], columns: Sequence[Any], cells: Sequence[str]
) -> tuple[TableRow, ...]:
    variant = _only(script, variants, CELLS)
    rows = []
    for cell in cells:
        quantities = []
        for column in columns:
            table = column if isinstance(column, dict) else {"metric": column}
            meter = str(table.get("metric"))
            if meter not in METERS:
                raise UnresolvedError(f"`{meter}` is not a meter", did_you_mean(meter, METERS, "meter"))
            quantities.append(quantity_of({**table, "metric": f"{cell}.{meter}"}, script, OPTIONS))
        rows.append(TableRow(((CELLS, cell),), variant, tuple(quantities)))
    return tuple(rows)


def _digest(spec: object) -> str:
    return hashlib.sha256(repr(spec).encode()).hexdigest()[:10]
