"""What adapters leave of the memory of fine-tuning: LoRA, on a base in fp32, in bf16, and in 4 bits.

The decoder is deeper than elsewhere in this guide, and its embedding serves as its head too, so that most of its
parameters lie in linear layers, as in a model of a billion: those are what adapters and 4 bits change.
"""
# /// script
# requires-python = ">=3.11"
# # Trainer of 5.24.0 wants PEFT 0.22, which is not out.
# dependencies = [
#   "torch>=2.11", "transformers>=5.23,!=5.24.0", "accelerate>=1.15", "peft>=0.20",
#   "bitsandbytes>=0.50", "numpy>=2.0",
# ]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# worth = 2
# timeout = 600
# repeats = 2
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# parameter_count = { unit = "count" }
# trainable_parameters = { unit = "count", better = "lower" }
# weight_bytes = { unit = "B", better = "lower", memory = "device" }
# gradient_bytes = { unit = "B", better = "lower", memory = "device" }
# state_bytes = { unit = "B", better = "lower", memory = "device" }
# static_memory = { unit = "B", better = "lower", memory = "device" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# linear_bytes_per_parameter = { unit = "B/parameter", better = "lower" }
# [tool.benchbook.matrix]
# method = [
#     "full", "full_bf16", "lora_qv", "lora", "lora_bf16_no_autocast", "lora_bf16",
#     "qlora", "lora_checkpointing", "lora_bf16_checkpointing", "qlora_checkpointing",
# ]
# [tool.benchbook.on.accelerator]
# hidden_size = 2048
# layers = 8
# heads = 32
# kv_heads = 8
# intermediate_size = 8192
# repeats = 2
# [tool.benchbook.smallest]
# layers = 1
# vocab_size = 2048
# sequence_length = 32
# [tool.benchbook.work]
# fp32 = '''
# (batch_size * sequence_length
#  * (vocab_size * hidden_size
#     + layers * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * hidden_size * intermediate_size
#                 + 2 * hidden_size * sequence_length))
#  * (2 + 3 * {'full': 6, 'full_bf16': 6, 'lora_qv': 4, 'lora': 4, 'lora_bf16_no_autocast': 4,
#             'lora_bf16': 4, 'qlora': 4, 'lora_checkpointing': 6, 'lora_bf16_checkpointing': 6,
#             'qlora_checkpointing': 6}[method])
#  if method in ['full', 'lora_qv', 'lora', 'lora_checkpointing'] else 0)
# '''
# bf16 = '''
# (batch_size * sequence_length
#  * (vocab_size * hidden_size
#     + layers * (hidden_size**2 * (2 + 2 * kv_heads / heads) + 3 * hidden_size * intermediate_size
#                 + 2 * hidden_size * sequence_length))
#  * (2 + 3 * {'full': 6, 'full_bf16': 6, 'lora_qv': 4, 'lora': 4, 'lora_bf16_no_autocast': 4,
#             'lora_bf16': 4, 'qlora': 4, 'lora_checkpointing': 6, 'lora_bf16_checkpointing': 6,
#             'qlora_checkpointing': 6}[method])
#  if method not in ['full', 'lora_qv', 'lora', 'lora_checkpointing'] else 0)
# '''
# seconds = '''
# (0.1 + (0.7 if method in ['lora_checkpointing', 'lora_bf16_checkpointing', 'qlora_checkpointing'] else 0)
#  + (1.2 if method in ['qlora', 'qlora_checkpointing'] else 0))
# '''
# ///

# %% parameters
method = "full"
hidden_size = 512
layers = 12
heads = 8
kv_heads = 2
intermediate_size = 1408
vocab_size = 32000
batch_size = 4
sequence_length = 256

# %% setup
import functools
import tempfile
from itertools import accumulate

import torch
import transformers
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, LlamaConfig, PrinterCallback
from transformers import Trainer, set_seed
from transformers.utils.logging import disable_progress_bar

