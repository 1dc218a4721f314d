"""Why fp16 needs a scaled loss, what happens where the scale is too large, and where none helps."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["accelerator", "cpu"]
# worth = 1
# timeout = 300
# repeats = 2
# [tool.benchbook.metrics]
# lost_gradients = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# skipped_steps = { unit = "steps", better = "lower" }
# scale_found = { unit = "1" }
# [[tool.benchbook.matrix]]
# number_format = "float16"
# scale = 1
# [[tool.benchbook.matrix]]
# number_format = "float16"
# scale = 65536
# [[tool.benchbook.matrix]]
# number_format = "bfloat16"
# scale = 1
# [tool.benchbook.on.accelerator]
# layers = 12
# hidden_size = 1024
# heads = 16
# batch_size = 8
# sequence_length = 128
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 96
# batch_size = 2
# sequence_length = 32
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length))
# '''
# bf16 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (13 if number_format == 'float16' else 3))
# '''
# seconds = 0.2
# ///

# %% parameters
number_format = "float16"
scale = 65536  # where GradScaler starts
too_large = 16777216  # 2 to the power of 24
layers = 4
hidden_size = 384
heads = 12
batch_size = 2
sequence_length = 32

# %% setup
import math

import torch
from transformers import BertConfig, BertForSequenceClassification, set_seed

device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
set_seed(0)
config = BertConfig(
    hidden_size=hidden_size,
    num_hidden_layers=layers,
    num_attention_heads=heads,
    intermediate_size=4 * hidden_size,
)
with device:
    model = BertForSequenceClassification(config).eval()  # no dropout
    ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length))
    labels = torch.arange(batch_size) % 2
batch = {"input_ids": ids, "labels": labels}
dtype = getattr(torch, number_format)


# %% lost_gradients
def gradient_of(loss, scale):
    model.zero_grad()
    (scale * loss).backward()
    gradients = [weight.grad.flatten() for weight in model.parameters()]
    return torch.cat(gradients) / scale


exact = gradient_of(model(**batch).loss, scale=1)
with torch.autocast(device.type, dtype):
    loss = model(**batch).loss
gradient = gradient_of(loss, scale)
there = exact != 0
lost_gradients = ((gradient == 0) & there).sum().item() / there.sum().item()
gradient_difference = ((gradient - exact).norm() / exact.norm()).item()
model.zero_grad()
print(f"{number_format}, loss times {scale}: {lost_gradients:.3%} of the gradient is 0")
print(f"it differs from that of fp32 by {gradient_difference:.1e}")

# %% scaled_step
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
watched = model.bert.encoder.layer[0].attention.self.query.weight
before = watched.detach().clone()
if number_format == "float16" and scale == 65536:
    batches = [batch]
    # region pytorch
    scaler = torch.amp.GradScaler(device.type)
    for batch in batches:
        with torch.autocast(device.type, torch.float16):
            loss = model(**batch).loss
        scaler.scale(loss).backward()
        # Needed only where gradients are clipped or read
        scaler.unscale_(optimizer)
        weights = model.parameters()
        torch.nn.utils.clip_grad_norm_(weights, max_norm=1.0)
        # Skips the step if a gradient is infinite or NaN
        scaler.step(optimizer)
        # Then halves the scale
        scaler.update()
        optimizer.zero_grad()
    # endregion
    usual_scale = scaler.get_scale()
    usual_steps = int(not torch.equal(watched, before))
    print(
        f"from the usual scale, {usual_steps} of 1 steps taken, then {usual_scale:.0f}"
    )

# %% overflow
before = watched.detach().clone()
scaler = torch.amp.GradScaler(device.type, init_scale=too_large)
skipped = []
for _ in range(20):
    skipped.append(scaler.get_scale())
    with torch.autocast(device.type, dtype):
        loss = model(**batch).loss
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    if not torch.equal(watched, before):
        break
skipped.pop()  # at this scale the step was taken
skipped_steps = len(skipped)
scale_found = scaler.get_scale()
print(f"from a scale of {too_large}, {skipped_steps} steps skipped")
print(f"the first one taken at a scale of {scale_found:.0f}")

# %% large_activations
with torch.no_grad():  # sums of more than 65504, as some layers of some models have
    model.bert.encoder.layer[0].intermediate.dense.weight *= 100
    model.bert.encoder.layer[0].output.dense.weight *= 30000
with torch.no_grad(), torch.autocast(device.type, dtype):
    plain_loss = model(**batch).loss.item()
if number_format == "float16":
    # region pytorch_upcast
    def in_float32(layer):
        forward = layer.forward

        def upcast(hidden):
            with torch.autocast(device.type, enabled=False):
                return forward(hidden.float())

        layer.forward = upcast

    # The layer whose output is infinite in fp16
    in_float32(model.bert.encoder.layer[0].output.dense)
    # endregion
with torch.autocast(device.type, dtype):
    upcast_loss = model(**batch).loss
upcast_gradient = gradient_of(upcast_loss, scale)
print(f"loss with large activations: {plain_loss:.3f}")
print(f"with that layer in fp32: {upcast_loss.item():.3f}")

# %% checks
assert watched.device.type == device.type == loss.device.type
assert watched.dtype == torch.float32 and watched.isfinite().all()
assert loss.isfinite() and gradient.isfinite().all() and exact.norm() > 0
assert scale_found == too_large / 2**skipped_steps
assert skipped == [too_large / 2**step for step in range(skipped_steps)]
if number_format == "float16":
    assert (lost_gradients > 0.0001) == (scale == 1)
    assert 0 < skipped_steps < 20
else:
    assert lost_gradients < 0.001
    assert skipped_steps == 0
assert gradient_difference < 0.1 or scale == 1
if number_format == "float16" and scale == 65536:
    assert usual_steps == 1 or usual_scale == 65536 / 2

# Where an activation overflows, no scale helps: that layer in fp32 does, or bf16.
assert math.isfinite(plain_loss) == (number_format == "bfloat16")
assert upcast_loss.isfinite() and upcast_gradient.isfinite().all()
