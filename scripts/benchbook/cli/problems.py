"""Print problems, of which there may be a million, each with a message as long as a book."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import typer

from benchbook.content.problems import Problem
from benchbook.contributing.shortening import shortened

# Whoever has more begins with these. A bundle from outside can have as many as it likes.
MOST = 1000
# Each part of a problem is cut by itself, so that what to do is said however much was quoted before.
LONGEST = 1000


def print_problems(problems: Sequence[Problem], before: str = "", err: bool = False) -> None:
    """Print a problem a line, and how many more there are than anyone reads.

    Parameters:
        problems: What to print.
        before: What each line begins with.
        err: Whether they go to the standard error.
    """
    for problem in problems[:MOST]:
        path, what, fix = (shortened(text, LONGEST) for text in (problem.path, problem.what, problem.fix))
        typer.echo(f"{before}{replace(problem, path=path, what=what, fix=fix)}", err=err)
    if len(problems) > MOST:
        typer.echo(f"{before}... and {len(problems) - MOST} more", err=err)
