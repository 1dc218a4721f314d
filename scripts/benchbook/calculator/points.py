"""The setups, drawn at random, at which calculator and predictor are compared, and how far apart they are."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from benchbook.calculator.listing import coefficients_path, listed_models, load_coefficients, points_path
from benchbook.calculator.memory_model import OBJECTIVES, Coefficients, Setup, calculate
from benchbook.calculator.stored import read_derived
from benchbook.content.formats import Count, Label, Limit, Many, Short, Stored
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import dump_json, write_text

SCHEMA = 2
# Three times what is recorded; the calculator computes each of them anew.
MOST_POINTS = 1000
PREDICT_POINTS = "run `benchbook coefficients --points 200`"
AtLeastOne = Annotated[int, Limit(ge=1, le=10**18)]


@dataclass(frozen=True)
class Point(Stored):
    """One setup of one model, and what was predicted of it.

    Parameters:
        model: Its name.
        setup: Of its run.
        requested: The most bytes that tensors ask for at once.
        allocated: The most bytes of the blocks that torch's allocator gives them.
    """

    model: Label
    setup: Setup
    requested: AtLeastOne
    allocated: AtLeastOne


@dataclass(frozen=True)
class Points(Stored):
    """What one run of the command predicted, and with what."""

    predictor: Count
    torch: Short
    transformers: Short
    points: Annotated[Many[Point], Limit(max_length=MOST_POINTS)]
    schema: Count = SCHEMA

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("it holds no points")


def load_points(project: Project) -> Points | None:
    """The recorded points; None if there are none.

    Raises:
        BenchbookError: The file is not of the form of points.
    """
    path = points_path(project)
    return read_derived(path, Points, PREDICT_POINTS)[1] if path.is_file() else None


def write_points(project: Project, points: Points) -> Path:
    """Write the points; returns the file."""
    path = points_path(project)
    write_text(path, dump_json(asdict(points), flat={"points"}))
    return path


class Error(NamedTuple):
    """By what share the calculator says more than tensors ask for, and than is allocated for them."""

    requested: float
    allocated: float


def error(point: Point, coefficients: Coefficients) -> Error:
    """How far the calculator is from the predictor at a point."""
    total = calculate(coefficients, point.setup).total
    return Error(total / point.requested - 1, total / point.allocated - 1)


def errors(project: Project, points: Sequence[Point]) -> list[Error]:
    """How far the calculator is from the predictor, point by point.

    Raises:
        BenchbookError: One is of a model or of a setup that has no coefficients.
    """
    listed = {one.name for one in listed_models(project)}
    return [_error(project, listed, place, one) for place, one in enumerate(points)]


def _error(project: Project, listed: Collection[str], place: int, point: Point) -> Error:
    path, shown = coefficients_path(project, point.model), project.relative(points_path(project))
    if point.model not in listed:
        what = f"points.{place} is of {point.model}, which has no coefficients"
        raise BenchbookError(Problem(shown, 1, what, PREDICT_POINTS))
    try:
        return error(point, load_coefficients(path))
    except KeyError as unknown:
        what = f"points.{place} is of {point.setup.key!r}, of which {point.model} has no coefficients"
        raise BenchbookError(Problem(shown, 1, what, PREDICT_POINTS)) from unknown


ADAPTERS = ("lora", "qlora")
RANKS = (8, 16, 32, 64, 128)
BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
LONGEST = 8192
# Samples of an evaluated batch; half of the setups evaluate none.
EVALUATED = (None, None, 8, 64)
# A GPU computes with blocks of tokens: other lengths are filled up, by some kernels in a copy.
STEP = 16
OPTIMIZERS = (
    "adamw_fused",
    "adamw_foreach",
    "adamw_loop",
    "adamw_8bit",
    "paged_adamw_8bit",
    "adafactor",
    "sgd_momentum",
    "sgd",
)
# Of four setups, one generates, where the model can.
GENERATING = 0.25


def draw_setups(models: Mapping[str, Mapping[str, Any]], count: int, seed: int) -> list[tuple[str, Setup]]:
    """Random setups, each of a random model.

    Parameters:
        models: The coefficients of each, which know what setups it has.
        count: How many.
        seed: The same one draws the same setups.
    """
    chance = random.Random(seed)
    return [(name, _setup(models[name], chance)) for name in chance.choices(sorted(models), k=count)]


def _setup(coefficients: Mapping[str, Any], chance: random.Random) -> Setup:
    limits = (coefficients["positions"], coefficients["window"], LONGEST)
    longest = min(limit for limit in limits if limit)
    batch = chance.choice(BATCHES)
    if coefficients.get("inference") and chance.random() < GENERATING:
        precision, attention = chance.choice(sorted(coefficients["inference"])).split()
        prompt = STEP * chance.randint(1, longest // 2 // STEP)
        return Setup("inference", precision, attention, batch, prompt, tokens=chance.randint(1, longest // 2))
    precision, *rest = chance.choice(sorted(coefficients["training"])).split()
    method = rest.pop(0) if rest[0] in ADAPTERS else "full"
    attention = rest.pop(0)
    optimizer = chance.choice(OPTIMIZERS)
    objective = next((one for one in OBJECTIVES if one in rest), "supervised")
    # A prompt has a block of tokens at least.
    sequence = STEP * chance.randint(2 if objective == "grpo" else 1, longest // STEP)
    return Setup(
        "training",
        precision,
        attention,
        batch,
        sequence,
        # The calculator pages no states of adapters, which are small.
        optimizer if method == "full" else optimizer.removeprefix("paged_"),
        "checkpointing" in rest,
        chance.choice((2, 3, 4)) if "accumulation" in rest else 1,
        method=method,
        rank=chance.choice(RANKS) if method != "full" else 16,
        chunked="chunked" in rest,
        objective=objective,
        evaluation=chance.choice(EVALUATED) if objective == "supervised" else None,
        completion=STEP * chance.randint(1, sequence // STEP - 1) if objective == "grpo" else 1,
    )
