"""Keep the finished runs of a campaign until its record is written, so that a killed recording resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchbook.content.records import write_text
from benchbook.recording.jobs import Result, result_from

# A session may be interrupted, not spread over a month.
LONGEST = timedelta(days=7)
TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Finished:
    """A run that is done."""

    variant: str
    round: int
    place: int
    result: Result


@dataclass
class Journal:
    """The finished runs of one script's campaign: a header and a line per run, only ever appended to.

    Parameters:
        path: The file.
        header: The campaign, and all that must be as it was for a run to count with those before it.
        finished: What is done.
        cuts: Variants of which a run was ended with the budget.
    """

    path: Path
    header: dict[str, Any]
    finished: list[Finished] = field(default_factory=list)
    cuts: set[str] = field(default_factory=set)

    def add(self, run: Finished) -> None:
        """Write down a run; once this returns, a crash of the machine does not lose it."""
        self.finished.append(run)
        line = {"variant": run.variant, "round": run.round, "place": run.place, "result": run.result.table()}
        self._append(line)

    def cut(self, variant: str, seconds: float) -> None:
        """Write down that a run was given so many seconds, and was not done."""
        self.cuts.add(variant)
        self._append({"variant": variant, "cut": seconds})

    def start(self) -> None:
        """Begin the file anew with the header."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self._append(self.header)

    def close(self) -> None:
        """Remove the file: the record holds everything now."""
        self.path.unlink(missing_ok=True)

    def _append(self, table: Mapping[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(table) + "\n")
            file.flush()
            os.fsync(file.fileno())


def open_journal(path: Path, header: dict[str, Any], now: datetime) -> Journal:
    """The journal in `path` if it can be gone on with under `header`, else a new one.

    Parameters:
        path: The file, which need not exist.
        header: `campaign` is taken from the file if the rest is as it was: `key` entirely, and of `variants`
            those that are wanted now.
        now: The present.
    """
    old = read_journal(path)
    if old is not None and _continues(old.header, header, now):
        return old
    fresh = Journal(path, header)
    fresh.start()
    return fresh


def _continues(old: Mapping[str, Any], new: Mapping[str, Any], now: datetime) -> bool:
    try:
        started = datetime.strptime(old["campaign"]["started"], TIME).replace(tzinfo=UTC)
        variants: Mapping[str, Any] = old["variants"]
        same = old["key"] == new["key"]
    except (KeyError, TypeError, ValueError):
        return False
    wanted = all(variants.get(name) == variant for name, variant in new["variants"].items())
    return same and wanted and now - started < LONGEST


def read_journal(path: Path) -> Journal | None:
    """The journal in `path`, None if there is none that can be read."""
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    # What follows the last line break was being written when the machine stopped.
    complete = lines[:-1]
    try:
        tables = [json.loads(line) for line in complete]
        header, *runs = tables
        finished = [
            Finished(run["variant"], run["round"], run["place"], result_from(run["result"]))
            for run in runs
            if "cut" not in run
        ]
        cuts = {str(run["variant"]) for run in runs if "cut" in run}
    except (ValueError, KeyError, TypeError):
        return None
    journal = Journal(path, header, finished, cuts)
    if lines[-1]:
        write_text(journal.path, "".join(line + "\n" for line in complete))
    return journal
