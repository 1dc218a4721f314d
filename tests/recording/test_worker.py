"""What a script may rely on in its process, and what no script may do to the recorder."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import cast

import psutil
import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.script import RANK_ENVIRONMENT
from benchbook.machines.nvml import Identity
from benchbook.machines.sampling import Sampler
from benchbook.recording import hosts as recording_hosts
from benchbook.recording import supervision
from benchbook.recording.capture import HEAD, TAIL
from benchbook.recording.endings import SMALLER
from benchbook.recording.hosts import CODE, Host, HostError, Hosts, SilentHostError
from benchbook.recording.jobs import CRASHED, FAILED, OK, OUT_OF_MEMORY, TIMED_OUT
from benchbook.recording.preload import touches_a_device
from benchbook.recording.processes import MARK, end_marked, end_orphans, own_oom_kills
from builders import write
from running import job_of, run_in

METRIC = """
    needs = ["cpu"]
    [tool.benchbook.metrics]
    answer = { unit = "count" }
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts() as started:
        yield started


@pytest.fixture
def host(hosts: Hosts) -> Host:
    return hosts.host({}, (), "snippets/guide/small.py")


@pytest.fixture
def torch_host(hosts: Hosts) -> Host:
    return hosts.host({}, ("torch",), "snippets/guide/small.py")


def answer(host: Host, root: Path, body: str) -> object:
    result = run_in(host, root, body, METRIC)
    assert result.outcome == OK, (result.failure, result.output)
    return result.ranks[0]["metrics"]["answer"]


# Ending


def test_a_script_that_hangs_is_timed_out_with_the_cell_it_was_in(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "while True: pass", 'needs = ["cpu"]\ntimeout = 0.2')
    assert result.outcome == TIMED_OUT
    assert result.failure
    assert "`work`" in result.failure.what
    assert not result.ranks


