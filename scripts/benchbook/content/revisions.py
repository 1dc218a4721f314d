"""Lay what a commit holds, or a checkout would, into a folder: plain files only, as data, by no hook."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.site_files import DEEPEST, LONGEST_NAME

# What judging records, scripts, claims and pages needs.
# What the benchmarks found last.
BENCHMARKS = "scripts/benchmarks/results.json"
PLACES = ("pyproject.toml", "mkdocs.yml", "snippets", "docs", BENCHMARKS)
FILES = {"100644", "100755"}
# Far more than this handbook; a commit that holds more is a mistake or an attack.
LARGEST = 512 * 2**20
MOST_ENTRIES = 100_000
# So many bytes are more than any path of names and folders that may lie here.
_LONGEST_ENTRY = 2**16


@dataclass(frozen=True)
class Blob:
    """A plain file of a commit: its path from the root, what git calls its content, and its bytes."""

    path: PurePosixPath
    name: str
    size: int


def commit_of(root: Path, revision: str) -> str:
    """The full name of the commit that `revision` means.

    Raises:
        BenchbookError: There is no such commit, or this is not a repository.
    """
    commit = git_answer(
        root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if commit is None:
        fix = "name a commit, branch or tag of this repository; fetch it first if it is not here"
        raise BenchbookError(Problem(revision or ".", 1, "is not a revision of this repository", fix))
    return commit.decode().strip()


@contextlib.contextmanager
def laid_out(root: Path, revision: str) -> Iterator[Project]:
    """A project of what `revision` holds, in a temporary folder that goes when the block ends.

    Raises:
        BenchbookError: There is no such revision, or it cannot be laid out.
    """
    commit = commit_of(root, revision)
    with tempfile.TemporaryDirectory(prefix="benchbook-revision-") as folder:
        _lay_out(root, commit, Path(folder))
        yield Project(Path(folder).resolve())


@contextlib.contextmanager
def laid_over(project: Project, contents: Mapping[Path, bytes | None]) -> Iterator[Project]:
    """A project as it would be with these contents, in a temporary folder that goes when the block ends.

    Plain files alone: nothing is read through a link.

    Parameters:
        project: The project as it is.
        contents: What each of some files would hold, None of one that goes.
    """
    with tempfile.TemporaryDirectory(prefix="benchbook-import-") as folder:
        root = Path(folder).resolve()
        tops = [project.root / name for name in PLACES]
        for path in (path for top in tops for path in (top, *top.rglob("*"))):
            if path not in contents and path.is_file() and not path.is_symlink():
                _put(root / path.relative_to(project.root), path.read_bytes())
        for path, content in contents.items():
            if content is not None:
                _put(root / path.relative_to(project.root), content)
        yield Project(root)


def _put(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def _lay_out(root: Path, commit: str, folder: Path) -> None:
    blobs = list(listed_files(root, commit))
    if sum(blob.size for blob in blobs) > LARGEST:
        what = f"holds more than {LARGEST >> 20} MiB of pages and records"
        raise BenchbookError(Problem(commit, 1, what, "leave out what belongs elsewhere"))
    asked = "".join(f"{blob.name}\n" for blob in blobs).encode()
    answer = git_answer(root, "cat-file", "--batch", send=asked)
    if answer is None:
        raise BenchbookError(_unreadable(commit))
    at = 0
    for blob in blobs:
        # "<name> blob <size>\n<content>\n"
        start = answer.index(b"\n", at) + 1
        at = start + blob.size + 1
        _put(folder / blob.path, answer[start : at - 1])


def listed_files(root: Path, commit: str, places: Sequence[str] = PLACES) -> Iterator[Blob]:
    """The plain files below `places`: no links, no submodules, nothing whose path leaves the folder.

    Raises:
        BenchbookError: There are more, or deeper, than any checkout here has; or git cannot list them.
    """
    for count, entry in enumerate(_entries(root, commit, places), start=1):
        head, _, name = entry.partition(b"\t")
        mode, _, blob, size = head.decode().split()
        shown = PurePosixPath(name.decode("utf-8", "replace"))
        longest = max(map(len, shown.parts), default=0)
        if count > MOST_ENTRIES:
            what = f"lists more than {MOST_ENTRIES} files and folders of pages and records"
            raise BenchbookError(Problem(commit, 1, what, "leave out what belongs elsewhere"))
        if longest > LONGEST_NAME or len(entry) > _LONGEST_ENTRY:
            what = f"has a name of {longest} characters below `{shown.parts[0]}`"
            fix = f"give it a shorter one: {LONGEST_NAME} are the most"
            raise BenchbookError(Problem(commit, 1, what, fix))
        if len(shown.parts) > DEEPEST + 1:
            what = (
                f"has files in more than {DEEPEST} folders below `{shown.parts[0]}`, and nothing lies as deep"
            )
            raise BenchbookError(Problem(commit, 1, what, "put what it holds further up"))
        try:
            path = PurePosixPath(name.decode("utf-8"))
        except UnicodeDecodeError:
            continue
        if mode in FILES and not path.is_absolute() and ".." not in path.parts:
            yield Blob(path, blob, int(size))


def _entries(root: Path, commit: str, places: Sequence[str]) -> Iterator[bytes]:
    """What git lists below `places` while it lists: of few objects, a commit can be made that has no end.

    Folders too, for one that holds nothing would be walked through without a word.
    """
    command = ["git", "-C", str(root), "ls-tree", "-r", "-t", "-l", "-z", "--full-tree", commit, "--"]
    with subprocess.Popen([*command, *places], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as listing:
        assert listing.stdout is not None
        try:
            left = b""
            while len(left) <= _LONGEST_ENTRY and (read := listing.stdout.read(_LONGEST_ENTRY)):
                *entries, left = (left + read).split(b"\0")
                yield from entries
            if left:
                yield left
            elif listing.wait():
                raise BenchbookError(_unreadable(commit))
        finally:
            listing.kill()


def _unreadable(commit: str) -> Problem:
    return Problem(commit, 1, "cannot be read", "fetch its files: the clone is partial")


def text_at(root: Path, commit: str, path: str) -> str | None:
    """What a file held in a commit, what is no UTF-8 of it replaced; None where it was not there.

    Parameters:
        root: The checkout.
        commit: Any name of it.
        path: From the root.
    """
    told = git_answer(root, "show", f"{commit}:./{path}")
    return None if told is None else told.decode("utf-8", "replace")


def git_answer(root: Path, *arguments: str, send: bytes = b"") -> bytes | None:
    """What git says in a folder; None where there is no git, or it fails."""
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments], input=send, capture_output=True, check=False
        )
    except OSError:
        return None
    return answer.stdout if answer.returncode == 0 else None


def moment_of(seconds: str) -> datetime | None:
    """When a commit was made that git dates so; None for what no calendar has, as anyone may date theirs."""
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None


def has_whole_history(folder: Path) -> bool:
    """Whether a folder is of a repository from whose history nothing was left out."""
    return git_answer(folder, "rev-parse", "--is-shallow-repository") == b"false\n"
