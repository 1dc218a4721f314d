"""Where `optimizer.zero_grad()` stands in an `accumulate` loop, and what the last group weighs."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# worth = 1
# timeout = 120
# [tool.benchbook.metrics]
# zero_grad_last_difference = { unit = "1", better = "lower" }
# zero_grad_first_difference = { unit = "1", better = "lower" }
# last_group_share = { unit = "1" }
# optimizer_steps = { unit = "steps" }
# [tool.benchbook.work]
# seconds = 1
# ///

# %% parameters
seed = 42
gradient_accumulation_steps = 4
micro_batch_size = 8
micro_batches = 8
learning_rate = 0.1

# %% setup
import copy

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(gradient_accumulation_steps=gradient_accumulation_steps)
device = accelerator.device
set_seed(seed)
initial_model = torch.nn.Linear(16, 1)
inputs = torch.randn(micro_batches * micro_batch_size, 16)
targets = inputs.sum(dim=1, keepdim=True)
mse = torch.nn.functional.mse_loss
print(f"device: {device.type}")


# %% prepared
def prepared(count):
    """Model, optimizer and a loader of `count` micro-batches, ready to train."""
    model = copy.deepcopy(initial_model)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    samples = count * micro_batch_size
    dataset = TensorDataset(inputs[:samples], targets[:samples])
    return accelerator.prepare(model, optimizer, DataLoader(dataset, micro_batch_size))


# %% big_batch
def train_big_batches():
    """The same optimizer steps without accumulation: what the loops have to match."""
    model = copy.deepcopy(initial_model)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    big = gradient_accumulation_steps * micro_batch_size
    for x, y in zip(inputs.split(big), targets.split(big)):
        mse(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    return model.weight.detach()


wanted = train_big_batches()
optimizer_steps = micro_batches // gradient_accumulation_steps


# %% zero_grad_last
def train_zero_grad_last():
    model, optimizer, loader = prepared(micro_batches)
    # region right_loop
    for x, y in loader:
        with accelerator.accumulate(model):
            accelerator.backward(mse(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
    # endregion
    return model.weight.detach().cpu()


# %% zero_grad_first
def train_zero_grad_first():
    model, optimizer, loader = prepared(micro_batches)
    # region wrong_loop
    for x, y in loader:
        with accelerator.accumulate(model):
            # Wrong: wipes what the group has gathered.
            optimizer.zero_grad()
            accelerator.backward(mse(model(x), y))
            optimizer.step()
    # endregion
    return model.weight.detach().cpu()


# %% compare
way = (wanted - initial_model.weight.detach()).norm()
zero_grad_last_difference = ((train_zero_grad_last() - wanted).norm() / way).item()
zero_grad_first_difference = ((train_zero_grad_first() - wanted).norm() / way).item()
print(f"after {optimizer_steps} optimizer steps:")
print(f"zero_grad() last:  weights differ by {zero_grad_last_difference:.1e}")
print(f"zero_grad() first: weights differ by {zero_grad_first_difference:.1e}")

# %% last_group
half = gradient_accumulation_steps // 2  # a loader that ends in the middle of a group
model, optimizer, loader = prepared(half)
for x, y in loader:
    with accelerator.accumulate(model):
        accelerator.backward(mse(model(x), y))
        optimizer.step()

samples = half * micro_batch_size
alone = copy.deepcopy(initial_model)
mse(alone(inputs[:samples]), targets[:samples]).backward()
last_group_share = (model.weight.grad.norm().cpu() / alone.weight.grad.norm()).item()
print(f"a last group of {half}: the gradient has {last_group_share:.2f} of its size")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert device.type == expected.type, "this ran on the CPU beside an accelerator"
assert zero_grad_last_difference < 1e-5
assert abs(last_group_share - half / gradient_accumulation_steps) < 1e-5