def test_a_script_that_is_killed_has_crashed(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert result.outcome == CRASHED
    assert result.failure
    assert "SIGKILL" in result.failure.what
    assert not result.ranks


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_that_anyone_may_send_is_not_called_the_scripts_fault(
    host: Host, tmp_path: Path, name: str
) -> None:
    body = f"import os, signal\nsignal.signal(signal.{name}, signal.SIG_DFL)\nos.kill(os.getpid(), signal.{name})"
    result = run_in(host, tmp_path, body)
    assert (result.outcome, result.killed) == (CRASHED, True)
    assert result.failure
    assert result.failure.what == f"killed by {name} in the cell `work`"
    assert "something on this machine ends processes" in result.failure.fix


def test_a_segmentation_fault_is_a_crash(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)")
    assert (result.outcome, result.killed, "SIGSEGV" in str(result.failure)) == (CRASHED, False, True)


def test_memory_that_cannot_be_had_is_out_of_memory(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "b = bytearray(1 << 60)")
    assert result.outcome == OUT_OF_MEMORY
    assert not result.ranks


def test_torch_that_cannot_allocate_is_out_of_memory(torch_host: Host, tmp_path: Path) -> None:
    result = run_in(torch_host, tmp_path, "import torch\nx = torch.empty(1 << 50)")
    assert result.outcome == OUT_OF_MEMORY


def test_leaving_before_the_checks_is_a_failure(host: Host, tmp_path: Path) -> None:
    body = "# %% work\nimport sys\nsys.exit(0)\n\n# %% checks\nassert True"
    result = run_in(host, tmp_path, body)
    assert result.outcome == FAILED
    assert result.failure
    assert "before its checks had completed" in result.failure.what
    source = (tmp_path / "snippets/guide/small.py").read_text("utf-8").splitlines()
    assert source[result.failure.line - 1] == "sys.exit(0)"


def test_leaving_in_the_middle_of_the_checks_is_a_failure(host: Host, tmp_path: Path) -> None:
    body = "# %% work\nimport sys\n\n# %% checks\nassert True\nsys.exit()\nassert False"
    assert run_in(host, tmp_path, body).outcome == FAILED


def test_leaving_without_python_noticing_is_a_failure(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "import os\nos._exit(0)")
    assert result.outcome == FAILED
    assert result.failure
    assert "exit code 0" in result.failure.what


# What a script could say of itself, if anybody listened.
FORGED = """
import json, os, pathlib, stat, sys
meters = {"seconds": 1.0, "process_memory": 1, "process_memory_peak": 1, "device_memory": None}
forged = {"outcome": "ok", "metrics": {"answer": 42}, "blocks": {}, "cells": {"work": meters}, "spans": {},
          "device": None, "baseline_memory": 1, "regions": []}
line = json.dumps({"answer": forged}).encode()
opened = [int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]
sockets = [number for number in opened if stat.S_ISSOCK(os.fstat(number).st_mode)]
"""
FAR = """
frame = sys._getframe()
while "teller" not in frame.f_locals:
    frame = frame.f_back
frame.f_locals["teller"].answer(forged)
"""


def test_a_script_that_writes_its_own_result_and_leaves_is_a_failure(host: Host, tmp_path: Path) -> None:
    body = """
        for place in (".", ".."):
            pathlib.Path(place, "result-0.json").write_bytes(json.dumps(forged).encode())
        for number in sockets:
            os.write(number, b"\\n" + line + b"\\n")
        os._exit(0)
    """
    result = run_in(host, tmp_path, FORGED + textwrap.dedent(body), METRIC)
    assert (result.outcome, result.ranks) == (FAILED, [])
    assert result.failure
    assert "the process left in the cell `work`" in result.failure.what


def test_a_result_without_the_checks_is_refused(host: Host, tmp_path: Path) -> None:
    body = f"# %% work\n{FORGED}{FAR}os._exit(0)\n\n# %% more\npass\n\n# %% checks\nassert True"
    result = run_in(host, tmp_path, body, METRIC)
    assert (result.outcome, result.ranks) == (CRASHED, [])
    assert result.failure
    assert result.failure.what == "its result lacks the cell `more`, which the script has"


def test_what_a_script_writes_into_the_recorders_pipe_is_not_believed(host: Host, tmp_path: Path) -> None:
    body = """
        assert sockets
        for number in sockets:
            os.write(number, b"x" * 10**6 + line)
        answer = 1
    """
    assert answer(host, tmp_path, FORGED + textwrap.dedent(body)) == 1


def test_nobody_can_be_made_to_keep_what_has_no_end() -> None:
    told = supervision.Told("secret")
    for _ in range(130):
        told.add(b"x" * 2**20)
    assert len(told._waiting) <= supervision.LONGEST_ANSWER
    told.add(b'\nsecret{"cell": "wo\nsecret{"cell": "work"}\n')
    assert told.cells == ["work"]


def test_a_check_that_does_not_hold_names_its_line(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "# %% work\nloss = 2.0\n\n# %% checks\nassert loss < 1.0")
    assert result.outcome == FAILED
    assert result.failure
    assert "assert loss < 1.0" in result.failure.what


def test_a_check_is_made_where_python_is_told_to_leave_asserts_out(hosts: Hosts, tmp_path: Path) -> None:
    host = hosts.host({"PYTHONOPTIMIZE": "1"}, (), "small.py")
    result = run_in(host, tmp_path, "# %% work\nloss = 2.0\n\n# %% checks\nassert loss < 1.0")
    assert result.outcome == FAILED
    assert "assert loss < 1.0" in str(result.failure)


def test_asserts_of_libraries_stay_whatever_the_recorder_was_started_under(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONOPTIMIZE", "2")
    with Hosts() as hosts:
        assert (
            answer(hosts.host({}, (), "small.py"), tmp_path, "import sys\nanswer = sys.flags.optimize") == 0
        )


UNREADABLE = {
    "its text": "class E(Exception):\n    def __str__(self): raise ValueError('no')\nraise E",
    "its exit code": "class C:\n    def __repr__(self): raise ValueError('no')\nraise SystemExit(C())",
    "its cause": "class E(Exception):\n    __cause__ = property(lambda self: 1 / 0)\nraise E",
    "its name": "class M(type):\n    __name__ = property(lambda cls: 1 / 0)\nclass E(Exception, metaclass=M): pass\nraise E",
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_an_exception_that_raises_another_when_it_is_looked_at_is_the_scripts_fault(
    host: Host, tmp_path: Path, what: str
) -> None:
    result = run_in(host, tmp_path, UNREADABLE[what])
    assert (result.outcome, result.failure and result.failure.line > 1) == (FAILED, True)
    assert "in the cell `work`" in str(result.failure)
    assert "benchbook" not in str(result.failure)


def test_an_exception_is_told_where_the_script_closed_its_standard_error(host: Host, tmp_path: Path) -> None:
    failure = run_in(host, tmp_path, "import os\nos.close(2)\nraise ValueError('a bad day')").failure
    assert failure
    assert failure.what == "ValueError in the cell `work`: a bad day"


def test_a_script_that_leaves_its_process_no_file_to_open_is_told_that(host: Host, tmp_path: Path) -> None:
    body = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))"
    failure = run_in(host, tmp_path, body).failure
    assert failure
    assert failure.what.startswith("the script leaves its process no file to open")
    assert "RLIMIT_NOFILE" in failure.fix


@pytest.mark.parametrize("kind", ["DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"])
def test_a_deprecation_is_an_error(host: Host, tmp_path: Path, kind: str) -> None:
    result = run_in(host, tmp_path, f"import warnings\nwarnings.warn('old', {kind})")
    assert result.outcome == FAILED
    assert result.failure
    assert "deprecated" in result.failure.what


# What a library warns of without naming its caller, and what it warns its caller of.
LIBRARY = """
import warnings

def old_inside():
    warnings.warn("old inside", FutureWarning)

def old_call():
    warnings.warn("old call", FutureWarning, stacklevel=2)
"""


@pytest.mark.parametrize(
    ("call", "strict", "outcome"),
    [
        ("old_inside", False, OK),
        ("old_inside", True, FAILED),
        ("old_call", False, FAILED),
        ("old_call", True, FAILED),
    ],
)
def test_a_librarys_own_deprecation_costs_no_recording_and_fails_a_trial(
    host: Host, tmp_path: Path, call: str, strict: bool, outcome: str
) -> None:
    body = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport library\nlibrary.{call}()"
    (tmp_path / "library.py").write_text(LIBRARY)
    result = host.run(replace(job_of(tmp_path, body), strict=strict))
    assert result.outcome == outcome


def test_any_other_warning_is_shown_and_no_more(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "import warnings\nwarnings.warn('mind the step')")
    assert result.outcome == OK
    assert "mind the step" in result.output["work"]


@pytest.mark.parametrize(
    "value", ["float('nan')", "float('inf')", "'fast'", "None", "[]", "[1.0, None]", "{}"]
)
def test_a_metric_that_is_no_finite_number_fails_the_run(host: Host, tmp_path: Path, value: str) -> None:
    result = run_in(host, tmp_path, f"answer = {value}", METRIC)
    assert result.outcome == FAILED
    assert result.failure
    assert "answer" in result.failure.what


def test_a_metric_that_is_missing_fails_the_run(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "other = 1", METRIC)
    assert result.failure
    assert "never assigned" in result.failure.what


def test_a_metric_may_be_a_series(host: Host, tmp_path: Path) -> None:
    assert answer(host, tmp_path, "answer = [1, 2.5, True]") == [1, 2.5, True]


def test_a_kill_while_the_kernel_ran_out_of_memory_is_out_of_memory(
    tmp_path: Path,
) -> None:
    class Dead:
        exitcode = -signal.SIGKILL

    told = supervision.Told("secret")
    told.add(b'secret{"cell": "work"}\n')
    rank = supervision._Rank(Dead(), told)  # type: ignore[arg-type]
    job = job_of(tmp_path, "pass")
    ending = supervision._ending(job, rank, True)
    assert ending is not None
    assert ending[0] == OUT_OF_MEMORY
    ending = supervision._ending(job, rank, False)
    assert ending is not None
    assert ending[0] == CRASHED


@pytest.mark.parametrize(("taken", "outcome"), [(True, OUT_OF_MEMORY), (False, FAILED)])
def test_an_error_is_out_of_memory_where_the_kernel_took_a_process_of_the_run_and_not_of_somebody_else(
    tmp_path: Path, taken: bool, outcome: str
) -> None:
    told = supervision.Told("secret")
    told.add(b'secret{"cell": "work"}\n')
    failure = {"line": 9, "what": "RuntimeError in the cell `work`: a worker died", "fix": "fix it"}
    told.add(b"secret%s\n" % json.dumps({"answer": {"outcome": FAILED, "failure": failure}}).encode())
    rank = supervision._Rank(cast("BaseProcess", None), told)
    ending = supervision._ending(job_of(tmp_path, "pass"), rank, starved=True, taken=taken)
    assert ending is not None
    assert (ending[0], ending[1].fix == SMALLER) == (outcome, taken)


EVENTS = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"


@pytest.mark.parametrize(
    ("own", "file", "text", "kills"),
    [
        ("0::/user.slice/a\n", "user.slice/a/memory.events", EVENTS, 2),
        ("0::/docker/1\n", "memory.events", EVENTS, 2),
        ("4:cpu,memory:/a\n0::/\n", "memory/a/memory.oom_control", CONTROL, 2),
        ("4:memory:/docker/1\n", "memory/memory.oom_control", CONTROL, 2),
        ("4:memory:/a\n", "memory/a/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0),
        ("0::/\n", "memory.stat", "", 0),
        (None, "memory.events", EVENTS, 0),
    ],
)
def test_the_kernel_tells_what_it_killed_of_the_own_control_group(
    tmp_path: Path, own: str | None, file: str, text: str, kills: int
) -> None:
    write(tmp_path / "cgroup" / file, text)
    if own is not None:
        write(tmp_path / "own", own)
    assert own_oom_kills(tmp_path / "cgroup", tmp_path / "own") == kills


def test_the_kernel_takes_the_script_first_when_memory_runs_out(host: Host, tmp_path: Path) -> None:
    assert answer(host, tmp_path, "answer = int(open('/proc/self/oom_score_adj').read())") == 1000


# Output


def test_what_a_cell_prints_belongs_to_it(host: Host, tmp_path: Path) -> None:
    body = "# %% one\nprint('first')\n\n# %% two\nprint('second')\n\n# %% checks\nassert True"
    assert run_in(host, tmp_path, body).output == {"one": "first\n", "two": "second\n"}


def test_c_code_and_subprocesses_are_heard(host: Host, tmp_path: Path) -> None:
    body = """
        import ctypes, subprocess
        ctypes.CDLL(None).puts(b"from C")
        subprocess.run(["echo", "from a subprocess"])
    """
    output = run_in(host, tmp_path, body).output["work"]
    assert "from C\n" in output
    assert "from a subprocess\n" in output


def test_a_hundred_megabytes_are_cut_and_counted(host: Host, tmp_path: Path) -> None:
    body = "import sys\nprint('begin')\nfor _ in range(100):\n    sys.stdout.write('x' * 10**6)\nprint('end')"
    result = run_in(host, tmp_path, body)
    text = result.output["work"]
    assert result.outcome == OK
    assert len(text) < HEAD + TAIL + 100
    assert text.startswith("begin\n")
    assert text.endswith("end\n")
    assert f"{10**8 + len('begin') + len('end') + 2 - HEAD - TAIL} of" in text


def test_html_is_kept_as_text(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "print('<script>alert(1)</script>')")
    assert result.output == {"work": "<script>alert(1)</script>\n"}


def test_a_traceback_names_the_project_and_no_home(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "def fall():\n    raise ValueError('ouch')\nfall()")
    output = result.output["work"]
    assert 'File "snippets/guide/small.py", line' in output
    assert "raise ValueError('ouch')" in output
    assert str(tmp_path) not in output
    assert str(Path.home()) not in output
    assert "worker.py" not in output
    assert result.failure
    assert "ouch" in result.failure.what


def test_output_of_a_run_that_failed_is_kept_too(host: Host, tmp_path: Path) -> None:
    assert "so far" in run_in(host, tmp_path, "print('so far')\n1 / 0").output["work"]


def test_a_script_that_closes_its_output_and_falls_is_still_heard(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "import sys\nsys.stderr.close()\nraise ValueError('ouch')")
    assert "ValueError: ouch" in result.output["work"]


def test_a_script_that_closes_its_output_still_ends_well(host: Host, tmp_path: Path) -> None:
    assert answer(host, tmp_path, "import sys\nsys.stdout.close()\nanswer = 1") == 1


# The process


def test_main_is_a_real_module(host: Host, tmp_path: Path) -> None:
    body = """
        import dataclasses, inspect, pickle, sys
        @dataclasses.dataclass
        class Point:
            x: int
        def double(n):
            return 2 * n
        assert sys.modules["__main__"].Point is Point
        assert pickle.loads(pickle.dumps(Point(3))) == Point(3)
        assert inspect.getsource(double) == "def double(n):\\n    return 2 * n\\n"
        assert __name__ == "__main__" and __file__.endswith("small.py") and sys.argv == [__file__]
        answer = double(21)
    """
    assert answer(host, tmp_path, body) == 42


def test_a_script_knows_its_own_docstring(host: Host, tmp_path: Path) -> None:
    assert run_in(host, tmp_path, "print(__doc__)").output == {"work": "A small one.\n"}


def test_pools_work(host: Host, tmp_path: Path) -> None:
    body = """
        import multiprocessing
        def double(n):
            return 2 * n
        with multiprocessing.Pool(2) as pool:
            answer = pool.map(double, [1, 2, 3])
    """
    assert answer(host, tmp_path, body) == [2, 4, 6]


def test_a_data_loader_with_workers_works(torch_host: Host, tmp_path: Path) -> None:
    body = """
        import torch
        from torch.utils.data import DataLoader
        torch.ones(300, 300) @ torch.ones(300, 300)  # OpenMP's threads are there before the fork
        answer = [int(batch.sum()) for batch in DataLoader(range(4), batch_size=2, num_workers=2)]
    """
    assert answer(torch_host, tmp_path, body) == [1, 5]


def test_future_statements_reach_the_cells_after_them(host: Host, tmp_path: Path) -> None:
    body = """
        # %% one
        from __future__ import annotations

        # %% two
        def f(x: Unknown): pass
        answer = len(f.__annotations__)

        # %% checks
        assert answer == 1
    """
    assert answer(host, tmp_path, body) == 1


def test_the_working_folder_is_fresh_and_gone_afterwards(host: Host, tmp_path: Path) -> None:
    body = """
        import os, tempfile
        assert os.listdir() == []
        open("left.txt", "w").close()
        print(os.getcwd(), tempfile.mkdtemp())
        import pathlib
        pathlib.Path(__file__).with_name("where").write_text(os.getcwd() + "\\n" + tempfile.mkdtemp())
    """
    assert run_in(host, tmp_path, body).outcome == OK
    folders = (tmp_path / "snippets/guide/where").read_text("utf-8").split("\n")
    assert len(folders) == 2
    assert not any(Path(folder).exists() for folder in folders)


def test_compilers_find_a_cold_cache_in_each_process(host: Host, tmp_path: Path) -> None:
    body = """
        import os, pathlib
        caches = [os.environ["TORCHINDUCTOR_CACHE_DIR"], os.environ["TRITON_CACHE_DIR"]]
        assert not any(map(os.path.exists, caches))
        with pathlib.Path(__file__).with_name("caches").open("a") as seen:
            seen.write("\\n".join(caches) + "\\n")
    """
    for _ in range(2):
        assert run_in(host, tmp_path, body).outcome == OK
    assert len(set((tmp_path / "snippets/guide/caches").read_text("utf-8").split())) == 4


def test_nothing_of_the_recorder_is_on_the_search_path(host: Host, tmp_path: Path) -> None:
    body = """
        import os, sys
        assert "PYTHONPATH" not in os.environ or "bb-" not in os.environ["PYTHONPATH"]
        answer = sum("bb-" in entry for entry in sys.path)
    """
    assert answer(host, tmp_path, body) == 0


def test_a_checkout_that_the_recorder_was_started_from_is_not_on_it_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path("scripts").resolve()), "/elsewhere"]))
    body = """
        import os, sys
        assert os.environ["PYTHONPATH"] == "/elsewhere"
        assert "/elsewhere" in sys.path
    """
    with Hosts() as hosts:
        result = run_in(hosts.host({}, (), "small.py"), tmp_path, body)
    assert result.outcome == OK, result.failure


