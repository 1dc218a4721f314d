"""Bytes, rounding and lost updates of fp32, autocast and pure bf16, in BERT.

`peak_memory` is what tensors held at most, as the allocator counts it; `process_peak` what was charged for the same
step: by the operating system on a CPU (resident memory), by the driver on an accelerator (memory of the device). Both
begin with the bytes held before the step. On a CPU `fp16=True` does nothing in Trainer, without a word.
"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 4
# timeout = 300
# repeats = 3
# earlier_checks = ["sha256:9917cf99bcfc5337d94932571b8158469a9a3493aeaa227c35d7f95ebb7dfe59"]
# # What is freed goes back to the system at once: what the process is charged is what it holds.
# environment = { MALLOC_MMAP_THRESHOLD_ = "131072", MALLOC_TRIM_THRESHOLD_ = "131072" }
# [tool.benchbook.metrics]
# weights_per_parameter = { unit = "B/parameter", better = "lower" }
# gradients_per_parameter = { unit = "B/parameter", better = "lower" }
# states_per_parameter = { unit = "B/parameter", better = "lower" }
# static_bytes_per_parameter = { unit = "B/parameter", better = "lower" }
# copies_per_parameter = { unit = "B/parameter", better = "lower" }
# activations = { unit = "B", better = "lower", memory = "device" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# process_peak = { unit = "B", better = "lower", memory = "device" }
# loss_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# lost_updates = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# precision = ["fp32", "bf16_autocast", "fp16_autocast", "bf16"]
# [tool.benchbook.on.accelerator]
# repeats = 2
# layers = 8
# hidden_size = 1024
# heads = 16
# vocab_size = 30522
# batch_size = 8
# sequence_length = 512
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 96
# batch_size = 4
# sequence_length = 32
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (2.5 if precision == 'fp32' else 0.25))
# '''
# bf16 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (0 if precision == 'fp32' else 2.25))
# '''
# seconds = 1
# ///

# %% parameters
precision = "bf16_autocast"
layers = 4
hidden_size = 384
heads = 12
vocab_size = 4096
batch_size = 6
sequence_length = 128
learning_rate = 1e-5

# %% setup
import copy
import os
import tempfile
from functools import partial
from pathlib import Path

import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    set_seed,
)
from transformers.utils.logging import disable_progress_bar

disable_progress_bar()

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
os.chdir(tempfile.mkdtemp())  # where the model and Trainer's output go
set_seed(0)
config = BertConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * hidden_size,
)
with device:
    ids = torch.randint(0, vocab_size, (batch_size, sequence_length))
    labels = torch.arange(batch_size) % 2
batch = {"input_ids": ids, "labels": labels}
batches = [batch]
few = {"input_ids": ids[:2], "labels": labels[:2]}
TrainingArguments = partial(
    transformers.TrainingArguments,
    per_device_train_batch_size=2,
    train_sampling_strategy="sequential",
    max_steps=1,
    max_grad_norm=1e9,  # takes the scale off the gradient, and clips nothing
    learning_rate=learning_rate,
    save_strategy="no",
    disable_tqdm=True,
    use_cpu=device.type == "cpu",
)

# %% checkpoint
with device:  # a model as most are published: in bf16
    published = BertForSequenceClassification(config).to(torch.bfloat16)
published.save_pretrained("my-model")
del published

# %% loading
if precision == "bf16":
    model = AutoModelForSequenceClassification.from_pretrained("my-model")
else:
    # region load
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(
        "my-model",
        dtype=torch.float32,
    )
    # endregion
model.to(device)

# %% mixed
half = torch.float16 if precision == "fp16_autocast" else torch.bfloat16
mixed = precision in ("bf16_autocast", "fp16_autocast")
autocast = partial(torch.autocast, device.type, half, enabled=mixed)
scale = 65536 if precision == "fp16_autocast" else 1  # where GradScaler starts


def gradient_of(model, scale=1):
    gradients = [weight.grad.flatten().float() for weight in model.parameters()]
    return torch.cat(gradients) / scale


# %% rounding
exact = copy.deepcopy(model).float().eval()  # no dropout: nothing but rounding differs
exact_loss = exact(**few).loss
exact_loss.backward()
model.eval()
with autocast():
    loss = model(**few).loss
(scale * loss).backward()
loss_difference = abs(loss.item() - exact_loss.item()) / exact_loss.item()
wanted = gradient_of(exact)
gradient_error = gradient_of(model, scale) - wanted
gradient_difference = (gradient_error.norm() / wanted.norm()).item()
del exact, exact_loss, wanted, gradient_error, loss
print(f"{precision}: loss differs by {loss_difference:.1e} from that of fp32,")
print(f"its gradient by {gradient_difference:.1e}")

# %% lost_updates
optimizer = torch.optim.AdamW(
    model.parameters(), lr=learning_rate, weight_decay=0, fused=True
)
before = [weight.detach().clone() for weight in model.parameters()]
for weight in model.parameters():
    weight.grad /= scale
optimizer.step()  # Adam's first one is the learning rate, up or down, for any gradient
stayed = to_move = 0
for old, weight in zip(before, model.parameters()):
    moves = weight.grad != 0
    to_move += moves.sum().item()
    stayed += (moves & (old == weight)).sum().item()
lost_updates = stayed / to_move
del before, old, moves
optimizer.zero_grad()
print(f"{lost_updates:.1%} of the weights that should move do not")


# %% meters
def size_of(tensors):
    return sum(tensor.nbytes for tensor in tensors)


def states_of(optimizer):
    states = [state for each in optimizer.state.values() for state in each.values()]
    return [state for state in states if torch.is_tensor(state)]


def charged(field="VmRSS"):
    """What the driver charges on an accelerator, else the operating system."""
    if device.type != "cpu":
        free, total = torch.accelerator.get_memory_info()
        return total - free
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def note(moment):
    """Keeps what is allocated now, on an accelerator; on a CPU, the profiler does."""
    if device.type == "cpu":
        with torch.profiler.record_function(moment):
            pass
    else:
        allocated[moment] = torch.accelerator.memory_allocated() - before


def forward_ends(*_):
    note("forward ends")


def backward_ends(*_):
    note("backward ends")
    found["gradients"] = size_of(weight.grad for weight in model.parameters())


class Copies(TorchDispatchMode):
    """Adds up the matrices that are cast from weights."""

    bytes = 0
    own = frozenset(weight.data_ptr() for weight in model.parameters())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and result.ndim == 2:
            self.bytes += result.nbytes * (args[0].data_ptr() in self.own)
        return result


# %% begin
allocated, found = {}, {}
held = size_of([*model.parameters(), *model.buffers(), *states_of(optimizer)])
model.register_forward_hook(forward_ends)
optimizer.register_step_pre_hook(backward_ends)
watch = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
if device.type == "cpu":
    watch.start()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
else:
    torch.accelerator.synchronize()
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    before = torch.accelerator.memory_allocated()
charged_before = charged()
copies = Copies()
copies.__enter__()

# %% pytorch
if precision == "fp16_autocast":
    # region pytorch_fp16
    scaler = torch.amp.GradScaler(device.type)
    model.train()
    for batch in batches:
        with torch.autocast(device.type, torch.float16):
            loss = model(**batch).loss
        scaler.scale(loss).backward()
        # Take the scale off, or clipping clips the scale
        scaler.unscale_(optimizer)
        weights = model.parameters()
        torch.nn.utils.clip_grad_norm_(weights, max_norm=1.0)
        # Skips the step if a gradient is infinite or NaN
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    # endregion
elif precision == "bf16_autocast":
    # region pytorch_bf16
    model.train()
    for batch in batches:
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
else:
    model.train()
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
# Here, since whoever measures cells from outside begins anew with each.
most_charged = charged("VmHWM") if device.type == "cpu" else 0

# %% memory
copies.__exit__(None, None, None)
if device.type == "cpu":
    process_peak = held + most_charged - charged_before
    watch.stop()
    events = watch.profiler.kineto_results.events()
    sums = [0]
    for event in sorted(events, key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            sums.append(sums[-1] + event.nbytes())
        elif event.name() in ("forward ends", "backward ends"):
            allocated[event.name()] = sums[-1]
    peak_memory = held + max(sums)
else:
    torch.accelerator.synchronize()
    # The allocator gives nothing back: what it has now is the most it had.
    process_peak = held + charged() - charged_before
    peak_memory = held + torch.accelerator.max_memory_allocated() - before
kept, after_backward = allocated["forward ends"], allocated["backward ends"]
print(f"{peak_memory / 2**20:.1f} MiB at the peak, as the allocator counts")
print(f"{process_peak / 2**20:.1f} MiB at the peak, as the process is charged")

# %% bytes_per_parameter
parameter_count = model.num_parameters()
gradients, optimizer_states = found["gradients"], size_of(states_of(optimizer))
static = size_of(model.parameters()) + gradients + optimizer_states
weights_per_parameter = size_of(model.parameters()) / parameter_count
gradients_per_parameter = gradients / parameter_count
states_per_parameter = optimizer_states / parameter_count
static_bytes_per_parameter = static / parameter_count
copies_per_parameter = copies.bytes / parameter_count
activations = kept - copies.bytes
print(f"{static_bytes_per_parameter:.2f} bytes per parameter, without activations")
print(f"{copies_per_parameter:.2f} more for 16-bit copies, until the backward pass")

# %% trainer
if precision == "fp16_autocast":
    # region trainer_fp16
    args = TrainingArguments(
        output_dir="output",
        fp16=True,
    )
    # endregion
elif precision == "fp32":
    args = TrainingArguments(output_dir="output")
else:
    # region trainer_bf16
    args = TrainingArguments(
        output_dir="output",
        bf16=True,
    )
    # endregion


# %% same_training
class FirstGradient(TrainerCallback):
    """Keeps the gradient of the first step, whose dropout is that of the loop."""

    def on_step_begin(self, args, state, control, **kwargs):
        """Called before the first forward pass."""
        set_seed(1)

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the gradient is there, and without its scale."""
        self.value = gradient_of(model)


