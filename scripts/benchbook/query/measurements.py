"""What a reference or an inline value amounts to on a machine: what was measured, or else predicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeVar

from benchbook.content.metadata import ParameterValue
from benchbook.content.parameters import differs
from benchbook.content.predictions import StoredPrediction
from benchbook.content.records import Campaign, MetricValue, Publication, Record, Run, VariantRecord
from benchbook.content.references import (
    Reference,
    Show,
    Target,
    UnfitError,
    UnresolvedError,
    ValueSpec,
    Which,
    check_unit,
    target_of,
)
from benchbook.content.script import Script, Variant
from benchbook.content.units import UNITS, Unit, shared_unit, unit_beside
from benchbook.query.freshness import Verdict
from benchbook.query.library import Cache, Library, Machine, found_elsewhere
from benchbook.statistics import summary as stats

T = TypeVar("T")


@dataclass(frozen=True)
class RecordedVariant:
    """One variant of a script as one machine has it.

    Parameters:
        machine: Where it ran.
        script: The script as it stands.
        variant: As it would run there now.
        record: The file that holds it.
        result: What was recorded.
        campaign: The session in which it was, or the publication it is quoted from.
        verdict: Whether it still describes the script.
    """

    machine: Machine
    script: Script
    variant: Variant
    record: Record
    result: VariantRecord
    campaign: Campaign | Publication
    verdict: Verdict

    @cached_property
    def overridden(self) -> dict[str, ParameterValue]:
        """The parameters that ran with another value than shown, but for the axes of the variant."""
        return {
            name: self.result.parameters[name]
            for name, shown in self.script.shown.items()
            if name in self.result.parameters
            and name not in self.variant.axes
            and differs(self.result.parameters[name], shown)
        }

    @property
    def quoted(self) -> bool:
        """Whether its figures were published elsewhere, not measured here."""
        return isinstance(self.campaign, Publication)


@dataclass(frozen=True)
class Measurement:
    """A quantity on a machine.

    Parameters:
        source: Where it was recorded.
        unit: Its unit.
        samples: One per run, in the order of the runs, or one per seed; empty if the machine yielded none.
        device_memory: Whether it counts bytes of the device's memory.
        flag: Whether it is a yes or a no.
        seeds: Whether the samples are those of seeds, each the median over the runs.
        blocks: Of each run, the values of the blocks that it was timed in; none where it was not.
    """

    source: RecordedVariant
    unit: Unit
    samples: tuple[float, ...]
    device_memory: bool = False
    flag: bool = False
    blocks: tuple[tuple[float, ...], ...] = ()
    seeds: bool = False

    @cached_property
    def summary(self) -> stats.Summary | None:
        """Median and quartiles; None without a sample."""
        return stats.summary(self.samples) if self.samples else None

    @cached_property
    def within_runs(self) -> stats.Summary | None:
        """Of the blocks of the run whose blocks scatter most; None where it was not timed in blocks.

        What processes differ by beyond that is their own: the count of runs is what a comparison rests on.
        """
        summaries = [stats.summary(each) for each in self.blocks]
        return max(summaries, key=lambda each: each.spread or 0.0, default=None)

    @cached_property
    def value(self) -> float | None:
        """The median; None without a sample."""
        return stats.median(self.samples) if self.samples else None


_RECORDED = Cache[tuple[str, str, str], RecordedVariant | None]("recorded variants")
_TARGETS = Cache[Reference, Target]("targets of references")


def recorded(library: Library, script: Script, variant: str, machine: Machine) -> RecordedVariant | None:
    """The variant called `variant` as `machine` has it; None if it was never recorded there."""
    key = (script.reference, variant, machine.name)
    return library.once(_RECORDED, key, lambda: _recorded(library, script, variant, machine))


def _recorded(library: Library, script: Script, variant: str, machine: Machine) -> RecordedVariant | None:
    record = library.record(machine.name, script.reference)
    result = record.variants.get(variant) if record else None
    if record is None or result is None:
        return None
    campaign = record.campaigns.get(result.campaign)
    if campaign is None:
        return None
    now = library.variant_on(script, variant, machine)
    return RecordedVariant(
        machine, script, now, record, result, campaign, library.verdict(script, now, record)
    )


def missing_fix(machine: Machine, scripts: str) -> str:
    """What to do where `machine` has nothing of `scripts`, which only a measured one can be made to have."""
    if machine.published:
        return "quote it in its record, if the publication names it, or show another machine"
    return f"record it there: benchbook record {scripts}"


def found_where_recorded(
    library: Library,
    guide: str,
    script: Script,
    pinned: Machine | None,
    what: str,
    find: Callable[[Machine], T | None],
) -> list[tuple[Machine, T]]:
    """What `find` finds of `script` on the machine a page of `guide` shows first, and on each other.

    Args:
        library: What is recorded.
        guide: The guide of the page.
        script: Whose records are searched.
        pinned: The only machine to search, if a block names one.
        what: What is sought, in the words of an error.
        find: What there is on a machine, or None.

    Raises:
        UnresolvedError: There is nothing on the first of them.
    """
    machine = pinned or library.machine_for(guide, script.reference)
    found = find(machine)
    if found is None:
        fix = missing_fix(machine, script.reference)
        raise UnresolvedError(f"nothing of {what} was recorded on {machine.name}", fix)
    others = () if pinned else library.machines_with(script.reference)
    return [(machine, found), *found_elsewhere(machine, others, find)]


def shown_variant(script: Script, among: Sequence[Variant] = ()) -> Variant:
    """The variant that runs what the script shows, else the first, of `among` if that is given."""
    variants = among or script.variants(())
    exact = (v for v in variants if not v.overridden and v.ranks == script.metadata.ranks)
    return next(exact, variants[0])


def measure(library: Library, target: Target, machine: Machine) -> Measurement | None:
    """The quantity `target` on `machine`; None if its variant was never recorded there.

    Raises:
        UnresolvedError: It is a series and no item was named, or the other way round.
    """
    source = recorded(library, target.script, target.variant.name, machine)
    if source is None:
        return None
    runs = sorted(source.result.runs, key=lambda run: run.place)
    # A record may be older than the declaration that there is a number for each seed.
    if target.seeds and all(isinstance(run.metrics.get(target.reference.name), list) for run in runs):
        samples = measure_series(library, target, machine) or ()
        return Measurement(source, target.unit, samples, target.device_memory, seeds=True)
    values = [_value(run, target.reference) for run in runs]
    samples = tuple(item for item in values if item is not None)
    flag = bool(samples) and all(isinstance(item, bool) for item in samples)
    timed = [run.blocks.get(target.reference.name, []) for run in runs]
    blocks = tuple(tuple(map(float, each)) for each in timed if each)
    return Measurement(source, target.unit, samples, target.device_memory, flag, blocks)


def measure_series(library: Library, target: Target, machine: Machine) -> tuple[float, ...] | None:
    """The medians over the runs of each item of the series `target`; None if it was never recorded there.

    Raises:
        UnresolvedError: It is not a series.
    """
    source = recorded(library, target.script, target.variant.name, machine)
    if source is None:
        return None
    runs: list[Sequence[float]] = []
    for run in source.result.runs:
        value = run.metrics.get(target.reference.name)
        if value is not None and not isinstance(value, list):
            fix = "leave `x: step` for a metric that is a list"
            raise UnfitError(f"`{target.reference}` is one number, not a series", fix)
        if value is not None:
            runs.append(value)
    length = min((len(run) for run in runs), default=0)
    return tuple(stats.median([run[index] for run in runs]) for index in range(length))


def find_target(library: Library, reference: Reference) -> Target:
    """What `reference` stands for in the script that it names.

    Raises:
        UnresolvedError: It stands for nothing there.
    """
    return library.once(_TARGETS, reference, lambda: target_of(reference, library.script(reference.script)))


def check_one_campaign(first: Measurement, second: Measurement) -> None:
    """Raise UnresolvedError if the ratio of the two compares times that were not measured side by side."""
    timed = any(part.unit.dimension in ("time", "rate") for part in (first, second))
    if timed and first.source.result.campaign != second.source.result.campaign:
        scripts = sorted({part.source.script.reference for part in (first, second)})
        what = f"compares times of two campaigns on {first.source.machine.name}"
        raise UnfitError(what, f"record both in one: benchbook record --all {' '.join(scripts)}")


def _value(run: Run, reference: Reference) -> float | None:
    if reference.meter is not None:
        return run.meter(reference.name, reference.meter)
    value: MetricValue | None = run.metrics.get(reference.name)
    if isinstance(value, list):
        if reference.index is None:
            what = f"`{reference}` is a series of {len(value)}"
            raise UnfitError(what, f"name an item, such as `{reference}[-1]`, or show it in a chart")
        try:
            return value[reference.index]
        except IndexError:
            what = f"`{reference}` is beyond the end of a series of {len(value)}"
            raise UnfitError(what, f"use an index from 0 to {len(value) - 1}, or a negative one") from None
    if value is not None and reference.index is not None:
        raise UnfitError(
            f"`{reference.name}` is one number, not a series", f"leave `[{reference.index}]` away"
        )
    return value


Kind = Literal["measurement", "prediction", "error"]


@dataclass(frozen=True)
class Predicted:
    """A quantity as it was predicted on a machine.

    Parameters:
        machine: Where it was not measured, or was predicted.
        script: The script.
        variant: The name of its variant.
        prediction: The whole prediction.
        value: Its bytes.
    """

    machine: Machine
    script: Script
    variant: str
    prediction: StoredPrediction
    value: int

    @property
    def fits_not(self) -> bool:
        """Whether the run needs more memory than the machine's device has room for."""
        return self.prediction.fits is False


