"""Peak memory and speed of each technique of `Trainer`, alone and combined, in BERT."""
# /// script
# requires-python = ">=3.11"
# # Trainer of 5.24.0 wants PEFT 0.22, which is not out.
# dependencies = [
#   "torch>=2.11", "transformers>=5.23,!=5.24.0", "accelerate>=1.15", "numpy>=2.0",
#   "bitsandbytes>=0.50", "peft>=0.20",
# ]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 2
# timeout = 600
# repeats = 8
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# samples_per_second = { unit = "samples/s", better = "higher" }
# step_seconds = { unit = "s", better = "lower" }
# layer_count = { unit = "count" }
# width = { unit = "count" }
# batch_samples = { unit = "count" }
# sample_tokens = { unit = "count" }
# loss_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# technique = [
#     "plain",
#     "quarter_batches", "single_samples",
#     "checkpointing", "checkpointing_every_2nd",
#     "bf16_autocast", "bf16_weights",
#     "eager_attention", "lora",
#     "adamw_8bit", "adafactor", "sgd",
#     "bf16_autocast+checkpointing",
#     "bf16_autocast+checkpointing+adamw_8bit",
#     "bf16_autocast+checkpointing+adafactor",
#     "bf16_autocast+checkpointing+adafactor+quadruple_batch",
#     "bf16_weights+adafactor", "checkpointing+quadruple_batch",
#     "lora+bf16_autocast+checkpointing",
# ]
# [tool.benchbook.on.accelerator]
# repeats = 2
# layers = 12
# hidden_size = 1024
# intermediate_size = 4096
# heads = 16
# sequence_length = 384
# timed_steps = 2
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 96
# intermediate_size = 96
# sequence_length = 16
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# (batch_size * sequence_length * (timed_steps + 2)
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length)
#  * (4 if 'lora' in technique else 6)
#  * (1.17 if 'every_2nd' in technique else 1.34 if 'checkpointing' in technique else 1)
#  * (4 if 'quadruple' in technique else 1) * (0 if 'bf16' in technique else 1))
# '''
# bf16 = '''
# (batch_size * sequence_length * (timed_steps + 2)
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length)
#  * (4 if 'lora' in technique else 6)
#  * (1.34 if 'checkpointing' in technique else 1)
#  * (4 if 'quadruple' in technique else 1) * (1 if 'bf16' in technique else 0))
# '''
# # The start of `Trainer`, a second and small one, and kernels that take longer to launch than to run.
# seconds = '''
# 0.8 + (0.5 if technique == 'single_samples' else 0.1 if technique == 'quarter_batches' or 'bf16' in technique else 0)
# '''
# ///

# %% parameters
technique = "plain"
layers = 4
hidden_size = 256
intermediate_size = 1024
heads = 8
batch_size = 16
sequence_length = 128
timed_steps = 2

# %% setup
import copy
import functools
import time
from itertools import accumulate
from statistics import median

import torch
import transformers
from peft import LoraConfig
from torch.profiler import ProfilerActivity, profile
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    set_seed,
)

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
# What measuring needs besides: each sample once and in order, and a log of each step.
TrainingArguments = functools.partial(
    transformers.TrainingArguments,
    per_device_train_batch_size=batch_size,
    train_sampling_strategy="sequential",
    num_train_epochs=1,
    logging_steps=1,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    use_cpu=device.type == "cpu",  # without it, bf16 asks for a GPU
)

# %% arguments
arguments = {
    "quarter_batches": {
        "per_device_train_batch_size": batch_size // 4,
        "gradient_accumulation_steps": 4,
    },
    "single_samples": {
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": batch_size,
    },
    "quadruple_batch": {"per_device_train_batch_size": 4 * batch_size},
    "checkpointing": {"activation_checkpointing": True},
    "checkpointing_every_2nd": {
        "activation_checkpointing": True,
        "activation_checkpointing_kwargs": {"every_n_layers": 2},
    },
    "bf16_autocast": {"bf16": True},
    "adafactor": {"optim": "adafactor"},
    "adamw_8bit": {"optim": "adamw_bnb_8bit"},
    "sgd": {"optim": "sgd", "optim_args": "momentum=0.9"},
}
from_config = {
    "bf16_weights": {"dtype": torch.bfloat16},
    "eager_attention": {"attn_implementation": "eager"},
}
lora = LoraConfig(r=8, target_modules=["query", "value"])
parts = technique.split("+")


def options(table):
    """Those that belong to the parts of the technique."""
    return {
        name: value for part in parts for name, value in table.get(part, {}).items()
    }


# %% with_trainer
def training_arguments():
    """Those of the technique, and nothing else."""
    if technique == "bf16_autocast+checkpointing":
        # region trainer
        args = TrainingArguments(
            output_dir="output",
            # Compute in 16 bits.
            bf16=True,
            # Recompute activations instead of storing them.
            activation_checkpointing=True,
        )
        # endregion
    elif technique == "bf16_autocast+checkpointing+adafactor+quadruple_batch":
        # region worked_path
        args = TrainingArguments(
            output_dir="output",
            bf16=True,
            activation_checkpointing=True,
            optim="adafactor",
            # Four times the batch of before.
            per_device_train_batch_size=64,
        )
        # endregion
    else:
        args = TrainingArguments(output_dir="output", **options(arguments))
    return args


