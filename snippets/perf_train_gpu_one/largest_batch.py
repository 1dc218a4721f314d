"""Finding the largest batch that fits: what is tried, what fits, and what fails.

Each search begins at 32 samples, and a second time at 24. Which of them finds the larger batch depends on where it
begins, and on how many samples there is room for.
"""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0", "psutil>=6.0",
# ]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 4
# timeout = 300
# repeats = 3
# # What is freed goes back to the system at once, as on a GPU: the limit then meets tensors alone.
# environment = { MALLOC_MMAP_THRESHOLD_ = "131072", MALLOC_TRIM_THRESHOLD_ = "131072" }
# [tool.benchbook.metrics]
# largest_batch = { unit = "samples", better = "higher" }
# next_larger = { unit = "samples" }
# attempts = { unit = "count", better = "lower" }
# tried = { unit = "samples" }
# largest_from_24 = { unit = "samples", better = "higher" }
# attempts_from_24 = { unit = "count", better = "lower" }
# tried_from_24 = { unit = "samples" }
# room = { unit = "samples" }
# memory_limit = { unit = "B", memory = "device" }
# [tool.benchbook.matrix]
# search = ["nine_tenths", "halves", "trainer"]
# [tool.benchbook.on.accelerator]
# repeats = 2
# hidden_size = 1024
# layers = 8
# heads = 16
# intermediate_size = 4096
# vocab_size = 30522
# sequence_length = 256
# memory_mib = 4096
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 96
# vocab_size = 2048
# sequence_length = 256
# memory_mib = 245
# [tool.benchbook.work]
# fp32 = '''
# (6 * sequence_length * 64
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length)
#  * 3)
# '''
# seconds = 1.2
# ///

# %% parameters
search = "nine_tenths"
memory_mib = 182  # what training may take; the rest of the device is out of bounds
sequence_length = 128
hidden_size = 256
layers = 2
heads = 8
intermediate_size = 1024
vocab_size = 8192
seed = 42

# %% setup
import gc
import resource
from contextlib import contextmanager
from functools import partial
from typing import ClassVar

import psutil
import torch
import transformers
from accelerate.utils import find_executable_batch_size
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback
from transformers import Trainer, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
config = BertConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=intermediate_size,
)
set_seed(seed)
memory_limit = memory_mib * 2**20
TrainingArguments = partial(
    transformers.TrainingArguments,
    max_steps=2,  # the second has the optimizer's states, too
    train_sampling_strategy="sequential",
    save_strategy="no",
    disable_tqdm=True,
    dataloader_pin_memory=False,
)


class Samples(torch.utils.data.Dataset):
    """64 samples, that note how many each first batch of an attempt asks for."""

    ids = torch.randint(0, vocab_size, (64, sequence_length))
    asked: ClassVar[list[int]] = []

    def __len__(self):
        return len(self.ids)

    def __getitems__(self, rows):
        """What a DataLoader calls for a batch."""
        if rows[0] == 0:
            self.asked.append(len(rows))
        return [{"input_ids": self.ids[row], "labels": row % 2} for row in rows]

    def tried(self):
        """The batches that were asked for until now, and forget them."""
        tried, self.asked[:] = list(dict.fromkeys(self.asked)), []
        return tried


dataset = Samples()


# %% limit
@contextmanager
def limited_memory():
    """Lets this process take no more than the limit on top of what it has."""
    gc.collect()
    if device.type == "cpu":
        before = resource.getrlimit(resource.RLIMIT_DATA)
        most = psutil.Process().memory_info().data + memory_limit
        resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, before)
    else:
        module = torch.get_device_module(device)
        module.empty_cache()
        module.set_per_process_memory_fraction(memory_limit / module.mem_get_info()[1])
        try:
            yield
        finally:
            module.set_per_process_memory_fraction(1.0)


# %% two_steps
import math


def two_steps(batch_size):
    """Two steps at a batch; the second has the optimizer's states, too."""
    with device:
        model = BertForSequenceClassification(config)
    optimizer = torch.optim.AdamW(model.parameters())
    for rows in (range(batch_size), range(batch_size, 2 * batch_size)):
        ids = dataset.ids[list(rows)].to(device)
        dataset.asked.append(batch_size)
        loss = model(input_ids=ids, labels=ids[:, 0] % 2).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert math.isfinite(loss.item()) and loss.device.type == device.type
    return batch_size


two_steps(16)  # threads and kernels take memory once, which no limit shall meet
dataset.asked.clear()


