"""Read torch's allocators around a cell: an accelerator's counters, or the profiler's events on a CPU."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

READINGS = ("allocated", "allocated_peak", "reserved", "reserved_peak")
MEMORY_EVENT = "[memory]"
CELL_RANGE = "cell: "


class Allocator(Protocol):
    """What can be asked of the memory of one accelerator."""

    def synchronize(self) -> None:
        """Wait until the device has done what it was given."""

    def reset(self) -> None:
        """Let the peaks begin again."""

    def read(self) -> dict[str, int | None]:
        """The readings, in bytes."""

    def device_used(self) -> int | None:
        """What the whole device holds, by the driver's account."""


class _Module:
    """What the modules of torch that stand for accelerators have in common."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def synchronize(self) -> None:
        """Wait until the device has done what it was given."""
        self.module.synchronize()

    def reset(self) -> None:
        """Let the peaks begin again."""
        self.module.reset_peak_memory_stats()


class ModuleAllocator(_Module):
    """The allocator behind `torch.cuda` (NVIDIA and AMD) or `torch.xpu`, on the current device."""

    def read(self) -> dict[str, int | None]:
        """The readings, in bytes."""
        module = self.module
        return {
            "allocated": int(module.memory_allocated()),
            "allocated_peak": int(module.max_memory_allocated()),
            "reserved": int(module.memory_reserved()),
            "reserved_peak": int(module.max_memory_reserved()),
        }

    def device_used(self) -> int | None:
        """What the whole device holds, by the driver's account."""
        ask = getattr(self.module, "mem_get_info", None)
        if ask is None:
            return None
        try:
            free, total = ask()
        except RuntimeError:
            return None
        return int(total - free)

    def properties(self) -> Any:
        """Those of the current device."""
        return self.module.get_device_properties(self.module.current_device())


class MpsAllocator(_Module):
    """Apple's, which keeps no peaks."""

    def reset(self) -> None:
        """Nothing to reset."""

    def read(self) -> dict[str, int | None]:
        """The readings, in bytes; peaks are null."""
        return dict.fromkeys(READINGS) | {"allocated": int(self.module.current_allocated_memory())}

    def device_used(self) -> int | None:
        """What the driver has given this process: the memory is the machine's, shared by all."""
        return int(self.module.driver_allocated_memory())


class GenericAllocator(_Module):
    """Any other accelerator that torch knows, by `torch.accelerator`."""

    def reset(self) -> None:
        """Let the peaks begin again, where this back end keeps any."""
        with contextlib.suppress(AttributeError, RuntimeError, NotImplementedError):
            super().reset()

    def read(self) -> dict[str, int | None]:
        """The readings, in bytes; null where this back end keeps no statistics."""
        try:
            return ModuleAllocator(self.module).read()
        except (AttributeError, RuntimeError, NotImplementedError):
            return dict.fromkeys(READINGS)

    def device_used(self) -> int | None:
        """What the whole device holds, by the driver's account."""
        try:
            free, total = self.module.get_memory_info()
        except (AttributeError, RuntimeError, NotImplementedError):
            return None
        return int(total - free)


def find_allocator(modules: Mapping[str, Any] | None = None) -> Allocator | None:
    """The allocator of the accelerator that this process has begun to use, None before and on a CPU.

    Looks without importing torch and without creating a context: that would be part of the measurement.
    """
    torch = (sys.modules if modules is None else modules).get("torch")
    # While `import torch` is under way, the module is there and half empty.
    if torch is None or not hasattr(torch, "accelerator"):
        return None
    for name in ("cuda", "xpu"):
        module = getattr(torch, name, None)
        if module is not None and module.is_initialized():
            return ModuleAllocator(module)
    # Only another kind is asked whether its device is there: asking CUDA's driver would be a first use of it.
    built_for = torch.accelerator.current_accelerator()
    if built_for is None or built_for.type in {"cuda", "xpu"}:
        return None
    current = torch.accelerator.current_accelerator(check_available=True)
    if current is None:
        return None
    if current.type == "mps":
        return MpsAllocator(torch.mps)
    started = getattr(getattr(torch, current.type, None), "is_initialized", None)
    return GenericAllocator(torch.accelerator) if started is None or started() else None


class CpuAllocator:
    """Bytes of torch's CPU allocator, by the profiler's memory events.

    It must start before the first cell, so that each release has its allocation; it makes torch slower, so
    that times of a variant with this meter say little.
    """

    def __init__(self) -> None:
        torch: Any = importlib.import_module("torch")
        self._torch = torch
        self._profile: Any = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        )
        self._profile.__enter__()

    def cell(self, name: str) -> AbstractContextManager[Any]:
        """Mark what happens inside as the cell's."""
        mark: AbstractContextManager[Any] = self._torch.profiler.record_function(CELL_RANGE + name)
        return mark

    def finish(self) -> dict[str, dict[str, int]]:
        """Stop, and say what each cell held at its end and at most."""
        self._profile.__exit__(None, None, None)
        events = self._profile.profiler.kineto_results.events()
        cpu = self._torch.autograd.DeviceType.CPU
        changes, ranges = [], []
        for event in events:
            name = event.name()
            if name == MEMORY_EVENT:
                if event.device_type() == cpu:
                    changes.append((event.start_ns(), event.nbytes()))
            elif name.startswith(CELL_RANGE):
                end = event.start_ns() + event.duration_ns()
                ranges.append((name.removeprefix(CELL_RANGE), event.start_ns(), end))
        return held_by_cell(changes, ranges)


def held_by_cell(
    changes: Iterable[tuple[int, int]], ranges: Iterable[tuple[str, int, int]]
) -> dict[str, dict[str, int]]:
    """What each cell held at its end and at most.

    Parameters:
        changes: Moment and bytes (negative for a release) of each event.
        ranges: Name, first and last moment of each cell, on the same clock.
    """
    ordered = sorted(changes, key=lambda change: change[0])
    found: dict[str, dict[str, int]] = {}
    held, next_change = 0, 0
    for name, start, end in sorted(ranges, key=lambda each: each[1]):
        while next_change < len(ordered) and ordered[next_change][0] < start:
            held += ordered[next_change][1]
            next_change += 1
        peak = held
        while next_change < len(ordered) and ordered[next_change][0] <= end:
            held += ordered[next_change][1]
            peak = max(peak, held)
            next_change += 1
        found[name] = {"allocated": held, "allocated_peak": peak}
    return found
