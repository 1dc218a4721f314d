"""One `Trainer` run as one process, as two, and accumulated: when the loss comes out multiplied."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# [tool.benchbook.metrics]
# num_processes = { unit = "processes" }
# batch_per_process = { unit = "samples" }
# losses = { unit = "1" }
# learning_rates = { unit = "1" }
# first_loss = { unit = "1" }
# first_gradient_norm = { unit = "1" }
# final_loss = { unit = "1", better = "lower" }
# final_learning_rate = { unit = "1" }
# [[tool.benchbook.matrix]]
# ranks = 1
# gradient_accumulation_steps = 1
# accepts_loss_kwargs = true
# average_tokens = true
# [[tool.benchbook.matrix]]
# ranks = 2
# gradient_accumulation_steps = 1
# accepts_loss_kwargs = true
# average_tokens = true
# [[tool.benchbook.matrix]]
# ranks = 1
# gradient_accumulation_steps = 2
# accepts_loss_kwargs = true
# average_tokens = true
# [[tool.benchbook.matrix]]
# ranks = 2
# gradient_accumulation_steps = 1
# accepts_loss_kwargs = false
# average_tokens = true
# [[tool.benchbook.matrix]]
# ranks = 1
# gradient_accumulation_steps = 2
# accepts_loss_kwargs = false
# average_tokens = true
# [[tool.benchbook.matrix]]
# ranks = 2
# gradient_accumulation_steps = 1
# accepts_loss_kwargs = true
# average_tokens = false
# [tool.benchbook.smallest]
# steps = 4
# ///

# %% parameters
seed = 42
batch_size = 16
steps = 40
gradient_accumulation_steps = 1
accepts_loss_kwargs = False  # Trainer takes True for every model with **kwargs
average_tokens = True

# %% setup
import tempfile
import time

import torch
from torch.utils.data import TensorDataset
from transformers import BertConfig, BertForSequenceClassification
from transformers import PrinterCallback, Trainer, TrainingArguments, set_seed

set_seed(seed)
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=256,
        hidden_size=64,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
)
model.accepts_loss_kwargs = accepts_loss_kwargs

# %% data
samples = batch_size * steps
labels = torch.randint(0, 2, (samples,))
upper_half = torch.rand(samples, 32) < 0.2 + 0.6 * labels[:, None]  # learnable
tokens = torch.randint(0, 128, (samples, 32)) + 128 * upper_half
dataset = TensorDataset(tokens, labels)


def collate(rows):
    ids, labels = zip(*rows)
    return {"input_ids": torch.stack(ids), "labels": torch.stack(labels)}


# %% arguments
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(),
    use_cpu=True,
    seed=seed,
    per_device_train_batch_size=batch_size,
    gradient_accumulation_steps=gradient_accumulation_steps,
    average_tokens_across_devices=average_tokens,
    max_steps=steps,
    learning_rate=2e-3,
    logging_steps=1,
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    ddp_find_unused_parameters=False,
)

# %% match
# batch_size: all samples of one optimizer step
shares = arguments.gradient_accumulation_steps
shares *= arguments.world_size * max(1, arguments.n_gpu)
arguments.per_device_train_batch_size = batch_size // shares

# %% train
num_processes, micro_batches = arguments.world_size, shares
batch_per_process = arguments.per_device_train_batch_size
trainer = Trainer(model, arguments, train_dataset=dataset, data_collator=collate)
trainer.remove_callback(PrinterCallback)
trainer.train()

history = [entry for entry in trainer.state.log_history if "loss" in entry]
losses = [float(entry["loss"]) for entry in history]
learning_rates = [float(entry["learning_rate"]) for entry in history]
first_loss, final_loss = losses[0], losses[-1]
first_gradient_norm = float(history[0]["grad_norm"])
final_learning_rate = learning_rates[-1]

# %% result
if trainer.is_world_process_zero():
    print(f"{micro_batches} micro-batch(es) of {batch_per_process} samples")
    print(f"loss {first_loss:.4f} -> {final_loss:.4f}")
    print(f"first gradient norm {first_gradient_norm:.3f}")

# %% checks
assert arguments.device.type == "cpu"
assert arguments.train_batch_size == batch_per_process
assert batch_per_process * micro_batches == batch_size
assert len(losses) == steps
assert 0 <= final_learning_rate < 2 * arguments.learning_rate / steps
counted = {1, micro_batches} if accepts_loss_kwargs else {1}
guesses = [abs(first_loss / times - 0.695) for times in counted]
assert min(guesses) < 0.05, "an untrained guess of two is ln 2"
if steps == 40:
    assert final_loss < first_loss / 2, "did not learn"
time.sleep(0.1)  # or a thread of gloo may outlive the interpreter, and abort
trainer.accelerator.end_training()
