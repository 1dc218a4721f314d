"""What llama.cpp makes of a Llama on a CPU, as pip installs it: reading a prompt, writing token by token, many requests."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "gguf>=0.19", "xllamacpp>=2026.10",
# ]
#
# [tool.benchbook]
# needs = ["cpu"]
# venv = "llamacpp"
# timeout = 300
# environment = { OMP_NUM_THREADS = "2" }
# [tool.benchbook.metrics]
# file_size = { unit = "B", better = "lower" }
# prefill_seconds = { unit = "s", better = "lower" }
# decode_seconds = { unit = "s", better = "lower" }
# prefill_share = { unit = "1", better = "lower", repeats = 8 }
# decode_share = { unit = "1", better = "lower", repeats = 8 }
# written_per_second = { unit = "tokens/s", better = "higher" }
# start_seconds = { unit = "s", better = "lower" }
# [tool.benchbook.matrix]
# number_format = ["F32", "F16", "Q8_0", "Q4_0"]
# [tool.benchbook.smallest]
# layers = 1
# width = 256
# vocabulary = 1000
# prompt_tokens = 16
# timed = 3
# written = 64
# ///

# %% parameters
number_format = "Q8_0"
layers = 10
width = 1024
vocabulary = 32000
prompt_tokens = 128
written = 32
timed = 5
requests = 16

# %% setup
import inspect
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import gguf
import torch
import xllamacpp
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_grad_enabled(False)
folder = tempfile.TemporaryDirectory()
path = f"{folder.name}/model.gguf"
config = LlamaConfig(
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 256,
    vocab_size=vocabulary,
    max_position_embeddings=1024,
)
model = LlamaForCausalLM(config).eval()
# Transformers 5.24 calls it `cache`.
names = inspect.signature(model.forward).parameters
cache_name = "cache" if "cache" in names else "past_key_values"

# %% plain
prompt = torch.randint(vocabulary, (1, prompt_tokens))


def read():
    """The scores behind the prompt, and its keys and values."""
    cache = DynamicCache()
    settings = {cache_name: cache, "use_cache": True, "logits_to_keep": 1}
    return model(input_ids=prompt, **settings).logits[0, -1], cache


def seconds_of(work):
    """The median of several calls, after one."""
    taken = []
    for _ in range(timed + 1):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


def write():
    """One token more; what it leaves in the cache is taken out again."""
    model(input_ids=token, use_cache=True, **{cache_name: cache})
    cache.crop(-1)


plain_prefill_seconds = seconds_of(read)
scores, cache = read()
token = scores.argmax()[None, None]
plain_decode_seconds = seconds_of(write)

# %% convert
# What `convert_hf_to_gguf.py` of llama.cpp does with a folder of Transformers, for this model.
writer = gguf.GGUFWriter(path, "llama")
writer.add_block_count(layers)
writer.add_context_length(config.max_position_embeddings)
writer.add_embedding_length(width)
writer.add_feed_forward_length(config.intermediate_size)
writer.add_head_count(config.num_attention_heads)
writer.add_head_count_kv(config.num_key_value_heads)
writer.add_layer_norm_rms_eps(config.rms_norm_eps)
writer.add_rope_dimension_count(config.head_dim)
# There is no text: a token is written as its number.
writer.add_tokenizer_model("llama")
writer.add_token_list([f"{number} " for number in range(vocabulary)])
writer.add_token_scores([0.0] * vocabulary)
writer.add_token_types([gguf.TokenType.NORMAL] * vocabulary)
places = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)
quantized = gguf.GGMLQuantizationType[number_format]
for name, tensor in model.state_dict().items():
    values = tensor.numpy()
    if name.endswith(("q_proj.weight", "k_proj.weight")):
        # llama.cpp turns neighbours in a head, Transformers its two halves.
        halves = values.reshape(-1, 2, config.head_dim // 2, width)
        values = halves.swapaxes(1, 2).reshape(values.shape)
    kind = quantized if values.ndim > 1 else gguf.GGMLQuantizationType.F32
    place = places.get_name(name, try_suffixes=(".weight",))
    writer.add_tensor(place, gguf.quants.quantize(values, kind), raw_dtype=kind)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
file_size = Path(path).stat().st_size

# %% start
start = time.perf_counter()
# region server
settings = xllamacpp.CommonParams()
settings.model.path = path
# Tokens in all, and requests at once.
settings.n_ctx = 4096
settings.n_parallel = 16
threads = torch.get_num_threads()
settings.cpuparams.n_threads = threads
settings.cpuparams_batch.n_threads = threads
# Errors alone.
settings.verbosity = 0
server = xllamacpp.Server(settings)
# endregion


def ask(prompt, tokens):
    """An answer of so many tokens to a prompt of token ids."""
    return server.handle_completions(
        {
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 0,
            "logprobs": 1,
            "ignore_eos": True,
            # What it has read before would make it look fast.
            "cache_prompt": False,
        }
    )


(first,) = ask(prompt[0].tolist(), 1)["choices"][0]["logprobs"]["content"]
start_seconds = time.perf_counter() - start


def seconds_to_write(requests, tokens):
    """How long several requests at once take that write so many tokens each."""
    prompts = torch.randint(vocabulary, (requests, prompt_tokens)).tolist()
    start = time.perf_counter()
    with ThreadPoolExecutor(requests) as clients:
        answers = list(clients.map(ask, prompts, [tokens] * requests))
    seconds = time.perf_counter() - start
    assert all(one["usage"]["completion_tokens"] == tokens for one in answers)
    return seconds


# %% measure
seconds_to_write(1, 2)
prefill_seconds = median(seconds_to_write(1, 1) for _ in range(timed))
both = median(seconds_to_write(1, 1 + written) for _ in range(timed))
decode_seconds = (both - prefill_seconds) / written
prefill_share = prefill_seconds / plain_prefill_seconds
decode_share = decode_seconds / plain_decode_seconds
seconds_to_write(requests, 2)
written_per_second = requests * written / seconds_to_write(requests, written)
print(xllamacpp.get_system_info().strip(" |"))
print(f"prompt of {prompt_tokens} tokens: {prefill_seconds * 1e3:.0f} ms")
print(f"each token behind it: {decode_seconds * 1e3:.1f} ms")
print(f"{requests} requests at once: {written_per_second:.0f} tokens a second")

# %% checks
assert both > prefill_seconds
right = scores.log_softmax(-1)
off = abs(first["logprob"] - right[first["id"]].item()) / scores.std().item()
# It keeps the keys and values in F16, unless it is told otherwise.
most = {"F32": 0.01, "F16": 0.01, "Q8_0": 0.1, "Q4_0": 1}[number_format]
assert off < most, f"its score is off by {off:.2g} of their spread"
if number_format == "F32":
    assert first["id"] == token.item()
