"""Lighthouse on each page of a built site in each language: four scores, phone profile, served compressed.

Run `make site`, then `python scripts/benchmarks/lighthouse.py [--site site] [--pages "" comparing_setups/]`.
It needs Node.js and a Chromium (CHROMIUM names another), and installs Lighthouse into .cache/lighthouse the
first time. The exit code is 1 where a score is below its bar.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchbook.content.project import Project, find_project
from benchbook.content.revisions import BENCHMARKS
from benchbook.contributing.benchmark_results import keep_results, result
from chromium import FLAGS, find_chromium
from static_server import serving

BARS = {"performance": 95, "accessibility": 100, "best-practices": 100, "seo": 100}
# Milliseconds for which a phone that opens a page cannot answer.
BLOCKING = 200
VERSION = "13"


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--site", type=Path, default=Path("site"), help="the built site")
    arguments.add_argument(
        "--pages", nargs="*", help="addresses of pages below a language (default: all in the sitemap)"
    )
    arguments.add_argument("--languages", nargs="*", help="languages (default: all)")
    arguments.add_argument("--keep", action="store_true", help=f"keep the result in {BENCHMARKS}")
    options = arguments.parse_args()
    project = find_project()
    lighthouse = install(project)
    failed, blocked = False, 0.0
    print("| page | performance | accessibility | best practices | SEO | lost |")
    print("|---|---|---|---|---|---|")
    with serving(options.site) as url:
        for where in addresses(project, options.languages, options.pages):
            report = measure(lighthouse, url + where)
            scores = {name: round(100 * report["categories"][name]["score"]) for name in BARS}
            failed |= any(scores[name] < bar for name, bar in BARS.items())
            cells = " | ".join(str(scores[name]) for name in BARS)
            blocked = max(blocked, report["audits"]["total-blocking-time"]["numericValue"])
            print(f"| {where or 'index'} | {cells} | {', '.join(lost(report))} |", flush=True)
    print(f"longest blocking time {blocked:.0f} ms (bar {BLOCKING} ms)")
    if options.keep:
        keep_results(project.root, [result("lighthouse, a phone", "blocking time", blocked, "ms", BLOCKING)])
    return int(failed or blocked > BLOCKING)


def addresses(project: Project, languages: list[str] | None, pages: list[str] | None) -> list[str]:
    """Each page in each language, relative to the start page."""
    guides = sorted(path.stem for path in (project.docs / "en").glob("*.md"))
    wanted = pages if pages is not None else ["" if guide == "index" else f"{guide}/" for guide in guides]
    codes = languages or project.languages
    return [("" if code == "en" else f"{code}/") + page for code in codes for page in wanted]


def install(project: Project) -> Path:
    """The Lighthouse command, installed where git ignores it."""
    folder = project.root / ".cache" / "lighthouse"
    command = folder / "node_modules" / ".bin" / "lighthouse"
    if not command.exists():
        folder.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        if npm is None:
            sys.exit("Lighthouse needs Node.js with npm: install it first")
        options = ["--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
        subprocess.run([npm, "install", *options, f"lighthouse@{VERSION}"], check=True)
    return command


def measure(lighthouse: Path, url: str) -> dict[str, Any]:
    """The report on `url`."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "report.json")
        command = [str(lighthouse), url, "--quiet", "--output=json", f"--output-path={target}"]
        command += [
            f"--chrome-flags={' '.join(('--headless=new', *FLAGS))}",
            f"--only-categories={','.join(BARS)}",
        ]
        subprocess.run(
            command,
            check=True,
            env={**os.environ, "CHROME_PATH": find_chromium(shell=False)},
            capture_output=True,
        )
        report: dict[str, Any] = json.loads(target.read_text("utf-8"))
    return report


def lost(report: dict[str, Any]) -> list[str]:
    """The audits with a weight that did not reach their full score."""
    references = [one for name in BARS for one in report["categories"][name]["auditRefs"]]
    names = dict.fromkeys(one["id"] for one in references if one["weight"])
    scores = {name: report["audits"][name]["score"] for name in names}
    return [f"{name} {score:.2f}" for name, score in scores.items() if score is not None and score < 1]


if __name__ == "__main__":
    sys.exit(main())
