"""Record on a machine without a network: unpack the kit around this file, and go on where it stopped.

    python3 .kit/campaign.py --budget 9m --out out [SCRIPT ...]

Needs Python, PyTorch and NumPy, nothing else. What it yields lies in `--out`: a bundle for `benchbook
import`, whole after each script; `journal-MACHINE.tar.gz`, which a later campaign goes on with; and a log.
Machines may share `--out`: each has a bundle and a journal of its own there. Other
options and scripts are those of `benchbook record`, which takes the scripts in the order of their worth.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import gzip
import hashlib
import importlib.util
import json
import os
import platform
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
import zlib
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

KIT = Path(__file__).resolve().parent
# One for each machine, since several may share a folder of results.
JOURNAL = "journal-{}.tar.gz"
EVERY_JOURNAL = "journal*.tar.gz"
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Below the work folder, where the recorder keeps the runs of what is not whole, in a folder for each machine.
JOURNALS = "handbook/.benchbook"
# Says of which kit a work folder is: no other folder is ever emptied.
MARKER = "kit.id"
# Kept for what follows the last run: writing the bundle, and packing the journal.
LAST_SECONDS = 10.0
# What a recording that is told to end may take to write what is whole.
PATIENCE = 20.0
# What one may take on a busy machine to begin, and to say that no time is left.
BEGINNING = 60.0
# Scripts set these themselves where they need them; a shell around must not.
NOT_INHERITED = (
    *("BENCHBOOK_PYTHON", "BENCHBOOK_ROOT", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE"),
    *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "CUDA_MODULE_LOADING"),
)
REFUSED = 2


class RefusedError(Exception):
    """Why a campaign cannot begin, and what to do about it."""


def main() -> int:
    """Run the campaign; the exit code is that of `benchbook record`."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=seconds, default="1h", help="end before this is spent, e.g. 9m")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where the results go")
    parser.add_argument(
        "--work", type=Path, help="an empty folder to unpack into, or that of an earlier call"
    )
    options, passed_on = parser.parse_known_args()
    try:
        kit = read_kit()
        out = options.out.resolve()
        out.mkdir(parents=True, exist_ok=True)
        work = work_folder(options.work, kit)
        with only_one(work), Log(out / "log.txt") as log:
            log.tell(
                f"commit {kit['commit']}, budget {options.budget:.0f} s, Python {platform.python_version()}"
            )
            for line in about_this_machine():
                log.tell(line)
            unpack(work)
            begun = restore(work, out, log)
            guides = [folder.name for folder in (work / "handbook/snippets").iterdir() if folder.is_dir()]
            passed_on += scripts_of(kit, passed_on, guides)
            command = [sys.executable, "scripts/benchbook", "record", "--bundle", str(out), *passed_on]
            command += [word for bundle in begun for word in ("--begun", str(bundle))]
            left = options.budget - (time.monotonic() - began)
            command += ["--budget", f"{max(0.0, left - LAST_SECONDS):.0f}s"]
            try:
                with awake():
                    code = run(command, work / "handbook", environment(kit, work), log, left)
            finally:
                keep(work, out)
            held = ", ".join(sorted(path.name for path in out.glob("*.json.gz"))) or "nothing was recorded"
            log.tell(f"ended with {code} after {time.monotonic() - began:.0f} s; in {out}: {held}")
            return code
    except RefusedError as refused:
        print(refused, file=sys.stderr)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
        print(f"the campaign cannot go on: {error}", file=sys.stderr)
    return REFUSED