def test_an_environment_is_there_before_the_interpreter_starts(hosts: Hosts, tmp_path: Path) -> None:
    host = hosts.host({"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "3"}, (), "small.py")
    body = """
        import os, sys
        assert os.environ["OMP_NUM_THREADS"] == "3"
        assert b"OMP_NUM_THREADS=3" in open("/proc/self/environ", "rb").read()
        answer = sys.flags.hash_randomization
    """
    assert answer(host, tmp_path, body) == 0


def test_parameters_are_set_after_their_cell_ran(host: Host, tmp_path: Path) -> None:
    table = """
        needs = ["cpu"]
        [tool.benchbook.metrics]
        answer = { unit = "count" }
        [tool.benchbook.on.cpu]
        steps = 4
    """
    body = "# %% parameters\nsteps = 128\n\n# %% work\nanswer = steps\n\n# %% checks\nassert answer"
    result = run_in(host, tmp_path, body, table)
    assert result.ranks[0]["metrics"] == {"answer": 4}


def test_one_run_leaves_nothing_for_the_next(host: Host, tmp_path: Path) -> None:
    body = "import os, sys\nanswer = int('LEAK' in os.environ or hasattr(sys, 'leak'))\nos.environ['LEAK'] = sys.leak = '1'"
    assert [answer(host, tmp_path, body) for _ in range(2)] == [0, 0]


# Ranks


def test_ranks_know_each_other_as_under_torchrun(hosts: Hosts, tmp_path: Path) -> None:
    table = """
        needs = ["cpu"]
        ranks = 2
        [tool.benchbook.metrics]
        answer = { unit = "count" }
    """
    body = """
        import os
        assert os.environ["WORLD_SIZE"] == os.environ["LOCAL_WORLD_SIZE"] == "2"
        assert os.environ["RANK"] == os.environ["LOCAL_RANK"]
        assert os.environ["OMP_NUM_THREADS"] == "1" and int(os.environ["MASTER_PORT"]) > 0
        answer = int(os.environ["RANK"])
    """
    result = run_in(hosts.host(RANK_ENVIRONMENT, (), "small.py"), tmp_path, body, table)
    assert result.outcome == OK, result.failure
    assert [rank["metrics"]["answer"] for rank in result.ranks] == [0, 1]


def test_two_ranks_of_gloo_find_each_other(hosts: Hosts, tmp_path: Path) -> None:
    table = """
        needs = ["cpu"]
        ranks = 2
        [tool.benchbook.metrics]
        answer = { unit = "count" }
    """
    body = """
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        total = torch.tensor(dist.get_rank() + 1)
        dist.all_reduce(total)
        answer = total.item()
        dist.destroy_process_group()
    """
    result = run_in(hosts.host(RANK_ENVIRONMENT, ("torch",), "small.py"), tmp_path, body, table)
    assert result.outcome == OK, (result.failure, result.output)
    assert [rank["metrics"]["answer"] for rank in result.ranks] == [3, 3]


def test_a_rank_that_fails_ends_the_others_and_is_the_one_told_of(hosts: Hosts, tmp_path: Path) -> None:
    body = """
        import os, signal
        if os.environ["RANK"] == "1":
            raise ValueError("rank 1 fell")
        signal.pause()
    """
    result = run_in(
        hosts.host(RANK_ENVIRONMENT, (), "small.py"), tmp_path, body, 'needs = ["cpu"]\nranks = 2'
    )
    assert result.outcome == FAILED
    assert result.failure
    assert "rank 1 fell" in result.failure.what


def test_variables_of_a_launcher_around_the_recorder_do_not_reach_a_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "7")
    monkeypatch.setenv("WORLD_SIZE", "8")
    with Hosts() as hosts:
        body = "import os\nanswer = int('RANK' in os.environ or 'WORLD_SIZE' in os.environ)"
        assert answer(hosts.host({}, (), "small.py"), tmp_path, body) == 0


def test_a_fork_beside_threads_is_no_deprecation(host: Host, tmp_path: Path) -> None:
    body = """
        import os, threading
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    """
    result = run_in(host, tmp_path, body)
    assert result.outcome == OK, result.failure


# What is left behind


LEFT_BEHIND = {
    "a child": "import subprocess\nproc = subprocess.Popen(['sleep', '600'])",
    "a session of its own": "import subprocess\nproc = subprocess.Popen(['sleep', '600'], start_new_session=True)",
    "a daemon": """
        import os, pathlib, sys
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "600"])
            os._exit(0)
        os.wait()
    """,
    "ranks of a launcher": """
        import subprocess, sys
        launcher = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True).wait()"
        proc = subprocess.Popen([sys.executable, "-c", launcher], stdout=subprocess.DEVNULL)
        import time
        while not any("sleep" in open(f"/proc/{p}/cmdline").read() for p in open(f"/proc/{proc.pid}/task/{proc.pid}/children").read().split()):
            time.sleep(0.01)
    """,
}


def sleepers() -> set[int]:
    return {
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] == ["sleep", "600"]
    }


