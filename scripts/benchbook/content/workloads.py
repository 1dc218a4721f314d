"""What the predictor can be asked: the fields of a training or an inference, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from benchbook.content.validation import Name, Strict

# The version of the predictor's rules, which every prediction names. Whoever changes what the predictor says
# raises it; a test predicts committed predictions anew, and fails where that was forgotten. A digest of its
# sources would call every prediction stale after any tidying, also those that must stay as they are.
PREDICTOR = 1

Precision = Literal["fp32", "bf16_autocast", "fp16_autocast", "bf16", "bf16_weights_autocast"]
Optimizer = Literal[
    "adamw_fused", "adamw_foreach", "adamw_loop", "sgd", "sgd_momentum", "adafactor", "adamw_8bit"
]
Attention = Literal["eager", "sdpa", "sdpa_math", "sdpa_efficient", "sdpa_flash", "eager_torch_1.10"]
Count = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, lt=1)]

_PART = r"(?:peak_allocated|peak_reserved|categories\.[a-z_0-9]+|moments\.[a-z_0-9]+\.(?:peak|held))"
_MEASURED = r"#[A-Za-z_][A-Za-z0-9_]*(?:\.[a-z_]+)?"
Quantity = Annotated[str, StringConstraints(pattern=f"^(?:{_PART}|{_MEASURED})$")]
ANY_QUANTITY = re.compile(f"(?:{_PART}|{_MEASURED})")
# What a CPU, which has no caching allocator, cannot be asked.
RESERVED = "peak_reserved"


class LoraFields(Strict):
    """Low-rank adapters beside frozen weights."""

    rank: Count
    targets: list[Name] = Field(default_factory=list)


class TrainingModel(Strict):
    """A training; what is left away is as the predictor takes it by default."""

    batch: Count
    sequence: Count
    precision: Precision | None = None
    optimizer: Optimizer | None = None
    attention: Attention | None = None
    checkpointing: bool | None = None
    accumulation: Count | None = None
    clipping: bool | None = None
    keep_gradients: bool | None = None
    lora: LoraFields | None = None
    dropout: Share | None = None
    lengths: list[Count] | None = None


class InferenceModel(Strict):
    """A prefill and the decoding of new tokens."""

    batch: Count
    prompt: Count
    new_tokens: Count | None = None
    precision: Precision | None = None
    attention: Attention | None = None
    cache: Literal["dynamic", "static"] | None = None


WORKLOADS: dict[str, type[Strict]] = {"training": TrainingModel, "inference": InferenceModel}


def is_measured(quantity: str) -> bool:
    """Whether a part of a value is no prediction, but was measured beside it: the context of a GPU."""
    return quantity.startswith("#")


def predicted_quantity(quantity: str, answer: Mapping[str, Any]) -> int | None:
    """The bytes that an answer of the predictor has for `quantity`; None if it has none.

    Parameters:
        quantity: "peak_allocated", "categories.weights", "moments.backward.held", ...
        answer: `peak_allocated`, `peak_reserved`, `categories` and `moments` of a prediction.
    """
    found: Any = answer
    for key in quantity.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, int) else None


def parts_of(declared: object) -> tuple[str, ...]:
    """The quantities whose sum a value is: one, or a list of them.

    Raises:
        ValueError: It names something else.
    """
    parts = declared if isinstance(declared, list) else [declared]
    for part in parts or [declared]:
        if not isinstance(part, str) or ANY_QUANTITY.fullmatch(part) is None:
            raise ValueError(f"{part!r} is no quantity of a prediction")
    return tuple(parts)


def is_parameter(value: object) -> bool:
    """Whether a declared value names a parameter of the script: `$batch_size`."""
    return isinstance(value, str) and re.fullmatch(r"\$[A-Za-z_][A-Za-z0-9_]*", value) is not None
