"""A bundle from elsewhere is put in place whole, or refused with every reason and nothing written."""

from __future__ import annotations

import copy
import errno
import gzip
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from benchbook.checking import bundles
from benchbook.checking.bundles import Imported, import_at, import_bundles
from benchbook.checking.checks import check_project
from benchbook.content import formats, unfinished
from benchbook.content.machines import differing_key
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import dump_record, load_record, record_from
from benchbook.content.unfinished import LIST, alone, finish_writing
from builders import (
    GPU_JSON,
    MACHINE,
    MACHINE_JSON,
    SCRIPT,
    SWEEP,
    make_project,
    make_record,
    packed,
    with_table,
    write,
)
from clones import ROOT, benchbook, unread
from handbooks import edit
from repositories import git

GUEST, OTHER = f"{MACHINE}--ada", f"{MACHINE}--bob"


def bundle_of(script: str = SCRIPT, **changes: Any) -> dict[str, Any]:
    """What Ada hands in, of a machine of hers."""
    bundle = {
        "schema": 1,
        "digest": "",
        "machine": json.loads(json.dumps(MACHINE_JSON)),
        "records": [json.loads(dump_record(make_record(script, **changes)))],
    }
    return renamed(bundle, GUEST, "Ada")


def renamed(bundle: dict[str, Any], name: str, owner: str | None) -> dict[str, Any]:
    """The bundle of another machine, which someone else measured; the maintainers, if nobody is named."""
    bundle["machine"] |= {"name": name, "owner": owner}
    bundle["records"][0]["machine"] = name
    campaign(bundle)["recorded_by"] = owner or "maintainers"
    return bundle


def on_a_gpu(bundle: dict[str, Any]) -> dict[str, Any]:
    """The bundle as of Ada's H200."""
    bundle["machine"] |= copy.deepcopy(GPU_JSON)
    return renamed(bundle, "nvidia-h200-141gb--ada", "Ada")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path / "checkout")
    shutil.rmtree(project.records)
    # Nothing is here yet, and nothing is the reference machine's.
    edit(
        project.root / "pyproject.toml", f'reference_machine = "{MACHINE}"', 'reference_machine = "cpu-other"'
    )
    return Project(project.root)


def refusal(project: Project, path: Path) -> str:
    with pytest.raises(BenchbookError) as caught:
        import_bundles(project, [path])
    assert not project.records.exists()
    return str(caught.value)


def test_records_that_are_in_place_are_so_though_no_space_is_left_to_say_it(
    project: Project, tmp_path: Path
) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    command = [sys.executable, str(ROOT / "scripts/benchbook"), "import", str(path)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, cwd=project.root, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, project.record_path(GUEST, "sums/add.py").is_file()) == (1, True)
    assert done.stderr == (
        "not all of it could be written: no space left on device; "
        "the records are in place, and need not be imported again\n"
    )


def test_records_are_in_place_though_nobody_reads_what_is_said_of_them(
    project: Project, tmp_path: Path
) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    done = unread("import", str(path), folder=project.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert load_record(project.record_path(GUEST, "sums/add.py")) == record_from(bundle_of()["records"][0])


@pytest.mark.parametrize("zipped", [False, True])
def test_a_good_bundle_is_put_in_place(project: Project, tmp_path: Path, zipped: bool) -> None:
    text = packed(bundle_of()).encode()
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(text) if zipped else text)
    assert list(import_bundles(project, [path]).written) == [
        f"snippets/records/{GUEST}/machine.json",
        f"snippets/records/{GUEST}/sums/add.json",
    ]
    assert load_record(project.record_path(GUEST, "sums/add.py")) == record_from(bundle_of()["records"][0])


def test_variants_that_the_bundle_does_not_hold_stay(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    for kept, name in (("steps=1", "20260102T030405Z-one"), ("steps=2", "20260102T030405Z-two")):
        bundle = bundle_of(SWEEP)
        record = bundle["records"][0]
        record["campaigns"] = {name: campaign(bundle)}
        record["variants"] = {kept: record["variants"][kept] | {"campaign": name}}
        import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))], replacing=True)
    here = load_record(project.record_path(GUEST, "sums/add.py"))
    assert here is not None
    assert list(here.variants) == ["steps=1", "steps=2"]


