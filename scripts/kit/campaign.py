"""Record on a machine without a network: unpack the kit around this file, and go on where it stopped.

    python3 .kit/campaign.py --budget 9m --out out [SCRIPT ...]

Needs Python, PyTorch and NumPy, nothing else. What it yields lies in `--out`: a bundle for `benchbook
import`, whole after each script; `journal.tar.gz`, which a later campaign goes on with; and a log. Other
options and scripts are those of `benchbook record`, which takes the scripts in the order of their worth.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

KIT = Path(__file__).resolve().parent
JOURNAL = "journal.tar.gz"
# Kept for what follows the last run: writing the bundle, and packing the journal.
LAST_SECONDS = 10.0
# What a recording that is told to end may take to write what is whole.
PATIENCE = 20.0
# Scripts set these themselves where they need them; a shell around must not.
NOT_INHERITED = (
    *("BENCHBOOK_PYTHON", "BENCHBOOK_ROOT", "PYTHONSTARTUP", "PYTHONHOME"),
    *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "CUDA_MODULE_LOADING"),
)


def main() -> int:
    """Run the campaign; the exit code is that of `benchbook record`."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=seconds, default="1h", help="end before this is spent, e.g. 9m")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where the results go")
    parser.add_argument("--work", type=Path, help="where to unpack; a later call goes on with what is there")
    options, passed_on = parser.parse_known_args()
    kit = json.loads((KIT / "kit.json").read_text("utf-8"))
    if problem := unfit(kit):
        print(problem, file=sys.stderr)
        return 2
    work = (options.work or Path(tempfile.gettempdir()) / f"campaign-{kit['commit'][:12]}").resolve()
    out = options.out.resolve()
    for folder in (work, out):
        folder.mkdir(parents=True, exist_ok=True)
    checkout = unpack(work)
    restore(work, checkout, out)
    with (out / "log.txt").open("a", encoding="utf-8") as log:
        tell(log, f"commit {kit['commit']}, budget {options.budget:.0f} s, {sys.version.split()[0]}")
        for line in about_this_machine():
            tell(log, line)
        left = options.budget - (time.monotonic() - began)
        command = [sys.executable, "scripts/benchbook", "record", "--bundle", str(out), *passed_on]
        command += ["--budget", f"{max(0.0, left - LAST_SECONDS):.0f}s"]
        with awake():
            code = run(command, checkout, environment(kit, work, checkout), log, left)
        keep(work, checkout, out)
        tell(log, f"ended with {code} after {time.monotonic() - began:.0f} s; take {out} along")
    return code


def seconds(text: str) -> float:
    """A duration such as `90s`, `10m` or `1.5h` in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)?", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration; write 90s, 10m or 1.5h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2] or "s"]


def unfit(kit: dict[str, str | None]) -> str:
    """Why this Python cannot use the kit, and what to do; empty if it can."""
    mine = "{}.{}".format(*sys.version_info)
    if mine != kit["python"]:
        return (
            f"the kit is for Python {kit['python']} and this is {mine}: "
            f"run it with python{kit['python']}, or pack it again with KIT_PYTHON={mine}"
        )
    for name in ("torch", "numpy"):
        if importlib.util.find_spec(name) is None:
            return f"this Python has no {name}, which the kit does not carry: run it with one that has"
    cuda = cuda_of_torch()
    if cuda is not None and cuda != kit["cuda"]:
        built = (
            f"the kit is for CUDA {kit['cuda']}" if kit["cuda"] else "the kit is for a machine without CUDA"
        )
        return f"{built}, and PyTorch here was built for {cuda}: pack it again with KIT_CUDA={cuda}"
    return ""


def cuda_of_torch() -> str | None:
    """The version of CUDA that PyTorch was built for, None for none; without importing it."""
    spec = importlib.util.find_spec("torch")
    try:
        text = Path(spec.origin).with_name("version.py").read_text("utf-8") if spec and spec.origin else ""
    except OSError:
        return None
    match = re.search(r"^cuda\b[^=]*= *['\"]([0-9.]+)['\"]", text, re.MULTILINE)
    return match[1] if match else None


def unpack(work: Path) -> Path:
    """The checkout as it was packed, and beside it, once, the packages; gives the checkout's folder."""
    site = work / "site"
    if not site.is_dir():
        part = work / "site.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for wheel in sorted((KIT / "wheels").glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(part)
        part.rename(site)
    checkout = work / "handbook"
    # Anew each time, so that what runs is the commit; the journal of an earlier call stays.
    journal = checkout / ".benchbook"
    with tempfile.TemporaryDirectory(dir=work) as kept:
        if journal.is_dir():
            journal.rename(Path(kept) / "journal")
        shutil.rmtree(checkout, ignore_errors=True)
        checkout.mkdir()
        with tarfile.open(KIT / "handbook.tar.gz") as archive:
            archive.extractall(checkout, filter="data")
        if (Path(kept) / "journal").is_dir():
            (Path(kept) / "journal").rename(journal)
    return checkout


