"""Predict the memory of a workload: build the model, trace the work, replay it, say what it comes to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import transformers
from torch import nn
from transformers import PreTrainedConfig

from benchbook.predictor.adapters import needs_no_values
from benchbook.predictor.attention import OLD_EAGER, dispatched, register_attention
from benchbook.predictor.attribution import WorkPeak, attribute
from benchbook.predictor.autocast import register_autocast, watched_cache
from benchbook.predictor.fake_accelerator import FakeMode, fake_accelerator
from benchbook.predictor.gpus import H200, Gpu
from benchbook.predictor.inference import cache_tensors, generate
from benchbook.predictor.kernels import register_kernels
from benchbook.predictor.masks import masks_of_a_real_run
from benchbook.predictor.models import (
    Config,
    build_model,
    check_positions,
    draw_batch,
    layer_names,
    read_config,
    ready_for_training,
)
from benchbook.predictor.trace import Trace
from benchbook.predictor.training import STEPS, generate_completions, make_optimizer, prepare, train
from benchbook.predictor.workload import Device, Inference, ScriptRun, Training, UnpredictableError, Workload
from benchbook.predictor.workspaces import Workspaces

# The first pass of a step creates the gradients, the second adds to them, and so do all later ones.
PASSES = 2
# What holds the weights in bf16.
IN_BF16 = ("bf16", "bf16_weights_autocast")
# A CPU's own dispatcher decides what sdpa is.
ON_CPU = ("eager", "sdpa")


@dataclass(frozen=True)
class Prediction:
    """What a workload needs; bytes throughout, of whole blocks on a GPU.

    Parameters:
        peak_allocated: The most that torch's allocator holds at once.
        peak_reserved: The most that it takes from the device; None on a CPU.
        peak_requested: The most that is asked of torch's allocator at once; its blocks are larger.
        moment: When the peak is reached.
        categories: What holds the peak.
        layers: Where in the model that belongs.
        unexplained: The part of the peak that is in no category.
        moments: Peak and what is held at the end of each kind of work.
        fits: Whether that is done without running out of memory; None where the room is unlimited.
        parameters: Of the model, whether trained or not.
        torch: Its version, which decided what is computed.
        transformers: Likewise.
    """

    peak_allocated: int
    peak_reserved: int | None
    peak_requested: int
    moment: str
    categories: dict[str, int]
    layers: dict[str, int]
    unexplained: int
    moments: dict[str, WorkPeak]
    fits: bool | None
    parameters: int
    torch: str
    transformers: str


def predict(
    config: Config,
    workload: Workload,
    device: Device = "cuda",
    gpu: Gpu = H200,
    room: int | None = None,
) -> Prediction:
    """The memory of a workload, without the device and without the memory.

    Parameters:
        config: What transformers reads from a `config.json`, or such a configuration.
        workload: What is to be done with the model.
        device: A CUDA device with its caching allocator, or a CPU.
        gpu: Which CUDA device: its generation decides attention's kernel and cuBLAS's workspace.
        room: Bytes that torch's allocator can take of it; None: without end. What does not fit is predicted
            as if it did.

    Raises:
        UnpredictableError: The configuration is wrong, it has fewer positions, or this torch cannot do it.
    """
    check_attention(workload, device)
    with fake_device(device) as kind, dispatched(workload.attention, gpu) as attention:
        # Until 1.13, cuBLAS took its workspace past torch's allocator (pytorch PR #85447).
        counted = device == "cuda" and workload.attention != OLD_EAGER
        trace = Trace(kind, Workspaces(gpu) if counted else None)
        model = build(read_config(config), workload, kind, attention)
        check_positions(model, workload)
        if isinstance(workload, Training):
            trace_training(
                trace, model, workload, kind, reference=reference_of(config, workload, kind, attention)
            )
        else:
            _trace_inference(trace, model, workload, kind)
        parameters = sum(parameter.numel() for parameter in model.parameters())
    return summed_up(trace, parameters, device, room)


def check_attention(workload: Workload | ScriptRun, device: Device) -> None:
    """Refuse a CPU what only GPUs have."""
    if device == "cpu" and workload.attention not in ON_CPU:
        raise UnpredictableError(
            f"{workload.attention} is for GPUs", f"on a CPU, choose {' or '.join(ON_CPU)}"
        )


def summed_up(trace: Trace, parameters: int, device: Device, room: int | None) -> Prediction:
    """What a trace comes to on the device, of which torch's allocator can take `room` bytes."""
    found = attribute(trace.events, device == "cuda", room)
    return Prediction(
        found.peak_allocated,
        found.peak_reserved,
        found.peak_requested,
        found.moment,
        found.categories,
        found.layers,
        found.unexplained,
        found.moments,
        found.fits,
        parameters,
        torch.__version__,
        transformers.__version__,
    )


