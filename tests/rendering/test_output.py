"""Links between languages, the sitemap, search words."""

from urllib.parse import parse_qs, urlsplit

from benchbook.rendering.output import (
    Alternate,
    SitemapEntry,
    hreflang_links,
    is_unused,
    question_url,
    sitemap,
    synonyms,
)

SITE = "https://handbook.example/handbook/"


def test_hreflang_links_are_absolute_and_english_is_the_default() -> None:
    links = hreflang_links(SITE, [Alternate("en", "English", "./"), Alternate("ja", "日本語", "ja/")])
    assert links == (("en", SITE), ("ja", SITE + "ja/"), ("x-default", SITE))


def test_a_language_without_translation_has_no_hreflang_link() -> None:
    links = hreflang_links(
        SITE, [Alternate("en", "English", "a/"), Alternate("ja", "日本語", "ja/a/", translated=False)]
    )
    assert [language for language, _ in links] == ["en", "x-default"]


def test_the_sitemap_does_not_depend_on_the_order_of_building() -> None:
    entries = [SitemapEntry(SITE + "b/", ()), SitemapEntry(SITE + "a/", (("en", SITE + "a/"),))]
    assert sitemap(entries) == sitemap(reversed(entries))


def test_the_sitemap_escapes_addresses() -> None:
    assert "<loc>https://handbook.example/?a=1&amp;b=2</loc>" in sitemap(
        [SitemapEntry("https://handbook.example/?a=1&b=2", ())]
    )


def test_questioning_a_number_fills_in_the_page() -> None:
    url = urlsplit(question_url("https://github.com/o/r/", SITE + "ar/a/"))
    assert url.path == "/o/r/issues/new"
    assert parse_qs(url.query) == {"template": ["number.yml"], "page": [SITE + "ar/a/"]}


def test_synonyms_come_from_lists_and_are_named_once() -> None:
    assert synonyms(["OOM", "out of memory", ["words"]], None, ["OOM"]) == "OOM · out of memory"


def test_what_no_page_loads_is_left_out() -> None:
    assert is_unused("assets/javascripts/bundle.a5f9d56c.min.js")
    assert is_unused("assets/stylesheets/main.57a0d79d.min.css.map")
    assert not is_unused("assets/stylesheets/main.57a0d79d.min.css")
    assert not is_unused("assets/site.js")
