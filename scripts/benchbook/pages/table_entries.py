"""The entries of a table: the numbers of a column in one unit, their bars and ratios, or words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchbook.pages.labels import OUTCOMES
from benchbook.pages.languages import Language
from benchbook.pages.measurements import check_one_campaign
from benchbook.pages.predicted import Figure
from benchbook.pages.quantities import convert, sensible_unit
from benchbook.pages.specs import Quantity
from benchbook.pages.table_rows import Table
from benchbook.pages.values import raw

MISSING = "—"
# Less than so much of its unit is shown in a smaller one.
_TRACE = 0.001


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


def _entry(cell: Figure | None, quantity: Quantity, ref: str, largest: float, language: Language) -> Entry:
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
    # One unit for the whole column, so that its numbers can be compared at a glance, but for a trace of it.
    shown = quantity.shown or sensible_unit(largest, quantity.unit)
    if 0 < abs(convert(cell.value, quantity.unit, shown)) < _TRACE:
        shown = sensible_unit(cell.value, quantity.unit)
    text = language.quantity(cell.value, quantity.unit, shown).text
    share = round(abs(cell.value) / largest, 3) if quantity.bar and largest else None
    size = raw(cell.value) if cell.device_memory else ""
    kind = cell.kind if cell.kind != "measurement" else ""
    return Entry(text, raw(cell.value), ref, False, size, share, kind=kind, fits_not=cell.fits_not)


def _ratio(first: Figure, cell: Figure, language: Language) -> str:
    """How `cell` compares with `first`; empty where one was measured and the other predicted."""
    if not first.value or cell.value is None or first.kind != cell.kind:
        return ""
    if first.measured is not None and cell.measured is not None:
        check_one_campaign(first.measured, cell.measured)
    return f"{language.number(cell.value / first.value)}×"
