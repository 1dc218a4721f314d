"""Four times the batch: does the learning rate scaled by 1, by 2 or by 4 give the same loss?"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 120
# [tool.benchbook.metrics]
# small_batch_loss = { unit = "1", better = "lower" }
# unscaled_loss = { unit = "1", better = "lower" }
# square_root_loss = { unit = "1", better = "lower" }
# linear_loss = { unit = "1", better = "lower" }
# unscaled_gap = { unit = "1" }
# square_root_gap = { unit = "1" }
# linear_gap = { unit = "1" }
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
seeds = 5

# %% setup
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
def held_out_loss(seed, batch, rate):
    """One pass over the training samples, then the loss on samples never seen."""
    inputs, labels = make_data(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)
    )
    optimizer = make_optimizer(model.parameters(), lr=rate)
    for start in range(0, samples, batch):
        rows = slice(start, start + batch)
        cross_entropy(model(inputs[rows]), labels[rows]).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        return cross_entropy(model(inputs[samples:]), labels[samples:]).item()


def mean_loss(batch, rate):
    return sum(held_out_loss(seed, batch, rate) for seed in range(seeds)) / seeds


# %% compare
big_batch = batch_size * num_processes
small_batch_loss = mean_loss(batch_size, learning_rate)
unscaled_loss = mean_loss(big_batch, learning_rate)
square_root_loss = mean_loss(big_batch, learning_rate * num_processes**0.5)
linear_loss = mean_loss(big_batch, learning_rate * num_processes)

unscaled_gap = unscaled_loss - small_batch_loss
square_root_gap = square_root_loss - small_batch_loss
linear_gap = linear_loss - small_batch_loss
print(f"{optimizer_name}, learning rate {learning_rate}, mean of {seeds} seeds")
print(f"batch {batch_size}: loss {small_batch_loss:.4f}")
print(f"batch {big_batch}, rate x 1: {unscaled_gap:+.4f}")
print(f"batch {big_batch}, rate x 2: {square_root_gap:+.4f}")
print(f"batch {big_batch}, rate x 4: {linear_gap:+.4f}")

# %% checks
untrained = mean_loss(batch_size, 0.0)
assert small_batch_loss < untrained, "the small batch did not learn"
assert unscaled_loss < untrained and linear_loss < untrained
assert small_batch_loss > 0
