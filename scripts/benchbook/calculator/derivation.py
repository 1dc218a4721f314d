"""Derive the moments at which a model can hold the most from how it grows: with sizes and with layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchbook.calculator.growth import (
    PARTS,
    Growth,
    Held,
    Stack,
    doubled,
    growth,
    held_after,
    monomials,
    per_layer,
)
from benchbook.calculator.shallow import (
    trace_completions,
    trace_evaluation,
    trace_inference,
    trace_optimizer,
    trace_shallow_training,
)
from benchbook.predictor.trace import Events
from benchbook.predictor.workload import Inference, Lora, Optimizer, Training

Array = NDArray[np.float64]
# The configuration of a model with so many layers, whose dimensions have these values.
Shape = Callable[[Mapping[str, int], int], Mapping[str, Any]]
# What is made of what is held: the sums of a moment.
Sums = dict[str, Any]

# Tokens of a traced generation: its last pass is the one that holds the most.
NEW_TOKENS = 3
AGAIN = "+"
# The variable that adapters have.
RANK = "rank"
# The variable that a loss made by chunks has.
CHUNK = "chunk"
# The variable that a step behind a generation has.
COMPLETION = "completion"


@dataclass(frozen=True)
class Domain:
    """What the variables can be.

    Parameters:
        values: At which the model is traced: batch and sequence first, then its dimensions, the tokens of a
            completion and of a chunk, and the rank of adapters, as far as there are any.
        points: Where the peak is looked for: by point and variable, the number of layers last.
        stack: The layers to trace.
    """

    values: Mapping[str, int]
    points: Array
    stack: Stack = field(default_factory=Stack)


@dataclass(frozen=True)
class PeakCandidate:
    """One that can be the peak.

    Parameters:
        at: Its name.
        held: With the shallow model, by part and term.
        layer: By how much more with each further layer.
    """

    at: str
    held: Array
    layer: Array


@dataclass(frozen=True)
class Derived:
    """Moments that can be the peak, and the growth that they are of."""

    moments: Sequence[PeakCandidate]
    growth: Growth


def training_moments(shape: Shape, domain: Domain, workload: Training, kind: str) -> Derived:
    """The moments of a step that can be its peak; those of further batches of one step end in `AGAIN`.

    Parameters:
        shape: Of the model.
        domain: Of its variables.
        workload: Its batch, sequence, optimizer and accumulation are of no account.
        kind: The type of the fake device.

    Raises:
        UnpredictableError: The model cannot be traced, or does not grow as models do.
    """

    def trace(values: Mapping[str, int], layers: int) -> Events:
        # Clipping comes when all gradients are there and nothing else, and holds little.
        asked = replace(_at(workload, values), accumulation=2, clipping=False)
        return trace_shallow_training(shape(values, layers), asked, kind)

    found = growth(trace, domain.values, _passes, domain.stack, workload.precision.endswith("autocast"))
    return _highest(found, domain)


def evaluation_moments(shape: Shape, domain: Domain, workload: Training, kind: str) -> Derived:
    """The moments of an evaluated batch that can be its peak; the batch is that of the evaluation.

    Raises as for training.
    """

    def trace(values: Mapping[str, int], layers: int) -> Events:
        return trace_evaluation(shape(values, layers), _at(workload, values), kind)

    cast = workload.precision.endswith("autocast")
    return _highest(growth(trace, domain.values, lambda _: {1: "evaluation"}, domain.stack, cast), domain)


def inference_moments(shape: Shape, domain: Domain, workload: Inference, kind: str) -> list[Derived]:
    """The moments of a generation that can be its peak: of reading the prompt, and of the last new token.

    For the latter, the sequence is that of all keys: the prompt, and all new tokens but the last.
    Raises as for training.
    """

    def generated(values: Mapping[str, int], layers: int, tokens: int) -> Events:
        prompt = values["sequence"] - tokens + 1
        asked = Inference(values["batch"], prompt, tokens, workload.precision, workload.attention)
        return trace_inference(shape(values, layers), asked, kind)

    return _prompt_and_last(generated, domain)


def completion_moments(shape: Shape, domain: Domain, workload: Training, kind: str) -> list[Derived]:
    """The moments of the generation before a step of `grpo`: as of an inference of all its passes' batches.

    Raises as for training.
    """

    def generated(values: Mapping[str, int], layers: int, tokens: int) -> Events:
        asked = replace(_at(workload, values), sequence=values["sequence"] + 1, completion=tokens)
        return trace_completions(shape(values, layers), asked, kind)

    return _prompt_and_last(generated, domain, workload.precision.endswith("autocast"))


def _prompt_and_last(
    generated: Callable[[Mapping[str, int], int, int], Events], domain: Domain, cast: bool = False
) -> list[Derived]:
    """What is highest while prompts are read, and while the last of several tokens is generated.

    Parameters:
        generated: The trace of a generation by the variables, of which the sequence is that of all keys in
            the last pass, by the layers and by the new tokens.
        domain: Of the variables.
        cast: Whether weights are copied to 16 bits as they are used.
    """

    def highest(tokens: int, choose: Callable[[Events], Mapping[int, str]]) -> Derived:
        def trace(values: Mapping[str, int], layers: int) -> Events:
            return generated(values, layers, tokens)

        return _highest(growth(trace, domain.values, choose, domain.stack, cast), domain)

    return [
        highest(1, lambda _: {1: "prefill"}),
        highest(NEW_TOKENS, lambda events: {len(events.spans) - 2: "decode"}),
    ]


def _at(workload: Training, values: Mapping[str, int]) -> Training:
    """A training where the variables have these values."""
    return replace(
        workload,
        batch=values["batch"],
        sequence=values["sequence"],
        lora=_with_rank(workload.lora, values),
        chunk=values.get(CHUNK),
        completion=values.get(COMPLETION, workload.completion),
    )


def _with_rank(lora: Lora | None, values: Mapping[str, int]) -> Lora | None:
    return None if lora is None else replace(lora, rank=values[RANK])


def optimizer_growth(
    shape: Shape, domain: Domain, name: Optimizer, width: torch.dtype, lora: Lora | None, kind: str
) -> Growth:
    """What an optimizer holds when its second step holds the most, with layers as many as models have."""
    values = {each: value for each, value in domain.values.items() if each not in ("batch", "sequence")}
    stack = domain.stack

    def trace(each: Mapping[str, int], layers: int) -> Events:
        return trace_optimizer(shape(each, layers), name, width, _with_rank(lora, each), kind)

    both = []
    for layers in (stack.layers, stack.layers + stack.period):
        traces = doubled(trace, values, layers)
        both.append((traces[0], monomials(traces, values)))
    terms = sorted({powers for _, sizes in both for powers, _ in sizes})
    typical = [
        prod(float(value) ** power for value, power in zip(values.values(), powers, strict=True))
        for powers in terms
    ]
    found = []
    for events, sizes in both:
        held = held_after(events, sizes, terms, lambda _: {2: "step"})
        # A kernel that needs no buffers has no moment of its own.
        most = held.bytes[(held.bytes.sum(axis=1) @ typical).argmax()] if held.moments else held.end
        found.append(Held(most[None], held.terms, ("step",), held.end))
    few, more = found
    return Growth(stack.layers, few, per_layer(few, more, stack))


def _passes(events: Events) -> dict[int, str]:
    """Forward and backward passes."""
    found: dict[int, str] = {}
    for place, span in enumerate(events.spans):
        if span.moment in ("forward", "backward"):
            found[place] = span.moment + AGAIN * (span.moment in found.values())
    return found


def _highest(found: Growth, domain: Domain) -> Derived:
    """The events that hold the most somewhere, whether gradients and copies count or lie elsewhere."""
    shallow, layer = found.shallow, found.layer
    points, layers = domain.points[:, :-1], domain.points[:, -1]
    values = np.array([np.prod(points**powers, axis=1) for powers in shallow.terms])
    kept: set[int] = set()
    for again in (False, True):
        places = [place for place, at in enumerate(shallow.moments) if at.endswith(AGAIN) == again]
        if not places:
            continue
        for apart in ((), ("gradients", "copies")):
            counted = [place for place, name in enumerate(PARTS) if name not in apart]
            few = shallow.bytes[places][:, counted].sum(axis=1) @ values
            more = layer.bytes[places][:, counted].sum(axis=1) @ values
            kept.update(places[place] for place in (few + more * (layers - found.layers)).argmax(axis=0))
    moments = [
        PeakCandidate(shallow.moments[place], shallow.bytes[place], layer.bytes[place])
        for place in sorted(kept)
    ]
    return Derived(moments, found)
