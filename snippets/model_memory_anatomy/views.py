"""What the tensors hold against what the system charges, with glibc set in three ways."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23"]
#
# [tool.benchbook]
# # What glibc does with freed memory; a GPU's own views: nvml.py.
# needs = ["cpu"]
# worth = 4
# timeout = 600
# repeats = 3
# [tool.benchbook.metrics]
# tensors_peak = { unit = "B", memory = "device" }
# tensors_end = { unit = "B", memory = "device" }
# system_peak = { unit = "B", better = "lower" }
# system_end = { unit = "B", better = "lower" }
# peak_ratio = { unit = "1", better = "lower" }
# end_ratio = { unit = "1", better = "lower" }
# [[tool.benchbook.matrix]]
# malloc = "default"
# [[tool.benchbook.matrix]]
# malloc = "return"
# environment = { MALLOC_MMAP_THRESHOLD_ = "131072", MALLOC_TRIM_THRESHOLD_ = "131072" }
# [[tool.benchbook.matrix]]
# malloc = "keep"
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.smallest]
# layers = 2
# sequence_length = 128
# [tool.benchbook.work]
# host_values = "32.8e6 + 12.6e6 * layers"
# fp32 = "6 * steps * sequence_length * layers * (12.6e6 + 2048 * sequence_length)"
# seconds = 0.5
# ///

# %% parameters
malloc = "default"  # "return" what is freed at once, or "keep" it; by the environment
layers = 24
sequence_length = 512
steps = 2

# %% setup
import torch
from transformers import BertConfig, BertForSequenceClassification

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(0)
config = BertConfig(  # BERT-large, with random weights
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
)
token_ids = torch.randint(0, config.vocab_size, (1, sequence_length)).to(device)
labels = torch.tensor([1]).to(device)

# %% system
from pathlib import Path


def charged(field="VmRSS"):
    """What the system charges: device memory on an accelerator, else process memory."""
    if device.type != "cpu":
        free, total = torch.accelerator.get_memory_info()
        return total - free
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


# %% start
from torch.profiler import ProfilerActivity, profile

before = charged()
events = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
if device.type == "cpu":  # its allocator counts nothing: the profiler does
    events.start()
else:
    torch.accelerator.reset_peak_memory_stats()

# %% train
model = BertForSequenceClassification(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
for _ in range(steps):
    loss = model(token_ids, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
system_end = charged() - before
system_peak = charged("VmHWM") - before  # an accelerator's cache keeps all it ever took

# %% tensors
if device.type == "cpu":
    events.stop()
    tensors_peak = tensors_end = 0
    changes = events.profiler.kineto_results.events()
    for event in sorted(changes, key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            tensors_end += event.nbytes()
            tensors_peak = max(tensors_peak, tensors_end)
else:
    tensors_peak = torch.accelerator.max_memory_allocated()
    tensors_end = torch.accelerator.memory_allocated()

# %% compare
peak_ratio = system_peak / tensors_peak
end_ratio = system_end / tensors_end
for when, tensors, system in (
    ("peak", tensors_peak, system_peak),
    ("end", tensors_end, system_end),
):
    print(f"{when:4}: tensors {tensors / 2**20:7.1f} MiB", end=", ")
    print(f"system {system / 2**20:7.1f} MiB")

# %% checks
import math
import os

parameter_count = sum(weight.numel() for weight in model.parameters())
assert parameter_count == 32_834_562 + layers * 12_596_224  # as computed by hand
assert loss.device.type == device.type and math.isfinite(loss.item())
held = 12 * parameter_count  # weights and AdamW's states
assert math.isclose(tensors_end, held, rel_tol=0.01)
assert tensors_peak > held
if device.type == "cpu":
    settings = {"return": "MALLOC_MMAP_THRESHOLD_", "keep": "MALLOC_MMAP_MAX_"}
    found = {way for way, name in settings.items() if name in os.environ}
    assert found == {malloc} - {"default"}, "set the environment as the head says"
    assert peak_ratio > 0.99 and end_ratio > 0.99
    if malloc == "return":
        assert end_ratio < 1.1
    if malloc == "keep":
        assert system_end > 0.95 * system_peak
