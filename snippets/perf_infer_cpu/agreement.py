"""How far each way to run a Llama on a CPU agrees with fp32, on a model that was trained to continue English."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0",
#     "onnx>=1.23", "onnxscript>=0.7", "onnxruntime>=1.32", "openvino>=2026.4",
# ]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 600
# repeats = 3
# environment = { OMP_NUM_THREADS = "2" }
# [tool.benchbook.metrics]
# loss = { unit = "1", better = "lower" }
# fp32_loss = { unit = "1" }
# same_next_token = { unit = "1", better = "higher" }
# same_continuations = { unit = "1", better = "higher" }
# largest_difference = { unit = "1", better = "lower" }
# parameters = { unit = "count" }
# [tool.benchbook.matrix]
# way = ["fp32", "bf16", "int8", "onnx_int8", "openvino"]
# [tool.benchbook.smallest]
# steps = 5
# layers = 1
# prompts = 2
# written = 2
# backend = "eager"
# ///

# %% parameters
way = "bf16"
layers = 2
width = 256
steps = 250
prompts = 64
written = 32
backend = "inductor"

# %% setup
import pydoc_data.topics
import tempfile
import warnings

import onnxruntime
import openvino
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

set_seed(0)
# Deprecated since PyTorch 2.10, and still the int8 that needs no other package.
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
length = 64 + written
places = torch.linspace(0, len(test) - length, prompts).long()
texts = test[places[:, None] + torch.arange(length)]


class Scores(torch.nn.Module):
    """The scores behind each token of a text."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def exported():
    path = f"{folder.name}/model.onnx"
    torch.onnx.export(Scores(model).eval(), (texts,), path, dynamo=True, verbose=False)
    return path


def onnx_session(path):
    session = onnxruntime.InferenceSession(path)
    (given,) = session.get_inputs()
    return lambda texts: torch.from_numpy(
        session.run(None, {given.name: texts.numpy()})[0]
    )


def openvino_model(**settings):
    compiled = openvino.Core().compile_model(exported(), "CPU", settings)
    return lambda texts: torch.from_numpy(compiled([texts.numpy()])[0].copy())


def made():
    """What gives the scores behind each token of texts, in the way that is asked for."""
    match way:
        case "fp32":
            return Scores(model)
        case "bf16":
            return Scores(model.to(torch.bfloat16))
        case "fp16":
            return Scores(model.to(torch.float16))
        case "int8":
            return Scores(
                torch.ao.quantization.quantize_dynamic(
                    model, {torch.nn.Linear}, dtype=torch.qint8
                )
            )
        case "compile":
            return torch.compile(Scores(model), backend=backend)
        case "onnx":
            return onnx_session(exported())
        case "onnx_int8":
            smaller = f"{folder.name}/int8.onnx"
            quantize_dynamic(exported(), smaller, weight_type=QuantType.QInt8)
            return onnx_session(smaller)
        case "openvino":
            return openvino_model()
        case "openvino_f32":
            return openvino_model(INFERENCE_PRECISION_HINT="f32")


def continued(scores_of):
    """The texts, all but their first 64 tokens written anew, each time the likeliest."""
    texts_now = texts.clone()
    for place in range(64, length):
        # Nothing looks ahead, so that what stands behind does not count.
        texts_now[:, place] = scores_of(texts_now)[:, place - 1].float().argmax(-1)
    return texts_now


def loss_of(scores):
    return torch.nn.functional.cross_entropy(
        scores[:, :-1].flatten(0, 1), texts[:, 1:].flatten()
    ).item()


# %% compare
right, right_texts = Scores(model)(texts), continued(Scores(model))
scores_of = made()
scores = scores_of(texts).float()
fp32_loss, loss = loss_of(right), loss_of(scores)
same_next_token = (scores.argmax(-1) == right.argmax(-1)).float().mean().item()
same = (continued(scores_of) == right_texts).all(-1)
same_continuations = same.float().mean().item()
largest_difference = (scores - right).abs().max().item()
print(f"loss: {loss:.4f}, in fp32 {fp32_loss:.4f}")
print(f"likeliest next byte as in fp32: {same_next_token:.2%}")
print(f"{written} bytes as in fp32: {int(same.sum())} of {prompts} texts")

# %% checks
assert steps < 100 or fp32_loss < 2, "the model has learned nothing"
assert way != "fp32" or largest_difference == 0
