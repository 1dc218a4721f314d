"""What the memory calculator computes from coefficients, and what it says where something is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchbook.calculator.checking import coefficient_problems, config_digest, stale_coefficients
from benchbook.calculator.listing import (
    FAMILIES,
    all_models,
    coefficient_files,
    coefficients_path,
    config_of,
    listed_models,
    load_coefficients,
)
from benchbook.calculator.memory_model import Setup, calculate
from benchbook.calculator.points import errors, load_points
from benchbook.checking.checks import check_project
from benchbook.content.project import Project
from builders import write

ROOT = Path(__file__).parents[2]
HANDBOOK = Project(ROOT)
GB = 10**9
# A model of 4 GB of weights; what it holds grows by 1 GB with each sample in the backward pass.
COEFFICIENTS = {
    "variables": ["batch", "sequence"],
    "terms": [[0, 0], [1, 0], [1, 1]],
    "weights": {"fp32": [0, 4 * GB]},
    "units": {"root": [0, GB // 10], "layer": [0, GB // 100]},
    "training": {
        "fp32 sdpa": [
            {"at": "backward", "gradients": [0, 1 * GB], "activations": [1, 1 * GB]},
            {"at": "step", "gradients": [0, 4 * GB]},
        ],
        "fp32 sdpa accumulation": [{"at": "backward", "gradients": [0, 4 * GB], "activations": [1, 1 * GB]}],
    },
    "optimizers": {
        "fp32 sgd": {"states": [], "temporary": []},
        "fp32 adamw_fused": {"states": [0, 8 * GB], "temporary": []},
        "fp32 adamw_foreach": {"states": [0, 8 * GB], "temporary": [0, 2 * GB]},
    },
    "inference": {
        "fp32 sdpa": {
            "prefill": [{"activations": [1, GB], "cache": [2, 1000]}],
            "decode": [{"cache": [2, 1000]}],
        }
    },
}


def training(batch: int = 1, **choices: Any) -> Setup:
    return Setup("training", "fp32", "sdpa", batch, 100, **choices)


def peak(setup: Setup) -> tuple[str, float]:
    found = calculate(COEFFICIENTS, setup)
    return found.at, found.total / GB


def test_the_peak_is_the_moment_that_holds_the_most() -> None:
    assert peak(training(1)) == ("step", 16)
    assert peak(training(9)) == ("backward", 22)


def test_the_optimizer_s_buffers_count_in_its_step_alone() -> None:
    assert peak(training(1, optimizer="adamw_foreach")) == ("step", 18)
    assert peak(training(9, optimizer="adamw_foreach")) == ("backward", 22)
    assert peak(training(1, optimizer="sgd")) == ("step", 8)


def test_further_batches_of_a_step_meet_the_gradients_of_the_first() -> None:
    assert peak(training(9, accumulation=2)) == ("backward", 25)


def test_a_generation_peaks_with_its_prompt_or_with_its_last_token() -> None:
    prompt = Setup("inference", "fp32", "sdpa", 1, 1000, tokens=1)
    assert calculate(COEFFICIENTS, prompt).at == "prefill"
    long = Setup("inference", "fp32", "sdpa", 1, 1000, tokens=2_000_001)
    assert calculate(COEFFICIENTS, long).at == "decode"
    assert calculate(COEFFICIENTS, long).parts["cache"] == 1000 * 2_001_000


@pytest.mark.parametrize(
    ("sharding", "weights", "gradients", "states"),
    [("ddp", 4, 4, 8), ("zero1", 4, 4, 2), ("zero2", 1, 1, 2), ("zero3", 1, 1, 2)],
)
def test_each_sharding_divides_its_share(
    sharding: str, weights: float, gradients: float, states: float
) -> None:
    step = {**COEFFICIENTS, "training": {"fp32 sdpa": [{"at": "step", "gradients": [0, 4 * GB]}]}}
    found = calculate(step, training(gpus=4, sharding=sharding))
    shares = [found.parts[name] / GB for name in ("weights", "gradients", "optimizer_states")]
    assert shares == [weights, gradients, states]


def test_adapters_have_weights_optimizers_and_setups_of_their_own_and_grow_with_their_rank() -> None:
    adapted = {
        "variables": ["batch", "sequence", "rank"],
        "terms": [[0, 0, 0], [1, 0, 0], [0, 0, 1]],
        "weights": {"bf16": [0, 9 * GB], "bf16 qlora": [0, GB, 2, GB // 100]},
        "units": {"root": [], "layer": []},
        "training": {
            "bf16 qlora sdpa": [
                {"at": "backward", "activations": [1, GB]},
                {"at": "step", "gradients": [2, GB // 100]},
            ]
        },
        "optimizers": {"lora adamw_fused": {"states": [2, GB // 50], "temporary": []}},
    }

    def total(batch: int, rank: int, gpus: int = 1) -> float:
        setup = Setup("training", "bf16", "sdpa", batch, 100, method="qlora", rank=rank, gpus=gpus)
        return calculate(adapted, setup).total / GB

    assert total(1, 10) == pytest.approx(1 + 0.1 + 0.2 + 1)
    assert total(1, 100) == pytest.approx(1 + 1 + 2 + 1)
    # Two exchange the gradients of adapters, and not those of a whole model.
    assert total(1, 10, gpus=2) == pytest.approx(1 + 0.1 + 0.2 + 1 + 0.1)


GENERATING = {
    **COEFFICIENTS,
    "variables": ["batch", "sequence", "completion", "chunk"],
    "terms": [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]],
    "training": {
        f"fp32 sdpa grpo{again}": [
            {
                "at": "backward",
                "gradients": [0, GB],
                "activations": [2, GB // 1000, 3, GB // 100, 4, GB // 1000],
            },
            {"at": "step", "gradients": [0, GB], "workspaces": [0, GB]},
        ]
        for again in ("", " accumulation")
    },
    "generation": {"fp32 sdpa": {"prefill": [{"temporary": [2, GB]}], "decode": [{"cache": [2, GB // 10]}]}},
}


def completions(batch: int = 2, sequence: int = 1000, completion: int = 10, accumulation: int = 1) -> Setup:
    return Setup(
        *("training", "fp32", "sdpa", batch, sequence),
        objective="grpo",
        completion=completion,
        accumulation=accumulation,
    )


def test_before_a_step_of_grpo_prompts_are_read_and_completions_generated_without_gradients() -> None:
    prompt = calculate(GENERATING, completions())
    assert (prompt.at, prompt.total / GB) == ("prefill", 4 + 8 + 1 + 2 * 990)
    token = calculate(GENERATING, completions(completion=999))
    assert (token.at, token.parts["cache"] / GB) == ("decode", pytest.approx(2 * 99.9))
    assert token.parts["gradients"] == 0


def test_all_batches_of_a_step_of_grpo_are_generated_at_once() -> None:
    found = calculate(GENERATING, completions(accumulation=4))
    assert found.parts["temporary"] / GB == 4 * 2 * 990


def test_a_step_of_grpo_scores_the_tokens_of_completions_by_tiles() -> None:
    step = {**GENERATING, "generation": {"fp32 sdpa": {"prefill": [{}], "decode": [{}]}}}
    found = calculate(step, completions(completion=100))
    assert (found.at, found.parts["activations"] / GB) == ("backward", 2 + 2 + 0.2)
    # A tile has no more tokens than TRL's kernel takes at once.
    more = calculate(step, completions(sequence=10_000, completion=5000))
    assert more.parts["activations"] / GB == pytest.approx(20 + 100 + 4.096)


def test_a_completion_leaves_a_prompt() -> None:
    with pytest.raises(ValueError, match="completion is 8 of 8 tokens, and no prompt"):
        completions(sequence=8, completion=8)


def test_what_the_model_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError):
        calculate(COEFFICIENTS, Setup("training", "fp32", "eager", 1, 100))


def test_at_least_twenty_models_of_every_kind_are_listed() -> None:
    models = listed_models(HANDBOOK)
    assert len(models) >= 20
    assert {one.kind for one in models} == {"encoder", "decoder", "encoder-decoder", "mixture"}
    assert models == all_models(HANDBOOK)


def test_every_listed_model_says_in_which_type_it_is_published() -> None:
    types = {one.name: one.dtype for one in listed_models(HANDBOOK)}
    assert set(types.values()) == {"float32", "float16", "bfloat16"}
    assert types["bert-large-uncased"] == "float32"
    assert types["llama-2-7b"] == "float16"
    assert types["llama-3.1-8b"] == "bfloat16"


def test_a_model_whose_type_is_not_known_is_listed_without_one(tmp_path: Path) -> None:
    path = tmp_path / "snippets" / "models" / "models.toml"
    path.parent.mkdir(parents=True)
    path.write_text('[gpt2]\ntitle = "GPT-2"\nkind = "decoder"\n', "utf-8")
    (model,) = all_models(Project(tmp_path))
    assert model.dtype == ""


@pytest.mark.parametrize(
    ("entry", "line", "what"),
    [
        ("['../../x']\ntitle = 'A'\nkind = 'decoder'\n", 1, "`../../x`"),
        ("['a<b>']\ntitle = 'A'\nkind = 'decoder'\n", 1, "`a<b>`"),
        ("[con]\ntitle = 'A'\nkind = 'decoder'\n", 1, "`con`: Windows keeps the name con for a device"),
        ("[a]\ntitle = 'A<script>'\nkind = 'decoder'\n", 2, "`a.title`: it holds what is not seen"),
        ("[a]\ntitle = 'A'\nkind = 'rnn'\n", 3, "`a.kind`: "),
        ("[a]\nkind = 'decoder'\n", 1, "`a.title`: "),
        ("[a]\ntitle = 'A'\nkind = 'decoder'\nsource = 'javascript:x'\n", 4, "`a.source`: "),
        ("[a]\ntitle = 'A'\nkind = 'decoder'\nsize = 1\n", 4, "`a.size`: there is no such key"),
        ("[a]\ntitle = 'A'\nkind = 'decoder'\nparameters = 0\n", 4, "`a.parameters`: "),
        ("[a]\ntitle =\n", 2, "is not valid TOML"),
        ("a = 1\n", 1, "`a`: "),
    ],
)
def test_a_list_of_models_that_is_none_is_named_by_its_line(
    tmp_path: Path, entry: str, line: int, what: str
) -> None:
    path = tmp_path / "snippets" / "models" / "models.toml"
    path.parent.mkdir(parents=True)
    path.write_text(entry, "utf-8")
    (problem,) = coefficient_problems(Project(tmp_path))
    assert (problem.path, problem.line) == ("snippets/models/models.toml", line)
    assert problem.what.startswith(what)


TITLES = [
    ("llama-3.1-8b", "Llama 3.1 70B", 8_030_261_248, "says '70b', and the model is called llama-3.1-8b"),
    (
        "bert-base-uncased",
        "BERT large",
        109_482_240,
        "says 'large', and the model is called bert-base-uncased",
    ),
    ("llama-3.1-70b", "Llama 3.1 70B", 8_030_261_248, "does not agree with the 8030261248 parameters"),
    ("bert-0b", "BERT 0B", 109_482_240, "does not agree with the 109482240 parameters"),
    ("smollm2-360m", "SmolLM2 360M", 1_711_376_384, "does not agree with the 1711376384 parameters"),
    ("mixtral-8x7b", "Mixtral 8x7B", 7_248_023_552, "does not agree with the 7248023552 parameters"),
]


@pytest.mark.parametrize(("name", "title", "parameters", "what"), TITLES)
def test_a_model_has_no_title_of_another(
    tmp_path: Path, name: str, title: str, parameters: int, what: str
) -> None:
    entry = f'["{name}"]\nkind = "decoder"\nparameters = {parameters}\ntitle = "{title}"\n'
    write(tmp_path / "snippets" / "models" / "models.toml", entry)
    problem, *_ = coefficient_problems(Project(tmp_path))
    assert (problem.path, problem.line) == ("snippets/models/models.toml", 4)
    assert what in problem.what


@pytest.mark.parametrize(
    ("name", "title", "parameters"),
    [
        ("gemma-2-2b", "Gemma 2 2B", 2_614_341_888),
        ("olmoe-1b-7b", "OLMoE 1B-7B", 6_919_161_856),
        ("mixtral-8x7b", "Mixtral 8x7B", 46_702_792_704),
        ("phi-3-mini-4k", "Phi-3 mini 4k", 3_821_079_552),
    ],
)
def test_a_title_may_round_and_say_how_many_parameters_compute(
    tmp_path: Path, name: str, title: str, parameters: int
) -> None:
    entry = f'["{name}"]\nkind = "decoder"\nparameters = {parameters}\ntitle = "{title}"\n'
    write(tmp_path / "snippets" / "models" / "models.toml", entry)
    assert not [one for one in coefficient_problems(Project(tmp_path)) if "title" in one.what]


def test_the_coefficients_of_every_model_are_those_of_its_configuration() -> None:
    assert list(coefficient_problems(HANDBOOK)) == []


@pytest.mark.parametrize("name", [one for one in FAMILIES if one != "encoder"])
def test_every_family_that_generates_learns_from_pairs_and_from_completions(name: str) -> None:
    found = load_coefficients(coefficients_path(HANDBOOK, name))
    for method in ("fp32", "bf16_autocast", "bf16", "bf16 lora", "bf16 qlora"):
        assert {f"{method} sdpa dpo", f"{method} sdpa grpo checkpointing"} <= found["training"].keys()
        assert f"{method} sdpa" in found["generation"]


def test_a_changed_model_is_told_from_a_missing_one_and_from_old_rules(tmp_path: Path) -> None:
    project = Project(tmp_path)
    shutil.copytree(HANDBOOK.snippets / "models", project.snippets / "models")
    name = all_models(project)[0].name
    assert stale_coefficients(project, name) == "never derived"
    path = coefficients_path(project, name)
    path.parent.mkdir(parents=True)
    shutil.copy(coefficients_path(HANDBOOK, name), path)
    assert stale_coefficients(project, name) is None
    config = config_of(project, name)
    changed = project.snippets / "models" / f"{name}.json"
    changed.write_text(json.dumps(dict(reversed(config.items()))), "utf-8")
    assert stale_coefficients(project, name) is None
    changed.write_text(json.dumps({**config, "vocab_size": 7}), "utf-8")
    assert stale_coefficients(project, name) == "the model changed"
    changed.write_text(json.dumps(config), "utf-8")
    path.write_text(path.read_text("utf-8").replace('"predictor": ', '"predictor": 9'), "utf-8")
    assert stale_coefficients(project, name) == "the predictor's rules changed"
    problem = next(one for one in coefficient_problems(project) if name in one.path)
    assert problem.fix == f"run `benchbook coefficients {name}`"
    assert problem in check_project(project).problems


def test_a_digest_does_not_depend_on_the_order_of_a_configuration() -> None:
    assert (
        config_digest({"a": 1, "b": 2}) == config_digest({"b": 2, "a": 1}) != config_digest({"a": 1, "b": 3})
    )


def test_two_hundred_recorded_points_are_within_one_percent_of_what_tensors_ask_for() -> None:
    points = load_points(HANDBOOK)
    assert points is not None
    assert len(points.points) >= 200
    found = list(zip(points.points, errors(HANDBOOK, points.points), strict=True))
    assert [(point, error) for point, error in found if abs(error.requested) > 0.01] == []


def test_the_page_s_allowance_for_fragments_is_enough_for_every_recorded_point() -> None:
    points = load_points(HANDBOOK)
    assert points is not None
    script = (HANDBOOK.docs / "assets" / "memory_model.js").read_text("utf-8")
    assert "bytes * 1.05 + GIB" in script
    found = list(zip(points.points, errors(HANDBOOK, points.points), strict=True))
    assert [(point, error) for point, error in found if (1 + error.allocated) * 1.05 < 1] == []


def test_the_site_gets_every_file_in_few_bytes() -> None:
    files = coefficient_files(HANDBOOK)
    assert len(files) > len(all_models(HANDBOOK))
    for path, text in files.items():
        source = HANDBOOK.snippets / "coefficients" / path
        assert json.loads(text) == json.loads(source.read_text("utf-8"))
