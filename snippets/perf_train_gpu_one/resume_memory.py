"""What resuming holds that a fresh run does not: "out of memory" only when a run goes on from a checkpoint.

On one device, Trainer of transformers 5.23 adds nothing on the device: `_load_from_checkpoint` reads the weights to the
CPU (`safetensors.torch.load_file(..., device="cpu")`: "We load the model state dict on the CPU to avoid an OOM error"),
and `_load_optimizer_and_scheduler` reads optimizer.pt with `map_location="cpu"`. With several devices (`world_size > 1`)
it reads optimizer.pt to `args.device`. A loop that reads a checkpoint to the device holds the weights twice, for as long
as it keeps what it read: AdamW's states are not copied where type and device agree (`Optimizer.load_state_dict`), the
weights are (`Module.load_state_dict`).

On a CPU, device and host are the same memory. Its numbers are the bytes that torch allocates while it loads, without
the mapped file (`mmap=True`), which torch's profiler reports as one allocation of the file's size. AdamW's states stay
in that mapping, and are counted: the first step that writes them makes its pages the process's own. Saving over the file
itself would then end the process with a bus error (SIGBUS), as `torch.save` empties the file first; so `pytorch_save`
writes another and renames it, which also leaves the old checkpoint whole if the save is cut off.
"""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "safetensors>=0.8", "numpy>=2.0",
# ]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 300
# repeats = 2
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000", KINETO_LOG_LEVEL = "6" }
# [tool.benchbook.metrics]
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# steady_memory = { unit = "B", better = "lower", memory = "device" }
# extra_bytes_per_parameter = { unit = "B/parameter", better = "lower" }
# fresh_step_peak = { unit = "B", better = "lower", memory = "device" }
# resumed_step_peak = { unit = "B", better = "lower", memory = "device" }
# [tool.benchbook.matrix]
# way = ["trainer_resume", "load_to_device", "load_to_cpu_mmap"]
# [tool.benchbook.on.accelerator]
# hidden_size = 1024
# layers = 4
# heads = 16
# intermediate_size = 2816
# [tool.benchbook.smallest]
# layers = 1
# hidden_size = 96
# intermediate_size = 256
# vocab_size = 512
# sequence_length = 16
# [tool.benchbook.work]
# fp32 = '''
# (30 * batch_size * sequence_length
#  * (vocab_size * hidden_size + layers * (4 * hidden_size**2 + 3 * hidden_size * intermediate_size)))
# '''
# seconds = '''
# ((1.5 if way == 'trainer_resume' else 0.3) + 2e-8
#  * (2 * vocab_size * hidden_size + layers * (4 * hidden_size**2 + 3 * hidden_size * intermediate_size)))
# '''
# ///

# %% parameters
way = "trainer_resume"
hidden_size = 256
layers = 4
heads = 4
intermediate_size = 704
vocab_size = 4096
batch_size = 2
sequence_length = 64

# %% setup
import functools
import gc
import os
from contextlib import contextmanager

import torch
import transformers
from torch.profiler import ProfilerActivity, profile, record_function
from transformers import AutoModelForCausalLM, LlamaConfig, PrinterCallback
from transformers import TrainerCallback, set_seed
from transformers.utils.logging import disable_progress_bar

disable_progress_bar()
device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(0)
config = LlamaConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=heads,
    intermediate_size=intermediate_size,
)
saved_after, steps = 2, 4
rows = torch.randint(0, vocab_size, (steps * batch_size, sequence_length))
dataset = [{"input_ids": row, "labels": row} for row in rows]
batches = rows.to(device).split(batch_size)


def new_model():
    with device:
        return AutoModelForCausalLM.from_config(config).train()


def new_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


# %% watch
marks, mapped = {}, []


