"""Run one job in fresh processes, watch it from outside, and leave nothing of it behind."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import selectors
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any

from benchbook.content.terminal import plain
from benchbook.machines.sampling import INTERVAL, Sampler
from benchbook.recording import processes, worker
from benchbook.recording.capture import Bounded, Scrubber
from benchbook.recording.endings import ENDED_BY_OTHERS, SAME_SHOWN, SMALLER, TO_THE_END
from benchbook.recording.jobs import CRASHED, FAILED, OK, OUT_OF_MEMORY, TIMED_OUT, Failure, Job, Result
from benchbook.recording.loaded_code import loaded_code

# How long the other processes of a run may go on once one has failed: their own errors tell little.
GRACE = 2.0
# By what `kill`, a terminal that closes, or a daemon that frees memory ends the process of another.
SENT_BY_ANYONE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT})
# Bytes that a process may tell in one line: more than any record holds.
LONGEST_ANSWER = 64 * 2**20
# Bytes that are read at once; and more than a pipe or a socket can hold.
CHUNK, READY = 1 << 16, 1 << 24
# What launchers set, and a script must not inherit from one around the recorder.
LAUNCHERS = (
    *("RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
    *("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID"),
)


class AbandonedError(Exception):
    """Whoever asked for the run is gone."""


class LostError(Exception):
    """The fork server, or another process of the host's own, ended meanwhile: no fault of the script's."""


class Told:
    """What a process of a run has told so far: the cells that it began, and in the end what came of them.

    Only lines under the secret count: a script, or what it has started, can write into whatever is open.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._waiting = bytearray()
        self.cells: list[str] = []
        self.answer: dict[str, Any] | None = None

    @property
    def cell(self) -> str:
        """The cell it was in last."""
        return self.cells[-1] if self.cells else ""

    @property
    def held(self) -> bool:
        """Whether it says that it held to the end."""
        return self.answer is not None and self.answer["outcome"] == OK

    def add(self, data: bytes) -> None:
        """Take in what came next."""
        self._waiting += data
        if b"\n" in data:
            *lines, rest = self._waiting.split(b"\n")
            self._waiting = bytearray(rest)
            for line in lines:
                # One that it was kept from finishing is followed by another.
                with contextlib.suppress(ValueError, RecursionError):
                    if line.startswith(self._secret):
                        self._read(json.loads(line[len(self._secret) :]))
        elif len(self._waiting) > LONGEST_ANSWER:
            self._waiting.clear()

    def _read(self, message: dict[str, Any]) -> None:
        if "cell" in message:
            self.cells.append(message["cell"])
        else:
            self.answer = message["answer"]


@dataclass
class _Rank:
    process: BaseProcess
    told: Told
    printed: list[Bounded] = field(default_factory=list)
    ended: float | None = None


