"""Let one command at a time change the records, and finish what one that was killed was putting in place."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.revisions import git_answer
from benchbook.content.site_files import tree_problems

try:
    import fcntl
except ImportError:  # Windows, where nothing else says that another command is at it
    fcntl = None  # type: ignore[assignment]

# Below the root; git ignores its folder.
LIST = ".benchbook/writing.json"
# How long a command waits for another without a word.
UNSAID_SECONDS = 5.0
# Ten times what an import of every record and trace of this handbook would list.
LARGEST_LIST = 4 * 2**20
# What a file is called before it is in its place: hidden, with eight letters of its own behind its name.
BESIDE = re.compile(r"\.(?P<name>.+\.json(?:\.gz)?)\.[a-z0-9_]{8}")
AGAIN = "run `benchbook import` or `benchbook record` again, which finishes it first"

# A file that is to be put, its place, and what was there before; the first is None of one that goes.
Move = tuple[Path | None, Path, Path | None]


@contextmanager
def changing_records(project: Project) -> Iterator[None]:
    """Be the only command that changes records, from what it reads of them on to what it writes.

    What one that was killed had left to do is done first.

    Raises:
        BenchbookError: That cannot be done, or git tracks what should be this checkout's own.
    """
    with alone(project.root):
        if strange := own_folder_problems(project):
            raise BenchbookError(*strange)
        _finish(project)
        yield


@contextmanager
def alone(root: Path, waiting: bool = True) -> Iterator[bool]:
    """Be the only command that puts files in place; False where another is, and this does not wait."""
    if fcntl is None:
        yield True
        return
    # The folder itself is what is held: a file of its own would be one more that is left.
    folder = os.open(root, os.O_RDONLY)
    try:
        try:
            held = _lock(folder, root, waiting)
        except OSError:  # a file system without locks
            yield True
            return
        if not held:
            yield False
            return
        try:
            yield True
        finally:
            # A child that was forked meanwhile would hold it on.
            fcntl.flock(folder, fcntl.LOCK_UN)
    finally:
        os.close(folder)


def _lock(folder: int, root: Path, waiting: bool) -> bool:
    """Hold an open folder; False where another does and this does not wait.

    Raises:
        OSError: Its file system has no locks.
    """
    for _ in range(int(UNSAID_SECONDS / 0.1) if waiting else 1):
        with suppress(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.1 if waiting else 0)
    if waiting:
        print(f"waiting for another command that puts files in place in {root}", file=sys.stderr, flush=True)
        fcntl.flock(folder, fcntl.LOCK_EX)
    return waiting


def list_moves(root: Path, moves: Sequence[Move], write: Callable[[Path, bytes], Path]) -> Path:
    """Write down what is about to be put in place, whole, by `write`, which puts a file beside its place.

    Raises:
        OSError: It cannot be written.
    """
    path = root / LIST

    def shown(one: Path | None) -> str | None:
        return None if one is None else one.relative_to(root).as_posix()

    table = [
        {
            "new": shown(new),
            "place": shown(place),
            "old": shown(old),
            "digest": _digest(new),
            "before": _digest(place),
        }
        for new, place, old in moves
    ]
    os.replace(write(path, json.dumps(table, indent=1).encode()), path)
    return path


def own_folder_problems(project: Project) -> list[Problem]:
    """What in the folder of this checkout's own may be anyone's: links, pipes, and what came with a commit.

    A journal in it becomes measurements, and a list in it moves records: neither is read where this finds
    anything.
    """
    folder = project.journal.name
    return [*tree_problems(project, [folder]), *_tracked(project, folder)]


def kept_drawing_problems(project: Project) -> list[Problem]:
    """What came with a commit of the drawings that builds keep: a page would show them as they are."""
    return _tracked(project, project.drawings.parent.name)


def _tracked(project: Project, folder: str) -> list[Problem]:
    # Some file systems take names for the same however their letters are written.
    tracked = git_answer(project.root, "ls-files", "-z", "--", f":(icase){folder}") or b""
    names = [name for name in tracked.decode("utf-8", "replace").split("\0") if name]
    if not names:
        return []
    what = f"git tracks {names[0]}, which anyone may have written; this folder is a checkout's own"
    return [Problem(folder, 1, what, f"remove it: `git rm -r {folder}`")]


def finish_writing(project: Project) -> None:
    """Put in place what a command that was killed had left to put, and remove what it left beside.

    Raises:
        BenchbookError: It cannot be, or the list is not one.
    """
    with changing_records(project):
        pass


def _finish(project: Project) -> None:
    try:
        for new, place, old in _moves(project):
            if new is None:
                place.unlink(missing_ok=True)
            elif new.exists():
                os.replace(new, place)
            if old is not None:
                old.unlink(missing_ok=True)
        (project.root / LIST).unlink(missing_ok=True)
        for path in (*_left_beside(project, project.records), *_lists_left(project)):
            path.unlink(missing_ok=True)
    except OSError as error:
        what = f"what it lists cannot be put in place ({error.strerror or error})"
        fix = "make room there, or make it writable, and run the same command again"
        raise BenchbookError(Problem(LIST, 1, what, fix)) from error


def unfinished_problems(project: Project) -> Iterator[Problem]:
    """What a command that was killed left to do; nothing while another is at it."""
    with alone(project.root, waiting=False) as is_alone:
        if not is_alone:
            return
        try:
            moves = _moves(project)
        except BenchbookError as error:
            yield from error.problems
            return
        if (project.root / LIST).exists():
            what = f"a command was killed while it put {len(moves)} files in place: some are of before"
            yield Problem(LIST, 1, what, AGAIN)
            return
        for path in _left_beside(project, project.snippets):
            what = "was left by a command that was killed before it was in its place"
            yield Problem(project.relative(path), 1, what, "remove it")


def _left_beside(project: Project, folder: Path) -> list[Path]:
    """Files that were to be put in a place below a folder, and never were; none behind a link."""
    hidden = sorted(path for path in folder.rglob(".*") if BESIDE.fullmatch(path.name))
    return [path for path in hidden if path.is_file() and project.link_above(path) is None]


def _lists_left(project: Project) -> list[Path]:
    """Lists that were being written, and never were in their place."""
    path = project.root / LIST
    found = ((one, BESIDE.fullmatch(one.name)) for one in path.parent.glob(".*"))
    return [one for one, match in found if match is not None and match["name"] == path.name]


def _moves(project: Project) -> list[Move]:
    """What the list says, where each file is one that belongs to the records.

    Raises:
        BenchbookError: The list is not one, or what it tells of is no more there.
    """
    fix = f"restore snippets/records (`git checkout`), remove {LIST}, and import or record again"
    try:
        with (project.root / LIST).open("rb") as file:
            content = file.read(LARGEST_LIST + 1)
        if len(content) > LARGEST_LIST:
            raise ValueError(f"it has more than {LARGEST_LIST} B")
        table = json.loads(content)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        raise BenchbookError(Problem(LIST, 1, f"cannot be read ({error})", fix)) from error
    moves: list[Move] = []
    for entry in table if isinstance(table, list) else [None]:
        move = _move(project, entry)
        if move is None or entry is None:
            what = "is not a list of files that were to be put below snippets/records"
            raise BenchbookError(Problem(LIST, 1, what, fix))
        moves.append(move)
        new, place, _ = move
        there = _digest(place)
        if new is not None and entry.get("digest") not in (_digest(new), there):
            what = f"{project.relative(place)} was to be put in place, and is no more there"
            raise BenchbookError(Problem(LIST, 1, what, fix))
        if there not in (entry.get("before"), entry.get("digest")):
            what = f"{project.relative(place)} has changed since a command was killed that was to write it"
            raise BenchbookError(Problem(LIST, 1, what, f"remove {LIST}, and import or record again"))
    return moves


def _move(project: Project, entry: Any) -> Move | None:
    """One line of the list; None where it is not one, or leads out of the records."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("place"), str):
        return None
    place = project.root / entry["place"]
    if ".." in place.parts or project.records not in place.parents or project.link_above(place) is not None:
        return None
    beside: list[Path | None] = []
    for key in ("new", "old"):
        if (name := entry.get(key)) is None:
            beside.append(None)
            continue
        path = project.root / str(name)
        found = BESIDE.fullmatch(path.name)
        if path.parent != place.parent or found is None or found["name"] != place.name or path.is_symlink():
            return None
        beside.append(path)
    new, old = beside
    return new, place, old


def _digest(path: Path | None) -> str | None:
    if path is None:
        return None
    with suppress(FileNotFoundError):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return None
