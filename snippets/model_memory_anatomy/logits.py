"""What the loss makes of the logits when the vocabulary is large."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# worth = 4
# timeout = 300
# meters = ["cpu_allocator"]
# [tool.benchbook.metrics]
# logits_memory = { unit = "B", better = "lower", memory = "device" }
# loss_kept = { unit = "B", better = "lower", memory = "device" }
# loss_kept_formula = { unit = "B" }
# bytes_per_logit = { unit = "1", better = "lower" }
# layer_kept = { unit = "B", better = "lower", memory = "device" }
# loss_in_layers = { unit = "1" }
# [tool.benchbook.smallest]
# sequence_length = 64
# hidden_size = 128
# [tool.benchbook.work]
# host_values = "vocabulary * hidden_size + 15 * layers * hidden_size**2"
# bf16 = '''
# (6 * batch_size * sequence_length
#  * (vocabulary * hidden_size + 15 * layers * hidden_size**2 + 2 * layers * hidden_size * sequence_length))
# '''
# seconds = 0.5
# ///

# %% parameters
batch_size = 1
sequence_length = 512
vocabulary = 128256
hidden_size = 2048
layers = 2

# %% setup
import torch
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.loss.loss_utils import ForCausalLMLoss

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
torch.manual_seed(42)
tokens = torch.randint(0, vocabulary, (batch_size, sequence_length)).to(device)
print(f"device: {device.type}, {batch_size} x {sequence_length}, {vocabulary} words")

# %% loss
logits = torch.zeros(
    (batch_size, sequence_length, vocabulary),
    dtype=torch.bfloat16,
    device=device,
    requires_grad=True,
)
loss = ForCausalLMLoss(logits, tokens, vocabulary)  # the loss of a Llama, alone
loss.backward()
print(f"loss of an even guess: {loss.item():.3f}")

# %% model
even_guess = loss.item()
gradient_type = logits.grad.dtype
del logits, loss
config = LlamaConfig(
    vocab_size=vocabulary,
    hidden_size=hidden_size,
    intermediate_size=4 * hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=32,
    num_key_value_heads=8,
    tie_word_embeddings=True,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).to(device)

# %% count
weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
kept_by_loss, kept_by_layers = {}, {}  # a storage saved twice is held once


def count(tensor):
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in weights:
        of_loss = tensor.shape[-1:] == (vocabulary,)
        kept = kept_by_loss if of_loss else kept_by_layers
        kept[storage.data_ptr()] = storage.nbytes()
    return tensor


# %% forward
with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
    output = model(tokens, labels=tokens)

logits_memory = output.logits.nbytes
loss_kept = logits_memory + sum(kept_by_loss.values())
layer_kept = sum(kept_by_layers.values()) / layers
bytes_per_logit = loss_kept / output.logits.numel()
loss_in_layers = loss_kept / layer_kept
print(f"logits, and what the loss keeps: {loss_kept / 2**20:.0f} MiB")
print(f"a layer keeps:                   {layer_kept / 2**20:.0f} MiB")

# %% backward
output.loss.backward()

# %% formula
loss_kept_formula = (2 + 4) * batch_size * sequence_length * vocabulary
print(f"(2 + 4) x batch x sequence x vocabulary: {loss_kept_formula / 2**20:.0f} MiB")

# %% checks
import math

expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert model.device.type == expected.type, "this ran on the CPU beside an accelerator"
assert abs(even_guess - math.log(vocabulary)) < 1e-3
assert gradient_type == torch.bfloat16 == output.logits.dtype
assert model.lm_head.weight.grad.isfinite().all()
assert loss_kept == loss_kept_formula