def restore(work: Path, checkout: Path, out: Path) -> None:
    """Put back what an earlier campaign left: on this machine, else what came along in the kit."""
    if not (checkout / ".benchbook").is_dir():
        for journal in sorted((KIT / "state").glob(f"**/{JOURNAL}")):
            with tarfile.open(journal) as archive:
                archive.extractall(checkout, filter="data")
    for bundles in (work, KIT / "state"):
        for bundle in sorted(bundles.glob("*.json.gz")):
            if not (out / bundle.name).exists():
                shutil.copy(bundle, out / bundle.name)


def keep(work: Path, checkout: Path, out: Path) -> None:
    """Pack the journal of what is not whole, and leave the bundles for a later call."""
    journal = checkout / ".benchbook"
    if journal.is_dir():
        with tarfile.open(out / JOURNAL, "w:gz") as archive:
            archive.add(journal, ".benchbook")
    for bundle in out.glob("*.json.gz"):
        shutil.copy(bundle, work / bundle.name)


def environment(kit: dict[str, str], work: Path, checkout: Path) -> dict[str, str]:
    """What the scripts see: the kit's packages first, caches below the work folder, and no network to ask."""
    home, temporary = work / "home", work / "tmp"
    for folder in (home, temporary):
        folder.mkdir(exist_ok=True)
    inherited = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    paths = filter(None, (str(work / "site"), os.environ.get("PYTHONPATH")))
    return inherited | {
        "PYTHONPATH": os.pathsep.join(paths),
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "HF_HOME": str(home / "hf"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "MPLCONFIGDIR": str(home),
        "TMPDIR": str(temporary),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "160",
        # The checkout came without its repository: none around it is asked, and the commit is the packed one.
        "GIT_CEILING_DIRECTORIES": str(work),
        "BENCHBOOK_ROOT": str(checkout),
        "BENCHBOOK_COMMIT": kit["commit"],
    }


def run(command: list[str], folder: Path, variables: dict[str, str], log: TextIO, left: float) -> int:
    """Run the recording, tell what it says, and end it if it does not end itself."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        for number in before:
            signal.signal(number, lambda *_: process.terminate())
        # It keeps to its budget by itself; should it hang, it is told to end, and then made to.
        timers = [threading.Timer(left, process.terminate), threading.Timer(left + PATIENCE, process.kill)]
        for timer in timers:
            timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            tell(log, line.rstrip("\n"))
        code = process.wait()
    for timer in timers:
        timer.cancel()
    for number, handler in before.items():
        signal.signal(number, handler)
    return code


def tell(log: TextIO, line: str) -> None:
    """Say a line here and in the log."""
    for stream in (sys.stdout, log):
        print(line, file=stream, flush=True)


def about_this_machine() -> list[str]:
    """What the driver says of its devices, for whoever reads the log."""
    fields = (
        "name,memory.total,memory.used,driver_version,power.limit,clocks.max.sm,persistence_mode,compute_mode"
    )
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return [f"{os.cpu_count()} cores, no NVIDIA driver"]
    return [f"{os.cpu_count()} cores", *said.strip().splitlines()]


@contextlib.contextmanager
def awake() -> Iterator[None]:
    """Keep the driver loaded between runs, where persistence mode is off; without a context on the device."""
    code = "import ctypes, time\nctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2()\ntime.sleep(86400)"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
