"""The range and the precision of the number formats that models are trained in."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "numpy>=2.0"]
#
# [tool.benchbook]
# needs = ["cpu"]
# worth = 4
# timeout = 60
# repeats = 2
# [tool.benchbook.metrics]
# item_bytes = { unit = "B" }
# largest = { unit = "1" }
# smallest_normal = { unit = "1" }
# spacing_at_one = { unit = "1" }
# [tool.benchbook.matrix]
# number_format = ["float32", "bfloat16", "float16"]
# [tool.benchbook.work]
# seconds = 0.1
# ///

# %% parameters
number_format = "float16"

# %% limits
import torch

dtype = getattr(torch, number_format)
limits = torch.finfo(dtype)
item_bytes = dtype.itemsize
largest = limits.max
smallest_normal = limits.smallest_normal
spacing_at_one = limits.eps
print(f"{number_format}: at most {largest:.6g}, after 1 comes {1 + spacing_at_one:.6g}")

# %% checks
device = torch.accelerator.current_accelerator(check_available=True) or torch.device(
    "cpu"
)


def rounded(value):
    """A number as the device rounds it to the format."""
    number = torch.tensor(value, dtype=torch.float64).to(device).to(dtype)
    assert number.device.type == device.type
    return number.to("cpu", torch.float64).item()


bits = {"float32": (8, 23), "bfloat16": (8, 7), "float16": (5, 10)}
exponent, mantissa = bits[number_format]
assert 1 + exponent + mantissa == 8 * item_bytes
assert spacing_at_one == 2.0**-mantissa
bias = 2 ** (exponent - 1) - 1
assert smallest_normal == 2.0 ** (1 - bias)
assert largest == 2.0**bias * (2 - spacing_at_one)
assert rounded(largest) == largest
assert rounded(1 + spacing_at_one) == 1 + spacing_at_one
assert rounded(1 + spacing_at_one / 4) == 1
if number_format == "float16":
    assert largest == 65504
    assert rounded(65535.0) == float("inf")
