"""Read the limits of this process's control group, and of those above it, in versions 1 and 2."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")


def own_cgroups(controller: str, groups: Path = CGROUPS, own: Path = OWN) -> tuple[int, list[Path]]:
    """The version that a controller is of, and the folders of this process's group and those above it.

    The own group comes first. No folder where nothing tells.

    Parameters:
        controller: "memory" or "cpu".
        groups: Where control groups are mounted.
        own: What tells the groups of this process.
    """
    try:
        lines = [line.split(":", 2) for line in own.read_text("utf-8", "surrogateescape").splitlines()]
    except OSError:
        return 2, []
    paths = {name: path for _, controllers, path in lines for name in controllers.split(",")}
    version, top, path = 2, groups, paths.get("", "/")
    if controller in paths:
        version, top, path = 1, groups / controller, paths[controller]
    here = top / path.lstrip("/")
    above = [folder for folder in (here, *here.parents) if folder.is_relative_to(top)]
    # In a container the path may be that of the host, and its group is mounted at the top.
    return version, [folder for folder in above if folder.is_dir()]


def memory_limit(groups: Path = CGROUPS, own: Path = OWN) -> int | None:
    """The memory that this process's control groups allow, in bytes; None where they set no limit."""
    version, folders = own_cgroups("memory", groups, own)
    # Version 1 writes an absurdly high number where there is no limit, version 2 "max".
    texts = texts_of(folders, "memory.limit_in_bytes" if version == 1 else "memory.max")
    return min((int(text) for text in texts if text.strip().isdigit()), default=None)


def cpu_quota(groups: Path = CGROUPS, own: Path = OWN) -> float | None:
    """How many processors' time this process's control groups allow; None where they set no quota."""
    version, folders = own_cgroups("cpu", groups, own)
    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if version == 1 else ("cpu.max",)
    # Quota and period, in microseconds; without a quota, version 1 says -1, version 2 "max".
    pairs = [" ".join(text for name in names for text in texts_of([each], name)).split() for each in folders]
    return min((int(pair[0]) / int(pair[1]) for pair in pairs if pair and pair[0].isdigit()), default=None)


def cpu_weights(groups: Path = CGROUPS, own: Path = OWN) -> list[str]:
    """How much of the processors' time each of this process's groups gets beside others, the own first."""
    version, folders = own_cgroups("cpu", groups, own)
    names = ("cpu.shares",) if version == 1 else ("cpu.weight", "cpu.idle")
    return [text.strip() for name in names for text in texts_of(folders, name)]


def texts_of(folders: Iterable[Path], name: str) -> Iterator[str]:
    """What a file holds in each of these folders that has it."""
    for folder in folders:
        with contextlib.suppress(OSError):
            yield (folder / name).read_text("ascii", "replace")
