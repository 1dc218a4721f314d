"""Low-rank adapters on a model's linear layers, as the library peft adds them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from benchbook.predictor.workload import Lora, UnpredictableError

# As far as memory goes, any factor beside the adapter does.
SCALING = 1.0


class Adapted(nn.Module):
    """A frozen linear layer with an adapter beside it (Hu et al. 2021, arXiv 2106.09685, equation 3).

    The factors are kept in fp32, and the input is cast to it, whatever the layer's own type is (peft:
    `autocast_adapter_dtype`, `_cast_input_dtype`).
    """

    def __init__(self, base: nn.Module, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        weight: Any = base.weight
        options: dict[str, Any] = {"bias": False, "device": weight.device, "dtype": torch.float32}
        self.base = base
        self.down = nn.Linear(inputs, rank, **options)
        self.up = nn.Linear(rank, outputs, **options)

    @property
    def weight(self) -> torch.Tensor:
        """The layer's own: some models ask for its type."""
        weight: torch.Tensor = self.base.get_parameter("weight")
        return weight

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """The layer's result and the adapter's, in the layer's type."""
        result: torch.Tensor = self.base(hidden)
        dtype = result.dtype
        # Under autocast too, which casts it back (peft `layer.py`: `Linear.forward`).
        hidden = hidden.to(self.down.weight.dtype)
        adapted: torch.Tensor = result + self.up(self.down(hidden)) * SCALING
        return adapted.to(dtype)


def add_adapters(model: nn.Module, lora: Lora) -> None:
    """Freeze a model and adapt the linear layers of its blocks.

    Parameters:
        model: Changed in place.
        lora: Without targets, every linear layer inside a numbered block; the head stays as it is.

    Raises:
        UnpredictableError: No linear layer goes by any of the names.
    """
    model.requires_grad_(False)
    chosen = [
        (name, module)
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear | Conv1D) and _targeted(name, lora)
    ]
    if not chosen:
        raise UnpredictableError(
            f"no linear layer is named {' or '.join(lora.targets) or 'by a number'}",
            "name others as targets of LoRA",
        )
    for name, module in chosen:
        inputs, outputs = _dimensions(module)
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, Adapted(module, inputs, outputs, lora.rank))


def _targeted(name: str, lora: Lora) -> bool:
    parts = name.split(".")
    return parts[-1] in lora.targets if lora.targets else any(part.isdigit() for part in parts)


def _dimensions(module: nn.Linear | Conv1D) -> tuple[int, int]:
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    inputs, outputs = module.weight.shape
    return inputs, outputs
