"""What each way to run a Llama on a CPU makes of its two halves: reading a prompt, and writing token by token."""
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
# environment = { OMP_NUM_THREADS = "2", TORCHINDUCTOR_VEC_ISA_OK = "1" }
# matrix = [
#     { way = "sdpa" },
#     { way = "eager" },
#     { way = "bf16" },
#     { way = "fp16" },
#     { way = "int8" },
#     { way = "compile", repeats = 3 },
#     { way = "compile_bf16", repeats = 3 },
#     { way = "onnx", repeats = 4 },
#     { way = "onnx_int8", repeats = 4 },
#     { way = "openvino" },
#     { way = "openvino_f32", repeats = 4 },
# ]
# [tool.benchbook.metrics]
# fp32_weights = { unit = "B" }
# prefill_seconds = { unit = "s", better = "lower" }
# decode_seconds = { unit = "s", better = "lower" }
# prefill_share = { unit = "1", better = "lower", repeats = 8 }
# decode_share = { unit = "1", better = "lower", repeats = 8 }
# start_seconds = { unit = "s", better = "lower" }
# start_in_plain_tokens = { unit = "1", better = "lower", repeats = 4 }
# [tool.benchbook.smallest]
# layers = 1
# width = 256
# vocabulary = 1000
# prompt_tokens = 16
# timed = 2
# backend = "aot_eager"
# ///

# %% parameters
way = "sdpa"
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
import warnings
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

torch.compile = functools.partial(torch.compile, backend=backend)
torch.set_grad_enabled(False)
# Announced to go with PyTorch 2.10, and still the int8 that needs no other package.
warnings.filterwarnings(
    "ignore", "torch.ao.quantization is deprecated", DeprecationWarning
)


def new_model(attention="sdpa"):
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=width * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        num_key_value_heads=width // 256,
        vocab_size=vocabulary,
        attn_implementation=attention,
    )
    return LlamaForCausalLM(config).eval()


# Transformers 5.24 calls it `cache`.
names = inspect.signature(LlamaForCausalLM.forward).parameters
cache_name = "cache" if "cache" in names else "past_key_values"


class Prefill(torch.nn.Module):
    """The scores behind a prompt, and the keys and values of its tokens."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        cache = DynamicCache()
        found = self.model(
            input_ids=input_ids,
            use_cache=True,
            logits_to_keep=1,
            **{cache_name: cache},
        )
        return found.logits, *chain(*((one.keys, one.values) for one in cache.layers))


class Decode(torch.nn.Module):
    """The scores behind one more token, from the keys and values before it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, position_ids, *keys_and_values):
        cache = DynamicCache()
        for layer in range(layers):
            keys, values = keys_and_values[2 * layer : 2 * layer + 2]
            cache.update(keys, values, layer)
        found = self.model(
            input_ids=input_ids,
            position_ids=position_ids,
            use_cache=True,
            **{cache_name: cache},
        )
        return found.logits, *chain(*((one.keys, one.values) for one in cache.layers))


# %% plain
model = new_model()
fp32_weights = sum(tensor.nbytes for tensor in model.parameters())
prompt = torch.randint(vocabulary, (1, prompt_tokens))
plain_prefill, plain_decode = Prefill(model), Decode(model)
scores, *cached = plain_prefill(prompt)
token = scores[:, -1].argmax(-1, keepdim=True)
step = (token, torch.tensor([[prompt_tokens]]), *cached)
expected = [scores, plain_decode(*step)[0]]


def as_seen_by(kind, tensors):
    """The same inputs for a model whose weights are of another type."""
    return [
        tensor.to(kind) if tensor.is_floating_point() else tensor for tensor in tensors
    ]


def arrays(tensors):
    return [tensor.numpy() for tensor in tensors]


# %% ways
def sdpa():
    return plain_prefill, plain_decode


def eager():
    # region eager
    model.set_attn_implementation("eager")
    # endregion
    return Prefill(model), Decode(model)


def bf16():
    # region bf16
    model.to(torch.bfloat16)
    # endregion
    return Prefill(model), Decode(model)


def fp16():
    model.to(torch.float16)
    return Prefill(model), Decode(model)


