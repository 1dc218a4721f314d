"""The pattern that guides are held to: what is counted, what is refused, and who must have read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.checks import check_project
from benchbook.checking.guide_pattern import MOST_CLAIMS, MOST_WORDS, WIDEST, count, page_digest
from benchbook.checking.guide_reviews import JOURNEYS, VALUES
from benchbook.content.page_source import parse_page
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.records import write_record
from builders import MACHINE, SCRIPT, make_project, make_record, write

PAGE = """---
description: What adding costs.
---

# Adding { #adding }

The total is `#!value sums/add.py#total`.

Measured: sums of `#!value sums/add.py#total` numbers.
{ .measured }

```cell
sums/add.py#add
```

## More { #more }

Said below.
"""
READ = "sha256:" + "0" * 64


def reviews(page: str, **changes: Any) -> str:
    """A review.toml in order for `page`; `changes` replaces the numbers of its parts."""
    numbers = {"values": VALUES, "journeys": JOURNEYS, "taps": 2, "answers": 1, "frozen": page_digest(page)}
    numbers |= changes
    value = '[[review.value]]\nreference = "sums/add.py#total"\npage = "7"\nrecomputed = "7"\n'
    journey = f'[[review.journey]]\nquestion = "How much?"\ntaps = {numbers["taps"]}\nstopped = "On top."\n'
    answers = ", ".join(['"Fixed."'] * numbers["answers"])
    return (
        f'[[review]]\nrole = "verifier"\ndate = "2026-11-22"\nread = "{READ}"\n'
        f'findings = ["Too short."]\nanswers = [{answers}]\n{value * numbers["values"]}\n'
        f'[[review]]\nrole = "reader"\ndate = "2026-11-22"\nread = "{READ}"\n{journey * numbers["journeys"]}\n'
        f'[frozen]\ndate = "2026-11-22"\npage = "{numbers["frozen"]}"\n'
    )


def held(root: Path, page: str = PAGE, review: str | None = None, script: str = SCRIPT) -> list[Problem]:
    """What is wrong with a handbook of one guide that is held to the pattern."""
    project = make_project(root, script, page)
    config = root / "pyproject.toml"
    config.write_text(config.read_text("utf-8") + "[tool.benchbook.pattern]\n", "utf-8")
    write_record(project.record_path(MACHINE, "sums/add.py"), make_record(script))
    write(root / "snippets/sums/review.toml", reviews(page) if review is None else review)
    return list(check_project(Project(root)).problems)


def test_a_guide_by_the_pattern_is_no_problem(tmp_path: Path) -> None:
    assert held(tmp_path) == []


def test_what_is_collapsed_as_more_is_not_counted() -> None:
    text = '# A { #a }\n\none two\n\n??? more "More about it"\n\n    three four five\n\n    ```claim id="x"\n    y\n    ```\n\nsix seven\n'
    assert count(parse_page(text)).words == 5
    assert count(parse_page(text.replace("???", "!!!"))).words == 5
    assert count(parse_page(text.replace("??? more", "??? note"))).words > 9


def test_a_value_is_one_word_and_an_address_none() -> None:
    text = "# A { #a }\n\nIt is `#!value sums/add.py#total / sums/add.py#total x` [so](https://a.b/c-d).\n"
    assert count(parse_page(text)).words == 1 + 4


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "Said below.",
            f"{'word ' * 100}\n\n" * (MOST_WORDS // 100 + 1),
            "words outside of what is collapsed",
        ),
        ("\n{ .measured }", "", "does not say before its second heading what was measured"),
        ("numbers.\n{", "numbers.\n\n## Now { #now }\n\nSo.\n{", "what was measured"),
        ("of `#!value sums/add.py#total` numbers", "of numbers", "what was measured"),
        ("```cell\nsums/add.py#add\n```", "", "has no lines to paste"),
        ("Said below.", '```claim id="x"\nIt is.\n```\n\n' * (MOST_CLAIMS + 1), "claims that stand alone"),
    ],
)
def test_what_is_not_by_the_pattern_is_said(old: str, new: str, what: str, tmp_path: Path) -> None:
    assert PAGE.count(old) == 1
    assert any(what in problem.what for problem in held(tmp_path, PAGE.replace(old, new)))


def test_a_line_too_wide_for_a_phone_is_named(tmp_path: Path) -> None:
    wide = SCRIPT.replace("total = sum(range(steps))", f"total = sum(range(steps))  # {'x' * WIDEST}")
    (problem,) = held(tmp_path, script=wide)
    assert (problem.path, problem.line) == ("docs/en/sums.md", 12)
    assert "and a phone has 60" in problem.what


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"values": VALUES - 1}, "a verifier recomputes"),
        ({"journeys": JOURNEYS - 1}, "a reader makes"),
        ({"taps": 4}, "took 4 taps"),
        ({"answers": 0}, "1 findings have 0 answers"),
        ({"frozen": READ}, "is of another docs/en/sums.md"),
    ],
)
def test_reviews_that_are_not_whole_or_not_of_this_page_fail(
    changes: dict[str, Any], what: str, tmp_path: Path
) -> None:
    assert any(what in problem.what for problem in held(tmp_path, review=reviews(PAGE, **changes)))


def test_a_guide_that_nobody_reviewed_fails(tmp_path: Path) -> None:
    held(tmp_path)
    (tmp_path / "snippets/sums/review.toml").unlink()
    (problem,) = check_project(Project(tmp_path)).problems
    assert "nobody has reviewed" in problem.what


def test_a_translation_needs_its_own_three_readers(tmp_path: Path) -> None:
    held(tmp_path)
    write(tmp_path / "docs/ja/_language.yml", "strings: {}\nlabels: {}\n")
    write(tmp_path / "docs/ja/sums.md", PAGE)
    found = [one.what for one in check_project(Project(tmp_path)).problems if "review by" in one.what]
    assert found == [f"has no review by a {role} (ja)" for role in ("editor", "questions", "translator")]


def test_a_translation_that_is_behind_is_read_once_it_has_caught_up(tmp_path: Path) -> None:
    held(tmp_path)
    write(tmp_path / "docs/ja/_language.yml", "strings: {}\nlabels: {}\n")
    behind = PAGE.replace("---\ndescription", "---\nsections: {adding: aaaaaaaaaaaa}\ndescription")
    write(tmp_path / "docs/ja/sums.md", behind)
    assert not [one for one in check_project(Project(tmp_path)).problems if "review by" in one.what]


def test_a_page_with_something_to_work_with_on_top_needs_no_lines_to_paste() -> None:
    text = "# A { #a }\n\n```calculator\nform\n```\n"
    assert count(parse_page(text)).tool
    assert not count(parse_page(text.replace("```calc", "## B { #b }\n\n```calc"))).tool


def test_lines_that_are_not_shown_may_be_wide(tmp_path: Path) -> None:
    wide = SCRIPT.replace("total = sum(range(steps))", f"total = sum(range(steps))  # {'x' * WIDEST}")
    page = PAGE.replace("```cell\n", '```cell source="none" output="show"\n')
    assert not [one for one in held(tmp_path, page, script=wide) if "a phone has" in one.what]


def test_half_of_the_claims_that_stand_alone_quote_someone(tmp_path: Path) -> None:
    ours = (
        '[[claim]]\nid = "ours"\na = "sums/add.py#total"\nrelation = "greater"\nb = 1\n'
        f'machines = {{ {MACHINE} = "holds" }}\n'
    )
    theirs = ours.replace("ours", "theirs") + (
        'source = { title = "A guide", url = "https://a.example", quote = "It is more.", date = "2024" }\n'
    )
    page = PAGE + '\n```claim id="ours"\nIt is more than one.\n```\n'

    def unquoted(root: Path, page: str) -> list[str]:
        held(root, page)
        write(root / "snippets/sums/claims.toml", ours + theirs)
        return [one.what for one in check_project(Project(root)).problems if "quote someone" in one.what]

    assert unquoted(tmp_path / "alone", page) == [
        "has 1 claims that stand alone, and 0 quote someone; half of them do"
    ]
    both = page + '\n```claim id="theirs"\nIt is more than one, they say.\n```\n'
    assert unquoted(tmp_path / "half", both) == []


def test_an_older_page_has_until_its_next_change(tmp_path: Path) -> None:
    old = PAGE.replace("\n{ .measured }", "")
    make_project(tmp_path, SCRIPT, old)
    config = tmp_path / "pyproject.toml"
    config.write_text(
        f'{config.read_text("utf-8")}[tool.benchbook.pattern]\nsums = "{page_digest(old)}"\n', "utf-8"
    )
    assert not check_project(Project(tmp_path)).problems
    write(tmp_path / "docs/en/sums.md", old + "\nMore.\n")
    assert check_project(Project(tmp_path)).problems


def test_a_draft_is_only_warned_of(tmp_path: Path) -> None:
    page = PAGE.replace("---\ndescription", "---\ndraft: true\ndescription").replace("\n{ .measured }", "")
    assert held(tmp_path, page, review="") == []
    assert any("what was measured" in one.what for one in check_project(Project(tmp_path)).warnings)
