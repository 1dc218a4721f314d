"""The training loop whose memory is predicted; it runs on a real device as it runs on a fake one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from benchbook.predictor.autocast import Scaler, autocast
from benchbook.predictor.lora import add_adapters
from benchbook.predictor.optimizers import by_mesh
from benchbook.predictor.workload import Training

Mark = Callable[[str], None]
# The first step creates the optimizer's states, the second runs with them, the third repeats it.
STEPS = 3
MAXIMUM_NORM = 1.0


def prepare(model: nn.Module, workload: Training) -> None:
    """Put the model into the state in which it is trained."""
    model.train()
    if workload.lora is not None:
        add_adapters(model, workload.lora)
    if workload.checkpointing:
        enable: Any = model.activation_checkpointing_enable
        enable(activation_checkpointing_kwargs={"use_reentrant": False})


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    draw: Callable[[], Mapping[str, torch.Tensor]],
    workload: Training,
    device: str,
    mark: Mark,
    steps: int = STEPS,
) -> None:
    """Train for some steps.

    Parameters:
        model: Prepared, on the device.
        optimizer: Of its trainable parameters.
        draw: Gives a batch on the device.
        workload: How to train.
        device: Its type.
        mark: Is told the name of each moment as it begins.
        steps: Steps of the optimizer.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    scaler = Scaler(device) if workload.precision == "fp16_autocast" else None
    for _ in range(steps):
        for _ in range(workload.accumulation):
            mark("forward")
            batch = draw()
            with autocast(device, workload.precision):
                loss = model(**batch).loss
            if workload.accumulation > 1:
                loss = loss / workload.accumulation
            if scaler is not None:
                loss = scaler.scale(loss)
            mark("backward")
            loss.backward()
            del loss, batch
        if scaler is not None:
            mark("unscale")
            scaler.unscale(parameters)
        if workload.clipping:
            mark("clip")
            clip(parameters)
        mark("step")
        optimizer.step()
        mark("zero_grad")
        optimizer.zero_grad(set_to_none=not workload.keep_gradients)


def clip(parameters: list[nn.Parameter]) -> None:
    """Clip the norm of all gradients, over several meshes as the Trainer does (`_mixed_mesh_grad_norm`)."""
    groups = by_mesh(parameters)
    if len(groups) == 1:
        torch.nn.utils.clip_grad_norm_(groups[0], MAXIMUM_NORM)
        return
    norms: list[Any] = [
        torch.nn.utils.get_total_norm([each.grad for each in group if each.grad is not None])
        for group in groups
    ]
    whole = [norm.full_tensor() if hasattr(norm, "full_tensor") else norm for norm in norms]
    total = torch.linalg.vector_norm(torch.stack(whole))
    for group in groups:
        torch.nn.utils.clip_grads_with_norm_(group, MAXIMUM_NORM, total)
