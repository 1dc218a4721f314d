"""Every benchmark runs to its end at its smallest; whether it holds its bar is for a quiet machine to say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "scripts" / "benchmarks"
# What to ask of each, and what it says at its end. Lighthouse is fetched from elsewhere, and runs every week.
SMALLEST = {
    "building": (["--copies", "1", "--pairs", "1"], r"median ratio of 1 pairs: [\d.]+"),
    "serving": (["--saves", "1"], r"median [\d.]+ s, longest"),
    "checking": (["--guides", "0", "--languages", "0", "--times", "1"], r"median [\d.]+ s"),
    "recording": (["--times", "1", "--plain-times", "1"], r"[\d.]+ s"),
    "predictor": ([], r"benchbook"),
}


def test_every_benchmark_is_tried_here_or_every_week() -> None:
    # What some of them share has no beginning of its own.
    benchmarks = {path.stem for path in FOLDER.glob("*.py") if "\ndef main(" in path.read_text("utf-8")}
    assert benchmarks == {*SMALLEST, "lighthouse"}
    assert "make benchmarks" in (ROOT / ".github/workflows/weekly.yml").read_text("utf-8")


@pytest.mark.parametrize("name", SMALLEST)
def test_it_runs_to_its_end_at_its_smallest(name: str) -> None:
    arguments, said = SMALLEST[name]
    command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in (0, 1), done.stderr
    assert re.search(said, done.stdout), done.stdout
