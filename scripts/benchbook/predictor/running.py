"""Predict a script as it stands: its own lines are run, on tensors without values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.optim import optimizer as optimizers

from benchbook.content.metadata import ParameterValue
from benchbook.content.script import PARAMETERS, Cell, Script
from benchbook.predictor.adapters import needs_no_values
from benchbook.predictor.attention import dispatched
from benchbook.predictor.gpus import H200, Gpu
from benchbook.predictor.prediction import (
    Prediction,
    adopt_weights,
    check_attention,
    fake_device,
    summed_up,
)
from benchbook.predictor.trace import Trace
from benchbook.predictor.workload import Device, ScriptRun, UnpredictableError
from benchbook.predictor.workspaces import Workspaces

# What a script that trains calls them.
MODEL = "model"


def predict_script(
    script: Script,
    path: Path,
    parameters: Mapping[str, ParameterValue],
    run: ScriptRun,
    device: Device = "cuda",
    gpu: Gpu = H200,
    room: int | None = None,
) -> Prediction:
    """The memory of a script, without the device and without the memory.

    Parameters:
        script: Its cells up to `run.until` may read no value of a tensor, and call what is trained `model`.
        path: Where it lies: beside its inputs.
        parameters: With which values it runs.
        run: How far, and with which attention.
        device: As for `predict`, as are `gpu` and `room`.

    Raises:
        UnpredictableError: There is no such cell or no model, or a value is asked for.
    """
    check_attention(run, device)
    names = [cell.name for cell in script.cells]
    if run.until not in names:
        raise UnpredictableError(
            f"{script.reference} has no cell {run.until}", f"name one of {', '.join(names)}"
        )
    cells = script.cells[: names.index(run.until) + 1]
    before = torch.get_default_dtype()
    names_in_use: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    with fake_device(device) as kind, dispatched(run.attention, gpu), _called_accelerator(kind, device):
        trace = Trace(kind, Workspaces(gpu) if device == "cuda" else None)
        try:
            with trace, needs_no_values(script.reference):
                for cell in cells[:-1]:
                    trace.mark(cell.name)
                    _execute(cell, path, names_in_use)
                    if cell.name == PARAMETERS:
                        names_in_use |= parameters
                    if trace.events.spans[-1].first == len(trace.events.order):
                        trace.events.spans.pop()  # it had nothing to do with the device
                model = names_in_use.get(MODEL)
                if not isinstance(model, nn.Module):
                    raise UnpredictableError(
                        f"{script.reference} makes no {MODEL} before {run.until}",
                        "call what is trained so",
                    )
                layers = adopt_weights(trace, model)
                trace.mark("forward")
                with _watched(trace, layers):
                    _execute(cells[-1], path, names_in_use)
        finally:
            torch.set_default_dtype(before)
        count = sum(parameter.numel() for parameter in model.parameters())
        # Whoever lives on would die in a trace that is over.
        names_in_use.clear()
    return summed_up(trace, count, device, room)


def _execute(cell: Cell, path: Path, names_in_use: dict[str, Any]) -> None:
    exec(compile(cell.source, str(path), "exec", dont_inherit=True, optimize=0), names_in_use)  # noqa: S102


@contextlib.contextmanager
def _called_accelerator(kind: str, device: Device) -> Iterator[None]:
    """Let the script find the device that it is predicted for, and its seed draw nothing."""
    found = torch.device(kind) if device == "cuda" else None

    def current(check_available: bool = False) -> torch.device | None:
        return found

    with (
        mock.patch.object(torch.accelerator, "current_accelerator", current),
        mock.patch.object(torch, "manual_seed"),
    ):
        yield


@contextlib.contextmanager
def _watched(trace: Trace, layers: Mapping[int, str]) -> Iterator[None]:
    """Tell backward passes and steps of optimizers apart, and what they make."""

    def named(tensor: torch.Tensor, category: str, parameter: torch.Tensor) -> None:
        trace.adopt(tensor, category, layers.get(id(parameter), ""))

    def before(optimizer: torch.optim.Optimizer, *_: object) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    named(parameter.grad, "gradients", parameter)
        trace.mark("step")

    def after(optimizer: torch.optim.Optimizer, *_: object) -> None:
        for parameter, state in optimizer.state.items():
            for value in state.values():
                if isinstance(value, torch.Tensor):
                    named(value, "optimizer_states", parameter)
        trace.mark("forward")

    backward: Callable[..., None] = torch.Tensor.backward

    def marked(tensor: torch.Tensor, *args: Any, **options: Any) -> None:
        trace.mark("backward")
        backward(tensor, *args, **options)
        trace.mark("forward")

    hooks = [
        optimizers.register_optimizer_step_pre_hook(before),
        optimizers.register_optimizer_step_post_hook(after),
    ]
    try:
        with mock.patch.object(torch.Tensor, "backward", marked):
            yield
    finally:
        for hook in hooks:
            hook.remove()
