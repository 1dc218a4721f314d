"""What the files of a checkpoint hold, what its index says, and which of them can run code when they are loaded."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15", "safetensors>=0.8"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 120
# [tool.benchbook.metrics]
# weights = { unit = "B" }
# files_by_default = { unit = "count" }
# shards = { unit = "count" }
# total_size = { unit = "B" }
# largest_shard = { unit = "B" }
# ran_when_unpickled = { unit = "count" }
# ran_by_default = { unit = "count" }
# safetensors_seconds = { unit = "s", better = "lower" }
# pickle_seconds = { unit = "s", better = "lower" }
# safetensors_read_seconds = { unit = "s", better = "lower" }
# pickle_read_seconds = { unit = "s", better = "lower" }
# [tool.benchbook.smallest]
# layers = 4
# ///

# %% parameters
layers = 8
width = 512

# %% setup
import os
import shutil
import tempfile
import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

folder = Path(tempfile.mkdtemp())
back = Path.cwd()
os.chdir(folder)
torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=8,
    num_key_value_heads=8,
    vocab_size=8192,
)
model = LlamaForCausalLM(config)
weights = sum(tensor.nbytes for tensor in model.state_dict().values())
torch.save(model.state_dict(), "model.bin")


def told(error):
    """The first line of what an error says."""
    return f"{type(error).__name__}: {error}".splitlines()[0]


# %% shards
# region shards_lines
model.save_pretrained("model", max_shard_size="50MB")
# endregion
model.save_pretrained("whole")
files_by_default = len(list(Path("whole").glob("*.safetensors")))

# %% index
# region index_lines
import json
from collections import Counter

path = Path("model/model.safetensors.index.json")
index = json.loads(path.read_text())
tensors = Counter(index["weight_map"].values())
for name, count in sorted(tensors.items()):
    size = Path("model", name).stat().st_size
    print(name, f"{count} tensors, {size / 2**20:.1f} MiB")
print(index["metadata"])
# endregion
shards, total_size = len(tensors), index["metadata"]["total_size"]
largest_shard = max(Path("model", name).stat().st_size for name in tensors)


# %% speed
def seconds_to_load(load, path):
    """Until the file is loaded, and until every weight in it was read once."""
    start = time.perf_counter()
    tensors = load(path)
    loaded = time.perf_counter() - start
    for tensor in tensors.values():
        tensor.sum()
    return loaded, time.perf_counter() - start


seconds_to_load(load_file, "whole/model.safetensors")
seconds_to_load(torch.load, "model.bin")
safetensors_seconds, safetensors_read_seconds = seconds_to_load(
    load_file, "whole/model.safetensors"
)
pickle_seconds, pickle_read_seconds = seconds_to_load(torch.load, "model.bin")
print(f"safetensors: {safetensors_seconds * 1e3:.1f} ms,")
print(f"  and read: {safetensors_read_seconds * 1e3:.0f} ms")
print(
    f"torch.load: {pickle_seconds * 1e3:.1f} ms, and read: {pickle_read_seconds * 1e3:.0f} ms"
)

# %% meta
# region meta_lines
with torch.device("meta"):  # buffers too
    empty = LlamaForCausalLM(config)
weights_of_file = torch.load("model.bin", mmap=True)
empty.load_state_dict(weights_of_file, assign=True)
# endregion
try:
    # region moved_lines
    empty.to("cpu")
    # endregion
except NotImplementedError as error:
    meta_text = told(error)
print(meta_text)

# %% without_values
# fmt: off
# region without_values_lines
from itertools import chain

tensors = chain(
    empty.named_parameters(),
    empty.named_buffers(),
)
without_values = [
    name for name, tensor in tensors
    if tensor.is_meta
]
print(*without_values)
# endregion
# fmt: on


# %% pickled
# region pickled_lines
import os


class Payload:
    """Anything that a file may bring along."""

    def __reduce__(self):
        return os.mkdir, ("it-ran",)


torch.save({"weight": Payload()}, "a.bin")
# endregion

# %% unpickled
# region unpickled_lines
torch.load("a.bin", weights_only=False)
# endregion
ran_when_unpickled = int(Path("it-ran").exists())
os.rmdir("it-ran")
print("a folder was made:", bool(ran_when_unpickled))

# %% refused
try:
    # region refused_lines
    torch.load("a.bin")
    # endregion
except Exception as error:
    refused_text = told(error)
ran_by_default = int(Path("it-ran").exists())
print(refused_text)

# %% checks
os.chdir(back)
shutil.rmtree(folder)
assert files_by_default == 1
assert total_size == weights
assert 2 <= shards == len(set(index["weight_map"].values()))
assert largest_shard <= 50e6
assert "Cannot copy out of meta tensor" in meta_text
assert without_values and all("rotary_emb" in name for name in without_values)
assert (ran_when_unpickled, ran_by_default) == (1, 0)
assert refused_text.startswith("UnpicklingError: Weights only load failed")
