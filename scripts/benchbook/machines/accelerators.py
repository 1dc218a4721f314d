"""Describe the accelerators that torch sees, in a process of its own: asking leaves a context on them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchbook.content.machines import AcceleratorDescription
from benchbook.content.problems import BenchbookError, Problem
from benchbook.machines.kernel_files import kernel_text
from benchbook.machines.nvml import Identity, Nvml, open_nvml

VENDORS = {"cuda": "NVIDIA", "rocm": "AMD", "xpu": "Intel", "mps": "Apple"}


@dataclass(frozen=True)
class Accelerators:
    """The accelerators of a machine: their kind, how many, what they are, and (in memory only) which."""

    kind: str
    description: dict[str, Any]
    identities: tuple[Identity, ...]


def find_accelerators(
    python: str, path: Path, environment: Mapping[str, str] | None = None
) -> Accelerators | None:
    """What torch sees in `python`, None if that is not an accelerator (or there is no torch).

    Parameters:
        python: The interpreter that will run the scripts.
        path: The folder that holds the `benchbook` package.
        environment: Of the process that asks; by default this one's.

    Raises:
        BenchbookError: Asking failed; what a machine has must be known, not guessed.
    """
    start = "from benchbook.machines.accelerators import print_accelerators; print_accelerators()"
    code = f"import sys; sys.path.insert(0, sys.argv[1]); {start}"
    try:
        answer = subprocess.run(
            [python, "-P", "-c", code, str(path)],
            env=dict(os.environ if environment is None else environment),
            capture_output=True,
            check=False,
            timeout=300,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unknown(python, str(error)) from error
    lines = answer.stdout.decode(errors="replace").splitlines()
    if answer.returncode != 0 or not lines:
        said = answer.stderr.decode(errors="replace").strip().splitlines()
        raise _unknown(python, said[-1] if said else f"exit code {answer.returncode}")
    table = json.loads(lines[-1])
    if table is None:
        return None
    return Accelerators(
        table["kind"], table["description"], tuple(Identity(**each) for each in table["identities"])
    )


def _unknown(python: str, why: str) -> BenchbookError:
    what = f"it cannot tell which accelerators this machine has ({why})"
    fix = "name an interpreter by BENCHBOOK_PYTHON whose torch works, or record as a cpu- --machine"
    return BenchbookError(Problem(Path(python).name, 1, what, fix))


def print_accelerators() -> None:
    """Print the accelerators of this process as one line of JSON."""
    try:
        import torch
    except ImportError:
        print("null")
        return
    found = ask_torch(torch, open_nvml(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    print(json.dumps(None if found is None else asdict(found)))
    sys.stdout.flush()
    # Nothing is left to tidy up, and some drivers hang when they are torn down.
    os._exit(0)


def ask_torch(torch: Any, nvml: Nvml | None, visible: str | None) -> Accelerators | None:
    """The accelerators that this build of torch sees on this machine."""
    kind = _kind(torch)
    if kind is None:
        return None
    if kind == "mps":
        return Accelerators(
            "mps", accelerator_table(vendor="Apple", name=_apple_name() or "Apple GPU", count=1), ()
        )
    module = torch.xpu if kind == "xpu" else torch.cuda
    properties = [module.get_device_properties(index) for index in range(module.device_count())]
    identities = tuple(identity_of(each) for each in properties)
    first = properties[0]
    table = accelerator_table(
        name=first.name,
        vendor=VENDORS[kind],
        memory_bytes=int(first.total_memory),
        count=len(properties),
        runtime=_runtime(torch, kind),
        driver=getattr(first, "driver_version", None) or (_amd_driver() if kind == "rocm" else None),
        partition=amd_partition() if kind == "rocm" else None,
        compute_capability=_capability(first, kind),
        multiprocessors=getattr(first, "multi_processor_count", None)
        or getattr(first, "max_compute_units", None),
    )
    if kind == "cuda" and nvml is not None:
        handle = nvml.find(identities[0], visible)
        if handle is not None:
            known = nvml.description(handle)
            table.update({key: value for key, value in known.items() if value is not None})
    return Accelerators(kind, table, identities)


def identity_of(properties: Any) -> Identity:
    """Which device `torch.cuda.get_device_properties` speaks of."""
    bus = getattr(properties, "pci_bus_id", None)
    pci = ""
    if isinstance(bus, int):
        domain, device = (getattr(properties, name, 0) for name in ("pci_domain_id", "pci_device_id"))
        pci = f"{domain:08X}:{bus:02X}:{device:02X}.0"
    return Identity(str(getattr(properties, "uuid", "")), pci)


def _kind(torch: Any) -> str | None:
    if torch.cuda.is_available():
        return "rocm" if getattr(torch.version, "hip", None) else "cuda"
    if getattr(torch, "xpu", None) is not None and torch.xpu.is_available():
        return "xpu"
    if torch.backends.mps.is_available():
        return "mps"
    return None


def accelerator_table(**known: Any) -> dict[str, Any]:
    """What is known of an accelerator, and None for the rest of what a description holds."""
    return {one.name: known.get(one.name) for one in fields(AcceleratorDescription)}


def _runtime(torch: Any, kind: str) -> str | None:
    version = torch.version
    known = {
        "cuda": ("CUDA", getattr(version, "cuda", None)),
        "rocm": ("ROCm", getattr(version, "hip", None)),
        "xpu": ("SYCL", getattr(version, "xpu", None)),
    }
    name, number = known[kind]
    return f"{name} {number}" if number else None


def _capability(properties: Any, kind: str) -> str | None:
    if kind == "rocm":
        return getattr(properties, "gcnArchName", "").partition(":")[0] or None
    if kind == "cuda":
        return f"{properties.major}.{properties.minor}"
    return None


def _amd_driver() -> str | None:
    return kernel_text(Path("/sys/module/amdgpu/version")) or None


def amd_partition(cards: Path = Path("/sys/class/drm")) -> str | None:
    """How AMD's devices are divided (`CPX/NPS4`); None for whole ones, and where they do not agree.

    A whole one computes as a single partition (SPX) with a single range of memory (NPS1).

    Parameters:
        cards: Where the kernel lists graphics devices.
    """
    modes = {
        tuple(
            kernel_text(card / f"device/current_{what}_partition").upper() for what in ("compute", "memory")
        )
        for card in cards.glob("card[0-9]*")
        if (card / "device/current_compute_partition").is_file()
    }
    if len(modes) != 1:
        return None
    ((compute, memory),) = modes
    if compute in {"", "SPX"} and memory in {"", "NPS1"}:
        return None
    return "/".join(filter(None, (compute, memory)))


def _apple_name() -> str | None:
    answer = subprocess.run(
        ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() or None


# Words of a device's name that tell nothing two models apart, or that the name repeats elsewhere.
NOISE = re.compile(
    r"\((r|tm)\)|\b(nvidia|amd|intel|apple|geforce|tesla|quadro|instinct|radeon|graphics|hbm\d?e?|\d+\s?gb)\b",
    re.IGNORECASE,
)
MIG = re.compile(r"\bMIG\s+(\S+)", re.IGNORECASE)


def model_words(name: str) -> Sequence[str]:
    """The words of a device's name that make up its model: `NVIDIA A100-SXM4-80GB` is A100, SXM4."""
    spaced = MIG.sub("", name).replace("-", " ")
    return re.findall(r"[A-Za-z0-9]+", NOISE.sub(" ", spaced))


def mig_profile(name: str) -> str | None:
    """The profile of a MIG instance (`1g.18gb`) that its name tells, None for a whole device."""
    match = MIG.search(name)
    return match[1].lower() if match else None
