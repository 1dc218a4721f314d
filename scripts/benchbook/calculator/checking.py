"""Hold coefficients and points to what they were made from: the configurations and the predictor's rules."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from benchbook.calculator.listing import (
    COPY_AGAIN,
    FAMILIES,
    coefficients_path,
    config_of,
    config_path,
    derivable,
    load_coefficients,
    points_path,
    published_parameters,
    unowned_files,
)
from benchbook.calculator.listing_checks import listed_model_problems
from benchbook.calculator.memory_model import (
    OBJECTIVES,
    Coefficients,
    Read,
    Setup,
    calculate,
    reader,
    weight_bytes,
)
from benchbook.calculator.points import ADAPTERS, errors, load_points
from benchbook.content.predictions import PREDICTOR
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project

SCHEMA = 5
# Of what is not quantized, adapters left out.
BYTES_PER_PARAMETER = {"fp32": 4, "bf16": 2, "fp32 lora": 4, "bf16 lora": 2}
# By what share weights may be off: models are counted without the head that fine-tuning puts on them.
OFF_WEIGHTS = 0.02
# And the calculator off the predictor, at a recorded point; a test holds it to less.
OFF_POINTS = 0.05
# A family has no points: it is held to models of its making, at their dimensions. One alone does not show
# that it follows the dimensions; of two there is no second. And they are held to it: of their kinds of
# training few have a point.
MADE_ALIKE = {
    "encoder": ("bert-base-uncased", "bert-large-uncased", "xlm-roberta-base", "xlm-roberta-large"),
    "gpt": ("gpt2-xl", "gpt2-medium"),
    "decoder": ("llama-3.1-8b", "llama-3.1-70b", "mistral-7b-v0.3", "qwen2.5-7b"),
    "decoder-tied": ("llama-3.2-1b", "llama-3.2-3b", "qwen2.5-0.5b", "qwen2.5-1.5b", "smollm2-360m"),
    "decoder-full": ("llama-2-7b",),
    "decoder-full-tied": ("smollm2-1.7b",),
}
# Models whose layers do a little more than those of a family, or less.
AKIN = {
    "gpt": ("gpt2",),
    "decoder": ("qwen3-8b", "phi-4"),
    "decoder-tied": ("qwen3-0.6b", "qwen3-1.7b", "qwen3-4b", "gemma-2-2b", "gemma-3-1b"),
    "decoder-full": ("phi-3-mini-4k",),
}
# Where gradients and states are looked at: of all variables they depend on the rank of adapters alone.
ANYWHERE = {"batch": 1, "sequence": 16, "chunk": 16, "completion": 8, "rank": 16}
# Of anything that a configuration counts.
LARGEST_DIMENSION = 10**6
# By what share it may be off those models' own coefficients; today it is 1 % at most.
OFF_FAMILY = 0.02
# And a model that is akin to it; today it is 27 % at most.
OFF_AKIN = 0.35
# What an optimizer keeps of the weights that are trained, in as many bytes each.
STATES = {"adamw_fused": 2, "adamw_foreach": 2, "adamw_loop": 2, "sgd_momentum": 1, "sgd": 0}
# In 8 bits, of what 32 bits hold: small tensors, and embeddings, keep all of them.
STATES_8BIT = (0.5, 2)
# What a configuration calls its layers, of each stack where there are two.
LAYERS_KEYS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
# What makes an evaluation, or a generation before a step, hold more than the step.
MANY = 1000


def config_digest(config: Mapping[str, Any]) -> str:
    """Of what a configuration says, whatever the order of its entries."""
    return sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:12]


def stale_coefficients(project: Project, name: str) -> str | None:
    """Why the coefficients of a model or a family are to be derived anew; None where they are in order."""
    path = coefficients_path(project, name)
    if not path.is_file():
        return "never derived"
    try:
        return _staleness(project, name, load_coefficients(path))
    except BenchbookError:
        return "not of the form that such files have"


def _staleness(project: Project, name: str, found: Mapping[str, Any]) -> str | None:
    if found.get("schema") != SCHEMA:
        return "in another form"
    if found.get("predictor") != PREDICTOR:
        return "the predictor's rules changed"
    if name in FAMILIES or found.get("configuration") == config_digest(config_of(project, name)):
        return None
    return "the model changed"


def coefficient_problems(project: Project) -> Iterator[Problem]:
    """What is wrong with the coefficients of `project`."""
    try:
        # A handbook without models has no calculator.
        names = derivable(project) if (project.snippets / "models").is_dir() else []
        parameters = published_parameters(project)
    except BenchbookError as error:
        yield from error.problems
        return
    yield from listed_model_problems(project)

    wrong: set[str] = set()
    for name in names:
        for problem in _file_problems(project, name, parameters.get(name)):
            wrong.add(name)
            yield problem
    for family, name in ((family, name) for family, models in MADE_ALIKE.items() for name in models):
        if name in names and not {family, name} & wrong:
            yield from _family_problems(project, family, name)
    for family, name in ((family, name) for family, models in AKIN.items() for name in models):
        if name in names and not {family, name} & wrong:
            yield from _akin_problems(project, family, name)
    for path in unowned_files(project):
        fix = "remove it, or list its model in snippets/models/models.toml"
        yield Problem(project.relative(path), 1, "is of no model and of no family", fix)
    yield from _point_problems(project, wrong)


def _file_problems(project: Project, name: str, parameters: int | None) -> Iterator[Problem]:
    """What is wrong with the coefficients of a model or a family."""
    path = coefficients_path(project, name)
    shown, fix = project.relative(path), f"run `benchbook coefficients {name}`"
    try:
        found = load_coefficients(path) if path.is_file() else {}
        reason = _staleness(project, name, found) if found else "never derived"
    except BenchbookError as error:
        yield from error.problems
        return
    if reason:
        yield Problem(shown, 1, f"the coefficients of {name} are stale: {reason}", fix)
    elif parameters is not None:
        for kind, width in BYTES_PER_PARAMETER.items():
            published = width * parameters
            counted = weight_bytes(found, kind) if kind in found["weights"] else published
            if abs(counted / published - 1) > OFF_WEIGHTS:
                what = f"weights.{kind} is {counted:.0f} B, and {parameters} parameters take {published}"
                yield Problem(shown, 1, what, fix)
    if reason or name in FAMILIES:
        return
    if odd := _odd_trained(found) or _odd_units(found, _layers(project, name)):
        yield Problem(shown, 1, odd, fix)


def _layers(project: Project, name: str) -> int | None:
    """The layers of each stack of a model, where its configuration says them."""
    config = config_of(project, name)
    layers = next((config[key] for key in LAYERS_KEYS if config.get(key) is not None), None)
    return layers if type(layers) is int and 1 <= layers <= LARGEST_DIMENSION else None


def _odd_units(found: Coefficients, layers: int | None) -> str | None:
    """Where the units of sharding are not all of the weights: by them alone, several GPUs are computed."""
    read = reader(found, ANYWHERE)
    held = read(found["weights"].get("fp32", ())) / BYTES_PER_PARAMETER["fp32"]
    if layers is None or not held:
        return None
    counted = read(found["units"]["root"]) + layers * read(found["units"]["layer"])
    if abs(counted - held) <= OFF_WEIGHTS * held:
        return None
    return (
        f"units.root and {layers} times units.layer are {counted:.0f} parameters, and the weights {held:.0f}"
    )


def _odd_trained(found: Coefficients) -> str | None:
    """The first setup whose gradients, or states, are not those of the weights that it trains."""
    read = reader(found, ANYWHERE)
    for key, moments in found["training"].items():
        words = key.split()
        trained = _trained_bytes(found, read, "lora" if set(ADAPTERS) & set(words) else _width(words[0]))
        # Where they are summed over several passes, they are there from the first one on.
        for moment in moments if "accumulation" in words else moments[-1:]:
            held = read(moment.get("gradients", ()))
            if abs(held - trained) > OFF_WEIGHTS * trained:
                return f"training {key!r} holds gradients of {held:.0f} B, and {trained:.0f} B are trained"
    for key, optimizer in found["optimizers"].items():
        kind, name = key.split()
        held = read(optimizer["states"])
        trained = _trained_bytes(found, read, kind)
        if name in STATES:
            least = most = STATES[name] * trained
        elif name == "adamw_8bit":
            least, most = (
                share * _trained_bytes(found, read, "fp32" if kind == "bf16" else kind)
                for share in STATES_8BIT
            )
        else:
            continue
        if not least * (1 - OFF_WEIGHTS) <= held <= most * (1 + OFF_WEIGHTS):
            return f"optimizers {key!r} keeps states of {held:.0f} B, and {trained:.0f} B are trained"
    return None


def _width(precision: str) -> str:
    return "bf16" if precision == "bf16" else "fp32"


def _trained_bytes(found: Coefficients, read: Read, kind: str) -> float:
    """Bytes of the weights that are trained: "fp32" or "bf16", all; "lora", adapters, which have 32 bits."""
    weights = found["weights"]
    if kind == "lora":
        return read(weights.get("fp32 lora", ())) - read(weights["fp32"])
    return read(weights.get(kind, ()))


def _family_problems(project: Project, family: str, name: str) -> Iterator[Problem]:
    """Where the coefficients of a family are not those of the model `name`, which is of its making."""
    try:
        share, where, lacking = _furthest(project, family, name)
    except BenchbookError as error:
        yield from error.problems
        return
    shown = project.relative(coefficients_path(project, family))
    fix = f"run `benchbook coefficients {family}`, or of {name}"
    if lacking is not None:
        yield Problem(shown, 1, f"the coefficients of {family} have no {lacking}, which {name} has", fix)
    elif share > OFF_FAMILY:
        what = f"the coefficients of {family} are {share:.0%} off those of {name} at {where}"
        yield Problem(shown, 1, what, fix)


def _akin_problems(project: Project, family: str, name: str) -> Iterator[Problem]:
    """Where the coefficients of a model are far off those of the family that it is akin to."""
    try:
        # Of kinds of attention that the family lacks, nothing is known.
        share, where, _ = _furthest(project, family, name)
    except BenchbookError as error:
        yield from error.problems
        return
    if share > OFF_AKIN:
        what = f"the coefficients of {name} are {share:.0%} off those of {family}, its kin, at {where}"
        shown = project.relative(coefficients_path(project, name))
        yield Problem(shown, 1, what, f"run `benchbook coefficients {name}`")


def _furthest(project: Project, family: str, name: str) -> tuple[float, str, str | None]:
    """By what share, and at which setup, a family is furthest off a model; and what it lacks of it.

    Raises:
        BenchbookError: The configuration of the model does not tell its dimensions.
    """
    try:
        dimensions = _dimensions(config_of(project, name))
    except ValueError as error:
        shown = project.relative(config_path(project, name))
        raise BenchbookError(Problem(shown, 1, str(error), COPY_AGAIN)) from error
    own, found = _load(project, name), _load(project, family)
    shares, lacking = [(0.0, "")], None
    for where, setup in _setups(own):
        try:
            shares.append((_off(found, own, setup, dimensions), where))
        except KeyError as unknown:
            lacking = lacking or str(unknown)
    return *max(shares), lacking


def _load(project: Project, name: str) -> Coefficients:
    return load_coefficients(coefficients_path(project, name))


def _off(found: Coefficients, own: Coefficients, setup: Setup, dimensions: Mapping[str, float]) -> float:
    try:
        return abs(calculate(found, setup, dimensions).total / calculate(own, setup).total - 1)
    except ArithmeticError:
        # One of them is nothing, or beyond any number.
        return math.inf


def _dimensions(config: Mapping[str, Any]) -> dict[str, float]:
    """The variables of a family, by the configuration of a BERT, a GPT-2 or a Llama.

    Raises:
        ValueError: One of them is not there, or is not a count.
    """

    def dimension(*keys: str, otherwise: int | None = None) -> int:
        key = next((key for key in keys if config.get(key) is not None), None)
        value = config[key] if key is not None else otherwise
        if value is None:
            raise ValueError(f"has no `{'` or `'.join(keys)}`")
        if type(value) is not int or not 1 <= value <= LARGEST_DIMENSION:
            what = f"`{key or keys[0]}` is {value!r:.40}"
            raise ValueError(f"{what}, and not a whole number from 1 to {LARGEST_DIMENSION}")
        return value

    hidden, heads = dimension("hidden_size", "n_embd"), dimension("num_attention_heads", "n_head")
    return {
        "hidden": hidden,
        "intermediate": dimension("intermediate_size", "n_inner", otherwise=4 * hidden),
        "heads": heads,
        "groups": dimension("num_key_value_heads", otherwise=heads),
        "head": dimension("head_dim", otherwise=hidden // heads),
        "vocabulary": dimension("vocab_size"),
        "layers": dimension("num_hidden_layers", "n_layer"),
    }


def _setups(coefficients: Coefficients) -> Iterator[tuple[str, Setup]]:
    """A setup of each kind that a model has coefficients of, and where those stand."""
    for key in coefficients["training"]:
        words = key.split()
        objective = next((one for one in OBJECTIVES if one in words), "supervised")
        small = _training(words)
        if key == small.key:
            yield f"{key!r}", small
        # Activations are most of it.
        large = replace(
            small,
            batch=32,
            sequence=512,
            checkpointing="checkpointing" in words,
            accumulation=2 if "accumulation" in words else 1,
            chunked="chunked" in words,
            objective=objective,
            completion=128 if objective == "grpo" else 1,
        )
        yield f"{key!r}, of large batches", large
        # Few samples, so that most of it are the units of sharding.
        if key == small.key and not small.adapts:
            divided = replace(small, batch=1, sequence=16, gpus=8, sharding="zero3")
            yield f"{key!r}, divided among 8 GPUs", divided
    for key in coefficients.get("inference", ()):
        precision, attention = key.split()
        yield f"inference {key!r}", Setup("inference", precision, attention, batch=4, sequence=256, tokens=64)
    for key in coefficients["evaluation"]:
        words = key.split()
        yield (
            f"evaluation {key!r}",
            replace(_training(words), batch=1, chunked="chunked" in words, evaluation=MANY),
        )
    for key in coefficients.get("generation", ()):
        yield (
            f"generation {key!r}",
            replace(_training(key.split()), accumulation=MANY, objective="grpo", completion=64),
        )
    for key in coefficients["optimizers"]:
        kind, optimizer = key.split()
        words = ["bf16", "lora", "sdpa"] if kind == "lora" else [kind, "sdpa"]
        setup = replace(_training(words), batch=1, sequence=16, optimizer=optimizer)
        if setup.key in coefficients["training"]:
            yield f"optimizers {key!r}", setup


def _training(words: Sequence[str]) -> Setup:
    """The training of a kind, by the words that it is called by."""
    return Setup(
        "training",
        words[0],
        next(one for one in ("sdpa", "eager") if one in words),
        batch=4,
        sequence=256,
        method=next((one for one in ADAPTERS if one in words), "full"),
    )


def _point_problems(project: Project, wrong: Collection[str]) -> Iterator[Problem]:
    """What is wrong with the points, and which models, but those `wrong` anyway, they contradict."""
    try:
        points = load_points(project)
        known = [one for one in points.points if one.model not in wrong] if points else []
        found = errors(project, known)
    except BenchbookError as unreadable:
        yield from unreadable.problems
        return
    if points and points.predictor != PREDICTOR:
        what = "these points are stale: the predictor's rules changed"
        fix = f"run `benchbook coefficients --points {len(points.points)}`"
        yield Problem(project.relative(points_path(project)), 1, what, fix)
        return
    worst: dict[str, float] = {}
    for point, error in zip(known, found, strict=True):
        worst[point.model] = max(worst.get(point.model, 0.0), abs(error.requested))
    for name, share in worst.items():
        if share > OFF_POINTS:
            what = f"the coefficients of {name} are {share:.0%} off a prediction in points.json"
            fix = f"run `benchbook coefficients {name}`, or predict the points anew"
            yield Problem(project.relative(coefficients_path(project, name)), 1, what, fix)
