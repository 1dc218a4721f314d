"""The same training with one process and with two: equal if the batch is matched, not otherwise."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# [tool.benchbook.metrics]
# num_processes = { unit = "processes" }
# batch_samples = { unit = "samples" }
# trained_steps = { unit = "steps" }
# reference_losses = { unit = "1" }
# matched_losses = { unit = "1" }
# unmatched_losses = { unit = "1" }
# one_process_losses = { unit = "1" }
# matched_weight_difference = { unit = "1", better = "lower" }
# unmatched_weight_difference = { unit = "1", better = "lower" }
# matched_loss_difference = { unit = "1", better = "lower" }
# one_process_loss_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# ranks = [1, 2]
# mixed_precision = ["no", "bf16"]
# [tool.benchbook.smallest]
# steps = 4
# ///

# %% parameters
seed = 42
batch_size = 16
steps = 40
learning_rate = 1e-3
mixed_precision = "no"

# %% setup
import copy
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

accelerator = Accelerator(cpu=True, mixed_precision=mixed_precision)
num_processes = accelerator.num_processes

# %% model
set_seed(seed)
config = BertConfig(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=32,
    num_labels=2,
    hidden_dropout_prob=0.0,  # each process draws its own masks: no two setups agree
    attention_probs_dropout_prob=0.0,
)
initial_model = BertForSequenceClassification(config)

# %% data
samples = 2 * batch_size * steps
labels = torch.randint(0, 2, (samples,))
upper_half = torch.rand(samples, 32) < 0.2 + 0.6 * labels[:, None]  # learnable
tokens = torch.randint(0, 128, (samples, 32)) + 128 * upper_half
dataset = TensorDataset(tokens, labels)


def batches(size):
    order = torch.Generator().manual_seed(seed)
    return DataLoader(dataset, batch_size=size, shuffle=True, generator=order)


# %% reference
def train_alone():
    """One process, plain PyTorch: what every other setup has to match."""
    model = copy.deepcopy(initial_model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    autocast = torch.autocast("cpu", torch.bfloat16, enabled=mixed_precision == "bf16")
    losses = []
    for _, (tokens, labels) in zip(range(steps), batches(batch_size)):
        with autocast:
            loss = model(tokens, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return model, losses


reference, reference_losses = train_alone()


# %% train
def train(batch_size_per_process):
    model = copy.deepcopy(initial_model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
    model, optimizer, loader = accelerator.prepare(
        model, optimizer, batches(batch_size_per_process)
    )
    own, average = [], []
    for _, (tokens, labels) in zip(range(steps), loader):
        loss = model(tokens, labels=labels).loss
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        own.append(loss.item())  # this process's share of the batch
        # region logged_loss
        logged = accelerator.reduce(loss.detach(), "mean").item()
        # endregion
        average.append(logged)
    return accelerator.unwrap_model(model), own, average


# %% difference
def flat(model):
    return torch.cat([weight.detach().flatten() for weight in model.parameters()])


def weight_difference(model):
    """Distance from the reference, as a share of the way that training went."""
    way = flat(reference) - flat(initial_model)
    return ((flat(model) - flat(reference)).norm() / way.norm()).item()


def loss_difference(losses):
    return max(abs(a - b) / b for a, b in zip(losses, reference_losses))


# %% match
# batch_size: all samples of one optimizer step.
# Give your DataLoader batch_size=per_process.
per_process = batch_size // accelerator.num_processes

# %% matched
matched, one_process_losses, matched_losses = train(per_process)
matched_weight_difference = weight_difference(matched)
matched_loss_difference = loss_difference(matched_losses)
one_process_loss_difference = loss_difference(one_process_losses)
batch_samples, trained_steps = batch_size, len(matched_losses)
accelerator.print(
    f"{num_processes} process(es) x {per_process} samples: "
    f"weights differ by {matched_weight_difference:.1e}, "
    f"losses by {matched_loss_difference:.1e}"
)

# %% unmatched
unmatched, _, unmatched_losses = train(batch_size)
unmatched_weight_difference = weight_difference(unmatched)
accelerator.print(
    f"{num_processes} process(es) x {batch_size} samples: "
    f"weights differ by {unmatched_weight_difference:.1e}"
)

# %% checks
rounding = 1e-4 if mixed_precision == "no" else 1e-1
assert accelerator.device.type == "cpu"
assert len(matched_losses) == len(reference_losses) == steps
assert matched_weight_difference < rounding, matched_weight_difference
assert matched_loss_difference < rounding, matched_loss_difference
if steps == 40:
    assert sum(reference_losses[-5:]) < 0.8 * sum(reference_losses[:5]), "did not learn"
if num_processes == 1:
    assert unmatched_weight_difference == matched_weight_difference
else:
    assert unmatched_weight_difference > 0.2, unmatched_weight_difference
    assert one_process_loss_difference > 0.01
time.sleep(0.1)  # or a thread of gloo may outlive the interpreter, and abort
accelerator.end_training()
