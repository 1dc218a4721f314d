"""Records in the pages: tells fences their page, writes data and downloads, raises problems at the end."""

from __future__ import annotations

import errno
import gc
import json
import os
import posixpath
import re
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from markdown_exec import markdown_config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import MkDocsException, PluginError
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext
from watchdog.observers.polling import PollingObserver

from benchbook.calculator.listing import SITE_FOLDER, coefficient_files
from benchbook.content.claims import claim_anchor
from benchbook.content.page_limits import too_deep, unreadable_pages
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import FALLBACK, Project
from benchbook.content.records import NO_ROOM
from benchbook.content.references import UnresolvedError
from benchbook.content.safe_html import SLOT
from benchbook.content.site_files import site_file_problems, unreadable_tree
from benchbook.content.unfinished import kept_drawing_problems, unfinished_problems
from benchbook.content.unforeseen import shows_traceback, unforeseen
from benchbook.languages.language import load_languages
from benchbook.machines.gpus import offered_gpus
from benchbook.query.library import Cache, Library
from benchbook.rendering import choice, downloads
from benchbook.rendering.choice import data_files, insert_choice, page_settings
from benchbook.rendering.claim_list import claim_pages, shown_claims
from benchbook.rendering.context import Build, PageContext, activate
from benchbook.rendering.downloads import Downloads
from benchbook.rendering.error_texts import write_error_texts
from benchbook.rendering.execution import record_here
from benchbook.rendering.fences import custom_fences, custom_inline, fill
from benchbook.rendering.kept_pages import KeptFolders, KeptPage, KeptPages, restore, write_files
from benchbook.rendering.provenance import Commits
from benchbook.rendering.reproduce import append_files
from benchbook.rendering.values import keep_values_from_elsewhere

if TYPE_CHECKING:
    from mkdocs.livereload import LiveReloadServer

    from benchbook.content.readings import Item, Placed

# Seconds between two looks at the files of a served site.
_LOOK_EVERY = 0.1
# A link that leads to no page of the site.
_PLACE = re.compile(rf'{SLOT}="([^"]*)"')
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
_log = get_plugin_logger("benchbook")
# What the source of a cell needs of the extensions, and no more: each cell sets them up anew.
_FOR_SOURCES = ("pymdownx.highlight", "pymdownx.superfences", "pymdownx.tabbed", "attr_list", "md_in_html")


_CLAIM_PAGES = Cache[None, dict[str, str]]("pages of claims")


