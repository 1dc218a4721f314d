"""How many tokens per second a Llama reads and writes on a CPU with more sequences at once, or more tokens of one."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 4
# environment = { OMP_NUM_THREADS = "2" }
# [tool.benchbook.metrics]
# read_per_second = { unit = "tokens/s", better = "higher" }
# written_per_second = { unit = "tokens/s", better = "higher" }
# step_seconds = { unit = "s", better = "lower" }
# five_tokens_seconds = { unit = "s", better = "lower" }
# key_value_cache = { unit = "B", better = "lower" }
# [tool.benchbook.matrix]
# number_format = ["float32", "bfloat16"]
# sequences = [1, 4, 16, 32, 64]
# [tool.benchbook.smallest]
# layers = 1
# width = 256
# vocabulary = 1000
# prompt_tokens = 8
# timed = 1
# ///

# %% parameters
number_format = "float32"
sequences = 8
layers = 10
width = 1024
vocabulary = 32000
prompt_tokens = 128
timed = 5

# %% setup
import inspect
import time
from statistics import median

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_grad_enabled(False)
config = LlamaConfig(
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 256,
    vocab_size=vocabulary,
)
model = LlamaForCausalLM(config).eval().to(getattr(torch, number_format))
# Transformers 5.24 calls it `cache`.
names = inspect.signature(model.forward).parameters
cache_name = "cache" if "cache" in names else "past_key_values"
prompts = torch.randint(vocabulary, (sequences, prompt_tokens))


def seconds_of(work, *inputs):
    start = time.perf_counter()
    found = work(*inputs)
    return time.perf_counter() - start, found


def read(prompts):
    cache = DynamicCache()
    found = model(
        input_ids=prompts, use_cache=True, logits_to_keep=1, **{cache_name: cache}
    )
    return cache, found.logits[:, -1].argmax(-1, keepdim=True)


def write(cache, tokens):
    found = model(input_ids=tokens, use_cache=True, **{cache_name: cache})
    return found.logits[:, -1].argmax(-1, keepdim=True)


# %% measure
reading, writing = [], []
for _ in range(3):
    seconds, (cache, tokens) = seconds_of(read, prompts)
    reading.append(seconds)
key_value_cache = sum(one.keys.nbytes + one.values.nbytes for one in cache.layers)
for _ in range(timed + 1):
    seconds, tokens = seconds_of(write, cache, tokens)
    writing.append(seconds)
step_seconds = median(writing[1:])
# As when a guess of the next tokens is looked at: five of each sequence at once.
five = tokens.repeat(1, 5)
five_tokens_seconds = median(seconds_of(write, cache, five)[0] for _ in range(timed))
read_per_second = sequences * prompt_tokens / median(reading[1:])
written_per_second = sequences / step_seconds
print(f"read: {read_per_second:.0f} tokens per second")
print(f"written: {written_per_second:.0f} tokens per second")

# %% checks
assert cache.get_seq_length() == prompt_tokens + timed + 1 + 5 * timed
size = 4 if number_format == "float32" else 2
heads = config.num_key_value_heads
assert key_value_cache == 2 * layers * heads * 64 * size * sequences * prompt_tokens
