"""The same seed in every process, or another one in each: what `device_specific=True` changes."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# ranks = 2
# timeout = 120
# [tool.benchbook.metrics]
# num_processes = { unit = "processes" }
# distinct_masks = { unit = "count" }
# distinct_weights_built = { unit = "count" }
# distinct_weights_trained = { unit = "count" }
# [tool.benchbook.matrix]
# device_specific = [false, true]
# ///

# %% parameters
seed = 42
device_specific = False
features = 256

# %% setup
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

accelerator = Accelerator(cpu=True)
num_processes = accelerator.num_processes


def distinct(tensor):
    """How many different copies the processes hold."""
    copies = accelerator.gather(tensor.detach().reshape(1, -1).contiguous())
    return len(torch.unique(copies, dim=0))


accelerator.print(f"{num_processes} processes, device_specific={device_specific}")

# %% dropout
set_seed(seed, device_specific=device_specific)
mask = torch.nn.functional.dropout(torch.ones(features), p=0.1)
distinct_masks = distinct(mask)
accelerator.print(f"different dropout masks: {distinct_masks}")

# %% weights
model = torch.nn.Linear(features, features)
distinct_weights_built = distinct(model.weight)
accelerator.print(f"different weights as built: {distinct_weights_built}")

# %% prepare
model = accelerator.prepare(model)  # DDP copies the weights of process 0 to all others
distinct_weights_trained = distinct(accelerator.unwrap_model(model).weight)
accelerator.print(f"different weights after prepare(): {distinct_weights_trained}")

# %% checks
assert accelerator.device.type == "cpu"
different = num_processes if device_specific else 1
assert distinct_masks == different
assert distinct_weights_built == different
assert distinct_weights_trained == 1
time.sleep(0.1)  # or a thread of gloo may outlive the interpreter, and abort
accelerator.end_training()
