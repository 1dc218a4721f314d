"""A loss made by chunks is the whole loss, and holds what its chunks do instead of all logits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM

from benchbook.predictor.chunked_loss import chunked_loss
from benchbook.predictor.fake_accelerator import fake_accelerator
from benchbook.predictor.prediction import predict
from benchbook.predictor.workload import Training, UnpredictableError, rows_of_a_chunk

pytestmark = pytest.mark.torch

VOCABULARY, HIDDEN, TOKENS = 8192, 64, 512
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "tie_word_embeddings": False,
}


@pytest.fixture(autouse=True)
def ready() -> None:
    # Autograd counts the devices in its first backward pass.
    fake_accelerator()


def test_the_loss_and_its_gradients_are_those_of_all_logits_at_once() -> None:
    torch.manual_seed(0)
    small = {**LLAMA, "vocab_size": 97, "hidden_size": 32, "intermediate_size": 64}
    model = LlamaForCausalLM(LlamaConfig(**small))
    tokens = torch.randint(0, 97, (3, 20))
    batch = {"input_ids": tokens, "labels": tokens.clone()}
    batch["labels"][0, :7] = -100
    loss = model(**batch).loss
    loss.backward()
    expected = [weight.grad for weight in model.parameters()]
    for rows in (1, 16, 60, 64):
        model.zero_grad()
        found = chunked_loss(model, batch, rows)
        assert found.detach() == pytest.approx(loss.item())
        (found / 2).backward()
        for weight, gradient in zip(model.parameters(), expected, strict=True):
            assert weight.grad is not None
            torch.testing.assert_close(2 * weight.grad, gradient)


@pytest.mark.parametrize(
    ("tokens", "hidden", "vocabulary", "rows"),
    [
        # 63 times as many logits as states: 66 tokens, and the next power of two.
        (4096, 2048, 128256, 128),
        # The example in the kernel's own comment.
        (16384, 4096, 32000, 2048),
        # Fewer logits than states, and a batch of one token.
        (512, 1024, 1000, 512),
        (1, 4096, 32000, 1),
    ],
)
def test_a_chunk_is_as_long_as_the_kernel_takes_it(
    tokens: int, hidden: int, vocabulary: int, rows: int
) -> None:
    assert rows_of_a_chunk(tokens, hidden, vocabulary) == rows


def held(workload: Training) -> int:
    """The peak of a step but for cuBLAS's workspaces, which are larger than this model."""
    found = predict(LLAMA, workload)
    return found.peak_requested - found.categories["workspaces"]


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_of_all_logits_one_chunk_is_left(precision: Any) -> None:
    whole, chunked = (held(Training(1, TOKENS, precision, "sgd", chunk=chunk)) for chunk in (None, 16))
    size = {"fp32": 4, "bf16": 2}[precision]
    # What is left: a chunk of logits, and the gradients of all states and of the head's weights.
    left = size * (16 * VOCABULARY + TOKENS * HIDDEN + VOCABULARY * HIDDEN)
    logits = 4 * TOKENS * VOCABULARY
    assert whole - chunked > 2 * logits - 2 * left
    assert chunked < whole / 2


@pytest.mark.parametrize("frozen", [True, False])
def test_a_frozen_head_has_no_gradient_to_keep(frozen: bool) -> None:
    model = LlamaForCausalLM(LlamaConfig(**{**LLAMA, "vocab_size": 97}))
    model.lm_head.requires_grad_(not frozen)
    tokens = torch.zeros(1, 4, dtype=torch.long)
    loss: Any = chunked_loss(model, {"input_ids": tokens, "labels": tokens}, 2)
    _, kept = loss.grad_fn.saved_tensors
    assert (kept is None) == frozen


def test_a_model_without_next_tokens_has_no_chunks() -> None:
    model = BertForSequenceClassification(
        BertConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=1, intermediate_size=32)
    )
    tokens = torch.zeros(1, 4, dtype=torch.long)
    with pytest.raises(UnpredictableError, match="BertForSequenceClassification predicts no next token"):
        chunked_loss(model, {"input_ids": tokens, "labels": tokens}, 2)
