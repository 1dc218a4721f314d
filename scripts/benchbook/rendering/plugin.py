"""The MkDocs plugin: what the replay of records and the frame of the pages do, and when.

mkdocs-static-i18n builds the languages one inside the other, at a priority of -100: what comes before it
has a higher one here, and what comes after it a lower one.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

try:
    import fcntl
except ImportError:  # Windows has none
    fcntl = None  # type: ignore[assignment]

from mkdocs.config import config_options
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, CombinedEvent, event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

from benchbook.content.cleaning import clean
from benchbook.content.problems import Problem
from benchbook.content.safe_html import FRONT_MATTER
from benchbook.content.unforeseen import limit_time
from benchbook.rendering.frame import SiteFrame
from benchbook.rendering.replay import Replay, is_nested

if TYPE_CHECKING:
    from mkdocs.livereload import LiveReloadServer


# Seconds of a processor: some thirty times what building in every language takes.
LONGEST_BUILD = 900


class BenchbookConfig(Config):
    """The options in mkdocs.yml: each part of the work can be left out."""

    records = config_options.Type(bool, default=True)
    frame = config_options.Type(bool, default=True)
    search = config_options.Type(bool, default=True)


class OutputLock:
    """Holds off a second build into the same folder: each would take away what the other has written.

    The lock is on a file beside the folder, there for as long as the build. Where a system has no such locks,
    or nobody may write there, it holds off nobody.
    """

    def __init__(self) -> None:
        self._held: tuple[int, Path] | None = None

    def take(self, site: Path) -> None:
        """Take it for a build into `site`.

        Raises:
            PluginError: Another build has it, or the folder is a link, whose place MkDocs would empty.
        """
        self.release()
        if site.is_symlink():
            what, fix = "is a link to another place, which a build would empty", "name the place itself by -d"
            raise PluginError(str(Problem(site.name, 1, what, fix)))
        # MkDocs empties the folder, but for these: what they lead to would be published.
        for link in (path for path in (site.iterdir() if site.is_dir() else ()) if path.is_symlink()):
            what = "is a link, which would be published with the site"
            raise PluginError(str(Problem(f"{site.name}/{link.name}", 1, what, "remove it")))
        beside = site.with_name(f".{site.name}.lock")
        while fcntl is not None and self._held is None:
            try:
                beside.parent.mkdir(parents=True, exist_ok=True)
                # Released with the process, however that ends.
                file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            except OSError:
                return
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # A build that has just ended may have removed the file in between.
                if os.path.samestat(os.fstat(file), os.stat(beside)):
                    self._held = file, beside
            except BlockingIOError as error:
                what, fix = "another build writes into this folder", "wait for it to end, or end it"
                raise PluginError(str(Problem(site.name, 1, what, fix))) from error
            except FileNotFoundError:
                continue
            except OSError:
                return
            finally:
                if self._held is None:
                    os.close(file)

    def release(self) -> None:
        """Give it back, if it is held."""
        if self._held is not None:
            file, beside = self._held
            self._held = None
            with contextlib.suppress(OSError):
                beside.unlink()
            os.close(file)


class BenchbookPlugin(BasePlugin[BenchbookConfig]):
    """Hands each event of a build to whom it concerns."""

    def __init__(self) -> None:
        self._replay = Replay()
        self._frame = SiteFrame()
        self._lock = OutputLock()

    # An `on_startup` also makes MkDocs keep this instance from one build of `mkdocs serve` to the next.
    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        """Remember whether the site is served while it is written; a build by itself has an end."""
        self._replay.serving = self._frame.serving = command == "serve"
        if command == "build":
            limit_time(LONGEST_BUILD)

    @event_priority(100)  # before anything is written
    def _begin_alone(self, config: MkDocsConfig) -> MkDocsConfig:
        # What is served lies in a folder of its own.
        if not self._replay.serving and not is_nested(config):
            self._lock.take(Path(config.site_dir))
        return config

    @event_priority(50)  # before anything renders a page
    def _begin_replay(self, config: MkDocsConfig) -> MkDocsConfig:
        return self._replay.on_config(config) if self.config.records else config

    @event_priority(-200)  # once the language is set
    def _begin_frame(self, config: MkDocsConfig) -> MkDocsConfig:
        return self._frame.on_config(config) if self.config.frame else config

    on_config = CombinedEvent(_begin_alone, _begin_replay, _begin_frame)

    @event_priority(60)
    def _leave_out(self, files: Files, *, config: MkDocsConfig) -> Files:
        return self._frame.on_unsorted_files(files, config) if self.config.frame else files

    @event_priority(50)  # before the files are sorted by language
    def _add_pages(self, files: Files, *, config: MkDocsConfig) -> Files:
        return self._replay.on_files(files, config) if self.config.records else files

    @event_priority(-200)
    def _share(self, files: Files, *, config: MkDocsConfig) -> Files:
        return self._frame.on_sorted_files(files, config) if self.config.frame else files

    on_files = CombinedEvent(_leave_out, _add_pages, _share)

    def on_page_read_source(self, *, page: Page, config: MkDocsConfig) -> str | None:
        """Give a page that stands in no file its text."""
        return self._replay.on_page_read_source(page) if self.config.records else None

    @event_priority(-100)  # after every plugin that changes the text
    def on_page_markdown(self, markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
        """Tell the fences which page they are on, and keep of the head of the page what a page may say."""
        page.meta = {key: value for key, value in page.meta.items() if key in FRONT_MATTER}
        return self._replay.on_page_markdown(markdown, page, files) if self.config.records else markdown

    @event_priority(-150)  # after every plugin that writes HTML, before anything of ours is put into it
    def _clean_html(self, html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
        cleaned = clean(html) if html else html
        if self.config.records:
            self._replay.on_markdown_html(html, cleaned, page, config)
        return cleaned

    @event_priority(-200)
    def _finish_html(self, html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
        return self._frame.on_page_content(html, page, config) if self.config.frame else html

    @event_priority(-300)  # after all that reads whole pages, which need not read our blocks
    def _fill_in(self, html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
        return self._replay.on_page_content(html, page) if self.config.records else html

    on_page_content = CombinedEvent(_clean_html, _finish_html, _fill_in)

    @event_priority(-200)
    def on_page_context(
        self, context: TemplateContext, *, page: Page, config: MkDocsConfig, nav: Navigation
    ) -> TemplateContext:
        """Add `benchbook`, what a page that shows records needs, and `site`, its language and addresses."""
        if self.config.records:
            context = self._replay.on_page_context(context, page)
        return self._frame.on_page_context(context, page, config, nav) if self.config.frame else context

    @event_priority(-200)
    def on_template_context(
        self, context: TemplateContext, *, template_name: str, config: MkDocsConfig
    ) -> TemplateContext:
        """Add `site` to the context of the page for addresses that do not exist."""
        return self._frame.on_template_context(context, config) if self.config.frame else context

    @event_priority(-200)
    def on_post_template(self, output: str, *, template_name: str, config: MkDocsConfig) -> str:
        """Give each language its own 404 page."""
        return self._frame.on_post_template(output, template_name, config) if self.config.frame else output

    @event_priority(-150)  # once the other languages are built
    def _write_shared(self, *, config: MkDocsConfig) -> None:
        if self.config.records:
            self._replay.on_post_build(config)

    @event_priority(-200)
    def _finish_site(self, *, config: MkDocsConfig) -> None:
        if self.config.frame:
            self._frame.on_post_build(config, self.config.search)

    @event_priority(-300)  # once all is written
    def _let_others_build(self, *, config: MkDocsConfig) -> None:
        if not is_nested(config):
            self._lock.release()

    on_post_build = CombinedEvent(_write_shared, _finish_site, _let_others_build)

    def on_build_error(self, *, error: Exception) -> None:
        """Forget a build that failed."""
        self._frame.forget()
        self._lock.release()
        self._replay.on_build_error(error)

    def on_serve(self, server: LiveReloadServer, *, config: MkDocsConfig, builder: Any) -> LiveReloadServer:
        """Watch scripts and records beside the pages."""
        return self._replay.on_serve(server, config) if self.config.records else server

    def on_shutdown(self) -> None:
        """Forget what was kept for `mkdocs serve`."""
        self._replay.close()
        self._frame.close()
        self._lock.release()
