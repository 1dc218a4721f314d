"""Bytes of a training step or a generation from coefficients: docs/assets/memory_model.js in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Annotated, Any, get_args

from benchbook.content.formats import Count, OneOf, Stored
from benchbook.predictor.workload import Optimizer, rows_of_a_chunk, rows_of_a_tile

Coefficients = Mapping[str, Any]
PARTS = (
    *("weights", "gradients", "optimizer_states", "activations", "copies", "cache"),
    *("temporary", "workspaces"),
)
# Of those that the predictor knows.
OBJECTIVES = ("supervised", "dpo", "grpo")
Read = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class Setup(Stored):
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
        sharding: How: "ddp", "zero1", "zero2" or "zero3"; of adapters "ddp" alone.
        tokens: New ones to generate.
        method: "full", or adapters alone: "lora", "qlora".
        rank: Of these.
        chunked: Make the loss by chunks of tokens, never all logits at once.
        objective: "supervised", "dpo", whose batch counts pairs of answers, or "grpo": a batch of
            completions, those of all batches of a step generated at once before it.
        evaluation: Samples of an evaluated batch, if there is one; computed of "supervised" alone.
        completion: With "grpo": tokens of each sequence that are generated, the last ones.
    """

    mode: Annotated[str, OneOf(("training", "inference"))]
    precision: Annotated[str, OneOf(("fp32", "bf16_autocast", "bf16"))]
    attention: Annotated[str, OneOf(("sdpa", "eager"))]
    batch: Count
    sequence: Count
    optimizer: Annotated[str, OneOf(get_args(Optimizer))] = "adamw_fused"
    checkpointing: bool = False
    accumulation: Count = 1
    gpus: Count = 1
    sharding: Annotated[str, OneOf(("ddp", "zero1", "zero2", "zero3"))] = "ddp"
    tokens: Count = 1
    method: Annotated[str, OneOf(("full", "lora", "qlora"))] = "full"
    rank: Count = 16
    chunked: bool = False
    objective: Annotated[str, OneOf(OBJECTIVES)] = "supervised"
    evaluation: Count | None = None
    completion: Count = 1

    def __post_init__(self) -> None:
        if self.objective == "grpo" and self.completion >= self.sequence:
            raise ValueError(f"completion is {self.completion} of {self.sequence} tokens, and no prompt")

    @property
    def key(self) -> str:
        """What it is looked up by: the choices that change the sequence of allocations."""
        words = self._words
        if self.mode == "training":
            words += self._form
            words += ["checkpointing"] * self.checkpointing
            words += ["accumulation"] * (self.accumulation > 1)
        return " ".join(words)

    @property
    def evaluation_key(self) -> str:
        """What its evaluation is looked up by."""
        return " ".join([*self._words, *["chunked"] * self.chunked])

    @property
    def generation_key(self) -> str:
        """What the generation before its steps is looked up by."""
        return " ".join(self._words)

    @property
    def _words(self) -> list[str]:
        return [self.precision, *[self.method] * self.adapts, self.attention]

    @property
    def _form(self) -> list[str]:
        if self.objective != "supervised":
            return [self.objective]
        return ["chunked"] * self.chunked

    @property
    def adapts(self) -> bool:
        """Whether adapters alone are trained."""
        return self.mode == "training" and self.method != "full"

    @property
    def gathers(self) -> bool:
        """Whether weights are divided, and gathered where they are used."""
        return self.gpus > 1 and self.sharding in ("zero2", "zero3")


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


def weight_bytes(coefficients: Coefficients, name: str) -> float:
    """Bytes of a model's weights of the kind `name`, those of adapters left out."""
    nothing = dict.fromkeys(coefficients["variables"], 0)
    return reader(coefficients, nothing)(coefficients["weights"][name])


def reader(coefficients: Coefficients, point: Mapping[str, float]) -> Read:
    """What gives a sum its value at `point`: places of terms and their factors, one after the other."""
    names, terms = coefficients["variables"], coefficients["terms"]

    @cache
    def term(place: int) -> float:
        powers = zip(names, terms[place], strict=True)
        return float(prod(point[name] ** power for name, power in powers if power))

    return lambda pairs: sum(
        term(int(place)) * factor for place, factor in zip(*[iter(pairs)] * 2, strict=True)
    )


def _point(
    coefficients: Coefficients, setup: Setup, dimensions: Mapping[str, float], batch: int
) -> dict[str, float]:
    """The variables of a step with so many samples."""
    chunk = 0
    if setup.objective == "dpo":
        chunk = rows_of_a_tile(2 * batch * setup.sequence)
    elif setup.objective == "grpo":
        chunk = rows_of_a_tile(batch * setup.completion)
    elif setup.chunked:
        hidden, vocabulary = coefficients.get("head") or (dimensions["hidden"], dimensions["vocabulary"])
        chunk = rows_of_a_chunk(batch * setup.sequence, int(hidden), int(vocabulary))
    return {
        **dimensions,
        "batch": batch,
        "sequence": setup.sequence,
        "rank": setup.rank,
        "chunk": chunk,
        "completion": setup.completion,
    }