@pytest.mark.parametrize("what", LEFT_BEHIND)
def test_whatever_a_script_leaves_running_is_ended(host: Host, tmp_path: Path, what: str) -> None:
    before = sleepers()
    assert run_in(host, tmp_path, LEFT_BEHIND[what]).outcome == OK
    assert sleepers() <= before


def test_what_a_hanging_script_has_started_is_ended_with_it(host: Host, tmp_path: Path) -> None:
    before = sleepers()
    body = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True).wait()"
    assert run_in(host, tmp_path, body, 'needs = ["cpu"]\ntimeout = 0.3').outcome == TIMED_OUT
    assert sleepers() <= before


# The host


def test_what_carries_the_mark_is_gone_when_it_is_ended() -> None:
    mark = "carried-by-a-test"
    code = "import time; held = bytearray(200 << 20); print(1, flush=True); time.sleep(600)"
    with subprocess.Popen(
        # As a host is called, whose children no recording beside this test ends.
        [sys.executable, "-c", code, CODE],
        env={**os.environ, MARK: mark},
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert end_marked(mark) == [process.pid]
        assert not psutil.pid_exists(process.pid) or psutil.Process(process.pid).status() == "zombie"


STOPS = {
    "the fork server": "import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)",
    "the host": """
        import os, signal
        server = os.getppid()
        os.kill(int(open(f"/proc/{server}/stat").read().rpartition(")")[2].split()[1]), signal.SIGSTOP)
    """,
}


@pytest.mark.parametrize("stopped", STOPS)
def test_a_script_that_stops_what_watches_over_it_is_waited_for_no_longer_than_its_time_and_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    monkeypatch.setattr(recording_hosts, "ANSWER_SECONDS", 0.2)
    before = sleepers()
    body = f"{textwrap.dedent(STOPS[stopped])}\nimport subprocess\nsubprocess.run(['sleep', '600'])"
    with Hosts() as hosts:
        host = hosts.host({}, (), "small.py")
        with pytest.raises(SilentHostError, match=r"no answer within 0\.7 seconds"):
            run_in(host, tmp_path, body, 'needs = ["cpu"]\ntimeout = 0.5')
        assert sleepers() <= before
        hosts.forget(host)
        assert run_in(hosts.host({}, (), "small.py"), tmp_path, "pass").outcome == OK


class NeverTold:
    """A process whose fork server, being stopped, never tells how it ended."""

    exitcode = None

    def join(self, timeout: float) -> None:
        assert timeout < 1


def test_a_host_does_not_outlive_its_recorder_to_wait_for_a_fork_server_that_was_stopped() -> None:
    supervisor = supervision.Supervisor(
        cast("ForkServerContext", None), (), Sampler(None, {}), None, lambda: True, ()
    )
    with pytest.raises(supervision.AbandonedError):
        supervisor._join(cast("BaseProcess", NeverTold()))


@pytest.mark.parametrize("lives", [False, True])
def test_what_a_host_has_started_is_ended_once_the_host_is_gone(lives: bool) -> None:
    environment = {**os.environ, MARK: f"of-a-host-that-{'lives' if lives else 'is-gone'}"}
    wait = "import time; time.sleep(600)"
    with (
        subprocess.Popen([sys.executable, "-c", wait], env=environment) as left,
        subprocess.Popen([sys.executable, "-c", wait, CODE if lives else ""], env=environment) as host,
    ):
        end_orphans(CODE)
        assert (left.poll() is None) == lives
        left.kill()
        host.kill()


def test_a_fork_server_that_is_killed_is_no_fault_of_the_script(tmp_path: Path) -> None:
    body = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)"
    with Hosts() as hosts:
        host = hosts.host({}, (), "small.py")
        with pytest.raises(HostError, match="its fork server ended"):
            run_in(host, tmp_path, body)
        hosts.forget(host)
        assert run_in(hosts.host({}, (), "small.py"), tmp_path, "pass").outcome == OK


