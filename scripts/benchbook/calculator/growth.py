"""How what is held grows: as sums of monomials, told from traces with each variable doubled in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from benchbook.calculator.shallow import layer_number
from benchbook.predictor.attribution import PASSES
from benchbook.predictor.trace import Birth, Events
from benchbook.predictor.workload import UnpredictableError

Array = NDArray[np.float64]
# The powers of each variable in a monomial, and its factor.
Monomial = tuple[tuple[int, ...], float]
# Trace a model with so many layers, where the variables have these values.
Tracer = Callable[[Mapping[str, int], int], Events]

PARTS = (
    *("weights", "gradients", "optimizer_states", "activations", "copies", "cache"),
    *("workspaces", "temporary"),
)
HIGHEST_POWER = 2
# Variables that say how many tokens there are.
BY_TOKENS = ("batch", "sequence", "completion", "chunk")


class UnevenGrowthError(UnpredictableError):
    """What is held does not grow as sums of monomials do, evenly with the layers."""


@dataclass(frozen=True)
class Stack:
    """How many layers are traced: so many, then a period more, in their middle.

    What is held grows or shrinks from layer to layer, so that of those alike the first or the last holds the
    most. But the very first and the very last differ from all others in what is held beside them.

    Parameters:
        layers: At least two first ones and two last ones, and of each kind one in either half.
        period: After so many, the kinds of layers repeat.
    """

    layers: int = 4
    period: int = 1

    def between(self, layer: str, layers: int) -> bool:
        """Whether a layer of so many is one of the period in between."""
        number = layer_number(layer)
        return number is not None and layers > self.layers and 0 <= number - self.layers // 2 < self.period


@dataclass(frozen=True)
class Held:
    """What is held after each birth that is looked at.

    Parameters:
        bytes: Factors by event, part and term.
        terms: The powers of each variable in each term.
        moments: The moment of each event.
        end: Factors by part and term of what is held when all is done.
    """

    bytes: Array
    terms: tuple[tuple[int, ...], ...]
    moments: tuple[str, ...]
    end: Array


def monomials(traces: Sequence[Events], values: Mapping[str, int]) -> list[Monomial]:
    """What the size of each storage is.

    Parameters:
        traces: With `values`, then with each of them doubled in turn.
        values: Of the variables.

    Raises:
        UnevenError: Not the same storages are born and die in all traces.
    """
    if any(other.order != traces[0].order for other in traces[1:]):
        raise UnevenGrowthError("what is allocated depends on the size", "predict the sizes you need")
    found = []
    for births in zip(*(one.births for one in traces), strict=True):
        powers = tuple(_power(birth.size / births[0].size) for birth in births[1:])
        found.append(_monomial(powers, births[0], values))
    return found


def _monomial(powers: tuple[int, ...], birth: Birth, values: Mapping[str, int]) -> Monomial:
    scale = prod(float(value) ** power for value, power in zip(values.values(), powers, strict=True))
    return powers, birth.size / scale


def _power(ratio: float) -> int:
    """The power of two nearest to `ratio`."""
    return min(HIGHEST_POWER, max(-1, round(float(np.log2(ratio)))))


@dataclass(frozen=True)
class Growth:
    """What is held with so many layers, and by how much more with each further one, on average."""

    layers: int
    shallow: Held
    layer: Held


def growth(
    trace: Tracer,
    values: Mapping[str, int],
    choose: Callable[[Events], Mapping[int, str]],
    stack: Stack,
    cast: bool = False,
) -> Growth:
    """How what is held grows with the variables and with the layers.

    Parameters:
        trace: Makes the traces.
        values: Of the variables.
        choose: The spans to look at, by their number, and what each is called.
        stack: The layers to trace.
        cast: Whether weights are copied to 16 bits as they are used.

    Raises:
        UnevenError: The model does not grow as models do.
    """
    traces = doubled(trace, values, stack.layers)
    few, sizes = traces[0], monomials(traces, values)
    more = trace(values, stack.layers + stack.period)
    grown = _alike(more, few, sizes, values, stack)
    terms = sorted({powers for powers, _ in sizes})
    by_tokens = [place for place, name in enumerate(values) if name in BY_TOKENS] if cast else []
    shallow = held_after(few, sizes, terms, choose, by_tokens)
    deeper = held_after(more, grown, terms, choose, by_tokens, stack)
    if shallow.moments != deeper.moments:
        raise UnevenGrowthError("a further layer changes more than itself", "predict the whole model")
    return Growth(stack.layers, shallow, per_layer(shallow, deeper, stack))


def per_layer(shallow: Held, deeper: Held, stack: Stack) -> Held:
    """By how much more is held with each layer of a period."""
    more = (deeper.bytes - shallow.bytes) / stack.period
    return Held(more, shallow.terms, shallow.moments, (deeper.end - shallow.end) / stack.period)


def doubled(trace: Tracer, values: Mapping[str, int], layers: int) -> list[Events]:
    """Traces with these values, and with each of them doubled in turn."""
    return [
        trace(each, layers) for each in (values, *({**values, name: 2 * values[name]} for name in values))
    ]


def _alike(
    deeper: Events, shallow: Events, sizes: Sequence[Monomial], values: Mapping[str, int], stack: Stack
) -> list[Monomial]:
    """What the sizes of a deeper model's storages are: they grow as those of the shallow one do.

    Raises:
        UnevenError: A layer in between does not do what one of its kind does.
    """
    layers = stack.layers + stack.period
    births = deeper.births
    outer = [place for place, birth in enumerate(births) if not stack.between(birth.layer, layers)]
    if [births[place].op for place in outer] != [birth.op for birth in shallow.births]:
        raise UnevenGrowthError("a further layer changes more than itself", "predict the whole model")
    powers = {place: known for place, (known, _) in zip(outer, sizes, strict=True)}
    by_layer: dict[str, list[int]] = {}
    for place, birth in enumerate(births):
        by_layer.setdefault(birth.layer, []).append(place)
    for name, places in by_layer.items():
        if stack.between(name, layers):
            number = layer_number(name) or 0
            stem = name[: -len(str(number))]
            ops = [births[place].op for place in places]
            # Of its kind, the nearest of those that are in the shallow model too.
            kind = (f"{stem}{other}" for other in range(number % stack.period, layers, stack.period))
            others = [by_layer[other] for other in kind if not stack.between(other, layers)]
            alike = next(
                (one for one in reversed(others) if [births[place].op for place in one] == ops), None
            )
            if alike is None:
                raise UnevenGrowthError("no layer does what another does", "predict the whole model")
            powers |= {place: powers[other] for place, other in zip(places, alike, strict=True)}
    return [_monomial(powers[place], birth, values) for place, birth in enumerate(births)]


def held_after(
    events: Events,
    sizes: Sequence[Monomial],
    terms: Sequence[tuple[int, ...]],
    choose: Callable[[Events], Mapping[int, str]],
    by_tokens: Sequence[int] = (),
    without: Stack | None = None,
) -> Held:
    """What is held after each birth in the chosen spans; `without` those of the layers in between.

    Where weights are copied to 16 bits, copies do not grow by the variables whose places are `by_tokens`.
    """
    parts = _parts(events, sizes, by_tokens)
    places = {powers: place for place, powers in enumerate(terms)}
    changes = np.zeros((len(events.order), len(PARTS), len(terms)))
    for place, event in enumerate(events.order):
        index = event if event >= 0 else ~event
        powers, factor = sizes[index]
        changes[place, PARTS.index(parts[index]), places[powers]] = factor if event >= 0 else -factor
    held = changes.cumsum(axis=0)
    # A GPU's workspaces stay from the first step on.
    held[:, PARTS.index("workspaces")] = held[-1, PARTS.index("workspaces")]
    starts = [*(span.first for span in events.spans), len(events.order)]
    deep = without.layers + without.period if without else 0
    kept, moments = [], []
    for span, moment in choose(events).items():
        for place in range(starts[span], starts[span + 1]):
            event = events.order[place]
            if event >= 0 and not (without and without.between(events.births[event].layer, deep)):
                kept.append(place)
                moments.append(moment)
    return Held(held[kept], tuple(terms), tuple(moments), held[-1])


def _parts(events: Events, sizes: Sequence[Monomial], by_tokens: Sequence[int]) -> list[str]:
    """The part of the memory that each storage belongs to."""
    deaths = {~event: place for place, event in enumerate(events.order) if event < 0}
    starts = [*(span.first for span in events.spans), len(events.order)]
    found = []
    for index, birth in enumerate(events.births):
        moment = events.spans[birth.span].moment
        made = birth.recomputed > 0 or moment == "forward"
        runs = made or moment in PASSES
        end = events.recomputed[birth.recomputed - 1] if birth.recomputed else starts[birth.span + 1]
        if birth.category:
            found.append(birth.category)
        elif runs and by_tokens and not any(sizes[index][0][place] for place in by_tokens):
            # Autocast keeps the copy of a weight until the region ends, autograd until it is used.
            found.append("copies")
        else:
            lasts = made and deaths.get(index, len(events.order)) >= end
            found.append("activations" if lasts else "temporary")
    return found
