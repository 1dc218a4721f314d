"""Where the files of the calculator lie, which models it knows, and what makes those files stale."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchbook.calculator.points import load_points
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.workloads import PREDICTOR

SITE_FOLDER = "assets/coefficients"
# The kinds of models in the order in which they are listed.
KINDS = ("encoder", "decoder", "encoder-decoder", "mixture")
# Where the dimensions are the reader's own: a BERT, a GPT-2, or a Llama, whose keys and values are shared by
# queries or not ("full"), and whose two embeddings are one ("tied") or not.
FAMILIES = ("encoder", "gpt", "decoder", "decoder-tied", "decoder-full", "decoder-full-tied")


@dataclass(frozen=True)
class ListedModel:
    """A model of `snippets/models`: the name of its files, its title, and what kind of model it is."""

    name: str
    title: str
    kind: str


def kind_text(kind: str) -> str:
    """The name of a kind of models, among the texts of a language."""
    return f"calc_kind_{kind.replace('-', '_')}"


def coefficients_path(project: Project, name: str) -> Path:
    """Where the coefficients of a model or a family lie."""
    part = "families" if name in FAMILIES else "models"
    return project.snippets / "coefficients" / part / f"{name}.json"


def points_path(project: Project) -> Path:
    """Where the predictions lie that the calculator is held against."""
    return project.snippets / "coefficients" / "points.json"


def config_of(project: Project, name: str) -> dict[str, Any]:
    """The configuration of a model."""
    config: dict[str, Any] = json.loads((project.snippets / "models" / f"{name}.json").read_text("utf-8"))
    return config


def all_models(project: Project) -> tuple[ListedModel, ...]:
    """The models of `snippets/models`, kind by kind, by title."""
    path = project.snippets / "models" / "models.toml"
    table: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    models = [ListedModel(name, entry["title"], entry["kind"]) for name, entry in table.items()]
    return tuple(sorted(models, key=lambda one: (KINDS.index(one.kind), one.title.casefold())))


def derivable(project: Project) -> list[str]:
    """The names of all models and families."""
    return [*(one.name for one in all_models(project)), *FAMILIES]


def listed_models(project: Project) -> tuple[ListedModel, ...]:
    """Those that have coefficients."""
    return tuple(one for one in all_models(project) if coefficients_path(project, one.name).is_file())


def load_coefficients(path: Path) -> dict[str, Any]:
    """The coefficients in a file."""
    coefficients: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return coefficients


def coefficient_files(project: Project) -> dict[str, str]:
    """The coefficients, by their path below `SITE_FOLDER`, without the blanks that make them readable."""
    source = project.snippets / "coefficients"
    return {
        path.relative_to(source).as_posix(): _compact(path, path.stat().st_mtime_ns)
        for path in sorted(source.glob("*/*.json"))
    }


@cache
def _compact(path: Path, stamp: int) -> str:
    """A file of coefficients without blanks, as it was at `stamp`: a served site has it at each save."""
    return json.dumps(load_coefficients(path), separators=(",", ":"))


SCHEMA = 1


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
            mend = f"run `benchbook coefficients {name}`"
            yield Problem(shown, 1, f"the coefficients of {name} are stale: {reason}", mend)
    points = load_points(project)
    if points and points.predictor != PREDICTOR:
        what = "these points are stale: the predictor's rules changed"
        mend = f"run `benchbook coefficients --points {len(points.points)}`"
        yield Problem(project.relative(points_path(project)), 1, what, mend)
