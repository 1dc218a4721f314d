"""Describe the machine a record is measured on, and name it by its model, without identifying it."""

from __future__ import annotations

import math
import os
import platform
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from benchbook.content.formats import DEVICE_NAME, MACHINE_NAME
from benchbook.content.machines import AcceleratorDescription, CpuDescription, MachineDescription
from benchbook.content.records import OWNER_MARK
from benchbook.machines.accelerators import Accelerators, mig_profile, model_words
from benchbook.machines.cgroups import memory_limit
from benchbook.machines.kernel_files import kernel_text

MAINTAINERS = "maintainers"
NAME = re.compile(rf"(?!{DEVICE_NAME}){MACHINE_NAME}\Z")
LONGEST_NAME = 80
# Instruction sets that change how fast a transformer runs; the other hundred flags do not.
FLAGS = re.compile(r"(avx|amx|fma$|f16c$|sse4_2$|asimd|sve|sme(2|_|$)|bf16|i8mm|neon|gfni|rvv|v$|vsx)")


def describe(
    found: Accelerators | None, recorded_by: str = MAINTAINERS, root: Path = Path("/")
) -> MachineDescription:
    """This machine.

    Parameters:
        found: Its accelerators (`benchbook.machines.accelerators.find_accelerators`).
        recorded_by: Who measures; anyone but the maintainers becomes part of the name.
        root: Where `proc`, `sys` and `etc` lie.
    """
    cpu = describe_cpu(kernel_text(root / "proc/cpuinfo"), _available_cores())
    machine = MachineDescription(
        name="",
        kind=found.kind if found else "cpu",
        title="",
        short="",
        owner=None if recorded_by == MAINTAINERS else recorded_by,
        accelerator=AcceleratorDescription(**found.description) if found else None,
        cpu=cpu,
        memory_bytes=memory_bytes(root),
        virtualisation=virtualisation(kernel_text(root / "proc/cpuinfo")),
        system={
            # The numbers only: who builds a kernel may put a name of their own behind them.
            "kernel": (re.match(r"[\d.]+\d", platform.release()) or [None])[0],
            "os": _operating_system(kernel_text(root / "etc/os-release")),
            "libc": " ".join(platform.libc_ver()).strip() or None,
        },
        published=False,
        schema=1,
    )
    return named(machine)


def named(machine: MachineDescription) -> MachineDescription:
    """`machine` with the name, title and short form that follow from what it is and who measured."""
    accelerator = machine.accelerator
    owner = f"{OWNER_MARK}{slug(machine.owner)}" if machine.owner else ""
    by = f" ({machine.owner})" if machine.owner else ""
    if accelerator is None:
        cores = machine.cpu.cores or 0
        size = gigabytes(machine.memory_bytes)
        return replace(
            machine,
            name=f"cpu-{cores}core{size and f'-{size}gb'}{owner}",
            title=f"{cores}-core CPU{size and f', {size} GB'}{by}",
            short=f"CPU {cores}-core{by}",
        )
    vendor, full = accelerator.vendor or "", accelerator.name
    # Some drivers know a device by its vendor alone ("AMD Radeon Graphics"), or by no name at all.
    words = model_words(full) or model_words(accelerator.compute_capability or "") or ["GPU"]
    count = accelerator.count
    profile = mig_profile(full)
    # An instance is named by its profile alone; a partition by its mode, beside the memory it is left with.
    mode = accelerator.partition
    # Apple's GPU has no memory of its own: it shares the machine's.
    size = gigabytes(accelerator.memory_bytes or (machine.memory_bytes if machine.kind == "mps" else None))
    model = " ".join(words)
    parts = [slug(vendor), *map(slug, words), *([slug(mode)] if mode else [])]
    parts += [f"mig-{slug(profile)}"] if profile else [f"{size}gb"] if size else []
    parts += [f"x{count}"] if count > 1 else []
    many = f"{count} x " if count > 1 else ""
    partition = f" MIG {profile}" if profile else f" {mode}" if mode else ""
    return replace(
        machine,
        name="-".join(parts) + owner,
        title=f"{many}{vendor} {model}{partition}".strip()
        + (f", {size} GB" if size and not profile else "")
        + by,
        short=f"{many}{model}{partition}{by}",
    )


def gigabytes(size: int | None) -> str:
    """The size that a memory of `size` bytes is sold as: GiB, rounded up; empty where it is unknown."""
    return "" if not size else str(math.ceil(size / 2**30))


def slug(text: str) -> str:
    """`text` as part of a name: lower-case letters, digits, single hyphens."""
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))


def _available_cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def describe_cpu(cpuinfo: str, cores: int) -> CpuDescription:
    """Model, vendor, threads per core and instruction sets that `/proc/cpuinfo` tells."""
    fields = _cpuinfo(cpuinfo)
    siblings, physical = fields.get("siblings"), fields.get("cpu cores")
    flags = (fields.get("flags") or fields.get("Features") or "").split()
    return CpuDescription(
        model=fields.get("model name") or (_apple_cpu() if not fields else None),
        vendor=fields.get("vendor_id"),
        cores=cores,
        threads_per_core=int(siblings) // int(physical) if siblings and physical and int(physical) else None,
        flags=sorted(flag for flag in flags if FLAGS.match(flag)),
    )


def _cpuinfo(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    return fields


def _apple_cpu() -> str | None:
    return platform.processor() or None


def memory_bytes(root: Path = Path("/")) -> int | None:
    """The machine's memory, or what the control groups of this process allow of it."""
    total = re.search(r"MemTotal:\s+(\d+) kB", kernel_text(root / "proc/meminfo"))
    size = int(total[1]) * 1024 if total else _physical_memory()
    limit = memory_limit(root / "sys/fs/cgroup", root / "proc/self/cgroup")
    return min(size, limit) if size and limit is not None else size


def _physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


def virtualisation(cpuinfo: str) -> str | None:
    """What this machine is a guest of: "none" on bare metal, None where nothing tells."""
    tool = shutil.which("systemd-detect-virt")
    if tool:
        answer = subprocess.run([tool, "--vm"], capture_output=True, text=True, check=False).stdout.strip()
        if answer:
            return answer
    flags = _cpuinfo(cpuinfo).get("flags")
    if flags is None:
        return None
    return "hypervisor" if "hypervisor" in flags.split() else "none"


def _operating_system(os_release: str) -> str | None:
    """Its name and version."""
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', os_release, re.MULTILINE)
    if match:
        return match[1]
    version = platform.mac_ver()[0]
    return f"macOS {version}" if version else platform.system() or None
