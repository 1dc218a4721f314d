"""The traces of a bundle come in with their records, and only what may be published does; `check` says the same."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking import traces
from benchbook.checking.bundles import import_bundles
from benchbook.checking.checks import check_project
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import dump_record, write_text
from benchbook.content.traces import entry_of
from benchbook.content.validation import parse_json
from builders import MACHINE, MACHINE_JSON, SCRIPT, make_project, make_record, packed, with_table, write
from handbooks import edit
from tracing import STEPS, event, published

GUEST = f"{MACHINE}--ada"
_METRICS = "# [tool.benchbook.metrics]"
TRACED = SCRIPT.replace(_METRICS, f'# [tool.benchbook]\n# traces = ["steps"]\n{_METRICS}')
SWEPT = with_table("[tool.benchbook.matrix]\nsteps = [1, 2]", TRACED)
PACKED = published()
RECORD = f"snippets/records/{MACHINE}/sums/add.json"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a script that declares a trace, and nothing recorded."""
    project = make_project(tmp_path / "checkout", TRACED)
    shutil.rmtree(project.records)
    edit(
        project.root / "pyproject.toml", f'reference_machine = "{MACHINE}"', 'reference_machine = "cpu-other"'
    )
    return Project(project.root)


def bundle_of(file: bytes = PACKED, script: str = TRACED) -> dict[str, Any]:
    """What Ada hands in: each variant with a trace in this file."""
    record = json.loads(dump_record(make_record(script))) | {"machine": GUEST}
    for campaign in record["campaigns"].values():
        campaign["recorded_by"] = "Ada"
    machine = json.loads(json.dumps(MACHINE_JSON)) | {"name": GUEST, "owner": "Ada"}
    bundle = {"schema": 1, "machine": machine, "records": [record], "traces": {}}
    for variant in record["variants"]:
        put(bundle, file, variant)
    return bundle


def put(bundle: dict[str, Any], file: bytes, variant: str = "default", events: int = len(STEPS)) -> None:
    """Make a file the trace of a variant, and name it in the record as it is."""
    entry = vars(entry_of(file, events))
    bundle["records"][0]["variants"][variant]["traces"] = {"steps": dict(entry)}
    bundle["traces"] = {entry["sha256"]: base64.b64encode(file).decode()}


def entry(bundle: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = bundle["records"][0]["variants"]["default"]["traces"]["steps"]
    return found


def files(project: Project) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in project.records.rglob("*.json.gz")}


def problems(project: Project) -> list[str]:
    return [str(problem) for problem in check_project(Project(project.root)).problems]


def of_traces(project: Project) -> list[str]:
    return [one for one in problems(project) if "trace" in one]


def imported(project: Project, tmp_path: Path, bundle: dict[str, Any], **options: Any) -> Any:
    return import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))], **options)


def test_a_trace_comes_in_with_its_record(project: Project, tmp_path: Path) -> None:
    done = imported(project, tmp_path, bundle_of())
    (name,) = files(project)
    assert done.written == (
        f"snippets/records/{GUEST}/sums/add/{name}",
        f"snippets/records/{GUEST}/machine.json",
        f"snippets/records/{GUEST}/sums/add.json",
    )
    assert files(project) == {name: PACKED}
    assert of_traces(project) == []


def test_a_trace_that_is_replaced_goes(project: Project, tmp_path: Path) -> None:
    imported(project, tmp_path, bundle_of())
    (before,) = files(project)
    later = bundle_of(published(STEPS[:3]))
    put(later, published(STEPS[:3]), events=3)
    record = later["records"][0]
    (campaign,) = record["campaigns"].values()
    campaign |= {"started": "2026-01-03T03:04:05Z", "finished": "2026-01-03T03:05:05Z"}
    record["campaigns"] = {"20260103T030405Z-later": campaign}
    record["variants"]["default"]["campaign"] = "20260103T030405Z-later"
    for run in record["variants"]["default"]["runs"]:
        run["cells"]["add"]["seconds"] *= 1.01 + run["place"] / 97
    done = imported(project, tmp_path, later, replacing=True, machine=GUEST)
    assert done.removed == (f"snippets/records/{GUEST}/sums/add/{before}",)
    assert [*files(project).values()] == [published(STEPS[:3])]


