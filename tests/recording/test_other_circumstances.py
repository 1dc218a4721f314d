"""A campaign that was stopped is gone on with on the same machine, under the same circumstances, alone."""

from __future__ import annotations

import json
import os
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.machines import circumstances
from benchbook.machines.accelerators import Accelerators, accelerator_table
from benchbook.machines.circumstances import deciding_variables, differ
from benchbook.recording import command as recording
from benchbook.recording import session as sessions
from benchbook.recording.journal import LATER_KEYS
from benchbook.recording.stores import Bundle, Checkout
from builders import write
from repositories import commit_all, git
from running import SWEEP, add_script
from stopping import HERE, PLAIN, TIMED, install, only_campaign, record, stopped, written


@pytest.mark.parametrize(("changed", "modified"), [("scripts/a.py", True), ("docs/en/a.md", False)])
def test_a_campaign_that_is_gone_on_with_at_another_commit_says_so_where_code_changed(
    project: Project, monkeypatch: pytest.MonkeyPatch, changed: str, modified: bool
) -> None:
    add_script(project.root, PLAIN, TIMED)
    write(project.root / ".gitignore", ".benchbook\n")
    first = commit_all(project.root)
    stopped(project, monkeypatch, 2)
    write(project.root / changed, "1\n")
    commit_all(project.root)
    stopped(project, monkeypatch, 2)
    # What ran from the other commit did so, whatever is checked out afterwards.
    git(project.root, "checkout", "--quiet", first)
    assert record(project) == 0
    assert (only_campaign(project).commit, only_campaign(project).modified) == (first, modified)


def on_another(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """From now on this machine has another processor, memory or kernel, and its name all the same."""
    there = replace(HERE, **changes)
    monkeypatch.setattr(recording, "describe", lambda *_: there)


OTHERS: dict[str, dict[str, Any]] = {
    "model": {"cpu": replace(HERE.cpu, model="Another 9000")},
    "vendor": {"cpu": replace(HERE.cpu, vendor="AnotherVendor")},
    "flags": {"cpu": replace(HERE.cpu, flags=["avx9"])},
    "memory": {"memory_bytes": 2**50},
    "kernel": {"system": {**HERE.system, "kernel": "99.0"}},
}


@pytest.mark.parametrize("changed", OTHERS)
def test_a_campaign_is_not_gone_on_with_on_other_hardware(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], changed: str
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 2)
    on_another(monkeypatch, **OTHERS[changed])
    stopped(project, monkeypatch, 2)
    said = " ".join(capsys.readouterr().err.split())
    begins = "a new campaign begins, without the 2 run(s) in it"
    assert f"is of other code, parameters, packages or circumstances; {begins}" in said


@pytest.mark.parametrize(
    "changed", [{"name": "Another GPU"}, {"memory_bytes": 2**34}, {"count": 2}, {"partition": "1g.10gb"}]
)
def test_a_campaign_is_not_gone_on_with_on_another_accelerator(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: dict[str, Any],
) -> None:
    add_script(project.root, PLAIN, TIMED.replace('"cpu"', '"accelerator"'))
    table = accelerator_table(name="A GPU", vendor="NVIDIA", memory_bytes=2**35, count=1)
    for description in (table, table, table | changed):
        assert "new campaign" not in capsys.readouterr().err
        found = Accelerators("cuda", description, ())
        monkeypatch.setattr(recording, "find_accelerators", lambda *_, found=found: found)
        stopped(project, monkeypatch, 2, machine="a-box")
    said = capsys.readouterr().err
    assert "is of other code, parameters, packages or circumstances; a new campaign begins" in said


