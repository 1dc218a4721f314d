"""A fresh clone of this repository, with the environments that `make` would make already there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from repositories import git

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ("site", "record", "test")
# What a `make` around these tests would tell one within them, and what that takes from around it.
FROM_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "GNUMAKEFLAGS")
TAKEN_BY_MAKE = re.findall(r"^export (\w+) \?=", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)


def fresh_clone(folder: Path) -> Path:
    """A clone of the commit that is checked out here, in `folder`; this Python stands for every environment."""
    git(ROOT, "clone", "--quiet", "--no-local", str(ROOT), str(folder))
    git(folder, "checkout", "--quiet", "-B", "main", git(ROOT, "rev-parse", "HEAD"))
    return link_environments(folder)


def link_environments(folder: Path) -> Path:
    """Let this Python stand for every environment that `make` would make in a clone."""
    for name in ENVIRONMENTS:
        environment = folder / ".venv" / name
        environment.mkdir(parents=True)
        (environment / "bin").symlink_to(Path(sys.prefix, "bin"))
        done = environment / ".installed"
        done.touch()
        # Newer than what it is made from, whatever the clock of the file system counts in.
        os.utime(done, (time.time() + 60, time.time() + 60))
    return folder


def shell(
    folder: Path, command: str, extra: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command line in a clone, with the package of that clone and nothing from around the tests."""
    kept = {name: text for name, text in os.environ.items() if name not in {*FROM_MAKE, *TAKEN_BY_MAKE}}
    environment = {**kept, "PYTHONPATH": str(folder / "scripts"), **(extra or {})}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def benchbook(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command of this checkout in a folder."""
    command = [sys.executable, str(ROOT / "scripts/benchbook"), *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def unread(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command of this checkout in a folder, into a pipe that nobody reads."""
    command = [sys.executable, str(ROOT / "scripts/benchbook"), *words]
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            command, cwd=folder, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writer)
