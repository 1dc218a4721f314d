"""What makes memory grow step by step: which results of a step, kept, hold its tensors."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 4
# timeout = 600
# repeats = 2
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000", KINETO_LOG_LEVEL = "6" }
# [tool.benchbook.metrics]
# allocated_after_step = { unit = "B", better = "lower", memory = "device" }
# growth_per_step = { unit = "B", better = "lower", memory = "device" }
# graph_nodes_per_step = { unit = "count", better = "lower" }
# [tool.benchbook.matrix]
# keeps = [
#     "item", "detach", "loss", "outputs", "validation_loss", "validation_no_grad",
# ]
# [tool.benchbook.on.accelerator]
# hidden_size = 1024
# layers = 6
# heads = 16
# intermediate_size = 4096
# sequence_length = 256
# repeats = 2
# [tool.benchbook.smallest]
# layers = 1
# batch_size = 2
# sequence_length = 16
# [tool.benchbook.work]
# fp32 = '''
# (batch_size * sequence_length * steps
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length)
#  * (2 if keeps in ['validation_loss', 'validation_no_grad'] else 6))
# '''
# seconds = 0.1
# ///

# %% parameters
keeps = "item"
steps = 4
batch_size = 16
sequence_length = 128
hidden_size = 384
layers = 6
heads = 12
intermediate_size = 1536

# %% setup
from contextlib import contextmanager

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from transformers import AutoModelForSequenceClassification, BertConfig, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)

# %% model
set_seed(0)
config = BertConfig(  # random weights
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=intermediate_size,
)
with device:
    model = AutoModelForSequenceClassification.from_config(config)
    tokens = torch.randint(0, config.vocab_size, (batch_size, sequence_length))
    labels = torch.arange(batch_size) % 2
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)


# %% steps
def training_step(batch):
    outputs = model(**batch)
    outputs.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return outputs


# %% watch
marks = []


@contextmanager
def watched():
    """Note what torch's allocator holds at the end of each step."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        yield
    if device.type != "cpu":
        return
    held = 0
    events = seen.profiler.kineto_results.events()
    for event in sorted(events, key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
        elif event.name() == "step ends":
            marks.append(held)


def step_ends():
    with record_function("step ends"):
        if device.type != "cpu":
            marks.append(torch.accelerator.memory_allocated())


def make_batches():
    """The same batch for each step, and a note of what is left once it is done."""
    for _ in range(steps):
        yield {"input_ids": tokens, "labels": labels}
        step_ends()


# %% train
total, kept = 0.0, []
batches = make_batches()
with watched():
    match keeps:
        case "item":
            for batch in batches:
                total += training_step(batch).loss.item()
        case "detach":
            # region pytorch_running_loss
            total = 0.0
            for batch in batches:
                loss = model(**batch).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                # Without its graph, and without a wait for the GPU.
                total += loss.detach()
            # endregion
        case "loss":
            for batch in batches:
                total += training_step(batch).loss
        case "outputs":
            for batch in batches:
                kept.append(training_step(batch))
        case "validation_loss":
            model.eval()
            for batch in batches:
                total += model(**batch).loss
        case "validation_no_grad":
            # region pytorch_validation
            model.eval()
            total = 0.0
            with torch.no_grad():
                for batch in batches:
                    total += model(**batch).loss.item()
            model.train()
            # endregion

# %% measure
allocated_after_step = marks
growth_per_step = (marks[-1] - marks[0]) // (steps - 1)
print(f"each step leaves {growth_per_step / 2**20:.1f} MiB more")

# %% graph
nodes, found = set(), [getattr(total, "grad_fn", None)]
while found:
    node = found.pop()
    if node is not None and node not in nodes:
        nodes.add(node)
        found.extend(following for following, _ in node.next_functions)

graph_nodes_per_step = len(nodes) // steps
print(f"the sum holds {graph_nodes_per_step} nodes of autograd's graph for each step")

# %% checks
import math

assert model.device.type == device.type
assert len(marks) == steps
assert all(weight.grad is None for weight in model.parameters())
if keeps == "outputs":
    assert len(kept) == steps
else:
    assert math.isclose(float(total) / steps, 0.7, abs_tol=0.4), (
        "no loss of two classes"
    )
held_by_graph = keeps in ("loss", "validation_loss")
assert (graph_nodes_per_step > 10 * layers) == held_by_graph
if keeps == "validation_loss":  # at least the hidden states of each layer
    hidden = 4 * batch_size * sequence_length * hidden_size
    assert growth_per_step > 5 * layers * hidden
    assert layers == 1 or marks[3] > 2 * marks[0]
elif keeps == "outputs":
    # A loss and two logits a sample, in whole blocks of the device.
    assert 4 * (1 + 2 * batch_size) <= growth_per_step <= 2048
else:
    assert growth_per_step == 0
assert model.training == (keeps != "validation_loss")
assert torch.is_tensor(total) == (keeps in ("detach", "loss", "validation_loss"))
