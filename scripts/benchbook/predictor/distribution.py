"""Divide a model among ranks as the frameworks do: FSDP2, tensor parallelism, or a replica for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel
from transformers.distributed.configuration_utils import DistributedConfig
from transformers.distributed.tensor_parallel import apply_tensor_parallelism, get_kv_heads_per_rank

from benchbook.predictor.sharding import Sharding
from benchbook.predictor.workload import UnpredictableError


def shard_fully(model: nn.Module, sharding: Sharding, mesh: DeviceMesh) -> None:
    """`fully_shard` each layer, then the whole: what is in no layer forms a group that stays gathered."""
    policy = MixedPrecisionPolicy()
    if sharding.mixed_precision:
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in _layers(model):
        fully_shard(layer, mesh=mesh, reshard_after_forward=sharding.reshard_after_forward, mp_policy=policy)
    # Its backward pass comes at once: torch's default keeps it gathered.
    fully_shard(model, mesh=mesh, mp_policy=policy)


def _layers(model: nn.Module) -> Iterator[nn.Module]:
    """The members of the outermost lists of modules, such as both halves of an encoder-decoder."""
    for child in model.children():
        if isinstance(child, nn.ModuleList):
            yield from child
        else:
            yield from _layers(child)


def shard_tensors(model: nn.Module, sharding: Sharding, mesh: DeviceMesh, device: str) -> None:
    """Apply transformers' plan for the model, as `from_pretrained` does: before there are weights.

    Parameters:
        model: On the device `meta`.
        sharding: Over how many ranks.
        mesh: Of them.
        device: Where each rank's part is to be.

    Raises:
        UnpredictableError: The model has no plan, or cannot be divided by it.
    """
    plans: Any = model
    try:
        plan, _, _ = plans._resolve_parallel_plans(DistributedConfig(tp_size=sharding.ranks))
        settings = plans.config.get_text_config()
        heads = getattr(settings, "num_key_value_heads", None) or settings.num_attention_heads
        if get_kv_heads_per_rank(plan, heads, sharding.ranks) is None:
            raise ValueError(f"{sharding.ranks} ranks cannot share {heads} heads of keys and values")
        apply_tensor_parallelism(plans, mesh, plan)
    except (ValueError, RuntimeError) as error:
        raise UnpredictableError(
            f"transformers does not divide it: {error}", "choose another sharding"
        ) from error
    _allocate(model, device)
    plans.tie_weights()


def _allocate(model: nn.Module, device: str) -> None:
    """Give each weight room on the device; `to_empty` cannot with fake tensors that have weak references."""
    # With the tensor that was there, whose number would be given anew.
    moved: dict[int, tuple[torch.Tensor, Any]] = {}

    def move(tensor: torch.Tensor) -> Any:
        if id(tensor) not in moved:
            room = torch.empty_like(tensor, device=device)
            weight = isinstance(tensor, nn.Parameter)
            moved[id(tensor)] = tensor, nn.Parameter(room, tensor.requires_grad) if weight else room
        return moved[id(tensor)][1]

    for module in model.modules():
        for places in (module._parameters, module._buffers):
            for name, tensor in places.items():
                if tensor is not None:
                    places[name] = move(tensor)


class _Unordered:
    """A reducer that leaves its buckets as they are.

    After the first step, torch fills new ones in the order in which gradients were ready, on which the ranks
    agree by values; they take the same room.
    """

    def __init__(self, reducer: Any) -> None:
        self._reducer = reducer

    def _rebuild_buckets(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reducer, name)


def replicate(
    model: nn.Module, sharding: Sharding, seen_bucket: Callable[[torch.Tensor], None]
) -> DistributedDataParallel:
    """A replica whose gradients are reduced in buckets.

    Parameters:
        model: With weights.
        sharding: Whether gradients lie in the buckets.
        seen_bucket: Is told of each bucket when its gradients are ready.
    """
    # Nothing is compared or sent before training: there are no values.
    replica = DistributedDataParallel(
        model, gradient_as_bucket_view=sharding.gradient_as_bucket_view, init_sync=False
    )

    def reduce(bucket: Any) -> torch.futures.Future[torch.Tensor]:
        seen_bucket(bucket.buffer())
        done: torch.futures.Future[torch.Tensor] = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    replica.reducer = cast(Any, _Unordered(replica.reducer))
    # The pretended group's own reduction ends in no result, which a replica cannot take.
    replica.register_comm_hook(None, lambda _, bucket: reduce(bucket))
    return replica
