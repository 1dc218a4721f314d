"""The key-value cache of an 8B Llama, by length, with shared key-value heads, and with beams.

Beams are searched by a small Llama with the same numbers of heads: each beam has a cache of its own in any model.
"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# # Bytes that follow from the configuration, on every device.
# needs = ["cpu"]
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
# greedy_cache_memory = { unit = "B", better = "lower", memory = "device" }
# beam_cache_memory = { unit = "B", better = "lower", memory = "device" }
# [tool.benchbook.smallest]
# tokens = 256
# ///

# %% parameters
tokens = 8192
kv_heads = 8
beams = 4

# %% setup
import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

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


# %% size_of
def size_of(cache):
    return sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)


# %% fill
shape = (1, config.num_key_value_heads, tokens, config.head_dim)
states = torch.ones(shape, dtype=torch.bfloat16, device=device)
cache = DynamicCache(config=config)
for layer in range(config.num_hidden_layers):
    cache.update(states, states, layer)  # what attention does with keys and values

cache_memory = size_of(cache)
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

static_cache_memory = size_of(static_cache)
print(f"static cache, after its first token: {static_cache_memory / 2**20:.0f} MiB")

# %% generate
torch.manual_seed(0)
small = LlamaConfig(
    vocab_size=1000,
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=2,
    num_attention_heads=config.num_attention_heads,
    num_key_value_heads=config.num_key_value_heads,
    eos_token_id=None,  # both go on to the last token
)
with device:
    model = LlamaForCausalLM(small).to(torch.bfloat16).eval()
prompt = torch.randint(0, small.vocab_size, (1, 32), device=device)
greedy = model.generate(
    prompt, max_new_tokens=8, do_sample=False, return_dict_in_generate=True
)
searched = model.generate(
    prompt,
    max_new_tokens=8,
    do_sample=False,
    num_beams=beams,
    return_dict_in_generate=True,
)
greedy_cache_memory = size_of(greedy.past_key_values)
beam_cache_memory = size_of(searched.past_key_values)
print(f"greedy search:  {greedy_cache_memory / 2**10:.0f} KiB")
print(f"with {beams} beams:   {beam_cache_memory / 2**10:.0f} KiB")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
kept = [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
assert {tensor.device.type for tensor in kept} == {expected.type}
assert len({tensor.data_ptr() for tensor in kept}) == 2 * config.num_hidden_layers
assert cache.get_seq_length() == tokens and static_cache.get_seq_length() == 1
assert cache_memory == formula == static_cache_memory
length = greedy.past_key_values.get_seq_length()
assert length == searched.past_key_values.get_seq_length() == 32 + 8 - 1
head_dim = small.hidden_size // small.num_attention_heads
by_hand = small.num_hidden_layers * 2 * kv_heads * head_dim * 2 * length
assert greedy_cache_memory == by_hand  # the last token's are never computed
assert beam_cache_memory == beams * greedy_cache_memory
assert searched.past_key_values.layers[0].keys.shape[0] == beams
assert greedy.sequences.shape == searched.sequences.shape == (1, 40)
before = cache.layers[0].keys.nbytes
cache.update(states[:, :, :1], states[:, :, :1], 0)  # one more token, in one layer
assert cache.layers[0].keys.nbytes - before == before // tokens
