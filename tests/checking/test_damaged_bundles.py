"""A bundle with anything in it that no recorder writes is refused, with the reason."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from benchbook.checking.bundles import import_bundles
from benchbook.content.project import Project
from builders import MACHINE, packed, write
from bundled import (
    GUEST,
    Damage,
    bundle_of,
    campaign,
    crashed,
    line_of,
    on_a_gpu,
    own_line,
    refusal,
    renamed,
    variant,
)

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
        "variants.default.parameters: it takes 20811 characters, and 3000 are the most",
    ),
    "an environment without end": (
        lambda b: variant(b).update(environment={f"A{n}": "x" * 100 for n in range(200)}),
        "variants.default.environment: it takes 22290 characters, and 3000 are the most",
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
    "a session that began before the first": (
        lambda b: campaign(b).update(resumed=["2026-01-02T03:04:04Z"]),
        "its sessions did not begin one after the other, between its start and its end",
    ),
    "a session that began after the end": (
        lambda b: campaign(b).update(resumed=["2026-01-02T04:04:05Z"]),
        "its sessions did not begin one after the other, between its start and its end",
    ),
    "a session that began twice": (
        lambda b: campaign(b).update(resumed=["2026-01-02T03:04:05Z"]),
        "its sessions did not begin one after the other, between its start and its end",
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
