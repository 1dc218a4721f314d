"""The prediction as a record of its own kind: `snippets/predictions/<machine>/<guide>/<script>.json`."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from benchbook.content.formats import (
    Bytes,
    Commit,
    Count,
    Digest,
    Instant,
    Limit,
    MachineName,
    Name,
    OneOf,
    Passes,
    Reference,
    Short,
    Some,
    Stored,
    Value,
    VariantName,
    at_most,
    from_table,
    json_text,
)
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.records import MOST_REPEATED, MOST_SET, Parameters, Versions, dump_json, write_text

NOT_A_PREDICTION = "is not a prediction"
PREDICT_AGAIN = "predict it again with `benchbook predictions`"
# What a prediction without a room leaves out, as all did once: their digests stay what they are.
_LEFT_OUT = ("room", "fits")
# The version of the predictor's rules, which every prediction names. Whoever changes what the predictor says
# raises it; a test predicts committed predictions anew, and fails where that was forgotten. A digest of its
# sources would call every prediction stale after any tidying, also those that must stay as they are.
PREDICTOR = 1

_PART = r"(?:peak_allocated|peak_reserved|categories\.[a-z_0-9]+|moments\.[a-z_0-9]+\.(?:peak|held))"
_MEASURED = r"#[A-Za-z_][A-Za-z0-9_]*(?:\.[a-z_]+)?"
Quantity = Annotated[str, Limit(pattern=f"^(?:{_PART}|{_MEASURED})$")]
ANY_QUANTITY = re.compile(f"(?:{_PART}|{_MEASURED})")
# What a CPU, which has no caching allocator, cannot be asked.
RESERVED = "peak_reserved"
ValueName = Annotated[str, Limit(pattern=r"^[A-Za-z_][A-Za-z0-9_]*(\.[a-z_]+)?$")]
Setting = Value | Short | list[Value] | list[Short]
# A run has some seven.
MOST_MOMENTS = 100
# Every number on a page that was predicted may repeat it.
Bounded = Passes(at_most(MOST_REPEATED))


@dataclass(frozen=True)
class StoredMoment(Stored):
    """A moment: its peak, and what is held at its end, in bytes."""

    peak: Bytes
    held: Bytes


@dataclass(frozen=True)
class StoredPrediction(Stored):
    """What the predictor said of one variant on one machine.

    Parameters:
        made: When, as `2026-11-20T17:30:00Z`.
        commit: What was checked out; None outside a repository.
        modified: Whether scripts or the predictor differed from it.
        blind: Whether nothing of the variant had been measured on the machine: it stays as it is.
        predictor: The version of the predictor's rules.
        packages: The versions of what it ran on.
        parameters: Those of the script, with the values that it has there.
        model: The configuration; none of a script that makes its own.
        kind: "training", "inference" or "run".
        workload: Its fields.
        values: Bytes by metric or meter ("train.allocated_peak").
        stands_for: The quantities whose sum each of them is.
        moment: When the peak comes.
        peak_allocated: Bytes.
        peak_reserved: Bytes; None where there is no caching allocator.
        categories: Bytes at the peak, by category.
        moments: By moment, its peak and what is held at its end, in bytes.
        unexplained: Bytes of the peak that no category explains.
        room: Bytes that torch's allocator can take of the device; None where that was not asked.
        fits: Whether they suffice; None where that was not asked.
        digest: `sha256:...` of all the rest but `anew`, with the script, the variant and the machine.
        anew: What was predicted once a blind prediction had been put to the test and no longer held: by
            better rules, or of what is asked now.
    """

    made: Instant
    commit: Commit | None
    modified: bool
    blind: bool
    predictor: Count
    packages: Versions
    parameters: Parameters
    model: Annotated[dict[Name, Any], Passes(at_most(MOST_SET))]
    kind: Annotated[str, OneOf(("training", "inference", "run"))]
    workload: Annotated[dict[Name, Setting | dict[Name, Any]], Bounded]
    values: Annotated[dict[ValueName, Bytes], Bounded]
    stands_for: Annotated[dict[ValueName, Some[Quantity]], Bounded]
    moment: Name
    peak_allocated: Bytes
    peak_reserved: Bytes | None
    categories: Annotated[dict[Name, Bytes], Bounded]
    moments: Annotated[dict[Name, StoredMoment], Limit(max_length=MOST_MOMENTS)]
    unexplained: Annotated[int, Limit(ge=-(2**62), le=2**62)]
    room: Bytes | None = None
    fits: bool | None = None
    digest: Digest = ""
    anew: StoredPrediction | None = None

    def __post_init__(self) -> None:
        """The peak is that of a moment, every value stands for something, and what fits is no larger."""
        if self.moment not in self.moments:
            raise ValueError(f"its moment {self.moment!r} is not among its moments")
        if set(self.values) != set(self.stands_for):
            raise ValueError("`values` and `stands_for` name different values")
        if self.peak_reserved is not None and self.peak_reserved < self.peak_allocated:
            raise ValueError("it reserves less than it allocates")
        if (self.room is None) != (self.fits is None):
            raise ValueError("`room` and `fits` go together")
        if self.room is not None and (
            self.peak_reserved is None or self.fits != (self.peak_reserved <= self.room)
        ):
            raise ValueError("`fits` is not what `peak_reserved` and `room` say")
        if self.anew is not None and (not self.blind or self.anew.blind or self.anew.anew is not None):
            raise ValueError("only beside a blind prediction stands another, which is not")

    def sealed(self, script: str, variant: str, machine: str) -> StoredPrediction:
        """It with the digest of what it says."""
        return replace(self, digest=digest_of(asdict(self), script, variant, machine))


@dataclass(frozen=True)
class PredictionRecord(Stored):
    """The predictions of one script on one machine, by variant."""

    schema: Literal[1]
    script: Reference
    machine: MachineName
    licence: Literal["CC0-1.0"]
    variants: dict[VariantName, StoredPrediction]

    @classmethod
    def of(
        cls, script: str, machine: str, variants: Mapping[str, StoredPrediction] | None = None
    ) -> PredictionRecord:
        """Predictions as they are written today, none yet if no more is given."""
        return cls(1, script, machine, "CC0-1.0", dict(variants or {}))


def digest_of(prediction: Mapping[str, Any], script: str, variant: str, machine: str) -> str:
    """`sha256:...` of what a prediction says, however its JSON is laid out."""
    content = {key: value for key, value in _said(prediction).items() if key not in ("digest", "anew")}
    content |= {"script": script, "variant": variant, "machine": machine}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def load_predictions(path: Path, shown_path: str | None = None) -> PredictionRecord | None:
    """The predictions in `path`, None if there is no such file.

    Raises:
        BenchbookError: The file holds none.
    """
    shown = shown_path or path.name
    try:
        return from_table(PredictionRecord, json.loads(json_text(path)))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise BenchbookError(
            Problem(shown, error.lineno, f"is not JSON ({error.msg})", PREDICT_AGAIN)
        ) from error
    except (OSError, RecursionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BenchbookError(Problem(shown, 1, f"{NOT_A_PREDICTION} ({error})", PREDICT_AGAIN)) from error


def dump_predictions(record: PredictionRecord) -> str:
    """The text of a file: keys in a fixed order, so that what is predicted anew diffs readably."""
    table = asdict(record)
    table["variants"] = {name: _without_empty(one) for name, one in table["variants"].items()}
    return dump_json(table)


def _without_empty(prediction: dict[str, Any]) -> dict[str, Any]:
    anew = prediction.pop("anew")
    said = _said(prediction)
    return {**said, "anew": _without_empty(anew)} if anew else said


def _said(prediction: Mapping[str, Any]) -> dict[str, Any]:
    """A prediction without what it may leave out, and does."""
    return {key: value for key, value in prediction.items() if key not in _LEFT_OUT or value is not None}


def write_predictions(path: Path, record: PredictionRecord) -> None:
    """Put `record` in place, atomically."""
    write_text(path, dump_predictions(record))


def is_measured(quantity: str) -> bool:
    """Whether a part of a value is not a prediction, but was measured beside it: the context of a GPU."""
    return quantity.startswith("#")


def predicted_quantity(quantity: str, answer: Mapping[str, Any]) -> int | None:
    """The bytes that an answer of the predictor has for `quantity`; None if it has none.

    Parameters:
        quantity: "peak_allocated", "categories.weights", "moments.backward.held", ...
        answer: `peak_allocated`, `peak_reserved`, `categories` and `moments` of a prediction.
    """
    found: Any = answer
    for key in quantity.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, int) else None


def contradictions(prediction: StoredPrediction) -> Iterator[str]:
    """Where the bytes of a prediction are not those that its own fields add up to."""
    answer = asdict(prediction)
    for name, value in prediction.values.items():
        said = [part for part in prediction.stands_for[name] if not is_measured(part)]
        parts = [predicted_quantity(part, answer) for part in said]
        least = sum(part or 0 for part in parts)
        # What the machine measured is added, and stands in its record.
        whole = len(said) == len(prediction.stands_for[name])
        if None in parts or value < least or (whole and value != least):
            yield f"{name} is {value} B, and {' + '.join(prediction.stands_for[name])} is not"
    peaks = {name: moment.peak for name, moment in prediction.moments.items()}
    if (
        prediction.peak_allocated != peaks[prediction.moment]
        or max(peaks.values()) > prediction.peak_allocated
    ):
        yield f"peak_allocated is {prediction.peak_allocated} B, and its moments say otherwise"
    for name, moment in prediction.moments.items():
        if moment.held > moment.peak:
            yield f"moments.{name} holds {moment.held} B at its end, more than its peak of {moment.peak} B"
    if (held := sum(prediction.categories.values()) + prediction.unexplained) != prediction.peak_allocated:
        yield f"its categories add up to {held} B, and peak_allocated is {prediction.peak_allocated} B"


def parts_of(declared: object) -> tuple[str, ...]:
    """The quantities whose sum a value is: one, or a list of them.

    Raises:
        ValueError: It names something else.
    """
    parts = declared if isinstance(declared, list) else [declared]
    for part in parts or [declared]:
        if not isinstance(part, str) or ANY_QUANTITY.fullmatch(part) is None:
            raise ValueError(f"{part!r} is not a quantity of a prediction")
    return tuple(parts)


def is_parameter(value: object) -> bool:
    """Whether a declared value names a parameter of the script: `$batch_size`."""
    return isinstance(value, str) and re.fullmatch(r"\$[A-Za-z_][A-Za-z0-9_]*", value) is not None
