"""Four times the batch: does the learning rate scaled by 1, by 2 or by 4 give the same loss?"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 120
# [tool.benchbook.metrics]
# small_batch_loss = { unit = "1", better = "lower", seeds = true }
# unscaled_loss = { unit = "1", better = "lower", seeds = true }
# square_root_loss = { unit = "1", better = "lower", seeds = true }
# linear_loss = { unit = "1", better = "lower", seeds = true }
# unscaled_gap = { unit = "1", seeds = true }
# square_root_gap = { unit = "1", seeds = true }
# linear_gap = { unit = "1", seeds = true }
# [[tool.benchbook.matrix]]
# optimizer_name = "SGD"
# learning_rate = 0.03
# [[tool.benchbook.matrix]]
# optimizer_name = "SGD"
# learning_rate = 0.3
# [[tool.benchbook.matrix]]
# optimizer_name = "AdamW"
# learning_rate = 0.0003
# [[tool.benchbook.matrix]]
# optimizer_name = "AdamW"
# learning_rate = 0.003
# [tool.benchbook.smallest]
# seeds = 2
# ///

# %% parameters
optimizer_name = "SGD"
learning_rate = 0.03
batch_size = 16
num_processes = 4  # stands for four processes of 16 samples: one batch of 64
samples = 6400
seeds = 16

# %% setup
from statistics import median

import torch
from torch.nn.functional import cross_entropy

make_optimizer = getattr(torch.optim, optimizer_name)


# %% data
def make_data(seed):
    """Inputs and noisy labels of a random teacher; the last 2000 are held out."""
    torch.manual_seed(seed)
    teacher = torch.nn.Sequential(
        torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4)
    )
    inputs = torch.randn(samples + 2000, 32)
    with torch.no_grad():
        logits = 8 * teacher(inputs)
    return inputs, torch.distributions.Categorical(logits=logits).sample()


# %% train
def held_out_loss(seed, batch, **settings):
    """One pass over the training samples, then the loss on samples never seen."""
    inputs, labels = make_data(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)
    )
    optimizer = make_optimizer(model.parameters(), **settings)
    for start in range(0, samples, batch):
        rows = slice(start, start + batch)
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        return cross_entropy(model(inputs[samples:]), labels[samples:]).item()


def losses(batch, rate, **settings):
    each = range(seeds)
    return [held_out_loss(seed, batch, lr=rate, **settings) for seed in each]


def gaps(big, small):
    """How much more the loss is for each seed: both begin with the same weights."""
    return [one - other for one, other in zip(big, small, strict=True)]


# %% compare
big_batch = batch_size * num_processes
root = num_processes**0.5
of_adam = {}  # the square root rule changes what Adam remembers, too
if optimizer_name == "AdamW":
    betas = (1 - num_processes * (1 - 0.9), 1 - num_processes * (1 - 0.999))
    of_adam = {"betas": betas, "eps": 1e-8 / root}

small_batch_loss = losses(batch_size, learning_rate)
unscaled_loss = losses(big_batch, learning_rate)
square_root_loss = losses(big_batch, learning_rate * root, **of_adam)
linear_loss = losses(big_batch, learning_rate * num_processes)

unscaled_gap = gaps(unscaled_loss, small_batch_loss)
square_root_gap = gaps(square_root_loss, small_batch_loss)
linear_gap = gaps(linear_loss, small_batch_loss)
print(f"{optimizer_name}, learning rate {learning_rate}, median of {seeds} seeds")
print(f"batch {batch_size}: loss {median(small_batch_loss):.4f}")
print(f"batch {big_batch}, rate x 1: {median(unscaled_gap):+.4f}")
print(f"batch {big_batch}, rate x 2: {median(square_root_gap):+.4f}")
print(f"batch {big_batch}, rate x 4: {median(linear_gap):+.4f}")

# %% checks
untrained = losses(batch_size, 0.0)
for trained in (small_batch_loss, unscaled_loss, square_root_loss, linear_loss):
    assert len(trained) == seeds
    assert all(0 < one < other for one, other in zip(trained, untrained, strict=True))
