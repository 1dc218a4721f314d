"""Know and end every process that a run has started, whatever session or parent it has given itself."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import sys
from collections.abc import Collection
from pathlib import Path

import psutil

from benchbook.machines.cgroups import CGROUPS, OWN, own_cgroups

BECOME_SUBREAPER = 36
MARK = "BENCHBOOK_HOST"


def adopt_orphans() -> bool:
    """Become the parent of whatever our descendants leave behind; False where the system cannot do that."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(BECOME_SUBREAPER, 1, 0, 0, 0) == 0)


def descendants() -> set[int]:
    """Process ids of all that stem from this process, dead but unreaped ones included."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


def children() -> set[int]:
    """Process ids of those that this process has started itself, or adopted."""
    return {process.pid for process in psutil.Process().children()}


def end_all_but(spared: Collection[int], patience: float = 5.0) -> list[int]:
    """Kill and reap every descendant but those in `spared`.

    Children of what is killed are adopted meanwhile, so that it takes as many looks as there are generations.

    Returns:
        The processes that would not go within `patience` seconds: stuck in the kernel.
    """
    victims: dict[int, psutil.Process] = {}
    looks = max(1, int(patience / 0.01))
    for _ in range(looks):
        _reap(spared)
        alive = [child for child in psutil.Process().children(recursive=True) if child.pid not in spared]
        if not alive:
            return []
        for child in alive:
            victims[child.pid] = child
            _kill(child.pid)
        psutil.wait_procs(alive, timeout=0.01)
    return sorted(child.pid for child in victims.values() if child.is_running())


def _reap(spared: Collection[int]) -> None:
    """Collect the dead among our adopted children."""
    for child in psutil.Process().children():
        if child.pid not in spared:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child.pid, os.WNOHANG)


def end_marked(mark: str, patience: float = 5.0) -> list[int]:
    """Kill whatever carries `mark` in its environment: what a host that was itself killed has left behind.

    Returns once it is gone (or `patience` seconds have passed), so that the next run finds memory and devices
    as they were.
    """
    ended: dict[int, psutil.Process] = {}
    for _ in range(max(1, int(patience / 0.01))):
        marked = [process for process in psutil.process_iter() if _carries(process, mark)]
        for process in marked:
            _kill(process.pid)
            ended[process.pid] = process
        # While it dies, a process has no environment left to carry anything.
        dying = [process for process in ended.values() if not _dead(process)]
        if not marked and not dying:
            break
        psutil.wait_procs(dying, timeout=0.01)
    return sorted(ended)


def end_orphans(host: str, patience: float = 5.0) -> list[int]:
    """Kill whatever a host has started that is itself gone, as where recorder and host were killed together.

    Parameters:
        host: An argument that each host is started with; a host that lives keeps what it has started.
        patience: Seconds to wait until each is gone.
    """
    marked: dict[str, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        if mark := _mark_of(process):
            marked.setdefault(mark, []).append(process)
    orphaned = [mark for mark, found in marked.items() if not any(_has_argument(one, host) for one in found)]
    return sorted(pid for mark in orphaned for pid in end_marked(mark, patience))


def any_dead(pids: Collection[int]) -> bool:
    """Whether one of some processes is no more, or waits to be collected."""
    return any(not psutil.pid_exists(pid) or _dead(psutil.Process(pid)) for pid in pids)


def _dead(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def _carries(process: psutil.Process, mark: str) -> bool:
    return process.pid != os.getpid() and _mark_of(process) == mark


def _mark_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get(MARK)
    except psutil.Error:
        # Gone meanwhile, or another user's.
        return None


def _has_argument(process: psutil.Process, argument: str) -> bool:
    try:
        return argument in process.cmdline()
    except psutil.Error:
        return False


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def signal_name(number: int) -> str:
    """What a signal is called; most of the real-time ones have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def oom_kills(vmstat: Path = Path("/proc/vmstat")) -> int:
    """How many processes the kernel has killed for want of memory so far, 0 where it does not tell."""
    return _oom_kills_in(vmstat)


def own_oom_kills(groups: Path = CGROUPS, own: Path = OWN) -> int:
    """How many of them were of this process's control group, which is that of whatever it starts.

    0 where nothing tells, as in the topmost group of version 2.
    """
    version, folders = own_cgroups("memory", groups, own)
    name = "memory.oom_control" if version == 1 else "memory.events"
    return _oom_kills_in(folders[0] / name) if folders else 0


def _oom_kills_in(file: Path) -> int:
    try:
        match = re.search(r"^oom_kill (\d+)", file.read_text("ascii", "replace"), re.MULTILINE)
    except OSError:
        return 0
    return int(match[1]) if match else 0


def free_port() -> int:
    """A TCP port on this machine that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