@dataclass(frozen=True)
class Supervisor:
    """Runs jobs, one at a time.

    Parameters:
        context: The fork server.
        spared: Process ids that belong to this process and not to a run.
        sampler: Watches the devices.
        pythonpath: The search path of the scripts, None for none.
        abandoned: Asked now and then whether the run is still wanted.
        servers: Those of `spared` that start and watch the processes of a run.
    """

    context: ForkServerContext
    spared: Collection[int]
    sampler: Sampler
    pythonpath: str | None
    abandoned: Callable[[], bool]
    servers: Collection[int]

    def run(self, job: Job) -> Result:
        """Run `job` once.

        Raises:
            AbandonedError: It is no longer wanted; what it had started is gone.
            LostError: What it was started from ended meanwhile; likewise.
        """
        folder = tempfile.mkdtemp(prefix="bb-")
        scrub = Scrubber(job.root, [folder])
        try:
            return self._run(job, folder, scrub)
        finally:
            processes.end_all_but(self.spared)
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, job: Job, folder: str, scrub: Scrubber) -> Result:
        kills, own_kills = processes.oom_kills(), processes.own_oom_kills()
        self.sampler.begin()
        started = time.monotonic()
        with selectors.DefaultSelector() as selector:
            ranks = self._start(job, folder, selector)
            timed_out = self._watch(job, ranks, selector, started)
            seconds = time.monotonic() - started
            # Those that hold the pipes open must be gone before the rest of the output is known.
            processes.end_all_but(self.spared)
            for rank in ranks:
                self._join(rank.process)
            self._drain(selector)
        starved = processes.oom_kills() > kills
        taken = processes.own_oom_kills() > own_kills
        if processes.any_dead(self.servers):
            raise LostError("its fork server ended")
        endings = [_ending(job, rank, starved, taken) for rank in ranks]
        result = self._judge(job, ranks, endings, timed_out, seconds, scrub)
        if result.outcome != OK:
            return result
        places = {place for rank in ranks for place in _answer(rank)["loaded"]}
        return replace(result, loaded=loaded_code(sorted(places), job.root))

    def _start(self, job: Job, folder: str, selector: selectors.BaseSelector) -> list[_Rank]:
        port = processes.free_port() if job.ranks > 1 else 0
        ranks = []
        for number in range(job.ranks):
            pipes = [f"{folder}/output-{number}-{index}" for index in range(len(job.cells))]
            seat = worker.Seat(
                number, folder, pipes, self._environment(job, number, port, folder), self.sampler.empty
            )
            printed = []
            for pipe in pipes:
                os.mkfifo(pipe)
                bounded = Bounded()
                printed.append(bounded)
                reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                selector.register(reader, selectors.EVENT_READ, bounded)
            secret = secrets.token_hex(worker.SECRET_BYTES // 2)
            ours, theirs = socket.socketpair()
            ours.sendall(secret.encode())
            process = self.context.Process(target=worker.run, args=(job, seat, theirs))
            with theirs:
                try:
                    process.start()
                except (EOFError, OSError) as error:
                    # A rank may end it before it has told the process id of that rank.
                    ours.close()
                    raise LostError("its fork server ended") from error
            ours.setblocking(False)
            rank = _Rank(process, Told(secret), printed)
            selector.register(ours.detach(), selectors.EVENT_READ, rank.told)
            selector.register(process.sentinel, selectors.EVENT_READ, rank)
            ranks.append(rank)
        return ranks

    def _environment(self, job: Job, rank: int, port: int, folder: str) -> dict[str, str | None]:
        temporary = f"{folder}/tmp-{rank}"
        os.mkdir(temporary)
        return {
            **dict.fromkeys(LAUNCHERS),
            **_environment_of_rank(rank, job.ranks, port),
            "PYTHONPATH": self.pythonpath,
            "TMPDIR": temporary,
            # A compiler's warm cache would make the second run another measurement than the first.
            "TORCHINDUCTOR_CACHE_DIR": f"{temporary}/inductor",
            "TRITON_CACHE_DIR": f"{temporary}/triton",
        }

    def _watch(self, job: Job, ranks: list[_Rank], selector: selectors.BaseSelector, started: float) -> bool:
        """Wait for the processes to end; whether the time ran out first."""
        deadline = started + job.timeout
        pause = INTERVAL if self.sampler.active else 0.25
        while any(rank.ended is None for rank in ranks):
            now = time.monotonic()
            if now >= deadline:
                return not any(rank.ended is not None and not rank.told.held for rank in ranks)
            for key, _ in selector.select(max(0.0, min(pause, deadline - now))):
                if isinstance(key.data, Bounded | Told):
                    # The end of its process, a moment ago, may have closed it.
                    if key.fd in selector.get_map():
                        _take(key, selector)
                    continue
                rank: _Rank = key.data
                selector.unregister(key.fd)
                rank.ended = time.monotonic()
                _take_all(rank.told, selector)
                if not rank.told.held:
                    deadline = min(deadline, rank.ended + GRACE)
            self.sampler.sample()
            if self.abandoned():
                raise AbandonedError
        return False

    def _join(self, process: BaseProcess) -> None:
        """Wait until the fork server tells how a process ended.

        Raises:
            AbandonedError: The run is no longer wanted: a server that a script has stopped tells nothing.
        """
        while process.exitcode is None:
            process.join(INTERVAL)
            if self.abandoned():
                raise AbandonedError

    @staticmethod
    def _drain(selector: selectors.BaseSelector) -> None:
        """Take what is still in the pipes, and close them."""
        for key in list(selector.get_map().values()):
            if isinstance(key.data, Bounded | Told):
                _take_all(key.data, selector)
                if key.fd in selector.get_map():
                    selector.unregister(key.fd)
                    os.close(key.fd)

    def _judge(
        self,
        job: Job,
        ranks: list[_Rank],
        endings: list[tuple[str, Failure] | None],
        timed_out: bool,
        seconds: float,
        scrub: Scrubber,
    ) -> Result:
        bad = [(rank, *ending) for rank, ending in zip(ranks, endings, strict=True) if ending is not None]
        if timed_out:
            rank = next(rank for rank in ranks if rank.ended is None)
            what = f"still in the cell `{rank.told.cell}` after {job.timeout:g} seconds"
            failure = Failure(_line(job, rank.told.cell), what, "make it shorter, or raise its `timeout`")
            return Result(TIMED_OUT, failure, self._output(job, rank, scrub), [], seconds)
        if bad:
            # Out of memory anywhere explains the rest; else the first to end does.
            bad.sort(key=lambda each: (each[1] != OUT_OF_MEMORY, each[0].ended or float("inf")))
            rank, outcome, failure = bad[0]
            failure = Failure(failure.line, plain(scrub(failure.what)), failure.fix)
            killed = outcome == CRASHED and -(rank.process.exitcode or 0) in SENT_BY_ANYONE
            return Result(outcome, failure, self._output(job, rank, scrub), [], seconds, killed)
        return Result(
            OK, None, self._output(job, ranks[0], scrub), [self._reading(rank) for rank in ranks], seconds
        )

    def _output(self, job: Job, rank: _Rank, scrub: Scrubber) -> dict[str, str]:
        texts = (scrub(plain(printed.text())) for printed in rank.printed)
        return {name: text for (name, _, _), text in zip(job.cells, texts, strict=True) if text}

    def _reading(self, rank: _Rank) -> dict[str, Any]:
        answer = _answer(rank)
        cells = answer["cells"]
        for cell, peak in self.sampler.peaks(answer["device"], answer["spans"]).items():
            after = cells[cell]["device_memory"]
            # A spike between two samples may be missed; what is held at the end of the cell is not.
            if peak is not None and after is not None:
                cells[cell]["device_memory_peak"] = max(peak, after)
        return {
            "metrics": answer["metrics"],
            "blocks": answer["blocks"],
            "cells": cells,
            "baseline_memory": answer["baseline_memory"],
            "regions": answer["regions"],
            **({"traces": answer["traces"]} if "traces" in answer else {}),
        }


def _answer(rank: _Rank) -> dict[str, Any]:
    return rank.told.answer or {}


def _environment_of_rank(rank: int, ranks: int, port: int) -> dict[str, str]:
    """What torchrun sets for each process, empty for a script that runs alone."""
    if ranks == 1:
        return {}
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }


