"""What names the layer where the first inf or NaN arises, and what it costs in each step."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 8
# environment = { MALLOC_MMAP_MAX_ = "0", MALLOC_TRIM_THRESHOLD_ = "100000000000" }
# [tool.benchbook.metrics]
# step_seconds = { unit = "s", better = "lower" }
# names_forward_fault = { unit = "1" }
# names_backward_fault = { unit = "1" }
# [tool.benchbook.matrix]
# detector = ["none", "hook", "underflow_overflow", "anomaly"]
# [tool.benchbook.smallest]
# timed_steps = 1
# ///

# %% parameters
detector = "hook"
batch_size = 4
sequence_length = 64
hidden_size = 128
layers = 4
warmup_steps = 2
timed_steps = 6
seed = 42

# %% setup
import contextlib
import io
import math
import time
from textwrap import fill

import torch
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

set_seed(seed)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=1024,
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
batch = torch.randint(1024, (batch_size, sequence_length))

# %% detector
if detector == "hook":
    # region hook
    from functools import partial

    def stop(module, inputs, out, name):
        if torch.is_tensor(out) and not out.isfinite().all():
            raise ValueError(f"inf or NaN from {name}")

    for name, module in model.named_modules():
        module.register_forward_hook(partial(stop, name=name))
    # endregion
elif detector == "underflow_overflow":
    # region underflow_overflow
    from transformers.debug_utils import DebugUnderflowOverflow

    debugger = DebugUnderflowOverflow(model)
    # endregion
elif detector == "anomaly":
    # region anomaly
    torch.autograd.set_detect_anomaly(True)
    # endregion


# %% steps
def step():
    loss = model(input_ids=batch, labels=batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


losses = [step() for _ in range(warmup_steps)]
begin = time.perf_counter()
losses += [step() for _ in range(timed_steps)]
step_seconds = (time.perf_counter() - begin) / timed_steps


# %% told
def told(work):
    """The loss of work, or the error, and what was printed before it."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            said = f"loss {work():.3f}"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    return said, printed.getvalue()


# %% backward_fault


def length_loss():
    # region backward_fault_lines
    # A length of zero is finite; its gradient is 0 / 0.
    hidden = model.model(input_ids=batch).last_hidden_state
    difference = hidden - hidden.detach()
    loss = difference.pow(2).sum(-1).sqrt().mean()
    loss.backward()
    # endregion
    return loss.item()


backward_told, backward_printed = told(length_loss)
print(fill(backward_told, 88, break_long_words=False))
spoiled = [
    weight.grad is None or weight.grad.isnan().any() for weight in model.parameters()
]
optimizer.zero_grad()

# %% forward_fault
mlp = model.model.layers[2].mlp
# region forward_fault_lines
# Finite weights, whose products are too large for fp32.
with torch.no_grad():
    mlp.up_proj.weight.mul_(1e24)
    mlp.down_proj.weight.mul_(1e24)
# endregion
forward_told, forward_printed = told(step)
print(fill(forward_told, 88, break_long_words=False))

# %% summary
names_forward_fault = "layers.2.mlp.down_proj" in forward_told + forward_printed
# The operation of the backward pass, and the line that called its forward pass.
names_backward_fault = "PowBackward0" in backward_told

# %% texts
fixed_parts = {"nan_gradient": ["returned nan values in its"]}

# %% checks
assert len(losses) == warmup_steps + timed_steps
assert all(math.isfinite(loss) for loss in losses)
assert names_forward_fault == (detector in ("hook", "underflow_overflow"))
assert names_backward_fault == (detector == "anomaly")
if detector == "none":
    # Nobody is told.
    assert (forward_told, backward_told) == ("loss nan", "loss 0.000")
elif detector == "underflow_overflow":
    # The report ends with the module whose output is not finite.
    report = forward_printed.strip().splitlines()
    assert "nan" in report[-1] and report[-1].endswith("output")
    assert report[-4].split()[0] == "model.layers.2.mlp.down_proj"
elif detector == "anomaly":
    # What overflowed is not named, only the first gradient that it spoiled.
    assert "LogSoftmaxBackward0" in forward_told
    assert ".sqrt().mean()" in backward_printed
    for text in (forward_told, backward_told):
        assert fixed_parts["nan_gradient"][0] in text
# The loss does not show what spoils the gradient.
if detector != "anomaly":
    assert backward_told == "loss 0.000"
    assert all(spoiled)
