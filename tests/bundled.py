"""Bundles as contributors hand them in, for tests."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from benchbook.checking.bundles import Imported, import_at, import_bundles
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import dump_record
from builders import GPU_JSON, MACHINE, MACHINE_JSON, SCRIPT, make_record
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


def refusal(project: Project, path: Path) -> str:
    with pytest.raises(BenchbookError) as caught:
        import_bundles(project, [path])
    assert not project.records.exists()
    return str(caught.value)


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


def committed(project: Project, day: str) -> str:
    """The checkout as a repository, whose one commit was made on that day."""
    git(project.root, "init", "--quiet")
    git(project.root, "add", "--all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_COMMITTER_DATE", f"{day}T00:00:00Z")
        git(project.root, "commit", "--quiet", "--message=All")
    return git(project.root, "rev-parse", "HEAD")


def contents(project: Project) -> dict[Path, bytes | None]:
    """Whatever lies among the records, with what is not to be seen, and the folders."""
    found = sorted(project.records.rglob("*"))
    return {path: path.read_bytes() if path.is_file() else None for path in found}


def take(project: Project, path: Path, revision: str | None) -> Imported:
    if revision is None:
        return import_bundles(project, [path], replacing=True, machine=GUEST)
    return import_at(project, [path], revision, replacing=True, machine=GUEST)


def further(bundle: dict[str, Any], **system: str) -> dict[str, Any]:
    """The bundle as of another script, and of a machine whose system says more."""
    bundle["records"][0]["script"] = "sums/sub.py"
    bundle["machine"]["system"].update(system)
    return bundle
