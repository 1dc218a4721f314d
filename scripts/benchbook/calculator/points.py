"""The setups at which calculator and predictor are compared, and how far apart the two are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchbook.calculator.listing import coefficients_path, load_coefficients, points_path
from benchbook.calculator.memory_model import Coefficients, Setup, calculate
from benchbook.content.project import Project
from benchbook.content.records import dump_json, write_text

SCHEMA = 2


@dataclass(frozen=True)
class Point:
    """One setup of one model, and what was predicted of it.

    Parameters:
        model: Its name.
        setup: Of its run.
        requested: The most bytes that tensors ask for at once.
        allocated: The most bytes of the blocks that torch's allocator gives them.
    """

    model: str
    setup: Setup
    requested: int
    allocated: int


@dataclass(frozen=True)
class Points:
    """What one run of the command predicted, and with what."""

    predictor: int
    torch: str
    transformers: str
    points: tuple[Point, ...]
    schema: int = SCHEMA


def load_points(project: Project) -> Points | None:
    """The recorded points; None if there are none."""
    path = points_path(project)
    if not path.is_file():
        return None
    table = json.loads(path.read_text("utf-8"))
    points = [Point(**{**one, "setup": Setup(**one["setup"])}) for one in table["points"]]
    return Points(**{**table, "points": tuple(points)})


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
    """How far the calculator is from the predictor, point by point."""
    return [error(one, _coefficients(coefficients_path(project, one.model))) for one in points]


@cache
def _coefficients(path: Path) -> dict[str, Any]:
    return load_coefficients(path)
