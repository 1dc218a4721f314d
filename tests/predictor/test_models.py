"""The models in snippets/models are what was published under their names, in the words of transformers."""

from __future__ import annotations

import inspect
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import AutoConfig, PreTrainedConfig

pytestmark = pytest.mark.torch

MODELS = Path(__file__).parents[2] / "snippets/models"
CATALOGUE: dict[str, dict[str, Any]] = tomllib.loads((MODELS / "models.toml").read_text("utf-8"))
KINDS = ("encoder", "decoder", "encoder-decoder", "mixture")
DTYPES = ("float32", "bfloat16", "float16")
each_model = pytest.mark.parametrize("name", CATALOGUE)


def fields_of(name: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((MODELS / f"{name}.json").read_text("utf-8"))
    return fields


def config_of(name: str) -> PreTrainedConfig:
    fields = fields_of(name)
    return AutoConfig.for_model(fields.pop("model_type"), **fields)


def parameters_of(architecture: str, config: PreTrainedConfig) -> int:
    """How many a model has, tied ones counted once; it is built without memory."""
    with torch.device("meta"):
        model = getattr(transformers, architecture)(config)
    return sum(weight.numel() for weight in model.parameters())


def test_every_file_is_in_the_catalogue_and_every_entry_has_its_file() -> None:
    assert {path.stem for path in MODELS.glob("*.json")} == set(CATALOGUE)
    assert len(CATALOGUE) >= 24


@each_model
def test_an_entry_says_what_the_model_is_and_where_that_stands(name: str) -> None:
    entry = CATALOGUE[name]
    assert set(entry) - {"counted"} == {
        *("title", "kind", "parameters", "source", "published"),
        *("dtype", "dtype_source", "dtype_words"),
    }
    assert entry["kind"] in KINDS
    assert entry["dtype"] in DTYPES
    assert entry["dtype_words"].strip()
    assert all(entry[key].startswith("https://") for key in ("source", "published", "dtype_source"))


def test_no_two_models_share_a_title() -> None:
    assert len({entry["title"] for entry in CATALOGUE.values()}) == len(CATALOGUE)


@each_model
def test_a_model_has_as_many_parameters_as_published(name: str) -> None:
    entry = CATALOGUE[name]
    config = config_of(name)
    assert parameters_of(entry.get("counted", config.architectures[0]), config) == entry["parameters"]


@each_model
def test_the_head_that_is_trained_adds_less_than_a_hundredth(name: str) -> None:
    config = config_of(name)
    published = CATALOGUE[name]["parameters"]
    assert published <= parameters_of(config.architectures[0], config) < 1.01 * published


@each_model
def test_transformers_writes_back_each_key_as_it_stands(name: str) -> None:
    fields = fields_of(name)
    written = config_of(name).to_dict()
    assert {key: written.get(key) for key in fields} == fields


@each_model
def test_the_model_reads_every_key(name: str) -> None:
    fields = fields_of(name)
    # A configuration keeps keys that it does not know: what it writes without any is what it knows.
    known = set(AutoConfig.for_model(fields["model_type"]).to_dict())
    code = inspect.getsource(inspect.getmodule(getattr(transformers, fields["architectures"][0])))
    read_besides = {key for key in fields if f'(config, "{key}"' in code or f"config.{key}" in code}
    assert set(fields) <= known | read_besides


@each_model
def test_a_file_is_sorted_and_stands_as_json_writes_it(name: str) -> None:
    text = (MODELS / f"{name}.json").read_text("utf-8")
    assert text == json.dumps(fields_of(name), indent=2, sort_keys=True) + "\n"


@each_model
def test_the_kind_agrees_with_the_configuration(name: str) -> None:
    fields = fields_of(name)
    experts = "num_local_experts" in fields or "num_experts" in fields
    causal = fields["architectures"][0].endswith(("CausalLM", "LMHeadModel"))
    both = fields.get("is_encoder_decoder", False)
    told = "mixture" if experts else "encoder-decoder" if both else "decoder" if causal else "encoder"
    assert CATALOGUE[name]["kind"] == told
