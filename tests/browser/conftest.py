"""What the browser tests share: the real site and a small one, built once, served, and open in Chromium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from benchbook.website.static_server import serving
from browser.building import FIXTURE, ROOT, build

DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 360, "height": 740}
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str:
    """The browser to drive: the one CHROMIUM names, or one on the path."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    assert found, "no Chromium: run `make chromium`, or set CHROMIUM to one"
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
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

    def open_one(url: str, **options: object) -> Page:
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
def page(browser: Browser) -> Iterator[Page]:
    """An empty page the width of a desktop."""
    context = browser.new_context(viewport=DESKTOP, color_scheme="light")
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    yield opened
    context.close()


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """An empty page the width of a small telephone."""
    context = browser.new_context(viewport=PHONE, color_scheme="light", has_touch=True, is_mobile=True)
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    yield opened
    context.close()
