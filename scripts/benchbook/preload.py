"""Import, once in the fork server, what the scripts will import; notice an import that starts a thread."""

from __future__ import annotations

import importlib
import json
import os
import threading

NAMES = "BENCHBOOK_PRELOAD"

_culprit = ""


def preload(names: list[str]) -> None:
    """Import each of `names`: `module`, or `module:attribute` for one that is imported on first use.

    What cannot be imported is left out here: the script will meet it, and say so on its own line.
    """
    global _culprit
    for name in names:
        module, _, attribute = name.partition(":")
        before = threading.active_count()
        try:
            imported = importlib.import_module(module)
            if attribute:
                getattr(imported, attribute)
        except Exception:
            continue
        if threading.active_count() > before and not _culprit:
            _culprit = name


def culprit() -> str:
    """The first import that started a thread, empty if none did."""
    return _culprit


# The fork server imports this module and nothing calls it there.
if NAMES in os.environ:
    preload(json.loads(os.environ.pop(NAMES)))