ignored = precision == "fp16_autocast" and device.type == "cpu"
set_seed(1)
with torch.autocast(device.type, half, enabled=mixed and not ignored):
    loss = model(**few).loss
trainer_scale = 1 if ignored else scale
(trainer_scale * loss).backward()
loop_gradient = gradient_of(model, trainer_scale)
optimizer.zero_grad()
rows = zip(few["input_ids"].cpu(), few["labels"].tolist())
dataset = [{"input_ids": row, "labels": label} for row, label in rows]
trainer = Trainer(model, args, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)
trainer_gradient = FirstGradient()
trainer.add_callback(trainer_gradient)
trainer.train()

# %% checks
import math

dtype = torch.bfloat16 if precision == "bf16" else torch.float32
full_size = hidden_size >= 384
assert {weight.dtype for weight in model.parameters()} == {dtype}
assert {weight.device.type for weight in model.parameters()} == {device.type}
assert weights_per_parameter == gradients_per_parameter == dtype.itemsize
assert math.isclose(states_per_parameter, 2 * dtype.itemsize, rel_tol=0.01)
static_expected = 8 if precision == "bf16" else 16  # autocast saves none of them
assert math.isclose(static_bytes_per_parameter, static_expected, rel_tol=0.01)
assert (copies_per_parameter > 0) == mixed
assert copies_per_parameter < 2