def variant(bundle: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = bundle["records"][0]["variants"]["default"]
    return found


def campaign(bundle: dict[str, Any]) -> dict[str, Any]:
    (found,) = bundle["records"][0]["campaigns"].values()
    return cast(dict[str, Any], found)


def line_of(day: str, **medians: float) -> dict[str, Any]:
    """A line of the history."""
    name = f"{day.replace('-', '')}T030000Z-late"
    return {"date": day, "campaign": name, "variants": ["default"], "medians": {"default": medians}}


def own_line(bundle: dict[str, Any]) -> dict[str, Any]:
    """The line of the history that the campaign of the bundle writes."""
    return line_of("2026-01-02", total=7.0) | {"campaign": variant(bundle)["campaign"]}


def crashed(bundle: dict[str, Any]) -> dict[str, Any]:
    """The variant as one that crashed."""
    variant(bundle).update(outcome="crashed", error="killed in the cell `add`", runs=[])
    return variant(bundle)


Damage = Callable[[dict[str, Any]], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "other code": (lambda b: variant(b).update(code="sha256:" + "0" * 64), "recorded from other code"),
    "too few runs": (lambda b: variant(b).update(runs=variant(b)["runs"][:1]), "holds 1 runs"),
    "unknown script": (
        lambda b: b["records"][0].update(script="sums/sub.py"),
        "is not a script of this checkout",
    ),
    "path traversal": (
        lambda b: b["records"][0].update(script="../../etc/x.py"),
        "script: String should match",
    ),
    "machine traversal": (lambda b: b["machine"].update(name="../x"), "name: String should match"),
    "another machine": (lambda b: b["records"][0].update(machine="cpu-other"), "was recorded on cpu-other"),
    "unknown key": (lambda b: variant(b).update(extra=1), "there is no such key"),
    "unknown variant": (
        lambda b: b["records"][0]["variants"].update({"steps=9": variant(b)}),
        "the script has no such variant",
    ),
    "text for a number": (lambda b: variant(b)["runs"][0]["metrics"].update(total="6"), "metrics.total"),
    "no campaign": (lambda b: b["records"][0].update(campaigns={}), "is not described"),
    "a home folder": (
        lambda b: variant(b)["output"].update(add="/home/ada/x"),
        "can identify someone's machine",
    ),
    "a device id": (
        lambda b: b["machine"].update(short="GPU-8a7b6c5d-1111-2222-3333-444455556666"),
        "can identify someone's machine",
    ),
    "ranks missing": (lambda b: variant(b).update(ranks=2), "not each of its runs holds 2 ranks"),
    "two runs in one place": (
        lambda b: variant(b)["runs"][0].update(place=1),
        "two of its runs have one place",
    ),
    "a failure with runs": (lambda b: variant(b).update(outcome="crashed"), "outcome 'crashed' with 3 runs"),
    "more than the device": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(allocated_peak=10**12),
        "more than the machine's",
    ),
    "more than the device, later": (
        lambda b: variant(b)["runs"][2]["cells"]["add"].update(allocated_peak=10**12),
        "more than the machine's",
    ),
    "a peak below the end": (
        lambda b: variant(b)["runs"][1]["cells"]["add"].update(
            process_memory=10**8, process_memory_peak=1000
        ),
        "add.process_memory_peak is 1000 B, less than the 100000000 B held at its end",
    ),
    "a calendar that is not": (
        lambda b: campaign(b).update(started="2026-13-45T03:04:05Z"),
        "started: 2026-13-45T03:04:05Z is in no calendar",
    ),
    "the future": (
        lambda b: campaign(b).update(finished="2999-01-02T03:05:05Z"),
        "is in the future",
    ),
    "an end before the start": (
        lambda b: campaign(b).update(finished="2026-01-02T03:00:00Z"),
        "before it started",
    ),
    "more time than there was": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(seconds=3600.5),
        "its runs took 3601 s, and it lasted 60",
    ),
    "one time for all": (
        lambda b: [run["cells"]["add"].update(seconds=0.25) for run in variant(b)["runs"]],
        "add.seconds is the same in 3 runs",
    ),
    "more than the machine": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(process_memory_peak=10**12),
        "add.process_memory_peak is 1000000000000 B, more than the machine's",
    ),
    "less than a clock tells": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(seconds=5e-324),
        "add.seconds is 5e-324 s, less than any clock tells",
    ),
    "others on the device": (
        lambda b: campaign(b)["state"].update(foreign_processes=[7]),
        "not marked as shared",
    ),
    "another Python": (
        lambda b: campaign(b)["packages"].update(python="3.9.1"),
        "ran on Python 3.9.1, where sums/add.py asks for >=3.11",
    ),
    "no Python": (lambda b: campaign(b).update(packages={}), "ran on Python None"),
    "other parameters": (
        lambda b: variant(b)["parameters"].update(steps=5),
        "parameter changed (steps: 5 -> 4)",
    ),
    "another environment": (
        lambda b: variant(b).update(environment={"LD_PRELOAD": "x.so"}),
        "environment changed",
    ),
    "another measurer": (
        lambda b: campaign(b).update(recorded_by="Bob"),
        "was recorded by Bob, on a machine of Ada",
    ),
    "an owner without an ending": (
        lambda b: b["machine"].update(name=MACHINE),
        "cpu-test belongs to Ada, and its name says otherwise",
    ),
    "a kind without its accelerator": (
        lambda b: b["machine"].update(kind="cuda"),
        "describes no accelerator",
    ),
    "no list": (lambda b: b.update(records={}), "is not a bundle of records"),
    "digits that are not ASCII": (
        lambda b: campaign(b).update(finished="２０２６-01-02T03:05:05Z"),
        "finished: String should match pattern",
    ),
    "more memory than there is": (lambda b: b["machine"].update(memory_bytes=10**309), "memory_bytes: Input"),
    "no records": (lambda b: b.update(records=[]), "it holds no records"),
    "less than nothing": (
        lambda b: variant(b)["runs"][0]["metrics"].update(total=-6),
        "total is -6 count, and there is no less than nothing of it",
    ),
    "negative bytes": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(process_memory=-1),
        "process_memory",
    ),
    "more than there is anywhere": (
        lambda b: [run["metrics"].update(total=10**308) for run in variant(b)["runs"]],
        "total is 1e+308 count, more than the 1e+30 that there can be",
    ),
    "a crumb": (
        lambda b: variant(b)["runs"][1]["metrics"].update(total=1e-300),
        "total is 1e-300 count, less than the 1e-09 that there can be",
    ),
    "a crumb of a byte": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(process_memory=1e-300),
        "add.process_memory: Input should be a valid integer",
    ),
    "a yes for bytes": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(allocated_peak=True),
        "add.allocated_peak: Input should be a valid integer",
    ),
    "no time at all": (
        lambda b: [cell.update(seconds=0) for cell in variant(b)["runs"][1]["cells"].values()],
        "all cells of a run took 0 s together, so it did not run",
    ),
    "times that nobody read": (
        lambda b: [cell.update(seconds=None) for cell in variant(b)["runs"][1]["cells"].values()],
        "all cells of a run took 0 s together, so it did not run",
    ),
    "a day that is none, in the history": (
        lambda b: b["records"][0].update(
            history=[{"date": "2026-13-45", "campaign": "x", "variants": [], "medians": {}}]
        ),
        "date: 2026-13-45 is in no calendar",
    ),
    "no cells": (
        lambda b: [run.update(cells={}) for run in variant(b)["runs"]],
        "a run lacks the cells add, checks, parameters",
    ),
    "a cell missing in one run": (
        lambda b: variant(b)["runs"][1]["cells"].pop("checks"),
        "a run lacks the cells checks",
    ),
    "held without a peak": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(process_memory=10**18),
        "add.process_memory is 1000000000000000000 B, more than the machine's",
    ),
    "a copy with a jitter": (
        lambda b: [
            run["cells"]["add"].update(seconds=0.25 * (1 + run["place"] * 1e-14))
            for run in variant(b)["runs"]
        ],
        "add.seconds is the same in 3 runs",
    ),
    "a run that is another": (
        lambda b: variant(b)["runs"][2].update(cells=copy.deepcopy(variant(b)["runs"][0]["cells"])),
        "variant default: the times of its run in place 2 are those in place 0",
    ),
    "a run that was not ended in time": (
        lambda b: [
            campaign(b).update(finished="2026-01-02T04:04:05Z"),
            variant(b)["runs"][1]["cells"]["add"].update(seconds=700.5),
        ],
        "variant default: a run took 701 s, and is ended after 600 s",
    ),
    "more at the start than ever": (
        lambda b: [
            run.update(baseline_memory=2**30)
            or [cell.update(process_memory_peak=2**20) for cell in run["cells"].values()]
            for run in variant(b)["runs"]
        ],
        "baseline_memory is 1073741824 B, and parameters.process_memory_peak, right after, 1048576 B",
    ),
    "less at the most than right before": (
        lambda b: (
            [
                cell.update(process_memory=2**30, process_memory_peak=2**20 if name == "checks" else 2**30)
                for run in variant(b)["runs"]
                for name, cell in run["cells"].items()
            ]
            and [run["cells"]["checks"].update(process_memory=2**20) for run in variant(b)["runs"]]
        ),
        "add.process_memory is 1073741824 B, and checks.process_memory_peak, right after, 1048576 B",
    ),
    "a cell that nobody timed": (
        lambda b: variant(b)["runs"][1]["cells"]["checks"].update(seconds=None),
        "variant default: a run holds no time of the cells checks",
    ),
    "a process that held nothing": (
        lambda b: variant(b)["runs"][1]["cells"]["checks"].update(process_memory=0),
        "variant default: a run lacks what its process held, at its start or at the end of a cell",
    ),
    "a process that nobody read though Linux tells it": (
        lambda b: b["machine"]["system"].update(libc="glibc 2.39"),
        "variant default: a run lacks what its process held, at its start or at the end of a cell",
    ),
    "a peak of nothing": (
        lambda b: variant(b)["runs"][1]["cells"]["checks"].update(process_memory_peak=0),
        "variant default: a process held nothing at its peak",
    ),
    "a start long ago": (
        lambda b: campaign(b).update(started="1970-01-01T00:00:00Z"),
        "it started at 1970-01-01T00:00:00Z, before anything was measured for this handbook",
    ),
    "a session of weeks": (
        lambda b: campaign(b).update(finished="2026-02-02T03:05:05Z"),
        "it lasted 31 days, and one session takes 7 at most",
    ),
    "a cell that the script has not": (
        lambda b: variant(b)["runs"][2]["cells"].update(subtract={"seconds": 0.1}),
        "it holds subtract, which are no cells of the script",
    ),
    "an output of no cell": (
        lambda b: variant(b)["output"].update(subtract="total 6"),
        "it holds subtract, which are no cells of the script",
    ),
    "a region that the script has not": (
        lambda b: variant(b).update(regions=["subtracting"]),
        "variant default: it reached subtracting, and the script has no such region",
    ),
    "a history of days to come": (
        lambda b: b["records"][0].update(history=[line_of("9999-12-31", total=6) | {"campaign": "x"}]),
        "the history of campaign x is of 9999-12-31, when nothing was measured",
    ),
    "a history of no number": (
        lambda b: b["records"][0].update(history=[line_of("2026-01-02", total=1e300)]),
        "says that total of variant default is 1e+300 count, more than the 1e+30 that there can be",
    ),
    "a history of no number of a metric that is gone": (
        lambda b: b["records"][0].update(history=[line_of("2026-01-02", gone=1e300)]),
        "says that gone of variant default is 1e+300",
    ),
    "a series without end": (
        lambda b: [run["metrics"].update(total=[1.5] * 300_000) for run in variant(b)["runs"]],
        "at most 10000 items",
    ),
    "a command in the name of a campaign": (
        lambda b: [
            b["records"][0].update(campaigns={"x\n::error::pwn": campaign(b)}),
            variant(b).update(campaign="x\n::error::pwn"),
        ],
        "variants.default.campaign: String should match pattern '^[A-Za-z0-9._-]+$'",
    ),
    "a processor called as a GPU": (
        lambda b: renamed(b, "nvidia-h200-141gb--ada", "Ada"),
        "nvidia-h200-141gb--ada is called so, and what it describes is called cpu-2core-24gb",
    ),
    "a processor called as a larger one": (
        lambda b: renamed(b, "cpu-64core-512gb--ada", "Ada"),
        "cpu-64core-512gb--ada is called so, and what it describes is called cpu-2core-24gb",
    ),
    "a GPU called as another": (
        lambda b: renamed(on_a_gpu(b), "h100-80gb--ada", "Ada"),
        "h100-80gb--ada is called so, and what it describes is called nvidia-h200-141gb",
    ),
    "a GPU with the letters of another": (
        lambda b: on_a_gpu(b)["machine"]["accelerator"].update(name="NVIDIA H2OO"),
        "has a NVIDIA H2OO, which is not NVIDIA H200 and is read as it",
    ),
    "a GPU that is older than its name": (
        lambda b: on_a_gpu(b)["machine"]["accelerator"].update(compute_capability="7.0"),
        "has the compute capability 7.0, and NVIDIA H200 has 9.0",
    ),
    "a GPU without a memory": (
        lambda b: on_a_gpu(b)["machine"]["accelerator"].update(memory_bytes=None),
        "has a H200, and does not say how much memory",
    ),
    "a device of an exabyte": (
        lambda b: on_a_gpu(b)["machine"]["accelerator"].update(memory_bytes=10**18),
        "accelerator.memory_bytes: Input should be less than or equal to",
    ),
    "a million devices": (
        lambda b: on_a_gpu(b)["machine"]["accelerator"].update(count=10**6),
        "accelerator.count: Input should be less than or equal to 1024",
    ),
    "a million cores": (
        lambda b: b["machine"]["cpu"].update(cores=10**6),
        "cpu.cores: Input should be less than or equal to",
    ),
    "maintainers with a Cyrillic letter": (
        lambda b: renamed(b, f"{MACHINE}--m-intainers", "m\u0430intainers"),
        "which is what the maintainers are called",
    ),
    "maintainers with what looks alike": (
        lambda b: renamed(b, f"{MACHINE}--rna1ntain-rs", "rna1ntain\u00e9rs"),
        "which is what the maintainers are called",
    ),
    "an owner in letters that look like others": (
        lambda b: renamed(b, f"{MACHINE}--d", "\u0410d\u0430"),
        "which is not a name in the letters A to Z",
    ),
    "an owner with what is not seen": (
        lambda b: renamed(b, GUEST, "Ada\u200b"),
        "owner: it holds what is not seen",
    ),
    "runs without end": (
        lambda b: variant(b).update(runs=[variant(b)["runs"][0] | {"place": n} for n in range(65)]),
        "variants.default.runs: Tuple should have at most 64 items",
    ),
    "a history without end": (
        lambda b: b["records"][0].update(
            history=[
                {"date": "2026-01-02", "campaign": f"{n}", "variants": [], "medians": {}} for n in range(5000)
            ]
        ),
        "history: Tuple should have at most 1000 items",
    ),
    "a crash of other code": (
        lambda b: crashed(b).update(code="sha256:" + "0" * 64),
        "recorded from other code, values or libraries (code changed)",
    ),
    "a crash with parameters of no script": (
        lambda b: crashed(b).update(parameters={"nonsense": "x"}),
        "parameter changed (nonsense: x -> not set)",
    ),
    "a crash of more processes": (
        lambda b: crashed(b).update(ranks=7),
        "parameter changed (ranks: 7 -> 1)",
    ),
    "parameters without end": (
        lambda b: crashed(b).update(parameters={"steps": ["x" * 100] * 200}),
        "variants.default.parameters: it takes 20811 characters, and 10000 are the most",
    ),
    "an environment without end": (
        lambda b: variant(b).update(environment={f"A{n}": "x" * 100 for n in range(200)}),
        "variants.default.environment: it takes 22290 characters, and 10000 are the most",
    ),
    "a success with an error": (
        lambda b: variant(b).update(error="CUDA out of memory"),
        "outcome 'ok' with an error",
    ),
    "a time that ran out at once": (
        lambda b: [
            crashed(b).update(outcome="timed out"),
            campaign(b).update(finished=campaign(b)["started"]),
        ],
        "variant default: timed out after 600 s, and the session lasted 0 s",
    ),
    "more than the machine at the start": (
        lambda b: variant(b)["runs"][1].update(baseline_memory=10**18),
        "baseline_memory is 1000000000000000000 B, more than the machine's",
    ),
    "an exabyte where the memory is unknown": (
        lambda b: [
            b["machine"].update(memory_bytes=None),
            variant(b)["runs"][0]["cells"]["add"].update(process_memory=10**18, allocated=10**18),
        ],
        "add.process_memory is 1000000000000000000 B, more than the machine's",
    ),
    "a device of a processor": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(reserved=2**20, device_memory=2**20),
        "it holds device_memory, reserved, which nothing reads on this machine",
    ),
    "an allocator that nobody asked": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(allocated=2**20, allocated_peak=2**20),
        "it holds allocated, allocated_peak, which nothing reads on this machine",
    ),
    "more allocated than reserved": (
        lambda b: variant(on_a_gpu(b))["runs"][0]["cells"]["add"].update(
            allocated_peak=2**30, reserved_peak=1
        ),
        "add.allocated_peak is 1073741824 B, more than its reserved_peak of 1 B, which it is part of",
    ),
    "more reserved than the device holds": (
        lambda b: variant(on_a_gpu(b))["runs"][0]["cells"]["add"].update(reserved=2**30, device_memory=1),
        "add.reserved is 1073741824 B, more than its device_memory of 1 B, which it is part of",
    ),
    "a peak of the device below its end": (
        lambda b: variant(on_a_gpu(b))["runs"][0]["cells"]["add"].update(
            device_memory=2**30, device_memory_peak=1
        ),
        "add.device_memory_peak is 1 B, less than the 1073741824 B held at its end",
    ),
    "more than one of eight devices": (
        lambda b: [
            on_a_gpu(b)["machine"]["accelerator"].update(count=8),
            variant(b)["runs"][0]["cells"]["add"].update(allocated_peak=200 * 2**30),
        ],
        "add.allocated_peak is 214748364800 B, more than the machine's 150754820096 B",
    ),
    "a GPU without a torch for it": (
        lambda b: campaign(on_a_gpu(b))["packages"].update(torch="2.13.0+cpu"),
        "it ran on torch 2.13.0+cpu, which uses no accelerator of the kind cuda",
    ),
    "a GPU with a torch for another": (
        lambda b: campaign(on_a_gpu(b))["packages"].update(torch="2.13.0+rocm6.4"),
        "it ran on torch 2.13.0+rocm6.4, which uses no accelerator of the kind cuda",
    ),
    "a GPU of far off": (
        lambda b: on_a_gpu(b)["machine"]["accelerator"].update(name="NVIDIA ZZ9", compute_capability="99.9"),
        "has the compute capability 99.9, as no GPU has",
    ),
    "a campaign that is called by another start": (
        lambda b: campaign(b).update(started="2026-01-02T03:04:04Z"),
        "its name does not begin with its start (20260102T030404Z-...)",
    ),
    "a history of another day": (
        lambda b: b["records"][0].update(history=[own_line(b) | {"date": "2026-01-03"}]),
        "is of 2026-01-03, and the campaign of 2026-01-02",
    ),
    "a history of a campaign that ended before it began": (
        lambda b: b["records"][0].update(history=[own_line(b) | {"campaign": "zzz"}]),
        "the history of campaign zzz is of 2026-01-02, and by its name it did not begin in the week before",
    ),
    "a history of a campaign of months": (
        lambda b: b["records"][0].update(history=[own_line(b) | {"campaign": "20251101T000000Z-dead"}]),
        "is of 2026-01-02, and by its name it did not begin in the week before",
    ),
    "a history of the first day of all": (
        lambda b: b["records"][0].update(history=[own_line(b) | {"date": "0001-01-01", "campaign": "a"}]),
        "the history of campaign a is of 0001-01-01, when nothing was measured",
    ),
    "a record of nothing": (
        lambda b: b["records"][0].update(variants={}, campaigns={}, history=[]),
        "variants: Dictionary should have at least 1 item",
    ),
    "a history of other values": (
        lambda b: b["records"][0].update(history=[own_line(b) | {"medians": {"default": {"total": 21.0}}}]),
        "says that total of variant default is 21, and its runs do not",
    ),
    "a campaign twice in the history": (
        lambda b: b["records"][0].update(history=[own_line(b), own_line(b)]),
        "the history of campaign 20260102T030405Z-test stands there twice",
    ),
    "a history of what crashed": (
        lambda b: [crashed(b), b["records"][0].update(history=[own_line(b)])],
        "says that total of variant default is 7, and its runs do not",
    ),
    "a place of 4000 digits": (
        lambda b: variant(b)["runs"][0].update(place=10**3999),
        "place: Input should be less than or equal to 1000000",
    ),
    "a device on fire": (
        lambda b: campaign(b)["state"].update(temperature_celsius=10**9),
        "temperature_celsius.constrained-int: Input should be less than or equal to 200",
    ),
    "a device with a power station": (
        lambda b: campaign(b)["state"].update(power_limit_watts=10**9),
        "Input should be less than or equal to 20000",
    ),
    "a device with a power station, described": (
        lambda b: on_a_gpu(b)["machine"]["accelerator"].update(power_limit_watts=1e9),
        "Input should be less than or equal to 20000",
    ),
    "a driver of no device": (
        lambda b: campaign(b)["state"].update(driver="580.1", clocks_mhz={"sm": 1980}),
        "it read driver, clocks_mhz of a device, and cpu-test--ada has none",
    ),
    "a clock of a petahertz": (
        lambda b: campaign(b)["state"].update(clocks_mhz={"sm": 10**9}),
        "Input should be less than or equal to 100000",
    ),
    "a process of 4000 digits": (
        lambda b: campaign(b)["state"].update(foreign_processes=[10**3999], shared=True),
        "foreign_processes.0: Input should be less than or equal to",
    ),
    "a machine with the name of a device": (
        lambda b: renamed(b, "aux.1--ada", "Ada"),
        "name: Windows keeps the name aux for a device",
    ),
    "a machine with the name of another device": (
        lambda b: renamed(b, "lpt1.x86--ada", "Ada"),
        "name: Windows keeps the name lpt1 for a device",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_damage_is_refused_with_the_reason(project: Project, tmp_path: Path, damage: str) -> None:
    bundle = bundle_of()
    apply, reason = DAMAGES[damage]
    apply(bundle)
    assert reason in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


def test_a_variant_that_crashed_as_the_script_stands_is_taken(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    crashed(bundle)
    assert import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))]).written


