"""Stand-ins for NVML and for torch's accelerators, which no machine that runs these tests needs to have."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

MIB = 2**20


class NVMLError(Exception):
    """As the library raises it."""


@dataclass
class FakeGpu:
    """A GPU, or an instance of one."""

    uuid: str
    bus: str = "00000000:01:00.0"
    name: str = "NVIDIA H200"
    total: int = 143771 * MIB
    used: int = 0
    reserved: int = 600 * MIB
    instances: list[FakeGpu] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    second_version: bool = True
    power: int | None = 700000
    parent: FakeGpu | None = None
    capability: tuple[int, int] = (9, 0)


class FakeNvml:
    """Answers as the `pynvml` module does for the given GPUs, in the order of their bus."""

    NVMLError = NVMLError
    nvmlMemory_v2 = 0x02000028  # noqa: N815
    NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM = 0, 1, 2

    def __init__(self, *gpus: FakeGpu) -> None:
        self.gpus = list(gpus)
        self.started = False
        for gpu in gpus:
            for instance in gpu.instances:
                instance.parent = gpu

    def nvmlInit(self) -> None:  # noqa: N802
        self.started = True

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.started = False

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        if index < len(self.gpus):
            return self.gpus[index]
        raise NVMLError("not found")

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeGpu:  # noqa: N802
        instances = [instance for gpu in self.gpus for instance in gpu.instances]
        for gpu in (*self.gpus, *instances):
            if gpu.uuid == uuid:
                return gpu
        raise NVMLError("not found")

    def nvmlDeviceGetHandleByPciBusId(self, bus: str) -> FakeGpu:  # noqa: N802
        for gpu in self.gpus:
            if gpu.bus == bus:
                return gpu
        raise NVMLError("not found")

    def nvmlDeviceGetMigMode(self, gpu: FakeGpu) -> list[int]:  # noqa: N802
        if gpu.parent is not None:
            raise NVMLError("not supported")
        return [int(bool(gpu.instances)), int(bool(gpu.instances))]

    def nvmlDeviceGetMaxMigDeviceCount(self, gpu: FakeGpu) -> int:  # noqa: N802
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: FakeGpu, index: int) -> FakeGpu:  # noqa: N802
        if index < len(gpu.instances):
            return gpu.instances[index]
        raise NVMLError("not found")

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, gpu: FakeGpu) -> FakeGpu:  # noqa: N802
        if gpu.parent is None:
            raise NVMLError("invalid argument")
        return gpu.parent

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu, version: int | None = None) -> Any:  # noqa: N802
        if version is None:
            return SimpleNamespace(total=gpu.total, used=gpu.used + gpu.reserved)
        if not gpu.second_version:
            raise NVMLError("function not found")
        return SimpleNamespace(total=gpu.total, used=gpu.used, reserved=gpu.reserved)

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> str:  # noqa: N802
        return gpu.name

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: FakeGpu) -> list[Any]:  # noqa: N802
        return [SimpleNamespace(pid=pid) for pid in gpu.pids]

    def nvmlDeviceGetGraphicsRunningProcesses(self, gpu: FakeGpu) -> list[Any]:  # noqa: N802
        raise NVMLError("not supported")

    def nvmlSystemGetDriverVersion(self) -> bytes:  # noqa: N802
        return b"580.95.05"

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: FakeGpu) -> int:  # noqa: N802
        if gpu.power is None:
            raise NVMLError("not supported")
        return gpu.power

    def nvmlDeviceGetClockInfo(self, gpu: FakeGpu, domain: int) -> int:  # noqa: N802
        return [345, 345, 2619][domain]

    def nvmlDeviceGetMaxClockInfo(self, gpu: FakeGpu, domain: int) -> int:  # noqa: N802
        return [1980, 1980, 3201][domain]

    def nvmlDeviceGetTemperature(self, gpu: FakeGpu, sensor: int) -> int:  # noqa: N802
        return 31

    def nvmlDeviceGetCudaComputeCapability(self, gpu: FakeGpu) -> tuple[int, int]:  # noqa: N802
        if gpu.parent is not None:
            raise NVMLError("not supported")
        return gpu.capability

    def nvmlDeviceGetEccMode(self, gpu: FakeGpu) -> list[int]:  # noqa: N802
        return [1, 1]


class FakeModule:
    """Answers as `torch.cuda` or `torch.xpu` does, and remembers what it was asked."""

    def __init__(self, *properties: Any, initialized: bool = True, available: bool = True) -> None:
        self.properties = list(properties)
        self.initialized, self.available = initialized, available
        self.allocated = self.peak = 0
        self.asked: list[str] = []

    def allocate(self, size: int) -> None:
        self.allocated += size
        self.peak = max(self.peak, self.allocated)

    def is_initialized(self) -> bool:
        return self.initialized

    def is_available(self) -> bool:
        return self.available

    def device_count(self) -> int:
        return len(self.properties)

    def current_device(self) -> int:
        return 0

    def get_device_properties(self, index: int) -> Any:
        return self.properties[index]

    def synchronize(self) -> None:
        self.asked.append("synchronize")

    def reset_peak_memory_stats(self) -> None:
        self.asked.append("reset")
        self.peak = self.allocated

    def memory_allocated(self) -> int:
        return self.allocated

    def max_memory_allocated(self) -> int:
        return self.peak

    def memory_reserved(self) -> int:
        return self.allocated + MIB

    def max_memory_reserved(self) -> int:
        return self.peak + MIB

    def mem_get_info(self) -> tuple[int, int]:
        return (60 * MIB, 100 * MIB)


def fake_torch(kind: str | None, module: Any = None, hip: str | None = None) -> Any:
    """A `torch` whose accelerator is of `kind` ("cuda", "xpu", "mps", another name, or None)."""
    absent = FakeModule(initialized=False, available=False)
    torch = SimpleNamespace(
        cuda=module if kind == "cuda" else absent,
        xpu=module if kind == "xpu" else absent,
        mps=module if kind == "mps" else None,
        version=SimpleNamespace(cuda=None if hip else "13.0", hip=hip, xpu="20250101"),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: kind == "mps")),
    )
    current = SimpleNamespace(type=kind) if kind else None
    torch.accelerator = module if kind not in {None, "cuda", "xpu", "mps"} else SimpleNamespace()
    torch.accelerator.current_accelerator = lambda check_available=False: current
    return torch


def nvidia(name: str = "NVIDIA H200", uuid: str = "1234", bus: int = 1, total: int = 143771 * MIB) -> Any:
    """What torch tells of an NVIDIA device."""
    return SimpleNamespace(
        name=name,
        uuid=uuid,
        pci_bus_id=bus,
        pci_device_id=0,
        pci_domain_id=0,
        total_memory=total,
        major=9,
        minor=0,
        multi_processor_count=132,
    )
