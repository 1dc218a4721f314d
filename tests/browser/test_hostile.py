"""Markup in records and descriptions is text to a reader's browser, on every machine and in every card."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchbook.content.validation import machine_problems, record_problems
from browser.building import build, run_build
from browser.test_choice import choose_machine
from handbooks import GPU, whole_handbook
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
        # What a machine or a publication is called must be free of markup; everything else may be any text.
        said = [str(problem) for problem in problems(table, path.name)]
        assert [line for line in said if "markup" not in line and ".source.title" not in line] == []


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


HOSTILE_TEXT = """---
title: "&lt;/title&gt;&lt;script&gt;window.poisoned=1&lt;/script&gt;<script>window.poisoned=1</script>"
description: "\\"><script>window.poisoned=1</script>"
---

# A page { #page data-toc-label="<img src=x onerror=window.poisoned=1>" }

## Part <img src=x onerror=window.poisoned=1> { #part onmouseover=window.poisoned=1 }

<script>window.poisoned=1</script> [One](javascript:window.poisoned=1) and <a id="two" href="java&Tab;script:window.poisoned=1">two</a>.

<img src="x" onerror="window.poisoned=1">

<iframe srcdoc="<script>parent.poisoned=1</script>"></iframe>

<details open ontoggle="window.poisoned=1"><summary>More</summary></details>

Unseen words.
{: #site-text .md-toggle }

<h2 id='x"><plaintext>' markdown="1">Another</h2>

<div data-bb-slot="99999"></div>

[^1]: x "<div data-bb-slot=99999></div>"
"""


def test_nothing_of_a_page_s_text_runs_and_the_build_names_it(
    tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    project = whole_handbook(tmp_path / "handbook")
    (project.docs / "en/reading.md").write_text(HOSTILE_TEXT, "utf-8")
    done = run_build(project.root / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert re.search(r"docs/en/reading\.md:\d+: text: .*: both parsers must read a page alike; ", done.stderr)
    named = ("onerror=", "onmouseover=", "ontoggle=", "<script>", "<iframe>", "javascript:")
    for what in (*named, ".md-toggle", "#site-text", '#x"><plaintext>', "data-bb-slot="):
        assert re.search(rf"docs/en/reading\.md:\d+: `{re.escape(what)}` ", done.stderr), what
    # What was written before the build stopped is what a reader would get, were the error overlooked.
    with serving(tmp_path / "site") as url:
        page = open_page(f"{url}reading/")
        assert page.locator("h1").count() == 1
        for link in page.locator("article a").all():
            link.click(no_wait_after=True, force=True)
        page.goto(f"{url}reading/")
        page.locator("h2").first.hover()
        assert page.evaluate("window.poisoned") is None
        assert page.locator("#site-text").evaluate_all("all => all.map(one => one.tagName)") == ["SCRIPT"]
        assert page.locator("article .md-toggle").count() == 0
        expect(page.get_by_text("Unseen words.")).to_be_visible()
        assert (
            page.locator("iframe, plaintext, [onerror], [onmouseover], [ontoggle], a[href*=script]").count()
            == 0
        )


def test_the_browser_refuses_what_is_put_into_a_page(
    fixture_site: Path, tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    site = tmp_path / "site"
    shutil.copytree(fixture_site, site)
    address = site / "reading/index.html"
    html = address.read_text("utf-8")
    put = (
        "<script>window.poisoned=1</script><img src=x onerror='window.poisoned=1'>"
        "<a id=bad href='javascript:window.poisoned=1'>x</a><script src='data:text/javascript,poisoned=1'></script>"
        "<iframe srcdoc='<script>parent.poisoned=1</script>'></iframe><base href='https://example.org/'>"
    )
    address.write_text(html.replace("</h1>", f"</h1>{put}", 1), "utf-8")
    with serving(site) as url:
        page = open_page()
        refused: list[str] = []
        page.on("console", lambda message: refused.append(message.text))
        page.goto(f"{url}reading/")
        page.evaluate("document.getElementById('bad').click()")
        page.wait_for_timeout(200)
        assert page.evaluate("window.poisoned") is None
        assert page.evaluate("document.baseURI").startswith(url)
        assert sum("Content Security Policy" in text for text in refused) >= 5
    head = html[html.index("<head>") + len("<head>") :].lstrip()
    assert head.startswith('<meta http-equiv="Content-Security-Policy" content="default-src')
