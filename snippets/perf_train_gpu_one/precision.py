"""Bytes, rounding and lost updates of fp32, autocast and pure bf16, in BERT."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 4
# timeout = 300
# repeats = 2
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# weights_per_parameter = { unit = "B/parameter", better = "lower" }
# gradients_per_parameter = { unit = "B/parameter", better = "lower" }
# states_per_parameter = { unit = "B/parameter", better = "lower" }
# static_bytes_per_parameter = { unit = "B/parameter", better = "lower" }
# copies_per_parameter = { unit = "B/parameter", better = "lower" }
# activations = { unit = "B", better = "lower", memory = "device" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# loss_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# lost_updates = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# precision = ["fp32", "bf16_autocast", "fp16_autocast", "bf16"]
# [tool.benchbook.on.accelerator]
# layers = 24
# hidden_size = 1024
# heads = 16
# batch_size = 32
# sequence_length = 512
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 96
# batch_size = 2
# sequence_length = 32
# [tool.benchbook.work]
# host_values = "layers * 12 * hidden_size**2 + 31000 * hidden_size"
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (5 if precision == 'fp32' else 1))
# '''
# bf16 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (0 if precision == 'fp32' else 4))
# '''
# seconds = 5
# ///

# %% parameters
precision = "bf16_autocast"
layers = 6
hidden_size = 384
heads = 12
batch_size = 16
sequence_length = 128
learning_rate = 1e-5

# %% setup
import copy
import tempfile
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.utils.logging import disable_progress_bar

disable_progress_bar()

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(0)
config = BertConfig(
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * hidden_size,
)
ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length))
labels = torch.arange(batch_size) % 2
batch = {"input_ids": ids.to(device), "labels": labels.to(device)}

# %% checkpoint
checkpoint = tempfile.mkdtemp()  # a model as most are published: in bf16
published = BertForSequenceClassification(config).to(torch.bfloat16)
published.save_pretrained(checkpoint)

# %% load
if precision == "bf16":
    model = AutoModelForSequenceClassification.from_pretrained(checkpoint)
else:
    model = AutoModelForSequenceClassification.from_pretrained(
        checkpoint, dtype=torch.float32
    )
model.to(device)

# %% pytorch
half = torch.float16 if precision == "fp16_autocast" else torch.bfloat16
mixed = precision in ("bf16_autocast", "fp16_autocast")
autocast = torch.autocast(device.type, dtype=half, enabled=mixed)
scaler = torch.amp.GradScaler(device.type, enabled=half == torch.float16)


# %% step
losses = []


def forward():
    with autocast:
        losses.append(model(**batch).loss)


def backward():
    scaler.scale(losses.pop()).backward()


def update():
    scaler.step(optimizer)
    scaler.update()


def gradient_of(model, scale=1):
    gradients = [weight.grad.flatten().float() for weight in model.parameters()]
    return torch.cat(gradients) / scale


# %% rounding
exact = copy.deepcopy(model).float().eval()  # no dropout: nothing but rounding differs
exact_loss = exact(**batch).loss
exact_loss.backward()
model.eval()
forward()
loss = losses[0].item()
backward()
loss_difference = abs(loss - exact_loss.item()) / exact_loss.item()
wanted = gradient_of(exact)
gradient_error = gradient_of(model, scaler.get_scale()) - wanted
gradient_difference = (gradient_error.norm() / wanted.norm()).item()
del exact, exact_loss, wanted, gradient_error
print(f"{precision}: loss differs by {loss_difference:.1e} from that of fp32,")
print(f"its gradient by {gradient_difference:.1e}")

# %% lost_updates
optimizer = torch.optim.AdamW(
    model.parameters(), lr=learning_rate, weight_decay=0, fused=True
)
before = [weight.detach().clone() for weight in model.parameters()]
update()  # Adam's first one is the learning rate, up or down, wherever there is a gradient
stayed = to_move = 0
for old, weight in zip(before, model.parameters()):
    moves = weight.grad != 0
    to_move += moves.sum().item()
    stayed += (moves & (old == weight)).sum().item()
lost_updates = stayed / to_move
del before, old, moves
optimizer.zero_grad()
print(f"{lost_updates:.1%} of the weights that should move do not")


# %% memory
def watched(part):
    """The bytes that `part` leaves behind, and the most that it had at once."""
    if device.type != "cpu":
        held = torch.accelerator.memory_allocated()
        torch.accelerator.reset_peak_memory_stats()
        part()
        torch.accelerator.synchronize()
        left = torch.accelerator.memory_allocated() - held
        return left, torch.accelerator.max_memory_allocated() - held
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watch:
        part()
    events = watch.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    sums = list(accumulate((change.nbytes() for change in changes), initial=0))
    return sums[-1], max(sums)


def size_of(tensors):
    return sum(tensor.nbytes for tensor in tensors)


def states_of(optimizer):
    states = [state for each in optimizer.state.values() for state in each.values()]
    return [state for state in states if torch.is_tensor(state)]


model.train()
held = size_of([*model.parameters(), *model.buffers(), *states_of(optimizer)])
kept, forward_peak = watched(forward)
freed, backward_peak = watched(backward)
_, update_peak = watched(update)
after_backward = kept + freed
peak_memory = held + max(
    forward_peak, kept + backward_peak, after_backward + update_peak
)
print(f"{peak_memory / 2**20:.1f} MiB at the peak")

# %% bytes_per_parameter
parameter_count = model.num_parameters()
weights = size_of(model.parameters())
gradients = size_of(weight.grad for weight in model.parameters())
optimizer_states = size_of(states_of(optimizer))
weights_per_parameter = weights / parameter_count
gradients_per_parameter = gradients / parameter_count
states_per_parameter = optimizer_states / parameter_count
static = weights + gradients + optimizer_states
static_bytes_per_parameter = static / parameter_count
print(f"{static_bytes_per_parameter:.2f} bytes per parameter, without activations")


# %% copies
own = {weight.data_ptr() for weight in model.parameters()}


class Copies(TorchDispatchMode):
    """Adds up the matrices that are cast from weights."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and result.ndim == 2:
            self.bytes += result.nbytes * (args[0].data_ptr() in own)
        return result


