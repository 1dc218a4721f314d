"""Cut a text out of its middle, for what begins a name and what ends it tell it from others."""

from __future__ import annotations

ELLIPSIS = "…"


def shortened(text: str, longest: int) -> str:
    """At most `longest` characters of `text`: its beginning, and half as much of its end."""
    if len(text) <= longest:
        return text
    end = longest // 3
    return text[: longest - end - len(ELLIPSIS)] + ELLIPSIS + text[len(text) - end :]
