"""The frame of every page: direction, languages, wrong addresses, colours, print."""

from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from browser.addresses import LANGUAGES, PHONE, TRANSLATIONS, address

OpenPage = Callable[..., Page]


def test_the_arabic_page_runs_right_to_left_with_code_left_to_right(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "ar/memory/")
    direction = "element => getComputedStyle(element).direction"
    assert page.locator("html").get_attribute("lang") == "ar"
    assert page.locator("article h1").evaluate(direction) == "rtl"
    for block in page.locator("article :is(pre, code)").all():
        assert block.evaluate(direction) == "ltr"
        assert block.evaluate("element => getComputedStyle(element).textAlign") in {"left", "start"}


def test_an_untranslated_page_keeps_its_own_direction_within_arabic(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "ar/english_only/")
    assert page.locator("body").evaluate("element => getComputedStyle(element).direction") == "rtl"
    item = page.locator("article > ul > li").first
    margins = "element => [getComputedStyle(element).marginLeft, getComputedStyle(element).marginRight].map(parseFloat)"
    left, right = item.evaluate(margins)
    assert left > right == 0


def test_a_number_and_its_unit_stay_in_order_inside_arabic(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "ar/memory/")
    places = page.evaluate(
        """() => {
          const runs = [...document.querySelectorAll("article bdi")];
          const run = runs.find((one) => one.textContent === "24 GB");
          const place = (start, end) => {
            const range = document.createRange();
            range.setStart(run.firstChild, start);
            range.setEnd(run.firstChild, end);
            return range.getBoundingClientRect().left;
          };
          return [place(0, 2), place(3, 5)];
        }"""
    )
    number, unit = places
    assert number < unit


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_the_switcher_stays_on_the_page_with_its_query_and_place(
    page: Page, fixture_url: str, code: str
) -> None:
    page.goto(fixture_url + "memory/?gpu=any-24#peak-memory")
    page.locator("[popovertarget=site-languages]").click()
    page.locator(f"#site-languages a[data-language={code}]").click()
    page.wait_for_url(f"{fixture_url}{code}/memory/?gpu=any-24#peak-memory")
    assert page.locator("html").get_attribute("lang") == code


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_a_page_without_translation_is_english_under_a_notice_in_the_readers_language(
    page: Page, fixture_url: str, code: str
) -> None:
    page.goto(fixture_url + address(code, "english_only"))
    article = page.locator("article")
    assert page.locator("html").get_attribute("lang") == code
    assert article.get_attribute("lang") == "en"
    assert article.get_attribute("dir") == "ltr"
    notice = page.locator(".site-notice")
    assert notice.is_visible()
    assert notice.evaluate("element => element.closest('[lang]').lang") == code
    canonical = page.locator("link[rel=canonical]").get_attribute("href") or ""
    assert urlsplit(canonical).path == "/handbook/english_only/"
    assert page.locator("link[rel=alternate][hreflang]").count() == 0


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_wrong_address_is_answered_in_the_language_it_was_asked_in(
    page: Page, fixture_url: str, code: str
) -> None:
    answer = page.goto(f"{fixture_url}{address(code)}no/such/page/")
    assert answer is not None
    assert answer.status == 404
    page.wait_for_function("code => document.documentElement.lang === code", arg=code)
    home = page.locator("article a").last
    assert home.evaluate("link => link.href") == fixture_url + address(code)
    links = page.locator("#site-nav a").evaluate_all("links => links.map((link) => link.href)")
    assert fixture_url + address(code, "memory") in links
    titles = page.locator("#site-nav a bdi").all_inner_texts()
    assert len(titles) == len(links)


def test_the_colours_follow_the_system_and_the_toggle_outlives_the_page(
    open_page: OpenPage, fixture_url: str
) -> None:
    page = open_page(fixture_url, color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(background)
    page.locator("[data-scheme-toggle]").click()
    light = page.evaluate(background)
    page.goto(fixture_url + "memory/")
    assert dark != light
    assert page.evaluate(background) == light


def test_without_a_script_the_page_the_menus_and_the_dark_scheme_work(
    open_page: OpenPage, fixture_url: str
) -> None:
    page = open_page(
        fixture_url + "memory/",
        java_script_enabled=False,
        color_scheme="dark",
        viewport=PHONE,
    )
    page.locator("[popovertarget=site-nav]").click()
    assert page.locator("#site-nav a[aria-current=page]").is_visible()
    assert not page.locator("[data-search-open]").is_visible()


def test_a_printed_page_shows_the_text_alone(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "memory/")
    page.emulate_media(media="print")
    assert page.locator("article h1").is_visible()
    for part in (".site-header", ".site-nav", ".site-toc", ".site-actions", ".site-copy"):
        assert not page.locator(part).first.is_visible()


def test_a_row_of_a_table_is_a_card_on_a_telephone(phone: Page, fixture_url: str) -> None:
    phone.goto(fixture_url + "memory/")
    cell = phone.locator("article td").nth(1)
    assert cell.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Peak"'
    assert not phone.locator("article thead th").first.is_visible() or (
        phone.locator("article thead").evaluate("head => head.getBoundingClientRect().height") <= 1
    )


def test_a_number_can_be_questioned_and_a_page_edited(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "ja/memory/")
    edit, question = page.locator(".site-actions a").evaluate_all("links => links.map((link) => link.href)")
    assert edit.endswith("/edit/main/docs/ja/memory.md")
    assert "template=number.yml" in question
    assert "ja%2Fmemory%2F" in question


def test_the_table_of_contents_follows_the_reader(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "measured/")
    current = page.locator(".site-toc a[aria-current]")
    page.evaluate("document.getElementById('charts').scrollIntoView()")
    expect(current).to_have_attribute("href", "#charts")
    page.evaluate("document.getElementById('cells').scrollIntoView()")
    expect(current).to_have_attribute("href", "#cells")
