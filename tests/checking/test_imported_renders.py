"""Whatever `import` accepts, `check` accepts and the pages render: one bundle stops no build."""

from __future__ import annotations

import base64
import copy
import difflib
import gzip
import hashlib
import html
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from benchbook.checking.bundles import import_bundles
from benchbook.checking.checks import check_project
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.traces import entry_of, packed_trace
from builders import packed, write
from damage import damaged
from handbooks import CPU, FIXTURE, GPU, copy_handbook, plain, render, set_metric, start

GUEST = f"{GPU}--ada"
SCRIPTS = ("memory/methods.py", "memory/losses.py")
PAGES = ("measured", "asserted", "claims")
# What is compared with a quantity that anyone may hand in as 0, of each kind of unit, measured and read.
ONE, FOUR = (f"memory/methods.py?method=checkpointing&batch_size={size}" for size in (1, 4))
COMPARED = ("#peak_memory", "#step_time", "#same_weights", "#train.seconds", "#train.process_memory_peak")
RATIOS = "\n\n".join(
    f"`#!value {FOUR}{what} / {ONE}{what} x` and `#!value 1 - {FOUR}{what} / {ONE}{what} percent`"
    for what in COMPARED
)


def made_up() -> dict[str, Any]:
    """What Ada would hand in of a GPU of hers: the figures of the small handbook's, each a little longer."""
    folder = FIXTURE / "snippets/records" / GPU
    machine = json.loads((folder / "machine.json").read_text("utf-8")) | {"name": GUEST, "owner": "Ada"}
    machine["accelerator"]["vendor"] = "NVIDIA"
    records = []
    traces = {}
    # Of each trace of the small handbook, what says of hers what it is.
    entries = {}
    for path in sorted(folder.rglob("*.json.gz")):
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        file = packed_trace([event | {"dur": event["dur"] - 1} for event in events])
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        entries[f"sha256:{digest}"] = entry = vars(entry_of(file, len(events)))
        traces[entry["sha256"]] = base64.b64encode(file).decode("ascii")
    for share, script in enumerate(SCRIPTS):
        record = json.loads((folder / script).with_suffix(".json").read_text("utf-8")) | {"machine": GUEST}
        ((name, campaign),) = record["campaigns"].items()
        session = f"{name}-{Path(script).stem}"
        record["campaigns"] = {session: campaign | {"recorded_by": "Ada"}}
        for order, variant in enumerate(record["variants"].values()):
            variant["campaign"] = session
            if "traces" in variant:
                kept = variant["traces"].items()
                variant["traces"] = {name: dict(entries[entry["sha256"]]) for name, entry in kept}
            runs = variant["runs"]
            # As many as are asked for of what scatters, no two alike.
            variant["runs"] = [copy.deepcopy(runs[number % len(runs)]) for number in range(8 if runs else 0)]
            for number, run in enumerate(variant["runs"]):
                run["place"] = 8 * order + number
                for meters in run["cells"].values():
                    meters["seconds"] *= 1.01 + number / (97 + order) + share / 1000
                if "step_time" in run["metrics"]:
                    run["metrics"]["step_time"] *= 1.01 + number / (97 + order)
        records.append(record)
    return {"schema": 1, "machine": machine, "records": records, "traces": traces}


WHOLE = made_up()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copy_handbook(tmp_path_factory.mktemp("handbook"))


def blocks() -> list[str]:
    texts = [(FIXTURE / f"docs/en/{name}.md").read_text("utf-8") for name in PAGES]
    return [RATIOS, *(text.split("---\n", 2)[2] for text in texts)]


def problems_of(project: Project) -> set[str]:
    return {str(problem) for problem in check_project(Project(project.root)).problems}


