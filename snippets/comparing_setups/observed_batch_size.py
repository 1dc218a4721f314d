"""How many samples one optimizer step really sees, with one process and with two."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 120
# [tool.benchbook.metrics]
# num_processes = { unit = "processes" }
# batch_per_process = { unit = "samples" }
# observed_batch_size = { unit = "samples" }
# optimizer_steps = { unit = "steps" }
# samples_seen = { unit = "samples" }
# samples_repeated = { unit = "samples" }
# samples_for_metrics = { unit = "samples" }
# [tool.benchbook.matrix]
# ranks = [1, 2]
# split_batches = [false, true]
# ///

# %% parameters
samples = 1000
batch_size = 64
split_batches = False

# %% setup
from functools import partial

import torch
from accelerate import Accelerator, DataLoaderConfiguration
from torch.utils.data import DataLoader, TensorDataset

Accelerator = partial(Accelerator, cpu=True)
if split_batches:
    # region split_batches
    config = DataLoaderConfiguration(split_batches=True)
    accelerator = Accelerator(dataloader_config=config)
    # endregion
else:
    accelerator = Accelerator()
num_processes = accelerator.num_processes

loader = DataLoader(TensorDataset(torch.arange(samples)), batch_size=batch_size)
loader = accelerator.prepare(loader)

# %% epoch
seen, for_metrics = [], []
for (batch,) in loader:
    seen.append(accelerator.gather(batch))
    for_metrics.append(accelerator.gather_for_metrics(batch))

observed_batch_size = len(seen[0])
batch_per_process = observed_batch_size // num_processes
optimizer_steps = len(seen)
accelerator.print(
    f"DataLoader(batch_size={batch_size}), {num_processes} process(es): "
    f"{batch_per_process} samples each, {observed_batch_size} per step, "
    f"{optimizer_steps} optimizer steps per epoch"
)

# %% last_batch
seen = torch.cat(seen)
samples_seen = len(seen)
samples_repeated = samples_seen - len(seen.unique())
samples_for_metrics = len(torch.cat(for_metrics))
accelerator.print(
    f"gather(): {samples_seen} samples, {samples_repeated} of them twice; "
    f"gather_for_metrics(): {samples_for_metrics}"
)

# %% checks
assert accelerator.device.type == "cpu"
assert observed_batch_size in {batch_size, batch_size * num_processes}
assert optimizer_steps == -(-samples // observed_batch_size)
assert len(seen.unique()) == samples == samples_for_metrics
accelerator.end_training()
