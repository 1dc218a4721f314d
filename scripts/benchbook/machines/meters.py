"""Read the meters around each cell: wall clock, process memory, torch's allocators, the device as a whole."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from benchbook.content.units import METERS
from benchbook.machines import process_memory
from benchbook.machines.accelerators import identity_of
from benchbook.machines.allocators import Allocator, CpuAllocator, ModuleAllocator, find_allocator
from benchbook.machines.nvml import Nvml, open_nvml
from benchbook.machines.script_peaks import ScriptPeaks

Reading = dict[str, float | int | None]


class DeviceMeter:
    """What the device holds as a whole, without what it held before the run.

    Parameters:
        nvml: On NVIDIA; None elsewhere, where torch's own question to the driver must do.
        empty: What each device held before the run, by bare UUID.
    """

    def __init__(self, nvml: Nvml | None, empty: Mapping[str, int]) -> None:
        self._nvml = nvml
        self._empty = empty
        self._handle: Any = None
        self.device: str | None = None

    def read(self, allocator: Allocator) -> int | None:
        """Bytes more than the empty device held; where that is not known, all the driver counts."""
        if self._nvml is None or not isinstance(allocator, ModuleAllocator):
            return allocator.device_used()
        identity = identity_of(allocator.properties())
        if identity.bare != self.device:
            self.device = identity.bare
            self._handle = self._nvml.find(identity, os.environ.get("CUDA_VISIBLE_DEVICES"))
        memory = self._nvml.memory(self._handle) if self._handle is not None else None
        return None if memory is None else max(0, memory.used - self._empty.get(identity.bare, 0))


class CellMeters:
    """The meters of one process.

    Parameters:
        on_request: Names of meters that are not read unless asked for.
        empty: What each NVIDIA device held before the run, by bare UUID; empty where there is none.
        find: How the accelerator in use is found.
        nvml: How NVML is opened, once an NVIDIA device is in use.
    """

    def __init__(
        self,
        on_request: tuple[str, ...] = (),
        empty: Mapping[str, int] | None = None,
        find: Callable[[], Allocator | None] = find_allocator,
        nvml: Callable[[], Nvml | None] = open_nvml,
    ) -> None:
        self.baseline_memory = process_memory.resident()
        self.cells: dict[str, Reading] = {}
        self.spans: dict[str, tuple[float, float]] = {}
        self._find = find
        self._open_nvml = nvml
        self._empty = empty or {}
        self._device: DeviceMeter | None = None
        self._peaks = ScriptPeaks()
        self._cpu = CpuAllocator() if "cpu_allocator" in on_request else None

    @property
    def device(self) -> str | None:
        """The NVIDIA device in use, by bare UUID, for the sampler beside this process."""
        return self._device.device if self._device else None

    @contextmanager
    def around(self, cell: str) -> Iterator[None]:
        """Meter what runs inside. A cell that raises has no reading."""
        before = self._find()
        if before is not None:
            before.synchronize()
            self._peaks.set_aside(before.reset)
        peak_is_ours = process_memory.reset_peak()
        marked = self._cpu.cell(cell) if self._cpu else nullcontext()
        # What the script is shown is set up, and taken back, outside of what is timed.
        with self._peaks.shown():
            started = time.monotonic()
            clock = time.perf_counter()
            with marked:
                yield
            after = self._find()
            if after is not None:
                after.synchronize()
            seconds = time.perf_counter() - clock
        self.spans[cell] = (started, time.monotonic())
        reading: Reading = dict.fromkeys(METERS)
        reading["seconds"] = seconds
        reading["process_memory"] = process_memory.resident()
        reading["process_memory_peak"] = process_memory.resident_peak() if peak_is_ours else None
        if after is not None:
            reading.update(after.read())
            reading["device_memory"] = self._device_meter().read(after)
        self.cells[cell] = reading

    def finish(self) -> None:
        """Add what is only known once all cells have run."""
        if self._cpu is None:
            return
        for cell, held in self._cpu.finish().items():
            # On an accelerator its own counters are what these names mean.
            if cell in self.cells and self.cells[cell]["allocated"] is None:
                self.cells[cell].update(held)

    def _device_meter(self) -> DeviceMeter:
        if self._device is None:
            self._device = DeviceMeter(self._open_nvml() if self._empty else None, self._empty)
        return self._device
