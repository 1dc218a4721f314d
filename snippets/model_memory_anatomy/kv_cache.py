"""The key-value cache of an 8B Llama, by length, and what sharing key-value heads saves."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# worth = 4
# timeout = 120
# matrix = [
#     { tokens = 1024, kv_heads = 8 },
#     { tokens = 8192, kv_heads = 8 },
#     { tokens = 32768, kv_heads = 8 },
#     { tokens = 1024, kv_heads = 32 },
#     { tokens = 8192, kv_heads = 32 },
# ]
# [tool.benchbook.metrics]
# cache_memory = { unit = "B", better = "lower", memory = "device" }
# formula = { unit = "B" }
# memory_per_token = { unit = "B", better = "lower" }
# static_cache_memory = { unit = "B", better = "lower", memory = "device" }
# [tool.benchbook.smallest]
# tokens = 256
# [tool.benchbook.work]
# bytes = "32 * 2 * kv_heads * 128 * 2 * tokens * 6"
# ///

# %% parameters
tokens = 8192
kv_heads = 8

# %% setup
import torch
from transformers import DynamicCache, LlamaConfig, StaticCache

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
config = LlamaConfig(
    hidden_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
    num_key_value_heads=kv_heads,  # 32 would give each attention head its own
    head_dim=128,
    max_position_embeddings=tokens,
)

# %% fill
shape = (1, config.num_key_value_heads, tokens, config.head_dim)
states = torch.ones(shape, dtype=torch.bfloat16, device=device)
cache = DynamicCache(config=config)
for layer in range(config.num_hidden_layers):
    cache.update(states, states, layer)  # what attention does with keys and values

cache_memory = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
memory_per_token = cache_memory // tokens
print(f"device: {device.type}, {tokens} tokens: {cache_memory / 2**20:.0f} MiB")

# %% formula
per_layer = 2 * config.num_key_value_heads * config.head_dim  # keys and values
formula = config.num_hidden_layers * per_layer * states.itemsize * tokens
print(f"by the formula: {formula / 2**20:.0f} MiB")

# %% static
static_cache = StaticCache(config=config, max_cache_len=tokens)
for layer in range(config.num_hidden_layers):
    static_cache.update(states[:, :, :1], states[:, :, :1], layer)  # one token

layers = static_cache.layers
static_cache_memory = sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)
print(f"static cache, after its first token: {static_cache_memory / 2**20:.0f} MiB")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
kept = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
assert {tensor.device.type for tensor in kept} == {expected.type}
assert len({tensor.data_ptr() for tensor in kept}) == 2 * config.num_hidden_layers
assert cache.get_seq_length() == tokens and static_cache.get_seq_length() == 1
assert cache_memory == formula == static_cache_memory
before = cache.layers[0].keys.nbytes
cache.update(states[:, :, :1], states[:, :, :1], 0)  # one more token, in one layer
assert cache.layers[0].keys.nbytes - before == before // tokens
