"""What each optimizer of `Trainer` keeps per parameter, and what its step takes on top."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0",
#   "bitsandbytes>=0.50",
# ]
#
# [tool.benchbook]
# # The states are the same on every device.
# needs = ["cpu"]
# worth = 2
# timeout = 600
# repeats = 2
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# bytes_per_parameter = { unit = "B/parameter", better = "lower" }
# rule_bytes_per_parameter = { unit = "B/parameter" }
# optimizer_states = { unit = "B", better = "lower", memory = "device" }
# step_temporaries = { unit = "B", better = "lower", memory = "device" }
# parameter_count = { unit = "count" }
# [[tool.benchbook.matrix]]
# optim = "adamw_torch"
# [[tool.benchbook.matrix]]
# optim = "adamw_torch"
# foreach = true
# [[tool.benchbook.matrix]]
# optim = "adamw_torch_fused"
# [[tool.benchbook.matrix]]
# optim = "sgd"
# [[tool.benchbook.matrix]]
# optim = "sgd"
# momentum = 0.9
# [[tool.benchbook.matrix]]
# optim = "rmsprop"
# [[tool.benchbook.matrix]]
# optim = "adagrad"
# [[tool.benchbook.matrix]]
# optim = "adafactor"
# [[tool.benchbook.matrix]]
# optim = "adamw_bnb_8bit"
# [[tool.benchbook.matrix]]
# optim = "lion_32bit"
# [[tool.benchbook.matrix]]
# optim = "lion_8bit"
# [[tool.benchbook.matrix]]
# optim = "ademamix"
# [tool.benchbook.smallest]
# layers = 1
# vocab_size = 2048
# [tool.benchbook.work]
# host_values = "1024 * vocab_size + 12.6e6 * layers"
# fp32 = "3 * 6 * sequence_length * layers * (12.6e6 + 2048 * sequence_length)"
# seconds = '''
# 1 + (2 if optim in ['adamw_bnb_8bit', 'lion_32bit', 'lion_8bit', 'ademamix'] else 0)
# '''
# ///

# %% parameters
optim = "adamw_torch"
momentum = 0.0
foreach = False  # the loop of PyTorch's own optimizers; True is what a GPU gets
layers = 24
vocab_size = 30522
sequence_length = 128
seed = 42

# %% setup
import tempfile
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import BertConfig, BertForSequenceClassification
from transformers import PrinterCallback, Trainer, TrainingArguments, set_seed

# %% model
set_seed(seed)
config = BertConfig(
    vocab_size=vocab_size,
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
)
model = BertForSequenceClassification(config)  # BERT-large, random weights
parameter_count = model.num_parameters()

# %% data
ids = torch.randint(0, vocab_size, (2, sequence_length))
dataset = [{"input_ids": row, "labels": label} for label, row in enumerate(ids)]

# %% arguments
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    optim=optim,
    optim_args=f"momentum={momentum}" if momentum else None,
    per_device_train_batch_size=1,
    max_steps=2,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    dataloader_pin_memory=False,
)

# %% train
trainer = Trainer(model, arguments, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)
watched = model.bert.encoder.layer[0].attention.self.query.weight
initial = watched.detach().cpu().clone()
trainer.train()

# %% states
optimizer = trainer.optimizer.optimizer  # inside Accelerate's
states = [state for each in optimizer.state.values() for state in each.values()]
tensors = [state for state in states if torch.is_tensor(state)]
optimizer_states = sum(tensor.nbytes for tensor in tensors)
bytes_per_parameter = optimizer_states / parameter_count
print(f"{type(optimizer).__name__}: {optimizer_states / 2**20:.1f} MiB")
print(f"{bytes_per_parameter:.3f} bytes per parameter")

# %% step
device = model.device
batch = ids[:1].to(device), torch.tensor([0], device=device)
model(batch[0], labels=batch[1]).loss.backward()
if foreach:
    optimizer.param_groups[0]["foreach"] = optimizer.param_groups[1]["foreach"] = True

if device.type == "cpu":
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as step:
        optimizer.step()
    events = step.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    step_temporaries = max(accumulate((c.nbytes() for c in changes), initial=0))
else:
    held = torch.accelerator.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    optimizer.step()
    step_temporaries = torch.accelerator.max_memory_allocated() - held
print(f"step() takes {step_temporaries / 2**20:.1f} MiB more while it runs")

# %% rule
rules = {  # the class that runs, and bytes per parameter as commonly quoted
    "adamw_torch": ("torch.optim.adamw.AdamW", 8),
    "adamw_torch_fused": ("torch.optim.adamw.AdamW", 8),
    "sgd": ("torch.optim.sgd.SGD", 4 if momentum else 0),
    "rmsprop": ("torch.optim.rmsprop.RMSprop", 4),
    "adagrad": ("torch.optim.adagrad.Adagrad", 4),
    "adafactor": ("transformers.optimization.Adafactor", 4),
    "adamw_bnb_8bit": ("bitsandbytes.optim.adamw.AdamW", 2),
    "lion_32bit": ("bitsandbytes.optim.lion.Lion", 4),
    "lion_8bit": ("bitsandbytes.optim.lion.Lion", 1),
    "ademamix": ("bitsandbytes.optim.ademamix.AdEMAMix", 12),
}
optimizer_class, rule_bytes_per_parameter = rules[optim]

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert device.type == expected.type, "this ran on the CPU beside an accelerator"
ran = type(optimizer)
assert f"{ran.__module__}.{ran.__qualname__}" == optimizer_class
assert bool(optimizer.param_groups[0].get("fused")) == (optim == "adamw_torch_fused")
assert trainer.state.global_step == 2
assert not torch.equal(watched.detach().cpu(), initial), "the weights did not move"
assert {weight.dtype for weight in model.parameters()} == {torch.float32}
if layers == 24:
    assert parameter_count == 335_143_938
if optim == "adafactor":  # a row and a column of each matrix
    assert 0 < bytes_per_parameter < 0.03
elif optim.endswith("8bit"):  # large tensors, but for embeddings
    linear = [each for each in model.modules() if isinstance(each, torch.nn.Linear)]
    sizes = [weight.numel() for each in linear for weight in each.parameters()]
    quantised = sum(size for size in sizes if size >= 4096)
    eight_bit = sum(tensor.nbytes for tensor in tensors if tensor.dtype == torch.uint8)
    assert eight_bit == rule_bytes_per_parameter * quantised
    assert bytes_per_parameter > rule_bytes_per_parameter
else:
    assert abs(bytes_per_parameter - rule_bytes_per_parameter) < 0.001
if foreach:  # a temporary for all weights but biases and normalisations
    assert 0.99 * parameter_count < step_temporaries / 4 < 1.01 * parameter_count
