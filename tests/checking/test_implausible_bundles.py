"""Figures that no machine of that kind can have measured are refused, or warned of."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.bundles import import_bundles
from benchbook.checking.checks import check_project
from benchbook.content.machines import differing_key
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from builders import GPU_JSON, MACHINE, MACHINE_JSON, SCRIPT, SWEEP, make_project, packed, with_table, write
from bundled import (
    GUEST,
    OTHER,
    Damage,
    bundle_of,
    campaign,
    crashed,
    later,
    line_of,
    on_a_gpu,
    own_line,
    refusal,
    renamed,
    variant,
)

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
