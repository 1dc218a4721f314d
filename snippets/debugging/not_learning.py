"""Ten faults under which the loss does not fall as it should, and the number that gives each away."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 3
# [tool.benchbook.metrics]
# first_loss = { unit = "1" }
# last_loss = { unit = "1", better = "lower" }
# frequency_loss = { unit = "1" }
# one_batch_loss = { unit = "1", better = "lower" }
# held = { unit = "1" }
# reached = { unit = "1" }
# gradient = { unit = "1" }
# change = { unit = "1" }
# first_change = { unit = "1" }
# late_change = { unit = "1" }
# changed = { unit = "1" }
# rate = { unit = "1" }
# counted = { unit = "1" }
# two_ahead = { unit = "1" }
# [tool.benchbook.matrix]
# fault = [
#     "none", "rate_too_high", "rate_too_low", "schedule_over", "other_weights", "graph_cut",
#     "gradients_kept", "bf16_weights", "labels_masked", "labels_shifted", "labels_of_others",
# ]
# [tool.benchbook.smallest]
# steps = 4
# one_batch_steps = 2
# ///

# %% parameters
fault = "none"
learning_rate = 3e-4
batch_size = 32
sequence_length = 32
vocab_size = 64
hidden_size = 128
layers = 2
steps = 200
one_batch_steps = 100
seed = 42

# %% setup
import copy
import math

from torch.optim.lr_scheduler import LambdaLR
from transformers import LlamaConfig, LlamaForCausalLM, set_seed


# %% watched
from contextlib import contextmanager

import torch


def norm(tensors):
    norms = [t.detach().float().norm() for t in tensors]
    return torch.tensor(norms).norm().item()


def size(tensors):
    return sum(t.numel() for t in tensors)


@contextmanager
def watched(model, optimizer):  # around optimizer.step()
    named = dict(model.named_parameters()).values()
    weights = [w for w in named if w.requires_grad]
    total = size(weights)
    groups = optimizer.param_groups
    held = {id(w) for g in groups for w in g["params"]}
    held = [w for w in weights if id(w) in held]
    graded = [w for w in weights if w.grad is not None]
    old = [w.detach().clone() for w in weights]
    yield (seen := {})
    moved = [w.detach() - o for w, o in zip(weights, old)]
    changed = sum(m.count_nonzero().item() for m in moved)
    seen.update(
        # of the weights, those that the optimizer holds
        held=size(held) / total,
        # those that have a gradient, and its norm
        reached=size(graded) / total,
        gradient=norm([w.grad for w in graded]),
        # those that the step changed, and by how much
        changed=changed / total,
        change=norm(moved) / norm(old),
    )


# %% data
set_seed(seed)
# Each token is followed by one of two; some tokens are more frequent than others.
followers = (torch.rand(vocab_size, 2) ** 2 * vocab_size).long()


def texts(count):
    """Token ids of texts, of shape (count, sequence_length)."""
    tokens = [torch.randint(vocab_size, (count,))]
    while len(tokens) < sequence_length:
        either = torch.randint(2, (count, 1))
        tokens.append(followers[tokens[-1]].gather(1, either).squeeze(1))
    return torch.stack(tokens, 1)


def batch_of(tokens):
    """What the model is given."""
    inputs, labels = tokens, tokens.clone()
    if fault == "labels_masked":
        # region labels_masked
        # The mask of the prompt covers the answer, but for its end.
        labels[:, :-1] = -100
        # endregion
    elif fault == "labels_shifted":
        # region labels_shifted
        # The model shifts them once more.
        inputs, labels = tokens[:, :-1], tokens[:, 1:].clone()
        # endregion
    elif fault == "labels_of_others":
        # region labels_of_others
        # Inputs are shuffled, and their labels are not.
        inputs = tokens[torch.randperm(len(tokens))]
        # endregion
    return inputs, labels


# %% training
def training():
    """A model, its optimizer and schedule, as they are before the first step."""
    set_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            intermediate_size=4 * hidden_size,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=4,
            initializer_range=hidden_size**-0.5,
        )
    ).train()
    if fault == "bf16_weights":
        # region bf16_weights
        # Weights, not only the arithmetic.
        model = model.to(torch.bfloat16)
        # endregion
    rates = {"rate_too_high": 0.3, "rate_too_low": 1e-7}
    rate = rates.get(fault, learning_rate)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, fused=True)
    if fault == "other_weights":
        # region other_weights
        # After the optimizer was made, the model is made anew.
        model = copy.deepcopy(model)
        # endregion
    planned = steps
    if fault == "schedule_over":
        # region schedule_over
        # The schedule counts epochs, and is stepped with each batch.
        planned = max(1, steps // 8)
        # endregion
    schedule = LambdaLR(optimizer, lambda step: max(0.0, 1 - step / planned))
    return model, optimizer, schedule


def train(batches):
    """Train anew; return the model, the loss of each step, what was seen half-way and each change."""
    model, optimizer, schedule = training()
    losses, changes = [], []
    for number, tokens in enumerate(batches):
        inputs, labels = batch_of(tokens)
        loss = model(input_ids=inputs, labels=labels).loss
        losses.append(loss.item())
        if fault == "graph_cut":
            # region graph_cut
            loss = torch.tensor(loss.item(), requires_grad=True)
            # endregion
        loss.backward()
        # region usage
        with watched(model, optimizer) as seen:
            optimizer.step()
        # endregion
        changes.append(seen["change"])
        if number == len(batches) // 2:
            half_way = seen
            # region rate
            group = optimizer.param_groups[0]
            rate = group["lr"] / group["initial_lr"]
            # endregion
            # region counted
            counted = (labels[:, 1:] != -100).float().mean()
            # endregion
        schedule.step()
        if fault != "gradients_kept":
            optimizer.zero_grad()
    return model, losses, half_way | {"rate": rate, "counted": counted.item()}, changes


# %% train
batches = [texts(batch_size) for _ in range(steps)]
model, losses, seen, changes = train(batches)
first_loss, last_loss = losses[0], sum(losses[-10:]) / len(losses[-10:])
held, reached, gradient = seen["held"], seen["reached"], seen["gradient"]
change, changed = seen["change"], seen["changed"]
first_change, late_change = changes[0], changes[len(changes) * 9 // 10]
rate, counted = seen["rate"], seen["counted"]

# %% same_batch
# region one_batch
# Anew, on four samples again and again.
_, one_batch_losses, *_ = train([batches[0][:4]] * one_batch_steps)
# endregion
one_batch_loss = one_batch_losses[-1]

# %% guesses
tokens = torch.cat(batches)
shares = tokens[:, 1:].flatten().bincount() / tokens[:, 1:].numel()
frequency_loss = -(shares[shares > 0] * shares[shares > 0].log()).sum().item()
tokens = tokens[:512]
# region two_ahead
with torch.no_grad():
    guesses = model(input_ids=tokens).logits.argmax(-1)
ahead = (guesses[:, :-2] == tokens[:, 2:]).float().mean()
# endregion
two_ahead = ahead.item()
print(f"{fault}: loss {first_loss:.2f}, at last {last_loss:.2f}")
print(f"one batch of four samples: {one_batch_loss:.2f}")
for name, value in seen.items():
    print(f"{name:9}{value:10.3g}")

# %% checks
assert abs(first_loss - math.log(vocab_size)) < 1
assert held == (fault != "other_weights")
assert reached == (fault != "graph_cut")
assert (changed == 0) == (fault in ("schedule_over", "other_weights", "graph_cut"))
assert (change == 0) == (changed == 0)
assert (rate == 0) == (fault == "schedule_over")
assert (counted < 1) == (fault == "labels_masked")
if steps >= 200:  # a shorter training tells nothing of these
    assert (last_loss < 0.85) == (fault == "none"), last_loss
    assert (change > 5e-3) == (fault == "rate_too_high"), change
    assert (0 < change < 1e-6) == (fault == "rate_too_low"), change
    assert (0 < changed < 0.3) == (fault == "bf16_weights"), changed
    assert (gradient > 20) == (fault in ("gradients_kept", "other_weights")), gradient
    assert (two_ahead > 0.2) == (fault == "labels_shifted"), two_ahead
    at_frequency = abs(last_loss - frequency_loss) < 0.1
    assert at_frequency == (fault == "labels_of_others"), last_loss
