"""What ONNX Runtime says of a prompt that is not as long as the one that was exported, and what it takes instead."""
# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "torch>=2.11", "transformers>=5.23", "accelerate>=1.15",
#     "onnx>=1.23", "onnxscript>=0.7", "onnxruntime>=1.32",
# ]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# [tool.benchbook.metrics]
# fixed_lengths = { unit = "count" }
# free_lengths = { unit = "count" }
# lengths_tried = { unit = "count" }
# [tool.benchbook.smallest]
# layers = 1
# ///

# %% parameters
layers = 2

# %% setup
import tempfile

import onnxruntime
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
torch.set_grad_enabled(False)
folder = tempfile.TemporaryDirectory()
config = LlamaConfig(
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=layers,
    num_attention_heads=4,
    num_key_value_heads=4,
    vocab_size=100,
)


model = LlamaForCausalLM(config).eval()
prompt = torch.randint(100, (1, 128))


def lengths_taken(session):
    """Of how many lengths a session gives what the model does."""
    taken = 0
    for length in lengths:
        ids = prompt[:, :length]
        try:
            (scores,) = session.run(None, {"input_ids": ids.numpy()})
        except Exception:
            continue
        right = model(ids).logits
        taken += torch.allclose(torch.from_numpy(scores), right, atol=1e-4)
    return taken


lengths = [16, 64, 100, 128]
lengths_tried = len(lengths)
path = f"{folder.name}/fixed.onnx"

# %% fixed
# region fixed_lines
# Its cache is no tensor, which the exporter refuses.
model.config.use_cache = False
torch.onnx.export(
    model,
    (prompt,),
    path,
    input_names=["input_ids"],
    dynamo=True,
    verbose=False,
)
fixed = onnxruntime.InferenceSession(path)
# endregion

# %% refused
try:
    # region refused_lines
    shorter = prompt[:, :64]
    fixed.run(None, {"input_ids": shorter.numpy()})
    # endregion
except Exception as error:
    told = f"{type(error).__name__}: {error}"
    print(told)
else:
    raise AssertionError("another length than the exported one is taken")

# %% free
path = f"{folder.name}/free.onnx"
# region free_lines
torch.onnx.export(
    model,
    (prompt,),
    path,
    input_names=["input_ids"],
    dynamic_shapes=({1: "tokens"},),
    dynamo=True,
    verbose=False,
)
# endregion
free = onnxruntime.InferenceSession(path)
fixed_lengths, free_lengths = lengths_taken(fixed), lengths_taken(free)
print(f"lengths taken: {free_lengths} of {lengths_tried}, before {fixed_lengths}")

# What never varies of it, for who pastes it into a search.
fixed_parts = {"other_length": ["Got invalid dimensions for input"]}

# %% checks
assert fixed_parts["other_length"][0] in told
assert fixed_lengths == 1
assert free_lengths == lengths_tried
