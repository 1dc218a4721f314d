"""What is compared between a page and its translation, piece by piece, on pages of a few lines."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, SupportsIndex

import pytest

from benchbook.content.page_source import parse_page
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.languages.language import load_languages
from benchbook.translations import leftovers, names, numbers, parity, relations, terms
from benchbook.translations.checks import check_translations
from benchbook.translations.sections import Section, lines_for_readers, sections_of, untranslated_part
from benchbook.translations.settings import (
    Matching,
    PhraseIndex,
    Register,
    Rules,
    Term,
    foreign_renderings,
    glossary_gaps,
    load_rules,
    swapped_units,
)
from builders import write

PATH = "docs/ja/sums.md"
WORDS = Matching(
    "words", prefixes=("و", "ب", "ل", "لل", "ولل"), articles=("ال",), suffixes=("ها",), alike=(("ى", "ي"),)
)
TEXT = Matching("text")
ENGLISH = Rules(
    "en",
    numerals={1: ["one", "a"], 2: ["two"]},
    implied={2: ["half"], 5: ["fifth"]},
    fractions={2: ["half"], 3: ["thirds"], 5: ["fifth"]},
    dividing=("divided by",),
    comparisons={"<": ["below"], "^": ["squared"]},
    magnitudes={1_000_000_000: ["billion"]},
)
JAPANESE = Rules("ja", TEXT, magnitudes={100_000_000: ["億"]})


class Taken(str):
    """A text that counts how many of its characters are taken out of it."""

    out = 0

    def __getitem__(self, place: SupportsIndex | slice) -> str:
        taken = super().__getitem__(place)
        self.out += len(taken)
        return taken


def steps(work: Callable[[], object]) -> int:
    """How many steps Python takes for it."""
    count = 0

    def step(*_: object) -> Any:
        nonlocal count
        count += 1
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def section(text: str, title: str = "# T { #t }") -> Section:
    whole = f"{title}\n\n{text}"
    (found,) = sections_of(parse_page(whole), whole)
    return found


def whats(found: object) -> list[str]:
    assert isinstance(found, list)
    return [problem.what for problem in found if isinstance(problem, Problem)]


def test_a_page_has_its_description_and_a_section_per_heading() -> None:
    text = "---\nsynonyms: [x]\ndescription: About.\n---\n\n# A { #a }\n\n## B { #b }\n\n### Without an id\n"
    found = sections_of(parse_page(text), text)
    assert [(one.key, one.level, one.line, one.title) for one in found] == [
        ("description", 0, 3, "About."),
        ("a", 1, 6, "A"),
        ("b", 2, 8, "B"),
    ]


def test_a_section_knows_the_line_of_each_of_its_pieces() -> None:
    found = section(
        'One `code`\ntwo [three](b.md)\n`#!value x#y` ![four](c.svg)\n\n=== "Five"\n\n    - six <b>x</b>\n'
    )
    pieces = [(piece.line, piece.kind, piece.text) for unit in found.units[1:] for piece in unit.pieces]
    assert [piece for piece in pieces if piece[2].strip()] == [
        (3, "text", "One "),
        (3, "code", "code"),
        (4, "text", "two "),
        (4, "link", "b.md"),
        (4, "text", "three"),
        (5, "value", "x#y"),
        (5, "image", "c.svg"),
        (5, "text", "four"),
        (7, "text", "Five"),
        (9, "text", "six "),
        (9, "html", "<b>"),
        (9, "text", "x"),
        (9, "html", "</b>"),
    ]
    unit = found.units[1]
    assert unit.line_at(unit.prose.index("three")) == 4


def test_what_readers_see_of_a_fence_is_text_and_the_rest_is_constant() -> None:
    chart = 'x: step\ntitle: "A title"\n'
    assert lines_for_readers("chart", chart) == {2}
    assert untranslated_part("chart", chart) == untranslated_part("chart", "title: 題名\nx: step\n")
    assert untranslated_part("chart", chart) != untranslated_part("chart", "x: step\n")
    assert untranslated_part("chart", chart) != untranslated_part("chart", "title: 題名\nx: steps\n")
    assert lines_for_readers("table", "rows: a\nnotes:\n  x: About x\n") == {3}
    assert untranslated_part("table", "notes: {x: About x}") == untranslated_part(
        "table", "notes: {x: について}"
    )
    assert untranslated_part("table", "notes: {x: About x}") != untranslated_part(
        "table", "notes: {y: About x}"
    )
    assert lines_for_readers('claim id="a-b"', "A sentence\nof two lines.\n") == {1, 2}
    assert lines_for_readers("cell", "a.py#b\n") == frozenset()
    # Texts in another order would be compared with those of another row.
    assert untranslated_part("table", "notes: {x: a, y: b}") != untranslated_part(
        "table", "notes: {y: b, x: a}"
    )
    assert untranslated_part("table", "notes: {x: a}\nmarks: {m: b}") != untranslated_part(
        "table", "marks: {m: b}\nnotes: {x: a}"
    )
    assert untranslated_part("cell", "a.py#b\n") == "a.py#b\n"
    assert untranslated_part("chart", "title: [") == "title: ["


def test_of_a_trace_only_the_title_is_translated() -> None:
    trace = 'script: a/b.py\nwhere: {cause: data}\ntrace: steps\ntitle: "Four steps"\n'
    assert lines_for_readers("trace", trace) == {4}
    assert untranslated_part("trace", trace) == untranslated_part(
        "trace", trace.replace("Four steps", "四步")
    )
    assert untranslated_part("trace", trace) != untranslated_part("trace", trace.replace("data", "daten"))
    assert untranslated_part("trace", trace) != untranslated_part("trace", trace.replace("steps\n", "step\n"))


def test_the_sentence_of_a_claim_is_translated_and_what_it_refers_to_is_not() -> None:
    english = section('```claim id="a"\nIt saves `#!value x#y`.\n```\n')
    assert (
        list(
            parity.section_problems(
                section('```claim id="a"\n`#!value x#y` 減ります。\n```\n'), english, PATH
            )
        )
        == []
    )
    lost = parity.section_problems(section('```claim id="a"\n減ります。\n```\n'), english, PATH)
    assert whats(list(lost)) == ["the value `x#y` of the English text is not here"]
    other = parity.section_problems(
        section('```claim id="b"\n`#!value x#y` 減ります。\n```\n'), english, PATH
    )
    assert whats(list(other)) == ['here is a `claim id="b"` fence where English has a `claim id="a"` fence']
    number = list(
        numbers.added_numbers(
            section('```claim id="a"\nA.\n\n7 つ。\n```\n'), english, JAPANESE, ENGLISH, PATH
        )
    )
    assert [(one.line, one.what) for one in number] == [(6, "the number `7` is not in the English section")]


@pytest.mark.parametrize(
    ("english", "ours", "what"),
    [
        ("`a`", "`b`", "the code span `b` is not in the English text"),
        ("`a` `a`", "`a`", "the code span `a` of the English text is not here"),
        ("`#!value a#b`", "`#!value a#c`", "the value `a#c` is not in the English text"),
        ("![x](a.svg)", "![x](b.svg)", "the image `b.svg` is not in the English text"),
        ("x<br>y", "x y", "the tag `<br>` of the English text is not here"),
        ("```cell\na#b\n```", "```cell\na#c\n```", "the `cell` fence is not the English one"),
        (
            "```cell\na\n```",
            '```cell source="none"\na\n```',
            'here is a `cell source="none"` fence where English has a `cell` fence',
        ),
        ("```cell\na\n```", "```table\na\n```", "here is a `table` fence where English has a `cell` fence"),
        ("- a\n- b", "1. a\n2. b", "here is a numbered list where English has a bulleted list"),
        ('<div class="a">\n</div>', '<div class="b">\n</div>', 'here is `<div class="b">` where English has'),
        (
            "| a | b |\n|---|---|\n| 1 | 2 |",
            "| a |\n|---|\n| 1 |",
            "here is the end of the row where English has",
        ),
        ("> a", "a", "here is a paragraph where English has a quotation"),
        (
            '!!! warning "a"\n    b',
            '??? warning "a"\n    b',
            "here is a `??? warning` block where English has a `!!! warning` block",
        ),
        (
            '??? more "a"\n    b',
            '???+ more "a"\n    b',
            "here is a `???+ more` block where English has a `??? more` block",
        ),
        (
            '!!! tip "a"\n    b',
            '!!! tip note "a"\n    b',
            "here is a `!!! tip note` block where English has a `!!! tip` block",
        ),
        (
            '=== "a"\n    b\n\n=== "c"\n    d',
            '=== "a"\n    b\n\n===! "c"\n    d',
            "here is a `!!! tab!` block where English has a `!!! tab` block",
        ),
        ("`a`\n\n`b`", "`b`\n\n`a`", "the code span `b` is not in the English text"),
        ("`#!value a#b`\n\n`#!value c#d`", "`#!value c#d`\n\n`#!value a#b`", "the value `c#d` is not in the"),
        (
            'The rest.\n\n```claim id="a"\nA, `b`.\n\n`c`\n```',
            '残り。\n\n```claim id="a"\nA、`c`。\n\n`b`\n```',
            "the code span `c` is not in the English text",
        ),
        (
            "```table\nnotes:\n  x: one `a`\n  y: two `b`\n```",
            "```table\nnotes:\n  x: 一つ `b`\n  y: 二つ `a`\n```",
            "the code span `b` is not in the English text",
        ),
        (
            "batch × processes × steps",
            "バッチ ÷ プロセス × ステップ",
            "`÷` stands where the English text has `×`",
        ),
        ("a + b", "a － b", "`−` stands where the English text has `+`"),
        ("a − b", "a + b", "`+` stands where the English text has `−`"),
        ("a < b", "a > b", "`>` stands where the English text has `<`"),
        ("1. a\n2. b", "3. a\n4. b", "here is a numbered list from 3 on where English has a numbered list"),
    ],
)
def test_a_difference_that_is_no_matter_of_words_is_named(english: str, ours: str, what: str) -> None:
    found = whats(list(parity.section_problems(section(ours), section(english), PATH)))
    assert what in found[0]


CLAIM_OF_TWO = '```claim id="a"\nA holds.\n\nThis is why.\n```\n\n```claim id="b"\nB holds.\n```\n'


@pytest.mark.parametrize(
    ("ours", "what"),
    [
        (
            CLAIM_OF_TWO.replace("A holds", "Proven.\n\nA holds"),
            "here is a paragraph of the claim `a` where English has a paragraph of the claim `b`",
        ),
        (
            CLAIM_OF_TWO.replace("\n\nThis is why.", ""),
            "here is a paragraph of the claim `b` where English has a paragraph of the claim `a`",
        ),
        # As many paragraphs in all.
        (
            CLAIM_OF_TWO.replace("\n\nThis is why.", "").replace("B holds", "This is why.\n\nB holds"),
            "here is a paragraph of the claim `b` where English has a paragraph of the claim `a`",
        ),
        (
            CLAIM_OF_TWO.replace("This is why", "- This is why"),
            "here is a bulleted list of the claim `a` where English has a paragraph of the claim `a`",
        ),
        (
            CLAIM_OF_TWO.replace("This is why", "<s>\n\nThis is why"),
            "here is `<s>` of the claim `a` where English has a paragraph of the claim `a`",
        ),
    ],
)
def test_a_claim_has_the_blocks_of_the_english_one(ours: str, what: str) -> None:
    assert whats(list(parity.section_problems(section(ours), section(CLAIM_OF_TWO), PATH)))[0] == what


@pytest.mark.parametrize(
    ("english", "ours"),
    [
        ("`a` then `b`", "`b`、その前に `a`"),
        ('<div class="a" title="English">\n</div>', '<div class="a" title="日本語">\n</div>'),
        ('!!! tip "English"\n\n    x', '!!! tip "日本語"\n\n    x'),
        # An operator may be said in words, words by an operator, and one in another form.
        ("a × b = c", "a と b の積が c"),
        ("a times b", "a × b"),
        ("a * b − c", "a × b - c"),
        ("a / b or c", "a ÷ b、または c"),
    ],
)
def test_words_and_their_order_are_free(english: str, ours: str) -> None:
    assert list(parity.section_problems(section(ours), section(english), PATH)) == []


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("الاستنتاج", "ثم نبدأ بالاستنتاج هنا", [8]),
        ("محسّن", "وللمحسن حالات", [0]),
        ("مخازن مؤقتة", "المخازن المؤقتة", [0]),
        ("عذر", "تعذر ذلك", []),
        ("مدى", "مدي", [0]),
        ("تدرج", "تدرجها", [0]),
        ("كلمتان هنا", "كلمتان ثم هنا", []),
    ],
)
def test_words_are_whole_but_for_what_is_joined_to_them(phrase: str, text: str, found: list[int]) -> None:
    assert [start for start, _ in WORDS.places(phrase, text)] == found


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [("GPU 内存", "用GPU内存吗", [1]), ("ＧＰＵ", "a gpu", [2]), ("您", "你", []), ("一", "一一", [0, 1])],
)
def test_text_is_compared_without_spaces_width_and_case(phrase: str, text: str, found: list[int]) -> None:
    assert [start for start, _ in TEXT.places(phrase, text)] == found


def test_english_phrases_are_found_in_both_numbers_and_as_they_are_written() -> None:
    index = PhraseIndex({"micro-batch": "micro", "batch": "batch", "Trainer": "class", "trainer": "person"})
    assert index.found_in("Micro-batches, and a batch") == {"micro": 1, "batch": 2}
    assert index.whole_in("micro-batches") == {"micro"}
    assert index.whole_in("Trainer") == {"class", "person"}
    assert index.whole_in("a trainer") == {"person"}
    assert index.whole_in("batching") == set()


def test_a_phrase_that_is_said_twice_as_often_takes_twice_the_steps() -> None:
    index = PhraseIndex({"GPU": "one", "GPU memory": "other"})
    once, twice = (steps(lambda text=text: index.whole_in(text)) for text in ("GPU " * 200, "GPU " * 400))
    assert twice < 2.5 * once


def test_numbers_in_words_that_are_twice_as_many_take_twice_the_steps() -> None:
    arabic = Rules("ar", WORDS, numerals={1: ["واحد"]}, magnitudes={1000: ["ألف"]})
    texts = [Taken("واحد " * count) for count in (200, 400)]
    once, twice = (steps(lambda text=text: list(numbers.numbers_in(text, arabic))) for text in texts)
    assert twice < 2.5 * once
    # Of each number no more is looked at than the longest word that could multiply it.
    assert all(text.out < 3 * len(text) for text in texts)


@pytest.mark.parametrize(
    ("said", "rules"), [("1 ", ENGLISH), ("1の", JAPANESE), ("divided by 8 ", ENGLISH), ("二枚、", JAPANESE)]
)
def test_a_number_that_is_said_very_often_is_told_from_the_words_behind_it(said: str, rules: Rules) -> None:
    text = section(said * (60_000 // len(said)))
    assert list(numbers.lost_numbers(text, text, rules, rules, PATH)) == []


def test_a_number_of_very_many_ideographs_is_one() -> None:
    (found,) = whats(
        list(numbers.added_numbers(section("二" * 5000 + "枚"), section("Two."), JAPANESE, ENGLISH, PATH))
    )
    assert found == f"the number `{'二' * 5000}` is not in the English section"


@pytest.mark.parametrize(
    ("english", "ours", "added"),
    [
        ("On two GPUs.", "GPU 2 枚。", []),
        ("On two GPUs.", "GPU ٢ 枚。", []),
        ("On two GPUs.", "GPU 3 枚。", ["3"]),
        ("Half of it.", "2 分の 1。", []),
        ("A half.", "3 分の 1。", ["3 分の 1"]),
        ("Two thirds.", "3 分の 2。", []),
        ("Divided by 8.", "1/8 になる。", []),
        ("A fifth.", "五分の一。", []),
        ("Five GPUs.", "GPU 五分の一。", ["五分の一"]),
        ("8 tokens", "1 / 8 トークン", ["1 / 8"]),
        ("8 tokens", "1/8k トークン", ["1/8"]),
        ("8 tokens", "8 分の 1 トークン", ["8 分の 1"]),
        ("8/2 and 2026/11/24", "8/2、2026/11/24", []),
        ("A fifth of that.", "その 5 分の 1。", []),
        ("1,000 steps", "1000 步", []),
        ("torch 2.11.0, 3,5", "torch 2.11.0，3,5", []),
        ("In bf16 on GPT-2", "bf16 と GPT-2", []),
        ("0.5 of it", "٠٫٥ منه", []),
        ("8 billion parameters", "80 億パラメータ", []),
        ("8 billion parameters", "8 億パラメータ", ["8"]),
        ("two billion parameters", "20 億パラメータ", []),
        ("All are -100.", "すべて -100。", []),
        ("All are \u2212100.", "すべて-100。", []),
        ("All are -100.", "すべて 100。", ["100"]),
        ("From 5-10 to GPT-2 (a)-3.", "5-10 から GPT-2 (a)-3 まで。", []),
        ("| a |\n|---|\n| 32 |\n| 256 |", "| a |\n|---|\n| 32 |\n| 256 |", []),
        ("| a |\n|---|\n| 32 |\n| 256 |", "| a |\n|---|\n| 32、または 256 |\n| 256 |", ["256"]),
        ("- 32\n- 256", "- 32、または 256\n- 256", ["256"]),
        # A sentence may repeat what the paragraph before it says.
        ("In 2024.\n\nSince then.", "2024 年。\n\n2024 年以降。", []),
        ("Two processes.", "八プロセス。", ["八"]),
        ("Two processes.", "八 GPU。", ["八"]),
        ("Two processes, double quantization.", "二プロセス、二重量子化、第三者、三角 GPU。", []),
        ("Dozens of steps.", "数十ステップ、千ステップ。", []),
    ],
)
def test_a_number_must_be_in_the_english_section(english: str, ours: str, added: list[str]) -> None:
    found = whats(list(numbers.added_numbers(section(ours), section(english), JAPANESE, ENGLISH, PATH)))
    assert found == [f"the number `{number}` is not in the English section" for number in added]


@pytest.mark.parametrize(
    ("english", "ours", "signs"),
    [
        ("Below 8.", "< 8", []),
        ("Below 8.", "値は > 8", [">"]),
        ("8 < 9", "8 < 9、9 < 8", ["<"]),
        ("8 squared", "8 の 2 乗", []),
        ("8 times", "8 の 2 乗", ["乗"]),
        ("A, then B.", "A -> B => C", []),
        ("Riding.", "乗る", []),
    ],
)
def test_a_relation_of_numbers_is_said_in_english_too(english: str, ours: str, signs: list[str]) -> None:
    rules = Rules("ja", TEXT, comparisons={"^": ["乗"]})
    found = whats(list(relations.relation_problems(section(ours), section(english), rules, ENGLISH, PATH)))
    assert found == [f"`{sign}` is of a relation that the English text does not say" for sign in signs]


def test_a_number_may_be_said_in_words_and_one_need_not_be_said() -> None:
    rules = Rules("zh", matching=TEXT, numerals={2: ["两"]})
    english = section("One run on two GPUs, in 2024.")
    assert list(numbers.lost_numbers(section("2024 年，用两块 GPU。"), english, rules, ENGLISH, PATH)) == []
    signed = section("All are -100.")
    (problem,) = numbers.lost_numbers(section("全是 100。"), signed, rules, ENGLISH, PATH)
    assert problem.what == "the number -100 of the English text is not here"
    lost = whats(list(numbers.lost_numbers(section("用 GPU。"), english, rules, ENGLISH, PATH)))
    assert lost == [
        "the number 2 of the English text is not here",
        "the number 2024 of the English text is not here",
    ]


def test_a_word_for_device_memory_may_say_whose_it_is() -> None:
    english = Rules("en", terms={"GPU memory": Term(find=["GPU memory"])})
    chinese = Rules("zh", matching=TEXT, terms={"GPU memory": Term(approved=["显存"])})
    source = section("GPU memory on a GPU")
    for ours, said in (("GPU 的显存", 1), ("GPU 上的 GPU 显存", 2)):
        assert list(names.device_problems(section(ours), source, chinese, english, PATH)) == [], said
    (problem,) = names.device_problems(section("显存"), source, chinese, english, PATH)
    assert problem.what == "section `#t` says GPU 0 times, in English 2 times"


def test_a_quotation_ends_as_it_likes() -> None:
    register = Register(stop="。", plain=["だ", "う"], polite=["です", "でしょう"])
    rules = Rules("ja", TEXT, register=register)
    polite = "そうです。そうでしょう。「そうだ」。`x`。見出し"
    assert list(terms.register_problems(section(polite), rules, PATH)) == []
    (problem,) = terms.register_problems(section("そうです。\nそうだ。"), rules, PATH)
    assert (problem.line, "`そうだ`" in problem.what) == (4, True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<Tip warning>\n\nx", "`<tip>` is not an element"),
        ("x <Youtube/> y", "`<youtube>` is not an element"),
        ('<bdo dir="rtl">BiG 12.5</bdo>', "`<bdo>` is not an element"),
        ("<Tip warning={true}>x", "`<tip>` is not an element"),
        ("[[open-in-colab]]", "`[[open-in-colab]]` is syntax"),
        ("[`utils.set_seed`] sets it", "[`utils.set_seed`] links to nothing here"),
        ("See :class:`Trainer`.", "`:class:` is syntax"),
        ("::: note\nx", "`::: note` is syntax"),
        ("> [!NOTE]\n> x", "`[!NOTE]` is syntax"),
        ("{{< note >}}", "`{{< note >}}` is syntax"),
    ],
)
def test_syntax_of_other_tools_is_named(text: str, found: str) -> None:
    assert found in whats(list(leftovers.foreign_problems(section(text), PATH)))[0]


@pytest.mark.parametrize(
    "text",
    ["[`a`](b.md)", "x [1] `a` [2]", "<div markdown>\n\nx\n\n</div>", "a<br>b", "Ratio 1:2:`a`", "`[[a]]`"],
)
def test_what_this_site_understands_is_left_alone(text: str) -> None:
    assert list(leftovers.foreign_problems(section(text), PATH)) == []


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("x\n`a،b`", 2, "U+060C"),
        ("`a؛b`", 1, "U+061B"),
        ("`a؟`", 1, "U+061F"),
        ("`a：b`", 1, "U+FF1A"),
        ("`a\u200bb`", 1, "U+200B"),
        ("`a\u202eb`", 1, "U+202E"),
        ("`a\ufeffb`", 1, "U+FEFF"),
        ("```text\nx\na，b\n```", 3, "U+FF0C"),
        ("    a、b", 1, "U+3001"),
    ],
)
def test_characters_that_look_like_code_and_are_none_are_named(text: str, line: int, what: str) -> None:
    (problem,) = leftovers.code_problems(parse_page(text), PATH)
    assert (problem.line, what in problem.what) == (line, True)


def test_what_readers_see_of_a_fence_is_no_code() -> None:
    text = '```chart\nx: a\ntitle: "題名：一、二"\n```\n\n```claim id="a"\n一、二。\n三。\n```\n'
    assert list(leftovers.code_problems(parse_page(text), PATH)) == []


def test_names_alone_are_no_english_heading() -> None:
    rules = Rules("ja", TEXT, terms={"Transformer": Term(approved=["Transformer"])})
    for title in ("XLA", "Transformer", "AdamW"):
        one = section("", f"# {title} {{ #t }}")
        assert list(leftovers.english_problems(one, one, rules, PATH)) == []
    next_one = section("", "# Next { #t }")
    assert whats(list(leftovers.english_problems(next_one, next_one, rules, PATH))) == [
        "the heading `Next` is in English"
    ]


def test_a_language_that_keeps_the_order_of_code_is_told_where_two_spans_exchange_places() -> None:
    english, ours = section("Use `a` for `b`.", "# T { #t }"), section("لا تستخدم `b` بل\n`a`.", "# T { #t }")
    found = list(parity.exchanged_pieces(ours, english, ("code",), PATH))
    assert whats(found) == ["the code span `b` stands where the English text has `a`"]
    assert list(parity.exchanged_pieces(ours, english, ("value",), PATH)) == []
    assert list(parity.exchanged_pieces(english, english, ("code",), PATH)) == []


@pytest.mark.parametrize(("code", "kept"), [("ar", ("code", "value")), ("zh", ("value",)), ("ja", ())])
def test_what_a_language_keeps_the_order_of_stands_in_its_file(code: str, kept: tuple[str, ...]) -> None:
    assert load_rules(Project(Path(__file__).parents[2]), code).keeps_order == kept


def test_a_language_in_latin_letters_is_not_taken_for_english() -> None:
    ours = section("Ceci est une phrase assez longue.", "# Titre { #t }")
    english = section("This is a sentence that is long.", "# Title { #t }")
    assert list(leftovers.english_problems(ours, english, Rules("fr"), PATH)) == []
    assert len(list(leftovers.english_problems(english, english, Rules("fr"), PATH))) == 2


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("glossary: {terms: {a: {aproved: [x]}}}", "glossary.terms.a.aproved: there is no such key"),
        ("glossary: {match: letters}", "glossary.match: Input should be 'words' or 'text'"),
        ("numerals: {two: [x]}", "numerals.two"),
        ("register: [x]", "register: Input should be"),
        ("glossary: [", "is not valid YAML"),
        (f"glossary: {{prefixes: {['a'] * 101}}}", "glossary.prefixes: List should have at most 100 items"),
        (
            f"glossary: {{alike: {dict.fromkeys(map(str, range(101)), 'a')}}}",
            "glossary.alike: Dictionary should have at most 100 items",
        ),
        (
            f"register: {{never: {[f'a{number}' for number in range(1000)]}}}\nleftovers: [a]",
            "`register:` has 1000 texts, and all blocks for translations 1000 at most",
        ),
        ("charset: undefined", "`charset:` is 'undefined', which is not known as an encoding of one script"),
        ("charset: idna", "`charset:` is 'idna', which is not known as an encoding of one script"),
        ("charset: utf-8", "`charset:` is 'utf-8', which is not known"),
        ("charset: gb18030", "`charset:` is 'gb18030', which is not known"),
        ('charset: "\\0"', "`charset:` is '\\x00', which is not known"),
        ('implied_names: {GPU: ["---"]}', "`---` holds no word; give it a word to be found by"),
        ('implied_names: {GPU: [""]}', "`` holds no word"),
        ('glossary: {terms: {x: {find: ["---"]}}}', "`---` holds no word"),
    ],
)
def test_rules_that_are_malformed_are_named(tmp_path: Path, text: str, what: str) -> None:
    write(tmp_path / "docs/ja/_language.yml", text)
    with pytest.raises(BenchbookError) as raised:
        load_rules(Project(tmp_path), "ja")
    assert what in str(raised.value)


def test_every_glossary_has_the_terms_of_the_english_one(tmp_path: Path) -> None:
    write(tmp_path / "docs/en/_language.yml", "glossary:\n  terms:\n    a: {find: [a]}\n    b: {find: [b]}\n")
    write(
        tmp_path / "docs/ja/_language.yml",
        "glossary:\n  terms:\n    a: {approved: [x]}\n    c: {approved: [y]}\n",
    )
    project = Project(tmp_path)
    found = glossary_gaps({code: load_rules(project, code) for code in project.languages}, project)
    assert [(one.path, one.line, one.what) for one in found] == [
        ("docs/ja/_language.yml", 2, "its glossary lacks `b`"),
        ("docs/ja/_language.yml", 4, "its glossary has `c`, which English lacks"),
    ]


@pytest.mark.parametrize("code", ["en", "ja"])
def test_rules_that_cannot_be_read_are_one_problem_and_no_flood(tmp_path: Path, code: str) -> None:
    for name in ("en", "ja"):
        write(tmp_path / f"docs/{name}/_language.yml", "glossary: {terms: {a: {approved: [x]}}}\n")
        write(tmp_path / f"docs/{name}/a.md", "# Two words { #a }\n\nText of two.\n")
    write(tmp_path / f"docs/{code}/_language.yml", "glossary: [")
    found = check_translations(Project(tmp_path), {})
    problems = [one for one in found.errors if one.path.endswith("_language.yml")]
    assert [(one.path, one.what) for one in problems] == [(f"docs/{code}/_language.yml", "is not valid YAML")]
    assert all(code == "ja" and one.path == "docs/en/a.md" for one in found.errors if one not in problems)


@pytest.mark.parametrize(
    ("code", "entry", "what"),
    [
        ("ja", "numerals: {1: [一, 七]}", "`七` does not mean 1"),
        ("ja", "numerals: {1: [七つ]}", "`七つ` does not mean 1"),
        ("ja", "numerals: {1: [ななつ]}", "`ななつ` does not mean 1"),
        ("ja", "numerals: {1: [単], 2: [単]}", "`単` means 1 and 2"),
        (
            "ja",
            "magnitudes: {1000: [千, を超える数]}",
            "`を超える数` is no word that multiplies a number by 1000",
        ),
        ("ja", "magnitudes: {1000: [万]}", "`万` is no word that multiplies a number by 1000"),
        ("ar", "numerals: {1: [واحد, سبع]}", "`سبع` does not mean 1"),
        ("ar", "numerals: {1: [سبع وحدات]}", "`سبع وحدات` does not mean 1"),
        ("ar", "magnitudes: {1000: [وحدة]}", "`وحدة` is no word that multiplies a number by 1000"),
        ("en", "numerals: {1: [one], 7: [One]}", "`One` means 1 and 7"),
        ("de", "magnitudes: {1000: [mehr als so viele]}", "is no word that multiplies a number by 1000"),
    ],
)
def test_a_word_for_a_number_means_that_number_and_no_other(
    tmp_path: Path, code: str, entry: str, what: str
) -> None:
    match = "text" if code == "ja" else "words"
    write(tmp_path / f"docs/{code}/_language.yml", f"glossary: {{match: {match}}}\n{entry}\n")
    with pytest.raises(BenchbookError) as raised:
        load_rules(Project(tmp_path), code)
    assert what in str(raised.value)
    assert raised.value.problems[0].line == 2


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("implied: {77: [the]}", "`the` says no 77 in English"),
        ("implied: {2: [third]}", "`third` says no 2 in English"),
        ("numerals: {500: [often]}", "`often` says no 500 in English"),
        ("fractions: {8: [eighth, part]}", "`part` says no 8 in English"),
        ("dividing: [one in, the]", "`the` divides by no number behind it"),
        ("implied_names: {AMD: [The]}", "`The` stands in any sentence, so it implies no `AMD`"),
        ("implied_names: {AMD: [more]}", "`more` stands in any sentence, so it implies no `AMD`"),
        ("implied_names: {H200: [device]}", "`H200` names a model, which no other word stands for"),
        ("comparisons: {'<': [of the]}", "`of the` stands in any sentence, so it implies no `<`"),
    ],
)
def test_a_word_of_english_implies_what_every_reader_takes_it_for(
    tmp_path: Path, entry: str, what: str
) -> None:
    write(tmp_path / "docs/en/_language.yml", f"glossary: {{match: words}}\n{entry}\n")
    with pytest.raises(BenchbookError) as raised:
        load_rules(Project(tmp_path), "en")
    (problem,) = raised.value.problems
    assert (problem.line, problem.what) == (2, what)


def test_numbers_are_called_as_they_are_whatever_a_file_leaves_out(tmp_path: Path) -> None:
    write(tmp_path / "docs/en/_language.yml", "{}")
    write(tmp_path / "docs/zh/_language.yml", "glossary: {match: text}\nmagnitudes: {1000: [千]}\n")
    write(tmp_path / "docs/ar/_language.yml", "numerals: {7: [سبعة]}\n")
    rules = {code: load_rules(Project(tmp_path), code) for code in ("en", "zh", "ar")}
    for code, text, value in (("en", "seven", "7"), ("zh", "4 万层", "40000"), ("ar", "خمسة", "5")):
        assert [one.value for one in numbers.numbers_in(text, rules[code])][:1] == [value]
    assert rules["ar"].numerals[7].count("سبعة") == 1
    assert rules["ar"].magnitudes[1000] == ["ألف", "آلاف"]


def test_words_for_numbers_may_be_many_and_made_of_others(tmp_path: Path) -> None:
    entries = (
        "numerals: {1: [واحد, واحدة], 13: [ثلاثة عشر], 60: [ستون, ستين]}\nmagnitudes: {1000: [ألف, آلاف]}\n"
    )
    write(tmp_path / "docs/ar/_language.yml", entries)
    write(tmp_path / "docs/de/_language.yml", "magnitudes: {1000: [Tausend]}\n")
    for code in ("ar", "de"):
        assert 1000 in load_rules(Project(tmp_path), code).magnitudes


def test_the_latin_words_of_a_rendering_are_those_of_an_english_term(tmp_path: Path) -> None:
    terms = "glossary:\n  terms:\n    PyTorch: {find: [PyTorch, torch]}\n    offload: {find: [offload]}\n"
    write(tmp_path / "docs/en/_language.yml", terms)
    renderings = "    PyTorch:\n      approved: [PyTorch, torch, ｓudo curl]\n    offload: {approved: [CPU へ（offload）]}\n"
    for code in ("ja", "de"):
        write(tmp_path / f"docs/{code}/_language.yml", f"glossary:\n  terms:\n{renderings}")
    project = Project(tmp_path)
    found = foreign_renderings({code: load_rules(project, code) for code in project.languages}, project)
    # A language in Latin letters has words of its own.
    assert [(one.path, one.line, one.what) for one in found] == [
        ("docs/ja/_language.yml", 4, "`ｓudo curl` for `PyTorch` holds `curl`, which no English term has")
    ]


def test_a_unit_is_not_called_by_the_word_for_what_another_one_counts(tmp_path: Path) -> None:
    terms = "glossary: {terms: {token: {approved: [رمز (token), رموز]}}}\n"
    path = write(
        tmp_path / "docs/ar/_language.yml", "units:\n  samples/s: رمز/ثانية\n  tokens/s: عينة/ثانية\n"
    )
    write(path, path.read_text("utf-8") + terms)
    project = Project(tmp_path)
    (found,) = swapped_units({"ar": load_rules(project, "ar")}, project)
    assert (found.path, found.line) == ("docs/ar/_language.yml", 2)
    assert found.what == "`samples/s` is called `رمز/ثانية`, which is the glossary's word for `token`"
    write(path, "units: {samples/s: عينة/ثانية, tokens/s: رمز/ثانية}\n" + terms)
    assert swapped_units({"ar": load_rules(project, "ar")}, project) == []


SITE = Project(Path(__file__).parents[2])


@cache
def _site_rules(code: str) -> Rules:
    return load_rules(SITE, code)


@pytest.mark.parametrize("code", ["ar", "zh", "ja"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("verdict_holds", "verdict_refuted"),
        ("verdict_holds", "verdict_too_few"),
        ("claim_holds", "claim_refuted"),
        ("claim_holds", "claim_not_measured"),
        ("claim_limit_less", "claim_limit_greater"),
        ("yes", "no"),
        ("fits", "fits_not"),
        ("measured", "predicted"),
        ("published", "not_measured"),
        ("outcome_timed_out", "outcome_crashed"),
        ("calc_training", "calc_inference"),
        ("calc_weights", "calc_gradients"),
        ("process_memory", "process_memory_peak"),
        ("allocated", "reserved"),
    ],
)
def test_two_texts_of_the_interface_cannot_exchange_places(code: str, one: str, other: str) -> None:
    languages = load_languages(SITE)
    rules, english_rules = _site_rules(code), _site_rules("en")
    english, its = languages["en"], languages[code]
    title = "strings" if one in its.strings else "labels"
    texts = dict(getattr(its, title))
    assert list(terms.renamed_texts(its, english, rules, english_rules, "a", "")) == []
    texts[one], texts[other] = texts[other], texts[one]
    exchanged = (
        dataclasses.replace(its, strings=texts)
        if title == "strings"
        else dataclasses.replace(its, labels=texts)
    )
    found = list(terms.renamed_texts(exchanged, english, rules, english_rules, "a", ""))
    assert found
    assert all(problem.what.startswith((f"`{one}` is", f"`{other}` is")) for problem in found)


def test_a_rendering_that_is_part_of_another_terms_does_not_count(tmp_path: Path) -> None:
    terms = "glossary: {match: text, terms: {fits: {approved: [够]}, does not fit: {approved: [不够]}}}\n"
    write(tmp_path / "docs/en/_language.yml", "strings:\n  a: fits\n  b: Does not fit\n" + terms)
    write(tmp_path / "docs/zh/_language.yml", "strings:\n  a: 不够\n  b: 显存不够\n" + terms)
    found = [one for one in check_translations(Project(tmp_path), {}).errors if "glossary calls" in one.what]
    assert [(one.path, one.line, one.what) for one in found] == [
        ("docs/zh/_language.yml", 2, "`a` is `不够`, which is not what the glossary calls “fits”")
    ]


def test_the_file_of_a_language_has_no_other_blocks(tmp_path: Path) -> None:
    write(tmp_path / "docs/ja/_language.yml", "strings: {}\nregistr: {}\n")
    with pytest.raises(BenchbookError, match=r"_language.yml:2: `registr:` .* there are: `?register"):
        load_rules(Project(tmp_path), "ja")


@pytest.mark.parametrize("many", [1, 2, 15, 90])
def test_a_magnitude_is_a_power_of_ten(tmp_path: Path, many: int) -> None:
    write(tmp_path / "docs/ja/_language.yml", "magnitudes:\n  1000: [千]\n")
    assert load_rules(Project(tmp_path), "ja").magnitudes[1000] == ["千"]
    write(tmp_path / "docs/ja/_language.yml", f"magnitudes:\n  {many}: [千]\n")
    with pytest.raises(BenchbookError, match=f"_language.yml:2: .*has {many}, which is no power of ten"):
        load_rules(Project(tmp_path), "ja")
