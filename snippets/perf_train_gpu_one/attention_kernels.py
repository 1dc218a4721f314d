"""One attention of a decoder on an accelerator, by each of the kernels that PyTorch can compute it with."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cuda"]
# worth = 3
# timeout = 300
# repeats = 3
# matrix = [
#     { kernel = "MATH", sequence_length = 2048 },
#     { kernel = "FLASH_ATTENTION", sequence_length = 2048 },
#     { kernel = "EFFICIENT_ATTENTION", sequence_length = 2048 },
#     { kernel = "CUDNN_ATTENTION", sequence_length = 2048 },
#     { kernel = "FLASH_ATTENTION", sequence_length = 8192 },
#     { kernel = "CUDNN_ATTENTION", sequence_length = 8192 },
# ]
# [tool.benchbook.metrics]
# attention_seconds = { unit = "s", better = "lower" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# output_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.smallest]
# sequence_length = 128
# tokens = 256
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# (12 * tokens * sequence_length * heads * head_size
#  * (warmup_steps + timed_steps + 2 if kernel == 'MATH' else 1))
# '''
# bf16 = '''
# (12 * tokens * sequence_length * heads * head_size * (warmup_steps + timed_steps + 1)
#  if kernel != 'MATH' else 0)
# '''
# bytes = '''
# (120 * tokens * sequence_length * heads
#  * (warmup_steps + timed_steps + 2 if kernel == 'MATH' else 1))
# '''
# seconds = "0.1 + (0.5 if kernel == 'CUDNN_ATTENTION' else 0)"
# ///

# %% parameters
kernel = "FLASH_ATTENTION"
sequence_length = 2048
tokens = 8192
heads = 32
head_size = 64
warmup_steps = 3
timed_steps = 10

# %% setup
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.profiler import ProfilerActivity, profile

if not torch.cuda.is_available():
    raise SystemExit("These kernels need a GPU; attention.py runs on a CPU too.")
torch.manual_seed(0)
shape = (3, tokens // sequence_length, heads, sequence_length, head_size)
inputs = torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)
weighting = torch.randn(shape[1:], device="cuda", dtype=torch.bfloat16)

# %% kernel
backend = SDPBackend.__members__[kernel]  # such as SDPBackend.FLASH_ATTENTION


def attend():
    query, key, value = inputs
    with sdpa_kernel(backend):  # this kernel, or an error
        return scaled_dot_product_attention(query, key, value, is_causal=True)


# %% train
def step():
    inputs.grad = None
    attend().backward(weighting)
    torch.cuda.synchronize()


for _ in range(warmup_steps):
    step()
torch.cuda.reset_peak_memory_stats()
start = time.perf_counter()
for _ in range(timed_steps):
    step()
attention_seconds = (time.perf_counter() - start) / timed_steps
peak_memory = torch.cuda.max_memory_allocated()
print(f"{kernel}: {1000 * attention_seconds:.2f} ms, {peak_memory / 2**20:.0f} MiB")

# %% ran
with profile(activities=[ProfilerActivity.CPU]) as profiled:
    output = attend()
names = {event.key for event in profiled.key_averages() if event.key[:6] == "aten::"}
operation = kernel.removesuffix("_ATTENTION").lower()
print("\n".join(sorted(name for name in names if "attention" in name)))


# %% reference
def gradient(output):
    return torch.autograd.grad(output, inputs, weighting)[0].double()


def difference(value, wanted):
    return ((value.double() - wanted.double()).norm() / wanted.double().norm()).item()


own_gradient = gradient(output)
with sdpa_kernel(SDPBackend.MATH):
    wanted = scaled_dot_product_attention(*inputs, is_causal=True)
output_difference = difference(output, wanted)
gradient_difference = difference(own_gradient, gradient(wanted))

# %% checks
assert inputs.is_cuda and output.is_cuda
assert inputs.grad.isfinite().all()
wanted_name = "attention_math" if kernel == "MATH" else f"{operation}_attention"
assert any(f"_scaled_dot_product_{wanted_name}" in name for name in names), names
assert output_difference < 0.02, output_difference
assert gradient_difference < 0.02, gradient_difference
