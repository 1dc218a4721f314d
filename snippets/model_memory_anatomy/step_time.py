"""Where the time of a training step goes: forward, backward, optimizer, and groups of operations."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# worth = 3
# timeout = 300
# repeats = 8
# [tool.benchbook.metrics]
# forward_seconds = { unit = "s", better = "lower" }
# backward_seconds = { unit = "s", better = "lower" }
# optimizer_seconds = { unit = "s", better = "lower" }
# samples_per_second = { unit = "samples/s", better = "higher" }
# backward_to_forward = { unit = "1" }
# contraction_backward_to_forward = { unit = "1" }
# contraction_time_share = { unit = "1" }
# normalisation_time_share = { unit = "1" }
# elementwise_time_share = { unit = "1" }
# rest_time_share = { unit = "1" }
# random_number_share_of_forward = { unit = "1" }
# forward_page_faults = { unit = "count" }
# backward_page_faults = { unit = "count" }
# [[tool.benchbook.matrix]]
# dropout = 0.1
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [[tool.benchbook.matrix]]
# dropout = 0.0
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [[tool.benchbook.matrix]]
# dropout = 0.1
# malloc = "default"
# [tool.benchbook.on.accelerator]
# batch_size = 4
# sequence_length = 512
# timed_steps = 5
# repeats = 3
# [tool.benchbook.smallest]
# layers = 2
# batch_size = 1
# sequence_length = 32
# timed_steps = 2
# [tool.benchbook.work]
# host_values = "32.8e6 + 12.6e6 * layers"
# fp32 = '''
# (6 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  * (warmup_steps + timed_steps + 1))
# '''
# seconds = 2.5
# ///

# %% parameters
batch_size = 2
sequence_length = 256
dropout = 0.1
malloc = "keep"  # what the environment tells the C library to do with freed memory
layers = 24
warmup_steps = 2
timed_steps = 4
seed = 42

# %% setup
import math
import resource
import time
from itertools import pairwise
from statistics import median

import torch
from torch.profiler import profile
from transformers import BertConfig, BertForSequenceClassification, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(seed)
config = BertConfig(
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
    hidden_dropout_prob=dropout,
    attention_probs_dropout_prob=dropout,
    attn_implementation="eager",  # every operation of the attention by itself
)
model = BertForSequenceClassification(config).train().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length), device=device)
labels = torch.arange(batch_size, device=device) % 2


# %% step
def moment():
    """The time, once the device is done, and the page faults until then."""
    if device.type != "cpu":
        torch.accelerator.synchronize()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    return time.perf_counter(), faults


def step():
    moments = [moment()]
    loss = model(ids, labels=labels).loss
    moments.append(moment())
    loss.backward()
    moments.append(moment())
    optimizer.step()
    optimizer.zero_grad()
    moments.append(moment())
    losses.append(loss.item())
    return moments


# %% time
losses = []
for _ in range(warmup_steps):
    step()
steps = [step() for _ in range(timed_steps)]


def per_phase(quantity):
    """The median over the steps, for each phase between two moments."""
    phases = zip(*(pairwise(moments) for moments in steps))
    return [median(b[quantity] - a[quantity] for a, b in phase) for phase in phases]


forward_seconds, backward_seconds, optimizer_seconds = per_phase(0)
forward_page_faults, backward_page_faults, optimizer_page_faults = per_phase(1)
backward_to_forward = backward_seconds / forward_seconds
elapsed = steps[-1][-1][0] - steps[0][0][0]
samples_per_second = timed_steps * batch_size / elapsed
print(f"forward   {forward_seconds:6.3f} s, {forward_page_faults:7.0f} page faults")
print(f"backward  {backward_seconds:6.3f} s, {backward_page_faults:7.0f} page faults")
print(f"optimizer {optimizer_seconds:6.3f} s, {optimizer_page_faults:7.0f} page faults")
print(f"backward to forward: {backward_to_forward:.2f}")

# %% profile
with profile() as forward:
    loss = model(ids, labels=labels).loss
    moment()
with profile() as backward:
    loss.backward()
    moment()

# %% groups
contraction = {"addmm", "mm", "bmm"}
normalisation = {"native_layer_norm", "_softmax"}
normalisation |= {"native_layer_norm_backward", "_softmax_backward_data"}
random_number = {"bernoulli_", "native_dropout"}  # the latter on an accelerator
elementwise = {"add", "add_", "mul", "div_", "sum", "gelu", "gelu_backward"}
elementwise |= {"native_dropout_backward", "embedding_dense_backward"}
elementwise |= random_number


def self_times(profiled):
    """Of each operation, without what it calls."""
    kind = "cpu" if device.type == "cpu" else "device"
    events = [e for e in profiled.key_averages() if e.key.startswith("aten::")]
    return {
        e.key.removeprefix("aten::"): getattr(e, f"self_{kind}_time_total")
        for e in events
    }


def total(times, group=None):
    return sum(times[name] for name in times if group is None or name in group)


forward_times, backward_times = self_times(forward), self_times(backward)
rest = {*forward_times, *backward_times} - contraction - normalisation - elementwise


# %% shares
def share(group):
    both = total(forward_times, group) + total(backward_times, group)
    return both / (total(forward_times) + total(backward_times))


contraction_time_share = share(contraction)
normalisation_time_share = share(normalisation)
elementwise_time_share = share(elementwise)
rest_time_share = share(rest)
contraction_time = total(forward_times, contraction)
contraction_backward_to_forward = total(backward_times, contraction) / contraction_time
random_numbers = total(forward_times, random_number)
random_number_share_of_forward = random_numbers / total(forward_times)
print(f"contractions:   {contraction_time_share:6.1%} of the time")
print(f"normalisations: {normalisation_time_share:6.1%}")
print(f"element-wise:   {elementwise_time_share:6.1%}")
print(f"rest:           {rest_time_share:6.1%}")
print(f"contractions alone, backward to forward: {contraction_backward_to_forward:.2f}")
print(f"random numbers: {random_number_share_of_forward:.1%} of the forward pass")

# %% checks
from torch.utils.flop_counter import FlopCounterMode

expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert loss.device.type == expected.type, "this ran on the CPU beside an accelerator"
assert len(losses) == warmup_steps + timed_steps
assert all(math.isfinite(loss) for loss in losses)
shares = [contraction_time_share, normalisation_time_share, elementwise_time_share]
assert abs(sum(shares) + rest_time_share - 1) < 1e-9
assert min(shares) > 0
assert (random_number_share_of_forward > 0) == (dropout > 0)
with FlopCounterMode(display=False) as forward_count:
    loss = model(ids[:1, :8], labels=labels[:1]).loss
with FlopCounterMode(display=False) as backward_count:
    loss.backward()
assert backward_count.get_total_flops() == 2 * forward_count.get_total_flops()
