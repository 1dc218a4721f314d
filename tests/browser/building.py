"""Builds a site as `make site` does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "handbook"


def run_build(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A build of the site of `config` into `folder`, whether it succeeds or not."""
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", str(config), "-d", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def build(config: Path, folder: Path) -> Path:
    """Build the site of `config` into `folder`, as `make site` does."""
    done = run_build(config, folder)
    assert done.returncode == 0, done.stderr
    return folder
