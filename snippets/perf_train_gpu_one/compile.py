"""What `torch.compile` costs before training and saves in each step of a BERT: whole, by layers, without dropout."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 600
# repeats = 8
# matrix = [
#     { compiled = "nothing", dropout = 0.1 },
#     { compiled = "model", dropout = 0.1 },
#     { compiled = "layers", dropout = 0.1 },
#     { compiled = "nothing", dropout = 0.0 },
#     { compiled = "layers", dropout = 0.0 },
# ]
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# # What the C++ compiler can do is asked once on a machine, and that is not measured.
# [tool.benchbook.environment]
# MALLOC_MMAP_MAX_ = "0"
# MALLOC_TRIM_THRESHOLD_ = "100000000000"
# TORCHINDUCTOR_VEC_ISA_OK = "1"
# [tool.benchbook.metrics]
# step_seconds = { unit = "s", better = "lower" }
# samples_per_second = { unit = "samples/s", better = "higher" }
# first_step_seconds = { unit = "s", better = "lower" }
# compilation_in_plain_steps = { unit = "1", better = "lower" }
# saved_share = { unit = "1", better = "higher" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.on.accelerator]
# repeats = 2
# hidden_size = 1024
# heads = 16
# layers = 4
# sequence_length = 512
# timed_steps = 5
# [tool.benchbook.smallest]
# backend = "aot_eager"
# hidden_size = 96
# batch_size = 2
# sequence_length = 16
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (4 + 2 * timed_steps))
# '''
# # The start of `Trainer`, Inductor for the model, and for a small one.
# seconds = "1 + {'nothing': 0, 'model': 14, 'layers': 12}[compiled]"
# ///

# %% parameters
compiled = "model"
dropout = 0.1
backend = "inductor"
layers = 2
hidden_size = 256
heads = 8
batch_size = 16
sequence_length = 128
timed_steps = 3

# %% setup
import functools
import os
import tempfile
import time
from itertools import accumulate
from statistics import median

# What an earlier process compiled would make this one look fast.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()

import torch
import transformers
from torch._dynamo.utils import counters
from torch.profiler import ProfilerActivity, profile
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    set_seed,
)

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
# What measuring needs besides: one step on four samples, whose gradient is not clipped.
TrainingArguments = functools.partial(
    transformers.TrainingArguments,
    per_device_train_batch_size=4,
    train_sampling_strategy="sequential",
    max_steps=1,
    max_grad_norm=0.0,
    save_strategy="no",
    report_to="none",
    logging_steps=1,
    disable_tqdm=True,
    use_cpu=device.type == "cpu",
)
if compiled != "nothing":
    torch.compile = functools.partial(torch.compile, backend=backend)
    TrainingArguments.keywords["torch_compile_backend"] = backend


def full_fp32():
    """Turns TF32 off, which `Trainer` turns on under CUDA where it compiles."""
    if device.type == "cuda":
        torch.backends.fp32_precision = "ieee"
        torch.backends.cuda.matmul.allow_tf32 = False  # what older code reads


set_seed(0)
config = BertConfig(
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * hidden_size,
    hidden_dropout_prob=dropout,
    attention_probs_dropout_prob=dropout,
    problem_type="single_label_classification",  # or the second step compiles again
)
with device:
    model = BertForSequenceClassification(config).train()
    ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length))
    labels = torch.arange(batch_size) % 2
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)


# %% gradient
def gradient(model):
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


def difference(value, wanted):
    return ((value - wanted).norm() / wanted.norm()).item()


def own_gradient():
    """Of the model and the batch."""
    model(ids, labels=labels).loss.backward()
    found = gradient(model).cpu()
    optimizer.zero_grad()
    return found


# %% step
def step():
    """One step, and its seconds."""
    begin = time.perf_counter()
    loss = model(ids, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - begin


# %% eager
eager_seconds = median([step() for _ in range(1 + timed_steps)][1:])
if dropout == 0:  # else no two gradients are the same
    weights = [weight.detach().to("cpu", copy=True) for weight in model.parameters()]
    wanted = own_gradient()

# %% with_pytorch
if compiled == "model":
    # region pytorch
    # The first step compiles, and takes far longer.
    model.compile()
    # endregion
elif compiled == "layers":
    # region pytorch_layers
    # Layers are alike: they are compiled once for all.
    for layer in model.bert.encoder.layer:
        layer.compile()
    # endregion

# %% time
first_step_seconds = step()
step()
step_seconds = median(step() for _ in range(timed_steps))
compilation_in_plain_steps = (first_step_seconds - step_seconds) / eager_seconds
saved_share = 1 - step_seconds / eager_seconds
samples_per_second = batch_size / step_seconds
graphs = counters["stats"]["unique_graphs"]
print(f"first step {first_step_seconds:.2f} s, later steps {step_seconds:.3f} s")
print(f"before: {eager_seconds:.3f} s; compiled graphs: {graphs}")

# %% memory
if device.type == "cpu":
    states = [state for each in optimizer.state.values() for state in each.values()]
    tensors = [*model.parameters(), *model.buffers(), *states, ids, labels]
    held = sum(tensor.nbytes for tensor in tensors)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        step()
    events = watched.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    peak_memory = held + max(accumulate(change.nbytes() for change in changes))
else:
    torch.accelerator.reset_peak_memory_stats()
    step()
    peak_memory = torch.accelerator.max_memory_allocated()
print(f"peak: {peak_memory / 2**20:.0f} MiB")


# %% same_gradient
if dropout == 0:  # what was compiled has the gradient of what was not
    for weight, before in zip(model.parameters(), weights):
        weight.data.copy_(before)
    own_difference = difference(own_gradient(), wanted)
    assert counters["stats"]["unique_graphs"] == graphs


# %% same_training
class Small(torch.nn.Module):
    """Two layers that are alike: compiled in a moment."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU())
            for _ in range(2)
        )

    def forward(self, features, labels):
        """The loss, as `Trainer` expects it."""
        for layer in self.layers:
            features = layer(features)
        return {"loss": torch.nn.functional.mse_loss(features, labels)}


