"""A verification runs what is recorded again, names what differs and by how much, and writes nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.machines.description import describe
from benchbook.recording import command as recording
from benchbook.recording.plan import make_plan
from benchbook.recording.stores import Checkout
from benchbook.recording.verification import sample
from builders import write
from running import SWEEP, add_script

HERE = describe(None)
BODY = "# %% parameters\nn = 1\n\n# %% work\ndoubled = 2 * n\n\n# %% checks\nassert doubled"


@pytest.fixture
def project(project: Project) -> Project:
    """The same, in which a script was recorded."""
    add_script(project.root, BODY, SWEEP)
    assert recording.record_command(project, []) == 0
    return project


def record_path(project: Project) -> Path:
    return project.record_path(HERE.name, "guide/small.py")


def test_what_is_as_recorded_holds_and_nothing_is_written(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    before = record_path(project).read_bytes()
    capsys.readouterr()
    assert recording.record_command(project, ["guide/small.py"], verify=True, plan_json=True) == 0
    table = json.loads(capsys.readouterr().out)
    assert (table["machine"], table["holds"], table["problems"]) == (HERE.name, True, [])
    doubled = [each for each in table["findings"] if each["quantity"] == "doubled"]
    assert [(each["variant"], each["before"], each["after"]) for each in doubled] == [
        ("n=1", 2, 2),
        ("n=2", 4, 4),
    ]
    assert record_path(project).read_bytes() == before


def test_what_differs_is_named_with_both_numbers(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    path = record_path(project)
    write(path, path.read_text("utf-8").replace('"doubled": 4', '"doubled": 5'))
    before = path.read_bytes()
    assert recording.record_command(project, ["guide/small.py"], verify=True) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "differs guide/small.py n=2#doubled: 5 -> 4 count, 0.800 times" in said
    assert path.read_bytes() == before


def test_a_script_that_no_longer_ends_well_differs(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    # The check fails outside the code whose digest counts: on a file that the record's machine had not.
    flag = project.root / "broken"
    script = add_script(
        project.root,
        f"# %% work\nimport os\n\n# %% checks\nassert not os.path.exists({str(flag)!r})",
        'needs = ["cpu"]\nrepeats = 1',
        name="guide/frail.py",
    )
    assert recording.record_command(project, [script.reference]) == 0
    flag.touch()
    assert recording.record_command(project, [script.reference], verify=True) == 1
    assert "where the record says ok" in " ".join(capsys.readouterr().err.split())


def test_what_has_no_fresh_record_cannot_be_verified(project: Project) -> None:
    add_script(project.root, BODY.replace("2 * n", "3 * n"), SWEEP)
    with pytest.raises(BenchbookError, match="has a fresh record"):
        recording.record_command(project, [], verify=True)


def test_of_what_nobody_named_one_variant_is_drawn(project: Project) -> None:
    store = Checkout(project, HERE)
    plan = make_plan(project, [], HERE, lambda script: store.load(script.reference), which="all")
    drawn: set[Any] = set()
    for seed in range(20):
        (task,) = sample(plan, False, None, random.Random(seed))
        (variant,) = task.variants
        drawn.add(variant.name)
    assert drawn == {"n=1", "n=2"}
    (task,) = sample(plan, True, None, random.Random(0))
    assert [variant.name for variant in task.variants] == ["n=1", "n=2"]
    (task,) = sample(plan, False, "n=2", random.Random(0))
    assert [variant.name for variant in task.variants] == ["n=2"]
