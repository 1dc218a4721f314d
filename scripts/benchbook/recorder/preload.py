"""Import, once in the fork server, what the scripts will import; notice what makes it unfit to fork."""

from __future__ import annotations

import importlib
import json
import os
import threading
from collections.abc import Iterable
from pathlib import Path

NAMES = "BENCHBOOK_PRELOAD"
# With it, torch counts NVIDIA devices without starting CUDA, which would not survive a fork.
COUNT_BY_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
# Open once CUDA, ROCm or Level Zero has started in a process.
DEVICES = ("/dev/nvidia-uvm", "/dev/kfd", "/dev/dri/")

_culprit = ""


def preload(names: list[str]) -> None:
    """Import each of `names`: `module`, or `module:attribute` for one that is imported on first use.

    What cannot be imported is left out here: the script will meet it, and say so on its own line.
    """
    global _culprit
    before = os.environ.get(COUNT_BY_NVML)
    os.environ[COUNT_BY_NVML] = "1"
    for name in names:
        module, _, attribute = name.partition(":")
        threads = threading.active_count()
        try:
            imported = importlib.import_module(module)
            if attribute:
                getattr(imported, attribute)
        except Exception:
            continue
        if not _culprit and (threading.active_count() > threads or touches_a_device(_open_files())):
            _culprit = name
    if before is None:
        del os.environ[COUNT_BY_NVML]
    else:
        os.environ[COUNT_BY_NVML] = before


def why_unfit() -> str:
    """Why the server that this process was forked from should not be forked; empty if it is fit.

    Threads are counted after the fork: a library that ends its own for the fork, as OpenBLAS does, is no
    danger.
    """
    parent = Path("/proc") / str(os.getppid())
    try:
        threads = len(list((parent / "task").iterdir()))
    except OSError:
        threads = 1
    blamed = f"importing {_culprit}" if _culprit else "what it imports"
    if threads > 1:
        return f"{blamed} starts a thread, which forked runs would lack"
    if touches_a_device(_open_files(parent)):
        return f"{blamed} starts the accelerator, which forked runs could not use"
    return ""


def _open_files(process: Path = Path("/proc/self")) -> list[str]:
    """The paths of what a process has open, as far as the system tells."""
    found = []
    try:
        for link in (process / "fd").iterdir():
            try:
                found.append(os.readlink(link))
            except OSError:
                continue
    except OSError:
        pass
    return found


def touches_a_device(paths: Iterable[str]) -> bool:
    """Whether one of `paths` is open only in a process that has started an accelerator."""
    return any(path.startswith(DEVICES) for path in paths)


# The fork server imports this module and nothing calls it there.
if NAMES in os.environ:
    preload(json.loads(os.environ.pop(NAMES)))
