"""A training step's peak is explained, and changes with what is asked for as it does on a device."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from architectures import BERT, BERT_LARGE, GPT2, LLAMA, MIXTRAL, T5
from benchbook.predictor import Lora, Training, UnpredictableError, predict
from benchbook.predictor.gpus import gpu_named

pytestmark = pytest.mark.torch

MIB = 2**20
MODELS = [BERT, LLAMA, T5, MIXTRAL, GPT2]
ALL = pytest.mark.parametrize("config", MODELS, ids=lambda each: each["model_type"])
# Totals that NVML showed; the context stood there before the first tensor, and is in each of them.
V100 = json.loads((Path(__file__).parents[1] / "fixtures/v100_totals.json").read_text("utf-8"))


def step(**changed: Any) -> Training:
    return Training(**{"batch": 2, "sequence": 128, **changed})


@pytest.mark.parametrize(
    "case",
    [
        # One shows that it still holds; `make test-all` holds it to all seven.
        pytest.param(case, marks=[] if case["name"] == "fp16" else pytest.mark.slow)
        for case in V100["totals"]
    ],
    ids=lambda case: case["name"],
)
def test_published_totals_of_a_v100_are_met_within_3_and_a_half_percent(case: dict[str, Any]) -> None:
    workload = Training(**{"sequence": V100["sequence"], **V100["setup"], **case["workload"]})
    found = predict(BERT_LARGE, workload, gpu=gpu_named(V100["gpu"]))
    assert found.peak_reserved is not None
    assert V100["context_mib"] + found.peak_reserved / MIB == pytest.approx(case["total_mib"], rel=0.035)


@pytest.mark.parametrize(
    ("config", "precision"),
    [
        pytest.param(config, precision, marks=[] if place % 4 == at % 4 else pytest.mark.slow)
        for place, config in enumerate(MODELS)
        for at, precision in enumerate(("fp32", "bf16_autocast", "fp16_autocast", "bf16"))
    ],
)
def test_every_byte_of_the_peak_is_accounted_for(config: dict[str, Any], precision: str) -> None:
    found = predict(config, step(precision=precision, accumulation=2))
    assert sum(found.categories.values()) + found.unexplained == found.peak_allocated
    assert sum(found.layers.values()) == found.peak_allocated
    assert found.unexplained <= 0.02 * found.peak_allocated
    assert found.peak_allocated == max(moment.peak for moment in found.moments.values())
    assert found.peak_allocated == found.moments[found.moment].peak
    assert found.peak_reserved is not None
    assert found.peak_requested <= found.peak_allocated <= found.peak_reserved


def test_without_a_room_nothing_is_said_of_fitting() -> None:
    assert predict(BERT, step()).fits is None
    assert predict(BERT, step(), device="cpu", room=2**40).fits is None


def test_with_room_enough_it_fits_and_needs_the_same() -> None:
    unlimited = predict(BERT, step())
    assert predict(BERT, step(), room=unlimited.peak_reserved) == replace(unlimited, fits=True)


def test_with_too_little_room_it_does_not_fit_and_allocates_what_the_work_needs() -> None:
    unlimited = predict(BERT, step())
    found = predict(BERT, step(), room=unlimited.peak_allocated - 2 * MIB)
    assert found.fits is False
    assert found.peak_allocated == unlimited.peak_allocated
    assert found.peak_reserved is not None
    assert found.peak_reserved > unlimited.peak_allocated - 2 * MIB


def test_what_the_allocator_can_give_back_fits_into_less() -> None:
    growing = step(batch=32, lengths=(64, 96, 128))
    unlimited = predict(BERT, growing)
    assert unlimited.peak_reserved is not None
    room = unlimited.peak_reserved - 2 * MIB
    found = predict(BERT, growing, room=room)
    assert found.fits
    assert found.peak_reserved is not None
    assert found.peak_reserved <= room


def test_weights_gradients_and_states_are_as_large_as_theory_has_them() -> None:
    found = predict(BERT, step())
    held = found.moments["step"].held
    assert held == pytest.approx(16 * found.parameters + 64 * MIB, rel=0.03)
    assert found.moments["zero_grad"].held == pytest.approx(held - 4 * found.parameters, rel=0.01)


def test_kept_gradients_stay_after_the_step() -> None:
    kept, freed = (
        predict(BERT, step(keep_gradients=keep)).moments["zero_grad"].held for keep in (True, False)
    )
    assert kept - freed == pytest.approx(4 * predict(BERT, step()).parameters, rel=0.03)


def test_checkpointing_frees_activations() -> None:
    plain, recomputed = (
        predict(LLAMA, step(batch=8, checkpointing=checkpointing)).categories["activations"]
        for checkpointing in (False, True)
    )
    assert recomputed < plain / 2


def test_an_optimizer_over_lists_takes_as_much_again_as_the_gradients() -> None:
    config = BERT | {"vocab_size": 60000}
    fused, listed = (
        predict(config, step(batch=1, sequence=16, optimizer=name)).moments["step"].peak
        for name in ("adamw_fused", "adamw_foreach")
    )
    assert listed - fused == pytest.approx(4 * predict(config, step()).parameters, rel=0.03)


def sizes_of_bert() -> tuple[list[int], list[int]]:
    """How many values the embeddings of BERT have, and how many its other parameters."""
    with torch.device("meta"):
        model = BertForSequenceClassification(BertConfig(**BERT))
    embeddings = [one.weight for one in model.modules() if isinstance(one, torch.nn.Embedding)]
    others = [one for one in model.parameters() if all(one is not weight for weight in embeddings)]
    return [one.numel() for one in embeddings], [one.numel() for one in others]


def test_states_of_8_bits_take_a_quarter_but_those_of_embeddings() -> None:
    whole, small = (
        predict(BERT, step(optimizer=name)).categories["optimizer_states"]
        for name in ("adamw_fused", "adamw_8bit")
    )
    embeddings, others = (8 * sum(sizes) for sizes in sizes_of_bert())
    assert whole == pytest.approx(embeddings + others, rel=0.01)
    assert small == pytest.approx(embeddings + others / 4, rel=0.05)


def test_paged_states_lie_outside_of_the_allocator_but_for_their_scales_and_small_parameters() -> None:
    kept, paged = (
        predict(BERT, step(optimizer=name)).categories["optimizer_states"]
        for name in ("adamw_8bit", "paged_adamw_8bit")
    )
    embeddings, others = (sum(size for size in sizes if size >= 100_000) for sizes in sizes_of_bert())
    assert kept - paged == 8 * embeddings + 2 * others


@ALL
def test_adapters_alone_have_gradients_and_states(config: dict[str, Any]) -> None:
    whole = predict(config, step())
    adapted = predict(config, step(lora=Lora(rank=4)))
    added = adapted.parameters - whole.parameters
    assert 0 < added < whole.parameters / 10
    assert adapted.categories["optimizer_states"] >= 8 * added
    assert adapted.categories["optimizer_states"] < whole.categories["optimizer_states"] / 5


def test_activations_follow_the_published_formula() -> None:
    # Korthikanti et al. 2022, arXiv 2205.05198, equation 2, in fp32 and with masks of one byte:
    # sbh (66 + 9 a s / h) per layer.
    found = predict(BERT_LARGE, Training(4, 512, attention="eager"))
    batch, sequence, hidden, heads, layers = 4, 512, 1024, 16, 24
    theory = layers * sequence * batch * hidden * (66 + 9 * heads * sequence / hidden)
    assert found.categories["activations"] == pytest.approx(theory, rel=0.005)


def test_layers_are_named_as_the_model_names_them() -> None:
    layers = predict(LLAMA, step()).layers
    assert {"model.layers.0", "model.layers.1", "model.layers.2", "model.embed_tokens"} <= layers.keys()


def test_dropout_of_the_workload_replaces_the_configurations() -> None:
    with_dropout, without = (
        predict(BERT, step(batch=8, attention="eager", dropout=dropout)).peak_allocated
        for dropout in (None, 0.0)
    )
    assert without < with_dropout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "berd"}, "use bert"),
        ({"hidden_size": 130}, "multiple"),
        ({"architectures": ["BertForPoetry"]}, "no model 'BertForPoetry'"),
        ({"num_hidden_layers": "many"}, "cannot build the model"),
    ],
)
def test_a_wrong_configuration_is_refused_in_one_line(change: dict[str, Any], said: str) -> None:
    with pytest.raises(UnpredictableError, match=said) as refused:
        predict(BERT | change, Training(1, 16))
    assert "\n" not in str(refused.value)


def test_a_length_per_step_that_never_changes_changes_nothing() -> None:
    assert predict(LLAMA, step(lengths=(128, 128, 128))) == predict(LLAMA, step())


def test_lengths_that_grow_leave_segments_behind_that_falling_ones_use_again() -> None:
    lengths = tuple(range(16, 129, 16))
    growing, falling = (predict(LLAMA, step(batch=64, lengths=order)) for order in (lengths, lengths[::-1]))
    assert growing.peak_reserved is not None
    assert falling.peak_reserved is not None
    assert growing.peak_reserved > 1.25 * falling.peak_reserved


@pytest.mark.parametrize(
    "changed",
    [
        *({"batch": 0}, {"sequence": -1}, {"precision": "fp8"}, {"optimizer": "adam"}, {"dropout": 1.0}),
        *({"lengths": (0, 128)}, {"lengths": (128, 256)}),
    ],
)
def test_a_workload_that_makes_no_sense_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(UnpredictableError):
        step(**changed)
