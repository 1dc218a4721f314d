"""What takes the memory on a CPU, where there is no memory snapshot: the profiler's memory events."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 2
# environment = { KINETO_LOG_LEVEL = "6" }
# [tool.benchbook.metrics]
# peak_memory = { unit = "B", better = "lower" }
# growth = { unit = "B", better = "lower" }
# largest_request = { unit = "B" }
# logits = { unit = "B" }
# [tool.benchbook.matrix]
# fault = ["none", "outputs_kept"]
# [tool.benchbook.smallest]
# vocab_size = 2048
# ///

# %% parameters
fault = "none"
batch_size = 8
sequence_length = 64
hidden_size = 128
layers = 4
vocab_size = 16384
steps = 3
seed = 42

# %% setup
import tempfile
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, set_seed

set_seed(seed)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=hidden_size,
        intermediate_size=4 * hidden_size,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
    )
).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
batch = torch.randint(vocab_size, (batch_size, sequence_length))
path = Path(tempfile.mkdtemp()) / "trace.json"
kept = []


def step():
    output = model(input_ids=batch, labels=batch)
    output.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if fault == "outputs_kept":
        # region outputs_kept
        kept.append(output)
        # endregion
    else:
        # region loss_kept
        kept.append(output.loss.item())
        # endregion


step()

# %% profile
# region events
import json

from torch.profiler import profile, record_function

with profile(profile_memory=True) as run:
    for _ in range(steps):
        with record_function("step"):
            step()
run.export_chrome_trace(str(path))
events = json.loads(path.read_text())["traceEvents"]


def within(e, span):
    return 0 <= e["ts"] - span["ts"] <= span.get("dur", -1)


def ops(e, names=("aten::", "step")):
    around = [s["name"] for s in spans if within(e, s)]
    return [n for n in around if n.startswith(names)]


def total(e):  # bytes, after the request
    return e["args"]["Total Allocated"]


spans = [e for e in events if e.get("ph") == "X"]
requests = [e for e in events if e["name"] == "[memory]"]
peak = max(requests, key=total)
print(total(peak), "bytes in", *ops(peak))
for span in spans:  # what each step leaves behind
    if span["name"] == "step":
        inside = [e for e in requests if within(e, span)]
        print(total(inside[-1]), "bytes after it")
# endregion

# %% numbers
after = [
    total([e for e in requests if within(e, span)][-1])
    for span in spans
    if span["name"] == "step"
]
# What the profiler did not see before does not count.
peak_memory = total(peak)
growth = (after[-1] - after[0]) / (len(after) - 1)
logits = batch_size * sequence_length * vocab_size * 4  # bytes, in fp32
largest_request = max(e["args"]["Bytes"] for e in requests)

# %% checks
assert len(after) == steps
assert largest_request >= logits
assert ops(peak) == ["step", "aten::_log_softmax_backward_data"], ops(peak)
if fault == "none":
    assert abs(growth) < 1000, growth
else:  # at least the logits of each step
    assert growth >= logits, growth
