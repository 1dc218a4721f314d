"""Tell what runs loaded, by the content of each file: whether it is what those after them will load."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import benchbook
from benchbook.recording.installed_packages import code_state

# Of a larger file its size and both ends are read: a library says at its beginning which build it is.
_LARGE, _END = 4 * 2**20, 2**20
# What was read, by path, with how the file was then.
_read: dict[str, tuple[tuple[int, ...], str]] = {}


def loaded_code(places: Iterable[str], root: str) -> dict[str, str]:
    """A digest of each of the files, of the code below folders, and of archives that code lies in.

    By path, which is relative to `root` below the folder that holds it: another machine has it elsewhere.

    Parameters:
        places: Paths of modules and libraries, and of folders in which some may have been found. What lies in
            the folder of temporary files was made by a run, and by this package.
        root: Of the project.
    """
    temporary = tempfile.gettempdir()
    own = (temporary, os.path.realpath(temporary), os.path.dirname(benchbook.__file__))
    left_out = tuple(os.path.join(folder, "") for folder in own)
    found = {}
    for path in places:
        # What is gone was made by the run, too.
        with contextlib.suppress(OSError, ValueError):
            if not path.startswith(left_out):
                found[_named(path, root)] = _digest_in(path)
    return found


def changed_code(digests: Mapping[str, str], root: str) -> str:
    """Which of the places of `loaded_code` is not as it was; empty where all are."""
    for name, digest in digests.items():
        try:
            if _digest_in(os.path.normpath(os.path.join(root, name))) == digest:
                continue
        except (OSError, ValueError):
            pass
        return name
    return ""


def _named(path: str, root: str) -> str:
    beside = os.path.dirname(root)
    return os.path.relpath(path, root) if os.path.commonpath([beside, path]) == beside else path


def _digest_in(path: str) -> str:
    """A digest of a file, of the code below a folder, or of the archive that holds what the path names.

    Raises:
        OSError: There is nothing to read, or a pipe, which would be waited for.
    """
    if os.path.isdir(path):
        return code_state(Path(path))
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(path)
    now = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    before, known = _read.get(path, ((), ""))
    if before == now:
        return known
    digest = hashlib.sha256(str(status.st_size).encode())
    with open(path, "rb") as file:
        if status.st_size <= _LARGE:
            digest.update(file.read())
        else:
            digest.update(file.read(_END))
            file.seek(-_END, os.SEEK_END)
            digest.update(file.read())
    _read[path] = now, digest.hexdigest()[:16]
    return _read[path][1]
