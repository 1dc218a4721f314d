"""Hold coefficients and points to what they were made from: the configurations and the predictor's rules."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from benchbook.calculator.listing import (
    FAMILIES,
    coefficients_path,
    config_of,
    derivable,
    load_coefficients,
    points_path,
)
from benchbook.calculator.points import load_points
from benchbook.content.predictions import PREDICTOR
from benchbook.content.problems import Problem
from benchbook.content.project import Project

SCHEMA = 3


def config_digest(config: Mapping[str, Any]) -> str:
    """Of what a configuration says, whatever the order of its entries."""
    return sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:12]


def stale_coefficients(project: Project, name: str) -> str | None:
    """Why the coefficients of a model or a family are to be derived anew; None where they are in order."""
    path = coefficients_path(project, name)
    if not path.is_file():
        return "never derived"
    found = load_coefficients(path)
    if found.get("schema") != SCHEMA:
        return "in another form"
    if found.get("predictor") != PREDICTOR:
        return "the predictor's rules changed"
    if name in FAMILIES or found.get("configuration") == config_digest(config_of(project, name)):
        return None
    return "the model changed"


def coefficient_problems(project: Project) -> Iterator[Problem]:
    """What is wrong with the coefficients of `project`."""
    # A handbook without models has no calculator.
    names = derivable(project) if (project.snippets / "models").is_dir() else []
    for name in names:
        if reason := stale_coefficients(project, name):
            shown = project.relative(coefficients_path(project, name))
            fix = f"run `benchbook coefficients {name}`"
            yield Problem(shown, 1, f"the coefficients of {name} are stale: {reason}", fix)
    points = load_points(project)
    if points and points.predictor != PREDICTOR:
        what = "these points are stale: the predictor's rules changed"
        fix = f"run `benchbook coefficients --points {len(points.points)}`"
        yield Problem(project.relative(points_path(project)), 1, what, fix)
