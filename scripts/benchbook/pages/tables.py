"""The `table` fence: the variants of a script, its cells or its metrics, as rows of what they yielded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

from benchbook.metadata import ParameterValue
from benchbook.pages.context import Build
from benchbook.pages.labels import OUTCOMES, axis_label, name_label
from benchbook.pages.languages import Language
from benchbook.pages.library import Library, Machine
from benchbook.pages.measurements import Measurement, Recorded, check_one_campaign, recorded
from benchbook.pages.provenance import render_details, repeats_text
from benchbook.pages.quantities import sensible_unit
from benchbook.pages.references import UnresolvedError
from benchbook.pages.specs import CELLS, METRICS, Quantity, quantity_of, read_spec, variants_of
from benchbook.pages.values import raw
from benchbook.problems import did_you_mean
from benchbook.script import CHECKS, PARAMETERS, Script, Variant
from benchbook.units import METERS

KEYS = ("script", "rows", "columns", "where", "caption")
_SINGULAR = {CELLS: "cell", METRICS: "metric"}
# Up to so many characters, the head of a column stays on one line.
_SHORT = 5


@dataclass(frozen=True)
class Row:
    """A row: how it is called, and what each of its columns shows.

    Parameters:
        names: The axis values (or the cell) that make it, by axis.
        variant: The variant it shows.
        quantities: One per column.
    """

    names: tuple[tuple[str, ParameterValue], ...]
    variant: Variant
    quantities: tuple[Quantity, ...]


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
    """

    key: str
    script: Script
    axes: tuple[str, ...]
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""


@dataclass(frozen=True)
class Entry:
    """One cell of a table on one machine: its text, what a program reads, its share of the longest bar."""

    text: str
    value: str = ""
    ref: str = ""
    words: bool = False
    bytes: str = ""
    share: float | None = None
    ratio: str = ""


def read_table(text: str, library: Library) -> Table:
    """The table that the body of a fence asks for.

    Raises:
        UnresolvedError: It asks for something that is not there.
    """
    spec = read_spec(text, KEYS, ("script", "rows", "columns"), "table")
    script = library.script(str(spec["script"]))
    variants = variants_of(spec, script)
    columns = spec["columns"] if isinstance(spec["columns"], list) else [spec["columns"]]
    key = "table-" + _digest((script.reference, spec["rows"], columns, spec.get("where")))
    caption = str(spec.get("caption") or "")
    if spec["rows"] == CELLS:
        rows = _cell_rows(script, variants, columns)
        return Table(key, script, (CELLS,), _heads(rows), rows, caption)
    if spec["rows"] == METRICS:
        rows = _metric_rows(script, variants, columns)
        return Table(key, script, (METRICS,), ("value",), rows, caption)
    axes = tuple(str(axis) for axis in (spec["rows"] if isinstance(spec["rows"], list) else [spec["rows"]]))
    quantities = tuple(quantity_of(column, script, ("bar", "ratio")) for column in columns)
    rows = tuple(Row(_names(axes, variant, script), variant, quantities) for variant in variants)
    _check_distinct(rows, axes, script)
    return Table(key, script, axes, _heads(rows), rows, caption)


def _table_entries(
    library: Library, table: Table, machine: Machine, language: Language
) -> list[list[Entry]] | None:
    """What `table` shows on `machine`; None if nothing of it was recorded there.

    Raises:
        UnresolvedError: A column is a series without an item, or compares times of two campaigns.
    """
    rows = [
        [q.measure(library, table.script, row.variant, machine) for q in row.quantities] for row in table.rows
    ]
    if not any(cell is not None for row in rows for cell in row):
        return None
    columns = [_column(table, index, [row[index] for row in rows], language) for index in range(len(rows[0]))]
    return [[column[index] for column in columns] for index in range(len(rows))]


def _sources_of(library: Library, table: Table, machine: Machine) -> list[Recorded]:
    """The recorded variants that `table` shows on `machine`."""
    found = (recorded(library, table.script, row.variant.name, machine) for row in table.rows)
    return [one for one in found if one is not None]


def resolve_table(
    library: Library, guide: str, text: str, language: Language
) -> tuple[Table, Machine, list[list[Entry]]]:
    """The table that a fence of `guide` asks for, the machine it shows by default, and what it shows there.

    Raises:
        UnresolvedError: It asks for something that is not there.
    """
    table = read_table(text, library)
    machine = library.machine_for(guide, table.script.reference)
    entries = _table_entries(library, table, machine, language)
    if entries is None:
        mend = f"record it there: benchbook record {table.script.reference}"
        raise UnresolvedError(f"nothing of this table was recorded on {machine.name}", mend)
    return table, machine, entries


