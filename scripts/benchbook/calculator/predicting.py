"""Predict setups of the calculator, for it to be held against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from benchbook.calculator.memory_model import Setup
from benchbook.calculator.points import Point
from benchbook.predictor.prediction import predict
from benchbook.predictor.workload import Inference, Training, Workload

PROCESSES = 2


def predict_setups(
    configs: Mapping[str, Mapping[str, Any]], setups: Sequence[tuple[str, Setup]]
) -> Iterator[Point]:
    """What the predictor says of each setup, the whole model run."""
    # Processes of their own: what is registered for the fake device is not for two threads.
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        yield from pool.map(_predicted, setups, [configs[name] for name, _ in setups])


def _predicted(named: tuple[str, Setup], config: Mapping[str, Any]) -> Point:
    name, setup = named
    found = predict(config, workload_of(setup))
    return Point(name, setup, found.peak_requested, found.peak_allocated)


def workload_of(setup: Setup) -> Workload:
    """A setup in the words of the predictor."""
    fields: dict[str, Any] = {"precision": setup.precision, "attention": setup.attention}
    if setup.mode == "inference":
        return Inference(setup.batch, setup.sequence, setup.tokens, **fields)
    return Training(
        setup.batch,
        setup.sequence,
        optimizer=setup.optimizer,  # type: ignore[arg-type]
        checkpointing=setup.checkpointing,
        accumulation=setup.accumulation,
        **fields,
    )
