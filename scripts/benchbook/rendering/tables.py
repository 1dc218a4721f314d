"""What a table shows on a machine, and how it is drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from unicodedata import east_asian_width

from benchbook.content.references import UnresolvedError
from benchbook.content.script import Script
from benchbook.content.units import Unit, shared_unit, unit_beside
from benchbook.languages.language import Language
from benchbook.languages.markup import note_html
from benchbook.query.library import Cache, Library, Machine, found_elsewhere
from benchbook.query.measurements import (
    Figure,
    Predicted,
    RecordedVariant,
    check_one_campaign,
    find_prediction,
    missing_fix,
    never_predicted,
)
from benchbook.rendering.claims import claim_mark, show_once
from benchbook.rendering.context import Build, PageContext, Rendering
from benchbook.rendering.labels import OUTCOMES, axis_label, head_label, name_label
from benchbook.rendering.provenance import details_element, predicted_mark, render_details, repeats_text
from benchbook.rendering.specs import CELLS, METRICS, PageCount, ShownQuantity
from benchbook.rendering.table_spec import Order, Table, TableRow, read_table
from benchbook.rendering.values import raw

MISSING = "—"


@dataclass(frozen=True)
class Column:
    """How the numbers of a column on one machine are written, so that they compare at a glance.

    Parameters:
        largest: The size of the largest.
        unit: The unit of all but traces of it; None where there is no number.
        full: Whether all digits are written: of ratios, unless all are whole.
    """

    largest: float = 0
    unit: Unit | None = None
    full: bool = False


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
    kind: str = ""
    fits_not: bool = False


def column_entries(
    table: Table, index: int, cells: Sequence[Figure | None], language: Language
) -> list[Entry]:
    """The entries of the column at `index`, whose figures are `cells`.

    Raises:
        UnresolvedError: It compares times of two campaigns.
    """
    column = _column(cells, [row.quantities[index] for row in table.rows])
    first = cells[0]
    entries = []
    for row, cell in zip(table.rows, cells, strict=True):
        quantity = row.quantities[index]
        ref = str(quantity.reference(table.script, row.variant))
        entry = _entry(cell, quantity, ref, column, language)
        if quantity.ratio and cell is not None and first is not None and cell is not first:
            entry = replace(entry, ratio=_ratio(first, cell, language))
        entries.append(entry)
    return entries


def _column(cells: Sequence[Figure | None], quantities: Sequence[ShownQuantity]) -> Column:
    amounts = [
        (cell.value, quantity.unit)
        for cell, quantity in zip(cells, quantities, strict=True)
        if cell is not None and cell.value is not None and not cell.flag
    ]
    if not amounts:
        return Column()
    largest = max(abs(value) for value, _ in amounts)
    ratios = all(unit.dimension == "ratio" for _, unit in amounts)
    return Column(largest, shared_unit(amounts), ratios and any(value % 1 for value, _ in amounts))


def _entry(
    cell: Figure | None, quantity: ShownQuantity, ref: str, column: Column, language: Language
) -> Entry:
    if cell is None:
        return Entry(MISSING, ref=ref, words=True)
    if cell.value is None:
        outcome = cell.measured.source.result.outcome if cell.measured else ""
        text = language.text(OUTCOMES[outcome]) if outcome in OUTCOMES else MISSING
        return Entry(text, ref=ref, words=True)
    if cell.flag:
        return Entry(language.flag(bool(cell.value)), raw(cell.value), ref, words=True)
    if cell.kind == "error":
        return Entry(language.signed_percent(cell.value), raw(cell.value), ref, kind=cell.kind)
    shown = unit_beside(cell.value, quantity.unit, quantity.shown or column.unit or quantity.unit)
    text = language.quantity(cell.value, quantity.unit, shown, column.full).text
    share = round(abs(cell.value) / column.largest, 3) if quantity.bar and column.largest else None
    size = raw(cell.value) if cell.device_memory else ""
    kind = cell.kind if cell.kind != "measurement" else ""
    return Entry(text, raw(cell.value), ref, False, size, share, kind=kind, fits_not=cell.fits_not)


def _ratio(first: Figure, cell: Figure, language: Language) -> str:
    """How `cell` compares with `first`; empty where one was measured and the other predicted."""
    if not first.value or cell.value is None or first.kind != cell.kind:
        return ""
    if first.measured is not None and cell.measured is not None:
        check_one_campaign(first.measured, cell.measured)
    return language.ratio(cell.value / first.value)


_SINGULAR = {CELLS: "cell", METRICS: "metric"}
# Up to so many characters, the head of a column stays on one line.
_SHORT = 5
# What a phone holds side by side, and what stands between two columns, in Latin letters.
_PHONE, _GAP = 44, 2
_TAG = re.compile(r"<[^>]*>")

_FIGURES = Cache[tuple[str, str], list[list[Figure | None]]]("figures of tables")


def _table_entries(
    library: Library, table: Table, machine: Machine, language: Language
) -> list[list[Entry]] | None:
    """What `table` shows on `machine`; None if nothing of it was recorded or predicted there.

    Raises:
        UnresolvedError: A column is a series without an item, or compares times of two campaigns.
    """
    rows = _figures(library, table, machine)
    if not any(cell is not None for row in rows for cell in row):
        return None
    columns = [
        column_entries(table, index, [row[index] for row in rows], language) for index in range(len(rows[0]))
    ]
    return [[column[index] for column in columns] for index in range(len(rows))]


def _figures(library: Library, table: Table, machine: Machine) -> list[list[Figure | None]]:
    """What `table` shows on `machine`, row by row, found once for all languages."""

    def find() -> list[list[Figure | None]]:
        return [
            [_figure(library, table.script, row, quantity, machine) for quantity in row.quantities]
            for row in table.rows
        ]

    return library.once(_FIGURES, (table.key, machine.name), find)


def _figure(
    library: Library, script: Script, row: TableRow, quantity: ShownQuantity, machine: Machine
) -> Figure | None:
    """What a cell shows; no prediction that has a column of its own beside it."""
    found = quantity.figure(library, script, row.variant, machine)
    if found is None or found.kind != "prediction" or quantity.show != "measured":
        return found
    same = (quantity.name, quantity.meter, quantity.index)
    beside = (one for one in row.quantities if (one.name, one.meter, one.index) == same)
    return None if any(one.show == "predicted" for one in beside) else found


def _shown(library: Library, table: Table, machine: Machine) -> list[Figure]:
    return [cell for row in _figures(library, table, machine) for cell in row if cell is not None]


def resolve_table(
    library: Library, guide: str, text: str, language: Language, count: PageCount
) -> tuple[Table, list[tuple[Machine, list[list[Entry]]]]]:
    """The table that a fence of `guide` asks for, and what it shows on each machine, the default one first.

    Parameters:
        library: Scripts and records.
        guide: Whose page.
        text: The body of the fence.
        language: The page's.
        count: Takes in its cells.

    Raises:
        UnresolvedError: It asks for something that is not there, or for more than the page has room for.
    """
    table = read_table(text, library)
    count.add(sum(len(row.names) + len(row.quantities) for row in table.rows))
    # Each is made for every machine; a mark shows the verdict of a claim, as a fence of its own does.
    count.handbook.add(places=sum(len(row.marks) + bool(row.note) + bool(row.link) for row in table.rows))
    machine = table.machine or library.first_machine(guide, table.script.reference)
    _check_predicted(library, table)
    entries = _table_entries(library, table, machine, language)
    if entries is None or (table.machine and _is_empty(entries)):
        fix = missing_fix(machine, table.script.reference)
        raise UnresolvedError(f"nothing of this table was recorded on {machine.name}", fix)

    def shown_on(other: Machine) -> list[list[Entry]] | None:
        more = _table_entries(library, table, other, language)
        return None if more is None or _is_empty(more) else more

    others = () if table.machine else library.shown_on(table.script.reference)
    return table, [(machine, entries), *found_elsewhere(machine, others, shown_on)]


def _check_predicted(library: Library, table: Table) -> None:
    """Raise UnresolvedError if a column of predictions has none on any machine."""
    script = table.script
    machines = (table.machine,) if table.machine else library.predicted_on(script.reference)
    for index, quantity in enumerate(table.rows[0].quantities):
        targets = [row.quantities[index].target(script, row.variant) for row in table.rows]
        if quantity.show != "measured" and not any(
            find_prediction(library, target, machine) for target in targets for machine in machines
        ):
            raise never_predicted(f"`{quantity.label_key}` of `{script.reference}`", script.reference)


def _is_empty(entries: Sequence[Sequence[Entry]]) -> bool:
    """Whether a machine has something of the script, and nothing of what the table shows."""
    return all(entry.text == MISSING for row in entries for entry in row)


def render_table(build: Build, text: str) -> str:
    """The HTML of a `table` fence with the body `text`; raises as `resolve_table` does."""
    library, page = build.library, build.here
    language = page.language
    table, found = resolve_table(library, page.guide, text, language, page.count)
    (shown, known), *others = found
    frame = _frame(table, known, language)
    for row in table.rows:
        for claim, _ in row.marks:
            show_once(build, claim)
    for machine, entries in others:
        build.keep_block(table.key, machine, _rendering(build, table, frame, machine, entries))
    parts = _rendering(build, table, frame, shown, known).parts
    # A block without a key does not follow the choice of machine.
    key = "" if table.machine else f' data-bb="{escape(table.key)}"'
    return (
        f'<div class="bb-table"{key} data-machine="{escape(shown.name)}">'
        f'<table class="{frame.look}">{frame.head}<tbody data-part="rows">{parts["rows"]}</tbody></table>'
        f"{details_element(parts['origin'])}</div>"
    )


@dataclass(frozen=True)
class Frame:
    """What stays of a table on every machine.

    Parameters:
        head: The HTML of its caption and its heads.
        look: The class of the table.
        names: What stands before each entry of a row on a phone, which shows the row as a card.
    """

    head: str
    look: str
    names: tuple[str, ...]


def _frame(table: Table, entries: Sequence[Sequence[Entry]], language: Language) -> Frame:
    """The frame of a table that shows `entries` at first."""
    scope = table.script.reference
    columns = [*(_SINGULAR.get(axis, axis) for axis in table.axes), *table.heads]
    heads = [name_label(language, name, scope) for name in columns[: len(table.axes)]]
    heads += [
        head_label(language, name, scope, quantity.show, quantity.which)
        for name, quantity in zip(table.heads, table.rows[0].quantities, strict=True)
    ]
    marks = [_kept_whole(language.label(name, scope) or name) for name in columns]
    if table.order:
        # A script orders again by what it can order by; the size of errors is none of it.
        direction = "other" if table.order.size else "descending" if table.order.descending else "ascending"
        marks[len(table.axes) + table.order.column] += f' aria-sort="{direction}"'
    head = "".join(f'<th scope="col"{mark}>{label}</th>' for mark, label in zip(marks, heads, strict=True))
    caption = f"<caption>{language.words(table.caption)}</caption>" if table.caption else ""
    wide = len(columns) > 2 and _is_wide(table, entries, columns, language)
    names = [_card_name(one) if wide else "" for one in heads]
    look = "bb-pair" if len(columns) == 2 else "bb-cards" if wide else "bb-narrow"
    return Frame(f"{caption}<thead><tr>{head}</tr></thead>", look, tuple(names))


def _card_name(label: str) -> str:
    """The label of a column before an entry on a card: it stands in each row, so in one element if it can."""
    marked = 'class="bb-cardname" aria-hidden="true"'
    if label.startswith("<bdi") and label.find("<", 1) == len(label) - len("</bdi>"):
        return f"<bdi {marked}{label.removeprefix('<bdi')} "
    return f"<span {marked}>{label}</span> "


def _rendering(
    build: Build, table: Table, frame: Frame, machine: Machine, entries: Sequence[Sequence[Entry]]
) -> Rendering:
    """What `machine` changes in a table."""
    language = build.here.language
    build.here.fits |= any(entry.bytes for row in entries for entry in row)
    figures = _shown(build.library, table, machine)
    origin = build.keep_origin(_measured(figures), _predictions(figures), offered=table.machine is None)
    repeats = repeats_text((one.measured for one in figures if one.measured), language)
    rows = _rows(table, frame, entries, machine, build)
    return Rendering({"rows": rows, "origin": render_details(*origin, repeats, language)})


def _rows(
    table: Table, frame: Frame, entries: Sequence[Sequence[Entry]], machine: Machine, build: Build
) -> str:
    language, scope = build.here.language, table.script.reference
    body = ""
    for index in _ordered(table.order, entries):
        row = table.rows[index]
        names = "".join(
            f'<th scope="row">{frame.names[place]}'
            f"{_linked(axis_label(language, axis, value, scope), row, build.here)}"
            f"{_marks(row, build, machine) if place == len(row.names) - 1 else ''}</th>"
            for place, (axis, value) in enumerate(row.names)
        )
        shown = "".join(
            f"<td{_told(quantity)}>{frame.names[len(row.names) + place]}"
            f"{_cell_html(entry, quantity, machine, language)}</td>"
            for place, (entry, quantity) in enumerate(zip(entries[index], row.quantities, strict=True))
        )
        about = f' data-ref="{escape(entries[index][0].ref.partition("#")[0])}"'
        body += f'<tr data-row="{index}"{about}>{names}{shown}</tr>'
    return body


def _is_wide(
    table: Table, entries: Sequence[Sequence[Entry]], columns: Sequence[str], language: Language
) -> bool:
    """Whether a phone cannot hold the table, so that its rows become cards there."""
    if any(row.note for row in table.rows):
        return True
    scope, names = table.script.reference, len(table.axes)
    width = 0
    for place, name in enumerate(columns):
        head = language.label(name, scope) or name
        longest = max(map(_reach, head.split()), default=0)
        for row, shown in zip(table.rows, entries, strict=True):
            if place < names:
                axis, value = row.names[place]
                words = _TAG.sub("", axis_label(language, axis, value, scope)).split()
                longest = max(longest, *map(_reach, words), 0)
            else:
                entry = shown[place - names]
                longest = max(longest, _reach(entry.text), _reach(entry.ratio))
        width += longest + _GAP
    return width > _PHONE


def _reach(text: str) -> int:
    """How wide a text is, in Latin letters: an ideograph is two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _ordered(order: Order | None, entries: Sequence[Sequence[Entry]]) -> list[int]:
    """The rows in the order in which to show them; those without a value go last."""
    places = range(len(entries))
    if order is None:
        return list(places)
    values = [entries[place][order.column].value for place in places]
    sign = -1 if order.descending else 1

    def rank(place: int) -> float:
        number: float = json.loads(values[place] or "0")
        return sign * (abs(number) if order.size else number)

    return sorted(places, key=lambda place: (not values[place], rank(place)))


