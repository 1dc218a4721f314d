"""Two processes with unequal numbers of tokens: DDP averages the means, unless you count tokens."""
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
# mean_of_means_difference = { unit = "1", better = "lower" }
# token_normalised_difference = { unit = "1", better = "lower" }
# ///

# %% parameters
seed = 42
tokens_per_process = [4, 32]  # process 0, process 1

# %% setup
import copy
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.nn.functional import cross_entropy

accelerator = Accelerator(cpu=True)
num_processes = accelerator.num_processes
set_seed(seed)

# %% data
sizes = tokens_per_process[:num_processes]
inputs = torch.randint(0, 256, (sum(sizes),))
targets = torch.randint(0, 256, (sum(sizes),))
own_inputs = inputs.split(sizes)[accelerator.process_index]
own_targets = targets.split(sizes)[accelerator.process_index]
initial_model = torch.nn.Sequential(
    torch.nn.Embedding(256, 64), torch.nn.Linear(64, 256)
)


def gradient(model):
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


# %% reference
reference = copy.deepcopy(initial_model)
cross_entropy(reference(inputs), targets).backward()  # all tokens at once
wanted = gradient(reference)


def difference(model):
    return ((gradient(model) - wanted).norm() / wanted.norm()).item()


# %% mean_of_means
model = accelerator.prepare(copy.deepcopy(initial_model))
accelerator.backward(cross_entropy(model(own_inputs), own_targets))
mean_of_means_difference = difference(model)
accelerator.print(f"gradient differs by {mean_of_means_difference:.1e}")

# %% token_normalised
model = accelerator.prepare(copy.deepcopy(initial_model))
# region all_tokens
own_tokens = (own_targets != -100).sum()
all_tokens = accelerator.reduce(own_tokens, "sum")
logits = model(own_inputs)
summed = cross_entropy(logits, own_targets, reduction="sum")
# DDP divides by the number of processes.
loss = summed * accelerator.num_processes / all_tokens
accelerator.backward(loss)
# endregion
token_normalised_difference = difference(model)
accelerator.print(f"gradient differs by {token_normalised_difference:.1e}")

# %% checks
assert accelerator.device.type == "cpu"
assert token_normalised_difference < 1e-5
if num_processes == 1:
    assert mean_of_means_difference < 1e-5
else:
    assert mean_of_means_difference > 0.1
time.sleep(0.1)  # or a thread of gloo may outlive the interpreter, and abort
accelerator.end_training()
