"""What `experts_implementation` does to the memory and time of training a mixture of experts.

transformers 5.23 takes "grouped_mm" where a model's experts can be dispatched, and "eager" elsewhere
(`PreTrainedModel.get_correct_experts_implementation`); all three run on a CPU. They differ in what they do with the
weights of all experts, one tensor for each layer (transformers/integrations/moe.py). "grouped_mm" sorts the tokens by
expert and multiplies with the weights in place. "batched_mm" copies the weights of an expert for each token that chose
it, and keeps the copies for the backward pass. "eager" goes through the experts one after another, and in the backward
pass each gives a gradient as large as the weights of all (`select_backward`).
"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# worth = 1
# timeout = 300
# repeats = 8
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# step_seconds = { unit = "s", better = "lower" }
# tokens_per_second = { unit = "tokens/s", better = "higher" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# experts_implementation = ["eager", "batched_mm", "grouped_mm"]
# [tool.benchbook.on.accelerator]
# hidden_size = 2048
# expert_size = 768
# experts_per_token = 4
# heads = 32
# kv_heads = 4
# dtype = "bfloat16"
# timed_steps = 4
# repeats = 2
# [tool.benchbook.smallest]
# layers = 1
# experts = 4
# batch_size = 1
# sequence_length = 16
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# ((6 * (warmup_steps + timed_steps + 2) * batch_size * sequence_length
#   * (vocab_size * hidden_size + layers
#      * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * experts_per_token * hidden_size * expert_size)))
#  if dtype == 'float32' else 0)
# '''
# bf16 = '''
# ((6 * (warmup_steps + timed_steps + 2) * batch_size * sequence_length
#   * (vocab_size * hidden_size + layers
#      * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * experts_per_token * hidden_size * expert_size)))
#  if dtype == 'bfloat16' else 0)
# '''
# bytes = '''
# ((warmup_steps + timed_steps + 2) * (4 if dtype == 'float32' else 2) * layers * 3 * hidden_size * expert_size
#  * {'eager': 3 * experts**2, 'batched_mm': 8 * batch_size * sequence_length * experts_per_token,
#     'grouped_mm': 10 * experts}[experts_implementation])
# '''
# seconds = "(0.7 if experts_implementation == 'grouped_mm' else 0.2)"
# ///

# %% parameters
experts_implementation = "grouped_mm"
hidden_size = 128
layers = 2
heads = 4
kv_heads = 2
expert_size = 128
experts = 16
experts_per_token = 2
vocab_size = 2048
batch_size = 2
sequence_length = 128
dtype = "float32"
warmup_steps = 1
timed_steps = 5

# %% setup
import tempfile
import time
from collections import Counter
from itertools import accumulate
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, Qwen3MoeConfig, set_seed
from transformers.utils.logging import disable_progress_bar

disable_progress_bar()
device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(0)
config = Qwen3MoeConfig(  # random weights
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=kv_heads,
    head_dim=hidden_size // heads,
    moe_intermediate_size=expert_size,
    num_experts=experts,
    num_experts_per_tok=experts_per_token,
    dtype=dtype,
)
with device:
    model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    ids = torch.randint(0, vocab_size, (batch_size, sequence_length))
default = model.get_experts_implementation()[""]

# %% choose
if experts_implementation == "eager":
    # region choose_eager
    # Every expert in turn, without any special kernel.
    model.set_experts_implementation("eager")
    # endregion
elif experts_implementation == "batched_mm":
    # region choose_batched_mm
    # Copies an expert's weights for each of its tokens.
    model.set_experts_implementation("batched_mm")
    # endregion
else:
    folder = tempfile.TemporaryDirectory()
    checkpoint = folder.name
    model.save_pretrained(checkpoint)
    # region load_grouped_mm
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        checkpoint,
        experts_implementation="grouped_mm",
    )
    # Or later, for a model that supports it:
    model.set_experts_implementation("grouped_mm")
    # endregion
    model.to(device)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


# %% gradients
def gradients_with(implementation):
    """The loss, and the gradients of one batch, before any step."""
    model.set_experts_implementation(implementation)
    loss = model(ids, labels=ids).loss
    loss.backward()
    gradients = [weight.grad for weight in model.parameters()]
    model.zero_grad()
    return loss.item(), gradients


eager_loss, expected = gradients_with("eager")
loss, found = gradients_with(experts_implementation)
differences = [
    (one.float() - other.float()).norm() for one, other in zip(found, expected)
]
norms = [gradient.float().norm() for gradient in expected]
difference, norm = (torch.stack(each).norm() for each in (differences, norms))
gradient_difference = (difference / norm).item()
del expected, found
print(f"gradients differ from those of eager by {gradient_difference:.1e}")


# %% pytorch
def step():
    loss = model(ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def timed():
    """The seconds of a step."""
    begin = time.perf_counter()
    step()
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - begin


# %% time
seconds = [timed() for _ in range(warmup_steps + timed_steps)]
step_seconds = median(seconds[warmup_steps:])
tokens_per_second = ids.numel() / step_seconds
print(f"{step_seconds * 1000:.0f} ms per step")

# %% memory
states = [state for each in optimizer.state.values() for state in each.values()]
held = sum(
    tensor.nbytes for tensor in [*model.parameters(), *model.buffers(), *states, ids]
)
if device.type != "cpu":
    torch.accelerator.reset_peak_memory_stats()
with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
    step()
events = profiled.profiler.kineto_results.events()
if device.type == "cpu":
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    peak_memory = held + max(accumulate(change.nbytes() for change in changes))
else:
    peak_memory = torch.accelerator.max_memory_allocated()
print(f"peak: {peak_memory / 2**20:.1f} MiB")

# %% checks
import math

assert {weight.device.type for weight in model.parameters()} == {device.type}
assert {weight.dtype for weight in model.parameters()} == {getattr(torch, dtype)}
assert default == "grouped_mm"
assert model.config._experts_implementation == experts_implementation
assert model.get_experts_implementation() == {"": experts_implementation}

# What ran: one product of groups, one of a batch, or many small ones.
ran = Counter(event.name() for event in events)
assert (ran["aten::_grouped_mm"] > 0) == (experts_implementation == "grouped_mm")
assert (ran["aten::select_backward"] > 0) == (experts_implementation == "eager")
assert (ran["aten::bmm"] >= 6 * layers) == (experts_implementation == "batched_mm")

# In bf16, a token between two experts may go to either.
exact = dtype == "float32"
assert math.isclose(loss, eager_loss, rel_tol=1e-5 if exact else 1e-2)
assert gradient_difference < (1e-4 if exact else 0.5)
assert math.isclose(loss, math.log(vocab_size), rel_tol=0.1)

# Copies of the weights, for each token and each expert that it chose.
weight_bytes = sum(weight.nbytes for weight in model.parameters())
of_an_expert = 3 * hidden_size * expert_size * getattr(torch, dtype).itemsize
copies = ids.numel() * experts_per_token * of_an_expert * layers
assert peak_memory > held >= 3 * weight_bytes
if experts_implementation == "batched_mm":
    assert peak_memory > held + copies
elif copies > 4 * weight_bytes:
    assert peak_memory < held + copies
