"""What a landing page is made of: symptoms on the first screen, remedies in order, and whether they fit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from browser.addresses import LANGUAGES, address
from handbooks import GPU

OpenPage = Callable[..., Page]
REMEDIES = "remedies/"
SCREEN = {"width": 360, "height": 640}


def methods(page: Page) -> list[str]:
    return page.locator(".bb-table tbody th code:not(.bb-cardname *, .bb-note *)").all_inner_texts()


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_symptom_stands_on_the_first_screen_of_a_small_telephone(
    open_page: OpenPage, site_url: str, code: str
) -> None:
    page = open_page(site_url + address(code), viewport=SCREEN, has_touch=True, is_mobile=True)
    links = page.locator(".symptoms a")
    assert links.count() == 6
    for link in links.all():
        box = link.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= SCREEN["height"]
        assert box["height"] >= 44


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_symptom_leads_to_its_section_on_the_same_page(page: Page, site_url: str, code: str) -> None:
    page.goto(site_url + address(code))
    for link in page.locator(".symptoms a").all():
        target = link.get_attribute("href") or ""
        assert target.startswith("#")
        assert page.locator(f"article h2{target}").count() == 1


def test_the_best_remedy_stands_first_without_a_script(open_page: OpenPage, fixture_url: str) -> None:
    page = open_page(fixture_url + REMEDIES, java_script_enabled=False)
    assert methods(page) == ["checkpointing", "plain"]


def test_a_remedy_leads_to_where_it_is_treated_and_says_how(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + REMEDIES)
    row = page.locator(".bb-table tbody tr").first
    assert row.locator(".bb-note code").inner_text() == "activation_checkpointing=True"
    row.get_by_role("link", name="checkpointing", exact=True).click()
    page.wait_for_url(f"{fixture_url}memory/#peak-memory")


def test_the_order_of_remedies_follows_the_machine_and_comes_back(page: Page, fixture_url: str) -> None:
    page.route("**/assets/data/remedies/*/*.json", the_other_way_round)
    page.goto(f"{fixture_url}{REMEDIES}?machine={GPU}")
    expect(page.locator(".bb-table td data").first).to_have_attribute("data-machine", GPU)
    assert methods(page) == ["plain", "checkpointing"]
    page.get_by_label("Numbers from").select_option(index=0)
    expect(page.locator(".bb-table td data").first).not_to_have_attribute("data-machine", GPU)
    assert methods(page) == ["checkpointing", "plain"]


def the_other_way_round(route: Route) -> None:
    data = route.fetch().json()
    (parts,) = (one["parts"] for one in data["blocks"].values() if "rows" in one["parts"])
    one, other = re.findall(r"<td.*?</td>", parts["rows"], re.S)
    parts["rows"] = parts["rows"].replace(one, "?").replace(other, one).replace("?", other)
    route.fulfill(json=data)


def test_names_sort_without_what_is_said_of_them(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + REMEDIES)
    head = page.get_by_role("button", name="method")
    head.click()
    assert methods(page) == ["checkpointing", "plain"]
    head.click()
    assert methods(page) == ["plain", "checkpointing"]


def test_a_remedy_says_whether_it_fits_the_reader_s_gpu(phone: Page, fixture_url: str) -> None:
    phone.goto(fixture_url + REMEDIES)
    phone.get_by_label("My GPU").fill("4 GB")
    phone.get_by_label("My GPU").press("Enter")
    phone.get_by_label("Numbers from").select_option(GPU)
    expect(phone.locator(".bb-table td .bb-fits").first).to_be_visible()
    marks = phone.locator(".bb-table td").all_inner_texts()
    assert [("✓" in mark, "✗" in mark) for mark in marks] == [(True, False), (False, True)]
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("code", ["en", "ar"])
def test_on_a_telephone_a_number_stands_beside_its_name_not_below(
    phone: Page, fixture_url: str, code: str
) -> None:
    phone.goto(fixture_url + address(code, "remedies"))
    for row in phone.locator("article tbody tr").all():
        name = row.locator("th").bounding_box()
        number = row.locator("td data").bounding_box()
        assert name is not None
        assert number is not None
        assert abs(name["y"] - number["y"]) < 16
        assert (name["x"] < number["x"]) == (code == "en")


@pytest.mark.parametrize("part", [".symptoms a", ".remedies th a", ".bb-table th a"])
def test_a_remedy_and_a_symptom_are_large_enough_to_tap(phone: Page, fixture_url: str, part: str) -> None:
    phone.goto(fixture_url + REMEDIES)
    box = phone.locator(part).first.bounding_box()
    assert box is not None
    assert box["height"] >= 24
