"""Time and memory of the optimizer's step alone, on the weights of BERT with random gradients.

The vocabulary is small on a CPU, so that embeddings are about as large a share of the weights as in BERT-base: beside
one weight as large as all others, working on one at a time or on all at once would come to the same.
"""
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
#     "paged_adamw_8bit", "adafactor", "sgd_momentum", "ademamix_8bit", "muon",
# ]
# [tool.benchbook.on.accelerator]
# layers = 24
# hidden_size = 1024
# heads = 16
# vocab_size = 30522
# timed_steps = 10
# repeats = 3
# [tool.benchbook.smallest]
# layers = 1
# hidden_size = 96
# vocab_size = 1024
# [tool.benchbook.work]
# bf16 = '''
# ((warmup_steps + timed_steps) * layers * 310 * hidden_size**3 if method == 'muon' else 0)
# '''
# bytes = '''
# (2 * (warmup_steps + timed_steps) * 40
#  * (layers * 12 * hidden_size**2 + (vocab_size + 500) * hidden_size))
# '''
# seconds = 0.5
# ///

# %% parameters
method = "adamw_fused"
layers = 4
hidden_size = 384
heads = 12
vocab_size = 5120
warmup_steps = 1
timed_steps = 3

# %% setup
import copy
import time
import warnings
from functools import partial
from itertools import accumulate
from statistics import median

import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from transformers import BertConfig, BertForSequenceClassification, Trainer, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
TrainingArguments = partial(
    transformers.TrainingArguments, use_cpu=device.type == "cpu"
)
set_seed(0)
config = BertConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * hidden_size,
)
with device:
    model = BertForSequenceClassification(config)
parameters = list(model.parameters())
parameter_count = sum(weight.numel() for weight in parameters)
initial = [weight.detach().clone() for weight in parameters]


# %% trainer
def trainer_arguments():
    """What to hand to `Trainer`; without `optim`, it takes fused AdamW."""
    match method:
        case "adamw_8bit_trainer":
            # region trainer_adamw_8bit
            args = TrainingArguments(
                output_dir="output",
                optim="adamw_8bit",
            )
            # endregion
        case "paged_adamw_8bit":
            # region trainer_paged_adamw_8bit
            args = TrainingArguments(
                output_dir="output",
                optim="paged_adamw_8bit",
            )
            # endregion
        case "adafactor":
            # region trainer_adafactor
            args = TrainingArguments(
                output_dir="output",
                optim="adafactor",
            )
            # endregion
        case "sgd_momentum":
            # region trainer_sgd
            args = TrainingArguments(
                output_dir="output",
                optim="sgd",
                optim_args="momentum=0.9",
            )
            # endregion
        case "ademamix_8bit":
            args = TrainingArguments(output_dir="output", optim="ademamix_8bit")
        case "adamw_fused":
            args = TrainingArguments(output_dir="output")
    return args


# %% pytorch
def from_pytorch(model):
    """The optimizers that share the weights of `model`, made without `Trainer`."""
    match method:
        case "adamw_fused":
            # region pytorch_adamw_fused
            optimizer = torch.optim.AdamW(
                model.parameters(),
                lr=5e-5,
                fused=True,
            )
            # endregion
        case "adamw_foreach":
            optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, foreach=True)
        case "adamw_loop":
            optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, foreach=False)
        case "adamw_8bit":
            # region pytorch_adamw_8bit
            from bitsandbytes.optim import AdamW8bit

            optimizer = AdamW8bit(model.parameters(), lr=5e-5)
            # endregion
        case "paged_adamw_8bit":
            # region pytorch_paged_adamw_8bit
            from bitsandbytes.optim import PagedAdamW8bit

            optimizer = PagedAdamW8bit(model.parameters(), lr=5e-5)
            # endregion
        case "muon":
            # region pytorch_muon
            # Muon takes the layers' matrices, AdamW the rest.
            matrices, rest = [], []
            for name, weight in model.named_parameters():
                is_matrix = weight.ndim == 2 and "layer" in name
                (matrices if is_matrix else rest).append(weight)
            # Call step() and zero_grad() of both.
            optimizers = [
                torch.optim.Muon(
                    matrices,
                    lr=5e-5,
                    adjust_lr_fn="match_rms_adamw",
                ),
                torch.optim.AdamW(rest, lr=5e-5, fused=True),
            ]
            # endregion
            return optimizers
    return [optimizer]


# %% make_optimizers
made_by_trainer = (
    "adamw_8bit_trainer",
    "adafactor",
    "sgd_momentum",
    "ademamix_8bit",
)
if method in made_by_trainer:
    made = [Trainer(model, trainer_arguments()).create_optimizer()]
else:
    made = from_pytorch(model)


# %% step
def set_gradients(model, number):
    """Random numbers of the size that gradients have, the same for each model."""
    for weight, drawn in zip(model.parameters(), gradients[number]):
        weight.grad = drawn


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


# %% gradients
steps = warmup_steps + timed_steps
gradients = [
    [torch.empty_like(weight).normal_(std=1e-3) for weight in initial]
    for _ in range(steps)
]

# %% time
seconds = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for number in range(steps):
        set_gradients(model, number)
        seconds.append(step())
step_seconds = median(seconds[warmup_steps:])
print(f"{method}: {1000 * step_seconds:.0f} ms")

# %% states
states = [s for each in made for kept in each.state.values() for s in kept.values()]
states = [state for state in states if torch.is_tensor(state)]
storages = [state.untyped_storage() for state in states]
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


