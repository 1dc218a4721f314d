"""Trace training and generation of a model with few of its layers, and its optimizers by themselves."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from benchbook.predictor.adapters import add_adapters
from benchbook.predictor.attention import dispatched
from benchbook.predictor.gpus import H200
from benchbook.predictor.inference import generate
from benchbook.predictor.models import build_model, draw_batch, read_config
from benchbook.predictor.prediction import adopt_weights, build, cache_watcher, reference_of
from benchbook.predictor.trace import Events, Trace
from benchbook.predictor.training import (
    evaluate_batch,
    generate_completions,
    make_optimizer,
    prepare,
    train,
)
from benchbook.predictor.workload import Inference, Lora, Optimizer, Training, UnpredictableError, Workload
from benchbook.predictor.workspaces import Workspaces

# What configurations call their depth.
DEPTHS = (
    *("num_hidden_layers", "num_layers", "num_decoder_layers", "n_layer", "n_layers"),
    *("encoder_layers", "decoder_layers"),
)
_NUMBER = re.compile(r"(?:^|\.)(\d+)$")


class _NoOptimizer(torch.optim.Optimizer):
    """Takes gradients as they are: what an optimizer holds is traced by itself."""

    def __init__(self, parameters: Sequence[torch.Tensor]) -> None:
        super().__init__(parameters, {})

    def step(self, closure: Any = None) -> Any:
        """Do nothing."""


def depth_of(config: Mapping[str, Any]) -> int:
    """How many layers a configuration has, or each half of it.

    Raises:
        UnpredictableError: It does not say, or its halves differ.
    """
    found = {int(config[name]) for name in DEPTHS if name in config}
    if len(found) != 1:
        raise UnpredictableError("the configuration has no single depth", "name it, the same for both halves")
    return found.pop()


def layer_number(layer: str) -> int | None:
    """The number of a layer by its name, None where the name is of no layer."""
    found = _NUMBER.search(layer)
    return int(found[1]) if found else None


def reduced(config: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """`config` with so many layers, or so many in each half."""
    return {**config, **{name: depth for name in DEPTHS if name in config}}


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let the same work give the same trace: no collection of cycles, no thread of autograd in between."""
    gc.disable()
    try:
        with torch.autograd.set_multithreading_enabled(False):
            yield
    finally:
        gc.enable()


@contextmanager
def _loaded(
    config: Mapping[str, Any], workload: Workload, kind: str
) -> Iterator[tuple[Trace, nn.Module, str]]:
    """A trace, the model that the workload needs on it, and the attention that is dispatched; undisturbed."""
    with _undisturbed(), dispatched(workload.attention, H200) as attention:
        trace = Trace(kind, Workspaces(H200))
        model = build(read_config(config), workload, kind, attention)
        trace.mark("load")
        yield trace, model, attention


def trace_shallow_training(config: Mapping[str, Any], workload: Training, kind: str) -> Events:
    """One training step but for the optimizer's own part, on the device of type `kind`; nothing generates."""
    with _loaded(config, workload, kind) as (trace, model, attention):
        prepare(model, workload)
        layers = adopt_weights(trace, model)
        reference = reference_of(config, workload, kind, attention)
        if reference is not None:
            adopt_weights(trace, reference)

        def seen_gradient(parameter: torch.Tensor) -> None:
            if parameter.grad is not None:
                trace.adopt(parameter.grad, "gradients", layers[id(parameter)])

        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(seen_gradient)
        with trace:
            optimizer = _NoOptimizer(parameters)
            train(
                model,
                optimizer,
                lambda asked: draw_batch(model, asked, kind),
                workload,
                kind,
                trace.mark,
                1,
                reference,
            )
    return _seen(trace)


def trace_evaluation(config: Mapping[str, Any], workload: Training, kind: str) -> Events:
    """The evaluation of a batch, in one span that is called as the forward pass of a training is."""
    with _loaded(config, workload, kind) as (trace, model, _):
        prepare(model, workload)
        adopt_weights(trace, model)
        with trace:
            trace.mark("forward")
            evaluate_batch(
                model, lambda asked: draw_batch(model, asked, kind), workload, workload.batch, kind
            )
    return _seen(trace)


def trace_inference(config: Mapping[str, Any], workload: Inference, kind: str) -> Events:
    """A generation, each token computed."""
    with _loaded(config, workload, kind) as (trace, model, _):
        adopt_weights(trace, model)
        with trace:
            generate(model, workload, kind, trace.mark, cache_watcher(trace), skipping=False)
    return _seen(trace)


def trace_completions(config: Mapping[str, Any], workload: Training, kind: str) -> Events:
    """The generation before a step of `grpo`; of so few tokens that each is computed."""
    with _loaded(config, workload, kind) as (trace, model, _):
        prepare(model, workload)
        adopt_weights(trace, model)
        with trace:
            generate_completions(model, workload, kind, trace.mark, cache_watcher(trace))
    return _seen(trace)


def trace_optimizer(
    config: Mapping[str, Any], name: Optimizer, width: torch.dtype, lora: Lora | None, kind: str
) -> Events:
    """Two steps of an optimizer of all weights, or of adapters: the first creates its states."""
    trace = Trace(kind)
    model = build_model(read_config(config), kind, width, "eager", generating=False)
    trace.mark("load")
    if lora is not None:
        add_adapters(model, lora)
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for parameter in parameters:
        parameter.grad = torch.empty_like(parameter)
        trace.adopt(parameter, "weights")
        trace.adopt(parameter.grad, "gradients")
    optimizer = make_optimizer(name, parameters, model)

    def seen_states(*_: object) -> None:
        for state in optimizer.state.values():
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    trace.adopt(value, "optimizer_states")

    optimizer.register_step_post_hook(seen_states)
    with _undisturbed(), trace:
        trace.mark("first")
        optimizer.step()
        trace.mark("second")
        optimizer.step()
    return _seen(trace)


def _seen(trace: Trace) -> Events:
    """What a trace has seen by now: the model and all that is kept with it are still there."""
    seen = trace.events
    return Events(list(seen.births), list(seen.order), list(seen.spans), list(seen.recomputed))
