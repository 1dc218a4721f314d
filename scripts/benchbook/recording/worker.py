"""Run one script's cells in one fresh process under the meters, as `python script.py` would."""

from __future__ import annotations
import __future__

import ast
import contextlib
import ctypes
import io
import json
import linecache
import multiprocessing
import os
import signal
import sys
import types
import warnings
from dataclasses import asdict, dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import benchbook
from benchbook.content.regions import NOTE, with_notes
from benchbook.machines.meters import CellMeters
from benchbook.recording.endings import (
    MetricError,
    explain,
    outcome_of,
    read_blocks,
    read_metrics,
    shown_traceback,
)
from benchbook.recording.jobs import FAILED, OK, Failure, Job
from benchbook.statistics.summary import median

PARAMETERS = "parameters"
DEPRECATIONS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
# Python 3.12 warns of any fork beside OpenMP's threads. Data loaders of scripts fork all the same: the
# process they copy has no accelerator context that a child would touch.
FORK_WARNING = r".*multi-threaded, use of (fork|forkpty)\(\) may lead to deadlocks.*"
FUTURES = 0
for _name in __future__.all_feature_names:
    FUTURES |= getattr(__future__, _name).compiler_flag
SET_DEATH_SIGNAL = 1


@dataclass(frozen=True)
class Seat:
    """Where one process of a run sits.

    Parameters:
        rank: Its number.
        folder: The run's own folder, gone afterwards.
        outputs: A pipe per cell, by path, that takes what is printed.
        environment: Variables to set, and (None) to remove.
        empty: What each NVIDIA device held before the run.
    """

    rank: int
    folder: str
    outputs: list[str]
    environment: dict[str, str | None]
    empty: dict[str, int]

    @property
    def result(self) -> Path:
        """Where it leaves what it found."""
        return Path(self.folder) / f"result-{self.rank}.json"

    @property
    def progress(self) -> Path:
        """Where it leaves the name of the cell it is in."""
        return Path(self.folder) / f"progress-{self.rank}"


def run(job: Job, seat: Seat) -> None:
    """Be that process: run the cells, leave the result in a file, and end."""
    _settle(seat)
    with seat.progress.open("wb", buffering=0) as progress:
        try:
            result = _run_cells(job, seat, progress)
        except BaseException as error:  # whatever goes wrong in here must be told, not guessed
            what = f"the recorder itself failed ({type(error).__name__}: {error})"
            result = {
                "outcome": FAILED,
                "failure": asdict(Failure(1, what, "report this as a fault of benchbook")),
            }
    beside = seat.result.with_suffix(".part")
    beside.write_text(json.dumps(result, allow_nan=False), "utf-8")
    os.replace(beside, seat.result)
    # Neither exit handlers nor destructors are part of what is measured, and some hang.
    os._exit(0)


def _settle(seat: Seat) -> None:
    os.setsid()
    _die_with_parent()
    # Out of memory shall kill this process alone, and spare recorder, host and server.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    # Children of the server inherit its start method, with which data loaders die.
    multiprocessing.set_start_method("fork", force=True)
    multiprocessing.current_process().name = "MainProcess"
    for name, value in seat.environment.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    home = Path(seat.folder) / f"rank-{seat.rank}"
    home.mkdir()
    os.chdir(home)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)


def _run_cells(job: Job, seat: Seat, progress: FileIO) -> dict[str, Any]:
    module = _make_main(job)
    namespace = module.__dict__
    reached: set[str] = set()
    namespace[NOTE] = reached.add
    flags = 0
    with _Output(seat.outputs) as output:
        meters = CellMeters(tuple(job.meters), seat.empty)
        for index, (name, line, code) in enumerate(job.cells):
            progress.write(f"{name}\n".encode())
            output.switch(index)
            try:
                # Blank lines in front, so that tracebacks and inspect find the line in the file.
                text = "\n" * (line - 1) + code
                parsed = compile(text, job.script, "exec", flags=flags | ast.PyCF_ONLY_AST, dont_inherit=True)
                tree = with_notes(code, parsed, shift=line - 1)
                compiled = compile(tree, job.script, "exec", flags=flags, dont_inherit=True)
                flags |= compiled.co_flags & FUTURES
                with meters.around(name):
                    exec(compiled, namespace)  # noqa: S102
                    output.flush()
            except BaseException as error:
                output.flush()
                # Not through sys.stderr, which the script may have closed.
                os.write(2, shown_traceback(error, job.script).encode("utf-8", "backslashreplace"))
                failure = explain(error, job.script, name)
                return {"outcome": outcome_of(error), "failure": asdict(failure)}
            if name == PARAMETERS:
                namespace.update(job.overridden)
    try:
        metrics = read_metrics(job.metrics, namespace, job.source)
        blocks = {name: read_blocks(name, metrics[name], job.source) for name in job.blocks}
    except MetricError as error:
        return {"outcome": FAILED, "failure": asdict(error.failure)}
    meters.finish()
    return {
        "outcome": OK,
        "metrics": metrics | {name: median(values) for name, values in blocks.items()},
        "blocks": blocks,
        "cells": meters.cells,
        "spans": meters.spans,
        "device": meters.device,
        "baseline_memory": meters.baseline_memory,
        "regions": sorted(reached),
    }


def _make_main(job: Job) -> types.ModuleType:
    """A real `__main__`, so that pickling, `inspect.getsource`, dataclasses and pools work."""
    module = types.ModuleType("__main__", job.docstring or None)
    module.__file__ = job.script
    module.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = module
    sys.argv = [job.script]
    # What `python script.py` would search, and nothing of the recorder's.
    own = str(Path(benchbook.__file__).parent.parent)
    sys.path[:] = [str(Path(job.script).parent), *(entry for entry in sys.path if entry not in {"", own})]
    # Lines end where Python ends them: not at a form feed, as `splitlines` has it.
    linecache.cache[job.script] = (len(job.source), None, io.StringIO(job.source).readlines(), job.script)
    for category in DEPRECATIONS:
        # What a library does by itself on a device where nobody tried it yet must not cost a campaign.
        warnings.filterwarnings("error", category=category, module="" if job.strict else r"__main__\Z")
    warnings.filterwarnings("ignore", FORK_WARNING, DeprecationWarning)
    return module


class _Output:
    """Standard output and error at the level of file descriptors: C code and subprocesses print too."""

    def __init__(self, pipes: list[str]) -> None:
        self._pipes = [os.open(pipe, os.O_WRONLY | os.O_CLOEXEC) for pipe in pipes]
        self._libc = ctypes.CDLL(None)

    def __enter__(self) -> _Output:
        self._aim(os.open(os.devnull, os.O_WRONLY))
        for name, number in (("stdout", 1), ("stderr", 2)):
            stream = open(
                number, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False
            )
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        return self

    def __exit__(self, *_: object) -> None:
        self.flush()
        # What is printed from here on belongs to no cell.
        self._aim(os.open(os.devnull, os.O_WRONLY))

    def switch(self, index: int) -> None:
        """From now on what is printed, by this process or one it starts, belongs to cell `index`."""
        self.flush()
        self._aim(self._pipes[index])

    def flush(self) -> None:
        """Push out what Python and C keep in their buffers."""
        for stream in (sys.stdout, sys.stderr):
            # A script may have closed or replaced its streams.
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        self._libc.fflush(None)

    def _aim(self, descriptor: int) -> None:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)
