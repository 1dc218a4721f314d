"""Read what the operating system charges a process, and let its peak begin again."""

from __future__ import annotations

import re
from pathlib import Path

SELF = Path("/proc/self")


def resident(process: Path = SELF) -> int | None:
    """Bytes of physical memory that the process holds now (RSS), None where the system does not tell.

    Pages shared with the server it was forked from count in full: PSS would depend on who else is alive.
    """
    return _field(process, "VmRSS")


def resident_peak(process: Path = SELF) -> int | None:
    """The most it held since the peak was last reset, None where a sandboxed kernel does not tell."""
    return _field(process, "VmHWM")


def reset_peak(process: Path = SELF) -> bool:
    """Let the peak begin at what is held now; False where the kernel has no such thing."""
    try:
        (process / "clear_refs").write_text("5", "ascii")
    except OSError:
        return False
    return True


def _field(process: Path, name: str) -> int | None:
    try:
        status = (process / "status").read_text("ascii", "replace")
    except OSError:
        return None
    match = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else None