# What a script says that it holds on the device.
HOLDING = SCRIPT.replace('total = { unit = "count" }', 'total = { unit = "B", memory = "device" }')


@pytest.mark.parametrize(
    ("gib", "peak", "told"), [(23, 12, False), (24, 12, True), (48, 12, True), (8, 4, True), (8, 5, False)]
)
def test_too_little_memory_where_another_machine_measured_the_same_with_no_more_is_a_warning(
    project: Project, tmp_path: Path, gib: int, peak: int, told: bool
) -> None:
    first = bundle_of()
    for run in variant(first)["runs"]:
        run["cells"]["add"]["process_memory_peak"] = peak * 2**30
    import_bundles(project, [write(tmp_path / "one.json", packed(first))])
    bundle = renamed(bundle_of(), OTHER, "Bob")
    bundle["machine"]["memory_bytes"] = gib * 2**30
    crashed(bundle)["outcome"] = "out of memory"
    import_bundles(project, [write(tmp_path / "other.json", packed(bundle))])
    warned = [one.what for one in check_project(Project(project.root)).warnings if "memory" in one.what]
    what = f"variant default: out of memory, and {GUEST} measured it with no more"
    assert warned == ([what] if told else [])


def test_what_a_gpu_reads_is_taken(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", HOLDING)
    bundle = on_a_gpu(bundle_of(HOLDING))
    campaign(bundle)["packages"]["torch"] = "2.13.0+cu130"
    for run in variant(bundle)["runs"]:
        # What was reserved for a moment, no sample of the device need have seen.
        run["cells"]["add"] |= {"allocated": 5, "allocated_peak": 6, "reserved": 7, "reserved_peak": 9}
        run["cells"]["add"] |= {"device_memory": 8, "device_memory_peak": 8}
    bundle["records"][0]["history"] = [own_line(bundle)]
    assert import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))]).written


def test_a_device_that_others_use_too_may_hold_less_than_before(project: Project, tmp_path: Path) -> None:
    bundle = on_a_gpu(bundle_of())
    campaign(bundle)["state"].update(foreign_processes=[7], shared=True)
    variant(bundle)["runs"][0]["cells"]["add"] |= {"reserved": 2**30, "device_memory": 2**29}
    assert import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))]).written


def test_bytes_of_a_device_that_nothing_used_are_not_believed(project: Project, tmp_path: Path) -> None:
    needing = with_table('[tool.benchbook]\nneeds = ["accelerator"]', HOLDING)
    write(project.snippets / "sums/add.py", needing)
    said = refusal(project, write(tmp_path / "bundle.json", packed(on_a_gpu(bundle_of(needing)))))
    assert "run 0 used no memory of the device, in no cell" in said


@pytest.mark.parametrize("script", [HOLDING, with_table('[tool.benchbook]\nneeds = ["accelerator"]')])
def test_a_run_that_needs_or_counts_a_device_has_used_it(
    project: Project, tmp_path: Path, script: str
) -> None:
    write(project.snippets / "sums/add.py", script)
    said = refusal(project, write(tmp_path / "bundle.json", packed(on_a_gpu(bundle_of(script)))))
    assert "run 0 used no memory of the device, in no cell" in said


def test_a_script_that_runs_anywhere_may_leave_the_device_alone(project: Project, tmp_path: Path) -> None:
    path = write(tmp_path / "bundle.json", packed(on_a_gpu(bundle_of())))
    assert import_bundles(project, [path]).written


@pytest.mark.parametrize(("read", "taken"), [(8, True), (3, False)])
def test_a_peak_is_no_more_than_what_was_read_of_the_device(
    project: Project, tmp_path: Path, read: int, taken: bool
) -> None:
    script = HOLDING.replace("total", "peak_total")
    write(project.snippets / "sums/add.py", script)
    bundle = on_a_gpu(bundle_of(script))
    for run in variant(bundle)["runs"]:
        run["cells"]["add"] |= {
            "allocated": 1,
            "allocated_peak": read,
            "reserved": read,
            "reserved_peak": read,
        }
    line = line_of("2026-01-02", peak_total=7.0) | {"campaign": variant(bundle)["campaign"]}
    bundle["records"][0]["history"] = [line]
    path = write(tmp_path / "bundle.json", packed(bundle))
    if taken:
        assert import_bundles(project, [path]).written
    else:
        said = "peak_total is 6 B, more than the 3 B that were read of the device"
        assert said in refusal(project, path)


@pytest.mark.parametrize(("total", "taken"), [(150, True), (250, False)])
@pytest.mark.parametrize("on_gpu", [False, True], ids=["cpu", "gpu"])
def test_tensors_take_no_more_than_twice_what_the_process_held(
    project: Project, tmp_path: Path, total: int, taken: bool, on_gpu: bool
) -> None:
    write(project.snippets / "sums/add.py", HOLDING)
    bundle = on_a_gpu(bundle_of(HOLDING)) if on_gpu else bundle_of(HOLDING)
    meter = "allocated" if on_gpu else "process_memory"
    for run in variant(bundle)["runs"]:
        run["metrics"]["total"] = total
        run["cells"]["add"] |= {meter: 1, f"{meter}_peak": 100}
    line = line_of("2026-01-02", total=float(total)) | {"campaign": variant(bundle)["campaign"]}
    bundle["records"][0]["history"] = [line]
    path = write(tmp_path / "bundle.json", packed(bundle))
    if taken:
        assert import_bundles(project, [path]).written
    else:
        assert "total is 250 B, and the process held 100 B at most" in refusal(project, path)


def test_a_peak_that_is_below_what_the_run_says_was_held_at_once_is_refused(
    project: Project, tmp_path: Path
) -> None:
    more = 'total = { unit = "B", memory = "device" }\n# peak = { unit = "B", memory = "device" }'
    phase = '# peak_step = { unit = "B", memory = "device" }'
    script = SCRIPT.replace('total = { unit = "count" }', f"{more}\n{phase}")
    write(project.snippets / "sums/add.py", script)
    bundle = bundle_of(script)
    for run in variant(bundle)["runs"]:
        run["metrics"] |= {"peak": 1, "peak_step": 5}
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert "peak is 1 B, less than the 5 B held at once (peak_step)" in refusal(project, path)


def test_a_peak_of_nothing_is_refused_where_a_cell_allocated_memory(project: Project, tmp_path: Path) -> None:
    script = HOLDING.replace("total", "peak_total")
    write(project.snippets / "sums/add.py", script)
    bundle = on_a_gpu(bundle_of(script))
    for run in variant(bundle)["runs"]:
        run["metrics"]["peak_total"] = 0
        run["cells"]["add"] |= {"allocated": 1, "allocated_peak": 8, "reserved": 8, "reserved_peak": 8}
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert "peak_total is 0 B, and a cell of its run allocated 8 B of the device" in refusal(project, path)


@pytest.mark.parametrize("needs", ["accelerator", "cuda"])
def test_a_machine_that_cannot_run_a_script_has_no_record_of_it(
    project: Project, tmp_path: Path, needs: str
) -> None:
    script = with_table(f'[tool.benchbook]\nneeds = ["{needs}"]')
    write(project.snippets / "sums/add.py", script)
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle_of(script))))
    assert f"its script needs {needs}, which cpu-test--ada is not" in said


def other_ranks_of(run: dict[str, Any]) -> list[dict[str, Any]]:
    """What a second process of a run yielded: the same."""
    return [{name: copy.deepcopy(run[name]) for name in ("metrics", "cells", "baseline_memory")}]


RANKS: dict[str, tuple[Damage, str]] = {
    "a longer time": (
        lambda rank: rank["cells"]["add"].update(seconds=1e8),
        "its runs took 300000000 s, and it lasted 60",
    ),
    "no metrics": (lambda rank: rank.update(metrics={}), "its metrics differ from the declared ones (total)"),
    "less than nothing": (
        lambda rank: rank["metrics"].update(total=-3),
        "total is -3 count, and there is no less than nothing of it",
    ),
    "metrics of no script": (
        lambda rank: rank["metrics"].update(whatever=1),
        "its metrics differ from the declared ones (whatever)",
    ),
    "more memory than there is": (
        lambda rank: rank.update(baseline_memory=10**18),
        "baseline_memory is 1000000000000000000 B, more than the machine's",
    ),
}


@pytest.mark.parametrize("damage", [None, *RANKS])
def test_other_processes_of_a_run_are_held_to_the_same(
    project: Project, tmp_path: Path, damage: str | None
) -> None:
    script = with_table("[tool.benchbook]\nranks = 2")
    write(project.snippets / "sums/add.py", script)
    bundle = bundle_of(script, ranks=1)
    variant(bundle)["ranks"] = 2
    for run in variant(bundle)["runs"]:
        run["other_ranks"] = other_ranks_of(run)
        if damage is not None:
            RANKS[damage][0](run["other_ranks"][0])
    path = write(tmp_path / "bundle.json", packed(bundle))
    if damage is None:
        assert import_bundles(project, [path]).written
    else:
        assert RANKS[damage][1] in refusal(project, path)


