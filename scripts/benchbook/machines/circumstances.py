"""Note the circumstances of a campaign: commit, environment, state of the device, and who else uses it."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchbook.content.revisions import moment_of
from benchbook.machines.nvml import Identity, Nvml, find_all

# Names the commit of a checkout that was packed without its repository.
PACKED_COMMIT = "BENCHBOOK_COMMIT"
# More than a driver keeps on an idle device, less than any context.
EMPTY_BYTES = 256 * 2**20
# How long git may take to answer.
GIT_SECONDS = 60.0
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


def commit(root: Path, warn: Callable[[str], None] = lambda _: None) -> tuple[str | None, bool]:
    """The commit that is checked out, and whether what could change a number differs from it.

    It counts as differing where nothing tells that it does not.

    Parameters:
        root: The checkout.
        warn: Told in one line why git does not answer, and what to do.
    """
    head, why = _answer(root, "rev-parse", "HEAD")
    if head is None:
        packed = os.environ.get(PACKED_COMMIT, "")
        if re.fullmatch("[0-9a-f]{40}", packed):
            return packed, False
        warn(f"git names no commit, so every record says that its code was modified: {why}")
        return None, True
    changed, why = _answer(root, "status", "--porcelain", "--", *CHANGES_NUMBERS)
    if changed is None:
        warn(f"git does not tell what is edited, so every record says that its code was modified: {why}")
    return head, changed != ""


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
    return _answer(root, *arguments)[0]


def _answer(root: Path, *arguments: str) -> tuple[str | None, str]:
    """What git says; where it does not answer None, and then why and what to do about it."""
    # What is asked while others may commit takes no lock from them.
    command = ["git", "--no-optional-locks", "-C", str(root), *arguments]
    shown = f"`git {arguments[0]}`"
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GIT_SECONDS)
    except OSError as error:
        return None, f"it does not start ({error.strerror}); install git"
    except subprocess.TimeoutExpired:
        return None, f"{shown} takes longer than {GIT_SECONDS:g} seconds; see what keeps it from ending"
    if answer.returncode == 0:
        return answer.stdout.strip(), ""
    said = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
    # Where the checkout is another owner's, it ends with the command that lets it be read.
    command_for_it = f"run `{said[-1].strip()}`" if "safe.directory" in said[-1] else ""
    return None, f"{said[0]}; {command_for_it or f'record in a clone where {shown} answers'}"


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
