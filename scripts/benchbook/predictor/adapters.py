"""Put adapters into a model: low-rank ones of our own, or any that PEFT makes of an adapter_config.json.

PEFT's modules are its own, built and run on tensors without values. What looks at values cannot be: a method
that draws a mask, or asks whether a weight is finite.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from transformers.pytorch_utils import Conv1D

from benchbook.predictor.four_bit import FourBitLinear
from benchbook.predictor.models import replace_tensors
from benchbook.predictor.workload import Adapters, Lora, UnpredictableError

# As far as memory goes, any factor beside the adapter does.
SCALING = 1.0


class Adapted(nn.Module):
    """A frozen linear layer with an adapter beside it (Hu et al. 2021, arXiv 2106.09685, equation 3).

    The factors are kept in fp32, and the input is cast to it, whatever the layer's own type is (peft:
    `autocast_adapter_dtype`, `_cast_input_dtype`).
    """

    def __init__(self, base: nn.Module, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        device = base.get_parameter("weight").device
        options: dict[str, Any] = {"bias": False, "device": device, "dtype": torch.float32}
        self.base = base
        self.enabled = True
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
        if not self.enabled:
            return result
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
    linear = [
        (name, module) for name, module in model.named_modules() if isinstance(module, nn.Linear | Conv1D)
    ]
    chosen = [(name, module) for name, module in linear if _targeted(name, lora)]
    rest = [(name, module) for name, module in linear if _in_block(name) and not _targeted(name, lora)]
    # What transformers keeps in fp32 beside a model in fp16, as T5's `wo`, it does not quantise either.
    kept = set(getattr(model, "_keep_in_fp32_modules", None) or ())
    whole = {name for name, _ in linear if kept & set(name.split("."))}
    if not chosen:
        raise UnpredictableError(
            f"no linear layer is named {' or '.join(lora.targets) or 'by a number'}",
            "name others as targets of LoRA",
        )
    for name, module in chosen:
        inputs, outputs = _dimensions(module)
        base = FourBitLinear(module, inputs, outputs) if lora.four_bit and name not in whole else module
        _replace(model, name, Adapted(base, inputs, outputs, lora.rank))
    if lora.four_bit:
        for name, module in rest:
            if name in whole:
                continue
            _replace(model, name, FourBitLinear(module, *_dimensions(module)))


@contextmanager
def adapters_off(model: nn.Module) -> Iterator[None]:
    """Let a model compute without its adapters, as it did before it had any.

    Raises:
        UnpredictableError: It has none.
    """
    adapted = [module for module in model.modules() if isinstance(module, Adapted)]
    of_peft: Any = getattr(model, "disable_adapter", None)
    if not adapted and of_peft is None:
        raise UnpredictableError("the model has no adapters to switch off", "give it some, or a reference")
    for module in adapted:
        module.enabled = False
    try:
        with of_peft() if of_peft is not None else nullcontext():
            yield
    finally:
        for module in adapted:
            module.enabled = True


def _replace(model: nn.Module, name: str, module: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def _targeted(name: str, lora: Lora) -> bool:
    return name.split(".")[-1] in lora.targets if lora.targets else _in_block(name)


def _in_block(name: str) -> bool:
    return any(part.isdigit() for part in name.split("."))


def _dimensions(module: nn.Linear | Conv1D) -> tuple[int, int]:
    if isinstance(module, nn.Linear):
        return module.in_features, module.out_features
    inputs, outputs = module.weight.shape
    return inputs, outputs


def add_peft(model: nn.Module, adapters: Adapters) -> nn.Module:
    """What PEFT makes of a model; that is called in its place.

    Raises:
        UnpredictableError: PEFT is not installed, knows no such adapters, or needs values to make them.
    """
    try:
        import peft
    except ImportError as error:
        raise UnpredictableError(f"PEFT cannot be loaded ({error})", "install peft") from error
    kind = f"{adapters.config.get('peft_type')} of PEFT"
    try:
        make: Any = peft.PeftConfig.from_peft_type
        config = make(**adapters.config)
        with _replaced_when_converted(), needs_no_values(kind), warnings.catch_warnings():
            # PEFT asks for it by the name that it had until transformers 5.23.
            warnings.filterwarnings("ignore", "`is_gradient_checkpointing`", FutureWarning)
            # A copy of a module asks where its values lie, and does without.
            warnings.filterwarnings("ignore", "Accessing the data pointer of FakeTensor", UserWarning)
            adapted: nn.Module = peft.get_peft_model(model, config, autocast_adapter_dtype=adapters.fp32)
    except UnpredictableError:
        raise
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise UnpredictableError(f"{kind} cannot be made of this: {said}", "correct the adapters") from error
    return adapted


@contextmanager
def needs_no_values(who: str) -> Iterator[None]:
    """Say who it is that asks for values, which a trace has none of."""
    try:
        yield
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise UnpredictableError(
            f"{who} asks for values ({error})", "a prediction has none: leave it out"
        ) from error


@contextmanager
def _replaced_when_converted() -> Iterator[None]:
    """Let `Module.to` put new parameters in the place of old ones, whose values it cannot change here."""

    def apply(
        module: nn.Module, convert: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True
    ) -> nn.Module:
        replace_tensors(module, convert, recurse)
        return module

    with mock.patch.object(nn.Module, "_apply", apply):
        yield
