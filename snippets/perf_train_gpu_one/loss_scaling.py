"""Why fp16 needs a scaled loss, and what happens where the scale is too large."""
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
# layers = 24
# hidden_size = 1024
# heads = 16
# batch_size = 32
# sequence_length = 512
# [tool.benchbook.smallest]
# layers = 2
# hidden_size = 96
# batch_size = 2
# sequence_length = 32
# [tool.benchbook.work]
# host_values = "layers * 12 * hidden_size**2 + 31000 * hidden_size"
# fp32 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length))
# '''
# bf16 = '''
# (6 * batch_size * sequence_length
#  * layers * (12 * hidden_size**2 + 2 * hidden_size * sequence_length)
#  * (13 if number_format == 'float16' else 2))
# '''
# seconds = 2
# ///

# %% parameters
number_format = "float16"
scale = 65536  # where GradScaler starts
too_large = 16777216  # 2 to the power of 24
layers = 6
hidden_size = 384
heads = 12
batch_size = 4
sequence_length = 32

# %% setup
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
model = BertForSequenceClassification(config).to(device).eval()  # no dropout
ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length))
labels = torch.arange(batch_size) % 2
batch = {"input_ids": ids.to(device), "labels": labels.to(device)}
autocast = torch.autocast(device.type, dtype=getattr(torch, number_format))


# %% lost_gradients
def gradient_of(loss, scale):
    model.zero_grad()
    (scale * loss).backward()
    gradients = [weight.grad.flatten() for weight in model.parameters()]
    return torch.cat(gradients) / scale


exact = gradient_of(model(**batch).loss, scale=1)
with autocast:
    loss = model(**batch).loss
gradient = gradient_of(loss, scale)
there = exact != 0
lost_gradients = ((gradient == 0) & there).sum().item() / there.sum().item()
gradient_difference = ((gradient - exact).norm() / exact.norm()).item()
print(f"{number_format}, loss times {scale}: {lost_gradients:.3%} of the gradient is 0")
print(f"it differs from that of fp32 by {gradient_difference:.1e}")

# %% scaled_step
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
scaler = torch.amp.GradScaler(device.type, init_scale=too_large)


def scaled_step():
    with autocast:
        loss = model(**batch).loss
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # does nothing if the gradient is not finite
    scaler.update()  # then halves the scale
    optimizer.zero_grad()


# %% overflow
watched = model.bert.encoder.layer[0].attention.self.query.weight
before = watched.detach().clone()
skipped = []
while torch.equal(watched, before):
    skipped.append(scaler.get_scale())
    scaled_step()
skipped.pop()  # at this scale the step was taken
skipped_steps = len(skipped)
scale_found = scaler.get_scale()
print(f"from a scale of {too_large}, {skipped_steps} steps skipped")
print(f"the first one taken at a scale of {scale_found:.0f}")

# %% checks
assert watched.device.type == device.type
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
