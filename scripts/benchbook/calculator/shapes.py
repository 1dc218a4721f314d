"""Models to derive coefficients of: one of fixed dimensions, or a family whose dimensions are variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchbook.calculator.coefficients import derive, head_of
from benchbook.calculator.derivation import Domain
from benchbook.calculator.growth import Stack
from benchbook.calculator.shallow import depth_of, reduced
from benchbook.predictor.models import read_config

BATCH, SEQUENCE = 2, 256
LARGEST_BATCH = 4096
LONGEST = 131072
# Of a family, where the peak is looked for.
DRAWN, SEED = 2000, 1


def derive_model(config: Mapping[str, Any]) -> dict[str, Any]:
    """The coefficients of a model, whose variables are batch and sequence.

    Raises:
        UnpredictableError: The model cannot be traced.
    """
    depth = depth_of(config)
    longest = positions_of(config) or LONGEST
    window = window_of(config)
    # Where tokens attend to a window, shorter sequences than that are computed otherwise than longer ones.
    sequence = SEQUENCE if window is None else min(SEQUENCE, window // 4)
    lengths = sorted({longest, *(share * 2**power // 2 for share in (2, 3) for power in range(4, 18))})
    points = [
        (2**power, length, depth)
        for power in range(LARGEST_BATCH.bit_length())
        for length in lengths
        if length <= longest
    ]
    # What the two halves of a translator hold grows by the prompt and by the new tokens apart.
    generates = not config.get("is_encoder_decoder")
    domain = Domain({"batch": BATCH, "sequence": sequence}, np.array(points, dtype=float), stack_of(config))
    found = derive(lambda _, layers: reduced(config, layers), domain, depth, generates)
    sizes = {"head": head_of(config)} if generates else {}
    return {**found, **sizes, "positions": positions_of(config), "window": window}


def stack_of(config: Mapping[str, Any]) -> Stack:
    """The layers to trace: where kinds of them take turns, so many that they end as the model does."""
    kinds = getattr(read_config(config), "layer_types", None) or [""]
    period = next(
        period for period in range(1, len(kinds) + 1) if kinds[period:] == kinds[: len(kinds) - period]
    )
    layers = depth_of(config) % period
    while layers < max(Stack.layers, 2 * period):
        layers += period
    return Stack(layers, period)


def positions_of(config: Mapping[str, Any]) -> int | None:
    """How many tokens a model can read at most; None where it does not say."""
    return config.get("max_position_embeddings") or config.get("n_positions")


def window_of(config: Mapping[str, Any]) -> int | None:
    """How many tokens a model attends to at once, in some layers at least; None where there is no limit."""
    return config.get("sliding_window")


def derive_family(name: str) -> dict[str, Any]:
    """The coefficients of a family, whose dimensions and layers are variables too.

    Raises:
        UnpredictableError: It cannot be traced.
    """
    family = FAMILIES[name]
    values = {"batch": BATCH, "sequence": SEQUENCE, **family.dimensions}
    chance = np.random.default_rng(SEED)
    points = np.array([family.drawn(chance) for _ in range(DRAWN)])
    return derive(family.shape, Domain(values, points), None, family.generates)


@dataclass(frozen=True)
class Family:
    """Models of one making.

    Parameters:
        fixed: What their configurations have in common.
        names: What the configuration calls each variable.
        dimensions: Values to trace it at.
        layers: What the configuration calls their number.
        generates: Whether it does.
    """

    fixed: Mapping[str, Any]
    names: Mapping[str, str]
    dimensions: Mapping[str, int]
    layers: str
    generates: bool

    def shape(self, values: Mapping[str, int], layers: int) -> dict[str, Any]:
        """A configuration."""
        dimensions = {self.names[name]: values[name] for name in self.dimensions if name in self.names}
        if "groups" not in self.dimensions and "num_key_value_heads" in self.fixed:
            dimensions["num_key_value_heads"] = values["heads"]
        return {**self.fixed, **dimensions, self.layers: layers}

    def drawn(self, chance: np.random.Generator) -> list[float]:
        """Random values of the variables, the number of layers last, as models have them."""
        hidden = 64 * chance.integers(4, 128)
        heads = hidden // chance.choice([64, 128]) or 1
        drawn = {
            "batch": 2 ** chance.integers(0, 9),
            "sequence": 2 ** chance.integers(5, 16),
            "hidden": hidden,
            "intermediate": hidden * chance.uniform(1, 6),
            "heads": heads,
            "groups": max(1, heads // chance.choice([2, 4, 8])),
            "head": chance.choice([64, 128]),
            "vocabulary": 2 ** chance.uniform(13, 18),
        }
        return [
            *(float(drawn[name]) for name in ("batch", "sequence", *self.dimensions)),
            float(chance.integers(4, 96)),
        ]


def _decoder(tied: bool, grouped: bool) -> Family:
    names = {
        "hidden": "hidden_size",
        "intermediate": "intermediate_size",
        "heads": "num_attention_heads",
        "groups": "num_key_value_heads",
        "head": "head_dim",
        "vocabulary": "vocab_size",
    }
    # So large that an optimizer pages the states of each matrix, whichever dimension is doubled.
    dimensions = {
        "hidden": 1024,
        "intermediate": 1536,
        "heads": 8,
        "groups": 2,
        "head": 64,
        "vocabulary": 8192,
    }
    if not grouped:
        del dimensions["groups"]
    fixed = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "tie_word_embeddings": tied,
        "num_key_value_heads": None,
        "max_position_embeddings": LONGEST,
    }
    return Family(fixed, names, dimensions, "num_hidden_layers", generates=True)


FAMILIES = {
    "encoder": Family(
        {"model_type": "bert", "architectures": ["BertForSequenceClassification"]},
        {
            "hidden": "hidden_size",
            "intermediate": "intermediate_size",
            "heads": "num_attention_heads",
            "vocabulary": "vocab_size",
        },
        {"hidden": 512, "intermediate": 1536, "heads": 8, "vocabulary": 8192},
        "num_hidden_layers",
        generates=False,
    ),
    "gpt": Family(
        {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_positions": 1024},
        {"hidden": "n_embd", "intermediate": "n_inner", "heads": "n_head", "vocabulary": "vocab_size"},
        {"hidden": 512, "intermediate": 1536, "heads": 8, "vocabulary": 8192},
        "n_layer",
        generates=True,
    ),
    "decoder": _decoder(tied=False, grouped=True),
    "decoder-tied": _decoder(tied=True, grouped=True),
    "decoder-full": _decoder(tied=False, grouped=False),
    "decoder-full-tied": _decoder(tied=True, grouped=False),
}
