"""A script reads the peaks that it would read without a recorder, in whichever cell it asks for them."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.machines.meters import CellMeters


class FakeCore:
    """Counts as torch's allocator does, below both names that ask it."""

    def __init__(self) -> None:
        self.held, self.peak = {0: 0, 1: 0}, {0: 0, 1: 0}
        for read, begin in (
            ("_cuda_memoryStats", "_cuda_resetPeakMemoryStats"),
            ("_accelerator_getDeviceStats", "_accelerator_resetPeakStats"),
        ):
            setattr(self, read, self.stats)
            setattr(self, begin, self.begin)

    def allocate(self, size: int, device: int = 0) -> None:
        self.held[device] += size
        self.peak[device] = max(self.peak[device], self.held[device])

    def stats(self, device: int) -> Any:
        counted = {"current": self.held[device], "peak": self.peak[device], "freed": 0}
        return {"allocated_bytes": {"all": counted}, "num_ooms": 0}

    def begin(self, device: int) -> None:
        self.peak[device] = self.held[device]


class Allocator:
    """What the meters ask, of the first device."""

    def __init__(self, core: Any) -> None:
        self._core = core

    def synchronize(self) -> None:
        """Nothing is under way."""

    def reset(self) -> None:
        self._core._accelerator_resetPeakStats(0)

    def read(self) -> dict[str, int | None]:
        peak = peak_of(self._core)
        return {"allocated": 0, "allocated_peak": peak, "reserved": 0, "reserved_peak": 0}

    def device_used(self) -> int | None:
        return None


def peak_of(core: Any, device: int = 0, name: str = "_accelerator_getDeviceStats") -> int:
    return int(getattr(core, name)(device)["allocated_bytes"]["all"]["peak"])


@pytest.fixture
def core(monkeypatch: pytest.MonkeyPatch) -> FakeCore:
    core = FakeCore()
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=core))
    return core


@pytest.fixture
def meters(core: FakeCore) -> CellMeters:
    return CellMeters(find=lambda: Allocator(core))


def test_a_peak_is_read_in_a_later_cell_than_the_one_that_reached_it(
    core: FakeCore, meters: CellMeters
) -> None:
    with meters.around("train"):
        core.allocate(100)
        core.allocate(-90)
    with meters.around("between"):
        core.allocate(20)
        core.allocate(-20)
    with meters.around("results"):
        assert peak_of(core) == peak_of(core, name="_cuda_memoryStats") == 100
        assert core._accelerator_getDeviceStats(0)["allocated_bytes"]["all"]["current"] == 10
    peaks = {cell: reading["allocated_peak"] for cell, reading in meters.cells.items()}
    assert peaks == {"train": 100, "between": 30, "results": 10}


@pytest.mark.parametrize("begin", ["_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"])
def test_once_the_script_lets_peaks_begin_again_those_before_are_gone(
    core: FakeCore, meters: CellMeters, begin: str
) -> None:
    with meters.around("warm_up"):
        core.allocate(100)
        core.allocate(-90)
    with meters.around("begin"):
        getattr(core, begin)(0)
        core.allocate(5)
        core.allocate(-5)
        assert peak_of(core) == 15
    with meters.around("results"):
        assert peak_of(core) == 15


def test_each_device_keeps_its_own(core: FakeCore, meters: CellMeters) -> None:
    with meters.around("both"):
        core.allocate(100, device=0)
        core.allocate(-100, device=0)
        core.allocate(7, device=1)
    with meters.around("results"):
        assert (peak_of(core, 0), peak_of(core, 1)) == (100, 7)
        core._accelerator_resetPeakStats(1)
        assert peak_of(core, 0) == 100


def test_after_a_cell_that_fails_torch_is_as_it_was(core: FakeCore, meters: CellMeters) -> None:
    own = dict(vars(core))
    with contextlib.suppress(ZeroDivisionError), meters.around("fails"):
        assert core._cuda_memoryStats != own["_cuda_memoryStats"]
        raise ZeroDivisionError
    assert vars(core) == own


def test_torch_asks_below_the_names_that_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    core = FakeCore()
    for name in ("_accelerator_getDeviceStats", "_accelerator_resetPeakStats"):
        monkeypatch.setattr(torch._C, name, getattr(core, name))
    monkeypatch.setattr(torch._C, "_accelerator_isAllocatorInitialized", lambda: True)
    monkeypatch.setattr(torch.accelerator.memory, "_get_device_index", lambda *_, **__: 0)
    meters = CellMeters(find=lambda: Allocator(torch._C))
    with meters.around("train"):
        core.allocate(100)
        core.allocate(-90)
    with meters.around("results"):
        core.allocate(1)
        assert torch.accelerator.max_memory_allocated() == 100
        torch.accelerator.reset_peak_memory_stats()
        assert torch.accelerator.max_memory_allocated() == 11
