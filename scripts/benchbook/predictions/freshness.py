"""Judge whether a prediction still answers what is asked, and whether a blind one came first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.content.predictions import PREDICTOR, StoredPrediction
from benchbook.content.records import Campaign, Record
from benchbook.predictions.asking import Question


def stale_prediction(prediction: StoredPrediction, question: Question) -> str | None:
    """Why `prediction` no longer answers `question`; None if it does, or what was predicted anew does."""
    reason = next(_changes(prediction, question), None)
    if reason and prediction.anew:
        return next(_changes(prediction.anew, question), None)
    return reason


def _changes(prediction: StoredPrediction, question: Question) -> Iterator[str]:
    if prediction.kind != question.kind:
        yield f"workload changed ({prediction.kind} -> {question.kind})"
    for title, old, new in (
        ("parameter", prediction.parameters, question.parameters),
        ("workload", prediction.workload, question.workload),
        ("model", prediction.model, question.model),
        ("values", prediction.stands_for, question.values),
    ):
        yield from _differences(title, old, new)
    if _room_matters(prediction, question.room):
        before = "not known" if prediction.room is None else f"{prediction.room} B"
        yield f"room changed ({before} -> {question.room} B)"
    if prediction.predictor != PREDICTOR:
        yield f"predictor changed (rules {prediction.predictor} -> {PREDICTOR})"


def _differences(title: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(set(old) | set(new)):
        before, after = (side.get(key, "not set") for side in (old, new))
        # 1, 1.0 and True are equal, and not the same.
        if repr(before) != repr(after):
            yield f"{title} changed ({key}: {_short(before)} -> {_short(after)})"


def _room_matters(prediction: StoredPrediction, room: int | None) -> bool:
    """Whether a known room is another than that of a prediction, and could change whether it fits.

    A context that is measured at last, or again, moves the room by some MiB.
    """
    if room is None or room == prediction.room:
        return False
    needed = prediction.peak_reserved if prediction.fits else prediction.peak_allocated
    return prediction.room is None or needed is None or (needed <= room) != prediction.fits


def _short(value: Any) -> str:
    text = " + ".join(value) if isinstance(value, tuple) else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def measured_at(record: Record | None, variant: str) -> str | None:
    """When a variant was first measured on a machine, as a date or time; None if it never was.

    What a publication says was measured elsewhere counts as known from when it was taken over, or ever since.
    """
    if record is None or variant not in record.variants:
        return None
    name = record.variants[variant].campaign
    campaign = record.campaigns.get(name)
    earlier = (one for one in record.history if one.campaign != name)
    known = [one.date for one in earlier if variant in one.variants]
    if isinstance(campaign, Campaign):
        known.append(campaign.started)
    elif campaign is not None and campaign.taken_over is not None:
        known.append(campaign.taken_over)
    return min(known, default="")


def came_too_late(prediction: StoredPrediction, measured: str) -> bool:
    """Whether a prediction was made after what it predicts was measured.

    Parameters:
        prediction: One that says it was blind.
        measured: A time, or a day: then the whole of it counts as before.
    """
    return prediction.made[: len(measured)] > measured if measured else True
