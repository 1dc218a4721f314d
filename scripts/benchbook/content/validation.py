"""Validate records and machine descriptions strictly: what comes from outside is data, never trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationError,
    model_validator,
)

from benchbook.content.identity import find
from benchbook.content.positions import json_line, repeated_json_key
from benchbook.content.problems import Problem
from benchbook.content.records import MACHINE_NAME, PUBLISHED, is_published
from benchbook.content.units import METERS

# No description and no record has this many levels; what is below them is refused for its shape.
DEEPEST = 20
RECORD_AGAIN = "record it again with `benchbook record`"
QUOTE_AGAIN = "correct it by what the publication says; CONTRIBUTING.md shows what a quotation holds"

MachineName = Annotated[
    str,
    StringConstraints(pattern=f"^{MACHINE_NAME}$", max_length=80),
]
Reference = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*\.py$", max_length=120)
]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=80)]
VariantName = Annotated[str, StringConstraints(pattern=r"^(?:default|[A-Za-z0-9_.+=,-]+)$", max_length=200)]
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Day = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$")]
Instant = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
Short = Annotated[str, StringConstraints(max_length=400)]
Text = Annotated[str, StringConstraints(max_length=200_000)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
# Any that a float can hold: medians and drawings are made of floats.
Whole = Annotated[int, Field(ge=-(10**308), le=10**308)]
Value = bool | Whole | Finite
Plain = Short | Value | None
Series = Annotated[list[Value], Field(min_length=1)]
Bytes = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    """No unknown key, no conversion: a record says exactly what it says."""

    model_config = ConfigDict(extra="forbid", strict=True)


class CampaignModel(Strict):
    """One session of recording."""

    started: Instant
    finished: Instant
    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] | None
    modified: bool
    recorded_by: Short
    packages: dict[Short, Short]
    state: dict[Name, Plain | list[Plain] | dict[Name, Plain]]


class SourceModel(Strict):
    """A publication that a reader can go to."""

    # Nothing that ends an attribute or begins another scheme: the address becomes a link.
    url: Annotated[
        str,
        StringConstraints(
            pattern=r"^https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~:/?#@!$&()*+,;=%-]*)?$", max_length=400
        ),
    ]
    title: Annotated[str, StringConstraints(pattern=r"^[^<>\x00-\x1f]+$", max_length=200)]
    published: Annotated[str, StringConstraints(pattern=r"^\d{4}(-(0[1-9]|1[0-2])(-\d\d)?)?$")]


class PublicationModel(Strict):
    """What stands in the place of a campaign where figures are quoted."""

    source: SourceModel
    measured: Day | None
    recorded_by: Short
    packages: dict[Short, Short]
    state: dict[Name, Plain | list[Plain] | dict[Name, Plain]]


def _campaign_kind(table: Any) -> str:
    return "published" if isinstance(table, dict) and "source" in table else "measured"


AnyCampaign = Annotated[
    Annotated[CampaignModel, Tag("measured")] | Annotated[PublicationModel, Tag("published")],
    Discriminator(_campaign_kind),
]


class RankModel(Strict):
    """What one process of a run yielded."""

    metrics: dict[Name, Value | Series]
    cells: dict[Name, dict[Literal[tuple(METERS)], Annotated[Value, Field(ge=0)] | None]]  # type: ignore[valid-type]
    baseline_memory: Bytes | None = None
    blocks: dict[Name, Annotated[list[Finite | Whole], Field(min_length=1)]] = {}

    @model_validator(mode="after")
    def medians_of_blocks(self) -> RankModel:
        """A metric that was timed in blocks is their median."""
        for name, values in self.blocks.items():
            if self.metrics.get(name) != median(values):
                raise ValueError(f"{name} is not the median of its blocks")
        return self


class RunModel(RankModel):
    """One run of a variant."""

    place: Annotated[int, Field(ge=0)]
    other_ranks: list[RankModel] = []


class VariantModel(Strict):
    """Every run of one variant."""

    campaign: Short
    outcome: Literal["ok", "out of memory", "timed out", "crashed"]
    error: Text | None
    parameters: dict[Name, Text | Value | list[Text | Value | None] | None]
    ranks: Annotated[int, Field(ge=1)]
    environment: dict[Name, Short]
    meters: list[Name]
    code: Digest | None
    inputs: dict[Short, Short]
    output: dict[Name, Text]
    runs: list[RunModel]
    regions: list[Name] = []

    @model_validator(mode="after")
    def whole(self) -> VariantModel:
        """A measured variant has runs that agree on what was measured; any other has none."""
        if (self.outcome == "ok") != bool(self.runs):
            raise ValueError(f"outcome {self.outcome!r} with {len(self.runs)} runs")
        if len({frozenset(run.metrics) for run in self.runs}) > 1:
            raise ValueError("its runs hold different metrics")
        for name in self.runs[0].metrics if self.runs else ():
            if len({isinstance(run.metrics[name], list) for run in self.runs}) > 1:
                raise ValueError(f"{name} is a series in some of its runs and a number in others")
        if len({run.place for run in self.runs}) != len(self.runs):
            raise ValueError("two of its runs have one place")
        if any(len(run.other_ranks) + 1 != self.ranks for run in self.runs):
            raise ValueError(f"not each of its runs holds {self.ranks} ranks")
        return self


class HistoryModel(Strict):
    """What one campaign wrote, in short."""

    date: Day
    campaign: Short
    variants: list[VariantName]
    medians: dict[VariantName, dict[Name, Value]]


class RecordModel(Strict):
    """A record file."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    script: Reference
    machine: MachineName
    licence: Literal["CC0-1.0"]
    campaigns: dict[Short, AnyCampaign]
    variants: dict[VariantName, VariantModel]
    history: list[HistoryModel]

    @model_validator(mode="after")
    def described(self) -> RecordModel:
        """Each variant's campaign is there."""
        for name, variant in self.variants.items():
            if variant.campaign not in self.campaigns:
                raise ValueError(f"the campaign of variant {name!r} is not described")
        return self


