"""Automatic mixed precision on the fake accelerator: which operations CUDA's autocast casts, and to what.

torch registers its lists for CUDA, the CPU and a few more; a device from outside brings its own. These are
CUDA's, from `aten/src/ATen/autocast_mode.h` (`AT_FORALL_LOWER_PRECISION_FP`, `AT_FORALL_FP32`,
`AT_FORALL_FP32_SET_OPT_DTYPE`, `AT_FORALL_PROMOTE`), less convolutions, recurrent cells and images.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch import nn

from benchbook.predictor.fake_accelerator import NAME
from benchbook.predictor.workload import Precision

KEY = "AutocastPrivateUse1"
LOWER_PRECISION = (
    "_scaled_dot_product_flash_attention",
    "addbmm",
    "addmm",
    "addmv",
    "addr",
    "baddbmm",
    "bmm",
    "chain_matmul",
    "einsum",
    "linalg_multi_dot",
    "linalg_vecdot",
    "linear",
    "matmul",
    "mm",
    "mv",
    "prelu",
    "scaled_dot_product_attention",
)
FULL_PRECISION = (
    "acos",
    "asin",
    "binary_cross_entropy_with_logits",
    "cdist",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "dist",
    "erfinv",
    "exp",
    "expm1",
    "frobenius_norm.dim",
    "group_norm",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "logsumexp",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "native_layer_norm",
    "nll_loss",
    "nll_loss2d",
    "nuclear_norm",
    "nuclear_norm.dim",
    "pdist",
    "poisson_nll_loss",
    "pow.Scalar",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "reciprocal",
    "renorm",
    "rms_norm",
    "rsqrt",
    "sinh",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softplus",
    "tan",
    "triplet_margin_loss",
)
FULL_PRECISION_RESULT = (
    "cumprod",
    "cumsum",
    "linalg_matrix_norm",
    "linalg_matrix_norm.str_ord",
    "linalg_vector_norm",
    "log_softmax.int",
    "prod",
    "prod.dim_int",
    "softmax.int",
    "sum",
    "sum.dim_IntList",
)
WIDEST = (
    "addcdiv",
    "addcmul",
    "atan2",
    "bilinear",
    "cross",
    "dot",
    "index_put",
    "scatter_add",
    "tensordot",
    "vdot",
)
DTYPES = {
    "bf16_autocast": torch.bfloat16,
    "fp16_autocast": torch.float16,
    "bf16_weights_autocast": torch.bfloat16,
}

# Casts of weights, kept until the outermost region ends (`cached_cast` in autocast_mode.cpp).
_casts: dict[int, torch.Tensor] = {}


def autocast(device: str, precision: Precision) -> AbstractContextManager[Any]:
    """The region of a forward pass, on any device; without autocast it does nothing."""
    dtype = DTYPES.get(precision)
    if dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(device, dtype=dtype)


@contextlib.contextmanager
def watched_cache() -> Iterator[None]:
    """Empty the cache of casts whenever torch empties its own."""
    clear = torch.clear_autocast_cache

    def clear_both() -> None:
        _casts.clear()
        clear()

    with mock.patch.object(torch, "clear_autocast_cache", clear_both):
        try:
            yield
        finally:
            _casts.clear()


class Scaler:
    """The scaling of losses and gradients for fp16, on any device, as `torch.amp.GradScaler` does it.

    Less what depends on values: it never skips a step.
    """

    def __init__(self, device: str) -> None:
        self._scale = torch.ones((), device=device)
        self._growth = torch.ones((), dtype=torch.int32, device=device)

    def scale(self, loss: torch.Tensor) -> torch.Tensor:
        """The loss, scaled."""
        return loss * self._scale

    @torch.no_grad()
    def unscale(self, parameters: list[nn.Parameter]) -> None:
        """Scale gradients back, in place."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        found = torch.zeros((), device=self._scale.device)
        torch._amp_foreach_non_finite_check_and_unscale_(
            gradients, found, self._scale.double().reciprocal().float()
        )


@cache
def register_autocast() -> tuple[torch.library.Library, ...]:
    """Give the fake accelerator CUDA's lists, once per process; what is returned keeps them in force."""
    rest = torch.library.Library("_", "IMPL")
    rest.fallback(torch.library.fallthrough_kernel, KEY)
    library = torch.library.Library("aten", "IMPL", KEY)
    for names, wrap in (
        (LOWER_PRECISION, _lower_precision),
        (FULL_PRECISION, _full_precision),
        (FULL_PRECISION_RESULT, _full_precision_result),
        (WIDEST, _widest),
    ):
        for name in names:
            library.impl(name, _without_autocast(wrap(_operation(name))))
    return rest, library


def _operation(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


def _without_autocast(function: Callable[..., Any]) -> Callable[..., Any]:
    keys = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, KEY))

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return function(*args, **kwargs)

    return kernel


def _lower_precision(operation: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        dtype = torch.get_autocast_dtype(NAME)
        return operation(*_cast(args, dtype), **_cast(kwargs, dtype))

    return run


def _full_precision(operation: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        return operation(*_cast(args, torch.float32), **_cast(kwargs, torch.float32))

    return run


def _full_precision_result(operation: Any) -> Callable[..., Any]:
    """The kernel casts on the fly: only its result is asked for in fp32, where nothing else is asked for."""
    arguments = operation._schema.arguments
    place = next(index for index, each in enumerate(arguments) if each.name == "dtype")
    by_name = arguments[place].kwarg_only

    def run(*args: Any, **kwargs: Any) -> Any:
        if _eligible(args[0]):
            if not by_name and len(args) > place:
                args = (*args[:place], args[place] or torch.float32, *args[place + 1 :])
            else:
                kwargs["dtype"] = kwargs.get("dtype") or torch.float32
        return operation(*args, **kwargs)

    return run


def _widest(operation: Any) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves = torch.utils._pytree.tree_leaves((args, kwargs))
        wide = any(_eligible(leaf) and leaf.dtype == torch.float32 for leaf in leaves)
        dtype = torch.float32 if wide else torch.get_autocast_dtype(NAME)
        return operation(*_cast(args, dtype), **_cast(kwargs, dtype))

    return run


def _eligible(value: object) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.device.type == NAME
        and value.is_floating_point()
        and value.dtype != torch.float64
    )


def _cast(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, torch.Tensor):
        if not _eligible(value) or value.dtype == dtype:
            return value
        if dtype == torch.float32 or not _is_weight(value):
            return value.to(dtype)
        key = id(value)
        if key not in _casts:
            _casts[key] = value.to(dtype)
        return _casts[key]
    if isinstance(value, list | tuple):
        return type(value)(_cast(each, dtype) for each in value)
    if isinstance(value, dict):
        return {name: _cast(each, dtype) for name, each in value.items()}
    return value


def _is_weight(value: torch.Tensor) -> bool:
    # A view is never cached. Weights outlive the region, so that their identity is a key.
    return value.dtype == torch.float32 and value.requires_grad and value.is_leaf and not value._is_view()
