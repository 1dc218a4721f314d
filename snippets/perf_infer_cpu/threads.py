"""What a second thread brings a Llama on a CPU: while it reads a prompt, and while it writes."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 4
# matrix = [
#     { threads = 1, number_format = "float32", environment = { OMP_NUM_THREADS = "1" } },
#     { threads = 2, number_format = "float32", environment = { OMP_NUM_THREADS = "2" } },
#     { threads = 1, number_format = "bfloat16", environment = { OMP_NUM_THREADS = "1" } },
#     { threads = 2, number_format = "bfloat16", environment = { OMP_NUM_THREADS = "2" } },
# ]
# [tool.benchbook.metrics]
# prefill_seconds = { unit = "s", better = "lower" }
# decode_seconds = { unit = "s", better = "lower" }
# weights_read_per_second = { unit = "GB/s", better = "higher" }
# [tool.benchbook.smallest]
# layers = 1
# width = 256
# vocabulary = 1000
# prompt_tokens = 8
# timed = 1
# ///

# %% parameters
threads = 2
number_format = "float32"
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
prompt = torch.randint(vocabulary, (1, prompt_tokens))


def seconds_of(tokens, cache):
    start = time.perf_counter()
    model(input_ids=tokens, use_cache=True, logits_to_keep=1, **{cache_name: cache})
    return time.perf_counter() - start


# %% measure
prefills, decodes = [], []
for _ in range(timed + 1):
    cache = DynamicCache()
    prefills.append(seconds_of(prompt, cache))
    decodes.append(seconds_of(prompt[:, :1], cache))
prefill_seconds, decode_seconds = median(prefills[1:]), median(decodes[1:])
# Each token needs every weight but those of the other words' embeddings.
used = sum(tensor.nbytes for tensor in model.parameters())
used -= model.get_input_embeddings().weight.nbytes
weights_read_per_second = used / decode_seconds / 1e9
print(f"{torch.get_num_threads()} threads: prompt {prefill_seconds * 1e3:.0f} ms,")
print(f"  each token {decode_seconds * 1e3:.1f} ms, {weights_read_per_second:.0f} GB/s")

# %% checks
assert torch.get_num_threads() == threads
