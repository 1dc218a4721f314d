"""What it costs on a CPU to compile or export a Llama for any length, where one length would be faster or sooner."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "torch>=2.11", "transformers>=5.23", "accelerate>=1.15",
#     "onnx>=1.23", "onnxscript>=0.7", "onnxruntime>=1.32", "openvino>=2026.4",
# ]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 600
# repeats = 3
# environment = { OMP_NUM_THREADS = "2", TORCHINDUCTOR_VEC_ISA_OK = "1" }
# [tool.benchbook.metrics]
# fixed_prefill_seconds = { unit = "s", better = "lower" }
# free_prefill_seconds = { unit = "s", better = "lower" }
# fixed_decode_seconds = { unit = "s", better = "lower" }
# free_decode_seconds = { unit = "s", better = "lower" }
# prefill_share = { unit = "1", better = "lower" }
# decode_share = { unit = "1", better = "lower" }
# fixed_start_seconds = { unit = "s", better = "lower" }
# free_start_seconds = { unit = "s", better = "lower" }
# [tool.benchbook.matrix]
# way = ["compile", "onnx", "onnx_int8", "openvino"]
# [tool.benchbook.smallest]
# layers = 1
# width = 256
# vocabulary = 1000
# prompt_tokens = 16
# timed = 2
# backend = "aot_eager"
# ///

# %% parameters
way = "onnx"
layers = 10
width = 1024
vocabulary = 32000
prompt_tokens = 128
timed = 10
backend = "inductor"

# %% setup
import inspect
import os
import tempfile
import time
from itertools import chain
from statistics import median

folder = tempfile.TemporaryDirectory()
# What an earlier process compiled would make this one look fast.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.name

import onnxruntime
import openvino
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
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
model = LlamaForCausalLM(config).eval()
# Transformers 5.24 calls it `cache`.
names = inspect.signature(model.forward).parameters
cache_name = "cache" if "cache" in names else "past_key_values"


class Half(torch.nn.Module):
    """The scores behind the last token that is new, and the keys and values of all."""

    def forward(self, input_ids, position_ids, *keys_and_values):
        cache = DynamicCache()
        for layer in range(len(keys_and_values) // 2):
            keys, values = keys_and_values[2 * layer : 2 * layer + 2]
            cache.update(keys, values, layer)
        settings = {cache_name: cache, "use_cache": True, "logits_to_keep": 1}
        found = model(input_ids=input_ids, position_ids=position_ids, **settings)
        return found.logits, *chain(*((one.keys, one.values) for one in cache.layers))


half = Half().eval()
ids = torch.randint(vocabulary, (1, prompt_tokens))
positions = torch.arange(prompt_tokens + 2)[None]
prompt = (ids, positions[:, :prompt_tokens])
shorter = tuple(tensor[:, : prompt_tokens * 3 // 4] for tensor in prompt)
scores, *cached = half(*prompt)
step = (ids[:, -1:], positions[:, prompt_tokens : prompt_tokens + 1], *cached)
expected = [half(*prompt)[0], half(*step)[0], half(*shorter)[0]]

# %% ways
prompt_lengths = ({1: "tokens"}, {1: "tokens"})
step_lengths = ({}, {}, tuple({2: "past"} for _ in cached))


def exported(free):
    """Both halves as ONNX files, for these lengths or for any."""
    for example, lengths in ((prompt, prompt_lengths), (step, step_lengths)):
        path = f"{folder.name}/{len(example)}_{free}.onnx"
        torch.onnx.export(
            half,
            example,
            path,
            dynamic_shapes=lengths if free else None,
            dynamo=True,
            verbose=False,
        )
        yield path


def onnx_session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options)
    names = [one.name for one in session.get_inputs()]
    return lambda *inputs: session.run(None, dict(zip(names, inputs, strict=True)))


def smaller(path):
    to = path.replace(".onnx", "_int8.onnx")
    quantize_dynamic(path, to, weight_type=QuantType.QInt8)
    return to


def openvino_model(path):
    settings = {"INFERENCE_NUM_THREADS": torch.get_num_threads()}
    compiled = openvino.Core().compile_model(path, "CPU", settings)
    return lambda *inputs: [one.copy() for one in compiled(list(inputs)).values()]


def both_halves(free):
    """What reads a prompt and what takes one more token, for these lengths or for any."""
    match way:
        case "compile":
            torch.compiler.reset()
            model.compile(dynamic=None if free else False, backend=backend)
            return half, half
        case "onnx":
            return [onnx_session(path) for path in exported(free)]
        case "onnx_int8":
            return [onnx_session(smaller(path)) for path in exported(free)]
        case "openvino":
            return [openvino_model(path) for path in exported(free)]


def given(tensors):
    """The inputs, in what this way takes."""
    return tensors if way == "compile" else tuple(one.numpy() for one in tensors)


# %% measure
def seconds_of(work, *inputs):
    """The median of several calls, after one."""
    taken = []
    for _ in range(timed + 1):
        start = time.perf_counter()
        work(*inputs)
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


def write(decode, tokens):
    """So many tokens behind one another: the cache of each is longer by one."""
    token, _, *kept = given(step)
    for place in range(prompt_tokens, prompt_tokens + tokens):
        (position,) = given((positions[:, place : place + 1],))
        _, *kept = decode(token, position, *kept)


start = time.perf_counter()
prefill, decode = both_halves(free=False)
found = [prefill(*given(prompt))[0], decode(*given(step))[0]]
fixed_start_seconds = time.perf_counter() - start
fixed_prefill_seconds = seconds_of(prefill, *given(prompt))
fixed_decode_seconds = seconds_of(decode, *given(step))

start = time.perf_counter()
prefill, decode = both_halves(free=True)
found += [prefill(*given(prompt))[0], decode(*given(step))[0]]
# Another length of each: where a length is free only from its second value on, what that costs is in the start.
found.append(prefill(*given(shorter))[0])
write(decode, 2)
free_start_seconds = time.perf_counter() - start
free_prefill_seconds = seconds_of(prefill, *given(prompt))
free_decode_seconds = seconds_of(decode, *given(step))
prefill_share = free_prefill_seconds / fixed_prefill_seconds
decode_share = free_decode_seconds / fixed_decode_seconds
print(
    f"prompt of {prompt_tokens} tokens: {free_prefill_seconds * 1e3:.0f} ms, at one length {fixed_prefill_seconds * 1e3:.0f} ms"
)
print(
    f"each token behind it: {free_decode_seconds * 1e3:.1f} ms, at one length {fixed_decode_seconds * 1e3:.1f} ms"
)

# %% checks
rights = [*expected[:2], *expected]
for scores, right in zip(found, rights, strict=True):
    off = (torch.as_tensor(scores) - right).abs().max() / right.std()
    assert off < (1e-3 if way in ("compile", "onnx") else 1), (
        f"the scores are off by {off:.2g} of their spread"
    )
