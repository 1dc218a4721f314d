"""Predict what one of several ranks needs that train a model together, divided as the frameworks do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._sharding_prop import ShardingPropagator
from torch.nn.parallel import DistributedDataParallel
from transformers.distributed.configuration_utils import DistributedConfig
from transformers.distributed.tensor_parallel import apply_tensor_parallelism, get_kv_heads_per_rank

from benchbook.predictor.attention import dispatched
from benchbook.predictor.fake_accelerator import fake_accelerator
from benchbook.predictor.gpus import H200, Gpu
from benchbook.predictor.models import Config, check_positions, read_config, replace_tensors
from benchbook.predictor.prediction import (
    Prediction,
    build,
    check_attention,
    fake_device,
    summed_up,
    trace_training,
)
from benchbook.predictor.trace import ROOT, Trace
from benchbook.predictor.workload import Device, Sharding, Training, UnpredictableError
from benchbook.predictor.workspaces import Workspaces


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
    replace_tensors(model, lambda tensor: torch.empty_like(tensor, device=device))
    plans.tie_weights()


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


@contextmanager
def pretended_ranks(ranks: int, device: str) -> Iterator[DeviceMesh]:
    """Be the first of so many ranks; gives their mesh of one dimension.

    The group is torch's own `fake` back end: each collective returns at once and moves nothing. The first
    rank is the one to predict: where a dimension does not divide, it holds the largest share.

    Raises:
        UnpredictableError: torch has no such back end, or this process is a rank already.
    """
    if not dist.is_available():
        raise UnpredictableError("this torch was built without torch.distributed", "install one that has it")
    if dist.is_initialized():
        raise UnpredictableError(
            "this process is a rank of a group already", "predict in a process of its own"
        )
    try:
        # Importing it registers the back end.
        from torch.testing._internal.distributed.fake_pg import FakeStore
    except ImportError as error:
        raise UnpredictableError(
            "torch lacks its fake process group", "install torch 2.11 or later"
        ) from error
    served = {dist.Backend.FAKE: [*dict.fromkeys(("cpu", device))]}
    with mock.patch.dict(dist.Backend.backend_capability, served):
        dist.init_process_group(dist.Backend.FAKE, store=FakeStore(), rank=0, world_size=ranks)
    try:
        # Not under a fake mode: the mesh computes with the numbers of its ranks.
        yield DeviceMesh(device, list(range(ranks)))
    finally:
        dist.destroy_process_group()


COMMUNICATION = "communication"
GATHERED = "gathered_weights"
PROPAGATION = "_propagate_tensor_meta_non_cached"
# What gloo copies on the CPU, by its place among the arguments: the result that it gathers and the input that
# it reduces before scattering (`allgather` and `reduce_scatter_tensor_coalesced` in
# `torch/csrc/distributed/c10d/ProcessGroupGloo.cpp`).
GLOO_COPIES = {
    torch.ops.c10d._allgather_base_.default: 0,
    torch.ops.c10d._reduce_scatter_base_.default: 1,
}
# What an operation of FSDP2 tells of its arguments.
PARTS: dict[Any, tuple[tuple[str, int | str], ...]] = {
    torch.ops.c10d._allgather_base_.default: ((COMMUNICATION, 0),),
    torch.ops.c10d._reduce_scatter_base_.default: ((COMMUNICATION, 1),),
    torch.ops.fsdp.split_with_sizes_copy.default: ((GATHERED, "out"),),
}
WRAPPERS = (DTensor, AsyncCollectiveTensor)


class RankTrace(Trace):
    """Sees what one rank holds; tensors over several ranks count by their local parts."""

    def __init__(self, device: str, workspaces: Workspaces | None = None) -> None:
        super().__init__(device, workspaces)
        self._propagating = 0
        self._streams = {torch.cpu.current_stream(): 0}
        self._patches = ExitStack()

    def adopt(self, tensor: torch.Tensor, category: str, layer: str = ROOT) -> None:
        """Count the local part of a storage in."""
        if isinstance(tensor, DTensor):
            tensor = tensor._local_tensor
        super().adopt(tensor, category, layer)

    def __enter__(self) -> Any:
        """Watch, also what no operation tells of."""
        resize = torch.UntypedStorage.resize_
        propagate = getattr(ShardingPropagator, PROPAGATION)

        def resize_(storage: torch.UntypedStorage, size: int) -> Any:
            resized = resize(storage, size)
            self._resized(storage)
            return resized

        def propagate_(*args: Any) -> Any:
            self._propagating += 1
            try:
                return propagate(*args)
            finally:
                self._propagating -= 1

        self._patches.enter_context(mock.patch.object(torch.UntypedStorage, "resize_", resize_))
        self._patches.enter_context(mock.patch.object(ShardingPropagator, PROPAGATION, propagate_))
        entered: Any = super()
        return entered.__enter__()

    def __exit__(self, *error: Any) -> None:
        """Stop watching."""
        left: Any = super()
        left.__exit__(*error)
        self._patches.close()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operation on local tensors; count in what it made."""
        if any(issubclass(each, WRAPPERS) for each in types):
            return NotImplemented
        if self._propagating:
            return func(*args, **(kwargs or {}))
        if func is torch.ops._c10d_functional.wait_tensor.default:
            return args[0]
        copied = GLOO_COPIES.get(func) if self._device == "cpu" else None
        if copied is not None:
            # Both copies are gone when the collective ends, as the ranks wait for it.
            self.events.order.append(~self._be_born(args[copied].untyped_storage().nbytes(), func))
        result = super().__torch_dispatch__(func, types, args, kwargs)
        for category, named in PARTS.get(func, ()):
            value: Any = (kwargs or {}).get(named) if isinstance(named, str) else args[named]
            for tensor in value if isinstance(value, list) else [value]:
                self.adopt(tensor, category)
        return result

    def _be_born(self, size: int, op: object) -> int:
        index = super()._be_born(size, op)
        # Collectives have streams of their own, so that they overlap with the work.
        stream = torch.cpu.current_stream()
        self.events.births[index].stream = self._streams.setdefault(stream, len(self._streams))
        return index

    def _resized(self, storage: torch.UntypedStorage) -> None:
        known = self._alive.pop(storage._cdata, None)
        if known is not None:
            self.events.order.append(~known[0])
        self._see_storage(storage, "resize_")


# transformers' Adafactor mixes divided and whole tensors, which torch refuses; bitsandbytes' kernels are not
# known to take divided ones.
WHOLE_WEIGHTS_ONLY = ("adafactor", "adamw_8bit", "paged_adamw_8bit")


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
    if workload.objective != "supervised" or workload.evaluation:
        raise UnpredictableError(
            f"{workload.objective} among ranks, or an evaluation, is not told", "predict it for one GPU"
        )
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
        check_positions(model, workload)

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
