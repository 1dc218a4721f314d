"""The `calculator` fence: the calculator's form, what its script fills in, and how far off it is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import unescape
from statistics import median
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from benchbook.calculator.listing import (
    KINDS,
    ListedModel,
    all_models,
    coefficients_path,
    kind_text,
    listed_models,
    load_coefficients,
)
from benchbook.calculator.memory_model import OBJECTIVES, Setup, calculate
from benchbook.calculator.points import PREDICT_POINTS, Error, Points, errors, load_points
from benchbook.content.project import Project
from benchbook.content.references import UnresolvedError
from benchbook.languages.formatting import NO_BREAK_SPACE
from benchbook.languages.language import Language
from benchbook.machines.gpus import offered_gpus
from benchbook.query.library import Cache, Library
from benchbook.rendering.context import Build
from benchbook.rendering.gpu_field import STRINGS as GPU_STRINGS
from benchbook.rendering.gpu_field import render_gpu_field
from benchbook.rendering.templates import template

_ERRORS = Cache[None, list[Error]]("errors of the calculator")
_FITTING = Cache[None, list[dict[str, Any]]]("what models take at their smallest")


def render_errors(library: Library, language: Language) -> str:
    """The HTML of the table, in the page's language; raises as `_compared_points`."""
    points = _compared_points(library.project)
    return template("errors.html").render(
        text=lambda name: language.text(f"calc_{name}"),
        rows=_rows(library, points, language),
        versions=(f"torch {points.torch}", f"transformers {points.transformers}"),
    )


def _compared_points(project: Project) -> Points:
    """The recorded points.

    Raises:
        UnresolvedError: Nothing was compared yet.
        BenchbookError: Their file is not of the form of points.
    """
    points = load_points(project)
    if points is None:
        raise UnresolvedError("the calculator was not compared with the predictor yet", PREDICT_POINTS)
    return points


def _rows(
    library: Library, points: Points, language: Language
) -> list[tuple[str, int, list[tuple[str, str]]]]:
    """Of each kind of model, and of all: its name, how many points, and their errors."""
    kinds = {one.name: one.kind for one in all_models(library.project)}
    shares = library.once(_ERRORS, None, lambda: errors(library.project, points.points))
    found = list(zip(points.points, shares, strict=True))
    rows = []
    for kind in KINDS:
        of_kind = [error for point, error in found if kinds.get(point.model) == kind]
        if of_kind:
            name = language.text(kind_text(kind))
            rows.append((name, len(of_kind), _summary(of_kind, language)))
    everything = [error for _, error in found]
    return [*rows, (language.text("calc_all"), len(everything), _summary(everything, language))]


def _summary(found: Sequence[Error], language: Language) -> list[tuple[str, str]]:
    """Of what is requested and of what is allocated, the median of the errors' sizes and the largest error.

    Each is a number and a text.
    """
    cells = []
    for shares in zip(*found, strict=True):
        # What is less than a hundredth of a percent is nothing.
        typical, largest = round(median(map(abs, shares)), 4), max(shares, key=abs)
        cells.append((f"{typical:.5f}", language.percent(typical)))
        cells.append((f"{largest:.5f}", language.signed_percent(largest)))
    return cells


FORM = "form"
PARTS = (FORM, "changes", "errors")
DEFAULT = "bert-large-uncased"

