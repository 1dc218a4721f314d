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
seed = 0  # of the tiny models' weights

# %% setup
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # some errors are those of a missing GPU

import functools
import logging
import re
import signal
import tempfile
import time
import warnings
from contextlib import contextmanager
from textwrap import fill

import torch
import transformers
from torch import nn
from transformers import AutoModelForCausalLM, LlamaConfig, PrinterCallback, Trainer

device = torch.device("cpu")
torch.multiprocessing.set_start_method("fork", force=True)  # workers know the dataset
# The same shapes are recompiled without a compiler, and sooner.
torch.compile = functools.partial(torch.compile, backend="eager")
PrinterCallback.on_log = lambda *args, **kwargs: None  # it prints the seconds, too
TrainingArguments = functools.partial(
    transformers.TrainingArguments,
    max_steps=2,
    save_strategy="no",
    disable_tqdm=True,
    dataloader_pin_memory=False,
    report_to="none",
)

told = {}
PACKAGES = ("torch", "torch._dynamo", "transformers")
VARIES = {  # process ids, and places in source files
    r"(pid\(s\)|pid) [\d, ]*\d": r"\1 ...",
    r"\([^()\s]*\.py:\d+\)": "(...)",
    r" ?\(Triggered internally at [^()]*\)": "",
}


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
            causes = [error.__cause__] if error.__cause__ else []
            lines += [f"{type(each).__name__}: {each}" for each in [*causes, error]]
    for logger, (handlers, propagate) in zip(loggers, before, strict=True):
        logger.handlers, logger.propagate = handlers, propagate
    warned = [f"{each.category.__name__}: {each.message}" for each in caught]
    text = "\n".join(warned + lines)
    for varying, instead in VARIES.items():
        text = re.sub(varying, instead, text)
    told[name] = text
    for line in text.splitlines():
        print(fill(line, 88, break_long_words=False, subsequent_indent="  "))


# %% model
torch.manual_seed(seed)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
model = AutoModelForCausalLM.from_config(config).train()
model_id = tempfile.mkdtemp()
model.save_pretrained(model_id)
token_ids = torch.arange(32).reshape(2, 16)
batch = {"input_ids": token_ids, "labels": token_ids}
dataset = [{"input_ids": ids, "labels": ids} for ids in token_ids]

# %% cpu_out_of_memory
with provoked("cpu_out_of_memory"):
    # region cpu_out_of_memory_lines
    # A pebibyte: 2**48 numbers of 4 bytes.
    torch.empty(2**48)
    # endregion

# %% no_batch_size
with provoked("no_batch_size"):
    # region no_batch_size_lines
    from accelerate.utils import find_executable_batch_size

    @find_executable_batch_size(starting_batch_size=4)
    def train(batch_size):
        return torch.empty(batch_size, 2**48)

    train()
    # endregion

# %% graph_freed
with provoked("graph_freed"):
    # region graph_freed_lines
    weight = torch.ones(3, requires_grad=True)
    loss = (weight * weight).sum()
    loss.backward()
    loss.backward()
    # endregion

# %% frozen_inputs
with provoked("frozen_inputs"):
    # region frozen_inputs_lines
    from torch.utils.checkpoint import checkpoint

    layer, inputs = nn.Linear(4, 4), torch.ones(2, 4)
    output = checkpoint(layer, inputs, use_reentrant=True)
    output.sum().backward()
    # endregion

# %% untrained_layer
with provoked("untrained_layer"):
    # region untrained_layer_lines
    from torch.utils.checkpoint import checkpoint

    layer, head = nn.Linear(4, 4), nn.Linear(4, 2)
    inputs = torch.ones(2, 4)
    output = checkpoint(layer, inputs, use_reentrant=True)
    head(output).sum().backward()
    print("the layer's gradient:", layer.weight.grad)
    # endregion

# %% use_cache
with provoked("use_cache"):
    # region use_cache_lines
    model.activation_checkpointing_enable()
    model(**batch, use_cache=True)
    # endregion
model.activation_checkpointing_disable()

# %% gradient_checkpointing
with provoked("gradient_checkpointing"):
    # region gradient_checkpointing_lines
    args = TrainingArguments(
        output_dir="output",
        gradient_checkpointing=True,
    )
    # endregion

# %% fp16_weights
with provoked("fp16_weights"):
    # region fp16_weights_lines
    model_in_fp16 = AutoModelForCausalLM.from_pretrained(
        model_id,
        dtype=torch.float16,
    )
    optimizer = torch.optim.AdamW(model_in_fp16.parameters())
    scaler = torch.GradScaler(device.type)
    loss = model_in_fp16(**batch).loss
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    # endregion

