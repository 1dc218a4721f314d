"""Where torch treats CUDA unlike a device from outside: kernels that convert on the fly."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

aten = torch.ops.aten


@cache
def register_kernels() -> torch.library.Library:
    """Give the fake accelerator CUDA's kernels, once per process; what is returned keeps them in force."""
    library = torch.library.Library("aten", "IMPL", "AutogradPrivateUse1")
    library.impl("softmax.int", _converting(aten._softmax.default))
    library.impl("log_softmax.int", _converting(aten._log_softmax.default))
    return library


def _converting(kernel: Any) -> Any:
    """A softmax that reads fp16 and writes fp32, without a copy of its input.

    `aten/src/ATen/native/SoftMax.cpp`, `softmax` and `log_softmax`: for CUDA, and for fp16 alone.
    """

    def run(values: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
        if values.dtype == torch.float16 and dtype == torch.float32:
            return kernel(values, dim, True)
        return kernel(values if dtype is None else values.to(dtype), dim, False)

    return run
