"""No violation that axe knows, in light and dark, narrow and wide; everything works with the keyboard."""

from collections.abc import Callable
from itertools import product
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, expect

from benchbook.content.fence_names import FENCES
from browser.addresses import DESKTOP, PHONE, address
from browser.building import FIXTURE

OpenPage = Callable[..., Page]
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
PAGES = tuple(path.stem for path in sorted((FIXTURE / "docs" / "en").glob("*.md")))


def violations(page: Page) -> list[str]:
    """What axe holds against the page as it is now, one line per element."""
    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]


@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("where", PAGES)
def test_no_block_has_a_violation_in_any_view(
    open_page: OpenPage, fixture_url: str, where: str, language: str
) -> None:
    page = open_page(fixture_url + address(language, where))
    for viewport, scheme in product((DESKTOP, PHONE), SCHEMES):
        page.set_viewport_size(ViewportSize(**viewport))
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], (viewport, scheme)


@pytest.mark.parametrize("where", ["404.html", "ja/404.html"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_wrong_address_has_no_violation(
    open_page: OpenPage, fixture_url: str, where: str, scheme: Scheme
) -> None:
    assert violations(open_page(fixture_url + where, color_scheme=scheme)) == []


def test_the_small_handbook_holds_every_block() -> None:
    """But the calculator and the field for error texts, whose own pages of the handbook are looked at."""
    text = "".join(path.read_text("utf-8") for path in (FIXTURE / "docs" / "en").glob("*.md"))
    held = {name for name in FENCES if f"```{name}" in text}
    assert held == {*FENCES} - {"calculator", "error-field"}
    for part in ("marks:", "notes:", "links:", "#!value", "=== ", "???", "machine:", "bar: true"):
        assert part in text, part


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_open_menus_and_the_search_have_no_violation(
    open_page: OpenPage, fixture_url: str, scheme: str
) -> None:
    page = open_page(fixture_url + "memory/", viewport=PHONE, color_scheme=scheme)
    page.locator("[popovertarget=site-nav]").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator("[popovertarget=site-languages]").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    assert violations(page) == []
    page.locator("#site-search input").fill("memory")
    page.locator("#site-search-results a").first.wait_for()
    page.keyboard.press("ArrowDown")
    assert violations(page) == []


def test_the_menu_opens_and_closes_with_the_keyboard(open_page: OpenPage, fixture_url: str) -> None:
    page = open_page(fixture_url + "memory/", viewport=PHONE)
    button = page.locator("[popovertarget=site-nav]")
    menu = page.locator("#site-nav")
    button.focus()
    page.keyboard.press("Enter")
    expect(menu).to_be_visible()
    page.keyboard.press("Tab")
    expect(menu.locator("a").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    expect(button).to_be_focused()


def test_the_language_is_changed_with_the_keyboard(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "memory/#where-it-goes")
    page.locator("[popovertarget=site-languages]").focus()
    page.keyboard.press("Enter")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(fixture_url + "ar/memory/#where-it-goes")


def test_the_first_tab_stop_skips_to_the_text(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "memory/")
    page.keyboard.press("Tab")
    skip = page.locator(".md-skip")
    expect(skip).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(fixture_url + "memory/#memory")


def test_a_block_of_code_that_scrolls_is_reached_with_the_keyboard(phone: Page, fixture_url: str) -> None:
    phone.goto(fixture_url + "memory/")
    block = phone.locator("article pre > code")
    assert block.evaluate("block => block.scrollWidth > block.clientWidth")
    expect(block).to_have_attribute("tabindex", "0")


@pytest.mark.parametrize("part", [".site-header :is(a, button)", ".site-actions a", ".site-nav a"])
def test_what_is_tapped_is_large_enough(phone: Page, fixture_url: str, part: str) -> None:
    phone.goto(fixture_url + "memory/")
    phone.locator("[popovertarget=site-nav]").click()
    for target in phone.locator(part).all():
        if target.is_visible():
            box = target.bounding_box()
            assert box is not None
            assert box["width"] >= 24
            assert box["height"] >= 24


def test_the_copy_button_copies_the_code_alone(open_page: OpenPage, fixture_url: str) -> None:
    page = open_page(fixture_url + "memory/", permissions=["clipboard-read", "clipboard-write"])
    page.locator("article .site-copy").first.click()
    expect(page.locator(".site-said")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("import torch\n\npeak = torch.cuda")
    assert copied.rstrip().endswith("surely so")
