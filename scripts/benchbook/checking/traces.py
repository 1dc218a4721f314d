"""Hold the traces of records to what may be published: what a record says of them, and each file itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from benchbook.content.positions import json_line
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.records import record_from, trace_places
from benchbook.content.script import Script
from benchbook.content.traces import (
    LARGEST_OF_GUIDE,
    ProfilerTrace,
    TraceError,
    trace_digest,
    unfit_name,
    unpacked_trace,
)
from benchbook.content.unfinished import BESIDE
from benchbook.content.validation import MOST_TOLD, RECORD_AGAIN, form_problems, parse_json

RESTORE = "restore it, or record its variant again"
# A device's clock, and the recorder's around the cells, need not agree to the second.
_SLACK_SECONDS = 1.0


def named_traces(table: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The variant, the name and the entry of each trace that a record of the right shape names."""
    for variant, result in table["variants"].items():
        for name, entry in result.get("traces", {}).items():
            yield variant, name, entry


def entry_problems(
    table: Mapping[str, Any], script: Script | None, path: str, text: str = ""
) -> Iterator[Problem]:
    """Traces that no run of the script as it stands has left.

    Parameters:
        table: The record, already of the right shape.
        script: The script as it stands, None where there is none.
        path: The file, for messages.
        text: Its content, to find lines in.
    """
    for variant, name, _ in named_traces(table):
        line = json_line(text, ("variants", variant, "traces", name))
        result = table["variants"][variant]
        if result["code"] is None:
            what = f"variant {variant}: is quoted, and has the trace {name} of a run here"
            yield Problem(path, line, what, "leave `traces` away")
        elif script is not None and result["code"] in script.codes and name not in script.metadata.traces:
            what = (
                f"variant {variant}: has the trace {name}, and {script.reference} declares none of that name"
            )
            yield Problem(path, line, what, RECORD_AGAIN)


