"""Keeping the inputs of checkpointed layers in host memory: bytes and time, in a decoder."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator"]
# worth = 1
# timeout = 600
# repeats = 8
# [tool.benchbook.metrics]
# activations = { unit = "B", better = "lower", memory = "device" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# step_seconds = { unit = "s", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# sequence_length = [2048, 16384]
# offload = [false, true]
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 128
# heads = 4
# kv_heads = 2
# vocab_size = 512
# sequence_length = 64
# timed_steps = 1
# [tool.benchbook.work]
# host_values = '''
# (vocab_size * hidden_size
#  + layers * (hidden_size**2 * (14 + 2 * kv_heads / heads)))
# '''
# bf16 = '''
# (8 * (3 + timed_steps) * sequence_length
#  * layers * (hidden_size**2 * (14 + 2 * kv_heads / heads)
#              + 2 * hidden_size * sequence_length))
# '''
# seconds = '''
# (2 + (3 + timed_steps) * 0.06
#  + (6e-10 * (2 + timed_steps) * layers * sequence_length * hidden_size if offload else 0))
# '''
# ///

# %% parameters
offload = True
sequence_length = 2048
layers = 16
hidden_size = 2048
heads = 32
kv_heads = 8
vocab_size = 128256
timed_steps = 5

# %% setup
import time
from statistics import median

import torch
from transformers import LlamaConfig, LlamaModel, set_seed

device = torch.accelerator.current_accelerator(check_available=True)
if device is None:
    raise SystemExit(
        "Offloading moves activations off an accelerator, and none is here."
    )
set_seed(0)
config = LlamaConfig(  # Llama-3.2-1B, with random weights
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=kv_heads,
    intermediate_size=4 * hidden_size,
    max_position_embeddings=sequence_length,
    use_cache=False,
)
model = LlamaModel(config).to(device, torch.bfloat16).train()
ids = torch.randint(0, vocab_size, (1, sequence_length), device=device)


# %% step
def forward():
    return model(ids).last_hidden_state.square().mean()


def gradient():
    model.zero_grad()
    forward().backward()
    return torch.cat([weight.grad.flatten().float() for weight in model.parameters()])


# %% pytorch
model.activation_checkpointing_enable()
kept_on_device = gradient()
if offload:
    model.activation_checkpointing_enable(offload=True)
moved = gradient()
gradient_error = (moved - kept_on_device).norm() / kept_on_device.norm()
gradient_difference = gradient_error.item()
del kept_on_device, moved

# %% measure
seconds = []
for _ in range(1 + timed_steps):
    model.zero_grad()
    torch.accelerator.synchronize()
    torch.accelerator.reset_peak_memory_stats()
    before = torch.accelerator.memory_allocated()
    start = time.perf_counter()
    loss = forward()
    activations = torch.accelerator.memory_allocated() - before
    loss.backward()
    torch.accelerator.synchronize()
    seconds.append(time.perf_counter() - start)
    del loss
step_seconds = median(seconds[1:])
peak_memory = torch.accelerator.max_memory_allocated()
print(f"offload={offload}: {activations / 2**20:.1f} MiB of activations on the device")
print(f"{step_seconds:.3f} s for forward and backward pass")

# %% checks
assert model.device.type == device.type
hidden_states = layers * sequence_length * hidden_size * 2
assert gradient_difference < 1e-5
assert (activations > hidden_states) != offload
assert peak_memory > activations > 0
