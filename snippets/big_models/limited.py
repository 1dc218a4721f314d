"""Which ways to load a model live under a limit on memory, as that of a pod, and which are ended by it."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23", "accelerate>=1.15"]
#
# [tool.benchbook]
# needs = ["cpu", "memory_limit"]
# timeout = 300
# repeats = 2
# environment = { OMP_NUM_THREADS = "2" }
# [tool.benchbook.metrics]
# weights = { unit = "B" }
# limit = { unit = "B" }
# imported = { unit = "B" }
# exit_code = { unit = "1" }
# lives = { unit = "count" }
# peak_charged = { unit = "B" }
# failed_charges = { unit = "count" }
# [tool.benchbook.matrix]
# way = ["torch_load", "torch_load_mmap", "assign", "from_pretrained", "bf16", "disk"]
# room = [1.5, 0.75]
# [tool.benchbook.smallest]
# layers = 2
# room = 1.5
# ///

# %% parameters
way = "torch_load"
room = 1.5
layers = 12
width = 1024

# %% setup
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

folder = Path(tempfile.mkdtemp())
back = Path.cwd()
os.chdir(folder)
config = LlamaConfig(
    hidden_size=width,
    intermediate_size=width * 11 // 4,
    num_hidden_layers=layers,
    num_attention_heads=16,
    num_key_value_heads=8,
)

# %% checkpoint
torch.manual_seed(0)
model = LlamaForCausalLM(config)
weights = sum(tensor.nbytes for tensor in model.state_dict().values())
os.mkdir("model")
config.save_pretrained("model")
if way in ("torch_load", "torch_load_mmap", "assign"):
    torch.save(model.state_dict(), "model/model.bin")
else:
    model.save_pretrained("model")
del model
for path in Path("model").iterdir():
    with path.open("rb") as file:
        os.fsync(file.fileno())
        # Whoever reads a page first is charged for it: that is to be the process with the limit.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

# %% program
WAYS = {
    "torch_load": """
model = LlamaForCausalLM(config)
model.load_state_dict(torch.load("model/model.bin"))
""",
    "torch_load_mmap": """
model = LlamaForCausalLM(config)
model.load_state_dict(torch.load("model/model.bin", mmap=True))
""",
    "assign": """
with init_empty_weights():
    model = LlamaForCausalLM(config)
model.load_state_dict(torch.load("model/model.bin", mmap=True), assign=True)
""",
    "from_pretrained": """
model = AutoModelForCausalLM.from_pretrained("model")
""",
    "bf16": """
model = AutoModelForCausalLM.from_pretrained("model", dtype=torch.bfloat16)
""",
    "disk": """
model = AutoModelForCausalLM.from_pretrained(
    "model", device_map="auto", max_memory={"cpu": "200MB"}, offload_folder="offload"
)
""",
}
IMPORTS = """
import torch
from accelerate import init_empty_weights
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM
"""
CONFIG = """
config = LlamaConfig.from_pretrained("model")
"""
TOKEN = """
with torch.inference_mode():
    assert model(input_ids=torch.arange(8)[None]).logits.isfinite().all()
"""


# %% limited
def memory_cgroup():
    """The folder for cgroups that limit memory, and what the files of a limit are called."""
    lines = [
        line.split(":", 2)
        for line in Path("/proc/self/cgroup").read_text("ascii").splitlines()
    ]
    for _, controllers, path in lines:
        if "memory" in controllers.split(","):
            groups = Path("/sys/fs/cgroup/memory")
            here = groups / path.lstrip("/")
            names = (
                "memory.limit_in_bytes",
                "memory.max_usage_in_bytes",
                "memory.failcnt",
            )
            return (here if here.is_dir() else groups), names
    path = next(path for _, controllers, path in lines if not controllers)
    return Path("/sys/fs/cgroup", path.lstrip("/")).parent, (
        "memory.max",
        "memory.peak",
        "memory.events",
    )


def run_with_limit(program, limit):
    """The exit code of a Python program that may take so many bytes, its peak, how often it met the limit."""
    groups, (limit_name, peak_name, met_name) = memory_cgroup()
    group = Path(tempfile.mkdtemp(dir=groups, prefix="limited-"))
    try:
        (group / limit_name).write_text(str(limit), "ascii")
        ended = subprocess.run(
            [sys.executable, "-c", program],
            preexec_fn=lambda: (group / "cgroup.procs").write_text("0", "ascii"),
            stderr=subprocess.DEVNULL,
        )
        met = (group / met_name).read_text("ascii").split()
        # In version 2, a table of events; in version 1, one number.
        times = met[0] if len(met) == 1 else met[met.index("max") + 1]
        return ended.returncode, int((group / peak_name).read_text("ascii")), int(times)
    finally:
        group.rmdir()


code, imported, _ = run_with_limit(IMPORTS + CONFIG, 2**40)
assert code == 0
limit = int(imported + room * weights)
program = IMPORTS + CONFIG + WAYS[way] + TOKEN
exit_code, peak_charged, failed_charges = run_with_limit(program, limit)
lives = exit_code == 0
mib = 2**20
print(
    f"weights: {weights / mib:.0f} MiB; limit: that of the imports and {room}x the weights"
)
print(f"exit code: {exit_code}" + ("" if lives else ", without a word"))

# %% checks
os.chdir(back)
shutil.rmtree(folder)
assert exit_code in (0, -9), "it failed for another reason"
assert peak_charged <= limit
