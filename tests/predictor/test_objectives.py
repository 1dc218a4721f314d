"""DPO, GRPO and an evaluation: losses are those of all logits at once, and memory is told where it goes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid
from transformers import LlamaConfig, LlamaForCausalLM

from architectures import BERT, LLAMA
from benchbook.predictor import tiled_scores as tiles
from benchbook.predictor.adapters import add_adapters
from benchbook.predictor.fake_accelerator import fake_accelerator
from benchbook.predictor.objectives import BETA, loss_of
from benchbook.predictor.prediction import Prediction, predict
from benchbook.predictor.workload import Lora, Training, UnpredictableError

pytestmark = pytest.mark.torch

SMALL = {**LLAMA, "vocab_size": 97, "hidden_size": 32, "intermediate_size": 64}
PAIRS = Training(2, 12, objective="dpo")


@pytest.fixture(autouse=True)
def ready() -> None:
    # Autograd counts the devices in its first backward pass.
    fake_accelerator()


def scores(states: torch.Tensor, weight: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """What each token's logarithm is, from all logits."""
    return (states @ weight.t()).log_softmax(-1).gather(-1, tokens[:, None])[:, 0]


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (4, 97), (7, 40), (100, 128)])
def test_scores_by_tiles_and_their_gradients_are_those_of_all_logits(
    rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "COLUMNS", columns)
    torch.manual_seed(0)
    tokens, factors = torch.randint(0, 97, (20,)), torch.randn(20)
    inputs = [torch.randn(20, 16, requires_grad=True), torch.randn(97, 16, requires_grad=True)]
    expected = scores(*inputs, tokens)
    of_all = torch.autograd.grad((expected * factors).sum(), inputs)
    found = tiles.tiled_scores(inputs[0], inputs[1], tokens, rows)
    torch.testing.assert_close(found, expected)
    by_tiles = torch.autograd.grad((found * factors).sum(), inputs)
    for one, other in zip(by_tiles, of_all, strict=True):
        torch.testing.assert_close(one, other)


def pairs_of(model: LlamaForCausalLM, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The logarithm of each sample's probability; its last token is followed by its first, as in the loss."""
    states = model.model(input_ids=batch["input_ids"]).last_hidden_state
    weight: torch.Tensor = model.lm_head.weight
    return torch.stack(
        [scores(one, weight, tokens).sum() for one, tokens in zip(states, batch["input_ids"], strict=True)]
    )


def test_the_loss_of_pairs_prefers_the_chosen_answers_against_the_reference() -> None:
    torch.manual_seed(0)
    model, reference = LlamaForCausalLM(LlamaConfig(**SMALL)), LlamaForCausalLM(LlamaConfig(**SMALL))
    batch = {"input_ids": torch.randint(0, 97, (4, 12))}
    chosen, rejected = (pairs_of(model, batch) - pairs_of(reference, batch)).chunk(2)
    expected = -logsigmoid(BETA * (chosen - rejected)).mean()
    torch.testing.assert_close(loss_of(model, batch, PAIRS, "cpu", reference), expected)


def test_with_adapters_the_reference_is_the_model_without_them() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**SMALL))
    batch = {"input_ids": torch.randint(0, 97, (4, 12))}
    known = pairs_of(model, batch)
    add_adapters(model, Lora(rank=4))
    chosen, rejected = (pairs_of(model, batch) - known).chunk(2)
    found = loss_of(model, batch, replace(PAIRS, lora=Lora(rank=4)), "cpu")
    torch.testing.assert_close(found, -logsigmoid(BETA * (chosen - rejected)).mean())


def told(workload: Training, config: dict[str, Any] = LLAMA) -> Prediction:
    return predict(config, workload)


@pytest.mark.parametrize(("lora", "models"), [(None, 2), (Lora(rank=4), 1)])
def test_a_second_model_is_held_unless_adapters_can_be_switched_off(lora: Lora | None, models: int) -> None:
    alone = told(Training(2, 64, lora=lora)).categories["weights"]
    beside = told(Training(1, 64, lora=lora, objective="dpo")).categories["weights"]
    assert beside == pytest.approx(models * alone, rel=0.01)


def test_a_step_of_grpo_generates_with_a_cache_before_it_trains() -> None:
    workload = Training(2, 64, accumulation=2, objective="grpo", completion=24)
    moments = told(workload).moments
    assert list(moments)[:4] == ["load", "prefill", "decode", "forward"]
    # Keys and values of both passes' samples: all tokens but the last, in fp32.
    heads, layers = 2 * LLAMA["hidden_size"] // LLAMA["num_attention_heads"], LLAMA["num_hidden_layers"]
    cache = 2 * 4 * 4 * 63 * heads * layers
    assert moments["decode"].peak - moments["load"].held > cache


def test_what_all_passes_of_a_step_learn_from_is_generated_at_once_however_many_are_traced() -> None:
    def generation(accumulation: int) -> int:
        workload = Training(2, 64, accumulation=accumulation, objective="grpo", completion=24)
        moments = told(workload).moments
        return moments["decode"].peak - moments["zero_grad"].held

    assert generation(8) == pytest.approx(4 * generation(2), rel=0.1)


def test_a_large_evaluation_is_the_peak() -> None:
    without = told(Training(1, 64))
    found = told(Training(1, 64, evaluation=64))
    assert (without.moment, found.moment) == ("backward", "evaluation")
    # No gradients: less than training as many.
    assert found.peak_allocated < told(Training(64, 64)).peak_allocated


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"objective": "grpo"}, "completion is None with grpo"),
        ({"completion": 8}, "completion is 8 with supervised"),
        ({"objective": "grpo", "completion": 64}, "completion is 64 of 64 tokens"),
        ({"objective": "grpo", "completion": 8, "evaluation": 4}, "neither lengths nor an evaluation"),
        ({"objective": "ppo"}, "objective is 'ppo'"),
        ({"evaluation": 0}, "evaluation is 0"),
    ],
)
def test_what_does_not_go_together_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UnpredictableError, match=said):
        Training(1, 64, **wrong)


def test_a_model_without_next_tokens_has_no_pairs() -> None:
    with pytest.raises(UnpredictableError, match="BertForSequenceClassification predicts no next token"):
        told(Training(1, 16, objective="dpo"), BERT)
