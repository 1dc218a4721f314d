"""A device that torch takes for an accelerator and that neither holds memory nor computes."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import backend_registration

from benchbook.predictor.workload import UnpredictableError

NAME = "fake_gpu"
HOOK = "_setup_privateuseone_for_python_backend"


class FakeMode(FakeTensorMode):
    """Tensors without memory, on a CPU or on the fake accelerator, which has no runtime to start."""

    @property
    def avoid_device_init(self) -> bool:
        """No tensor wakes its device."""
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> FakeMode:
        """Copies of its tensors are its own."""
        return self


@cache
def fake_accelerator() -> str:
    """Register the device, once per process; returns the type that names it.

    A fake tensor on `cuda` fails on a build of torch without CUDA: autograd and the kernels ask for the real
    device. torch's hook for back ends written in Python (private; pytorch PR #157859) gives a complete one,
    guards and streams included.

    Raises:
        UnpredictableError: This torch has no such hook, or another back end took the one place for it.
    """
    setup: Any = getattr(backend_registration, HOOK, None)
    if setup is None or "backend_module" not in inspect.signature(setup).parameters:
        raise UnpredictableError(
            f"torch {torch.__version__} lacks the hook for devices written in Python ({HOOK})",
            "install torch 2.11 or later",
        )
    taken = torch._C._get_privateuse1_backend_name()
    if taken == NAME:
        return NAME
    if taken != "privateuseone":
        raise UnpredictableError(
            f"the back end {taken} took torch's one place for a device from outside", "predict without it"
        )

    class Backend(backend_registration._DummyBackendModule):
        """What torch asks of a device's module."""

        # Those of the CPU, which only take turns.
        Event = torch.cpu.Event
        Stream = torch.cpu.Stream
        current_stream = staticmethod(torch.cpu.current_stream)
        stream = staticmethod(torch.cpu.stream)
        # Of no interest: no value is ever drawn.
        get_rng_state = staticmethod(lambda device=None: torch.empty(0, dtype=torch.uint8))
        set_rng_state = staticmethod(lambda state, device=None: None)

        def get_amp_supported_dtype(self) -> list[torch.dtype]:
            """As CUDA's."""
            return [torch.float16, torch.bfloat16]

    setup(rename=NAME, backend_module=Backend())
    return NAME