def _training(coefficients: Coefficients, setup: Setup, dimensions: Mapping[str, float]) -> list[Peak]:
    read = reader(coefficients, _point(coefficients, setup, dimensions, setup.batch))
    width = "bf16" if setup.precision == "bf16" else "fp32"
    known = coefficients["optimizers"]
    # Of the states of adapters, none lie in pages.
    optimizer = known[
        f"lora {setup.optimizer.removeprefix('paged_')}" if setup.adapts else f"{width} {setup.optimizer}"
    ]
    weights = read(coefficients["weights"][f"{width} {setup.method}" if setup.adapts else width])
    units = {name: read(coefficients["units"][name]) for name in ("root", "layer")}
    # Where weights are gathered for it, a step in 16 bits needs no autocast: they come in 16 bits.
    computed = replace(setup, precision="bf16") if setup.gathers and setup.precision != "fp32" else setup
    peaks = []
    for moment in coefficients["training"][computed.key]:
        parts = {name: read(moment.get(name, ())) for name in PARTS}
        # The model that it is compared with: with adapters, the same one.
        parts["weights"] = weights * (2 if setup.objective == "dpo" and not setup.adapts else 1)
        parts["optimizer_states"] = read(optimizer["states"])
        if moment["at"] == "step":
            parts["temporary"] += read(optimizer["temporary"])
        peaks.append(Peak(moment["at"], parts))
    at_step = peaks[-1]
    kept = {name: at_step.parts[name] for name in ("weights", "optimizer_states", "workspaces")}
    if setup.objective == "grpo":
        moments = coefficients["generation"][setup.generation_key]
        # All batches of a step at once.
        point = _point(coefficients, setup, dimensions, setup.batch * setup.accumulation)
        lengths = setup.sequence - setup.completion, setup.sequence - 1
        peaks += _generated(coefficients, moments, point, lengths, kept)
    if setup.evaluation is not None and setup.objective == "supervised":
        read = reader(coefficients, _point(coefficients, setup, dimensions, setup.evaluation))
        for moment in coefficients["evaluation"][computed.evaluation_key]:
            parts = {name: read(moment.get(name, ())) for name in PARTS}
            peaks.append(Peak("evaluation", {**parts, **kept}))
    # The step's gradients are all that are exchanged: those of adapters, or as many as there are weights.
    exchanged = at_step.parts["gradients"] if setup.adapts else weights
    return [_shard(peak, setup, units, exchanged) for peak in peaks]


def _inference(coefficients: Coefficients, setup: Setup, dimensions: Mapping[str, float]) -> list[Peak]:
    point = {**_point(coefficients, setup, dimensions, setup.batch), "rank": 0}
    weights = reader(coefficients, point)(coefficients["weights"][setup.precision])
    lengths = setup.sequence, setup.sequence + setup.tokens - 1
    moments = coefficients["inference"][setup.key]
    return _generated(coefficients, moments, point, lengths, {"weights": weights})


def _generated(
    coefficients: Coefficients,
    moments: Mapping[str, Sequence[Mapping[str, Sequence[float]]]],
    point: Mapping[str, float],
    lengths: tuple[int, int],
    kept: Mapping[str, float],
) -> list[Peak]:
    """The moments of a generation.

    Parameters:
        coefficients: That they are of.
        moments: Of the prompt and of the last token.
        point: The variables, but for the sequence.
        lengths: Tokens of the prompt, and keys in the last pass.
        kept: What other parts hold then, in bytes.
    """
    peaks = []
    for at, length in zip(("prefill", "decode"), lengths, strict=True):
        read = reader(coefficients, {**point, "sequence": length})
        for moment in moments[at]:
            peaks.append(Peak(at, {**{name: read(moment.get(name, ())) for name in PARTS}, **kept}))
    return peaks


def _shard(peak: Peak, setup: Setup, units: Mapping[str, float], exchanged: float) -> Peak:
    """What of a moment each GPU holds when several train together."""
    parts = dict(peak.parts)
    if setup.gpus == 1:
        return peak
    if not setup.gathers:
        # The buckets that gradients are exchanged in: as large as they, and kept.
        parts["temporary"] += exchanged
        if setup.sharding == "zero1":
            parts["optimizer_states"] /= setup.gpus
        return Peak(peak.at, parts)
    size = 4 if setup.precision == "fp32" else 2
    whole = parts["weights"] / (2 if setup.precision == "bf16" else 4)
    # Gradients are kept in the precision of the weights that they belong to.
    if setup.precision == "bf16_autocast":
        parts["gradients"] *= 2
    for name in ("weights", "gradients", "optimizer_states"):
        parts[name] /= setup.gpus
    if peak.at == "step":
        parts["temporary"] /= setup.gpus
    else:
        parts["copies"] = size * (whole if setup.sharding == "zero2" else units["root"] + 2 * units["layer"])
        if peak.at == "backward":
            parts["temporary"] += size * (units["root"] + units["layer"])
    return Peak(peak.at, parts)
