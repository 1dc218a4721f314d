"""Gradient accumulation against one big batch: equal micro-batches, unequal ones, token-normalised."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# worth = 1
# timeout = 120
# [tool.benchbook.metrics]
# equal_difference = { unit = "1", better = "lower" }
# mean_of_means_difference = { unit = "1", better = "lower" }
# token_normalised_difference = { unit = "1", better = "lower" }
# big_batch_loss = { unit = "1" }
# mean_of_means_loss = { unit = "1" }
# token_normalised_loss = { unit = "1" }
# [tool.benchbook.work]
# seconds = 1
# ///

# %% parameters
seed = 42
micro_batches = 3
sequences = 4
sequence_length = 32
answer_tokens = [2, 6, 16]  # per sequence, in the first, second and third micro-batch

# %% setup
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from transformers import LlamaConfig, LlamaForCausalLM

accelerator = Accelerator()
device = accelerator.device
set_seed(seed)
config = LlamaConfig(
    vocab_size=256,
    hidden_size=64,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=sequence_length,
)
model = LlamaForCausalLM(config).to(device)
print(f"device: {device.type}")

# %% data
shape = (micro_batches * sequences, sequence_length)
tokens = torch.randint(0, config.vocab_size, shape).to(device)
equal_labels = tokens.clone()  # every token counts, as in pretraining
unequal_labels = tokens.clone()  # only the answer counts, as in fine-tuning
for index, answer in enumerate(answer_tokens):
    rows = slice(index * sequences, (index + 1) * sequences)
    unequal_labels[rows, :-answer] = -100  # positions that the loss leaves out


# %% gradient
def gradient(labels, pieces, normalise_by_tokens=False):
    """Loss and gradient of one optimizer step, in `pieces` micro-batches."""
    model.zero_grad()
    total = 0.0
    for ids, part in zip(tokens.chunk(pieces), labels.chunk(pieces)):
        if normalise_by_tokens:
            # region count_tokens
            # Of all micro-batches; nothing predicts the first token.
            total_tokens = (labels[:, 1:] != -100).sum()
            outputs = model(
                ids,
                labels=part,
                num_items_in_batch=total_tokens,
            )
            # accelerator.backward(loss) divides it again:
            # multiply it by the accumulation steps for that.
            loss = outputs.loss
            # endregion
        else:
            loss = model(ids, labels=part).loss / pieces
        loss.backward()
        total += loss.item()
    gradients = [weight.grad.flatten() for weight in model.parameters()]
    return total, torch.cat(gradients)


def difference(gradients, wanted):
    return ((gradients - wanted).norm() / wanted.norm()).item()


# %% equal
_, big_batch = gradient(equal_labels, pieces=1)
_, accumulated = gradient(equal_labels, pieces=micro_batches)
equal_difference = difference(accumulated, big_batch)
print(f"equal micro-batches: gradient differs by {equal_difference:.1e}")

# %% unequal
big_batch_loss, big_batch = gradient(unequal_labels, pieces=1)
mean_of_means_loss, accumulated = gradient(unequal_labels, pieces=micro_batches)
mean_of_means_difference = difference(accumulated, big_batch)
print(f"loss of the big batch: {big_batch_loss:.4f}")
print(f"loss, mean of means:   {mean_of_means_loss:.4f}")
print(f"its gradient differs by {mean_of_means_difference:.1e}")

# %% token_normalised
token_normalised_loss, accumulated = gradient(
    unequal_labels, pieces=micro_batches, normalise_by_tokens=True
)
token_normalised_difference = difference(accumulated, big_batch)
print(f"loss, token-normalised: {token_normalised_loss:.4f}")
print(f"its gradient differs by {token_normalised_difference:.1e}")

# %% checks
expected = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
assert device.type == expected.type, "this ran on the CPU beside an accelerator"
assert equal_difference < 1e-5
assert mean_of_means_difference > 0.1
assert token_normalised_difference < 1e-5
assert abs(token_normalised_loss - big_batch_loss) < 1e-5 * big_batch_loss
