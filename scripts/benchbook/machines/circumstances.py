"""Note the circumstances of a campaign: commit, environment, state of the device, and who else uses it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchbook.content.revisions import moment_of
from benchbook.machines.cgroups import cpu_weights
from benchbook.machines.kernel_files import kernel_text
from benchbook.machines.nvml import Identity, Nvml, find_all

# Names the commit of a checkout that was packed without its repository.
PACKED_COMMIT = "BENCHBOOK_COMMIT"
# More than a driver keeps on an idle device, less than any context.
EMPTY_BYTES = 256 * 2**20
# How long git may take to answer.
GIT_SECONDS = 60.0
MOUNTS = Path("/proc/self/mounts")
BLOCK_DEVICES = Path("/sys/dev/block")
PROCESSORS = Path("/sys/devices/system/cpu")
# What the kernel is set to that decides how fast processors and memory are, and what it says of a process; a
# pattern is of as many files as there are.
SETTINGS = (
    *(f"sys/kernel/mm/transparent_hugepage/{name}" for name in ("enabled", "defrag", "shmem_enabled")),
    *(f"sys/kernel/mm/transparent_hugepage/hugepages-*/{name}" for name in ("enabled", "shmem_enabled")),
    *(f"proc/sys/vm/{name}" for name in ("overcommit_memory", "swappiness", "nr_hugepages")),
    *(f"proc/sys/kernel/{name}" for name in ("numa_balancing", "randomize_va_space")),
    *(f"sys/devices/system/cpu/{name}" for name in ("smt/control", "cpufreq/boost", "intel_pstate/no_turbo")),
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "proc/self/personality",
)
_OF_A_PROCESS = re.compile(r"(THP_enabled|Speculation\w*|Mems_allowed_list):\s*(.*)")
# Which nodes a process takes its memory from; the address before it is another in each.
_MEMORY_POLICY = re.compile(r"\S+ (\S+)")
_LIMITS = re.compile(r"Max (stack size|open files|locked memory) +(\S+)")
# Records and predictions are what is being made; pages change no number.
CHANGES_NUMBERS = ("snippets", "scripts", ":!snippets/records", ":!snippets/predictions")
# How variables begin that are known to decide a script's numbers.
DECIDING = (
    # Threads, and where they run.
    *("OMP_", "GOMP_", "KMP_", "LIBOMP_", "TBB_", "RAYON_", "TOKENIZERS_PARALLELISM"),
    # Linear algebra on processors, its kernels and their caches.
    *("MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "VECLIB_", "ACL_", "DNNL_", "ONEDNN_", "IDEEP_", "IPEX_"),
    *("LRU_CACHE_CAPACITY", "XNNPACK_", "NUMEXPR_", "NPY_", "NUMBA_"),
    # PyTorch, and what it compiles with.
    *("PYTORCH_", "TORCH", "ATEN_", "C10_", "TRITON_", "INDUCTOR_", "GLOO_", "UCX_", "DISABLE_ADDMM_"),
    *("TF_", "XLA_", "JAX_"),
    # Accelerators.
    *("CUDA_", "CUBLAS_", "CUBLASLT_", "CUDNN_", "NCCL_", "NVTE_", "NVIDIA_TF32_OVERRIDE"),
    *("HIP_", "HSA_", "ROCR_", "ROCBLAS_", "HIPBLASLT_", "MIOPEN_", "RCCL_", "AMD_", "GPU_MAX_HW_QUEUES"),
    *("ZE_", "SYCL_", "UR_", "CCL_", "IGC_", "ONEAPI_DEVICE_SELECTOR"),
    # Libraries of models: kernels, formats, and how weights are loaded.
    *("ACCELERATE_", "FSDP_", "DEEPSPEED_", "BNB_", "FLASH_ATTENTION_", "FLASHINFER_", "XFORMERS_"),
    *("TRANSFORMERS_", "USE_HUB_KERNELS", "DISABLE_KERNEL_MAPPING", "SAFETENSORS_FAST_GPU"),
    *("HF_ENABLE_PARALLEL_LOADING", "CUTLASS_", "CUTEDSL_", "AOT_", "ENABLE_PERSISTENT_TMA_MATMUL"),
    *("HF_PARALLEL_LOADING_WORKERS", "HF_DEACTIVATE_ASYNC_LOAD"),
    # Engines.
    *("VLLM_", "GGML_", "LLAMA_", "ORT_", "OV_", "OPENVINO_"),
    # Memory, and which libraries are loaded how.
    *("MALLOC_", "GLIBC_", "TCMALLOC_", "MIMALLOC_", "_RJEM_", "LD_"),
    # The interpreter.
    "PYTHON",
)
# Variables that decide none: words, places, networks, what the recorder sets itself, versions that images
# name, and the number of a device, which is another in each container.
HARMLESS = frozenset(
    {
        *("LANG", "LANGUAGE", "TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TZ"),
        *("HOME", "USER", "LOGNAME", "SHELL", "PWD", "PATH", "TMPDIR", "TMP", "TEMP", "VIRTUAL_ENV"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy"),
        *("no_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "MPLCONFIGDIR", "MPLBACKEND"),
        *("HF_HOME", "HF_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT", "HF_ASSETS_CACHE", "HF_XET_CACHE"),
        *("TRANSFORMERS_OFFLINE", "TRANSFORMERS_VERBOSITY", "TRANSFORMERS_NO_ADVISORY_WARNINGS"),
        *("PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONSAFEPATH", "PYTHONSTARTUP", "PYTHON_COLORS"),
        *("PYTHON_HISTORY", "PYTHON_BASIC_REPL"),
        *("PYTHONIOENCODING", "PYTHONUTF8", "PYTHONCOERCECLOCALE", "PYTHONFAULTHANDLER", "PYTHONBREAKPOINT"),
        *("PYTHON_VERSION", "PYTHON_SHA256", "PYTHON_PIP_VERSION", "PYTHON_SETUPTOOLS_VERSION"),
        *("CUDA_VERSION", "CUDNN_VERSION", "NCCL_VERSION", "PYTORCH_VERSION", "PYTORCH_BUILD_VERSION"),
        *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHELASTIC_RUN_ID", "TORCH_HOME"),
        *("TORCH_EXTENSIONS_DIR", "PYTORCH_KERNEL_CACHE_PATH", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR"),
        *("TRITON_HOME", "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "TF_CPP_MIN_LOG_LEVEL", "TF_CLI_CONFIG_FILE"),
        *("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"),
        *("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"),
    }
)
_HARMLESS_FAMILIES = ("LC_", "XDG_", "SSL_", "CONDA_", "GIT_", "HF_HUB_", "HF_DATASETS_", "BENCHBOOK_")
# What decides numbers, and without which a script may not run, or not where it should.
NEEDED = frozenset(
    {
        *(
            "LD_LIBRARY_PATH",
            "NIX_LD",
            "NIX_LD_LIBRARY_PATH",
            "DYLD_LIBRARY_PATH",
            "DYLD_FALLBACK_LIBRARY_PATH",
        ),
        *("PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE"),
        # Where compiled code lies, and whether it is kept: processes that a script starts import by it.
        *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
        # What compiles kernels.
        *("CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "SDKROOT"),
        *("CUDA_HOME", "CUDA_PATH", "CUDA_DEVICE_ORDER", "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"),
        *("HIP_PATH", "HSA_OVERRIDE_GFX_VERSION", "ONEAPI_DEVICE_SELECTOR"),
        *("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TRITON_PTXAS_PATH", "TRITON_LIBCUDA_PATH"),
    }
)
# What libraries compile kernels with as a script runs, where no variable names another.
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "nvcc")
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


def file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """The type of the file system that a folder lies in, such as "ext4"; None where nothing tells."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    real = folder.resolve()
    found: tuple[int, str | None] = (0, None)
    for line in lines:
        _, point, kind, *_ = line.split(" ")
        # Spaces and the like are written as octal numbers.
        place = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), point))
        # Of two in one place the later one covers the other.
        if real.is_relative_to(place) and len(place.parts) >= found[0]:
            found = len(place.parts), kind
    return found[1]


