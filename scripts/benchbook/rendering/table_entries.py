"""The entries of a table: the numbers of a column in one unit, their bars and ratios, or words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchbook.content.conversion import shared_unit, unit_beside
from benchbook.content.units import Unit
from benchbook.languages.language import Language
from benchbook.query.measurements import check_one_campaign
from benchbook.query.predicted import Figure
from benchbook.rendering.labels import OUTCOMES
from benchbook.rendering.specs import ShownQuantity
from benchbook.rendering.table_rows import Table
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