_OPTIMIZERS = (
    *("adamw_fused", "adamw_foreach", "adamw_loop", "adamw_8bit", "paged_adamw_8bit"),
    *("adafactor", "sgd_momentum", "sgd"),
)
# What is called the same in every language, by those who use it.
_PRECISIONS = {
    "fp32": "fp32",
    # The two differ in what they can express, not in bytes.
    "bf16_autocast": "bf16/fp16 autocast",
    "bf16": "bf16",
}
_ATTENTIONS = {"sdpa": "SDPA", "eager": "eager"}
_SHARDINGS = {"ddp": "DDP", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "ZeRO-3 / FSDP"}
_METHODS = {"full": "", "lora": "LoRA", "qlora": "QLoRA"}
_TRIED: Mapping[str, str | int] = {"checkpointing": 1, "batch": 1, "sequence": 2048}
_GRPO: Mapping[str, str | int] = {"objective": "grpo", "batch": 8, "sequence": 1024, "completion": 768}
_TRIES: tuple[tuple[str, str, int, Mapping[str, str | int]], ...] = (
    ("llama-3.1-8b", "qlora", 24, {}),
    ("llama-3.1-8b", "lora", 24, {}),
    ("qwen3-4b", "lora", 16, {}),
    ("qwen3-4b", "lora", 16, _GRPO),
)
# What a reader is told of a GPU before they choose a model: these, by the method that changes training least.
_FITTING_MODELS = ("llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "phi-4", "llama-3.1-70b")
_FITTING_SETUP = Setup("training", "bf16", "sdpa", batch=1, sequence=2048, checkpointing=True)
_FITTING_SAID: Mapping[str, str | int] = {"batch": _FITTING_SETUP.batch, "sequence": _FITTING_SETUP.sequence}
_FAMILIES = {"encoder": "BERT", "decoder": "Llama", "gpt": "GPT-2"}

# Where the guides treat what the page proposes; `benchbook check` looks each of them up.
GUIDE_LINKS = {
    "sdpa": "model_memory_anatomy.md#attention-and-dropout",
    **dict.fromkeys(
        ("accumulate", "accumulate_pairs", "accumulate_completions"),
        "comparing_setups.md#gradient-accumulation",
    ),
    "chunked": "perf_train_gpu_one.md#large-vocabulary",
    "checkpointing": "model_memory_anatomy.md#first-remedy",
    "autocast": "comparing_setups.md#mixed-precision",
    "adamw_8bit": "model_memory_anatomy.md#optimizer-states",
    "adafactor": "model_memory_anatomy.md#optimizer-states",
    "bf16": "model_memory_anatomy.md#bytes-per-parameter",
    "lora": "perf_train_gpu_one.md#lora",
    "qlora": "perf_train_gpu_one.md#lora",
    "batch": "model_memory_anatomy.md#kv-cache",
    "sequence": "model_memory_anatomy.md#activations",
}
# Texts that the script needs.
_STRINGS = (
    *("peak", "needed", "needed_of", "holds", "holds_none", "largest", "largest_none", "failed", "nothing"),
    *("at_forward", "at_backward", "at_step", "at_evaluation", "at_prefill", "at_decode"),
    *("weights", "gradients", "optimizer_states", "activations", "copies", "cache", "temporary"),
    *(
        "workspaces",
        "allowance",
        "sum",
        "sequence",
        "prompt",
        "not_counted",
        "too_long",
        "window",
        "together",
        "apply",
    ),
    *("config_no_json", "config_kind", "config_missing", "config_read"),
    *("config_no_object", "config_wrong", "config_uneven", "config_image", "no_vision", "no_experts"),
    *("unused", "dpo_less"),
    *("change_sdpa", "change_accumulate", "change_batch", "change_checkpointing", "change_autocast"),
    *("change_adamw_8bit", "change_adafactor", "change_bf16", "change_zero3", "change_gpus"),
    *("change_chunked", "change_lora", "change_qlora", "change_evaluation", "paged", "batch", "pairs"),
    *("completions", "completion_too_long", "prompt_and_completion"),
    *("largest_pairs", "largest_completions", "largest_none_pairs", "largest_none_completions"),
    *("change_accumulate_pairs", "change_accumulate_completions", "replicas"),
    *("change_sequence", "fitting_none"),
)
# What a reader can write over: the dimensions of a decoder with grouped-query attention.
_EXAMPLE = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
}


def check_part(project: Project, text: str) -> None:
    """Hold the body of a `calculator` fence to what its part is made from.

    Raises:
        UnresolvedError: It is none of `PARTS`, there is no model to choose, or nothing was compared yet.
        BenchbookError: The list of models, or the points, are not of their form.
    """
    part = _part(text)
    if part == FORM:
        _offered_models(project)
    elif part == "errors":
        _compared_points(project)


def _part(text: str) -> str:
    part = text.strip()
    if part not in PARTS:
        raise UnresolvedError(f"the calculator has no part `{part}`", f"write one of: {', '.join(PARTS)}")
    return part


def _offered_models(project: Project) -> tuple[ListedModel, ...]:
    """The models to choose from; raises UnresolvedError if there are none."""
    models = listed_models(project)
    if not models:
        raise UnresolvedError("no model has coefficients", "derive them with `benchbook coefficients`")
    return models


def render_calculator(build: Build, text: str) -> str:
    """The HTML of a `calculator` fence whose body is one of `PARTS`; raises as `check_part`."""
    part, language = _part(text), build.here.language
    if part == "changes":
        return template("changes.html").render(text=_words(language))
    if part == "errors":
        return render_errors(build.library, language)
    models = _offered_models(build.library.project)
    build.here.asks_gpu = True
    gpus = offered_gpus()
    return template("form.html").render(
        text=_words(language),
        root=build.here.root,
        kinds=_by_kind(models, language),
        default=DEFAULT,
        example=json.dumps(_EXAMPLE, indent=1).replace("\n ", "\n  "),
        tries=_tries(models, language),
        methods=[(name, language.text(f"calc_method_{name}")) for name in _METHODS],
        objectives=[(name, language.text(f"calc_objective_{name}")) for name in OBJECTIVES],
        precisions=_PRECISIONS.items(),
        attentions=_ATTENTIONS.items(),
        optimizers=[(name, language.text(f"calc_optimizer_{name}")) for name in _OPTIMIZERS],
        shardings=_SHARDINGS.items(),
        gpu_field=render_gpu_field("calc-gpu", language, "calc-rule"),
        copy_link=language.text("copy_link"),
        rule=Markup(language.words(language.text("fits_rule"))),
        fitting=_said_setup(_FITTING_SAID, language),
        settings=_settings(build, gpus, models),
        scripts=("memory_model.js", "dimensions.js", "gpu_field.js", "gpus.js", "keeping.js", "picture.js"),
    )


