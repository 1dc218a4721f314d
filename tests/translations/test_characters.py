"""No character stands over other text: marks belong to letters, and there are few of them."""

from __future__ import annotations

import pytest

from benchbook.content.page_source import parse_page
from benchbook.translations.characters import character_problems, damaged_characters
from benchbook.translations.sections import sections_of
from benchbook.translations.settings import Rules


def marks_in(text: str, code: str = "en") -> list[tuple[int, str]]:
    return [found for found in damaged_characters(text, Rules(code)) if "mark" in found[1]]


STACKS = {
    "a sign around a letter": "步\u0489",
    "a key around a digit": "4\u20e3",
    "sixty marks on a letter": "步" + "\u036f" * 60,
    "one mark on a Chinese letter": "步\u0338",
    "a mark on kana that have none": "ん\u3099",
    "a stroke through a Latin letter": "n\u0338o\u0338",
    "a line through a Latin letter": "n\u0336",
    "a second mark on a Latin letter": "m\u0303\u0302",
    "a mark on a digit": "4\u0303",
    "a mark on a space": "a \u0303",
    "a mark on nothing": "\u0303a",
    "a Latin mark on an Arabic letter": "ب\u0338",
    "a third mark on an Arabic letter": "ب\u0651\u064e\u0650",
    "an Arabic mark on a Latin letter": "a\u064e",
}


@pytest.mark.parametrize("text", STACKS.values(), ids=STACKS)
def test_a_mark_that_could_stand_over_other_text_is_named(text: str) -> None:
    ((_, what),) = marks_in(text)
    assert what.startswith("holds a mark that can stand over other text (U+")


WRITTEN = {
    "vowels of Arabic": "محسّنًا يُبقي مدّةً",
    "two marks on an Arabic letter": "ب\u0651\u064e",
    "a letter that has no form of its own": "ẹ\u0300 m\u0303",
    "letters that have one": "café Việt Nam が",
    "vowels of Hindi": "हिन्दी में",
    "tones of Thai": "ที่นี่",
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_marks_that_languages_are_written_with_are_in_order(text: str) -> None:
    assert marks_in(text) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [("Words `x\u0338`.", 3), ("```text\nplain\nx\u0338\n```", 5), ("More\n*words\u20dd*.", 4)],
)
def test_marks_in_text_and_code_are_named_with_their_line(text: str, line: int) -> None:
    whole = f"# T {{ #t }}\n\n{text}\n"
    (section,) = sections_of(parse_page(whole), whole)
    (problem,) = character_problems(section, Rules("en"), "a.md")
    assert (problem.path, problem.line) == ("a.md", line)
    assert "stand over other text" in problem.what
