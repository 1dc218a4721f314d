"""Read NVIDIA devices through NVML: null, never an error, for what a driver or a device lacks."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DeviceMemory:
    """What a whole device holds, in bytes.

    Parameters:
        total: All there is.
        used: In use by anyone: contexts, modules, allocators, other processes.
        reserved: Kept by the driver; None where only NVML's first version answers, whose `used` includes it.
    """

    total: int
    used: int
    reserved: int | None


@dataclass(frozen=True)
class Identity:
    """Which device is meant. Only ever held in memory: no record and no description names it."""

    uuid: str
    pci: str = ""

    @property
    def bare(self) -> str:
        """The UUID without NVML's prefix (`GPU-`, `MIG-`), as CUDA reports it."""
        return self.uuid.removeprefix("GPU-").removeprefix("MIG-").lower()


class Nvml:
    """A started NVML library.

    Parameters:
        library: The `pynvml` module, or one that answers like it.
    """

    def __init__(self, library: Any) -> None:
        self.library = library
        # The second for a question that the driver has in an older form only.
        mismatch = getattr(library, "NVMLLibraryMismatchError", library.NVMLError)
        self._refusals = (library.NVMLError, mismatch, AttributeError)

    def ask(self, function: str, *arguments: Any) -> Any:
        """What `function` returns, None where it is missing, unsupported or not permitted."""
        try:
            answer = getattr(self.library, function)(*arguments)
        except self._refusals:
            return None
        return answer.decode() if isinstance(answer, bytes) else answer

    def instances(self, handle: Any) -> list[Any]:
        """The MIG instances of a GPU."""
        count = self.ask("nvmlDeviceGetMaxMigDeviceCount", handle) or 0
        possible = (self.ask("nvmlDeviceGetMigDeviceHandleByIndex", handle, index) for index in range(count))
        return [instance for instance in possible if instance is not None]

    def mig_enabled(self, handle: Any) -> bool | None:
        """Whether MIG divides this GPU now; None where it cannot."""
        mode = self.ask("nvmlDeviceGetMigMode", handle)
        return None if mode is None else bool(mode[0])

    def find(self, identity: Identity, visible: str | None = None) -> Any:
        """The handle of the device that CUDA calls `identity`, None if NVML knows no such device.

        Parameters:
            identity: UUID and PCI address by CUDA's account. The order of CUDA's devices says nothing: it
                follows speed and `CUDA_VISIBLE_DEVICES`, NVML's follows the bus.
            visible: The value of `CUDA_VISIBLE_DEVICES`, which names the instance where MIG divides the GPU
                and CUDA reports the UUID of the whole.
        """
        instance = self.ask("nvmlDeviceGetHandleByUUID", f"MIG-{identity.bare}")
        if instance is not None:
            return instance
        handle = self.ask("nvmlDeviceGetHandleByUUID", f"GPU-{identity.bare}")
        if handle is None and identity.pci:
            handle = self.ask("nvmlDeviceGetHandleByPciBusId", identity.pci)
        if handle is None or not self.mig_enabled(handle):
            return handle
        named = [name for name in (visible or "").split(",") if name.startswith("MIG-")]
        if named:
            return self.ask("nvmlDeviceGetHandleByUUID", named[0])
        instances = self.instances(handle)
        return instances[0] if len(instances) == 1 else None

    def whole(self, handle: Any) -> Any:
        """The GPU that a MIG instance is part of, or the device itself."""
        return self.ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle) or handle

    def memory(self, handle: Any) -> DeviceMemory | None:
        """What the device holds, by NVML's second version where there is one."""
        version = getattr(self.library, "nvmlMemory_v2", None)
        second = self.ask("nvmlDeviceGetMemoryInfo", handle, version) if version else None
        if second is not None:
            return DeviceMemory(int(second.total), int(second.used), int(second.reserved))
        first = self.ask("nvmlDeviceGetMemoryInfo", handle)
        return None if first is None else DeviceMemory(int(first.total), int(first.used), None)

    def processes(self, handle: Any) -> list[int] | None:
        """Process ids that hold the device, for computing or for graphics, as the *host* numbers them."""
        answers = [
            self.ask(f"nvmlDeviceGet{kind}RunningProcesses", handle) for kind in ("Compute", "Graphics")
        ]
        if all(answer is None for answer in answers):
            return None
        return sorted({int(process.pid) for answer in answers for process in answer or ()})

    def state(self, handle: Any) -> dict[str, Any]:
        """What varies from one session to the next: driver, power limit, clocks, temperature."""
        whole = self.whole(handle)
        limit = self.ask("nvmlDeviceGetEnforcedPowerLimit", whole)
        return {
            "driver": self.ask("nvmlSystemGetDriverVersion"),
            "power_limit_watts": None if limit is None else limit / 1000,
            "clocks_mhz": self.clocks(whole, "nvmlDeviceGetClockInfo"),
            "temperature_celsius": self.ask("nvmlDeviceGetTemperature", whole, 0),
        }

    def clocks(self, handle: Any, function: str = "nvmlDeviceGetMaxClockInfo") -> dict[str, int | None]:
        """Clocks in MHz by domain: the highest it may run at, or what `function` asks for."""
        domains = {"graphics": "NVML_CLOCK_GRAPHICS", "sm": "NVML_CLOCK_SM", "memory": "NVML_CLOCK_MEM"}
        return {
            name: self.ask(function, handle, getattr(self.library, constant, number))
            for number, (name, constant) in enumerate(domains.items())
        }

    def description(self, handle: Any) -> dict[str, Any]:
        """What a description of the machine says of the device; nothing that tells two of a kind apart."""
        whole = self.whole(handle)
        state = self.state(handle)
        memory = self.memory(handle)
        capability = self.ask("nvmlDeviceGetCudaComputeCapability", whole)
        ecc = self.ask("nvmlDeviceGetEccMode", whole)
        return {
            "name": self.ask("nvmlDeviceGetName", handle),
            "memory_bytes": memory.total if memory else None,
            "driver": state["driver"],
            "power_limit_watts": state["power_limit_watts"],
            "clocks_mhz": self.clocks(whole),
            "mig": self.mig_enabled(whole),
            "ecc": None if ecc is None else bool(ecc[0]),
            "compute_capability": None if capability is None else ".".join(map(str, capability)),
        }


def open_nvml() -> Nvml | None:
    """NVML, started; None on a machine without the library, the driver or the Python package."""
    try:
        library = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        library.nvmlInit()
    except library.NVMLError:
        return None
    return Nvml(library)


def find_all(nvml: Nvml, identities: Sequence[Identity], visible: str | None) -> dict[str, Any]:
    """The handles of `identities` by bare UUID, without those that NVML does not know."""
    found = {identity.bare: nvml.find(identity, visible) for identity in identities}
    return {key: handle for key, handle in found.items() if handle is not None}
