"""What a step of Trainer waits for: the lines that name it, around one step of its own."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 5
# environment = { OMP_NUM_THREADS = "1", KINETO_LOG_LEVEL = "6" }
# [tool.benchbook.metrics]
# data = { unit = "1" }
# kernels = { unit = "1" }
# [tool.benchbook.smallest]
# words_per_text = 100
# ///

# %% parameters
words_per_text = 8000
batch_size = 16
sequence_length = 64
seed = 42

# %% named_waits
from resource import RUSAGE_THREAD, getrusage
from timeit import timeit

from torch.profiler import profile

WAITS = {  # how the names of their events begin
    "data": ("data", "enumerate(DataLoader)"),
    "kernels": ("aten::", "## Call CompiledFxGraph"),
    "communication": ("gloo:", "nccl"),
    "memory": ("cudaMalloc", "cudaFree"),
}


def union(spans):  # seconds, overlaps counted once
    total = last = 0
    for span in sorted(spans, key=lambda one: one.start):
        total += max(0, span.end - max(span.start, last))
        last = max(last, span.end)
    return total / 1e6


def belongs(e, wait, gpu):
    if not gpu or wait != "kernels":
        return e.name.startswith(WAITS[wait])
    own = not e.is_user_annotation and "nccl" not in e.name
    return own and e.device_type.value > 0


def named_waits(step, timed=10, profiled=5):
    u, s = getrusage(RUSAGE_THREAD)[:2]
    timeit(step, "gc.enable()", number=timed)
    user, system = getrusage(RUSAGE_THREAD)[:2]
    with profile() as run:
        wall = timeit(step, "gc.enable()", number=profiled)
    found, spans, events = {}, [], run.events()
    gpu = any(e.device_type.value > 0 for e in events)
    for wait in ["kernels", *WAITS] if gpu else WAITS:
        hits = [e for e in events if belongs(e, wait, gpu)]
        spans += [e.time_range for e in hits]
        gained = union(spans) / wall - sum(found.values())
        found.setdefault(wait, gained)
    if not gpu:  # the system's part: page faults above all
        busy = 1 - found["data"] - found["communication"]
        lost = busy * (system - s) / (user - u + system - s)
        found["memory"] = min(lost, found["kernels"])
        found["kernels"] -= found["memory"]
    found["host"] = 1 - sum(found.values())
    return found, run


# %% setup
import tempfile

import torch
from torch.utils.data import Dataset
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
    set_seed,
)

set_seed(seed)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=1024,
        hidden_size=128,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
)
before = model.lm_head.weight.detach().clone()


class Texts(Dataset):
    """Texts that are tokenised when they are asked for, character by character."""

    def __len__(self):
        return 64 * batch_size

    def __getitem__(self, number):
        text = f"sample {number} " * words_per_text
        counts = {}
        for letter in text:
            counts[letter] = counts.get(letter, 0) + 1
        ids = [ord(letter) % 1024 for letter in text[:sequence_length]]
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(ids)}


trainer = Trainer(
    model,
    TrainingArguments(
        tempfile.mkdtemp(),
        per_device_train_batch_size=batch_size,
        use_cpu=True,
        report_to="none",
    ),
    train_dataset=Texts(),
)

# %% steps
# region trainer_step
trainer.create_optimizer()
batches = iter(trainer.get_train_dataloader())


def step():
    with trainer.compute_loss_context_manager():
        loss = trainer.compute_loss(model, next(batches))
    trainer.accelerator.backward(loss)
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()


# endregion
step()
shares, _ = named_waits(step)
data, kernels = shares["data"], shares["kernels"]
for wait, share in shares.items():
    print(f"{share:6.1%} {wait}")

# %% checks
slow = {wait for wait, share in shares.items() if wait != "kernels" and share >= 0.2}
if words_per_text >= 8000:
    assert slow == {"data"}, shares
# It trained.
assert not model.lm_head.weight.equal(before)