@dataclass(frozen=True)
class Figure:
    """A quantity as a page shows it.

    Parameters:
        kind: What its value is.
        value: The number, in `unit`; None where there is none.
        unit: The unit it is in.
        measured: What was measured, if anything.
        predicted: What was predicted, where that is shown or compared.
        device_memory: Whether it counts bytes of the device's memory.
    """

    kind: Kind
    value: float | None
    unit: Unit
    measured: Measurement | None = None
    predicted: Predicted | None = None
    device_memory: bool = False

    @property
    def flag(self) -> bool:
        """Whether it is a yes or a no."""
        return self.kind == "measurement" and self.measured is not None and self.measured.flag

    @property
    def fits_not(self) -> bool:
        """Whether it is of a run that is predicted to run out of memory."""
        return self.kind == "prediction" and self.predicted is not None and self.predicted.fits_not


def figure(
    library: Library, target: Target, machine: Machine, show: Show = "measured", which: Which = "first"
) -> Figure | None:
    """What a page shows of `target` on `machine`; None if it was neither measured nor predicted there.

    A run that went wrong is a finding, which no prediction hides.

    Raises:
        UnresolvedError: It is a series and no item was named, or the other way round.
    """
    found = measure(library, target, machine)
    predicted = find_prediction(library, target, machine, which)
    if show == "measured" and found is not None:
        failed = found.value is None and found.source.result.outcome != "ok"
        if found.value is not None or failed or predicted is None:
            return Figure("measurement", found.value, target.unit, found, None, target.device_memory)
    if show == "error":
        return _error(found, predicted)
    if predicted is None:
        return None
    return Figure("prediction", predicted.value, target.unit, None, predicted, True)


