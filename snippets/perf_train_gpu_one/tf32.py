"""What TF32 makes of the time and of the gradient of training a BERT of twelve wide layers in fp32."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cuda"]
# worth = 3
# timeout = 600
# repeats = 8
# [tool.benchbook.metrics]
# samples_per_second = { unit = "samples/s", better = "higher" }
# step_seconds = { unit = "s", better = "lower" }
# peak_memory = { unit = "B", better = "lower", memory = "device" }
# product_error = { unit = "1", better = "lower" }
# gradient_difference = { unit = "1", better = "lower" }
# [tool.benchbook.matrix]
# tf32 = [false, true]
# [tool.benchbook.on.accelerator]
# repeats = 3
# [tool.benchbook.smallest]
# layers = 2
# batch_size = 2
# sequence_length = 32
# timed_steps = 1
# [tool.benchbook.work]
# fp32 = '''
# (6 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  * (1 if tf32 else 4 + timed_steps))
# '''
# tf32 = '''
# (6 * batch_size * sequence_length * layers * (12.6e6 + 2048 * sequence_length)
#  * (3 + timed_steps if tf32 else 0))
# '''
# seconds = 1
# ///

# %% parameters
tf32 = True
layers = 12
batch_size = 32
sequence_length = 512
timed_steps = 3

# %% setup
import tempfile
import time
from functools import partial
from statistics import median

import torch
import transformers
from transformers import BertConfig, BertForSequenceClassification, set_seed

if not torch.cuda.is_available() or torch.cuda.get_device_capability() < (8, 0):
    raise SystemExit("TF32 is a mode of NVIDIA GPUs from Ampere on, and none is here.")
device = torch.device("cuda")
set_seed(0)
config = BertConfig(
    hidden_size=1024,
    num_hidden_layers=layers,
    num_attention_heads=16,
    intermediate_size=4096,
)
with device:
    model = BertForSequenceClassification(config)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
ids = torch.randint(0, config.vocab_size, (batch_size, sequence_length), device=device)
labels = torch.arange(batch_size, device=device) % 2


# %% exact
def gradient():
    model.eval().zero_grad()  # no dropout: nothing but rounding differs
    model(ids, labels=labels).loss.backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


factors = torch.randn(2, 2048, 2048, device=device)
exact_product = factors[0].double() @ factors[1].double()
torch.backends.fp32_precision = "ieee"
exact_gradient = gradient()

TrainingArguments = partial(transformers.TrainingArguments, report_to="none")

# %% with_pytorch
if tf32:
    # region pytorch
    # Once, before the model runs
    torch.backends.fp32_precision = "tf32"
    # endregion
else:
    torch.backends.fp32_precision = "ieee"

# %% rounding
product = factors[0] @ factors[1]
product_error = ((product - exact_product).norm() / exact_product.norm()).item()
loop_gradient = gradient()
gradient_error = (loop_gradient - exact_gradient).norm() / exact_gradient.norm()
gradient_difference = gradient_error.item()
torch.backends.fp32_precision = "ieee"  # what follows is Trainer's to set

# %% with_trainer
if tf32:
    # region trainer
    args = TrainingArguments(
        output_dir="output",
        tf32=True,
    )
    # endregion
else:
    args = TrainingArguments(output_dir=tempfile.mkdtemp(), tf32=False)

# %% time
trainer_product = factors[0] @ factors[1]
del factors, exact_product, exact_gradient, loop_gradient
model.train()
seconds = []
for _ in range(2 + timed_steps):
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    loss = model(ids, labels=labels).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    seconds.append(time.perf_counter() - start)
step_seconds = median(seconds[2:])
samples_per_second = batch_size / step_seconds
peak_memory = torch.cuda.max_memory_allocated()
print(f"tf32={tf32}: {samples_per_second:.1f} samples/s")
print(
    f"a product is off by {product_error:.1e}, the gradient {gradient_difference:.1e}"
)

# %% checks
assert args.tf32 == tf32
assert loss.isfinite() and loss.device.type == "cuda"
assert {weight.dtype for weight in model.parameters()} == {torch.float32}
assert torch.equal(product, trainer_product), "Trainer sets another mode than the loop"
assert (product_error > 1e-5) == tf32
assert product_error < 1e-2
assert (gradient_difference > 1e-5) == tf32
assert gradient_difference < 0.05
