"""How long a saved page takes to show under `make serve`: from the save to the changed answer.

Run `python scripts/benchmarks/serving.py [--language ja] [--page comparing_setups] [--all]` where the site's
packages are installed. It serves a copy of the checkout on a free port and saves a page of it several times.
With `--guides 16 --languages 6`, the copy has as many: copies of guides and of their translations.
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

from benchbook.content.project import Project, find_project
from benchbook.content.revisions import BENCHMARKS
from benchbook.contributing.benchmark_results import keep_results, result
from benchbook.recording.processes import free_port
from benchbook.translations.new_language import new_language

COPIED = ("mkdocs.yml", "pyproject.toml", "docs", "snippets", "scripts/benchbook/rendering/theme")
# Seconds, where one language is served beside English, and where all are.
BAR, BAR_ALL = 1.0, 2.0
# Pages that are not guides, and languages to add.
OTHERS = ("index", "claims", "error_texts", "memory_calculator")
MORE_LANGUAGES = ("fr", "de", "es", "ko", "ru", "pt-BR")


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--language", help="the language that is served, beside English (the last one)")
    arguments.add_argument("--page", default="comparing_setups", help="the page that is saved")
    arguments.add_argument("--all", action="store_true", help="serve all languages")
    arguments.add_argument("--guides", type=int, default=0, help="guides to grow the copy to")
    arguments.add_argument("--languages", type=int, default=0, help="languages to grow the copy to")
    arguments.add_argument("--saves", type=int, default=7, help="how often it is saved")
    arguments.add_argument("--keep", action="store_true", help=f"keep the result in {BENCHMARKS}")
    options = arguments.parse_args()
    project = find_project()
    language = options.language or project.languages[-1]
    with tempfile.TemporaryDirectory() as folder:
        codes = grow(copied(project, Path(folder)), options.guides, options.languages)
        page = Path(folder, "docs", language, f"{options.page}.md")
        others = [] if options.all else [code for code in codes if code not in {"en", language}]
        left_out = {f"BUILD_{code.upper().replace('-', '_')}": "false" for code in others}
        seconds = measure(Path(folder), left_out, language, page, options.saves)
    bar = BAR_ALL if options.all else BAR
    first, *seconds = seconds
    typical = statistics.median(seconds)
    print(f"{len(codes) - len(others)} languages served; the first page after {first:.1f} s")
    print(f"{language}/{options.page}: median {typical:.2f} s, longest {max(seconds):.2f} s (bar {bar} s)")
    if options.keep:
        size = f"{options.guides} guides x " if options.guides else ""
        served = f"{len(codes)} languages" if options.all else f"one of {len(codes)} languages"
        what = f"serving, {size}{served}"
        keep_results(project.root, [result(what, "a saved page, until it shows", typical, "s", bar)])
    return int(typical > bar)


def copied(project: Project, folder: Path) -> Project:
    """A copy of a project in `folder`."""
    for name in COPIED:
        source, target = project.root / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    return Project(folder)


def grow(project: Project, guides: int, languages: int) -> list[str]:
    """Add copies of guides and of translations to a copied project; returns its languages."""
    for code in MORE_LANGUAGES[: max(0, languages - len(project.languages))]:
        new_language(project, code)
        for page in (project.docs / "ja").glob("*.md"):
            shutil.copy(page, project.docs / code)
    codes = Project(project.root).languages
    names = sorted(path.stem for path in (project.docs / "en").glob("*.md") if path.stem not in OTHERS)
    for number in range(len(names), guides):
        copied, name = names[number % len(names)], f"{names[number % len(names)]}_{number // len(names)}"
        for code in codes:
            page = project.docs / code / f"{copied}.md"
            if page.is_file():
                shutil.copy(page, page.with_name(f"{name}.md"))
    return list(codes)


def measure(root: Path, environment: dict[str, str], language: str, page: Path, saves: int) -> list[float]:
    """Seconds until the first answer, and from each save of `page` to the answer that holds it."""
    port = free_port()
    command = [sys.executable, "-m", "mkdocs", "serve", "--quiet", "--dev-addr", f"127.0.0.1:{port}"]
    server = subprocess.Popen(command, cwd=root, env={**os.environ, **environment})
    begun = time.perf_counter()
    try:
        site = f"http://127.0.0.1:{port}{site_path()}"
        url = f"{site}{language}/{'' if page.stem == 'index' else f'{page.stem}/'}"
        wait_for(url, "", limit=600)
        seconds = [time.perf_counter() - begun]
        text = page.read_text("utf-8")
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
        time.sleep(0.05)
    raise TimeoutError(f"{url} did not show {mark!r} within {limit} s")


if __name__ == "__main__":
    sys.exit(main())
