"""What the prediction has to know of a GPU: its compute capability, which decides kernels and workspaces."""

from __future__ import annotations

from dataclasses import dataclass

from benchbook.machines.accelerators import model_words
from benchbook.machines.gpus import FILE, compute_capabilities
from benchbook.predictor.workload import UnpredictableError

MIB = 2**20
HOPPER = 9
BLACKWELL = (10, 12)


@dataclass(frozen=True)
class Gpu:
    """One model.

    Parameters:
        name: Its words, such as `H200` or `RTX 4090`.
        capability: Its compute capability.
    """

    name: str
    capability: tuple[int, int]

    @property
    def blas_workspace(self) -> int:
        """Bytes that torch gives to cuBLAS, which keeps them.

        32 MiB since Hopper, before it two buffers of 4 MiB and eight of 16 KiB (`parseChosenWorkspaceSize` in
        `aten/src/ATen/cuda/CublasHandlePool.cpp`; Blackwell: pytorch PR #175344).
        """
        if self.capability[0] == HOPPER or self.capability[0] in BLACKWELL:
            return 32 * MIB
        return 2 * 4 * MIB + 8 * 16 * 1024

    @property
    def prefers_cudnn(self) -> bool:
        """Attention goes to cuDNN first (`check_prefer_cudnn_attention` in sdp_utils.cpp).

        From cuDNN 9.15.1 on, which the wheels of torch 2.11 surpass.
        """
        return self.capability[0] in (HOPPER, BLACKWELL[0])


H200 = Gpu("H200", compute_capabilities()["H200"])


def gpu_named(name: str) -> Gpu:
    """The GPU that a name means, such as `NVIDIA H100 80GB HBM3` or `rtx 4090`.

    Raises:
        UnpredictableError: Its model is not among the known ones.
    """
    words = [word.upper() for word in model_words(name)]
    known = compute_capabilities()
    for model in sorted(known, key=lambda each: -len(each.split())):
        wanted = model.upper().split()
        if any(words[place : place + len(wanted)] == wanted for place in range(len(words))):
            return Gpu(model, known[model])
    some = ", ".join(sorted(known)[:8])
    raise UnpredictableError(f"{name} is not a known GPU", f"use one of {some}, …: a name in {FILE.name}")
