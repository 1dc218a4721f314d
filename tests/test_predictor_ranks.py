"""One rank's prediction is what a real rank holds, and sums over ranks are what theory has them."""

from __future__ import annotations

from typing import Any

import pytest

from architectures import BERT, LLAMA
from benchbook.predictor import Training
from benchbook.predictor.ranks import predict_ranks
from benchbook.predictor.sharding import Sharding
from real_ranks import real_rank_peaks

MIB = 2**20
Case = tuple[dict[str, Any], Training, Sharding]
CASES: list[Case] = [
    (BERT, Training(2, 64, attention="eager"), Sharding("fsdp2", 2)),
    (BERT, Training(2, 64, attention="eager"), Sharding("ddp", 2)),
    (LLAMA, Training(2, 64), Sharding("fsdp2", 2)),
    (LLAMA, Training(2, 64, optimizer="adamw_foreach"), Sharding("fsdp2", 2, reshard_after_forward=False)),
    (
        LLAMA,
        Training(2, 64, checkpointing=True, optimizer="sgd_momentum"),
        Sharding("fsdp2", 2, mixed_precision=True),
    ),
    (LLAMA, Training(2, 64, accumulation=2), Sharding("ddp", 2, gradient_as_bucket_view=True)),
    (LLAMA, Training(2, 64, optimizer="adamw_foreach"), Sharding("tensor", 2)),
]


def described(case: Case) -> str:
    config, workload, sharding = case
    told = {
        name: value
        for name, value in vars(sharding).items()
        if value is True and name != "reshard_after_forward"
    }
    return f"{config['model_type']} {sharding.kind} {workload.optimizer} {told or ''}"


@pytest.fixture(scope="module")
def measured() -> list[int]:
    return real_rank_peaks(CASES)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: described(CASES[number]))
def test_the_prediction_is_the_profilers_peak_of_a_rank(number: int, measured: list[int]) -> None:
    found = predict_ranks(*CASES[number], device="cpu")
    assert found.peak_reserved is None
    assert found.peak_allocated == pytest.approx(measured[number], abs=0.1 * MIB)
