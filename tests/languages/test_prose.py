"""Headings can be linked to in every language, and no measured number is typed by hand in any."""

from __future__ import annotations

import pytest

from benchbook.content.page_source import parse_page
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.languages.cldr import cldr_unit_words
from benchbook.languages.language import unit_words
from benchbook.languages.prose import prose_problems
from lessons import ROOT

HANDBOOK = Project(ROOT)
WORDS = frozenset(word for code in HANDBOOK.languages for word in unit_words(HANDBOOK.docs, code))
HEAD = "---\ndescription: About adding.\n---\n"


def problems(body: str, head: str = HEAD, words: frozenset[str] = WORDS) -> list[Problem]:
    return list(prose_problems(parse_page(head + body), "docs/en/sums.md", words))


@pytest.mark.parametrize(
    "text",
    [
        "It takes 7.9 GiB on the device.",
        "It takes 7.9GiB on the device.",
        "It runs at 1,200 samples/s here.",
        "It is 38 % faster.",
        "It is 38% faster.",
        "It is 1.3x faster.",
        "It is 1.3 × faster.",
        "It takes 5 seconds.",
        "需要 24 GB 显存。",
        "快了 2 倍。",
        "耗时 3 秒。",
        "这需要42毫秒。",
        "节省38％的显存。",
        "即3.2GB。",
        "需要３２GB。",
        "この処理は42ミリ秒かかります。",
        "約3.2ギガバイトを使います。",
        "実行に 3.5 秒かかります。",
        "速度は 2 倍です。",
        "يستغرق 12 ثانية.",
        "أسرع بنسبة 38٪ من قبل.",
        "يستغرق ٣٫٥ ثانية.",
        "يستغرق ٤٢ مللي ثانية.",
        "يوفّر 3.2 غيغابايت.",
        "أسرع بنسبة38٪ من قبل.",
        "بمقدار 38 في المئة.",
        "!!! note\n\n    It takes 7.9 GiB.",
        '=== "PyTorch"\n\n    It takes 7.9 GiB.',
        "- a list\n\n    with 7.9 GiB inside",
        "> quoted: 7.9 GiB",
        "**7.9 GiB** in bold",
        "| a | b |\n|---|---|\n| x | 7.9 GiB |",
        "```table\ncaption: It takes 7.9 GiB\n```",
        "```table\nnotes: {plain: It takes 7.9 GiB}\n```",
        "```chart\ntitle: It takes 7.9 GiB\n```",
    ],
)
def test_a_measured_number_in_the_text_is_found(text: str) -> None:
    (problem,) = problems(text)
    assert "is typed into the text" in problem.what
    assert "#!value" in problem.fix


@pytest.mark.parametrize(
    "number",
    [
        "42  ms",
        "42-ms",
        "80-GiB",
        "42 msec",
        "42 (ms)",
        "42GiB/s",
        "42k tokens/s",
        "42 million tokens/s",
        "4.2e3ms",
        "×42",
        "milliseconds: 42",
        "`42 ms`",
        "⁴² ms",
        "½ ms",
        "𝟒𝟐 ms",
        "๔๒ ms",
        "४२ ms",
        "42㎳",
        "42 (in ms)",
        "42 `GiB`",
        "`42` GiB",
        "42 gibibytes",
        "twelve gigabytes",
        "fifteen GiB",
        "![42 GiB](a.png)",
        '![memory](a.png "42 GiB")',
        "XLII ms",
        "forty-two milliseconds",
        "a hundred seconds",
        "ninety percent",
        "½秒",
        "⁴² 毫秒",
        "🄃🄁 毫秒",
        "Ⅳ 倍",
        "〤〢毫秒",
    ],
)
def test_a_measured_number_is_found_however_it_is_written(number: str) -> None:
    (problem,) = problems(f"It takes {number} here.")
    assert "is typed into the text" in problem.what


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("de", "Das dauert 42 Millisekunden."),
        ("de", "Das spart 38 Prozent."),
        ("fr", "Cela occupe 3,2 gigaoctets."),
        ("ko", "42밀리초가 걸립니다."),
        ("ru", "Это занимает 5 секунд."),
    ],
)
def test_a_language_that_names_no_words_for_units_has_those_of_cldr(code: str, text: str) -> None:
    (problem,) = problems(text, words=cldr_unit_words(code))
    assert "is typed into the text" in problem.what


@pytest.mark.parametrize(
    "text",
    [
        "It takes `#!value sums/add.py#total GiB`.",
        "Run it with `batch_size = 16 GB`.",
        "The [guide](https://example.org/guide) says about 20 %.",
        "On 2 GPUs, with 4 processes and 8 steps.",
        "A batch of 4 x 512 tokens.",
        "In bf16 % is not a unit; GPT-2 s and x86 W are none either.",
        "Since the 1990s, and in torch 2.13.",
        "In 2026, GPUs are fast.",
        "Section 3 says so; see step 2.",
        "```text\n7.9 GiB\n```",
        "用 2 块 GPU。",
        "Batch × 4, and 4 × 512; the error is 2 × 10⁻⁸.",
        "Forty-two GPUs, two processes, two bytes, accumulated four times.",
        "ピークの 8 分の 1 です。",
    ],
)
def test_counts_code_and_figures_with_a_source_are_left_alone(text: str) -> None:
    assert problems(text) == []


