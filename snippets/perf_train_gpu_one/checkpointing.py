"""What activation checkpointing keeps, what it computes again, and what that costs, in BERT."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 3
# timeout = 300
# repeats = 8
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# activations = { unit = "B", better = "lower", memory = "device" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# backward_flops = { unit = "FLOP", better = "lower" }
# backward_flops_ratio = { unit = "1", better = "lower" }
# step_flops_ratio = { unit = "1", better = "lower" }
# step_seconds = { unit = "s", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# mode = ["none", "all", "every_2nd", "selective"]
# [tool.benchbook.on.accelerator]
# layers = 24
# hidden_size = 1024
# heads = 16
# batch_size = 32
# sequence_length = 512
# timed_steps = 10
# [tool.benchbook.smallest]
# layers = 3
# hidden_size = 96
# batch_size = 2
# sequence_length = 32
# timed_steps = 1
# [tool.benchbook.work]
# host_values = "layers * 12 * hidden_size**2 + 31000 * hidden_size"
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (1 + (timed_steps + 5) * {'none': 1, 'all': 1.34, 'every_2nd': 1.17, 'selective': 1.1}[mode]))
# '''
# seconds = 6
# ///

# %% parameters
mode = "all"
layers = 6
hidden_size = 384
heads = 12
batch_size = 16
sequence_length = 128
timed_steps = 3

# %% setup
import tempfile
import time
from itertools import accumulate, pairwise
from statistics import median

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import create_selective_checkpoint_contexts
from torch.utils.flop_counter import FlopCounterMode
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
)
model = BertForSequenceClassification(config).to(device).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length))
labels = torch.arange(batch_size) % 2
batch = {"input_ids": ids.to(device), "labels": labels.to(device)}


# %% count
def counted_step():
    """FLOPs of both passes and the whole gradient, with the same dropout each time."""
    set_seed(1)
    model.zero_grad()
    with FlopCounterMode(display=False) as forward:
        loss = model(**batch).loss
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    gradient = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    return forward.get_total_flops(), backward.get_total_flops(), gradient


plain_forward, plain_backward, plain_gradient = counted_step()

# %% selective
linear_layers = [torch.ops.aten.addmm.default, torch.ops.aten.mm.default]


def keep_linear_layers():
    return create_selective_checkpoint_contexts(linear_layers)


selective = {"use_reentrant": False, "context_fn": keep_linear_layers}

# %% pytorch
if mode == "all":
    model.activation_checkpointing_enable()
elif mode == "every_2nd":
    model.activation_checkpointing_enable(every_n_layers=2)
elif mode == "selective":
    model.activation_checkpointing_enable(selective)

# %% compare
forward_flops, backward_flops, gradient = counted_step()
backward_flops_ratio = backward_flops / plain_backward
step_flops_ratio = (forward_flops + backward_flops) / (plain_forward + plain_backward)
gradient_error = (gradient - plain_gradient).norm() / plain_gradient.norm()
gradient_difference = gradient_error.item()
optimizer.zero_grad()
print(f"{mode}: {step_flops_ratio:.3f} times the operations of a plain step")
print(f"gradient differs by {gradient_difference:.1e}")


# %% step
losses = []


def forward():
    losses.append(model(**batch).loss)


def backward():
    losses.pop().backward()


def update():
    optimizer.step()
    optimizer.zero_grad()


def moment():
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter()


# %% time
moments = []
for _ in range(1 + timed_steps):  # the first creates the optimizer's states
    forward()
    backward()
    update()
    moments.append(moment())
step_seconds = median(b - a for a, b in pairwise(moments))
print(f"{step_seconds:.3f} s per step")


# %% memory
def watched(part):
    """The bytes that `part` leaves behind, and the most that it had at once."""
    if device.type != "cpu":
        before = torch.accelerator.memory_allocated()
        torch.accelerator.reset_peak_memory_stats()
        part()
        torch.accelerator.synchronize()
        left = torch.accelerator.memory_allocated() - before
        return left, torch.accelerator.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watch:
        part()
    events = watch.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    sums = list(accumulate((change.nbytes() for change in changes), initial=0))
    return sums[-1], max(sums)


states = [state for each in optimizer.state.values() for state in each.values()]
tensors = [*model.parameters(), *model.buffers(), *states]
held = sum(tensor.nbytes for tensor in tensors)
activations, forward_peak = watched(forward)
freed, backward_peak = watched(backward)
_, update_peak = watched(update)
after_backward = activations + freed
peak_memory = held + max(
    forward_peak, activations + backward_peak, after_backward + update_peak
)
print(f"{activations / 2**20:.1f} MiB kept for the backward pass")
print(f"{peak_memory / 2**20:.1f} MiB at the peak")

# %% trainer
every_layer = {"activation_checkpointing": True}
every_second = every_layer | {"activation_checkpointing_kwargs": {"every_n_layers": 2}}
all_but_linear = every_layer | {"activation_checkpointing_kwargs": selective}


# %% same_training
def checkpointed(model):
    return [layer.gradient_checkpointing for layer in model.bert.encoder.layer]


class FirstGradient(TrainerCallback):
    """Keeps the gradient of the first step, whose dropout is that of `counted_step`."""

    def on_step_begin(self, args, state, control, **kwargs):
        """Called before the first forward pass."""
        set_seed(1)

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the gradient is there."""
        gradients = [weight.grad.flatten() for weight in model.parameters()]
        self.value = torch.cat(gradients)


arguments = {
    "none": {},
    "all": every_layer,
    "every_2nd": every_second,
    "selective": all_but_linear,
}
loop_checkpointed = checkpointed(model)
*_, loop_gradient = counted_step()
model.zero_grad()
model.activation_checkpointing_disable()  # Trainer has to enable it again
args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=batch_size,
    train_sampling_strategy="sequential",
    max_steps=1,
    max_grad_norm=0,  # the gradient as it is
    save_strategy="no",
    disable_tqdm=True,
    use_cpu=device.type == "cpu",
    **arguments[mode],
)
dataset = [{"input_ids": ids[i], "labels": int(labels[i])} for i in range(batch_size)]
trainer = Trainer(model, args, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)
trainer_gradient = FirstGradient()
trainer.add_callback(trainer_gradient)
trainer.train()

# %% checks
import math

assert trainer.model.device.type == device.type
assert {weight.dtype for weight in model.parameters()} == {torch.float32}
assert math.isfinite(plain_gradient.norm()) and plain_gradient.norm() > 0
assert gradient_difference < 1e-5

# Trainer does what the loop does.
assert trainer.state.global_step == 1
assert checkpointed(trainer.model) == loop_checkpointed
error = (trainer_gradient.value - loop_gradient).norm() / loop_gradient.norm()
assert error < 1e-5

# What should be computed again is, and nothing else.
every = {"none": 0, "all": layers, "every_2nd": (layers + 1) // 2, "selective": layers}
assert sum(loop_checkpointed) == every[mode]
tokens = batch_size * sequence_length
linear = 24 * tokens * hidden_size**2
attention = 4 * tokens * sequence_length * hidden_size
head = 2 * batch_size * (hidden_size**2 + hidden_size * config.num_labels)
assert forward_flops == plain_forward == layers * (linear + attention) + head
again = attention if mode == "selective" else linear + attention
assert backward_flops == plain_backward + every[mode] * again

# A layer that is computed again keeps its input, and nothing else.
hidden_state = 4 * tokens * hidden_size
kept = activations / hidden_state
assert (
    kept < {"none": 99, "all": 1, "every_2nd": 20, "selective": 12}[mode] * layers + 9
)
assert peak_memory > held + after_backward and step_seconds > 0
