"""Autocast on the fake accelerator casts what CUDA's casts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchbook.predictor import autocast
from benchbook.predictor.prediction import fake_device
from benchbook.predictor.trace import Trace

pytestmark = pytest.mark.torch

HEADER = Path(torch.__file__).parent / "include/ATen/autocast_mode.h"
# Convolutions, recurrent cells and images, which language models do not use.
LEFT_OUT = re.compile(r"conv|_cell|upsample|grid_sampler")


@pytest.fixture
def device() -> Iterator[str]:
    with fake_device("cuda") as kind:
        yield kind


@pytest.mark.parametrize(
    ("macro", "names"),
    [
        ("LOWER_PRECISION_FP", autocast.LOWER_PRECISION),
        ("FP32", autocast.FULL_PRECISION),
        ("FP32_SET_OPT_DTYPE", autocast.FULL_PRECISION_RESULT),
        ("PROMOTE", autocast.WIDEST),
    ],
)
def test_the_lists_are_those_of_this_torch(macro: str, names: tuple[str, ...]) -> None:
    text = HEADER.read_text("utf-8")
    found = re.search(rf"#define AT_FORALL_{macro}\(_\)((?:.*\\\n)+.*\n)", text)
    assert found is not None
    listed = {".".join(each.split(", ")) for each in re.findall(r"_\(([\w, ]+)\)", found[1])}
    assert {name for name in listed if not LEFT_OUT.search(name)} == set(names)


def test_products_are_computed_in_half_precision_and_softmax_in_full(device: str) -> None:
    weight = torch.empty(8, 8, device=device)
    with autocast.autocast(device, "bf16_autocast"):
        product = weight @ weight
        assert product.dtype == torch.bfloat16
        assert product.softmax(-1).dtype == torch.float32
        assert torch.nn.functional.layer_norm(product, (8,)).dtype == torch.float32


def test_a_weight_is_cast_once_and_kept_until_the_region_ends(device: str) -> None:
    weight = torch.empty(8, 8, device=device, requires_grad=True)
    given = torch.empty(4, 8, device=device)
    trace = Trace(device)
    trace.mark("forward")
    with trace, torch.no_grad(), autocast.autocast(device, "bf16_autocast"):
        for _ in range(3):
            torch.nn.functional.linear(given, weight)
        casts = [index for index, birth in enumerate(trace.events.births) if birth.size == weight.numel() * 2]
        assert len(casts) == 1
        assert ~casts[0] not in trace.events.order
    assert ~casts[0] in trace.events.order


def test_types_mix_to_the_widest(device: str) -> None:
    half = torch.empty(8, device=device, dtype=torch.bfloat16)
    with autocast.autocast(device, "bf16_autocast"):
        assert torch.dot(half, torch.empty(8, device=device)).dtype == torch.float32
        assert torch.dot(half, half).dtype == torch.bfloat16
