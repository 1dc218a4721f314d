"""The frame of the pages: gives templates their language and finishes the site after the last of them."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from mkdocs.utils.templates import TemplateContext

from benchbook.content.project import FALLBACK
from benchbook.content.schemas import write_schemas
from benchbook.languages.language import Language, load_language
from benchbook.languages.markup import finish, isolated_words
from benchbook.rendering import search
from benchbook.rendering.error_texts import DATA, PAGE
from benchbook.rendering.kept_pages import KeptFolders
from benchbook.rendering.output import (
    Alternate,
    SitemapEntry,
    hreflang_links,
    is_unused,
    question_url,
    sitemap,
    synonyms,
)
from benchbook.rendering.security import content_security_policy, inline_script
from benchbook.rendering.templates import TemplateCache, quicken
from benchbook.translations.front_matter import ENTRY

THEME = Path(__file__).with_name("theme")


class SiteFrame:
    """Runs beside mkdocs-static-i18n, which builds the languages one inside the other."""

    def __init__(self) -> None:
        self.serving = False
        self._entries: list[SitemapEntry] = []
        self._languages: dict[str, Language] = {}
        self._templates = TemplateCache()
        self._shared: list[File] = []
        self._index: dict[str, bytes] = {}
        self._folders = KeptFolders()

    def close(self) -> None:
        """Forget the search index kept for `mkdocs serve`."""
        self._folders.close()

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        """Put this package's templates before the theme's."""
        if str(THEME) not in config.theme.dirs:
            config.theme.dirs.insert(0, str(THEME))
            quicken(config.theme, self._templates)
            # All languages have one, which is written once they are known.
            config.theme.static_templates.discard("sitemap.xml")
        if not _i18n(config).building:
            self._templates.names.clear()
        words = f"partials/languages/{config.theme['language']}.html"
        if not any(Path(folder, words).is_file() for folder in config.theme.dirs):
            # The few words of Material's own are English in a language that it does not speak.
            config.theme["language"] = FALLBACK
        return config

    def on_unsorted_files(self, files: Files, config: MkDocsConfig) -> Files:
        """Leave out what the theme ships and no page loads, and what an earlier language has copied.

        mkdocs-static-i18n looks at each file three times for each language.
        """
        shared = {file.src_uri for file in self._shared} if _i18n(config).building else ()
        for file in list(files):
            if not file.is_documentation_page() and (is_unused(file.src_uri) or file.src_uri in shared):
                files.remove(file)
        return files

    def on_sorted_files(self, files: Files, config: MkDocsConfig) -> Files:
        """Give every language the files that all share, which are copied once."""
        if _i18n(config).building:
            for file in self._shared:
                vars(file)["copy_file"] = _copied
                files.append(file)
        else:
            languages = {one.locale for one in _i18n(config).config.languages}
            found = (file for file in files if not file.is_documentation_page())
            self._shared = [file for file in found if file.src_uri.partition("/")[0] not in languages]
        return files

    def on_page_content(self, html: str, page: Page, config: MkDocsConfig) -> str:
        """Finish the HTML of a page's text in the language it is written in."""
        if not html:
            return html  # a page that is taken as it was
        html = self._with_notices(html, page, config)
        permalink = self._written_in(page, config).text("permalink")
        return finish(html, right_to_left=self._is_rtl(page, config), permalink=permalink)

    def on_page_context(
        self, context: TemplateContext, page: Page, config: MkDocsConfig, nav: Navigation
    ) -> TemplateContext:
        """Add `site` to the context of a page."""
        language = _language(config)
        alternates = self._alternates(page, config)
        fallback = _is_fallback(page, language)
        links = hreflang_links(config.site_url or "", alternates)
        english = next((url for code, url in links if code == "x-default"), None)
        canonical = english if fallback and english else page.canonical_url
        if not fallback and canonical:
            self._entries.append(SitemapEntry(canonical, links))
        cast(dict[str, Any], context)["site"] = {
            **self._common(language, config, nav),
            "fallback": fallback,
            "canonical": canonical,
            "territory": self._written_in(page, config).with_territory,
            "alternates": alternates,
            "hreflang": () if fallback else links,
            "isolate": partial(isolated_words, right_to_left=self._is_rtl(page, config)),
            "question_url": question_url(config.repo_url or "", page.canonical_url or page.url),
            "synonyms": synonyms(page.meta.get("synonyms")),
        }
        return context

    def on_template_context(self, context: TemplateContext, config: MkDocsConfig) -> TemplateContext:
        """Add `site` to the context of the page for addresses that do not exist."""
        home = [
            Alternate(
                one.locale, one.name, one.link.lstrip("/") or ".", self._read(one.locale, config).direction
            )
            for one in _built_languages(config)
        ]
        cast(dict[str, Any], context)["site"] = {
            **self._common(_language(config), config, context["nav"]),
            "fallback": False,
            "alternates": home,
            "root": urlsplit(config.site_url or "/").path,
        }
        return context

    def on_post_template(self, output: str, template_name: str, config: MkDocsConfig) -> str:
        """Give each language its own 404 page."""
        language = _language(config)
        if template_name == "404.html" and language != _default_language(config):
            target = Path(config.site_dir, language, template_name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(output, "utf-8")
            return ""
        return output

    def on_post_build(self, config: MkDocsConfig, indexed: bool) -> None:
        """Write the sitemap, and the search index if wanted, once the last language is there."""
        if _i18n(config).building:
            return
        site = Path(config.site_dir)
        (site / "sitemap.xml").write_text(sitemap(self._entries), "utf-8")
        write_schemas(site, config.site_url or "")
        self.forget()
        if indexed:
            self._add_index(site)

    def forget(self) -> None:
        """Forget a build, done or failed."""
        self._entries.clear()
        self._languages.clear()

    def _read(self, code: str, config: MkDocsConfig) -> Language:
        if code not in self._languages:
            self._languages[code] = load_language(Path(config.docs_dir), code)
        return self._languages[code]

    def _written_in(self, page: Page, config: MkDocsConfig) -> Language:
        return self._read(getattr(page.file, "locale", _language(config)), config)

    def _is_rtl(self, page: Page, config: MkDocsConfig) -> bool:
        return self._written_in(page, config).direction == "rtl"

    def _with_notices(self, html: str, page: Page, config: MkDocsConfig) -> str:
        """Mark the sections of a translation that its English page has left behind."""
        recorded = page.meta.get(ENTRY)
        english = getattr(page.file, "alternates", {}).get(_default_language(config))
        if not isinstance(recorded, dict) or english is None or english is page.file:
            return html
        # Parses the English page, which a page that records nothing does not need.
        from benchbook.rendering.notices import english_digests, reviewed_sections, with_notices

        digests = english_digests(Path(english.abs_src_path))
        address = get_relative_url(english.url, page.url)
        reviewed: frozenset[str] = frozenset()
        if isinstance(page.meta.get("reviewed"), dict):
            reviewed = reviewed_sections(Path(page.file.abs_src_path or ""), Path(english.abs_src_path))
        page.meta["reviewed"] = bool(digests) and reviewed >= set(digests)
        return with_notices(html, recorded, digests, self._written_in(page, config), address, reviewed)

    def _common(self, code: str, config: MkDocsConfig, nav: Navigation) -> dict[str, Any]:
        language = self._read(code, config)
        return {
            "language": code,
            "inline": inline_script,
            # A served page reloads itself by a script of MkDocs' own, which changes from one to the next.
            "policy": "" if self.serving else content_security_policy(),
            "direction": language.direction,
            "styles": "".join(self._read(one.locale, config).style for one in _built_languages(config)),
            "text": language.text,
            "home": nav.homepage,
            "error_texts": next((page for page in nav.pages if Path(page.file.src_uri).name == PAGE), None),
            "error_data": DATA,
        }

    def _alternates(self, page: Page, config: MkDocsConfig) -> tuple[Alternate, ...]:
        files = getattr(page.file, "alternates", {})
        return tuple(
            Alternate(
                language=one.locale,
                name=one.name,
                url=files[one.locale].url,
                direction=self._read(one.locale, config).direction,
                translated=files[one.locale].locale == one.locale,
            )
            for one in _built_languages(config)
            if one.locale in files
        )

    def _add_index(self, site: Path) -> None:
        # A page that is saved while it is served shows at once: the index of the first build will do.
        if not self._index:
            folder = search.build_index(site)
            if not self.serving:
                return
            paths = [path for path in folder.rglob("*") if path.is_file()]
            self._index = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
            shutil.rmtree(folder)
        self._folders.place(site, search.FOLDER, self._index)


def _copied(dirty: bool = False) -> None:
    """What MkDocs calls to copy a file that has been copied."""


def _i18n(config: MkDocsConfig) -> Any:
    return config.plugins["i18n"]


def _language(config: MkDocsConfig) -> str:
    return str(_i18n(config).current_language)


def _default_language(config: MkDocsConfig) -> str:
    return str(_i18n(config).default_language)


def _built_languages(config: MkDocsConfig) -> list[Any]:
    return [one for one in _i18n(config).config.languages if one.build]


def _is_fallback(page: Page, language: str) -> bool:
    # The plugin keeps the language of the text in `locale`; the language of the address is the build's.
    return bool(getattr(page.file, "locale", language) != language)
