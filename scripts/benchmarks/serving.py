"""How long a saved page takes to show under `make serve LANGUAGE=...`: from the save to the changed answer.

Run `python scripts/benchmarks/serving.py [--language ja] [--page comparing_setups]` where the packages of the
site are installed. It serves a copy of the checkout on a free port and saves a page of it several times.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from benchbook.project import find_project
from benchbook.recorder.processes import free_port

COPIED = ("mkdocs.yml", "pyproject.toml", "docs", "snippets", "scripts/benchbook/website/theme")
BAR = 1.0


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--language", help="the language that is served, beside English (the last one)")
    arguments.add_argument("--page", default="comparing_setups", help="the page that is saved")
    arguments.add_argument("--saves", type=int, default=7, help="how often it is saved")
    options = arguments.parse_args()
    project = find_project()
    language = options.language or project.languages[-1]
    with tempfile.TemporaryDirectory() as folder:
        for name in COPIED:
            source, target = project.root / name, Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        page = Path(folder, "docs", language, f"{options.page}.md")
        others = [code for code in project.languages if code not in {"en", language}]
        left_out = {f"BUILD_{code.upper().replace('-', '_')}": "false" for code in others}
        seconds = measure(Path(folder), left_out, language, page, options.saves)
    typical = statistics.median(seconds)
    print(f"{language}/{options.page}: median {typical:.2f} s, longest {max(seconds):.2f} s")
    return int(typical > BAR)


def measure(root: Path, environment: dict[str, str], language: str, page: Path, saves: int) -> list[float]:
    """Seconds from each save of `page` to the first answer that holds what was saved."""
    port = free_port()
    command = [sys.executable, "-m", "mkdocs", "serve", "--quiet", "--dev-addr", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, cwd=root, env={**os.environ, **environment})
    try:
        site = f"http://127.0.0.1:{port}{site_path()}"
        url = f"{site}{language}/{'' if page.stem == 'index' else f'{page.stem}/'}"
        wait_for(url, "")
        text = page.read_text("utf-8")
        seconds = []
        for number in range(saves):
            mark = f"save-number-{number}"
            page.write_text(f"{text}\n\n{mark}\n", "utf-8")
            begun = time.perf_counter()
            wait_for(url, mark)
            seconds.append(time.perf_counter() - begun)
    finally:
        server.terminate()
        server.wait()
    return seconds


def site_path() -> str:
    """The path that the configured address of the site ends in."""
    return urlsplit(os.environ.get("SITE_URL", "https://example.org/handbook/")).path


def wait_for(url: str, mark: str, limit: float = 60) -> None:
    """Ask for `url` until the answer holds `mark`."""
    until = time.perf_counter() + limit
    while time.perf_counter() < until:
        try:
            with urllib.request.urlopen(url, timeout=limit) as answer:
                if mark in answer.read().decode("utf-8"):
                    return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(0.01)
    raise TimeoutError(f"{url} did not show {mark!r} within {limit} s")


if __name__ == "__main__":
    sys.exit(main())
