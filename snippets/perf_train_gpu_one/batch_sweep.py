"""Throughput and peak memory of training over the batch size."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 3
# timeout = 300
# repeats = 8
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# samples_per_second = { unit = "samples/s", better = "higher" }
# tokens_per_second = { unit = "tokens/s", better = "higher" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# [tool.benchbook.matrix]
# batch_size = [16, 1, 4, 8, 32, 64]
# [tool.benchbook.on.accelerator]
# hidden_size = 1024
# layers = 12
# heads = 16
# intermediate_size = 4096
# timed_samples = 64
# repeats = 3
# [tool.benchbook.smallest]
# layers = 1
# sequence_length = 16
# timed_samples = 1
# [tool.benchbook.work]
# fp32 = '''
# (6 * sequence_length * (max(timed_samples, batch_size) + 2 * batch_size)
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length))
# '''
# # Kernels of a small batch take longer to launch than to run.
# seconds = '''
# 0.2 + (timed_samples / batch_size + 2) * max(0, 0.015 - 35e-6 * batch_size * sequence_length)
# '''
# ///

# %% parameters
batch_size = 16
sequence_length = 128
hidden_size = 256
layers = 4
heads = 8
intermediate_size = 1024
vocab_size = 30522
timed_samples = 32  # at least one batch of them
seed = 42

# %% setup
import time
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import BertConfig, BertForSequenceClassification, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(seed)
config = BertConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=intermediate_size,
)
with device:
    model = BertForSequenceClassification(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
ids = torch.randint(0, vocab_size, (batch_size, sequence_length), device=device)
labels = torch.arange(batch_size, device=device) % 2


# %% step
def step():
    loss = model(ids, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss


# %% time
losses = [step().item()]  # warms up, and makes the optimizer states
timed_steps = max(1, timed_samples // batch_size)
begin = time.perf_counter()
for _ in range(timed_steps):
    loss = step()
losses.append(loss.item())  # waits for the device
samples_per_second = timed_steps * batch_size / (time.perf_counter() - begin)
tokens_per_second = samples_per_second * sequence_length
print(f"{samples_per_second:.1f} samples/s, {tokens_per_second:.0f} tokens/s")
del loss

# %% peak
if device.type == "cpu":
    states = [state for each in optimizer.state.values() for state in each.values()]
    held = sum(tensor.nbytes for tensor in [*model.parameters(), *states, ids, labels])
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        step()
    events = profiled.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    peak_memory = held + max(accumulate(event.nbytes() for event in changes))
else:
    torch.accelerator.reset_peak_memory_stats()
    step()
    peak_memory = torch.accelerator.max_memory_allocated()
print(f"peak: {peak_memory / 2**20:.0f} MiB")

# %% checks
import math

expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert model.device.type == expected.type, "this ran on the CPU beside an accelerator"
assert len(losses) == 2 and all(math.isfinite(loss) for loss in losses)
assert {weight.dtype for weight in model.parameters()} == {torch.float32}
assert config._attn_implementation == "sdpa"
assert optimizer.param_groups[0]["fused"]
assert samples_per_second > 0
# Weights, two moments, and at the least the input of each layer.
kept = 4 * batch_size * sequence_length * hidden_size * layers
assert peak_memory > 12 * model.num_parameters() + kept
