"""Say what pages could not show, or would compare wrongly, once records from outside are in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from benchbook.content.page_source import parse_page
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.references import OverfullError, UnfitError
from benchbook.content.revisions import laid_over
from benchbook.query.library import Library
from benchbook.rendering.places import empty_counts, reference_problems

FIX = "record all variants of its scripts again, in one campaign, with the scripts as they stand here"


def shown_problems(project: Project, contents: Mapping[Path, bytes | None], path: str) -> Iterator[Problem]:
    """What is wrong on pages once files have these contents, where nothing is now; each problem once.

    What a metric is, one number or a series, which variants are compared, and how much is drawn, the pages
    alone say. Where a page asked in vain before, what is still missing is no matter of what comes in.

    Parameters:
        project: The checkout.
        contents: What each file would hold, None of one that goes.
        path: The file they come from, for messages.
    """
    with laid_over(project, contents) as there:
        found = _of_pages(there)
    known = _of_pages(project) if found else {}
    told: set[str] = set()
    for place, (problem, is_unfit) in found.items():
        # Every language shows the same.
        if problem.what not in told and (place not in known or (is_unfit and not known[place][1])):
            told.add(problem.what)
            yield Problem(path, 1, f"with it, {place}: {problem.what}", problem.fix)


def _of_pages(project: Project) -> dict[str, tuple[Problem, bool]]:
    """What is wrong with what the pages refer to, by file and line, the English ones first.

    With each, whether records are there and unfit: such is told before what is missing on the same line.
    """
    library, counts = Library(project), empty_counts(project)
    found: dict[str, tuple[Problem, bool]] = {}
    for path in project.page_paths():
        count = counts[path.relative_to(project.docs).parts[0]]
        try:
            page = parse_page(path.read_text("utf-8"))
            wrong = list(reference_problems(path, page, library, count))
        except (BenchbookError, OSError, ValueError, RecursionError):
            continue  # a page, or a language, that cannot be read is the check's to name
        for problem, error in ((problem, error) for problems, error in wrong for problem in problems):
            is_unfit = isinstance(error, UnfitError)
            place = f"{problem.path}:{problem.line}"
            if place not in found or (is_unfit and not found[place][1]):
                fix = f"there, {problem.fix}" if isinstance(error, OverfullError) else FIX
                found[place] = replace(problem, fix=fix), is_unfit
    return found
