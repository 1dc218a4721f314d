"""What the attention of a decoder takes, by sequence length and by the kernel that computes it.

The decoder classifies each token instead of predicting the next: the scores of a vocabulary would hide the share of
the attention. A batch has as many tokens at any length, so that only what depends on the length changes.
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
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# matrix = [
#     { attention = "eager", sequence_length = 128, dropout = 0.0 },
#     { attention = "sdpa", sequence_length = 128, dropout = 0.0 },
#     { attention = "eager", sequence_length = 1024, dropout = 0.0 },
#     { attention = "sdpa", sequence_length = 1024, dropout = 0.0 },
#     { attention = "eager", sequence_length = 2048, dropout = 0.0 },
#     { attention = "sdpa", sequence_length = 2048, dropout = 0.0 },
#     { attention = "math", sequence_length = 2048, dropout = 0.0 },
#     { attention = "eager", sequence_length = 2048, dropout = 0.1 },
#     { attention = "sdpa", sequence_length = 2048, dropout = 0.1 },
# ]
# [tool.benchbook.metrics]
# step_seconds = { unit = "s", better = "lower" }
# tokens_per_second = { unit = "tokens/s", better = "higher" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# loss_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.on.accelerator]
# hidden_size = 2048
# layers = 4
# heads = 32
# kv_heads = 8
# intermediate_size = 8192
# tokens = 8192
# dtype = "bfloat16"
# timed_steps = 4
# repeats = 2
# [tool.benchbook.smallest]
# layers = 1
# vocab_size = 512
# sequence_length = 64
# tokens = 128
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# (12 * (warmup_steps + timed_steps + 1) * tokens * layers * hidden_size * sequence_length
#  if attention == 'math' else 0)
# '''
# bf16 = '''
# (tokens * (6 * (warmup_steps + timed_steps + 1) + 2)
#  * layers * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * hidden_size * intermediate_size
#              + (0 if attention == 'math' else 2 * hidden_size * sequence_length)))
# '''
# bytes = '''
# ((warmup_steps + timed_steps + 1) * tokens * sequence_length * layers * heads
#  * {'eager': 50, 'math': 100, 'sdpa': 0}[attention])
# '''
# seconds = 0.3
# ///

# %% parameters
attention = "sdpa"
sequence_length = 1024
dropout = 0.0
hidden_size = 384
layers = 2
heads = 6
kv_heads = 2
intermediate_size = 1024
vocab_size = 8192
tokens = 2048
dtype = "float32"
warmup_steps = 1
timed_steps = 2

# %% setup
import time
import warnings
from itertools import accumulate

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForTokenClassification, LlamaConfig, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(0)
config = LlamaConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=kv_heads,
    intermediate_size=intermediate_size,
    attention_dropout=dropout,
    classifier_dropout=0.0,
    use_cache=False,
)
with device:
    model = AutoModelForTokenClassification.from_config(
        config, dtype=getattr(torch, dtype)
    )
    shape = (tokens // sequence_length, sequence_length)
    input_ids = torch.randint(0, vocab_size, shape)
model.train()
batch = {"input_ids": input_ids, "labels": input_ids % 2}

# %% choose
if attention == "eager":
    model.set_attn_implementation("eager")
else:
    # region choose_sdpa
    # Or when loading: from_pretrained(checkpoint,
    # attn_implementation="sdpa")
    model.set_attn_implementation("sdpa")
    # endregion

# %% kernels
every = [
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,  # step by step: the one that always works
]
allowed = [SDPBackend.MATH] if attention == "math" else every


# %% step
def step():
    loss = model(**batch).loss
    loss.backward()
    return loss.item()  # waits for the device


# %% train
with sdpa_kernel(allowed):
    for _ in range(warmup_steps):
        step()
        model.zero_grad()
    start = time.perf_counter()
    for _ in range(timed_steps):
        step()
        model.zero_grad()
    elapsed = time.perf_counter() - start

step_seconds = elapsed / timed_steps
tokens_per_second = tokens / step_seconds
print(f"{attention}, {shape[0]} x {sequence_length}: {step_seconds:.3f} s")

# %% peak
if device.type != "cpu":
    torch.accelerator.reset_peak_memory_stats()
watch = {"activities": [ProfilerActivity.CPU], "profile_memory": device.type == "cpu"}
with sdpa_kernel(allowed), profile(**watch) as profiled:
    first_loss = step()
weights = sum(weight.nbytes for weight in model.parameters())
events = profiled.profiler.kineto_results.events()
if device.type == "cpu":
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    above = max(accumulate((change.nbytes() for change in changes), initial=0))
    peak_memory = weights + 2 * input_ids.nbytes + above
else:
    peak_memory = torch.accelerator.max_memory_allocated()
kinds = ("flash", "efficient", "cudnn")
ran = {event.name() for event in events if "scaled_dot_product" in event.name()}
fused = {name for name in ran if any(kind in name for kind in kinds)}
print(f"peak {peak_memory / 2**20:.1f} MiB")
print("\n".join(sorted(ran)) or "no call of scaled_dot_product_attention")


# %% same_as_eager
few = {name: rows[:1, :64] for name, rows in batch.items()}


def loss_and_gradient(implementation):
    model.set_attn_implementation(implementation)
    model.zero_grad()
    with sdpa_kernel(allowed):
        loss = model(**few).loss
        loss.backward()
    gradients = [weight.grad.flatten() for weight in model.parameters()]
    return loss.item(), torch.cat(gradients).float()


model.eval()  # drops nothing: the same result, by another way
wanted_loss, wanted_gradient = loss_and_gradient("eager")
own_loss, own_gradient = loss_and_gradient("eager" if attention == "eager" else "sdpa")
loss_difference = abs(own_loss - wanted_loss) / wanted_loss
gradient_error = (own_gradient - wanted_gradient).norm() / wanted_gradient.norm()
gradient_difference = gradient_error.item()

# %% only_flash
if attention == "sdpa":
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        # region only_flash_attention
        from torch.nn.attention import SDPBackend
        from torch.nn.attention import sdpa_kernel

        # This kernel, or an error; warnings say why not.
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            loss = model(**batch).loss
        # endregion
    flash = {event.key for event in profiled.key_averages() if "flash" in event.key}

# %% checks
import math

assert model.device.type == input_ids.device.type == device.type
assert math.isfinite(first_loss)
assert peak_memory > 2 * weights  # weights, gradients, and more
rounding = 1e-5 if dtype == "float32" else 0.02
assert loss_difference < rounding, loss_difference
assert gradient_difference < rounding, gradient_difference

# The kernel that ran is the one that the page says.
on_cpu = device.type == "cpu"
assert model.config._attn_implementation == (
    "eager" if attention == "eager" else "sdpa"
)
if attention == "eager":
    assert not ran
elif attention == "math" or (on_cpu and dropout):
    assert ran >= {"aten::_scaled_dot_product_attention_math"} and not fused, ran
else:
    assert fused, ran
    assert not on_cpu or "aten::_scaled_dot_product_flash_attention_for_cpu" in fused

# In a model that drops nothing, the flash kernel runs where it is the only one allowed.
if attention == "sdpa":
    assert flash and math.isclose(loss.item(), math.log(2), abs_tol=0.5)

# A call that may not fall back says so instead.
query = torch.rand(1, 1, 16, 16, device=device, dtype=torch.bfloat16)
attend = torch.nn.functional.scaled_dot_product_attention
refused = ""
with warnings.catch_warnings(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    warnings.simplefilter("ignore")  # torch warns of each reason first
    try:
        attend(query, query, query, dropout_p=dropout)
    except RuntimeError as error:
        refused = str(error)
assert bool(refused) == bool(on_cpu and dropout), refused
assert not refused or "No available kernel" in refused
