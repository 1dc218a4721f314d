"""A profiler's trace as it is published: what is kept of it, how it is packed, and how it is read again."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from benchbook.content.formats import Digest, Limit, Many, OneOf, Passes, Stored, Title, count_marks
from benchbook.content.identity import find
from benchbook.content.problems import BenchbookError, Problem

# What torch's profiler calls what host and device did. Frames of Python, which hold paths, are not kept.
OPERATORS = ("cpu_op", "cuda_runtime")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
ANNOTATION = "user_annotation"
CATEGORIES = (*OPERATORS, *DEVICE, ANNOTATION)
# Of one trace: its bytes, packed and unpacked, and its events. Of a guide on one machine: its bytes.
LARGEST, LARGEST_UNPACKED, MOST_EVENTS, LARGEST_OF_GUIDE = 300_000, 8_000_000, 20_000, 3_000_000
# Of `count_marks`, in one trace: an event has eight, and a dozen may stand in its name.
MOST_MARKS = 20 * MOST_EVENTS
# What a variant may have, and how long a name may be.
MOST_TRACES, LONGEST_NAME = 8, 200
# Microseconds in an hour, which no run takes.
LONGEST = 3_600_000_000
FEWER_STEPS = "profile fewer steps, or smaller ones"
ENDING = ".json.gz"
# So much of a digest tells the traces of one script apart.
_DIGITS = 16
# gzip without a name, a comment or a moment: any of them could tell whose machine it was.
_HEAD = b"\x1f\x8b\x08\x00\x00\x00\x00\x00"
# What leads to a file: from the root, a home, a drive or a folder; and a file by its ending. "0/0" is none.
_PATH = re.compile(
    r"(?:^|[^\w/])(?:~/|/[A-Za-z_.])|\\|[A-Za-z_][\w.-]*/[\w.-]+/|\w/[\w-]*\.[A-Za-z]\w*|\.py\b"
)


def whole_tenths(microseconds: float) -> float:
    """A time as the recorder rounds it, which can be drawn.

    Raises:
        ValueError: It is finer than a tenth of a microsecond.
    """
    if round(microseconds, 1) != microseconds:
        raise ValueError(f"{microseconds} is no whole number of tenths of a microsecond")
    return microseconds


_Tenths = Annotated[float, Limit(ge=0, le=LONGEST), Passes(whole_tenths)]
Microseconds = Annotated[int, Limit(ge=0, le=LONGEST)] | _Tenths
Place = Annotated[int, Limit(ge=0, lt=MOST_EVENTS)]


@dataclass(frozen=True)
class TraceEvent(Stored):
    """What was done, from when on and how long (microseconds); process and thread are counted from 0."""

    ph: Literal["X"]
    name: Annotated[Title, Limit(max_length=LONGEST_NAME)]
    cat: Annotated[str, OneOf(CATEGORIES)]
    ts: Microseconds
    dur: Microseconds
    pid: Place
    tid: Place

    @property
    def end(self) -> float:
        """When it was over, in microseconds from the first event on."""
        return self.ts + self.dur


@dataclass(frozen=True)
class ProfilerTrace(Stored):
    """The content of a trace's file, which any viewer of Chrome traces opens."""

    traceEvents: Annotated[Many[TraceEvent], Limit(min_length=1, max_length=MOST_EVENTS)]  # noqa: N815


@dataclass(frozen=True)
class TraceEntry(Stored):
    """What a record says of a trace: the digest and the size of its file, and the number of its events."""

    sha256: Digest
    bytes: Annotated[int, Limit(ge=1, le=LARGEST)]
    events: Annotated[int, Limit(ge=1, le=MOST_EVENTS)]


class TraceError(Exception):
    """A trace that cannot be published; carries what is wrong and the fix."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what, self.fix = what, fix


def trace_digest(packed: bytes) -> str:
    """`sha256:...` of a trace's file."""
    return "sha256:" + hashlib.sha256(packed).hexdigest()


def entry_of(packed: bytes, events: int) -> TraceEntry:
    """What a record says of a file of so many events."""
    return TraceEntry(trace_digest(packed), len(packed), events)


def file_name(name: str, digest: str) -> str:
    """What the file of the trace `name` is called; by its digest, so that one never takes another's place."""
    return f"{digest.removeprefix('sha256:')[:_DIGITS]}.{name}{ENDING}"


def unfit_name(name: str) -> str | None:
    """Why no published trace may hold an event of this name; None if one may."""
    if not name.isprintable() or not name.strip():
        return "has characters that are not seen, or none"
    if "@" in name:
        return "has an at-sign, as an address"
    if _PATH.search(name) or find(name) is not None:
        return "has a path or an identifier, which can tell whose machine it was"
    return None


