"""Pages and sites over the small handbook, for the tests of what shows records."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown_exec import markdown_config
from mkdocs.commands.build import build as mkdocs_build
from mkdocs.config import load_config

from benchbook.content.project import Project
from benchbook.languages.language import Language, load_languages
from benchbook.query.library import Library
from benchbook.rendering.context import Build, PageContext, activate
from benchbook.rendering.fences import custom_fences, custom_inline, fill
from benchbook.rendering.provenance import ROOT, Commits

FIXTURE = Path(__file__).parent / "fixtures" / "handbook"
CPU, GPU = "fixture-cpu", "fixture-gpu-24gb"
# Its figures are quoted, of one script.
QUOTED = "fixture-gpu-16gb--published"

EXTENSIONS = [
    "tables",
    "attr_list",
    "md_in_html",
    "admonition",
    "pymdownx.superfences",
    "pymdownx.inlinehilite",
    "pymdownx.tabbed",
]
MKDOCS = """site_name: Small
docs_dir: docs
theme: {name: null, custom_dir: theme}
plugins:
  benchbook: {frame: false}
"""
I18N = """  i18n:
    docs_structure: folder
    fallback_to_default: true
    languages:
      - {locale: en, name: English, default: true}
      - {locale: ar, name: Arabic}
      - {locale: ja, name: Japanese}
"""
TEMPLATE = "<html><body>{{ page.content }}</body></html>"


def copy_handbook(folder: Path) -> Project:
    """A copy of the small handbook's scripts, records and languages, without its pages."""
    shutil.copytree(FIXTURE / "snippets", folder / "snippets")
    shutil.copy(FIXTURE / "pyproject.toml", folder)
    for code in Project(FIXTURE).languages:
        (folder / "docs" / code).mkdir(parents=True)
        shutil.copy(FIXTURE / "docs" / code / "_language.yml", folder / "docs" / code)
    (folder / "mkdocs.yml").write_text(MKDOCS + I18N, "utf-8")
    (folder / "theme").mkdir()
    (folder / "theme" / "main.html").write_text(TEMPLATE, "utf-8")
    return Project(folder)


def whole_handbook(folder: Path) -> Project:
    """A copy of the small handbook with its pages, built by the site's own configuration."""
    shutil.copytree(FIXTURE, folder)
    edit(
        folder / "mkdocs.yml", "INHERIT: ../../../mkdocs.yml", f"INHERIT: {FIXTURE.parents[2] / 'mkdocs.yml'}"
    )
    return Project(folder)


def edit(path: Path, old: str, new: str) -> None:
    """Replace `old`, which must be there, in a file."""
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def set_metric(project: Project, machine: str, name: str, values: dict[str, float]) -> None:
    """Give the metric `name` of the script of methods these values on `machine`, by variant."""
    path = project.records / machine / "memory/methods.json"
    record = json.loads(path.read_text("utf-8"))
    for variant, value in values.items():
        for run in record["variants"][variant]["runs"]:
            run["metrics"][name] = value
    path.write_text(json.dumps(record), "utf-8")


def list_points(project: Project) -> Path:
    """Give the script of methods two points: one with a method alone, one that sets the batch size as well."""
    path = project.snippets / "memory/methods.py"
    product = '[tool.benchbook.matrix]\n# method = ["plain", "checkpointing"]\n# batch_size = [1, 2, 4]'
    point = '[[tool.benchbook.matrix]]\n# method = "plain"'
    edit(path, product, f"{point}\n# {point}\n# batch_size = 2")
    return path


def start(project: Project, language: str = "en", root: str = "") -> Build:
    """A build with one page open."""
    build = Build(Library(project), load_languages(project), Commits(project))
    build.page = PageContext(f"docs/{language}/memory.md", "memory", build.languages[language], root)
    return build


def render(build: Build, text: str) -> str:
    """The HTML of `text` on the open page of `build`."""
    configs = {
        "pymdownx.superfences": {"custom_fences": custom_fences()},
        "pymdownx.inlinehilite": {"custom_inline": custom_inline()},
        "pymdownx.tabbed": {"alternate_style": True},
    }
    markdown_config.save(EXTENSIONS, configs)
    activate(build)
    try:
        return fill(build, Markdown(extensions=EXTENSIONS, extension_configs=configs).convert(text))
    finally:
        activate(None)
        markdown_config.reset()


def details(build: Build, machine: str, language: str = "en") -> dict[str, list[Any]]:
    """What the page's data tells of where its numbers on `machine` are from: contents by the name of the row."""
    found: dict[str, list[Any]] = {}
    data = build.here.data[machine]
    for shown in (*data.get("origins", {}).values(), *data.get("facts", {}).values()):
        for name, content in rows_of(shown, build.languages[language]):
            found.setdefault(name, []).append(content)
    return found


def rows_of(shown: str, language: Language) -> list[tuple[str, Any]]:
    """The rows of details in HTML by their names: a text, or pairs of text and address."""
    names = {
        language.text(key): key.removeprefix("fact_") for key in language.strings if key.startswith("fact_")
    }
    rows: list[tuple[str, Any]] = []
    for name, content in re.findall(r"<div><dt>(.*?)</dt><dd>(.*?)</dd></div>", shown, re.S):
        links = re.findall(r'<a href="([^"]*)"><bdi>(.*?)</bdi></a>', content)
        inner = html.unescape(re.sub(r"<[^>]*>", "", content))
        pairs = [(html.unescape(text), to.removeprefix(ROOT)) for to, text in links]
        rows.append((names[html.unescape(name)], pairs or inner))
    return rows


def on_machine(build: Build, machine: str, key: str = "") -> str:
    """The HTML that a value or block of the page shows on another machine; of the only one without `key`."""
    data = build.here.data.get(machine, {})
    trees = {**data.get("blocks", {}), **data.get("values", {})}
    tree = trees.get(key, {}) if key else next(iter(trees.values()), {})
    return "".join(tree.get("parts", {}).values())


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a site, by its address."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def plain(text: str) -> str:
    """What a reader sees of HTML, without tags and with single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def build_site(project: Project, command: str = "build") -> Path:
    """Build the site of a copied handbook, in this process, as `mkdocs build` or `mkdocs serve` would."""
    config = load_config(str(project.root / "mkdocs.yml"), site_dir=str(project.root / "site"))
    config.plugins.run_event("startup", command=command, dirty=False)
    try:
        mkdocs_build(config)
        site = project.root / "site"
        # A served site has links to what is gone once the server stops.
        for link in [path for path in site.rglob("*") if path.is_symlink()]:
            folder = link.resolve()
            link.unlink()
            shutil.copytree(folder, link)
    finally:
        config.plugins.run_event("shutdown")
    return site
