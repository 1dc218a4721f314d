"""What recorder, host and worker tell each other: a job, and the result of running it once."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

# How a run ended. All but FAILED describe what the variant does, and are recorded as such.
OK, OUT_OF_MEMORY, TIMED_OUT, CRASHED, FAILED = "ok", "out of memory", "timed out", "crashed", "failed"
# Each seed is a sample of its own: of so many a claim has no use.
MOST_SEEDS = 100


@dataclass(frozen=True)
class Job:
    """One run of one variant.

    Parameters:
        script: The file's absolute path.
        root: The project, whose path is cut from what is recorded.
        source: The whole text that runs.
        cells: Name, first line and code of each.
        overridden: Those set otherwise once the `parameters` cell has run.
        metrics: Names to read after the last cell.
        blocks: Those of them that hold a value for each timed block.
        seeds: Those of them that hold a value for each seed.
        traces: Names that hold the path of a profiler's trace after the last cell, or None.
        meters: Meters on request.
        ranks: How many processes run it together.
        timeout: Seconds after which they are killed.
        docstring: Of the script.
        strict: Whether a deprecation is an error wherever it comes from, not only in the script's own lines.
    """

    script: str
    root: str
    source: str
    cells: list[tuple[str, int, str]]
    overridden: dict[str, Any] = field(default_factory=dict)
    metrics: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    meters: list[str] = field(default_factory=list)
    ranks: int = 1
    timeout: float = 600.0
    docstring: str = ""
    strict: bool = False

    def table(self) -> dict[str, Any]:
        """This job as JSON objects."""
        return asdict(self)


def job_from(table: dict[str, Any]) -> Job:
    """The job that came as JSON objects."""
    return Job(**{**table, "cells": [(name, line, code) for name, line, code in table["cells"]]})


@dataclass(frozen=True)
class Failure:
    """Why a run did not end well.

    Parameters:
        line: Of the script, 1 where none is known.
        what: What happened, in one sentence without a full stop.
        fix: What to do about it.
    """

    line: int
    what: str
    fix: str


@dataclass(frozen=True)
class Result:
    """What one run yielded.

    Parameters:
        outcome: One of the five above.
        failure: Unless the outcome is OK.
        output: What rank 0 (or the rank that failed) printed, by cell.
        ranks: Metrics, meters by cell and baseline of each process, and the traces of the first; empty unless
            the outcome is OK.
        seconds: From the start of the first process to the end of the last.
        killed: Whether a signal ended it by which anyone ends a process: that says little of the script.
        loaded: Digests of the modules and libraries that it loaded, by path.
    """

    outcome: str
    failure: Failure | None = None
    output: dict[str, str] = field(default_factory=dict)
    ranks: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    killed: bool = False
    loaded: dict[str, str] = field(default_factory=dict)

    def table(self) -> dict[str, Any]:
        """This result as JSON objects."""
        return asdict(self)


def result_from(table: dict[str, Any]) -> Result:
    """The result that came as JSON objects.

    Raises:
        KeyError, TypeError, ValueError: It is none.
    """
    failure = table.get("failure")
    loaded = {str(name): str(digest) for name, digest in dict(table.get("loaded", {})).items()}
    return Result(**{**table, "failure": Failure(**failure) if failure else None, "loaded": loaded})
