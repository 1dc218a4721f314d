"""The parts of a training step's memory, each measured by itself, against the allocator's peak."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 6
# timeout = 900
# repeats = 3
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# parameter_count = { unit = "count" }
# weights = { unit = "B", better = "lower", memory = "device" }
# gradients = { unit = "B", better = "lower", memory = "device" }
# optimizer_states = { unit = "B", better = "lower", memory = "device" }
# activations = { unit = "B", better = "lower", memory = "device" }
# autocast_copies = { unit = "B", better = "lower", memory = "device" }
# peak = { unit = "B", better = "lower", memory = "device" }
# peak_forward = { unit = "B", better = "lower", memory = "device" }
# peak_backward = { unit = "B", better = "lower", memory = "device" }
# peak_step = { unit = "B", better = "lower", memory = "device" }
# gradients_at_peak = { unit = "B", memory = "device" }
# activations_at_peak = { unit = "B", memory = "device" }
# copies_at_peak = { unit = "B", memory = "device" }
# temporary = { unit = "B", memory = "device" }
# unexplained = { unit = "1", better = "lower" }
# weights_per_parameter = { unit = "B/parameter" }
# gradients_per_parameter = { unit = "B/parameter" }
# states_per_parameter = { unit = "B/parameter" }
# static_bytes_per_parameter = { unit = "B/parameter", better = "lower" }
# copies_per_parameter = { unit = "B/parameter" }
# rule_of_18 = { unit = "B", memory = "device" }
# [tool.benchbook.matrix]
# precision = ["fp32", "bf16_autocast", "bf16"]
# [tool.benchbook.on.accelerator]
# repeats = 2
# [tool.benchbook.smallest]
# layers = 2
# batch_size = 1
# sequence_length = 64
# [tool.benchbook.work]
# host_values = "32.8e6 + 12.6e6 * layers"
# fp32 = '''
# (6 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  if precision == 'fp32' else 0)
# '''
# bf16 = '''
# (6 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  if precision != 'fp32' else 0)
# '''
# seconds = 1.5
# ///

# %% parameters
precision = "fp32"
layers = 24
batch_size = 4
sequence_length = 512

# %% setup
import torch
from transformers import BertConfig, BertForSequenceClassification

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(0)
config = BertConfig(  # BERT-large, with random weights
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
)
token_ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length)).to(
    device
)
labels = (torch.arange(batch_size) % 2).to(device)

# %% allocator
from torch.profiler import ProfilerActivity, profile, record_function


class Allocator:
    """What torch's allocator held at each mark, and at most since the mark before."""

    def __init__(self):
        self.names, self.readings = [], []
        self.events = None
        if device.type == "cpu":  # no counters: the profiler notes every allocation
            self.events = profile(
                activities=[ProfilerActivity.CPU], profile_memory=True
            )
            self.events.__enter__()

    def mark(self, name):
        """Note what is held now, and the peak until now."""
        self.names.append(name)
        if self.events:
            with record_function(f"mark: {name}"):
                return
        torch.accelerator.synchronize()
        peak = torch.accelerator.max_memory_allocated()
        self.readings.append((torch.accelerator.memory_allocated(), peak))
        torch.accelerator.reset_peak_memory_stats()

    def read(self):
        """Names and readings, in the order of the marks."""
        if self.events:
            self.events.__exit__(None, None, None)
            self._replay(self.events.profiler.kineto_results.events())
        return list(zip(self.names, self.readings))

    def _replay(self, events):
        held = peak = 0
        for event in sorted(events, key=lambda event: event.start_ns()):
            if event.name() == "[memory]":
                held += event.nbytes()
                peak = max(peak, held)
            elif event.name().startswith("mark: "):
                self.readings.append((held, peak))
                peak = held


allocator = Allocator()

# %% watch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode


class Watch(TorchDispatchMode):
    """The storages that wait for the backward pass, and autocast's copies of weights."""

    def __init__(self, model):
        super().__init__()
        self.own = {weight.untyped_storage()._cdata for weight in model.parameters()}
        self.copies, self.saved, self.alive = set(), {}, []
        self.hooks = torch.autograd.graph.saved_tensors_hooks(self.note, lambda x: x)

    def __enter__(self):
        self.hooks.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.hooks.__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        cast = func is torch.ops.aten._to_copy.default
        if cast and args[0].untyped_storage()._cdata in self.own:
            self.copies.add(result.untyped_storage()._cdata)
        return result

    def note(self, tensor):
        """Remember a tensor that is saved for the backward pass."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.own:
            self.saved[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())
        return tensor

    def mark(self, name):
        """Activations, copies of weights and gradients that are alive now."""
        activations = copies = 0
        for storage, (reference, size) in self.saved.items():
            if not reference.expired():
                copies += size * (storage in self.copies)
                activations += size * (storage not in self.copies)
        self.alive.append((activations, copies, size_of(gradients_of(model))))
        allocator.mark(name)


# %% size_of
def size_of(tensors):
    storages = {tensor.untyped_storage().data_ptr(): tensor for tensor in tensors}
    return sum(tensor.untyped_storage().nbytes() for tensor in storages.values())


def gradients_of(model):
    return [weight.grad for weight in model.parameters() if weight.grad is not None]


def states_of(optimizer):
    return [state for states in optimizer.state.values() for state in states.values()]


# %% load_model
model = BertForSequenceClassification(config).to(device)
if precision == "bf16":
    model.to(torch.bfloat16)
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
autocast = torch.autocast(
    device.type, torch.bfloat16, enabled=precision == "bf16_autocast"
)

# %% first_step
model(token_ids[:1, :8], labels=labels[:1]).loss.backward()
optimizer.step()  # creates the optimizer's states
optimizer.zero_grad()

# %% start
watch = Watch(model)
for weight in model.parameters():
    weight.register_post_accumulate_grad_hook(lambda weight: watch.mark("backward"))
watch.mark("start")

# %% forward
with watch, autocast:
    loss = model(token_ids, labels=labels).loss

# %% held
watch.mark("forward")

# %% backward
loss.backward()

# %% full
watch.mark("backward")
gradients = size_of(gradients_of(model))
gradient_sizes = [gradient.abs().max().item() for gradient in gradients_of(model)]
watch.mark("check")

# %% step
optimizer.step()

# %% parts
watch.mark("step")
readings = allocator.read()
weights = size_of(model.parameters())
optimizer_states = size_of(states_of(optimizer))
held = [name for name, _ in readings].index("forward")
activations, autocast_copies, _ = watch.alive[held]


def highest(phase):
    return max(peak for name, (_, peak) in readings if name == phase)


peak_forward, peak_backward = highest("forward"), highest("backward")
peak_step = highest("step")
peak = max(peak_forward, peak_backward, peak_step)

# The peak lies between two marks. At the first, each part was measured; what came
# on top until the peak is the buffers of the operations that ran.
reached = [reading[1] for _, reading in readings].index(peak)
held_before = readings[reached - 1][1][0]
activations_at_peak, copies_at_peak, gradients_at_peak = watch.alive[reached - 1]
temporary = peak - held_before
explained = weights + optimizer_states + sum(watch.alive[reached - 1]) + temporary
unexplained = (peak - explained) / peak

# %% rules
parameter_count = sum(weight.numel() for weight in model.parameters())
weights_per_parameter = weights / parameter_count
gradients_per_parameter = gradients / parameter_count
states_per_parameter = optimizer_states / parameter_count
copies_per_parameter = autocast_copies / parameter_count
static = weights + gradients + optimizer_states
static_bytes_per_parameter = static / parameter_count
rule_of_18 = 18 * parameter_count

# %% summary
for name in (
    "weights",
    "optimizer_states",
    "gradients_at_peak",
    "activations_at_peak",
    "copies_at_peak",
    "temporary",
    "peak",
):
    print(f"{name:20}{globals()[name] / 2**20:10.1f} MiB")

# %% checks
import math

assert {weight.device.type for weight in model.parameters()} == {device.type}
assert parameter_count == 32_834_562 + layers * 12_596_224  # as computed by hand
assert math.isfinite(loss.item())
assert len(gradient_sizes) == len(list(model.parameters()))
assert all(size > 0 and math.isfinite(size) for size in gradient_sizes)
itemsize = 2 if precision == "bf16" else 4
assert weights == gradients == itemsize * parameter_count
assert math.isclose(optimizer_states, 2 * weights, rel_tol=1e-4)
assert (autocast_copies > 0) == (precision == "bf16_autocast")
assert temporary > 0
if device.type == "cpu":
    assert abs(unexplained) < 0.02, f"{unexplained:.1%} of the peak unexplained"
    start = readings[[name for name, _ in readings].index("start")][1][0]
    assert math.isclose(start, weights + optimizer_states, rel_tol=1e-3)