@contextmanager
def watched():
    """Note, at each mark, the peak since the last one and what is held, above what was held at first."""
    gc.collect()
    marks.clear()
    if device.type != "cpu":
        marks["first"] = (0, torch.accelerator.memory_allocated())
        torch.accelerator.reset_peak_memory_stats()
        yield
        return
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        yield
    held = peak = 0
    file = "checkpoint.pt" if way == "load_to_cpu_mmap" else None
    file_bytes = os.path.getsize(file) if file else None
    events = seen.profiler.kineto_results.events()
    for event in sorted(events, key=lambda event: event.start_ns()):
        if event.name() == "[memory]" and abs(event.nbytes()) == file_bytes:
            mapped.append(event.nbytes())
        elif event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
        elif event.name().startswith("mark: "):
            marks[event.name().removeprefix("mark: ")] = (peak, held)
            peak = held


def mark(name):
    with record_function(f"mark: {name}"):
        if device.type != "cpu":
            first = marks["first"][1]
            peak = torch.accelerator.max_memory_allocated() - first
            marks[name] = (peak, torch.accelerator.memory_allocated() - first)
            torch.accelerator.reset_peak_memory_stats()


# %% callback
class Marks(TrainerCallback):
    """Save after two steps and never else; mark where the loading and the first step after it end."""

    def on_train_begin(self, args, state, control, **kwargs):
        """The checkpoint is loaded, where there is one."""
        mark("loaded")

    def on_step_begin(self, args, state, control, **kwargs):
        """Begin a step's peak anew."""
        mark("step begins")

    def on_step_end(self, args, state, control, **kwargs):
        """Save as `save_steps=2` would, but not at the end too."""
        mark(f"step {state.global_step} ends")
        control.should_save = state.global_step == saved_after


def Trainer(*arguments, **options):  # noqa: N802
    """A `Trainer` that leaves marks and prints nothing."""
    trainer = transformers.Trainer(*arguments, **options, callbacks=[Marks()])
    trainer.remove_callback(PrinterCallback)
    return trainer


TrainingArguments = functools.partial(
    transformers.TrainingArguments,
    per_device_train_batch_size=batch_size,
    use_cpu=device.type == "cpu",
    max_steps=steps,
    learning_rate=1e-3,
    logging_steps=1,
    train_sampling_strategy="sequential",
    disable_tqdm=True,
    report_to="none",
)


def run_trainer(resume):
    """A run of Trainer: its losses, by step, and its model and optimizer."""
    model = new_model()
    mark("built")
    if resume:
        # region trainer
        args = TrainingArguments(
            output_dir="output",
            save_steps=500,
        )
        trainer = Trainer(model, args, train_dataset=dataset)
        # The last checkpoint in output_dir; or give its path.
        trainer.train(resume_from_checkpoint=True)
        # endregion
    else:
        args = TrainingArguments(output_dir="output", save_steps=500)
        trainer = Trainer(model, args, train_dataset=dataset)
        trainer.train()
    history = trainer.state.log_history
    losses = {log["step"]: log["loss"] for log in history if "loss" in log}
    return losses, trainer.model, trainer.optimizer.optimizer


# %% save
def save_checkpoint(model, optimizer):
    """Write `checkpoint.pt`, whatever still reads from the old one."""
    # region pytorch_save
    import os

    checkpoint = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    # Never over a file that may still be mapped.
    torch.save(checkpoint, "checkpoint.new")
    os.replace("checkpoint.new", "checkpoint.pt")
    # endregion


# %% loop
def train(model, optimizer, first, save):
    """The losses of the steps after `first`."""
    losses = {}
    for number, batch in enumerate(batches[first:], first + 1):
        mark("step begins")
        loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses[number] = loss.item()
        del loss
        mark(f"step {number} ends")
        if save and number == saved_after:
            save_checkpoint(model, optimizer)
    return losses


def run_loop(resume):
    """A run of the loop: its losses, by step, and its model and optimizer."""
    model = new_model()
    optimizer = new_optimizer(model)
    mark("built")
    if resume and way == "load_to_device":
        # region pytorch_load_to_device
        # The weights lie on the device twice, while the
        # name `checkpoint` keeps what was read.
        checkpoint = torch.load(
            "checkpoint.pt",
            map_location=device,
            weights_only=True,
        )
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        # endregion
    elif resume:
        # region pytorch
        checkpoint = torch.load(
            "checkpoint.pt",
            map_location="cpu",
            mmap=True,
            weights_only=True,
        )
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        del checkpoint
        # endregion
    mark("loaded")
    first = saved_after if resume else 0
    return train(model, optimizer, first, save=not resume), model, optimizer


