"""The setups at which calculator and predictor are compared, and how far apart the two are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchbook.calculator.listing import coefficients_path, load_coefficients, points_path
from benchbook.calculator.memory_model import Setup, calculate
from benchbook.project import Project
from benchbook.records import dump_json, write_text

SCHEMA = 1


@dataclass(frozen=True)
class Point:
    """One setup of one model, and the predicted peak in bytes."""

    model: str
    setup: Setup
    predicted: int


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
    points = [Point(one["model"], Setup(**one["setup"]), one["predicted"]) for one in table["points"]]
    return Points(**{**table, "points": tuple(points)})


def write_points(project: Project, points: Points) -> Path:
    """Write the points; returns the file."""
    path = points_path(project)
    write_text(path, dump_json(asdict(points), flat={"points"}))
    return path


def errors(project: Project, points: Sequence[Point]) -> list[float]:
    """By what share the calculator says more than was predicted, point by point."""
    return [
        calculate(_coefficients(coefficients_path(project, one.model)), one.setup).total / one.predicted - 1
        for one in points
    ]


@cache
def _coefficients(path: Path) -> dict[str, Any]:
    return load_coefficients(path)