def test_times_that_never_scatter_are_not_believed(project: Project, tmp_path: Path) -> None:
    timed = SCRIPT.replace('"count"', '"s"')
    write(project.snippets / "sums/add.py", timed)
    bundle = bundle_of(timed)
    for run in variant(bundle)["runs"]:
        run["metrics"]["total"] = 1.5
    assert "is the same in 3 runs" in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


def test_seeds_without_end_are_refused(project: Project, tmp_path: Path) -> None:
    seeded = SCRIPT.replace('{ unit = "count" }', '{ unit = "count", seeds = true }')
    write(project.snippets / "sums/add.py", seeded)
    bundle = bundle_of(seeded)
    for run in variant(bundle)["runs"]:
        run["metrics"]["total"] = list(range(101))
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "total has 101 seeds, and 100 are the most that a script takes" in said


@pytest.mark.parametrize(
    ("seconds", "what"),
    [
        (1e-9, "total is 1e-09 s, less than any clock tells"),
        (0.5, "total is 0.5 s, and all cells of its run took 0.132 s"),
    ],
)
def test_a_time_that_no_clock_tells_or_that_is_longer_than_its_run_is_not_believed(
    project: Project, tmp_path: Path, seconds: float, what: str
) -> None:
    timed = SCRIPT.replace('"count"', '"s"')
    write(project.snippets / "sums/add.py", timed)
    bundle = bundle_of(timed)
    variant(bundle)["runs"][1]["metrics"]["total"] = seconds
    assert what in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


def test_the_timed_blocks_of_a_run_are_not_longer_than_it_together(project: Project, tmp_path: Path) -> None:
    timed = SCRIPT.replace('"count" }', '"s", blocks = true }')
    write(project.snippets / "sums/add.py", timed)
    bundle = bundle_of(timed)
    for run in variant(bundle)["runs"]:
        took = run["metrics"]["total"]
        run["blocks"] = {"total": [took / 2, took, 1.5 * took]}
    variant(bundle)["runs"][1]["blocks"] = {"total": [0.065 + n / 1000 for n in range(11)]}
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "total is 0.77 s, and all cells of its run took 0.132 s" in said


@pytest.mark.parametrize(
    ("unit", "value", "on_gpu", "believed"),
    [
        ("samples/s", 1e12, False, False),
        ("s", 1e-6, False, False),
        ("samples/s", 1e9, True, False),
        ("samples/s", 1e5, True, True),
        ("samples/s", 1e3, False, True),
    ],
)
@pytest.mark.parametrize("alike", [False, True])
def test_no_machine_is_so_much_faster_than_the_reference_machine(
    tmp_path: Path, unit: str, value: float, on_gpu: bool, believed: bool, alike: bool
) -> None:
    """And none of the same processor comes near that."""
    script = SCRIPT.replace('"count"', f'"{unit}"')
    project = make_project(tmp_path / "checkout", script)
    bundle = bundle_of(script)
    if alike:
        cpu = MACHINE_JSON["cpu"] | {"model": "A processor"}
        write(project.records / MACHINE / "machine.json", json.dumps(MACHINE_JSON | {"cpu": cpu}))
        bundle["machine"]["cpu"] = cpu
        believed = believed and on_gpu
    if on_gpu:
        on_a_gpu(bundle)
    runs = variant(bundle)["runs"]
    for run in runs:
        run["cells"]["add"]["seconds"] *= 1.01
    while len(runs) < 8:
        runs.append(copy.deepcopy(runs[-1]) | {"place": len(runs)})
        runs[-1]["cells"]["add"]["seconds"] += 0.01
    # On the reference machine it is 6, 7 and 8.
    for place, run in enumerate(runs):
        run["metrics"]["total"] = 7 * value * (1 + place / 1000)
    path = write(tmp_path / "bundle.json", packed(bundle))
    if believed:
        assert import_bundles(project, [path]).written
        return
    with pytest.raises(BenchbookError, match=r"total is .* times as good as on cpu-test, and none is"):
        import_bundles(project, [path])


def test_a_run_is_not_shorter_than_its_work_takes_by_the_data_sheet(project: Project, tmp_path: Path) -> None:
    script = with_table("[tool.benchbook.work]\nbf16 = 1e18\nbytes = 1e9")
    write(project.snippets / "sums/add.py", script)
    said = refusal(project, write(tmp_path / "bundle.json", packed(on_a_gpu(bundle_of(script)))))
    assert "a run took 0.102 s, and H200 needs 101.1 s at least for its work" in said


# What Ada's device is, how many there are, what its script has to do, and what it says that it did each second.
SPEEDS: dict[str, tuple[dict[str, Any], str, str, float, str | None]] = {
    "of one process, on one of eight": (
        {"count": 8},
        "",
        "TFLOP/s",
        2000.0,
        "total is 2000 TFLOP/s, more than the 1979 of H200's data sheet",
    ),
    "of two processes": ({"count": 8}, "[tool.benchbook]\nranks = 2", "TFLOP/s", 2000.0, None),
    "of two processes on one": (
        {},
        "[tool.benchbook]\nranks = 2",
        "TFLOP/s",
        2000.0,
        "more than the 1979 of H200's data sheet",
    ),
    "in a slow format": (
        {},
        "[tool.benchbook.work]\nfp32 = 1e9\nbf16 = 0\nseconds = 1",
        "TFLOP/s",
        300.0,
        "total is 300 TFLOP/s, more than the 67 of H200's data sheet",
    ),
    "in two formats": ({}, "[tool.benchbook.work]\nfp32 = 1e9\nbf16 = 1e9", "TFLOP/s", 300.0, None),
    "without a data sheet": (
        {"name": "NVIDIA ZZ9"},
        "",
        "TFLOP/s",
        30000.0,
        "more than the 2.615e+04 of ten times the fastest GPU's data sheet",
    ),
    "without a data sheet, and possible": ({"name": "NVIDIA ZZ9"}, "", "TFLOP/s", 20000.0, None),
    "samples of less than an operation": (
        {},
        "",
        "samples/s",
        9e20,
        "total is 9e+20 samples/s, more than the 1.979e+15 of H200's data sheet",
    ),
    "samples": ({}, "", "samples/s", 9e9, None),
    "operations of the whole run": (
        {"count": 8},
        "",
        "TFLOP",
        300.0,
        "total is 300 TFLOP, more than the 201.9 that H200 does in the 0.102 s of its run by its data sheet",
    ),
    "operations of two processes": ({"count": 8}, "[tool.benchbook]\nranks = 2", "TFLOP", 300.0, None),
    "operations without a data sheet": ({"name": "NVIDIA ZZ9"}, "", "TFLOP", 300.0, None),
}


@pytest.mark.parametrize("speed", SPEEDS)
def test_a_run_is_no_faster_than_the_devices_that_it_has(
    project: Project, tmp_path: Path, speed: str
) -> None:
    device, table, unit, value, reason = SPEEDS[speed]
    script = with_table(table, SCRIPT.replace('"count"', f'"{unit}"'))
    write(project.snippets / "sums/add.py", script)
    bundle = on_a_gpu(bundle_of(script, ranks=1))
    bundle["machine"]["accelerator"] |= device
    called = device.get("name", "NVIDIA H200").lower().replace(" ", "-")
    many = f"-x{device['count']}" if "count" in device else ""
    renamed(bundle, f"{called}-141gb{many}--ada", "Ada")
    runs = variant(bundle)["runs"]
    while len(runs) < 8:
        runs.append(copy.deepcopy(runs[-1]) | {"place": len(runs)})
        runs[-1]["cells"]["add"]["seconds"] += 0.01
    for place, run in enumerate(runs):
        run["metrics"]["total"] = value - place * value / 1e6
        if "ranks" in table:
            variant(bundle)["ranks"] = 2
            run["other_ranks"] = other_ranks_of(run)
    path = write(tmp_path / "bundle.json", packed(bundle))
    if reason is None:
        assert import_bundles(project, [path]).written
    else:
        assert reason in refusal(project, path)


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ({"count": 8}, "H200 needs 101.1 s at least for its work"),
        ({"name": "NVIDIA ZZ9"}, "ten times the fastest GPU needs 7.649 s at least for its work"),
    ],
)
def test_the_work_of_one_process_is_done_by_one_device_of_whatever_model(
    project: Project, tmp_path: Path, device: dict[str, Any], said: str
) -> None:
    script = with_table("[tool.benchbook.work]\nbf16 = 1e18\nbytes = 1e9")
    write(project.snippets / "sums/add.py", script)
    bundle = on_a_gpu(bundle_of(script))
    bundle["machine"]["accelerator"] |= device
    renamed(bundle, "gpu-of-ada--ada", "Ada")
    assert said in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


def test_times_that_are_those_of_another_machine_are_refused(project: Project, tmp_path: Path) -> None:
    measured = bundle_of()
    for run in variant(measured)["runs"]:
        for cell in run["cells"].values():
            cell["seconds"] *= 1.01234567
    import_bundles(project, [write(tmp_path / "bundle.json", packed(measured))])
    copied = renamed(copy.deepcopy(measured), OTHER, "Bob")
    for run in variant(copied)["runs"]:
        run["cells"]["add"]["seconds"] *= 1 + 1e-13
    path = write(tmp_path / "copied.json", packed(copied))
    with pytest.raises(BenchbookError, match="variant default: its times are those of cpu-test--ada"):
        import_bundles(project, [path])
    # Half of each is no measurement either.
    for run in variant(copied)["runs"]:
        run["cells"]["add"]["seconds"] /= 2
    with pytest.raises(BenchbookError, match="its times, but for one factor, are those of cpu-test--ada"):
        import_bundles(project, [write(path, packed(copied))])
    # Nor is a copy whose first run was altered.
    for place, run in enumerate(variant(copied)["runs"]):
        run["cells"]["add"]["seconds"] *= 2 if place else 2.01
    with pytest.raises(BenchbookError, match="its times in part are those of cpu-test--ada"):
        import_bundles(project, [write(path, packed(copied))])
    for place, run in enumerate(variant(copied)["runs"]):
        for number, cell in enumerate(run["cells"].values()):
            cell["seconds"] *= 1.01 + place / 1000 + number / 100
    assert import_bundles(project, [write(path, packed(copied))]).written
    # What is written past the import, the check finds.
    table = json.loads(project.record_path(GUEST, "sums/add.py").read_text("utf-8"))
    write(
        project.record_path(OTHER, "sums/add.py"),
        json.dumps(renamed({"machine": {}, "records": [table]}, OTHER, "Bob")["records"][0]),
    )
    problems = [str(problem) for problem in check_project(Project(project.root)).problems]
    assert any(f"{OTHER}/sums/add.json" in one and "its times are those of" in one for one in problems)


def test_the_times_of_one_script_are_not_those_of_another_in_a_bundle(
    project: Project, tmp_path: Path
) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    bundle = bundle_of()
    for place, run in enumerate(variant(bundle)["runs"]):
        for number, cell in enumerate(run["cells"].values()):
            cell["seconds"] *= 1.01234567 + place / 97 + number / 89
    beside = json.dumps(bundle["records"][0]).replace("Z-test", "Z-more").replace("add.py", "sub.py")
    bundle["records"].append(json.loads(beside))
    path = write(tmp_path / "bundle.json", packed(bundle))
    with pytest.raises(
        BenchbookError, match=r"its times of cells are those of sums/add\.py on cpu-test--ada"
    ):
        import_bundles(project, [path])


