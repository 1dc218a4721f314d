"""The text of running out of a GPU's memory, and what it counts."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11"]
#
# [tool.benchbook]
# needs = ["accelerator"]
# worth = 6
# timeout = 120
# repeats = 2
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
    if device.type == "cuda":
        # region show_memory
        allocated = torch.cuda.memory_allocated()
        reserved = torch.cuda.memory_reserved()
        print(f"allocated: {allocated / 2**30:.2f} GiB")
        print(f"reserved: {reserved / 2**30:.2f} GiB")
        print(torch.cuda.memory_summary(abbreviated=True))
        # endregion

# %% fixed
# What never varies in the text of each kind of device.
fixed_parts = {
    "cuda_out_of_memory": ["CUDA out of memory. Tried to allocate"],
    "hip_out_of_memory": ["HIP out of memory. Tried to allocate"],
    "xpu_out_of_memory": ["XPU out of memory. Tried to allocate"],
    "mps_out_of_memory": ["MPS backend out of memory (MPS allocated"],
}

# %% checks
kind = "hip" if torch.version.hip else device.type
assert weights.device.type == device.type
for part in fixed_parts[f"{kind}_out_of_memory"]:
    assert part in text, f"no {part!r} in {text!r}"
if device.type == "cuda":
    assert "has a total capacity of" in text
    assert "is allocated by PyTorch, and" in text
    assert "reserved by PyTorch but unallocated" in text
    assert 4 * held_elements <= allocated <= reserved < capacity < tried
