"""Throughput and peak memory of training over the sequence length, at equal tokens per batch."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 300
# repeats = 8
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# tokens_per_second = { unit = "tokens/s", better = "higher" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# [tool.benchbook.matrix]
# sequence_length = [128, 32, 256, 512]
# [tool.benchbook.on.accelerator]
# hidden_size = 1024
# layers = 8
# heads = 16
# intermediate_size = 4096
# batch_tokens = 4096
# timed_steps = 3
# repeats = 2
# [tool.benchbook.smallest]
# layers = 1
# batch_tokens = 512
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_tokens * (timed_steps + 2)
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length))
# '''
# seconds = 0.2
# ///

# %% parameters
sequence_length = 128
batch_tokens = 2048
hidden_size = 256
layers = 4
heads = 8
intermediate_size = 1024
vocab_size = 30522
timed_steps = 2
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
batch_size = batch_tokens // sequence_length
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
begin = time.perf_counter()
for _ in range(timed_steps):
    loss = step()
losses.append(loss.item())  # waits for the device
tokens_per_second = timed_steps * batch_tokens / (time.perf_counter() - begin)
print(f"{batch_size} x {sequence_length}: {tokens_per_second:.0f} tokens/s")
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
assert ids.numel() == batch_tokens and tokens_per_second > 0
# Weights, two moments, and at the least the input of each layer.
kept = 4 * batch_size * sequence_length * hidden_size * layers
assert peak_memory > 12 * model.num_parameters() + kept
