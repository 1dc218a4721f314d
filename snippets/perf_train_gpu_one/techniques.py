"""Peak memory and speed of each technique of `Trainer`, alone and combined, in BERT."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0",
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
# loss_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# technique = [
#     "plain",
#     "quarter_batches", "single_samples", "double_batch",
#     "checkpointing", "checkpointing_every_2nd",
#     "bf16_autocast", "fp16_autocast", "bf16_weights",
#     "eager_attention", "compile", "lora",
#     "adamw_loop", "adamw_foreach", "adamw_8bit", "adafactor", "ademamix", "sgd",
#     "bf16_autocast+compile", "bf16_autocast+checkpointing",
#     "bf16_autocast+checkpointing+adamw_8bit",
#     "bf16_autocast+checkpointing+adafactor",
#     "bf16_autocast+checkpointing+adafactor+quadruple_batch",
#     "bf16_weights+adafactor", "checkpointing+quadruple_batch",
#     "lora+bf16_autocast+checkpointing",
# ]
# [tool.benchbook.on.accelerator]
# layers = 24
# hidden_size = 1024
# intermediate_size = 4096
# heads = 16
# batch_size = 32
# sequence_length = 512
# timed_steps = 10
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 96
# intermediate_size = 96
# batch_size = 4
# sequence_length = 16
# timed_steps = 1
# [tool.benchbook.work]
# host_values = '''
# layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size) + 31000 * hidden_size
# '''
# fp32 = '''
# (batch_size * sequence_length * (timed_steps + 2)
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length)
#  * (4 if 'lora' in technique else 6)
#  * (1.17 if 'every_2nd' in technique else 1.34 if 'checkpointing' in technique else 1)
#  * (4 if 'quadruple' in technique else 2 if 'double' in technique else 1)
#  if not ('bf16' in technique or 'fp16' in technique) else 0)
# '''
# bf16 = '''
# (batch_size * sequence_length * (timed_steps + 2)
#  * layers * (4 * hidden_size**2 + 2 * hidden_size * intermediate_size + 2 * hidden_size * sequence_length)
#  * (4 if 'lora' in technique else 6)
#  * (1.17 if 'every_2nd' in technique else 1.34 if 'checkpointing' in technique else 1)
#  * (4 if 'quadruple' in technique else 2 if 'double' in technique else 1)
#  if 'bf16' in technique or 'fp16' in technique else 0)
# '''
# seconds = '''
# (6 + (40 if 'compile' in technique else 0) + (2 if '8bit' in technique or 'ademamix' in technique else 0)
#  + (3 if technique == 'single_samples' else 0))
# '''
# ///

# %% parameters
technique = "plain"
layers = 6
hidden_size = 384
intermediate_size = 1536
heads = 12
batch_size = 16
sequence_length = 128
timed_steps = 2

# %% setup
import copy
import time
from itertools import accumulate
from statistics import median

import torch
from peft import LoraConfig
from torch.profiler import ProfilerActivity, profile
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)

# %% trainer
first_remedy = {
    "bf16": True,  # compute in 16 bits
    "activation_checkpointing": True,  # and activations twice, instead of keeping them
}

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
    "double_batch": {"per_device_train_batch_size": 2 * batch_size},
    "quadruple_batch": {"per_device_train_batch_size": 4 * batch_size},
    "checkpointing": {"activation_checkpointing": True},
    "checkpointing_every_2nd": {
        "activation_checkpointing": True,
        "activation_checkpointing_kwargs": {"every_n_layers": 2},
    },
    "bf16_autocast": {"bf16": True},
    "fp16_autocast": {"fp16": True},
    "compile": {"torch_compile": True},
    "adafactor": {"optim": "adafactor"},
    "adamw_8bit": {"optim": "adamw_bnb_8bit"},
    "ademamix": {"optim": "ademamix"},
    "sgd": {"optim": "sgd", "optim_args": "momentum=0.9"},
}

# %% other_options
from_config = {
    "bf16_weights": {"dtype": torch.bfloat16},
    "eager_attention": {"attn_implementation": "eager"},
}
lora = LoraConfig(r=8, target_modules=["query", "value"])
optimizers = {
    "adamw_loop": (torch.optim.AdamW, {"lr": 5e-5, "foreach": False}),
    "adamw_foreach": (torch.optim.AdamW, {"lr": 5e-5, "foreach": True}),
}


# %% make_trainer
parts = technique.split("+")


def options(table):
    """Those that belong to the parts of the technique."""
    return {
        name: value for part in parts for name, value in table.get(part, {}).items()
    }


def make_trainer(config, length, steps, weights=None):
    """A `Trainer` with what belongs to the technique, and nothing else."""
    set_seed(0)
    model = AutoModelForSequenceClassification.from_config(
        copy.deepcopy(config), **{"dtype": torch.float32} | options(from_config)
    )
    if weights:
        model.load_state_dict(weights)  # rounded to the model's own type
    model.accepts_loss_kwargs = False  # or accumulation would multiply BERT's loss
    if "lora" in parts:
        model.add_adapter(lora)  # freezes everything else
        model.classifier.requires_grad_(True)
    args = {
        "output_dir": "output",
        "per_device_train_batch_size": batch_size,
        "train_sampling_strategy": "sequential",
        "max_steps": steps,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": device.type == "cpu",  # without it, bf16 asks for a GPU
    }
    args = TrainingArguments(**args | options(arguments))
    per_step = args.per_device_train_batch_size * args.gradient_accumulation_steps
    token_ids = torch.randint(0, config.vocab_size, (steps * per_step, length))
    dataset = [{"input_ids": ids, "labels": i % 2} for i, ids in enumerate(token_ids)]
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=dataset,
        optimizer_cls_and_kwargs=optimizers.get(technique),
    )
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
plain = AutoModelForSequenceClassification.from_config(tiny).to(device)
model = copy.deepcopy(plain)
tiny_trainer = make_trainer(tiny, length=32, steps=1, weights=plain.state_dict())
tiny_trainer.args.max_grad_norm = 1e9  # unscaled after fp16, but never clipped
gradient = FirstGradient()
tiny_trainer.add_callback(gradient)
tiny_trainer.train()
first_loss = tiny_trainer.state.log_history[0]["loss"]

# %% plain_loop
batch = tiny_trainer.data_collator(list(tiny_trainer.train_dataset))
batch = {name: each.to(device) for name, each in batch.items()}
wanted_loss = plain(**batch).loss
wanted_loss.backward()

# %% pytorch
model.activation_checkpointing_enable()
with torch.autocast(device.type, dtype=torch.bfloat16):
    loss = model(**batch).loss
loss.backward()

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
scale = {"double_batch": 2, "quadruple_batch": 4}
assert per_step == batch_size * scale.get(parts[-1], 1)
micro_batches = {"quarter_batches": 4, "single_samples": batch_size}
accumulated = trainer.args.gradient_accumulation_steps
assert accumulated == micro_batches.get(technique, 1)

half = "bf16_weights" in parts
assert {w.dtype for w in model.parameters()} == {
    torch.bfloat16 if half else torch.float32
}
mixed = [part for part in parts if part.endswith("_autocast")]
assert trainer.accelerator.mixed_precision == (mixed[0][:4] if mixed else "no")

checkpointed = sum(layer.gradient_checkpointing for layer in model.bert.encoder.layer)
every = {"checkpointing": layers, "checkpointing_every_2nd": (layers + 1) // 2}
assert checkpointed == max(every.get(part, 0) for part in parts)
trained = sum(w.numel() for w in model.parameters() if w.requires_grad)
assert (trained < 0.01 * model.num_parameters()) == ("lora" in parts)

ran = {event.name() for event in events}
compiled = any(name.startswith("Torch-Compiled Region") for name in ran)
assert compiled == ("compile" in parts)
if not compiled:
    fused_attention = "aten::scaled_dot_product_attention" in ran
    assert fused_attention == ("eager_attention" not in parts)

classes = {"adafactor": "Adafactor", "ademamix": "AdEMAMix", "sgd": "SGD"}
optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
expected = next((classes[part] for part in parts if part in classes), "AdamW")
assert type(optimizer).__name__ == expected
unfused = {"adamw_loop", "adamw_foreach", "adamw_8bit", *classes}
assert ("aten::_fused_adamw_" in ran) == unfused.isdisjoint(parts)
assert ("aten::_foreach_addcmul_" in ran) == ("adamw_foreach" in parts)
states = [state for each in optimizer.state.values() for state in each.values()]
dtypes = {state.dtype for state in states if torch.is_tensor(state)}
assert (torch.uint8 in dtypes) == ("adamw_8bit" in parts)

# The training is the same one, to rounding; and where it should round more, it does.
on = bool(mixed) and mixed != (["fp16_autocast"] if device.type == "cpu" else [])
assert trainer.accelerator.native_amp == on  # `fp16=True` does nothing on a CPU
if half or on:
    assert loss_difference < 0.02
    assert 1e-4 < gradient_difference < 0.05
else:
    assert loss_difference < 1e-5
    assert gradient_difference < 1e-5

# The few lines for PyTorch do the same as the arguments for `Trainer`.
assert first_remedy == arguments["bf16_autocast"] | arguments["checkpointing"]
assert remedied.is_activation_checkpointing
pytorch_gradient = torch.cat([w.grad.flatten() for w in remedied.parameters()])
plain_gradient = torch.cat([w.grad.flatten() for w in plain.parameters()])
error = (pytorch_gradient - plain_gradient).norm() / plain_gradient.norm()
assert 1e-4 < error < 0.05
if technique == "bf16_autocast+checkpointing":
    assert torch.allclose(pytorch_gradient, got, rtol=1e-5, atol=1e-6)
    assert math.isclose(loss.item(), first_loss, rel_tol=1e-6)