def train(optimizer, other):
    """The update of `other` by as many steps, with the same gradients."""
    for number in range(steps):
        set_gradients(other, number)
        optimizer.step()
    return update(other.parameters())


reference = restored()
loop = torch.optim.AdamW(reference.parameters(), lr=5e-5, foreach=False)
wanted = train(loop, reference)
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
    torch.optim.Muon([model.classifier.bias])
except ValueError as error:
    muon_error = str(error)
    print(muon_error)

# %% checks
import math

from transformers.optimization import Adafactor

assert {weight.device.type for weight in parameters} == {device.type}
assert len(seconds) == steps
assert all(not torch.equal(new, old) for new, old in zip(updated, initial))

names = {
    "adafactor": ["Adafactor"],
    "sgd_momentum": ["SGD"],
    "adamw_8bit": ["AdamW8bit"],
    "paged_adamw_8bit": ["PagedAdamW8bit"],
    "ademamix_8bit": ["AdEMAMix"],
    "muon": ["Muon", "AdamW"],
}
assert [type(each).__name__ for each in made] == names.get(method, ["AdamW"])
assert bool(made[0].defaults.get("fused")) == (method == "adamw_fused")
assert bool(made[0].defaults.get("foreach")) == (method == "adamw_foreach")
assert {group["lr"] for each in made for group in each.param_groups} == {5e-5}

encoder = [w for w in model.bert.encoder.parameters() if w.ndim == 2]
by_muon = sum(weight.numel() for weight in encoder)
embeddings = sum(w.numel() for w in model.bert.embeddings.parameters() if w.ndim == 2)
small = sum(w.numel() for w in parameters if w.numel() < 4096)
rows_and_columns = sum(sum(w.shape) for w in parameters)
if method == "muon":
    assert all(
        own is each for own, each in zip(made[0].param_groups[0]["params"], encoder)
    )

# Two bytes for each parameter in 8 bits, and eight for those left in fp32.
per_parameter = {
    "adafactor": 4 * rows_and_columns / parameter_count,
    "sgd_momentum": 4,
    "muon": 8 - 4 * by_muon / parameter_count,
    "adamw_8bit": 2 + 6 * small / parameter_count,
    "paged_adamw_8bit": 2 + 6 * small / parameter_count,
    "adamw_8bit_trainer": 2 + 6 * (small + embeddings) / parameter_count,
    "ademamix_8bit": 3 + 9 * (small + embeddings) / parameter_count,
}
if layers >= 4:  # where tables and steps are small beside them
    wanted_bytes = per_parameter.get(method, 8)
    assert math.isclose(bytes_per_parameter, wanted_bytes, rel_tol=0.03, abs_tol=0.02)
if method in ("adamw_8bit", "paged_adamw_8bit"):
    quantized = [w for w in parameters if made[0].state[w]["state1"].itemsize == 1]
    kept = ("state1", "state2", "absmax1", "absmax2")
    kept_bytes = sum(made[0].state[w][name].nbytes for w in quantized for name in kept)
    count = sum(weight.numel() for weight in quantized)
    assert count == parameter_count - small
    assert math.isclose(kept_bytes / count, 2, rel_tol=0.05), kept_bytes / count

# On top, a step of all weights at once takes their size; one by one, the largest's.
if method == "adamw_foreach":
    assert math.isclose(step_temporaries, 4 * parameter_count, rel_tol=0.1)
elif method == "adamw_loop":
    assert step_temporaries < 3 * 4 * max(weight.numel() for weight in parameters)
elif method == "adamw_fused":
    assert step_temporaries < 4 * small

assert "only supports 2D parameters" in muon_error
if method in ("adamw_fused", "adamw_foreach", "adamw_loop"):
    assert update_difference < 1e-4  # it is the same one, to rounding
elif "adamw_8bit" in method:
    assert 1e-4 < update_difference < 0.2
else:
    assert update_difference > 0.001

# Paged states move between device and host as needed. A CPU has nowhere to move them.
paged = [state for state in states if getattr(state, "is_paged", False)]
unpaged = any(
    "Paged optimizers are not supported on CPU" in str(w.message) for w in caught
)
if method == "paged_adamw_8bit":
    # Only weights of 100,000 and more have their states paged, by bitsandbytes' choice.
    large = any(weight.numel() >= 1e5 for weight in parameters)
    assert unpaged == (device.type == "cpu")
    assert bool(paged) == (large and not unpaged)
    (optimizer,) = [Trainer(model, trainer_arguments()).create_optimizer()]
    assert optimizer.is_paged and optimizer.args.optim_bits == 8
else:
    assert not paged and not unpaged
if method == "adamw_8bit_trainer":
    assert made[0].args.optim_bits == 8 and not made[0].is_paged

# By hand, it is the optimizer that `Trainer` makes.
other = restored()
by_hand = {
    "adamw_fused": lambda: Trainer(other, trainer_arguments()).create_optimizer(),
    "adafactor": lambda: Adafactor(
        other.parameters(), lr=5e-5, scale_parameter=False, relative_step=False
    ),
    "sgd_momentum": lambda: torch.optim.SGD(other.parameters(), lr=5e-5, momentum=0.9),
}
if method in by_hand:
    optimizer = by_hand[method]()
    assert type(optimizer) is type(made[0])
    assert bool(optimizer.defaults.get("fused")) == (method == "adamw_fused")
    for group in optimizer.param_groups:  # `Trainer` has a decay of its own
        group["weight_decay"] = made[0].defaults["weight_decay"]
    mine, theirs = update(updated), train(optimizer, other)
    assert (mine - theirs).norm() < 1e-5 * mine.norm()