def test_a_campaign_is_not_gone_on_with_under_variables_that_decide_its_numbers(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    for name in ("LD_LIBRARY_PATH", "NCCL_SOCKET_IFNAME"):
        monkeypatch.delenv(name, raising=False)
    stopped(project, monkeypatch, 2)
    # Scripts never see the second.
    for name in ("UNRELATED", "RAYON_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "lo")
    assert record(project) == 0
    said = capsys.readouterr().err
    other = "is of an environment with other variables (LD_LIBRARY_PATH, NCCL_SOCKET_IFNAME)"
    assert f"guide/small.jsonl {other}; a new campaign begins" in said
    assert said.count(": ok") == 9


def test_a_campaign_is_not_gone_on_with_where_a_package_that_no_script_declares_is_another(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add_script(project.root, PLAIN, TIMED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)
    for version, goes_on in (("1.0", True), ("1.0", True), ("2.0", False)):
        install(tmp_path / "site", version)
        stopped(project, monkeypatch, 2)
        assert ("a new campaign begins" not in capsys.readouterr().err) == goes_on
    assert record(project) == 0
    assert "gadget" not in only_campaign(project).packages


MARKED = """
# %% parameters
n = 1

# %% work
doubled = 2.0 * n
# region good
if n > 100:
    doubled = 200.0
    doubled += 0
# endregion

# %% checks
assert doubled
"""
MOVED = MARKED.replace("# region good\nif n > 100:", "if n > 100:\n    # region good")
MOVED = MOVED.replace("# endregion", "    # endregion")
CUT = MARKED.replace("    doubled += 0\n# endregion", "# endregion\n    doubled += 0")


@pytest.mark.parametrize("moved", [MOVED, CUT])
def test_a_campaign_is_not_gone_on_with_where_regions_stand_elsewhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], moved: str
) -> None:
    codes = {add_script(project.root, text, TIMED).code_digest for text in (moved, MARKED)}
    assert len(codes) == 1
    stopped(project, monkeypatch, 2)
    add_script(project.root, MARKED.replace("# region", "# Why it is so.\n\n# region"), TIMED)
    stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    add_script(project.root, moved, TIMED)
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err
    assert {variant.regions for variant in written(project).variants.values()} == {()}


def test_a_journal_that_does_not_tell_of_what_older_ones_left_out_is_gone_on_with(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, MARKED, TIMED)
    stopped(project, monkeypatch, 2)
    (path,) = project.journal.rglob("*.jsonl")
    first, *runs = path.read_text("utf-8").splitlines(keepends=True)
    table = json.loads(first)
    for name in LATER_KEYS:
        del table["key"][name]
    path.write_text(json.dumps(table) + "\n" + "".join(runs), "utf-8")
    capsys.readouterr()
    assert record(project) == 0
    said = capsys.readouterr().err
    assert "new campaign" not in said
    assert said.count(": ok") == 7


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ("file_system", "tmpfs"),
        ("disk", {"model": "Slow", "rotational": "1"}),
        ("memory_limits", {"-v": 2**40}),
        ("cpu_quota", 0.25),
        ("cores", {"kinds": {"": 2}, "cores": 1, "nodes": 1}),
        ("priority", {"niceness": 19, "class": 0}),
        ("kernel_settings", {"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"}),
    ],
)
def test_a_campaign_is_not_gone_on_with_on_another_file_system_or_under_other_limits(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    asked: str,
    answer: object,
) -> None:
    add_script(project.root, PLAIN, TIMED)
    monkeypatch.setattr(sessions, "file_system", lambda _: "ext4")
    for _ in range(2):
        stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    monkeypatch.setattr(sessions, asked, lambda *_: answer)
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_a_campaign_is_not_gone_on_with_where_path_finds_another_compiler(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 2)
    found = tmp_path / "found"
    write(found / "other", "#!/bin/sh\n").chmod(0o755)
    monkeypatch.setenv("PATH", str(found), prepend=os.pathsep)
    stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    (found / "g++").symlink_to("other")
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_a_compiler_is_told_by_the_file_that_its_name_leads_to(tmp_path: Path) -> None:
    real = write(tmp_path / "real/g++-12", "#!/bin/sh\n")
    real.chmod(0o755)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "g++").symlink_to(real)
    first, second = (circumstances.compilers(str(tmp_path / name)) for name in ("one", "two"))
    assert list(first) == ["g++"]
    assert first == second
    os.utime(real, ns=(1, 1))
    updated = circumstances.compilers(str(tmp_path / "one"))
    assert updated != first
    with real.open("a") as file:
        file.write("exit\n")
    os.utime(real, ns=(1, 1))
    assert circumstances.compilers(str(tmp_path / "one")) != updated
    assert circumstances.compilers(str(tmp_path)) == {}


