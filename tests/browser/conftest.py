"""What the browser tests share: the real site and a small one, built once, served, and open in Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, Page, sync_playwright

from browser.addresses import DESKTOP, PHONE
from browser.building import ROOT, build
from chromium import FLAGS, find_chromium
from handbooks import whole_handbook
from static_server import serving


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield opened
        opened.close()


def built_once(config: Path, factory: pytest.TempPathFactory, worker: str, name: str) -> Path:
    """The site of `config`, built by the first of the workers that asks for it; the others wait."""
    shared = factory.getbasetemp() if worker == "master" else factory.getbasetemp().parent
    with FileLock(shared / f"{name}.lock"):
        whole = shared / f"{name}.built"
        if not whole.exists():
            build(config, shared / name)
            whole.touch()
    return shared / name


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The handbook, built."""
    return built_once(ROOT / "mkdocs.yml", tmp_path_factory, worker_id, "site")


@pytest.fixture(scope="session")
def site_url(site: Path) -> Iterator[str]:
    """The address of the handbook's start page, ending in `/handbook/`."""
    with serving(site) as url:
        yield url


@pytest.fixture(scope="session")
def fixture_site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The small handbook of tests/fixtures/handbook, built from a copy: it has links, and a site has none."""
    project = whole_handbook(tmp_path_factory.mktemp("fixture") / "handbook")
    return built_once(project.root / "mkdocs.yml", tmp_path_factory, worker_id, "fixture")


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
