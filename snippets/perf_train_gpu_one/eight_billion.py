"""What fits: one long sequence through Llama-3.1-8B or Qwen3-8B with `Trainer`, in full or with LoRA.

The weights are random, drawn on the device by the published configuration: bytes do not depend on their values.
What does not fit a device ends there with its out-of-memory error, and that is the result.
"""
# /// script
# requires-python = ">=3.11"
# # Trainer of 5.24.0 wants PEFT 0.22, which is not out.
# dependencies = [
#   "torch>=2.11", "transformers>=5.23,!=5.24.0", "accelerate>=1.15", "peft>=0.20", "numpy>=2.0",
# ]
#
# [tool.benchbook]
# needs = ["accelerator"]
# worth = 5
# timeout = 300
# repeats = 2
# matrix = [
#     { model_name = "llama-3.1-8b", method = "full_fp32" },
#     { model_name = "llama-3.1-8b", method = "full_bf16" },
#     { model_name = "llama-3.1-8b", method = "full_bf16_checkpointing" },
#     { model_name = "llama-3.1-8b", method = "full_bf16_checkpointing_adafactor", repeats = 2 },
#     { model_name = "llama-3.1-8b", method = "lora" },
#     { model_name = "llama-3.1-8b", method = "lora_checkpointing", repeats = 2 },
#     { model_name = "qwen3-8b", method = "full_fp32" },
#     { model_name = "qwen3-8b", method = "full_bf16" },
#     { model_name = "qwen3-8b", method = "full_bf16_checkpointing" },
#     { model_name = "qwen3-8b", method = "full_bf16_checkpointing_adafactor", repeats = 2 },
#     { model_name = "qwen3-8b", method = "lora" },
#     { model_name = "qwen3-8b", method = "lora_checkpointing", repeats = 2 },
# ]
# [tool.benchbook.metrics]
# parameter_count = { unit = "count" }
# trainable_parameters = { unit = "count", better = "lower" }
# static_memory = { unit = "B", better = "lower", memory = "device" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# reserved_peak = { unit = "B", better = "lower", memory = "device" }
# # The two ways that fit a smaller GPU run twice.
# [tool.benchbook.on.accelerator]
# repeats = 1
# [tool.benchbook.smallest]
# divisor = 16
# sequence_length = 64
# [tool.benchbook.work]
# bf16 = '''
# (steps * sequence_length * (8.0e9 + 2.8e5 * sequence_length)
#  * ((6 if 'lora' in method else 8) if 'checkpointing' in method else (4 if 'lora' in method else 6)))
# '''
# seconds = 1.3
# ///

# %% parameters
model_name = "llama-3.1-8b"
method = "lora_checkpointing"
sequence_length = 2048
steps = 2  # the first creates the optimizer's states, the second has them
divisor = 1  # of the model's dimensions

# %% setup
import functools

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, PrinterCallback, Trainer
from transformers import set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
TrainingArguments = functools.partial(
    transformers.TrainingArguments,
    max_steps=steps,
    logging_steps=1,
    train_sampling_strategy="sequential",
    save_strategy="no",
    report_to="none",
    disable_tqdm=True,
    use_cpu=device.type == "cpu",
)

