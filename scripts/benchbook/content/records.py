"""The record model: what a script's variants yielded on one machine, and how it is read and written."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from benchbook.content.metadata import ParameterValue
from benchbook.content.problems import BenchbookError, Problem

SCHEMA = BUNDLE_SCHEMA = 1
# More than every record of this handbook together; a larger bundle is a mistake or an attack.
LARGEST_BUNDLE = 64 * 2**20
LICENCE = "CC0-1.0"
# Model, memory, partition or count, and behind two hyphens who measured.
MACHINE_NAME = r"[a-z0-9]+(?:[.-][a-z0-9]+)*(?:--[a-z0-9]+(?:-[a-z0-9]+)*)?"
OWNER_MARK = "--"
# How the name of a machine ends whose figures are quoted from publications: none of them was measured here.
PUBLISHED = "--published"
NOT_A_RECORD = "is not a record"

Number = int | float | bool
MetricValue = Number | list[Number]
Meters = dict[str, float | int | None]


@dataclass(frozen=True)
class RankRun:
    """What one process of a run yielded: metrics by name, meters by cell, bytes held at its start.

    `blocks` holds the values of a metric that was timed in several blocks; the metric is their median.
    """

    metrics: dict[str, MetricValue]
    cells: dict[str, Meters]
    baseline_memory: int | None = None
    blocks: dict[str, list[Number]] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run of a variant: all its processes together.

    Parameters:
        place: Its position in the campaign's order of runs, counted from 0.
        metrics: Those of rank 0.
        cells: The meters of rank 0, by cell.
        baseline_memory: Bytes of process memory before the first cell, rank 0.
        other_ranks: The processes beside rank 0.
        blocks: Those of rank 0, as in `RankRun`: samples of one process, never taken for runs.

    """

    place: int
    metrics: dict[str, MetricValue]
    cells: dict[str, Meters]
    baseline_memory: int | None = None
    other_ranks: tuple[RankRun, ...] = ()
    blocks: dict[str, list[Number]] = field(default_factory=dict)

    def meter(self, cell: str, name: str) -> float | int | None:
        """The largest reading of one meter around one cell over all ranks, None where no rank has one."""
        readings = [self.cells, *(rank.cells for rank in self.other_ranks)]
        values = [value for cells in readings if (value := cells.get(cell, {}).get(name)) is not None]
        return max(values, default=None)


@dataclass(frozen=True)
class VariantRecord:
    """Every run of one variant in one campaign, what it ran from, and the regions that it reached."""

    campaign: str
    outcome: str
    error: str | None
    parameters: dict[str, ParameterValue]
    ranks: int
    environment: dict[str, str]
    meters: tuple[str, ...]
    code: str | None
    inputs: dict[str, str]
    output: dict[str, str]
    runs: tuple[Run, ...]
    regions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Campaign:
    """One session of recording: when, from which commit, by whom, with which packages and device state."""

    started: str
    finished: str
    commit: str | None
    modified: bool
    recorded_by: str
    packages: dict[str, str]
    state: dict[str, Any]


@dataclass(frozen=True)
class PublicationSource:
    """A publication: its address, its title, and the year, month or day of its date."""

    url: str
    title: str
    published: str


@dataclass(frozen=True)
class Publication:
    """What stands in the place of a campaign where figures are quoted: their source, and what it says.

    Parameters:
        source: Where they were published.
        measured: The day they were measured, None where the source does not say.
        recorded_by: Who measured.
        packages: The versions that the source names.
        state: The state of the device, as far as the source shows it.
    """

    source: PublicationSource
    measured: str | None
    recorded_by: str
    packages: dict[str, str]
    state: dict[str, Any]


@dataclass(frozen=True)
class Record:
    """The content of `snippets/records/<machine>/<guide>/<script>.json`."""

    script: str
    machine: str
    campaigns: dict[str, Campaign | Publication] = field(default_factory=dict)
    variants: dict[str, VariantRecord] = field(default_factory=dict)
    history: tuple[dict[str, Any], ...] = ()
    licence: str = LICENCE
    schema: int = SCHEMA


def is_published(machine: str) -> bool:
    """Whether the figures of the machine of this name are quoted from publications."""
    return machine.endswith(PUBLISHED)


def campaigns_of(
    variants: Mapping[str, VariantRecord], campaigns: Mapping[str, Campaign | Publication]
) -> dict[str, Campaign | Publication]:
    """Those of `campaigns` that one of `variants` was measured in."""
    used = {variant.campaign for variant in variants.values()}
    return {name: campaign for name, campaign in campaigns.items() if name in used}


T = TypeVar("T")


def _take(kind: type[T], table: Mapping[str, Any], **made: Any) -> T:
    known = {item.name for item in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(table) - known):
        raise KeyError(f"unknown key {unknown[0]!r}")
    return kind(**{**table, **made})


