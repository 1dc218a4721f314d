"""A link to a page, a section or a file that is not there is named with its line, in every language."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.checking.links import anchors, calculator_link_problems, link_problems
from benchbook.content.page_source import parse_page
from benchbook.rendering.calculator_form import GUIDE_LINKS

PAGES = {
    "index.md": parse_page("# Start { #start }\n"),
    "sums.md": parse_page("# Sums { #sums }\n\n## Adding { #adding }\n"),
}


def problems(text: str, folder: Path) -> list[str]:
    found = link_problems(parse_page(text), "index.md", folder, "docs/ja/index.md", anchors(PAGES))
    return [str(problem) for problem in found]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "One,\n[two](sum.md).",
            "docs/ja/index.md:2: there is no page `sum.md` to link to; use one of the pages",
        ),
        (
            "[x](sums.md#ading)",
            "docs/ja/index.md:1: `sums.md` has no section `#ading` to link to; use one of",
        ),
        ("[x](#begin)", "docs/ja/index.md:1: `index.md` has no section `#begin` to link to"),
        (
            "```table\nlinks:\n  a: sums.md#adding\n  b: sums.md#ading\n```",
            "docs/ja/index.md:4: `sums.md` has no section `#ading` to link to",
        ),
        (
            "```table\nlinks:\n  a: https://example.org/\n```",
            "docs/ja/index.md:3: `https://example.org/` is no page that a row leads to; name a page of ours",
        ),
        ("```table\nlinks: {a: 'https://['}\n```", "docs/ja/index.md:2: `https://[` is no page that a row"),
        ("```table\nlinks: {a: /sum.md}\n```", "docs/ja/index.md:2: there is no page `sum.md` to link to"),
        (
            "```table\nlinks: {a: su%6Ds.md}\n```",
            "docs/ja/index.md:2: there is no page `su%6Ds.md` to link to",
        ),
        (f"[x]({'a' * 300}.txt)", "docs/ja/index.md:1: there is no file `aaa"),
        (f"![x]({'a' * 300}/b.svg)", "docs/ja/index.md:1: there is no file `aaa"),
        ("[x](sums.md#)", "docs/ja/index.md:1: `sums.md#` leads to a section without a name; name a section"),
        (
            'One,\n<a href="sums.md">two</a>.',
            "docs/ja/index.md:2: `<a>` leads to `sums.md`, and the build resolves no address in HTML; "
            "write `[words](sums.md)`",
        ),
        ('<div>\n<img alt="x" src="there.svg">\n</div>', "docs/ja/index.md:2: `<img>` leads to `there.svg`"),
        (
            "![x](/assets/none.png)",
            "docs/ja/index.md:1: the picture `/assets/none.png` is no file of the site; write the path of its",
        ),
        (
            "One,\n[x](/elsewhere).",
            "docs/ja/index.md:2: the link to `/elsewhere` leads to no page, section or file of the site; name one",
        ),
        ("[x](/sums.md)", "docs/ja/index.md:1: the link to `/sums.md` leads to no page"),
        ("[x]()", "docs/ja/index.md:1: the link to `` leads to no page, section or file"),
        ("![x]()", "docs/ja/index.md:1: the picture `` is no file of the site"),
        ("![x](sums.md)", "docs/ja/index.md:1: the picture `sums.md` is no file of the site"),
        ("![x](../../outside.svg)", "docs/ja/index.md:1: there is no file `../../outside.svg` to link to"),
        ("![x](picture.svg)", "docs/ja/index.md:1: there is no file `picture.svg` to link to; add it"),
        ("[x](../en/_language.yml)", "docs/ja/index.md:1: there is no file `../en/_language.yml` to link to"),
        ("One,\n[x](&#115;ums.md).", "docs/ja/index.md:2: `&#115;ums.md` holds `&`, which the build takes"),
    ],
)
def test_a_dead_link_is_named_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "outside.svg").write_text("<svg/>", "utf-8")
    folder = tmp_path / "docs/ja"
    folder.mkdir(parents=True)
    (found,) = problems(text, folder)
    assert found.startswith(problem)


@pytest.mark.parametrize(
    "text",
    [
        "[x](sums.md), [y](sums.md#adding), [z](#start) and [w](./sums.md)",
        "[x](https://example.org/sum.md#a), [y](mailto:a@example.org)",
        "`[x](sum.md)` and `[x](a&b.md)`, [y](https://example.org/?a=1&b=2)",
        '<a href="#start">x</a>, <a href="https://example.org/">y</a> and <a href="mailto:a@example.org">z</a>',
        "![x](there.svg)",
        "```table\nlinks: {a: /sums.md#adding, b: index.md}\n```",
    ],
)
def test_other_links_are_left_alone(text: str, tmp_path: Path) -> None:
    (tmp_path / "there.svg").write_text("<svg/>", "utf-8")
    assert problems(text, tmp_path) == []


def linked_pages() -> dict[str, str]:
    """The pages that the calculator links to, with the headings that it names."""
    pages: dict[str, str] = {}
    for link in dict.fromkeys(GUIDE_LINKS.values()):
        name, _, anchor = link.partition("#")
        pages[name] = pages.get(name, "# Guide { #guide }\n") + f"\n## Part {{ #{anchor} }}\n"
    return pages


def calculator_problems(pages: dict[str, str], part: str = "form") -> list[str]:
    known = anchors({name: parse_page(text) for name, text in pages.items()})
    page = parse_page(f"# Calculator {{ #calculator }}\n\n```calculator\n{part}\n```\n")
    return [str(one) for one in calculator_link_problems(page, "docs/en/memory_calculator.md", known)]


def test_what_the_calculator_links_to_is_there() -> None:
    assert calculator_problems(linked_pages()) == []


def test_a_page_that_the_calculator_links_to_is_missed_once_at_its_fence() -> None:
    pages = linked_pages()
    del pages["comparing_setups.md"]
    assert calculator_problems(pages) == [
        "docs/en/memory_calculator.md:3: the calculator links to the page `comparing_setups.md`, which is not "
        "there; restore the page, or change GUIDE_LINKS in scripts/benchbook/rendering/calculator_form.py"
    ]
    assert calculator_problems(pages, "errors") == []


def test_a_heading_that_the_calculator_links_to_is_missed_at_its_fence() -> None:
    pages = linked_pages()
    name = "model_memory_anatomy.md"
    pages[name] = pages[name].replace("#first-remedy", "#last-remedy")
    (found,) = calculator_problems(pages)
    assert found.startswith(
        f"docs/en/memory_calculator.md:3: the calculator links to the section `#first-remedy` of `{name}`, which "
        "is not there; restore the heading id, or"
    )