def int8():
    # region int8
    smaller = torch.ao.quantization.quantize_dynamic(
        model, {torch.nn.Linear}, dtype=torch.qint8
    )
    # endregion
    return Prefill(smaller), Decode(smaller)


def compile():
    # region compile
    model.compile(dynamic=False)
    # endregion
    return Prefill(model), Decode(model)


def compile_bf16():
    model.to(torch.bfloat16)
    return compile()


def exported():
    """Both halves as ONNX files, with the shapes of this prompt."""
    paths = []
    for half, example in ((plain_prefill, (prompt,)), (plain_decode, step)):
        path = f"{folder.name}/{type(half).__name__}.onnx"
        # region export
        torch.onnx.export(
            half.eval(),
            example,
            path,
            dynamo=True,
            verbose=False,
        )
        # endregion
        paths.append(path)
    return paths


def onnx_session(path):
    # region onnx
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(path, options)
    # endregion
    names = [one.name for one in session.get_inputs()]
    return lambda *inputs: session.run(None, dict(zip(names, inputs, strict=True)))


def onnx():
    return [onnx_session(path) for path in exported()]


def onnx_int8():
    smaller = []
    for path in exported():
        to = path.replace(".onnx", "_int8.onnx")
        # region onnx_int8
        quantize_dynamic(path, to, weight_type=QuantType.QInt8)
        # endregion
        smaller.append(to)
    return [onnx_session(path) for path in smaller]


def openvino_model(path, **settings):
    settings |= {"INFERENCE_NUM_THREADS": torch.get_num_threads()}
    compiled = openvino.Core().compile_model(path, "CPU", settings)
    precisions.add(compiled.get_property("INFERENCE_PRECISION_HINT").to_string())
    return lambda *inputs: list(compiled(list(inputs)).values())


def openvino_default():
    return [openvino_model(path) for path in exported()]


def openvino_f32():
    # region openvino_f32
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    # endregion
    return [openvino_model(path, **settings) for path in exported()]


# %% start
def seconds_of(work, *inputs):
    """The median of several calls, after one."""
    taken = []
    for _ in range(timed + 1):
        start = time.perf_counter()
        work(*inputs)
        taken.append(time.perf_counter() - start)
    return median(taken[1:])


plain_prefill_seconds = seconds_of(plain_prefill, prompt)
plain_decode_seconds = seconds_of(plain_decode, *step)
precisions = set()
ways = {"openvino": openvino_default}
inside_torch = way in (
    "sdpa",
    "eager",
    "bf16",
    "fp16",
    "int8",
    "compile",
    "compile_bf16",
)
kind = {"bf16": torch.bfloat16, "fp16": torch.float16, "compile_bf16": torch.bfloat16}
shown = as_seen_by(kind.get(way, torch.float32), step) if inside_torch else arrays(step)
asked = [prompt] if inside_torch else arrays([prompt])

start = time.perf_counter()
prefill, decode = ways.get(way, globals().get(way))()
first_scores = prefill(*asked)[0]
second_scores = decode(*shown)[0]
start_seconds = time.perf_counter() - start

# %% measure
prefill_seconds = seconds_of(prefill, *asked)
decode_seconds = seconds_of(decode, *shown)
prefill_share = prefill_seconds / plain_prefill_seconds
decode_share = decode_seconds / plain_decode_seconds
start_in_plain_tokens = start_seconds / plain_decode_seconds
print(f"prompt of {prompt_tokens} tokens: {prefill_seconds * 1e3:.0f} ms")
print(f"each token behind it: {decode_seconds * 1e3:.1f} ms")

# %% checks
found = [torch.as_tensor(one).float() for one in (first_scores, second_scores)]
exact = way in ("sdpa", "eager", "compile", "onnx", "openvino_f32")
for scores, right in zip(found, expected, strict=True):
    off = (scores - right).abs().max() / right.std()
    assert off < (1e-3 if exact else 1), (
        f"the scores are off by {off:.2g} of their spread"
    )
if way.startswith("openvino"):
    # What it chose by itself differs from one processor to another.
    assert len(precisions) == 1
    precision = precisions.pop()
    print(f"it computes in {precision}")
    assert way == "openvino" or precision == "f32"
