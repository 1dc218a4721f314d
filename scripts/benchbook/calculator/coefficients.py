"""All coefficients of a model, from which the calculator computes any precision, attention and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, get_args

import torch
import transformers

from benchbook.calculator.checking import SCHEMA
from benchbook.calculator.derivation import (
    AGAIN,
    Array,
    Derived,
    Domain,
    PeakCandidate,
    Shape,
    inference_moments,
    optimizer_growth,
    training_moments,
)
from benchbook.calculator.growth import PARTS, Growth, UnevenGrowthError
from benchbook.content.predictions import PREDICTOR
from benchbook.predictor.prediction import fake_device
from benchbook.predictor.workload import (
    Attention,
    Inference,
    Optimizer,
    Precision,
    Training,
    UnpredictableError,
)

PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16_autocast", "bf16")
ATTENTIONS: tuple[Attention, ...] = ("sdpa", "eager")
WIDTHS: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
LAYERS = "layers"
BYTES_PER_NUMBER = 4


@dataclass
class _Sums:
    """Writes sums of terms, which all moments share.

    Parameters:
        depth: The layers of the model; None where they are a variable, the last.
        places: Of each term's powers among all terms.
    """

    depth: int | None
    places: dict[tuple[int, ...], int] = field(default_factory=dict)

    def grown(self, found: Growth, held: Array, layer: Array, before: tuple[int, ...] = ()) -> list[float]:
        """What is held with all layers: `held` with those traced, `layer` more with each further one.

        `before` are the powers of variables that the terms lack.
        """
        terms = [(*before, *powers) for powers in found.shallow.terms]
        if self.depth is not None:
            return self._pairs(terms, held + layer * (self.depth - found.layers))
        one = [(*powers, 1) for powers in terms]
        return self.plain(terms, held - layer * found.layers) + self._pairs(one, layer)

    def plain(self, terms: Sequence[tuple[int, ...]], factors: Array) -> list[float]:
        """A sum that does not depend on the number of layers."""
        rest = () if self.depth is not None else (0,)
        return self._pairs([(*powers, *rest) for powers in terms], factors)

    def _pairs(self, terms: Sequence[tuple[int, ...]], factors: Array) -> list[float]:
        """The places of terms and their factors, one after the other."""
        pairs: list[float] = []
        for powers, factor in zip(terms, factors, strict=True):
            rounded = round(float(factor), 3)
            if rounded:
                pairs.append(self.places.setdefault(powers, len(self.places)))
                pairs.append(int(rounded) if rounded.is_integer() else rounded)
        return pairs

    def parts(self, found: Growth, moment: PeakCandidate) -> dict[str, Any]:
        """The sum of each part; one that is nothing is left out, and weights, which are known."""
        sums = {
            name: self.grown(found, moment.held[place], moment.layer[place])
            for place, name in enumerate(PARTS)
            if name != "weights"
        }
        return {name: pairs for name, pairs in sums.items() if pairs}

    def end(self, found: Growth, name: str) -> list[float]:
        """The sum of one part when all is done."""
        place = PARTS.index(name)
        return self.grown(found, found.shallow.end[place], found.layer.end[place])


def derive(shape: Shape, domain: Domain, depth: int | None, generates: bool) -> dict[str, Any]:
    """The coefficients of a model or a family, as `snippets/coefficients` holds them.

    Parameters:
        shape: Of the model.
        domain: Of its variables.
        depth: Its layers; None where they are a variable.
        generates: Whether it is derived for inference too.

    Raises:
        UnpredictableError: The model cannot be traced.
    """
    sums = _Sums(depth)
    with fake_device("cuda") as kind:
        found = _training(shape, domain, sums, kind)
        if generates:
            found["inference"] = _inference(shape, domain, sums, kind)
        found["optimizers"] = _optimizers(shape, domain, sums, kind)
    return {
        "schema": SCHEMA,
        "predictor": PREDICTOR,
        "torch": torch.__version__.partition("+")[0],
        "transformers": transformers.__version__,
        "variables": [*domain.values, *([LAYERS] if depth is None else [])],
        "terms": [list(powers) for powers in sums.places],
        **found,
    }


def _training(shape: Shape, domain: Domain, sums: _Sums, kind: str) -> dict[str, Any]:
    """Weights, units of sharding, and the moments of each setup of training."""
    weights: dict[str, list[float]] = {}
    units: dict[str, list[float]] = {}
    training: dict[str, list[dict[str, Any]]] = {}
    for precision, attention, checkpointing in product(PRECISIONS, ATTENTIONS, (False, True)):
        workload = Training(1, 1, precision, attention=attention, checkpointing=checkpointing)
        derived = _if_possible(partial(training_moments, shape, domain, workload, kind))
        if derived is None:
            continue
        if precision in WIDTHS:
            weights[precision] = sums.end(derived.growth, "weights")
        units = units or _units(derived.growth, sums)
        words = [precision, attention, *["checkpointing"] * checkpointing]
        for again in (False, True):
            moments = [
                {"at": one.at.removesuffix(AGAIN), **sums.parts(derived.growth, one)}
                for one in derived.moments
                if one.at.endswith(AGAIN) == again
            ]
            training[" ".join([*words, *["accumulation"] * again])] = [*moments, _step(derived, sums)]
    return {"weights": weights, "units": units, "training": training}


def _step(derived: Derived, sums: _Sums) -> dict[str, Any]:
    """What is held when the optimizer begins, but for its own states: all gradients."""
    shallow, layer = derived.growth.shallow, derived.growth.layer
    last = len(shallow.moments) - 1
    held = {
        name: sums.grown(derived.growth, shallow.bytes[last, place], layer.bytes[last, place])
        for place, name in enumerate(PARTS)
        if name in ("gradients", "workspaces")
    }
    return {"at": "step", **held}


def _units(found: Growth, sums: _Sums) -> dict[str, list[float]]:
    """Numbers in one layer (of each stack together), and outside of all."""
    place = PARTS.index("weights")
    layer = found.layer.end[place] / BYTES_PER_NUMBER
    root = found.shallow.end[place] / BYTES_PER_NUMBER - found.layers * layer
    terms = found.shallow.terms
    return {"root": sums.plain(terms, root), "layer": sums.plain(terms, layer)}


def _optimizers(shape: Shape, domain: Domain, sums: _Sums, kind: str) -> dict[str, dict[str, list[float]]]:
    """Of each optimizer, its states, and the most that its step holds beside them."""
    found = {}
    states, temporary = PARTS.index("optimizer_states"), PARTS.index("temporary")
    neither = (0, 0)  # batch nor sequence
    for (precision, width), name in product(WIDTHS.items(), get_args(Optimizer)):
        grown = optimizer_growth(shape, domain, name, width, kind)
        few, more = grown.shallow, grown.layer
        entry = {
            "states": sums.grown(grown, few.end[states], more.end[states], neither),
            "temporary": sums.grown(grown, few.bytes[0, temporary], more.bytes[0, temporary], neither),
        }
        found[f"{precision} {name}"] = entry
    return found


def _inference(
    shape: Shape, domain: Domain, sums: _Sums, kind: str
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The moments of each setup of inference."""
    found = {}
    for precision, attention in product(WIDTHS, ATTENTIONS):
        workload = Inference(1, 1, 1, precision, attention)
        both = _if_possible(partial(inference_moments, shape, domain, workload, kind))
        if both is not None:
            found[f"{precision} {attention}"] = {
                name: [sums.parts(derived.growth, moment) for moment in derived.moments]
                for name, derived in zip(("prefill", "decode"), both, strict=True)
            }
    return found


def _if_possible(derived: Callable[[], Any]) -> Any:
    """What is derived; None where the model has no such setup."""
    try:
        return derived()
    except UnevenGrowthError:
        raise
    except UnpredictableError:
        return None
