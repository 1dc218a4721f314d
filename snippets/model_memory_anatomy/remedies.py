"""What each change of a line or two does to the peak of training BERT-large with Trainer."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 6
# timeout = 900
# repeats = 2
# meters = ["cpu_allocator"]
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# state_bytes = { unit = "B", better = "lower", memory = "device" }
# loss_difference = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [[tool.benchbook.matrix]]
# change = "none"
# repeats = 2
# [[tool.benchbook.matrix]]
# change = "batch_1"
# repeats = 2
# [[tool.benchbook.matrix]]
# change = "checkpointing"
# repeats = 2
# [[tool.benchbook.matrix]]
# change = "checkpointing_batch_1"
# [[tool.benchbook.matrix]]
# change = "bf16_autocast"
# repeats = 2
# [[tool.benchbook.matrix]]
# change = "bf16_weights"
# [[tool.benchbook.matrix]]
# change = "sgd"
# [[tool.benchbook.matrix]]
# change = "adafactor"
# repeats = 2
# [[tool.benchbook.matrix]]
# change = "sequence_256"
# repeats = 2
# [[tool.benchbook.matrix]]
# change = "no_attention_dropout"
# # What a claim compares runs twice.
# [tool.benchbook.on.accelerator]
# repeats = 1
# [tool.benchbook.smallest]
# layers = 2
# sequence_length = 32
# [tool.benchbook.work]
# host_values = "32.8e6 + 12.6e6 * layers"
# fp32 = '''
# (batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  * (8 if change in ['checkpointing', 'checkpointing_batch_1'] else 6)
#  * (0.5 if change == 'sequence_256' else 1)
#  if change not in ['bf16_autocast', 'bf16_weights'] else 0)
# '''
# bf16 = '''
# (batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  * (8 if change in ['checkpointing', 'checkpointing_batch_1'] else 6)
#  * (0.5 if change == 'sequence_256' else 1)
#  if change in ['bf16_autocast', 'bf16_weights'] else 0)
# '''
# seconds = 1.5
# ///

# %% parameters
change = "none"
layers = 24
batch_size = 4
sequence_length = 512

# %% setup
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

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)

# %% first_remedy
checkpointing = {"activation_checkpointing": True}
small_batches = {
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": batch_size,
}

# %% changes
arguments = {
    "checkpointing": checkpointing,
    "batch_1": small_batches,
    "checkpointing_batch_1": checkpointing | small_batches,
    "bf16_autocast": {"bf16": True},
    "sgd": {"optim": "sgd"},
    "adafactor": {"optim": "adafactor"},
}
dtype = torch.bfloat16 if change == "bf16_weights" else torch.float32
length = sequence_length // 2 if change == "sequence_256" else sequence_length
changed = arguments.get(change, {})
attention_dropout = 0.0 if change == "no_attention_dropout" else 0.1


# %% trainer
def make_trainer(config, dtype, length, changed, first_length=8):
    set_seed(0)
    # A short first step suffices for the optimizer to create its states.
    lengths = [first_length] * batch_size + [length] * batch_size
    token_ids = [torch.randint(0, config.vocab_size, (n,)) for n in lengths]
    dataset = [{"input_ids": ids, "labels": i % 2} for i, ids in enumerate(token_ids)]
    model = AutoModelForSequenceClassification.from_config(config, dtype=dtype)
    model.accepts_loss_kwargs = False  # or accumulation would multiply BERT's loss
    plain = {
        "output_dir": "output",
        "per_device_train_batch_size": batch_size,
        "train_sampling_strategy": "sequential",
        "max_steps": 2,
        "logging_steps": 1,
        "save_strategy": "no",
        "disable_tqdm": True,
        "use_cpu": device.type == "cpu",  # without it, bf16 asks for a GPU
    }
    args = TrainingArguments(**plain | changed)
    trainer = Trainer(model=model, args=args, train_dataset=dataset)
    trainer.remove_callback(PrinterCallback)
    return trainer


# %% load_model
config = BertConfig(  # BERT-large, with random weights
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
    attention_probs_dropout_prob=attention_dropout,
)
trainer = make_trainer(config, dtype, length, changed)

# %% train
trainer.train()

# %% sizes
parameter_count = sum(weight.numel() for weight in trainer.model.parameters())
states = [
    state
    for states in trainer.optimizer.state.values()
    for state in states.values()
    if isinstance(state, torch.Tensor)
]
state_bytes = sum(state.nbytes for state in states)


# %% same_training
class FirstGradient(TrainerCallback):
    """Keeps the whole gradient of the first step, as one vector."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        """Called once the batch's last gradient is there."""
        if state.global_step == 0:
            gradients = [weight.grad.flatten() for weight in model.parameters()]
            self.value = torch.cat(gradients).float()


tiny = BertConfig(
    vocab_size=256,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=256,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)
weights = AutoModelForSequenceClassification.from_config(tiny).state_dict()


def first_step(dtype, changed, length=32, attention_dropout=0.0):
    """Loss and gradient of the first step of a tiny model."""
    tiny.attention_probs_dropout_prob = attention_dropout
    trainer = make_trainer(tiny, dtype, length, changed, first_length=length)
    trainer.model.load_state_dict(weights)  # rounded to the model's own type
    gradient = FirstGradient()
    trainer.add_callback(gradient)
    trainer.train()
    return trainer.state.log_history[0]["loss"], gradient.value


drops = 0.1 if change == "no_attention_dropout" else 0.0
wanted_loss, wanted_gradient = first_step(torch.float32, {}, attention_dropout=drops)
loss, gradient = first_step(dtype, changed, 16 if change == "sequence_256" else 32)
loss_difference = abs(loss - wanted_loss) / wanted_loss
gradient_error = (gradient - wanted_gradient).norm() / wanted_gradient.norm()
gradient_difference = gradient_error.item()

# %% checks
import math

logs = [log for log in trainer.state.log_history if "loss" in log]
assert len(logs) == trainer.state.global_step == 2
assert all(math.isfinite(log["loss"]) and log["grad_norm"] > 0 for log in logs)
assert trainer.args.device.type == device.type

# What should be on is on, and nothing else is.
model = trainer.model
assert parameter_count == 32_834_562 + layers * 12_596_224  # as computed by hand
assert {weight.dtype for weight in model.parameters()} == {dtype}
assert {weight.device.type for weight in model.parameters()} == {device.type}
assert model.is_activation_checkpointing == change.startswith("checkpointing")
mixed = "bf16" if change == "bf16_autocast" else "no"
assert trainer.accelerator.mixed_precision == mixed
in_one_step = trainer.args.train_batch_size * trainer.args.gradient_accumulation_steps
assert in_one_step == batch_size
attention = model.bert.encoder.layer[0].attention.self
assert attention.dropout.p == attention_dropout
names = {"sgd": "SGD", "adafactor": "Adafactor"}
optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
assert type(optimizer).__name__ == names.get(change, "AdamW")
per_parameter = {"sgd": 0, "adafactor": 0.02}.get(change, 2 * dtype.itemsize)
assert math.isclose(state_bytes / parameter_count, per_parameter, abs_tol=0.02)

# The training is the same one, to rounding, or another.
if change in ("sequence_256", "no_attention_dropout"):
    assert gradient_difference > 0.001
else:
    tolerance = 0.05 if change.startswith("bf16") else 1e-5
    assert loss_difference < tolerance
    assert gradient_difference < tolerance