# The copies are gone when the gradients have come.
assert math.isclose(after_backward, gradients, rel_tol=0.01)
assert activations > 0 and peak_memory > held + gradients
assert not full_size or 0.9 < process_peak / peak_memory < 1.5
assert loss.isfinite()

# Rounding that is there where it should be, and small.
if precision == "fp32":
    assert gradient_difference < 1e-5
else:
    assert loss_difference < 0.02 and 1e-5 < gradient_difference < 0.1
if precision == "bf16":
    assert learning_rate == 1e-5 and lost_updates > 0.5
else:
    assert lost_updates < 0.01

# Trainer does what the loop does, except that it leaves fp16 out on a CPU.
mixed_precision = {"fp32": "no", "fp16_autocast": "fp16"}.get(precision, "bf16")
assert trainer.accelerator.mixed_precision == mixed_precision
assert trainer.accelerator.native_amp == (precision != "fp32" and not ignored)
assert (args.bf16, args.fp16) == (mixed_precision == "bf16", mixed_precision == "fp16")
assert trainer.state.global_step == 1
assert size_of(states_of(trainer.optimizer.optimizer)) == optimizer_states
error = (trainer_gradient.value - loop_gradient).norm() / loop_gradient.norm()
if device.type == "cpu" or precision == "fp32":
    assert error < (0.1 if precision == "bf16" else 1e-5), error
elif mixed:
    # FlashAttention's backward pass adds up in another order each time.
    assert error < 0.01, error
else:
    # Trainer's bf16=True casts around bf16 weights too. Of other types, a GPU's
    # dropout draws other masks: these are two samples of one gradient.
    assert error < 1, error
