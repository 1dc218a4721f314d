"""A machine is described by what it is, never by whose it is."""

from __future__ import annotations

import getpass
import json
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.content.machines import (
    AcceleratorDescription,
    CpuDescription,
    MachineDescription,
    dump_machine,
    text_over,
)
from benchbook.content.problems import BenchbookError
from benchbook.content.validation import machine_problems
from benchbook.machines.accelerators import accelerator_table, ask_torch, find_accelerators
from benchbook.machines.circumstances import kernel_settings
from benchbook.machines.description import NAME, describe, describe_cpu, memory_bytes, named
from benchbook.machines.nvml import Nvml
from benchbook.recording import command
from builders import write
from fakes import MIB, FakeGpu, FakeModule, FakeNvml, fake_torch, nvidia

GIB = 2**30


def machine(kind: str, accelerator: dict[str, Any] | None, owner: str | None = None) -> MachineDescription:
    cpu = CpuDescription(None, None, 16, None, [])
    its = AcceleratorDescription(**accelerator_table(**accelerator)) if accelerator else None
    return named(MachineDescription("", kind, "", "", owner, its, cpu, 64 * GIB - 1, None, {}, False, 1))


def recorded(vendor: str, name: str, memory: int | None, count: int = 1) -> dict[str, Any]:
    return {"vendor": vendor, "name": name, "memory_bytes": memory, "count": count}


@pytest.mark.parametrize(
    ("kind", "accelerator", "name", "title", "short"),
    [
        (
            "cuda",
            recorded("NVIDIA", "NVIDIA H200", 143771 * MIB),
            "nvidia-h200-141gb",
            "NVIDIA H200, 141 GB",
            "H200",
        ),
        (
            "cuda",
            recorded("NVIDIA", "NVIDIA H100 80GB HBM3", 81559 * MIB),
            "nvidia-h100-80gb",
            "NVIDIA H100, 80 GB",
            "H100",
        ),
        (
            "cuda",
            recorded("NVIDIA", "NVIDIA H100 PCIe", 81559 * MIB),
            "nvidia-h100-pcie-80gb",
            "NVIDIA H100 PCIe, 80 GB",
            "H100 PCIe",
        ),
        (
            "cuda",
            recorded("NVIDIA", "NVIDIA A100-SXM4-40GB", 40960 * MIB),
            "nvidia-a100-sxm4-40gb",
            "NVIDIA A100 SXM4, 40 GB",
            "A100 SXM4",
        ),
        (
            "cuda",
            recorded("NVIDIA", "Tesla V100-SXM2-16GB", 16160 * MIB),
            "nvidia-v100-sxm2-16gb",
            "NVIDIA V100 SXM2, 16 GB",
            "V100 SXM2",
        ),
        (
            "cuda",
            recorded("NVIDIA", "NVIDIA GeForce RTX 4090", 24564 * MIB),
            "nvidia-rtx-4090-24gb",
            "NVIDIA RTX 4090, 24 GB",
            "RTX 4090",
        ),
        (
            "cuda",
            recorded("NVIDIA", "NVIDIA H200 MIG 1g.18gb", 16384 * MIB),
            "nvidia-h200-mig-1g-18gb",
            "NVIDIA H200 MIG 1g.18gb",
            "H200 MIG 1g.18gb",
        ),
        (
            "rocm",
            recorded("AMD", "AMD Instinct MI300X", 192 * GIB - 1, 2),
            "amd-mi300x-192gb-x2",
            "2 x AMD MI300X, 192 GB",
            "2 x MI300X",
        ),
        (
            "rocm",
            recorded("AMD", "AMD Radeon RX 7900 XTX", 24 * GIB - 1),
            "amd-rx-7900-xtx-24gb",
            "AMD RX 7900 XTX, 24 GB",
            "RX 7900 XTX",
        ),
        (
            "xpu",
            recorded("Intel", "Intel(R) Arc(TM) A770 Graphics", 16 * GIB - 1),
            "intel-arc-a770-16gb",
            "Intel Arc A770, 16 GB",
            "Arc A770",
        ),
        (
            "mps",
            recorded("Apple", "Apple M3 Max", None),
            "apple-m3-max-64gb",
            "Apple M3 Max, 64 GB",
            "M3 Max",
        ),
        ("cpu", None, "cpu-16core-64gb", "16-core CPU, 64 GB", "CPU 16-core"),
    ],
)
def test_a_machine_is_named_by_its_model(
    kind: str, accelerator: dict[str, Any] | None, name: str, title: str, short: str
) -> None:
    described = machine(kind, accelerator)
    assert (described.name, described.title, described.short) == (name, title, short)
    assert NAME.match(described.name)