class EndsTooSoon:
    """A fork server that is killed by what it forks before it has told the process id of that."""

    def Process(self, target: object, args: object) -> EndsTooSoon:  # noqa: N802
        return self

    def start(self) -> None:
        raise EOFError("unexpected EOF")


def test_a_fork_server_that_is_killed_while_it_starts_a_rank_is_lost(tmp_path: Path) -> None:
    spared = {process.pid for process in psutil.Process().children(recursive=True)}
    supervisor = supervision.Supervisor(
        cast("ForkServerContext", EndsTooSoon()), spared, Sampler(None, {}), None, lambda: False, ()
    )
    with pytest.raises(supervision.LostError, match="its fork server ended"):
        supervisor.run(job_of(tmp_path, "pass"))


def test_a_process_that_ends_at_the_same_moment_as_what_it_tells_is_taken_once(tmp_path: Path) -> None:
    supervisor = supervision.Supervisor(
        cast("ForkServerContext", None), (), Sampler(None, {}), None, lambda: False, ()
    )
    told, (ours, theirs), (sentinel, alive) = supervision.Told("x"), socket.socketpair(), os.pipe()
    rank = supervision._Rank(cast("BaseProcess", None), told)
    with selectors.DefaultSelector() as selector:
        ours.setblocking(False)
        selector.register(sentinel, selectors.EVENT_READ, rank)
        selector.register(ours.detach(), selectors.EVENT_READ, told)
        os.close(alive)
        theirs.close()
        assert [key.data for key, _ in selector.select(0)] == [rank, told]
        assert not supervisor._watch(job_of(tmp_path, "pass"), [rank], selector, time.monotonic())
        assert not selector.get_map()
    os.close(sentinel)