def test_a_folder_is_of_the_file_system_of_the_innermost_mount_above_it(tmp_path: Path) -> None:
    inner = tmp_path / "a b"
    inner.mkdir()
    place = str(inner).replace(" ", "\\040")
    lines = ["overlay / overlay rw 0 0", f"x {place} ext4 rw 0 0", f"y {place} tmpfs rw 0 0"]
    mounts = write(tmp_path / "mounts", "\n".join(lines))
    kinds = [circumstances.file_system(folder, mounts) for folder in (inner / "c", tmp_path / "a")]
    assert kinds == ["tmpfs", "overlay"]
    assert circumstances.file_system(inner, tmp_path / "none") is None


def test_a_disk_is_told_by_the_whole_of_which_a_part_holds_the_folder(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    assert circumstances.disk(tmp_path, tmp_path / "dev") is None
    for model, part in (("Fast", ""), ("Slow", "/slow1")):
        whole = tmp_path / model
        write(whole / "device/model", f"{model}\n")
        write(whole / "queue/rotational", "0\n")
        if part:
            write(whole / f"{part[1:]}/partition", "1\n")
        (tmp_path / f"dev {model}").mkdir()
        (tmp_path / f"dev {model}" / name).symlink_to(f"{whole}{part}")
        found = circumstances.disk(tmp_path, tmp_path / f"dev {model}")
        assert found == {"model": model, "rotational": "0"}


def test_cores_are_told_by_their_kind_and_by_what_shares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two threads of a large core, another large one, and a small one of another node.
    for number, (core, rate, node) in enumerate([(0, 9, 0), (0, 9, 0), (1, 9, 0), (2, 5, 1)]):
        place = tmp_path / f"cpu{number}"
        write(place / "topology/core_id", f"{core}\n")
        write(place / "topology/physical_package_id", "0\n")
        write(place / "cpufreq/cpuinfo_max_freq", f"{rate}\n")
        (place / f"node{node}").mkdir()

    def on(*numbers: int) -> dict[str, Any]:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(numbers))
        return circumstances.cores(tmp_path)

    assert on(0, 2) == on(1, 2) != on(0, 1)
    assert on(0, 2) != on(0, 3)
    assert on(0, 3) == {"kinds": {"9": 1, "5": 1}, "cores": 2, "nodes": 2}
    # Where nothing tells, each is a core of its own.
    assert on(7, 8) == {"kinds": {"": 2}, "cores": 2, "nodes": 0}


def test_a_limit_of_memory_is_warned_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    limits = {resource.RLIMIT_AS: 2**40}
    usual = (resource.RLIM_INFINITY,) * 2
    monkeypatch.setattr(resource, "getrlimit", lambda each: (limits[each],) * 2 if each in limits else usual)
    assert record(project) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if "ulimit" in line]
    assert line.startswith("warning: processes have a limit of memory here")
    assert line.endswith("of the machine: run `ulimit -v unlimited` first")


@pytest.mark.parametrize(
    ("quota", "warned"), [(0.25, True), (float(HERE.cpu.cores or 1), False), (None, False)]
)
def test_a_quota_of_fewer_processors_than_the_machine_is_described_with_is_warned_of(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    quota: float | None,
    warned: bool,
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    monkeypatch.setattr(sessions, "cpu_quota", lambda: quota)
    assert record(project) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "quota" in line]
    assert (
        lines
        == [
            "warning: a quota of 0.25 processors: times would tell of that and not of the machine, which has "
            f"{HERE.cpu.cores}; record in a control group without one"
        ]
        * warned
    )


SEES = """
# %% work
import os
wanted = {"LC_TEST", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONDEVMODE", "UNRELATED"}
found = sorted(wanted & os.environ.keys())
assert found == WANTED, found

# %% checks
assert True
"""
WITHHELD = (
    "set here and not passed to the scripts, for no record would tell; where a script is to run under one"
)


@pytest.mark.parametrize("verify", [False, True])
def test_scripts_are_measured_without_variables_that_no_record_would_tell_and_that_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verify: bool
) -> None:
    for name in ("OMP_NUM_THREADS", "PYTHONDEVMODE", "LD_LIBRARY_PATH", "LC_TEST", "UNRELATED"):
        monkeypatch.setenv(name, "1")
    add_script(project.root, SEES.replace("WANTED", '["LC_TEST", "LD_LIBRARY_PATH"]'))
    assert record(project) == 0
    if verify:
        capsys.readouterr()
        record(project, verify=True)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "not passed" in line]
    assert line.startswith(f"warning: OMP_NUM_THREADS, PYTHONDEVMODE: {WITHHELD}, name it in `environment`")


