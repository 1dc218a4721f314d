"""Start and keep the processes that run scripts: one for each environment and set of preloaded modules."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import benchbook
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.records import NO_ROOM, writing
from benchbook.machines.circumstances import passed_on
from benchbook.machines.nvml import Identity
from benchbook.recording.jobs import Job, Result, result_from
from benchbook.recording.processes import MARK, end_marked, signal_name

# What is worth importing once for all runs. Anything else may start threads, which a fork does not survive.
PRELOADED = ("torch", "transformers", "accelerate", "numpy")
MOST_HOSTS = 4
START_SECONDS = 300.0
# How long after the time of a run a host may take to end it, and to tell what came of it.
ANSWER_SECONDS = 60.0
LONGEST_FOLDER = 30
CODE = "from benchbook.recording.host_process import run_host; run_host()"
VERSIONS_CODE = "from benchbook.recording.installed_packages import print_versions; print_versions()"


class HostError(Exception):
    """The host ended by itself; carries how, and what it said last."""


class SilentHostError(Exception):
    """The host did not answer in time, and was ended with all that it had started."""


@dataclass(frozen=True)
class HostKey:
    """What a host is started with, before its interpreter starts, and cannot be changed later."""

    environment: tuple[tuple[str, str], ...]
    preload: tuple[str, ...]
    venv: str = ""


def preload_names(sources: Iterable[str]) -> tuple[str, ...]:
    """Which of the modules on the list `sources` import at their top level, and what they take from them.

    Parameters:
        sources: The code of a script's cells.
    """
    names: set[str] = set()
    for source in sources:
        for statement in ast.parse(source).body:
            match statement:
                case ast.Import(names=aliases):
                    names.update(alias.name for alias in aliases)
                case ast.ImportFrom(module=str(module), names=aliases, level=0):
                    names.add(module)
                    # transformers imports a model's code only once its name is asked for.
                    names.update(f"{module}:{alias.name}" for alias in aliases if alias.name != "*")
    return tuple(sorted(name for name in names if name.partition(":")[0].partition(".")[0] in PRELOADED))


class Host:
    """One host process.

    Parameters:
        key: What it is started with.
        python: The interpreter that runs the scripts.
        package: A folder that holds the `benchbook` package and no other; it takes temporary files too.
        devices: The NVIDIA devices to watch.
        packages: Names whose versions are asked for.
        inherited: The variables that it has beside those of its key.
    """

    def __init__(
        self,
        key: HostKey,
        python: str,
        package: Path,
        devices: Sequence[Identity],
        packages: Sequence[str],
        inherited: Mapping[str, str],
    ) -> None:
        self._mark = secrets.token_hex(8)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        path = _path_of_scripts(inherited.get("PYTHONPATH"))
        # A short name, for the sockets below it.
        temporary = package / str(sum(1 for _ in package.iterdir()))
        temporary.mkdir()
        self._python, self._names = python, packages
        self._environment = {
            # What libraries, and processes that a script starts, assert is part of what is measured.
            **{name: value for name, value in inherited.items() if name != "PYTHONOPTIMIZE"},
            **dict(key.environment),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(package), path))),
            # Removed with the package's folder, even if the host does not live to tidy up.
            "TMPDIR": str(temporary),
            MARK: self._mark,
        }
        self._process = subprocess.Popen(
            [python, "-P", "-c", CODE],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # An interrupt at the terminal is the recorder's to handle.
            start_new_session=True,
        )
        self._waiting = b""
        own = dict(key.environment).get("PYTHONPATH", path)
        try:
            self._send(
                {
                    "preload": list(key.preload),
                    "devices": [{"uuid": device.uuid, "pci": device.pci} for device in devices],
                    "packages": list(packages),
                    "pythonpath": own,
                    "folder": str(package),
                }
            )
            ready = self._receive(START_SECONDS)
        except BaseException:
            self.close()
            raise
        self.packages: dict[str, str] = ready["packages"]
        # The state of the code of each of them: edited, or installed to be.
        self.sources: dict[str, str] = ready["sources"]
        # A digest of all that its environment holds.
        self.installed: str = ready["installed"]
        # What the system grants it: its interpreter may be a program that changes that.
        self.circumstances: dict[str, Any] = ready["circumstances"]
        self.unfit: str = ready["unfit"]
        self.stray: str = ready["stray"]

    def run(self, job: Job) -> Result:
        """Run a job once.

        Raises:
            HostError: The host did not live to tell; whatever it had started is gone.
            SilentHostError: It does not tell, as where it was stopped; likewise.
        """
        self._send(job.table())
        # The host ends the run in time; this bound only ends the wait for a host that hangs itself.
        return result_from(self._receive(job.timeout + ANSWER_SECONDS))

    def packages_now(self) -> tuple[dict[str, str], dict[str, str]] | None:
        """What `packages` and `sources` would be now; None where it does not tell, asked twice."""
        for _ in range(2):
            # Anyone can kill a process.
            with contextlib.suppress(OSError, ValueError, subprocess.SubprocessError):
                told = subprocess.run(
                    [self._python, "-P", "-c", VERSIONS_CODE, *self._names],
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=True,
                    timeout=START_SECONDS,
                    start_new_session=True,
                )
                versions: dict[str, dict[str, str]] = json.loads(told.stdout)
                return versions["packages"], versions["sources"]
        return None

    def close(self) -> None:
        """End the host and whatever it runs."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        if process.returncode != 0:
            end_marked(self._mark)
        self._log.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise HostError(self._last_words()) from error

    def _receive(self, patience: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._waiting:
            readable, _, _ = select.select([descriptor], [], [], patience)
            data = os.read(descriptor, 1 << 16) if readable else b""
            if not readable:
                self._process.kill()
                self._last_words()
                raise SilentHostError(f"no answer within {patience:g} seconds")
            if not data:
                raise HostError(self._last_words())
            self._waiting += data
        line, _, self._waiting = self._waiting.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        code = self._process.wait()
        end_marked(self._mark)
        self._log.seek(0)
        said = self._log.read().decode("utf-8", "replace").strip().splitlines()
        how = f"killed by {signal_name(-code)}" if code < 0 else f"exit code {code}"
        return f"{how}{f': {said[-1]}' if said else ''}"


class Hosts:
    """The hosts of one session; a context manager that leaves none behind.

    Parameters:
        python: The interpreter that runs the scripts; by default `BENCHBOOK_PYTHON`, else this one.
        devices: The NVIDIA devices to watch.
        packages: Names whose versions are recorded.
        environment: Variables for every script, under those that it declares itself.
        warn: Told what makes a session slower than it might be.
        inherited: Variables that scripts have beside these; by default those of this process that decide no
            numbers, or that scripts need (`passed_on`).
    """

    def __init__(
        self,
        python: str | None = None,
        devices: Sequence[Identity] = (),
        packages: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        warn: Callable[[str], None] = lambda _: None,
        inherited: Mapping[str, str] | None = None,
    ) -> None:
        self.python = python or interpreter()
        self._warn = warn
        self._devices = devices
        self._packages = packages
        self._environment = dict(environment or {})
        self._inherited = passed_on(os.environ) if inherited is None else dict(inherited)
        self._hosts: dict[HostKey, Host] = {}
        self._folder: Path | None = None

    def __enter__(self) -> Hosts:
        # Sockets lie below it, whose paths may have about a hundred characters.
        with writing("TMPDIR"):
            self._folder = Path(tempfile.mkdtemp(prefix="bb-", dir=temporary_folder()))
            # The package alone, wherever it lies: its neighbours (a checkout's, or a whole site-packages of
            # another environment) are not the scripts' to import.
            (self._folder / "benchbook").symlink_to(Path(benchbook.__file__).parent, target_is_directory=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.forget_all()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def host(
        self,
        environment: Mapping[str, str],
        preload: tuple[str, ...],
        shown: str,
        venv: str = "",
        line: int = 1,
    ) -> Host:
        """The host for a variant, started if there is none yet.

        Parameters:
            environment: The variant's.
            preload: What its script imports (`preload_names`).
            shown: The script, for messages.
            venv: The name of the environment that the script runs in; empty for that of all others.
            line: Where the script names it.

        Raises:
            BenchbookError: There is no such environment; or it does not start, or is not fit to be forked.
        """
        full = {**self._environment, **environment}
        key = HostKey(tuple(sorted(full.items())), preload, venv)
        known = self._hosts.pop(key, None)
        if known is None:
            while len(self._hosts) >= MOST_HOSTS:
                self._hosts.pop(next(iter(self._hosts))).close()
            known = self._started(key, shown, line)
        # The last used goes last, so that the first is the one to close.
        self._hosts[key] = known
        return known

    def forget(self, host: Host) -> None:
        """Close a host that died, so that the next run starts another."""
        for key in [key for key, known in self._hosts.items() if known is host]:
            del self._hosts[key]
        host.close()

    def forget_all(self) -> None:
        """Close every host, so that the next run starts another."""
        for host in self._hosts.values():
            host.close()
        self._hosts.clear()

    def _started(self, key: HostKey, shown: str, line: int) -> Host:
        python = interpreter_in(self.python, key.venv)
        if key.venv and not os.access(python, os.X_OK):
            what = f"its environment `{key.venv}` is not there ({python})"
            raise BenchbookError(Problem(shown, line, what, _how_to_make(Path(python), key.venv)))
        host = self._fresh(key, python, shown)
        if host.stray:
            host.close()
            fix = (
                "take its folder out of PYTHONPATH, or install it (`pip install --editable` leaves it there)"
            )
            raise BenchbookError(Problem(shown, 1, host.stray, fix))
        if not host.unfit:
            return host
        host.close()
        # What a process holds by itself would be another: where that is measured, there is no way around.
        if self._devices and key.preload:
            bare = self._fresh(dataclasses.replace(key, preload=()), python, shown)
            if not bare.unfit:
                self._warn(f"{shown}: {host.unfit}; each run imports for itself, which takes longer")
                return bare
            bare.close()
        fix = "import it inside a cell that needs it, or remove the package behind it (datasets, often)"
        raise BenchbookError(Problem(shown, 1, host.unfit, fix))

    def _fresh(self, key: HostKey, python: str, shown: str) -> Host:
        assert self._folder is not None
        try:
            return Host(key, python, self._folder, self._devices, self._packages, self._inherited)
        except (HostError, SilentHostError, OSError) as error:
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                what = f"has no room left ({error.strerror})"
                raise BenchbookError(Problem(tempfile.gettempdir(), 1, what, "make room there")) from error
            fix = f"make sure that {Path(python).name} of the recording environment starts and has psutil"
            raise BenchbookError(Problem(shown, 1, f"its process does not start ({error})", fix)) from error


def temporary_folder() -> str:
    """Where the folders of runs lie, in which a script writes what it names no folder for."""
    usual = tempfile.gettempdir()
    return "/tmp" if len(usual) > LONGEST_FOLDER else usual


def _path_of_scripts(inherited: str | None) -> str | None:
    """PYTHONPATH without the folder that this package was started from: it is not the scripts' to import."""
    own = Path(benchbook.__file__).resolve().parent.parent
    kept = [entry for entry in (inherited or "").split(os.pathsep) if entry and Path(entry).resolve() != own]
    return os.pathsep.join(kept) or None


def interpreter() -> str:
    """The interpreter that runs the scripts."""
    return os.environ.get("BENCHBOOK_PYTHON") or sys.executable


def interpreter_in(python: str, venv: str) -> str:
    """The interpreter of the environment `venv`, which lies beside that of `python`; of no name, `python`.

    Links are left as they are: that of an environment leads to the interpreter that it was made with.
    """
    if not venv:
        return python
    beside = Path(os.path.abspath(shutil.which(python) or python)).parent.parent
    return f"{beside}-{venv}/bin/python"


def _how_to_make(python: Path, venv: str) -> str:
    folder = python.parent.parent
    if folder.parent.name == ".venv":
        return f"run `make .venv/{folder.name}/.installed`"
    return (
        f"install there what `benchbook dependencies --venv {venv}` lists, as constraints-{venv}.txt pins it"
    )
