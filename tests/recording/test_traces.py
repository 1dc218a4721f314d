"""A profiler's trace is recorded with its variant: published_events to what anyone may see, beside the record."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchbook.content import records
from benchbook.content.project import Project
from benchbook.content.records import Record, load_record
from benchbook.content.traces import (
    LARGEST,
    MOST_EVENTS,
    TraceEntry,
    TraceError,
    packed_trace,
    published_events,
)
from benchbook.machines.description import describe
from benchbook.recording import command as recording
from running import add_script
from tracing import STEPS, STREAM, chrome_trace, event, traced

HERE = describe(None)
TORCH = """
# %% work
import torch
from torch.profiler import ProfilerActivity, profile, record_function

with profile(activities=[ProfilerActivity.CPU]) as profiler:
    with record_function("train"):
        torch.ones(8, 8) @ torch.ones(8, 8)
profiler.export_chrome_trace("trace.json.gz")
steps = "trace.json.gz"

# %% checks
assert steps
"""


def record(project: Project, **options: Any) -> int:
    return recording.record_command(project, [], **options)


def written(project: Project) -> Record:
    found = load_record(project.record_path(HERE.name, "guide/small.py"))
    assert found is not None
    return found


def entries(project: Project) -> dict[str, TraceEntry]:
    return {name: variant.traces["steps"] for name, variant in written(project).variants.items()}


def trace_files(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(project.records.rglob("*.json.gz"))}


def content(project: Project, variant: str) -> Any:
    entry = entries(project)[variant]
    path = project.trace_path(HERE.name, "guide/small.py", "steps", entry.sha256)
    return json.loads(gzip.decompress(path.read_bytes()))


# What is kept


def test_a_trace_lies_beside_its_record_which_says_what_it_is(project: Project) -> None:
    add_script(project.root, *traced())
    assert record(project) == 0
    found = trace_files(project)
    assert sorted(found) == sorted(
        f"{entry.sha256[7:23]}.steps.json.gz" for entry in entries(project).values()
    )
    assert {len(packed) for packed in found.values()} == {entry.bytes for entry in entries(project).values()}
    assert content(project, "n=1") != content(project, "n=2")
    events = content(project, "n=1")["traceEvents"]
    assert len(events) == entries(project)["n=1"].events == len(STEPS)
    assert events[0] == {
        "ph": "X", "name": "load", "cat": "user_annotation", "ts": 0, "dur": 30, "pid": 0, "tid": 0
    }  # fmt: skip
    assert {event["name"] for event in events} == {"load", "train", "aten::linear", "aten::addmm"}


def test_nothing_tells_whose_machine_it_was(project: Project) -> None:
    add_script(project.root, *traced())
    record(project)
    for packed in trace_files(project).values():
        assert packed[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
        assert not any(word in gzip.decompress(packed) for word in (b"ada", b"4711", b"args", b"/"))


def test_times_begin_at_0_in_tenths_and_processes_are_counted() -> None:
    kernel = event("void at::k<float>(char*)", 1005.26, 2, "kernel", STREAM)
    first, second = published_events({"traceEvents": [kernel, event("aten::add", 1000.01, 7)]})
    assert (first["ts"], first["pid"], first["tid"]) == (0, 0, 0)
    assert (second["ts"], second["pid"], second["tid"]) == (5.2, 1, 1)
    assert second["name"] == "void at::k[float](char*)"


def test_what_a_name_of_a_kernel_has_beyond_the_end_is_cut() -> None:
    copy = event("Memcpy HtoD (Pageable -> Device)", 0, 1, "gpu_memcpy", STREAM)
    (long, shown) = published_events({"traceEvents": [event("k" * 500, 0, 2, "kernel", STREAM), copy]})
    assert len(long["name"]) == 200
    assert shown["name"] == "Memcpy HtoD (Pageable to Device)"


def test_the_same_events_are_the_same_bytes_in_whatever_order_they_came() -> None:
    assert packed_trace(published_events({"traceEvents": STEPS[::-1]})) == packed_trace(
        published_events({"traceEvents": STEPS})
    )


def test_a_variant_whose_name_holds_none_has_no_trace(project: Project) -> None:
    add_script(project.root, *traced(value='"steps.json" if n == 2 else None'))
    assert record(project) == 0
    assert written(project).variants["n=1"].traces == {}
    assert len(trace_files(project)) == 1
    assert '"traces": {}' not in project.record_path(HERE.name, "guide/small.py").read_text("utf-8")


def test_a_path_may_be_a_path_and_its_file_packed(project: Project) -> None:
    body, head = traced(value='pathlib.Path("steps.json.gz").absolute()')
    packing = 'import gzip\npathlib.Path("steps.json.gz").write_bytes(gzip.compress(pathlib.Path("steps.json").read_bytes()))\nsteps ='
    add_script(project.root, body.replace("steps =", packing), head)
    assert record(project) == 0
    assert len(trace_files(project)) == 2


def test_only_the_first_run_s_trace_is_kept(project: Project) -> None:
    body, head = traced()
    count = f'runs = pathlib.Path({str(project.root / "runs")!r})\nruns.open("a").write(".")\nsteps ='
    body = body.replace("steps =", count).replace("str(1030 + n)", "str(1031 + len(runs.read_text()))")
    body = body.replace(
        "doubled = 2 * n",
        f"doubled = 2 * n\nruns = pathlib.Path({str(project.root / 'runs')!r})\nruns.touch()",
    )
    add_script(project.root, body, head)
    assert record(project) == 0
    starts = [content(project, name)["traceEvents"][2]["ts"] for name in ("n=1", "n=2")]
    assert sorted(starts) == [31, 32]


def test_the_smallest_run_reads_the_trace_and_writes_nothing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, *traced())
    assert record(project, smallest=True) == 0
    assert not project.records.exists()
    add_script(project.root, *traced(value='"elsewhere.json"'))
    assert record(project, smallest=True) == 1
    assert "the trace `steps` cannot be read" in capsys.readouterr().err


@pytest.mark.torch
@pytest.mark.usefixtures("with_packages")
def test_what_torch_s_profiler_writes_can_be_published(project: Project) -> None:
    add_script(project.root, TORCH, 'needs = ["cpu"]\nrepeats = 1\ntraces = ["steps"]')
    assert record(project) == 0
    events = content(project, "default")["traceEvents"]
    assert {"train", "aten::mm"} <= {event["name"] for event in events}


# What is refused


MANY = [event(f"aten::op{number}", number, 1) for number in range(MOST_EVENTS + 1)]
# No two alike, so that nothing packs them.
LARGE = [event(hashlib.sha512(b"%d" % number).hexdigest(), number * math.pi, 1) for number in range(5000)]
REFUSED: dict[str, tuple[Any, str]] = {
    "not a trace": ({"events": []}, "is not a Chrome trace"),
    "nothing to keep": (chrome_trace([]), "has no event of cpu_op"),
    "a path": (chrome_trace([event("read /home/ada/data", 0, 1)]), "whose name has a path"),
    "a relative path": (chrome_trace([event("data/train/part", 0, 1)]), "whose name has a path"),
    "a file": (chrome_trace([event("load data.py", 0, 1)]), "whose name has a path"),
    "a drive": (chrome_trace([event("C:\\data", 0, 1)]), "whose name has a path"),
    "an at-sign": (chrome_trace([event("mail ada@example", 0, 1)]), "whose name has an at-sign"),
    "a turned direction": (chrome_trace([event("a\u202eb", 0, 1)]), "whose name has characters that are not seen"),
    "too many events": (chrome_trace(MANY), f"has {MOST_EVENTS + 1} events"),
    "too large": (chrome_trace(LARGE), f"B packed, and {LARGEST} B are the most"),
    "too many values": (chrome_trace([event(f"f[{',' * 12}]", 0, 1)] * MOST_EVENTS), "holds more than 400000 values"),
    "too long": (chrome_trace([event("a", 0, 1), event("b", 4e9, 1)]), "lasts 4000 s"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_published_is_refused(case: str) -> None:
    table, why = REFUSED[case]
    with pytest.raises(TraceError) as caught:
        packed_trace(published_events(table))
    assert why in caught.value.what
    assert caught.value.fix


@pytest.mark.parametrize("name", ["aten::add_", "Torch-Compiled Region: 0/0", "forward/backward", "nccl:all_reduce", "enumerate(DataLoader)#_Iter.__next__", "Optimizer.step#AdamW.step"])  # fmt: skip
def test_names_that_torch_and_authors_give_are_no_paths(name: str) -> None:
    assert published_events({"traceEvents": [event(name, 0, 1)]})[0]["name"] == name


@pytest.mark.parametrize(
    ("value", "why"),
    [("3", "is a int, and no path"), ('"gone.json"', "cannot be read"), ('"small"', "cannot be read")],
)
def test_a_name_without_a_trace_is_told_with_its_line(
    project: Project, value: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script = add_script(project.root, *traced(value=value))
    assert record(project) == 1
    line = next(n for n, one in enumerate(script.source.splitlines(), 1) if one.startswith("steps ="))
    said = capsys.readouterr().err
    assert f"snippets/guide/small.py:{line}: the trace `steps` {why}" in said
    assert not project.records.exists()


def test_a_trace_that_was_never_assigned_is_told(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    body, head = traced()
    add_script(project.root, body.replace("steps =", "other ="), head)
    assert record(project) == 1
    assert "the trace `steps` was never assigned" in capsys.readouterr().err


# Whole or not at all


def test_recording_again_removes_the_trace_before(project: Project) -> None:
    add_script(project.root, *traced())
    record(project)
    before = trace_files(project)
    body, head = traced()
    add_script(project.root, body.replace("1030 + n", "1032 + n"), head)
    assert record(project) == 0
    after = trace_files(project)
    assert len(after) == 2
    assert not before.keys() & after.keys()
    add_script(project.root, body.replace("steps =", "other ="), head.replace('traces = ["steps"]', ""))
    assert record(project) == 0
    assert trace_files(project) == {}


def test_a_trace_that_is_asked_for_later_is_recorded(project: Project) -> None:
    body, head = traced()
    add_script(project.root, body, head.replace('traces = ["steps"]', ""))
    record(project)
    add_script(project.root, body, head)
    assert record(project) == 0
    assert len(trace_files(project)) == 2


def test_a_killed_recording_goes_on_with_the_trace_of_the_run_that_was_done(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, *traced())
    done = []

    def interrupted(self: Any, *given: Any) -> None:
        done.append(given)
        # Each variant has run once, and neither is whole.
        if len(done) == 2:
            raise KeyboardInterrupt
        kept(self, *given)

    kept = recording.Session._say
    monkeypatch.setattr(recording.Session, "_say", interrupted)
    assert record(project) == recording.INTERRUPTED
    assert trace_files(project) == {}
    monkeypatch.setattr(recording.Session, "_say", kept)
    assert record(project) == 0
    assert len(trace_files(project)) == 2
    assert {entry.events for entry in entries(project).values()} == {len(STEPS)}


def test_where_the_record_cannot_be_written_no_trace_is(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, *traced())
    replaced = records.os.replace

    def refused(source: Any, target: Path) -> None:
        if target.name == "small.json":
            raise OSError(28, "No space left on device")
        replaced(source, target)

    monkeypatch.setattr(records.os, "replace", refused)
    assert record(project) == 1
    assert not project.records.exists() or list(project.records.rglob("*.gz")) == []
    monkeypatch.undo()
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    assert record(project) == 0
    assert len(trace_files(project)) == 2


def test_what_a_killed_recording_left_goes_with_the_next(project: Project) -> None:
    add_script(project.root, *traced())
    record(project)
    whole = trace_files(project)
    folder = project.record_path(HERE.name, "guide/small.py").with_suffix("")
    (folder / f"{'0' * 16}.steps.json.gz").write_bytes(b"")
    assert record(project) == 0
    assert trace_files(project) == whole


def test_a_bundle_carries_the_traces_of_what_was_recorded_before_too(
    project: Project, tmp_path: Path
) -> None:
    add_script(project.root, *traced())
    record(project, variant="n=1")
    assert record(project, bundle=tmp_path / "mine.json.gz") == 0
    bundle = json.loads(gzip.decompress((tmp_path / "mine.json.gz").read_bytes()))
    named = {
        entry["sha256"]
        for one in bundle["records"][0]["variants"].values()
        for entry in one["traces"].values()
    }
    assert set(bundle["traces"]) == named
    assert len(named) == 2


def test_a_record_without_traces_is_written_as_before(project: Project) -> None:
    body, head = traced()
    add_script(project.root, body, head.replace('traces = ["steps"]', ""))
    record(project)
    text = project.record_path(HERE.name, "guide/small.py").read_text("utf-8")
    assert "traces" not in text
    found = written(project)
    assert replace(found, variants=dict(found.variants)) == found
