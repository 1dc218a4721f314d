"""Be the process that runs jobs in one environment: a preloaded fork server and its supervisor."""

from __future__ import annotations

import json
import multiprocessing
import os
import select
import shutil
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any

from benchbook.machines.circumstances import own_circumstances
from benchbook.machines.nvml import Identity, find_all, open_nvml
from benchbook.machines.sampling import Sampler
from benchbook.recording import processes
from benchbook.recording.installed_packages import installed_code, stray_import, versions
from benchbook.recording.jobs import job_from
from benchbook.recording.preload import NAMES, why_unfit
from benchbook.recording.supervision import AbandonedError, LostError, Supervisor


class Channel:
    """Lines of JSON on standard input and output; what anything else prints goes to standard error."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        self._in = os.dup(0)
        os.dup2(2, 1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self._waiting = b""
        self._open = True

    def send(self, message: dict[str, Any]) -> None:
        """Write one line."""
        self._out.write(json.dumps(message) + "\n")
        self._out.flush()

    def receive(self) -> Iterator[dict[str, Any]]:
        """Each line that comes, until the other side is gone."""
        while True:
            line, found, rest = self._waiting.partition(b"\n")
            if found:
                self._waiting = rest
                yield json.loads(line)
            elif not self._open:
                return
            else:
                self._read()

    def gone(self) -> bool:
        """Whether the other side has closed its end; looks without waiting."""
        while self._open and select.select([self._in], [], [], 0)[0]:
            self._read()
        return not self._open

    def _read(self) -> None:
        data = os.read(self._in, 1 << 16)
        self._waiting += data
        self._open = bool(data)


def run_host() -> None:
    """Take a configuration, then jobs; answer each. Ends when standard input does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    recorder = os.getppid()
    channel = Channel()
    processes.adopt_orphans()
    messages = channel.receive()
    configuration = next(messages, None)
    if configuration is None:
        return
    context = multiprocessing.get_context("forkserver")
    os.environ[NAMES] = json.dumps(configuration["preload"])
    context.set_forkserver_preload(["benchbook.recording.preload", "benchbook.recording.worker"])
    # It imports while this process looks at what is installed.
    forkserver.ensure_running()
    names = configuration["packages"]
    told = versions(names)
    installed = installed_code(configuration["pythonpath"], told["sources"])
    stray = stray_import(names)
    looked_up = {"installed": installed, "stray": stray, "circumstances": own_circumstances(os.environ)}
    channel.send({"unfit": _start_server(context), **told, **looked_up})
    supervisor = Supervisor(
        context,
        processes.descendants(),
        _sampler(configuration["devices"]),
        configuration["pythonpath"],
        channel.gone,
        processes.children(),
    )
    code = 0
    try:
        for message in messages:
            channel.send(supervisor.run(job_from(message)).table())
    except AbandonedError:
        pass
    except LostError as error:
        # Whoever asked takes a new host.
        print(error, file=sys.stderr, flush=True)
    except Exception:
        # The exit below would swallow it.
        traceback.print_exc()
        code = 1
    finally:
        processes.end_all_but(())
        if os.getppid() != recorder:
            # It was killed, and cannot tidy up itself.
            shutil.rmtree(configuration["folder"], ignore_errors=True)
        os._exit(code)


def _start_server(context: ForkServerContext) -> str:
    """Start the fork server, if it does not run; why it is not fit to be forked, empty if it is."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_look_around, args=(theirs,))
    process.start()
    theirs.close()
    try:
        unfit = str(ours.recv())
    except EOFError:
        unfit = "what it imports ends the interpreter"
    process.join()
    return unfit


def _look_around(connection: Connection) -> None:
    connection.send(why_unfit())


def _sampler(devices: Sequence[dict[str, str]]) -> Sampler:
    nvml = open_nvml() if devices else None
    if nvml is None:
        return Sampler(None, {})
    identities = [Identity(**device) for device in devices]
    return Sampler(nvml, find_all(nvml, identities, os.environ.get("CUDA_VISIBLE_DEVICES")))