def disk(folder: Path, devices: Path = BLOCK_DEVICES) -> dict[str, str] | None:
    """The model of the disk that a folder lies on, and whether it turns; None where nothing tells."""
    number = folder.stat().st_dev
    place = (devices / f"{os.major(number)}:{os.minor(number)}").resolve()
    whole = place.parent if (place / "partition").is_file() else place
    if not whole.is_dir():
        return None
    return {
        name.rpartition("/")[2]: kernel_text(whole / name) for name in ("device/model", "queue/rotational")
    }


def cores(processors: Path = PROCESSORS) -> dict[str, Any]:
    """What the processors are that this process may use: of which kinds, of how many cores and nodes.

    Two threads of one core are something else than two cores, and a small core than a large one.
    """
    if not hasattr(os, "sched_getaffinity"):
        return {}
    kinds: Counter[str] = Counter()
    whole: set[tuple[str, ...]] = set()
    nodes: set[str] = set()
    for number in os.sched_getaffinity(0):
        place = processors / f"cpu{number}"
        kind = " ".join(kernel_text(place / name) for name in ("cpufreq/cpuinfo_max_freq", "cpu_capacity"))
        kinds[kind.strip()] += 1
        core = tuple(kernel_text(place / "topology" / name) for name in ("physical_package_id", "core_id"))
        whole.add(core if all(core) else (str(number),))
        nodes |= {node.name for node in place.glob("node*")}
    return {"kinds": dict(kinds), "cores": len(whole), "nodes": len(nodes)}