def test_runs_that_are_those_of_another_variant_are_refused(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    bundle = bundle_of(SWEEP)
    (record,) = bundle["records"]
    for run, other in zip(
        *(record["variants"][name]["runs"] for name in ("steps=1", "steps=2")), strict=True
    ):
        other["cells"] = copy.deepcopy(run["cells"])
    said = "variant steps=2: the times of its run in place 3 are those in place 0 of variant steps=1"
    assert said in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    copied = record["variants"].pop("steps=2")
    import_bundles(project, [write(tmp_path / "first.json", packed(bundle))])
    record["variants"] = {"steps=2": copied}
    with pytest.raises(BenchbookError, match=said):
        import_bundles(project, [write(tmp_path / "second.json", packed(bundle))], replacing=True)
    # What is written past the import, the check finds.
    path = project.record_path(GUEST, "sums/add.py")
    table = json.loads(path.read_text("utf-8"))
    table["variants"]["steps=2"] = copied
    write(path, json.dumps(table))
    assert any(said in str(problem) for problem in check_project(Project(project.root)).problems)


def test_a_variant_that_joins_has_no_runs_of_another_with_one_cell_altered(
    project: Project, tmp_path: Path
) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    bundle = bundle_of(SWEEP)
    (record,) = bundle["records"]
    first, second = (record["variants"][name] for name in ("steps=1", "steps=2"))
    for place, (run, other) in enumerate(zip(first["runs"], second["runs"], strict=True)):
        run["cells"]["add"]["seconds"] *= 1.01234567 + place / 97
        other["cells"] = copy.deepcopy(run["cells"])
        other["cells"]["parameters"]["seconds"] *= 1.5 + place / 89
    said = "variant steps=2: its times in part are those of variant steps=1"
    assert said in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    record["variants"] = {"steps=1": first}
    import_bundles(project, [write(tmp_path / "first.json", packed(bundle))])
    record["variants"] = {"steps=2": second}
    with pytest.raises(BenchbookError, match=said):
        import_bundles(project, [write(tmp_path / "second.json", packed(bundle))], replacing=True)


def test_what_is_replaced_is_not_imported_again_as_a_new_campaign(project: Project, tmp_path: Path) -> None:
    project = make_project(tmp_path / "own")
    measured = renamed(bundle_of(), MACHINE, None)
    said = f"variant default: its times are those of campaign {variant(measured)['campaign']}"
    again = later(copy.deepcopy(measured))
    variant(again)["runs"] = variant(measured)["runs"]
    path = write(tmp_path / "again.json", packed(again))
    with pytest.raises(BenchbookError, match=said):
        import_bundles(project, [path], replacing=True, reviewed=True)
    write(path, packed(later(measured)))
    assert import_bundles(project, [path], replacing=True, reviewed=True).replaced


def test_variants_that_ran_in_the_same_places_are_refused(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    bundle = bundle_of(SWEEP)
    for run in bundle["records"][0]["variants"]["steps=2"]["runs"]:
        run["place"] -= 3
    said = "variant steps=2: ran in place 0 of campaign 20260102T030405Z-test, as steps=1 did"
    assert said in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


def test_two_runs_may_agree_in_bytes_and_in_a_few_times(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    for run in variant(bundle)["runs"][:2]:
        run["cells"] = {
            "parameters": {"seconds": 0.00005},
            "add": {"seconds": 0.25, "process_memory": 2**20, "process_memory_peak": 2**20},
            "checks": {"seconds": 0.001},
        }
    assert import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))]).written


def called(day: str) -> str:
    """A campaign of that day."""
    return f"{day.replace('-', '')}T030405Z-test"


def later(bundle: dict[str, Any], day: str = "2026-01-03") -> dict[str, Any]:
    """The bundle as of another campaign, whose times are about half of those."""
    (name,) = bundle["records"][0]["campaigns"]
    moments = {"started": f"{day}T03:04:05Z", "finished": f"{day}T03:05:05Z"}
    bundle["records"][0]["campaigns"] = {called(day): bundle["records"][0]["campaigns"][name] | moments}
    variant(bundle)["campaign"] = called(day)
    for place, run in enumerate(variant(bundle)["runs"]):
        run["cells"]["add"]["seconds"] /= 2 + place / 1000
    return bundle


def test_what_was_measured_is_replaced_only_if_that_is_meant_and_it_is_said(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    record = project.record_path(GUEST, "sums/add.py")
    before = record.read_bytes()
    path = write(tmp_path / "later.json", packed(later(bundle_of())))
    said = f"sums/add.py on {GUEST}: variant default, measured 2026-01-02, by 2026-01-03"
    with pytest.raises(BenchbookError, match=f"it would replace {said}; pass --replace if that is meant"):
        import_bundles(project, [path])
    assert record.read_bytes() == before
    assert import_bundles(project, [path], replacing=True).replaced == (said,)
    assert record.read_bytes() != before


def test_a_record_joins_a_machine_that_is_here_only_if_the_machine_is_named_and_it_is_said(
    project: Project, tmp_path: Path
) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    further = later(bundle_of())
    further["records"][0]["script"] = "sums/sub.py"
    path = write(tmp_path / "further.json", packed(further))
    line = f"sums/sub.py on {GUEST}, a machine of Ada that is here already"
    refused = benchbook(project.root, "import", str(path))
    assert refused.returncode == 1
    assert f"it would add {line}; pass `--machine {GUEST}` if that is meant" in refused.stderr
    assert not project.record_path(GUEST, "sums/sub.py").exists()
    done = benchbook(project.root, "import", "--machine", GUEST, str(path))
    assert (done.returncode, f"added {line}\n" in done.stdout) == (0, True)


def test_bundles_of_a_new_machine_need_no_name_of_it(project: Project, tmp_path: Path) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    assert import_bundles(project, [path]).added == ()
    # Nor does what is here already, as it is.
    assert import_bundles(project, [path]).added == ()


def test_an_older_campaign_never_replaces_a_later_one(project: Project, tmp_path: Path) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(later(bundle_of(), "2026-01-05")))])
    path = write(tmp_path / "older.json", packed(later(bundle_of(), "2026-01-04")))
    older = json.loads(path.read_text("utf-8"))
    variant(older)["runs"][0]["cells"]["add"]["seconds"] /= 3
    for replacing in (False, True):
        with pytest.raises(
            BenchbookError, match=r"was measured 2026-01-04, and is here as measured 2026-01-05"
        ):
            import_bundles(project, [write(path, packed(older))], replacing=replacing)


def test_another_session_under_the_name_of_one_that_is_here_is_refused(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    record = project.record_path(GUEST, "sums/add.py")
    before = record.read_bytes()
    other = bundle_of()
    campaign(other).update(packages={"python": "3.12.0"})
    for replacing in (False, True):
        with pytest.raises(BenchbookError, match="is here already, of another session"):
            import_bundles(project, [write(tmp_path / "other.json", packed(other))], replacing=replacing)
    assert record.read_bytes() == before


def test_variants_of_two_campaigns_of_a_timed_script_are_refused(project: Project, tmp_path: Path) -> None:
    timed = SWEEP.replace('"count"', '"s"')
    write(project.snippets / "sums/add.py", timed)

    def of(kept: str, name: str, first: int = 0) -> Path:
        bundle = bundle_of(timed)
        record = bundle["records"][0]
        ((_, session),) = record["campaigns"].items()
        called = f"20260102T030405Z-{name}"
        record["campaigns"] = {called: session}
        record["variants"] = {kept: record["variants"][kept] | {"campaign": called}}
        runs = record["variants"][kept]["runs"]
        runs += [json.loads(json.dumps(runs[place % 3])) for place in range(5)]
        for place, run in enumerate(runs):
            run["place"] = first + place
            run["metrics"]["total"] = 0.1 + (first + place) / 1000
            for meters in run["cells"].values():
                meters["seconds"] = 0.1 + (first + place) / 100
        return write(tmp_path / f"{name}.json", packed(bundle))

    import_bundles(project, [of("steps=1", "one")])
    with pytest.raises(BenchbookError, match="its variants would be of 2 campaigns"):
        import_bundles(project, [of("steps=2", "two", 8)], replacing=True)
    import_bundles(project, [of("steps=2", "one", 8)], replacing=True)


@pytest.mark.parametrize(("value", "kind"), [([6, 7], "a series"), (True, "yes or no")])
def test_another_kind_of_value_where_other_machines_have_one_number_is_refused(
    project: Project, tmp_path: Path, value: Any, kind: str
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    other = renamed(later(bundle_of()), OTHER, "Bob")
    for run in variant(other)["runs"]:
        run["metrics"]["total"] = value
    path = write(tmp_path / "other.json", packed(other))
    with pytest.raises(BenchbookError, match=f"total is {kind}, and one number on other machines"):
        import_bundles(project, [path])


def test_a_count_that_is_yes_in_one_run_is_refused(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    variant(bundle)["runs"][0]["metrics"]["total"] = True
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "total is yes or no in some of its runs, and a number in others" in said


def test_a_series_where_a_page_asks_for_one_number_is_refused(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    for run in variant(bundle)["runs"]:
        run["metrics"]["total"] = [6, 7]
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "bundle.json:1: with it, docs/en/sums.md:7: `sums/add.py#total` is a series of 2" in said


def test_one_number_where_a_page_asks_for_an_item_is_refused(project: Project, tmp_path: Path) -> None:
    edit(project.docs / "en/sums.md", "#total`", "#total[-1]`")
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle_of())))
    assert "docs/en/sums.md:7: `total` is one number, not a series" in said


REGION = SCRIPT.replace("total = sum", "# region adding\ntotal = sum", 1).replace(
    "print(", "# endregion\nprint(", 1
)


def test_a_region_that_a_page_shows_was_reached(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", REGION)
    edit(project.docs / "en/sums.md", "sums/add.py#add\n", "sums/add.py#adding\n")
    bundle = bundle_of(REGION)
    path = tmp_path / "bundle.json"
    said = "with it, docs/en/sums.md:9: the region `adding` of `sums/add.py` was not reached in default"
    assert said in refusal(project, write(path, packed(bundle)))
    variant(bundle)["regions"] = ["adding"]
    import_bundles(project, [write(path, packed(bundle))])
    again = later(bundle_of(REGION))
    with pytest.raises(BenchbookError, match=said):
        import_bundles(project, [write(path, packed(again))], replacing=True)


def test_the_first_variants_may_come_in_before_the_one_that_reaches_a_region(
    project: Project, tmp_path: Path
) -> None:
    sweep = with_table("[tool.benchbook.matrix]\nsteps = [1, 2]", REGION)
    write(project.snippets / "sums/add.py", sweep)
    edit(project.docs / "en/sums.md", "sums/add.py#add\n", "sums/add.py#adding\n")
    bundle = bundle_of(sweep)
    del bundle["records"][0]["variants"]["steps=2"]
    assert import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))]).written


def timed_eight_times(script: str, day: str, *kept: str) -> dict[str, Any]:
    """What Ada hands in of some variants of a script whose times are compared, by a campaign of that day."""
    bundle = bundle_of(script)
    (record,) = bundle["records"]
    held = campaign(bundle) | {"started": f"{day}T03:04:05Z", "finished": f"{day}T03:05:05Z"}
    record["campaigns"] = {called(day): held}
    record["variants"] = {name: record["variants"][name] | {"campaign": called(day)} for name in kept}
    for number, each in enumerate(record["variants"].values()):
        each["runs"] = [copy.deepcopy(each["runs"][0]) for _ in range(8)]
        for place, run in enumerate(each["runs"], 8 * number):
            run["place"] = place
            run["metrics"]["total"] = (int(day[-2:]) + place / 100) / 10
            for meters in run["cells"].values():
                meters["seconds"] = int(day[-2:]) / 10 + place / 1000
    return bundle


def test_a_part_of_the_variants_that_leaves_two_campaigns_where_a_page_compares_is_refused(
    project: Project, tmp_path: Path
) -> None:
    timed = SWEEP.replace('"count"', '"s"')
    script = write(project.snippets / "sums/add.py", timed)
    ratio = "`#!value sums/add.py?steps=2#total / sums/add.py?steps=1#total x`"
    edit(project.docs / "en/sums.md", "`#!value sums/add.py#total`", ratio)
    both = packed(timed_eight_times(timed, "2026-01-03", "steps=1", "steps=2"))
    import_bundles(project, [write(tmp_path / "both.json", both)])
    changed = timed.replace("sum(range(steps))", "sum(range(steps)) + 0")
    write(script, changed)
    before = contents(project)
    path = write(tmp_path / "one.json", packed(timed_eight_times(changed, "2026-01-05", "steps=1")))
    with pytest.raises(BenchbookError, match=f"one.json:1: with it, .*two campaigns on {GUEST}"):
        import_bundles(project, [path], replacing=True, machine=GUEST)
    assert contents(project) == before
    both = packed(timed_eight_times(changed, "2026-01-05", "steps=1", "steps=2"))
    assert import_bundles(project, [write(path, both)], replacing=True, machine=GUEST).replaced