def test_a_script_that_declares_a_variable_runs_under_it_and_none_is_said_to_be_kept_from_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("PYTHONDEVMODE", "LD_LIBRARY_PATH", "UNRELATED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    body = SEES.replace("WANTED", '["OMP_NUM_THREADS"] and os.environ["OMP_NUM_THREADS"] == "3"')
    add_script(project.root, body, 'needs = ["cpu"]\nenvironment = { OMP_NUM_THREADS = "3" }')
    assert record(project) == 0
    assert "not passed" not in capsys.readouterr().err


def test_a_trial_that_measures_nothing_runs_under_every_variable(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("OMP_NUM_THREADS", "PYTHONDEVMODE", "LD_LIBRARY_PATH", "UNRELATED"):
        monkeypatch.setenv(name, "1")
    wanted = '["LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONDEVMODE", "UNRELATED"]'
    add_script(project.root, SEES.replace("WANTED", wanted))
    assert record(project, smallest=True) == 0
    assert "not passed" not in capsys.readouterr().err


@pytest.mark.parametrize(("changed", "named"), [("model", "cpu model"), ("flags", "cpu instruction set")])
def test_a_machine_that_is_here_is_not_described_as_another(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: str, named: str
) -> None:
    add_script(project.root, PLAIN, SWEEP, "guide/one.py")
    bundle = tmp_path / "here.json"
    assert (record(project), record(project, bundle=bundle, everything=True)) == (0, 0)
    described = project.records / HERE.name / "machine.json"
    before = described.read_bytes(), bundle.read_bytes()
    add_script(project.root, PLAIN, SWEEP, "guide/two.py")
    on_another(monkeypatch, **OTHERS[changed])
    line = rf"machine\.json:1: is of another machine than this \(its {named} differs\); record with"
    with pytest.raises(BenchbookError, match=line):
        record(project)
    with pytest.raises(BenchbookError, match=r"here\.json:1: holds records of another machine than this"):
        record(project, bundle=bundle)
    assert (described.read_bytes(), bundle.read_bytes()) == before
    assert record(project, machine="cpu-another") == 0


def test_what_another_machine_of_the_name_measured_is_not_taken_over(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    assert record(project, bundle=tmp_path / "there.json") == 0
    begun = [tmp_path / "there.json"]
    assert Bundle(tmp_path / "b", Checkout(project, HERE), HERE, begun).load("guide/small.py") is not None
    other = replace(HERE, **OTHERS["model"])
    assert Bundle(tmp_path / "b", Checkout(project, other), other, begun).load("guide/small.py") is None


def test_what_the_recorder_sets_itself_and_which_device_it_is_decide_no_numbers() -> None:
    deciding = ["ACCELERATE_MIXED_PRECISION", "BLIS_NUM_THREADS", "GOTO_NUM_THREADS", "LD_PRELOAD"]
    deciding += ["LRU_CACHE_CAPACITY", "MALLOC_ARENA_MAX", "ORT_DISABLE_ALL_OPTIMIZATION", "PYTHONDEVMODE"]
    deciding += ["PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"]
    deciding += ["PYTHONTRACEMALLOC", "RAYON_NUM_THREADS", "TBB_NUM_THREADS", "TF_ENABLE_ONEDNN_OPTS"]
    deciding += ["TORCH_LOGS"]
    others = ("TORCHINDUCTOR_CACHE_DIR", "CUDA_VISIBLE_DEVICES", "HOME", "PYTHONUNBUFFERED", "HF_HOME")
    names = (*deciding, *others)
    assert list(deciding_variables(dict.fromkeys(names, "/home/ada"))) == deciding


def test_commits_of_which_nothing_tells_differ(tmp_path: Path) -> None:
    first = commit_all(tmp_path)
    assert not differ(tmp_path, first, commit_all(tmp_path))
    assert not differ(tmp_path, None, None)
    assert differ(tmp_path, None, first)
    assert differ(tmp_path, "0" * 40, first)