disable_progress_bar()
device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
adapted = "lora" in method
quantized = method.startswith("qlora")
dtype = torch.bfloat16 if quantized or "bf16" in method else torch.float32
autocast = quantized or method in ("lora_bf16", "lora_bf16_checkpointing")
checkpointing = method.endswith("checkpointing")
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
TrainingArguments = functools.partial(
    transformers.TrainingArguments,
    per_device_train_batch_size=batch_size,
    use_cpu=device.type == "cpu",  # without it, bf16 asks for a GPU
    learning_rate=1e-3,
    max_steps=2,
    logging_steps=1,
    train_sampling_strategy="sequential",
    save_strategy="no",
    disable_tqdm=True,
)

# %% model
with device:
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)

# %% load
if quantized:
    folder = tempfile.TemporaryDirectory()
    checkpoint = folder.name
    model.save_pretrained(checkpoint)
    # region qlora_load
    from transformers import AutoModelForCausalLM
    from transformers import BitsAndBytesConfig

    four_bit = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )
    model = AutoModelForCausalLM.from_pretrained(
        checkpoint,
        dtype=torch.bfloat16,
        quantization_config=four_bit,
    )
    # endregion

# %% before
model.train()  # in inference, a CPU lays 4-bit weights out anew
base = dict(model.named_parameters())
parameter_count = model.num_parameters()
before = {name: weight.detach().clone() for name, weight in base.items()}
with device:
    batch = torch.randint(0, vocab_size, (batch_size, sequence_length))
with torch.no_grad():
    base_loss = model(batch, labels=batch).loss.item()

# %% adapters
if method == "lora_qv":
    # region lora_on_queries_and_values
    from peft import LoraConfig

    lora = LoraConfig(
        r=8,
        lora_alpha=16,
        target_modules=["q_proj", "v_proj"],
    )
    model.add_adapter(lora)
    # endregion
elif adapted:
    # region lora
    from peft import LoraConfig

    lora = LoraConfig(
        r=8,
        lora_alpha=16,
        target_modules="all-linear",
    )
    # Freezes the model, and adds what trains.
    model.add_adapter(lora)
    # Adapters train in fp32, whatever the model is in.
    for weight in model.parameters():
        if weight.requires_grad:
            weight.data = weight.data.float()
    # endregion

trained = [weight for weight in model.parameters() if weight.requires_grad]

# %% trainer
if method == "lora_checkpointing":
    # region trainer_lora_checkpointing
    args = TrainingArguments(
        output_dir="output",
        activation_checkpointing=True,
    )
    # endregion
elif checkpointing:
    # region trainer_qlora_checkpointing
    args = TrainingArguments(
        output_dir="output",
        bf16=True,
        activation_checkpointing=True,
    )
    # endregion
if checkpointing:
    rows = [{"input_ids": row, "labels": row} for row in batch.cpu()]
    trainer = Trainer(model, args, train_dataset=rows)
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    losses = [log["loss"] for log in trainer.state.log_history if "loss" in log]
    optimizer = trainer.optimizer.optimizer  # inside Accelerate's
else:
    optimizer = torch.optim.AdamW(trained, lr=1e-3, fused=True)


# %% pytorch
def step():
    """A training step; the loss, and the bytes of the gradients."""
    with torch.autocast(device.type, torch.bfloat16, enabled=autocast):
        loss = model(batch, labels=batch).loss
    loss.backward()
    gradients = sum(weight.grad.nbytes for weight in trained)
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach(), gradients


optimizer.zero_grad()
if not checkpointing:
    losses = [step()[0].item() for _ in range(2)]


# %% held
def bytes_of(weight):
    """Of a weight; one in 4 bits has the scales of its blocks beside it."""
    state = getattr(weight, "quant_state", None)
    parts = [weight]
    if state is not None:
        parts += [state.absmax, state.state2.absmax]
    return sum(part.nbytes for part in parts)


states = [state for each in optimizer.state.values() for state in each.values()]
state_bytes = sum(state.nbytes for state in states if torch.is_tensor(state))
weight_bytes = sum(bytes_of(weight) for weight in model.parameters())
trainable_parameters = sum(weight.numel() for weight in trained)

