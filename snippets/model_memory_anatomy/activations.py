"""What the forward pass of BERT-large keeps for the backward pass, against a published formula.

`formula` counts the terms of equation 2 of Korthikanti et al., 2022 (arXiv 2205.05198),
written for 32 bits: with s the sequence length, b the batch size, h the hidden size and a the heads, a layer
keeps s*b*h*(66 + 9*a*s/h) bytes, and 66*s*b*h where the attention matrix is not kept (34 + 5*a*s/h and 34 in
16 bits). The paper's dropout masks take one byte an element, as on a GPU; PyTorch on a CPU keeps them as floats.
"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# worth = 4
# timeout = 300
# repeats = 2
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# matrix = [
#     { batch_size = 1, sequence_length = 512, attention = "eager", dropout = 0.0 },
#     { batch_size = 2, sequence_length = 512, attention = "eager", dropout = 0.0 },
#     { batch_size = 4, sequence_length = 512, attention = "eager", dropout = 0.0, repeats = 2 },
#     { batch_size = 8, sequence_length = 512, attention = "eager", dropout = 0.0 },
#     { batch_size = 1, sequence_length = 512, attention = "sdpa", dropout = 0.0 },
#     { batch_size = 2, sequence_length = 512, attention = "sdpa", dropout = 0.0 },
#     { batch_size = 4, sequence_length = 512, attention = "sdpa", dropout = 0.0, repeats = 2 },
#     { batch_size = 8, sequence_length = 512, attention = "sdpa", dropout = 0.0 },
#     { batch_size = 4, sequence_length = 512, attention = "eager", dropout = 0.1, repeats = 2 },
#     { batch_size = 4, sequence_length = 512, attention = "sdpa", dropout = 0.1, repeats = 2 },
#     { batch_size = 4, sequence_length = 128, attention = "eager", dropout = 0.0 },
#     { batch_size = 4, sequence_length = 256, attention = "eager", dropout = 0.0 },
#     { batch_size = 4, sequence_length = 1024, attention = "eager", dropout = 0.0 },
#     { batch_size = 4, sequence_length = 128, attention = "sdpa", dropout = 0.0 },
#     { batch_size = 4, sequence_length = 256, attention = "sdpa", dropout = 0.0 },
#     { batch_size = 4, sequence_length = 1024, attention = "sdpa", dropout = 0.0 },
# ]
# [tool.benchbook.metrics]
# activations = { unit = "B", better = "lower", memory = "device" }
# formula = { unit = "B" }
# formula_error = { unit = "1" }
# published_formula = { unit = "B" }
# hidden_state_copies = { unit = "1", better = "lower" }
# per_token = { unit = "B", better = "lower" }
# # The checks hold each run to the formula; what a claim compares runs twice.
# [tool.benchbook.on.accelerator]
# repeats = 1
# [tool.benchbook.smallest]
# layers = 2
# batch_size = 1
# sequence_length = 128
# [tool.benchbook.work]
# host_values = "32.8e6 + 12.6e6 * layers"
# fp32 = '''
# 2 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
# '''
# seconds = 0.5
# ///

# %% parameters
batch_size = 4
sequence_length = 512
attention = "eager"
dropout = 0.1
layers = 24

# %% model
import torch
from transformers import BertConfig, BertForSequenceClassification

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(42)
config = BertConfig(
    vocab_size=30522,
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
    max_position_embeddings=max(512, sequence_length),
    hidden_dropout_prob=dropout,
    attention_probs_dropout_prob=dropout,
    attn_implementation=attention,
)
model = BertForSequenceClassification(config).to(device)

# %% data
shape = (batch_size, sequence_length)
tokens = torch.randint(0, config.vocab_size, shape).to(device)
labels = torch.randint(0, 2, (batch_size,)).to(device)
print(f"device: {device.type}, {batch_size} x {sequence_length}, {attention}")

# %% count
weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
saved = {}  # a storage saved twice is held once


def count(tensor):
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in weights:
        saved[storage.data_ptr()] = storage.nbytes()
    return tensor


with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
    loss = model(tokens, labels=labels).loss

activations = sum(saved.values())
print(f"kept for the backward pass: {activations / 2**20:.1f} MiB")

# %% per_layer
hidden_state = batch_size * sequence_length * config.hidden_size
hidden_state_copies = activations / layers / (4 * hidden_state)
per_token = activations / (batch_size * sequence_length)
print(f"{hidden_state_copies:.1f} hidden states per layer, in fp32")

# %% formula
scores = config.num_attention_heads * batch_size * sequence_length**2
mask = 4 if device.type == "cpu" else 1  # bytes of a dropout mask, per element
if dropout:
    per_hidden, per_score = 64 + 2 * mask, 4 + mask + 4
else:
    per_hidden, per_score = 64, 4
if attention == "sdpa" and (device.type != "cpu" or not dropout):
    per_score = 0  # no kernel for dropout on a CPU: it falls back to the matrix
formula = layers * (per_hidden * hidden_state + per_score * scores)
formula_error = activations / formula - 1
published_formula = layers * (66 * hidden_state + 9 * scores * (per_score > 0))
print(f"by the formula: {formula / 2**20:.1f} MiB ({formula_error:+.2%})")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert model.device.type == expected.type, "this ran on the CPU beside an accelerator"
assert model.config._attn_implementation == attention
assert loss.requires_grad and loss.isfinite()
parameters = sum(weight.numel() for weight in model.parameters())
longer = config.max_position_embeddings - 512
assert layers != 24 or parameters == 335_143_938 + longer * config.hidden_size
outside = (activations - formula) / (4 * hidden_state)  # embeddings, statistics, head
assert 0 < outside < 5, outside
assert layers != 24 or abs(formula_error) < 0.01, formula_error
