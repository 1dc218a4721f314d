"""Small git repositories, for the tests of what reads revisions."""

from __future__ import annotations

import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")


def git(root: Path, *arguments: str) -> str:
    """What git says, without the line break at its end."""
    command = ["git", "-C", str(root), *IDENTITY, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip("\n")


def commit_all(root: Path) -> str:
    """Commit whatever lies below `root`, a repository from now on; the name of the commit."""
    if not (root / ".git").exists():
        git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--allow-empty", "--message=A state")
    return git(root, "rev-parse", "HEAD")
