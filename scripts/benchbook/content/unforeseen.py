"""The last resort: of an error that nothing foresaw, a line that names the file it came from.

What is expected to be wrong in a file is said by who reads it, with its line and how to mend it.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from benchbook.content.problems import Problem

# Set, the traceback is shown instead.
TRACEBACK = "BENCHBOOK_TRACEBACK"
_PACKAGE = str(Path(__file__).resolve().parents[1])
# Whoever swallows the first word that time is up hears another, so many seconds later.
_AGAIN = 5
# As long as a path that a system opens.
_LONGEST = 4096


class TooLongError(Exception):
    """A command took longer than anything in this handbook does."""


def limit_time(seconds: int) -> None:
    """Raise `TooLongError` in the main thread once this process has used so many seconds of processors.

    Where a system has no such timers, nothing is limited.
    """
    if not hasattr(signal, "setitimer"):
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooLongError(f"more than {seconds} s of a processor")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)


def unforeseen(error: Exception, root: Path) -> Problem:
    """What to tell of `error`.

    Parameters:
        error: With its traceback.
        root: Of the checkout that was looked at.
    """
    if isinstance(error, TooLongError):
        signal.setitimer(signal.ITIMER_PROF, 0)
    path = next(_files_named(error, root), ".")
    if isinstance(error, OSError) and isinstance(error.filename, str):
        path = error.filename
    what = f"something in it was not foreseen ({type(error).__name__}: {_said(error)})"
    if isinstance(error, TooLongError):
        what = f"something in it takes {error}"
    fix = f"restore it, or report this, with what {TRACEBACK}=1 shows"
    return Problem(path, 1, what, fix)


def shows_traceback() -> bool:
    """Whether who runs this asked for tracebacks."""
    return bool(os.environ.get(TRACEBACK))


def _said(error: Exception) -> str:
    try:
        return " ".join(str(error).split())
    except Exception:  # a text that has none
        return "?"


def _files_named(error: Exception, root: Path) -> Iterator[str]:
    """The files of the checkout that the functions of this package were at, the innermost first."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        if frame.f_code.co_filename.startswith(_PACKAGE):
            for value in frame.f_locals.values():
                for named in (value, getattr(value, "__dict__", {}).get("path")):
                    if isinstance(named, str | Path) and (path := _file(str(named), root)) is not None:
                        yield path


def _file(named: str, root: Path) -> str | None:
    """What messages call a file of the checkout; None for what is none."""
    if not named or len(named) > _LONGEST or "\n" in named:
        return None
    try:
        path = root / named
        return path.relative_to(root).as_posix() if path.is_file() else None
    except (OSError, ValueError):
        return None