def _ending(job: Job, rank: _Rank, starved: bool, taken: bool = False) -> tuple[str, Failure] | None:
    """How a process ended, None if it held to the end.

    Parameters:
        job: What it ran.
        rank: The process.
        starved: Whether the kernel killed anything on this machine for want of memory meanwhile.
        taken: Whether what it killed was of the run's own control group.
    """
    where, answer = rank.told.cell, rank.told.answer
    line = _line(job, where)
    if answer is not None and answer["outcome"] == OK:
        told = set(rank.told.cells) & set(answer["cells"])
        lacking = [name for name, _, _ in job.cells if name not in told]
        if not lacking:
            return None
        what = f"its result lacks the cell `{lacking[0]}`, which the script has"
        return CRASHED, Failure(_line(job, lacking[0]), what, TO_THE_END)
    if answer is not None:
        failure = Failure(**answer["failure"])
        if taken and answer["outcome"] == FAILED:
            # The kernel took one of the script's own processes, and the script fell over that.
            return OUT_OF_MEMORY, replace(failure, fix=SMALLER)
        return answer["outcome"], failure
    code = rank.process.exitcode
    if code is not None and code < 0:
        name = processes.signal_name(-code)
        if -code == signal.SIGKILL and starved:
            what = f"the kernel killed it for want of memory in the cell `{where}`"
            return OUT_OF_MEMORY, Failure(line, what, SMALLER)
        fix = ENDED_BY_OTHERS if -code in SENT_BY_ANYONE else SAME_SHOWN
        return CRASHED, Failure(line, f"killed by {name} in the cell `{where}`", fix)
    what = f"the process left in the cell `{where}` (exit code {code}) before its checks had completed"
    return FAILED, Failure(line, what, TO_THE_END)


def _line(job: Job, cell: str) -> int:
    return next((line for name, line, _ in job.cells if name == cell), 1)


def _take_all(kept: Bounded | Told, selector: selectors.BaseSelector) -> None:
    """Move all that lies ready for `kept` into it, and no more: what is left running may write for ever."""
    for key in [key for key in selector.get_map().values() if key.data is kept]:
        for _ in range(READY // CHUNK):
            if not _take(key, selector):
                break


def _take(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> bool:
    """Move some bytes from a pipe into what is kept; False once there is nothing more."""
    try:
        data = os.read(key.fd, CHUNK)
    except BlockingIOError:
        return False
    except ConnectionResetError:
        # It ended before it had read its secret.
        data = b""
    if not data:
        selector.unregister(key.fd)
        os.close(key.fd)
        return False
    key.data.add(data)
    return True
