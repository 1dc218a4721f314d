"""Building, serving and checking need nothing that only Linux has; recording says that it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from handbooks import FIXTURE, whole_handbook

# What Python has on Linux and macOS, and not on Windows; for other packages that ask for it, it is there.
UNIX_ALONE = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
WITHOUT = f"""
import builtins, os, signal, sys
genuine = builtins.__import__
def guarded(name, globals=None, locals=None, fromlist=(), level=0):
    if name.partition(".")[0] in {UNIX_ALONE!r} and str((globals or {{}}).get("__name__")).startswith("benchbook"):
        raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
    return genuine(name, globals, locals, fromlist, level)
builtins.__import__ = guarded
"""


def run_without(code: str, folder: Path = FIXTURE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT + code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_site_is_built_without_what_only_unix_has(tmp_path: Path) -> None:
    root = whole_handbook(tmp_path / "handbook").root
    arguments = ["build", "--quiet", "-f", str(root / "mkdocs.yml"), "-d", str(tmp_path / "site")]
    done = run_without(f"from mkdocs.__main__ import cli\ncli({arguments!r})", root)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "measured" / "index.html").is_file()


def test_a_tree_is_checked_without_what_only_unix_has(tmp_path: Path) -> None:
    root = whole_handbook(tmp_path / "handbook").root
    done = run_without("from benchbook.cli.main import main\nsys.argv = ['benchbook', 'check']\nmain()", root)
    assert "problem(s)" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_taken_away_would_be_missed() -> None:
    done = run_without("import benchbook.recording.session")
    assert "No module named 'fcntl'" in done.stderr


def test_recording_elsewhere_says_that_it_needs_linux() -> None:
    there = "import benchbook.cli.main, sysconfig\nsysconfig.get_config_vars()\nsys.platform = 'darwin'\nsys.argv = ['benchbook', 'record']\n"
    done = run_without(there + "benchbook.cli.main.main()")
    assert done.returncode == 1
    assert "recording needs Linux, and this is darwin" in done.stderr
