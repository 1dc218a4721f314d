"""The loss of a large vocabulary: from all scores at once, or from a few tokens' at a time.

The decoder is narrow and its vocabulary that of Llama 3, so that nothing else is as large as the scores. Transformers
computes the loss in fp32: it converts the scores of a 16-bit model, and frees that copy once the loss is there. What
the backward pass keeps is the output of log-softmax, in fp32 too, and its gradient is as large again.
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
# [tool.benchbook.on.accelerator]
# hidden_size = 2048
# layers = 2
# heads = 32
# kv_heads = 8
# intermediate_size = 8192
# sequence_length = 1024
# repeats = 2
# [tool.benchbook.smallest]
# layers = 1
# vocab_size = 4096
# sequence_length = 32
# [tool.benchbook.work]
# fp32 = '''
# (batch_size * sequence_length * (6 * 2 + (4 if chunk > 0 else 0) + (12 if chunk == 128 else 0))
#  * (vocab_size * hidden_size
#     + layers * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * hidden_size * intermediate_size
#                 + 2 * hidden_size * sequence_length))
#  if dtype == 'float32' else 0)
# '''
# bf16 = '''
# (batch_size * sequence_length * (6 * 2 + (4 if chunk > 0 else 0))
#  * (vocab_size * hidden_size
#     + layers * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * hidden_size * intermediate_size
#                 + 2 * hidden_size * sequence_length))
#  if dtype == 'bfloat16' else 0)
# '''
# seconds = "0.1 + (0.7 if dtype == 'float32' and chunk == 128 else 0)"
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
sequence_length = 192

# %% setup
from functools import partial
from itertools import accumulate

import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, LlamaConfig, PrinterCallback
from transformers import Trainer, TrainerCallback, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
TrainingArguments = partial(
    transformers.TrainingArguments,
    optim="sgd",  # keeps nothing: only the loss is looked at
    max_grad_norm=0.0,
    max_steps=1,
    logging_steps=1,
    train_sampling_strategy="sequential",
    save_strategy="no",
    disable_tqdm=True,
    use_cpu=device.type == "cpu",
)
set_seed(0)
config = LlamaConfig(
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=kv_heads,
    intermediate_size=intermediate_size,
    tie_word_embeddings=True,
)

# %% model
with device:
    model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, dtype))
    tokens = torch.randint(0, vocab_size, (batch_size, sequence_length))
model.train()
batch = {"input_ids": tokens, "labels": tokens}

# %% chunked
# region chunked_loss
from torch.nn.functional import cross_entropy, pad
from torch.utils.checkpoint import checkpoint


def chunked_loss(model, labels, count=0, chunk=128, **rest):
    def nll(hidden, ids):
        scores = model.lm_head(hidden).float()
        return cross_entropy(scores, ids, reduction="sum")

    hidden = model.model(**rest).last_hidden_state
    hidden = hidden.flatten(0, 1).split(chunk)
    # Each token predicts the next one.
    labels = pad(labels, (0, 1), value=-100)[:, 1:]
    wanted = labels.flatten().split(chunk)
    loss = 0
    for part in zip(hidden, wanted):
        # Forgets its scores, to compute them again later.
        loss += checkpoint(nll, *part, use_reentrant=False)
    return loss / (count or (labels != -100).sum())


# endregion


# %% pytorch
def train_on_batch():
    """The loss, with its gradients where the optimizer finds them."""
    if chunk == 128:
        # region pytorch_chunked_loss
        # In the place of model(**batch).loss:
        loss = chunked_loss(model, **batch)
        loss.backward()
        # endregion
    else:
        by_chunks = partial(chunked_loss, model, chunk=chunk)
        loss = by_chunks(**batch) if chunk else model(**batch).loss
        loss.backward()
    return loss.item()


# %% train
weights = sum(weight.nbytes for weight in model.parameters())
if device.type == "cpu":
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        value = train_on_batch()
    events = profiled.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    above = max(accumulate((change.nbytes() for change in changes), initial=0))
    peak_memory = weights + tokens.nbytes + above
else:
    torch.accelerator.reset_peak_memory_stats()
    value = train_on_batch()
    peak_memory = torch.accelerator.max_memory_allocated()

logits_memory = tokens.numel() * vocab_size * model.dtype.itemsize
scores_in_peak = (peak_memory - weights) / (4 * tokens.numel() * vocab_size)
print(f"weights:             {weights / 2**20:5.0f} MiB")
print(f"scores of the batch: {logits_memory / 2**20:5.0f} MiB")
print(f"peak:                {peak_memory / 2**20:5.0f} MiB")


# %% reference
gradients = {name: weight.grad for name, weight in model.named_parameters()}
model.zero_grad()
wanted = model(**batch).loss
wanted.backward()
wanted = wanted.item()
loss_difference = abs(value - wanted) / wanted
names = dict(model.named_parameters())
error = sum((gradients[n] - w.grad).float().norm() ** 2 for n, w in names.items())
norm = sum(weight.grad.float().norm() ** 2 for weight in names.values()).sqrt()
gradient_difference = (error.sqrt() / norm).item()
del gradients


# %% same_trainer
class FirstGradient(TrainerCallback):
    """Keeps the norm of the gradient before the optimizer moves anything."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the batch's gradient is there."""
        squares = [weight.grad.float().norm() ** 2 for weight in model.parameters()]
        self.norm = sum(squares).sqrt().item()


model.zero_grad()
if dtype == "float32" and chunk == 128:
    dataset = [{"input_ids": row, "labels": row} for row in tokens.cpu()]

    args = TrainingArguments("output", per_device_train_batch_size=batch_size)

    # region trainer_chunked_loss
    class ChunkedLossTrainer(Trainer):
        """Never holds the scores of all tokens."""

        def compute_loss(
            self,
            model,
            inputs,
            return_outputs=False,
            num_items_in_batch=None,
        ):
            """The loss per token of the whole step."""
            n = num_items_in_batch
            loss = chunked_loss(model, count=n, **inputs)
            return (loss, {}) if return_outputs else loss

    trainer = ChunkedLossTrainer(
        model,
        args,
        train_dataset=dataset,
    )
    # endregion
    trainer.remove_callback(PrinterCallback)
    seen = FirstGradient()
    trainer.add_callback(seen)
    trainer.train()
    trainer_loss = trainer.state.log_history[0]["loss"]

# %% checks
import math

assert model.device.type == device.type
assert model.config.vocab_size == vocab_size and model.dtype == getattr(torch, dtype)
assert math.isclose(wanted, math.log(vocab_size), rel_tol=0.05)  # an even guess
exact = dtype == "float32"
assert loss_difference < (1e-5 if exact else 1e-2), loss_difference
assert gradient_difference < (1e-5 if exact else 3e-2), gradient_difference
if exact and chunk == 128:
    assert math.isclose(trainer_loss, wanted, rel_tol=1e-4)
    assert math.isclose(seen.norm, norm.item(), rel_tol=1e-4)
    assert trainer.state.global_step == 1
    assert trainer.args.per_device_train_batch_size == batch_size
    evaluated = trainer.evaluate(dataset[:1])["eval_loss"]  # after the one step
    assert math.isclose(evaluated, wanted, rel_tol=0.05)

# In bf16 too, the loss computes and keeps in fp32: twice the scores, at least.
if dtype == "bfloat16" and chunk == 0:
    assert scores_in_peak > 2, scores_in_peak
