"""All coefficients of a model, from which the calculator computes any precision, attention and optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any, get_args

import numpy as np
import torch
import transformers

from benchbook.calculator.checking import SCHEMA
from benchbook.calculator.derivation import (
    AGAIN,
    CHUNK,
    COMPLETION,
    RANK,
    Array,
    Derived,
    Domain,
    PeakCandidate,
    Shape,
    completion_moments,
    evaluation_moments,
    inference_moments,
    optimizer_growth,
    training_moments,
)
from benchbook.calculator.growth import PARTS, Growth, UnevenGrowthError
from benchbook.content.predictions import PREDICTOR
from benchbook.predictor.models import read_config
from benchbook.predictor.prediction import fake_device
from benchbook.predictor.tiled_scores import COLUMNS
from benchbook.predictor.workload import (
    Attention,
    Inference,
    Lora,
    Objective,
    Optimizer,
    Precision,
    Training,
    UnpredictableError,
    rows_of_a_chunk,
    rows_of_a_tile,
)

ATTENTIONS: tuple[Attention, ...] = ("sdpa", "eager")
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
# Tokens of a chunk: fewer than half of those of a trace.
TRACED_CHUNK = 16
# Of a sequence, what a completion is in traces, and where the peak is looked for.
TRACED_COMPLETION = 1 / 4
COMPLETIONS = (1 / 16, 1 / 2, 1)
# Ranks of adapters: that of traces, none too small for states in 8 bits, and where the peak is looked for.
TRACED_RANK = 64
LOOKED_AT = (8, 256)
LORA, QLORA = Lora(TRACED_RANK), Lora(TRACED_RANK, four_bit=True)
LAYERS, VOCABULARY = "layers", "vocabulary"
BYTES_PER_NUMBER = 4


@dataclass(frozen=True)
class Method:
    """What is trained, and in which precision.

    Parameters:
        words: What setups are looked up by.
        weights: What their weights are.
        precision: In the words of the predictor.
        lora: The adapters, where not all weights are trained.
    """

    words: tuple[str, ...]
    weights: str
    precision: Precision
    lora: Lora | None = None


WHOLE = (
    Method(("fp32",), "fp32", "fp32"),
    Method(("bf16_autocast",), "fp32", "bf16_autocast"),
    Method(("bf16",), "bf16", "bf16"),
)
ADAPTED = (
    # Beside a model in bf16, adapters are in fp32 and compute under autocast: Trainer's `bf16=True`.
    Method(("bf16_autocast", "lora"), "fp32 lora", "bf16_autocast", LORA),
    Method(("bf16", "lora"), "bf16 lora", "bf16_weights_autocast", LORA),
    Method(("bf16", "qlora"), "bf16 qlora", "bf16_weights_autocast", QLORA),
)


@dataclass
class _Sums:
    """Writes sums of terms, which all moments share.

    Parameters:
        depth: The layers of the model; None where they are a variable, the last.
        variables: All but the layers.
        known: Those that the terms to be written have powers of, in this order; they do not depend on others.
        places: Of each term's powers among all terms.
    """

    depth: int | None
    variables: tuple[str, ...]
    known: tuple[str, ...]
    places: dict[tuple[int, ...], int] = field(default_factory=dict)

    def of(self, known: Iterable[str]) -> _Sums:
        """Writes terms that have powers of these variables."""
        return replace(self, known=tuple(known))

    def grown(self, found: Growth, held: Array, layer: Array) -> list[float]:
        """What is held with all layers: `held` with those traced, `layer` more with each further one."""
        terms = [self._whole(powers) for powers in found.shallow.terms]
        if self.depth is not None:
            return self._pairs(terms, held + layer * (self.depth - found.layers))
        none, one = ([(*powers, layers) for powers in terms] for layers in (0, 1))
        return self._pairs(none, held - layer * found.layers) + self._pairs(one, layer)

    def plain(self, terms: Sequence[tuple[int, ...]], factors: Array) -> list[float]:
        """A sum that does not depend on the number of layers."""
        rest = () if self.depth is not None else (0,)
        return self._pairs([(*self._whole(powers), *rest) for powers in terms], factors)

    def _whole(self, powers: tuple[int, ...]) -> tuple[int, ...]:
        named = dict(zip(self.known, powers, strict=True))
        return tuple(named.get(name, 0) for name in self.variables)

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
    adapted = _with_rank(domain)
    variables = (*domain.values, CHUNK, RANK, *([COMPLETION] if generates else []))
    sums = _Sums(depth, variables, tuple(domain.values))
    with fake_device("cuda") as kind:
        found = _training(shape, domain, sums, kind, WHOLE, ATTENTIONS)
        if generates:
            found["inference"] = _inference(shape, domain, sums, kind)
        found["optimizers"] = _optimizers(shape, domain, sums, kind, DTYPES, get_args(Optimizer))
        attention = next(name for name in ATTENTIONS if f"fp32 {name}" in found["training"])
        more = _training(shape, adapted, sums, kind, ADAPTED, (attention,))
        found["weights"] |= more["weights"]
        found["training"] |= more["training"]
        # The states of adapters are small, and many of them lie in no page.
        kept = [name for name in get_args(Optimizer) if not name.startswith("paged_")]
        found["optimizers"] |= _optimizers(shape, adapted, sums, kind, {"lora": torch.float32}, kept, LORA)
        if generates:
            found["training"] |= _formed("chunked", shape, (domain, adapted), sums, kind, attention)
        found["evaluation"] = _evaluations(shape, (domain, adapted), sums, kind, attention, generates)
        if generates:
            tiled = _with_whole_tiles(domain), _with_whole_tiles(adapted)
            found["training"] |= _formed("dpo", shape, tiled, sums, kind, attention)
            completed = _with_completion(tiled[0]), _with_completion(tiled[1])
            learning = _formed("grpo", shape, completed, sums, kind, attention)
            found["training"] |= learning
            found["generation"] = (
                _generations(shape, (domain, adapted), sums, kind, attention) if learning else {}
            )
    return {
        "schema": SCHEMA,
        "predictor": PREDICTOR,
        "torch": torch.__version__.partition("+")[0],
        "transformers": transformers.__version__,
        "variables": [*variables, *([LAYERS] if depth is None else [])],
        "terms": [list(powers) for powers in sums.places],
        **found,
    }


def _with_rank(domain: Domain) -> Domain:
    """`domain` with the rank of adapters among its variables, after all but the layers."""
    several = [np.insert(domain.points, -1, rank, axis=1) for rank in LOOKED_AT]
    return replace(domain, values={**domain.values, RANK: TRACED_RANK}, points=np.concatenate(several))


def _with_chunk(domain: Domain, rows: Callable[[Mapping[str, int]], int]) -> Domain:
    """`domain` with the tokens of a chunk among its variables, before a rank and the layers.

    Parameters:
        domain: Without.
        rows: How many tokens a chunk has, from the other variables.
    """
    names = list(domain.values)
    points = [dict(zip(names, (int(value) for value in point), strict=False)) for point in domain.points]
    return _with(domain, CHUNK, TRACED_CHUNK, [rows(point) for point in points])


def _with_completion(domain: Domain) -> Domain:
    """`domain` with the tokens of a completion among its variables, before a rank and the layers."""
    lengths = domain.points[:, list(domain.values).index("sequence")]
    traced = int(TRACED_COMPLETION * domain.values["sequence"])
    several = [_with(domain, COMPLETION, traced, share * lengths) for share in COMPLETIONS]
    return replace(several[0], points=np.concatenate([one.points for one in several]))


def _with_whole_tiles(domain: Domain) -> Domain:
    """`domain` whose vocabulary, where that is a variable, is traced so large that it fills two tiles.

    All larger ones hold as much at a time; of a smaller one, the copies of the head come out too high.
    """
    if VOCABULARY not in domain.values:
        return domain
    return replace(domain, values={**domain.values, VOCABULARY: 2 * COLUMNS})


def _with(domain: Domain, name: str, value: int, column: Sequence[float] | Array) -> Domain:
    """`domain` with a variable more: its value in traces, and at each point."""
    known = list(domain.values.items())
    place = list(domain.values).index(RANK) if RANK in domain.values else len(known)
    values = dict([*known[:place], (name, value), *known[place:]])
    return replace(domain, values=values, points=np.insert(domain.points, place, column, axis=1))


def head_of(config: Mapping[str, Any]) -> tuple[int, int]:
    """The numbers per token before and behind the output head of a model that predicts next tokens."""
    read = read_config(config).get_text_config()
    return read.hidden_size, read.vocab_size


# Forms of a loss that goes by chunks of tokens, and how many tokens such a chunk has.
FORMS: dict[str, Objective] = {"chunked": "supervised", "dpo": "dpo", "grpo": "grpo"}


def _rows_by(form: str, shape: Shape, domain: Domain) -> Callable[[Mapping[str, int]], int]:
    """How many tokens a chunk of this form has, from the variables."""
    if form == "dpo":
        return lambda values: rows_of_a_tile(2 * values["batch"] * values["sequence"])
    if form == "grpo":
        return lambda values: rows_of_a_tile(values["batch"] * values["completion"])
    fixed = head_of(shape(domain.values, domain.stack.layers))

    def rows(values: Mapping[str, int]) -> int:
        head = values.get("hidden", fixed[0]), values.get("vocabulary", fixed[1])
        return rows_of_a_chunk(values["batch"] * values["sequence"], *head)

    return rows


def _formed(
    form: str, shape: Shape, domains: tuple[Domain, Domain], sums: _Sums, kind: str, attention: Attention
) -> dict[str, list[dict[str, Any]]]:
    """The moments of each setup whose loss is of a form of `FORMS`; of `domains`, the second has adapters."""
    found: dict[str, list[dict[str, Any]]] = {}
    for domain, methods in zip(domains, (WHOLE, ADAPTED), strict=True):
        chunked = _with_chunk(domain, _rows_by(form, shape, domain))
        found |= _training(shape, chunked, sums, kind, methods, (attention,), form)["training"]
    return found


def _evaluations(
    shape: Shape,
    domains: tuple[Domain, Domain],
    sums: _Sums,
    kind: str,
    attention: Attention,
    by_chunks: bool,
) -> dict[str, list[dict[str, Any]]]:
    """The moments of an evaluated batch of each setup; of `domains`, the second has adapters."""
    found: dict[str, list[dict[str, Any]]] = {}
    for domain, methods in zip(domains, (WHOLE, ADAPTED), strict=True):
        attentions = ATTENTIONS if methods is WHOLE else (attention,)
        found |= _evaluation(shape, domain, sums, kind, product(methods, attentions), [])
        if by_chunks:
            chunked = _with_chunk(domain, _rows_by("chunked", shape, domain))
            found |= _evaluation(shape, chunked, sums, kind, product(methods, (attention,)), ["chunked"])
    return found


def _evaluation(
    shape: Shape,
    domain: Domain,
    sums: _Sums,
    kind: str,
    setups: Iterable[tuple[Method, Attention]],
    form: Sequence[str],
) -> dict[str, list[dict[str, Any]]]:
    sums = sums.of(domain.values)
    found = {}
    for method, attention in setups:
        workload = Training(1, 1, method.precision, attention=attention, lora=method.lora)
        derived = _if_possible(partial(evaluation_moments, shape, domain, workload, kind))
        if derived is not None:
            moments = [sums.parts(derived.growth, one) for one in derived.moments]
            found[" ".join([*method.words, attention, *form])] = [_without_workspaces(one) for one in moments]
    return found


def _training(
    shape: Shape,
    domain: Domain,
    sums: _Sums,
    kind: str,
    methods: Sequence[Method],
    attentions: Sequence[Attention],
    form: str | None = None,
) -> dict[str, Any]:
    """Weights, units of sharding, and the moments of each setup of training."""
    sums = sums.of(domain.values)
    weights: dict[str, list[float]] = {}
    units: dict[str, list[float]] = {}
    training: dict[str, list[dict[str, Any]]] = {}
    for method, attention, checkpointing in product(methods, attentions, (False, True)):
        workload = Training(
            domain.values["batch"],
            domain.values["sequence"],
            method.precision,
            attention=attention,
            checkpointing=checkpointing,
            lora=method.lora,
            chunk=domain.values.get(CHUNK),
            objective=FORMS[form] if form else "supervised",
            completion=domain.values.get(COMPLETION),
        )
        derived = _if_possible(partial(training_moments, shape, domain, workload, kind))
        if derived is None:
            continue
        weights.setdefault(method.weights, sums.end(derived.growth, "weights"))
        units = units or _units(derived.growth, sums)
        words = [*method.words, attention, *([form] if form else [])]
        words += ["checkpointing"] * checkpointing
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


def _optimizers(
    shape: Shape,
    domain: Domain,
    sums: _Sums,
    kind: str,
    widths: Mapping[Any, torch.dtype],
    names: Iterable[Optimizer],
    lora: Lora | None = None,
) -> dict[str, dict[str, list[float]]]:
    """Of each optimizer, its states, and the most that its step holds beside them."""
    found = {}
    states, temporary = PARTS.index("optimizer_states"), PARTS.index("temporary")
    sums = sums.of(name for name in domain.values if name not in ("batch", "sequence"))
    for (precision, width), name in product(widths.items(), names):
        grown = optimizer_growth(shape, domain, name, width, lora, kind)
        few, more = grown.shallow, grown.layer
        entry = {
            "states": sums.grown(grown, few.end[states], more.end[states]),
            "temporary": sums.grown(grown, few.bytes[0, temporary], more.bytes[0, temporary]),
        }
        found[f"{precision} {name}"] = entry
    return found


def _inference(
    shape: Shape, domain: Domain, sums: _Sums, kind: str
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The moments of each setup of inference."""
    found = {}
    for precision, attention in product(DTYPES, ATTENTIONS):
        workload = Inference(1, 1, 1, precision, attention)
        both = _if_possible(partial(inference_moments, shape, domain, workload, kind))
        if both is not None:
            found[f"{precision} {attention}"] = _by_pass(both, sums)
    return found


