"""Keep the finished runs of a campaign until its record is written, so that a killed recording resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchbook.content.formats import MOMENT, is_same
from benchbook.content.project import Project
from benchbook.content.records import write_text, writing
from benchbook.content.terminal import plain
from benchbook.recording.jobs import Result, result_from

# A campaign may be interrupted, not spread over a month: seven days at most, of which the last belongs to the
# session that goes on with it.
LONGEST = timedelta(days=6)
FOREIGN = "foreign_processes"
# All packages, where regions stand, the file system and the disk that runs lie in, the limits of their memory
# and processors, which cores those are of, how they are scheduled there, what the kernel is set to, the
# compilers that they find, what records, and what the process that runs them says of itself.
LATER_KEYS = (
    *("installed", "regions", "file_system", "disk"),
    *("memory_limits", "cpu_quota", "cores", "priority", "kernel_settings", "compilers", "recorder", "host"),
)


@dataclass(frozen=True)
class Finished:
    """A run that is done; when it ended and its session began, as records write it, empty if nobody says."""

    variant: str
    round: int
    place: int
    result: Result
    ended: str = ""
    session: str = ""


@dataclass
class Journal:
    """The finished runs of one script's campaign: a header and a line per run, only ever appended to.

    Parameters:
        path: The file.
        header: The campaign, and all that must be as it was for a run to count with those before it.
        finished: What is done.
        cuts: Variants of which a run was ended with the budget.
        again: Runs that crashed or found no memory and are taken a second time, by variant and round.
        loaded: Digests of what its runs loaded, by path.
        changed: Paths of which they loaded two contents.
        shown: The path as messages name it.
        instead: Why it was begun in the place of an earlier one; empty if it was not.
        dropped: How many finished runs that one held.
        session: When the session began whose runs are added, as records write it.
    """

    path: Path
    header: dict[str, Any]
    finished: list[Finished] = field(default_factory=list)
    cuts: set[str] = field(default_factory=set)
    again: set[tuple[str, int]] = field(default_factory=set)
    loaded: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    shown: str = ""
    instead: str = ""
    dropped: int = 0
    session: str = ""

    @property
    def done(self) -> set[tuple[str, int]]:
        """The runs that are done, by variant and round."""
        return {(finished.variant, finished.round) for finished in self.finished}

    @property
    def ended(self) -> str:
        """When the last of its runs ended, as records write it; empty where none says."""
        return max((finished.ended for finished in self.finished), default="")

    @property
    def resumed(self) -> tuple[str, ...]:
        """When further sessions began that took runs of it, as records write it, after the first that did."""
        return tuple(sorted({each.session for each in self.finished})[1:])

    def add(self, run: Finished) -> None:
        """Write down a run of this session; once this returns, a crash of the machine does not lose it."""
        run = replace(run, session=self.session)
        # Thousands of files, of which most were told with the first run.
        new = self._load(run.result.loaded)
        self.finished.append(run)
        self._append({**vars(run), "result": replace(run.result, loaded=new).table()})

    def _load(self, loaded: Mapping[str, str]) -> dict[str, str]:
        """Take in what a run loaded; what of it no run before loaded so."""
        new = {name: digest for name, digest in loaded.items() if self.loaded.get(name) != digest}
        self.changed |= new.keys() & self.loaded.keys()
        self.loaded |= new
        return new

    def cut(self, variant: str, seconds: float) -> None:
        """Write down that a run was given so many seconds, and was not done."""
        self.cuts.add(variant)
        self._append({"variant": variant, "cut": seconds})

    def take_again(self, variant: str, number: int, why: str) -> None:
        """Write down that a run did not end well and gets a second chance, so that it never gets a third."""
        self.again.add((variant, number))
        self._append({"variant": variant, "round": number, "again": why})

    def modify(self) -> None:
        """Write down that it is gone on with after a change: it is of no one commit any more."""
        if not self.header["campaign"]["modified"]:
            self.header["campaign"]["modified"] = True
            self._append({"modified": True})

    def see_others(self, foreign: list[int] | None) -> list[int] | None:
        """Write down which processes of others use the device; all that were seen during the campaign.

        Parameters:
            foreign: Their numbers; None where nothing tells. Where no process was seen, but one session could
                not tell, nobody knows: None.
        """
        state = self.header["campaign"].setdefault("state", {})
        before = state.get(FOREIGN, [])
        seen = sorted({*(before or ()), *(foreign or ())})
        united = None if not seen and None in (before, foreign) else seen
        if FOREIGN not in state or united != before:
            state[FOREIGN] = united
            self._append({FOREIGN: united})
        return united

    def start(self) -> None:
        """Begin the file anew with the header."""
        with writing(self.shown or self.path.name):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.unlink(missing_ok=True)
        self._append(self.header)

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.path.stat().st_size

    def cut_back(self, size: int) -> None:
        """Take out all that was written since the file had so many bytes; it is not added to afterwards."""
        with writing(self.shown or self.path.name):
            os.truncate(self.path, size)

    def close(self) -> None:
        """Remove the file: the record holds everything now."""
        with writing(self.shown or self.path.name):
            self.path.unlink(missing_ok=True)

    def _append(self, table: Mapping[str, Any]) -> None:
        with writing(self.shown or self.path.name), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(table) + "\n")
            file.flush()
            os.fsync(file.fileno())


def open_journal(
    path: Path,
    header: dict[str, Any],
    now: datetime,
    shown: str = "",
    unusable: Callable[[Journal], str] = lambda _: "",
) -> Journal:
    """The journal in `path` if it can be gone on with under `header`, else a new one.

    Parameters:
        path: The file, which need not exist.
        header: `campaign` is taken from the file if the rest is as it was: `key` entirely, and of `variants`
            those that are wanted now.
        now: The present.
        shown: The path as messages name it.
        unusable: Why nothing more can be measured in a journal whose header is as it was; empty if something
            can.

    Raises:
        UnwritableError: The file cannot be written.
    """
    there = path.is_file()
    old = read_journal(path, shown)
    why = "cannot be read" if old is None else why_not_resumed(old, header, now) or unusable(old)
    if old is not None and not why:
        return old
    dropped = len(old.finished) if old is not None else 0
    fresh = Journal(path, header, shown=shown, instead=why if there else "", dropped=dropped)
    fresh.start()
    return fresh


def why_not_resumed(journal: Journal, new: Mapping[str, Any], now: datetime) -> str:
    """Why a journal is not gone on with; empty if it is."""
    old: Mapping[str, Any] = journal.header
    try:
        started = datetime.strptime(old["campaign"]["started"], MOMENT).replace(tzinfo=UTC)
        # An older journal does not tell of variables, nor of an accelerator.
        keys = [{"environment": {}, "accelerator": None, **header["key"]} for header in (old, new)]
        # Nor of what follows, which is taken for what it is now.
        keys[0] = {name: keys[1][name] for name in LATER_KEYS if name in keys[1]} | keys[0]
        same = is_same(*keys)
        before, after = (key["environment"].items() for key in keys)
        variables = sorted({name for name, _ in before ^ after})
        wanted = all(is_same(old["variants"].get(name), variant) for name, variant in new["variants"].items())
    except (AttributeError, KeyError, TypeError, ValueError):
        return "cannot be read"
    if variables:
        return f"is of an environment with other variables ({plain(', '.join(variables))})"
    if not (same and wanted):
        return "is of other code, parameters, packages or circumstances"
    if now < started:
        # Its record would end before it began, or end in the future.
        return f"begins in the future, at {old['campaign']['started']}: the clock was set back"
    if now.strftime(MOMENT) < journal.ended:
        # What its runs took together would be longer than it lasted.
        return f"ends in the future, at {journal.ended}: the clock was set back"
    return "" if now - started < LONGEST else f"is older than {LONGEST.days} days"


def _finished(run: Mapping[str, Any]) -> Finished:
    """The run that a line tells of.

    Raises:
        ValueError, KeyError, TypeError: It tells of none.
    """
    moments = [run.get(name, "") for name in ("ended", "session")]
    for moment in filter(None, moments):
        datetime.strptime(moment, MOMENT)
    return Finished(run["variant"], run["round"], run["place"], result_from(run["result"]), *moments)


def journal_path(project: Project, machine: str, script: str) -> Path:
    """Where the journal of a script ("guide/script.py") lies on a machine."""
    return (project.journal / machine / script).with_suffix(".jsonl")


def read_journal(path: Path, shown: str = "", repair: bool = True) -> Journal | None:
    """The journal in `path`, which messages name `shown`; None if there is none that can be read.

    Parameters:
        path: The file.
        shown: The path as messages name it.
        repair: Whether to remove what was being written when the machine stopped, as whoever goes on with it
            must. Whoever only reads must not: it may be written right now.

    Raises:
        UnwritableError: Its last line was being written when the machine stopped, and cannot be removed.
    """
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return None
    # What follows the last line break was being written when the machine stopped.
    complete = lines[:-1]
    try:
        tables = [json.loads(line) for line in complete]
        header, *runs = tables
        told = [_finished(run) for run in runs if not {"cut", "again", "modified", FOREIGN} & run.keys()]
        # What was taken again, since it had been cut short, is what counts.
        finished = [*{(each.variant, each.round): each for each in told}.values()]
        cuts = {str(run["variant"]) for run in runs if "cut" in run}
        again = {(str(run["variant"]), int(run["round"])) for run in runs if "again" in run}
        if any("modified" in run for run in runs):
            header["campaign"]["modified"] = True
        for run in runs:
            if FOREIGN in run:
                seen = run[FOREIGN]
                header["campaign"].setdefault("state", {})[FOREIGN] = seen and [int(each) for each in seen]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    journal = Journal(path, header, finished, cuts, again, shown=shown)
    for each in told:
        journal._load(each.result.loaded)
    if lines[-1] and repair:
        with writing(shown or path.name):
            write_text(journal.path, "".join(line + "\n" for line in complete))
    return journal
