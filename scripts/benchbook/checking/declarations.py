"""Tell what is declared otherwise than on `main`: claims, who reviewed a guide, and published models."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.calculator.listing import models_path
from benchbook.checking.committed import Committed
from benchbook.checking.guide_reviews import FILE as REVIEWS
from benchbook.content.bounds import load_toml
from benchbook.content.claims import FILE as CLAIMS
from benchbook.content.positions import Keys, toml_line
from benchbook.content.problems import Problem, few
from benchbook.content.project import Project


@dataclass(frozen=True)
class _Declaration:
    """A table of a file: what it is called, the keys that lead to it, and what it says."""

    name: str
    keys: Keys
    table: dict[str, Any]


def changed_declarations(project: Project, committed: Committed) -> Iterator[Problem]:
    """What `main` declares and is declared otherwise here, or no longer: a line for each.

    Parameters:
        project: The checkout.
        committed: What `main` has.
    """
    changed = [path for path in committed.changed(project.relative(project.snippets)) if _is_read(path)]
    if not changed:
        return
    # A claim may stand in the file of another guide.
    paths = [path for path in sorted(project.snippets.glob("*/*.toml")) if _is_read(path.name)]
    here = {project.relative(path): _text_of(path) for path in paths}
    found = {shown: _declarations(project, shown, text) for shown, text in here.items()}
    everywhere = [(shown, one) for shown, ones in found.items() for one in ones]
    for shown in changed:
        for before in _declarations(project, shown, committed.text(shown)):
            namesakes = [(place, one) for place, one in everywhere if one.name == before.name]
            if any(one.table == before.table for _, one in namesakes):
                continue
            where, line, how = shown, 1, "is gone, and `main` has it"
            if namesakes:
                where, one = namesakes[0]
                line = toml_line(here[where], one.keys)
                odd = [key for key in {**before.table, **one.table} if _differs(key, before, one)]
                how = f"is otherwise than on `main` (its {few(odd)} differs)"
            yield Problem(where, line, f"{before.name} {how}", "say in the pull request why")


def _differs(key: str, one: _Declaration, other: _Declaration) -> bool:
    return one.table.get(key) != other.table.get(key)


def _is_read(path: str) -> bool:
    return Path(path).name in (CLAIMS, REVIEWS, "models.toml")


def _text_of(path: Path) -> str:
    """The content of a file; empty where it cannot be read, which is told elsewhere."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _declarations(project: Project, shown: str, text: str) -> list[_Declaration]:
    """What a file declares; nothing where it is no TOML, or of another form, which is told elsewhere."""
    try:
        table = load_toml(text)
    except tomllib.TOMLDecodeError:
        return []
    path = Path(shown)
    if shown == project.relative(models_path(project)):
        return [
            _Declaration(f"the model `{name}`", (name,), one)
            for name, one in table.items()
            if isinstance(one, dict)
        ]
    kind = "claim" if path.name == CLAIMS else "review"
    listed = table.get(kind)
    found = []
    for number, one in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(one, dict):
            name = f"the claim `{one.get('id')}`"
            if kind == "review":
                by = f"the {one.get('role')} ({one.get('language', 'en')})"
                name = f"the review of {path.parent.name} by {by} of {one.get('date')}"
            found.append(_Declaration(name, (kind, number), one))
    return found
