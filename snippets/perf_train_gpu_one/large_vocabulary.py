"""The loss of a large vocabulary: from all scores at once, or from a few tokens' at a time.

The decoder is narrow and its vocabulary that of Llama 3, so that nothing else is as large as the scores.
"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# worth = 1
# timeout = 600
# repeats = 2
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# matrix = [
#     { dtype = "float32", chunk = 0 },
#     { dtype = "float32", chunk = 256 },
#     { dtype = "float32", chunk = 128 },
#     { dtype = "float32", chunk = 32 },
#     { dtype = "bfloat16", chunk = 0 },
#     { dtype = "bfloat16", chunk = 128 },
# ]
# [tool.benchbook.metrics]
# logits_memory = { unit = "B", better = "lower", memory = "device" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# scores_in_peak = { unit = "1", better = "lower" }
# loss_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# trainer_loss_difference = { unit = "1", better = "lower" }
# [tool.benchbook.on.accelerator]
# hidden_size = 2048
# layers = 16
# heads = 32
# kv_heads = 8
# intermediate_size = 8192
# sequence_length = 2048
# [tool.benchbook.smallest]
# layers = 1
# vocab_size = 4096
# sequence_length = 32
# [tool.benchbook.work]
# host_values = '''
# (vocab_size * hidden_size
#  + layers * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * hidden_size * intermediate_size))
# '''
# fp32 = '''
# (batch_size * sequence_length * (6 * 3 + (4 if chunk > 0 else 0))
#  * (vocab_size * hidden_size
#     + layers * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * hidden_size * intermediate_size
#                 + 2 * hidden_size * sequence_length))
#  if dtype == 'float32' else 0)
# '''
# bf16 = '''
# (batch_size * sequence_length * (6 * 3 + (4 if chunk > 0 else 0))
#  * (vocab_size * hidden_size
#     + layers * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * hidden_size * intermediate_size
#                 + 2 * hidden_size * sequence_length))
#  if dtype == 'bfloat16' else 0)
# '''
# seconds = 3
# ///

# %% parameters
dtype = "float32"
chunk = 128  # tokens that have their scores at once; 0: all of them
hidden_size = 384
layers = 4
heads = 6
kv_heads = 2
intermediate_size = 1024
vocab_size = 128256
batch_size = 4
sequence_length = 256

# %% setup
from itertools import accumulate

import torch
from torch.nn.functional import cross_entropy, pad
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint
from transformers import AutoModelForCausalLM, LlamaConfig, PrinterCallback
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
config = LlamaConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=kv_heads,
    intermediate_size=intermediate_size,
    tie_word_embeddings=True,
)


# %% chunked
def loss_of(hidden, head, labels):
    return cross_entropy(head(hidden).float(), labels, reduction="sum")


def chunked_loss(model, input_ids, labels, count=None):
    hidden = model.model(input_ids).last_hidden_state.flatten(0, 1).split(chunk)
    shifted = pad(labels, (0, 1), value=-100)[:, 1:].flatten()  # the next token
    parts = zip(hidden, shifted.split(chunk))
    losses = [
        checkpoint(loss_of, h, model.lm_head, t, use_reentrant=False) for h, t in parts
    ]
    return sum(losses) / ((shifted != -100).sum() if count is None else count)


# %% model
set_seed(0)
model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
model = model.to(device).train()
shape = (batch_size, sequence_length)
tokens = torch.randint(0, vocab_size, shape).to(device)


# %% pytorch
def loss_in_chunks():
    return chunked_loss(model, tokens, labels=tokens)


# %% plain
def loss_at_once():
    return model(tokens, labels=tokens).loss


loss_of_batch = loss_in_chunks if chunk else loss_at_once

# %% train
weights = sum(weight.nbytes for weight in model.parameters())
if device.type == "cpu":
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        value = loss_of_batch()
        value.backward()
    events = profiled.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    above = max(accumulate((change.nbytes() for change in changes), initial=0))
    peak_memory = weights + tokens.nbytes + above
else:
    torch.accelerator.reset_peak_memory_stats()
    value = loss_of_batch()
    value.backward()
    peak_memory = torch.accelerator.max_memory_allocated()

logits_memory = tokens.numel() * vocab_size * model.dtype.itemsize
scores_in_peak = (peak_memory - weights) / (4 * tokens.numel() * vocab_size)
print(f"weights:             {weights / 2**20:5.0f} MiB")
print(f"scores of the batch: {logits_memory / 2**20:5.0f} MiB")
print(f"peak:                {peak_memory / 2**20:5.0f} MiB")


# %% trainer
class ChunkedLossTrainer(Trainer):
    """Never has the scores of all tokens at once."""

    def compute_loss(
        self, model, inputs, return_outputs=False, num_items_in_batch=None
    ):
        """Divides by the tokens of the whole batch, as `Trainer` counts them."""
        return chunked_loss(model, **inputs, count=num_items_in_batch)


# %% reference
gradients = {name: weight.grad for name, weight in model.named_parameters()}
model.zero_grad()
wanted = loss_at_once()
wanted.backward()
loss_difference = abs(value.item() - wanted.item()) / wanted.item()
names = dict(model.named_parameters())
error = sum((gradients[n] - w.grad).float().norm() ** 2 for n, w in names.items())
norm = sum(weight.grad.float().norm() ** 2 for weight in names.values())
gradient_difference = (error / norm).sqrt().item()


# %% same_trainer
class FirstGradient(TrainerCallback):
    """Keeps the norm of the gradient before the optimizer moves anything."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the batch's gradient is there."""
        squares = [weight.grad.float().norm() ** 2 for weight in model.parameters()]
        self.norm = sum(squares).sqrt().item()


arguments = TrainingArguments(
    output_dir="output",
    per_device_train_batch_size=batch_size,
    optim="sgd",  # keeps nothing: only the loss is looked at
    max_grad_norm=0.0,
    max_steps=1,
    logging_steps=1,
    train_sampling_strategy="sequential",
    save_strategy="no",
    disable_tqdm=True,
)
rows = [{"input_ids": row, "labels": row} for row in tokens.cpu()]
kind = ChunkedLossTrainer if chunk else Trainer
trainer = kind(model, arguments, train_dataset=rows)
trainer.remove_callback(PrinterCallback)
seen = FirstGradient()
trainer.add_callback(seen)
model.zero_grad()
trainer.train()
trainer_loss = trainer.state.log_history[0]["loss"]
trainer_loss_difference = abs(trainer_loss - wanted.item()) / wanted.item()

# %% checks
import math

assert model.device.type == device.type
assert model.config.vocab_size == vocab_size and model.dtype == getattr(torch, dtype)
assert math.isclose(wanted.item(), math.log(vocab_size), rel_tol=0.05)  # an even guess
exact = dtype == "float32"
assert loss_difference < (1e-5 if exact else 1e-2), loss_difference
assert gradient_difference < (1e-5 if exact else 3e-2), gradient_difference
assert trainer_loss_difference < (1e-4 if exact else 1e-2), trainer_loss_difference
assert math.isclose(seen.norm, norm.sqrt().item(), rel_tol=1e-4 if exact else 3e-2)
assert trainer.state.global_step == 1
