"""Import, once in the fork server, what the scripts will import; notice what makes it unfit to fork."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchbook.machines.nvml import Nvml, open_nvml

NAMES = "BENCHBOOK_PRELOAD"
# With it, torch counts NVIDIA devices without starting CUDA, which would not survive a fork.
COUNT_BY_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
# Open once CUDA, ROCm or Level Zero has started in a process.
DEVICES = ("/dev/nvidia-uvm", "/dev/kfd", "/dev/dri/")

_culprit = ""


def preload(names: Sequence[str]) -> None:
    """Import each of `names`: `module`, or `module:attribute` for one that is imported on first use.

    What cannot be imported is left out here: the script will meet it, and say so on its own line.
    """
    before = os.environ.get(COUNT_BY_NVML)
    os.environ[COUNT_BY_NVML] = "1"
    with answers_of_nvml() if _uses_torch(names) else contextlib.nullcontext():
        _import_all(names)
    if before is None:
        del os.environ[COUNT_BY_NVML]
    else:
        os.environ[COUNT_BY_NVML] = before


def _uses_torch(names: Sequence[str]) -> bool:
    return any(name.partition(":")[0].partition(".")[0] != "numpy" for name in names)


@contextlib.contextmanager
def answers_of_nvml() -> Iterator[None]:
    """Let NVML say how many devices there are and what they can, for as long as this lasts.

    bitsandbytes asks torch for both as it is imported, and so whoever imports that: peft, and with it
    Trainer. Torch would start CUDA to answer, or NVML, which a server that is to be forked must not.
    """
    known = _known_apart()
    cuda = None if known is None else _cuda_of_torch()
    if known is None or cuda is None:
        yield
        return
    asked = {name: getattr(cuda, name) for name in ("is_available", "device_count", "get_device_capability")}

    def capability(device: Any = None) -> tuple[int, int]:
        # A number, a torch.device or a torch.cuda.device; the first where none is named.
        place = getattr(device, "idx", getattr(device, "index", device))
        if place is None:
            place = 0
        if isinstance(place, int) and 0 <= place < len(known) and (found := known[place]) is not None:
            return found
        answer: tuple[int, int] = asked["get_device_capability"](device)
        return answer

    cuda.is_available = lambda: bool(known)
    cuda.device_count = lambda: len(known)
    cuda.get_device_capability = capability
    try:
        yield
    finally:
        for name, ask in asked.items():
            setattr(cuda, name, ask)


def _cuda_of_torch() -> Any:
    """`torch.cuda`; None of a torch that was built for another accelerator, or that cannot be imported."""
    try:
        torch: Any = importlib.import_module("torch")
        return torch.cuda if torch.version.cuda is not None else None
    except Exception:
        # That is the script's to meet.
        return None


def _known_apart() -> list[tuple[int, int] | None] | None:
    """What `capabilities` finds, asked in a process of its own; None where there is no NVML to ask.

    The threads that NVML starts and the devices that it opens end with that process.
    """
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            nvml = open_nvml()
            found = None if nvml is None else capabilities(nvml, os.environ.get("CUDA_VISIBLE_DEVICES"))
            os.write(theirs, json.dumps(found).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    found = json.loads(said or "null")
    return None if found is None else [None if one is None else (one[0], one[1]) for one in found]


def capabilities(nvml: Nvml, visible: str | None) -> list[tuple[int, int] | None]:
    """The compute capability of each device that CUDA would show, None where it is unknown.

    NVML counts devices along the bus, CUDA the fastest first: of devices that differ, only those that are
    named by their UUID are told apart for sure. CUDA shows none of those that follow a name that is nobody's.

    Parameters:
        nvml: A started library.
        visible: The value of `CUDA_VISIBLE_DEVICES`, None where it is not set.
    """
    if visible is None:
        handles = [
            nvml.ask("nvmlDeviceGetHandleByIndex", index)
            for index in range(nvml.ask("nvmlDeviceGetCount") or 0)
        ]
    else:
        named = [_handle(nvml, name.strip()) for name in visible.split(",")]
        handles = list(itertools.takewhile(lambda handle: handle is not None, named))
    found: list[tuple[int, int] | None] = []
    for handle in handles:
        known = None if handle is None else nvml.ask("nvmlDeviceGetCudaComputeCapability", nvml.whole(handle))
        found.append(None if known is None else (int(known[0]), int(known[1])))
    return found


def _handle(nvml: Nvml, name: str) -> Any:
    """The device that an item of `CUDA_VISIBLE_DEVICES` names, None if there is none."""
    if name.isdigit():
        return nvml.ask("nvmlDeviceGetHandleByIndex", int(name))
    return nvml.ask("nvmlDeviceGetHandleByUUID", name)


def _import_all(names: Sequence[str]) -> None:
    global _culprit
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
