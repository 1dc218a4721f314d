"""What editors of a language mark wherever it stands is named, and what only looks like it is not."""

from __future__ import annotations

import pytest

from benchbook.content.page_source import parse_page
from benchbook.translations.phrasing import phrasing_problems
from benchbook.translations.sections import sections_of

VALUE = "`#!value memory/methods.py?method=plain#peak_memory GiB`"


def named(code: str, text: str) -> list[str]:
    page = f"# 見出し {{ #top }}\n\n{text}\n"
    (section,) = sections_of(parse_page(page), page)
    return [problem.what.split("`")[1] for problem in phrasing_problems(section, code, "docs/x.md")]


@pytest.mark.parametrize(
    ("code", "text", "wrong"),
    [
        ("ja", "最後の三列を見ます。", "三列"),
        ("ja", "メモリは四分の一になります。", "四分の"),
        ("ja", "0.5 倍の速さです。", "0.5 倍"),
        ("zh", "速度是原来的 0.44 倍。", "0.44 倍"),
        ("zh", "每个进程都有自己的上下文。", "上下文"),
        ("zh", "用小批次训练。", "小批次"),
        ("zh", "先读取提示，再生成。", "提示"),
        ("zh", f"峰值为 {VALUE} GiB。", "GiB"),
        ("ar", f"تبلغ الذروة {VALUE} GiB.", "GiB"),
    ],
)
def test_a_way_of_writing_that_is_wrong_is_named(code: str, text: str, wrong: str) -> None:
    assert named(code, text) == [wrong]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ja", "一つずつ、十分のメモリで。"),
        ("ja", "1.5 倍の速さで、`三列` とあります。"),
        ("zh", "CUDA 上下文和上下文长度不同；提示词、错误提示也不同。"),
        ("zh", "速度是原来的 1.44 倍，微批次更小。"),
        ("ar", "上下文 三列"),
        ("zh", f"峰值为 {VALUE}，再加 1 GiB。"),
    ],
)
def test_what_only_looks_like_it_is_left_alone(code: str, text: str) -> None:
    assert named(code, text) == []
