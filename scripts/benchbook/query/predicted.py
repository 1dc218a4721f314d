"""What a page shows of a quantity on a machine: a measurement, else a prediction, or how far they differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchbook.content.predictions import StoredPrediction
from benchbook.content.references import Show, Target, UnresolvedError, Which
from benchbook.content.script import Script
from benchbook.content.units import UNITS, Unit
from benchbook.query.library import Library, Machine
from benchbook.query.measurements import Measurement, measure

Kind = Literal["measurement", "prediction", "error"]


@dataclass(frozen=True)
class Predicted:
    """A quantity as it was predicted on a machine.

    Parameters:
        machine: Where it was not measured, or was foretold.
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
    foretold = find_prediction(library, target, machine, which)
    if show == "measured" and found is not None:
        failed = found.value is None and found.source.result.outcome != "ok"
        if found.value is not None or failed or foretold is None:
            return Figure("measurement", found.value, target.unit, found, None, target.device_memory)
    if show == "error":
        return _error(found, foretold)
    if foretold is None:
        return None
    return Figure("prediction", foretold.value, target.unit, None, foretold, True)


def _error(found: Measurement | None, foretold: Predicted | None) -> Figure | None:
    """How far the prediction is off what was measured, as a share of that; None without two of the same."""
    if found is None or foretold is None or not found.value:
        return None
    if repr(sorted(found.source.result.parameters.items())) != _parameters(foretold.prediction):
        return None
    return Figure("error", foretold.value / found.value - 1, UNITS["1"], found, foretold)


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
    mend = f"declare it in snippets/{guide}/predictions.toml and run `benchbook predictions {script}`"
    return UnresolvedError(f"{what} was never predicted", mend)
