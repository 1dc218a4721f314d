"""Record on this machine before a build, with the interpreter that has torch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import benchbook
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project

MODES = ("stale", "all")
# Relative to the checkout; `make` builds this environment.
DEFAULT_PYTHON = ".venv/record/bin/python"


def record_here(project: Project, mode: str) -> str:
    """Record what is stale, or everything, on this machine; returns the name of the machine.

    Parameters:
        project: Whose scripts.
        mode: "stale" or "all", as BENCHBOOK_EXECUTE has it.

    Raises:
        BenchbookError: The mode is neither, there is no interpreter to record with, or recording failed.
    """
    if mode not in MODES:
        fix = f"set it to one of: {', '.join(MODES)}, or leave it unset to replay what is committed"
        raise BenchbookError(Problem("BENCHBOOK_EXECUTE", 1, f"`{mode}` is no way to execute", fix))
    python = _recording_python(project)
    if _run(project, python, f"--{mode}").returncode != 0:
        fix = "fix what is reported above, or build without BENCHBOOK_EXECUTE"
        raise BenchbookError(Problem("BENCHBOOK_EXECUTE", 1, "recording on this machine failed", fix))
    plan = _run(project, python, "--plan", "--json", quiet=True)
    try:
        return str(json.loads(plan.stdout)["machine"])
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        what = "the recorder did not say which machine this is"
        fix = f"run `{python} -m benchbook record --plan --json` to see what it says"
        raise BenchbookError(Problem("BENCHBOOK_EXECUTE", 1, what, fix)) from error


def _recording_python(project: Project) -> Path:
    """The interpreter that records.

    Raises:
        BenchbookError: There is none.
    """
    python = project.root / os.environ.get("BENCHBOOK_PYTHON", DEFAULT_PYTHON)
    if not python.is_file():
        fix = "run `make record` once, or set BENCHBOOK_PYTHON to an interpreter that has torch"
        raise BenchbookError(Problem("BENCHBOOK_PYTHON", 1, f"there is no interpreter {python}", fix))
    return python


def _run(
    project: Project, python: Path, *options: str, quiet: bool = False
) -> subprocess.CompletedProcess[str]:
    # The recording environment need not have this package installed: the folder above it is enough.
    package = str(Path(benchbook.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "BENCHBOOK_ROOT": str(project.root)}
    command = [str(python), "-m", "benchbook", "record", *options]
    return subprocess.run(
        command,
        cwd=project.root,
        env=environment,
        stdout=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
    )
