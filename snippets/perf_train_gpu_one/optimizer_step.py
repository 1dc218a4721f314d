"""Time and memory of the optimizer's step alone, on the weights of BERT with random gradients."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0",
#   "bitsandbytes>=0.50",
# ]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 2
# timeout = 300
# repeats = 8
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# step_seconds = { unit = "s", better = "lower" }
# bytes_per_parameter = { unit = "B/parameter", better = "lower" }
# optimizer_states = { unit = "B", better = "lower", memory = "device" }
# step_temporaries = { unit = "B", better = "lower", memory = "device" }
# update_difference = { unit = "1" }
# parameter_count = { unit = "count" }
# [tool.benchbook.matrix]
# method = [
#     "adamw_fused", "adamw_foreach", "adamw_loop", "adamw_8bit", "adamw_8bit_trainer",
#     "adafactor", "sgd_momentum", "ademamix_8bit", "muon",
# ]
# [tool.benchbook.on.accelerator]
# layers = 24
# hidden_size = 1024
# heads = 16
# timed_steps = 20
# [tool.benchbook.smallest]
# layers = 1
# hidden_size = 96
# vocab_size = 1024
# [tool.benchbook.work]
# host_values = "layers * 12 * hidden_size**2 + (vocab_size + 500) * hidden_size"
# bf16 = '''
# ((warmup_steps + timed_steps) * layers * 310 * hidden_size**3 if method == 'muon' else 0)
# '''
# bytes = '''
# (3 * (warmup_steps + timed_steps) * 40
#  * (layers * 12 * hidden_size**2 + (vocab_size + 500) * hidden_size))
# '''
# seconds = '''
# 5 + (4 if method in ['adafactor', 'adamw_8bit', 'adamw_8bit_trainer', 'ademamix_8bit'] else 0)
# '''
# ///

# %% parameters
method = "adamw_fused"
layers = 6
hidden_size = 384
heads = 12
vocab_size = 30522
learning_rate = 5e-5
warmup_steps = 1
timed_steps = 3

# %% setup
import copy
import time
from functools import partial
from itertools import accumulate
from statistics import median

import torch
from bitsandbytes.optim import AdamW8bit
from torch.optim import SGD, AdamW, Muon
from torch.profiler import ProfilerActivity, profile
from transformers import BertConfig, BertForSequenceClassification
from transformers import Trainer, TrainingArguments, set_seed
from transformers.optimization import Adafactor

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(0)
config = BertConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * hidden_size,
)
model = BertForSequenceClassification(config).to(device)
parameters = list(model.parameters())
parameter_count = sum(weight.numel() for weight in parameters)
initial = [weight.detach().clone() for weight in parameters]

# %% trainer
arguments = {
    "adamw_fused": {"optim": "adamw_torch_fused"},  # the default
    "adamw_8bit_trainer": {"optim": "adamw_bnb_8bit"},
    "adafactor": {"optim": "adafactor"},
    "sgd_momentum": {"optim": "sgd", "optim_args": "momentum=0.9"},
    "ademamix_8bit": {"optim": "ademamix_8bit"},
}

# %% pytorch
optimizers = {
    "adamw_fused": partial(AdamW, fused=True),
    "adamw_foreach": partial(AdamW, foreach=True),
    "adamw_loop": partial(AdamW, foreach=False),
    "adamw_8bit": AdamW8bit,
    "adafactor": partial(Adafactor, scale_parameter=False, relative_step=False),
    "sgd_momentum": partial(SGD, momentum=0.9),
}


# %% muon
def muon(model, lr):
    """Muon for the matrices of the layers, AdamW for all the rest."""
    matrices = [w for w in model.bert.encoder.parameters() if w.ndim == 2]
    rest = [w for w in model.parameters() if all(w is not each for each in matrices)]
    return [Muon(matrices, lr, weight_decay=0), AdamW(rest, lr, weight_decay=0)]


# %% make_optimizers
def from_trainer(model):
    args = TrainingArguments(
        "output",
        learning_rate=learning_rate,
        use_cpu=device.type == "cpu",
        **arguments[method],
    )
    return [Trainer(model, args).create_optimizer()]


def from_pytorch(model):
    if method == "muon":
        return muon(model, learning_rate)
    optimizer = optimizers[method]
    return [optimizer(model.parameters(), lr=learning_rate, weight_decay=0.0)]


in_pytorch = method in optimizers or method == "muon"
made = from_pytorch(model) if in_pytorch else from_trainer(model)


# %% step
def draw_gradients(model, seed):
    """Random numbers of the size that gradients have, the same for each model."""
    generator = torch.Generator(device).manual_seed(seed)
    for weight in model.parameters():
        if weight.grad is None:
            weight.grad = torch.empty_like(weight)
        weight.grad.normal_(std=1e-3, generator=generator)


def step():
    """The seconds it takes, without those for the gradients."""
    if device.type != "cpu":
        torch.accelerator.synchronize()
    begin = time.perf_counter()
    for optimizer in made:
        optimizer.step()
    if device.type != "cpu":
        torch.accelerator.synchronize()
    return time.perf_counter() - begin


# %% time
steps = warmup_steps + timed_steps
seconds = []
for seed in range(steps):
    draw_gradients(model, seed)
    seconds.append(step())
step_seconds = median(seconds[warmup_steps:])
print(f"{method}: {1000 * step_seconds:.0f} ms")

# %% states
states = [s for each in made for kept in each.state.values() for s in kept.values()]
storages = [state.untyped_storage() for state in states if torch.is_tensor(state)]
optimizer_states = sum({s.data_ptr(): s.nbytes() for s in storages}.values())
bytes_per_parameter = optimizer_states / parameter_count
print(f"{optimizer_states / 2**20:.1f} MiB of states")
print(f"{bytes_per_parameter:.3f} bytes per parameter")

# %% update
updated = [weight.detach().clone() for weight in parameters]


def update(weights):
    return torch.cat([(w - old).flatten() for w, old in zip(weights, initial)])


def restored():
    """The model as it was before the first step."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for weight, old in zip(other.parameters(), initial):
            weight.copy_(old)
    return other


