"""What evaluating with Trainer holds: logits of the whole evaluation set, or less."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 600
# repeats = 2
# meters = ["cpu_allocator"]
# matrix = [
#     { change = "none", batches = 2 },
#     { change = "none", batches = 8 },
#     { change = "preprocess_logits", batches = 2 },
#     { change = "preprocess_logits", batches = 8 },
#     { change = "accumulation", batches = 8 },
#     { change = "loss_only", batches = 8 },
# ]
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# held_predictions = { unit = "B", better = "lower" }
# loss = { unit = "1" }
# accuracy = { unit = "1" }
# [tool.benchbook.on.accelerator]
# hidden_size = 1024
# heads = 16
# key_value_heads = 4
# intermediate_size = 4096
# repeats = 2
# [tool.benchbook.smallest]
# vocab_size = 512
# sequence_length = 32
# layers = 1
# [tool.benchbook.work]
# fp32 = '''
# (2 * (batches * batch_size + 1) * sequence_length * (vocab_size * hidden_size + layers
#  * (hidden_size**2 * (2 + 2 * key_value_heads / heads) + 3 * hidden_size * intermediate_size)))
# '''
# seconds = '''
# (0.5 + batches * batch_size * sequence_length * vocab_size
#  * {'none': 2e-9, 'accumulation': 6e-9, 'preprocess_logits': 0, 'loss_only': 0}[change])
# '''
# ///

# %% parameters
change = "none"
batches = 2
batch_size = 4
sequence_length = 256
hidden_size = 384
layers = 4
heads = 6
key_value_heads = 2
intermediate_size = 1024
vocab_size = 32000

# %% setup
from functools import partial

import torch
import transformers
from transformers import AutoModelForCausalLM, LlamaConfig, PrinterCallback
from transformers import Trainer, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
TrainingArguments = partial(
    transformers.TrainingArguments,
    per_device_eval_batch_size=batch_size,
    use_cpu=device.type == "cpu",
    disable_tqdm=True,
)

# %% model
set_seed(0)
config = LlamaConfig(  # random weights
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    intermediate_size=intermediate_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=key_value_heads,
)
with device:
    model = AutoModelForCausalLM.from_config(config)
token_ids = torch.randint(0, vocab_size, (batches * batch_size, sequence_length))
dataset = [{"input_ids": ids, "labels": ids} for ids in token_ids]

# %% metrics
prediction_bytes, first_best = [], []


def compute_metrics(evaluated):
    best = evaluated.predictions
    prediction_bytes.append(best.nbytes)
    if best.ndim == 3:
        best = torch.from_numpy(best).argmax(dim=-1).numpy()
    first_best.append(best[0])
    hits = best[:, :-1] == evaluated.label_ids[:, 1:]
    return {"accuracy": hits.mean().item()}


# %% trainer
if change == "accumulation":
    # region trainer_accumulation
    args = TrainingArguments(
        output_dir="output",
        eval_accumulation_steps=1,
    )
    # endregion
else:
    args = TrainingArguments(output_dir="output")

if change == "preprocess_logits":
    # region trainer_preprocess_logits
    def best_tokens(logits, labels):
        return logits.argmax(dim=-1)

    trainer = Trainer(
        model,
        args,
        eval_dataset=dataset,
        compute_metrics=compute_metrics,
        preprocess_logits_for_metrics=best_tokens,
    )
    # endregion
else:
    trainer = Trainer(
        model,
        args,
        eval_dataset=dataset,
        compute_metrics=None if change == "loss_only" else compute_metrics,
    )
trainer.remove_callback(PrinterCallback)

# %% evaluate
evaluated = trainer.evaluate()

# %% results
held_predictions = sum(prediction_bytes)
loss = evaluated["eval_loss"]
accuracy = evaluated.get("eval_accuracy", 0.0)
print(f"predictions of {batches} batches: {held_predictions / 2**20:.1f} MiB")

# %% checks
import math

assert model.device.type == device.type
assert trainer.args.eval_accumulation_steps == (1 if change == "accumulation" else None)
preprocess = trainer.preprocess_logits_for_metrics
assert (preprocess is not None) == (change == "preprocess_logits")
assert math.isclose(loss, math.log(vocab_size), rel_tol=0.05)
tokens = batches * batch_size * sequence_length
logits = 4 * vocab_size
per_token = {"preprocess_logits": 8, "loss_only": 0}.get(change, logits)
assert held_predictions == tokens * per_token

# The same best tokens, whether found for each batch or afterwards.
if change != "loss_only":
    with torch.no_grad():
        logits = model(token_ids[:1].to(device)).logits
    best = logits.argmax(dim=-1)[0].cpu().numpy()
    assert (best == first_best[0]).mean() > 0.99