def seconds(text: str) -> float:
    """A duration such as `90s`, `10m` or `1.5h` in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)?", text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration; write 90s, 10m or 1.5h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2] or "s"]


def read_kit() -> dict[str, Any]:
    """What the kit says of itself.

    Raises:
        RefusedError: This is not a whole kit, or one for another machine.
    """
    try:
        kit: dict[str, Any] = json.loads((KIT / "kit.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise RefusedError(f"{KIT} holds no whole kit ({error}): pack it with `make kit`") from error
    if problem := unfit(kit):
        raise RefusedError(problem)
    return kit


def scripts_of(kit: dict[str, Any], words: list[str], guides: Container[str]) -> list[str]:
    """The scripts that the kit was packed for, where `words` name none.

    Parameters:
        kit: What the kit says of itself.
        words: Options, scripts and guides, as for `benchbook record`.
        guides: Those of the commit.

    Raises:
        RefusedError: They name something whose packages were not packed.
    """
    packed: list[str] = kit.get("scripts", [])
    names = [word.removeprefix("snippets/").removesuffix(".py") for word in words]
    named = [name for name in names if name.partition("/")[0] in guides]
    if missing := [name for name in named if packed and f"{name}.py" not in packed]:
        raise RefusedError(
            f"the kit was not packed for {missing[0]}: name one of {', '.join(packed)}, or pack another"
        )
    return [] if named else packed


def unfit(kit: dict[str, Any]) -> str:
    """Why this Python cannot use the kit, and what to do; empty if it can."""
    mine = "{}.{}".format(*sys.version_info)
    if mine != kit["python"]:
        return (
            f"the kit is for Python {kit['python']} and this is {mine}: "
            f"run it with python{kit['python']}, or pack it again with KIT_PYTHON={mine}"
        )
    if sys.version_info < (3, 11, 4):
        return f"this is Python {platform.python_version()}, which unpacks unsafely: use 3.11.4 or later"
    if kit["architecture"] != platform.machine():
        named = f"the kit is for {kit['architecture']}, and this machine is {platform.machine()}"
        return f"{named}: pack it again with KIT_ARCHITECTURE={platform.machine()}"
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


def work_folder(named: Path | None, kit: dict[str, Any]) -> Path:
    """The folder to unpack into, marked as this kit's: a named one, or one that another call finds again.

    Raises:
        RefusedError: It holds something else, or belongs to somebody else.
    """
    work = (named or Path(tempfile.gettempdir()) / f"campaign-{os.getuid()}-{kit['id'][:16]}").absolute()
    work.mkdir(mode=0o700, parents=True, exist_ok=True)
    marker = work / MARKER
    held = marker.read_text("utf-8") if marker.is_file() else ""
    if work.is_symlink() or work.stat().st_uid != os.getuid():
        raise RefusedError(f"{work} belongs to somebody else: name a folder of your own by --work")
    if held != kit["id"] and any(work.iterdir()):
        raise RefusedError(f"{work} is not empty, and not of this kit: name an empty folder by --work")
    marker.write_text(kit["id"], "utf-8")
    return work


@contextlib.contextmanager
def only_one(work: Path) -> Iterator[None]:
    """Hold off another campaign in the same folder.

    Raises:
        RefusedError: One is under way.
    """
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise RefusedError(f"another campaign is under way in {work}: wait for it to end") from error
        yield


class Log:
    """Tells lines to the terminal and to a file; neither, once it cannot be written, ends a campaign."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._file.close()

    def tell(self, line: str) -> None:
        """Say a line."""
        for stream in (sys.stdout, self._file):
            with contextlib.suppress(OSError):
                print(line, file=stream, flush=True)


