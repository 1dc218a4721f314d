"""Folders of files that a site is given beside its pages, and how a served site keeps them between builds."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

# A text, bytes, or a file to copy.
Content = str | bytes | Path


def write_files(folder: Path, files: Mapping[str, Content]) -> None:
    """Write `files`, by their path below `folder`."""
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            target.write_text(content, "utf-8")
        else:
            target.write_bytes(content.read_bytes() if isinstance(content, Path) else content)


class KeptFolders:
    """The folders of a served site that outlive its builds, so that only what has changed is written again.

    MkDocs empties the site before each build. What it cannot empty lies elsewhere; the site has links to it.
    """

    def __init__(self) -> None:
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._written: dict[str, dict[str, object]] = {}

    def place(self, site: Path, name: str, files: Mapping[str, Content]) -> None:
        """Make the folder `name` of `site` hold `files`, and nothing else."""
        if self._home is None:
            self._home = tempfile.TemporaryDirectory(prefix="benchbook-served-")
        folder = Path(self._home.name, name)
        known = self._written.setdefault(name, {})
        made_of = {path: _made_of(content) for path, content in files.items()}
        for path in known.keys() - made_of.keys():
            (folder / path).unlink()
        write_files(folder, {path: one for path, one in files.items() if known.get(path) != made_of[path]})
        self._written[name] = made_of
        if files:
            _link(folder, site / name)

    def close(self) -> None:
        """Remove what was kept."""
        if self._home is not None:
            self._home.cleanup()
        self._home = None
        self._written.clear()


def _made_of(content: Content) -> object:
    if not isinstance(content, Path):
        return content
    told = content.stat()
    return str(content), told.st_mtime_ns, told.st_size


def _link(folder: Path, target: Path) -> None:
    if target.is_symlink():
        return  # MkDocs leaves a link at the root of the site where it is
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(folder, target_is_directory=True)
    except OSError:  # a system that lets nobody make links
        shutil.copytree(folder, target, dirs_exist_ok=True)
