"""The search in the header, with the keyboard, in each language."""

import re

import pytest
from playwright.sync_api import Page, expect

from browser.addresses import TRANSLATIONS, address

ROOT_PATH = "/handbook/"
OTHERS = "|".join(address(code) for code in TRANSLATIONS)
# What finds its page `memory`, by language.
FOUND_IN_THE_SMALL_HANDBOOK = {
    "en": (
        "learning rate",
        "mixed precision",
        "CUDA out of memory",
        "per_device_train_batch_size",
    ),
    "ar": (
        "معدل التعلم",
        "الدقة المختلطة",
        "نفدت الذاكرة",
    ),
    "zh": (
        "大规模模型",
        "混合精度",
        "学习率",
        "爆显存",
    ),
    "ja": (
        "メモリ",
        "大規模モデル",
        "混合精度",
        "学習率",
        "パラメーター",
        "ＣＵＤＡ　ｏｕｔ　ｏｆ　ｍｅｍｏｒｙ",
    ),
}
# What finds which page of the handbook, by language.
FOUND = {
    "en": (
        ("CUDA out of memory", "perf_train_gpu_one"),
        ("CUDA out of memory", "model_memory_anatomy"),
        ("gradient checkpointing", "perf_train_gpu_one"),
        ("torch.compile", "perf_train_gpu_one"),
        ("QLoRA", "perf_train_gpu_one"),
        ("flash attention", "perf_train_gpu_one"),
        ("Attempting to unscale FP16 gradients", "error_texts"),
        ("out of memory", "debugging"),
        ("GPU memory usage", "model_memory_anatomy"),
        ("optimizer state memory", "model_memory_anatomy"),
        ("activation memory", "model_memory_anatomy"),
        ("GPU idle", "index"),
        ("training too slow", "index"),
        ("loss is NaN", "index"),
        ("learning rate decays too fast", "comparing_setups"),
        ("gradient accumulation", "comparing_setups"),
        ("num_items_in_batch", "comparing_setups"),
        ("set_seed", "comparing_setups"),
    ),
    "ar": (
        ("نفدت الذاكرة", "perf_train_gpu_one"),
        ("نفدت الذاكرة", "model_memory_anatomy"),
        ("نفاد الذاكرة", "model_memory_anatomy"),
        ("CUDA out of memory", "model_memory_anatomy"),
        ("معدل التعلم", "comparing_setups"),
        ("حجم الدفعة", "comparing_setups"),
        ("تراكم التدرجات", "comparing_setups"),
    ),
    "zh": (
        ("爆显存", "index"),
        ("爆显存", "model_memory_anatomy"),
        ("显存不足", "model_memory_anatomy"),
        ("CUDA out of memory", "model_memory_anatomy"),
        ("大规模模型", "index"),
        ("混合精度", "comparing_setups"),
        ("学习率", "comparing_setups"),
        ("梯度累积", "comparing_setups"),
    ),
    "ja": (
        ("メモリ", "index"),
        ("メモリ不足", "index"),
        ("メモリ不足", "model_memory_anatomy"),
        ("CUDA out of memory", "model_memory_anatomy"),
        ("大規模モデル", "big_models"),
        ("混合精度", "comparing_setups"),
        ("学習率", "comparing_setups"),
        ("勾配累積", "comparing_setups"),
    ),
}
# What people type, and the page that must come first.
FIRST = {
    "en": (("memory calculator", "memory_calculator"), ("VRAM", "memory_calculator")),
    "ar": (
        ("الخسارة لا تنخفض", "debugging"),
        ("حاسبة الذاكرة", "memory_calculator"),
        ("معدل التعلم", "comparing_setups"),
        ("نفاد الذاكرة", "index"),
        ("تجزؤ الذاكرة", "perf_train_gpu_one"),
        ("ذاكرة كرت الشاشة ممتلئة", "index"),
        ("التدريب المتوازي", "comparing_setups"),
        ("نفاد الذاكرة أثناء التقييم", "perf_train_gpu_one"),
        ("تقييم يسبب نفاد الذاكرة", "perf_train_gpu_one"),
    ),
    "zh": (
        ("训练卡死", "debugging"),
        ("显存不足", "index"),
        ("爆显存", "index"),
        ("激活检查点", "perf_train_gpu_one"),
        ("学习率预热", "comparing_setups"),
        ("单卡多卡 loss 不一致", "comparing_setups"),
        ("显存计算器", "memory_calculator"),
        ("ZeRO-3", "memory_calculator"),
        ("gradient_checkpointing", "perf_train_gpu_one"),
        ("参数高效微调", "perf_train_gpu_one"),
        ("7B 需要多少显存", "memory_calculator"),
        ("评估批大小", "memory_calculator"),
        ("all-gather", "memory_calculator"),
        ("单卡训练", "perf_train_gpu_one"),
        ("显存碎片", "perf_train_gpu_one"),
        ("CUDA out of memory", "error_texts"),
    ),
    "ja": (
        ("loss が下がらない", "debugging"),
        ("MoE", "perf_train_gpu_one"),
        ("勾配チェックポイント", "perf_train_gpu_one"),
        ("ハイパーパラメーター", "index"),
        ("メモリの断片化", "perf_train_gpu_one"),
        ("損失が NaN", "debugging"),
        ("学習が遅い", "index"),
        ("ＣＵＤＡ　ｏｕｔ　ｏｆ　ｍｅｍｏｒｙ", "error_texts"),
        ("学習率", "comparing_setups"),
        ("バッチサイズ", "perf_train_gpu_one"),
        ("推論 高速化", "index"),
        ("ＦｌａｓｈＡｔｔｅｎｔｉｏｎ", "perf_train_gpu_one"),
        ("ファインチューニング", "perf_train_gpu_one"),
        ("データローダー", "perf_train_gpu_one"),
        ("勾配チェックポインティング", "perf_train_gpu_one"),
        ("トランスフォーマー", "index"),
    ),
}
# What finds several sections of the handbook.
EXCERPTS = {
    "en": (
        "out of memory",
        "gradient accumulation",
        "bf16",
    ),
    "ar": (
        "الذاكرة",
        "حجم الدفعة",
    ),
    "zh": (
        "显存",
        "学习率",
    ),
    "ja": (
        "メモリ",
        "学習率",
    ),
}


