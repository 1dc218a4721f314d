"""What a script may need to be allowed is tried, and a script that lacks it is skipped by its name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from benchbook.content.metadata import RIGHTS, read_metadata
from benchbook.content.problems import BenchbookError
from benchbook.machines import rights
from benchbook.machines.rights import PROBES, memory_cgroup, missing_rights
from benchbook.recording import command as recording
from benchbook.recording.command import record_command
from benchbook.recording.plan import make_plan
from running import add_script, script_text, small_project

NEEDING = 'needs = ["cpu", "memory_limit"]'


def no_limit(names: object) -> dict[str, str]:
    return {"memory_limit": "no cgroup counts the memory of this process"}


def test_each_right_that_a_script_can_name_is_tried() -> None:
    assert set(PROBES) == set(RIGHTS)


def test_trying_leaves_nothing_behind() -> None:
    found = memory_cgroup()
    before = sorted(found[0].iterdir()) if found else []
    missing_rights(RIGHTS)
    assert (sorted(found[0].iterdir()) if found else []) == before


def test_a_right_without_a_kind_of_machine_is_refused() -> None:
    _, problems = read_metadata(script_text("x = 1", 'needs = ["memory_limit"]'), "a.py")
    assert "one or more of cpu, accelerator" in problems[0].fix


def test_an_unknown_right_is_refused() -> None:
    _, problems = read_metadata(script_text("x = 1", 'needs = ["cpu", "sudo"]'), "a.py")
    assert "memory_limit" in problems[0].fix


def test_a_script_whose_right_is_missing_is_skipped_by_name_and_others_run(tmp_path: Path) -> None:
    project = small_project(tmp_path)
    add_script(tmp_path, "x = 1", NEEDING, "guide/limited.py")
    add_script(tmp_path, "x = 1", name="guide/free.py")
    plan = make_plan(project, (), recording.this_machine("cpu-here")[0], lambda _: None, missing=no_limit)
    assert [task.script.reference for task in plan.tasks] == ["guide/free.py"]
    assert plan.skipped == {"guide/limited.py": "memory_limit: no cgroup counts the memory of this process"}


def test_a_script_that_was_asked_for_by_name_fails_where_its_right_is_missing(tmp_path: Path) -> None:
    project = small_project(tmp_path)
    add_script(tmp_path, "x = 1", NEEDING, "guide/limited.py")
    here = recording.this_machine("cpu-here")[0]
    with pytest.raises(BenchbookError, match=r"snippets/guide/limited.py:1: needs what it may not do here"):
        make_plan(project, ["guide/limited.py"], here, lambda _: None, missing=no_limit)


def test_what_is_skipped_keeps_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project = small_project(tmp_path)
    add_script(tmp_path, "x = 1", 'needs = ["cpu", "root"]', "guide/limited.py")
    add_script(tmp_path, "x = 1", name="guide/free.py")
    monkeypatch.setitem(PROBES, "root", lambda: None)
    assert record_command(project, (), machine="cpu-here", repeats=1) == 0
    path = next(project.records.glob("*/guide/limited.json"))
    before = path.read_bytes()
    monkeypatch.setitem(PROBES, "root", lambda: "this user is not root")
    capfd.readouterr()
    assert record_command(project, (), machine="cpu-here", repeats=1, everything=True) == 0
    assert path.read_bytes() == before
    said = " ".join(capfd.readouterr().err.split())
    assert (
        "skipped guide/limited.py, which needs what it may not do here: root: this user is not root" in said
    )


def test_the_plan_of_another_machine_tries_nothing_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project = small_project(tmp_path)
    add_script(tmp_path, "x = 1", 'needs = ["accelerator", "root"]', "guide/limited.py")
    monkeypatch.setitem(PROBES, "root", lambda: pytest.fail("it was tried"))
    assert record_command(project, (), machine="nvidia-h100-80gb", plan=True) == 0
    assert "guide/limited.py" in capfd.readouterr().out


# Where limits are made


def cgroups(root: Path, own: str, *folders: str) -> tuple[Path, Path]:
    for folder in folders:
        (root / "groups" / folder).mkdir(parents=True)
    (root / "own").write_text(own, "ascii")
    return root / "groups", root / "own"


def test_version_1_limits_below_the_group_of_this_process(tmp_path: Path) -> None:
    groups, own = cgroups(tmp_path, "5:cpu:/\n4:memory:/box/a\n0::/\n", "memory/box/a")
    assert memory_cgroup(groups, own) == (groups / "memory/box/a", "memory.limit_in_bytes")


def test_version_1_in_a_container_limits_below_what_is_mounted(tmp_path: Path) -> None:
    groups, own = cgroups(tmp_path, "4:memory:/docker/4711\n", "memory")
    assert memory_cgroup(groups, own) == (groups / "memory", "memory.limit_in_bytes")


def test_version_2_limits_beside_the_group_of_this_process(tmp_path: Path) -> None:
    groups, own = cgroups(tmp_path, "0::/user.slice/shell.scope\n", "user.slice/shell.scope")
    (groups / "user.slice/cgroup.subtree_control").write_text("cpu memory pids\n", "ascii")
    assert memory_cgroup(groups, own) == (groups / "user.slice", "memory.max")


def test_version_2_without_the_controller_limits_nothing(tmp_path: Path) -> None:
    groups, own = cgroups(tmp_path, "0::/user.slice/shell.scope\n", "user.slice/shell.scope")
    (groups / "user.slice/cgroup.subtree_control").write_text("pids\n", "ascii")
    assert memory_cgroup(groups, own) is None


def test_a_cgroup_that_cannot_be_made_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rights, "memory_cgroup", lambda: (tmp_path / "missing", "memory.max"))
    assert missing_rights(["memory_limit"]) == {
        "memory_limit": "a cgroup with a limit cannot be made (No such file or directory)"
    }


def test_a_user_is_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing_rights(["root"]) == {"root": "this user is not root"}


def test_without_iproute2_no_network_is_shaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_rights(["shaped_network"]) == {"shaped_network": "ip and tc of iproute2 cannot be found"}


def test_a_step_that_fails_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ip", "tc"):
        tool = tmp_path / name
        tool.write_text("#!/bin/sh\necho Operation not permitted >&2\nexit 1\n", "ascii")
        tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert missing_rights(["shaped_network"]) == {
        "shaped_network": "`ip netns add ...` fails (Operation not permitted)"
    }