@dataclass(frozen=True)
class TraceFile:
    """The file of a trace, which many variants may name: what it says by itself is found once.

    Parameters:
        packed: Its bytes.
    """

    packed: bytes

    @cached_property
    def digest(self) -> str:
        """Its digest, as records name it."""
        return trace_digest(self.packed)

    @property
    def events(self) -> int:
        """How many it has; 0 where they are not of the right shape."""
        return self._read[0]

    @property
    def end(self) -> float:
        """When the last of them is over, in seconds."""
        return self._read[1]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with it, whatever names it; the path is not known here."""
        return self._read[2]

    @cached_property
    def _read(self) -> tuple[int, float, tuple[Problem, ...]]:
        try:
            text = unpacked_trace(self.packed)
        except TraceError as error:
            return 0, 0.0, (Problem("", 1, error.what, error.fix),)
        content, problems = parse_json(text, "")
        if problems := problems or list(form_problems(ProfilerTrace, content, "", text)):
            return 0, 0.0, tuple(problems)
        events = content["traceEvents"]
        end = max(event["ts"] + event["dur"] for event in events) / 1e6
        return len(events), end, tuple(islice(_event_problems(events), MOST_TOLD))


def _event_problems(events: list[Mapping[str, Any]]) -> Iterator[Problem]:
    """What is wrong with events of the right shape."""
    for name in dict.fromkeys(event["name"] for event in events):
        if (why := unfit_name(name)) is not None:
            yield Problem("", 1, f"the name {ascii(name)[:80]} {why}", "name it otherwise, and record again")
    if min(event["ts"] for event in events) != 0:
        yield Problem("", 1, "its first event does not begin at 0", RECORD_AGAIN)


def trace_problems(
    file: TraceFile, table: Mapping[str, Any], variant: str, name: str, path: str
) -> Iterator[Problem]:
    """What is wrong with the file of a trace, and where it is not what a record says of it.

    Parameters:
        file: The file.
        table: The record that names it, of the right shape.
        variant: Whose trace it is.
        name: What it is called.
        path: What messages name.
    """
    result = table["variants"][variant]
    for problem in _differences(file, result["traces"][name], _seconds_of(result)):
        what = f"the trace {name} of variant {variant} of {table['script']}: {problem.what}"
        yield Problem(path, problem.line, what, problem.fix)


def _differences(file: TraceFile, entry: Mapping[str, Any], seconds: float | None) -> Iterator[Problem]:
    """Where a file is not what its entry and the seconds of its run say; what is wrong with it by itself."""
    if file.digest != entry["sha256"]:
        yield Problem("", 1, "is not what its record describes: its digest differs", RESTORE)
        return
    if len(file.packed) != entry["bytes"]:
        what = f"has {len(file.packed)} B, and its record says {entry['bytes']}"
        yield Problem("", 1, what, RECORD_AGAIN)
        return
    yield from file.problems
    if file.events and file.events != entry["events"]:
        what = f"it has {file.events} events, and its record says {entry['events']}"
        yield Problem("", 1, what, RECORD_AGAIN)
    if seconds is not None and file.end > seconds + _SLACK_SECONDS:
        yield Problem("", 1, f"it lasts {file.end:.1f} s, and its run took {seconds:.1f} s", RECORD_AGAIN)


def repacked_problems(files: Iterable[tuple[str, str, bytes]]) -> Iterator[Problem]:
    """Traces that unpack to what one of another machine does, though their files differ.

    Parameters:
        files: Of each its machine, what messages name, and its bytes; of two alike the later one is the copy.
    """
    known: dict[str, tuple[str, str]] = {}
    for machine, path, packed in files:
        try:
            content = trace_digest(unpacked_trace(packed).encode())
        except TraceError:
            continue  # told of the file by itself
        digest = trace_digest(packed)
        whose, first = known.setdefault(content, (machine, digest))
        if whose != machine and first != digest:
            yield Problem(path, 1, f"a trace is that of {whose}, packed otherwise", RECORD_AGAIN)


def committed_traces(project: Project) -> Iterator[tuple[str, str, bytes]]:
    """The traces that lie beside records: of each its machine, its path, and its bytes."""
    for machine in project.machines:
        for place in sorted((project.records / machine).glob("*/*/*.json.gz")):
            with suppress(OSError):
                yield machine, project.relative(place), place.read_bytes()


def _seconds_of(result: Mapping[str, Any]) -> float | None:
    """How long the cells of the first run took; None where one was not timed."""
    first = min(result["runs"], key=lambda run: run["place"])
    readings = [cell.get("seconds") for cell in first["cells"].values()]
    return None if not readings or None in readings else sum(readings)


def committed_problems(
    project: Project, table: Mapping[str, Any], script: Script | None, path: Path, text: str
) -> Iterator[Problem]:
    """What is wrong with the traces of a committed record, in `path`: what it says, what lies beside it."""
    shown = project.relative(path)
    yield from entry_problems(table, script, shown, text)
    read = cache(lambda place: TraceFile(place.read_bytes()))
    for variant, name, entry in named_traces(table):
        place = project.trace_path(table["machine"], table["script"], name, entry["sha256"])
        try:
            file = read(place)
        except OSError:
            line = json_line(text, ("variants", variant, "traces", name))
            what = f"variant {variant}: its trace {name} is not there ({project.relative(place)})"
            yield Problem(shown, line, what, f"{RESTORE}: benchbook record --all {table['script']}")
            continue
        yield from trace_problems(file, table, variant, name, project.relative(place))
    known = trace_places(project, record_from(table))
    for place in _files_in(path.with_suffix("")):
        if place not in known:
            yield _stray(project, place)


def unnamed_file_problems(project: Project) -> Iterator[Problem]:
    """Files below the records that are no record, describe no machine, and lie beside none as traces do."""
    for path in sorted(project.records.rglob("*")):
        if not path.is_file() or BESIDE.fullmatch(path.name):
            continue  # what a killed command left is told with what it left to do
        below = path.relative_to(project.records).parts[1:]
        described = below == ("machine.json",) or (len(below) == 2 and path.suffix == ".json")
        folder = project.records.joinpath(*path.relative_to(project.records).parts[:3])
        if not described and not (len(below) > 2 and folder.with_name(f"{folder.name}.json").is_file()):
            yield _stray(project, path)


def _stray(project: Project, place: Path) -> Problem:
    fix = "remove it, or restore the record that names it"
    return Problem(project.relative(place), 1, "is a file that no record names", fix)


def _files_in(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def guide_problems(sizes: Mapping[str, int], machine: str, path: str) -> Iterator[Problem]:
    """Guides whose traces on a machine are too large together; `sizes` are their bytes, by guide."""
    for guide, size in sizes.items():
        if size > LARGEST_OF_GUIDE:
            what = f"the traces of {guide} on {machine} have {size} B, and {LARGEST_OF_GUIDE} B are the most"
            yield Problem(path, 1, what, "profile fewer steps, or fewer variants, and record again")


def add_sizes(sizes: dict[str, int], table: Mapping[str, Any]) -> None:
    """Add the bytes of a record's traces to those of its guide."""
    guide = table["script"].partition("/")[0]
    sizes[guide] = sizes.get(guide, 0) + sum(entry["bytes"] for _, _, entry in named_traces(table))
