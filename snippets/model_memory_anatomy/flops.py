"""The floating-point operations of one training step: forward, backward, and by group of operations."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# # Counted on shapes alone, which no device changes.
# needs = ["cpu"]
# worth = 1
# timeout = 120
# [tool.benchbook.metrics]
# forward_flops = { unit = "FLOP" }
# backward_flops = { unit = "FLOP" }
# backward_to_forward = { unit = "1" }
# contraction_flops = { unit = "FLOP" }
# normalisation_flops = { unit = "FLOP" }
# elementwise_flops = { unit = "FLOP" }
# contraction_share = { unit = "1" }
# normalisation_share = { unit = "1" }
# elementwise_share = { unit = "1" }
# [tool.benchbook.matrix]
# checkpointing = [false, true]
# [tool.benchbook.smallest]
# layers = 2
# [tool.benchbook.work]
# seconds = 3
# ///

# %% parameters
layers = 24
batch_size = 4
sequence_length = 512
checkpointing = False

# %% setup
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertForSequenceClassification

config = BertConfig(
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
    attn_implementation="eager",  # every operation of the attention by itself
)
with torch.device("meta"):  # shapes alone: the operations are counted, not run
    model = BertForSequenceClassification(config).train()
    ids = torch.zeros(batch_size, sequence_length, dtype=torch.long)
    labels = torch.zeros(batch_size, dtype=torch.long)
if checkpointing:
    model.activation_checkpointing_enable()

# %% step
with FlopCounterMode(display=False) as forward:
    loss = model(ids, labels=labels).loss
with FlopCounterMode(display=False) as backward:
    loss.backward()

forward_flops = forward.get_total_flops()
backward_flops = backward.get_total_flops()
backward_to_forward = backward_flops / forward_flops
print(f"forward:  {forward_flops / 1e12:.3f} TFLOP")
print(f"backward: {backward_flops / 1e12:.3f} TFLOP, {backward_to_forward:.3f} times")

# %% operations
# For each element: an addition, a multiplication, an exponential or erf is one each.
aten = torch.ops.aten
normalisations = {
    aten.native_layer_norm: 8,  # mean 1, variance 3, scaling 2, weight and bias 2
    aten.native_layer_norm_backward: 13,  # bias 1, weight 4, input 8
    aten._softmax: 5,  # maximum, subtraction, exponential, sum, division
    aten._softmax_backward_data: 4,
}
elementwise = {
    aten.gelu: 5,  # x / 2 * (1 + erf(x / sqrt(2)))
    aten.gelu_backward: 11,
    aten.bernoulli_: 1,  # dropout draws a mask,
    aten.div_: 1,  # scales it,
    aten.mul: 1,  # and multiplies; so does the scale of the attention
    aten.add: 1,  # residuals, forward and backward
    aten.sum: 1,  # gradients of biases
    aten.embedding_dense_backward: 1,
}


# %% groups
def per_element(operations):
    return lambda shape, *_, **__: operations * shape.numel()


model.zero_grad()
counted = {**normalisations, **elementwise}
mapping = {op: per_element(operations) for op, operations in counted.items()}
with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
    model(ids, labels=labels).loss.backward()

counts = counter.get_flop_counts()["Global"]
total = sum(counts.values())
normalisation_flops = sum(counts[op] for op in normalisations)
elementwise_flops = sum(counts[op] for op in elementwise)
contraction_flops = total - normalisation_flops - elementwise_flops
contraction_share = contraction_flops / total
normalisation_share = normalisation_flops / total
elementwise_share = elementwise_flops / total
print(f"contractions:   {contraction_share:7.2%}")
print(f"normalisations: {normalisation_share:7.2%}")
print(f"element-wise:   {elementwise_share:7.2%}")

# %% checks
tokens, hidden = batch_size * sequence_length, config.hidden_size
layer = 2 * tokens * (4 * hidden**2 + 2 * hidden * config.intermediate_size)
layer += 2 * 2 * tokens * sequence_length * hidden  # the attention's two products
head = 2 * batch_size * (hidden**2 + hidden * config.num_labels)
assert forward_flops == layers * layer + head
again = forward_flops - head if checkpointing else 0  # its layers run a second time
assert backward_flops == 2 * forward_flops + again
assert contraction_flops == forward_flops + backward_flops
assert contraction_share > 0.99
assert all(counts[op] > 0 for op in counted)
assert loss.device.type == "meta"
