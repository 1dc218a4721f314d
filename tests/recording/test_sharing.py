"""A plan divides scripts among runners evenly, each whole, and can be made for a machine that is not here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.script import parse_script
from benchbook.recording import command as recording
from benchbook.recording.plan import Task, matrix
from builders import MACHINE_JSON, SCRIPT, make_project, with_table, write


def task(number: int, seconds: float | None) -> Task:
    reference = f"sums/s{number:03}.py"
    script = parse_script(SCRIPT, f"snippets/{reference}", reference)
    variants = script.variants(("cpu",))
    known = {variant.name: seconds for variant in variants}
    return Task(script, Path(reference), {}, None, ("default",), variants, {}, known)


@settings(deadline=None)
@given(st.lists(st.none() | st.floats(0, 1000), max_size=12), st.integers(1, 6))
def test_every_script_is_in_one_share_and_no_share_is_empty(times: list[float | None], runners: int) -> None:
    tasks = [task(number, seconds) for number, seconds in enumerate(times)]
    shares = matrix(tasks, runners)["include"]
    assert len(shares) == min(runners, len(tasks))
    assert all(share["scripts"] for share in shares)
    assert sorted(name for share in shares for name in share["scripts"].split()) == [
        each.script.reference for each in tasks
    ]


def test_the_longest_goes_alone() -> None:
    shares = matrix([task(0, 100), task(1, 10), task(2, 20), task(3, 30)], 2)["include"]
    assert [share["scripts"] for share in shares] == [
        "sums/s000.py",
        "sums/s001.py sums/s002.py sums/s003.py",
    ]
    assert shares[0]["expected_minutes"] == pytest.approx(2 * 100 / 60, abs=0.1)


def test_what_was_never_timed_has_no_expected_minutes() -> None:
    (share,) = matrix([task(0, None), task(1, 1)], 1)["include"]
    assert share["expected_minutes"] is None


def planned(project: Project, machine: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert recording.record_command(project, [], plan=True, plan_json=True, machine=machine, runners=2) == 0
    table = json.loads(capsys.readouterr().out)
    assert table["machine"] == machine
    return [script["script"] for script in table["scripts"]]


def test_the_kind_of_a_machine_elsewhere_is_that_of_its_records_or_its_vendor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = make_project(tmp_path)
    write(project.snippets / "sums/cuda.py", with_table('[tool.benchbook]\nneeds = ["cuda"]'))
    write(project.snippets / "sums/rocm.py", with_table('[tool.benchbook]\nneeds = ["rocm"]'))
    described = MACHINE_JSON | {"name": "somebodys-own", "kind": "rocm"}
    write(project.records / "somebodys-own/machine.json", json.dumps(described))
    assert planned(project, "nvidia-h200-141gb", capsys) == ["sums/add.py", "sums/cuda.py"]
    assert planned(project, "somebodys-own", capsys) == ["sums/add.py", "sums/rocm.py"]


@pytest.mark.parametrize("machine", ["../x", "unheard-of", "records/../x"])
def test_a_machine_that_nothing_tells_of_is_no_name_for_this_one(
    tmp_path: Path, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    with pytest.raises(BenchbookError, match="cannot name this machine"):
        recording.record_command(make_project(tmp_path), [], plan=True, machine=machine)
