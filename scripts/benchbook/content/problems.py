"""What is wrong, where, and how to fix it: the one kind of error a user of this project meets."""

from __future__ import annotations

import difflib
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Whoever has more begins with these, of a page as of all: each of its thousands of references can be wrong.
MOST = 1000
# So many names are told, and how many more there are.
_MOST_NAMES, _MOST_KNOWN = 5, 10
# The categories of what breaks a line, commands a terminal or turns the direction of a text.
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is not right.

    Parameters:
        path: The file, relative to the project.
        line: Its line, counted from 1.
        what: What is wrong, in one sentence without a full stop.
        fix: What to do about it, likewise.

    """

    path: str
    line: int
    what: str
    fix: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}; {self.fix}"


def unreadable(path: str, error: OSError | UnicodeDecodeError) -> Problem:
    """That a text cannot be read; `path` is how messages name its file."""
    return Problem(path, 1, f"cannot be read ({error})", "save it as UTF-8")


class BenchbookError(Exception):
    """Something in the project's content is not right; carries every problem found."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def printable(text: str) -> str:
    """`text` as one line that commands nothing: what is not seen is written as Python escapes it.

    GitHub takes a line that begins with `::`, or holds `##[`, for a command to the workflow.
    """
    seen = "".join(
        one.encode("unicode_escape").decode() if unicodedata.category(one) in _UNSEEN else one for one in text
    ).replace("##[", "##\\[")
    return f"./{seen}" if seen.lstrip().startswith("::") else seen


def few(names: Sequence[str], most: int = _MOST_NAMES, between: str = ", ") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{between.join(names[:most])}{more}"


def few_known(names: Sequence[str], between: str = ", ") -> str:
    """The same of names that one may choose from."""
    return few(names, _MOST_KNOWN, between)


def did_you_mean(name: str, known: Iterable[str], what: str) -> str:
    """A fix for an unknown name: the nearest known ones, or the first of all when none is near."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5) or names
    if not near:
        return f"there is no {what} to name here"
    return f"use one of the {'axes' if what == 'axis' else f'{what}s'} there are: {few_known(near)}"


def lacking(error: ModuleNotFoundError) -> str:
    """What to tell one whose Python lacks a package; a module missing from benchbook itself is raised."""
    package = str(error.name).partition(".")[0]
    if package == "benchbook":
        raise error
    fix = "install all that benchbook needs: pip install -e '.[record,site]'"
    return f"{sys.executable} lacks the package {package}; {fix}"
