"""Training speed of a linear layer whose size is, or is not, a multiple of 8 or 64."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 3
# timeout = 120
# repeats = 8
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# matrix = [
#     { number_format = "bfloat16", outputs = 4097 },
#     { number_format = "bfloat16", outputs = 4104 },
#     { number_format = "bfloat16", outputs = 4160 },
#     { number_format = "bfloat16", outputs = 30522 },
#     { number_format = "bfloat16", outputs = 30528 },
#     { number_format = "float32", outputs = 4097 },
#     { number_format = "float32", outputs = 4104 },
#     { number_format = "float32", outputs = 4160 },
# ]
# [tool.benchbook.metrics]
# operations_per_second = { unit = "TFLOP/s", better = "higher" }
# layer_seconds = { unit = "s", better = "lower" }
# [tool.benchbook.on.accelerator]
# tokens = 16384
# inputs = 1024
# timed_passes = 10
# repeats = 2
# [tool.benchbook.smallest]
# tokens = 8
# inputs = 16
# timed_passes = 1
# [tool.benchbook.work]
# fp32 = '''
# (6 * tokens * inputs * outputs * (3 + timed_passes) if number_format == 'float32' else 0)
# '''
# bf16 = '''
# (6 * tokens * inputs * outputs * (3 + timed_passes) * (1 if outputs in [4104, 4160, 30528] else 3)
#  if number_format == 'bfloat16' else 0)
# '''
# seconds = 0.15
# ///

# %% parameters
number_format = "bfloat16"
outputs = 4104
tokens = 256
inputs = 256
timed_passes = 12

# %% setup
import time
from statistics import median

import torch

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(0)
dtype = getattr(torch, number_format)
layer = torch.nn.Linear(inputs, outputs, bias=False, device=device, dtype=dtype)
hidden = torch.randn(tokens, inputs, device=device, dtype=dtype, requires_grad=True)
gradient = torch.randn(tokens, outputs, device=device, dtype=dtype)


# %% time
def seconds():
    """Of three products: the output, and the gradients of input and weights."""
    layer.weight.grad = hidden.grad = None
    if device.type != "cpu":
        torch.accelerator.synchronize()
    start = time.perf_counter()
    layer(hidden).backward(gradient)
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - start


for _ in range(3):
    seconds()
layer_seconds = median(seconds() for _ in range(timed_passes))
operations_per_second = 3 * 2 * tokens * inputs * outputs / layer_seconds / 1e12
print(f"{outputs} outputs, {number_format}: {operations_per_second:.3g} TFLOP/s")

# %% vocabulary
from transformers import BertConfig, BertForMaskedLM

tiny = BertConfig(
    vocab_size=30522,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
)
model = BertForMaskedLM(tiny)

# region pad_vocabulary
# From 30522 tokens to 30528, the next multiple of 64.
model.resize_token_embeddings(pad_to_multiple_of=64)
# endregion

# %% checks
assert model.config.vocab_size == 30528
assert model.get_output_embeddings().out_features == 30528
assert layer.weight.device.type == device.type
assert layer.weight.grad.dtype == hidden.grad.dtype == dtype
exact = gradient.double().T @ hidden.detach().double()
error = (layer.weight.grad.double() - exact).norm() / exact.norm()
assert error < (1e-5 if number_format == "float32" else 1e-2)
assert 0 < layer_seconds < 60
