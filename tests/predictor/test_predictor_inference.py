"""What a generation holds is weights and the cache of keys and values."""

from __future__ import annotations

from typing import Any

import pytest

from architectures import BERT, GPT2, LLAMA, MIXTRAL, T5
from benchbook.predictor import Inference, UnpredictableError, predict

pytestmark = pytest.mark.torch

HALF = 2
# Keys and values of three layers with two heads of 16, per token.
LLAMA_PER_TOKEN = 2 * 3 * 2 * 16 * HALF


@pytest.mark.parametrize("config", [LLAMA, T5, MIXTRAL, GPT2], ids=lambda each: each["model_type"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_a_generation_is_explained(config: dict[str, Any], cache: Any) -> None:
    found = predict(config, Inference(batch=2, prompt=64, new_tokens=20, cache=cache))
    assert sum(found.categories.values()) + found.unexplained == found.peak_allocated
    assert found.unexplained <= 0.02 * found.peak_allocated
    assert found.categories["weights"] == pytest.approx(HALF * found.parameters, rel=0.05)
    assert set(found.moments) == {"load", "prefill", "decode"}


def test_a_long_generation_ends_with_the_cache_of_all_its_tokens() -> None:
    found = predict(LLAMA, Inference(batch=4, prompt=64, new_tokens=4000))
    assert found.moment == "decode"
    # Of the six tensors of the cache, one is there twice: without the last token, and with it.
    assert found.categories["cache"] == pytest.approx(4 * 4063 * LLAMA_PER_TOKEN * 7 / 6, rel=0.01)


@pytest.mark.slow
def test_tokens_left_out_hold_no_more_than_those_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = Inference(batch=16, prompt=8, new_tokens=200)
    skipped = predict(LLAMA, workload)
    monkeypatch.setattr("benchbook.predictor.inference.LAST", workload.new_tokens)
    computed = predict(LLAMA, workload)
    assert skipped.moment == computed.moment == "decode"
    assert skipped.peak_requested == pytest.approx(computed.peak_requested, rel=1e-3)


def test_a_static_cache_has_its_whole_size_after_the_prompt() -> None:
    held = {
        tokens: predict(LLAMA, Inference(batch=4, prompt=64, new_tokens=tokens, cache="static"))
        .moments["prefill"]
        .held
        for tokens in (2, 2050)
    }
    assert held[2050] - held[2] == pytest.approx(4 * 2048 * LLAMA_PER_TOKEN, rel=0.01)


def test_a_model_without_a_language_head_generates_nothing() -> None:
    with pytest.raises(UnpredictableError, match="generates nothing"):
        predict(BERT, Inference(batch=1, prompt=16))
