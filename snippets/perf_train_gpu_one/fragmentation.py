"""Reserved against allocated memory when each batch has another length."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator"]
# worth = 6
# timeout = 600
# repeats = 2
# [tool.benchbook.metrics]
# allocated_peak = { unit = "B", better = "lower", memory = "device" }
# reserved_peak = { unit = "B", better = "lower", memory = "device" }
# reserved_after_step = { unit = "B", better = "lower", memory = "device" }
# allocation_retries = { unit = "count", better = "lower" }
# [[tool.benchbook.matrix]]
# order = "fixed"
# allocator = "default"
# [[tool.benchbook.matrix]]
# order = "random"
# allocator = "default"
# [[tool.benchbook.matrix]]
# order = "growing"
# allocator = "default"
# [[tool.benchbook.matrix]]
# order = "longest_first"
# allocator = "default"
# [[tool.benchbook.matrix]]
# order = "growing"
# allocator = "empty_cache"
# [[tool.benchbook.matrix]]
# order = "growing"
# allocator = "expandable_segments"
# environment = { PYTORCH_ALLOC_CONF = "expandable_segments:True" }
# [[tool.benchbook.matrix]]
# order = "random"
# allocator = "expandable_segments"
# environment = { PYTORCH_ALLOC_CONF = "expandable_segments:True" }
# [tool.benchbook.smallest]
# layers = 1
# batch_size = 2
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * layers * (12.6e6 + 2048 * max(lengths))
#  * (len(lengths) * max(lengths) if order == 'fixed' else sum(lengths)))
# '''
# seconds = "1 + (2 if allocator == 'empty_cache' else 0)"
# ///

# %% parameters
order = "random"
allocator = "default"
lengths = [384, 128, 448, 192, 64, 320, 512, 256, 96, 480, 160, 416]
batch_size = 4
layers = 24

# %% setup
import os
import tempfile

import torch
from transformers import (
    AutoModelForSequenceClassification,
    BertConfig,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

device = torch.accelerator.current_accelerator(check_available=True)
if device is None:
    raise SystemExit("Only an accelerator's allocator has segments: torch finds none.")

# %% lengths
longest = max(lengths)
step_lengths = {
    "fixed": [longest] * len(lengths),
    "random": lengths,
    "growing": sorted(lengths),
    "longest_first": [longest, *(length for length in lengths if length < longest)],
}[order]

# %% model
config = BertConfig(  # BERT-large, with random weights
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
)
with device:
    model = AutoModelForSequenceClassification.from_config(config)
set_seed(0)
samples = [(length, i) for length in step_lengths for i in range(batch_size)]
train_dataset = [
    {"input_ids": torch.randint(0, config.vocab_size, (length,)), "labels": i % 2}
    for length, i in samples
]

# %% empty_cache
changed = {"torch_empty_cache_steps": 1} if allocator == "empty_cache" else {}


# %% trainer
class Watch(TrainerCallback):
    """Notes what the allocator has reserved after each step."""

    def on_train_begin(self, args, state, control, **kwargs):
        """Called before the first step."""
        self.reserved = []

    def on_step_end(self, args, state, control, **kwargs):
        """Called after the optimizer's step."""
        self.reserved.append(torch.accelerator.memory_reserved())


args = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    per_device_train_batch_size=batch_size,
    train_sampling_strategy="sequential",
    max_steps=len(step_lengths),
    save_strategy="no",
    disable_tqdm=True,
    **changed,
)
watch = Watch()
trainer = Trainer(model, args, train_dataset=train_dataset, callbacks=[watch])
trainer.remove_callback(PrinterCallback)

# %% train
trainer.train()
allocated_peak = torch.accelerator.max_memory_allocated()
reserved_peak = torch.accelerator.max_memory_reserved()
reserved_after_step = watch.reserved
allocation_retries = torch.accelerator.memory_stats().get("num_alloc_retries", 0)
print(f"allocated at most {allocated_peak / 2**30:.2f} GiB")
print(f"reserved at most  {reserved_peak / 2**30:.2f} GiB")

# %% checks
assert model.device.type == device.type
assert trainer.state.global_step == len(step_lengths) == len(watch.reserved)
assert len(step_lengths) == len(lengths) and max(step_lengths) == longest
assert allocated_peak <= reserved_peak == max(reserved_peak, *reserved_after_step)
expandable = "expandable_segments:True" in os.environ.get("PYTORCH_ALLOC_CONF", "")
assert expandable == (allocator == "expandable_segments")
assert allocation_retries == 0, "the device was full: what is reserved says little"
