"""How often `torch.compile` compiles for ten sequence lengths, with fixed and with dynamic shapes."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
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
# [tool.benchbook.work]
# # A model of one layer, traced again and again.
# seconds = "5 if shapes == 'static' else 2 if shapes == 'mark_dynamic' else 3"
# ///

# %% parameters
shapes = "static"
hidden_size = 96
layers = 1  # as many compilations as with more
lengths = [17, 25, 33, 41, 49, 57, 65, 73, 81, 89]
batch_size = 4

# %% setup
import functools
import logging
import os

import torch
import transformers
from torch._dynamo.utils import counters
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizer,
    DataCollatorWithPadding,
    Trainer,
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
)
with device:
    model = BertForSequenceClassification(config)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)  # each loss can be checked
special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
tokenizer = BertTokenizer(vocab={token: i for i, token in enumerate(special)})

# %% set_problem_type
# region problem_type
# Unless you set it, the first batch does, and the
# second one compiles again.
model.config.problem_type = "single_label_classification"
# endregion

# %% padded
if shapes == "padded":
    # region padding
    from transformers import DataCollatorWithPadding

    collate = DataCollatorWithPadding(
        tokenizer,
        pad_to_multiple_of=32,
    )
    # endregion
else:
    collate = DataCollatorWithPadding(tokenizer)

# %% data
dataset = []
for length in lengths:
    for label in range(batch_size):
        ids = torch.randint(5, config.vocab_size, (length,)).tolist()
        mask = [1] * length
        dataset.append({"input_ids": ids, "attention_mask": mask, "labels": label % 2})
groups = [dataset[i : i + batch_size] for i in range(0, len(dataset), batch_size)]

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

# %% harness
plain, compiling = model, torch.compile
torch.compile = functools.partial(torch.compile, backend=counting)
losses, compilations_after = [], []


def watched(groups):
    """Each batch, and a note of its loss and of what was compiled once it was used."""
    for group in groups:
        yield collate(group).to(device)
        losses.append(loss.detach())
        compilations_after.append(len(compiled))


batches = watched(groups)

# %% with_pytorch
if shapes == "automatic":
    # region pytorch
    # A second length makes PyTorch compile for any length.
    model = torch.compile(model)
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
elif shapes == "mark_dynamic":
    # region pytorch_mark_dynamic
    model = torch.compile(model)
    for batch in batches:
        for name in ("input_ids", "attention_mask"):
            # The length, dimension 1, varies.
            torch._dynamo.mark_dynamic(batch[name], 1)
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
else:
    # region pytorch_static
    # Compiles for each length, and gives up after eight.
    model = torch.compile(model, dynamic=False)
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
torch.compile = compiling

# %% result
compilations = len(compiled)
compiled_lengths = len(runs)
held = sum(collate(group)["input_ids"].numel() for group in groups)
padding_share = 1 - batch_size * sum(lengths) / held
print(f"{shapes}: {compilations} compilations for {len(lengths)} lengths")
print(f"{len(lengths) - compiled_lengths} lengths ran without being compiled")


# %% same_batch
torch._dynamo.reset()
compiled.clear()
plain.config.problem_type = None
fast = torch.compile(plain, backend=counting)
for _ in range(2):
    fast(**batch)
same_batch_compilations = len(compiled)
print(f"the same batch twice: {same_batch_compilations} compilations")

# %% checks
wanted = {"static": 8, "padded": 3, "automatic": 2, "mark_dynamic": 1}
assert compilations == wanted[shapes]
if shapes == "static":  # up to the limit, and the other lengths run as they are
    assert compilations == torch._dynamo.config.recompile_limit
assert compiled_lengths == (8 if shapes == "static" else len(lengths))
if shapes == "padded":
    assert compilations <= len(lengths) / 2
warned = [text for text in messages if "hit config.recompile_limit (8)" in text]
assert len(warned) == (shapes == "static")
assert same_batch_compilations == 2  # and above, where it is set, one for ten lengths
assert plain.config.problem_type == "single_label_classification"  # it sets that
assert (padding_share > 0) == (shapes == "padded")
assert losses[0].device.type == device.type

# The losses are those of the model itself, of batches that are not padded.
unpadded = DataCollatorWithPadding(tokenizer)
for found, group in zip(losses, groups, strict=True):
    assert torch.allclose(found, plain(**unpadded(group).to(device)).loss, rtol=1e-4)

# `Trainer` leaves the choice to PyTorch, unless told of another.
if shapes in ("automatic", "padded"):
    if shapes == "padded":
        os.environ["ACCELERATE_DYNAMO_USE_DYNAMIC"] = "false"
    torch._dynamo.reset()
    counters.clear()
    first = 3  # lengths, enough to tell
    args = transformers.TrainingArguments(
        "output",
        torch_compile=True,
        torch_compile_backend="eager",  # it traces, and compiles nothing
        per_device_train_batch_size=batch_size,
        train_sampling_strategy="sequential",
        max_steps=first,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=device.type == "cpu",
    )
    trainer = Trainer(plain, args, train_dataset=dataset, data_collator=collate)
    trainer.train()
    assert trainer.state.global_step == first
    assert counters["stats"]["unique_graphs"] == compilations_after[first - 1]
