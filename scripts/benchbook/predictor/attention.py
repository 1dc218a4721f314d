"""Which attention kernel a GPU would take, and the attention of earlier versions of torch.

`torch.nn.functional.scaled_dot_product_attention` asks the device for a back end; a device from outside gets
none of the fused ones. Here the fake accelerator answers as CUDA does: the rules and their order are those of
`aten/src/ATen/native/transformers/cuda/sdp_utils.cpp` (`select_sdp_backend`, `can_use_*_attention`), what
happens around each kernel is that of `aten/src/ATen/native/transformers/attention.cpp`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
from packaging.version import Version
from transformers import AttentionInterface, AttentionMaskInterface

from benchbook.predictor.gpus import H200, Gpu
from benchbook.predictor.workload import Attention, UnpredictableError

Backend = Literal["cudnn", "flash", "efficient", "math"]
ORDER: tuple[Backend, ...] = ("flash", "efficient", "math", "cudnn")
CUDNN_FIRST: tuple[Backend, ...] = ("cudnn", "flash", "efficient", "math")
HALF = (torch.float16, torch.bfloat16)
FLASH_LARGEST_HEAD = 256
CUDNN_LARGEST_HEAD = 128
# Shares of dropout that cuDNN draws are multiples of 1/16.
CUDNN_DROPOUT_STEPS = 16
MASK_ALIGNMENT = 16
AMPERE = (8, 0)
VOLTA = (7, 0)
OLD_EAGER = "eager_torch_1.10"
# The first version of torch known to share heads among queries in the efficient kernel.
EFFICIENT_GROUPS_SINCE = Version("2.15")

_gpu: Gpu = H200
_allowed: tuple[Backend, ...] = CUDNN_FIRST


@dataclass(frozen=True)
class _Call:
    """The arguments of one call of scaled dot-product attention."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    mask: torch.Tensor | None
    dropout: float
    causal: bool
    scale: float | None
    grouped: bool


@contextmanager
def dispatched(attention: Attention, gpu: Gpu = H200) -> Iterator[str]:
    """Let the fake accelerator be this GPU and take what is asked for; gives transformers' word for that.

    `sdpa_flash`, `sdpa_efficient` and `sdpa_math` stand for `torch.nn.attention.sdpa_kernel` around
    transformers' `sdpa`.
    """
    global _allowed, _gpu
    before = _allowed, _gpu
    word, _, backend = attention.partition("_")
    order = CUDNN_FIRST if gpu.prefers_cudnn else ORDER
    _allowed = tuple(each for each in order if word != "sdpa" or backend in ("", each))
    _gpu = gpu
    try:
        yield word if word == "sdpa" else attention
    finally:
        _allowed, _gpu = before


@cache
def register_attention() -> torch.library.Library:
    """Give the fake accelerator CUDA's dispatch, once per process; what is returned keeps it in force."""
    library = torch.library.Library("aten", "IMPL", "AutogradPrivateUse1")
    library.impl("scaled_dot_product_attention", _scaled_dot_product_attention)
    AttentionInterface.register(OLD_EAGER, _old_eager)
    AttentionMaskInterface.register(OLD_EAGER, _old_mask)
    return library


