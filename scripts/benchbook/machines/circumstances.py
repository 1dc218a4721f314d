"""Note the circumstances of a campaign: commit, environment, state of the device, and who else uses it."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchbook.content.revisions import moment_of
from benchbook.machines.nvml import Identity, Nvml, find_all

# Names the commit of a checkout that was packed without its repository.
PACKED_COMMIT = "BENCHBOOK_COMMIT"
# More than a driver keeps on an idle device, less than any context.
EMPTY_BYTES = 256 * 2**20
# Records and predictions are what is being made; pages change no number.
CHANGES_NUMBERS = ("snippets", "scripts", ":!snippets/records", ":!snippets/predictions")
# How variables begin that decide a script's numbers: by threads and where they run, allocators, libraries,
# kernels and formats.
DECIDING = (
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_", "NUMEXPR_"),
    *("PYTORCH_", "TORCH", "ATEN_", "TRITON_", "CUDA_", "CUBLAS_", "CUDNN_", "NCCL_", "NVIDIA_TF32_OVERRIDE"),
    *("ACCELERATE_", "FSDP_", "BNB_", "VLLM_", "GGML_", "LLAMA_", "DISABLE_ADDMM_"),
    *("HIP_", "HSA_", "LD_PRELOAD", "LD_LIBRARY_PATH", "MALLOC_", "GLIBC_TUNABLES", "PYTHONMALLOC"),
)
# What the recorder sets or removes itself, and the number of a device, which is another in each container.
NOT_DECIDING = frozenset(
    {
        *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHELASTIC_RUN_ID"),
        *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
    }
)
STATE_FIELDS = ("driver", "power_limit_watts", "clocks_mhz", "temperature_celsius")


def commit(root: Path) -> tuple[str | None, bool]:
    """The commit that is checked out, and whether what could change a number differs from it."""
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        packed = os.environ.get(PACKED_COMMIT, "")
        return (packed if re.fullmatch("[0-9a-f]{40}", packed) else None), False
    return head, bool(_git(root, "status", "--porcelain", "--", *CHANGES_NUMBERS))


def made(root: Path, commit: str | None) -> datetime | None:
    """When a commit was made; None where nothing tells, as in a checkout without its repository."""
    seconds = commit and _git(root, "log", "-1", "--no-show-signature", "--format=%ct", commit)
    return moment_of(seconds) if seconds else None


def differ(root: Path, one: str | None, other: str | None) -> bool:
    """Whether what could change a number differs between two commits; so it does where nothing tells."""
    if one == other or one is None or other is None:
        return one != other
    return _git(root, "diff", "--quiet", one, other, "--", *CHANGES_NUMBERS) is None


def changes(root: Path) -> dict[str, int | None]:
    """When each tracked file that could change a number last changed, in nanoseconds since 1970.

    None for one that is gone; empty in a checkout without its repository.
    """
    listed = _git(root, "ls-files", "-z", "--", *CHANGES_NUMBERS) or ""
    return {name: _changed(root / name) for name in listed.split("\0") if name}


def _changed(path: Path) -> int | None:
    try:
        # Of the inode: a file that is put back may keep the moment at which it was written.
        return path.lstat().st_ctime_ns
    except OSError:
        return None


def deciding_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """A digest of each variable that decides a script's numbers: what it is set to may name a home."""
    return {
        name: hashlib.sha256(os.fsencode(value)).hexdigest()[:16]
        for name, value in sorted(environment.items())
        if name.startswith(DECIDING) and name not in NOT_DECIDING
    }


def _git(root: Path, *arguments: str) -> str | None:
    # What is asked while others may commit takes no lock from them.
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None


class DeviceWatch:
    """The NVIDIA devices of this machine between runs; on any other machine all is null.

    Parameters:
        nvml: A started library, or None.
        devices: Which devices scripts can see.
    """

    def __init__(self, nvml: Nvml | None, devices: Sequence[Identity]) -> None:
        self._nvml = nvml
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        self._handles = find_all(nvml, devices, visible) if nvml is not None else {}

    def state(self) -> dict[str, Any]:
        """Driver, power limit, clocks and temperature of the first device, and the load on the machine."""
        known: dict[str, Any] = dict.fromkeys(STATE_FIELDS)
        if self._nvml is not None and self._handles:
            known = self._nvml.state(next(iter(self._handles.values())))
        return known | {"load_average": round(os.getloadavg()[0], 2)}

    def foreign(self) -> list[int] | None:
        """Processes that hold a device while none of ours runs, None where nothing tells.

        In a container the driver may number them as the host does, or not show them at all: memory in use on
        a device that should be empty gives them away, and counts as process 0.
        """
        if self._nvml is None or not self._handles:
            return None
        found: set[int] = set()
        for handle in self._handles.values():
            listed = self._nvml.processes(handle) or []
            found.update(listed)
            memory = self._nvml.memory(handle)
            if not listed and memory and memory.reserved is not None and memory.used > EMPTY_BYTES:
                found.add(0)
        return sorted(found)