class AcceleratorModel(Strict):
    """The accelerator of a machine; null where unknown."""

    name: Short
    vendor: Short | None
    memory_bytes: Bytes | None
    count: Annotated[int, Field(ge=1)]
    driver: Short | None
    runtime: Short | None
    power_limit_watts: Value | None
    clocks_mhz: dict[Name, Value | None] | None
    mig: Short | bool | None
    # Descriptions that were written before partitions were known lack it.
    partition: Short | None = None
    ecc: bool | None
    compute_capability: Short | None
    multiprocessors: Annotated[int, Field(ge=1)] | None


class CpuModel(Strict):
    """The processor of a machine; null where unknown."""

    model: Short | None
    vendor: Short | None
    cores: Annotated[int, Field(ge=1)] | None
    threads_per_core: Annotated[int, Field(ge=1)] | None
    flags: list[Short]


class MachineModel(Strict):
    """A machine.json."""

    schema_: Annotated[Literal[1], Field(alias="schema")]
    name: MachineName
    kind: Literal["cpu", "cuda", "rocm", "xpu", "mps"]
    title: Short
    short: Short
    owner: Short | None
    accelerator: AcceleratorModel | None
    cpu: CpuModel
    memory_bytes: Bytes | None
    virtualisation: Short | None
    system: dict[Name, Short | None]
    published: bool


def parse_json(text: str, path: str) -> tuple[Any, list[Problem]]:
    """The value that `text` holds; what JSON has not, or has twice, is a problem, as any other damage."""
    repeated = False

    def refuse(constant: str) -> None:
        raise ValueError(f"it holds {constant}, which is not a number")

    def table_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        table = dict(pairs)
        repeated |= len(table) < len(pairs)
        return table

    try:
        value = json.loads(text, parse_constant=refuse, object_pairs_hook=table_of)
        if repeated and (found := repeated_json_key(text)) is not None:
            key, line = found
            return None, [Problem(path, line, f"has the key `{key}` twice in one table", RECORD_AGAIN)]
        return value, []
    except json.JSONDecodeError as error:
        return None, [Problem(path, error.lineno, f"is not JSON ({error.msg})", RECORD_AGAIN)]
    except (ValueError, RecursionError) as error:
        return None, [Problem(path, 1, f"is not JSON ({error})", RECORD_AGAIN)]


def record_problems(table: Any, path: str, text: str = "") -> list[Problem]:
    """What is wrong with the shape of a record; `text` is its file's, to find lines in."""
    return [*_shape(RecordModel, table, path, text), *_identity(table, path, text)]


def machine_problems(table: Any, path: str, text: str = "") -> list[Problem]:
    """What is wrong with the shape of a machine description."""
    problems = [*_shape(MachineModel, table, path, text), *_identity(table, path, text)]
    if not problems and table["published"] != is_published(table["name"]):
        what = f"`published` is {json.dumps(table['published'])} of a machine called {table['name']}"
        fix = f"end the name of a machine in `{PUBLISHED}` where its figures are quoted, and only there"
        problems.append(Problem(path, json_line(text, ("published",)), what, fix))
    return problems


def read_json(path: Path, shown: str) -> tuple[Any, str, list[Problem]]:
    """The value in a file, its text, and what prevented reading it."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return None, "", [Problem(shown, 1, f"cannot be read ({error})", RECORD_AGAIN)]
    value, problems = parse_json(text, shown)
    return value, text, problems


def _shape(model: type[BaseModel], table: Any, path: str, text: str) -> Iterator[Problem]:
    try:
        model.model_validate(table)
    except ValidationError as error:
        for item in error.errors(include_url=False, include_input=False)[:20]:
            keys, fix = tuple(item["loc"]), RECORD_AGAIN
            if keys[:1] == ("campaigns",) and len(keys) > 2:
                # Pydantic names the kind of campaign, where the file has no such level.
                fix = QUOTE_AGAIN if keys[2] == "published" else RECORD_AGAIN
                keys = (*keys[:2], *keys[3:])
            where = ".".join(str(key) for key in keys) or "the record"
            yield Problem(path, json_line(text, keys), f"{where}: {item['msg']}", fix)


def _identity(value: Any, path: str, text: str, keys: tuple[str | int, ...] = ()) -> Iterator[Problem]:
    if isinstance(value, str) and (found := find(value)) is not None:
        what = f"{'.'.join(map(str, keys))} holds {found!r}, which can identify someone's machine"
        yield Problem(
            path, json_line(text, keys), what, "remove it from what the script prints, and record again"
        )
    elif len(keys) > DEEPEST:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _identity(item, path, text, (*keys, str(key)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _identity(item, path, text, (*keys, index))
