"""Errors and warnings of training on one GPU: each is provoked, and its text recorded."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 2
# ///

# %% parameters
too_many = 281474976710656  # numbers of 4 bytes each: a pebibyte, 2**50 bytes

# %% setup
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # some errors are those of a missing GPU

import logging
import re
import signal
import tempfile
import time
import warnings
from contextlib import contextmanager
from textwrap import fill

import torch
from accelerate.utils import find_executable_batch_size
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)

told = {}
PACKAGES = ("torch", "torch._dynamo", "transformers")


@contextmanager
def provoked(name):
    """Print warnings, logged lines and the error of what runs inside, and keep them."""
    lines = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())
    loggers = [logging.getLogger(package) for package in PACKAGES]
    before = [(logger.handlers, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.handlers, logger.propagate = [handler], False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            yield
        except Exception as error:
            lines.append(f"{type(error).__name__}: {error}")
    for logger, (handlers, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
    warned = [f"{each.category.__name__}: {each.message}" for each in caught]
    text = "\n".join(warned + lines)
    text = re.sub(r"(pid\(s\)|pid) [\d, ]*\d", r"\1 ...", text)
    text = re.sub(r"\([^()\s]*\.py:\d+\)", "(...)", text)
    told[name] = text
    for line in text.splitlines():
        print(fill(line, 88, break_long_words=False, subsequent_indent="  "))


# %% model
def make_model(dtype=torch.float32):
    """A Llama of two tiny layers."""
    set_seed(0)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return AutoModelForCausalLM.from_config(config, dtype=dtype)


saved = tempfile.mkdtemp()
make_model().save_pretrained(saved)
token_ids = torch.arange(32).reshape(2, 16)
dataset = [{"input_ids": ids, "labels": ids} for ids in token_ids]


def make_trainer(model, **changed):
    """A Trainer of two steps."""
    plain = {"max_steps": 2, "logging_steps": 1, "save_strategy": "no"}
    plain |= {"output_dir": "output", "use_cpu": True, "disable_tqdm": True}
    args = TrainingArguments(**plain | changed)
    trainer = Trainer(model=model, args=args, train_dataset=dataset)
    trainer.remove_callback(PrinterCallback)
    return trainer


# %% cpu_out_of_memory
with provoked("cpu_out_of_memory"):
    torch.empty(too_many)

# %% no_batch_size
with provoked("no_batch_size"):

    @find_executable_batch_size(starting_batch_size=4)
    def train(batch_size):
        return torch.empty(batch_size, too_many)

    train()

# %% graph_freed
with provoked("graph_freed"):
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * weight).sum()
    loss.backward()
    loss.backward()

# %% frozen_inputs
with provoked("frozen_inputs"):
    layer, inputs = nn.Linear(4, 4), torch.ones(2, 4)
    output = checkpoint(layer, inputs, use_reentrant=True)
    output.sum().backward()

# %% use_cache
with provoked("use_cache"):
    model = make_model().train()
    model.activation_checkpointing_enable()
    model(token_ids, labels=token_ids, use_cache=True)

# %% gradient_checkpointing
with provoked("gradient_checkpointing"):
    TrainingArguments("output", gradient_checkpointing=True, use_cpu=True)

# %% fp16_weights
with provoked("fp16_weights"):
    model = make_model(torch.float16)
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.GradScaler("cpu")
    scaler.scale(model(token_ids, labels=token_ids).loss).backward()
    scaler.unscale_(optimizer)

# %% fp16_overflow
with provoked("fp16_overflow"):
    print("largest fp16:", torch.finfo(torch.float16).max)
    score = torch.tensor(300.0, dtype=torch.float16)
    print("300 x 300 in fp16:", (score * score).item())
    print("inf - inf:", (score * score - score * score).item())

# %% nan_loss
with provoked("nan_loss"):
    trainer = make_trainer(make_model(torch.float16), optim="adamw_torch")
    trainer.train()
    for log in trainer.state.log_history[:2]:
        print(f"step {log['step']}: loss {log['loss']}, grad_norm {log['grad_norm']}")

# %% tf32
with provoked("tf32"):
    TrainingArguments("output", tf32=True)

# %% bf16
with provoked("bf16"):
    TrainingArguments("output", bf16=True)

# %% eval_dataset
with provoked("eval_dataset"):
    make_trainer(make_model(), eval_strategy="steps", eval_steps=1)

# %% optimizer_name
with provoked("optimizer_name"):
    TrainingArguments("output", optim="adamw_hf")

# %% load_in_8bit
with provoked("load_in_8bit"):
    AutoModelForCausalLM.from_pretrained(saved, load_in_8bit=True)

# %% recompile_limit
with provoked("recompile_limit"):

    @torch.compile(dynamic=False, backend="eager")
    def mean(batch):
        return batch.mean()

    for length in range(1, 11):
        mean(torch.ones(4, length))


# %% worker_died
class Images:
    """Four images, none of which can be decoded."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does, out of memory


with provoked("worker_died"):
    loader = DataLoader(Images(), num_workers=1, multiprocessing_context="fork")
    next(iter(loader))

# %% checks
import math

expected = {
    "cpu_out_of_memory": (
        "RuntimeError",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate",
        f"{4 * too_many} bytes",
    ),
    "no_batch_size": ("RuntimeError", "No executable batch size found, reached zero."),
    "graph_freed": (
        "RuntimeError",
        "Trying to backward through the graph a second time",
    ),
    "frozen_inputs": (
        "UserWarning",
        "None of the inputs have requires_grad=True. Gradients will be None",
        "RuntimeError",
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    "use_cache": ("`use_cache=True` is incompatible with", "checkpointing"),
    "gradient_checkpointing": ("FutureWarning", "`activation_checkpointing` instead"),
    "fp16_weights": ("ValueError", "Attempting to unscale FP16 gradients."),
    "fp16_overflow": (),
    "nan_loss": (),
    "tf32": ("ValueError", "--tf32 requires Ampere or a newer GPU"),
    "bf16": ("ValueError", "Your setup doesn't support bf16/gpu."),
    "eval_dataset": ("ValueError", "you didn't pass an `eval_dataset`"),
    "optimizer_name": ("ValueError", "adamw_hf is not a valid OptimizerNames"),
    "load_in_8bit": ("TypeError", "unexpected keyword argument 'load_in_8bit'"),
    "recompile_limit": ("torch._dynamo hit config.recompile_limit (8)", "size"),
    "worker_died": ("RuntimeError", "DataLoader worker (pid(s) ...) exited unexpected"),
}
assert told.keys() == expected.keys()
for name, parts in expected.items():
    assert bool(told[name]) == bool(parts), f"{name}: {told[name]}"
    for part in parts:
        assert part in told[name], f"{name}: no {part!r} in {told[name]!r}"

# fp16 ends at 65504, and what is beyond spreads as NaN.
assert torch.finfo(torch.float16).max == 65504
assert torch.isinf(score * score) and torch.isnan(score * score - score * score)
first, second = trainer.state.log_history[:2]
assert math.isfinite(first["grad_norm"]) and math.isnan(second["grad_norm"])
assert any(weight.isnan().any() for weight in trainer.model.parameters())
