"""What replaying records costs a build: the same pages, once with fences, once with their outputs pasted in.

`python scripts/benchmarks/building.py [--copies 5] [--pairs 5]` copies every guide a few times, so that the
start of MkDocs does not hide the difference, and builds all languages without the search index. Pairs are
interleaved, each build is a process of its own, and its processor time counts (a build has one thread, so
that is what it takes on a machine with nothing else to do); the median of the ratios must not pass the bar.
Builds are otherwise the project's own: theme, plugins, downloads and data files count.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import dedent

from benchbook.content.fence_names import CLAIM
from benchbook.content.project import Project, find_project
from benchbook.content.revisions import BENCHMARKS
from benchbook.contributing.benchmark_results import keep_results, result
from benchbook.languages.language import Language, load_language
from benchbook.query.library import Library
from benchbook.rendering import cells, charts, tables, tradeoffs, values
from benchbook.rendering.places import page_references
from benchbook.rendering.specs import PageCount
from benchbook.statistics.summary import median

BAR = 1.3
CONFIGURATION = Path(__file__).parents[2] / "mkdocs.yml"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", type=int, default=5, help="copies of every guide")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of builds")
    parser.add_argument("--keep", action="store_true", help=f"keep the result in {BENCHMARKS}")
    options = parser.parse_args()
    project = find_project()
    with tempfile.TemporaryDirectory() as folder:
        replayed = prepare(project, Path(folder, "replayed"), options.copies, pasted=False)
        pasted = prepare(project, Path(folder, "pasted"), options.copies, pasted=True)
        ratios = []
        for pair in range(options.pairs):
            order = (replayed, pasted) if pair % 2 else (pasted, replayed)
            seconds = {root: build(root) for root in order}
            ratios.append(seconds[replayed] / seconds[pasted])
            print(
                f"replayed {seconds[replayed]:.2f} s, pasted {seconds[pasted]:.2f} s, ratio {ratios[-1]:.3f}"
            )
    typical = median(ratios)
    print(f"median ratio of {len(ratios)} pairs: {typical:.3f} (bar {BAR})")
    if options.keep:
        what = f"building, {options.copies} copies of each guide"
        keep_results(project.root, [result(what, "replayed build, in plain builds", typical, "", BAR)])
    return int(typical > BAR)


def prepare(project: Project, root: Path, copies: int, *, pasted: bool) -> Path:
    """A project of the same guides, each `copies` times, with or without its outputs pasted in."""
    shutil.copytree(project.docs, root / "docs", symlinks=False)
    shutil.copytree(project.snippets, root / "snippets")
    shutil.copy(project.root / "pyproject.toml", root)
    library = Library(project)
    names = sorted({path.stem for path in project.page_paths() if path.stem != "index"})
    for path in project.page_paths():
        target = root / path.relative_to(project.root)
        text = path.read_text("utf-8")
        if pasted:
            text = paste(
                text, path, library, load_language(project.docs, path.relative_to(project.docs).parts[0])
            )
        target.write_text(text, "utf-8")
        for copy in range(1, copies if path.stem in names else 1):
            (target.parent / f"{path.stem}_{copy}.md").write_text(text, "utf-8")
    (root / "mkdocs.yml").write_text(configuration(names, copies, pasted=pasted), "utf-8")
    return root


def configuration(names: list[str], copies: int, *, pasted: bool) -> str:
    """The site's own mkdocs.yml over the copied guides, without search and, where pasted, without replay."""
    guides = [f"{name}_{copy}.md" if copy else f"{name}.md" for name in names for copy in range(copies)]
    nav = "nav:\n  - index.md\n" + "".join(f"  - {guide}\n" for guide in guides)
    text = CONFIGURATION.read_text("utf-8")
    for pattern, replacement in (
        (r"^watch:\n(?: .*\n)+", ""),
        (r"^nav:\n(?: .*\n)+", nav),
        (r"^  benchbook: \{\}\n", f"  benchbook: {{records: {str(not pasted).lower()}, search: false}}\n"),
    ):
        text, found = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert found == 1, f"mkdocs.yml has changed: {pattern} is there {found} times"
    return text


def paste(text: str, path: Path, library: Library, language: Language) -> str:
    """`text` with each fence and inline value replaced by what it shows."""
    lines = text.splitlines()
    for line, kind, body in reversed(page_references(path)):
        if kind == "value":
            spec, on_machines = values.resolve_value(library, path.stem, body)
            computed = on_machines[0][1]
            lines[line - 1] = lines[line - 1].replace(
                f"`#!value {body}`", values.computed_text(spec, computed, language), 1
            )
            continue
        indent = lines[line - 1][: len(lines[line - 1]) - len(lines[line - 1].lstrip())]
        end = next(i for i in range(line, len(lines)) if lines[i].strip() == "```")
        if kind == CLAIM:
            body = dedent("\n".join(lines[line:end]))  # its values have been pasted
        shown = [indent + row for row in pasted_block(kind, body, path.stem, library, language).splitlines()]
        lines[line - 1 : end + 1] = shown
    return "\n".join(lines) + "\n"


def pasted_block(kind: str, body: str, guide: str, library: Library, language: Language) -> str:
    """What a fence shows, as code blocks and a Markdown table."""
    if kind == "cell":
        _, cell, _, source = cells.resolve_cell(library, guide, body)
        output, _ = cells.bounded(source.result.output.get(cell.name, ""))
        return (
            f"```python\n{cell.source}\n```\n\n```text\n{output}\n```"
            if output
            else f"```python\n{cell.source}\n```"
        )
    if kind == "table":
        table, tabled = tables.resolve_table(library, guide, body, language, PageCount())
        entries = tabled[0][1]
        heads = [*table.axes, *(quantity.name for quantity in table.rows[0].quantities)]
        rows = [
            [*(str(value) for _, value in row.names), *(entry.text for entry in shown)]
            for row, shown in zip(table.rows, entries, strict=True)
        ]
        return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))
    if kind == "chart":
        _, charted = charts.resolve_chart(library, guide, body, PageCount())
        drawn = charted[0][1]
        return "```text\n" + "\n".join(f"{x:g} {points}" for x, points in drawn.rows) + "\n```"
    if kind == "tradeoff":
        tradeoff, pictured = tradeoffs.resolve_tradeoff(library, guide, body, PageCount())
        plotted = pictured[0][1]
        pairs = zip(tradeoff.variants, plotted.places, strict=True)
        return "```text\n" + "\n".join(f"{variant.name} {place}" for variant, place in pairs) + "\n```"
    # A claim is its words; what a script fills in the browser, nothing.
    return "\n".join(f"> {line}" for line in body.splitlines()) if kind == CLAIM else ""


def build(root: Path) -> float:
    """Processor seconds that one build of all languages takes, in a process of its own."""
    shutil.rmtree(root / "site", ignore_errors=True)
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", "mkdocs.yml", "-d", "site"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=root, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
