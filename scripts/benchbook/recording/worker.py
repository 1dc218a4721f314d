"""Run one script's cells in one fresh process under the meters, as `python script.py` would."""

from __future__ import annotations
import __future__

import ast
import contextlib
import ctypes
import io
import json
import linecache
import mmap
import multiprocessing
import os
import signal
import socket
import sys
import types
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import benchbook
from benchbook.content.regions import NOTE, REGION, with_notes
from benchbook.machines.kernel_files import running_files
from benchbook.machines.meters import CellMeters
from benchbook.recording.endings import (
    MetricError,
    check_seeds,
    explain,
    explain_own,
    read_blocks,
    read_metrics,
    shown_traceback,
)
from benchbook.recording.jobs import FAILED, OK, Job
from benchbook.recording.traces import read_traces
from benchbook.statistics.summary import median

PARAMETERS = "parameters"
DEPRECATIONS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
# Python 3.12 warns of any fork beside OpenMP's threads. Data loaders of scripts fork all the same: the
# process they copy has no accelerator context that a child would touch.
FORK_WARNING = r".*multi-threaded, use of (fork|forkpty)\(\) may lead to deadlocks.*"
# PyTorch's exporter to ONNX copies trees whose leaves it looks at in a way that it calls deprecated itself.
EXPORT_WARNING = r"`isinstance\(treespec, LeafSpec\)` is deprecated"
FUTURES = 0
for _name in __future__.all_feature_names:
    FUTURES |= getattr(__future__, _name).compiler_flag
SET_DEATH_SIGNAL = 1
SECRET_BYTES = 32


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


class Teller:
    """Tells the supervisor which cell begins, and in the end what came of them all.

    It does so over a socket that this process was born with, and begins each line with a secret that came
    over it: a script that writes into whatever it finds open says nothing that would be believed.
    """

    def __init__(self, channel: socket.socket) -> None:
        channel.set_inheritable(False)
        self._channel = channel
        self._secret = channel.recv(SECRET_BYTES, socket.MSG_WAITALL)

    def cell(self, name: str) -> None:
        """Say that a cell begins."""
        self._tell({"cell": name})

    def answer(self, result: dict[str, Any]) -> None:
        """Say what came of the run.

        Raises:
            ValueError: It holds what JSON has not; nothing was said.
        """
        self._tell({"answer": result})

    def _tell(self, message: dict[str, Any]) -> None:
        # On a line of its own, whatever a script may have written before.
        line = json.dumps(message, allow_nan=False).encode()
        self._channel.sendall(b"\n" + self._secret + line + b"\n")


def run(job: Job, seat: Seat, channel: socket.socket) -> None:
    """Be that process: run the cells, tell over `channel` what came of them, and end."""
    _settle(seat)
    teller = Teller(channel)
    try:
        teller.answer(_run_cells(job, seat, teller))
    except BaseException as error:  # whatever goes wrong in here must be told, not guessed
        teller.answer({"outcome": FAILED, "failure": asdict(explain_own(error))})
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


def _run_cells(job: Job, seat: Seat, teller: Teller) -> dict[str, Any]:
    module = _make_main(job)
    namespace = module.__dict__
    searched = [*sys.path]
    reached = _Reached(job.source)
    namespace[NOTE] = reached.note
    flags = 0
    with _Output(seat.outputs) as output:
        meters = CellMeters(tuple(job.meters), seat.empty)
        for index, (name, line, code) in enumerate(job.cells):
            teller.cell(name)
            output.switch(index)
            try:
                # Blank lines in front, so that tracebacks and inspect find the line in the file.
                text = "\n" * (line - 1) + code
                parsed = compile(text, job.script, "exec", flags=flags | ast.PyCF_ONLY_AST, dont_inherit=True)
                tree = with_notes(code, parsed, shift=line - 1)
                # Asserts are kept whatever PYTHONOPTIMIZE says: the checks are made of them.
                compiled = compile(tree, job.script, "exec", flags=flags, dont_inherit=True, optimize=0)
                flags |= compiled.co_flags & FUTURES
                with meters.around(name):
                    exec(compiled, namespace)  # noqa: S102
                    output.flush()
            except BaseException as error:
                output.flush()
                # Not through sys.stderr, which the script may have closed; and it may have closed this too.
                with contextlib.suppress(OSError):
                    os.write(2, shown_traceback(error, job.script).encode("utf-8", "backslashreplace"))
                outcome, failure = explain(error, job.script, name)
                return {"outcome": outcome, "failure": asdict(failure)}
            if name == PARAMETERS:
                namespace.update(job.overridden)
    try:
        metrics = read_metrics(job.metrics, namespace, job.source)
        blocks = {name: read_blocks(name, metrics[name], job.source) for name in job.blocks}
        for name in job.seeds:
            check_seeds(name, metrics[name], job.source)
        meters.finish()
        # Once all is measured. The first process tells for all of them.
        traces = read_traces(job.traces, namespace, job.source) if seat.rank == 0 else {}
    except MetricError as error:
        return {"outcome": FAILED, "failure": asdict(error.failure)}
    return {
        "outcome": OK,
        "metrics": metrics | {name: median(values) for name, values in blocks.items()},
        "blocks": blocks,
        "cells": meters.cells,
        "spans": meters.spans,
        "device": meters.device,
        "baseline_memory": meters.baseline_memory,
        "regions": reached.names(),
        "loaded": _loaded(searched, job.script),
        **({"traces": traces} if traces else {}),
    }


def _loaded(searched: Sequence[str], script: str) -> list[str]:
    """The paths of what this process has loaded: modules, libraries, and where it has looked for others.

    Parameters:
        searched: The search path that it began with.
        script: Its own file, which is told elsewhere.
    """
    modules = [module for module in [*sys.modules.values()] if isinstance(module, types.ModuleType)]
    # Not by attribute: some modules import others when they are asked for a name.
    files = {vars(module).get("__file__") for module in modules}
    # Children may have found something there.
    added = {os.path.abspath(entry) for entry in sys.path if isinstance(entry, str) and entry not in searched}
    places = {
        place for place in files | added | running_files() if isinstance(place, str) and os.path.isabs(place)
    }
    return sorted(places - {script})


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
    warnings.filterwarnings("ignore", EXPORT_WARNING, FutureWarning)
    return module


class _Reached:
    """The regions that were reached, by this process or one that it forked, however that ended.

    They are noted among the script's own lines: in memory that is there already, so that neither a full disk
    nor a file that the script has closed raises an error there.

    Parameters:
        source: Of the script.

    Raises:
        OSError: There is no memory to note them in.
    """

    def __init__(self, source: str) -> None:
        names = [begin["name"] or "" for line in source.split("\n") if (begin := REGION.match(line))]
        self._places = {name: place for place, name in enumerate(names)}
        # A fork shares it. What was written to once is there from then on.
        self._marks = mmap.mmap(-1, len(names) or 1)
        self._marks.write(bytes(len(self._marks)))

    def note(self, name: str) -> None:
        self._marks[self._places[name]] = 1

    def names(self) -> list[str]:
        return sorted(name for name, place in self._places.items() if self._marks[place])


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