def published_events(table: Any) -> list[dict[str, Any]]:
    """The events of a Chrome trace that are published, in the order of their beginning.

    Parameters:
        table: What `export_chrome_trace` of torch's profiler wrote, as JSON objects.

    Raises:
        TraceError: It is not such a trace, holds none of these events, or one whose name cannot be published.
    """
    found = table.get("traceEvents") if isinstance(table, Mapping) else table
    if not isinstance(found, list):
        raise TraceError("is not a Chrome trace", "give it what `export_chrome_trace` wrote")
    kept = [one for one in found if _is_kept(one)]
    if not kept:
        what = f"has no event of {', '.join(CATEGORIES)}"
        raise TraceError(what, "profile the steps that it is about, with ProfilerActivity.CPU at least")
    for name in dict.fromkeys(str(one["name"]) for one in kept):
        if (why := unfit_name(name)) is not None:
            raise TraceError(
                f"has the event `{ascii(name)[1:-1][:80]}`, whose name {why}", "name it otherwise"
            )
    kept.sort(key=lambda one: (one["ts"], -one["dur"]))
    start = kept[0]["ts"]
    processes: dict[str, int] = {}
    threads: dict[tuple[str, str], int] = {}
    return [
        {
            "ph": "X",
            "name": _shown(str(one["name"])),
            "cat": one["cat"],
            "ts": _tenths(one["ts"] - start),
            "dur": _tenths(one["dur"]),
            "pid": processes.setdefault(process := repr(one.get("pid")), len(processes)),
            "tid": threads.setdefault((process, repr(one.get("tid"))), len(threads)),
        }
        for one in kept
    ]


def _is_kept(event: Any) -> bool:
    return (
        isinstance(event, Mapping)
        and event.get("ph") == "X"
        and event.get("cat") in CATEGORIES
        and isinstance(event.get("name"), str)
        and _is_time(event.get("ts"))
        # Of what was under way when the profiler ended, nobody knows how long it took.
        and _is_time(event.get("dur"))
        and event["dur"] >= 0
    )


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(name: str) -> str:
    """A name without what a page would take for markup, and with an end: templates of C++ have none."""
    plain = name.strip().replace("->", "to").replace("<", "[").replace(">", "]")
    return plain if len(plain) <= LONGEST_NAME else plain[: LONGEST_NAME - 1] + "…"


def _tenths(value: float) -> float:
    rounded = round(value, 1)
    return int(rounded) if rounded == int(rounded) else rounded


def packed_trace(events: Iterable[Mapping[str, Any]]) -> bytes:
    """The file of a trace: the same events are the same bytes.

    Raises:
        TraceError: There are too many of them, they last too long or hold too much, or the file is too large.
    """
    events = list(events)
    if len(events) > MOST_EVENTS:
        raise TraceError(f"has {len(events)} events, and {MOST_EVENTS} are the most", FEWER_STEPS)
    if (lasts := max(event["ts"] + event["dur"] for event in events)) > LONGEST:
        raise TraceError(f"lasts {lasts / 1e6:.0f} s, and {LONGEST / 1e6:.0f} s are the most", FEWER_STEPS)
    text = json.dumps({"traceEvents": events}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    unpacked = text.encode() + b"\n"
    if len(unpacked) > LARGEST_UNPACKED:
        raise TraceError(f"has {len(unpacked)} B, and {LARGEST_UNPACKED} B are the most", FEWER_STEPS)
    into = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=into, compresslevel=9, mtime=0) as file:
        file.write(unpacked)
    _limit_marks(unpacked)
    packed = into.getvalue()
    if len(packed) > LARGEST:
        raise TraceError(f"has {len(packed)} B packed, and {LARGEST} B are the most", FEWER_STEPS)
    return packed


def unpacked_trace(packed: bytes) -> str:
    """The text of a trace's file.

    Raises:
        TraceError: It is too large, packed or not, holds too much, or is not packed as the recorder packs it.
    """
    again = "transfer it again, or record it again"
    if len(packed) > LARGEST:
        raise TraceError(f"has {len(packed)} B packed, and {LARGEST} B are the most", FEWER_STEPS)
    if not packed.startswith(_HEAD):
        raise TraceError("is not gzip without a name and a date", again)
    # One member alone: what follows it would be read by nobody.
    reader = zlib.decompressobj(wbits=31)
    try:
        content = reader.decompress(packed, LARGEST_UNPACKED + 1)
        if len(content) > LARGEST_UNPACKED:
            what = f"unpacks to more than {LARGEST_UNPACKED} B"
            raise TraceError(what, FEWER_STEPS)
        if not reader.eof or reader.unused_data:
            raise TraceError("ends too early, or holds more than its text", again)
        _limit_marks(content)
        return content.decode("utf-8")
    except (zlib.error, UnicodeDecodeError) as error:
        raise TraceError(f"cannot be unpacked ({error})", again) from error


def _limit_marks(unpacked: bytes) -> None:
    if count_marks(unpacked) > MOST_MARKS:
        raise TraceError(f"holds more than {MOST_MARKS} values", FEWER_STEPS)


def load_trace(path: Path, shown: str, entry: TraceEntry) -> ProfilerTrace:
    """The trace in `path`, which messages name `shown` and a record describes by `entry`.

    Raises:
        BenchbookError: It is not there, or is not what the record describes.
    """
    try:
        packed = path.read_bytes()
        if trace_digest(packed) != entry.sha256:
            raise TraceError("is not what its record describes: its digest differs", "restore the file")
        events = json.loads(unpacked_trace(packed))["traceEvents"]
        return ProfilerTrace(tuple(TraceEvent(**event) for event in events))
    except TraceError as error:
        raise BenchbookError(Problem(shown, 1, error.what, error.fix)) from error
    except (OSError, RecursionError, KeyError, TypeError, ValueError) as error:
        fix = "restore the file, or record the script again"
        raise BenchbookError(Problem(shown, 1, f"cannot be read ({error})", fix)) from error
