"""Compare what recording an empty cell costs per process, after the first, with plain `python script.py`.

Run it on a quiet machine: `python scripts/benchmarks/recording.py`. It fails where the bar is not held.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchbook.content.project import find_project
from benchbook.content.revisions import BENCHMARKS
from benchbook.content.script import read_script
from benchbook.contributing.benchmark_results import keep_results, result
from benchbook.recording.campaign import make_job
from benchbook.recording.hosts import Hosts, interpreter, preload_names
from benchbook.recording.jobs import OK

BAR_SECONDS = 0.1
SCRIPT = '''"""An empty cell beside the imports that every script has."""
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.11", "transformers>=5.23"]
# ///

# %% imports
import torch
import transformers

# %% empty

# %% checks
assert torch and transformers
'''


def timed(action: Callable[[], None], times: int) -> list[float]:
    samples = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        samples.append(time.perf_counter() - started)
    return samples


def line(title: str, samples: list[float]) -> str:
    middle = statistics.median(samples)
    return f"{title:<28} {middle:8.3f} {min(samples):8.3f} {max(samples):8.3f}   {len(samples)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="how many processes are recorded")
    parser.add_argument("--plain-times", type=int, default=3, help="how many are run by hand")
    parser.add_argument("--keep", action="store_true", help=f"keep the result in {BENCHMARKS}")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Hosts() as hosts:
        path = Path(folder) / "snippets" / "guide" / "empty.py"
        path.parent.mkdir(parents=True)
        path.write_text(SCRIPT, "utf-8")
        script = read_script(path, Path(folder))
        job = make_job(script, script.variants(("cpu",))[0], str(path), folder)

        def plain() -> None:
            subprocess.run([interpreter(), str(path)], check=True)

        def recorded() -> None:
            preload = preload_names(cell.source for cell in script.cells)
            result = hosts.host({}, preload, script.path).run(job)
            assert result.outcome == OK, result.failure

        by_hand = timed(plain, chosen.plain_times)
        first = timed(recorded, 1)
        after = timed(recorded, chosen.times)
    print(f"{'seconds per process':<28} {'median':>8} {'min':>8} {'max':>8}   n")
    print(line("python script.py", by_hand))
    print(line("recorded, the first", first))
    print(line("recorded, each after it", after))
    typical = statistics.median(after)
    held = typical < BAR_SECONDS
    print(f"the bar of {BAR_SECONDS} s is {'held' if held else 'MISSED'}")
    if chosen.keep:
        found = result("recording", "each process after the first", typical, "s", BAR_SECONDS)
        keep_results(find_project().root, [found])
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
