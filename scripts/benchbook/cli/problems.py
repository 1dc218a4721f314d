"""Print problems, of which there may be a million, each as long as a book, and with commands in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import typer

from benchbook.content.problems import MOST, Problem, printable
from benchbook.contributing.shortening import shortened

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
        path, what, fix = (
            printable(shortened(text, LONGEST)) for text in (problem.path, problem.what, problem.fix)
        )
        typer.echo(f"{before}{replace(problem, path=path, what=what, fix=fix)}", err=err)
    if len(problems) > MOST:
        typer.echo(f"{before}... and {len(problems) - MOST} more", err=err)
