"""What torch, the driver's library NVML and `nvidia-smi` each say that one process holds of a GPU.

NVML counts the whole device: the context, the kernels' code, torch's cache, and other processes. Its second
version keeps apart what the driver reserves for itself, which the first counted as used.
"""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "nvidia-ml-py>=13.580.65"]
#
# [tool.benchbook]
# needs = ["cuda"]
# worth = 4
# timeout = 120
# repeats = 2
# [tool.benchbook.metrics]
# torch_allocated = { unit = "B", memory = "device" }
# torch_reserved = { unit = "B", memory = "device" }
# mem_get_info_used = { unit = "B", memory = "device" }
# nvml_used = { unit = "B", memory = "device" }
# nvidia_smi_used = { unit = "B", memory = "device" }
# context = { unit = "B", better = "lower", memory = "device" }
# driver_reserved = { unit = "B" }
# [tool.benchbook.smallest]
# size = 256
# [tool.benchbook.work]
# fp32 = "2 * size**3"
# seconds = 1
# ///

# %% parameters
size = 16384  # of a square matrix: 1 GiB in fp32

# %% hold
import torch

if not torch.cuda.is_available() or torch.version.hip:
    raise SystemExit("NVML is NVIDIA's: torch finds no such GPU here.")
device = torch.device("cuda", torch.cuda.current_device())
held = torch.ones(size, size, device=device)
freed = held @ held
torch.cuda.synchronize()
freed_bytes = freed.nbytes
del freed  # torch keeps its memory for the next tensor

# %% by_torch
# region torch_views
allocated = torch.cuda.memory_allocated()
reserved = torch.cuda.memory_reserved()
free, total = torch.cuda.mem_get_info()
# endregion
torch_allocated, torch_reserved = allocated, reserved
mem_get_info_used = total - free

# %% by_nvml
# region nvml
import pynvml

pynvml.nvmlInit()
# Not by index: NVML counts GPUs in another order.
uuid = torch.cuda.get_device_properties().uuid
gpu = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
version = pynvml.nvmlMemory_v2
memory = pynvml.nvmlDeviceGetMemoryInfo(gpu, version)
print(f"used:     {memory.used / 2**20:.0f} MiB")
print(f"reserved: {memory.reserved / 2**20:.0f} MiB")
print(f"free:     {memory.free / 2**20:.0f} MiB")
# endregion
nvml_used, driver_reserved = memory.used, memory.reserved
context = nvml_used - torch_reserved

# %% nvidia_smi
import subprocess

question = "nvidia-smi --query-gpu=memory.used --format=csv"
asked = [*question.split(), f"--id=GPU-{uuid}"]
answer = subprocess.run(asked, capture_output=True, text=True)
print(answer.stdout)  # in MiB

# %% summary
heading, *lines = answer.stdout.split("\n")
nvidia_smi_used = int(lines[0].removesuffix(" MiB")) * 2**20
for name in (
    "torch_allocated",
    "torch_reserved",
    "mem_get_info_used",
    "nvml_used",
    "nvidia_smi_used",
    "context",
    "driver_reserved",
):
    print(f"{name:18}{globals()[name] / 2**20:9.1f} MiB")

# %% checks
mib = 2**20
assert answer.returncode == 0 and heading == "memory.used [MiB]"
assert held.device == device and held.nbytes == 4 * size**2 == freed_bytes
assert held.nbytes <= torch_allocated < torch_reserved
assert torch_reserved >= torch_allocated + freed_bytes
assert torch_reserved < mem_get_info_used < total
assert torch_reserved < nvml_used < memory.total
assert nvml_used + memory.free <= memory.total
assert context > 0 and driver_reserved >= 0
# It rounds to MiB. Some versions of it count what the driver reserves, too.
differences = [
    nvidia_smi_used - nvml_used,
    nvidia_smi_used - nvml_used - driver_reserved,
]
assert min(map(abs, differences)) <= mib, differences
