"""Finding one's way through a long page: its contents on a telephone, linked tabs, copying code and links."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.addresses import LANGUAGES, PHONE, TRANSLATIONS, address
from browser.building import FIXTURE
from browser.test_accessibility import violations

OpenPage = Callable[..., Page]
CLIPBOARD = ["clipboard-read", "clipboard-write"]
LINK_COPIED = {
    "en": "Link copied",
    "ar": "تم نسخ الرابط",
    "zh": "已复制链接",
    "ja": "リンクをコピーしました",
}


def top(element: Locator) -> float:
    """How far below the top of the window `element` begins."""
    return float(element.evaluate("element => element.getBoundingClientRect().top"))


def copied(page: Page) -> str:
    """What lies in the clipboard, once the page has said that it copied."""
    expect(page.get_by_role("status").and_(page.locator(".site-said"))).not_to_be_empty()
    return str(page.evaluate("navigator.clipboard.readText()"))


# The contents


def tap_contents(page: Page) -> None:
    """Open the contents as a finger does; Playwright's own tap first scrolls the page below the header."""
    box = page.locator("[popovertarget=site-toc]").bounding_box()
    assert box is not None
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_contents_are_one_tap_away_wherever_the_reader_is_on_a_telephone(
    phone: Page, fixture_url: str, code: str
) -> None:
    phone.goto(fixture_url + address(code, "measured"))
    contents = phone.locator("#site-toc")
    expect(contents).to_be_hidden()
    phone.evaluate("scrollTo(0, document.body.scrollHeight)")
    tap_contents(phone)
    expect(contents).to_be_visible()
    chapters = contents.locator(":scope > ul > li > a")
    sections = phone.locator("article h2").evaluate_all("all => all.map((one) => '#' + one.id)")
    assert chapters.evaluate_all("links => links.map((link) => link.hash)") == sections
    contents.locator("a[href='#tables']").tap()
    phone.wait_for_url("**/measured/#tables")
    expect(contents).to_be_hidden()
    assert 0 <= top(phone.locator("#tables")) < PHONE["height"] / 2


def test_the_contents_open_the_section_that_is_read_and_no_other(phone: Page, fixture_url: str) -> None:
    phone.goto(fixture_url + "reading/")
    inner = phone.locator("#site-toc a[href='#details']")
    tap_contents(phone)
    expect(phone.locator("#site-toc")).to_be_visible()
    expect(inner).to_be_hidden()
    phone.keyboard.press("Escape")
    phone.evaluate("document.getElementById('figures').scrollIntoView()")
    expect(phone.locator("#site-toc a[aria-current]")).to_have_attribute("href", "#figures")
    tap_contents(phone)
    expect(inner).to_be_visible()


def test_opening_the_contents_moves_nothing_on_the_page(phone: Page, fixture_url: str) -> None:
    phone.goto(fixture_url + "reading/#figures")
    places = "[scrollY, ...[...document.querySelectorAll('article *')].map((one) => one.getBoundingClientRect().top)]"
    before = phone.evaluate(places)
    tap_contents(phone)
    expect(phone.locator("#site-toc")).to_be_visible()
    assert phone.evaluate(places) == before


def test_the_contents_work_without_a_script(open_page: OpenPage, fixture_url: str) -> None:
    page = open_page(fixture_url + "ar/measured/", java_script_enabled=False, viewport=PHONE)
    expect(page.locator("#site-toc")).to_be_hidden()
    page.locator("[popovertarget=site-toc]").click()
    page.locator("#site-toc a[href='#charts']").click()
    page.wait_for_url("**/ar/measured/#charts")


