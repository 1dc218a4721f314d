"""Predict what one of several ranks needs that train a model together."""

from __future__ import annotations

import torch
from torch import nn

from benchbook.predictor.attention import dispatched
from benchbook.predictor.distribution import replicate, shard_fully, shard_tensors
from benchbook.predictor.fake_accelerator import fake_accelerator
from benchbook.predictor.gpus import H200, Gpu
from benchbook.predictor.models import Config, read_config
from benchbook.predictor.prediction import (
    Prediction,
    build,
    check_attention,
    fake_device,
    summed_up,
    trace_training,
)
from benchbook.predictor.process_group import pretended_ranks
from benchbook.predictor.rank_trace import COMMUNICATION, RankTrace
from benchbook.predictor.sharding import Sharding
from benchbook.predictor.workload import Device, Training, UnpredictableError
from benchbook.predictor.workspaces import Workspaces

# transformers' Adafactor mixes divided and whole tensors, which torch refuses; bitsandbytes' kernels are not
# known to take divided ones.
WHOLE_WEIGHTS_ONLY = ("adafactor", "adamw_8bit")


def predict_ranks(
    config: Config,
    workload: Training,
    sharding: Sharding,
    device: Device = "cuda",
    gpu: Gpu = H200,
    room: int | None = None,
) -> Prediction:
    """The memory of the rank that needs most, without the ranks.

    Counted is what torch's allocator gives while the model trains. What NCCL takes for itself is not, nor is
    the whole model on one rank before it is divided: load it divided.

    Parameters:
        config: What transformers reads from a `config.json`, or such a configuration.
        workload: What each rank does; with `tensor`, all do it together.
        sharding: How the model is divided.
        device: CUDA devices with NCCL, or processes on a CPU with gloo, whose copies are counted.
        gpu: Which CUDA device.
        room: Bytes that torch's allocator can take of it; None: without end.

    Raises:
        UnpredictableError: The configuration is wrong, or the model or this torch cannot do it.
    """
    check_attention(workload, device)
    if sharding.kind != "ddp" and workload.optimizer in WHOLE_WEIGHTS_ONLY:
        raise UnpredictableError(f"{workload.optimizer} takes no divided weights", "choose another optimizer")
    # The mesh comes first: it computes with real numbers, on a device that is known.
    kind = "cpu" if device == "cpu" else fake_accelerator()
    with (
        pretended_ranks(sharding.ranks, kind) as mesh,
        fake_device(device),
        dispatched(workload.attention, gpu) as attention,
    ):
        trace = RankTrace(kind, Workspaces(gpu) if device == "cuda" else None)
        tensors = sharding.kind == "tensor"
        model = build(read_config(config), workload, "meta" if tensors else kind, attention)

        def seen_bucket(bucket: torch.Tensor) -> None:
            trace.adopt(bucket, "gradients" if sharding.gradient_as_bucket_view else COMMUNICATION)

        def distribute(model: nn.Module) -> nn.Module:
            if tensors:
                shard_tensors(model, sharding, mesh, kind)
            elif sharding.kind == "fsdp2":
                shard_fully(model, sharding, mesh)
            else:
                # Its buckets are there from the beginning.
                with trace:
                    return replicate(model, sharding, seen_bucket)
            return model

        trace_training(trace, model, workload, kind, distribute)
        parameters = sum(parameter.numel() for parameter in model.parameters())
    return summed_up(trace, parameters, device, room)