class Bundle:
    """A bundle that hypothesis tells in a few words."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __repr__(self) -> str:
        before = json.dumps(WHOLE, indent=1, default=str).splitlines()
        after = json.dumps(self.table, indent=1, default=str).splitlines()
        return "\n".join([*difflib.unified_diff(before, after, n=0, lineterm="")][:20])


def sealed(table: Any) -> str:
    """The text of a bundle; nobody can seal one that holds what JSON lacks."""
    try:
        return packed(table)
    except (ValueError, RecursionError):
        return json.dumps(table | {"digest": f"sha256:{0:064}"})


# What is wrong without any guest.
CLEAN: dict[Path, set[str]] = {}


def accepted(project: Project, table: Any, folder: Path) -> bool:
    """Import a bundle; where it is accepted, it is checked and shown. Whether it was."""
    shutil.rmtree(project.records / GUEST, ignore_errors=True)
    if project.root not in CLEAN:
        CLEAN[project.root] = problems_of(project)
    before = sorted(project.snippets.rglob("*"))
    try:
        import_bundles(Project(project.root), [write(folder / "bundle.json", sealed(table))])
    except BenchbookError:
        assert sorted(project.snippets.rglob("*")) == before
        return False
    assert problems_of(project) == CLEAN[project.root]
    for text in blocks():
        build = start(Project(project.root))
        render(build, text)
        assert build.problems == set()
        assert build.failures == []
    return True


ACCEPTED: list[bool] = []


def take(project: Project, table: Any, folder: Path) -> None:
    ACCEPTED.append(accepted(project, table, folder))


def test_what_nobody_damaged_is_accepted_and_shown(project: Project, tmp_path: Path) -> None:
    shutil.rmtree(project.records / GUEST, ignore_errors=True)
    assert accepted(project, copy.deepcopy(WHOLE), tmp_path)


@pytest.mark.parametrize(
    "state",
    [
        {"power_limit_watts": "x"},
        {"power_limit_watts": -1},
        {"power_limit_watts": [700]},
        {"driver": 5},
        {"shared": "yes"},
        {"clocks_mhz": 3},
        {"foreign_processes": "none"},
        {"load_average": {}},
        {"anything": 1},
    ],
)
def test_the_state_of_a_device_is_of_the_kinds_that_pages_show(
    project: Project, tmp_path: Path, state: dict[str, Any]
) -> None:
    table = copy.deepcopy(WHOLE)
    (campaign,) = table["records"][0]["campaigns"].values()
    campaign["state"] |= state
    take(project, table, tmp_path)
    assert not (project.records / GUEST).exists()


def is_bundle(table: Any) -> bool:
    """Whether it can be sealed as one at all."""
    return isinstance(table, dict) and {"machine", "records"} <= set(table)


@st.composite
def bundles(draw: st.DrawFn, damages: int) -> Bundle:
    """A bundle with so many places in it that are others."""
    table: Any = WHOLE
    for _ in range(damages):
        table = draw(damaged(table))
        assume(is_bundle(table))
    return Bundle(table)


NUMBERS: tuple[Any, ...] = (
    *(0, 0.0, -0.0, False, 1, 0.5, 1e-7, 1e-9, 5e-324, 1e-300, 1e-100, 1e-38),
    *(2**63, 10**18, 10**19, 1e24, 1e36, 1e100, 10**308, 1e308, 1.7976931348623157e308),
)


def numbers() -> st.SearchStrategy[Any]:
    """Zeros, crumbs, and what is more than there is of anything, of either sign."""
    return st.sampled_from(NUMBERS) | st.sampled_from(NUMBERS).map(lambda number: -number)


@st.composite
def extreme_bundles(draw: st.DrawFn) -> Bundle:
    """A bundle in which one quantity of a variant or of all is another in each run, or in one of them."""
    table = copy.deepcopy(WHOLE)
    record = draw(st.sampled_from(table["records"]))
    whole = draw(st.booleans()) or draw(st.booleans())
    names = [*record["variants"]] if whole else [draw(st.sampled_from([*record["variants"]]))]
    runs = [run for name in names for run in record["variants"][name]["runs"]]
    assume(runs)
    runs = runs if whole or draw(st.booleans()) else runs[:1]
    # A time has to scatter, or it is refused for that.
    grows = draw(st.sampled_from([0, 0, 1e-3]))
    cell = None if draw(st.booleans()) else draw(st.sampled_from([*runs[0]["cells"]]))
    quantity = draw(st.sampled_from(sorted(runs[0]["cells"][cell] if cell else runs[0]["metrics"])))
    number = draw(st.just(0) | numbers())
    for place, run in enumerate(runs):
        held = run["cells"][cell] if cell else run["metrics"]
        grown = number * (1 + grows * place) if grows else number
        grown = grown if abs(grown) < float("inf") else number
        held[quantity] = [grown] * len(held[quantity]) if isinstance(held[quantity], list) else grown
    return Bundle(table)


quick = settings(
    max_examples=60,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)


@quick
@given(bundle=bundles(1))
def test_a_damaged_bundle_is_refused_or_shown(project: Project, tmp_path: Path, bundle: Bundle) -> None:
    take(project, bundle.table, tmp_path)


@quick
@given(bundle=extreme_bundles())
def test_a_bundle_of_zeros_and_extremes_is_refused_or_shown(
    project: Project, tmp_path: Path, bundle: Bundle
) -> None:
    take(project, bundle.table, tmp_path)


@st.composite
def traced_bundles(draw: st.DrawFn) -> Bundle:
    """A bundle in whose trace one place is another, and which says of it what it is."""
    table = copy.deepcopy(WHOLE)
    (entry,) = (
        one for variant in table["records"][1]["variants"].values() for one in variant["traces"].values()
    )
    trace = json.loads(gzip.decompress(base64.b64decode(table["traces"].pop(entry["sha256"]))))
    # Few, so that what is damaged is seldom one of many that are alike.
    trace["traceEvents"] = trace["traceEvents"][:4]
    made = draw(damaged(trace))
    text = json.dumps(made).encode("utf-8", "replace")
    with io.BytesIO() as into:
        with gzip.GzipFile(filename="", mode="wb", fileobj=into, mtime=0) as file:
            file.write(text)
        packed_file = into.getvalue()
    events = made.get("traceEvents") if isinstance(made, dict) else None
    count = len(events) if isinstance(events, list) and events else 1
    entry |= vars(entry_of(packed_file, count))
    table["traces"][entry["sha256"]] = base64.b64encode(packed_file).decode("ascii")
    return Bundle(table)


@quick
@given(bundle=traced_bundles())
def test_a_bundle_with_a_damaged_trace_is_refused_or_shown(
    project: Project, tmp_path: Path, bundle: Bundle
) -> None:
    take(project, bundle.table, tmp_path)


def guest_with(quantity: str, value: Any, variants: str = "") -> Any:
    """What Ada hands in, with one metric of the methods another."""
    table = copy.deepcopy(WHOLE)
    for name, variant in table["records"][0]["variants"].items():
        for run in variant["runs"] if variants in name else ():
            run["metrics"][quantity] = value
    return table


def test_what_is_compared_with_nothing_on_another_machine_is_a_dash_with_the_reason(
    project: Project, tmp_path: Path
) -> None:
    assert accepted(project, guest_with("same_weights", False), tmp_path)
    build = start(Project(project.root))
    render(build, f"`#!value {FOUR}#same_weights / {ONE}#same_weights x`")
    ((_, tree),) = build.here.data[GUEST]["values"].items()
    shown = tree["parts"][""]
    assert plain(shown).startswith("—")
    assert f' title="{html.escape(f"{ONE}#same_weights")} = 0">' in shown
    assert 'value=""' in shown


def test_what_is_compared_with_nothing_on_the_machine_of_the_text_is_a_problem(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    set_metric(project, CPU, "peak_memory", {"method=checkpointing,batch_size=1": 0})
    build = start(project)
    render(build, f"`#!value {FOUR}#peak_memory / {ONE}#peak_memory x`")
    (problem,) = build.problems
    assert f"`{ONE}#peak_memory` is 0 on {CPU}; compare with a quantity that is not 0" in str(problem)


@pytest.mark.parametrize(
    ("quantity", "value", "reason"),
    [
        ("peak_memory", 10**308, "peak_memory is 1e+308 B, more than the 1e+18 that there can be"),
        ("peak_memory", 1e-300, "peak_memory is 1e-300 B, less than the 0.125 that there can be"),
        ("peak_memory", True, "peak_memory is True, which is no number of B"),
        ("peak_memory", 1.5, "peak_memory is 1.5 B, and a device holds whole bytes"),
        ("peak_memory", -1, "peak_memory is -1 B, and there is no less than nothing of it"),
        ("step_time", 1e300, "step_time is 1e+300 s, more than the 1e+10 that there can be"),
        ("step_time", True, "step_time is True, which is no number of s"),
        ("step_time", 0, "step_time is not positive"),
        ("same_weights", 1e300, "same_weights is 1e+300 1, more than the 1e+100 that there can be"),
    ],
)
def test_what_no_number_of_a_unit_is_is_refused_and_the_check_finds_it(
    project: Project, tmp_path: Path, quantity: str, value: Any, reason: str
) -> None:
    table = guest_with(quantity, value, "method=plain,batch_size=1")
    shutil.rmtree(project.records / GUEST, ignore_errors=True)
    with pytest.raises(BenchbookError) as caught:
        import_bundles(Project(project.root), [write(tmp_path / "bundle.json", sealed(table))])
    assert reason in str(caught.value)
    write(project.records / GUEST / "machine.json", json.dumps(table["machine"]))
    write(project.record_path(GUEST, "memory/methods.py"), json.dumps(table["records"][0]))
    assert any(reason in problem for problem in problems_of(project))


def test_of_what_is_damaged_some_is_accepted_and_some_refused() -> None:
    assert set(ACCEPTED) == {True, False}


@pytest.mark.weekly
@settings(quick, max_examples=2000)
@given(bundle=bundles(2))
def test_a_bundle_that_is_damaged_twice_is_refused_or_shown(
    project: Project, tmp_path: Path, bundle: Bundle
) -> None:
    take(project, bundle.table, tmp_path)
