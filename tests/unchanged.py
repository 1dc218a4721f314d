"""What has changed since `main`, and whether a test module can tell: by what it imports, wherever in its text."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where modules are imported from.
SOURCES = ("scripts", "tests")
# Words, pictures, workflows and what only a browser sees: no test without one reads them.
_NEVER_READ = ("docs/", ".github/", "tests/browser/")
# Python that matters to those alone who import it; other Python is read, or run, as a file.
_IMPORTED_ALONE = ("scripts/benchbook/", "scripts/benchmarks/")


def changed_files(root: Path = ROOT) -> set[str] | None:
    """What differs from the commit at which this branch left `main`; None where git cannot tell.

    Files that git does not know yet count, those that it ignores do not.
    """
    for name in ("origin/main", "main"):
        base = _git(root, "merge-base", "HEAD", name)
        if base is not None:
            break
    else:
        return None
    differing = _git(root, "diff", "--name-only", "--no-renames", base.strip())
    unknown = _git(root, "ls-files", "--others", "--exclude-standard")
    return (
        None
        if differing is None or unknown is None
        else {*differing.split("\n"), *unknown.split("\n")} - {""}
    )


def must_run(module: Path, others: Iterable[str], changed: set[str] | None, root: Path = ROOT) -> bool:
    """Whether the tests of a module could have another outcome than on `main`.

    Parameters:
        module: Its file.
        others: Names of modules that it runs in processes of their own.
        changed: As `changed_files` gives it. Nothing changed is not a proof: then everything runs.
        root: The project.
    """
    if not changed:
        return True
    read = set(imported_files(module, root))
    for name in others:
        for path in _files_of(name, root):
            read |= {path.relative_to(root).as_posix(), *imported_files(path, root)}
    return any(path in read or not _only_imported(path) for path in changed)


def _only_imported(path: str) -> bool:
    """Whether a file cannot matter to tests that do not import it."""
    if path.startswith(_NEVER_READ) or path.endswith(".md"):
        return True
    is_test = path.startswith("tests/") and Path(path).name.startswith("test_")
    return path.endswith(".py") and (is_test or path.startswith(_IMPORTED_ALONE))


def imported_files(module: Path, root: Path = ROOT) -> frozenset[str]:
    """A module and all modules of the project that it imports, directly or not, as paths below `root`."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += [file for name in _imports(path) for file in _files_of(name, root)]
    return frozenset(path.relative_to(root).as_posix() for path in found)


@cache
def _imports(path: Path) -> frozenset[str]:
    return frozenset(_named(ast.parse(path.read_text("utf-8"))))


def _named(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "this project imports by whole names"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files_of(name: str, root: Path) -> Iterator[Path]:
    """The files of the module `name` and of the packages that it lies in; none if it is not the project's."""
    parts = name.split(".")
    for source in SOURCES:
        for length in range(1, len(parts) + 1):
            path = root / source / Path(*parts[:length])
            for file in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
                if file.is_file():
                    yield file


def _git(root: Path, *arguments: str) -> str | None:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None