# %% run
run = run_trainer if way == "trainer_resume" else run_loop
if device.type != "cpu":  # what its libraries set aside once is not counted
    warm = new_model()
    warm(input_ids=batches[0], labels=batches[0]).loss.backward()
    del warm
with watched():
    uninterrupted, model, optimizer = run(resume=False)
expected = [weight.detach().cpu().clone() for weight in model.parameters()]
# The same step of both: the states are there already.
fresh_step_peak = marks[f"step {saved_after + 1} ends"][0]
del model, optimizer
with watched():
    resumed, model, optimizer = run(resume=True)

# %% measure
parameter_count = model.num_parameters()
states = [state for each in optimizer.state.values() for state in each.values()]
weight_bytes = sum(weight.nbytes for weight in model.parameters())
state_bytes = sum(state.nbytes for state in states)
buffer_bytes = sum(buffer.nbytes for buffer in model.buffers())
needed = weight_bytes + state_bytes + buffer_bytes
in_file = state_bytes if way == "load_to_cpu_mmap" and device.type == "cpu" else 0
peak_memory, steady_memory = (figure + in_file for figure in marks["loaded"])
resumed_step_peak = marks[f"step {saved_after + 1} ends"][0] + in_file
extra_bytes_per_parameter = round((peak_memory - needed) / parameter_count, 2)
print(f"weights and states:     {needed / 2**20:.1f} MiB")
print(f"peak while loading:     {peak_memory / 2**20:.1f} MiB")
print(f"held after it:          {steady_memory / 2**20:.1f} MiB")
print(f"peak of the next step:  {resumed_step_peak / 2**20:.1f} MiB")
print(f"that step, if not interrupted: {fresh_step_peak / 2**20:.1f} MiB")

# %% checks
import math

assert {weight.device.type for weight in model.parameters()} == {device.type}
assert list(uninterrupted) == list(range(1, steps + 1))
assert len(states) == 3 * len(expected)
assert {state.device.type for state in states} == {device.type}

# The run goes on as if it had not been interrupted.
following = saved_after + 1
assert resumed[following] == uninterrupted[following]
weights = [weight.detach().cpu() for weight in model.parameters()]
if device.type == "cpu":
    assert all(resumed[step] == uninterrupted[step] for step in resumed)
    assert all(map(torch.equal, weights, expected))
else:  # an embedding's gradient is summed in any order
    assert math.isclose(resumed[steps], uninterrupted[steps], rel_tol=1e-4)
if way == "trainer_resume":
    assert os.listdir("output") == [f"checkpoint-{saved_after}"]

# What was read a second time, and stays for as long as it has a name.
kept = weight_bytes if way == "load_to_device" else 0
blocks = 512 * 4 * len(weights)  # an accelerator's allocator rounds up
blocks += 4096  # the counts and whatever a file holds beside tensors
assert abs(peak_memory - needed - kept) <= blocks
assert abs(steady_memory - needed - kept) <= blocks
workspaces = 0 if device.type == "cpu" else 2**26
assert abs(resumed_step_peak - fresh_step_peak - kept) <= blocks + workspaces
assert abs(extra_bytes_per_parameter - kept / parameter_count) <= 0.01 + (
    blocks / parameter_count
)
# torch's profiler counts a mapped file once, and its end never came.
mapping = device.type == "cpu" and way == "load_to_cpu_mmap"
assert len(mapped) == mapping

# Saving again, while the states may still lie in the old file.
if way != "trainer_resume":
    save_checkpoint(model, optimizer)
    again = torch.load("checkpoint.pt", map_location="cpu", weights_only=True)
    for saved, weight in zip(again["model"].values(), weights, strict=True):
        assert saved.equal(weight)
    first_states = again["optimizer"]["state"][0]
    assert first_states["step"].item() == steps
    assert first_states["exp_avg"].equal(states[1].cpu())
