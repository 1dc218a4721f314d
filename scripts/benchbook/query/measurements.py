"""What a reference amounts to on a machine: the median, its samples, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from benchbook.content.metadata import ParameterValue
from benchbook.content.parameters import differs
from benchbook.content.records import Campaign, MetricValue, Publication, Record, Run, VariantRecord
from benchbook.content.references import Reference, Target, UnresolvedError, target_of
from benchbook.content.script import Script, Variant
from benchbook.content.units import Unit
from benchbook.query.freshness import Verdict
from benchbook.query.library import Cache, Library, Machine
from benchbook.statistics import summary as stats


@dataclass(frozen=True)
class RecordedVariant:
    """One variant of a script as one machine has it.

    Parameters:
        machine: Where it ran.
        script: The script as it stands.
        variant: As it would run there now.
        record: The file that holds it.
        result: What was recorded.
        campaign: The sitting in which it was, or the publication it is quoted from.
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
        samples: One per run, in the order of the runs; empty if the machine yielded none.
        device_memory: Whether it counts bytes of the device's memory.
        flag: Whether it is a yes or a no.
        blocks: Of each run, the values of the blocks that it was timed in; none where it was not.
    """

    source: RecordedVariant
    unit: Unit
    samples: tuple[float, ...]
    device_memory: bool = False
    flag: bool = False
    blocks: tuple[tuple[float, ...], ...] = ()

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


def missing_mend(machine: Machine, scripts: str) -> str:
    """What to do where `machine` has nothing of `scripts`, which only a measured one can be made to have."""
    if machine.published:
        return "quote it in its record, if the publication names it, or show another machine"
    return f"record it there: benchbook record {scripts}"


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
    values = [_value(run, target.reference) for run in runs]
    samples = tuple(item for item in values if item is not None)
    flag = bool(samples) and all(isinstance(item, bool) for item in samples)
    timed = [run.blocks.get(target.reference.name, []) for run in runs]
    blocks = tuple(tuple(map(float, each)) for each in timed if each)
    return Measurement(source, target.unit, samples, target.device_memory, flag, blocks)


def measure_series(library: Library, target: Target, machine: Machine) -> tuple[float, ...] | None:
    """The medians over the runs of each item of the series `target`; None if it was never recorded there.

    Raises:
        UnresolvedError: It is no series.
    """
    source = recorded(library, target.script, target.variant.name, machine)
    if source is None:
        return None
    runs: list[Sequence[float]] = []
    for run in source.result.runs:
        value = run.metrics.get(target.reference.name)
        if value is not None and not isinstance(value, list):
            mend = "leave `x: step` for a metric that is a list"
            raise UnresolvedError(f"`{target.reference}` is one number, not a series", mend)
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
        raise UnresolvedError(what, f"record both in one: benchbook record {' '.join(scripts)}")


def _value(run: Run, reference: Reference) -> float | None:
    if reference.meter is not None:
        return run.meter(reference.name, reference.meter)
    value: MetricValue | None = run.metrics.get(reference.name)
    if isinstance(value, list):
        if reference.index is None:
            what = f"`{reference}` is a series of {len(value)}"
            raise UnresolvedError(what, f"name an item, such as `{reference}[-1]`, or show it in a chart")
        try:
            return value[reference.index]
        except IndexError:
            what = f"`{reference}` is beyond the end of a series of {len(value)}"
            raise UnresolvedError(
                what, f"use an index from 0 to {len(value) - 1}, or a negative one"
            ) from None
    if value is not None and reference.index is not None:
        raise UnresolvedError(
            f"`{reference.name}` is one number, not a series", f"leave `[{reference.index}]` away"
        )
    return value
