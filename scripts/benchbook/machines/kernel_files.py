"""Read what the kernel tells in files."""

from __future__ import annotations

from pathlib import Path


def kernel_text(path: Path) -> str:
    """What stands in a file of the kernel's; without blank ends; empty where there is none."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
