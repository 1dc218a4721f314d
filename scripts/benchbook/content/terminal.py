"""Read what was printed as a terminal shows it in the end."""

from __future__ import annotations

import re

_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """`text` without escape sequences and control characters, of a progress bar its last state."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")
    shown = (line.rstrip("\r").rpartition("\r")[2] for line in lines)
    return _CONTROLS.sub("", "\n".join(shown))
