"""What is left of a process that ends, or waits for ever, without an exception in Python."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 2
# [tool.benchbook.metrics]
# printed_when_killed = { unit = "count" }
# exit_when_killed = { unit = "1" }
# [tool.benchbook.smallest]
# timeout_seconds = 1
# ///

# %% parameters
timeout_seconds = 3

# %% setup
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from textwrap import fill

import torch
from torch import distributed
from torch.utils.data import DataLoader

fork = multiprocessing.get_context("fork")
folder = Path(tempfile.mkdtemp())
VARIES = [  # places in torch's source, addresses, process ids, traces in C++
    (r"\[[^\[\]]*\.cc:\d+\] ", ""),
    (r"\[[\d.a-f:]+\]:\d+", "[...]"),
    (r"\(pid\(s\) [\d, ]+\)", "(pid(s) ...)"),
    (r"0x[0-9a-f]+", "0x..."),
    (r'File "[^"]*/([^/"]+)"', r'File "\1"'),
]


def printed(path):
    text = path.read_text("utf-8")
    for varying, instead in VARIES:
        text = re.sub(varying, instead, text)
    return text.strip()


def show(*lines):
    for line in lines:
        print(fill(line, 60, break_long_words=False, subsequent_indent="  "))


def process(name, work, *arguments):
    """A process that runs work, and whose standard error goes to a file."""

    def run():
        stderr = os.open(folder / name, os.O_WRONLY | os.O_CREAT)
        os.dup2(stderr, 2)
        sys.stderr = os.fdopen(2, "w", buffering=1)
        # region stacks
        import faulthandler
        import signal

        # `kill -USR1 PID` prints where each thread is.
        faulthandler.register(signal.SIGUSR1)
        # endregion
        work(*arguments)

    started = fork.Process(target=run)
    started.start()
    return started


def ended(*processes):
    """The exit codes, once all have ended."""
    for each in processes:
        each.join(60)
        assert each.exitcode is not None, "it still runs"
    return [each.exitcode for each in processes]


def in_group(rank, work):
    distributed.init_process_group(
        "gloo", rank=rank, world_size=2, init_method=f"file://{folder}/{work.__name__}"
    )
    work(rank)


def on_two_ranks(work):
    name = work.__name__
    ranks = [process(f"{name}.{rank}", in_group, rank, work) for rank in range(2)]
    return ended(*ranks), [printed(folder / f"{name}.{rank}") for rank in range(2)]


# %% killed
def killed():
    # region killed_lines
    # As the system does when memory runs out.
    os.kill(os.getpid(), signal.SIGKILL)
    # endregion


exit_when_killed = ended(process("killed", killed))[0]
printed_when_killed = len(printed(folder / "killed"))
show(f"exit code {exit_when_killed}, {printed_when_killed} characters printed")


# %% limited
def limited():
    # region limited_lines
    import resource

    # As `ulimit -v` does: a request fails, and says so.
    gib = 2**30
    resource.setrlimit(resource.RLIMIT_AS, (8 * gib, 8 * gib))
    torch.empty(10 * gib, dtype=torch.uint8)
    # endregion


exit_when_limited = ended(process("limited", limited))[0]
limited_text = printed(folder / "limited").splitlines()[-1]
show(f"exit code {exit_when_limited}", limited_text)


# %% rank_killed
def rank_killed(rank):
    total = torch.ones(2)
    distributed.all_reduce(total)
    # region rank_killed_lines
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    distributed.all_reduce(total)
    # endregion


killed_codes, killed_texts = on_two_ranks(rank_killed)
show(*(f"rank {n}: exit code {code}" for n, code in enumerate(killed_codes)))
show(killed_texts[0].splitlines()[-1])


# %% other_shape
def other_shape(rank):
    # region other_shape_lines
    # The last batch of one process is larger.
    total = torch.ones(1000 * (rank + 1))
    distributed.all_reduce(total)
    # endregion


shape_codes, shape_texts = on_two_ranks(other_shape)
show(*(f"rank {n}: exit code {code}" for n, code in enumerate(shape_codes)))
show(*(line.strip() for line in shape_texts[0].splitlines() if "EnforceNotMet" in line))
show(*(line.strip() for line in shape_texts[0].splitlines() if "what()" in line))


# %% lock_at_fork
def lock_at_fork():
    # region lock_at_fork_lines
    lock = threading.Lock()  # a logger's, a tokeniser's

    def write():
        with lock:
            time.sleep(1)

    def collate(texts):
        with lock:
            return texts

    threading.Thread(target=write).start()
    loader = DataLoader(
        range(8),
        num_workers=1,
        collate_fn=collate,
        timeout=timeout_seconds,
        multiprocessing_context="fork",
    )
    # endregion
    batches = iter(loader)
    time.sleep(0.5)
    (worker,) = fork.active_children()
    os.kill(worker.pid, signal.SIGUSR1)
    next(batches)


lock_codes = ended(process("lock_at_fork", lock_at_fork))
lock_lines = printed(folder / "lock_at_fork").splitlines()
show(lock_lines[-1])
print(*lock_lines[:3], sep="\n")


# %% openmp_at_fork
def openmp_at_fork():
    torch.set_num_threads(2)
    # region openmp_at_fork_lines
    x = torch.randn(512, 512)
    x.exp()  # OpenMP makes its threads

    # A fork has none of them, and waits for them.
    def work():
        return x.exp()

    child = fork.Process(target=work)
    child.start()
    child.join(timeout_seconds)
    # endregion
    assert child.is_alive()
    os.kill(child.pid, signal.SIGUSR1)
    time.sleep(0.5)
    child.kill()


openmp_codes = ended(process("openmp_at_fork", openmp_at_fork))
openmp_lines = printed(folder / "openmp_at_fork").splitlines()
print(*openmp_lines[:2], sep="\n")

# %% texts
fixed_parts = {
    "other_size": ["Received data size doesn't match expected size"],
    "loader_timed_out": ["DataLoader timed out after"],
}

# %% checks
assert fixed_parts["other_size"][0] in shape_texts[shape_codes.index(-6)]
assert fixed_parts["loader_timed_out"][0] in lock_lines[-1]
assert (exit_when_killed, printed_when_killed) == (-9, 0)
assert exit_when_limited == 1
assert "DefaultCPUAllocator: can't allocate memory" in limited_text
# The process that is left blames the connection, and names no rank.
assert killed_codes == [1, -9]
assert re.search(
    r"RuntimeError: (Connection closed|Read error|Write error)", killed_texts[0]
)
assert not killed_texts[1]
assert sorted(shape_codes) == [-6, 1]
assert "gloo::EnforceNotMet" in shape_texts[shape_codes.index(-6)]
assert lock_codes == [1]
assert (
    lock_lines[-1]
    == f"RuntimeError: DataLoader timed out after {timeout_seconds} seconds"
)
assert lock_lines[1].endswith("in collate")
assert openmp_codes == [0]
assert openmp_lines[1].endswith("in work")
