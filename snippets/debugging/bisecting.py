"""The step and the layer in which the first inf arises, from checkpoints of a training that ended in NaN."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 2
# [tool.benchbook.metrics]
# steps = { unit = "count" }
# checkpoints_read = { unit = "count", better = "lower" }
# steps_repeated = { unit = "count", better = "lower" }
# found_step = { unit = "1" }
# found_layer = { unit = "1" }
# [tool.benchbook.smallest]
# steps = 8
# bad_step = 5
# kept_every = 4
# ///

# %% parameters
steps = 64
bad_step = 41  # counted from 0
bad_layer = 5  # counted from 1
kept_every = 16  # steps from one checkpoint to the next
batch_size = 4
sequence_length = 32
hidden_size = 64
layers = 8
vocab_size = 256
seed = 42

# %% setup
import copy

import torch
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

set_seed(seed)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
batches = torch.randint(vocab_size - 1, (steps, batch_size, sequence_length))
# A token that only one batch has, and that one layer cannot bear.
batches[bad_step, 0, 3] = vocab_size - 1
held = {}


def spoil(module, inputs, output):
    if (held["tokens"] == vocab_size - 1).any():
        output = output * float("inf")
    return output


# %% steps
def step(tokens):
    held["tokens"] = tokens
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


model.model.layers[bad_layer - 1].mlp.register_forward_hook(spoil)
checkpoints = []
for number in range(steps):
    if number % kept_every == 0:
        states = model.state_dict(), optimizer.state_dict()
        checkpoints.append(copy.deepcopy(states))
    last_loss = step(batches[number])

# %% checkpoints


# region which_step
import copy
import math
from bisect import bisect_left

read = []


def spoilt(checkpoint):
    read.append(checkpoint)
    weights = checkpoint[0].values()
    return not all(w.isfinite().all() for w in weights)


# The last checkpoint that is good, and on from there
good = bisect_left(checkpoints, True, key=spoilt) - 1
assert good >= 0, "the first checkpoint is spoilt already"
model.load_state_dict(checkpoints[good][0])
optimizer.load_state_dict(checkpoints[good][1])
for number in range(good * kept_every, steps):
    before = copy.deepcopy(model.state_dict())
    if not math.isfinite(step(batches[number])):
        break
print("first in step", number)
# endregion
found_step, checkpoints_read = number, len(read)
steps_repeated = number + 1 - good * kept_every

# %% layers
# region which_layer
model.load_state_dict(before)
batch = batches[number]
with torch.no_grad():
    outputs = model(batch, output_hidden_states=True)
states = outputs.hidden_states
finite = [state.isfinite().all() for state in states]
print("first after layer", finite.index(False))
# endregion
found_layer = finite.index(False)
print(f"{checkpoints_read} of {len(checkpoints)} checkpoints read")
print(f"{steps_repeated} of {steps} steps repeated")

# %% checks
assert math.isnan(last_loss)
assert (found_step, found_layer) == (bad_step, bad_layer)
assert checkpoints_read <= math.ceil(math.log2(len(checkpoints))) + 1
assert steps_repeated <= kept_every