@contextlib.contextmanager
def fake_device(device: Device) -> Iterator[str]:
    """Tensors without memory on a CPU, or on what stands for a GPU; gives the type of the device."""
    if device == "cuda":
        kind = fake_accelerator()
        register_autocast()
        register_attention()
        register_kernels()
    else:
        kind = device
        # Autograd counts the devices in its first backward pass: one for a GPU later needs it there by then.
        with contextlib.suppress(UnpredictableError):
            fake_accelerator()
    with FakeMode(), watched_cache(), masks_of_a_real_run():
        yield kind


def build(config: PreTrainedConfig, workload: Workload, kind: str, attention: str) -> nn.Module:
    """The model as the workload needs it, without values; changes the configuration."""
    if isinstance(workload, Training):
        ready_for_training(config, workload)
    dtype = torch.bfloat16 if workload.precision in IN_BF16 else torch.float32
    return build_model(config, kind, dtype, attention, generating=isinstance(workload, Inference))


def reference_of(config: Config, workload: Training, kind: str, attention: str) -> nn.Module | None:
    """The copy that `dpo` compares a model with that trains whole; None where there is none.

    TRL freezes it not, so that autocast keeps the copies of its weights until its pass is over.
    """
    if workload.objective != "dpo" or workload.lora is not None or workload.adapters is not None:
        return None
    return build(read_config(config), workload, kind, attention)


def trace_training(
    trace: Trace,
    model: nn.Module,
    workload: Training,
    kind: str,
    distribute: Callable[[nn.Module], nn.Module] = lambda model: model,
    reference: nn.Module | None = None,
) -> None:
    """Let a trace see a model's training on a device.

    Parameters:
        trace: Of the device.
        model: Without values.
        workload: How to train it.
        kind: The type of the device.
        distribute: Divides the model in place, and gives what is called instead of it.
        reference: What `dpo` compares the model with.
    """
    trace.mark("load")
    model = prepare(model, workload)
    called = distribute(model)
    layers = adopt_weights(trace, model)
    if reference is not None:
        adopt_weights(trace, reference)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(workload.optimizer, trained, model)

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
    traced = replace(workload, accumulation=min(workload.accumulation, PASSES))
    lengths = workload.lengths or (workload.sequence,) * STEPS
    passes = iter([length for length in lengths for _ in range(traced.accumulation)])

    def draw(asked: Training) -> dict[str, torch.Tensor]:
        # What is evaluated is as long as the longest.
        return draw_batch(model, replace(asked, sequence=next(passes, workload.sequence), lengths=()), kind)

    def generate_first() -> None:
        # All passes of a step generate at once, those that are not traced too.
        generate_completions(called, workload, kind, trace.mark, cache_watcher(trace))

    with trace, needs_no_values(type(model).__name__):
        train(called, optimizer, draw, traced, kind, trace.mark, len(lengths), reference, generate_first)


def _trace_inference(trace: Trace, model: nn.Module, workload: Inference, kind: str) -> None:
    trace.mark("load")
    adopt_weights(trace, model)
    with trace:
        generate(model, workload, kind, trace.mark, cache_watcher(trace), skipping=True)


def cache_watcher(trace: Trace) -> Callable[[Any], None]:
    """What counts the keys and values of a cache as such."""

    def seen_cache(cache: Any) -> None:
        for _, tensor in cache_tensors(cache):
            trace.adopt(tensor, "cache")

    return seen_cache


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
