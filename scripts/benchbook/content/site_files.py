"""The files beside the pages: what the site hands out as it is, and what would run in a reader's browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from benchbook.content.problems import Problem
from benchbook.content.project import Project

ASSETS = "assets"
LANGUAGE = "_language.yml"
# Styles, scripts and pictures of the site; a picture of vectors is a document, and may hold scripts.
SUFFIXES = frozenset({".css", ".js", ".png", ".svg", ".webp", ".woff2"})
_ACTIVE = re.compile(
    r"<!(?:DOCTYPE|ENTITY)|<\?(?!xml )"
    r"|<\s*(?:\w+:)?(?:script|foreignObject|iframe|object|embed|use|image|a|animate|set|style)\b"
    r"|\bon\w+\s*=|javascript:|url\s*\(|href",
    re.IGNORECASE,
)


def site_file_problems(project: Project) -> Iterator[Problem]:
    """Files below docs/ that are neither pages, nor words of a language, nor what the site is drawn with."""
    for path in sorted(project.docs.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        folder, _, rest = path.relative_to(project.docs).as_posix().partition("/")
        shown = path.relative_to(project.root).as_posix()
        if folder == ASSETS and rest:
            yield from _asset_problems(path, shown)
        elif folder not in project.languages or not (path.suffix == ".md" or rest == LANGUAGE):
            fix = f"put pages into docs/<language>/ as .md, and pictures into docs/{ASSETS}/"
            yield Problem(shown, 1, "is neither a page of a language nor a file of the site", fix)


def _asset_problems(path: Path, shown: str) -> Iterator[Problem]:
    if path.suffix not in SUFFIXES:
        what = f"is of a kind that the site has none of ({path.suffix or 'no ending'})"
        yield Problem(shown, 1, what, f"use one of {', '.join(sorted(SUFFIXES))}")
    elif path.suffix == ".svg":
        text = path.read_text("utf-8", "replace")
        if (found := _ACTIVE.search(text)) is not None:
            line = text.count("\n", 0, found.start()) + 1
            what = f"holds `{found[0]}`, and opened alone a picture is a page that can run it"
            yield Problem(shown, line, what, "draw with shapes and attributes alone")
