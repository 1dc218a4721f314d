"""What each way to load a model takes of the host's memory, and when: while loading, and with the first token."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["cpu"]
# timeout = 300
# repeats = 4
# environment = { OMP_NUM_THREADS = "2" }
# [tool.benchbook.metrics]
# weights = { unit = "B" }
# model_and_largest_file = { unit = "B" }
# peak_anonymous = { unit = "B", better = "lower" }
# peak_mapped = { unit = "B", better = "lower" }
# peak_resident = { unit = "B", better = "lower" }
# loaded_anonymous = { unit = "B", better = "lower" }
# loaded_mapped = { unit = "B" }
# read_while_loading = { unit = "B" }
# read_by_first_token = { unit = "B" }
# load_seconds = { unit = "s", better = "lower" }
# first_token_seconds = { unit = "s", better = "lower" }
# second_token_seconds = { unit = "s", better = "lower" }
# until_first_token = { unit = "s", better = "lower" }
# anonymous = { unit = "B" }
# resident = { unit = "B" }
# [tool.benchbook.matrix]
# way = [
#     "random", "torch_load", "torch_load_mmap", "assign", "from_pretrained",
#     "shards", "device_map_cpu", "bf16", "bf16_shards", "disk",
# ]
# cache = ["warm", "cold"]
# [tool.benchbook.smallest]
# layers = 1
# width = 256
# vocabulary = 1000
# shard_size = "1MB"
# ///

# %% parameters
way = "torch_load"
cache = "warm"
layers = 8
width = 1024
vocabulary = 32000
shard_size = "100MB"
tenths = 50

# %% setup
import gc
import multiprocessing
import os
import shutil
import tempfile
import time
from pathlib import Path

import torch
from accelerate import init_empty_weights
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

fork = multiprocessing.get_context("fork")
folder = Path(tempfile.mkdtemp())
back = Path.cwd()
os.chdir(folder)
config = LlamaConfig(
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=16,
    num_key_value_heads=8,
    vocab_size=vocabulary,
)


def held(process="self"):
    """Bytes of this process: anonymous, which are its own, and mapped from files."""
    lines = Path(f"/proc/{process}/status").read_text("ascii").splitlines()
    found = {line.partition(":")[0]: line.split()[1] for line in lines if "Rss" in line}
    return int(found["RssAnon"]) * 1024, int(found["RssFile"]) * 1024


def bytes_read():
    """What this process has had read from the disk, which is not what a cache gave it."""
    lines = Path("/proc/self/io").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("read_bytes")).split()[1])


def watch(process, connection):
    """Samples of a process, five milliseconds apart: seconds, anonymous, mapped."""
    samples = []
    while not connection.poll(0.005):
        samples.append((time.monotonic(), *held(process)))
    connection.send(samples)


def in_another_process(work, *arguments):
    started = fork.Process(target=work, args=arguments)
    started.start()
    return started


# %% checkpoint
def write():
    torch.manual_seed(0)
    model = LlamaForCausalLM(config)
    if way in ("torch_load", "torch_load_mmap", "assign"):
        os.mkdir("model")
        torch.save(model.state_dict(), "model/model.bin")
    else:
        whole = (
            "1TB"
            if way in ("from_pretrained", "device_map_cpu", "bf16")
            else shard_size
        )
        model.save_pretrained("model", max_shard_size=whole)


# Another process writes it, so that nothing of it is left in this one.
writer = in_another_process(write)
writer.join()
assert writer.exitcode == 0
files = sorted(
    path for path in Path("model").iterdir() if path.suffix in (".bin", ".safetensors")
)
for path in files:
    with path.open("rb") as file:
        os.fsync(file.fileno())
        if cache == "cold":
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        else:
            # In small pieces: what is freed is not to be found by what is measured.
            while file.read(2**16):
                pass


# %% ways
def random():
    # region random
    model = LlamaForCausalLM(config)
    # endregion
    return model


def torch_load():
    # region torch_load
    model = LlamaForCausalLM(config)
    weights = torch.load("model/model.bin")
    model.load_state_dict(weights)
    # endregion
    return model


def torch_load_mmap():
    # region torch_load_mmap
    model = LlamaForCausalLM(config)
    weights = torch.load("model/model.bin", mmap=True)
    model.load_state_dict(weights)
    # endregion
    return model


def assign():
    # region assign
    # Without memory for weights; buffers stay real.
    with init_empty_weights():
        model = LlamaForCausalLM(config)
    weights = torch.load("model/model.bin", mmap=True)
    model.load_state_dict(weights, assign=True)
    model.tie_weights()
    model.eval()
    # endregion
    return model


def from_pretrained():
    # region from_pretrained
    # The type of the file: the default
    # only since Transformers 5.
    model = AutoModelForCausalLM.from_pretrained(
        "model",
        dtype="auto",
    )
    # endregion
    return model


def device_map_cpu():
    # region device_map_cpu
    model = AutoModelForCausalLM.from_pretrained("model", device_map="cpu")
    # endregion
    return model


def bf16():
    # region bf16
    model = AutoModelForCausalLM.from_pretrained("model", dtype=torch.bfloat16)
    # endregion
    return model


def disk():
    # region disk
    # What does not fit into 200 MB stays on the disk.
    model = AutoModelForCausalLM.from_pretrained(
        "model",
        device_map="auto",
        max_memory={"cpu": "200MB"},
    )
    # endregion
    return model


load = {"shards": from_pretrained, "bf16_shards": bf16}.get(way) or globals()[way]

# %% load
gc.collect()
here, there = fork.Pipe()
watcher = in_another_process(watch, os.getpid(), there)
time.sleep(0.1)
before_anonymous, before_mapped = held()
before_read = bytes_read()

start = time.monotonic()
model = load()
load_seconds = time.monotonic() - start

after_anonymous, after_mapped = held()
loaded_anonymous = after_anonymous - before_anonymous
loaded_mapped = after_mapped - before_mapped
read_while_loading = bytes_read() - before_read


# %% first_token
def token_seconds():
    start = time.monotonic()
    with torch.inference_mode():
        scores = model(input_ids=torch.arange(8)[None]).logits[0, -1]
    assert scores.isfinite().all()
    return time.monotonic() - start


first_token_seconds = token_seconds()
until_first_token = load_seconds + first_token_seconds
read_by_first_token = bytes_read() - before_read
second_token_seconds = token_seconds()

here.send("enough")
samples = here.recv()
watcher.join()
during = [
    (seconds - start, own - before_anonymous, mapped - before_mapped)
    for seconds, own, mapped in samples
    if seconds >= start
]
peak_anonymous = max(own for _, own, _ in during)
peak_mapped = max(mapped for _, _, mapped in during)
peak_resident = max(own + mapped for _, own, mapped in during)
# The last sample of each tenth of a second, and of those before where none fell into it.
anonymous, resident = [], []
for tenth in range(1, tenths + 1):
    own, mapped = [
        sample[1:] for sample in during if sample[0] <= max(tenth / 10, during[0][0])
    ][-1]
    anonymous.append(own)
    resident.append(own + mapped)
weights = sum(tensor.nbytes for tensor in model.state_dict().values())
model_and_largest_file = weights + max(path.stat().st_size for path in files)
mib = 2**20
print(
    f"peak: {peak_anonymous / mib:.0f} MiB of its own,"
    f" {peak_mapped / mib:.0f} MiB mapped, {peak_resident / mib:.0f} MiB together"
)
print(f"read from the disk: {read_while_loading / mib:.0f} MiB while loading,")
print(f"  {read_by_first_token / mib:.0f} MiB with the first token")

# %% checks
file_bytes = sum(path.stat().st_size for path in files)
on_disk = file_bytes - weights * (2 if way.startswith("bf16") else 1)
os.chdir(back)
shutil.rmtree(folder)
assert way == "disk" or 0 <= on_disk < 2**20, "the files hold the weights"
assert not any(tensor.is_meta for tensor in model.buffers()), "every buffer has values"
if cache == "cold" and way != "random":
    assert read_by_first_token > file_bytes * 0.8, (
        "the cache was not cold: set TMPDIR to a folder on a disk"
    )
else:
    assert read_by_first_token < file_bytes * 0.2 + 2**26, "the cache was not warm"
