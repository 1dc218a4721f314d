"""What `zero_grad(set_to_none=...)` does to the time and the peak of a training step."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 300
# repeats = 8
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# step_seconds = { unit = "s", better = "lower" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# gradient_bytes = { unit = "B", better = "lower", memory = "device" }
# [tool.benchbook.matrix]
# set_to_none = [true, false]
# [tool.benchbook.on.accelerator]
# layers = 12
# hidden_size = 1024
# heads = 16
# sequence_length = 384
# timed_steps = 3
# repeats = 2
# [tool.benchbook.smallest]
# layers = 1
# hidden_size = 96
# batch_size = 2
# sequence_length = 16
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (3 + warmup_steps + timed_steps))
# '''
# seconds = 0.3
# ///

# %% parameters
set_to_none = True
layers = 4
hidden_size = 256
heads = 8
batch_size = 16
sequence_length = 128
warmup_steps = 1
timed_steps = 2

# %% setup
import time
from itertools import accumulate
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import BertConfig, BertForSequenceClassification, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(0)
config = BertConfig(
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * hidden_size,
)
with device:
    model = BertForSequenceClassification(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length), device=device)
labels = torch.arange(batch_size, device=device) % 2
batches = [{"input_ids": ids, "labels": labels}]


# %% with_pytorch
def step():
    if set_to_none:
        # region pytorch
        for batch in batches:
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            # Frees the gradients until the next backward pass.
            optimizer.zero_grad()
        # endregion
    else:
        # region pytorch_zeros
        for batch in batches:
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            # Keeps the gradients, and fills them with zeros.
            optimizer.zero_grad(set_to_none=False)
        # endregion


# %% time
def timed():
    """The seconds of a step."""
    begin = time.perf_counter()
    step()
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - begin


seconds = [timed() for _ in range(warmup_steps + timed_steps)]
step_seconds = median(seconds[warmup_steps:])
print(f"{step_seconds:.3f} s per step")

# %% memory
states = [state for each in optimizer.state.values() for state in each.values()]
gradients = [w.grad for w in model.parameters() if w.grad is not None]
gradient_bytes = sum(gradient.nbytes for gradient in gradients)
if device.type == "cpu":
    tensors = [*model.parameters(), *model.buffers(), *states, *gradients, ids, labels]
    held = sum(tensor.nbytes for tensor in tensors)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        step()
    events = watched.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    peak_memory = held + max(accumulate(change.nbytes() for change in changes))
else:
    torch.accelerator.reset_peak_memory_stats()
    step()
    peak_memory = torch.accelerator.max_memory_allocated()
print(f"gradients held between steps: {gradient_bytes / 2**20:.1f} MiB")
print(f"peak: {peak_memory / 2**20:.1f} MiB")

# %% checks
import copy

weight_bytes = sum(weight.nbytes for weight in model.parameters())
assert gradient_bytes == (0 if set_to_none else weight_bytes)
assert peak_memory > 3 * weight_bytes  # those, and two states for each
assert {weight.device.type for weight in model.parameters()} == {device.type}
assert all(not gradient.any() for gradient in gradients)

# The next gradient is the same, with what was zeroed or with nothing to add to.
other = copy.deepcopy(model)
for each in (model, other):
    each.eval()  # without dropout
optimizer.zero_grad(set_to_none=set_to_none)
other.zero_grad(set_to_none=not set_to_none)
for each in (model, other):
    each(ids, labels=labels).loss.backward()
for mine, theirs in zip(model.parameters(), other.parameters()):
    assert torch.allclose(mine.grad, theirs.grad, rtol=1e-4, atol=1e-6)

# A weight that takes no part in a step moves on where its gradient is zero, not none.
used, unused = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
adamw = torch.optim.AdamW([used, unused], lr=0.1, weight_decay=0.0)
(used + unused).backward()
adamw.step()
adamw.zero_grad(set_to_none=set_to_none)
before = unused.item()
(1 * used).backward()
adamw.step()
assert (unused.item() == before) == set_to_none
