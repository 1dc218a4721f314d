"""What gradient accumulation saves in memory, and what it costs in time."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# worth = 1
# timeout = 300
# [tool.benchbook.metrics]
# saved_for_backward = { unit = "B", better = "lower", memory = "device" }
# training_state = { unit = "B", better = "lower", memory = "device" }
# total_memory = { unit = "B", better = "lower", memory = "device" }
# samples_per_second = { unit = "samples/s", better = "higher" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# micro_batch_size = [16, 8, 4, 2, 1]
# [tool.benchbook.on.accelerator]
# timed_steps = 5
# repeats = 4
# [tool.benchbook.smallest]
# timed_steps = 1
# [tool.benchbook.work]
# host_values = 6.3e6
# fp32 = "6 * 5.5e6 * batch_size * sequence_length * (4 + warmup_steps + timed_steps)"
# seconds = "1 + 0.006 * (4 + warmup_steps + timed_steps) * batch_size / micro_batch_size"
# ///

# %% parameters
seed = 42
batch_size = 16
micro_batch_size = 4
sequence_length = 128
warmup_steps = 2
timed_steps = 3

# %% setup
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from transformers import LlamaConfig, LlamaForCausalLM

accelerator = Accelerator()
device = accelerator.device
set_seed(seed)
config = LlamaConfig(
    vocab_size=4096,
    hidden_size=256,
    intermediate_size=1024,
    num_hidden_layers=4,
    num_attention_heads=4,
    max_position_embeddings=sequence_length,
)
model = LlamaForCausalLM(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)

# %% data
tokens = torch.randint(0, config.vocab_size, (batch_size, sequence_length)).to(device)
micro_batches = batch_size // micro_batch_size
print(f"device: {device.type}, {micro_batches} micro-batches of {micro_batch_size}")


# %% backward
def accumulate(size):
    """Gradients of one optimizer step, from micro-batches of `size` samples."""
    for ids in tokens.split(size):
        loss = model(ids, labels=ids).loss * size / batch_size
        loss.backward()


def gradients():
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


accumulate(batch_size)
wanted = gradients()
optimizer.zero_grad()
accumulate(micro_batch_size)
gradient_difference = ((gradients() - wanted).norm() / wanted.norm()).item()
print(f"gradient differs from one batch of {batch_size} by {gradient_difference:.1e}")

# %% saved_for_backward
weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
saved = {}  # a storage saved twice is held once


def count(tensor):
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in weights:
        saved[storage.data_ptr()] = storage.nbytes()
    return tensor


with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
    ids = tokens[:micro_batch_size]
    loss = model(ids, labels=ids).loss
saved_for_backward = sum(saved.values())
del loss
print(f"saved for the backward pass: {saved_for_backward / 2**20:.1f} MiB")

# %% training_state
optimizer.step()  # makes the optimizer states
states = [state for weight in optimizer.state.values() for state in weight.values()]
tensors = [*model.parameters(), *states]
tensors += [weight.grad for weight in model.parameters()]
training_state = sum(tensor.nbytes for tensor in tensors)
total_memory = training_state + saved_for_backward
print(f"weights, gradients, optimizer states: {training_state / 2**20:.1f} MiB")


# %% time
def step():
    accumulate(micro_batch_size)
    optimizer.step()
    optimizer.zero_grad()
    if device.type != "cpu":
        torch.accelerator.synchronize()


for _ in range(warmup_steps):
    step()
begin = time.perf_counter()
for _ in range(timed_steps):
    step()
samples_per_second = timed_steps * batch_size / (time.perf_counter() - begin)
print(f"{samples_per_second:.1f} samples/s")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert device.type == expected.type, "this ran on the CPU beside an accelerator"
assert gradient_difference < 1e-4, gradient_difference
parameters = sum(weight.numel() for weight in model.parameters())
assert 16 * parameters <= training_state < 16.1 * parameters
assert saved_for_backward > 0 and samples_per_second > 0
