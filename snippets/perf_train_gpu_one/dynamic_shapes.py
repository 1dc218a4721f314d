"""How often `torch.compile` compiles for ten sequence lengths, with fixed and with dynamic shapes."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 300
# repeats = 2
# [tool.benchbook.metrics]
# compilations = { unit = "count", better = "lower" }
# compiled_lengths = { unit = "count", better = "higher" }
# padding_share = { unit = "1", better = "lower" }
# same_batch_compilations = { unit = "count", better = "lower" }
# [tool.benchbook.matrix]
# shapes = ["static", "padded", "automatic", "mark_dynamic"]
# [tool.benchbook.smallest]
# hidden_size = 48
# layers = 1
# [tool.benchbook.work]
# host_values = "31000 * hidden_size + 12 * layers * hidden_size**2"
# seconds = "14 if shapes == 'static' else 8"
# ///

# %% parameters
shapes = "static"
hidden_size = 384
layers = 2  # as many compilations as with more
lengths = [17, 25, 33, 41, 49, 57, 65, 73, 81, 89]
batch_size = 4

# %% setup
import logging
import os

import torch
from torch._dynamo.utils import counters
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
    DataCollatorWithPadding,
    Trainer,
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
    num_attention_heads=12,
    intermediate_size=4 * hidden_size,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    problem_type="single_label_classification",  # or it compiles twice: see below
)
model = BertForSequenceClassification(config).to(device)
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
tokenizer = BertTokenizer(vocab={token: i for i, token in enumerate(special)})

# %% padded
collate = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=32)

# %% data
if shapes != "padded":
    collate = DataCollatorWithPadding(tokenizer)
dataset = []
for length in lengths:
    for label in range(batch_size):
        ids = torch.randint(5, config.vocab_size, (length,)).tolist()
        mask = [1] * length
        dataset.append({"input_ids": ids, "attention_mask": mask, "labels": label % 2})
groups = [dataset[i : i + batch_size] for i in range(0, len(dataset), batch_size)]
batches = [collate(group).to(device) for group in groups]

# %% backend
compiled, runs = [], []


def counting(graph, inputs):
    """In the place of a compiler: compiles nothing, and counts."""
    compiled.append(graph)

    def run(*args):
        runs.append(graph)
        return graph(*args)

    return run


# %% warnings
messages = []


class Keep(logging.Handler):
    """Keeps what is logged."""

    def emit(self, record):
        """Called for each message."""
        messages.append(record.getMessage())


logging.getLogger("torch._dynamo").addHandler(Keep())

# %% pytorch
dynamic = False if shapes in ("static", "padded") else None  # None: PyTorch decides
fast = torch.compile(model, backend=counting, dynamic=dynamic)
losses = []
for batch in batches:
    if shapes == "mark_dynamic":
        for name in ("input_ids", "attention_mask"):
            torch._dynamo.mark_dynamic(batch[name], 1)  # the length varies
    losses.append(fast(**batch).loss)

# %% result
compilations = len(compiled)
compiled_lengths = len(runs)
held = sum(batch["input_ids"].numel() for batch in batches)
padding_share = 1 - batch_size * sum(lengths) / held
print(f"{shapes}: {compilations} compilations for {len(lengths)} lengths")
print(f"{len(lengths) - compiled_lengths} lengths ran without being compiled")

# %% problem_type
torch._dynamo.reset()
compiled.clear()
model.config.problem_type = None  # unless you set it, the first call does
fast = torch.compile(model, backend=counting, dynamic=dynamic)
for _ in range(2):
    fast(**batches[0])
same_batch_compilations = len(compiled)
print(f"the same batch twice: {same_batch_compilations} compilations")

# %% checks
wanted = {"static": 8, "padded": 3, "automatic": 2, "mark_dynamic": 1}
assert compilations == wanted[shapes]
assert compiled_lengths == (8 if shapes == "static" else len(lengths))
warned = [text for text in messages if "hit config.recompile_limit (8)" in text]
assert len(warned) == (shapes == "static")
assert same_batch_compilations == 2
assert model.config.problem_type == "single_label_classification"
assert (padding_share > 0) == (shapes == "padded")
assert losses[0].device.type == device.type

# The losses are those of the model itself, of batches that are not padded.
plain = DataCollatorWithPadding(tokenizer)
for loss, group in zip(losses, groups):
    assert torch.allclose(loss, model(**plain(group).to(device)).loss, rtol=1e-4)

# `Trainer` leaves the choice to PyTorch, unless told of another.
if shapes != "mark_dynamic":
    if dynamic is False:
        os.environ["ACCELERATE_DYNAMO_USE_DYNAMIC"] = "false"
    torch._dynamo.reset()
    counters.clear()
    args = TrainingArguments(
        "output",
        torch_compile=True,
        torch_compile_backend="eager",  # it traces, and compiles nothing
        per_device_train_batch_size=batch_size,
        train_sampling_strategy="sequential",
        num_train_epochs=1,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=device.type == "cpu",
    )
    trainer = Trainer(model, args, train_dataset=dataset, data_collator=collate)
    trainer.train()
    assert trainer.state.global_step == len(lengths)
    assert counters["stats"]["unique_graphs"] == compilations