def test_whoever_is_not_the_maintainers_is_part_of_the_name() -> None:
    assert machine("cpu", None, "Some One").name == "cpu-16core-64gb--some-one"


def test_an_nvidia_gpu_is_described_by_torch_and_nvml() -> None:
    gpu = FakeGpu("GPU-1234")
    found = ask_torch(fake_torch("cuda", FakeModule(nvidia())), Nvml(FakeNvml(gpu)), None)
    assert found is not None
    assert found.kind == "cuda"
    assert found.description == {
        "name": "NVIDIA H200",
        "vendor": "NVIDIA",
        "memory_bytes": 143771 * MIB,
        "count": 1,
        "driver": "580.95.05",
        "runtime": "CUDA 13.0",
        "power_limit_watts": 700.0,
        "clocks_mhz": {"graphics": 1980, "sm": 1980, "memory": 3201},
        "mig": False,
        "partition": None,
        "ecc": True,
        "compute_capability": "9.0",
        "multiprocessors": 132,
    }


def test_an_instance_is_described_as_one() -> None:
    small = FakeGpu("MIG-77", name="NVIDIA H200 MIG 1g.18gb", total=16384 * MIB)
    gpu = FakeGpu("GPU-1234", instances=[small])
    found = ask_torch(fake_torch("cuda", FakeModule(nvidia(uuid="77"))), Nvml(FakeNvml(gpu)), "MIG-77")
    assert found is not None
    assert found.description["mig"] is True
    assert found.description["memory_bytes"] == 16384 * MIB
    assert found.description["name"] == "NVIDIA H200 MIG 1g.18gb"


def test_without_nvml_an_nvidia_gpu_is_what_torch_tells() -> None:
    found = ask_torch(fake_torch("cuda", FakeModule(nvidia())), None, None)
    assert found is not None
    assert found.description["name"] == "NVIDIA H200"
    assert found.description["driver"] is None


def test_an_amd_gpu_is_described_with_its_architecture() -> None:
    properties = SimpleNamespace(
        name="AMD Instinct MI300X",
        total_memory=192 * GIB,
        gcnArchName="gfx942:sramecc+",
        multi_processor_count=304,
    )
    found = ask_torch(fake_torch("cuda", FakeModule(properties), hip="7.0"), None, None)
    assert found is not None
    assert (found.kind, found.description["vendor"]) == ("rocm", "AMD")
    assert found.description["runtime"] == "ROCm 7.0"
    assert found.description["compute_capability"] == "gfx942"
    assert found.description["power_limit_watts"] is None


def test_an_intel_gpu_is_described_with_its_driver() -> None:
    properties = SimpleNamespace(
        name="Intel(R) Data Center GPU Max 1550",
        total_memory=64 * GIB,
        driver_version="1.6",
        max_compute_units=512,
    )
    found = ask_torch(fake_torch("xpu", FakeModule(properties)), None, None)
    assert found is not None
    assert (found.kind, found.description["driver"], found.description["multiprocessors"]) == (
        "xpu",
        "1.6",
        512,
    )


def test_an_apple_gpu_has_no_memory_of_its_own() -> None:
    found = ask_torch(fake_torch("mps"), None, None)
    assert found is not None
    assert (found.kind, found.description["vendor"], found.description["memory_bytes"]) == (
        "mps",
        "Apple",
        None,
    )


def test_a_machine_without_an_accelerator_has_none() -> None:
    assert ask_torch(fake_torch(None), None, None) is None


