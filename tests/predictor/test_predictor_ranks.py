"""What is predicted for one rank is what a real one holds, and shrinks with their number as theory has it."""

from __future__ import annotations

from typing import Any

import pytest
import torch.distributed as dist

from architectures import BERT, LLAMA
from benchbook.predictor import Prediction, Sharding, Training, UnpredictableError, predict_ranks
from real_ranks import real_rank_peak

pytestmark = pytest.mark.torch

MIB = 2**20
Case = tuple[dict[str, Any], Training, Sharding]
# One of each kind; `make test-all` tries the others too.
FIRST: list[Case] = [
    (BERT, Training(2, 64, attention="eager"), Sharding("ddp", 2)),
    (LLAMA, Training(2, 64), Sharding("fsdp2", 2)),
]
OTHERS: list[Case] = [
    (BERT, Training(2, 64, attention="eager"), Sharding("fsdp2", 2)),
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


@pytest.mark.parametrize(
    "case", [*FIRST, *(pytest.param(case, marks=pytest.mark.slow) for case in OTHERS)], ids=described
)
def test_the_prediction_is_the_profilers_peak_of_a_rank(case: Case) -> None:
    found = predict_ranks(*case, device="cpu")
    assert found.peak_reserved is None
    measured = real_rank_peak(case, found.peak_allocated + 0.1 * MIB)
    assert found.peak_allocated == pytest.approx(measured, abs=0.1 * MIB)


def rank(
    kind: Any = "fsdp2", ranks: int = 8, config: Any = LLAMA, workload: Any = None, **how: Any
) -> Prediction:
    return predict_ranks(config, workload or Training(1, 16), Sharding(kind, ranks, **how))


@pytest.mark.parametrize("ranks", [2, 8, 64])
def test_each_rank_holds_its_share_of_weights_gradients_and_states(ranks: int) -> None:
    # Bytes, not blocks; 64 ranks do not divide every weight of so small a model evenly.
    found = predict_ranks(LLAMA, Training(1, 16), Sharding("fsdp2", ranks), device="cpu")
    share = 4 * found.parameters / ranks
    assert found.moments["load"].held == pytest.approx(share, rel=0.07)
    step, after = found.moments["step"].held, found.moments["zero_grad"].held
    assert step - after == pytest.approx(share, rel=0.07)
    assert after == pytest.approx(3 * share, rel=0.07)


@pytest.mark.parametrize("optimizer", ["adamw_fused", "adamw_foreach", "adamw_loop"])
def test_no_optimizer_holds_more_than_its_local_shards(optimizer: Any) -> None:
    found = rank(workload=Training(1, 16, optimizer=optimizer))
    share = 4 * found.parameters / 8
    step = found.moments["step"]
    assert step.peak - step.held <= 1.05 * share


def test_gathered_weights_stay_through_the_forward_pass_only_without_resharding() -> None:
    kept, freed = (rank(reshard_after_forward=reshard).moments["forward"].held for reshard in (False, True))
    layer = 4 * (2 * 128 * (128 + 32) + 3 * 128 * 352)
    assert kept - freed == pytest.approx(3 * layer, rel=0.05)


def test_mixed_precision_halves_what_is_gathered() -> None:
    whole, halved = (rank(mixed_precision=mixed).categories["gathered_weights"] for mixed in (False, True))
    assert halved == pytest.approx(whole / 2, rel=0.05)


def test_a_replica_holds_everything_and_its_buckets_once_more() -> None:
    apart, within = (rank("ddp", gradient_as_bucket_view=view) for view in (False, True))
    weights = 4 * apart.parameters
    assert apart.categories["weights"] == pytest.approx(weights, rel=0.01)
    assert apart.moments["step"].held - within.moments["step"].held == pytest.approx(weights, rel=0.02)


@pytest.mark.parametrize("kind", ["fsdp2", "tensor", "ddp"])
def test_every_byte_of_a_ranks_peak_is_accounted_for(kind: Any) -> None:
    found = rank(kind, 2)
    assert sum(found.categories.values()) + found.unexplained == found.peak_allocated
    assert found.unexplained <= 0.02 * found.peak_allocated
    assert found.peak_reserved is not None
    assert found.peak_allocated <= found.peak_reserved


def test_the_process_is_no_rank_afterwards() -> None:
    rank()
    assert not dist.is_initialized()


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"kind": "tensor", "config": BERT}, "no `tp_plan`"),
        ({"kind": "tensor"}, "8 ranks cannot share 2 heads"),
        ({"workload": Training(1, 16, optimizer="adafactor")}, "adafactor takes no divided weights"),
        ({"kind": "ddp", "mixed_precision": True}, "mixed_precision means nothing to ddp"),
        ({"ranks": 1}, "ranks is 1"),
        ({"kind": "zero3"}, "sharding is 'zero3'"),
    ],
)
def test_what_cannot_be_divided_is_refused(changed: dict[str, Any], what: str) -> None:
    with pytest.raises(UnpredictableError, match=what):
        rank(**changed)
    assert not dist.is_initialized()