def ask(page: Page, query: str) -> list[str]:
    """The paths of what the search finds for `query`, opened with the keyboard."""
    if not page.locator("#site-search").is_visible():
        page.keyboard.press("Control+k")
    field, status = page.locator("#site-search input"), page.locator("#site-search [role=status]")
    field.fill("")
    expect(status).not_to_have_text(re.compile(r"\d"))
    field.fill(query)
    hint = re.compile(r"\d|" + re.escape(query))
    expect(status).to_have_text(hint)
    return page.locator("#site-search-results a").evaluate_all("links => links.map((link) => link.pathname)")


def in_language(path: str, code: str) -> bool:
    """Whether `path` is a page in the language of `code`."""
    return re.match(ROOT_PATH + (f"(?!{OTHERS})" if code == "en" else address(code)), path) is not None


@pytest.mark.parametrize("code", FOUND_IN_THE_SMALL_HANDBOOK)
def test_a_query_finds_the_page_in_its_own_language_only(page: Page, fixture_url: str, code: str) -> None:
    page.goto(fixture_url + address(code))
    for query in FOUND_IN_THE_SMALL_HANDBOOK[code]:
        found = ask(page, query)
        assert found[0] == ROOT_PATH + address(code, "memory"), query
        assert all(in_language(path, code) for path in found), query


@pytest.mark.parametrize("code", FOUND)
def test_a_query_finds_the_right_page_of_the_handbook_among_the_first_three(
    page: Page, site_url: str, code: str
) -> None:
    page.goto(site_url + address(code))
    for query, guide in FOUND[code]:
        found = ask(page, query)
        assert ROOT_PATH + address(code, guide) in list(dict.fromkeys(found))[:3], query
        assert all(in_language(path, code) for path in found), query


@pytest.mark.parametrize("code", FIRST)
def test_what_people_type_finds_first_the_page_that_answers(page: Page, site_url: str, code: str) -> None:
    page.goto(site_url + address(code))
    for query, guide in FIRST[code]:
        assert ask(page, query)[0] == ROOT_PATH + address(code, guide), query


@pytest.mark.parametrize("code", TRANSLATIONS)
def test_the_english_text_of_an_untranslated_page_is_found_in_english_only(
    page: Page, fixture_url: str, code: str
) -> None:
    page.goto(fixture_url + address(code))
    assert ask(page, "xylophone") == []
    page.goto(fixture_url)
    assert ask(page, "xylophone") == [ROOT_PATH + "english_only/"]


