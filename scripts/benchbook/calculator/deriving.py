"""Write what is derived: the coefficients of models and families, and predictions to hold them against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import torch
import transformers

from benchbook.calculator.checking import config_digest, stale_coefficients
from benchbook.calculator.coefficients import head_of
from benchbook.calculator.listing import (
    coefficients_path,
    config_of,
    derivable,
    listed_models,
    load_coefficients,
)
from benchbook.calculator.memory_model import Setup
from benchbook.calculator.points import Point, Points, draw_setups, write_points
from benchbook.calculator.shapes import FAMILIES, derive_family, derive_model
from benchbook.content.predictions import PREDICTOR
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.records import dump_json, write_text
from benchbook.predictor.prediction import predict
from benchbook.predictor.workload import (
    Inference,
    Lora,
    Training,
    UnpredictableError,
    Workload,
    rows_of_a_chunk,
)

PROCESSES = 2
# What `bf16` is of a model beside whose weights adapters train.
BESIDE_ADAPTERS = {"bf16": "bf16_weights_autocast"}


def predict_setups(
    configs: Mapping[str, Mapping[str, Any]], setups: Sequence[tuple[str, Setup]]
) -> Iterator[Point]:
    """What the predictor says of each setup, the whole model run."""
    # Processes of their own: what is registered for the fake device is not for two threads.
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as pool:
        yield from pool.map(_predicted, setups, [configs[name] for name, _ in setups])


def _predicted(named: tuple[str, Setup], config: Mapping[str, Any]) -> Point:
    name, setup = named
    found = predict(config, workload_of(setup, config))
    return Point(name, setup, found.peak_requested, found.peak_allocated)


def workload_of(setup: Setup, config: Mapping[str, Any]) -> Workload:
    """A setup of a model in the words of the predictor."""
    fields: dict[str, Any] = {"precision": setup.precision, "attention": setup.attention}
    if setup.adapts:
        fields["lora"] = Lora(setup.rank, four_bit=setup.method == "qlora")
        fields["precision"] = BESIDE_ADAPTERS.get(setup.precision, setup.precision)
    if setup.mode == "inference":
        return Inference(setup.batch, setup.sequence, setup.tokens, **fields)
    if setup.chunked:
        fields["chunk"] = rows_of_a_chunk(setup.batch * setup.sequence, *head_of(config))
    if setup.objective == "grpo":
        fields["completion"] = setup.completion
    return Training(
        setup.batch,
        setup.sequence,
        optimizer=setup.optimizer,  # type: ignore[arg-type]
        checkpointing=setup.checkpointing,
        accumulation=setup.accumulation,
        objective=setup.objective,  # type: ignore[arg-type]
        evaluation=setup.evaluation,
        **fields,
    )


def derive_all(project: Project, names: Sequence[str], everything: bool) -> Iterator[str]:
    """Derive what is missing or stale, or what is named; yields a line for each.

    Raises:
        BenchbookError: There is no such model or family, or one cannot be traced.
    """
    known = derivable(project)
    for name in names:
        if name not in known:
            fix = did_you_mean(name, known, "model")
            raise BenchbookError(Problem(name, 1, "there is no such model or family", fix))
    failed: list[Problem] = []
    for name in names or known:
        reason = stale_coefficients(project, name)
        if reason is None and not (everything or names):
            continue
        try:
            if name in FAMILIES:
                found = derive_family(name)
            else:
                config = config_of(project, name)
                found = {**derive_model(config), "configuration": config_digest(config)}
        except UnpredictableError as error:
            failed.append(Problem(f"snippets/models/{name}.json", 1, error.what, error.fix))
            yield f"failed   {name}: {error}"
            continue
        by_line = {*found["training"], "prefill", "decode"}
        write_text(coefficients_path(project, name), dump_json(found, flat=by_line))
        yield f"derived  {name}" + (f" ({reason})" if reason else "")
    if failed:
        raise BenchbookError(*failed)


def predict_points(project: Project, count: int, seed: int) -> Iterator[str]:
    """Predict random setups of the models that have coefficients; yields a line for each."""
    names = [one.name for one in listed_models(project)]
    models = {name: load_coefficients(coefficients_path(project, name)) for name in names}
    configs = {name: config_of(project, name) for name in names}
    found = []
    for point in predict_setups(configs, draw_setups(models, count, seed)):
        found.append(point)
        yield f"{len(found)}/{count}  {point.model}  {point.setup.key}"
    versions = torch.__version__.partition("+")[0], transformers.__version__
    write_points(project, Points(PREDICTOR, *versions, tuple(found)))