def _sizes(gpus: list[dict[str, Any]]) -> list[dict[str, int]]:
    """Sizes that GPUs are sold in, and what the one of each that has the least can hold, in bytes."""
    least: dict[int, int] = {}
    for one in gpus:
        if size := one.get("memory_gb"):
            held = one.get("bytes", size * 2**30)
            least[size] = min(held, least.get(size, held))
    return [{"gb": size, "bytes": held} for size, held in sorted(least.items())]


def _fitting(library: Library, models: tuple[ListedModel, ...]) -> list[dict[str, Any]]:
    """What each of some models takes with each method, in bytes, by each precision that a GPU may ask for."""

    def peaks(model: ListedModel) -> dict[str, dict[str, int]]:
        coefficients = load_coefficients(coefficients_path(library.project, model.name))
        found: dict[str, dict[str, int]] = {}
        for method in _METHODS:
            for precision in _PRECISIONS:
                setup = replace(_FITTING_SETUP, method=method, precision=precision)
                if setup.key in coefficients["training"]:
                    found.setdefault(method, {})[precision] = round(calculate(coefficients, setup).total)
        return found

    known = {one.name: one for one in models}
    asked = [known[name] for name in _FITTING_MODELS if name in known]
    return library.once(
        _FITTING,
        None,
        lambda: [{"model": one.name, "title": one.title, "peaks": peaks(one)} for one in asked],
    )


def _tries(models: tuple[ListedModel, ...], language: Language) -> list[tuple[str, Markup]]:
    """Setups to begin with: what the address says of each, and what it is called, in the form's words."""
    titles = {one.name: one.title for one in models}
    found = []
    for model, method, gpu, more in _TRIES:
        if model not in titles:
            continue
        asked = {**_TRIED, **more}
        told = [titles[model], _METHODS[method]]
        told += [str(asked["objective"]).upper()] if "objective" in asked else []
        words = [*map(_latin, told), _said_setup(asked, language), _latin(f"{gpu}{NO_BREAK_SPACE}GB")]
        address = urlencode({"model": model, "method": method, **asked, "gpu": gpu})
        found.append((address, Markup(" · ").join(words)))
    return found


def _said_setup(asked: Mapping[str, str | int], language: Language) -> Markup:
    """Batch and sequence of a setup with checkpointing, in the form's words."""
    said, colon = _words(language), language.text("colon")
    sizes = [
        Markup("{}{}{}").format(said(name), colon, _latin(str(asked[name]))) for name in ("batch", "sequence")
    ]
    return Markup(" · ").join([*sizes, said("checkpointing")])


def _latin(text: str) -> Markup:
    return Markup('<bdi dir="ltr">{}</bdi>').format(text)


def _words(language: Language) -> Any:
    """What gives a template words of the language, with their Latin runs isolated."""
    return lambda name: Markup(language.words(language.text(f"calc_{name}")))


def _by_kind(models: tuple[ListedModel, ...], language: Language) -> list[tuple[str, list[ListedModel]]]:
    kinds = {kind: [one for one in models if one.kind == kind] for kind in KINDS}
    return [(language.text(kind_text(kind)), found) for kind, found in kinds.items() if found]


def _settings(build: Build, gpus: list[dict[str, Any]], models: tuple[ListedModel, ...]) -> str:
    """What the script must know, as JSON that no tag can end."""
    language = build.here.language
    names = [*(f"calc_{name}" for name in _STRINGS), "comma", "colon", "fits", "fits_not", *GPU_STRINGS]
    settings = {
        "language": language.code,
        "folder": f"{build.here.root}assets/coefficients/",
        "gpus": f"{build.here.root}assets/gpus.json",
        "sizes": _sizes(gpus),
        "families": _FAMILIES,
        "fitting": {
            "setup": {**_FITTING_SAID, "checkpointing": 1},
            "models": _fitting(build.library, models),
        },
        "links": {name: build.here.address(link) for name, link in GUIDE_LINKS.items()},
        "strings": {name: _plain(language, language.text(name)) for name in names},
    }
    return json.dumps(settings, ensure_ascii=False).replace("<", "\\u003c")


def _plain(language: Language, text: str) -> str:
    """`text` for a script, without markup: characters isolate its Latin runs."""
    return unescape(language.words(text).replace('<bdi dir="ltr">', "\u2066").replace("</bdi>", "\u2069"))
