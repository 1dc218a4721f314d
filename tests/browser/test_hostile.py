"""Markup in records and descriptions is text to a reader's browser, on every machine and in every card."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchbook.content.validation import machine_problems, record_problems
from browser.building import build
from browser.test_choice import choose_machine
from handbooks import GPU
from poison import POISON, poison_handbook
from static_server import serving


@pytest.fixture(scope="module")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return poison_handbook(tmp_path_factory.mktemp("poisoned")).root


@pytest.fixture(scope="module")
def built(handbook: Path) -> Path:
    return build(handbook / "mkdocs.yml", handbook / "site")


class Elements(HTMLParser):
    """What a page holds that no page of ours does."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        links = [value for name, value in attrs if name in {"href", "src"} and value]
        bad = tag == "poison-element" or names & {"onerror", "onpoison"}
        if bad or any(link.startswith("javascript:") for link in links):
            self.foreign.append(f"{tag} {attrs}")


def test_what_is_poisoned_is_what_validation_lets_through(handbook: Path) -> None:
    for path in handbook.glob("snippets/records/**/*.json"):
        table = json.loads(path.read_text("utf-8"))
        problems = machine_problems if path.name == "machine.json" else record_problems
        # A title of a publication must be free of markup; everything else may be any text.
        said = [str(problem) for problem in problems(table, path.name)]
        assert [line for line in said if ".source." not in line] == []


def test_no_page_holds_an_element_of_a_record(built: Path) -> None:
    pages = list(built.glob("**/*.html"))
    assert any(
        POISON[-9:] in page.read_text("utf-8").replace("&lt;", "<").replace("&gt;", ">") for page in pages
    )
    for page in pages:
        elements = Elements()
        elements.feed(page.read_text("utf-8"))
        assert elements.foreign == [], page


def test_nothing_of_a_record_runs_in_a_browser(built: Path, open_page: Callable[..., Page]) -> None:
    with serving(built) as url:
        page = open_page()
        page.on("dialog", lambda dialog: dialog.dismiss())
        for language in ("", "ar/"):
            page.goto(f"{url}{language}measured/")
            if not language:
                choose_machine(page, GPU)
            page.locator(".bb-value").first.click()
            expect(page.locator("#bb-card")).to_be_visible()
            page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
            assert page.evaluate("window.poisoned") is None
            assert page.locator("poison-element, img[src=x], [onerror]").count() == 0
            page.keyboard.press("Escape")
