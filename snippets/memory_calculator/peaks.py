"""The peak of real training steps of five models, for the predictor to be held to."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 5
# timeout = 300
# repeats = 2
# meters = ["cpu_allocator"]
# # Faster on a CPU: what is freed stays with the process. Torch's bytes are the same.
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# matrix = [
#     { model_name = "bert-large", precision = "fp32", attention = "eager", optimizer_name = "adamw_fused", batch_size = 32, sequence_length = 512 },
#     { model_name = "bert-large", precision = "fp32", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 32, sequence_length = 512 },
#     { model_name = "bert-large", precision = "fp32", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 64, sequence_length = 512, checkpointing = true },
#     { model_name = "bert-large", precision = "fp32", attention = "eager", optimizer_name = "adafactor", batch_size = 16, sequence_length = 512, accumulation = 2 },
#     { model_name = "bert-large", precision = "fp32", attention = "sdpa", optimizer_name = "adamw_foreach", batch_size = 16, sequence_length = 128 },
#     { model_name = "bert-large", precision = "bf16_autocast", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 64, sequence_length = 384 },
#     { model_name = "bert-large", precision = "fp16_autocast", attention = "eager", optimizer_name = "sgd", batch_size = 32, sequence_length = 256 },
#     { model_name = "bert-large", precision = "bf16", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 64, sequence_length = 512 },
#     { model_name = "gpt2-medium", precision = "fp32", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 8, sequence_length = 1024 },
#     { model_name = "gpt2-medium", precision = "fp32", attention = "eager", optimizer_name = "adafactor", batch_size = 16, sequence_length = 512, checkpointing = true },
#     { model_name = "gpt2-medium", precision = "bf16_autocast", attention = "eager", optimizer_name = "adamw_foreach", batch_size = 8, sequence_length = 1024 },
#     { model_name = "gpt2-medium", precision = "fp16_autocast", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 16, sequence_length = 512 },
#     { model_name = "llama-3.2-1b", precision = "fp32", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 4, sequence_length = 1024 },
#     { model_name = "llama-3.2-1b", precision = "bf16_autocast", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 8, sequence_length = 2048 },
#     { model_name = "llama-3.2-1b", precision = "bf16_autocast", attention = "sdpa", optimizer_name = "adamw_foreach", batch_size = 2, sequence_length = 1024, accumulation = 4 },
#     { model_name = "llama-3.2-1b", precision = "bf16", attention = "eager", optimizer_name = "sgd", batch_size = 4, sequence_length = 2048 },
#     { model_name = "llama-3.2-1b", precision = "bf16", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 16, sequence_length = 2048, checkpointing = true },
#     { model_name = "t5-large", precision = "fp32", attention = "eager", optimizer_name = "adamw_fused", batch_size = 8, sequence_length = 512 },
#     { model_name = "t5-large", precision = "fp32", attention = "sdpa", optimizer_name = "adamw_foreach", batch_size = 16, sequence_length = 512, checkpointing = true },
#     { model_name = "t5-large", precision = "bf16_autocast", attention = "eager", optimizer_name = "adafactor", batch_size = 16, sequence_length = 256 },
#     { model_name = "t5-large", precision = "bf16", attention = "sdpa", optimizer_name = "sgd", batch_size = 16, sequence_length = 512 },
#     { model_name = "mixtral-small", precision = "fp32", attention = "sdpa", optimizer_name = "sgd", batch_size = 4, sequence_length = 1024 },
#     { model_name = "mixtral-small", precision = "bf16_autocast", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 4, sequence_length = 1024, checkpointing = true },
#     { model_name = "mixtral-small", precision = "bf16", attention = "sdpa", optimizer_name = "adamw_fused", batch_size = 8, sequence_length = 2048 },
# ]
# [tool.benchbook.metrics]
# parameter_count = { unit = "count" }
# # Bytes that the allocator repeats, and no claim compares: more setups instead of second runs.
# [tool.benchbook.on.accelerator]
# repeats = 1
# [tool.benchbook.on.cpu]
# divisor = 8
# [tool.benchbook.smallest]
# divisor = 8
# batch_size = 2
# [tool.benchbook.work]
# fp32 = '''
# (batch_size * sequence_length * {
#     'bert-large': 604e6 + 98304 * sequence_length,
#     'gpt2-medium': 707e6 + 98304 * sequence_length,
#     'llama-3.2-1b': 2.47e9 + 131072 * sequence_length,
#     't5-large': 1.475e9 + 294912 * sequence_length,
#     'mixtral-small': 872e6 + 65536 * sequence_length,
#  }[model_name] * (3 * accumulation * (4 if checkpointing else 3) + 1)
#  if precision == 'fp32' else 0)
# '''
# bf16 = '''
# (batch_size * sequence_length * {
#     'bert-large': 604e6 + 98304 * sequence_length,
#     'gpt2-medium': 707e6 + 98304 * sequence_length,
#     'llama-3.2-1b': 2.47e9 + 131072 * sequence_length,
#     't5-large': 1.475e9 + 294912 * sequence_length,
#     'mixtral-small': 872e6 + 65536 * sequence_length,
#  }[model_name] * (3 * accumulation * (4 if checkpointing else 3) + 1)
#  if precision != 'fp32' else 0)
# '''
# seconds = 0.5
# ///

# %% parameters
model_name = "bert-large"
precision = "fp32"
attention = "sdpa"
optimizer_name = "adamw_fused"
batch_size = 32
sequence_length = 512
checkpointing = False
accumulation = 1
divisor = 1  # of all that is long, wide or deep

# %% model
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
)

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(0)
kind, auto_class, dimensions, rest = {
    "bert-large": (
        "bert",
        AutoModelForSequenceClassification,
        {
            "vocab_size": 30522,
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
        },
        {},
    ),
    "gpt2-medium": (
        "gpt2",
        AutoModelForCausalLM,
        {"vocab_size": 50257, "n_embd": 1024, "n_layer": 24, "n_head": 16},
        {"loss_type": "ForCausalLM"},
    ),
    "llama-3.2-1b": (
        "llama",
        AutoModelForCausalLM,
        {
            "vocab_size": 128256,
            "hidden_size": 2048,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 8192,
        },
        {"tie_word_embeddings": True},
    ),
    "t5-large": (
        "t5",
        AutoModelForSeq2SeqLM,
        {
            "vocab_size": 32128,
            "d_model": 1024,
            "num_layers": 24,
            "num_heads": 16,
            "d_ff": 4096,
        },
        {"decoder_start_token_id": 0},
    ),
    "mixtral-small": (
        "mixtral",
        AutoModelForCausalLM,
        {
            "vocab_size": 32000,
            "hidden_size": 1024,
            "num_hidden_layers": 16,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "intermediate_size": 3584,
        },
        {"num_local_experts": 8, "num_experts_per_tok": 2},
    ),
}[model_name]
divided = {name: size // divisor for name, size in dimensions.items()}
config = AutoConfig.for_model(kind, **divided, **rest, use_cache=False)

weight_type = torch.bfloat16 if precision == "bf16" else torch.float32
with device:  # drawing the weights on the host would take longer than the training
    model = auto_class.from_config(
        config, dtype=weight_type, attn_implementation=attention
    )
model.train()
if device.type != "cpu":
    torch.accelerator.empty_cache()  # of weights that were tied, and so given up
if checkpointing:
    model.activation_checkpointing_enable()
parameter_count = model.num_parameters()
print(f"{model_name}: {parameter_count:,} parameters")

# %% optimizer
from transformers.optimization import Adafactor

optimizer = {
    "adamw_fused": lambda p: torch.optim.AdamW(p, lr=1e-5, fused=True),
    "adamw_foreach": lambda p: torch.optim.AdamW(p, lr=1e-5, foreach=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-5),
    "adafactor": lambda p: Adafactor(
        p, lr=1e-5, scale_parameter=False, relative_step=False
    ),
}[optimizer_name](model.parameters())

# %% data
shape = (batch_size, sequence_length // divisor)
ids = torch.randint(0, config.vocab_size, shape, device=device)
labels = ids[:, 0] % 2 if kind == "bert" else ids.clone()
batch = {"input_ids": ids, "labels": labels}

# %% train
types = {"bf16_autocast": torch.bfloat16, "fp16_autocast": torch.float16}
autocast = torch.autocast(
    device.type, dtype=types.get(precision), enabled=precision in types
)
scaler = torch.amp.GradScaler(
    device.type, init_scale=1024.0, enabled=precision == "fp16_autocast"
)
losses = []
for _ in range(3):
    for _ in range(accumulation):
        with autocast:
            loss = model(**batch).loss / accumulation
        scaler.scale(loss).backward()
    losses.append(loss.item())
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()

# %% checks
import math

expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
weights = list(model.parameters())
assert {weight.device.type for weight in weights} == {expected.type}
assert {weight.dtype for weight in weights} == {weight_type}
full = {  # as published, but for the last, computed by hand
    "bert-large": 335_143_938,
    "gpt2-medium": 354_823_168,
    "llama-3.2-1b": 1_235_814_400,
    "t5-large": 737_668_096,
    "mixtral-small": 1_525_318_656,
}
assert divisor != 1 or parameter_count == full[model_name]
assert model.config._attn_implementation == attention
assert model.is_activation_checkpointing == checkpointing

assert len(losses) == 3 and all(math.isfinite(loss) for loss in losses)
assert scaler.get_scale() == (1024.0 if scaler.is_enabled() else 1.0), "a step skipped"
with torch.no_grad(), autocast:
    logits = model(**batch).logits
assert logits.dtype == types.get(precision, weight_type)

group = optimizer.param_groups[0]
assert bool(group.get("fused")) == (optimizer_name == "adamw_fused")
assert bool(group.get("foreach")) == (optimizer_name == "adamw_foreach")
states = [
    state
    for states in optimizer.state.values()
    for state in states.values()
    if isinstance(state, torch.Tensor)
]
state_count = sum(state.numel() for state in states)
per_parameter = {"sgd": 0, "adafactor": 0.05}.get(optimizer_name, 2)
assert math.isclose(state_count / parameter_count, per_parameter, abs_tol=0.05)
