"""Memory that CUDA's kernels take beside their results, which no trace of tensors shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from benchbook.predictor.gpus import Gpu

aten = torch.ops.aten
FLOAT = 4
BLAS = {
    aten.mm.default,
    aten.addmm.default,
    aten.bmm.default,
    aten.baddbmm.default,
}
FLASH_ROWS = 128
FLASH_HEAD = 32
FLASH_LARGEST_STEP = 192
FLASH_LARGEST_HEAD = 256
EMBEDDING_UNSORTED = 3072
EMBEDDING_LISTS = 6


class Workspaces:
    """What one process takes on one GPU."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._threads: set[bool] = set()

    def kept(self, operation: Any, backward: bool) -> int:
        """Bytes that this operation is the first to need and that stay; zero for most.

        cuBLAS has one workspace per handle and stream, and torch one handle per thread: the backward pass has
        a thread of its own (`getCurrentCUDABlasHandle` in `aten/src/ATen/cuda/CublasHandlePool.cpp`).
        cuBLASLt shares it (`getCUDABlasLtWorkspaceSize`).
        """
        if operation not in BLAS or backward in self._threads:
            return 0
        self._threads.add(backward)
        return self._gpu.blas_workspace

    def passing(self, operation: Any, args: tuple[Any, ...]) -> Iterator[int]:
        """Bytes of each buffer that exists while the operation runs."""
        if operation is aten._scaled_dot_product_flash_attention_backward.default:
            yield from _flash_backward(args[1], args[2])
        elif operation is aten._scaled_dot_product_cudnn_attention_backward.default:
            # cuDNN does not say; its algorithm is the same one (Dao 2023, arXiv 2307.08691).
            yield from _flash_backward(args[1], args[2])
        elif operation is aten._scaled_dot_product_efficient_attention_backward.default:
            yield from _efficient_backward(args[0])
        elif operation is aten.embedding_dense_backward.default:
            yield from _embedding_backward(args[0], args[1])


def _flash_backward(query: torch.Tensor, key: torch.Tensor) -> Iterator[int]:
    """The gradient of the queries in fp32, a sum per row, and keys' and values' gradients for all heads.

    `aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp`, `mha_bwd`.
    """
    batch, heads, rows, head = query.shape
    rows = _rounded(rows, FLASH_ROWS)
    head_rounded = _rounded(head, FLASH_HEAD) if head <= FLASH_LARGEST_STEP else FLASH_LARGEST_HEAD
    yield FLOAT * batch * heads * rows
    yield FLOAT * batch * rows * heads * head_rounded
    if key.shape[1] != heads:
        expanded = batch * key.shape[2] * heads * head * key.element_size()
        yield expanded
        yield expanded


def _efficient_backward(gradient: torch.Tensor) -> Iterator[int]:
    """The product of output and gradient, and its sum per row; the former is the accumulator for halves.

    `_efficient_attention_backward` in `aten/src/ATen/native/transformers/cuda/attention_backward.cu`: kernels
    of fp32 have the product computed for them, those of halves accumulate the queries' gradient in fp32.
    """
    yield FLOAT * gradient.numel() // gradient.shape[-1]
    yield FLOAT * gradient.numel()


def _embedding_backward(gradient: torch.Tensor, indices: torch.Tensor) -> Iterator[int]:
    """Of many tokens: their order, four lists of places in it, and sums of rows in fp32, at most one a token.

    `embedding_dense_backward_cuda` in `aten/src/ATen/native/cuda/Embedding.cu` and
    `embedding_backward_cuda_kernel` in `EmbeddingBackwardKernel.cu` beside it.
    """
    tokens = indices.numel()
    if tokens <= EMBEDDING_UNSORTED:
        return
    for _ in range(EMBEDDING_LISTS):
        yield tokens * indices.element_size()
    yield FLOAT * gradient.numel()


def _rounded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
