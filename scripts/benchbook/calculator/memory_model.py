"""Bytes of a training step or a generation from coefficients: what docs/assets/memory_model.js computes, in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

Coefficients = Mapping[str, Any]
PARTS = (
    *("weights", "gradients", "optimizer_states", "activations", "copies", "cache"),
    *("temporary", "workspaces"),
)
_Read = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class Setup:
    """What a reader chooses.

    Parameters:
        mode: "training" or "inference".
        precision: "fp32", "bf16_autocast" or "bf16".
        attention: "sdpa" or "eager".
        batch: Samples per GPU.
        sequence: Tokens per sample, or of the prompt.
        optimizer: One that the predictor knows.
        checkpointing: Recompute each layer in the backward pass.
        accumulation: Forward and backward passes per step.
        gpus: How many train together.
        sharding: How: "ddp", "zero1", "zero2" or "zero3".
        tokens: New ones to generate.
    """

    mode: str
    precision: str
    attention: str
    batch: int
    sequence: int
    optimizer: str = "adamw_fused"
    checkpointing: bool = False
    accumulation: int = 1
    gpus: int = 1
    sharding: str = "ddp"
    tokens: int = 1

    @property
    def key(self) -> str:
        """What it is looked up by: the choices that change the sequence of allocations."""
        words = [self.precision, self.attention]
        if self.mode == "training":
            words += ["checkpointing"] * self.checkpointing + ["accumulation"] * (self.accumulation > 1)
        return " ".join(words)


@dataclass(frozen=True)
class Peak:
    """The moment that holds the most: its name, and its bytes by part."""

    at: str
    parts: Mapping[str, float]

    @property
    def total(self) -> float:
        """All bytes."""
        return sum(self.parts.values())


def calculate(
    coefficients: Coefficients, setup: Setup, dimensions: Mapping[str, float] | None = None
) -> Peak:
    """The peak of a setup; `dimensions` are those of the model where the coefficients are of a family.

    Raises:
        KeyError: The coefficients know no such setup.
    """
    compute = _training if setup.mode == "training" else _inference
    return max(compute(coefficients, setup, dimensions or {}), key=lambda peak: peak.total)


def _reader(coefficients: Coefficients, point: Mapping[str, float]) -> _Read:
    """What gives a sum of monomials its value at `point`."""
    names = coefficients["variables"]
    terms = [
        prod(point[name] ** power for name, power in zip(names, powers, strict=True))
        for powers in coefficients["terms"]
    ]
    return lambda factors: sum(factor * term for factor, term in zip(factors, terms, strict=False))


def _training(coefficients: Coefficients, setup: Setup, dimensions: Mapping[str, float]) -> list[Peak]:
    read = _reader(coefficients, {**dimensions, "batch": setup.batch, "sequence": setup.sequence})
    width = "bf16" if setup.precision == "bf16" else "fp32"
    optimizer = coefficients["optimizers"][f"{width} {setup.optimizer}"]
    units = {name: read(coefficients["units"][name]) for name in ("root", "layer")}
    peaks = []
    for moment in coefficients["training"][setup.key]:
        parts = {name: read(moment.get(name, ())) for name in PARTS}
        parts["weights"] = read(coefficients["weights"][width])
        parts["optimizer_states"] = read(optimizer["states"])
        if moment["at"] == "step":
            parts["temporary"] += read(optimizer["temporary"])
        peaks.append(_shard(Peak(moment["at"], parts), setup, units, width))
    return peaks


def _inference(coefficients: Coefficients, setup: Setup, dimensions: Mapping[str, float]) -> list[Peak]:
    peaks = []
    for at, length in (("prefill", setup.sequence), ("decode", setup.sequence + setup.tokens - 1)):
        read = _reader(coefficients, {**dimensions, "batch": setup.batch, "sequence": length})
        weights = read(coefficients["weights"][setup.precision])
        for moment in coefficients["inference"][setup.key][at]:
            parts = {name: read(moment.get(name, ())) for name in PARTS}
            peaks.append(Peak(at, {**parts, "weights": weights}))
    return peaks


def _shard(peak: Peak, setup: Setup, units: Mapping[str, float], width: str) -> Peak:
    """Where the weights, gradients and states of a moment lie when several GPUs train together."""
    parts = dict(peak.parts)
    way = setup.sharding if setup.gpus > 1 else "none"
    if way in ("ddp", "zero1"):
        # The buckets that gradients are exchanged in: as large as they, and kept.
        parts["temporary"] += parts["weights"]
        if way == "zero1":
            parts["optimizer_states"] /= setup.gpus
    elif way in ("zero2", "zero3"):
        size = 4 if setup.precision == "fp32" else 2
        whole = parts["weights"] / (2 if width == "bf16" else 4)
        gathered = whole if way == "zero2" else units["root"] + 2 * units["layer"]
        for name in ("weights", "gradients", "optimizer_states"):
            parts[name] /= setup.gpus
        if peak.at in ("forward", "backward"):
            # What is gathered has the precision of the computation already.
            parts["copies"] = gathered * size
            if peak.at == "backward":
                parts["temporary"] += (units["root"] + units["layer"]) * size
        else:
            parts["temporary"] /= setup.gpus
    return Peak(peak.at, parts)