def test_the_contents_are_used_with_the_keyboard(open_page: OpenPage, fixture_url: str) -> None:
    page = open_page(fixture_url + "reading/", viewport=PHONE)
    button, contents = page.locator("[popovertarget=site-toc]"), page.locator("#site-toc")
    button.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(contents.locator("a").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(contents).to_be_hidden()
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    contents.locator("a[href='#second-choice']").focus()
    page.keyboard.press("Enter")
    expect(contents).to_be_hidden()
    page.keyboard.press("Tab")
    expect(page.locator("#second-choice .headerlink")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_open_contents_have_no_violation(open_page: OpenPage, fixture_url: str, scheme: str) -> None:
    page = open_page(fixture_url + "ar/measured/", viewport=PHONE, color_scheme=scheme)
    page.locator("[popovertarget=site-toc]").click()
    expect(page.locator("#site-toc")).to_be_visible()
    assert violations(page) == []


def test_the_contents_open_at_the_end_of_the_line_and_run_right_to_left_in_arabic(
    phone: Page, fixture_url: str
) -> None:
    phone.goto(fixture_url + "ar/measured/")
    tap_contents(phone)
    contents = phone.locator("#site-toc")
    assert contents.evaluate("element => getComputedStyle(element).direction") == "rtl"
    assert contents.evaluate("element => element.getBoundingClientRect().left") == 0


def test_the_contents_stand_beside_the_text_on_a_desktop(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "reading/")
    expect(page.locator("#site-toc a[href='#details']")).to_be_visible()
    expect(page.locator("[popovertarget=site-toc]")).to_be_hidden()


def test_the_contents_are_no_text_to_search(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "reading/")
    assert page.locator("#site-toc").evaluate("element => !element.closest('[data-pagefind-body]')")


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_name_of_the_handbook_is_whole_beside_the_buttons_of_a_telephone(
    phone: Page, fixture_url: str, code: str
) -> None:
    phone.goto(fixture_url + address(code, "measured"))
    name = phone.locator(".site-title__short")
    assert name.evaluate("name => name.scrollWidth <= name.clientWidth")


# Tabs


def chosen(page: Page) -> list[str]:
    """The labels of the chosen tabs of the page, from its top to its end."""
    return list(
        page.locator(".tabbed-set > input:checked").evaluate_all(
            "inputs => inputs.map((input) => input.labels[0].textContent)"
        )
    )


def test_a_chosen_tab_chooses_its_namesakes_on_the_whole_page(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "reading/")
    assert chosen(page) == ["Trainer", "PyTorch"]
    page.locator("#first-choice ~ .tabbed-set label", has_text="PyTorch").first.click()
    assert chosen(page) == ["PyTorch", "PyTorch"]
    expect(page.get_by_text("loss.backward()")).to_be_visible()
    page.locator("#second-choice ~ .tabbed-set label", has_text="Trainer").first.click()
    assert chosen(page) == ["Trainer", "Trainer"]


def test_a_tab_chosen_with_the_keyboard_chooses_its_namesakes(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "reading/")
    page.locator(".tabbed-set > input").first.focus()
    page.keyboard.press("ArrowRight")
    assert chosen(page) == ["PyTorch", "PyTorch"]
    page.keyboard.press("ArrowLeft")
    assert chosen(page) == ["Trainer", "Trainer"]


def test_the_chosen_tab_is_remembered_on_other_pages_and_visits(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "reading/")
    page.locator(".tabbed-labels label", has_text="PyTorch").first.click()
    page.goto(fixture_url + "memory/")
    page.goto(fixture_url + "reading/")
    assert chosen(page) == ["PyTorch", "PyTorch"]
    page.locator(".tabbed-labels label", has_text="Trainer").first.click()
    page.reload()
    assert chosen(page) == ["Trainer", "Trainer"]


def test_a_chosen_tab_stays_where_the_reader_sees_it(open_page: OpenPage, fixture_url: str) -> None:
    page = open_page(fixture_url + "reading/", viewport={"width": 390, "height": 500})
    second = page.locator(".tabbed-set").nth(1)
    page.locator("#second-choice").evaluate("heading => heading.scrollIntoView()")
    before = top(second)
    for name in ("Trainer", "PyTorch", "Trainer"):
        second.locator("label", has_text=name).click()
        assert abs(top(second) - before) <= 1
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert abs(top(second) - before) <= 1


def test_a_remembered_tab_leaves_a_link_to_a_section_where_it_leads(
    open_page: OpenPage, fixture_url: str
) -> None:
    page = open_page(fixture_url + "reading/#figures", viewport={"width": 390, "height": 500})
    expected = top(page.locator("#figures"))
    page.locator(".tabbed-labels label", has_text="PyTorch").first.click()
    page.goto(fixture_url + "memory/")
    page.goto(fixture_url + "reading/#figures", wait_until="networkidle")
    assert chosen(page) == ["PyTorch", "PyTorch"]
    assert abs(top(page.locator("#figures")) - expected) <= 2


def test_tabs_are_linked_where_nothing_can_be_stored(open_page: OpenPage, fixture_url: str) -> None:
    page = open_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.add_init_script("Object.defineProperty(window, 'localStorage', { get() { throw new Error('no') } })")
    page.goto(fixture_url + "reading/")
    for name in ("PyTorch", "Trainer"):
        page.locator(".tabbed-labels label", has_text=name).first.click()
    assert chosen(page) == ["Trainer", "Trainer"]
    assert wrong == []


# Copying code


@pytest.mark.parametrize("where", ["memory/", "measured/", "ar/memory/"])
def test_the_copy_button_lies_over_no_text(phone: Page, fixture_url: str, where: str) -> None:
    phone.goto(fixture_url + where)
    for button in phone.locator(".site-copy:visible").all():
        own, code = button.bounding_box(), button.locator("xpath=preceding-sibling::code").bounding_box()
        assert own is not None
        assert code is not None
        assert own["x"] >= code["x"] + code["width"]
        assert min(own["width"], own["height"]) >= 24


def test_code_moves_aside_for_the_button_before_the_script_runs(
    open_page: OpenPage, fixture_url: str
) -> None:
    """No layout shift: the page is as high without the script that adds the buttons."""
    heights = []
    for pattern in ("**/nothing.js", "**/assets/site.js"):
        page = open_page(viewport=PHONE)
        page.route(pattern, lambda route: route.abort())
        page.goto(fixture_url + "reading/", wait_until="networkidle")
        code = page.locator("article pre > code").first.bounding_box()
        heights.append((page.evaluate("document.documentElement.scrollHeight"), code))
    assert heights[0] == heights[1]


def test_what_a_cell_printed_has_no_copy_button(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "measured/")
    assert page.locator(".bb-output > pre").count() > 0
    assert page.locator(".bb-output > pre > .site-copy").count() == 0
    assert page.locator(".highlight .site-copy").count() == page.locator(".highlight pre").count() > 0


def test_the_copied_text_is_the_code_to_the_character(open_page: OpenPage, fixture_url: str) -> None:
    source = (FIXTURE / "docs" / "en" / "reading.md").read_text("utf-8")
    block = source.split('=== "PyTorch"')[1].split("```")[1].removeprefix("python\n")
    expected = "\n".join(line.removeprefix("    ") for line in block.rstrip().splitlines())
    page = open_page(fixture_url + "reading/", permissions=CLIPBOARD)
    page.locator(".tabbed-labels label", has_text="PyTorch").first.click()
    page.locator(".site-copy:visible").first.click()
    assert copied(page) == expected
    assert "\n\n" in expected
    assert '"a & b"' in expected


# Links


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_permalink_copies_its_address_says_so_and_leads_there(
    open_page: OpenPage, fixture_url: str, code: str
) -> None:
    page = open_page(fixture_url + address(code, "measured"), permissions=CLIPBOARD)
    page.locator("#tables").hover()
    page.locator("#tables .headerlink").click()
    page.wait_for_url("**/measured/#tables")
    assert copied(page) == fixture_url + address(code, "measured") + "#tables"
    expect(page.locator(".site-said")).to_have_text(LINK_COPIED[code])
    expect(page.locator(".site-said")).to_be_visible()
    assert violations(page) == []


def test_a_permalink_is_seen_where_nothing_hovers_and_never_alone_in_a_line(
    phone: Page, fixture_url: str
) -> None:
    phone.goto(fixture_url + "memory/")
    for heading in phone.locator("article :is(h1, h2, h3)").all():
        assert heading.locator(".headerlink").evaluate("link => getComputedStyle(link).opacity") == "1"
    gap = "link => { const at = document.createRange(); at.selectNodeContents(link); return [...at.getClientRects()].length }"
    assert phone.locator("h1 .headerlink").evaluate(gap) == 1


def test_a_permalink_that_opens_in_a_tab_of_its_own_copies_nothing(
    open_page: OpenPage, fixture_url: str
) -> None:
    page = open_page(fixture_url + "measured/", permissions=CLIPBOARD)
    page.evaluate("navigator.clipboard.writeText('before')")
    page.locator("#tables").hover()
    page.locator("#tables .headerlink").click(modifiers=["ControlOrMeta"])
    assert page.evaluate("navigator.clipboard.readText()") == "before"


@pytest.mark.parametrize("code", ["en", *TRANSLATIONS])
def test_the_card_of_a_value_copies_the_link_to_its_section(
    open_page: OpenPage, fixture_url: str, code: str
) -> None:
    page = open_page(fixture_url + address(code, "measured"), permissions=CLIPBOARD)
    page.locator("#in-a-sentence ~ p .bb-value").first.click()
    page.locator("#bb-card .bb-link").click()
    assert copied(page).split("#") == [page.url.split("#")[0], "in-a-sentence"]
    expect(page.locator(".site-said")).to_have_text(LINK_COPIED[code])
    assert page.locator("#bb-card").is_visible()


def test_where_copying_is_forbidden_a_permalink_still_leads_to_its_section(
    page: Page, fixture_url: str
) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto(fixture_url + "measured/")
    page.locator("#tables").hover()
    page.locator("#tables .headerlink").click()
    page.wait_for_url("**/measured/#tables")
    expect(page.locator(".site-said")).to_be_empty()
