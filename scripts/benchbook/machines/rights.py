"""Try what a script may need to be allowed on this machine: each right is used once, and undone."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from benchbook.machines.cgroups import CGROUPS, OWN, own_cgroups, texts_of

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
SECONDS = 20.0


def missing_rights(names: Iterable[str]) -> dict[str, str]:
    """Which of these rights this machine does not give, and why.

    Parameters:
        names: Of `benchbook.content.metadata.RIGHTS`.
    """
    reasons = {name: PROBES[name]() for name in dict.fromkeys(names)}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def memory_cgroup(groups: Path = CGROUPS, own: Path = OWN) -> tuple[Path, str] | None:
    """The folder in which cgroups that limit memory can be made, and the name of the limit's file.

    In version 2 that is the folder above this process's own: a group that holds processes has no children
    with limits (https://docs.kernel.org/admin-guide/cgroup-v2.html#no-internal-process-constraint).
    None where no version counts memory.
    """
    version, folders = own_cgroups("memory", groups, own)
    if version == 1:
        return (folders[0], "memory.limit_in_bytes") if folders else None
    # The topmost group alone may hold processes and have such children.
    above = folders[1:2] or folders
    controllers = [name for text in texts_of(above, "cgroup.subtree_control") for name in text.split()]
    return (above[0], "memory.max") if "memory" in controllers else None


def _root() -> str | None:
    return None if hasattr(os, "geteuid") and os.geteuid() == 0 else "this user is not root"


def _memory_limit() -> str | None:
    found = memory_cgroup()
    if found is None:
        return "no cgroup counts the memory of this process"
    folder = found[0] / f"benchbook-{secrets.token_hex(4)}"
    try:
        folder.mkdir()
        (folder / found[1]).write_text(str(2**30), "ascii")
    except OSError as error:
        return f"a cgroup with a limit cannot be made ({error.strerror})"
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
    return None


def _dropped_caches() -> str | None:
    # access(2) tells a file system that is mounted read-only, too.
    return None if os.access(DROP_CACHES, os.W_OK) else f"{DROP_CACHES} cannot be written"


def _shaped_network() -> str | None:
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} of iproute2 cannot be found"
    space = f"benchbook-{secrets.token_hex(4)}"
    steps = (
        f"ip netns add {space}",
        f"ip -n {space} link add near type veth peer name far",
        f"tc -n {space} qdisc add dev near root tbf rate 100mbit burst 64kb latency 100ms",
    )
    try:
        for step in steps:
            done = _run(step)
            if done.returncode != 0:
                last = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
                return f"`{step.replace(space, '...')}` fails ({last[-1]})"
    except (OSError, subprocess.SubprocessError) as error:
        return f"a network of its own cannot be made ({error})"
    finally:
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            _run(f"ip netns del {space}")
    return None


def _run(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command.split(), capture_output=True, text=True, timeout=SECONDS, check=False)


# What tries each right: None where it is there, else why not.
PROBES: Mapping[str, Callable[[], str | None]] = {
    "root": _root,
    "memory_limit": _memory_limit,
    "dropped_caches": _dropped_caches,
    "shaped_network": _shaped_network,
}
