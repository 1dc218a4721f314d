"""The record model: what a script's variants yielded on one machine, and how it is read and written."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import signal
import stat
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from benchbook.content.formats import (
    TITLE,
    Bytes,
    CampaignName,
    Commit,
    Count,
    Day,
    Digest,
    Instant,
    Keys,
    KindBy,
    Limit,
    MachineName,
    Many,
    Megahertz,
    Name,
    OneOf,
    Passes,
    Reference,
    Short,
    Stored,
    Text,
    Value,
    VariantName,
    Watts,
    Whole,
    at_most,
    from_table,
    json_text,
    on_calendar,
)
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.traces import ENDING, MOST_TRACES, TraceEntry
from benchbook.content.unfinished import LIST, Move, list_moves
from benchbook.content.units import METERS

# Several times what any session here notes.
MOST_SET = 10_000
# Several times what any script here sets or needs: every number on a page may repeat all of it.
MOST_REPEATED = 3000
# More than every record of this handbook together; a larger bundle is a mistake or an attack.
LARGEST_BUNDLE = 64 * 2**20
OWNER_MARK = "--"
# How the name of a machine ends whose figures are quoted from publications: none of them was measured here.
PUBLISHED = "--published"
NOT_A_RECORD = "is not a record"
# Nothing was measured for this handbook before its first day; and clocks of two machines need not agree.
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)
CLOCK_SKEW = timedelta(days=1)

Number = int | float | bool
MetricValue = Number | list[Number]
Meters = dict[str, float | int | None]
# Seconds, and a load: nothing of the kind reaches a billion.
Reading = Annotated[int, Limit(ge=0, le=10**9)] | Annotated[float, Limit(ge=0, le=1e9)]
# Every chip switches itself off long before.
Celsius = Annotated[int, Limit(ge=0, le=200)] | Annotated[float, Limit(ge=0, le=200)]
# What was read around a cell, by meter: bytes are whole.
CellReadings = Annotated[
    dict[str, Any],
    Keys(**{name: (Reading if unit.symbol == "s" else Bytes) | None for name, unit in METERS.items()}),
]
# A record has a line for each campaign of its script; so many are no history.
MOST_CAMPAIGNS = 1000
# Ten thousand are more than anyone sees.
LONGEST_SERIES = 10_000
# A page holds every point of a series, of every run, for each machine: eight times what any variant here has.
MOST_POINTS = 5_000
# Eight runs tell a time, and what is compared takes the square of them.
MOST_RUNS = 64
# What the system says where there is no room: on the disk, for this user, in one file, or on it at all.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
# What all runs of all variants together do not reach.
MOST_PLACES = 10**6
# One a minute, for the week that a campaign may take.
MOST_SESSIONS = 10_000
# No machine of one description has so many accelerators.
MOST_RANKS = 1000
# So many names of one kind (meters, regions, variants, instruction sets, other processes) are none any more.
MOST_NAMES = 1000
Samples = Annotated[list[Value], Limit(min_length=1, max_length=LONGEST_SERIES, fail_fast=True)]
Blocks = Annotated[list[float | Whole], Limit(min_length=1, max_length=LONGEST_SERIES, fail_fast=True)]
Names = Annotated[Many[Name], Limit(max_length=MOST_NAMES), Passes(at_most(MOST_SET))]
# What was installed, by its name, in its version.
Versions = Annotated[dict[Short, Short], Passes(at_most(MOST_REPEATED))]
# What was noted of the device and of who else used it; of what no driver told, None.
State = Annotated[
    dict[str, Any],
    Keys(
        driver=Short | None,
        power_limit_watts=Watts | None,
        clocks_mhz=dict[Name, Megahertz | None] | None,
        temperature_celsius=Celsius | None,
        load_average=Reading | None,
        foreign_processes=Annotated[
            list[Annotated[int, Limit(ge=0, le=2**32)]], Limit(max_length=MOST_NAMES, fail_fast=True)
        ]
        | None,
        shared=bool | None,
    ),
    Passes(at_most(MOST_SET)),
]
ParameterList = Annotated[list[Text | Value | None], Limit(max_length=LONGEST_SERIES, fail_fast=True)]
Parameters = Annotated[dict[Name, Text | Value | ParameterList | None], Passes(at_most(MOST_REPEATED))]
Environment = Annotated[dict[Name, Short], Passes(at_most(MOST_REPEATED))]


@dataclass(frozen=True)
class RankRun(Stored):
    """What one process of a run yielded: metrics by name, meters by cell, bytes held at its start.

    `blocks` holds the values of a metric that was timed in several blocks; the metric is their median.
    """

    metrics: dict[Name, Value | Samples]
    cells: dict[Name, CellReadings]
    baseline_memory: Bytes | None = None
    blocks: dict[Name, Blocks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_metrics(self.metrics, self.blocks)


@dataclass(frozen=True)
class Run(Stored):
    """One run of a variant: all its processes together.

    Parameters:
        place: Its position in the campaign's order of runs, counted from 0.
        metrics: Those of rank 0.
        cells: The meters of rank 0, by cell.
        baseline_memory: Bytes of process memory before the first cell, rank 0.
        other_ranks: The processes beside rank 0.
        blocks: Those of rank 0, as in `RankRun`: samples of one process, never taken for runs.

    """

    place: Annotated[int, Limit(ge=0, le=MOST_PLACES)]
    metrics: dict[Name, Value | Samples]
    cells: dict[Name, CellReadings]
    baseline_memory: Bytes | None = None
    other_ranks: Annotated[Many[RankRun], Limit(max_length=MOST_RANKS)] = ()
    blocks: dict[Name, Blocks] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_metrics(self.metrics, self.blocks)

    def meter(self, cell: str, name: str) -> float | int | None:
        """The largest reading of one meter around one cell over all ranks, None where no rank has one."""
        readings = [self.cells, *(rank.cells for rank in self.other_ranks)]
        values = [value for cells in readings if (value := cells.get(cell, {}).get(name)) is not None]
        return max(values, default=None)


def _check_metrics(metrics: Mapping[str, MetricValue], blocks: Mapping[str, Iterable[Number]]) -> None:
    """Metrics are numbers, and one that was timed in blocks is their median."""
    for name, value in metrics.items():
        samples = value if isinstance(value, list) else [value]
        if not all(isinstance(one, bool | int | float) for one in samples):
            raise ValueError(f"{name} is {value!r}, which is not a number")
    for name, timed in blocks.items():
        if metrics.get(name) != median(timed):
            raise ValueError(f"{name} is not the median of its blocks")


def _few_points(runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """The runs of a variant, whose series and blocks have an end together.

    Raises:
        ValueError: They hold more than `MOST_POINTS`.
    """
    points = 0
    for run in runs:
        ranks: tuple[Run | RankRun, ...] = (run, *run.other_ranks)
        for rank in ranks:
            lists = (*rank.metrics.values(), *rank.blocks.values())
            points += sum(len(value) for value in lists if isinstance(value, list))
    if points > MOST_POINTS:
        raise ValueError(f"they hold {points} points of series and blocks, and {MOST_POINTS} are the most")
    return runs


@dataclass(frozen=True)
class VariantRecord(Stored):
    """Every run of one variant in one campaign, what it ran from, and the regions that it reached.

    A measured one has runs that agree on what was measured; any other has none. `traces` are those of its
    first run, by name; each lies in a file beside the record (`Project.trace_path`).
    """

    campaign: CampaignName
    outcome: Annotated[str, OneOf(("ok", "out of memory", "timed out", "crashed"))]
    error: Text | None
    parameters: Parameters
    ranks: Count
    environment: Environment
    meters: Names
    code: Digest | None
    inputs: Annotated[dict[Short, Digest], Passes(at_most(MOST_SET))]
    output: dict[Name, Text]
    runs: Annotated[Many[Run], Limit(max_length=MOST_RUNS), Passes(_few_points)]
    regions: Names = ()
    traces: Annotated[dict[Name, TraceEntry], Limit(max_length=MOST_TRACES)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.traces and not self.runs:
            raise ValueError("a trace of a run that is not here")
        if (self.outcome == "ok") != bool(self.runs):
            raise ValueError(f"outcome {self.outcome!r} with {len(self.runs)} runs")
        if self.outcome == "ok" and self.error is not None:
            raise ValueError("outcome 'ok' with an error")
        if len({frozenset(run.metrics) for run in self.runs}) > 1:
            raise ValueError("its runs hold different metrics")
        for name in self.runs[0].metrics if self.runs else ():
            if len({isinstance(run.metrics[name], list) for run in self.runs}) > 1:
                raise ValueError(f"{name} is a series in some of its runs and a number in others")
        if len({run.place for run in self.runs}) != len(self.runs):
            raise ValueError("two of its runs have one place")
        if any(len(run.other_ranks) + 1 != self.ranks for run in self.runs):
            raise ValueError(f"not each of its runs holds {self.ranks} ranks")


@dataclass(frozen=True)
class Campaign(Stored):
    """What was recorded together: when, from which commit, by whom, with which packages and device state.

    `predicates` holds what decided each claim about the script when it began (`Claim.predicate`), by the id
    of the claim; None where that was not noted. `resumed` holds when further sessions began that took runs of
    it, after it was stopped.
    """

    started: Instant
    finished: Instant
    commit: Commit | None
    modified: bool
    recorded_by: Short
    packages: Versions
    state: State
    predicates: Annotated[dict[Short, Digest], Passes(at_most(MOST_SET))] | None = None
    resumed: Annotated[Many[Instant], Limit(max_length=MOST_SESSIONS)] = ()


@dataclass(frozen=True)
class PublicationSource(Stored):
    """A publication: its address, its title, and the year, month or day of its date."""

    # Nothing that ends an attribute or begins another scheme: the address becomes a link.
    url: Annotated[
        str,
        Limit(
            pattern=r"^https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~:/?#@!$&()*+,;=%-]*)?$", max_length=400
        ),
    ]
    title: Annotated[str, Limit(pattern=TITLE, max_length=200)]
    published: Annotated[
        str, Limit(pattern=r"^[0-9]{4}(-(0[1-9]|1[0-2])(-[0-9][0-9])?)?$"), Passes(on_calendar)
    ]


@dataclass(frozen=True)
class Publication(Stored):
    """What stands in the place of a campaign where figures are quoted: their source, and what it says.

    Parameters:
        source: Where they were published.
        measured: The day they were measured, None where the source does not say.
        recorded_by: Who measured.
        packages: The versions that the source names.
        state: The state of the device, as far as the source shows it.
        taken_over: When the figures came into the repository; None where nobody noted it. A prediction that
            is older is blind: the source was not opened before, and the history shows the order.
    """

    source: PublicationSource
    measured: Day | None
    recorded_by: Short
    packages: Versions
    state: State
    taken_over: Instant | None = None


@dataclass(frozen=True)
class HistoryLine(Stored):
    """What one campaign wrote, in short; `medians` are by variant and metric."""

    date: Day
    campaign: CampaignName
    variants: Annotated[list[VariantName], Limit(max_length=MOST_NAMES, fail_fast=True)]
    medians: dict[VariantName, dict[Name, Value]]


def measured_days(now: datetime) -> tuple[str, str]:
    """The first day and the last on which anything can have been measured, as a history writes them."""
    return f"{FIRST_DAY:%Y-%m-%d}", f"{now + CLOCK_SKEW:%Y-%m-%d}"


@dataclass(frozen=True)
class Record(Stored):
    """The content of `snippets/records/<machine>/<guide>/<script>.json`."""

    schema: Literal[1]
    script: Reference
    machine: MachineName
    licence: Literal["CC0-1.0"]
    campaigns: Annotated[
        dict[CampaignName, Annotated[Publication | Campaign, KindBy("source")]],
        Limit(max_length=MOST_CAMPAIGNS),
    ]
    variants: Annotated[dict[VariantName, VariantRecord], Limit(min_length=1)]
    history: Annotated[Many[HistoryLine], Limit(max_length=MOST_CAMPAIGNS)]

    def __post_init__(self) -> None:
        for name, variant in self.variants.items():
            if variant.campaign not in self.campaigns:
                raise ValueError(f"the campaign of variant {name!r} is not described")

    @classmethod
    def of(
        cls,
        script: str,
        machine: str,
        campaigns: Mapping[str, Campaign | Publication] | None = None,
        variants: Mapping[str, VariantRecord] | None = None,
        history: Iterable[HistoryLine] = (),
    ) -> Record:
        """A record as it is written today, of nothing yet if no more is given."""
        return cls(1, script, machine, "CC0-1.0", dict(campaigns or {}), dict(variants or {}), tuple(history))


def is_published(machine: str) -> bool:
    """Whether the figures of the machine of this name are quoted from publications."""
    return machine.endswith(PUBLISHED)


def shown_order(machine: str) -> tuple[bool, bool, str]:
    """Where the name of a machine stands among others: the maintainers', those of others, what is quoted."""
    return is_published(machine), OWNER_MARK in machine, machine


