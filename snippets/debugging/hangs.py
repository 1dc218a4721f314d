"""What two processes are told when they wait for each other in vain, and what names the one that is missing."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# ranks = 2
# timeout = 300
# repeats = 2
# [tool.benchbook.metrics]
# cases = { unit = "count" }
# cases_that_name_a_rank = { unit = "count", better = "higher" }
# [[tool.benchbook.matrix]]
# debug = "OFF"
# [tool.benchbook.matrix.environment]
# TORCH_DISTRIBUTED_DEBUG = "OFF"
# TORCH_FR_BUFFER_SIZE = "2000"
# TORCH_CPP_LOG_LEVEL = "FATAL"
# [[tool.benchbook.matrix]]
# debug = "DETAIL"
# [tool.benchbook.matrix.environment]
# TORCH_DISTRIBUTED_DEBUG = "DETAIL"
# TORCH_FR_BUFFER_SIZE = "2000"
# TORCH_CPP_LOG_LEVEL = "FATAL"
# [tool.benchbook.smallest]
# timeout_seconds = 2
# ///

# %% parameters
debug = "OFF"  # of TORCH_DISTRIBUTED_DEBUG
timeout_seconds = 3

# %% setup
import re
from contextlib import contextmanager
from datetime import timedelta
from textwrap import fill

import torch
from torch import distributed
from torch.distributed.distributed_c10d import _get_default_store

# Only the groups below are short of time.
distributed.init_process_group("gloo", timeout=timedelta(seconds=120))
rank = distributed.get_rank()
store = _get_default_store()
told = {}
VARIES = {  # places in torch's source, addresses
    r"\[[^\[\]]*\.cc:\d+\] ": "",
    r"\[[\d.a-f:]+\]:\d+": "[...]",
}


def new_group():
    return distributed.new_group(timeout=timedelta(seconds=timeout_seconds))


@contextmanager
def provoked(name):
    """Let both ranks tell what they were told by what runs inside."""
    text = ""
    try:
        yield
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    for varying, instead in VARIES.items():
        text = re.sub(varying, instead, text)
    store.set(f"{name} {rank}", text or "goes on")
    told[name] = [store.get(f"{name} {each}").decode() for each in range(2)]
    for each, text in enumerate(told[name]):
        for line in f"rank {each}: {text}".splitlines():
            print(fill(line, 88, break_long_words=False, subsequent_indent="  "))


# %% rank_missing
group, total = new_group(), torch.ones(2)
with provoked("rank_missing"):
    # region rank_missing_lines
    if rank == 0:
        distributed.all_reduce(total, group=group)
    # endregion

# %% other_order
group, total, loss = new_group(), torch.ones(2), torch.ones(2)
with provoked("other_order"):
    # region other_order_lines
    if rank == 0:
        distributed.all_reduce(total, group=group)
        distributed.broadcast(loss, src=0, group=group)
    else:
        distributed.broadcast(loss, src=0, group=group)
        distributed.all_reduce(total, group=group)
    # endregion

# %% saved_on_one_rank
group = new_group()


def save_checkpoint():
    distributed.barrier(group=group)  # until all have their part ready


with provoked("saved_on_one_rank"):
    # region saved_on_one_rank_lines
    if rank == 0:
        save_checkpoint()  # calls barrier() inside
    # endregion

# %% other_shape
if debug == "DETAIL":  # without it, a process aborts
    group = new_group()
    with provoked("other_shape"):
        # region other_shape_lines
        total = torch.ones(2 + rank)
        distributed.all_reduce(total, group=group)
        # endregion

# %% monitored_barrier
group = new_group()
with provoked("monitored_barrier"):
    # region monitored_barrier_lines
    if rank == 0:
        distributed.monitored_barrier(
            group=group,
            timeout=timedelta(seconds=timeout_seconds),
            wait_all_ranks=True,
        )
    # endregion

# %% flight_recorder
# region flight_recorder_lines
import pickle

from torch._C._distributed_c10d import _dump_fr_trace

recorded = pickle.loads(_dump_fr_trace())["entries"]
for entry in recorded:
    print(entry["profiling_name"], entry["state"])
# endregion

# %% summary
names = re.compile(r"[Rr]anks? \d")
# The barrier is a remedy, not a fault.
faults = [case for case in told if case != "monitored_barrier"]
naming = [case for case in faults if any(map(names.search, told[case]))]
cases, cases_that_name_a_rank = len(faults), len(naming)
print(f"{cases_that_name_a_rank} of {cases} name a rank: {', '.join(naming) or 'none'}")

# %% texts
fixed_parts = {
    "collective_timed_out": ["Timed out waiting", "for recv operation to complete"],
    "monitored_barrier": ["failed to pass monitoredBarrier in"],
    "collective_mismatch": ["Detected mismatch between collectives on ranks"],
}

# %% checks
provoked_in = {"monitored_barrier": "monitored_barrier"} | (
    {"collective_timed_out": "rank_missing"}
    if debug == "OFF"
    else {"collective_mismatch": "other_order"}
)
for name, case in provoked_in.items():
    parts = ".*".join(map(re.escape, fixed_parts[name]))
    assert re.search(parts, told[case][0]), (name, told[case][0])
waited = "RuntimeError: Timed out waiting"
assert naming == ([] if debug == "OFF" else faults)
assert "Ranks 1 failed to pass" in told["monitored_barrier"][0]
if debug == "OFF":
    for case in ("rank_missing", "other_order", "saved_on_one_rank"):
        assert told[case][0].startswith(waited), told[case]
    assert {entry["state"] for entry in recorded} == {"scheduled"}
else:
    for case in ("other_order", "other_shape"):
        assert all(
            "Detected mismatch between collectives" in text for text in told[case]
        )
    assert "Tensor shapes" in told["other_shape"][0]
    assert (
        "ALLREDUCE" in told["other_order"][0] and "BROADCAST" in told["other_order"][0]
    )
# The rank that does not take part is not told of it.
assert told["rank_missing"][1] == told["saved_on_one_rank"][1] == "goes on"
distributed.barrier()
distributed.destroy_process_group()
