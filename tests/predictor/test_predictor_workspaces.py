"""Kernels' own memory is counted where CUDA's kernels take it."""

from __future__ import annotations

import pytest
import torch

from benchbook.predictor.attribution import attribute
from benchbook.predictor.gpus import H200, Gpu, gpu_named
from benchbook.predictor.prediction import fake_device
from benchbook.predictor.trace import Trace
from benchbook.predictor.workload import UnpredictableError
from benchbook.predictor.workspaces import Workspaces

pytestmark = pytest.mark.torch

MIB = 2**20


def taken_by_embedding(tokens: int) -> list[int]:
    """Bytes of each storage that its gradient makes."""
    with fake_device("cuda") as kind:
        trace = Trace(kind, Workspaces(H200))
        trace.mark("forward")
        with trace:
            weight = torch.empty(5000, 64, device=kind, requires_grad=True)
            ids = torch.zeros(tokens, dtype=torch.long, device=kind)
            torch.nn.functional.embedding(ids, weight).sum().backward()
    return [birth.size for birth in trace.events.births if "embedding_dense_backward" in birth.op]


def test_the_gradient_of_a_long_embedding_needs_lists_and_a_sum_per_token() -> None:
    assert taken_by_embedding(8192) == [5000 * 64 * 4, *[8192 * 8] * 6, 8192 * 64 * 4]


def test_that_of_a_short_one_needs_nothing_beside_it() -> None:
    assert taken_by_embedding(2048) == [5000 * 64 * 4]


@pytest.mark.parametrize(("name", "workspace"), [("A100", 8519680), ("NVIDIA H100 80GB HBM3", 32 * MIB)])
def test_products_take_a_workspace_for_each_direction_and_keep_it(name: str, workspace: int) -> None:
    gpu = gpu_named(name)
    with fake_device("cuda") as kind:
        trace = Trace(kind, Workspaces(gpu))
        trace.mark("forward")
        with trace:
            weight = torch.empty(512, 512, device=kind, requires_grad=True)
            product = (weight @ weight @ weight).sum()
            trace.mark("backward")
            product.backward()
    found = attribute(trace.events, segments=True)
    assert found.categories["workspaces"] == 2 * workspace


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("NVIDIA H200", "H200"),
        ("Tesla V100-SXM2-16GB", "V100"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA L40S", "L40S"),
    ],
)
def test_a_gpu_is_known_by_the_words_of_its_name(name: str, model: str) -> None:
    assert gpu_named(name) == Gpu(model, gpu_named(model).capability)


def test_an_unknown_gpu_is_refused() -> None:
    with pytest.raises(UnpredictableError, match=r"use one of A10, A100, .*gpus\.json"):
        gpu_named("Voodoo 2")