# %% one_more_step
if device.type == "cpu":
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        _, gradient_bytes = step()
    events = profiled.profiler.kineto_results.events()
    changes = [event for event in events if event.name() == "[memory]"]
    changes.sort(key=lambda event: event.start_ns())
    above = max(accumulate((change.nbytes() for change in changes), initial=0))
    peak_memory = weight_bytes + state_bytes + batch.nbytes + above
else:
    torch.accelerator.reset_peak_memory_stats()
    _, gradient_bytes = step()
    peak_memory = torch.accelerator.max_memory_allocated()
static_memory = weight_bytes + gradient_bytes + state_bytes
print(f"{trainable_parameters:,} of {parameter_count:,} parameters train")
print(f"weights, gradients, states: {static_memory / 2**20:.1f} MiB")
print(f"peak:                       {peak_memory / 2**20:.1f} MiB")

# %% linear_layers
linear = [
    weight for name, weight in base.items() if "_proj" in name and "lora_" not in name
]
linear_count = (
    layers
    * hidden_size
    * (2 * hidden_size + 2 * kv_heads * hidden_size // heads + 3 * intermediate_size)
)
linear_bytes_per_parameter = sum(map(bytes_of, linear)) / linear_count
print(f"a linear layer of the base: {linear_bytes_per_parameter:.3f} B per parameter")

# %% checks
import math

assert len(losses) == 2 and all(map(math.isfinite, losses))
assert {weight.device.type for weight in model.parameters()} == {device.type}
assert model.is_activation_checkpointing == checkpointing
if checkpointing:
    assert trainer.state.global_step == 2
    assert trainer.accelerator.mixed_precision == ("bf16" if autocast else "no")
    assert trainer.args.activation_checkpointing
assert {w.dtype for w in trained} == {torch.float32 if adapted else dtype}
norms = (2 * layers + 1) * hidden_size
assert parameter_count == linear_count + vocab_size * hidden_size + norms

# What should train trains, and nothing else moves. In bf16, the weights of a
# normalisation, all 1, do not either: 1.001 is rounded to 1 again.
moved = {
    name for name, weight in base.items() if not weight.detach().equal(before[name])
}
in_place = {name for name in base if dtype == torch.bfloat16 and "norm" in name}
assert moved == (set() if adapted else set(base) - in_place), moved
of_rank = 8 * layers
q_and_v = 2 * hidden_size + hidden_size + hidden_size * kv_heads // heads
k_and_o = q_and_v
per_layer = q_and_v if method == "lora_qv" else q_and_v + k_and_o
per_layer += 0 if method == "lora_qv" else 3 * (hidden_size + intermediate_size)
assert trainable_parameters == (of_rank * per_layer if adapted else parameter_count)
if adapted:  # the second matrix of an adapter begins as zeros
    second = [w for name, w in model.named_parameters() if "lora_B" in name]
    assert all(weight.count_nonzero() > 0 for weight in second)
    assert math.isclose(
        losses[0], base_loss, rel_tol=1e-5 if dtype.itemsize == 4 else 1e-2
    )

# Bytes, by hand.
trained_bytes = 4 if adapted else dtype.itemsize
assert gradient_bytes == trained_bytes * trainable_parameters
steps_taken = 4 * len(trained)  # a count beside each pair of states
assert state_bytes == 2 * gradient_bytes + steps_taken
blocks = [math.ceil(2 * weight.numel() / 64) for weight in linear]
scales = sum(count + 4 * math.ceil(count / 256) for count in blocks)
assert linear_bytes_per_parameter == (
    0.5 + scales / linear_count if quantized else dtype.itemsize
)
if quantized:
    assert math.isclose(linear_bytes_per_parameter, 0.516, rel_tol=1e-3)
    assert {weight.dtype for weight in linear} == {torch.uint8}
assert peak_memory > static_memory - gradient_bytes