class Replay:
    """Replays records into pages; mkdocs-static-i18n builds the languages one inside the other."""

    def __init__(self) -> None:
        self.serving = False
        self._build: Build | None = None
        self._library: Library | None = None
        self._shown = ""
        self._downloads = Downloads()
        self._rendered: dict[str, str] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._data: dict[str, str] = {}
        self._made: dict[str, str] = {}
        self._refused: set[str] = set()
        self._pages = KeptPages()
        self._folders = KeptFolders()
        self._made_from = ""
        self._kept: KeptPage | None = None
        self._problems: set[Problem] = set()

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Begin a build, unless this is a further language of one, and register the fences."""
        register_fences(config)
        if not is_nested(config):
            self._begin(config)
        return config

    def on_files(self, files: Files, config: MkDocsConfig) -> Files:
        """Add the pages that stand in no file: the claims of each guide."""
        build = self._current()
        try:
            library = build.library
            self._made = library.once(_CLAIM_PAGES, None, lambda: claim_pages(library, build.languages))
        except BenchbookError as error:
            raise PluginError(str(error)) from error
        # What a browser would run must not be handed out, even where nobody checks.
        for file in list(files):
            if not self._refused.isdisjoint(_above(file, config.docs_dir)):
                files.remove(file)
        for path in self._made:
            files.append(File(path, config.docs_dir, config.site_dir, config.use_directory_urls))
        return files

    def on_page_read_source(self, page: Page) -> str | None:
        """The text of a page that stands in no file."""
        text = self._made.get(page.file.src_uri)
        if text is not None:
            page.edit_url = None
        return text

    def on_page_markdown(self, markdown: str, page: Page, files: Files) -> str:
        """Tell the fences which page they are on."""
        build = self._current()
        folder = page.file.src_uri.partition("/")[0]
        language = build.languages.get(folder) or build.languages[FALLBACK]
        source = Path(page.file.abs_src_path or page.file.src_uri)
        path = build.library.project.relative(source)
        root = "../" * page.url.count("/")
        build.page = PageContext(path, source.stem, language, root, partial(_address, page, files))
        self._problems = set(build.problems)
        if not self.serving:
            return markdown
        claims = shown_claims(build.library, language.code, markdown)
        self._made_from = self._pages.made_from(page, markdown, files, claims)
        self._kept = self._pages.find(page, self._made_from)
        if self._kept:
            restore(self._kept, page, files)
        return markdown

    def on_markdown_html(self, html: str, cleaned: str, page: Page, config: MkDocsConfig) -> None:
        """Name what cleaning takes away, and what readers see otherwise than the checks read it."""
        build = self._current()
        build.refuse_unsafe(html)
        if not html or "attr_list" not in config.markdown_extensions:
            return  # kept from the last build, or headings have no ids here
        self._compare_readings(cleaned, page)

    def _compare_readings(self, html: str, page: Page) -> None:
        """Name where the HTML of a page says something else than what the checks read of it."""
        build = self._current()
        path = Path(page.file.abs_src_path or "")
        if page.file.src_uri in self._made or not path.is_file():
            return  # no one wrote it
        # Loads a second Markdown parser, which a page that is kept does not need.
        from benchbook.content.readings import differences, html_items, unseen_problems

        text = path.read_text("utf-8")
        ours = [(self._leading(item), line) for item, line in _read(text)]
        theirs = html_items(html, build.stated, self._leading)
        build.problems.update(differences(ours, theirs, build.here.path))
        # No words know a place of this build, and an attribute has its quotation marks as entities.
        places = set(_PLACE.findall("\n".join([html, *build.slots])))
        build.problems.update(unseen_problems(places, build.stated, text, build.here.path))

    def _leading(self, item: Item) -> Item:
        """A part of a page, whose links lead where those of its HTML do."""
        if item.kind not in ("link", "image") or _ELSEWHERE.match(item.text):
            return item
        try:
            return item._replace(text=unquote(self._current().here.address(item.text)))
        except UnresolvedError:
            return item

    def on_page_content(self, html: str, page: Page) -> str:
        """Add the choice of machine and the downloads to a page that shows records."""
        build = self._current()
        if (kept := self._kept) is not None:
            self._data |= kept.data
            if kept.settings is not None:
                self._settings[page.file.dest_uri] = kept.settings
            build.page = None
            return kept.html
        if build.failures:
            raise build.failures[0]
        try:
            html = insert_choice(build, fill(build, append_files(build, html)))
        except BenchbookError as error:
            raise PluginError(str(error)) from error
        build.slots.clear()
        build.stated.clear()
        keep_values_from_elsewhere(build)
        data = data_files(build.here.name, build.here.language.code, build.here.data)
        self._data |= data
        # MkDocs does not look into fences for what a link can point at.
        page.present_anchor_ids = {*(page.present_anchor_ids or ()), *map(claim_anchor, build.here.claims)}
        settings = page_settings(build, build.here) if data else None
        if settings is not None:
            self._settings[page.file.dest_uri] = settings
        if self.serving and build.problems == self._problems:
            self._pages.keep(page, self._made_from, html, settings, data)
        build.page = None
        return html

    def on_page_context(self, context: TemplateContext, page: Page) -> TemplateContext:
        """Add `benchbook` to the context of a page that shows records."""
        settings = self._settings.get(page.file.dest_uri)
        context["benchbook"] = settings  # type: ignore[typeddict-unknown-key]
        return context

    def on_post_build(self, config: MkDocsConfig) -> None:
        """Write what all languages share, once all are built, and raise what is wrong in any."""
        if is_nested(config):
            return
        build = self._current()
        site = Path(config.site_dir)
        write_error_texts(build.library.project, site)
        try:
            coefficients = coefficient_files(build.library.project)
        except BenchbookError as error:
            coefficients = {}
            build.problems.update(error.problems)
        write_files(site / "assets", {"gpus.json": json.dumps(offered_gpus(), separators=(",", ":"))})
        for name, files in (
            (choice.FOLDER, self._data),
            (downloads.FOLDER, self._downloads.files(build.library)),
            (SITE_FOLDER, coefficients),
        ):
            if self.serving:
                self._folders.place(site, name, files)
            else:
                write_files(site / name, files)
        activate(None)
        problems = sorted(build.problems)
        if problems and self.serving:
            for problem in problems:
                _log.warning(str(problem))
        elif problems:
            text = "\n".join(str(problem) for problem in problems)
            raise PluginError(f"{len(problems)} problem(s) in the pages:\n{text}")

    def on_serve(self, server: LiveReloadServer, config: MkDocsConfig) -> LiveReloadServer:
        """Watch scripts and records beside the pages, and look more often than twice a second."""
        watched = [config.docs_dir, *filter(None, [config.config_file_path])]
        for path in watched:
            server.unwatch(path)
        server.observer = PollingObserver(timeout=_LOOK_EVERY)
        for path in (*watched, str(self._current().library.project.snippets)):
            server.watch(path)
        # What the first build has loaded stays: nothing of it need be looked at for garbage at each save.
        gc.collect()
        gc.freeze()
        return server

    def on_build_error(self, error: Exception) -> None:
        """Forget the build, and name the file or page that it failed at.

        Raises:
            PluginError: Names it.
        """
        activate(None)
        if isinstance(error, OSError) and error.errno in (*NO_ROOM, errno.EACCES):
            what = (
                f"{error.filename or 'the site'}: cannot be written ({error.strerror}): half a site is left"
            )
            raise PluginError(f"{what}; make room, or make it writable, and build again") from error
        if isinstance(error, RecursionError) and self._build is not None and self._build.page is not None:
            raise PluginError(str(too_deep(self._build.here.path))) from error
        # MkDocs tells of its own errors in a line.
        if not isinstance(error, MkDocsException) and not shows_traceback():
            root = self._library.project.root if self._library is not None else Path.cwd()
            problem = unforeseen(error, root)
            if problem.path == "." and self._build is not None and self._build.page is not None:
                problem = replace(problem, path=self._build.here.path)
            raise PluginError(str(problem)) from error

    def close(self) -> None:
        """Forget what was kept for `mkdocs serve`."""
        self._folders.close()

    def _begin(self, config: MkDocsConfig) -> None:
        self._settings.clear()
        self._data.clear()
        project = Project(Path(config.config_file_path or "mkdocs.yml").resolve().parent)
        site = Path(config.site_dir)
        for path in (site, *site.parents):
            if os.path.lexists(path) and not path.is_dir():
                what = "is no folder, and the site is built there"
                fix = "remove it, or build into another folder with `--site-dir`"
                raise PluginError(str(Problem(str(path), 1, what, fix)))
        try:
            if unreadable := list(unreadable_tree(project)) or list(unreadable_pages(project)):
                raise BenchbookError(*unreadable)
            mode = os.environ.get("BENCHBOOK_EXECUTE", "")
            first = self._library is None or self._library.project != project
            # While serving, once: what it writes makes MkDocs build again.
            if mode and (first or not self.serving):
                self._shown = record_here(project, mode)
            if self._library is None or first:
                self._library = Library(project)
            self._library.refresh(self._shown)
            self._pages.begin(project)
            self._build = Build(
                self._library,
                load_languages(project),
                Commits(project),
                rendered=self._rendered,
                repository=config.repo_url or "",
            )
        except BenchbookError as error:
            raise PluginError(str(error)) from error
        # Once for all languages, which have the same files beside their pages.
        refused = list(site_file_problems(project))
        self._refused = {problem.path for problem in refused}
        self._build.problems.update(refused)
        # Records of before and after what a command was killed at are one state together that nobody made.
        self._build.problems.update(unfinished_problems(project))
        self._build.problems.update(kept_drawing_problems(project))
        activate(self._build)

    def _current(self) -> Build:
        assert self._build is not None, "MkDocs calls on_config before anything else"
        return self._build


def _above(file: File, docs: str) -> list[str]:
    """A file of `docs` as problems name it, and the folders it lies in; links among them are not followed."""
    path = Path(file.abs_src_path or "")
    named = Path("docs", path.relative_to(docs)) if Path(docs) in path.parents else Path()
    return [place.as_posix() for place in (named, *named.parents)]


def _address(page: Page, files: Files, link: str) -> str:
    """The address of what `link`, written as in Markdown, names on `page`.

    One that begins with a slash leads from the folder of the page's language.

    Raises:
        UnresolvedError: There is no such page.
    """
    target, mark, anchor = link.partition("#")
    if not target:
        return link
    uri = page.file.src_uri
    folder = uri.partition("/")[0] if target.startswith("/") else posixpath.dirname(uri)
    path = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
    file = files.get_file_from_path(path)
    if file is None:
        raise UnresolvedError(f"there is no page `{target}` to link to", "write it, or name another")
    return file.url_relative_to(page.file) + mark + anchor


@lru_cache(maxsize=256)
def _read(text: str) -> list[Placed]:
    """What the checks read of a page; English text that other languages show is read once."""
    from benchbook.content.page_source import parse_page
    from benchbook.content.readings import page_items

    return page_items(parse_page(text))


def is_nested(config: MkDocsConfig) -> bool:
    """Whether this build is one that mkdocs-static-i18n started inside another, for a further language."""
    return bool(getattr(config.plugins.get("i18n"), "building", False))


def register_fences(config: MkDocsConfig) -> None:
    """Add our fences and inline format to those of mkdocs.yml, once for all languages."""
    for extension, option, ours in (
        ("pymdownx.superfences", "custom_fences", custom_fences()),
        ("pymdownx.inlinehilite", "custom_inline", custom_inline()),
    ):
        if extension not in config.markdown_extensions:
            config.markdown_extensions.append(extension)
        settings = config.mdx_configs.setdefault(extension, {})
        names = {entry["name"] for entry in ours}
        theirs = [entry for entry in settings.get(option, []) if entry["name"] not in names]
        settings[option] = [*theirs, *ours]
    wanted = [name for name in config.markdown_extensions if name in _FOR_SOURCES]
    markdown_config.save(wanted, {name: config.mdx_configs.get(name, {}) for name in wanted})
