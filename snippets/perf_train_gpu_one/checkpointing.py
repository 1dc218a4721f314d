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
# repeats = 3
# layers = 8
# hidden_size = 1024
# heads = 16
# batch_size = 8
# sequence_length = 512
# timed_steps = 3
# [tool.benchbook.smallest]
# layers = 3
# hidden_size = 96
# batch_size = 2
# sequence_length = 32
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (1 + (timed_steps + 4) * {'none': 1, 'all': 1.34, 'every_2nd': 1.17, 'selective': 1.1}[mode]))
# '''
# seconds = 0.7
# ///

# %% parameters
mode = "all"
layers = 4
hidden_size = 384
heads = 12
batch_size = 16
sequence_length = 128
timed_steps = 2

# %% setup
import time
from functools import partial
from itertools import accumulate, pairwise
from statistics import median

import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
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
set_seed(0)
config = BertConfig(
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * hidden_size,
)
with device:
    model = BertForSequenceClassification(config)
    ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length))
    labels = torch.arange(batch_size) % 2
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
batch = {"input_ids": ids, "labels": labels}
batches = [batch]
TrainingArguments = partial(
    transformers.TrainingArguments,
    per_device_train_batch_size=batch_size,
    train_sampling_strategy="sequential",
    max_steps=1,
    max_grad_norm=0,  # the gradient as it is
    save_strategy="no",
    disable_tqdm=True,
    use_cpu=device.type == "cpu",
)

# %% pytorch
if mode == "all":
    # region pytorch_all
    model.train()
    model.activation_checkpointing_enable()
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
elif mode == "every_2nd":
    # region pytorch_every_2nd
    model.train()
    model.activation_checkpointing_enable(every_n_layers=2)
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
elif mode == "selective":
    # region pytorch_selective
    from torch.utils.checkpoint import (
        create_selective_checkpoint_contexts,
    )

    # Keep what linear layers return, recompute the rest
    aten = torch.ops.aten
    linear = [aten.mm.default, aten.addmm.default]

    def keep_linear():
        return create_selective_checkpoint_contexts(linear)

    model.train()
    model.activation_checkpointing_enable(
        {"use_reentrant": False, "context_fn": keep_linear}
    )
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
else:
    model.train()
    model(**batch).loss.backward()
    optimizer.step()
    optimizer.zero_grad()


# %% compare
def checkpointed(model):
    return [layer.gradient_checkpointing for layer in model.bert.encoder.layer]


def counted_step():
    """FLOPs of both passes and the whole gradient, with the same dropout each time."""
    set_seed(1)
    with FlopCounterMode(display=False) as forward:
        loss = model(**batch).loss
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    gradient = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    model.zero_grad()
    return forward.get_total_flops(), backward.get_total_flops(), gradient


loop_checkpointed = checkpointed(model)
forward_flops, backward_flops, gradient = counted_step()
model.activation_checkpointing_disable()  # Trainer has to enable it again
plain_forward, plain_backward, plain_gradient = counted_step()
backward_flops_ratio = backward_flops / plain_backward
step_flops_ratio = (forward_flops + backward_flops) / (plain_forward + plain_backward)
gradient_error = (gradient - plain_gradient).norm() / plain_gradient.norm()
gradient_difference = gradient_error.item()
print(f"{mode}: {step_flops_ratio:.3f} times the operations of a plain step")
print(f"gradient differs by {gradient_difference:.1e}")

# %% trainer
if mode == "all":
    # region trainer_all
    args = TrainingArguments(
        output_dir="output",
        activation_checkpointing=True,
    )
    # endregion
elif mode == "every_2nd":
    # region trainer_every_2nd
    args = TrainingArguments(
        output_dir="output",
        activation_checkpointing=True,
        activation_checkpointing_kwargs={
            "every_n_layers": 2,
        },
    )
    # endregion
elif mode == "selective":
    # region trainer_selective
    from torch.utils.checkpoint import (
        create_selective_checkpoint_contexts,
    )

    # Keep what linear layers return, recompute the rest
    aten = torch.ops.aten
    linear = [aten.mm.default, aten.addmm.default]

    def keep_linear():
        return create_selective_checkpoint_contexts(linear)

    args = TrainingArguments(
        output_dir="output",
        activation_checkpointing=True,
        activation_checkpointing_kwargs={
            "use_reentrant": False,
            "context_fn": keep_linear,
        },
    )
    # endregion
else:
    args = TrainingArguments(output_dir="output")


# %% same_training
class FirstGradient(TrainerCallback):
    """Keeps the gradient of the first step, whose dropout is that of `counted_step`."""

    def on_step_begin(self, args, state, control, **kwargs):
        """Called before the first forward pass."""
        set_seed(1)

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the gradient is there."""
        gradients = [weight.grad.flatten() for weight in model.parameters()]
        self.value = torch.cat(gradients)


rows = zip(ids.cpu(), labels.tolist())
dataset = [{"input_ids": row, "labels": label} for row, label in rows]
trainer = Trainer(model, args, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)
trainer_gradient = FirstGradient()
trainer.add_callback(trainer_gradient)
trainer.train()
trainer_steps = trainer.state.global_step
trainer_asked = trainer.args.activation_checkpointing
trainer_error = (trainer_gradient.value - gradient).norm() / gradient.norm()
del trainer, trainer_gradient, gradient, gradient_error  # memory is measured below

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
moments = [moment()]
for _ in range(timed_steps):
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

# %% checks
import math

assert model.device.type == device.type == args.device.type
assert {weight.dtype for weight in model.parameters()} == {torch.float32}
assert math.isfinite(plain_gradient.norm()) and plain_gradient.norm() > 0
assert gradient_difference < 1e-5

# Trainer does what the loop does, and it is what the last part measured.
assert trainer_steps == 1
assert trainer_asked == (mode != "none")
assert checkpointed(model) == loop_checkpointed
assert trainer_error < 1e-5

# What should be computed again is, and nothing else.
every = {"none": 0, "all": layers, "every_2nd": (layers + 1) // 2, "selective": layers}
assert sum(loop_checkpointed) == every[mode]
tokens = batch_size * sequence_length
linear_flops = 24 * tokens * hidden_size**2
attention = 4 * tokens * sequence_length * hidden_size
head = 2 * batch_size * (hidden_size**2 + hidden_size * config.num_labels)
assert forward_flops == plain_forward == layers * (linear_flops + attention) + head
again = attention if mode == "selective" else linear_flops + attention
assert backward_flops == plain_backward + every[mode] * again
if mode == "all":  # a forward pass without the head is a third of the step
    assert math.isclose(step_flops_ratio, 4 / 3, rel_tol=0.01)
if mode == "selective":
    assert step_flops_ratio < 1 + 1 / 20

# A layer that is computed again keeps its input, and nothing else.
hidden_state = 4 * tokens * hidden_size
kept = activations / hidden_state
assert (
    kept < {"none": 99, "all": 1, "every_2nd": 20, "selective": 12}[mode] * layers + 9
)
assert peak_memory > held + after_backward and step_seconds > 0
