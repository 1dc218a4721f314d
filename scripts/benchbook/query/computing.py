"""What an inline value amounts to on a machine: a quantity, a ratio of two, or what one saves of another."""

from __future__ import annotations

from dataclasses import dataclass

from benchbook.content.conversion import shared_unit, unit_beside
from benchbook.content.references import Reference, Show, Target, UnresolvedError, ValueSpec, check_unit
from benchbook.content.units import UNITS, Unit
from benchbook.query.library import Library, Machine
from benchbook.query.measurements import Measurement, check_one_campaign, find_target
from benchbook.query.predicted import Figure, Kind, Predicted, check_predictable, figure
from benchbook.statistics import summary as stats


@dataclass(frozen=True)
class Computed:
    """What an inline value shows on a machine.

    Parameters:
        value: The number, in `unit`; None where the machine has none.
        unit: The unit it is in.
        shown: The unit to show it in; None for a sensible one.
        figures: What it is made of, all of one kind.
    """

    value: float | None
    unit: Unit
    shown: Unit | None
    figures: tuple[Figure, ...]

    @property
    def kind(self) -> Kind:
        """Whether it was measured, predicted, or tells how far these two differ."""
        return self.figures[0].kind

    @property
    def parts(self) -> tuple[Measurement, ...]:
        """The measurements it is made of."""
        return tuple(one.measured for one in self.figures if one.measured is not None)

    @property
    def fits_not(self) -> bool:
        """Whether it shows a prediction of a run that does not fit the machine."""
        return any(one.fits_not for one in self.figures)

    @property
    def predictions(self) -> tuple[Predicted, ...]:
        """The predictions it is made of."""
        return tuple(one.predicted for one in self.figures if one.predicted is not None)


def compute_value(library: Library, spec: ValueSpec, machine: Machine) -> Computed | None:
    """What the inline value `spec` amounts to on `machine`; None if nothing is known of a part there.

    What was measured is never compared with what was predicted.

    Raises:
        UnresolvedError: It means nothing, or compares times of two campaigns.
    """
    first = find_target(library, spec.first)
    check_predictable(first, spec.show)
    if spec.second is None:
        shown = UNITS["percent"] if spec.show == "error" else check_unit(first.unit, spec.unit)
        found = figure(library, first, machine, spec.show)
        if found is not None and spec.beside is not None:
            shown = _unit_beside(library, spec.beside, found, machine)
        return None if found is None else Computed(found.value, found.unit, shown, (found,))
    second = find_target(library, spec.second)
    check_predictable(second, spec.show)
    _check_comparable(first, second)
    parts = _of_one_kind(library, first, second, machine, spec.show)
    if parts is None:
        return None
    if parts[0].measured is not None and parts[1].measured is not None:
        check_one_campaign(parts[0].measured, parts[1].measured)
    shown = UNITS["percent"] if spec.unit == "percent" else None
    values = (parts[0].value, parts[1].value)
    if values[0] is None or values[1] is None:
        return Computed(None, UNITS["1"], shown, parts)
    scaled = (values[0] * first.unit.factor, values[1] * second.unit.factor)
    value = (stats.saving if spec.form == "saving" else stats.ratio)(*scaled)
    if value is None:
        raise UnresolvedError(
            f"`{spec.second}` is 0 on {machine.name}", "compare with a quantity that is not 0"
        )
    return Computed(value, UNITS["1"], shown, parts)


def _unit_beside(library: Library, beside: Reference, found: Figure, machine: Machine) -> Unit | None:
    """The unit for `found` in a sentence that compares it with `beside`; None where there is no such two."""
    target = find_target(library, beside)
    if target.unit.dimension != found.unit.dimension:
        what = f"`{beside}` is in {target.unit.symbol}, not in {found.unit.symbol}"
        raise UnresolvedError(what, "name a quantity of the same kind after `beside`")
    other = figure(library, target, machine)
    if other is None or other.value is None or found.value is None:
        return None
    shared = shared_unit([(found.value, found.unit), (other.value, other.unit)])
    return unit_beside(found.value, found.unit, shared)


def _of_one_kind(
    library: Library, first: Target, second: Target, machine: Machine, show: Show
) -> tuple[Figure, Figure] | None:
    """Two figures, both measured or both predicted; None where there are no such two."""
    ways: tuple[Show, ...] = (show, "predicted")
    for way in ways:
        one, other = (figure(library, target, machine, way) for target in (first, second))
        if one is not None and other is not None and one.kind == other.kind:
            return one, other
    return None


def _check_comparable(first: Target, second: Target) -> None:
    """Raise UnresolvedError if a ratio of the two means nothing."""
    if first.unit.dimension != second.unit.dimension:
        what = f"`{first.reference}` is in {first.unit.symbol}, `{second.reference}` in {second.unit.symbol}"
        raise UnresolvedError(what, "compare two quantities of one kind")
