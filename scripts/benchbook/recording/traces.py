"""Read the traces that a script's profiler wrote, and keep of each what is published."""

from __future__ import annotations

import base64
import gzip
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from benchbook.content.records import read_packed
from benchbook.content.traces import (
    FEWER_STEPS,
    TraceEntry,
    TraceError,
    entry_of,
    packed_trace,
    published_events,
    trace_digest,
)
from benchbook.recording.endings import MetricError, assigned_on
from benchbook.recording.jobs import FAILED, Failure, Result

# A profiler tells far more than is kept; but to read a text of this size takes several times as much memory.
LARGEST_RAW = 512 * 2**20
# What a process tells of its traces: by name the file, in base64, and its number of events.
Told = dict[str, dict[str, Any]]


def read_traces(names: Sequence[str], values: Mapping[str, Any], source: str) -> Told:
    """The traces whose paths the script's globals hold; of None, and so of no profiler, there is none.

    Raises:
        MetricError: One holds no path, its file is not a trace, or it cannot be published.
    """
    found = {}
    for name in names:
        line = assigned_on(name, source)
        if name not in values:
            fix = f"assign `{name}` at the top level, or remove it from `traces`"
            raise MetricError(Failure(line, f"the trace `{name}` was never assigned", fix))
        value = values[name]
        if value is None:
            continue
        if not isinstance(value, str | PurePath):
            what = f"the trace `{name}` is a {type(value).__name__}, and no path"
            fix = "make it the path that `export_chrome_trace` wrote to, or None"
            raise MetricError(Failure(line, what, fix))
        try:
            events = published_events(_raw(Path(os.fspath(value))))
            packed = packed_trace(events)
        except TraceError as error:
            raise MetricError(Failure(line, f"the trace `{name}` {error.what}", error.fix)) from None
        found[name] = {"file": base64.b64encode(packed).decode("ascii"), "events": len(events)}
    return found


def _raw(path: Path) -> Any:
    """What the profiler wrote.

    Raises:
        TraceError: There is no such file, or it is not JSON.
    """
    fix = "give it what `export_chrome_trace` wrote"
    try:
        text = read_packed(path, LARGEST_RAW)
        if len(text) > LARGEST_RAW:
            raise TraceError(f"is larger than {LARGEST_RAW >> 20} MiB", FEWER_STEPS)
        # The profiler writes whatever bytes a name has.
        return json.loads(text.decode("utf-8", "backslashreplace"))
    except (OSError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise TraceError(f"cannot be read ({why})", fix) from error
    except (ValueError, RecursionError) as error:
        raise TraceError("is not JSON", fix) from error


def only_first(result: Result, number: int) -> Result:
    """The result of a variant's run, counted from 0, with its traces only if it is the first."""
    if number == 0 or result.outcome == FAILED:
        return result
    ranks = [{key: value for key, value in rank.items() if key != "traces"} for rank in result.ranks]
    return replace(result, ranks=ranks)


def entries_of(result: Result) -> dict[str, TraceEntry]:
    """What a record says of the traces of a run."""
    return {
        name: entry_of(base64.b64decode(told["file"]), told["events"]) for name, told in _told(result).items()
    }


def files_of(result: Result) -> dict[str, bytes]:
    """The files of the traces of a run, by their digest."""
    packed = [base64.b64decode(told["file"]) for told in _told(result).values()]
    return {trace_digest(one): one for one in packed}


def _told(result: Result) -> Told:
    told: Told = result.ranks[0].get("traces", {}) if result.ranks else {}
    return told