def test_the_first_variants_of_a_script_may_come_in_before_the_others_that_a_page_compares(
    project: Project, tmp_path: Path
) -> None:
    timed = SWEEP.replace('"count"', '"s"')
    write(project.snippets / "sums/add.py", timed)
    ratio = "`#!value sums/add.py?steps=2#total / sums/add.py?steps=1#total x`"
    edit(project.docs / "en/sums.md", "`#!value sums/add.py#total`", ratio)
    one = packed(timed_eight_times(timed, "2026-01-03", "steps=1"))
    assert import_bundles(project, [write(tmp_path / "one.json", one)]).written


def test_a_history_that_grows_too_long_loses_its_oldest_lines(project: Project, tmp_path: Path) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    long = later(bundle_of())
    line = {"date": "2026-01-02", "variants": [], "medians": {}}
    long["records"][0]["history"] = [line | {"campaign": f"20260102-{number}"} for number in range(1000)]
    import_bundles(project, [write(tmp_path / "long.json", packed(long))], replacing=True)
    again = later(bundle_of(), "2026-01-06")
    again["records"][0]["history"] = [line | {"campaign": called("2026-01-06"), "date": "2026-01-06"}]
    for run in variant(again)["runs"]:
        run["cells"]["add"]["seconds"] *= 1.01 + run["place"] / 97
    import_bundles(project, [write(tmp_path / "again.json", packed(again))], replacing=True)
    record = load_record(project.record_path(GUEST, "sums/add.py"))
    assert record is not None
    assert (len(record.history), record.history[-1].campaign) == (1000, called("2026-01-06"))


def test_what_is_imported_twice_replaces_nothing(project: Project, tmp_path: Path) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    import_bundles(project, [path])
    assert import_bundles(project, [path]).replaced == ()


def test_the_reference_machine_s_records_come_from_a_reviewed_commit_alone(tmp_path: Path) -> None:
    project = make_project(tmp_path / "checkout")
    path = write(tmp_path / "bundle.json", packed(renamed(later(bundle_of()), MACHINE, None)))
    with pytest.raises(BenchbookError, match="cpu-test is the reference machine"):
        import_bundles(project, [path], replacing=True)
    assert import_bundles(project, [path], replacing=True, reviewed=True).written


def committed(project: Project, day: str) -> str:
    """The checkout as a repository, whose one commit was made on that day."""
    git(project.root, "init", "--quiet")
    git(project.root, "add", "--all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_COMMITTER_DATE", f"{day}T00:00:00Z")
        git(project.root, "commit", "--quiet", "--message=All")
    return git(project.root, "rev-parse", "HEAD")


def test_a_session_is_not_older_than_the_commit_that_it_names(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    campaign(bundle)["commit"] = committed(project, "2026-01-08")
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert "started at 2026-01-02T03:04:05Z, before its commit" in refusal(project, path)
    campaign(bundle)["commit"] = "0" * 40
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert "from commit 000000000000, which is not in this history" in refusal(project, path)


def test_a_session_of_a_commit_that_is_here_is_taken(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    campaign(bundle)["commit"] = committed(project, "2026-01-01")
    assert import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))]).written


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (None, "which has no sums/add.py"),
        (SCRIPT.replace("sum(", "0 + sum("), "has other code than sums/add.py"),
    ],
    ids=["no script", "another"],
)
def test_a_session_of_a_commit_that_has_another_script_is_refused(
    project: Project, tmp_path: Path, source: str | None, what: str
) -> None:
    script = project.snippets / "sums/add.py"
    script.unlink() if source is None else write(script, source)
    bundle = bundle_of()
    campaign(bundle)["commit"] = committed(project, "2026-01-01")
    write(script, SCRIPT)
    assert what in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


def test_a_run_of_the_workflow_takes_bundles_of_its_own_machine_alone(tmp_path: Path) -> None:
    project = make_project(tmp_path / "checkout")
    committed(project, "2026-01-01")
    before = {path: path.read_bytes() for path in project.records.rglob("*.json")}
    posing = write(tmp_path / "posing.json", packed(renamed(later(bundle_of()), MACHINE, None)))
    with pytest.raises(BenchbookError, match="it is of the machine cpu-test, and cpu-other was asked for"):
        import_at(project, [posing], "HEAD", replacing=True, machine="cpu-other")
    with pytest.raises(BenchbookError, match="they would change cpu-test, the reference machine"):
        import_at(project, [posing], "HEAD", replacing=True)
    assert {path: path.read_bytes() for path in project.records.rglob("*.json")} == before
    assert import_at(project, [posing], "HEAD", replacing=True, machine=MACHINE).replaced


def test_without_the_name_of_its_machine_a_bundle_changes_nothing_that_another_measured(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    committed(project, "2026-01-01")
    path = write(tmp_path / "later.json", packed(later(bundle_of())))
    with pytest.raises(BenchbookError, match=f"they would change sums/add.py on {GUEST}"):
        import_at(project, [path], "HEAD", replacing=True)
    assert benchbook(project.root, "import", "--replace", str(path)).returncode == 2
    done = benchbook(project.root, "import", "--replace", "--machine", GUEST, str(path))
    assert (done.returncode, f"replaced sums/add.py on {GUEST}" in done.stdout) == (0, True)


def of_one_variant(name: str, day: str) -> dict[str, Any]:
    """What Ada hands in of one variant, by a campaign of that day."""
    bundle = bundle_of(SWEEP)
    (record,) = bundle["records"]
    held = campaign(bundle) | {"started": f"{day}T03:04:05Z", "finished": f"{day}T03:05:05Z"}
    record["campaigns"] = {called(day): held}
    record["variants"] = {name: record["variants"][name] | {"campaign": called(day)}}
    for place, run in enumerate(record["variants"][name]["runs"]):
        run["cells"]["add"]["seconds"] *= 1 + int(day[-2:]) / 97 + place / 89
    return bundle


@pytest.fixture
def since(project: Project, tmp_path: Path) -> tuple[Project, str]:
    """A checkout whose scripts are committed, and into which the fifth of January came since; that commit."""
    write(project.snippets / "sums/add.py", SWEEP)
    before = committed(project, "2026-01-01")
    path = write(tmp_path / "since.json", packed(of_one_variant("steps=1", "2026-01-05")))
    import_bundles(project, [path])
    return project, before


@pytest.mark.parametrize("known", ["imported", "committed"])
@pytest.mark.parametrize(("day", "variant"), [("2026-01-03", "steps=1"), ("2026-01-06", "steps=2")])
def test_what_came_in_since_a_revision_goes_by_no_import_at_it_unless_that_is_meant(
    since: tuple[Project, str], tmp_path: Path, known: str, day: str, variant: str
) -> None:
    project, revision = since
    if known == "committed":
        committed(project, "2026-01-05")
    before = contents(project)
    path = write(tmp_path / "bundle.json", packed(of_one_variant(variant, day)))
    name = f"snippets/records/{GUEST}/sums/add.json"
    with pytest.raises(BenchbookError) as caught:
        import_at(project, [path], revision)
    assert str(caught.value) == (
        f"{name}:1: is not as {revision} holds it, and would be written over; "
        "import at a commit that holds it as it is here; or pass --replace if that is meant"
    )
    assert contents(project) == before
    done = import_at(project, [path], revision, replacing=True, machine=GUEST)
    assert done.replaced == (f"{name}, which was not as {revision} holds it",)


def test_a_bundle_comes_in_twice_at_one_revision(since: tuple[Project, str], tmp_path: Path) -> None:
    project, revision = since
    before = contents(project)
    assert import_at(project, [tmp_path / "since.json"], revision).replaced == ()
    assert contents(project) == before


def test_a_description_that_was_worded_since_a_revision_stays(
    since: tuple[Project, str], tmp_path: Path
) -> None:
    project, revision = since
    description = project.records / GUEST / "machine.json"
    table = json.loads(description.read_text("utf-8")) | {"title": "A better title"}
    write(description, json.dumps(table))
    with pytest.raises(BenchbookError, match=r"machine\.json:1: is not as .* holds it"):
        import_at(project, [tmp_path / "since.json"], revision)
    assert json.loads(description.read_text("utf-8")) == table


@pytest.mark.parametrize("revision", [None, "HEAD"])
def test_of_two_imports_at_once_neither_undoes_the_other(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str | None
) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    committed(project, "2026-01-01")
    paths = [
        write(tmp_path / f"{name}.json", packed(of_one_variant(name, day)))
        for name, day in (("steps=1", "2026-01-05"), ("steps=2", "2026-01-06"))
    ]
    real, turns = bundles.write_together, iter(paths[1:])

    def second() -> None:
        """Import the other bundle as soon as nobody keeps it from that."""
        with alone(project.root, waiting=False) as free:
            pass
        if free and (path := next(turns, None)):
            import_bundles(project, [path], replacing=True, machine=GUEST)

    def write_second_first(*arguments: Any) -> None:
        second()
        real(*arguments)

    monkeypatch.setattr(bundles, "write_together", write_second_first)
    take(project, paths[0], revision)
    second()
    record = load_record(project.record_path(GUEST, "sums/add.py"))
    assert record is not None
    assert set(record.variants) == {"steps=1", "steps=2"}


def test_a_command_that_waits_for_another_says_so_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(unfinished, "UNSAID_SECONDS", 0.2)

    def wait() -> None:
        with alone(project.root):
            pass

    with alone(project.root):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.5)
        assert waiting.is_alive()
    waiting.join()
    said = f"waiting for another command that puts files in place in {project.root}\n"
    assert capfd.readouterr().err == said


@pytest.mark.parametrize("title", ["NVIDIA H200, 141 GB", "2-core CPU, 24 GB", "A processor for tests"])
def test_what_a_machine_is_called_follows_from_what_it_is_and_who_measured(
    project: Project, tmp_path: Path, title: str
) -> None:
    bundle = bundle_of()
    bundle["machine"] |= {"title": title, "short": "H200"}
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))])
    table = json.loads((project.records / GUEST / "machine.json").read_text("utf-8"))
    assert (table["title"], table["short"]) == ("2-core CPU, 24 GB (Ada)", "CPU 2-core (Ada)")


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ({"name": "Graphics", "compute_capability": "H100"}, "H100 (Ada)', and does not describe a H100"),
        ({"name": "ZZ MIG maintainers"}, "ZZ MIG maintainers (Ada)', and is not the maintainers'"),
        ({"name": "Graphics", "compute_capability": "x" * 400}, "title: String should have at most"),
    ],
)
def test_what_a_machine_is_called_on_its_import_is_what_check_lets_pass(
    project: Project, tmp_path: Path, device: dict[str, Any], said: str
) -> None:
    bundle = on_a_gpu(bundle_of())
    bundle["machine"] |= {"kind": "xpu"}
    bundle["machine"]["accelerator"] |= {"vendor": None, "compute_capability": None} | device
    renamed(bundle, "gpu-of-ada--ada", "Ada")
    assert said in refusal(project, write(tmp_path / "bundle.json", packed(bundle)))


@pytest.mark.parametrize(("capability", "is_one"), [("gfx90a", True), ("gfx<b>942", False), ("9.0", False)])
def test_a_compute_capability_of_amd_s_is_written_as_amd_writes_it(
    project: Project, tmp_path: Path, capability: str, is_one: bool
) -> None:
    bundle = on_a_gpu(bundle_of())
    bundle["machine"] |= {"kind": "rocm"}
    bundle["machine"]["accelerator"] |= {"name": "AMD Radeon Graphics", "vendor": "AMD"}
    bundle["machine"]["accelerator"] |= {"compute_capability": capability}
    renamed(bundle, "gpu-of-ada--ada", "Ada")
    path = write(tmp_path / "bundle.json", packed(bundle))
    if is_one:
        assert import_bundles(project, [path]).written
    else:
        assert f"has the compute capability {capability}, as no GPU has" in refusal(project, path)