# %% nine_tenths
def with_nine_tenths():
    # region pytorch
    from accelerate.utils import find_executable_batch_size
    from torch.utils.data import DataLoader
    from transformers import BertForSequenceClassification

    @find_executable_batch_size(starting_batch_size=32)
    def train(batch_size):
        # Built in here: a failed attempt leaves nothing
        with device:
            model = BertForSequenceClassification(config)
        optimizer = torch.optim.AdamW(model.parameters())
        for batch in DataLoader(dataset, batch_size):
            batch = {k: v.to(device) for k, v in batch.items()}
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return batch_size

    batch_size = train()
    # endregion
    return batch_size


# %% halves
def with_halves():
    # region pytorch_halves
    from accelerate.utils import find_executable_batch_size
    from torch.utils.data import DataLoader
    from transformers import BertForSequenceClassification

    smaller = iter([16, 8, 4, 2, 1, 0])

    @find_executable_batch_size(
        starting_batch_size=32,
        reduce_batch_size_fn=lambda: next(smaller),
    )
    def train(batch_size):
        with device:
            model = BertForSequenceClassification(config)
        optimizer = torch.optim.AdamW(model.parameters())
        for batch in DataLoader(dataset, batch_size):
            batch = {k: v.to(device) for k, v in batch.items()}
            model(**batch).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return batch_size

    batch_size = train()
    # endregion
    return batch_size


# %% with_trainer
# region trainer
args = TrainingArguments(
    output_dir="output",
    per_device_train_batch_size=32,
    auto_find_batch_size=True,
)
# endregion


def with_trainer(args=args):
    with device:
        model = BertForSequenceClassification(config)
    trainer = Trainer(model, args, train_dataset=dataset)
    trainer.remove_callback(PrinterCallback)
    loss = trainer.train().training_loss
    assert math.isfinite(loss) and model.device.type == device.type
    return trainer.state.train_batch_size


# %% find
searches = {
    "nine_tenths": with_nine_tenths,
    "halves": with_halves,
    "trainer": with_trainer,
}
limits_before = resource.getrlimit(resource.RLIMIT_DATA)
with limited_memory():
    largest_batch = searches[search]()
tried = dataset.tried()
attempts = len(tried)
print(f"tried {tried}: {largest_batch} fits")


# %% from_24
smaller = iter([12, 6, 3, 1, 0])
from_24 = {
    "nine_tenths": find_executable_batch_size(two_steps, 24),
    "halves": find_executable_batch_size(two_steps, 24, lambda: next(smaller)),
    "trainer": partial(
        with_trainer,
        TrainingArguments(
            "output", per_device_train_batch_size=24, auto_find_batch_size=True
        ),
    ),
}
with limited_memory():
    largest_from_24 = from_24[search]()
tried_from_24 = dataset.tried()
attempts_from_24 = len(tried_from_24)
print(f"tried {tried_from_24}: {largest_from_24} fits")


# %% room
def error_of(batch_size):
    """The text of the error that a batch ends in, empty if it fits."""
    with limited_memory():
        try:
            two_steps(batch_size)
        except RuntimeError as error:
            return str(error)
    return ""


next_larger = tried[-2]
error_text = error_of(next_larger)
print(f"{next_larger}: {error_text.splitlines()[0]}")
succeeded = {largest_batch, largest_from_24}
failed = {*tried, *tried_from_24} - succeeded
room, too_many = max(succeeded), min(failed)
while too_many > room + 1:
    middle = (room + too_many) // 2
    if error_of(middle):
        too_many = middle
    else:
        room = middle
print(f"there is room for {room}")

# %% checks
assert args.per_device_train_batch_size == 32 and args.auto_find_batch_size
assert tried[0] == 32 and tried_from_24[0] == 24
assert tried[-1] == largest_batch and tried_from_24[-1] == largest_from_24
assert attempts > 1, "the first attempt fits: no limit was met"
out_of_memory = "can't allocate memory" if device.type == "cpu" else "out of memory"
assert out_of_memory in error_text
assert resource.getrlimit(resource.RLIMIT_DATA) == limits_before
if device.type == "cpu":
    torch.empty(memory_limit, dtype=torch.uint8)  # the limit is gone

# What a search finds follows from where it begins and from the room.
factor = 0.5 if search == "halves" else 0.9
for sizes in (tried, tried_from_24):
    assert sizes == [sizes[0], *(int(size * factor) for size in sizes[:-1])]
    assert sizes[-1] <= room and all(size > room for size in sizes[:-1])