def test_a_host_that_stumbles_says_over_what(tmp_path: Path) -> None:
    with Hosts() as hosts, pytest.raises(HostError, match="exit code 1: IndexError"):
        hosts.host({}, (), "small.py").run(replace(job_of(tmp_path, "pass"), ranks=0))


def test_a_script_that_kills_its_host_does_not_take_the_recorder_down(tmp_path: Path) -> None:
    before = sleepers()
    body = """
        import os, signal, subprocess
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        server = os.getppid()
        host = int(open(f"/proc/{server}/stat").read().rpartition(")")[2].split()[1])
        os.kill(host, signal.SIGKILL)
        signal.pause()
    """
    with Hosts() as hosts:
        host = hosts.host({}, (), "small.py")
        with pytest.raises(HostError, match="SIGKILL"):
            run_in(host, tmp_path, body)
        hosts.forget(host)
        assert sleepers() <= before
        assert run_in(hosts.host({}, (), "small.py"), tmp_path, "pass").outcome == OK


@pytest.fixture
def restless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that starts a thread as it is imported."""
    (tmp_path / "restless.py").write_text(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return "restless"


def test_an_import_that_starts_a_thread_is_refused_by_name(restless: str) -> None:
    with Hosts() as hosts, pytest.raises(BenchbookError, match="importing restless starts a thread"):
        hosts.host({}, (restless,), "small.py")


def test_beside_a_gpu_each_run_imports_for_itself_what_a_server_cannot(tmp_path: Path, restless: str) -> None:
    said: list[str] = []
    with Hosts(devices=[Identity("GPU-aaaa", "1")], warn=said.append) as hosts:
        host = hosts.host({}, (restless,), "small.py")
        assert run_in(host, tmp_path, f"import {restless}").outcome == OK
        assert hosts.host({}, (restless,), "small.py") is host
    assert [line.partition(",")[0] for line in said] == ["small.py: importing restless starts a thread"]


def test_a_server_that_has_started_an_accelerator_would_be_noticed() -> None:
    assert touches_a_device(["/dev/null", "/dev/nvidia-uvm"])
    assert not touches_a_device(["/dev/nvidiactl", "/dev/nvidia0", "socket:[1]"])


def test_hosts_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    temporary = Path(tempfile.mkdtemp(dir="/tmp"))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with Hosts() as hosts:
        assert run_in(hosts.host({}, (), "small.py"), tmp_path, "pass").outcome == OK
        assert {process.pid for process in psutil.Process().children(recursive=True)} > before
    assert {process.pid for process in psutil.Process().children(recursive=True)} <= before
    temporary.rmdir()  # which only an empty folder lets happen


def test_a_signal_without_a_name_is_a_crash(host: Host, tmp_path: Path) -> None:
    result = run_in(host, tmp_path, "import os\nos.kill(os.getpid(), 40)")
    assert (result.outcome, result.failure and result.failure.what) == (
        "crashed",
        "killed by signal 40 in the cell `work`",
    )
