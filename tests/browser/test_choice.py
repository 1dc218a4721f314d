"""What a reader can do with a page that shows records: choose a machine and a GPU, ask where a number is from, sort."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from benchbook.content.project import Project
from benchbook.languages.language import load_language
from browser.addresses import address
from handbooks import CPU, FIXTURE, GPU, QUOTED

OpenPage = Callable[..., Page]
MEASURED = "measured/"


def first_value(page: Page) -> str:
    return page.locator(".bb-value data").first.inner_text().replace("\u00a0", " ")


def choose_machine(page: Page, name: str) -> None:
    page.get_by_label("Numbers from").select_option(name)
    expect(page.locator(".bb-value data").first).to_have_attribute("data-machine", name)


def choose_gpu(page: Page, text: str) -> None:
    page.get_by_label("My GPU").fill(text)
    page.get_by_label("My GPU").press("Enter")


def test_another_machine_changes_values_outputs_tables_and_charts(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    drawn = page.locator(".bb-drawing").first.inner_html()
    assert first_value(page) == "4 GiB"
    choose_machine(page, GPU)
    assert first_value(page) == "4.5 GiB"
    assert page.locator(".bb-output > pre > code").nth(1).inner_text().endswith("on machine 2 & more")
    assert page.locator(".bb-table td data").first.inner_text() == "2.5\u00a0GiB"
    assert page.locator(".bb-table td data").nth(4).inner_text() == "8.5\u00a0GiB"
    assert page.locator(".bb-drawing").first.inner_html() != drawn
    lines = page.locator("[data-bb] .bb-provenance .bb-line").all_inner_texts()
    assert lines
    assert all(line.startswith("Fixture GPU\u00a0· torch 2.13\u00a0· Nov 2026") for line in lines)


def test_going_back_to_the_reference_machine_restores_the_page(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    before = page.locator("article").inner_text()
    choose_machine(page, GPU)
    choose_machine(page, CPU)
    assert page.locator("article").inner_text() == before
    assert "machine=" not in page.url


def test_a_value_without_a_record_on_the_chosen_machine_says_whose_it_is(
    page: Page, fixture_url: str
) -> None:
    page.goto(f"{fixture_url}{MEASURED}?machine={QUOTED}")
    lacking = page.locator(".bb-value", has=page.locator(f"data[data-machine={CPU}]")).first
    expect(lacking.locator(".bb-tag")).to_have_text("Fixture CPU")
    lacking.click()
    expect(page.locator("#bb-card")).to_contain_text("Fixture CPU, 8 GB")


def test_a_published_figure_says_whose_it_is_and_the_rest_stays(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    choose_machine(page, QUOTED)
    values = page.locator(".bb-value")
    assert [value.inner_text().replace("\u00a0", " ").split("\n") for value in values.all()[:3]] == [
        ["5 GiB Old fixture GPU"],
        # One of these two was never published: a sentence compares numbers of one machine.
        ["404 ms Fixture CPU"],
        ["4.00× Fixture CPU"],
    ]
    expect(page.locator(".bb-table .bb-line").first).to_have_text(
        "Old fixture GPU\u00a0· published 2019, not measured here"
    )
    values.first.click()
    expect(page.locator("#bb-card")).to_contain_text("Figures of an old GPU")
    page.keyboard.press("Escape")
    choose_machine(page, CPU)
    assert values.first.locator(".bb-tag").count() == 0


def test_a_pinned_table_keeps_its_machine(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    pinned = page.locator(f'.bb-table[data-machine="{QUOTED}"]')
    before = pinned.inner_text()
    choose_machine(page, GPU)
    assert pinned.inner_text() == before
    assert "not measured here" in before


def test_the_choice_of_machine_survives_navigation_and_a_language_switch(
    page: Page, fixture_url: str
) -> None:
    page.goto(fixture_url + MEASURED)
    choose_machine(page, GPU)
    page.goto(fixture_url + "memory/")
    page.goto(fixture_url + MEASURED)
    expect(page.locator(".bb-value data").first).to_have_attribute("data-machine", GPU)
    page.locator("[popovertarget=site-languages]").click()
    page.locator("a[data-language=ja]").click()
    page.wait_for_url(re.compile(r"/ja/measured/"))
    expect(page.locator(".bb-value data").first).to_have_attribute("data-machine", GPU)
    assert page.locator("#bb-machine").input_value() == GPU


def test_a_shared_link_carries_both_choices(open_page: OpenPage, fixture_url: str) -> None:
    first = open_page(fixture_url + MEASURED)
    choose_machine(first, GPU)
    choose_gpu(first, "RTX 4090")
    expect(first.locator(".bb-fits").first).to_be_visible()
    other = open_page(first.url)
    expect(other.locator(".bb-value data").first).to_have_attribute("data-machine", GPU)
    expect(other.locator(".bb-fits").first).to_be_visible()
    assert "gpu=rtx-4090-24" in first.url


def test_an_unknown_machine_in_the_address_is_ignored(page: Page, fixture_url: str) -> None:
    page.goto(f"{fixture_url}{MEASURED}?machine=nobody-s&gpu=nothing")
    assert first_value(page) == "4 GiB"
    assert page.locator(".bb-fits, .bb-fits-not").count() == 0


def test_memory_says_whether_it_fits_by_the_stated_rule(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    choose_machine(page, GPU)
    choose_gpu(page, "4 GB")
    entries = page.locator(".bb-table").first.locator("td:has(data[data-bytes])")
    expect(entries.locator(".bb-fits, .bb-fits-not")).to_have_count(entries.count())
    shown = [
        (int(entry.locator("data").get_attribute("data-bytes") or 0), "✓" in entry.inner_text())
        for entry in entries.all()
    ]
    assert {fits for _, fits in shown} == {True, False}
    assert all(fits == (bytes_ * 1.05 + 2**30 <= 4 * 2**30) for bytes_, fits in shown)
    assert page.locator("td:not(:has(data[data-bytes])) .bb-fits").count() == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("24", "24 GB"),
        ("24gb", "24 GB"),
        ("rtx 4090", "GeForce RTX 4090 · 24 GB"),
        ("H200", "NVIDIA H200 · 141 GB"),
        ("MI300X", "AMD Instinct MI300X · 192 GB"),
    ],
)
def test_a_gpu_is_understood_by_name_or_size(page: Page, fixture_url: str, text: str, shown: str) -> None:
    page.goto(fixture_url + MEASURED)
    choose_gpu(page, text)
    expect(page.locator("#bb-gpu")).to_have_value(shown)


def test_a_gpu_nobody_knows_is_asked_for_again(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    choose_gpu(page, "abacus")
    expect(page.locator("#bb-gpu-said")).to_have_text("Type a GPU's name or its memory in GB.")
    assert "gpu=" not in page.url


def test_what_a_cpu_held_says_nothing_of_a_gpu_and_one_tap_shows_what_does(
    page: Page, fixture_url: str
) -> None:
    page.goto(fixture_url + MEASURED)
    choose_gpu(page, "24 GB")
    expect(page.locator(".bb-another")).to_contain_text("These numbers are a CPU's")
    # But for what the page shows of the GPU anyhow.
    held = page.locator(f"[data-machine={CPU}][data-bytes]")
    marked = page.locator(
        f".bb-value:has([data-machine={CPU}]) + .bb-fits, td:has([data-machine={CPU}]) .bb-fits"
    )
    assert held.count() > 0
    assert marked.count() == 0
    page.locator(".bb-another button").click()
    expect(page.get_by_label("Numbers from")).to_have_value(GPU)
    expect(page.locator(".bb-fits").first).to_be_visible()
    assert page.locator(".bb-another").count() == 0
    # And back again.
    choose_machine(page, CPU)
    expect(page.locator(".bb-another")).to_be_visible()
    assert marked.count() == 0


def test_the_gpu_survives_a_language_switch(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    choose_machine(page, GPU)
    choose_gpu(page, "24")
    expect(page.locator(".bb-fits").first).to_be_visible()
    page.goto(fixture_url + address("ar", "measured"))
    words = load_language(Project(FIXTURE).docs, "ar").text("fits")
    expect(page.locator(".bb-fits").first).to_have_text(f"✓ {words}")


def test_without_a_script_the_reference_machine_stands_and_nothing_is_dead(
    open_page: OpenPage, fixture_url: str
) -> None:
    page = open_page(f"{fixture_url}{MEASURED}?machine={GPU}", java_script_enabled=False)
    assert first_value(page) == "4 GiB"
    assert "Fixture CPU, 8\u00a0GB" in page.locator(".bb-choice").inner_text()
    assert not page.locator("#bb-machine").is_visible()
    assert not page.locator("#bb-gpu").is_visible()
    assert page.locator(".bb-table thead button").count() == 0
    page.locator(".bb-table .bb-provenance summary").first.click()
    assert page.locator(".bb-table .bb-provenance dl").first.is_visible()


def test_another_machine_s_values_never_flash_wrong(page: Page, fixture_url: str) -> None:
    held: list[Route] = []
    page.route("**/assets/data/**/*.json", lambda route: held.append(route))
    with page.expect_request("**/assets/data/**/*.json"):
        page.goto(f"{fixture_url}{MEASURED}?machine={GPU}", wait_until="domcontentloaded")
    value = page.locator(".bb-value data").first
    assert value.evaluate("element => getComputedStyle(element).visibility") == "hidden"
    held[0].continue_()
    expect(value).to_have_text("4.5\u00a0GiB")
    expect(value).to_be_visible()


def test_the_default_page_asks_for_no_data(page: Page, fixture_url: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(fixture_url + MEASURED, wait_until="networkidle")
    assert not [url for url in asked if url.endswith(".json")]


def test_a_number_tells_where_it_comes_from_by_keyboard_too(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    button = page.locator(".bb-value").first
    button.focus()
    page.keyboard.press("Enter")
    card = page.get_by_role("dialog", name="Where this comes from")
    expect(card).to_be_visible()
    assert "Fixture CPU\u00a0· torch 2.12\u00a0· Nov 2026\u00a0· same in 3 runs" in card.inner_text()
    assert "4 GiB (median of 3)" in card.inner_text().replace("\u00a0", " ")
    assert card.get_by_role("link", name="raw record: memory/methods.py").get_attribute("href") == (
        "../downloads/records/fixture-cpu/memory/methods.json"
    )
    page.keyboard.press("Escape")
    expect(card).not_to_be_visible()
    assert button.evaluate("element => element === document.activeElement")


def test_the_card_stays_inside_a_telephone(phone: Page, fixture_url: str) -> None:
    phone.goto(fixture_url + address("ar", "measured"))
    phone.locator(".bb-value").nth(2).tap()
    card = phone.locator("#bb-card")
    expect(card).to_be_visible()
    box = card.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 360
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_table_sorts_by_column_with_what_is_missing_last(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    table = page.locator(".bb-table").first
    head = table.get_by_role("button", name="step_time")
    values = table.locator("tbody tr td:last-child data")
    head.click()
    assert [text.replace("\u00a0", " ") for text in values.all_inner_texts()] == [
        "101 ms",
        "101 ms",
        "202 ms",
        "202 ms",
        "404 ms",
        "out of memory",
    ]
    expect(table.locator("th", has=page.get_by_text("step_time", exact=True)).first).to_have_attribute(
        "aria-sort", "ascending"
    )
    head.press("Enter")
    assert values.first.inner_text().replace("\u00a0", " ") == "404 ms"
    assert values.last.inner_text() == "out of memory"


def test_a_sorted_table_still_follows_the_machine(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    table = page.locator(".bb-table").first
    table.get_by_role("button", name="step_time").click()
    choose_machine(page, GPU)
    row = table.locator("tr[data-row='0']")
    assert row.locator("data").first.inner_text() == "2.5\u00a0GiB"


def test_numbers_in_arabic_text_run_from_left_to_right(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + address("ar", "measured"))
    styles = page.locator(".bb-value data[dir=ltr]").evaluate_all(
        "all => all.map(one => getComputedStyle(one).direction + ' ' + getComputedStyle(one).unicodeBidi)"
    )
    assert styles
    assert set(styles) == {"ltr isolate"}
    assert page.locator(".bb-drawing").first.evaluate("one => getComputedStyle(one).direction") == "ltr"


def test_a_chart_is_as_wide_as_the_text_and_names_its_lines_where_there_is_room(
    page: Page, phone: Page, fixture_url: str
) -> None:
    for opened, beside in ((page, True), (phone, False)):
        opened.goto(fixture_url + MEASURED)
        chart = opened.locator(".bb-chart:has(.bb-ends)").first
        assert chart.locator(".bb-ends li").first.is_visible() == beside
        assert chart.locator(".bb-legend").is_visible() != beside
        widths = [
            box["width"]
            for one in (".bb-plot", ".bb-drawing svg")
            if (box := chart.locator(one).bounding_box())
        ]
        text = opened.locator("article > p").first.bounding_box()
        assert text is not None
        assert widths[0] == pytest.approx(text["width"], abs=1)
        assert widths[1] > widths[0] * 0.75
        sizes = chart.locator("svg text").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().height)"
        )
        assert all(10 <= size <= 24 for size in sizes)


def test_the_names_of_lines_follow_the_machine_and_come_back(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    names = page.locator(".bb-chart .bb-ends").first
    before = names.inner_html()
    choose_machine(page, GPU)
    assert names.inner_html() != before
    choose_machine(page, CPU)
    assert names.inner_html() == before


def test_a_chart_follows_light_and_dark(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + MEASURED)
    line = page.locator(".bb-drawing path[stroke]").first
    light = line.evaluate("one => getComputedStyle(one).stroke")
    page.locator("[data-scheme-toggle]").click()
    assert line.evaluate("one => getComputedStyle(one).stroke") != light
