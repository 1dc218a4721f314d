"""Claims in a real browser: how each verdict looks, and what another machine or a filter changes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from benchbook.content.project import Project
from benchbook.languages.language import load_language
from browser.addresses import LANGUAGES, address
from handbooks import CPU, FIXTURE, GPU

OpenPage = Callable[..., Page]
ASSERTED, LIST, OVERVIEW = "asserted/", "claims/asserted/", "claims/"


def claim(page: Page, name: str) -> Locator:
    return page.locator(f"#claim-{name}")


def choose_machine(page: Page, name: str) -> None:
    page.get_by_label("Numbers from").select_option(name)
    expect(claim(page, "checkpointing-halves-memory")).to_have_attribute("data-machine", name)


def shown(page: Page) -> list[str]:
    ids = page.locator(".bb-claims > .bb-claim:visible").evaluate_all("all => all.map((one) => one.id)")
    return [str(one).removeprefix("claim-") for one in ids]


def test_another_machine_gives_its_own_verdict_and_the_first_comes_back(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + ASSERTED)
    block = claim(page, "checkpointing-halves-memory")
    before = block.inner_text()
    assert "Fixture GPU: refuted" in before
    choose_machine(page, GPU)
    expect(block).to_have_attribute("data-outcome", "refuted")
    text = block.inner_text().replace("\u00a0", " ")
    assert "✗ Refuted on the Fixture GPU" in text
    assert "Measured 2.5 GiB against 4.5 GiB · 0.556×" in text
    assert "Fixture CPU: holds" in text
    assert block.locator(".bb-provenance .bb-line").inner_text().startswith("Fixture GPU")
    choose_machine(page, CPU)
    assert block.inner_text() == before
    expect(block).to_have_attribute("data-outcome", "holds")


def test_a_claim_without_a_record_on_the_chosen_machine_stays_as_it_is(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + ASSERTED)
    choose_machine(page, GPU)
    choose_machine(page, CPU)
    expect(claim(page, "plain-needs-more-at-four")).to_have_attribute("data-machine", GPU)
    expect(claim(page, "plain-needs-more-at-four")).to_contain_text("Holds on the Fixture GPU")


def test_the_numbers_behind_a_verdict_open_on_every_machine(page: Page, fixture_url: str) -> None:
    page.goto(f"{fixture_url}{ASSERTED}?machine={GPU}")
    block = claim(page, "checkpointing-saves-memory")
    expect(block).to_have_attribute("data-machine", GPU)
    block.locator("summary").click()
    expect(block.get_by_text("Smallest ratio that matters")).to_be_visible()
    expect(block.get_by_text("memory/methods.py?method=plain&batch_size=2#peak_memory")).to_be_visible()


def test_what_holds_is_a_line_and_what_is_refuted_is_framed_where_lines_begin(
    page: Page, fixture_url: str
) -> None:
    for code, side in (("en", "left"), ("ar", "right")):
        page.goto(fixture_url + address(code, "asserted"))
        border = f"(one) => getComputedStyle(one).getPropertyValue('border-{side}-width')"
        assert claim(page, "checkpointing-saves-memory").evaluate(border) == "0px"
        assert claim(page, "the-difference-is-large").evaluate(border) != "0px"


def test_a_link_to_a_claim_leads_to_it(page: Page, fixture_url: str) -> None:
    page.goto(f"{fixture_url}{ASSERTED}#claim-the-difference-is-large")
    expect(claim(page, "the-difference-is-large")).to_be_in_viewport()
    claim(page, "checkpointing-costs-time").get_by_role("link", name="Link to this section").click()
    assert page.url.endswith("#claim-checkpointing-costs-time")


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_list_of_claims_is_whole_without_a_script(
    open_page: OpenPage, fixture_url: str, code: str
) -> None:
    page = open_page(fixture_url + address(code, "claims/asserted"), java_script_enabled=False)
    assert len(shown(page)) == 5
    expect(page.locator("#bb-outcome")).to_be_hidden()
    link = claim(page, "checkpointing-costs-time").get_by_role(
        "link", name=load_language(Project(FIXTURE).docs, code).text("claim_place")
    )
    assert str(link.get_attribute("href")) == "../../asserted/#claim-checkpointing-costs-time"


def test_the_overview_shows_what_the_machine_refutes_and_leads_to_all_claims(
    page: Page, fixture_url: str
) -> None:
    page.goto(fixture_url + OVERVIEW)
    assert shown(page) == ["the-difference-is-large"]
    choose_machine(page, GPU)
    assert shown(page) == ["the-difference-is-large", "checkpointing-halves-memory"]
    expect(page.locator(".bb-counts").first).to_contain_text("refuted: 2")
    page.get_by_role("link", name="All claims of this guide").click()
    page.wait_for_url(re.compile(LIST))
    expect(claim(page, "checkpointing-halves-memory")).to_have_attribute("data-machine", GPU)
    assert len(shown(page)) == 5


def test_the_list_begins_with_its_counts_which_follow_the_machine(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + LIST)
    counts = page.locator(".bb-claims > .bb-counts").first
    expect(counts.locator(".bb-count")).to_have_text(
        ["✓ holds: 3", "✗ refuted: 1", "≈ too few runs to decide: 1"]
    )
    expect(counts.locator(".bb-elsewhere")).to_have_text("of these, from another machine: 1")
    expect(page.locator(".bb-counts + .bb-by")).to_have_text(
        "Prompted by others, and quoted with their source: 2 of 5"
    )
    assert shown(page)[0] == "the-difference-is-large"
    choose_machine(page, GPU)
    expect(counts.locator(".bb-count")).to_have_text(
        ["✓ holds: 2", "✗ refuted: 2", "≈ too few runs to decide: 1"]
    )
    expect(counts.locator(".bb-elsewhere")).to_have_count(0)


def test_what_the_chosen_machine_has_not_measured_is_listed_as_another_found_it(
    page: Page, fixture_url: str
) -> None:
    page.goto(fixture_url + LIST)
    choose_machine(page, GPU)
    choose_machine(page, CPU)
    found = claim(page, "plain-needs-more-at-four")
    expect(found).to_contain_text("Holds on the Fixture GPU")
    expect(found).to_contain_text("Fixture CPU: not measured")
    page.get_by_label("Verdict").select_option("holds")
    assert "plain-needs-more-at-four" in shown(page)


def test_the_list_of_claims_is_filtered_by_verdict_and_machine(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + LIST)
    page.get_by_label("Verdict").select_option("refuted")
    assert shown(page) == ["the-difference-is-large"]
    choose_machine(page, GPU)
    assert shown(page) == ["the-difference-is-large", "checkpointing-halves-memory"]
    page.reload()
    expect(claim(page, "checkpointing-saves-memory")).to_be_hidden()
    assert shown(page) == ["the-difference-is-large", "checkpointing-halves-memory"]
    page.get_by_label("Verdict").select_option("not measured")
    assert shown(page) == []
    expect(page.get_by_text("No claim has this verdict here.")).to_be_visible()
    page.get_by_label("Verdict").select_option("")
    assert len(shown(page)) == 5
