"""Every page of the handbook, opened once: as a reader on a telephone does, and for each guide as axe does, in one view.

All views of all pages are for the week (`make test-weekly`); that no block has a violation in any view, the small
handbook shows (`test_accessibility.py`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from itertools import product
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from browser.addresses import ADDRESSES, DESKTOP, GUIDES, LANGUAGES, PHONE, address
from browser.test_accessibility import SCHEMES, violations

OpenPage = Callable[..., Page]
VIEWS = tuple(product(LANGUAGES, (DESKTOP, PHONE), SCHEMES))


@pytest.mark.parametrize("where", ADDRESSES)
def test_a_page_is_quiet_fits_a_telephone_and_asks_no_other_host_nor_for_the_search(
    phone: Page, site_url: str, where: str
) -> None:
    said: list[str] = []
    asked: list[str] = []
    phone.on("console", lambda message: said.append(message.text))
    phone.on("pageerror", lambda error: said.append(str(error)))
    phone.on("request", lambda request: asked.append(request.url))
    phone.goto(site_url + where, wait_until="networkidle")
    assert said == []
    hosts = {urlsplit(url).netloc for url in asked if not url.startswith("data:")}
    assert hosts == {urlsplit(site_url).netloc}
    assert [url for url in asked if "pagefind" in url or "search" in url] == []
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_has_no_violation_in_one_of_its_views(open_page: OpenPage, site_url: str, guide: str) -> None:
    language, viewport, scheme = VIEWS[zlib.crc32(guide.encode()) % len(VIEWS)]
    page = open_page(site_url + address(language, guide), viewport=viewport, color_scheme=scheme)
    assert violations(page) == []


@pytest.mark.weekly
@pytest.mark.parametrize("where", ADDRESSES)
def test_a_page_has_no_violation_in_any_view(open_page: OpenPage, site_url: str, where: str) -> None:
    for viewport, scheme in product((DESKTOP, PHONE), SCHEMES):
        page = open_page(site_url + where, viewport=viewport, color_scheme=scheme)
        assert violations(page) == [], (viewport, scheme)
        page.close()