def test_a_number_in_a_cell_is_measured_in_the_unit_that_heads_its_column() -> None:
    table = "| way | Memory (GiB) | Steps |\n|---|---|---|\n| a | %s | 42 |\n"
    (problem,) = problems(table % "512")
    assert (problem.line, problem.what) == (6, "the measured number `512 GiB` stands in a cell")
    assert problems(table % "[512](https://example.org/)") == []
    assert problems(table % VALUE) == []


VALUE = "`#!value sums/add.py#total`"


@pytest.mark.parametrize(
    ("text", "glued"),
    [
        (f"It takes 10{VALUE} steps.", "10"),
        (f"It takes 10 **{VALUE}** steps.", "10"),
        (f"It takes {VALUE}000 steps.", "0"),
        (f"It takes {VALUE}\n000 steps.", "000"),
        (f"It takes `10`<wbr>{VALUE} steps.", "10"),
        (f"It takes <b>&#49;</b>{VALUE} steps.", "1"),
        (f"It saves \u2212{VALUE}.", "\u2212"),
        (f"It saves \u2212 {VALUE}.", "\u2212"),
        (f"It saves 1.{VALUE}.", "1."),
        (f"It saves .{VALUE}.", "."),
        (f"It saves {VALUE}k.", "k"),
        (f"It saves {VALUE}<sup>2</sup>.", "2"),
        (f"It takes {VALUE} thousand million steps.", "thousand"),
        (f"It takes minus {VALUE}.", "minus"),
        (f"{VALUE}万ステップ", "万"),
        (f"{VALUE} 千步", "千"),
        (f"{VALUE} ألف خطوة", "ألف"),
        (f"{VALUE} ألفًا", "ألفًا"),
        (f"{VALUE} 分の1 です。", "分の1"),
        (f"五分之 {VALUE}", "五分之"),
        (f"五{VALUE}", "五"),
    ],
)
def test_nothing_beside_a_value_makes_another_number_of_it(text: str, glued: str) -> None:
    (problem,) = problems(f"First line.\n{text}")
    assert problem.what == f"`{glued}` stands beside a value, and would be read as part of the number"
    assert problem.line == 5


@pytest.mark.parametrize(
    "text",
    [
        f"In bf16 {VALUE}, and GPT-2 {VALUE}; {VALUE}\u2013{VALUE}, {VALUE} \u2212 {VALUE}.",
        f"(**{VALUE}**), [{VALUE}](#a): {VALUE}; {VALUE}. Next, {VALUE}, 2 of them.",
        f"ピークの{VALUE}になります。半分の {VALUE}で済みます。{VALUE} 十分です。{VALUE} 百分点。第 2 项，{VALUE} 步",
        f"ومقداره {VALUE}، و4 و{VALUE} ألفاظ",
    ],
)
def test_words_and_names_beside_a_value_are_left_alone(text: str) -> None:
    assert problems(text) == []


def test_a_list_begins_with_the_number_that_readers_see() -> None:
    (problem,) = problems("# Sums { #sums }\n\nWords.\n\n16. GB are saved.\n17. More.\n")
    assert (problem.line, problem.what) == (8, "a list begins with 16, where readers see 1")
    assert problems("# Sums { #sums }\n\n1. One.\n2. Two.\n") == []


def test_a_typed_number_is_named_with_its_line_in_the_file() -> None:
    (problem,) = problems("First line,\nsecond line,\nthird with 5 GiB.\n")
    assert problem.line == 6


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("# Adding", "the heading `Adding` has no id"),
        ("# Adding { #Adding }", "the id `Adding` is not plain"),
        ("# One { #one }\n\n## One again { #one }", "the id `one` is there twice (first on line 4)"),
    ],
)
def test_a_heading_that_cannot_be_linked_to_is_found(text: str, what: str) -> None:
    assert [problem.what for problem in problems(text)] == [what]


@pytest.mark.parametrize(
    ("head", "what"),
    [
        ("", "has no description"),
        ("---\ntitle: x\n---\n", "has no description"),
        ("---\na: [\n---\n", "its front matter is not YAML"),
        ("---\ndescription: It saves 38 %.\n---\n", "its description holds the number `38 %`"),
        (f"{HEAD[:-4]}title: Saves 38 %\n---\n", "its title holds the number `38 %`"),
        (f"{HEAD[:-4]}synonyms: [快 42 毫秒]\n---\n", "its synonyms holds the number `42 毫秒`"),
        (f"{HEAD[:-4]}title: From evil.example/x\n---\n", "its title holds the address `evil.example/x`"),
    ],
)
def test_every_page_describes_itself(head: str, what: str) -> None:
    (problem,) = problems("Text.", head)
    assert what in problem.what


def test_a_synonym_may_be_a_figure_that_the_page_names_with_its_source_or_a_size_in_a_name() -> None:
    head = f"{HEAD[:-4]}synonyms: [18 bytes per parameter, Llama 8B, 24 GB GPU]\n---\n"
    assert problems("It takes 18 bytes, [says one](https://example.org/).", head) == []


@pytest.mark.parametrize(
    "address", ["https://evil.example/install", "www.evil.example", "evil.example/install", "me@evil.example"]
)
def test_an_address_stands_in_a_link_or_nowhere(address: str) -> None:
    (problem,) = problems(f"First line,\nsee {address} for it.")
    assert (problem.line, problem.what) == (5, f"the address `{address}` stands in the text")
    assert problems("See [it](https://example.org/) and <https://example.org/a>, and torch.compile.") == []