# %% config
kind, sizes, rest = {
    "llama-3.1-8b": (
        "llama",
        {
            "vocab_size": 128256,
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
        },
        {"rms_norm_eps": 1e-5, "max_position_embeddings": 131072},
    ),
    "qwen3-8b": (
        "qwen3",
        {
            "vocab_size": 151936,
            "hidden_size": 4096,
            "intermediate_size": 12288,
            "num_hidden_layers": 36,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
        },
        {"rms_norm_eps": 1e-6, "max_position_embeddings": 40960},
    ),
}[model_name]
divided = {name: max(1, size // divisor) for name, size in sizes.items()}
config = AutoConfig.for_model(
    kind, **divided, **rest, head_dim=128, tie_word_embeddings=False
)

# %% model
set_seed(0)
dtype = torch.float32 if method == "full_fp32" else torch.bfloat16
with device:
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
parameter_count = model.num_parameters()
tokens = torch.randint(0, config.vocab_size, (steps, sequence_length))
dataset = [{"input_ids": row, "labels": row} for row in tokens]
print(f"{model_name}: {parameter_count:,} parameters, {method}")

# %% adapters
if method.startswith("lora"):
    with device:
        # region lora
        from peft import LoraConfig

        # The model was loaded with dtype=torch.bfloat16.
        lora = LoraConfig(
            r=16,
            target_modules="all-linear",
        )
        # Freezes the model, and adds what trains.
        model.add_adapter(lora)
        # Adapters train in fp32.
        for weight in model.parameters():
            if weight.requires_grad:
                weight.data = weight.data.float()
        # endregion

# %% arguments
if method == "full_bf16_checkpointing_adafactor":
    # region trainer_full
    # The model was loaded with dtype=torch.bfloat16.
    args = TrainingArguments(
        output_dir="output",
        per_device_train_batch_size=1,
        activation_checkpointing=True,
        optim="adafactor",
    )
    # endregion
elif method == "lora_checkpointing":
    # region trainer_lora
    args = TrainingArguments(
        output_dir="output",
        per_device_train_batch_size=1,
        bf16=True,
        activation_checkpointing=True,
    )
    # endregion
else:
    args = TrainingArguments(
        output_dir="output",
        per_device_train_batch_size=1,
        bf16=method in ("full_fp32", "lora"),
        activation_checkpointing=method.endswith("checkpointing"),
    )

# %% trainer
trainer = Trainer(model=model, args=args, train_dataset=dataset)
trainer.remove_callback(PrinterCallback)

# %% meter
from itertools import accumulate

from torch.profiler import ProfilerActivity, profile

weight_bytes = sum(weight.nbytes for weight in model.parameters())
if device.type == "cpu":  # its allocator counts nothing: the profiler does
    events = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
    events.start()
else:
    torch.accelerator.reset_peak_memory_stats()

# %% train
trainer.train()
if device.type == "cpu":
    events.stop()
    changes = events.profiler.kineto_results.events()
    changes = [event for event in changes if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    above = max(accumulate(event.nbytes() for event in changes))
    peak_memory = reserved_peak = weight_bytes + above
else:
    peak_memory = torch.accelerator.max_memory_allocated()
    reserved_peak = torch.accelerator.max_memory_reserved()

# %% results
trained = [weight for weight in model.parameters() if weight.requires_grad]
trainable_parameters = sum(weight.numel() for weight in trained)
optimizer = trainer.optimizer.optimizer  # inside Accelerate's
states = [state for each in optimizer.state.values() for state in each.values()]
state_bytes = sum(state.nbytes for state in states if torch.is_tensor(state))
gradient_bytes = sum(weight.nbytes for weight in trained)
static_memory = weight_bytes + gradient_bytes + state_bytes
print(f"{trainable_parameters:,} of them train")
print(f"weights, gradients, states: {static_memory / 2**30:.2f} GiB")
print(f"peak:                       {peak_memory / 2**30:.2f} GiB")

# %% checks
import math

losses = [log["loss"] for log in trainer.state.log_history if "loss" in log]
assert len(losses) == trainer.state.global_step == steps
assert all(math.isfinite(loss) for loss in losses)
assert {weight.device.type for weight in model.parameters()} == {device.type}
published = {"llama-3.1-8b": 8_030_261_248, "qwen3-8b": 8_190_735_360}
assert divisor != 1 or parameter_count == published[model_name]

# The run is what its method says, and what the lines to paste say.
adapted, checkpointing = method.startswith("lora"), "checkpointing" in method
assert trainer.args.per_device_train_batch_size == 1
assert trainer.args.activation_checkpointing == checkpointing
assert model.is_activation_checkpointing == checkpointing
autocast = adapted or method == "full_fp32"
assert trainer.accelerator.mixed_precision == ("bf16" if autocast else "no")
adafactor = method.endswith("adafactor")
assert type(optimizer).__name__ == ("Adafactor" if adafactor else "AdamW")
assert adafactor or optimizer.param_groups[0]["fused"]
base_types = {w.dtype for n, w in model.named_parameters() if "lora_" not in n}
assert base_types == {dtype}
if adapted:
    assert {weight.dtype for weight in trained} == {torch.float32}
    heads, groups = divided["num_attention_heads"], divided["num_key_value_heads"]
    hidden, wide = divided["hidden_size"], divided["intermediate_size"]
    attention = 2 * (hidden + 128 * heads) + 2 * (hidden + 128 * groups)
    per_layer = 16 * (attention + 3 * (hidden + wide))
    assert trainable_parameters == divided["num_hidden_layers"] * per_layer
else:
    assert trainable_parameters == parameter_count
per_parameter = 2 * gradient_bytes / trainable_parameters
if adafactor:  # a row and a column of each matrix
    assert state_bytes < 0.2 * gradient_bytes
else:
    assert math.isclose(state_bytes / trainable_parameters, per_parameter, rel_tol=0.01)
assert weight_bytes + state_bytes < peak_memory <= reserved_peak
