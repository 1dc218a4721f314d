"""The README says by which modules a number gets from a script to a Japanese page: it does."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from benchbook.recording import command as recording
from handbooks import build_site, copy_handbook, edit

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "scripts/benchbook"
STEP = re.compile(r"^(\d+)\. `([a-z]+/[a-z_]+\.py)`", re.MULTILINE)
# Runs in processes of its own, of which `host_process.py` is the parent.
WORKER = "recording/worker.py"
SCRIPT = "memory/losses.py"


def modules_run_by(act: Callable[[], object]) -> set[str]:
    """The modules of the package of which a function runs in this process while `act` does."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    paths = (Path(file) for file in files)
    return {path.relative_to(PACKAGE).as_posix() for path in paths if path.is_relative_to(PACKAGE)}


def test_a_number_takes_the_way_that_the_readme_tells(tmp_path: Path) -> None:
    steps = STEP.findall((ROOT / "README.md").read_text("utf-8"))
    assert [int(number) for number, _ in steps] == list(range(1, len(steps) + 1))
    assert 5 <= len(steps) <= 10
    project = copy_handbook(tmp_path)
    for code in project.languages:
        page = f"# Losses {{ #losses }}\n\nThe difference is `#!value {SCRIPT}#difference`.\n"
        (project.docs / code / "memory.md").write_text(page, "utf-8")
    edit(project.snippets / SCRIPT, "difference = 7.2e-8", "difference = 9e-8")
    recorded = modules_run_by(lambda: recording.record_command(project, [SCRIPT]))
    (here,) = {path.parents[1].name for path in project.records.glob("cpu-*/memory/losses.json")}
    for path in project.records.glob("*/memory/losses.json"):
        if path.parents[1].name != here:
            path.unlink()
    shown = modules_run_by(lambda: build_site(project))
    assert "9\u00a0×\u00a010⁻⁸" in (project.root / "site/ja/memory/index.html").read_text("utf-8")
    told = [module for _, module in steps if module != WORKER]
    written = told.index("content/records.py")
    assert set(told[: written + 1]) <= recorded
    assert set(told[written:]) <= shown
    assert WORKER.removesuffix(".py").replace("/", ".") in (PACKAGE / "recording/host_process.py").read_text(
        "utf-8"
    )


def test_the_readme_has_a_line_for_each_room() -> None:
    lines = [line for line in (ROOT / "README.md").read_text("utf-8").splitlines() if line.startswith("| `")]
    named = [name for line in lines for name in re.findall(r"`([a-z]+)/`", line.split("|")[1])]
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert rooms <= set(named)
