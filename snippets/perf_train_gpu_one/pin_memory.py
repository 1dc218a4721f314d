"""What pinned memory does to copies to the device, and to training on batches of tokens."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator"]
# worth = 3
# timeout = 300
# repeats = 8
# [tool.benchbook.metrics]
# copied_per_second = { unit = "B/s", better = "higher" }
# samples_per_second = { unit = "samples/s", better = "higher" }
# batch_bytes = { unit = "B" }
# [[tool.benchbook.matrix]]
# pin_memory = false
# non_blocking = false
# [[tool.benchbook.matrix]]
# pin_memory = true
# non_blocking = false
# [[tool.benchbook.matrix]]
# pin_memory = true
# non_blocking = true
# [tool.benchbook.smallest]
# layers = 2
# batch_size = 2
# sequence_length = 32
# warmup_steps = 1
# timed_steps = 2
# [tool.benchbook.work]
# host_values = "32.8e6 + 12.6e6 * layers"
# fp32 = '''
# (6 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  * (warmup_steps + timed_steps))
# '''
# seconds = 1.5
# ///

# %% parameters
pin_memory = True
non_blocking = True
layers = 24
batch_size = 32
sequence_length = 512
warmup_steps = 3
timed_steps = 20
copied_mib = 256
seed = 42

# %% setup
import tempfile
import time

import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed

device = torch.accelerator.current_accelerator(check_available=True)
if device is None:
    raise SystemExit("Pinned memory is for copies to an accelerator, and none is here.")
set_seed(seed)
config = BertConfig(
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
)
model = BertForSequenceClassification(config).train().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
size = (warmup_steps + timed_steps) * batch_size
ids = torch.randint(0, config.vocab_size, (size, sequence_length))
dataset = [{"input_ids": row, "labels": number % 2} for number, row in enumerate(ids)]

# %% pytorch
loader = DataLoader(dataset, batch_size=batch_size, pin_memory=pin_memory)


def to_device(batch):
    return {
        name: tensor.to(device, non_blocking=non_blocking)
        for name, tensor in batch.items()
    }


# %% trainer
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=batch_size,
    dataloader_pin_memory=pin_memory,
    accelerator_config={"non_blocking": non_blocking},
    train_sampling_strategy="sequential",
)

# %% train
losses = []
for number, batch in enumerate(loader):
    if number == warmup_steps:
        torch.accelerator.synchronize()
        begin = time.perf_counter()
    loss = model(**to_device(batch)).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.detach())  # waiting here would hide what non_blocking does
torch.accelerator.synchronize()
samples_per_second = timed_steps * batch_size / (time.perf_counter() - begin)
batch_bytes = sum(tensor.nbytes for tensor in batch.values())
print(f"{samples_per_second:.1f} samples/s, {batch_bytes} bytes per batch")

# %% copy
source = torch.ones(copied_mib * 2**20, dtype=torch.uint8)
source = source.pin_memory() if pin_memory else source
for _ in range(2):  # the first copy warms up
    torch.accelerator.synchronize()
    begin = time.perf_counter()
    copied = source.to(device, non_blocking=non_blocking)
    torch.accelerator.synchronize()
    copied_per_second = source.nbytes / (time.perf_counter() - begin)
print(f"{copied_per_second / 2**30:.1f} GiB/s to the device")

# %% checks
assert all(loss.isfinite() for loss in losses)
assert len(losses) == warmup_steps + timed_steps
assert model.device.type == losses[0].device.type == copied.device.type == device.type
assert batch["input_ids"].is_pinned() == source.is_pinned() == pin_memory
assert copied[-1] == 1
trainer = Trainer(model, arguments, train_dataset=dataset)
of_trainer = trainer.get_train_dataloader()
assert of_trainer.pin_memory == pin_memory
assert trainer.accelerator.non_blocking == non_blocking
first = next(iter(of_trainer))
assert torch.equal(first["input_ids"].cpu(), ids[:batch_size])
