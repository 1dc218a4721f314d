"""`benchbook predict`: read a configuration, predict its memory, say it in a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project, find_project
from benchbook.predictor.gpus import H200
from benchbook.predictor.room import ASSUMED_FROM, Room, room_of
from benchbook.predictor.workload import Device, Sharding, Training, UnpredictableError, Workload

if TYPE_CHECKING:
    from benchbook.predictor.prediction import Prediction

MIB = 2**20
SHOWN_LAYERS = 8
MOST_BYTES = 10 * MIB
ABSENT = "–"


def predict_command(
    model: str,
    workload: Workload,
    device: Device,
    gpu: str | None,
    as_json: bool,
    sharding: Sharding | None = None,
) -> int:
    """Print what a model and a workload need; returns the exit code, 1 where it does not fit the GPU.

    Raises:
        BenchbookError: The model or the GPU is not known, or cannot be predicted.
    """
    project = _project()
    path = _path_of(model, project)
    shown = project.relative(path) if project is not None and path.is_relative_to(project.root) else str(path)
    config = _read(path, shown)
    try:
        room = room_of(gpu, project) if gpu is not None else None
        prediction = _predict(config, workload, sharding, device, room)
    except UnpredictableError as error:
        raise BenchbookError(Problem(shown, 1, error.what, error.fix)) from error
    if as_json:
        print(json.dumps(_as_json(shown, workload, sharding, device, prediction, room), indent=2))
    else:
        _print(shown, prediction, sharding, room)
    return int(prediction.fits is False)


def _predict(
    config: Mapping[str, Any],
    workload: Workload,
    sharding: Sharding | None,
    device: Device,
    room: Room | None,
) -> Prediction:
    # Loads torch, which whoever mistypes a name need not wait for.
    from benchbook.predictor.prediction import predict

    gpu, available = (H200, None) if room is None else (room.gpu, room.available)
    if sharding is None or not isinstance(workload, Training):
        return predict(config, workload, device, gpu, available)
    from benchbook.predictor.ranks import predict_ranks

    return predict_ranks(config, workload, sharding, device, gpu, available)


def _project() -> Project | None:
    try:
        return find_project()
    except BenchbookError:
        return None


def _path_of(model: str, project: Project | None) -> Path:
    path = Path(model)
    if path.is_file():
        return path.resolve()
    names = (
        {each.stem: each for each in (project.snippets / "models").glob("*.json")}
        if project is not None
        else {}
    )
    if model in names:
        return names[model]
    fix = did_you_mean(model, names, "model")
    raise BenchbookError(Problem(model, 1, "there is no such configuration", f"give a config.json, or {fix}"))


def _read(path: Path, shown: str) -> dict[str, Any]:
    fix = "give a config.json as transformers writes it"
    if path.stat().st_size > MOST_BYTES:
        raise BenchbookError(Problem(shown, 1, "is far too long for a configuration", fix))
    try:
        config = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise BenchbookError(Problem(shown, error.lineno, f"is no JSON: {error.msg}", fix)) from error
    except (RecursionError, ValueError) as error:
        raise BenchbookError(Problem(shown, 1, f"is no JSON: {error}", fix)) from error
    if not isinstance(config, dict):
        raise BenchbookError(Problem(shown, 1, "is not an object", fix))
    return config


def _as_json(
    model: str,
    workload: Workload,
    sharding: Sharding | None,
    device: Device,
    prediction: Prediction,
    room: Room | None,
) -> dict[str, Any]:
    kind = "training" if isinstance(workload, Training) else "inference"
    found: dict[str, Any] = {"model": model, "device": device, kind: asdict(workload), **asdict(prediction)}
    if sharding is not None:
        found["sharding"] = asdict(sharding)
    if room is not None:
        found["gpu"] = {
            "name": room.gpu.name,
            "memory": room.memory,
            "context": room.context,
            "context_measured": room.measured,
            "room": room.available,
            "machine": room.machine,
            "fits": prediction.fits,
        }
    return found


def _print(model: str, prediction: Prediction, sharding: Sharding | None, room: Room | None) -> None:
    console = Console(highlight=False)
    part = f", one rank of {sharding.ranks} with {sharding.kind}" if sharding is not None else ""
    console.print(f"{model}: {prediction.parameters:,} parameters{part}")
    totals = _table("peak", "MiB")
    totals.add_row(f"allocated, in {prediction.moment}", _mib(prediction.peak_allocated))
    if prediction.peak_reserved is not None:
        totals.add_row("reserved", _mib(prediction.peak_reserved))
    if room is not None:
        assumed = "" if room.measured else ", assumed"
        totals.add_row(f"context of {room.gpu.name}{assumed}", _mib(room.context))
    console.print(totals)
    console.print(_shares("what holds it", prediction.categories, prediction, prediction.unexplained))
    layers = dict(list(prediction.layers.items())[:SHOWN_LAYERS])
    console.print(_shares("where most of it is", layers, prediction))
    moments = _table("moment", "peak, MiB", "held after it, MiB")
    for name, moment in prediction.moments.items():
        moments.add_row(name, _mib(moment.peak), _mib(moment.held))
    console.print(moments)
    if room is not None:
        console.print(_verdict(room, prediction))


def _shares(title: str, parts: Mapping[str, int], prediction: Prediction, rest: int = 0) -> Table:
    table = _table(title, "MiB", "share")
    for name, size in (*parts.items(), *((("unexplained", rest),) if rest else ())):
        table.add_row(name, _mib(size), f"{size / prediction.peak_allocated:.1%}")
    return table


def _verdict(room: Room, prediction: Prediction) -> str:
    if room.memory is None:
        return f"The memory of {room.gpu.name} is not known here."
    word = "fits" if prediction.fits else "does not fit"
    verdict = f"It {word} {room.gpu.name}, which has {_mib(room.memory)} MiB."
    if room.measured:
        return verdict
    return f"{verdict}\nThe context was not measured on it, and is assumed by {ASSUMED_FROM}."


def _table(*heads: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left", no_wrap=True)
    return table


def _mib(size: int) -> str:
    return f"{size / MIB:,.1f}"
