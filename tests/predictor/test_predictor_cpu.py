"""On a CPU, a prediction is what torch's profiler counts in a real run of the same work."""

from __future__ import annotations

from typing import Any

import pytest

from architectures import BERT, GPT2, LLAMA, MIXTRAL, T5
from benchbook.predictor import Adapters, Inference, Lora, Training, predict
from benchbook.predictor.workload import Workload
from real_memory import real_peaks

pytestmark = pytest.mark.torch

MIB = 2**20
# As an adapter_config.json has them.
PEFT: list[dict[str, Any]] = [
    {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4},
    {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 4, "use_dora": True},
    {"peft_type": "IA3", "task_type": "CAUSAL_LM"},
    {"peft_type": "PROMPT_TUNING", "task_type": "CAUSAL_LM", "num_virtual_tokens": 8},
    {"peft_type": "PREFIX_TUNING", "task_type": "CAUSAL_LM", "num_virtual_tokens": 8},
]
Case = tuple[dict[str, Any], Workload]
# One of each kind; `make test-all` tries the others too.
FIRST: list[Case] = [
    (LLAMA, Training(2, 128, attention="eager", checkpointing=True, lora=Lora(rank=4))),
    (GPT2, Inference(2, 64, 6, precision="fp32")),
    (LLAMA, Training(2, 64, objective="dpo", lora=Lora(rank=4))),
]
OTHERS: list[Case] = [
    (BERT, Training(2, 128)),
    (BERT, Training(4, 64, attention="eager", optimizer="sgd_momentum", checkpointing=True)),
    (BERT, Training(2, 128, precision="bf16_autocast", keep_gradients=True)),
    (LLAMA, Training(2, 128)),
    (LLAMA, Training(2, 128, precision="bf16", optimizer="adamw_foreach", accumulation=2)),
    (LLAMA, Inference(2, 64, 6, precision="fp32", cache="static")),
    (T5, Training(2, 128, optimizer="adafactor")),
    (T5, Training(2, 64, attention="eager", optimizer="adamw_loop", checkpointing=True)),
    (T5, Inference(2, 64, 6, precision="fp32")),
    (MIXTRAL, Training(2, 128)),
    (MIXTRAL, Training(2, 128, attention="eager", checkpointing=True, optimizer="sgd")),
    (GPT2, Training(2, 128, accumulation=2)),
    (LLAMA, Training(2, 128, objective="dpo", evaluation=3)),
    (LLAMA, Training(1, 64, precision="bf16", objective="dpo", checkpointing=True)),
    (LLAMA, Training(1, 128, precision="bf16_autocast", objective="dpo")),
    (LLAMA, Training(2, 64, objective="grpo", completion=24, accumulation=2)),
    (LLAMA, Training(2, 64, precision="bf16", objective="grpo", completion=40, checkpointing=True)),
    (LLAMA, Training(1, 64, optimizer="sgd", evaluation=16)),
    (BERT, Training(1, 32, evaluation=32)),
    *((LLAMA, Training(2, 128, adapters=Adapters(config), padded=True, use_cache=True)) for config in PEFT),
]


def described(case: Case) -> str:
    config, workload = case
    defaults = type(workload)(1, 1)
    told = {name: value for name, value in vars(workload).items() if value != getattr(defaults, name)}
    return f"{config['model_type']} {told}"


@pytest.mark.parametrize(
    "cases", [FIRST, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["first", "others"]
)
def test_the_prediction_is_the_profilers_peak(cases: list[Case]) -> None:
    # One process measures them all.
    for case, measured in zip(cases, real_peaks(cases), strict=True):
        found = predict(*case, device="cpu")
        assert found.peak_reserved is None, described(case)
        assert found.peak_requested == found.peak_allocated, described(case)
        assert found.peak_allocated == pytest.approx(measured, abs=0.1 * MIB), described(case)