def unpack(work: Path) -> None:
    """Put the packages into the work folder, once, and the checkout, each time: what runs is the commit.

    The journal goes from one checkout to the next, and lies beside them in between.

    Raises:
        RefusedError: The commit holds one.
    """
    site, checkout, journal = work / "site", work / "handbook", work / "journal"
    if not site.is_dir():
        part = emptied(work / "site.part")
        for wheel in sorted((KIT / "wheels").glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(part)
        # The lists are written last, as an installer does: code that is newer was edited since.
        for listed in part.glob("*.dist-info/RECORD"):
            listed.touch()
        part.rename(site)
        # Once, with all cores: where nothing may be written beside them, each process would do so for itself.
        # By a program of its own: forks of this process would keep its lock where it is killed.
        subprocess.run([sys.executable, "-m", "compileall", "-qq", "-j", "0", str(site)], check=False)
    part = emptied(work / "handbook.part")
    with tarfile.open(KIT / "handbook.tar.gz") as archive:
        archive.extractall(part, filter="data")
    if os.path.lexists(part / ".benchbook"):
        raise RefusedError("the commit of this kit holds a journal, which may be anyone's: pack another")
    with contextlib.suppress(FileNotFoundError):
        (work / JOURNALS).rename(journal)
    journal.mkdir(exist_ok=True)
    shutil.rmtree(checkout, ignore_errors=True)
    part.rename(checkout)
    journal.rename(work / JOURNALS)


def emptied(folder: Path) -> Path:
    """A folder of that name with nothing in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def restore(work: Path, out: Path, log: Log) -> list[Path]:
    """Put back what earlier campaigns left, here or in the kit; the bundles to go on with.

    Each journal is put back once, since what it was of may be done by the next call. Of two of one
    campaign the longer one counts, else that of the campaign which began later. `restored` holds the digests
    of the archives that were read, and of the journals that came from one.
    """
    seen = work / "restored"
    known_digests = set(seen.read_text("utf-8").split()) if seen.is_file() else set()
    with tempfile.TemporaryDirectory(dir=work) as temporary:
        packed = [*sorted((KIT / "state").glob(f"**/{EVERY_JOURNAL}")), *sorted(out.glob(EVERY_JOURNAL))]
        for path in packed:
            digest = digest_of(path)
            if digest in known_digests:
                continue
            found = Path(temporary) / digest
            try:
                with tarfile.open(path) as archive:
                    archive.extractall(found, filter="data")
            except (OSError, EOFError, tarfile.TarError) as error:
                # It is whole all the same, for a call that has room.
                if isinstance(error, OSError) and error.errno in NO_ROOM:
                    raise
                log.tell(f"{path} is damaged, and left out ({error})")
            known_digests.add(digest)
            for journal in sorted((found / ".benchbook").glob("**/*.jsonl")):
                known = work / JOURNALS / journal.relative_to(found / ".benchbook")
                if not known.is_file() or _supersedes(journal, known):
                    known.parent.mkdir(parents=True, exist_ok=True)
                    known_digests.add(digest_of(journal))
                    os.replace(journal, known)
    seen.write_text("\n".join(sorted(known_digests)), "utf-8")
    bundles = [*sorted((KIT / "state").glob("**/*.json.gz")), *sorted(work.glob("*.json.gz"))]
    return [bundle for bundle in bundles if is_whole(bundle, log)]


def _supersedes(journal: Path, known: Path) -> bool:
    """Whether a journal holds more of the campaign that `known` is of, or is of one that began later."""
    (started, name), (known_started, known_name) = _campaign_of(journal), _campaign_of(known)
    if name == known_name:
        return journal.stat().st_size > known.stat().st_size
    return started > known_started


def _campaign_of(journal: Path) -> tuple[str, str]:
    """When a journal's campaign began, and its id; empty where its header cannot be read."""
    try:
        with journal.open(encoding="utf-8") as file:
            campaign = json.loads(file.readline())["campaign"]
        return str(campaign["started"]), str(campaign["id"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return "", ""


def is_whole(bundle: Path, log: Log) -> bool:
    """Whether a bundle can be read; says so where it cannot."""
    try:
        json.loads(gzip.decompress(bundle.read_bytes()))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        log.tell(f"{bundle} is damaged, and left out ({error})")
        return False
    return True


def keep(work: Path, out: Path) -> None:
    """Pack the journals of what is not whole, by machine, and leave the bundles for a later call.

    What another machine left in `out` is not packed again: it may have gone on since, and this would take its
    place.
    """
    journals, seen = work / JOURNALS, work / "restored"
    restored = set(seen.read_text("utf-8").split()) if seen.is_file() else set()
    for folder in sorted(path for path in journals.iterdir() if path.is_dir()):
        packed, held = out / JOURNAL.format(folder.name), sorted(folder.glob("**/*.jsonl"))
        untouched = held and all(digest_of(path) in restored for path in held)
        if untouched and packed.is_file():
            continue
        with replacing(packed) as part, tarfile.open(part, "w:gz") as archive:
            for path in held:
                archive.add(path, Path(".benchbook") / path.relative_to(journals))
        # It is this call's own, and no news to the next.
        with seen.open("a", encoding="utf-8") as file:
            file.write("\n" + digest_of(packed))
    for bundle in out.glob("*.json.gz"):
        with replacing(work / bundle.name) as part:
            shutil.copy(bundle, part)


def digest_of(path: Path) -> str:
    """The SHA-256 digest of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` that takes its place once it is written; else nothing is left of it."""
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def environment(kit: dict[str, Any], work: Path) -> dict[str, str]:
    """What the scripts see: the kit's packages first, caches in the work folder, and no network to ask."""
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
        "BENCHBOOK_ROOT": str(work / "handbook"),
        "BENCHBOOK_COMMIT": kit["commit"],
    }


def run(command: list[str], folder: Path, variables: dict[str, str], log: Log, left: float) -> int:
    """Run the recording, tell what it says, and end it if it does not end itself."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        # An interrupt at the terminal reaches it once, from here.
        start_new_session=True,
    ) as process:
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = {number: signal.signal(number, lambda *_: process.terminate()) for number in numbers}
        # It keeps to its budget by itself; should it hang, it is told to end, and then made to.
        guard = max(left, BEGINNING)
        timers = [threading.Timer(guard, process.terminate), threading.Timer(guard + PATIENCE, process.kill)]
        for timer in timers:
            timer.daemon = True
            timer.start()
        assert process.stdout is not None
        for line in process.stdout:
            log.tell(line.rstrip("\n"))
        code = process.wait()
    for timer in timers:
        timer.cancel()
    for number, handler in before.items():
        signal.signal(number, handler)
    return code


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
    # It ends with its standard input, and so with this process, however that ends.
    code = "import ctypes, sys\nctypes.CDLL('libnvidia-ml.so.1').nvmlInit_v2()\nsys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
