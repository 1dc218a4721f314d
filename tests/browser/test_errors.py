"""From a pasted error to what explains it: by the field of the page, and by the search."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from benchbook.content.project import Project
from benchbook.rendering.error_texts import known_texts
from browser.addresses import address

ROOT = Path(__file__).parents[2]
TRACEBACK = """Traceback (most recent call last):
  File "/home/someone/train.py", line 42, in <module>
    trainer.train()
  File "/opt/torch/_tensor.py", line 640, in backward
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB"""


def provoked() -> list[tuple[str, str]]:
    """The id of each text, and the text as the scripts' records hold it."""
    project = Project(ROOT)
    found = []
    for text in known_texts(project):
        for machine in project.machines:
            path = project.record_path(machine, text.script)
            if path.is_file():
                variants = json.loads(path.read_text("utf-8"))["variants"]
                printed = next(iter(variants.values()))["output"].get(text.id.replace("-", "_"))
                if printed:
                    found.append((text.id, printed))
    return found


def test_what_every_script_provoked_leads_to_its_own_section(page: Page, site_url: str) -> None:
    texts = provoked()
    assert len(texts) >= 15
    page.goto(site_url + address("en", "error_texts"))
    for name, printed in texts:
        page.fill("#bb-error-text", f"Traceback (most recent call last):\n  File x\n{printed}")
        expect(page.locator(".bb-error [role=status] a")).to_have_attribute("href", f"#{name}")


def test_a_whole_traceback_leads_to_the_remedy_in_two_taps(phone: Page, site_url: str) -> None:
    phone.goto(site_url + address("en", "error_texts"))
    phone.fill("#bb-error-text", TRACEBACK)
    phone.locator(".bb-error [role=status] a").click()
    expect(phone.locator("#cuda-out-of-memory")).to_be_in_viewport()
    phone.locator("a[href*='perf_train_gpu_one/#first-remedy']").first.click()
    phone.wait_for_url("**/perf_train_gpu_one/#first-remedy")


@pytest.mark.parametrize(
    ("pasted", "section"),
    [
        ("RuntimeError: CUDA error: device-side assert triggered", "token-out-of-range"),
        ("torch.AcceleratorError: CUDA error: out of memory", "cuda-out-of-memory"),
        ("RuntimeError: CUDA out of memory.", "cuda-out-of-memory"),
    ],
)
def test_a_text_that_no_script_provokes_leads_to_the_section_that_names_it(
    page: Page, site_url: str, pasted: str, section: str
) -> None:
    page.goto(site_url + address("en", "error_texts"))
    page.fill("#bb-error-text", pasted)
    expect(page.locator(".bb-error [role=status] a")).to_have_attribute("href", f"#{section}")


def test_what_is_not_known_is_said(page: Page, site_url: str) -> None:
    page.goto(site_url + address("en", "error_texts"))
    page.fill("#bb-error-text", "ValueError: too many values to unpack")
    expect(page.locator(".bb-error [role=status]")).to_contain_text("None of the texts")
    page.fill("#bb-error-text", "")
    expect(page.locator(".bb-error [role=status]")).to_be_empty()


@pytest.mark.parametrize("code", ["en", "ar", "zh", "ja"])
def test_the_search_leads_a_pasted_error_to_its_section(page: Page, site_url: str, code: str) -> None:
    page.goto(site_url + address(code))
    page.keyboard.press("/")
    page.locator("#site-search input").fill(TRACEBACK.replace("\n", " "))
    best = page.locator("#site-search .best").first
    expect(best).to_have_attribute("href", re.compile(r"error_texts/#cuda-out-of-memory$"))
    page.keyboard.press("Enter")
    page.wait_for_url("**/error_texts/#cuda-out-of-memory")
