"""What a page shows where another machine is chosen: one JSON file per guide, shared by all languages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchbook.pages.context import Build

FOLDER = "assets/data"
# Marks, in place of a tree, that it differs between languages: {"@": {"en": ..., "ja": ...}}.
BY_LANGUAGE = "@"


def data_path(guide: str) -> str:
    """Where the data of `guide` lies, from the root of the site."""
    return f"{FOLDER}/{guide}.json"


def merge(trees: Mapping[str, Any]) -> Any:
    """One tree for all languages: what is the same in each stands once, what differs stands by language.

    Parameters:
        trees: JSON by language; each of the same making, but for its words.
    """
    first, *others = trees.values()
    if all(other == first for other in others):
        return first
    if all(isinstance(tree, dict) and tree.keys() == first.keys() for tree in trees.values()):
        return {key: merge({code: tree[key] for code, tree in trees.items()}) for key in first}
    if all(isinstance(tree, (list, tuple)) and len(tree) == len(first) for tree in trees.values()):
        return [merge({code: tree[index] for code, tree in trees.items()}) for index in range(len(first))]
    return {BY_LANGUAGE: dict(sorted(trees.items()))}


def _guide_data(build: Build, guide: str) -> dict[str, Any]:
    """The data of `guide` for every machine and language, in a stable order."""
    sections = build.data.get(guide, {})
    return {
        section: {
            key: {name: merge(dict(sorted(trees.items()))) for name, trees in sorted(machines.items())}
            for key, machines in sorted(keys.items())
        }
        for section, keys in sorted(sections.items())
    }


def write_data(build: Build, site: Path) -> None:
    """Write the data file of every guide that the build met."""
    for guide in sorted(build.data):
        target = site / data_path(guide)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(_guide_data(build, guide), ensure_ascii=False, separators=(",", ":"))
        target.write_text(text + "\n", "utf-8")