def _scaled_dot_product_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    call = _Call(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    for backend in _allowed:
        if _usable(backend, call):
            return _run(backend, call)
    raise UnpredictableError(
        f"no GPU runs sdpa_{_allowed[0]} on {str(query.dtype).removeprefix('torch.')} with heads of "
        f"{query.shape[-1]}{' and a mask' if attn_mask is not None else ''}",
        "choose another attention, or sdpa to let torch choose",
    )


def _usable(backend: Backend, call: _Call) -> bool:
    if backend == "math":
        return True
    query, key, value = call.query, call.key, call.value
    heads = {each.shape[1] for each in (query, key, value)}
    if not all(each.dim() == 4 and each.stride(-1) == 1 for each in (query, key, value)):
        return False
    if len(heads) > 1 and not call.grouped:
        return False
    rules = {"cudnn": _cudnn_can, "flash": _flash_can, "efficient": _efficient_can}
    return rules[backend](call, len(heads) > 1)


def _cudnn_can(call: _Call, shared_heads: bool) -> bool:
    """`can_use_cudnn_attention`, of cuDNN 9.19 as torch 2.11 brings it."""
    query, key, value = call.query, call.key, call.value
    steps = call.dropout * CUDNN_DROPOUT_STEPS
    return (
        _gpu.capability >= AMPERE
        and query.dtype in HALF
        and (call.mask is None or not call.mask.requires_grad)
        and steps == math.floor(steps)
        and all(each.shape[-1] % 8 == 0 and each.shape[-1] <= CUDNN_LARGEST_HEAD for each in (query, value))
        and key.shape[-2] != 1
        and (call.dropout == 0 or query.shape[-2] != 1)
    )


def _flash_can(call: _Call, shared_heads: bool) -> bool:
    """`can_use_flash_attention`."""
    query, key, value = call.query, call.key, call.value
    return (
        _gpu.capability >= AMPERE
        and query.dtype in HALF
        and call.mask is None
        and query.shape[-1] == key.shape[-1] == value.shape[-1] <= FLASH_LARGEST_HEAD
        and (not call.causal or query.shape[-2] == key.shape[-2])
    )


def _efficient_can(call: _Call, shared_heads: bool) -> bool:
    """`can_use_mem_efficient_attention`, with `minimum_gemm_alignment`."""
    query, value = call.query, call.value
    bits = query.element_size() * 8
    cores = _gpu.capability >= AMPERE or (_gpu.capability >= VOLTA and query.dtype in HALF)
    alignment = max(4 if _gpu.capability >= AMPERE else 1, 128 // bits if cores else 1)
    types = (*HALF, torch.float32) if _gpu.capability >= AMPERE else (torch.float16, torch.float32)
    return (
        query.dtype in types
        and query.shape[-1] == call.key.shape[-1]
        and query.shape[-1] % alignment == 0
        and value.shape[-1] % alignment == 0
        and (not shared_heads or Version(torch.__version__).release >= EFFICIENT_GROUPS_SINCE.release)
    )


def _run(backend: Backend, call: _Call) -> torch.Tensor:
    aten = torch.ops.aten
    query, key, value = call.query, call.key, call.value
    result: torch.Tensor
    if backend == "flash":
        head = query.shape[-1]
        query, key, value = (_padded(each, 8) for each in (query, key, value))
        scale = call.scale if call.scale is not None else 1 / math.sqrt(head)
        result = aten._scaled_dot_product_flash_attention(
            query, key, value, call.dropout, call.causal, False, scale=scale
        )[0]
        return result[..., :head] if head % 8 else result
    mask = _added(call.mask, query.dtype)
    trained = torch.is_grad_enabled() and any(each.requires_grad for each in (query, key, value))
    if backend == "cudnn":
        result = aten._scaled_dot_product_cudnn_attention(
            query, key, value, mask, trained, call.dropout, call.causal, False, scale=call.scale
        )[0]
        return result
    if backend == "efficient":
        if mask is not None:
            length = mask.shape[-1]
            mask = _padded(mask, MASK_ALIGNMENT)[..., :length]
            mask = mask.expand(*query.shape[:3], key.shape[-2])
        result = aten._scaled_dot_product_efficient_attention(
            query, key, value, mask, trained, call.dropout, call.causal, scale=call.scale
        )[0]
        return result
    result = aten._scaled_dot_product_attention_math(
        query,
        key,
        value,
        mask,
        call.dropout,
        call.causal,
        None,
        scale=call.scale,
        enable_gqa=call.grouped,
    )[0]
    return result


def _added(mask: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """A mask of booleans as one that is added (`convert_boolean_attn_mask`)."""
    if mask is None or mask.dtype != torch.bool:
        return mask
    return torch.where(mask.logical_not(), -math.inf, torch.zeros((), dtype=dtype, device=mask.device))


def _padded(tensor: torch.Tensor, multiple: int) -> torch.Tensor:
    lacking = -tensor.shape[-1] % multiple
    return torch.nn.functional.pad(tensor, (0, lacking)) if lacking else tensor


class _OldSoftmax(torch.autograd.Function):
    """Softmax that keeps its input as well as its output for the backward pass.

    So did torch up to 1.10, which passed the input to `_softmax_backward_data` only for its type (pytorch
    issues #49600 and #64000, fixed by PR #65242).
    """

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor) -> torch.Tensor:
        """Softmax over the last dimension, in fp32 as autocast has it."""
        wide = scores.float()
        result: torch.Tensor = torch.ops.aten._softmax(wide, -1, False)
        ctx.save_for_backward(wide, result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        """Of the scores."""
        wide, result = ctx.saved_tensors
        gradient: torch.Tensor = torch.ops.aten._softmax_backward_data(gradients[0], result, -1, wide.dtype)
        return gradient


def _old_eager(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **rest: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention as transformers 4.21 wrote it for BERT."""
    groups = getattr(module, "num_key_value_groups", 1)
    if groups > 1:
        key, value = (each.repeat_interleave(groups, dim=1) for each in (key, value))
    scores = torch.matmul(query, key.transpose(-1, -2))
    scores = scores * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = _apply_old_softmax(scores)
    weights = torch.nn.functional.dropout(weights, p=dropout, training=module.training)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights


_apply_old_softmax: Callable[[torch.Tensor], torch.Tensor] = _OldSoftmax.apply


def _old_mask(
    batch_size: int, kv_length: int, dtype: torch.dtype = torch.float32, device: Any = None, **rest: Any
) -> torch.Tensor:
    """One row per sample, in the type of the weights, as transformers 4.21 made it."""
    return torch.zeros(batch_size, 1, 1, kv_length, dtype=dtype, device=device)
