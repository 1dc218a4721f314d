"""Keeping the inputs of checkpointed layers in host memory: bytes and time, in a decoder."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator"]
# worth = 1
# timeout = 600
# repeats = 4
# [tool.benchbook.metrics]
# activations = { unit = "B", better = "lower", memory = "device" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# step_seconds = { unit = "s", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# sequence_length = [8192]
# offload = [false, true]
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 128
# heads = 4
# kv_heads = 2
# vocab_size = 512
# sequence_length = 64
# timed_steps = 2
# [tool.benchbook.work]
# bf16 = '''
# (8 * (4 + timed_steps) * sequence_length
#  * layers * (hidden_size**2 * (14 + 2 * kv_heads / heads)
#              + 2 * hidden_size * sequence_length))
# '''
# seconds = '''
# (0.5 + (6e-10 * (3 + timed_steps) * layers * sequence_length * hidden_size if offload else 0))
# '''
# ///

# %% parameters
offload = True
sequence_length = 8192
layers = 3
hidden_size = 2048
heads = 32
kv_heads = 8
vocab_size = 32000
timed_steps = 2

# %% setup
import time
from functools import partial
from statistics import median

import torch
import transformers
from transformers import (
    LlamaConfig,
    LlamaForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    set_seed,
)

device = torch.accelerator.current_accelerator(check_available=True)
if device is None:
    raise SystemExit(
        "Offloading moves activations off an accelerator, and none is here."
    )
set_seed(0)
config = LlamaConfig(  # as wide as Llama-3.2-1B, with random weights
    vocab_size=vocab_size,
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    num_key_value_heads=kv_heads,
    intermediate_size=4 * hidden_size,
    max_position_embeddings=sequence_length,
    use_cache=False,
    dtype=torch.bfloat16,
)
with device:
    model = LlamaForSequenceClassification(config).to(torch.bfloat16)
    ids = torch.randint(0, vocab_size, (1, sequence_length))
batch = {"input_ids": ids, "labels": torch.tensor([1], device=device)}
batches = [batch]
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)  # stays where it is
TrainingArguments = partial(
    transformers.TrainingArguments,
    per_device_train_batch_size=1,
    max_steps=1,
    max_grad_norm=0,  # the gradient as it is
    optim="sgd",
    learning_rate=0.0,
    save_strategy="no",
    disable_tqdm=True,
)


# %% gradient
def gradient_of(model):
    return torch.cat([weight.grad.flatten().float() for weight in model.parameters()])


def gradient():
    model.zero_grad()
    model(**batch).loss.backward()
    return gradient_of(model)


def difference(change, wanted):
    return ((change - wanted).norm() / wanted.norm()).item()


class FirstGradient(TrainerCallback):
    """Keeps the gradient of the first step."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the gradient is there."""
        self.value = gradient_of(model)


model.train()
model.activation_checkpointing_enable()
kept_on_device = gradient()
model.zero_grad()

# %% trainer
if offload:
    # region trainer_offload
    args = TrainingArguments(
        output_dir="output",
        activation_checkpointing=True,
        activation_checkpointing_kwargs={
            "offload": True,
        },
    )
    # endregion
else:
    args = TrainingArguments(output_dir="output", activation_checkpointing=True)
dataset = [{"input_ids": ids[0].cpu(), "labels": 1}]
trainer = Trainer(model, args, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)
trainer_gradient = FirstGradient()
trainer.add_callback(trainer_gradient)
trainer.train()
trainer_steps = trainer.state.global_step
trainer_difference = difference(trainer_gradient.value, kept_on_device)
del trainer, trainer_gradient
model.activation_checkpointing_disable()  # the loop has to enable it again
model.zero_grad()

# %% pytorch
if offload:
    # region pytorch_offload
    model.train()
    model.activation_checkpointing_enable(offload=True)
    for batch in batches:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    # endregion
else:
    model.activation_checkpointing_enable()
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
gradient_difference = difference(gradient(), kept_on_device)
del kept_on_device, loss

# %% measure
seconds = []
for _ in range(timed_steps):
    model.zero_grad()
    torch.accelerator.synchronize()
    torch.accelerator.reset_peak_memory_stats()
    before = torch.accelerator.memory_allocated()
    start = time.perf_counter()
    loss = model(**batch).loss
    activations = torch.accelerator.memory_allocated() - before
    loss.backward()
    torch.accelerator.synchronize()
    seconds.append(time.perf_counter() - start)
    del loss
step_seconds = median(seconds)
peak_memory = torch.accelerator.max_memory_allocated()
print(f"offload={offload}: {activations / 2**20:.1f} MiB of activations on the device")
print(f"{step_seconds:.3f} s for forward and backward pass")

# %% checks
assert model.device.type == device.type == args.device.type
assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
assert all(layer.gradient_checkpointing for layer in model.model.layers)
hidden_states = layers * sequence_length * hidden_size * 2
# The same to the rounding of bf16: fused attention adds in any order.
assert gradient_difference < 0.01
assert trainer_steps == 1 and trainer_difference < 0.01
assert (activations > hidden_states) != offload
assert peak_memory > activations > 0