def render_table(build: Build, text: str) -> str:
    """The HTML of a `table` fence with the body `text`; raises as `resolve_table` does."""
    library, page = build.library, build.here
    language = page.language
    table, shown, known = resolve_table(library, page.guide, text, language)
    for machine in library.machines_with(table.script.reference):
        entries = known if machine == shown else _table_entries(library, table, machine, language)
        if entries is None:
            continue
        page.fits |= any(entry.bytes for row in entries for entry in row)
        sources = _sources_of(library, table, machine)
        origin_key, origin = build.keep_origin(sources)
        repeats = repeats_text(_measurements(library, table, machine), language)
        if machine != shown:
            kept = [[_kept(entry) for entry in row] for row in entries]
            build.keep("blocks", table.key, machine, {"rows": kept, "repeats": repeats, "origin": origin_key})
        else:
            details = render_details(origin, repeats, (), language, page.root)
            html = _html(table, entries, machine, language) + details
    key = escape(table.key)
    return f'<div class="bb-table" data-bb="{key}" data-machine="{escape(shown.name)}">{html}</div>'


def _kept(entry: Entry) -> dict[str, Any]:
    """What another machine's entry changes in the page."""
    return {
        key: value for key, value in asdict(entry).items() if key != "ref" and value not in ("", None, False)
    }


def _html(table: Table, entries: Sequence[Sequence[Entry]], machine: Machine, language: Language) -> str:
    scope = table.script.reference
    axis_names = [_SINGULAR.get(axis, axis) for axis in table.axes]
    columns = [*axis_names, *table.heads]
    heads = [name_label(language, name, scope) for name in columns]
    head = "".join(
        f'<th scope="col"{_kept_whole(language.label(name, scope) or name)}>{label}</th>'
        for name, label in zip(columns, heads, strict=True)
    )
    caption = f"<caption>{language.words(table.caption)}</caption>" if table.caption else ""
    body = ""
    for index, (row, cells) in enumerate(zip(table.rows, entries, strict=True)):
        names = "".join(
            f'<th scope="row"><span class="bb-cardname" aria-hidden="true">{heads[place]}</span> '
            f"{axis_label(language, axis, value, scope)}</th>"
            for place, (axis, value) in enumerate(row.names)
        )
        shown = "".join(
            f'<td><span class="bb-cardname" aria-hidden="true">{heads[len(row.names) + place]}</span> '
            f"{_cell_html(entry, quantity, machine)}</td>"
            for place, (entry, quantity) in enumerate(zip(cells, row.quantities, strict=True))
        )
        body += f'<tr data-row="{index}">{names}{shown}</tr>'
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _kept_whole(label: str) -> str:
    """The class of a head too short to break, which a script without spaces would break anywhere."""
    return ' class="bb-short"' if len(label) <= _SHORT else ""


def _cell_html(entry: Entry, quantity: Quantity, machine: Machine) -> str:
    bar = (
        f'<span class="bb-bar" aria-hidden="true" style="--bb-share:{entry.share or 0:.3f}"></span>'
        if quantity.bar
        else ""
    )
    size = f' data-bytes="{entry.bytes}"' if entry.bytes else ""
    direction = "" if entry.words else ' dir="ltr"'
    ratio = f' <span class="bb-ratio" dir="ltr">{escape(entry.ratio)}</span>' if quantity.ratio else ""
    return (
        f'{bar}<data value="{escape(entry.value)}" data-ref="{escape(entry.ref)}" '
        f'data-machine="{escape(machine.name)}"{size}{direction}>{escape(entry.text)}</data>{ratio}'
    )


def _column(table: Table, index: int, cells: Sequence[Measurement | None], language: Language) -> list[Entry]:
    values = [cell.value for cell in cells if cell is not None and cell.value is not None]
    largest = max((abs(value) for value in values), default=0)
    first = cells[0]
    entries = []
    for row, cell in zip(table.rows, cells, strict=True):
        quantity = row.quantities[index]
        ref = str(quantity.reference(table.script, row.variant))
        entry = _entry(cell, quantity, ref, largest, language)
        if quantity.ratio and cell is not None and first is not None and cell is not first:
            entry = replace(entry, ratio=_ratio(first, cell, language))
        entries.append(entry)
    return entries


