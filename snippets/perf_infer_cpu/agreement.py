"""How far each way to run a Llama on a CPU agrees with fp32, on a model that was trained to continue English."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0",
#     "onnx>=1.23", "onnxscript>=0.7", "onnxruntime>=1.32", "openvino>=2026.4",
#     "torchao>=0.18",
# ]
#
# [tool.benchbook]
# needs = ["cpu"]
# venv = "torchao"
# timeout = 600
# repeats = 2
# environment = { OMP_NUM_THREADS = "2" }
# [tool.benchbook.metrics]
# loss = { unit = "1", better = "lower" }
# fp32_loss = { unit = "1" }
# loss_increase = { unit = "1", better = "lower" }
# other_bytes = { unit = "count", better = "lower" }
# compared_bytes = { unit = "count" }
# other_texts = { unit = "count", better = "lower" }
# parameters = { unit = "count" }
# texts_written = { unit = "count" }
# [tool.benchbook.matrix]
# way = [
#     "fp32", "bf16", "fp16", "int8", "torchao_weights", "torchao", "compile",
#     "onnx", "onnx_int8", "openvino", "openvino_f32",
# ]
# [tool.benchbook.smallest]
# steps = 5
# layers = 1
# texts_written = 2
# backend = "eager"
# ///

# %% parameters
way = "bf16"
layers = 2
width = 256
steps = 250
texts_written = 64
given = 64
written = 32
backend = "inductor"

# %% setup
import pydoc_data.topics
import inspect
import tempfile
import warnings
from itertools import chain

import onnxruntime
import openvino
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from torchao.quantization import (
    Int8DynamicActivationInt8WeightConfig,
    Int8WeightOnlyConfig,
    quantize_,
)
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, set_seed

set_seed(0)
# Announced to go with PyTorch 2.10, and still the int8 that needs no other package.
warnings.filterwarnings(
    "ignore", "torch.ao.quantization is deprecated", DeprecationWarning
)
folder = tempfile.TemporaryDirectory()

# %% train
# What Python's own `help()` knows of its topics, byte by byte; the last twentieth is kept for the test.
text = "".join(pydoc_data.topics.topics.values()).encode()
text = torch.tensor(list(text))
kept = len(text) * 19 // 20
train, test = text[:kept], text[kept:]
config = LlamaConfig(
    vocab_size=256,
    hidden_size=width,
    intermediate_size=width * 2,
    num_hidden_layers=layers,
    num_attention_heads=width // 64,
    num_key_value_heads=width // 64,
)
model = LlamaForCausalLM(config)
parameters = sum(tensor.numel() for tensor in model.parameters())
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
for _ in range(steps):
    starts = torch.randint(len(train) - 128, (16, 1))
    batch = train[starts + torch.arange(128)]
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(input_ids=batch, labels=batch).loss
    loss.backward()
    optimizer.step()
    schedule.step()
    optimizer.zero_grad()
model.eval()
torch.set_grad_enabled(False)

# %% ways
length = given + written
learned = bytes(train.tolist())
# Some passages stand in the manuals twice: what it has to continue is nothing that it has learned.
places = [
    place
    for place in range(0, len(test) - length, 16)
    if bytes(test[place + given : place + length].tolist()) not in learned
]
places = torch.tensor(places[:: len(places) // texts_written][:texts_written])
texts = test[places[:, None] + torch.arange(length)]
# Transformers 5.24 calls it `cache`.
names = inspect.signature(LlamaForCausalLM.forward).parameters
cache_name = "cache" if "cache" in names else "past_key_values"


class Half(torch.nn.Module):
    """The scores behind each token that is new, from the keys and values of those before it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, position_ids, *keys_and_values):
        cache = DynamicCache()
        for layer in range(len(keys_and_values) // 2):
            keys, values = keys_and_values[2 * layer : 2 * layer + 2]
            cache.update(keys, values, layer)
        found = self.model(
            input_ids=input_ids,
            position_ids=position_ids,
            use_cache=True,
            **{cache_name: cache},
        )
        return found.logits, *chain(*((one.keys, one.values) for one in cache.layers))


positions = torch.arange(length)[None]
prompt = (texts[:1, :given], positions[:, :given])
half = Half(model)
scores, *cached = half(*prompt)
step = (texts[:1, given : given + 1], positions[:, given : given + 1], *cached)


def exported():
    """Both halves as ONNX files that take any length."""
    free_prompt = ({1: "tokens"}, {1: "tokens"})
    # region free_step
    # A token, its position, and the keys and values before.
    free_step = ({}, {}, tuple({2: "past"} for _ in cached))
    # endregion
    paths = []
    for example, free in ((prompt, free_prompt), (step, free_step)):
        paths.append(f"{folder.name}/{len(paths)}.onnx")
        torch.onnx.export(
            half.eval(),
            example,
            paths[-1],
            dynamic_shapes=free,
            dynamo=True,
            verbose=False,
        )
    return paths


def onnx_session(path):
    session = onnxruntime.InferenceSession(path)
    names = [one.name for one in session.get_inputs()]
    return lambda *inputs: session.run(None, dict(zip(names, inputs, strict=True)))


def smaller(path):
    to = path.replace(".onnx", "_int8.onnx")
    quantize_dynamic(path, to, weight_type=QuantType.QInt8)
    return to


def openvino_model(path, **settings):
    compiled = openvino.Core().compile_model(path, "CPU", settings)
    precisions.add(compiled.get_property("INFERENCE_PRECISION_HINT").to_string())
    return lambda *inputs: [one.copy() for one in compiled(list(inputs)).values()]


def of_tensors(work):
    """An engine that takes and gives arrays, as a module does tensors."""
    return lambda *given: [
        torch.from_numpy(one) for one in work(*(tensor.numpy() for tensor in given))
    ]


def made():
    """What reads a prompt, and what takes one more token, in the way that is asked for."""
    changed = model
    match way:
        case "bf16":
            changed = model.to(torch.bfloat16)
        case "fp16":
            changed = model.to(torch.float16)
        case "int8":
            changed = torch.ao.quantization.quantize_dynamic(
                model, {torch.nn.Linear}, dtype=torch.qint8
            )
        case "torchao_weights":
            quantize_(changed.to(torch.bfloat16), Int8WeightOnlyConfig())
        case "torchao":
            quantize_(
                changed.to(torch.bfloat16), Int8DynamicActivationInt8WeightConfig()
            )
        case "compile":
            model.compile(backend=backend)
        case "onnx":
            return [of_tensors(onnx_session(path)) for path in exported()]
        case "onnx_int8":
            return [of_tensors(onnx_session(smaller(path))) for path in exported()]
        case "openvino":
            return [of_tensors(openvino_model(path)) for path in exported()]
        case "openvino_f32":
            return [
                of_tensors(openvino_model(path, INFERENCE_PRECISION_HINT="f32"))
                for path in exported()
            ]
    return Half(changed), Half(changed)


def scores_of_all(prefill):
    """The scores behind each token of each text, read one text at a time."""
    return torch.cat([prefill(text[None], positions)[0].float() for text in texts])


def continued(prefill, decode):
    """Each text behind what is given of it, written one token at a time, the likeliest."""
    written_texts = []
    for text in texts:
        scores, *cached = prefill(text[None, :given], positions[:, :given])
        tokens = [scores[:, -1:].argmax(-1)]
        for place in range(given, length - 1):
            scores, *cached = decode(
                tokens[-1], positions[:, place : place + 1], *cached
            )
            tokens.append(scores.argmax(-1))
        written_texts.append(torch.cat(tokens, 1))
    return torch.cat(written_texts)


def loss_of(scores):
    return torch.nn.functional.cross_entropy(
        scores[:, :-1].flatten(0, 1), texts[:, 1:].flatten()
    ).item()


# %% compare
right, right_texts = scores_of_all(half), continued(half, half)
usual = model.generate(prompt[0], do_sample=False, max_new_tokens=written)
precisions = set()
prefill, decode = made()
scores, new_texts = scores_of_all(prefill), continued(prefill, decode)
fp32_loss, loss = loss_of(right), loss_of(scores)
loss_increase = loss / fp32_loss - 1
other = scores.argmax(-1) != right.argmax(-1)
other_bytes, compared_bytes = int(other.sum()), other.numel()
other_texts = int((new_texts != right_texts).any(-1).sum())
print(f"loss: {loss:.4f}, in fp32 {fp32_loss:.4f}")
print(f"another likeliest byte than in fp32: {other_bytes} of {compared_bytes}")
print(f"texts with another byte: {other_texts} of {texts_written}")
if precisions:
    print(f"it computes in {', '.join(sorted(precisions))}")

# %% checks
assert steps < 100 or fp32_loss < 2, "the model has learned nothing"
assert torch.equal(usual[:, given:], right_texts[:1]), "generate writes another text"
assert len(texts) == texts_written
assert way != "fp32" or other_texts == other_bytes == 0
assert abs(loss - fp32_loss) < 0.1, "this way has broken the model"
