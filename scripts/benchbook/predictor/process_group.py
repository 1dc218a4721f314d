"""A process group of any size that pretends to communicate, and the mesh of devices over it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from benchbook.predictor.workload import UnpredictableError


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