# %% fp16_overflow
with provoked("fp16_overflow"):
    # region fp16_overflow_lines
    print("largest fp16:", torch.finfo(torch.float16).max)
    score = torch.tensor(300.0, dtype=torch.float16)
    print("300 x 300 in fp16:", (score * score).item())
    print("inf - inf:", (score * score - score * score).item())
    # endregion

# %% nan_loss
with provoked("nan_loss"):
    # region nan_loss_lines
    model_in_fp16 = AutoModelForCausalLM.from_pretrained(
        model_id,
        dtype=torch.float16,
    )
    args = TrainingArguments(
        output_dir="output",
        optim="adamw_torch",
        logging_steps=1,
    )
    trainer = Trainer(
        model_in_fp16,
        args,
        train_dataset=dataset,
    )
    trainer.train()
    # endregion
    for log in trainer.state.log_history[:2]:
        print(f"step {log['step']}: loss {log['loss']}, grad_norm {log['grad_norm']}")

# %% mixed_dtypes
with provoked("mixed_dtypes"):
    # region mixed_dtypes_lines
    model_in_bf16 = nn.Linear(4, 2).to(torch.bfloat16)
    features = torch.ones(8, 4)
    model_in_bf16(features)
    # endregion

# %% scalar_types
scores, values = torch.ones(4, 2, 4, 4, dtype=torch.bfloat16).split(2)
with provoked("scalar_types"):
    # region scalar_types_lines
    # `scores` and `values` are bf16.
    weights = scores.softmax(-1, dtype=torch.float32)
    weights @ values
    # endregion

# %% tf32
with provoked("tf32"):
    # region tf32_lines
    args = TrainingArguments(
        output_dir="output",
        tf32=True,
    )
    # endregion

# %% bf16
with provoked("bf16"):
    # region bf16_lines
    args = TrainingArguments(
        output_dir="output",
        bf16=True,
    )
    # endregion

# %% eval_dataset
with provoked("eval_dataset"):
    # region eval_dataset_lines
    args = TrainingArguments(
        output_dir="output",
        eval_strategy="epoch",
    )
    Trainer(model, args, train_dataset=dataset)
    # endregion

# %% optimizer_name
with provoked("optimizer_name"):
    # region optimizer_name_lines
    args = TrainingArguments(
        output_dir="output",
        optim="adamw_hf",
    )
    # endregion

# %% muon
with provoked("muon"):
    # region muon_lines
    # Biases and the weights of norms are 1D.
    torch.optim.Muon(model.parameters(), lr=1e-3)
    # endregion

# %% resumed_groups
with provoked("resumed_groups"):
    # region resumed_groups_lines
    optimizer = torch.optim.AdamW(model.parameters())
    saved = optimizer.state_dict()

    # Resumed with frozen embeddings:
    model.get_input_embeddings().requires_grad_(False)
    trained = [w for w in model.parameters() if w.requires_grad]
    optimizer = torch.optim.AdamW(trained)
    optimizer.load_state_dict(saved)
    # endregion

# %% load_in_8bit
with provoked("load_in_8bit"):
    # region load_in_8bit_lines
    AutoModelForCausalLM.from_pretrained(
        model_id,
        load_in_8bit=True,
    )
    # endregion

# %% token_out_of_range
with provoked("token_out_of_range"):
    # region token_out_of_range_lines
    # The vocabulary is 64 tokens: 0 to 63.
    model(input_ids=torch.tensor([[1, 2, 64]]))
    # endregion

# %% no_kernel
query = key = value = torch.ones(1, 2, 8, 16)
mask = torch.ones(8, 8, dtype=torch.bool)
with provoked("no_kernel"):
    # region no_kernel_lines
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            dropout_p=0.1,
        )
    # endregion

# %% recompile_limit
with provoked("recompile_limit"):
    # region recompile_limit_lines
    @torch.compile(dynamic=False)
    def mean(batch):
        return batch.mean()

    for length in range(1, 11):
        mean(torch.ones(4, length))
    # endregion

# %% pinned_memory
# A torch that was built for an accelerator pins, or has another text.
if torch.accelerator.current_accelerator() is None:
    with provoked("pinned_memory"):
        # region pinned_memory_lines
        buffer = torch.empty(8, 512, pin_memory=True)
        # endregion


