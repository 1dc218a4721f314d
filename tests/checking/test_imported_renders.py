"""Whatever `import` accepts, `check` accepts and the pages render: one bundle stops no build."""

from __future__ import annotations

import copy
import difflib
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
from builders import packed, write
from damage import damaged
from handbooks import FIXTURE, GPU, copy_handbook, render, start

GUEST = f"{GPU}--ada"
SCRIPTS = ("memory/methods.py", "memory/losses.py")
PAGES = ("measured", "asserted", "claims")


def made_up() -> dict[str, Any]:
    """What Ada would hand in of a GPU of hers: the figures of the small handbook's, each a little longer."""
    folder = FIXTURE / "snippets/records" / GPU
    machine = json.loads((folder / "machine.json").read_text("utf-8")) | {"name": GUEST, "owner": "Ada"}
    machine["accelerator"]["vendor"] = "NVIDIA"
    records = []
    for script in SCRIPTS:
        record = json.loads((folder / script).with_suffix(".json").read_text("utf-8")) | {"machine": GUEST}
        for campaign in record["campaigns"].values():
            campaign["recorded_by"] = "Ada"
        for variant in record["variants"].values():
            runs = variant["runs"]
            # As many as are asked for of what scatters, no two alike.
            variant["runs"] = [
                copy.deepcopy(runs[place % len(runs)]) | {"place": place} for place in range(8 if runs else 0)
            ]
            for place, run in enumerate(variant["runs"]):
                for meters in run["cells"].values():
                    meters["seconds"] *= 1.01 + place / 100
                if "step_time" in run["metrics"]:
                    run["metrics"]["step_time"] *= 1.01 + place / 100
        records.append(record)
    return {"schema": 1, "machine": machine, "records": records}


WHOLE = made_up()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return copy_handbook(tmp_path_factory.mktemp("handbook"))


def blocks() -> list[str]:
    texts = [(FIXTURE / f"docs/en/{name}.md").read_text("utf-8") for name in PAGES]
    return [text.split("---\n", 2)[2] for text in texts]


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


def accepted(project: Project, table: Any, folder: Path) -> bool:
    """Import a bundle; where it is accepted, it is checked and shown. Whether it was."""
    shutil.rmtree(project.records / GUEST, ignore_errors=True)
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


CLEAN: dict[Path, set[str]] = {}
ACCEPTED: list[bool] = []


def take(project: Project, table: Any, folder: Path) -> None:
    CLEAN.setdefault(project.root, problems_of(project))
    ACCEPTED.append(accepted(project, table, folder))


def test_what_nobody_damaged_is_accepted_and_shown(project: Project, tmp_path: Path) -> None:
    shutil.rmtree(project.records / GUEST, ignore_errors=True)
    CLEAN.setdefault(project.root, problems_of(project))
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


def test_of_what_is_damaged_some_is_accepted_and_some_refused() -> None:
    assert set(ACCEPTED) == {True, False}


@pytest.mark.weekly
@settings(quick, max_examples=2000)
@given(bundle=bundles(2))
def test_a_bundle_that_is_damaged_twice_is_refused_or_shown(
    project: Project, tmp_path: Path, bundle: Bundle
) -> None:
    take(project, bundle.table, tmp_path)
