"""What torchao's int8 makes of a Llama on a CPU, as it is and compiled: reading a prompt, and writing token by token."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "torchao>=0.18"]
#
# [tool.benchbook]
# needs = ["cpu"]
# venv = "torchao"
# timeout = 600
# environment = { OMP_NUM_THREADS = "2", TORCHINDUCTOR_VEC_ISA_OK = "1" }
# matrix = [
#     { way = "bf16", repeats = 4 },
#     { way = "compile_bf16", repeats = 2 },
#     { way = "int8_weights", repeats = 4 },
#     { way = "compile_int8_weights", repeats = 2 },
#     { way = "int8_weights_and_inputs", repeats = 4 },
# ]
# [tool.benchbook.metrics]
# weights = { unit = "B", better = "lower" }
# prefill_seconds = { unit = "s", better = "lower" }
# decode_seconds = { unit = "s", better = "lower" }
# prefill_share = { unit = "1", better = "lower", repeats = 2 }
# decode_share = { unit = "1", better = "lower", repeats = 2 }
# start_seconds = { unit = "s", better = "lower" }
# start_in_plain_tokens = { unit = "1", better = "lower", repeats = 2 }
# [tool.benchbook.smallest]
# layers = 1
# width = 256
# vocabulary = 1000
# prompt_tokens = 16
# timed = 2
# backend = "eager"
# ///

# %% parameters
way = "int8_weights"
layers = 10
width = 1024
vocabulary = 32000
prompt_tokens = 128
timed = 10
backend = "inductor"

# %% setup
import functools
import inspect
import os
import tempfile
import time
from statistics import median

folder = tempfile.TemporaryDirectory()
# What an earlier process compiled would make this one look fast.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.name

import torch
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    quantize_,
)
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.compile = functools.partial(torch.compile, backend=backend)
torch.set_grad_enabled(False)
torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 256,
    vocab_size=vocabulary,
)
model = LlamaForCausalLM(config).eval()
# Transformers 5.24 calls it `cache`.
names = inspect.signature(model.forward).parameters
cache_name = "cache" if "cache" in names else "past_key_values"
prompt = torch.randint(vocabulary, (1, prompt_tokens))


def prefill():
    cache = DynamicCache()
    found = model(
        input_ids=prompt, use_cache=True, logits_to_keep=1, **{cache_name: cache}
    )
    return found.logits.float(), [(one.keys, one.values) for one in cache.layers]


def decode(token, keys_and_values):
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(keys_and_values):
        cache.update(keys, values, layer)
    found = model(
        input_ids=token,
        position_ids=torch.tensor([[prompt_tokens]]),
        use_cache=True,
        **{cache_name: cache},
    )
    return found.logits.float()


def seconds_of(work, *inputs):
    """The median of several calls, after one."""
    taken = []
    for _ in range(timed + 1):
        start = time.perf_counter()
        work(*inputs)
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


# %% plain
scores, cached = prefill()
token = scores[:, -1].argmax(-1, keepdim=True)
expected = [scores, decode(token, cached)]
plain_prefill_seconds = seconds_of(prefill)
plain_decode_seconds = seconds_of(decode, token, cached)

# %% quantize
start = time.perf_counter()
model.to(torch.bfloat16)
if "int8_weights_and_inputs" in way:
    # region weights_and_inputs
    quantize_(model, Int8DynamicActivationInt8WeightConfig())
    # endregion
elif "int8_weights" in way:
    # region weights
    quantize_(model, Int8WeightOnlyConfig())
    # endregion
if way.startswith("compile"):
    # region compile
    model.compile(dynamic=False)
    # endregion
first, cached = prefill()
second = decode(token, cached)
start_seconds = time.perf_counter() - start

# %% measure
prefill_seconds = seconds_of(prefill)
decode_seconds = seconds_of(decode, token, cached)
prefill_share = prefill_seconds / plain_prefill_seconds
decode_share = decode_seconds / plain_decode_seconds
start_in_plain_tokens = start_seconds / plain_decode_seconds


def bytes_of(tensor):
    """Of a tensor, or of those that a quantized one is made of."""
    if not hasattr(tensor, "__tensor_flatten__"):
        return tensor.nbytes
    return sum(
        bytes_of(getattr(tensor, name)) for name in tensor.__tensor_flatten__()[0]
    )


weights = sum(bytes_of(tensor.data) for tensor in model.parameters())
print(f"prompt of {prompt_tokens} tokens: {prefill_seconds * 1e3:.0f} ms")
print(f"each token behind it: {decode_seconds * 1e3:.1f} ms")

# %% checks
for found, right in zip((first, second), expected, strict=True):
    off = (found - right).abs().max() / right.std()
    assert off < 1, f"the scores are off by {off:.2g} of their spread"
