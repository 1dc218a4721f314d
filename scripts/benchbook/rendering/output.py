"""What the site needs beyond its pages: links between languages, sitemap, search words, trimmed assets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode, urljoin

# Files of the Material theme that no page asks for: its script bundle is not used (docs/assets/site.js does
# the little that is left to do), nor are its search worker and its palettes.
UNUSED_THEME_FILES = ("assets/javascripts/", "assets/images/", "assets/stylesheets/palette.")


@dataclass(frozen=True)
class Alternate:
    """One page in one language.

    Parameters:
        language: The language of the address, such as `ja`.
        name: The language's own name, as the switcher shows it.
        url: The address of the page relative to the site's root.
        direction: "ltr" or "rtl", as the language is written.
        translated: False where the address shows the English page instead.
    """

    language: str
    name: str
    url: str
    direction: str = "ltr"
    translated: bool = True


@dataclass(frozen=True)
class SitemapEntry:
    """A page of the sitemap and the same page in other languages."""

    url: str
    alternates: tuple[tuple[str, str], ...]


def absolute(site_url: str, url: str) -> str:
    """`url`, relative to the site's root, as an absolute address."""
    return urljoin(site_url, "" if url in {".", "./"} else url)


def hreflang_links(site_url: str, alternates: Iterable[Alternate]) -> tuple[tuple[str, str], ...]:
    """Pairs of language and absolute address for `<link rel="alternate">`, English also as `x-default`.

    A language that has no translation of the page is left out: its address shows English text, and points
    to the English page as its canonical one.
    """
    links = [(one.language, absolute(site_url, one.url)) for one in alternates if one.translated]
    return (*links, *(("x-default", url) for language, url in links if language == "en"))


def sitemap(entries: Iterable[SitemapEntry]) -> str:
    """The sitemap of `entries`, sorted by address and without dates: the same pages give the same bytes."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml">',
    ]
    for entry in sorted(set(entries), key=lambda one: one.url):
        lines.append(f"  <url><loc>{escape(entry.url)}</loc>")
        lines.extend(
            f'    <xhtml:link rel="alternate" hreflang="{language}" href="{escape(url)}"/>'
            for language, url in entry.alternates
        )
        lines.append("  </url>")
    return "\n".join([*lines, "</urlset>", ""])


def question_url(repository: str, page_url: str) -> str:
    """The address of a new issue that questions a number of `page_url`."""
    query = urlencode({"template": "number.yml", "page": page_url})
    return f"{repository.rstrip('/')}/issues/new?{query}"


def is_unused(path: str) -> bool:
    """Whether the theme's file `path` can be left out of the site."""
    return path.startswith(UNUSED_THEME_FILES) or path.endswith(".map")


BETWEEN_SYNONYMS = " · "


def synonyms(*sources: object) -> str:
    """The search words of `sources` (lists of strings, or nothing), each once, in order."""
    words = (
        word for source in sources if isinstance(source, list) for word in source if isinstance(word, str)
    )
    return BETWEEN_SYNONYMS.join(dict.fromkeys(words))
