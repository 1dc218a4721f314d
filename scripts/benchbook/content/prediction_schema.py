"""Validate prediction files strictly: what they say of a GPU, nobody can measure here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError, model_validator

from benchbook.content.positions import json_line
from benchbook.content.prediction_declarations import ValueName
from benchbook.content.predictions import PREDICT_AGAIN, digest_of
from benchbook.content.problems import Problem
from benchbook.content.validation import (
    Bytes,
    Digest,
    Instant,
    MachineName,
    Name,
    Reference,
    Short,
    Strict,
    Text,
    Value,
    VariantName,
)
from benchbook.content.workloads import WORKLOADS, Quantity

ConfigValue = Any


class MomentModel(Strict):
    """A moment: its peak, and what is held at its end."""

    peak: Bytes
    held: Bytes


class PredictionModel(Strict):
    """What the predictor said of one variant."""

    made: Instant
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None
    modified: bool
    blind: bool
    predictor: Annotated[int, Field(ge=1)]
    packages: dict[Short, Short]
    parameters: dict[Name, Text | Value | list[Text | Value | None] | None]
    model: dict[Name, ConfigValue]
    kind: Literal[tuple(WORKLOADS)]  # type: ignore[valid-type]
    workload: dict[Name, Value | Short | list[Value] | list[Short] | dict[Name, Value | Short | list[Short]]]
    values: dict[ValueName, Bytes]
    stands_for: dict[ValueName, Annotated[list[Quantity], Field(min_length=1)]]
    moment: Name
    peak_allocated: Bytes
    peak_reserved: Bytes | None
    categories: dict[Name, Bytes]
    moments: dict[Name, MomentModel]
    unexplained: Annotated[int, Field(ge=-(2**62), le=2**62)]
    room: Bytes | None = None
    fits: bool | None = None
    digest: Digest
    anew: PredictionModel | None = None

    @model_validator(mode="after")
    def whole(self) -> PredictionModel:
        """The peak is that of a moment, every value stands for something, and what fits is no larger."""
        if self.moment not in self.moments:
            raise ValueError(f"its moment {self.moment!r} is not among its moments")
        if set(self.values) != set(self.stands_for):
            raise ValueError("`values` and `stands_for` name different values")
        if self.peak_reserved is not None and self.peak_reserved < self.peak_allocated:
            raise ValueError("it reserves less than it allocates")
        if (self.room is None) != (self.fits is None):
            raise ValueError("`room` and `fits` go together")
        if self.room is not None and (
            self.peak_reserved is None or self.fits != (self.peak_reserved <= self.room)
        ):
            raise ValueError("`fits` is not what `peak_reserved` and `room` say")
        if self.anew is not None and (not self.blind or self.anew.blind or self.anew.anew is not None):
            raise ValueError("only beside a blind prediction stands another, which is not")
        return self


class PredictionRecordModel(Strict):
    """A file of predictions."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    script: Reference
    machine: MachineName
    licence: Literal["CC0-1.0"]
    variants: dict[VariantName, PredictionModel]


def prediction_problems(table: Any, path: str, text: str = "") -> Iterator[Problem]:
    """What is wrong with the shape of a file of predictions, and with their digests."""
    try:
        PredictionRecordModel.model_validate(table)
    except ValidationError as error:
        for item in error.errors(include_url=False, include_input=False)[:20]:
            keys = tuple(item["loc"])
            where = ".".join(str(key) for key in keys) or "the file"
            yield Problem(path, json_line(text, keys), f"{where}: {item['msg']}", PREDICT_AGAIN)
        return
    for name, first in table["variants"].items():
        for one, keys in ((first, ()), (first.get("anew"), ("anew",))):
            if one and one["digest"] != digest_of(one, table["script"], name, table["machine"]):
                what = f"{'.'.join(('variants', name, *keys))}: its digest is not that of what it says"
                fix = "restore the file: predictions are not edited"
                yield Problem(path, json_line(text, ("variants", name, *keys, "digest")), what, fix)