class FirstGradient(TrainerCallback):
    """Keeps the gradient of the first step."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the batch's last gradient is there."""
        self.value = gradient(model)


with device:
    plain, small = Small(), Small()
small.load_state_dict(plain.state_dict())
features, targets = torch.randn(2, 4, 64)
dataset = [{"features": f, "labels": t} for f, t in zip(features, targets)]
wanted_loss = plain(features.to(device), targets.to(device))["loss"]
wanted_loss.backward()
torch._dynamo.reset()
counters.clear()

# %% with_trainer
if compiled == "model":
    # region trainer
    args = TrainingArguments(
        output_dir="output",
        torch_compile=True,
    )
    # endregion
elif compiled == "layers":
    # region trainer_layers
    import os

    os.environ.update(
        ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION="true",
    )
    args = TrainingArguments(
        output_dir="output",
        torch_compile=True,
    )
    # endregion
else:
    args = TrainingArguments(output_dir="output")

# %% same_in_trainer
first = FirstGradient()
trainer = Trainer(small, args, train_dataset=dataset, callbacks=[first])
trainer.remove_callback(PrinterCallback)
full_fp32()
trainer.train()
gradient_difference = difference(first.value, gradient(plain))
print(f"gradient differs by {gradient_difference:.1e}")

# %% checks
import math

assert model.device.type == device.type == trainer.args.device.type
assert (graphs > 0) == (compiled != "nothing")
if compiled != "nothing":  # one for the whole model, or one for all of its layers
    assert graphs == 1

if dropout == 0:
    assert own_difference < 1e-4

# `Trainer` compiles the same parts, and trains as without.
trainer_graphs = counters["stats"]["unique_graphs"]
assert trainer.args.torch_compile == (compiled != "nothing")
assert trainer.args.torch_compile_backend == (
    backend if trainer.args.torch_compile else None
)
assert (trainer_graphs > 0) == (compiled != "nothing")
assert (trainer_graphs > 1) == (compiled == "layers")
trainer_loss = trainer.state.log_history[0]["loss"]
assert math.isclose(trainer_loss, wanted_loss.item(), rel_tol=1e-4)
assert gradient_difference < 1e-4
assert torch.backends.cuda.matmul.fp32_precision != "tf32"  # it would differ more
assert torch.get_float32_matmul_precision() == "highest"
weight_bytes = sum(weight.nbytes for weight in model.parameters())
assert peak_memory > 3 * weight_bytes  # those, and two states for each
