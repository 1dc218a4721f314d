"""What importing torch, the first tensor and the first matrix product cost a process."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11"]
#
# [tool.benchbook]
# needs = ["cpu", "accelerator"]
# worth = 4
# timeout = 120
# repeats = 8
# [tool.benchbook.metrics]
# import_bytes = { unit = "B", better = "lower" }
# first_tensor_bytes = { unit = "B", better = "lower" }
# first_product_bytes = { unit = "B", better = "lower" }
# [[tool.benchbook.matrix]]
# modules = "lazy"
# environment = { CUDA_MODULE_LOADING = "LAZY" }
# [[tool.benchbook.matrix]]
# modules = "eager"
# environment = { CUDA_MODULE_LOADING = "EAGER" }
# [tool.benchbook.on.accelerator]
# repeats = 2
# [tool.benchbook.smallest]
# size = 64
# [tool.benchbook.work]
# seconds = "3 + (5 if modules == 'eager' else 0)"
# ///

# %% parameters
modules = "lazy"  # when CUDA loads its kernels; nothing else has any
size = 512

# %% process_memory
from pathlib import Path


def process_memory():
    status = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


empty = process_memory()

# %% import_torch
import importlib

torch = importlib.import_module("torch")  # `import torch`, which a recorder does ahead

# %% imported
imported = process_memory()

# %% first_tensor
device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)
first_tensor = torch.ones(1, 1, device=device)

# %% one_tensor
one_tensor = process_memory()

# %% first_product
matrix = torch.ones(size, size, device=device)
product = matrix @ matrix
total = product.sum().item()  # waits for the device

# %% sizes
multiplied = process_memory()
import_bytes = imported - empty
first_tensor_bytes = one_tensor - imported
first_product_bytes = multiplied - one_tensor
print(f"import torch:   {import_bytes / 2**20:7.1f} MiB of process memory")
print(f"first tensor:   {first_tensor_bytes / 2**20:7.1f} MiB")
print(f"first product:  {first_product_bytes / 2**20:7.1f} MiB")

# %% checks
import os

assert first_tensor.device.type == product.device.type == device.type
assert total == size**3
assert os.environ.get("CUDA_MODULE_LOADING", "LAZY").lower() == modules
assert import_bytes > 50 * 2**20, "torch was there before the import was measured"
assert first_product_bytes >= matrix.nbytes + product.nbytes
