"""Which models the calculator knows: those of `snippets/models` that coefficients were derived for."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.project import Project

# A model's configuration decides which of these it is listed under, in this order.
KINDS = ("encoder", "decoder", "encoder-decoder", "mixture")
FAMILIES = "families"


@dataclass(frozen=True)
class Listed:
    """A model to choose from: the name of its files, its title, and what kind of model it is."""

    name: str
    title: str
    kind: str


def coefficients_folder(project: Project) -> Path:
    """Where the coefficients of each model lie, and below it those of families."""
    return project.snippets / "coefficients"


def listed_models(project: Project) -> tuple[Listed, ...]:
    """The models that have coefficients, kind by kind, by title."""
    path = project.snippets / "models" / "models.toml"
    table: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    folder = coefficients_folder(project)
    models = [
        Listed(name, entry["title"], entry["kind"])
        for name, entry in table.items()
        if (folder / f"{name}.json").is_file()
    ]
    return tuple(sorted(models, key=lambda one: (KINDS.index(one.kind), one.title.casefold())))


def write_coefficients(project: Project, site: Path) -> None:
    """Copy the coefficients into the site, without the blanks that make them readable."""
    source = coefficients_folder(project)
    for path in sorted(source.glob("**/*.json")):
        target = site / "assets" / "coefficients" / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(json.loads(path.read_text("utf-8")), separators=(",", ":")), "utf-8")
