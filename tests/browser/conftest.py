"""What the browser tests share: the real site and a small one, built once, served, and open in Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from benchbook.website.chromium import FLAGS, find_chromium
from benchbook.website.static_server import serving
from browser.addresses import DESKTOP, PHONE
from browser.building import FIXTURE, ROOT, build


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handbook, built."""
    return build(ROOT / "mkdocs.yml", tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def site_url(site: Path) -> Iterator[str]:
    """The address of the handbook's start page, ending in `/handbook/`."""
    with serving(site) as url:
        yield url


@pytest.fixture(scope="session")
def fixture_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small handbook of tests/fixtures/handbook, built."""
    return build(FIXTURE / "mkdocs.yml", tmp_path_factory.mktemp("fixture"))


@pytest.fixture(scope="session")
def fixture_url(fixture_site: Path) -> Iterator[str]:
    """The address of the small handbook's start page, ending in `/handbook/`."""
    with serving(fixture_site) as url:
        yield url


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages, each in a browser of its own: `open_page(url, viewport=..., color_scheme=...)`."""
    contexts = []

    def open_one(url: str = "about:blank", **options: object) -> Page:
        context = browser.new_context(**{"viewport": DESKTOP, "color_scheme": "light", **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: Callable[..., Page]) -> Page:
    """An empty page the width of a desktop."""
    return open_page()


@pytest.fixture
def phone(open_page: Callable[..., Page]) -> Page:
    """An empty page the width of a small telephone."""
    return open_page(viewport=PHONE, has_touch=True, is_mobile=True)