def test_an_interpreter_without_torch_finds_no_accelerator(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError\n")
    package = Path("scripts").resolve()
    assert find_accelerators(sys.executable, package, {"PYTHONPATH": str(tmp_path)}) is None


def test_an_interpreter_that_cannot_tell_is_a_problem_and_no_processor(tmp_path: Path) -> None:
    package = Path("scripts").resolve()
    (tmp_path / "torch.py").write_text("raise RuntimeError('the driver is too old')\n")
    with pytest.raises(BenchbookError, match="the driver is too old"):
        find_accelerators(sys.executable, package, {"PYTHONPATH": str(tmp_path)})
    with pytest.raises(BenchbookError, match="cannot tell which accelerators"):
        find_accelerators(str(tmp_path / "absent"), package)


@pytest.mark.parametrize("who", ["张三", "...", "x" * 80])
def test_whoever_would_make_no_name_of_a_machine_is_refused(
    who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_accelerators", lambda *_: None)
    with pytest.raises(BenchbookError, match="with Latin letters"):
        command.this_machine(recorded_by=who)


def test_a_chosen_name_says_who_measures_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_accelerators", lambda *_: None)
    assert command.this_machine("cpu-mine", "Ada L")[0].name == "cpu-mine--ada-l"
    assert command.this_machine("cpu-mine--ada-l", "Ada L")[0].name == "cpu-mine--ada-l"
    assert command.this_machine("cpu-mine")[0].name == "cpu-mine"


def test_this_machine_passes_strict_validation() -> None:
    here = describe(None)
    assert machine_problems(json.loads(dump_machine(here)), "machine.json") == []


def test_a_description_tells_no_host_user_or_path() -> None:
    found = ask_torch(
        fake_torch("cuda", FakeModule(nvidia(uuid="f00d-cafe"))),
        Nvml(FakeNvml(FakeGpu("GPU-f00d-cafe"))),
        None,
    )
    text = dump_machine(describe(found))
    words = set(json.dumps(json.loads(text)).replace('"', " ").replace(",", " ").split())
    assert "f00d" not in text
    assert "/" not in text.replace("GNU/Linux", "")
    assert not {socket.gethostname(), getpass.getuser()} & words


def test_only_the_numbers_of_a_kernel_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.release", lambda: "6.8.0-45-janes-laptop")
    assert describe(None).system["kernel"] == "6.8.0"


def test_a_container_is_as_large_as_it_may_be(tmp_path: Path) -> None:
    write(tmp_path / "proc/meminfo", "MemTotal:       67108864 kB\n")
    assert memory_bytes(tmp_path) == 64 * GIB
    write(tmp_path / "proc/self/cgroup", "0::/own\n")
    write(tmp_path / "sys/fs/cgroup/memory.max", "max\n")
    assert memory_bytes(tmp_path) == 64 * GIB
    write(tmp_path / "sys/fs/cgroup/memory.max", f"{8 * GIB}\n")
    assert memory_bytes(tmp_path) == 8 * GIB
    write(tmp_path / "sys/fs/cgroup/own/memory.max", f"{4 * GIB}\n")
    assert memory_bytes(tmp_path) == 4 * GIB
    write(tmp_path / "proc/self/cgroup", "4:memory:/own\n0::/\n")
    write(tmp_path / "sys/fs/cgroup/memory/own/memory.limit_in_bytes", f"{2 * GIB}\n")
    assert memory_bytes(tmp_path) == 2 * GIB


def test_a_cpu_is_described_by_the_instructions_that_matter() -> None:
    cpuinfo = "vendor_id\t: GenuineIntel\nmodel name\t: Xeon\nsiblings\t: 4\ncpu cores\t: 2\nflags\t\t: fpu avx2 smep amx_bf16 hypervisor\n"
    assert asdict(describe_cpu(cpuinfo, 4)) == {
        "model": "Xeon",
        "vendor": "GenuineIntel",
        "cores": 4,
        "threads_per_core": 2,
        "flags": ["amx_bf16", "avx2"],
    }


def test_what_nothing_tells_is_null() -> None:
    described = asdict(describe_cpu("", 4))
    assert (described["vendor"], described["threads_per_core"]) == (None, None)


def test_wording_that_a_person_improved_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    here = machine("cpu", None)
    path.write_text(text_over(path, here).replace("16-core CPU, 64 GB", "A quiet corner"), "utf-8")
    assert json.loads(text_over(path, here))["title"] == "A quiet corner"


def test_a_process_of_lower_priority_is_told_from_others() -> None:
    told = "from benchbook.machines.circumstances import priority; print(priority())"
    said = []
    for change in ("", "os.nice(3)", "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))"):
        program = [sys.executable, "-c", f"import os\n{change}\n{told}"]
        said.append(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
    assert len(set(said)) == 3


def test_what_the_kernel_is_set_to_is_read_from_its_files(tmp_path: Path) -> None:
    assert kernel_settings(tmp_path) == {}
    write(tmp_path / "sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    write(tmp_path / "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled", "[never] inherit\n")
    write(tmp_path / "proc/self/numa_maps", "5581e000 interleave:0-1 file=/bin/a\n7f00 default\n")
    write(
        tmp_path / "proc/self/status", "Name:\tpython\nPid:\t12\nTHP_enabled:\t1\nMems_allowed_list:\t0-1\n"
    )
    write(
        tmp_path / "proc/self/limits",
        "Limit  Soft Limit\nMax stack size      8388608     unlimited   bytes\n",
    )
    assert kernel_settings(tmp_path) == {
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled": "[never] inherit",
        "memory policy": "interleave:0-1",
        "THP_enabled": "1",
        "Mems_allowed_list": "0-1",
        "stack size": "8388608",
    }
    assert kernel_settings() == kernel_settings()
