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
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# matrix = [
#     { compiled = "nothing", dropout = 0.1 },
#     { compiled = "model", dropout = 0.1 },
#     { compiled = "layers", dropout = 0.1 },
#     { compiled = "nothing", dropout = 0.0 },
#     { compiled = "layers", dropout = 0.0 },
# ]
# [tool.benchbook.metrics]
# step_seconds = { unit = "s", better = "lower" }
# samples_per_second = { unit = "samples/s", better = "higher" }
# first_step_seconds = { unit = "s", better = "lower" }
# compilation_in_plain_steps = { unit = "1", better = "lower" }
# saved_share = { unit = "1", better = "higher" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.on.accelerator]
# layers = 24
# hidden_size = 1024
# heads = 16
# batch_size = 32
# sequence_length = 512
# timed_steps = 10
# [tool.benchbook.smallest]
# layers = 1
# hidden_size = 96
# batch_size = 2
# sequence_length = 16
# timed_steps = 1
# [tool.benchbook.work]
# host_values = "layers * 12 * hidden_size**2 + 31000 * hidden_size"
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (4 + 2 * timed_steps))
# '''
# seconds = "2 + {'nothing': 0, 'model': 41, 'layers': 22}[compiled]"
# ///

# %% parameters
compiled = "model"
dropout = 0.1
layers = 6
hidden_size = 384
heads = 12
batch_size = 16
sequence_length = 128
timed_steps = 3

# %% setup
import os
import tempfile
import time
from itertools import accumulate
from statistics import median

# What an earlier process compiled would make this one look fast.
os.environ["TORCHINDUCTOR_CACHE_DIR"] = tempfile.mkdtemp()

import torch
from torch._dynamo.utils import counters
from torch.profiler import ProfilerActivity, profile
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
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
model = BertForSequenceClassification(config).train().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, fused=True)
ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length), device=device)
labels = torch.arange(batch_size, device=device) % 2


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


# %% pytorch
def compile_model(model):
    if compiled == "model":
        model.compile()
    elif compiled == "layers":  # once for all layers: they are alike
        for layer in model.bert.encoder.layer:
            layer.compile()


# %% trainer
compile_arguments = {"torch_compile": compiled != "nothing"}
if compiled == "layers":
    os.environ["ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION"] = "true"

# %% time
compile_model(model)
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

# %% same_training
tiny = BertConfig(
    vocab_size=256,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=256,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    problem_type="single_label_classification",
)
plain = BertForSequenceClassification(tiny).to(device)
tokens = torch.randint(0, 256, (4, 32))
dataset = [{"input_ids": row, "labels": i % 2} for i, row in enumerate(tokens)]
batch = {"input_ids": tokens.to(device), "labels": (torch.arange(4) % 2).to(device)}


def twin():
    """A model with the same weights, not compiled."""
    other = BertForSequenceClassification(tiny).to(device)
    other.load_state_dict(plain.state_dict())
    return other


def gradient(model):
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


def difference(value, wanted):
    return ((value - wanted).norm() / wanted.norm()).item()


class FirstGradient(TrainerCallback):
    """Keeps the gradient of the first step."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the batch's last gradient is there."""
        self.value = gradient(model)


torch._dynamo.reset()  # the shapes are others
wanted_loss = plain(**batch).loss
wanted_loss.backward()
by_pytorch = twin()
compile_model(by_pytorch)
loss = by_pytorch(**batch).loss
loss.backward()
gradient_difference = difference(gradient(by_pytorch), gradient(plain))
print(f"gradient differs by {gradient_difference:.1e}")

# %% same_in_trainer
torch._dynamo.reset()
counters.clear()
args = TrainingArguments(
    "output",
    per_device_train_batch_size=4,
    train_sampling_strategy="sequential",
    max_steps=1,
    max_grad_norm=0.0,  # no clipping
    save_strategy="no",
    report_to="none",
    logging_steps=1,
    disable_tqdm=True,
    use_cpu=device.type == "cpu",
    **compile_arguments,
)
first = FirstGradient()
trainer = Trainer(twin(), args, train_dataset=dataset, callbacks=[first])
trainer.remove_callback(PrinterCallback)
trainer.train()

# %% checks
import math

assert loss.device.type == device.type == trainer.args.device.type
assert math.isclose(loss.item(), wanted_loss.item(), rel_tol=1e-5)
assert gradient_difference < 1e-4
assert (graphs > 0) == (compiled != "nothing")
if compiled != "nothing":  # one for the whole model, or one for all of its layers
    assert graphs == 1
trainer_graphs = counters["stats"]["unique_graphs"]
assert (trainer_graphs > 0) == (compiled != "nothing")
assert (trainer_graphs > 1) == (compiled == "layers")
trainer_loss = trainer.state.log_history[0]["loss"]
assert math.isclose(trainer_loss, wanted_loss.item(), rel_tol=1e-4)
assert difference(first.value, gradient(plain)) < 1e-4
weight_bytes = sum(weight.nbytes for weight in model.parameters())
assert peak_memory > 3 * weight_bytes  # those, and two states for each
