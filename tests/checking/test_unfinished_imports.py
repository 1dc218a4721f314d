"""An import that ends in the middle leaves nothing by half, and is finished by the next."""

from __future__ import annotations

import copy
import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.bundles import import_bundles
from benchbook.checking.checks import check_project
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.unfinished import LIST, finish_writing
from builders import SCRIPT, packed, write
from bundled import GUEST, bundle_of, called, committed, contents, later, take
from repositories import git


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
