"""On a CPU, a prediction is what torch's profiler counts in a real run of the same work."""

from __future__ import annotations

from typing import Any

import pytest

from architectures import BERT, GPT2, LLAMA, MIXTRAL, T5
from benchbook.predictor import Inference, Lora, Training, predict
from benchbook.predictor.workload import Workload
from real_memory import real_peaks

pytestmark = pytest.mark.torch

MIB = 2**20
CASES: list[tuple[dict[str, Any], Workload]] = [
    (BERT, Training(2, 128)),
    (BERT, Training(4, 64, attention="eager", optimizer="sgd_momentum", checkpointing=True)),
    (BERT, Training(2, 128, precision="bf16_autocast", keep_gradients=True)),
    (LLAMA, Training(2, 128)),
    (LLAMA, Training(2, 128, precision="bf16", optimizer="adamw_foreach", accumulation=2)),
    (LLAMA, Training(2, 128, attention="eager", checkpointing=True, lora=Lora(rank=4))),
    (LLAMA, Inference(2, 64, 6, precision="fp32", cache="static")),
    (T5, Training(2, 128, optimizer="adafactor")),
    (T5, Training(2, 64, attention="eager", optimizer="adamw_loop", checkpointing=True)),
    (T5, Inference(2, 64, 6, precision="fp32")),
    (MIXTRAL, Training(2, 128)),
    (MIXTRAL, Training(2, 128, attention="eager", checkpointing=True, optimizer="sgd")),
    (GPT2, Training(2, 128, accumulation=2)),
    (GPT2, Inference(2, 64, 6, precision="fp32")),
]


def described(case: tuple[dict[str, Any], Workload]) -> str:
    config, workload = case
    defaults = type(workload)(1, 1)
    told = {name: value for name, value in vars(workload).items() if value != getattr(defaults, name)}
    return f"{config['model_type']} {told}"


@pytest.fixture(scope="module")
def measured() -> dict[str, int]:
    return dict(zip(map(described, CASES), real_peaks(CASES), strict=True))


@pytest.mark.parametrize("case", CASES, ids=described)
def test_the_prediction_is_the_profilers_peak(
    case: tuple[dict[str, Any], Workload], measured: dict[str, int]
) -> None:
    found = predict(*case, device="cpu")
    assert found.peak_reserved is None
    assert found.peak_requested == found.peak_allocated
    assert found.peak_allocated == pytest.approx(measured[described(case)], abs=0.1 * MIB)
