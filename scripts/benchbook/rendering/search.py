"""The search index of a finished site: Pagefind, one index per language, the same bytes each time."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

from mkdocs.exceptions import PluginError

from benchbook.rendering.output import BETWEEN_SYNONYMS

log = logging.getLogger("mkdocs.plugins.benchbook.rendering.search")

FOLDER = "pagefind"
# A hundred times what it takes.
LONGEST_SECONDS = 300
# What the search dialog never loads: Pagefind's own interfaces and its highlighter.
UNUSED = ("pagefind-ui.*", "pagefind-modular-ui.*", "pagefind-component-ui.*", "pagefind-highlight.js")
# The figures of a table or a chart are not words to look for, and no text to show around those that are.
IGNORED = (
    ".headerlink, .bb-bar, .bb-cardname, .bb-drawing, .bb-figures, .bb-table thead, .bb-table td, select"
)
# The search words of a page, as the theme writes them, and the language it is in.
_SYNONYMS = re.compile(r'data-pagefind-meta="synonyms\[data-words\]" data-words="([^"]*)"')
_LANGUAGE = re.compile(r'<html lang="([^"]+)"')


def build_index(site: Path) -> Path:
    """Index the pages of `site` and return the folder of the index.

    Beside it lie the search words of each language, `synonyms.<language>.json`: Pagefind parts a word of
    Chinese or Japanese in its index, in what a page is called and in what is asked for each in another way.

    Raises:
        PluginError: Pagefind came to no end.
        RuntimeError: It failed; the message is what it said.
    """
    folder = site / FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pagefind", "--site", str(site.resolve()), "--output-subdir", FOLDER]
    command += ["--exclude-selectors", IGNORED, "--silent"]
    # It takes settings from where it is started, and from variables: where to log, or to serve for ever.
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PAGEFIND_")}
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                command,
                cwd=empty,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            what = f"the index of the search was not made within {LONGEST_SECONDS} s"
            raise PluginError(f"docs:1: {what}; show less, above all in words without end") from error
    if done.returncode:
        raise RuntimeError(f"pagefind failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    for pattern in UNUSED:
        for path in folder.glob(pattern):
            path.unlink()
    _normalise(folder / "pagefind-entry.json")
    for code, pages in _synonyms(site).items():
        text = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
        (folder / f"synonyms.{code}.json").write_text(text + "\n", "utf-8")
    log.info("Search index of %s", ", ".join(languages(folder)))
    return folder


def languages(folder: Path) -> list[str]:
    """The languages that the index in `folder` holds."""
    entry = json.loads((folder / "pagefind-entry.json").read_text("utf-8"))
    return sorted(entry["languages"])


def _synonyms(site: Path) -> dict[str, dict[str, list[str]]]:
    """By language and by the address of a page, below the site's root: the words to find it by."""
    found: dict[str, dict[str, list[str]]] = {}
    for path in sorted(site.rglob("index.html")):
        html = path.read_text("utf-8")
        words, code = _SYNONYMS.search(html), _LANGUAGE.search(html)
        if words and code:
            folder = path.parent.relative_to(site).as_posix()
            address = "/" if folder == "." else f"/{folder}/"
            found.setdefault(code[1], {})[address] = unescape(words[1]).split(BETWEEN_SYNONYMS)
    return found


def _normalise(entry: Path) -> None:
    # Pagefind writes the languages in the order of a hash map: two runs over the same pages would differ.
    content = json.loads(entry.read_text("utf-8"))
    entry.write_text(json.dumps(content, sort_keys=True, separators=(",", ":")), "utf-8")