def test_a_search_word_that_is_not_in_the_text_is_not_shown(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    ask(page, "CUDA out of memory")
    assert "CUDA" not in page.locator("#site-search-results").inner_text()
    page.goto(fixture_url + "memory/")
    assert "CUDA" not in page.locator("article").inner_text()


def test_the_arrow_keys_choose_and_enter_opens_a_result(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    ask(page, "peak memory")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator("#site-search-results a[aria-selected=true]")
    target = chosen.evaluate("link => link.href")
    active = page.locator("#site-search input").get_attribute("aria-activedescendant")
    assert active == chosen.get_attribute("id")
    page.keyboard.press("Enter")
    page.wait_for_url(target)


@pytest.mark.parametrize(
    ("query", "where"),
    [("wombat", "#last-section"), ("capybaras", "#details"), ("figures", "#figures"), ("Long reading", "")],
)
def test_enter_opens_the_best_section_or_the_page_that_is_called_so(
    page: Page, fixture_url: str, query: str, where: str
) -> None:
    page.goto(fixture_url)
    page.keyboard.press("Control+k")
    page.locator("#site-search input").fill(query)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{fixture_url}reading/{where}")


def test_the_result_that_enter_opens_is_marked_until_another_is_chosen(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    ask(page, "wombat")
    sign = "link => getComputedStyle(link.querySelector('b'), '::after').content.includes('↵')"
    best = page.locator("#site-search-results a[href$='#last-section']")
    assert best.evaluate(sign)
    page.keyboard.press("ArrowDown")
    assert not best.evaluate(sign)


def passages(page: Page, query: str) -> dict[str, str]:
    """What the search shows of each place that it finds for `query`."""
    ask(page, query)
    links = page.locator("#site-search-results a").all()
    return {
        str(link.evaluate("link => link.pathname + link.hash")): link.locator("p").inner_text()
        for link in links
    }


def test_an_excerpt_begins_behind_a_table_and_ends_before_a_heading(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    found = passages(page, "quokkas")
    shown = found[f"{ROOT_PATH}reading/#figures"]
    assert shown.startswith("Quokkas sleep below the table, and numbats do not.")
    assert "Details" not in shown
    assert found[f"{ROOT_PATH}reading/"].startswith("What stands before the first section.")
    assert "First choice" not in found[f"{ROOT_PATH}reading/"]


def test_a_section_that_only_its_heading_names_is_shown_from_its_beginning(
    page: Page, fixture_url: str
) -> None:
    page.goto(fixture_url)
    shown = passages(page, "last section before")[f"{ROOT_PATH}reading/#last-section"]
    assert shown.startswith("Here a wombat digs.")


def test_an_excerpt_from_a_table_begins_with_a_row(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    assert passages(page, "tapir 9")[f"{ROOT_PATH}reading/#figures"].startswith("tapir")


@pytest.mark.parametrize("code", EXCERPTS)
def test_no_excerpt_of_the_handbook_holds_a_heading_or_begins_with_a_figure(
    page: Page, site_url: str, code: str
) -> None:
    page.goto(site_url + address(code))
    for query in EXCERPTS[code]:
        found = passages(page, query)
        titles = page.locator("#site-search-results b").all_inner_texts()
        assert found, query
        for passage, title in zip(found.values(), titles, strict=True):
            assert not passage.startswith(f"{title}."), query
            assert not re.match(r"[\d.,]+ ?(×|MiB|GiB|ms|s|samples/s)\b", passage), query


def test_escape_closes_the_search_and_gives_the_focus_back(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    button = page.locator("[data-search-open]")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#site-search input")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#site-search")).to_be_hidden()
    expect(button).to_be_focused()


def test_a_slash_opens_the_search_but_not_while_typing(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    page.keyboard.press("/")
    field = page.locator("#site-search input")
    expect(field).to_be_focused()
    page.keyboard.type("a/b")
    expect(field).to_have_value("a/b")


def test_the_tab_key_stays_inside_the_search(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    page.keyboard.press("/")
    for _ in range(6):
        page.keyboard.press("Tab")
        inside = (
            "document.activeElement === document.body || !!document.activeElement.closest('#site-search')"
        )
        assert page.evaluate(inside)


def test_a_query_without_result_says_so(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url + "ja/")
    assert ask(page, "qqqzzz") == []
    expect(page.locator("#site-search [role=status]")).to_contain_text("qqqzzz")


def test_what_a_script_printed_stays_text_in_a_result(page: Page, fixture_url: str) -> None:
    page.goto(fixture_url)
    ask(page, "on machine 1")
    passage = page.locator("#site-search-results .best p").first
    assert "<b>" in passage.inner_text()
    assert passage.locator("b").count() == 0
