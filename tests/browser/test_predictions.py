"""A reader who chooses a GPU that nobody measured on sees predictions, marked, and how they were made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from browser.building import build
from builders import write
from handbooks import CPU, GPU, edit, whole_handbook
from predicted import H200, METHODS, predict
from static_server import serving

ONE = "memory/methods.py?method=plain&batch_size=1#peak_memory"
PAGE = f"""---
title: Predicted values
description: What nobody measured, for the tests.
---
# Predicted values {{ #predicted-values }}

One sample needs `#!value {ONE} GiB`.

It was predicted as `#!value {ONE} predicted GiB`, off by `#!value {ONE} error`.

```table
script: memory/methods.py
rows: [method, batch_size]
columns:
  - {{metric: peak_memory, bar: true, ratio: true}}
  - {{metric: peak_memory, predicted: true}}
  - {{metric: peak_memory, error: true}}
  - step_time
```
"""
H100 = "nvidia-h100-80gb"
# On one of two GPUs, no training has room.
DECLARED = (
    METHODS.replace("machines = [", f'machines = ["{H100}", ')
    + f'\n[[script.case]]\non = "{H100}"\ntraining = {{ batch = 256 }}\n'
)
OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def predicted_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page of the small handbook that shows predictions."""
    folder = tmp_path_factory.mktemp("predicted") / "handbook"
    project = whole_handbook(folder)
    edit(folder / "mkdocs.yml", "      - memory.md\n", "      - memory.md\n      - predicted.md\n")
    for code in ("en", "ar"):
        write(folder / "docs" / code / "predicted.md", PAGE)
    write(folder / "snippets/memory/predictions.toml", DECLARED)
    predict(project)
    with serving(build(folder / "mkdocs.yml", tmp_path_factory.mktemp("predicted-site"))) as url:
        yield url


def choose(page: Page, machine: str) -> None:
    page.locator("#bb-machine").select_option(machine)
    expect(page.locator(".bb-value data").first).to_have_attribute("data-machine", machine)


def text_of(page: Page, selector: str) -> str:
    return page.locator(selector).first.inner_text().replace("\u00a0", " ")


def test_a_value_of_a_gpu_that_was_not_measured_is_marked(page: Page, predicted_url: str) -> None:
    page.goto(f"{predicted_url}predicted/")
    assert text_of(page, ".bb-value") == "2 GiB"
    choose(page, H200)
    assert text_of(page, ".bb-value") == "1.06 GiB≈ predicted"
    expect(page.locator(".bb-value data").first).to_have_attribute("data-kind", "prediction")
    choose(page, GPU)
    assert text_of(page, ".bb-value") == "2.5 GiB"
    assert page.locator(".bb-value data").first.get_attribute("data-kind") is None


def test_going_back_restores_the_page(page: Page, predicted_url: str) -> None:
    page.goto(f"{predicted_url}predicted/")
    before = page.locator("article").inner_text()
    choose(page, H200)
    choose(page, GPU)
    choose(page, H200)
    choose(page, CPU)
    assert page.locator("article").inner_text() == before


def test_its_card_says_that_it_was_not_measured(page: Page, predicted_url: str) -> None:
    page.goto(f"{predicted_url}predicted/?machine={H200}")
    expect(page.locator(".bb-value data").first).to_have_attribute("data-machine", H200)
    page.locator(".bb-value").first.click()
    card = page.get_by_role("dialog")
    expect(card).to_contain_text("predicted Nov 2026, not measured")
    expect(card).to_contain_text("batch = 1, sequence = 512")
    expect(card.get_by_role("link", name="raw prediction")).to_have_attribute(
        "href", "../downloads/predictions/nvidia-h200-141gb/memory/methods.json"
    )


def test_a_table_follows_with_marks_and_without_what_is_missing(page: Page, predicted_url: str) -> None:
    page.goto(f"{predicted_url}predicted/")
    choose(page, H200)
    row = page.locator(".bb-table tbody tr").first
    kinds = [one.get_attribute("data-kind") for one in row.locator("td data").all()]
    assert kinds == [None, "prediction", None, None]
    texts = [one.inner_text() for one in row.locator("td data").all()]
    assert [texts[0], *texts[2:]] == ["—"] * 3
    assert row.locator("td").nth(1).locator(".bb-predicted").count() == 1
    assert page.locator("td:has(data:not([data-kind=prediction])) .bb-predicted").count() == 0


def test_predicted_memory_says_whether_it_fits(page: Page, predicted_url: str) -> None:
    page.goto(f"{predicted_url}predicted/?machine={H200}&gpu=4")
    expect(page.locator(".bb-value + .bb-fits").first).to_be_visible()
    cell = page.locator(".bb-table td").nth(1)
    expect(cell.locator(".bb-predicted + .bb-fits")).to_be_visible()


def test_a_run_that_does_not_fit_the_gpu_says_so_in_words(page: Page, predicted_url: str) -> None:
    page.goto(f"{predicted_url}predicted/")
    assert page.locator(".bb-outgrown").count() == 0
    choose(page, H100)
    assert text_of(page, ".bb-value") == "256 GiB≈ predicted, does not fit"
    cell = page.locator(".bb-table td").nth(1)
    expect(cell.get_by_text("does not fit")).to_be_attached()
    expect(cell.locator(".bb-predicted")).to_have_attribute("title", re.compile("needs more memory"))
    choose(page, CPU)
    assert page.locator(".bb-outgrown").count() == 0


@pytest.mark.parametrize("language", ["", "ar/"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_is_accessible_and_nothing_scrolls_sideways(
    open_page: OpenPage, predicted_url: str, language: str, width: int
) -> None:
    page = open_page(
        f"{predicted_url}{language}predicted/?machine={H200}", viewport={"width": width, "height": 800}
    )
    expect(page.locator(".bb-value data").first).to_have_attribute("data-machine", H200)
    found = Axe().run(page, context=".bb-table, .bb-value, .bb-choice")
    assert [one["id"] for one in found.response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator(".bb-value .bb-word").first).to_be_visible()


def test_on_a_phone_a_card_names_what_was_predicted(phone: Page, predicted_url: str) -> None:
    phone.goto(f"{predicted_url}predicted/")
    names = [one.inner_text() for one in phone.locator("tbody tr").first.locator("td .bb-cardname").all()]
    assert names == ["peak_memory", "peak_memory (predicted)", "peak_memory (error)", "step_time"]
    choose(phone, H200)
    # What the name of a number says, its mark need not.
    mark = phone.locator("tbody tr").first.locator(".bb-predicted .bb-word")
    assert mark.evaluate("word => word.offsetWidth") <= 1