# %% worker_died
class Images:
    """Four images, each of which takes more memory than there is."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does, out of memory


images = Images()
with provoked("worker_died"):
    # region worker_died_lines
    from torch.utils.data import DataLoader

    # A worker is killed, as the system does out of memory.
    for image in DataLoader(images, num_workers=1):
        print(image)
    # endregion

# %% fixed
# What never varies in each text, in its order.
fixed_parts = {
    "cpu_out_of_memory": ["DefaultCPUAllocator:", "memory: you tried to allocate"],
    "no_batch_size": ["No executable batch size found, reached zero."],
    "graph_freed": ["Trying to backward through the graph a second time"],
    "frozen_inputs": ["of tensors does not require grad and does not have a grad_fn"],
    "untrained_layer": ["None of the inputs have requires_grad=True."],
    "use_cache": ["use_cache=True` is incompatible with", "checkpointing"],
    "gradient_checkpointing": ["gradient_checkpointing` is deprecated"],
    "fp16_weights": ["Attempting to unscale FP16 gradients."],
    "mixed_dtypes": ["have the same dtype"],
    "scalar_types": ["expected scalar type", "but found"],
    "tf32": ["--tf32 requires Ampere or a newer GPU"],
    "bf16": ["Your setup doesn't support bf16/gpu."],
    "eval_dataset": ["didn't pass an `eval_dataset` to `Trainer`"],
    "optimizer_name": ["is not a valid OptimizerNames"],
    "muon": ["Muon only supports 2D parameters"],
    "resumed_groups": [
        "loaded state dict contains a parameter group that doesn't match the size of",
    ],
    "load_in_8bit": ["got an unexpected keyword argument 'load_in_", "bit'"],
    "token_out_of_range": ["index out of range in self"],
    "no_kernel": ["No available kernel. Aborting execution."],
    "recompile_limit": ["torch._dynamo hit config.recompile_limit"],
    "pinned_memory": ["no pinned memory allocator is available"],
    "worker_died": ["DataLoader worker (pid"],
}

# %% checks
import math

kinds = {
    "FutureWarning": ["gradient_checkpointing"],
    "UserWarning": ["frozen_inputs", "untrained_layer"],
    "RuntimeError": [
        *("cpu_out_of_memory", "no_batch_size", "graph_freed", "frozen_inputs"),
        *("mixed_dtypes", "scalar_types", "no_kernel", "worker_died"),
    ],
    "ValueError": [
        *("fp16_weights", "tf32", "bf16", "eval_dataset", "optimizer_name"),
        *("muon", "resumed_groups"),
    ],
    "TypeError": ["load_in_8bit"],
    "IndexError": ["token_out_of_range"],
}
for kind, names in kinds.items():
    for name in names:
        assert f"{kind}: " in told[name], f"{name}: no {kind} in {told[name]!r}"


def plain(text):
    """The text in lower case, with one space between words."""
    return " ".join(text.lower().split())


def letters(parts):
    """How many letters the parts have."""
    return sum(map(str.isalpha, "".join(parts)))


def matched(parts, text):
    """How many letters of the parts a text holds: all or none, in their order."""
    at = 0
    for part in map(plain, parts):
        found = plain(text).find(part, at)
        if found < 0:
            return 0
        at = found + len(part)
    return letters(parts)


silent = {"fp16_overflow", "nan_loss"}  # numbers go wrong, and no text says so
assert not any(told.pop(name) for name in silent)
assert told.keys() | {"pinned_memory"} == fixed_parts.keys()
assert all(letters(parts) >= 12 for parts in fixed_parts.values())
for name, text in told.items():
    found = {other: matched(parts, text) for other, parts in fixed_parts.items()}
    best = found.pop(name)
    assert best, f"{name}: no {fixed_parts[name]} in {text!r}"
    assert best > max(found.values()), f"{name}: {found} in {text!r}"

assert f"{2**50} bytes" in told["cpu_out_of_memory"]
assert "config.recompile_limit (8)" in told["recompile_limit"]
assert "exited unexpectedly" in told["worker_died"]

# Without a graph through the layer, only what follows it learns.
assert layer.weight.grad is None and head.weight.grad is not None

# fp16 ends at 65504, and what is beyond spreads as NaN.
assert torch.finfo(torch.float16).max == 65504
assert torch.isinf(score * score) and torch.isnan(score * score - score * score)
first, second = trainer.state.log_history[:2]
assert math.isfinite(first["grad_norm"]) and math.isnan(second["grad_norm"])
assert any(weight.isnan().any() for weight in trainer.model.parameters())
