"""Linear layers in four bits, as bitsandbytes lays them out and computes with them, without values."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

BLOCK = 64
# Of the scales of blocks, which are quantised again.
SCALES = 256
LEVELS, SCALE_LEVELS = 16, 256


class FourBitLinear(nn.Module):
    """A frozen linear layer in NF4 with double quantisation (Dettmers et al. 2023, arXiv 2305.14314).

    Two weights to a byte, a scale of one byte per block of 64 weights, and of these a scale of four bytes per
    256; the tables of both and an offset lie beside each weight (bitsandbytes 0.50.2: `quantize_4bit` with
    `compress_statistics` in `functional.py`). The weight is made anew in 16 bits for each product, in the
    forward and the backward pass (`MatMul4Bit` in `autograd/_functions.py`).

    Parameters:
        linear: The layer, whose bias is taken.
        inputs: Of it.
        outputs: Of it.
        dtype: To compute in.
    """

    def __init__(
        self, linear: nn.Module, inputs: int, outputs: int, dtype: torch.dtype = torch.bfloat16
    ) -> None:
        super().__init__()
        device = linear.get_parameter("weight").device
        numbers = inputs * outputs
        blocks = -(-numbers // BLOCK)
        self.shape = (outputs, inputs)
        self.dtype = dtype
        packed = torch.empty(-(-numbers // 2), 1, dtype=torch.uint8, device=device)
        self.weight = nn.Parameter(packed, requires_grad=False)
        self.bias = getattr(linear, "bias", None)
        self.register_buffer("absmax", torch.empty(blocks, dtype=torch.uint8, device=device))
        self.register_buffer("code", torch.empty(LEVELS, device=device))
        self.register_buffer("offset", torch.empty((), device=device))
        self.register_buffer("nested_absmax", torch.empty(-(-blocks // SCALES), device=device))
        self.register_buffer("nested_code", torch.empty(SCALE_LEVELS, device=device))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """The product in 16 bits, in the type of the input."""
        bias = None if self.bias is None else self.bias.to(self.dtype)
        found: Any = _Product.apply(hidden.to(self.dtype), self)  # type: ignore[no-untyped-call]
        result: torch.Tensor = found if bias is None else found + bias
        return result.to(hidden.dtype)

    def dequantized(self) -> torch.Tensor:
        """The weight in 16 bits, of shape (outputs, inputs)."""
        scales = torch.empty(self.get_buffer("absmax").shape, dtype=torch.float32, device=self.weight.device)
        weight = torch.empty(self.shape, dtype=self.dtype, device=self.weight.device)
        del scales
        return weight


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: torch.Tensor, layer: FourBitLinear) -> torch.Tensor:
        ctx.layer = layer
        return functional.linear(hidden, layer.dequantized())

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        return torch.matmul(gradients[0], ctx.layer.dequantized()), None
