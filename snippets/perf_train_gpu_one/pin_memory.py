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
# [tool.benchbook.on.accelerator]
# repeats = 2
# [tool.benchbook.smallest]
# layers = 2
# sequence_length = 32
# warmup_steps = 1
# timed_steps = 2
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  * (warmup_steps + timed_steps))
# '''
# seconds = 0.5
# ///

# %% parameters
pin_memory = True
non_blocking = True
layers = 6
batch_size = 16
sequence_length = 384
warmup_steps = 2
timed_steps = 6
copied_mib = 256
seed = 42

# %% setup
import functools
import time

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, Trainer, set_seed

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
with device:
    model = BertForSequenceClassification(config).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
size = (warmup_steps + timed_steps) * batch_size
ids = torch.randint(0, config.vocab_size, (size, sequence_length))
dataset = [{"input_ids": row, "labels": number % 2} for number, row in enumerate(ids)]

# %% harness
losses = []
TrainingArguments = functools.partial(
    transformers.TrainingArguments, per_device_train_batch_size=batch_size
)


class DataLoader(torch.utils.data.DataLoader):
    """Takes the time from the end of the warm-up on."""

    def __iter__(self):
        """Each batch, and a note of the loss once it was used."""
        for number, self.of_host in enumerate(super().__iter__()):
            if number == warmup_steps:
                torch.accelerator.synchronize()
                self.begin = time.perf_counter()
            yield self.of_host
            losses.append(loss.detach())  # waiting here would hide what is measured


# %% with_pytorch
if non_blocking:
    # region pytorch
    loader = DataLoader(
        dataset,
        batch_size=16,
        shuffle=True,
        pin_memory=True,
    )
    for batch in loader:
        # The host goes on while the batch is copied.
        batch = {
            name: tensor.to(model.device, non_blocking=True)
            for name, tensor in batch.items()
        }
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
else:
    loader = DataLoader(
        dataset, batch_size=batch_size, shuffle=True, pin_memory=pin_memory
    )
    for batch in loader:
        batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

# %% speed
torch.accelerator.synchronize()
samples_per_second = timed_steps * batch_size / (time.perf_counter() - loader.begin)
batch_bytes = sum(tensor.nbytes for tensor in batch.values())
print(f"{samples_per_second:.1f} samples/s, {batch_bytes} bytes per batch")

# %% with_trainer
if non_blocking:
    # region trainer
    args = TrainingArguments(
        output_dir="output",
        # This is the default.
        dataloader_pin_memory=True,
        accelerator_config={"non_blocking": True},
    )
    # endregion
else:
    args = TrainingArguments(
        output_dir="output",
        dataloader_pin_memory=pin_memory,
        accelerator_config={"non_blocking": False},
    )

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
assert all(found.isfinite() for found in losses)
assert len(losses) == warmup_steps + timed_steps
assert model.device.type == losses[0].device.type == copied.device.type == device.type
assert {tensor.device.type for tensor in batch.values()} == {device.type}
assert {tensor.is_pinned() for tensor in loader.of_host.values()} == {pin_memory}
assert source.is_pinned() == loader.pin_memory == pin_memory
assert copied[-1] == 1
trainer = Trainer(model, args, train_dataset=dataset)
of_trainer = trainer.get_train_dataloader()
assert of_trainer.pin_memory == pin_memory
assert trainer.accelerator.non_blocking == non_blocking
first = next(iter(of_trainer))
known = set(map(tuple, ids.tolist()))
assert first["input_ids"].device.type == device.type
assert all(tuple(row) in known for row in first["input_ids"].tolist())
