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
# num_workers = [0, 1, 2, 4]
# [tool.benchbook.on.accelerator]
# hidden_size = 1024
# layers = 24
# heads = 16
# intermediate_size = 4096
# batch_size = 32
# sequence_length = 512
# warmup_steps = 20
# timed_steps = 40
# [tool.benchbook.smallest]
# layers = 1
# batch_size = 2
# words_per_document = 600
# timed_steps = 2
# [tool.benchbook.work]
# host_values = '''
# layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size) + 31000 * hidden_size
# '''
# fp32 = '''
# (6 * batch_size * sequence_length * (warmup_steps + timed_steps)
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length))
# '''
# seconds = '''
# (3 + (0 if num_workers > 0 else
#       3e-6 * words_per_document * batch_size * (warmup_steps + timed_steps)))
# '''
# ///

# %% parameters
num_workers = 0
batch_size = 16
sequence_length = 128
words_per_document = 3000
hidden_size = 384
layers = 6
heads = 12
intermediate_size = 1536
vocab_size = 30522
warmup_steps = 2
timed_steps = 4
seed = 42

# %% setup
import random
import string
import tempfile
import time

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

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
model = BertForSequenceClassification(config).train().to(device)
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


# %% pytorch
loader = DataLoader(
    Documents(),
    batch_size=batch_size,
    num_workers=num_workers,
    multiprocessing_context="fork" if num_workers else None,
    pin_memory=device.type != "cpu",
)

# %% trainer
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=batch_size,
    dataloader_num_workers=num_workers,
    dataloader_multiprocessing_context="fork" if num_workers else None,
    dataloader_pin_memory=device.type != "cpu",
    train_sampling_strategy="sequential",
)

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

# %% same_batches
trainer = Trainer(model, arguments, train_dataset=Documents())
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
assert of_trainer.keys() == of_pytorch.keys()
for name, tensor in of_pytorch.items():
    assert torch.equal(of_trainer[name].cpu(), tensor)
assert of_pytorch["input_ids"].shape == (batch_size, sequence_length)
# The pieces of a word are the word: the work was done.
spelling = {number: piece for piece, number in pieces.items()}
text = documents[0]
assert "".join(spelling[n] for n in tokenise(text)) == text.replace(" ", "")
assert 0 < waiting_share < 1