def _entry(
    cell: Measurement | None, quantity: Quantity, ref: str, largest: float, language: Language
) -> Entry:
    if cell is None:
        return Entry("—", ref=ref, words=True)
    if cell.value is None:
        outcome = cell.source.result.outcome
        text = language.text(OUTCOMES[outcome]) if outcome in OUTCOMES else "—"
        return Entry(text, ref=ref, words=True)
    if cell.flag:
        return Entry(language.flag(bool(cell.value)), raw(cell.value), ref, words=True)
    # One unit for the whole column, so that its numbers can be compared at a glance.
    shown = quantity.shown or sensible_unit(largest, quantity.unit)
    text = language.quantity(cell.value, quantity.unit, shown).text
    share = round(abs(cell.value) / largest, 3) if quantity.bar and largest else None
    return Entry(text, raw(cell.value), ref, False, raw(cell.value) if cell.device_memory else "", share)


def _ratio(first: Measurement, cell: Measurement, language: Language) -> str:
    if first.value is None or cell.value is None or first.value == 0:
        return ""
    check_one_campaign(first, cell)
    return f"{language.number(cell.value / first.value)}×"


def _measurements(library: Library, table: Table, machine: Machine) -> list[Measurement]:
    found = (
        q.measure(library, table.script, row.variant, machine) for row in table.rows for q in row.quantities
    )
    return [one for one in found if one is not None]


def _names(axes: Sequence[str], variant: Variant, script: Script) -> tuple[tuple[str, ParameterValue], ...]:
    for axis in axes:
        if axis not in variant.axes:
            what = f"`{script.reference}` does not sweep `{axis}`"
            known = [*variant.axes, CELLS]
            raise UnresolvedError(
                what, did_you_mean(axis, known, "axis") if variant.axes else "use `rows: cells`"
            )
    return tuple((axis, variant.axes[axis]) for axis in axes)


def _check_distinct(rows: Sequence[Row], axes: Sequence[str], script: Script) -> None:
    seen: dict[str, Variant] = {}
    for row in rows:
        other = seen.setdefault(repr(row.names), row.variant)
        if other is not row.variant:
            what = f"two variants of `{script.reference}` share a row: {other.name} and {row.variant.name}"
            open_axes = sorted(set(row.variant.axes) - set(axes))
            raise UnresolvedError(what, f"add to `rows:` or fix by `where:` each of: {', '.join(open_axes)}")


def _heads(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(quantity.label_key for quantity in rows[0].quantities)


def _only(script: Script, variants: Sequence[Variant], rows: str) -> Variant:
    if len(variants) > 1:
        mend = "fix its axes by `where:`"
        raise UnresolvedError(
            f"`{script.reference}` has {len(variants)} variants, and `rows: {rows}` shows one", mend
        )
    return variants[0]


def _metric_rows(script: Script, variants: Sequence[Variant], items: Sequence[Any]) -> tuple[Row, ...]:
    """A row per item of `columns:`, all in the one column that compares them."""
    variant = _only(script, variants, METRICS)
    quantities = [quantity_of(item, script, ("bar", "ratio")) for item in items]
    for quantity in quantities:
        if quantity.unit != quantities[0].unit:
            first = quantities[0]
            what = f"`{quantity.name}` is in {quantity.unit.symbol}, `{first.name}` in {first.unit.symbol}"
            raise UnresolvedError(what, "compare metrics of one unit, or make each a column")
    return tuple(Row(((METRICS, quantity.label_key),), variant, (quantity,)) for quantity in quantities)


def _cell_rows(script: Script, variants: Sequence[Variant], columns: Sequence[Any]) -> tuple[Row, ...]:
    variant = _only(script, variants, CELLS)
    rows = []
    for cell in (cell for cell in script.cells if cell.name not in (PARAMETERS, CHECKS)):
        quantities = []
        for column in columns:
            table = column if isinstance(column, dict) else {"metric": column}
            meter = str(table.get("metric"))
            if meter not in METERS:
                raise UnresolvedError(f"`{meter}` is no meter", did_you_mean(meter, METERS, "meter"))
            quantities.append(
                quantity_of({**table, "metric": f"{cell.name}.{meter}"}, script, ("bar", "ratio"))
            )
        rows.append(Row(((CELLS, cell.name),), variant, tuple(quantities)))
    return tuple(rows)


def _digest(spec: object) -> str:
    return hashlib.sha256(repr(spec).encode()).hexdigest()[:10]
