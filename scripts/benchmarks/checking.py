"""How long `benchbook check` takes over a handbook of many guides and languages.

Run `python scripts/benchmarks/checking.py [--guides 16] [--languages 6]` where the site's packages are
installed. It grows a copy of the checkout as `serving.py` does; what is wrong with that is not looked at.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchbook.content.project import find_project
from benchbook.content.revisions import BENCHMARKS
from benchbook.contributing.benchmark_results import keep_results, result
from serving import copied, grow

BAR = 10.0


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--guides", type=int, default=16, help="guides to grow the copy to")
    arguments.add_argument("--languages", type=int, default=6, help="languages to grow the copy to")
    arguments.add_argument("--times", type=int, default=3, help="how often it is checked")
    arguments.add_argument("--keep", action="store_true", help=f"keep the result in {BENCHMARKS}")
    options = arguments.parse_args()
    project = find_project()
    with tempfile.TemporaryDirectory() as folder:
        grown = copied(project, Path(folder))
        codes = grow(grown, options.guides, options.languages)
        seconds = [check(Path(folder)) for _ in range(options.times)]
    typical = statistics.median(seconds)
    print(f"{options.guides} guides x {len(codes)} languages: median {typical:.2f} s (bar {BAR} s)")
    if options.keep:
        what = f"checking, {options.guides} guides x {len(codes)} languages"
        keep_results(project.root, [result(what, "the whole check", typical, "s", BAR)])
    return int(typical > BAR)


def check(root: Path) -> float:
    """Seconds of one check of the tree at `root`, whatever it finds."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "benchbook", "check"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        sys.exit(done.stderr)
    return time.perf_counter() - begun


if __name__ == "__main__":
    sys.exit(main())
