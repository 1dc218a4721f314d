"""No word reaches readers that no check has read: both parsers must find the same in a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchbook.content.page_source import parse_page
from benchbook.content.problems import Problem
from benchbook.content.readings import (
    EXTENSIONS,
    differences,
    html_items,
    made_size,
    page_items,
    site_reading,
)
from benchbook.translations.characters import INVISIBLE
from benchbook.translations.checks import check_translations
from benchbook.translations.leftovers import front_matter_problems, reading_problems, syntax_problems
from builders import make_project, write

ROOT = Path(__file__).parents[2]
HEAD = "---\ndescription: A page.\n---\n\n# Title { #title }\n\n"
LINE = HEAD.count("\n") + 1
PAGES = sorted(ROOT.glob("docs/*/*.md")) + sorted(ROOT.glob("tests/fixtures/handbook/docs/*/*.md"))


def difference(text: str) -> Problem | None:
    html, slots = site_reading(text)
    return next(differences(page_items(parse_page(text)), html_items(html, slots), "a.md"), None)


def test_the_pages_are_built_by_the_markdown_that_is_checked() -> None:
    class Loader(yaml.SafeLoader):
        """Reads the settings that name variables of the environment."""

    Loader.add_constructor("!ENV", lambda loader, node: None)
    settings = yaml.load((ROOT / "mkdocs.yml").read_text("utf-8"), Loader)
    assert settings["markdown_extensions"] == EXTENSIONS


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_page_reads_alike(path: Path) -> None:
    text = path.read_text("utf-8")
    assert difference(text) is None
    assert len(page_items(parse_page(text))) >= 4


HIDDEN = {
    "below the tag of a block": '<div class="remedies" markdown>\n12 GB are enough.\n</div>',
    "in a block of HTML": "<p>12 GB are enough.</p>",
    "in a summary": "<details>\n<summary>12 GB</summary>\n</details>",
    "in a paragraph that is Markdown again": '<p markdown="1">12 GB</p>',
    "a reference in a paragraph": 'Words\n[注]: address "12 GB"\nand more.',
    "a reference in a claim": '```claim id="a"\nWords\n[注]: address "12 GB"\nand more.\n```',
    "the title of a link": '[Words](other.md "12 GB")',
    "the title of code": '```text title="12 GB"\nwords\n```',
    "the title of an element": 'Words\n{: .measured title="{" }',
    "a table of contents": "[TOC]",
    "an id of a heading in other words": "## Words { #one id=two }",
    "an id of a link that ends a heading": "## [Words](b.md){ #one }",
    "a fence of ours in HTML": '<div>\n```claim id="a"\nWords.\n```\n</div>',
    "a fence of ours with attributes": '```{ .claim id="a" }\nWords.\n```',
    "a value in another way of writing": "`:::value sums/add.py#sum`",
    "a value that is code to the site": "`` #!value sums/add.py#sum ``",
    "code that another language colours": "`#!python 12`",
    "code that never ends": "```text\n12 GB",
    "a pipe in the code of a table": "| a | b |\n|---|---|\n| `x|y` | 12 |",
    "code in HTML": "Words <code>12 GB</code>.",
    "a heading without a space": "#Words",
    "a heading of the seventh level": "####### Words",
    "a list without a blank line": "Words\n- 12 GB",
    "a number that is that of an item": "Words\n1. 12 GB",
    "a table without a blank line": "Words\n| a | b |\n|---|---|\n| 1 | 2 |",
    "an address with spaces": "[Words](one two)",
    "an address with a title in brackets": "[Words](other.md (title))",
    "a word in parts": "1\x022 GB",
    "a title without quotation marks": "!!! tip 12 GB\n    Words.",
    "attributes of nothing": "Words { .measured } and more.",
    "a tag with a comparison": "It is a <b 12 GB c> d.",
    "a quotation of YAML with a blank before some lines": "> Words.\n\n>```table\n>script: a/b.py\n> rows: c\n>```",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
def test_what_only_one_parser_finds_is_named_with_its_line(text: str) -> None:
    whole = f"{HEAD}{text}\n\nLast.\n"
    found = difference(whole)
    assert found is not None
    assert found.what.startswith("text: the checks read ")
    assert found.what.endswith(": both parsers must read a page alike")
    assert LINE <= found.line <= whole.count("\n")
    assert found in reading_problems(parse_page(whole), whole, "a.md", ())


@pytest.mark.parametrize("tag", ["td", "th", "tr", "tbody"])
def test_a_tag_that_cleaning_drops_is_named_before_a_build_stops_at_it(tag: str) -> None:
    whole = HEAD + f"In HTML, a cell is a <{tag}>word</{tag}> of a row.\n"
    (found,) = reading_problems(parse_page(whole), whole, "a.md", ())
    assert (found.line, "both parsers must read a page alike" in found.what) == (LINE, True)


MADE_IN_CODE = {
    "indented": "    ```table\n    script: a/b.py\n    ```",
    "behind a tab": "\t```table\n\tscript: a/b.py\n\t```",
    "in a quotation": ">     ```table\n>     script: a/b.py\n>     ```",
    "in a list": "- Words.\n\n        ```table\n        script: a/b.py\n        ```",
    "in a block that never ends": "<div markdown>\n```table\nscript: a/b.py\n```\n    </b>\n<div>",
    "in a tab": '=== "A"\n\n        ~~~ { .table }\n        script: a/b.py\n        ~~~',
}


@pytest.mark.parametrize("text", MADE_IN_CODE.values(), ids=MADE_IN_CODE)
def test_a_fence_that_the_site_makes_though_it_is_shown_as_code_is_named_with_its_line(text: str) -> None:
    whole = f"{HEAD}{text}\n"
    (found,) = reading_problems(parse_page(whole), whole, "a.md", ())
    assert found.what == "a `table` that no reader sees, for it stands in code, is made nevertheless"
    assert (
        found.line == whole.split("\n").index(next(line for line in text.split("\n") if "table" in line)) + 1
    )


def test_a_fence_within_a_fence_is_code_alone() -> None:
    whole = f"{HEAD}````markdown\n```table\nscript: a/b.py\n```\n````\n"
    assert list(reading_problems(parse_page(whole), whole, "a.md", ())) == []


def test_every_section_that_reads_otherwise_is_named() -> None:
    parts = "".join(f"## Part {{ #{key} }}\n\n<p>12</p>\n\nWords.\n\n" for key in "abc")
    found = list(reading_problems(parse_page(HEAD + parts), HEAD + parts, "a.md", ()))
    assert [problem.line for problem in found] == [LINE + 4, LINE + 10, LINE + 16]


ALIKE = {
    "tabs": '=== "A"\n\n    Words `x`.\n\n=== "B"\n\n    More.\n\n    === "C"\n\n        Within.',
    "blocks that open": '??? more "A *title*"\n\n    - One\n    - Two\n\n        more of two',
    "blocks without a title": "!!! tip\n    Words.",
    "blocks of HTML": '<div class="remedies" markdown>\n\n[Words](other.md)\n\n</div>',
    "tables": "| a | b |\n|---|--:|\n| **1**2 | `x` <br> y |",
    "links and pictures": "[One](b.md#c), <https://a.org/%E3%81%82?b=c&d>, ![A *b*](c.svg){ width=40 } [d](あ.md)",
    "emphasis beside signs": "これは**「強調」**です。*a*b _c_ 1*2*3",
    "entities and escapes": "&lt;b&gt; &#49;2 \\*a\\* 3 < 4 & 5 `&lt;`",
    "quotations and lines": "> One\n> two\n\nthree  \nfour",
    "code": "```text\n<b> 12 GB\n\n  [x]: y\n```\n\n    indented 12",
    "ours": '```claim id="a"\nA [word](b.md) of `#!value a/b.py#c`.\n\nMore.\n```\n\n```cell source="none"\na.py#b\n```',
    "attributes": "Words `#!value a/b.py#c`.\n{ .measured }\n\n## Part { #part .measured }",
}


@pytest.mark.parametrize("text", ALIKE.values(), ids=ALIKE)
def test_what_pages_are_written_in_reads_alike(text: str) -> None:
    assert difference(f"{HEAD}{text}\n\nLast.\n") is None


MARKS = [
    *r"`*_[]\|",
    "``",
    "**",
    "(b.md)",
    "<b>",
    "</b>",
    "&#96;",
    "```",
    "~~~",
    "---",
    "<p>",
    "</p>",
    "</div>",
    "<!--",
]
SPACED = [
    "\n",
    "\n\n",
    "    ",
    "\t",
    "- ",
    "1. ",
    "> ",
    "# ",
    ": ",
    "<div markdown>",
    "{ .measured }",
    "12 ",
    "GB",
]
BEGUN = ['!!! tip "t"\n    ', '=== "t"\n    ', "#!value ", 'claim id="x"', "[x]: ", "{#x}", "-->"]
PIECES = st.sampled_from([*MARKS, *SPACED, *BEGUN])


@given(st.lists(PIECES, max_size=14).map("".join))
def test_words_that_readers_see_are_read_or_the_page_is_refused(text: str) -> None:
    whole = f"{HEAD}{text}\n"
    html, _ = site_reading(whole)
    if difference(whole) is None and "GB" in re.sub(r"<[^>]*>", "", html):
        tokens = [child for token in parse_page(whole).tokens for child in (token, *(token.children or ()))]
        assert any(
            "GB" in token.content for token in tokens if token.type not in ("html_block", "html_inline")
        )


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("Words[^1].\n\n[^1]: 12 GB", "`[^1]` is a footnote"),
        ('[^1]: x "12 GB"', "`[^1]` is a footnote"),
        ('Words\n[注]: address "12 GB"', "`[注]:` is an address apart from its link"),
        ("[One][two]\n\n[two]: b.md", "`[two]:` is an address apart from its link"),
        ("> - [two]: b.md", "`[two]:` is an address apart from its link"),
        ('```claim id="a"\nWords\n[two]: b.md\n```', "`[two]:` is an address apart from its link"),
        ("!!! tip\n    [two]: b.md", "`[two]:` is an address apart from its link"),
    ],
)
def test_footnotes_and_addresses_apart_from_links_are_refused(text: str, what: str) -> None:
    whole = f"{HEAD}{text}\n"
    found = list(syntax_problems(parse_page(whole), whole, "a.md"))
    assert found[0].what == what
    assert found[0].line >= LINE
    assert found[0].fix


def test_code_may_hold_what_looks_like_a_footnote() -> None:
    whole = f"{HEAD}A `[^1]` and `[x]: y`.\n\n```text\n[^1]: x\n[x]: y\n```\n"
    assert list(syntax_problems(parse_page(whole), whole, "a.md")) == []


def test_front_matter_has_one_end_for_both() -> None:
    text = "---\ndescription: A page.\n...\n# Hidden { #hidden }\n---\n\n# Title { #title }\n"
    (problem,) = front_matter_problems(parse_page(text), text, "a.md")
    assert (problem.line, problem.what) == (
        3,
        "`...` ends the front matter for MkDocs, and what follows is text",
    )
    assert difference(text) is not None


@pytest.mark.parametrize("said", ['""', '"  "', '"·"', "12", "[]"])
@pytest.mark.parametrize("key", ["title", "description"])
def test_a_title_and_a_description_are_words(key: str, said: str) -> None:
    text = f"---\n{key}: {said}\n---\n\n# One {{ #one }}\n"
    (problem,) = front_matter_problems(parse_page(text), text, "a.md")
    assert (problem.line, problem.what) == (2, f"`{key}:` is not text")


def test_the_check_of_a_tree_holds_every_language_to_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    for code in ("en", "ja"):
        write(project.docs / code / "_language.yml", "strings: {}\nlabels: {}\n")
        write(project.docs / code / "sums.md", f"{HEAD}<p>12 GB</p>\n\nWords.\n{{: .md-toggle }}\n")
    pages = {path: parse_page(path.read_text("utf-8")) for path in project.page_paths()}
    said = [str(problem) for problem in check_translations(project, pages).errors]
    for code in ("en", "ja"):
        assert any(one.startswith(f"docs/{code}/sums.md:9: text: the checks read “Words”") for one in said)
        assert any(one.startswith(f"docs/{code}/sums.md:10: `.md-toggle` is not a class") for one in said)


UNSEEN = (
    "ad 34f 115f 180b 200b 202e 2065 3164 fe0f ffa0 e0001 e0041 e007f e01ef e0fff 1bca0 1d173 2800 1 85 2028"
)


@pytest.mark.parametrize("code", UNSEEN.split())
def test_a_character_that_shows_nothing_is_one(code: str) -> None:
    assert INVISIBLE.fullmatch(chr(int(code, 16)))


def test_characters_that_show_something_are_none() -> None:
    assert INVISIBLE.search("aZ 09\t\n　あア漢。العربية،ًٌ μ×−≈ü🙂") is None


@pytest.mark.parametrize(
    "text",
    [
        'Say data-bb-slot="x" there.',
        '## Say data-bb-slot="x" { #say }',
        '```text\n<div data-bb-slot="x"></div>\n```',
        '    <div data-bb-slot="x"></div>',
        '!!! tip "data-bb-slot=x"\n\n    Words.',
    ],
)
def test_words_that_look_like_a_place_for_a_block_are_words(text: str) -> None:
    whole = f"{HEAD}{text}\n"
    assert list(reading_problems(parse_page(whole), whole, "a.md", ())) == []


def test_a_place_for_a_block_that_nothing_is_made_for_is_named() -> None:
    whole = f'{HEAD}Words <span data-bb-slot="x">here</span>.\n'
    (found,) = reading_problems(parse_page(whole), whole, "a.md", ())
    assert (found.line, found.what) == (
        LINE,
        "`data-bb-slot=` is not an attribute that an element here may have",
    )


def test_a_page_is_as_long_as_its_html_where_each_sign_of_it_becomes_a_tag() -> None:
    code = "```json\n" + "1,\n" * 500 + "```\n"
    assert made_size(code) == len(site_reading(code)[0]) > 10 * len(code)
    assert made_size("a" * 500 + "\n\n") == 507  # <p>, </p>
    assert made_size("\n" * 500) == 500