def _generations(
    shape: Shape, domains: tuple[Domain, Domain], sums: _Sums, kind: str, attention: Attention
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The moments of the generation before a step of `grpo`; of `domains`, the second has adapters."""
    found = {}
    for domain, methods in zip(domains, (WHOLE, ADAPTED), strict=True):
        known = sums.of(domain.values)
        for method in methods:
            workload = Training(
                *(1, 2, method.precision),
                attention=attention,
                lora=method.lora,
                objective="grpo",
                completion=1,
            )
            both = _if_possible(partial(completion_moments, shape, domain, workload, kind))
            if both is not None:
                found[" ".join([*method.words, attention])] = {
                    name: [_without_workspaces(one) for one in moments]
                    for name, moments in _by_pass(both, known).items()
                }
    return found


def _by_pass(both: Sequence[Derived], sums: _Sums) -> dict[str, list[dict[str, Any]]]:
    """The moments of a generation: of its prompt, and of its last token."""
    return {
        name: [sums.parts(derived.growth, moment) for moment in derived.moments]
        for name, derived in zip(("prefill", "decode"), both, strict=True)
    }


def _without_workspaces(moment: dict[str, Any]) -> dict[str, Any]:
    """A moment beside a training, whose workspaces stay."""
    return {name: pairs for name, pairs in moment.items() if name != "workspaces"}


def _if_possible(derived: Callable[[], Any]) -> Any:
    """What is derived; None where the model has no such setup."""
    try:
        return derived()
    except UnevenGrowthError:
        raise
    except UnpredictableError:
        return None
