"""Where the files of the calculator lie, and which models it knows: those that have coefficients."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchbook.calculator.stored import read_coefficients
from benchbook.content.project import Project

SITE_FOLDER = "assets/coefficients"
# The kinds of models in the order in which they are listed.
KINDS = ("encoder", "decoder", "encoder-decoder", "mixture")
# Where the dimensions are the reader's own: a BERT, a GPT-2, or a Llama, whose keys and values are shared by
# queries or not ("full"), and whose two embeddings are one ("tied") or not.
FAMILIES = ("encoder", "gpt", "decoder", "decoder-tied", "decoder-full", "decoder-full-tied")


@dataclass(frozen=True)
class ListedModel:
    """A model of `snippets/models`.

    Parameters:
        name: Of its files.
        title: As readers know it.
        kind: One of `KINDS`.
        dtype: Of its weights as they are published: "float32", "float16" or "bfloat16"; empty where that is
            not known.
    """

    name: str
    title: str
    kind: str
    dtype: str = ""


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
    models = [
        ListedModel(name, entry["title"], entry["kind"], entry.get("dtype", ""))
        for name, entry in table.items()
    ]
    return tuple(sorted(models, key=lambda one: (KINDS.index(one.kind), one.title.casefold())))


def derivable(project: Project) -> list[str]:
    """The names of all models and families."""
    return [*(one.name for one in all_models(project)), *FAMILIES]


def listed_models(project: Project) -> tuple[ListedModel, ...]:
    """Those that have coefficients."""
    return tuple(one for one in all_models(project) if coefficients_path(project, one.name).is_file())


def load_coefficients(path: Path) -> dict[str, Any]:
    """The coefficients in a file.

    Raises:
        BenchbookError: It is not of the form that such files have.
    """
    return read_coefficients(path)


def published_parameters(project: Project) -> dict[str, int]:
    """How many parameters each model has, as published."""
    path = project.snippets / "models" / "models.toml"
    table: Mapping[str, Any] = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    return {name: entry["parameters"] for name, entry in table.items() if "parameters" in entry}


def unowned_files(project: Project) -> list[Path]:
    """The files among the coefficients that are of no model and no family, nor the points."""
    owned = {points_path(project), *(coefficients_path(project, name) for name in derivable(project))}
    found = sorted((project.snippets / "coefficients").rglob("*"))
    return [path for path in found if path.is_file() and path not in owned]


def coefficient_files(project: Project) -> dict[str, str]:
    """The coefficients, by their path below `SITE_FOLDER`, without the blanks that make them readable.

    Raises:
        BenchbookError: A file is not of the form that such files have.
    """
    source = project.snippets / "coefficients"
    paths = (coefficients_path(project, name) for name in derivable(project))
    return {
        path.relative_to(source).as_posix(): _compact(path, path.stat().st_mtime_ns)
        for path in sorted(paths)
        if path.is_file()
    }


@cache
def _compact(path: Path, stamp: int) -> str:
    """A file of coefficients without blanks, as it was at `stamp`: a served site has it at each save."""
    return json.dumps(load_coefficients(path), separators=(",", ":"))
