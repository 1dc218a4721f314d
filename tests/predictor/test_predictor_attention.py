"""The fake accelerator takes the attention kernel that CUDA's dispatcher would take."""

from __future__ import annotations

import pytest
import torch

from benchbook.predictor.attention import dispatched
from benchbook.predictor.gpus import Gpu, gpu_named
from benchbook.predictor.prediction import fake_device
from benchbook.predictor.trace import Trace
from benchbook.predictor.workload import Attention, UnpredictableError

pytestmark = pytest.mark.torch

A100, H100, V100 = (gpu_named(name) for name in ("A100", "H100", "V100"))


def kernel_taken(
    gpu: Gpu,
    dtype: torch.dtype,
    *,
    attention: Attention = "sdpa",
    mask: bool = False,
    dropout: float = 0.0,
    head: int = 64,
    key_heads: int = 4,
) -> str:
    with fake_device("cuda") as kind, dispatched(attention, gpu):
        trace = Trace(kind)
        trace.mark("forward")
        query = torch.empty(2, 4, 32, head, dtype=dtype, device=kind)
        key = torch.empty(2, key_heads, 32, head, dtype=dtype, device=kind)
        added = torch.empty(2, 1, 32, 32, dtype=dtype, device=kind) if mask else None
        with trace:
            torch.nn.functional.scaled_dot_product_attention(
                query, key, key, added, dropout, enable_gqa=key_heads < 4
            )
    ops = [birth.op for birth in trace.events.births]
    for name in ("cudnn", "flash", "efficient"):
        if any(f"_scaled_dot_product_{name}" in op for op in ops):
            return name
    assert any("softmax" in op for op in ops)
    return "math"


def test_half_precision_without_a_mask_goes_to_flash() -> None:
    assert kernel_taken(A100, torch.bfloat16) == "flash"


def test_hopper_prefers_cudnn() -> None:
    assert kernel_taken(H100, torch.bfloat16) == "cudnn"


def test_dropout_that_cudnn_cannot_draw_goes_to_flash_on_hopper() -> None:
    assert kernel_taken(H100, torch.bfloat16, dropout=0.1) == "flash"


def test_dropout_in_sixteenths_stays_with_cudnn() -> None:
    assert kernel_taken(H100, torch.bfloat16, dropout=0.125) == "cudnn"


def test_a_mask_goes_to_the_efficient_kernel() -> None:
    assert kernel_taken(A100, torch.bfloat16, mask=True) == "efficient"


@pytest.mark.parametrize("gpu", [V100, A100, H100])
def test_fp32_goes_to_the_efficient_kernel(gpu: Gpu) -> None:
    assert kernel_taken(gpu, torch.float32) == "efficient"


def test_volta_has_no_flash() -> None:
    assert kernel_taken(V100, torch.float16) == "efficient"


def test_volta_has_no_fused_kernel_for_bf16() -> None:
    assert kernel_taken(V100, torch.bfloat16) == "math"


def test_heads_that_are_not_aligned_fall_back_to_math() -> None:
    assert kernel_taken(A100, torch.float32, head=30) == "math"


def test_shared_heads_stay_with_flash() -> None:
    assert kernel_taken(A100, torch.bfloat16, key_heads=2) == "flash"


def test_a_kernel_asked_for_is_taken() -> None:
    assert kernel_taken(H100, torch.bfloat16, attention="sdpa_math") == "math"


def test_a_kernel_that_cannot_run_is_refused() -> None:
    with pytest.raises(UnpredictableError, match="sdpa_flash on float32"):
        kernel_taken(A100, torch.float32, attention="sdpa_flash")