reference = restored()
loop = AdamW(reference.parameters(), lr=learning_rate, weight_decay=0.0, foreach=False)
for seed in range(steps):
    draw_gradients(reference, seed)
    loop.step()
wanted = update(reference.parameters())
update_difference = ((update(updated) - wanted).norm() / wanted.norm()).item()
print(f"differs from AdamW's update by {update_difference:.1e}")

# %% temporaries
if device.type == "cpu":
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
        step()
    events = watched.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    step_temporaries = max(accumulate((c.nbytes() for c in changes), initial=0))
else:
    held = torch.accelerator.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    step()
    step_temporaries = torch.accelerator.max_memory_allocated() - held
print(f"step() takes {step_temporaries / 2**20:.1f} MiB more while it runs")

# %% vectors
try:
    Muon([model.classifier.bias])
except ValueError as error:
    muon_error = str(error)
    print(muon_error)

# %% checks
import math

assert {weight.device.type for weight in parameters} == {device.type}
assert len(seconds) == steps
assert all(not torch.equal(new, old) for new, old in zip(updated, initial))

names = {
    "adafactor": {"Adafactor"},
    "sgd_momentum": {"SGD"},
    "adamw_8bit": {"AdamW8bit"},
    "ademamix_8bit": {"AdEMAMix"},
    "muon": {"Muon", "AdamW"},
}
assert {type(each).__name__ for each in made} == names.get(method, {"AdamW"})
assert bool(made[0].defaults.get("fused")) == (method == "adamw_fused")
assert bool(made[0].defaults.get("foreach")) == (method == "adamw_foreach")

matrices = sum(w.numel() for w in model.bert.encoder.parameters() if w.ndim == 2)
embeddings = sum(w.numel() for w in model.bert.embeddings.parameters() if w.ndim == 2)
small = sum(w.numel() for w in parameters if w.numel() < 4096)
per_parameter = {
    "adafactor": 0,  # a row and a column of each matrix
    "sgd_momentum": 4,
    "muon": 8 - 4 * matrices / parameter_count,
    "adamw_8bit": 2 + 6 * small / parameter_count,
    "adamw_8bit_trainer": 2 + 6 * (small + embeddings) / parameter_count,
    "ademamix_8bit": 3 + 9 * (small + embeddings) / parameter_count,
}
if layers >= 6:  # where tables and steps are small beside them
    wanted_bytes = per_parameter.get(method, 8)
    assert math.isclose(bytes_per_parameter, wanted_bytes, rel_tol=0.03, abs_tol=0.02)

assert "only supports 2D parameters" in muon_error
if method in ("adamw_fused", "adamw_foreach", "adamw_loop"):
    assert update_difference < 1e-4  # it is the same one, to rounding
elif method.startswith("adamw_8bit"):
    assert 1e-4 < update_difference < 0.2
else:
    assert update_difference > 0.001

# `Trainer` makes the same optimizer, where both can.
if in_pytorch and method in arguments:
    trained = restored()
    (optimizer,) = from_trainer(trained)
    assert type(optimizer) is type(made[0])
    for seed in range(steps):
        draw_gradients(trained, seed)
        optimizer.step()
    mine, theirs = update(updated), update(trained.parameters())
    assert (mine - theirs).norm() < 1e-5 * mine.norm()
