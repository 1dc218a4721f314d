"""Let a script read the allocators' peaks that it would read alone, although each cell begins its own."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

# What torch asks and resets below `torch.cuda`, `torch.xpu` and `torch.accelerator`, by the device's index.
FUNCTIONS = (
    ("_cuda_memoryStats", "_cuda_resetPeakMemoryStats"),
    ("_xpu_memoryStats", "_xpu_resetPeakMemoryStats"),
    ("_accelerator_getDeviceStats", "_accelerator_resetPeakStats"),
)


class ScriptPeaks:
    """The peaks of earlier cells, since the script itself last let them begin again."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}

    def set_aside(self, reset: Callable[[], None]) -> None:
        """Call `reset`, which lets the peaks of devices begin again, and keep what they were."""

        def keep(device: int, read: Callable[[int], Any], begin: Callable[[int], Any]) -> None:
            self._kept[device] = raised(read(device), self._kept.get(device))
            begin(device)

        with self._instead(lambda read, begin: (read, lambda device: keep(device, read, begin))):
            reset()

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show what was kept beside what there is, until the script lets peaks begin again itself."""

        def forget(device: int, begin: Callable[[int], Any]) -> None:
            self._kept.pop(device, None)
            begin(device)

        with self._instead(
            lambda read, begin: (
                lambda device: raised(read(device), self._kept.get(device)),
                lambda device: forget(device, begin),
            )
        ):
            yield

    @contextlib.contextmanager
    def _instead(
        self, change: Callable[[Callable[..., Any], Callable[..., Any]], tuple[Any, Any]]
    ) -> Iterator[None]:
        core = getattr(sys.modules.get("torch"), "_C", None)
        own = {
            names: (getattr(core, names[0]), getattr(core, names[1]))
            for names in FUNCTIONS
            if hasattr(core, names[0]) and hasattr(core, names[1])
        }
        try:
            for names, functions in own.items():
                for name, function in zip(names, change(*functions), strict=True):
                    setattr(core, name, function)
            yield
        finally:
            for names, functions in own.items():
                for name, function in zip(names, functions, strict=True):
                    setattr(core, name, function)


def raised(stats: Any, kept: Any) -> Any:
    """The statistics, nested as torch nests them, with each `peak` at least what it is in `kept`."""
    if not isinstance(stats, dict) or not isinstance(kept, dict):
        return stats
    return {
        name: max(value, kept[name]) if name == "peak" and name in kept else raised(value, kept.get(name))
        for name, value in stats.items()
    }
