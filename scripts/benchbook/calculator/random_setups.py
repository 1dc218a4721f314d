"""Setups drawn at random, for the calculator to be held against the predictor."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from benchbook.calculator.memory_model import Setup

BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
LONGEST = 8192
# A GPU computes with blocks of tokens: other lengths are filled up, by some kernels in a copy.
STEP = 16
OPTIMIZERS = ("adamw_fused", "adamw_foreach", "adamw_loop", "adamw_8bit", "adafactor", "sgd_momentum", "sgd")
# Of four setups, one generates, where the model can.
GENERATING = 0.25


def draw_setups(models: Mapping[str, Mapping[str, Any]], count: int, seed: int) -> list[tuple[str, Setup]]:
    """Random setups, each of a random model.

    Parameters:
        models: The coefficients of each, which know what setups it has.
        count: How many.
        seed: The same one draws the same setups.
    """
    chance = random.Random(seed)
    return [(name, _setup(models[name], chance)) for name in chance.choices(sorted(models), k=count)]


def _setup(coefficients: Mapping[str, Any], chance: random.Random) -> Setup:
    limits = (coefficients["positions"], coefficients["window"], LONGEST)
    longest = min(limit for limit in limits if limit)
    batch = chance.choice(BATCHES)
    if coefficients.get("inference") and chance.random() < GENERATING:
        precision, attention = chance.choice(sorted(coefficients["inference"])).split()
        prompt = STEP * chance.randint(1, longest // 2 // STEP)
        return Setup("inference", precision, attention, batch, prompt, tokens=chance.randint(1, longest // 2))
    precision, attention, *rest = chance.choice(sorted(coefficients["training"])).split()
    return Setup(
        "training",
        precision,
        attention,
        batch,
        STEP * chance.randint(1, longest // STEP),
        chance.choice(OPTIMIZERS),
        "checkpointing" in rest,
        chance.choice((2, 3, 4)) if "accumulation" in rest else 1,
    )