def test_the_traces_of_variants_that_a_bundle_does_not_hold_stay(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", SWEPT)
    for kept, name, file in (("steps=1", "one", PACKED), ("steps=2", "two", published(STEPS[::2]))):
        bundle = bundle_of(PACKED, SWEPT)
        record = bundle["records"][0]
        put(bundle, file, kept, 7 if name == "one" else 4)
        called = f"20260102T030405Z-{name}"
        record["campaigns"] = {called: next(iter(record["campaigns"].values()))}
        record["variants"] = {kept: record["variants"][kept] | {"campaign": called}}
        imported(project, tmp_path, bundle, replacing=True)
    assert sorted(files(project).values()) == sorted([PACKED, published(STEPS[::2])])
    assert of_traces(project) == []


# What is refused


def raw(text: bytes) -> bytes:
    """A file as the recorder packs it, of whatever text."""
    return gzip.compress(text, mtime=0)[:8] + b"\x02\xff" + gzip.compress(text, mtime=0)[10:]


def with_event(**changes: Any) -> bytes:
    """A trace of one event with these changes; a field that is changed to None is left away."""
    made = {"ph": "X", "name": "train", "cat": "cpu_op", "ts": 0, "dur": 1.5, "pid": 0, "tid": 0} | changes
    event = {key: value for key, value in made.items() if value is not None}
    return raw(json.dumps({"traceEvents": [event]}).encode())


def forged(file: bytes, events: int = 1) -> dict[str, Any]:
    """A bundle in order, but for what is in the file of its trace."""
    bundle = bundle_of()
    put(bundle, file, events=events)
    return bundle


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    bundle = bundle_of()
    change(bundle)
    return bundle


NAMED = raw(b"\0")[:3] + b"\x08" + raw(b"\0")[4:10] + b"ada.json\0" + raw(b"\0")[10:]
MANY = json.dumps({"traceEvents": [json.loads(gzip.decompress(with_event()))["traceEvents"][0]] * 20_001})
BAD_FILES: dict[str, tuple[bytes, str]] = {
    "an argument": (with_event(args={"host": "ada"}), "there is no such key"),
    "a field that lacks": (with_event(tid=None), "tid"),
    "another phase": (with_event(ph="B"), "ph"),
    "a frame of Python": (with_event(cat="python_function"), "cat"),
    "a negative time": (with_event(ts=-1), "ts"),
    "a text for a time": (with_event(dur="1"), "dur"),
    "no end": (with_event(dur=1e300), "dur"),
    "a time that nothing measures": (with_event(dur=5e-321), "no whole number of tenths"),
    "a beginning that nothing measures": (with_event(ts=1e-310), "no whole number of tenths"),
    "a later beginning": (with_event(ts=5), "does not begin at 0"),
    "longer than its run": (with_event(dur=60e6), "it lasts 60.0 s, and its run took"),
    "a path": (with_event(name="read /home/ada/x"), "has a path"),
    "an address": (with_event(name="ada@example.org"), "has an at-sign"),
    "a device": (with_event(name="GPU-8a7b6c5d-1111-2222-3333-444455556666"), "has a path or an identifier"),
    "markup": (with_event(name="<img src=x>"), "it holds what is not seen"),
    "a turned direction": (with_event(name="a\u202eb"), "it holds what is not seen"),
    "a long name": (with_event(name="a" * 201), "at most 200 characters"),
    "an empty name": (with_event(name=""), "it holds what is not seen"),
    "a process of no number": (with_event(pid=4711.5), "pid"),
    "metadata": (raw(b'{"traceEvents": [], "traceName": "ada"}'), "there is no such key"),
    "no events": (raw(b'{"traceEvents": []}'), "traceEvents"),
    "too many events": (raw(MANY.encode()), "at most 20000 items"),
    "a key twice": (raw(b'{"traceEvents": [], "traceEvents": []}'), "has the key `traceEvents` twice"),
    "not a number": (with_event(ts=float("nan")), "which is not a number"),
    "no JSON": (raw(b"trace"), "is not JSON"),
    "no text": (raw(b"\xff\xfe"), "cannot be unpacked"),
    "no gzip": (b"{}", "is not gzip without a name and a date"),
    "a file name": (NAMED, "is not gzip without a name and a date"),
    "a date": (gzip.compress(b"{}", mtime=1), "is not gzip without a name and a date"),
    "more behind it": (PACKED + gzip.compress(b"ada", mtime=0), "holds more than its text"),
    "an end that lacks": (PACKED[:-4], "ends too early"),
    "a bomb": (raw(b" " * 100_000_000), "unpacks to more than 8000000 B"),
}  # fmt: skip
BAD_BUNDLES: dict[str, tuple[dict[str, Any], str]] = {
    "another digest": (
        changed(lambda b: b.update(traces={k: base64.b64encode(with_event()).decode() for k in b["traces"]})),
        "its digest differs",
    ),
    "another size": (changed(lambda b: entry(b).update(bytes=7)), "and its record says 7"),
    "another count": (changed(lambda b: entry(b).update(events=8)), "has 7 events, and its record says 8"),
    "a size that is none": (changed(lambda b: entry(b).update(bytes=300_001)), "less than or equal to 300000"),
    "no file": (changed(lambda b: b.update(traces={})), "it lacks the trace steps of variant default"),
    "nobody's file": (
        changed(lambda b: b["records"][0]["variants"]["default"].pop("traces")),
        "it holds 1 trace(s) that none of its records names",
    ),
    "no base64": (changed(lambda b: b.update(traces=dict.fromkeys(b["traces"], "…"))), "not files in base64"),
    "no table": (changed(lambda b: b.update(traces=["a"])), "not files in base64"),
    "another name": (
        changed(lambda b: b["records"][0]["variants"]["default"].update(traces={"other": entry(b)})),
        "has the trace other, and sums/add.py declares none of that name",
    ),
    "a name that leads away": (
        changed(lambda b: b["records"][0]["variants"]["default"].update(traces={"../x": entry(b)})),
        "String should match",
    ),
    "a run that failed": (
        changed(lambda b: b["records"][0]["variants"]["default"].update(outcome="crashed", error="x", runs=[])),
        "a trace of a run that is not here",
    ),
    "too large": (forged(raw(b"\0" * 10) + b"\0" * 300_000), "less than or equal to 300000"),
}  # fmt: skip


@pytest.mark.parametrize("case", [*BAD_FILES, *BAD_BUNDLES])
def test_what_may_not_be_published_is_refused_and_nothing_written(
    project: Project, tmp_path: Path, case: str
) -> None:
    bundle, why = (forged(BAD_FILES[case][0]), BAD_FILES[case][1]) if case in BAD_FILES else BAD_BUNDLES[case]
    with pytest.raises(BenchbookError) as caught:
        imported(project, tmp_path, bundle)
    assert why in str(caught.value)
    assert not project.records.exists()


def test_the_traces_of_a_guide_have_an_end_on_a_machine(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchbook.checking.traces.LARGEST_OF_GUIDE", 2 * len(PACKED) - 1)
    write(project.snippets / "sums/add.py", SWEPT)
    with pytest.raises(BenchbookError, match=f"the traces of sums on {GUEST} have {2 * len(PACKED)} B"):
        imported(project, tmp_path, bundle_of(PACKED, SWEPT))
    assert not project.records.exists()


def test_the_traces_of_a_guide_have_an_end_over_all_bundles_together(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchbook.checking.traces.LARGEST_OF_GUIDE", 2 * len(PACKED) - 1)
    write(project.snippets / "sums/sub.py", TRACED)
    second = json.loads(json.dumps(bundle_of()).replace("sums/add.py", "sums/sub.py"))
    paths = [write(tmp_path / f"{n}.json", packed(one)) for n, one in enumerate((bundle_of(), second))]
    with pytest.raises(BenchbookError, match=f"the traces of sums on {GUEST} have {2 * len(PACKED)} B"):
        import_bundles(project, paths, replacing=True)
    assert not project.records.exists()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of traces that were parsed."""
    texts: list[str] = []

    def parse(text: str, path: str) -> Any:
        texts.append(text)
        return parse_json(text, path)

    monkeypatch.setattr(traces, "parse_json", parse)
    return texts


def test_a_file_that_several_variants_name_is_read_once(
    project: Project, tmp_path: Path, parsed: list[str]
) -> None:
    write(project.snippets / "sums/add.py", SWEPT)
    imported(project, tmp_path, bundle_of(PACKED, SWEPT))
    assert len(parsed) == 1


def test_what_is_wrong_with_a_file_is_told_of_each_variant_that_names_it(
    project: Project, tmp_path: Path, parsed: list[str]
) -> None:
    write(project.snippets / "sums/add.py", SWEPT)
    with pytest.raises(BenchbookError) as caught:
        imported(project, tmp_path, bundle_of(with_event(ts=5), SWEPT))
    for variant in ("steps=1", "steps=2"):
        said = f"the trace steps of variant {variant} of sums/add.py: its first event does not begin at 0"
        assert said in str(caught.value)
    assert len(parsed) == 1


def test_a_file_that_several_variants_of_a_record_name_is_read_once(
    project: Project, tmp_path: Path, parsed: list[str]
) -> None:
    write(project.snippets / "sums/add.py", SWEPT)
    imported(project, tmp_path, bundle_of(PACKED, SWEPT))
    parsed.clear()
    assert of_traces(project) == []
    assert len(parsed) == 1


@pytest.mark.parametrize("case", ["another name", "another digest", "another size", "too large together"])
def test_the_file_of_a_trace_that_is_refused_by_its_name_or_its_size_is_not_read(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parsed: list[str], case: str
) -> None:
    bundle, why = bundle_of(), "the traces of sums on"
    if case == "too large together":
        monkeypatch.setattr("benchbook.checking.traces.LARGEST_OF_GUIDE", len(PACKED) - 1)
    else:
        bundle, why = BAD_BUNDLES[case]
    with pytest.raises(BenchbookError) as caught:
        imported(project, tmp_path, bundle)
    assert why in str(caught.value)
    assert parsed == []


@pytest.mark.parametrize("items", ["[],", "{},", '{"a":1,"b":2},'])
def test_a_trace_of_more_values_than_any_has_is_not_read(
    project: Project, tmp_path: Path, parsed: list[str], items: str
) -> None:
    file = raw(f'{{"traceEvents":[{items * 200_000}[]]}}'.encode())
    with pytest.raises(BenchbookError, match="holds more than 400000 values; profile fewer steps"):
        imported(project, tmp_path, forged(file))
    assert parsed == []


def test_nothing_is_written_through_a_link_in_the_place_of_the_traces(
    project: Project, tmp_path: Path
) -> None:
    link = project.records / GUEST / "sums/add"
    link.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BenchbookError, match="sums/add is a link to another place"):
        imported(project, tmp_path, bundle_of())
    assert list((tmp_path / "elsewhere").iterdir()) == []


# What is committed


@pytest.fixture
def recorded(tmp_path: Path) -> Project:
    """A project whose one record has a trace."""
    project = make_project(tmp_path / "checkout", TRACED)
    path = project.record_path(MACHINE, "sums/add.py")
    record = json.loads(path.read_text("utf-8"))
    record["variants"]["default"]["traces"] = {"steps": vars(entry_of(PACKED, len(STEPS)))}
    write_text(path, json.dumps(record, indent=1))
    place = place_of(project)
    place.parent.mkdir()
    place.write_bytes(PACKED)
    return project


def place_of(project: Project) -> Path:
    return project.trace_path(MACHINE, "sums/add.py", "steps", entry_of(PACKED, 1).sha256)


def test_a_record_with_its_trace_is_in_order(recorded: Project) -> None:
    assert of_traces(recorded) == []


def test_a_record_without_its_trace_is_named_with_its_line(recorded: Project) -> None:
    place_of(recorded).unlink()
    lines = (recorded.root / RECORD).read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if '"steps": {' in text and number > 3)
    (found,) = of_traces(recorded)
    assert found.startswith(f"{RECORD}:{line}: variant default: its trace steps is not there")
    assert found.endswith("record its variant again: benchbook record --all sums/add.py")


def test_a_trace_without_a_record_is_named(recorded: Project) -> None:
    stray = place_of(recorded).with_name(f"{'0' * 16}.steps.json.gz")
    stray.write_bytes(PACKED)
    lost = recorded.records / MACHINE / "sums/gone/x.json.gz"
    lost.parent.mkdir()
    lost.write_bytes(PACKED)
    assert [one for one in problems(recorded) if "no record" in one] == [
        f"{recorded.relative(path)}:1: is a file that no record names; remove it, or restore the record that names it"
        for path in (stray, lost)
    ]


@pytest.mark.parametrize(
    "place",
    [
        "README.md",
        "nobody/sums/add/x.json.gz",
        "nobody/sums/add/folder.json.gz/readme",
        f"{MACHINE}/notes.txt",
        f"{MACHINE}/more.json",
        f"{MACHINE}/sums/add.txt",
        f"{MACHINE}/sums/add/more/x.json.gz",
        f"{MACHINE}/sums/gone/more/x.json",
    ],
)
def test_a_file_among_the_records_that_belongs_to_none_is_named(recorded: Project, place: str) -> None:
    before = check_project(Project(recorded.root)).problems
    write(recorded.records / place, "{}")
    (found,) = set(check_project(Project(recorded.root)).problems) - set(before)
    assert (found.path, found.what) == (f"snippets/records/{place}", "is a file that no record names")


def test_a_trace_that_was_changed_is_named(recorded: Project) -> None:
    place_of(recorded).write_bytes(with_event(name="other"))
    (found,) = of_traces(recorded)
    assert found.startswith(f"{recorded.relative(place_of(recorded))}:1: the trace steps of variant default")
    assert "its digest differs; restore it" in found


@pytest.mark.parametrize("case", [name for name in BAD_FILES if name not in ("a bomb", "too many events")])
def test_what_import_refuses_check_names(recorded: Project, case: str) -> None:
    file, why = BAD_FILES[case]
    path = recorded.root / RECORD
    record = json.loads(path.read_text("utf-8"))
    entry = vars(entry_of(file, 1))
    record["variants"]["default"]["traces"] = {"steps": entry}
    write_text(path, json.dumps(record, indent=1))
    place_of(recorded).unlink()
    recorded.trace_path(MACHINE, "sums/add.py", "steps", entry["sha256"]).write_bytes(file)
    found = of_traces(recorded)
    assert any(why in one for one in found)


def test_a_trace_is_as_fresh_as_its_variant(recorded: Project) -> None:
    edit(recorded.snippets / "sums/add.py", "# %% checks", "total += 0\n\n# %% checks")
    found = problems(recorded)
    assert any("is stale" in one for one in found)
    assert of_traces(recorded) == []


def test_names_of_events_that_a_page_escapes_come_in(project: Project, tmp_path: Path) -> None:
    names = ['a "quoted" & b', "训练一步", "{lambda()#1}::operator()", "Torch-Compiled Region: 0/0"]
    file = published([event(name, 10.0 * place, 5) for place, name in enumerate(names)])
    imported(project, tmp_path, forged(file, len(names)))
    assert of_traces(project) == []


def test_a_trace_of_another_machine_is_a_copy_however_it_is_packed(recorded: Project, tmp_path: Path) -> None:
    again = gzip.compress(gzip.decompress(PACKED), 0, mtime=0)
    said = f"a trace is that of {MACHINE}, packed otherwise"
    bundle = bundle_of(again)
    for nth, run in enumerate(bundle["records"][0]["variants"]["default"]["runs"]):
        for number, cell in enumerate(run["cells"].values()):
            cell["seconds"] *= 1.01234567 + nth / 97 + number / 89
    with pytest.raises(BenchbookError, match=said):
        imported(recorded, tmp_path, bundle)
    # What is written past the import, the check finds.
    (table,) = bundle["records"]
    write(recorded.records / GUEST / "machine.json", json.dumps(bundle["machine"]))
    write(recorded.record_path(GUEST, "sums/add.py"), json.dumps(table))
    (name,) = (entry["sha256"] for entry in table["variants"]["default"]["traces"].values())
    place = recorded.trace_path(GUEST, "sums/add.py", "steps", name)
    place.parent.mkdir(parents=True)
    place.write_bytes(again)
    (problem,) = of_traces(recorded)
    assert problem.startswith(recorded.relative(place))
    assert said in problem
