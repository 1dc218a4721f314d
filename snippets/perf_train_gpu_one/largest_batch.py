"""Finding the largest batch that fits: what is tried, what fits, and what fails."""
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
# memory_limit = { unit = "B", memory = "device" }
# [tool.benchbook.matrix]
# search = ["nine_tenths", "halves", "trainer"]
# [tool.benchbook.on.accelerator]
# repeats = 2
# hidden_size = 1024
# layers = 24
# heads = 16
# intermediate_size = 4096
# sequence_length = 512
# memory_mib = 16384
# [tool.benchbook.smallest]
# layers = 2
# vocab_size = 2048
# memory_mib = 320
# [tool.benchbook.work]
# host_values = '''
# ({'nine_tenths': 8, 'halves': 4, 'trainer': 2}[search]
#  * (layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size) + vocab_size * hidden_size))
# '''
# fp32 = '''
# (6 * sequence_length * starting_batch_size
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length)
#  * {'nine_tenths': 4, 'halves': 2, 'trainer': 4}[search])
# '''
# seconds = 3
# ///

# %% parameters
search = "nine_tenths"
starting_batch_size = 32
memory_mib = 1024  # what training may take; the rest of the device is out of bounds
sequence_length = 128
hidden_size = 384
layers = 6
heads = 12
intermediate_size = 1536
vocab_size = 30522
seed = 42

# %% setup
import gc
import resource
import tempfile
from contextlib import contextmanager

import psutil
import torch
from accelerate.utils import find_executable_batch_size
from transformers import BertConfig, BertForSequenceClassification, PrinterCallback
from transformers import Trainer, TrainingArguments, default_data_collator, set_seed

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
ids = torch.randint(0, vocab_size, (4 * starting_batch_size, sequence_length))
labels = torch.arange(4 * starting_batch_size) % 2
memory_limit = memory_mib * 2**20


# %% limit
@contextmanager
def limited_memory():
    """Lets this process take no more than the limit on top of what it has."""
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
        module.set_per_process_memory_fraction(memory_limit / module.mem_get_info()[1])
        try:
            yield
        finally:
            module.set_per_process_memory_fraction(1.0)


# %% train
tried, finished, sizes = [], [], []


def train(batch_size):
    tried.append(batch_size)
    model = BertForSequenceClassification(config).train().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    for _ in range(2):  # the second step has the optimizer's states, too
        batch = ids[:batch_size].to(device), labels[:batch_size].to(device)
        loss = model(batch[0], labels=batch[1]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    finished.append((batch_size, loss.item(), loss.device.type))
    return batch_size


# %% pytorch
find_and_train = find_executable_batch_size(
    train, starting_batch_size=starting_batch_size
)

# %% halves
smaller = iter([16, 8, 4, 2, 1, 0])
find_power_of_two = find_executable_batch_size(
    train, starting_batch_size=32, reduce_batch_size_fn=lambda: next(smaller)
)

# %% trainer
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    auto_find_batch_size=True,
    per_device_train_batch_size=starting_batch_size,
    max_steps=2,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    dataloader_pin_memory=False,
)


# %% with_trainer
def collate(samples):
    sizes.append(len(samples))
    return default_data_collator(samples)


def train_with_trainer():
    rows = [{"input_ids": row, "labels": label} for row, label in zip(ids, labels)]
    model = BertForSequenceClassification(config)
    trainer = Trainer(model, arguments, train_dataset=rows, data_collator=collate)
    trainer.remove_callback(PrinterCallback)
    loss = trainer.train().training_loss
    tried.extend(dict.fromkeys(sizes))  # in their order, each once
    finished.append((sizes[-1], loss, model.device.type))
    return sizes[-1]


# %% find
searches = {
    "nine_tenths": find_and_train,
    "halves": find_power_of_two,
    "trainer": train_with_trainer,
}
limits_before = resource.getrlimit(resource.RLIMIT_DATA)
with limited_memory():
    largest_batch = searches[search]()
tried = list(tried)
attempts = len(tried)
print(f"tried {tried}: {largest_batch} fits")

# %% next_larger
gc.collect()
next_larger = tried[-2]
with limited_memory():
    try:
        train(next_larger)
        error_text = "it fits"
    except RuntimeError as error:
        error_text = str(error)
print(f"{next_larger}: {error_text.splitlines()[0]}")

# %% checks
import math

expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
tried = tried[:attempts]
assert [size for size, _, _ in finished] == [largest_batch] == tried[-1:]
assert all(math.isfinite(loss) for _, loss, _ in finished)
assert {kind for _, _, kind in finished} == {expected.type}
assert attempts > 1, "the first attempt fits: no limit was met"
out_of_memory = "can't allocate memory" if device.type == "cpu" else "out of memory"
assert out_of_memory in error_text
assert resource.getrlimit(resource.RLIMIT_DATA) == limits_before
following = [int(size * (0.5 if search == "halves" else 0.9)) for size in tried]
assert tried == [starting_batch_size, *following[:-1]]
if device.type == "cpu":
    torch.empty(memory_limit, dtype=torch.uint8)  # the limit is gone