# %% make_trainer
def make_trainer(config, length, steps, weights=None):
    """A `Trainer` with what belongs to the technique, and nothing else."""
    set_seed(0)
    with device:
        model = AutoModelForSequenceClassification.from_config(
            copy.deepcopy(config), **{"dtype": torch.float32} | options(from_config)
        )
        if weights:
            model.load_state_dict(weights)  # rounded to the model's own type
        if "lora" in parts:
            model.add_adapter(lora)  # freezes everything else
            model.classifier.requires_grad_(True)
    model.accepts_loss_kwargs = False  # or accumulation would multiply BERT's loss
    args = training_arguments()
    per_step = args.per_device_train_batch_size * args.gradient_accumulation_steps
    token_ids = torch.randint(0, config.vocab_size, (steps * per_step, length))
    dataset = [{"input_ids": ids, "labels": i % 2} for i, ids in enumerate(token_ids)]
    trainer = Trainer(model=model, args=args, train_dataset=dataset)
    trainer.remove_callback(PrinterCallback)
    return trainer


# %% meter
def held_bytes(model, optimizer):
    """Of weights, buffers and optimizer states, each storage once."""
    states = [state for each in optimizer.state.values() for state in each.values()]
    tensors = [*model.parameters(), *model.buffers(), *states]
    storages = [each.untyped_storage() for each in tensors if torch.is_tensor(each)]
    return sum({each.data_ptr(): each.nbytes() for each in storages}.values())


class Meter(TrainerCallback):
    """Times each step, and watches the memory of the last."""

    def __init__(self):
        self.seconds = []

    def on_step_begin(self, args, state, control, model, optimizer, **kwargs):
        """Called when the batch is there."""
        if state.global_step == state.max_steps - 1:
            self.held = held_bytes(model, optimizer)
            self.profile = profile(
                activities=[ProfilerActivity.CPU], profile_memory=device.type == "cpu"
            )
            self.profile.start()
        if device.type != "cpu":
            torch.accelerator.reset_peak_memory_stats()
            torch.accelerator.synchronize()
        self.start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        """Called when the gradients are gone again."""
        if device.type != "cpu":
            torch.accelerator.synchronize()
        self.seconds.append(time.perf_counter() - self.start)
        if state.global_step == state.max_steps:
            self.profile.stop()


# %% train
config = BertConfig(
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=intermediate_size,
    problem_type="single_label_classification",  # else the first call writes it
)
trainer = make_trainer(config, sequence_length, steps=1 + timed_steps + 1)
meter = Meter()
trainer.add_callback(meter)
trainer.train()

# %% results
layer_count, width = layers, hidden_size
batch_samples, sample_tokens = batch_size, sequence_length
per_step = trainer.args.train_batch_size * trainer.args.gradient_accumulation_steps
step_seconds = median(meter.seconds[1:-1])  # the first warms up, the last is profiled
samples_per_second = per_step / step_seconds
events = meter.profile.profiler.kineto_results.events()
if device.type == "cpu":
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    peak_memory = meter.held + max(accumulate(event.nbytes() for event in changes))
else:
    peak_memory = torch.accelerator.max_memory_allocated()
print(f"{technique}: {peak_memory / 2**20:.0f} MiB, {samples_per_second:.1f} samples/s")


# %% same_training
class FirstGradient(TrainerCallback):
    """Keeps the gradient of the first step."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the batch's last gradient is there."""
        trained = [(n, w) for n, w in model.named_parameters() if w.requires_grad]
        self.of = {name: weight.grad.float() for name, weight in trained}