def _marks(row: TableRow, build: Build, machine: Machine) -> str:
    """The HTML of the claims that a row shows where the table shows `machine`."""
    return "".join(f" {claim_mark(build, claim, sentence, machine)}" for claim, sentence in row.marks)


def _linked(name: str, row: TableRow, page: PageContext) -> str:
    """The HTML of a row's name with what the page adds to it."""
    if row.link:
        name = f'<a href="{escape(page.address(row.link))}">{name}</a>'
    if row.note:
        note = note_html(row.note, right_to_left=page.language.direction == "rtl")
        name += f' <span class="bb-note">{note}</span>'
    return name


def _told(quantity: ShownQuantity) -> str:
    """The attribute of a cell whose head says that it was not measured."""
    return "" if quantity.show == "measured" else f' data-show="{quantity.show}"'


def _kept_whole(label: str) -> str:
    """The class of a head too short to break, which a script without spaces would break anywhere."""
    return ' class="bb-short"' if len(label) <= _SHORT else ""


def _cell_html(entry: Entry, quantity: ShownQuantity, machine: Machine, language: Language) -> str:
    bar = (
        f'<span class="bb-bar" aria-hidden="true" style="--bb-share:{entry.share or 0:.3f}"></span>'
        if quantity.bar
        else ""
    )
    size = f' data-bytes="{entry.bytes}"' if entry.bytes else ""
    kind = f' data-kind="{entry.kind}"' if entry.kind else ""
    mark = f" {predicted_mark(language, entry.fits_not)}" if entry.kind == "prediction" else ""
    direction = "" if entry.words else ' dir="ltr"'
    ratio = f' <span class="bb-ratio" dir="ltr">{escape(entry.ratio)}</span>' if quantity.ratio else ""
    return (
        f'{bar}<data value="{escape(entry.value)}" data-ref="{escape("#" + entry.ref.partition("#")[2])}" '
        f'data-machine="{escape(machine.name)}"{kind}{size}{direction}>{escape(entry.text)}</data>{mark}{ratio}'
    )


def _measured(figures: Sequence[Figure]) -> list[RecordedVariant]:
    """The recorded variants behind `figures`, each once."""
    found = (one.measured.source for one in figures if one.measured is not None)
    return list({source.variant.name: source for source in found}.values())


def _predictions(figures: Sequence[Figure]) -> list[Predicted]:
    """The predictions behind `figures`, of each variant one."""
    found = (one.predicted for one in figures if one.predicted is not None)
    return list({one.prediction.digest: one for one in found}.values())
