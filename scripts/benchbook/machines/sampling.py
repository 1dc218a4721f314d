"""Watch what whole devices hold while a run lasts, from outside the process that is measured."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchbook.machines.nvml import Nvml

INTERVAL = 0.01


class Sampler:
    """The memory of NVIDIA devices, every ten milliseconds.

    Parameters:
        nvml: A started library; None where there is none, and nothing is sampled.
        handles: The devices, by bare UUID.
    """

    def __init__(self, nvml: Nvml | None, handles: Mapping[str, Any]) -> None:
        self._nvml = nvml
        self._handles = handles if nvml is not None else {}
        self._samples: dict[str, list[tuple[float, int]]] = {}
        self._next = 0.0
        self.empty: dict[str, int] = {}

    @property
    def active(self) -> bool:
        """Whether there is anything to sample."""
        return bool(self._handles)

    def begin(self) -> None:
        """Forget earlier samples; what the devices hold now is what they hold when empty."""
        self._samples = {device: [] for device in self._handles}
        self._next = 0.0
        self.sample()
        self.empty = {device: samples[0][1] for device, samples in self._samples.items() if samples}

    def sample(self) -> None:
        """Take a sample, unless the last one is less than the interval old."""
        now = time.monotonic()
        if now < self._next or self._nvml is None:
            return
        self._next = now + INTERVAL
        for device, handle in self._handles.items():
            memory = self._nvml.memory(handle)
            if memory is not None:
                self._samples[device].append((now, memory.used))

    def peaks(self, device: str | None, spans: Mapping[str, Sequence[float]]) -> dict[str, int | None]:
        """The most a device held within each cell, beyond what it held when empty.

        Parameters:
            device: Bare UUID.
            spans: First and last moment of each cell, by the system's monotonic clock.
        """
        samples = self._samples.get(device or "", [])
        empty = self.empty.get(device or "", 0)
        found: dict[str, int | None] = {}
        for cell, (start, end) in spans.items():
            within = [used for moment, used in samples if start <= moment <= end]
            found[cell] = max(0, max(within) - empty) if within else None
        return found