tiny = BertConfig(
    vocab_size=256,
    hidden_size=64,
    num_hidden_layers=1,
    num_attention_heads=4,
    intermediate_size=256,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
with device:
    plain = AutoModelForSequenceClassification.from_config(tiny)
tiny_trainer = make_trainer(tiny, length=32, steps=1, weights=plain.state_dict())
tiny_trainer.args.max_grad_norm = 0.0  # never clipped
gradient = FirstGradient()
tiny_trainer.add_callback(gradient)
tiny_trainer.train()
first_loss = tiny_trainer.state.log_history[0]["loss"]

# %% plain_loop
batch = tiny_trainer.data_collator(list(tiny_trainer.train_dataset))
batch = {name: each.to(device) for name, each in batch.items()}
model = copy.deepcopy(plain)
wanted_loss = plain(**batch).loss
wanted_loss.backward()

# %% loop
batches = [batch]
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
stepped_with, logits_types = [], []


def keep(optimizer, args, kwargs):
    """The gradient that the loop steps with, called before its step."""
    gradients = [weight.grad.flatten() for weight in model.parameters()]
    stepped_with.append(torch.cat(gradients))


optimizer.register_step_pre_hook(keep)
model.classifier.register_forward_hook(lambda *of: logits_types.append(of[-1].dtype))

# %% with_pytorch
# region pytorch
model.train()
model.activation_checkpointing_enable()
for batch in batches:
    with torch.autocast(model.device.type, torch.bfloat16):
        loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
# endregion

# %% differences
weights = dict(plain.named_parameters())


def wanted_gradient(name):
    """Of a weight of the plain model, or of an adapter, by the chain rule."""
    layer, found, _ = name.partition(".lora_")
    if not found:
        return weights[name].grad
    adapted = tiny_trainer.model.get_submodule(layer)
    a = adapted.lora_A.default.weight
    if ".lora_A." in name:
        return torch.zeros_like(a)  # since B begins as zero
    return adapted.scaling["default"] * weights[f"{layer}.weight"].grad @ a.T


pairs = [(each, wanted_gradient(name)) for name, each in gradient.of.items()]
got, wanted = (
    torch.cat([one.flatten() for one in side]) for side in zip(*pairs, strict=True)
)
gradient_difference = ((got - wanted).norm() / wanted.norm()).item()
loss_difference = abs(first_loss - wanted_loss.item()) / wanted_loss.item()
print(f"loss differs by {loss_difference:.1e}, gradient by {gradient_difference:.1e}")

# %% checks
import math

logs = [log for log in trainer.state.log_history if "loss" in log]
assert len(logs) == trainer.state.global_step == len(meter.seconds) == timed_steps + 2
assert all(math.isfinite(log["loss"]) for log in logs)
assert trainer.args.device.type == device.type
remedied, model = model, trainer.model
assert {weight.device.type for weight in model.parameters()} == {device.type}
assert sum(weight.nbytes for weight in model.parameters()) < meter.held < peak_memory

# What should be on is on, and nothing else is.
assert per_step == batch_size * (4 if "quadruple_batch" in parts else 1)
micro_batches = {"quarter_batches": 4, "single_samples": batch_size}
accumulated = trainer.args.gradient_accumulation_steps
assert accumulated == micro_batches.get(technique, 1)

half = "bf16_weights" in parts
assert {w.dtype for w in model.parameters()} == {
    torch.bfloat16 if half else torch.float32
}
mixed = [part for part in parts if part.endswith("_autocast")]
assert trainer.accelerator.mixed_precision == ("bf16" if mixed else "no")
assert trainer.accelerator.native_amp == bool(mixed)
assert torch.backends.cuda.matmul.fp32_precision != "tf32"  # or fp32 would be less

checkpointed = sum(layer.gradient_checkpointing for layer in model.bert.encoder.layer)
every = {"checkpointing": layers, "checkpointing_every_2nd": (layers + 1) // 2}
assert checkpointed == max(every.get(part, 0) for part in parts)
trained = sum(w.numel() for w in model.parameters() if w.requires_grad)
assert (trained < 0.01 * model.num_parameters()) == ("lora" in parts)

ran = {event.name() for event in events}
fused_attention = "aten::scaled_dot_product_attention" in ran
assert fused_attention == ("eager_attention" not in parts)

classes = {"adafactor": "Adafactor", "sgd": "SGD"}
optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
expected = next((classes[part] for part in parts if part in classes), "AdamW")
assert type(optimizer).__name__ == expected
unfused = {"adamw_8bit", *classes}
assert ("aten::_fused_adamw_" in ran) == unfused.isdisjoint(parts)
states = [state for each in optimizer.state.values() for state in each.values()]
dtypes = {state.dtype for state in states if torch.is_tensor(state)}
assert (torch.uint8 in dtypes) == ("adamw_8bit" in parts)

# The training is the same one, to rounding; and where it should round more, it does.
if half or mixed:
    assert loss_difference < 0.02
    assert 1e-4 < gradient_difference < 0.05
else:
    assert loss_difference < 1e-5
    assert gradient_difference < 1e-5

# What the page shows for `Trainer` is what ran, in this variant and in no other.
used = trainer.args
if technique == "bf16_autocast+checkpointing+adafactor+quadruple_batch":
    assert used.per_device_train_batch_size == 64 == 4 * batch_size
    assert used.optim == "adafactor"
assert used.bf16 == bool(mixed)
assert used.activation_checkpointing == (not every.keys().isdisjoint(parts))

# What it shows for PyTorch does the same as the arguments for `Trainer`.
assert remedied.is_activation_checkpointing and remedied.training
assert logits_types == [torch.bfloat16]
assert all(weight.grad is None for weight in remedied.parameters())
[pytorch_gradient] = stepped_with
plain_gradient = torch.cat([w.grad.flatten() for w in plain.parameters()])
error = (pytorch_gradient - plain_gradient).norm() / plain_gradient.norm()
assert 1e-4 < error < 0.05
if technique == "bf16_autocast+checkpointing":
    assert torch.allclose(pytorch_gradient, got, rtol=1e-5, atol=1e-6)
    assert math.isclose(loss.item(), first_loss, rel_tol=1e-6)
