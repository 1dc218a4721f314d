"""Traces as a profiler writes them, and as they are published, for the tests of what reads them."""

from __future__ import annotations

import json
import textwrap
from typing import Any

from benchbook.content.traces import packed_trace, published_events

MAIN, AUTOGRAD, STREAM = ("4711", "4711"), ("4711", "4723"), ("0", "7")


def event(
    name: str, ts: float, dur: float, cat: str = "cpu_op", at: tuple[str, str] = MAIN
) -> dict[str, Any]:
    """A complete event as torch's profiler writes it, with what must not be published in its arguments."""
    args = {"External id": 1, "Call stack": "/home/ada/train.py(3): <module>"}
    return {
        "ph": "X",
        "name": name,
        "cat": cat,
        "ts": ts,
        "dur": dur,
        "pid": at[0],
        "tid": at[1],
        "args": args,
    }


# Two steps: each waits for data for 30 µs, then computes for 10 on the processor.
STEPS = [
    event("load", 1000.04, 30, "user_annotation"),
    event("train", 1030.04, 14, "user_annotation"),
    event("aten::linear", 1031, 10),
    event("aten::addmm", 1032, 8),
    event("load", 1050, 30, "user_annotation"),
    event("train", 1080, 14, "user_annotation"),
    event("aten::linear", 1081, 10),
]


def chrome_trace(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What `export_chrome_trace` writes of these events, with all that is beside them."""
    beside = [
        {
            "ph": "M",
            "name": "process_name",
            "pid": 4711,
            "ts": 1.0,
            "args": {"name": "python3 /home/ada/x.py"},
        },
        event("train.py(3): <module>", 1000, 100, "python_function"),
        event("gpu_user_annotation", 1000, 100, "gpu_user_annotation"),
        {"ph": "f", "name": "ac2g", "cat": "ac2g", "ts": 1001.0, "pid": 0, "tid": 7, "id": 1},
        event("aten::unfinished", 1000, -1),
    ]
    return {
        "schemaVersion": 1,
        "trace_id": "AB",
        "traceName": "/tmp/ada.json",
        "traceEvents": [*beside, *events],
    }


def published(events: list[dict[str, Any]] | None = None) -> bytes:
    """The file of a trace of these events, by default of two steps."""
    return packed_trace(published_events({"traceEvents": STEPS if events is None else events}))


def traced(table: str = "", value: str = '"steps.json"', trace: Any = None) -> tuple[str, str]:
    """The cells of a script that leaves a trace, in two variants that are each run twice; and its metadata.

    Parameters:
        table: Further lines of metadata.
        value: What it makes of the name that it declares.
        trace: What it writes; by default two steps.
    """
    text = json.dumps(chrome_trace(STEPS) if trace is None else trace)
    body = f"""
    # %% parameters
    n = 1

    # %% work
    import pathlib
    doubled = 2 * n
    pathlib.Path("steps.json").write_text({text!r}.replace("1031", str(1030 + n)))
    steps = {value}

    # %% checks
    assert doubled
    """
    head = f"""
    needs = ["cpu"]
    repeats = 2
    traces = ["steps"]
    {table}
    [tool.benchbook.metrics]
    doubled = {{ unit = "count" }}
    [tool.benchbook.matrix]
    n = [1, 2]
    """
    return textwrap.dedent(body), textwrap.dedent(head)
