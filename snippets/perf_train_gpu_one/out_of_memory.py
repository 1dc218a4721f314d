"""The text of running out of a GPU's memory, and what it counts."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11"]
#
# [tool.benchbook]
# needs = ["accelerator"]
# worth = 6
# timeout = 120
# [tool.benchbook.metrics]
# tried = { unit = "B" }
# capacity = { unit = "B" }
# [tool.benchbook.work]
# seconds = 1
# ///

# %% parameters
held_elements = 268435456  # 2**28: 1 GiB of fp32, held while more is asked for

# %% setup
import torch

device = torch.accelerator.current_accelerator(check_available=True)
if device is None:
    raise SystemExit("This text is an accelerator's: torch finds none here.")

# %% ask_too_much
weights = torch.zeros(held_elements, device=device)
_, capacity = torch.accelerator.get_memory_info()
tried = 2 * capacity
try:
    torch.empty(tried, dtype=torch.uint8, device=device)
except torch.OutOfMemoryError as error:
    text = f"torch.OutOfMemoryError: {error}"
    print(text)

# %% checks
assert weights.device.type == device.type
assert "out of memory. Tried to allocate" in text
if device.type == "cuda":
    assert "has a total capacity of" in text
    assert "is allocated by PyTorch, and" in text
    assert "reserved by PyTorch but unallocated" in text
