"""The folder of a checkout's own holds what its own commands left there: nothing in it comes from elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.bundles import import_at, import_bundles
from benchbook.checking.checks import check_project
from benchbook.content import unfinished
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.unfinished import LIST, finish_writing
from benchbook.recording import command as recording
from builders import MACHINE, make_project, write
from repositories import commit_all, git

RECORD = f"snippets/records/{MACHINE}/sums/add.json"
GOING = json.dumps([{"new": None, "place": RECORD, "old": None, "digest": None}])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A checkout with a record, which is committed."""
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    project = make_project(tmp_path / "checkout")
    write(project.root / ".gitignore", "/.benchbook/\n")
    commit_all(project.root)
    return project


def check(project: Project) -> None:
    if problems := check_project(Project(project.root)).problems:
        raise BenchbookError(*problems)


def record(project: Project) -> None:
    assert recording.record_command(project, []) == 0


def import_here(project: Project) -> None:
    import_bundles(project, [write(project.root.parent / "bundle.json", "{}")])


def import_there(project: Project) -> None:
    import_at(project, [write(project.root.parent / "bundle.json", "{}")], "HEAD")


def a_link(project: Project) -> str:
    write(project.root.parent / "elsewhere/writing.json", GOING)
    project.journal.symlink_to(project.root.parent / "elsewhere")
    return r"\.benchbook:1: is a link to another place"


def a_link_in_it(project: Project) -> str:
    project.journal.mkdir()
    (project.root / LIST).symlink_to("/dev/zero")
    return r"\.benchbook/writing\.json:1: is a link to another place"


def a_link_in_the_place_of_a_folder(project: Project) -> str:
    project.journal.mkdir()
    (project.journal / MACHINE).symlink_to(project.root.parent)
    return rf"\.benchbook/{MACHINE}:1: is a link to another place"


def a_pipe(project: Project) -> str:
    project.journal.mkdir()
    os.mkfifo(project.root / LIST)
    return r"\.benchbook/writing\.json:1: is neither a file nor a folder"


def a_committed_list(project: Project) -> str:
    write(project.root / LIST, GOING)
    git(project.root, "add", "--force", LIST)
    return r"\.benchbook:1: git tracks \.benchbook/writing\.json, which anyone may have written"


def a_committed_journal(project: Project) -> str:
    name = f".benchbook/{MACHINE}/sums/add.jsonl"
    write(project.root / name, "{}\n")
    git(project.root, "add", "--force", name)
    git(project.root, "commit", "--quiet", "--message=Innocent")
    return rf"\.benchbook:1: git tracks \.benchbook/{MACHINE}/sums/add\.jsonl, which anyone may have written"


def a_committed_journal_by_another_case(project: Project) -> str:
    write(project.root / ".BenchBook/add.jsonl", "{}\n")
    git(project.root, "add", "--force", ".BenchBook")
    return r"\.benchbook:1: git tracks \.BenchBook/add\.jsonl, which anyone may have written"


def test_a_drawing_that_came_with_a_commit_is_no_drawing_of_this_checkout(project: Project) -> None:
    drawing = project.root / ".cache/drawings/0a.svg"
    write(drawing, "<svg/>")
    check(project)
    git(project.root, "add", "--force", ".cache")
    with pytest.raises(BenchbookError, match=r"\.cache:1: git tracks \.cache/drawings/0a\.svg, which anyone"):
        check(project)


@pytest.mark.parametrize("use", [check, record, import_here, import_there])
@pytest.mark.parametrize(
    "made",
    [
        a_link,
        a_link_in_it,
        a_link_in_the_place_of_a_folder,
        a_pipe,
        a_committed_list,
        a_committed_journal,
        a_committed_journal_by_another_case,
    ],
)
def test_what_comes_from_elsewhere_in_it_is_refused_before_it_is_read(
    project: Project, made: Callable[[Project], str], use: Callable[[Project], None]
) -> None:
    before = (project.root / RECORD).read_bytes()
    said = made(project)
    with pytest.raises(BenchbookError, match=rf"^{said}[^\n]*$"):
        use(project)
    assert (project.root / RECORD).read_bytes() == before
    assert not (project.journal / "lock").exists()


def test_what_its_own_commands_left_there_is_gone_on_with_in_a_repository(project: Project) -> None:
    write(project.journal / MACHINE / "sums/add.jsonl", "")
    (going,) = json.loads(GOING)
    going["before"] = hashlib.sha256((project.root / RECORD).read_bytes()).hexdigest()
    write(project.root / LIST, json.dumps([going]))
    finish_writing(project)
    assert not (project.root / RECORD).exists()


def test_a_list_that_is_larger_than_any_is_not_read(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "LARGEST_LIST", len(GOING) - 1)
    write(project.root / LIST, GOING)
    with pytest.raises(BenchbookError, match=r"writing\.json:1: cannot be read \(it has more than \d+ B\)"):
        finish_writing(project)
    assert (project.root / RECORD).is_file()


@pytest.mark.parametrize("use", [record, import_here])
def test_a_list_that_was_never_whole_goes_with_the_next_run(
    project: Project, use: Callable[[Project], Any]
) -> None:
    left = write(project.root / ".benchbook/.writing.json.a1b2c3d4", "[")
    kept = write(project.journal / ".note.json.a1b2c3d4", "mine")
    # That the bundle is none is found later.
    with suppress(BenchbookError):
        use(project)
    assert not left.exists()
    assert kept.exists()
