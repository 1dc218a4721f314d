"""How much of a training step waits for data, and what worker processes change."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 300
# repeats = 8
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# samples_per_second = { unit = "samples/s", better = "higher" }
# waiting_share = { unit = "1", better = "lower" }
# waiting_seconds = { unit = "s", better = "lower" }
# compute_seconds = { unit = "s", better = "lower" }
# [tool.benchbook.matrix]
# num_workers = [0, 1, 2]
# [tool.benchbook.on.accelerator]
# hidden_size = 1024
# layers = 6
# heads = 16
# intermediate_size = 4096
# sequence_length = 512
# words_per_document = 1500
# warmup_steps = 3
# timed_steps = 5
# repeats = 3
# [tool.benchbook.smallest]
# layers = 1
# sequence_length = 16
# words_per_document = 100
# timed_steps = 2
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * sequence_length * (warmup_steps + timed_steps)
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length))
# '''
# seconds = '''
# (0.5 + (0 if num_workers > 0 else
#       3e-6 * words_per_document * batch_size * (warmup_steps + timed_steps)))
# '''
# ///

# %% parameters
num_workers = 0
batch_size = 16
sequence_length = 128
words_per_document = 3000
hidden_size = 256
layers = 4
heads = 8
intermediate_size = 1024
vocab_size = 30522
warmup_steps = 2
timed_steps = 4
seed = 42

# %% setup
import random
import string
import time
from functools import partial

import torch
import transformers
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification
from transformers import Trainer, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(seed)
config = BertConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=intermediate_size,
    max_position_embeddings=max(512, sequence_length),
)
with device:
    model = BertForSequenceClassification(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

# %% texts
pieces = {letter: number for number, letter in enumerate(string.ascii_lowercase)}
while len(pieces) < vocab_size:
    piece = "".join(random.choices(string.ascii_lowercase, k=random.randint(2, 5)))
    pieces.setdefault(piece, len(pieces))
words = [
    "".join(random.choices(string.ascii_lowercase, k=random.randint(3, 12)))
    for _ in range(5000)
]
documents = [" ".join(random.choices(words, k=words_per_document)) for _ in range(64)]


# %% dataset
def tokenise(text):
    """The longest pieces that each word begins with, one after the other."""
    found = []
    for word in text.split():
        while word:
            end = next(n for n in range(len(word), 0, -1) if word[:n] in pieces)
            found.append(pieces[word[:end]])
            word = word[end:]
    return found


class Documents(Dataset):
    """Tokenises a whole document whenever a sample of it is asked for."""

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        tokens = tokenise(documents[index % len(documents)])
        ids = torch.tensor(tokens[:sequence_length])
        return {"input_ids": ids, "labels": index % 2}


# %% harness
# Forked workers start at once: what they do later is what is measured.
fork = "fork" if num_workers else None
dataset = Documents()
DataLoader = partial(
    DataLoader,
    multiprocessing_context=fork,
    pin_memory=device.type != "cpu",
)
TrainingArguments = partial(
    transformers.TrainingArguments,
    per_device_train_batch_size=batch_size,
    dataloader_multiprocessing_context=fork,
    dataloader_pin_memory=device.type != "cpu",
    use_cpu=device.type == "cpu",
)

# %% with_pytorch
if num_workers == 2:
    # region pytorch
    loader = DataLoader(
        dataset,
        batch_size=16,
        shuffle=True,
        num_workers=2,
    )
    # endregion
else:
    loader = DataLoader(
        dataset, batch_size=batch_size, shuffle=True, num_workers=num_workers
    )

# %% with_trainer
if num_workers == 2:
    # region trainer
    args = TrainingArguments(
        output_dir="output",
        dataloader_num_workers=2,
    )
    # endregion
else:
    args = TrainingArguments(output_dir="output", dataloader_num_workers=num_workers)

# %% train
waits, computes, losses = [], [], []
batches = iter(loader)
for _ in range(warmup_steps + timed_steps):
    begin = time.perf_counter()
    batch = {name: tensor.to(device) for name, tensor in next(batches).items()}
    loaded = time.perf_counter()
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.item())  # waits for the device
    waits.append(loaded - begin)
    computes.append(time.perf_counter() - loaded)
del batches  # ends the workers

# %% shares
waiting_seconds = sum(waits[warmup_steps:]) / timed_steps
compute_seconds = sum(computes[warmup_steps:]) / timed_steps
waiting_share = waiting_seconds / (waiting_seconds + compute_seconds)
samples_per_second = batch_size / (waiting_seconds + compute_seconds)
print(f"{num_workers} workers: {samples_per_second:.1f} samples/s")
print(f"waiting {waiting_seconds:.3f} s, computing {compute_seconds:.3f} s per step")

# %% both
trainer = Trainer(model, args, train_dataset=dataset)
trainer_loader = trainer.get_train_dataloader()
of_trainer = next(iter(trainer_loader))
of_pytorch = next(iter(loader))

# %% checks
import math

expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert model.device.type == loss.device.type == expected.type
assert loader.num_workers == trainer_loader.num_workers == num_workers
assert len(losses) == warmup_steps + timed_steps
assert all(math.isfinite(loss) for loss in losses)
assert args.dataloader_num_workers == num_workers
# Both shuffle, and load the documents: the pieces of a text are that text.
spelling = {number: piece for piece, number in pieces.items()}
texts = [text.replace(" ", "") for text in documents]
for loaded in (of_trainer, of_pytorch):
    assert loaded["input_ids"].shape == (batch_size, sequence_length)
    starts = ["".join(map(spelling.get, ids)) for ids in loaded["input_ids"].tolist()]
    order = [next(i for i in range(64) if texts[i].startswith(s)) for s in starts]
    assert [number % 2 for number in order] == loaded["labels"].tolist()
    assert order != sorted(order)
assert "".join(spelling[number] for number in tokenise(documents[0])) == texts[0]
assert 0 < waiting_share < 1
