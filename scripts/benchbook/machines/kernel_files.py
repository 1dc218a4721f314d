"""Read what the kernel tells in files."""

from __future__ import annotations

import contextlib
from pathlib import Path


def kernel_text(path: Path) -> str:
    """What stands in a file of the kernel's; without blank ends; empty where there is none."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def running_files() -> set[str]:
    """The paths of the programs and libraries that this process runs code of, where the system tells."""
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        # Addresses, rights, offset, device, inode, and the path, which may hold spaces.
        parts = (line.rstrip("\n").split(maxsplit=5) for line in maps)
        return {part[5] for part in parts if len(part) == 6 and "x" in part[1]}
    return set()