def priority() -> dict[str, Any]:
    """How willingly the system gives this process processors: niceness, class, and its groups' weights."""
    found: dict[str, Any] = {"weights": cpu_weights()}
    if hasattr(os, "getpriority"):
        found["niceness"] = os.getpriority(os.PRIO_PROCESS, 0)
    if hasattr(os, "sched_getscheduler"):
        found["class"] = os.sched_getscheduler(0)
    return found


def kernel_settings(root: Path = Path("/")) -> dict[str, str]:
    """What the kernel is set to, and how it treats this process, by file and field; what it tells of.

    Parameters:
        root: The folder that its files lie below.
    """
    files = (path for name in SETTINGS for path in sorted(root.glob(name)))
    found = {path.relative_to(root).as_posix(): kernel_text(path) for path in files}
    if policy := _MEMORY_POLICY.match(kernel_text(root / "proc/self/numa_maps")):
        found["memory policy"] = policy[1]
    found |= dict(_OF_A_PROCESS.findall(kernel_text(root / "proc/self/status")))
    found |= dict(_LIMITS.findall(kernel_text(root / "proc/self/limits")))
    return {name: value for name, value in found.items() if value}


def memory_limits() -> dict[str, int]:
    """The limits of a process's memory that are set here, in bytes, by the option of `ulimit` for each."""
    # Windows, where records are checked too, has no such module.
    import resource

    options = {"-v": resource.RLIMIT_AS, "-d": resource.RLIMIT_DATA}
    limits = {option: resource.getrlimit(number)[0] for option, number in options.items()}
    return {option: limit for option, limit in limits.items() if limit != resource.RLIM_INFINITY}


def own_circumstances(environment: Mapping[str, str]) -> dict[str, Any]:
    """What of this process's circumstances is inherited: whatever starts it may change them.

    Parameters:
        environment: Its variables.
    """
    return {
        "priority": priority(),
        "cores": cores(),
        "memory_limits": memory_limits(),
        "kernel_settings": kernel_settings(),
        "environment": deciding_variables(environment),
    }


def deciding_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """A digest of each variable that may decide a script's numbers: what it is set to may name a home."""
    return {
        name: hashlib.sha256(os.fsencode(value)).hexdigest()[:16]
        for name, value in sorted(environment.items())
        if not _is_harmless(name)
    }


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that scripts inherit: the harmless, and of others what they need to run."""
    return {name: value for name, value in environment.items() if _is_harmless(name) or name in NEEDED}


def withheld(environment: Mapping[str, str]) -> list[str]:
    """The names of the variables that are known to decide numbers, and that scripts do not inherit."""
    return sorted(name for name in environment.keys() - passed_on(environment) if name.startswith(DECIDING))


def compilers(path: str | None) -> dict[str, str]:
    """A digest of the file of each compiler that is found: where it lies, its size, and when it was written.

    Parameters:
        path: The folders to look in, as `PATH` names them; None for those of this process.
    """
    found = {name: shutil.which(name, path=path) for name in COMPILERS}
    return {name: _file_digest(Path(place)) for name, place in found.items() if place is not None}


def _file_digest(path: Path) -> str:
    real = path.resolve()
    status = real.stat()
    told = str(real), status.st_size, status.st_mtime_ns
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _is_harmless(name: str) -> bool:
    return name in HARMLESS or name.startswith(_HARMLESS_FAMILIES)


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