def _error(found: Measurement | None, predicted: Predicted | None) -> Figure | None:
    """How far the prediction is off what was measured, as a share of that; None without two of the same."""
    if found is None or predicted is None or not found.value:
        return None
    if repr(sorted(found.source.result.parameters.items())) != _parameters(predicted.prediction):
        return None
    return Figure("error", predicted.value / found.value - 1, UNITS["1"], found, predicted)


def _parameters(prediction: StoredPrediction) -> str:
    return repr(sorted(prediction.parameters.items()))


def find_prediction(
    library: Library, target: Target, machine: Machine, which: Which = "first"
) -> Predicted | None:
    """What was predicted of `target` on `machine`; None if nothing was."""
    reference = target.reference
    if not target.device_memory or reference.index is not None:
        return None
    record = library.predictions(machine.name, target.script.reference)
    prediction = record.variants.get(target.variant.name) if record else None
    if prediction is not None and which == "anew":
        prediction = prediction.anew or prediction
    name = f"{reference.name}.{reference.meter}" if reference.meter else reference.name
    if prediction is None or name not in prediction.values:
        return None
    return Predicted(machine, target.script, target.variant.name, prediction, prediction.values[name])


def check_predictable(target: Target, show: Show) -> None:
    """Raise UnresolvedError if no prediction can be of `target`."""
    if show != "measured" and not target.device_memory:
        what = f"`{target.reference}` counts no bytes of the device's memory, which alone is predicted"
        raise UnresolvedError(what, 'name what the allocator counts, or a metric with `memory = "device"`')


def never_predicted(what: str, script: str) -> UnresolvedError:
    """The problem that nothing was predicted of what a page wants to show."""
    guide = script.partition("/")[0]
    fix = f"declare it in snippets/{guide}/predictions.toml and run `benchbook predictions {script}`"
    return UnresolvedError(f"{what} was never predicted", fix)


@dataclass(frozen=True)
class Computed:
    """What an inline value shows on a machine.

    Parameters:
        value: The number, in `unit`; None where the machine has none, or compares with 0 there.
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
    def by_nothing(self) -> bool:
        """Whether it compares with 0, so that it has no value although each of its figures has one."""
        return self.value is None and all(one.value is not None for one in self.figures)

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
