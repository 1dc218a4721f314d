"""Say what pages could not show, or would compare wrongly, once records from outside are in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchbook.content.page_source import parse_page
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.revisions import laid_over
from benchbook.query.library import Library
from benchbook.rendering.places import unfit_records

FIX = "record all variants of its scripts again, in one campaign, with the scripts as they stand here"


def shown_problems(project: Project, contents: Mapping[Path, bytes | None], path: str) -> Iterator[Problem]:
    """What is wrong on pages once files have these contents, where nothing is now; each problem once.

    What a metric is, one number or a series, and which variants are compared, the pages alone say. What was
    never recorded is no matter of what comes in: pages predict it until it is.

    Parameters:
        project: The checkout.
        contents: What each file would hold, None of one that goes.
        path: The file they come from, for messages.
    """
    with laid_over(project, contents) as there:
        found = _of_pages(there)
    known = _of_pages(project) if found else {}
    told: set[str] = set()
    for place, what in found.items():
        # Every language shows the same.
        if place not in known and what not in told:
            told.add(what)
            yield Problem(path, 1, f"with it, {place}: {what}", FIX)


def _of_pages(project: Project) -> dict[str, str]:
    """What is wrong with what the pages refer to, by page and line, the English ones first."""
    library = Library(project)
    found: dict[str, str] = {}
    for path in project.page_paths():
        try:
            page = parse_page(path.read_text("utf-8"))
            unfit = list(unfit_records(path, page, library))
        except (BenchbookError, OSError, ValueError, RecursionError):
            continue  # a page, or a language, that cannot be read is the check's to name
        for problem in unfit:
            found.setdefault(f"{problem.path}:{problem.line}", problem.what)
    return found
