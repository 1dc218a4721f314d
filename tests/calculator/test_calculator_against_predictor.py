"""The calculator's coefficients against the predictor that runs the whole model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchbook.calculator.deriving import predict_setups, workload_of
from benchbook.calculator.listing import FAMILIES, coefficients_path, config_of, load_coefficients
from benchbook.calculator.memory_model import Setup, calculate
from benchbook.calculator.points import draw_setups, error
from benchbook.calculator.shapes import FAMILIES as SHAPES
from benchbook.calculator.shapes import derive_model
from benchbook.content.project import Project
from benchbook.predictor.prediction import predict
from benchbook.predictor.workload import WORKLOADS, Lora, Precision, Training

pytestmark = pytest.mark.torch

HANDBOOK = Project(Path(__file__).parents[2])
# Those that are predicted whole in a second; the others are in the recorded points.
SMALL = ("distilbert-base-uncased", "bert-base-uncased", "gpt2", "bart-base")
# What the page adds.
WITH_FRAGMENTS = 1.05
GIB = 2**30
# What CUDA takes for itself on an H100, at most.
CONTEXT = 600 * 2**20


@pytest.mark.parametrize(
    "setups", [1, pytest.param(12, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.weekly)]
)
def test_setups_of_small_models_are_as_near_as_the_page_promises(setups: int) -> None:
    models = {name: load_coefficients(coefficients_path(HANDBOOK, name)) for name in SMALL}
    configs = {name: config_of(HANDBOOK, name) for name in SMALL}
    off = []
    for point in predict_setups(configs, draw_setups(models, 40, seed=2)[:setups]):
        found = error(point, models[point.model])
        if abs(found.requested) > 0.01 or (1 + found.allocated) * WITH_FRAGMENTS < 1:
            off.append((point, found))
    assert off == []


@pytest.mark.parametrize(
    ("batch", "accumulation", "precision", "at"),
    [(4, 1, "bf16_autocast", "backward"), (24, 8, "bf16", "decode")],
)
def test_a_step_of_grpo_is_as_near_as_it_generates_and_as_it_learns(
    batch: int, accumulation: int, precision: str, at: str
) -> None:
    choices = {"checkpointing": True, "objective": "grpo", "completion": 384}
    setup = Setup("training", precision, "sdpa", batch, 512, accumulation=accumulation, **choices)
    coefficients = load_coefficients(coefficients_path(HANDBOOK, "gpt2"))
    (point,) = predict_setups({"gpt2": config_of(HANDBOOK, "gpt2")}, [("gpt2", setup)])
    assert calculate(coefficients, setup).at == at
    assert abs(error(point, coefficients).requested) < 0.0005


@pytest.mark.slow
def test_the_committed_coefficients_are_what_is_derived_today() -> None:
    name = "distilbert-base-uncased"
    committed = load_coefficients(coefficients_path(HANDBOOK, name))
    derived = derive_model(config_of(HANDBOOK, name))
    for part in (
        "variables",
        "terms",
        "weights",
        "units",
        "optimizers",
        "training",
        "evaluation",
        "generation",
    ):
        assert derived[part] == committed[part]


def test_every_family_that_a_reader_s_dimensions_can_be_of_is_derived() -> None:
    assert tuple(SHAPES) == FAMILIES


def of_a_family(vocabulary: int) -> tuple[dict[str, Any], dict[str, int]]:
    """The configuration and the dimensions of a small model whose embeddings are tied."""
    dimensions = {"hidden": 576, "layers": 5, "heads": 9, "groups": 3, "head": 64, "intermediate": 1536}
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 576,
        "num_hidden_layers": 5,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "intermediate_size": 1536,
        "vocab_size": vocabulary,
        "tie_word_embeddings": True,
    }
    return config, {**dimensions, "vocabulary": vocabulary}


def test_a_model_of_a_family_s_making_is_within_two_percent_of_the_predictor() -> None:
    config, dimensions = of_a_family(vocabulary=49152)
    coefficients = load_coefficients(coefficients_path(HANDBOOK, "decoder-tied"))
    cases: list[tuple[int, int, Precision]] = [(1, 128, "fp32"), (8, 1024, "bf16_autocast"), (3, 500, "bf16")]
    for batch, sequence, precision in cases:
        setup = Setup("training", precision, "sdpa", batch, sequence)
        found = calculate(coefficients, setup, dimensions)
        whole = predict(config, Training(batch, sequence, precision)).peak_allocated
        assert abs(found.total / whole - 1) < 0.02


@pytest.mark.parametrize(
    ("vocabulary", "least", "most"),
    # Of a small vocabulary, the copies of the head are counted as large as of one that fills two tiles.
    [(100_000, -0.001, 0.001), (32_000, -0.001, 0.05)],
)
@pytest.mark.parametrize(
    "setup",
    [
        Setup("training", "bf16_autocast", "sdpa", 2, 512, objective="dpo"),
        Setup("training", "bf16", "sdpa", 4, 256, objective="dpo", method="qlora", checkpointing=True),
        Setup("training", "bf16_autocast", "sdpa", 4, 512, objective="grpo", completion=200),
        Setup("training", "bf16", "sdpa", 16, 512, objective="grpo", completion=400, accumulation=8),
    ],
    ids=lambda setup: setup.key,
)
def test_pairs_and_completions_of_a_family_s_making_are_as_near(
    setup: Setup, vocabulary: int, least: float, most: float
) -> None:
    config, dimensions = of_a_family(vocabulary)
    coefficients = load_coefficients(coefficients_path(HANDBOOK, "decoder-tied"))
    whole = predict(config, workload_of(setup, config)).peak_requested
    assert least < calculate(coefficients, setup, dimensions).total / whole - 1 < most


@pytest.mark.slow
def test_the_rule_gives_each_setup_of_an_h100_room_enough_but_the_one_that_the_page_names() -> None:
    short = set()
    for path in sorted((HANDBOOK.predictions / "nvidia-h100-80gb").rglob("*.json")):
        for name, made in json.loads(path.read_text("utf-8"))["variants"].items():
            room = int(made["peak_allocated"] * WITH_FRAGMENTS + GIB - CONTEXT)
            asked = made["workload"]
            # Most need no more than that where the room has no end; samples of many lengths the page names itself.
            if "lengths" in asked or made["peak_reserved"] <= room:
                continue
            fields = {**asked, "lora": Lora(**asked["lora"])} if "lora" in asked else asked
            if not predict(made["model"], WORKLOADS[made["kind"]](**fields), room=room).fits:
                short.add(name)
    assert [name for name in short if not ("llama-3.2-1b" in name and "batch_size=16" in name)] == []
    assert len(short) == 1
