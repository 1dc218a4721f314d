"""Pages as a served site rendered them last: one that is made of the same is not rendered again.

A page is made of its text, of the scripts, records and words that its blocks show, and of the names of pages
that it can link to. All are looked at before each build; what a page yields beside its HTML is kept with it.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import TableOfContents

from benchbook.content.project import Project


@dataclass(frozen=True)
class KeptPage:
    """All that rendering a page yields.

    Parameters:
        made_from: The digest of what it is made of.
        html: Its text, with every block.
        toc: Its headings.
        title: Its title, where its front matter has none.
        anchors: What a link to it can name.
        links: What it links to in other pages: anchor and link by the other page's file.
        settings: What its scripts must know; None without blocks.
        data: The files that its scripts fetch, by their path from the root of the site.
    """

    made_from: str
    html: str
    toc: TableOfContents
    title: str | None
    anchors: frozenset[str]
    links: Mapping[str, Mapping[str, str]]
    settings: dict[str, Any] | None
    data: Mapping[str, str]


class KeptPages:
    """The pages of a served site, by their address."""

    def __init__(self) -> None:
        self._known: dict[str, KeptPage] = {}
        self._shared = ""
        self._files: Files | None = None
        self._names = ""

    def begin(self, project: Project) -> None:
        """Look, before a build, at what more than one page is made of."""
        docs = (project.docs / code / "_language.yml" for code in project.languages)
        whole = (path for path in sorted(project.snippets.rglob("*")) if path.is_file())
        settings = (project.root / name for name in ("mkdocs.yml", "pyproject.toml"))
        self._shared = _digest(_stamps([*docs, *whole, *settings]))

    def made_from(self, page: Page, markdown: str, files: Files, claims: str) -> str:
        """The digest of what a page is made of.

        Parameters:
            page: The page.
            markdown: Its text, as all plugins have left it.
            files: What it can link to.
            claims: What other pages say of the claims that it shows.
        """
        english = getattr(page.file, "alternates", {}).get("en")
        parts = [self._shared, page.file.dest_uri, page.file.src_uri, markdown, claims, repr(page.meta)]
        parts.append(self._names_of(files))
        if english:
            parts += _stamps([Path(english.abs_src_path)])
        return _digest(parts)

    def _names_of(self, files: Files) -> str:
        """The digest of the names of all pages; MkDocs has other files for each language."""
        if self._files is not files:
            self._files = files
            self._names = _digest(sorted(file.src_uri for file in files.documentation_pages()))
        return self._names

    def find(self, page: Page, made_from: str) -> KeptPage | None:
        """What `page` yielded, if it was made of the same."""
        kept = self._known.get(page.file.dest_uri)
        return kept if kept is not None and kept.made_from == made_from else None

    def keep(
        self,
        page: Page,
        made_from: str,
        html: str,
        settings: dict[str, Any] | None,
        data: Mapping[str, str],
    ) -> None:
        """Remember what `page` has yielded."""
        self._known[page.file.dest_uri] = KeptPage(
            made_from,
            html,
            page.toc,
            getattr(page, "_title_from_render", None),
            frozenset(page.present_anchor_ids or ()),
            {file.src_uri: dict(links) for file, links in (page.links_to_anchors or {}).items()},
            settings,
            data,
        )


def restore(kept: KeptPage, page: Page, files: Files) -> None:
    """Give `page` what rendering it had yielded, but for its text, in place of rendering it."""
    vars(page)["render"] = _rendered
    page.content = ""
    page.toc = kept.toc
    page._title_from_render = kept.title
    page.present_anchor_ids = set(kept.anchors)
    found: dict[File, dict[str, str]] = {}
    for name, links in kept.links.items():
        if (file := files.get_file_from_path(name)) is not None:
            found[file] = dict(links)
    page.links_to_anchors = found


def _rendered(config: MkDocsConfig, files: Files) -> None:
    """What MkDocs calls to render a page that has been rendered."""


def _stamps(paths: Iterable[Path]) -> Iterator[str]:
    for path in paths:
        if path.is_file():
            told = path.stat()
            yield f"{path} {told.st_mtime_ns} {told.st_size}"


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# A text, bytes, or a file to copy.
Content = str | bytes | Path


def write_files(folder: Path, files: Mapping[str, Content]) -> None:
    """Write `files`, by their path below `folder`."""
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            target.write_text(content, "utf-8")
        else:
            target.write_bytes(content.read_bytes() if isinstance(content, Path) else content)


class KeptFolders:
    """The folders of a served site that outlive its builds, so that only what has changed is written again.

    MkDocs empties the site before each build. What it cannot empty lies elsewhere; the site has links to it.
    """

    def __init__(self) -> None:
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._written: dict[str, dict[str, object]] = {}

    def place(self, site: Path, name: str, files: Mapping[str, Content]) -> None:
        """Make the folder `name` of `site` hold `files`, and nothing else."""
        if self._home is None:
            self._home = tempfile.TemporaryDirectory(prefix="benchbook-served-")
        folder = Path(self._home.name, name)
        known = self._written.setdefault(name, {})
        made_of = {path: _made_of(content) for path, content in files.items()}
        for path in known.keys() - made_of.keys():
            (folder / path).unlink()
        write_files(folder, {path: one for path, one in files.items() if known.get(path) != made_of[path]})
        self._written[name] = made_of
        if files:
            _link(folder, site / name)

    def close(self) -> None:
        """Remove what was kept."""
        if self._home is not None:
            self._home.cleanup()
        self._home = None
        self._written.clear()


def _made_of(content: Content) -> object:
    if not isinstance(content, Path):
        return content
    told = content.stat()
    return str(content), told.st_mtime_ns, told.st_size


def _link(folder: Path, target: Path) -> None:
    if target.is_symlink():
        return  # MkDocs leaves a link at the root of the site where it is
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.symlink_to(folder, target_is_directory=True)
    except OSError:  # a system that lets nobody make links
        shutil.copytree(folder, target, dirs_exist_ok=True)
