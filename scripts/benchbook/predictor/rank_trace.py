"""Watch the storages of one rank: local shards, gathered weights and the buffers of collectives."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._sharding_prop import ShardingPropagator

from benchbook.predictor.trace import ROOT, Trace
from benchbook.predictor.workspaces import Workspaces

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
