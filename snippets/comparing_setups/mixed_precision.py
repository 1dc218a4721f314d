"""What bf16 autocast changes in the loss and the gradient, in memory and in speed."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# worth = 1
# timeout = 300
# [tool.benchbook.metrics]
# loss_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# accumulation_difference = { unit = "1", better = "lower" }
# other_batch_difference = { unit = "1" }
# saved_for_backward = { unit = "B", better = "lower", memory = "device" }
# samples_per_second = { unit = "samples/s", better = "higher" }
# [tool.benchbook.matrix]
# mixed_precision = ["no", "bf16"]
# [tool.benchbook.on.accelerator]
# timed_steps = 5
# repeats = 4
# [tool.benchbook.smallest]
# timed_steps = 1
# [tool.benchbook.work]
# host_values = 6.3e6
# fp32 = '''
# (6 * 5.5e6 * batch_size * sequence_length
#  * (2 + (3 + warmup_steps + timed_steps if mixed_precision == 'no' else 0)))
# '''
# bf16 = '''
# (6 * 5.5e6 * batch_size * sequence_length * (3 + warmup_steps + timed_steps)
#  if mixed_precision == 'bf16' else 0)
# '''
# seconds = "1 + 0.008 * (10 + warmup_steps + timed_steps)"
# ///

# %% parameters
seed = 42
mixed_precision = "bf16"
batch_size = 8
sequence_length = 128
warmup_steps = 2
timed_steps = 3

# %% setup
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from transformers import LlamaConfig, LlamaForCausalLM

accelerator = Accelerator(mixed_precision=mixed_precision)
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

# %% data
tokens = torch.randint(0, config.vocab_size, (2 * batch_size, sequence_length))
batch, other_batch = tokens.to(device).split(batch_size)
print(f"device: {device.type}, mixed_precision={mixed_precision}")


# %% gradient
def gradient(network, batch, pieces=1):
    """Mean loss of the batch and its gradient, taken in equal micro-batches."""
    network.zero_grad()
    total = 0.0
    for ids in batch.chunk(pieces):
        loss = network(ids, labels=ids).loss / pieces
        loss.backward()
        total += loss.item()
    gradients = [weight.grad.flatten() for weight in network.parameters()]
    return total, torch.cat(gradients)


def difference(gradients, wanted):
    return ((gradients - wanted).norm() / wanted.norm()).item()


fp32_loss, fp32_gradient = gradient(model, batch)
_, other_gradient = gradient(model, other_batch)
other_batch_difference = difference(other_gradient, fp32_gradient)

# %% autocast
prepared = accelerator.prepare(model)  # its forward pass now runs under autocast
loss, gradients = gradient(prepared, batch)
loss_difference = abs(loss - fp32_loss) / fp32_loss
gradient_difference = difference(gradients, fp32_gradient)
_, accumulated = gradient(prepared, batch, pieces=4)
accumulation_difference = difference(accumulated, gradients)
print(f"loss differs from fp32 by {loss_difference:.1e}")
print(f"gradient differs from fp32 by {gradient_difference:.1e}")
print(f"4 micro-batches differ from one batch by {accumulation_difference:.1e}")
print(f"for scale, another batch of data: {other_batch_difference:.1e}")

# %% saved_for_backward
weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
saved = {}  # a storage saved twice is held once


def count(tensor):
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in weights:
        saved[storage.data_ptr()] = storage.nbytes()
    return tensor


with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
    loss = prepared(batch, labels=batch).loss
saved_for_backward = sum(saved.values())
weight_types = {weight.dtype for weight in model.parameters()}
del loss
print(f"saved for the backward pass: {saved_for_backward / 2**20:.1f} MiB")

# %% time
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def step():
    prepared(batch, labels=batch).loss.backward()
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
assert weight_types == {torch.float32}, "autocast must leave the weights in fp32"
if mixed_precision == "no":
    assert loss_difference < 1e-5 and gradient_difference < 1e-4
    assert accumulation_difference < 1e-4
else:
    assert 1e-4 < gradient_difference < 0.1
    assert gradient_difference < other_batch_difference / 5
assert saved_for_backward > 0 and samples_per_second > 0
