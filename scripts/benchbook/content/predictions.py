"""The prediction as a record of its own kind: `snippets/predictions/<machine>/<guide>/<script>.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from benchbook.content.metadata import ParameterValue
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.records import LICENCE, dump_json, write_text

SCHEMA = 1
NOT_A_PREDICTION = "is not a prediction"
PREDICT_AGAIN = "predict it again with `benchbook predictions`"
# What a prediction without a room leaves out, as all did once: their digests stay what they are.
_LEFT_OUT = ("room", "fits")


@dataclass(frozen=True)
class StoredPrediction:
    """What the predictor said of one variant on one machine.

    Parameters:
        made: When, as `2026-11-20T17:30:00Z`.
        commit: What was checked out; None outside a repository.
        modified: Whether scripts or the predictor differed from it.
        blind: Whether nothing of the variant had been measured on the machine: it stays as it is.
        predictor: The version of the predictor's rules.
        packages: The versions of what it ran on.
        parameters: Those of the script, with the values that it has there.
        model: The configuration.
        kind: "training" or "inference".
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

    made: str
    commit: str | None
    modified: bool
    blind: bool
    predictor: int
    packages: dict[str, str]
    parameters: dict[str, ParameterValue]
    model: dict[str, Any]
    kind: str
    workload: dict[str, Any]
    values: dict[str, int]
    stands_for: dict[str, tuple[str, ...]]
    moment: str
    peak_allocated: int
    peak_reserved: int | None
    categories: dict[str, int]
    moments: dict[str, dict[str, int]]
    unexplained: int
    room: int | None = None
    fits: bool | None = None
    digest: str = ""
    anew: StoredPrediction | None = None

    def sealed(self, script: str, variant: str, machine: str) -> StoredPrediction:
        """It with the digest of what it says."""
        return replace(self, digest=digest_of(asdict(self), script, variant, machine))


@dataclass(frozen=True)
class PredictionRecord:
    """The predictions of one script on one machine, by variant."""

    script: str
    machine: str
    variants: dict[str, StoredPrediction] = field(default_factory=dict)
    licence: str = LICENCE
    schema: int = SCHEMA


def digest_of(prediction: Mapping[str, Any], script: str, variant: str, machine: str) -> str:
    """`sha256:...` of what a prediction says, however its JSON is laid out."""
    content = {key: value for key, value in _said(prediction).items() if key not in ("digest", "anew")}
    content |= {"script": script, "variant": variant, "machine": machine}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def prediction_from(table: Mapping[str, Any]) -> PredictionRecord:
    """The predictions that a JSON object holds.

    Raises:
        KeyError, TypeError, ValueError: It has not the shape of them.
    """
    if table.get("schema") != SCHEMA:
        raise ValueError(f"schema {table.get('schema')!r} is not {SCHEMA}")
    variants = {name: _one_from(one) for name, one in table["variants"].items()}
    known = {item.name for item in fields(PredictionRecord)}
    if unknown := sorted(set(table) - known):
        raise KeyError(f"unknown key {unknown[0]!r}")
    return PredictionRecord(**{**table, "variants": variants})


def _one_from(table: Mapping[str, Any]) -> StoredPrediction:
    stands = {value: tuple(parts) for value, parts in table["stands_for"].items()}
    anew = _one_from(table["anew"]) if table.get("anew") else None
    return StoredPrediction(**{**table, "stands_for": stands, "anew": anew})


def load_predictions(path: Path, shown_path: str | None = None) -> PredictionRecord | None:
    """The predictions in `path`, None if there is no such file.

    Raises:
        BenchbookError: The file holds none.
    """
    shown = shown_path or path.name
    try:
        return prediction_from(json.loads(path.read_text("utf-8")))
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
    order = ("schema", "script", "machine", "licence", "variants")
    return dump_json({key: table[key] for key in order})


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
