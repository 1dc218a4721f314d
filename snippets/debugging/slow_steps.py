"""Which of five waits makes a step slow: each planted and mended, and two of them together."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 5
# traces = ["trace"]
# earlier_checks = ["sha256:5ae61dd6d6c78506f3ef750c2174168ce0fbc6bfb0c4e8b95994748b48a265b6"]
# [tool.benchbook.environment]
# MALLOC_MMAP_MAX_ = "0"
# MALLOC_TRIM_THRESHOLD_ = "100000000000"
# KINETO_LOG_LEVEL = "6"
# OMP_NUM_THREADS = "1"
# [tool.benchbook.metrics]
# layer_count = { unit = "count" }
# batch_samples = { unit = "samples" }
# sample_tokens = { unit = "tokens" }
# step_seconds = { unit = "s", better = "lower" }
# data = { unit = "1" }
# host = { unit = "1" }
# kernels = { unit = "1" }
# communication = { unit = "1" }
# memory = { unit = "1" }
# [[tool.benchbook.matrix]]
# cause = "data"
# [[tool.benchbook.matrix]]
# cause = "data"
# mended = true
# [[tool.benchbook.matrix]]
# cause = "host"
# [[tool.benchbook.matrix]]
# cause = "host"
# mended = true
# [[tool.benchbook.matrix]]
# cause = "kernels"
# [[tool.benchbook.matrix]]
# cause = "kernels"
# mended = true
# [[tool.benchbook.matrix]]
# cause = "communication"
# ranks = 2
# [[tool.benchbook.matrix]]
# cause = "communication"
# mended = true
# ranks = 2
# [[tool.benchbook.matrix]]
# cause = "memory"
# # The C library's own values.
# environment = { MALLOC_MMAP_MAX_ = "65536", MALLOC_TRIM_THRESHOLD_ = "131072" }
# [[tool.benchbook.matrix]]
# cause = "memory"
# mended = true
# [[tool.benchbook.matrix]]
# cause = "data_and_host"
# [[tool.benchbook.matrix]]
# cause = "data_and_host"
# mended = true
# [tool.benchbook.smallest]
# batch_size = 8
# layers = 1
# words_per_text = 100
# timed_steps = 1
# profiled_steps = 1
# ///

# %% parameters
cause = "data"  # the wait that is planted
mended = False
batch_size = 16
sequence_length = 64
hidden_size = 128
layers = 4
vocab_size = 1024
words_per_text = 1000
warmup_steps = 2
timed_steps = 10
profiled_steps = 5
pictured_steps = 2
seed = 42

# %% named_waits
from resource import RUSAGE_THREAD, getrusage
from timeit import timeit

from torch.profiler import profile

WAITS = {  # how the names of their events begin
    "data": ("data", "enumerate(DataLoader)"),
    "kernels": ("aten::", "## Call CompiledFxGraph"),
    "communication": ("gloo:", "nccl"),
    "memory": ("cudaMalloc", "cudaFree"),
}


def union(spans):  # seconds, overlaps counted once
    total = last = 0
    for span in sorted(spans, key=lambda one: one.start):
        total += max(0, span.end - max(span.start, last))
        last = max(last, span.end)
    return total / 1e6


def belongs(e, wait, gpu):
    if not gpu or wait != "kernels":
        return e.name.startswith(WAITS[wait])
    own = not e.is_user_annotation and "nccl" not in e.name
    return own and e.device_type.value > 0


def named_waits(step, timed=10, profiled=5):
    u, s = getrusage(RUSAGE_THREAD)[:2]
    timeit(step, "gc.enable()", number=timed)
    user, system = getrusage(RUSAGE_THREAD)[:2]
    with profile() as run:
        wall = timeit(step, "gc.enable()", number=profiled)
    found, spans, events = {}, [], run.events()
    gpu = any(e.device_type.value > 0 for e in events)
    for wait in ["kernels", *WAITS] if gpu else WAITS:
        hits = [e for e in events if belongs(e, wait, gpu)]
        spans += [e.time_range for e in hits]
        gained = union(spans) / wall - sum(found.values())
        found.setdefault(wait, gained)
    if not gpu:  # the system's part: page faults above all
        busy = 1 - found["data"] - found["communication"]
        lost = busy * (system - s) / (user - u + system - s)
        found["memory"] = min(lost, found["kernels"])
        found["kernels"] -= found["memory"]
    found["host"] = 1 - sum(found.values())
    return found, run


# %% setup
import itertools
import math
import random
import string
import tempfile
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import record_function
from torch.utils.data import DataLoader
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

planted = cause.split("_and_")
set_seed(seed)
if "host" in planted:
    vocab_size = 1536
if "memory" in planted:  # scores of many words, made anew in each step
    vocab_size, hidden_size, warmup_steps = 65536, 16, 6
if "communication" in planted:  # many weights, few tokens
    vocab_size, sequence_length, layers = 16384, 16, 2
if "kernels" in planted:  # wide layers
    hidden_size = 256
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
).train()
accumulation_steps = 1
if "communication" in planted:
    accumulation_steps, pictured_steps = 8, 1
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

layer_count, batch_samples, sample_tokens = layers, batch_size, sequence_length

# %% texts
letters = string.ascii_lowercase
pairs = list(itertools.product(letters, repeat=2))
merges = {pair: rank for rank, pair in enumerate(random.sample(pairs, 500))}
ids = {piece: n for n, piece in enumerate([*letters, *map("".join, merges)])}
texts = [
    " ".join("".join(random.choices(letters, k=8)) for _ in range(words_per_text))
    for _ in range(4 * batch_size)
]


def tokenise(text):
    """Byte-pair encoding: of neighbours, the pair that was merged first."""
    found = []
    for word in text.split():
        pieces = list(word)
        while True:
            ranks = [merges.get(pair, math.inf) for pair in itertools.pairwise(pieces)]
            if not ranks or min(ranks) == math.inf:
                break
            at = ranks.index(min(ranks))
            pieces[at : at + 2] = ["".join(pieces[at : at + 2])]
        found += [ids[piece] for piece in pieces]
    return torch.tensor(found[:sequence_length])


def collate(some):
    return torch.stack([tokenise(one) if isinstance(one, str) else one for one in some])


# %% loader
if "data" in planted and not mended:
    # region data_planted
    # Each text is tokenised when it is asked for.
    dataset = texts
    # endregion
else:
    # region data_mended
    # All are tokenised once, before training.
    dataset = [tokenise(text) for text in texts]
    # endregion
loader = DataLoader(
    dataset * 12, batch_size=batch_size // accumulation_steps, collate_fn=collate
)

# %% forward
if "kernels" in planted and mended:

    def forward(batch):
        # region kernels_mended
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(input_ids=batch, labels=batch)
        # endregion

else:

    def forward(batch):
        return model(input_ids=batch, labels=batch)


# %% metric
if "host" in planted and not mended:

    def count_right(logits, batch):
        # region host_planted
        right = 0
        for sample, labels in zip(logits.tolist(), batch.tolist()):
            for scores, label in zip(sample, labels):
                best = scores.index(max(scores))
                right += best == label
        # endregion
        return right

else:

    def count_right(logits, batch):
        # region host_mended
        right = (logits.argmax(-1) == batch).sum().item()
        # endregion
        return right


# %% backward
if "communication" in planted and mended:

    def backward(micro_batches):
        # region communication_mended
        # Only the last backward pass exchanges gradients.
        with model.no_sync():
            for batch in micro_batches[:-1]:
                forward(batch).loss.backward()
        output = forward(micro_batches[-1])
        output.loss.backward()
        # endregion
        return output

else:

    def backward(micro_batches):
        # region communication_planted
        for batch in micro_batches:
            output = forward(batch)
            output.loss.backward()
        # endregion
        return output


# %% steps
def step():
    with record_function("batch"):
        micro_batches = [next(batches) for _ in range(accumulation_steps)]
    with record_function("model"):
        output = backward(micro_batches)
    right = None
    if "host" in planted:
        with record_function("metric"):
            right = count_right(output.logits.detach(), micro_batches[-1])
    with record_function("update"):
        optimizer.step()
        optimizer.zero_grad()
    told.append((output.loss.item(), right))


batches = iter(loader)
told = []
for _ in range(warmup_steps):
    step()

# %% waits
step_seconds = timeit(step, "gc.enable()", number=timed_steps) / timed_steps
if (timed_steps, profiled_steps) == named_waits.__defaults__:
    # region usage
    shares, run = named_waits(step)
    for wait, share in shares.items():
        slow = wait != "kernels" and share >= 0.2
        print(f"{share:6.1%} {wait}", "<- slow" if slow else "")
    # endregion
else:
    shares, _ = named_waits(step, timed_steps, profiled_steps)

# %% shares
waits = ("data", "host", "kernels", "communication", "memory")
data, host, kernels, communication, memory = (shares[wait] for wait in waits)
slow = {wait for wait in waits if wait != "kernels" and shares[wait] >= 0.2}

# %% picture
with profile() as run:
    for _ in range(pictured_steps):
        step()
trace = Path(tempfile.mkdtemp()) / "trace.json"
run.export_chrome_trace(str(trace))

# %% checks
losses = [loss for loss, _ in told]
assert all(math.isfinite(loss) for loss in losses)
assert losses[-1] < losses[0]
if timed_steps > 1:  # one step's shares are those of whatever else the machine does
    if mended:  # what takes the most time is arithmetic
        assert max(waits, key=shares.get) == "kernels", shares
    elif cause == "kernels":
        assert not slow, shares
    else:  # what is planted is named, and nothing else
        assert slow == set(planted), shares
assert math.isclose(sum(shares.values()), 1)
assert min(shares.values()) > -0.01, shares
rights = [right for _, right in told if right is not None]
assert bool(rights) == ("host" in planted)
assert all(0 <= right <= batch_size * sequence_length for right in rights)
# Tokenised before or in time, a text is the same tokens.
assert collate(texts[:2]).equal(collate([tokenise(text) for text in texts[:2]]))
assert model.training
if "communication" in planted:
    # Both processes took the same steps.
    weight = next(model.parameters()).detach().clone()
    distributed.broadcast(weight, src=0)
    assert weight.equal(next(model.parameters()))
    distributed.destroy_process_group()