def campaigns_of(
    variants: Mapping[str, VariantRecord], campaigns: Mapping[str, Campaign | Publication]
) -> dict[str, Campaign | Publication]:
    """Those of `campaigns` that one of `variants` was measured in."""
    used = {variant.campaign for variant in variants.values()}
    return {name: campaign for name, campaign in campaigns.items() if name in used}


def described_campaigns(
    variants: Mapping[str, VariantRecord], codes: Collection[str], declared: Collection[str]
) -> set[str]:
    """The campaigns of what was measured and still describes a script: of two, times cannot be compared.

    Parameters:
        variants: Those of a record, by name.
        codes: The digests of the script's code (`Script.codes`).
        declared: The names of the variants that the script has.
    """
    return {
        variant.campaign
        for name, variant in variants.items()
        # What is quoted names no code, and is shown all the same.
        if variant.outcome == "ok" and (variant.code is None or variant.code in codes) and name in declared
    }


def record_from(table: Mapping[str, Any]) -> Record:
    """The record that a JSON object holds.

    Raises:
        TypeError, ValueError, AttributeError: It has not the shape of one.

    """
    return from_table(Record, table)


def load_record(path: Path, shown_path: str | None = None) -> Record | None:
    """The record in `path`, None if there is no such file.

    Raises:
        BenchbookError: The file is not a record.

    """
    shown = shown_path or path.name
    fix = "record the script again, or restore the file"
    try:
        return record_from(json.loads(json_text(path)))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise BenchbookError(Problem(shown, error.lineno, f"is not JSON ({error.msg})", fix)) from error
    except (OSError, RecursionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BenchbookError(Problem(shown, 1, f"{NOT_A_RECORD} ({error})", fix)) from error


def record_table(record: Record) -> dict[str, Any]:
    """`record` as JSON objects, keys in a fixed order; optional ones only where they hold something."""
    table = asdict(record)
    for campaign in table["campaigns"].values():
        for name in ("predicates", "resumed", "taken_over"):
            if campaign.get(name, ...) in (None, ()):
                del campaign[name]
    for variant in table["variants"].values():
        for name in ("regions", "traces"):
            if not variant[name]:
                del variant[name]
        for run in variant["runs"]:
            for rank in (run, *run["other_ranks"]):
                if not rank["blocks"]:
                    del rank["blocks"]
    return table | {"campaigns": dict(sorted(table["campaigns"].items())), "history": list(table["history"])}


def trace_places(project: Project, record: Record) -> dict[Path, str]:
    """Where the traces of a record lie, each with its digest."""
    return {
        project.trace_path(record.machine, record.script, name, entry.sha256): entry.sha256
        for variant in record.variants.values()
        for name, entry in variant.traces.items()
    }


def superseded_traces(project: Project, record: Record) -> list[Path]:
    """The traces that lie beside a record, and that it does not name: those of what it takes the place of."""
    folder = project.record_path(record.machine, record.script).with_suffix("")
    places = trace_places(project, record)
    return [place for place in sorted(folder.glob(f"*{ENDING}")) if place not in places]


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
        OSError, EOFError, zlib.error: It cannot be read, is not a plain file, or its gzip is damaged.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        # A pipe may never say anything.
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        return (gzip.GzipFile(fileobj=file) if packed else file).read(at_most + 1)


class UnwritableError(BenchbookError):
    """A file cannot be written: there is no room, or one may not; whatever comes next would be lost too."""


@contextmanager
def writing(shown: str) -> Iterator[None]:
    """Say of a file that cannot be written, and which messages name `shown`, that this is so.

    Raises:
        UnwritableError: The system refused.
        BenchbookError: It would hold half a character; others can still be written.
    """
    try:
        yield
    except UnicodeEncodeError as error:
        what = f"cannot be written (it would hold {error.object[error.start]!r}, which is half a character)"
        raise BenchbookError(Problem(shown, 1, what, "let the script yield whole characters")) from error
    except OSError as error:
        what = f"cannot be written ({error.strerror or error})"
        fix = "make room there, or make it writable; then the same command goes on"
        raise UnwritableError(Problem(shown, 1, what, fix)) from error


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: a reader, or a crash, never meets half of it."""
    write_together({path: text.encode()})


def write_together(contents: Mapping[Path, bytes | None], root: Path | None = None) -> None:
    """Write files whole, and all of them or none; one whose content is None goes.

    All lie beside their places before the first is put there; where one cannot be, those before it go back.
    A signal to end waits until then. Of a command that is killed meanwhile, the next one finishes it.

    Parameters:
        contents: What each place is to hold.
        root: Of the checkout whose records they are, where a list of them lies until all are in place. No
            other command may change them meanwhile (`changing_records`).

    Raises:
        OSError: One cannot be written; then everything is as it was.
    """
    with (
        _signals_wait(),
        ExitStack() as folders,
        ExitStack() as beside,
        ExitStack() as placed,
    ):
        written: list[Move] = []
        for path, content in contents.items():
            _make_folder(path.parent, folders)
            # Where it is alone, nothing can fail once it is in its place.
            before = path.read_bytes() if len(contents) > 1 and path.exists() else None
            kept = None if before is None else _write_beside(path, before, beside)
            new = None if content is None else _write_beside(path, content, beside)
            written.append((new, path, kept))
        if root is not None:
            _make_folder((root / LIST).parent, folders)
            # It goes before what lies beside, which it names.
            listed = list_moves(root, written, lambda path, text: _write_beside(path, text, beside))
            beside.callback(listed.unlink, missing_ok=True)
        for new, path, old in written:
            if new is None:
                path.unlink(missing_ok=True)
                placed.callback(os.replace, old, path) if old else None
                continue
            os.replace(new, path)
            placed.callback(partial(os.replace, old, path) if old else path.unlink)
        placed.pop_all()
        folders.pop_all()


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let signals that end this process wait until the block is over; only the main thread can."""
    came: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
        before = {number: signal.getsignal(number) for number in numbers if number is not None}
    # What is ignored stays so; a handler that is not Python's could not be put back.
    before = {number: known for number, known in before.items() if known not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)
        if came:
            signal.raise_signal(came[0])


def _make_folder(folder: Path, made: ExitStack) -> None:
    """Make a folder, with those above it, which go again with `made`."""
    for one in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        one.mkdir(exist_ok=True)
        made.callback(_remove_empty, one)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _write_beside(path: Path, content: bytes, beside: ExitStack) -> Path:
    """Write what is to be put at `path` into a file beside it, which goes with `beside`."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    beside.callback(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(name, 0o644)
    return Path(name)


def write_record(path: Path, record: Record) -> None:
    """Put `record` in place, atomically."""
    write_text(path, dump_record(record))