def test_of_two_machines_of_one_owner_the_second_has_its_name_behind_its_title(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    other = renamed(later(bundle_of()), "cpu-attic--ada", "Ada")
    import_bundles(project, [write(tmp_path / "other.json", packed(other))])
    table = json.loads((project.records / "cpu-attic--ada/machine.json").read_text("utf-8"))
    assert table["title"] == "2-core CPU, 24 GB (Ada) (cpu-attic--ada)"
    assert table["short"] == "CPU 2-core (Ada) (cpu-attic--ada)"


def test_two_machines_of_one_owner_that_come_in_together_are_told_apart(
    project: Project, tmp_path: Path
) -> None:
    other = renamed(later(bundle_of()), "cpu-attic--ada", "Ada")
    paths = [write(tmp_path / f"{n}.json", packed(one)) for n, one in enumerate((bundle_of(), other))]
    import_bundles(project, paths)
    titles = {json.loads(one.read_text("utf-8"))["title"] for one in project.records.glob("*/machine.json")}
    assert titles == {"2-core CPU, 24 GB (Ada)", "2-core CPU, 24 GB (Ada) (cpu-attic--ada)"}


@pytest.mark.parametrize(
    "text", ["", " ", "a\nb", "a\0b", "\x1b[31mred", "\u202etxet", "a\u2028b", "<b>x</b>", "a\u200bb"]
)
@pytest.mark.parametrize("key", ["title", "short"])
def test_a_title_is_one_line_that_is_seen_and_is_no_markup(
    project: Project, tmp_path: Path, key: str, text: str
) -> None:
    bundle = bundle_of()
    bundle["machine"][key] = text
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert f"{key}: it holds what is not seen, such as a line break, or markup, or is blank" in said


def test_a_machine_of_quoted_figures_is_not_called_as_another_model(project: Project, tmp_path: Path) -> None:
    bundle = renamed(bundle_of(), "cpu-old--published", None)
    bundle["machine"] |= {"published": True, "title": "NVIDIA H200, 141 GB", "owner": "Maintainers"}
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "is called 'NVIDIA H200, 141 GB', and does not describe a H200" in said
    assert "is quoted, and says that the maintainers measured it" in said


def test_more_records_than_there_are_scripts_are_not_looked_at(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    bundle["records"] = [{}] * 1000
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert refusal(project, path).splitlines() == [
        f"{path}:1: it holds 1000 records, and this checkout has 1 scripts; "
        "check out the commit it was recorded from"
    ]


def test_a_record_that_would_be_too_large_to_read_is_not_put_in_place(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    monkeypatch.setattr(formats, "MOST_VALUES", 50)
    assert f"sums/add.py on {GUEST}: it holds more than 50 values" in refusal(project, path)


def test_a_bundle_of_too_many_values_is_not_read(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "MOST_MARKS", 100)
    assert "holds more than 100 values" in refusal(project, write(tmp_path / "b.json", packed(bundle_of())))


@pytest.mark.parametrize(
    "linked", ["snippets/records", f"snippets/records/{GUEST}", f"snippets/records/{GUEST}/sums"]
)
def test_nothing_is_written_through_a_link(project: Project, tmp_path: Path, linked: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = project.root / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    with pytest.raises(BenchbookError, match=f"{linked} is a link to another place"):
        import_bundles(project, [path])
    assert list(elsewhere.iterdir()) == []


def test_nothing_behind_a_link_is_removed(project: Project, tmp_path: Path) -> None:
    inbox = write(tmp_path / "inbox/bob.json.gz", "somebody's bundle").parent
    link = project.records / GUEST / "sums/add"
    link.parent.mkdir(parents=True)
    link.symlink_to(inbox)
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    with pytest.raises(BenchbookError, match="sums/add is a link to another place"):
        import_bundles(project, [path])
    assert [one.name for one in inbox.iterdir()] == ["bob.json.gz"]


def test_nothing_that_was_left_behind_a_link_is_removed(project: Project, tmp_path: Path) -> None:
    left = write(tmp_path / "elsewhere/.a.json.abcdefgh", "{}")
    project.records.symlink_to(left.parent)
    finish_writing(project)
    assert left.exists()


def test_nothing_is_written_through_a_link_that_a_revision_has_not(project: Project, tmp_path: Path) -> None:
    committed(project, "2026-01-01")
    link = project.records / GUEST
    link.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    with pytest.raises(BenchbookError, match=f"records/{GUEST}:1: is a link to another place"):
        import_at(project, [path], "HEAD")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_check_names_records_that_lie_elsewhere(project: Project, tmp_path: Path) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    shutil.move(project.records / GUEST, tmp_path / "elsewhere")
    (project.records / GUEST).symlink_to(tmp_path / "elsewhere")
    problems = [str(problem) for problem in check_project(Project(project.root)).problems]
    assert any(one.startswith(f"snippets/records/{GUEST}:1: is a link to another place") for one in problems)


@pytest.mark.parametrize("text", ["", "{", '{"schema": 1', "[1]", "null", '{"schema": NaN}', "[" * 100_000])
def test_a_truncated_or_foreign_file_is_refused(project: Project, tmp_path: Path, text: str) -> None:
    assert "bundle.json:1" in refusal(project, write(tmp_path / "bundle.json", text))


def test_what_is_not_a_plain_file_is_not_waited_for(project: Project, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        assert "cannot be read ([Errno 22] not a plain file" in refusal(project, path)


def test_a_truncated_archive_is_refused(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(packed(bundle_of()).encode())[:-20])
    assert "cannot be read" in refusal(project, path)


def test_an_archive_that_unpacks_without_end_is_refused(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "LARGEST_BUNDLE", 1000)
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(b" " * 100_000))
    assert "is larger than" in refusal(project, path)


def test_an_archive_that_was_damaged_anywhere_is_refused(project: Project, tmp_path: Path) -> None:
    whole = gzip.compress(packed(bundle_of()).encode(), mtime=0)
    path = tmp_path / "bundle.json.gz"
    for place in range(10, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert "bundle.json.gz:1" in refusal(project, path)


def test_two_records_of_one_script_are_refused(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    bundle = bundle_of()
    bundle["records"] *= 2
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "it holds 2 records of sums/add.py" in said


def test_what_is_here_already_is_not_judged_again(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    text = packed(bundle)
    import_bundles(project, [write(tmp_path / "bundle.json", text)])
    # The variant that was measured is gone, and another has come.
    sweep = SCRIPT.replace("# ///\n\n", "#\n# [tool.benchbook.matrix]\n# steps = [1]\n# ///\n\n", 1)
    write(project.snippets / "sums/add.py", sweep)
    newer = bundle_of(sweep)
    for run in newer["records"][0]["variants"]["steps=1"]["runs"]:
        run["place"] += 3
        run["cells"]["add"]["seconds"] *= 1 + run["place"] / 97
    newer["records"][0]["variants"] |= bundle["records"][0]["variants"]
    import_bundles(project, [write(tmp_path / "newer.json", packed(newer))], replacing=True)
    record = load_record(project.record_path(GUEST, "sums/add.py"))
    assert record is not None
    assert set(record.variants) == {"default", "steps=1"}


def test_the_wording_of_a_machine_that_is_here_already_stays(project: Project, tmp_path: Path) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    import_bundles(project, [path])
    description = project.records / GUEST / "machine.json"
    table = json.loads(description.read_text("utf-8"))
    write(description, json.dumps(table | {"title": "A better title"}))
    import_bundles(project, [path])
    assert json.loads(description.read_text("utf-8")) == table | {"title": "A better title"}


def test_a_bundle_that_was_changed_on_its_way_is_refused(project: Project, tmp_path: Path) -> None:
    text = packed(bundle_of()).replace('"total": 7', '"total": 8')
    assert "its digest is of other content" in refusal(project, write(tmp_path / "bundle.json", text))


def test_bundles_of_several_runners_are_put_in_place_together(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    other = later(bundle_of())
    other["records"][0]["script"] = "sums/sub.py"
    paths = [write(tmp_path / f"{n}.json", packed(bundle)) for n, bundle in enumerate((bundle_of(), other))]
    assert list(import_bundles(project, paths).written) == [
        f"snippets/records/{GUEST}/machine.json",
        f"snippets/records/{GUEST}/sums/add.json",
        f"snippets/records/{GUEST}/sums/sub.json",
    ]


def measured_of(bundle: dict[str, Any], script: str) -> dict[str, Any]:
    """The first record of a bundle as one of another script, in a session of its own."""
    record = copy.deepcopy(bundle["records"][0]) | {"script": script}
    (campaign,) = record["campaigns"].values()
    session = called(campaign["started"][:10]).replace("test", Path(script).parent.name)
    record["campaigns"] = {session: campaign}
    record["variants"]["default"]["campaign"] = session
    for place, run in enumerate(record["variants"]["default"]["runs"]):
        run["cells"]["add"]["seconds"] *= 1 + ord(session[-1]) * (place + 1) / 1e5
    return record


def contents(project: Project) -> dict[Path, bytes | None]:
    """Whatever lies among the records, with what is not to be seen, and the folders."""
    found = sorted(project.records.rglob("*"))
    return {path: path.read_bytes() if path.is_file() else None for path in found}


@pytest.mark.parametrize("refused", ["fsync", "replace"])
@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("revision", [None, "HEAD"])
def test_a_disk_that_fills_up_while_an_import_writes_leaves_everything_as_it_was(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: str,
    after: int,
    revision: str | None,
) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    write(project.snippets / "more/sub.py", SCRIPT)
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    committed(project, "2026-01-01")
    before = contents(project)
    further = later(bundle_of())
    further["records"] += [measured_of(further, name) for name in ("sums/sub.py", "more/sub.py")]
    path = write(tmp_path / "further.json", packed(further))
    writes, real = itertools.count(), getattr(os, refused)

    def full(*arguments: Any) -> None:
        place = os.readlink(f"/proc/self/fd/{arguments[0]}") if refused == "fsync" else arguments[0]
        if Path(place).is_relative_to(project.root) and next(writes) == after:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(os, refused, full)
        said = r"snippets/records:1: cannot be written \(No space left on device\), and nothing was imported;"
        with pytest.raises(BenchbookError, match=said):
            take(project, path, revision)
    assert contents(project) == before
    assert len(take(project, path, revision).written) == 4


# Ends itself as its second file is put in place.
ENDING = """
import os, signal, sys
from pathlib import Path
from benchbook.checking.bundles import import_bundles
from benchbook.content.project import Project
put, places = os.replace, []
# Whoever runs the tests may ignore a signal, as `nohup` does, and so would this process.
signal.signal(int(sys.argv[3]), signal.default_int_handler if sys.argv[3] == "2" else signal.SIG_DFL)
def ended(new, place):
    places.append(place)
    if len(places) == 2:
        os.kill(os.getpid(), int(sys.argv[3]))
    put(new, place)
os.replace = ended
import_bundles(Project(Path(sys.argv[1])), [Path(sys.argv[2])])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_import_that_is_told_to_end_leaves_nothing_by_half(
    project: Project, tmp_path: Path, number: signal.Signals
) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    command = [sys.executable, "-c", ENDING, str(project.root), str(path), str(number.value)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -number
    machine = project.records / GUEST
    assert set(contents(project)) == {
        machine,
        machine / "machine.json",
        machine / "sums",
        machine / "sums/add.json",
    }


# Is killed as it is about to call what it is told to for the n-th time, for a file of the records.
KILLED = """
import os, signal, sys
from pathlib import Path
from benchbook.checking.bundles import import_bundles
from benchbook.content.project import Project
root, bundle, called, after = sys.argv[1:]
real, calls = getattr(os, called), []
def killed(*arguments):
    place = os.readlink(f"/proc/self/fd/{arguments[0]}") if called == "fsync" else str(arguments[1])
    calls.extend([place] if "/records/" in place else [])
    if len(calls) > int(after):
        os.kill(os.getpid(), 9)
    real(*arguments)
setattr(os, called, killed)
import_bundles(Project(Path(root)), [Path(bundle)], replacing=True, machine="cpu-test--ada")
"""


@pytest.mark.parametrize(("called", "after"), [("fsync", 1), ("replace", 0), ("replace", 1), ("replace", 3)])
def test_an_import_that_is_killed_is_named_by_check_and_finished_by_the_next(
    project: Project, tmp_path: Path, called: str, after: int
) -> None:
    shutil.copy(Path(__file__).parents[2] / ".gitignore", project.root)
    write(project.snippets / "sums/sub.py", SCRIPT)
    write(project.snippets / "more/sub.py", SCRIPT)
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    before = contents(project)
    further = later(bundle_of())
    further["records"] += [measured_of(further, name) for name in ("sums/sub.py", "more/sub.py")]
    path = write(tmp_path / "further.json", packed(further))
    command = [sys.executable, "-c", KILLED, str(project.root), str(path), called, str(after)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    left = [one for one in project.records.rglob(".*") if one.is_file()]
    git(project.root, "init", "--quiet")
    assert left
    assert all(git(project.root, "check-ignore", str(one)) for one in left)
    said = [str(problem) for problem in check_project(Project(project.root)).problems]
    if called == "fsync":
        # Nothing was begun: what lies beside is of no use.
        assert any(" was left by a command that was killed " in line for line in said)
    else:
        assert any(line.startswith(".benchbook/writing.json:1: a command was killed") for line in said)
    if called == "replace":
        finish_writing(project)
        there = contents(project)
        assert not any(one.name.startswith(".") for one in there)
        assert {one for one in there if one.suffix == ".json"} > {
            one for one in before if one.suffix == ".json"
        }
    take(project, path, None)
    done = contents(project)
    assert not any(one.name.startswith(".") for one in done)
    assert called == "fsync" or done == there
    said = [str(problem) for problem in check_project(Project(project.root)).problems]
    assert not any("killed" in line for line in said)


def test_what_came_in_since_an_import_was_killed_is_not_undone_by_the_next(
    project: Project, tmp_path: Path
) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    path = write(tmp_path / "later.json", packed(later(bundle_of())))
    command = [sys.executable, "-c", KILLED, str(project.root), str(path), "replace", "0"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    (record,) = project.records.glob("*/sums/add.json")
    record.write_text(record.read_text("utf-8") + " ", "utf-8")
    with pytest.raises(BenchbookError, match=r"sums/add\.json has changed since"):
        finish_writing(project)
    assert record.read_text("utf-8").endswith(" ")
    (project.root / LIST).unlink()
    finish_writing(project)
    assert record.read_text("utf-8").endswith(" ")


@pytest.mark.parametrize(
    "line",
    [
        {"new": "snippets/records/x/.a.json.abcdefgh", "place": "snippets/records/../../mkdocs.yml"},
        {"new": "pyproject.toml", "place": "snippets/records/x/a.json"},
        {"new": None, "place": "mkdocs.yml"},
        {"new": None, "place": "snippets/records/x/a.json", "old": "mkdocs.yml"},
        {"new": "snippets/records/x/.a.json.abcdefgh", "place": "snippets/records/x/a.json", "digest": "0"},
        "mkdocs.yml",
    ],
)
def test_a_list_of_what_is_to_be_finished_moves_nothing_but_records(project: Project, line: object) -> None:
    write(project.records / "x/.a.json.abcdefgh", "{}")
    write(project.root / LIST, json.dumps([line]))
    with pytest.raises(BenchbookError, match=r"\.benchbook/writing\.json:1: "):
        finish_writing(project)
    assert (project.root / "mkdocs.yml").read_text("utf-8") == "site_name: Test\n"
    assert list(project.records.rglob("*.json")) == []
    assert any(problem.path == LIST for problem in check_project(Project(project.root)).problems)


def take(project: Project, path: Path, revision: str | None) -> Imported:
    if revision is None:
        return import_bundles(project, [path], replacing=True, machine=GUEST)
    return import_at(project, [path], revision, replacing=True, machine=GUEST)


def test_one_bad_bundle_keeps_all_of_them_out(project: Project, tmp_path: Path) -> None:
    paths = [write(tmp_path / "good.json", packed(bundle_of())), write(tmp_path / "bad.json", "{")]
    with pytest.raises(BenchbookError, match=r"bad\.json:1: is not JSON"):
        import_bundles(project, paths)
    assert not project.records.exists()


@pytest.mark.parametrize(
    ("factor", "memory", "what"),
    [
        (1.0, 4096, "its metrics are those of"),
        (0.5, 4096, "its metrics, but for one factor, are those of"),
        (None, 0, "its readings of memory are those of"),
        (None, 4096, None),
    ],
)
def test_what_a_machine_measured_is_no_other_machine_s(
    project: Project, tmp_path: Path, factor: float | None, memory: int, what: str | None
) -> None:
    """Whatever was made of the times of the cells."""
    script = write(project.snippets / "sums/add.py", SCRIPT.replace('"count"', '"s"')).read_text("utf-8")

    def measured(name: str, owner: str, more: int, moved: bool, factor: float | None) -> Path:
        bundle = renamed(bundle_of(script), name, owner)
        runs = [copy.deepcopy(variant(bundle)["runs"][0]) | {"place": place} for place in range(8)]
        for place, run in enumerate(runs):
            scatter = (1 + place**2 / 97) * (1 + moved * place**3 / 89)
            run["metrics"]["total"] = 0.1 * ((1 + place**2 / 97) * factor if factor else scatter)
            for cell in run["cells"].values():
                cell["seconds"] *= scatter
            run["cells"]["add"]["process_memory_peak"] = 2**28 + 4096 * place + more
        variant(bundle)["runs"] = runs
        return write(tmp_path / f"{name}.json", packed(bundle))

    import_bundles(project, [measured(GUEST, "Ada", 0, False, 1.0)])
    copied = measured(OTHER, "Bob", memory, True, factor)
    if what is None:
        assert import_bundles(project, [copied]).written
        return
    with pytest.raises(BenchbookError, match=f"variant default: {what} {GUEST}"):
        import_bundles(project, [copied])


def test_one_record_in_two_bundles_is_refused(project: Project, tmp_path: Path) -> None:
    # A machine's bundles of two days have one file name.
    bundles = (later(bundle_of()), bundle_of())
    paths = [write(tmp_path / f"{n}/{GUEST}.json", packed(bundle)) for n, bundle in enumerate(bundles)]
    with pytest.raises(BenchbookError, match=f"^{paths[1]}:1: it holds .*, and so does {paths[0]}; import"):
        import_bundles(project, paths)
    assert not project.records.exists()


def test_two_bundles_may_hold_one_record_that_both_went_on_from(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    second = further(later(bundle_of()))
    both = copy.deepcopy(second)
    both["records"] += bundle_of()["records"]
    paths = [
        write(tmp_path / f"{n}/{GUEST}.json", packed(bundle)) for n, bundle in enumerate((bundle_of(), both))
    ]
    done = import_bundles(project, paths)
    assert {Path(name).name for name in done.written} == {"machine.json", "add.json", "sub.json"}


def further(bundle: dict[str, Any], **system: str) -> dict[str, Any]:
    """The bundle as of another script, and of a machine whose system says more."""
    bundle["records"][0]["script"] = "sums/sub.py"
    bundle["machine"]["system"].update(system)
    return bundle


BESIDE: dict[str, tuple[dict[str, Any], str]] = {
    "a session of another script": (
        further(bundle_of()),
        f"sums/sub.py on {GUEST}: campaign 20260102T030405Z-test is of sums/add.py, and a session is of one",
    ),
    "another description": (
        further(later(bundle_of()), kernel="6.8"),
        f'it would replace snippets/records/{GUEST}/machine.json: system.kernel .null by "6.8".',
    ),
    "the times of another machine": (
        renamed(bundle_of(), OTHER, "Bob"),
        f"variant default: its times are those of {GUEST}",
    ),
}


@pytest.mark.parametrize("damage", BESIDE)
def test_a_bundle_is_held_to_those_before_it_as_to_what_is_here(
    project: Project, tmp_path: Path, damage: str
) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    second, reason = BESIDE[damage]
    paths = [write(tmp_path / f"{n}.json", packed(one)) for n, one in enumerate((bundle_of(), second))]
    with pytest.raises(BenchbookError, match=f"^{paths[1]}:1: {reason}"):
        import_bundles(project, paths)
    assert not project.records.exists()


def test_the_same_gpu_in_a_host_of_another_make_is_the_same_machine() -> None:
    here, there = (copy.deepcopy(MACHINE_JSON | GPU_JSON) for _ in range(2))
    there["cpu"] |= {"model": "another", "cores": 192}
    assert differing_key(here, there) is None
    there["accelerator"]["count"] = 2
    assert differing_key(here, there) == "accelerator count"


def test_another_machine_under_a_name_that_is_taken_is_refused(project: Project, tmp_path: Path) -> None:
    other = bundle_of()
    other["machine"]["cpu"]["cores"] = 64
    paths = [
        write(tmp_path / "bundle.json", packed(bundle_of())),
        write(tmp_path / "other.json", packed(other)),
    ]
    with pytest.raises(BenchbookError, match="another of the bundles describes cpu-test--ada otherwise"):
        import_bundles(project, paths)
    import_bundles(project, paths[:1])
    with pytest.raises(BenchbookError, match=r"is another machine .its cpu cores differs.; record with"):
        import_bundles(project, paths[1:])


@pytest.mark.parametrize(
    ("metric", "value", "reason"),
    [
        ('{ unit = "TFLOP/s" }', 4000.0, "more than the 1979 of H200's data sheet"),
        ('{ unit = "GB/s", memory = "device" }', 4900.0, "more than the 4800 of H200's data sheet"),
        ('{ unit = "GiB", memory = "device" }', 141.5, "more than the machine's"),
        ('{ unit = "TFLOP/s" }', 900.0, None),
        ('{ unit = "GB/s" }', 20000.0, None),
    ],
)
def test_more_than_the_device_can_do_is_refused(
    project: Project, tmp_path: Path, metric: str, value: float, reason: str | None
) -> None:
    script = SCRIPT.replace('{ unit = "count" }', metric)
    write(project.snippets / "sums/add.py", script)
    bundle = on_a_gpu(bundle_of(script))
    runs = variant(bundle)["runs"]
    for place, run in enumerate(runs):
        run["metrics"]["total"] = value - place / 100
    # Rates scatter: eight runs are asked for.
    while len(runs) < 8:
        run = json.loads(json.dumps(runs[-1]))
        run["place"] += 1
        run["cells"]["add"]["seconds"] += 0.01
        runs.append(run)
    path = write(tmp_path / "bundle.json", packed(bundle))
    if reason is None:
        assert import_bundles(project, [path])
    else:
        assert reason in refusal(project, path)


def test_parameters_that_no_cell_ever_held_are_not_believed(project: Project, tmp_path: Path) -> None:
    script = SCRIPT.replace('total = { unit = "count" }', 'parameter_bytes = { unit = "B" }')
    write(project.snippets / "sums/add.py", script)
    bundle = bundle_of(script)
    for run in variant(bundle)["runs"]:
        run["metrics"]["parameter_bytes"] = 1000
        run["cells"]["add"]["allocated_peak"] = 999
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "its parameters take 1000 B, and no cell allocated more than 999 B" in said


def test_a_device_larger_than_its_model_is_sold_is_refused(project: Project, tmp_path: Path) -> None:
    bundle = on_a_gpu(bundle_of())
    bundle["machine"]["accelerator"]["memory_bytes"] = 200 * 2**30
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "has devices of 200 GB, more than the 141 of H200's data sheet" in said


def test_a_vendor_who_does_not_make_that_kind_is_refused(project: Project, tmp_path: Path) -> None:
    bundle = on_a_gpu(bundle_of())
    bundle["machine"]["kind"] = "rocm"
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "is of the kind rocm, which NVIDIA does not make" in said
