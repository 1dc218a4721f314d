"""Predict the memory of a workload: build the model, trace the work, replay it, say what it comes to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import transformers
from torch import nn

from benchbook.predictor.attention import dispatched, register_attention
from benchbook.predictor.attribution import Moment, attribute
from benchbook.predictor.autocast import register_autocast, watched_cache
from benchbook.predictor.fake_accelerator import FakeMode, fake_accelerator
from benchbook.predictor.models import (
    Config,
    build_model,
    draw_batch,
    layer_names,
    read_config,
    set_dropout,
)
from benchbook.predictor.optimizers import make_optimizer
from benchbook.predictor.trace import Trace
from benchbook.predictor.training import prepare, train
from benchbook.predictor.workload import Device, Training, Workload


@dataclass(frozen=True)
class Prediction:
    """What a workload needs; bytes throughout, of whole blocks on a GPU.

    Parameters:
        peak_allocated: The most that torch's allocator holds at once.
        peak_reserved: The most that it takes from the device; None on a CPU.
        moment: When the peak is reached.
        categories: What holds the peak.
        layers: Where in the model that belongs.
        unexplained: The part of the peak that is in no category.
        moments: Peak and what is held at the end of each kind of work.
        parameters: Of the model, whether trained or not.
        torch: Its version, which decided what is computed.
        transformers: Likewise.
    """

    peak_allocated: int
    peak_reserved: int | None
    moment: str
    categories: dict[str, int]
    layers: dict[str, int]
    unexplained: int
    moments: dict[str, Moment]
    parameters: int
    torch: str
    transformers: str


def predict(config: Config, workload: Workload, device: Device = "cuda") -> Prediction:
    """The memory of a workload, without the device and without the memory.

    Parameters:
        config: What transformers reads from a `config.json`, or such a configuration.
        workload: What is to be done with the model.
        device: A CUDA device with its caching allocator, or a CPU.

    Raises:
        UnpredictableError: The configuration is wrong, or this torch cannot do it.
    """
    with fake_device(device) as kind, contextlib.ExitStack() as stack:
        trace = Trace(kind)
        model = _trace_training(trace, config, workload, kind, stack)
        parameters = sum(parameter.numel() for parameter in model.parameters())
    found = attribute(trace.events, segments=device == "cuda")
    return Prediction(
        found.peak_allocated,
        found.peak_reserved,
        found.moment,
        found.categories,
        found.layers,
        found.unexplained,
        found.moments,
        parameters,
        torch.__version__,
        transformers.__version__,
    )


@contextlib.contextmanager
def fake_device(device: Device) -> Iterator[str]:
    """Tensors without memory on a CPU, or on what stands for a GPU; gives the type of the device."""
    if device == "cpu":
        with FakeMode():
            yield "cpu"
        return
    kind = fake_accelerator()
    register_autocast()
    register_attention()
    with FakeMode(), watched_cache():
        yield kind


def _trace_training(
    trace: Trace, config: Config, workload: Training, kind: str, stack: contextlib.ExitStack
) -> nn.Module:
    settings = read_config(config)
    if workload.dropout is not None:
        set_dropout(settings, workload.dropout)
    attention = stack.enter_context(dispatched(workload.attention))
    dtype = torch.bfloat16 if workload.precision == "bf16" else torch.float32
    model = build_model(settings, kind, dtype, attention, generating=False)
    trace.mark("load")
    prepare(model, workload)
    layers = adopt_weights(trace, model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(workload.optimizer, trained)

    def seen_gradient(parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            trace.adopt(parameter.grad, "gradients", layers[id(parameter)])

    def seen_states(*_: object) -> None:
        for parameter, state in optimizer.state.items():
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    trace.adopt(value, "optimizer_states", layers[id(parameter)])

    for parameter in trained:
        parameter.register_post_accumulate_grad_hook(seen_gradient)
    optimizer.register_step_post_hook(seen_states)
    with trace:
        train(model, optimizer, lambda: draw_batch(model, workload, kind), workload, kind, trace.mark)
    return model


def adopt_weights(trace: Trace, model: nn.Module) -> dict[int, str]:
    """Count the model's weights in and watch its layers; gives the layer of each weight by its `id`."""
    names = layer_names(model)
    layers: dict[int, str] = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        owner = name.rpartition(".")[0]
        layers[id(tensor)] = names.get(owner, owner)
    trace.adopt_module(model, layers)
    trace.watch_layers((name, module) for name, module in model.named_modules() if names.get(name) == name)
    return layers
