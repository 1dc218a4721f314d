"""Where things lie in a checkout, and the few settings in its pyproject.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from benchbook.content.positions import parse_toml, toml_line
from benchbook.content.problems import BenchbookError, Problem, unreadable
from benchbook.content.traces import file_name

# The language of the sources, which another shows where it lacks something.
FALLBACK = "en"
# Folders below snippets/ that hold data, and no guide.
DATA_FOLDERS = frozenset({"coefficients", "models", "predictions", "records"})


@dataclass(frozen=True)
class Config:
    """The `[tool.benchbook]` table of pyproject.toml.

    Parameters:
        reference_machine: The machine whose records a guide shows by default.
        blocking_machines: Machines that CI can run, where a stale record is an error.
        translation_drift: Whether a translation that English has left behind is a "warning" or an "error".
        machines: Machines that the maintainers measure on; those that pages show are so anyway.
        repository: The address of the source repository, for links that reproduce or question a number.
        guides: Overrides per guide; today only `reference_machine`.
        pattern: Digests of English pages that are older than the pattern that guides are held to
            (`benchbook.checking.guide_pattern`), by guide; None for a handbook that holds its guides to none.

    """

    reference_machine: str = ""
    blocking_machines: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    translation_drift: str = "warning"
    repository: str = ""
    guides: dict[str, dict[str, str]] = field(default_factory=dict)
    pattern: dict[str, str] | None = None

    def reference_for(self, guide: str) -> str:
        """The machine that `guide` shows by default."""
        return self.guides.get(guide, {}).get("reference_machine", self.reference_machine)

    @property
    def maintained(self) -> frozenset[str]:
        """The machines that are named as those that the maintainers measure on."""
        shown = {self.reference_machine, *map(self.reference_for, self.guides)}
        return frozenset(shown.union(self.blocking_machines, self.machines) - {""})


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_address(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"https://[a-z0-9.-]+(?:/[\w.~-]+)+/?", value) is not None


def _are_texts(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


_LISTS = ("blocking_machines", "machines")
# What each setting must be: a test, and the words that say so.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "reference_machine": (_is_text, "the name of a machine"),
    "blocking_machines": (_is_list_of_texts, "a list of names of machines"),
    "machines": (_is_list_of_texts, "a list of names of machines"),
    "translation_drift": (lambda value: value in ("warning", "error"), "`warning` or `error`"),
    "repository": (_is_address, "the address of the repository, such as https://github.com/owner/name"),
    "guides": (
        lambda value: isinstance(value, dict) and all(map(_are_texts, value.values())),
        "a table of guides, each with a `reference_machine`",
    ),
    "pattern": (_are_texts, "a table of digests, by guide"),
}


def read_settings(text: str, path: str) -> Config:
    """The settings that a pyproject.toml holds.

    Parameters:
        text: Its content.
        path: The file, for messages.

    Raises:
        BenchbookError: They cannot be read, or one is not what it must be.
    """
    table: Any = parse_toml(text, path)
    for name in ("tool", "benchbook"):
        table = table.get(name, {}) if isinstance(table, dict) else None
    if not isinstance(table, dict):
        what = "its [tool.benchbook] is not a table"
        raise BenchbookError(Problem(path, 1, what, "set the keys below that heading"))
    for key, value in table.items():
        if key not in _RULES:
            what = f"[tool.benchbook] has the unknown key `{key}`"
            raise BenchbookError(Problem(path, 1, what, "remove it"))
        if not _RULES[key][0](value):
            line = toml_line(text, ("tool", "benchbook", key))
            what, fix = f"`{key}` of [tool.benchbook] is {value!r}", f"make it {_RULES[key][1]}"
            raise BenchbookError(Problem(path, line, what, fix))
    return Config(**table | {key: tuple(table.get(key, ())) for key in _LISTS})


@dataclass(frozen=True)
class Project:
    """A checkout of the handbook (or a small one of the same layout, as in the tests)."""

    root: Path

    @property
    def snippets(self) -> Path:
        """The folder of scripts, one folder per guide."""
        return self.root / "snippets"

    @property
    def records(self) -> Path:
        """The folder of records, one folder per machine."""
        return self.snippets / "records"

    @property
    def predictions(self) -> Path:
        """The folder of predictions, one folder per machine."""
        return self.snippets / "predictions"

    @property
    def docs(self) -> Path:
        """The folder of pages, one folder per language."""
        return self.root / "docs"

    @property
    def journal(self) -> Path:
        """Where unfinished campaigns are kept; ignored by git."""
        return self.root / ".benchbook"

    @property
    def drawings(self) -> Path:
        """Where drawings are kept from one build to the next; ignored by git."""
        return self.root / ".cache" / "drawings"

    @cached_property
    def config(self) -> Config:
        """The settings of this checkout.

        Raises:
            BenchbookError: They cannot be read, or one is not what it must be.
        """
        path = self.root / "pyproject.toml"
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return Config()
        except (OSError, UnicodeDecodeError) as error:
            raise BenchbookError(unreadable(path.name, error)) from error
        return read_settings(text, path.name)

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages there are: folders of `docs/` that hold a `_language.yml`, English first."""
        names = sorted(path.parent.name for path in self.docs.glob("*/_language.yml"))
        return tuple(sorted(names, key=lambda name: (name != FALLBACK, name)))

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that have records here, by name."""
        return tuple(sorted(path.parent.name for path in self.records.glob("*/machine.json")))

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """The machines that have predictions here and no records, by name."""
        return tuple(sorted({path.name for path in self.predictions.glob("*/")} - {*self.machines}))

    def scripts(self) -> dict[str, Path]:
        """The file of every script by its name ("guide/script.py"), in a stable order."""
        paths = sorted(self.snippets.glob("*/*.py"))
        return {
            f"{path.parent.name}/{path.name}": path for path in paths if path.parent.name not in DATA_FOLDERS
        }

    def page_paths(self) -> tuple[Path, ...]:
        """Every page of every language, in a stable order, the English ones first."""
        paths = (path for code in self.languages for path in sorted((self.docs / code).glob("**/*.md")))
        # What else has such a name is a problem of its own (`benchbook.content.site_files`).
        return tuple(path for path in paths if path.is_file() and not path.is_symlink())

    def record_path(self, machine: str, script: str) -> Path:
        """Where the record of `script` ("guide/script.py") on `machine` lies."""
        return self.records / machine / Path(script).with_suffix(".json")

    def trace_path(self, machine: str, script: str, name: str, digest: str) -> Path:
        """Where the trace `name` of `script` ("guide/script.py") on `machine` lies, by its digest."""
        return self.record_path(machine, script).with_suffix("") / file_name(name, digest)

    def prediction_path(self, machine: str, script: str) -> Path:
        """Where the predictions of `script` ("guide/script.py") on `machine` lie."""
        return self.predictions / machine / Path(script).with_suffix(".json")

    def link_above(self, path: Path) -> Path | None:
        """The first part of a path below the checkout that is a symbolic link to another place."""
        parts = path.relative_to(self.root).parts
        places = (self.root.joinpath(*parts[: length + 1]) for length in range(len(parts)))
        return next((place for place in places if place.is_symlink()), None)

    def links_above(self, places: Iterable[Path]) -> list[Problem]:
        """The links to other places on the way to what would be written or removed, each once."""
        links = {link for place in places if (link := self.link_above(place)) is not None}
        shown = sorted(link.relative_to(self.root).as_posix() for link in links)
        fix = "put what it leads to in its place"
        return [Problem(name, 1, "is a link to another place", fix) for name in shown]

    def relative(self, path: Path) -> str:
        """`path` as a reader of an error message wants it: relative to the checkout, with forward slashes."""
        try:
            return path.resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            return path.name


def find_project(start: Path | None = None) -> Project:
    """The checkout around `start` (by default the working directory), or the one BENCHBOOK_ROOT names.

    Raises:
        BenchbookError: There is none.

    """
    named = os.environ.get("BENCHBOOK_ROOT")
    if named:
        return Project(Path(named).resolve())
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "mkdocs.yml").is_file() and (folder / "snippets").is_dir():
            return Project(folder)
    raise BenchbookError(
        Problem(
            str(start or "."),
            1,
            "no handbook here: no folder above holds mkdocs.yml and snippets/",
            "change into a checkout, or set BENCHBOOK_ROOT to one",
        )
    )