def _is_value(value: object) -> bool:
    items = value if isinstance(value, list) else [value]
    return all(isinstance(item, (bool, int, float)) for item in items)


def record_from(table: Mapping[str, Any]) -> Record:
    """The record that a JSON object holds.

    Raises:
        KeyError, TypeError, ValueError: It has not the shape of one.

    """
    if table.get("schema") != SCHEMA:
        raise ValueError(f"schema {table.get('schema')!r} is not {SCHEMA}")
    variants = {}
    for name, variant in table["variants"].items():
        for number, run in enumerate(variant["runs"]):
            for metric, value in run["metrics"].items():
                if not _is_value(value):
                    raise ValueError(f"{metric} of run {number} of {name} is {value!r}, no number")
        runs = tuple(
            _take(Run, run, other_ranks=tuple(_take(RankRun, rank) for rank in run.get("other_ranks", ())))
            for run in variant["runs"]
        )
        variants[name] = _take(
            VariantRecord,
            variant,
            meters=tuple(variant["meters"]),
            runs=runs,
            regions=tuple(variant.get("regions", ())),
        )
    campaigns = {name: _campaign_from(campaign) for name, campaign in table["campaigns"].items()}
    return _take(Record, table, campaigns=campaigns, variants=variants, history=tuple(table["history"]))


def _campaign_from(table: Mapping[str, Any]) -> Campaign | Publication:
    if "source" in table:
        return _take(Publication, table, source=_take(PublicationSource, table["source"]))
    return _take(Campaign, table)


def load_record(path: Path, shown_path: str | None = None) -> Record | None:
    """The record in `path`, None if there is no such file.

    Raises:
        BenchbookError: The file is no record.

    """
    shown = shown_path or path.name
    fix = "record the script again, or restore the file"
    try:
        return record_from(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise BenchbookError(Problem(shown, error.lineno, f"is not JSON ({error.msg})", fix)) from error
    except (OSError, RecursionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BenchbookError(Problem(shown, 1, f"{NOT_A_RECORD} ({error})", fix)) from error


def record_table(record: Record) -> dict[str, Any]:
    """`record` as JSON objects, keys in a fixed order, without blocks and regions where there are none."""
    table = asdict(record)
    for variant in table["variants"].values():
        if not variant["regions"]:
            del variant["regions"]
        for run in variant["runs"]:
            for rank in (run, *run["other_ranks"]):
                if not rank["blocks"]:
                    del rank["blocks"]
    return {
        "schema": table["schema"],
        "script": table["script"],
        "machine": table["machine"],
        "licence": table["licence"],
        "campaigns": dict(sorted(table["campaigns"].items())),
        "variants": table["variants"],
        "history": list(table["history"]),
    }


def dump_record(record: Record) -> str:
    """The text of a record: a run per line, so that a re-recording diffs readably."""
    return dump_json(record_table(record), flat={"runs", "history"})


def dump_json(value: Any, flat: frozenset[str] | set[str] = frozenset(), indent: int = 0) -> str:
    """`value` as JSON, indented by two, but with each item of a list under a key in `flat` on one line.

    Raises:
        ValueError: It holds a number that JSON has not (NaN, infinity).

    """
    pad, inner = " " * indent, " " * (indent + 2)
    if isinstance(value, dict) and value:
        lines = []
        for key, item in value.items():
            if key in flat and isinstance(item, (list, tuple)) and item:
                rows = ",\n".join(inner + "  " + _compact(row) for row in item)
                text = f"[\n{rows}\n{inner}]"
            elif isinstance(item, (list, tuple)):
                text = _compact(item)
            else:
                text = dump_json(item, flat, indent + 2)
            lines.append(f"{inner}{json.dumps(key, ensure_ascii=False)}: {text}")
        end = "\n" if indent == 0 else ""
        return "{\n" + ",\n".join(lines) + f"\n{pad}}}{end}"
    return _compact(value)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def bundle_digest(machine: Any, records: Any) -> str:
    """`sha256:...` of what a bundle holds, however its JSON is laid out: what was sent is what arrived.

    Raises:
        ValueError: It holds what JSON has not.
    """
    content = {"machine": machine, "records": records}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def read_packed(path: Path, at_most: int) -> bytes:
    """The bytes of a file, unpacked if it is gzipped; where it unpacks to more than `at_most`, one more.

    Raises:
        OSError, EOFError, zlib.error: It cannot be read, or its gzip is damaged.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        return (gzip.GzipFile(fileobj=file) if packed else file).read(at_most + 1)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: a reader, or a crash, never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_record(path: Path, record: Record) -> None:
    """Put `record` in place, atomically."""
    write_text(path, dump_record(record))