optimizer.zero_grad()
set_seed(1)
with Copies() as copies:
    forward()
backward()
copies_per_parameter = copies.bytes / parameter_count
activations = kept - copies.bytes
print(f"{copies_per_parameter:.2f} more for 16-bit copies, until the backward pass")

# %% trainer
arguments = {
    "fp32": {},
    "bf16_autocast": {"bf16": True},
    "fp16_autocast": {"fp16": True},
    "bf16": {"bf16": True},  # leaves the weights in bf16, as they were loaded
}


# %% same_training
class FirstGradient(TrainerCallback):
    """Keeps the gradient of the first step, whose dropout is that of the loop."""

    def on_step_begin(self, args, state, control, **kwargs):
        """Called before the first forward pass."""
        set_seed(1)

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the gradient is there, and without its scale."""
        self.value = gradient_of(model)


loop_gradient = gradient_of(model, scaler.get_scale())
optimizer.zero_grad()
args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=batch_size,
    train_sampling_strategy="sequential",
    max_steps=1,
    max_grad_norm=1e9,  # takes the scale off the gradient, and clips nothing
    save_strategy="no",
    disable_tqdm=True,
    use_cpu=device.type == "cpu",
    **arguments[precision],
)
dataset = [{"input_ids": ids[i], "labels": int(labels[i])} for i in range(batch_size)]
trainer = Trainer(model, args, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)
trainer_gradient = FirstGradient()
trainer.add_callback(trainer_gradient)
trainer.train()

# %% checks
import math

dtype = torch.bfloat16 if precision == "bf16" else torch.float32
assert {weight.dtype for weight in model.parameters()} == {dtype}
assert {weight.device.type for weight in model.parameters()} == {device.type}
assert weights_per_parameter == gradients_per_parameter == dtype.itemsize
assert math.isclose(states_per_parameter, 2 * dtype.itemsize, rel_tol=0.01)
assert (copies_per_parameter > 0) == mixed
assert copies_per_parameter < 2

# The copies are gone when the gradients have come.
assert math.isclose(after_backward, gradients, rel_tol=0.01)
assert activations > 0 and peak_memory > held + gradients

# Rounding that is there where it should be, and small.
if precision == "fp32":
    assert gradient_difference < 1e-5 and lost_updates < 0.01
else:
    assert loss_difference < 0.02 and 1e-5 < gradient_difference < 0.1
assert (lost_updates > 0.5) == (precision == "bf16")

# Trainer does what the loop does.
mixed_precision = {"fp32": "no", "fp16_autocast": "fp16"}.get(precision, "bf16")
assert trainer.accelerator.mixed_precision == mixed_precision
ignored = precision == "fp16_autocast" and device.type == "cpu"  # without a word
assert trainer.accelerator.native_amp == (precision != "fp32" and not ignored)
assert trainer.state.global_step == 1
assert size_of(states_of(trainer.optimizer.optimizer)) == optimizer_states
error = (trainer_gradient.value - loop_gradient).norm() / loop_gradient.norm()
assert error < (0.1 if precision == "bf16" or ignored else 1e-5), error
