"""Where the files of the calculator lie, and which models it knows: those that have coefficients."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import ValidationError

from benchbook.calculator.stored import read_coefficients
from benchbook.content.formats import Limit, Passes, Short, Stored, Text, Title, no_device
from benchbook.content.positions import parse_toml, toml_line
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.validation import adapter, read_json, shape_errors

SITE_FOLDER = "assets/coefficients"
Kind = Literal["encoder", "decoder", "encoder-decoder", "mixture"]
# In the order in which they are listed.
KINDS: tuple[str, ...] = get_args(Kind)
# Where the dimensions are the reader's own: a BERT, a GPT-2, or a Llama, whose keys and values are shared by
# queries or not ("full"), and whose two embeddings are one ("tied") or not.
FAMILIES = ("encoder", "gpt", "decoder", "decoder-tied", "decoder-full", "decoder-full-tied")
FILE = "models.toml"
COPY_AGAIN = "copy it from its model again, or take the model out of models.toml"
# Of a model's files, which pages name.
ModelName = Annotated[str, Limit(pattern=r"^[a-z0-9]+(?:[._-][a-z0-9]+)*$", max_length=80), Passes(no_device)]
Address = Annotated[str, Limit(pattern=r"^https://[\x21-\x7e]+$", max_length=400)]


@dataclass(frozen=True)
class ModelEntry(Stored):
    """What models.toml says of a model; its head tells what each key means."""

    title: Title
    kind: Kind
    parameters: Annotated[int, Limit(ge=1, le=10**14)] | None = None
    counted: Short = ""
    source: Address = ""
    published: Address = ""
    dtype: Literal["float32", "float16", "bfloat16", ""] = ""
    dtype_source: Address = ""
    dtype_words: Text = ""


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


def models_path(project: Project) -> Path:
    """Where the list of models lies."""
    return project.snippets / "models" / FILE


def config_path(project: Project, name: str) -> Path:
    """Where the configuration of a model lies."""
    return project.snippets / "models" / f"{name}.json"


def config_of(project: Project, name: str) -> dict[str, Any]:
    """The configuration of a model.

    Raises:
        BenchbookError: It cannot be read, or is not a table of JSON.
    """
    path = config_path(project, name)
    shown = project.relative(path)
    config, _, problems = read_json(path, shown)
    if problems:
        raise BenchbookError(*(Problem(shown, one.line, one.what, COPY_AGAIN) for one in problems))
    if not isinstance(config, dict):
        raise BenchbookError(Problem(shown, 1, "is not a table", COPY_AGAIN))
    return config


def all_models(project: Project) -> tuple[ListedModel, ...]:
    """The models of `snippets/models`, kind by kind, by title.

    Raises:
        BenchbookError: Their list is not what such a list is.
    """
    entries = model_entries(project)
    models = [ListedModel(name, one.title, one.kind, one.dtype) for name, one in entries.items()]
    return tuple(sorted(models, key=lambda one: (KINDS.index(one.kind), one.title.casefold())))


def model_entries(project: Project) -> dict[str, ModelEntry]:
    """What the list of models says, by name; nothing where there is none.

    Raises:
        BenchbookError: It is not what such a list is.
    """
    path = models_path(project)
    if not path.is_file():
        return {}
    shown, text = project.relative(path), ""
    try:
        text = path.read_text("utf-8")
        return adapter(dict[ModelName, ModelEntry]).validate_python(parse_toml(text, shown))
    except UnicodeDecodeError as error:
        raise BenchbookError(
            Problem(shown, 1, f"is not UTF-8 ({error.reason})", "save it as UTF-8")
        ) from error
    except ValidationError as error:
        fix = "write the entry as the others are; the head of the file tells what each key means"
        problems = []
        for keys, _, message in shape_errors(error):
            # What is wrong with a key itself is told below it.
            named = tuple(key for key in keys if key != "[key]")
            what = f"`{'.'.join(map(str, named))}`: {message}"
            problems.append(Problem(shown, toml_line(text, named), what, fix))
        raise BenchbookError(*problems) from error


def derivable(project: Project) -> list[str]:
    """The names of all models and families."""
    return [*(one.name for one in all_models(project)), *FAMILIES]


def listed_models(project: Project) -> tuple[ListedModel, ...]:
    """Those that have coefficients."""
    return tuple(one for one in all_models(project) if coefficients_path(project, one.name).is_file())


def load_coefficients(path: Path) -> dict[str, Any]:
    """The coefficients in a file; nobody changes them, for whoever asks again is given the same.

    Raises:
        BenchbookError: It is not of the form that such files have.
    """
    return _coefficients(path, path.stat().st_mtime_ns) if path.is_file() else read_coefficients(path)


@cache
def _coefficients(path: Path, stamp: int) -> dict[str, Any]:
    """Those of a file as it was at `stamp`: a check compares them with models, families and points."""
    return read_coefficients(path)


def published_parameters(project: Project) -> dict[str, int]:
    """How many parameters each model has, as published."""
    entries = model_entries(project)
    return {name: one.parameters for name, one in entries.items() if one.parameters is not None}


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
