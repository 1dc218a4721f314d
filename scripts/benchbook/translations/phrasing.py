"""Ways of writing that editors of a language mark wherever they stand, and units that are said twice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchbook.content.problems import Problem
from benchbook.translations.sections import Section, TextRun

_LESS = (re.compile(r"(?<![\d.])0\.\d+ ?倍"), "say the share that is left, or by how much it is less")
# Of a language: what is wrong, and what is said instead.
_WRONG: dict[str, tuple[tuple[re.Pattern[str], str], ...]] = {
    "ja": (
        _LESS,
        (re.compile(r"[二三四五六七八九](?:つ|列|行|バイト|倍|分の)"), "write a count in Arabic numerals"),
    ),
    "zh": (
        _LESS,
        (
            re.compile(r"(?<!CUDA)(?<!CUDA )(?<!设备)上下文(?!长度|窗口|并行)"),
            "say which: CUDA 上下文, 上下文长度",
        ),
        (re.compile("小批次"), "write micro-batch 微批次 or mini-batch, as the glossary has it"),
        (re.compile("(?<![错报]误)(?<!报错)提示(?!词)"), "a prompt is 提示词; a message is 信息"),
    ),
}
_UNIT = re.compile(r"\s*(%|GiB|MiB|KiB|GB|MB|ms|TFLOP)(?![A-Za-z])")
_ASKED = {"percent": "%"}


def phrasing_problems(section: Section, code: str, path: str) -> Iterator[Problem]:
    """What editors of the language `code` mark wherever it stands, and units that are said twice."""
    for unit in section.units:
        for wrong, fix in _WRONG.get(code, ()):
            for found in wrong.finditer(unit.prose):
                yield Problem(
                    path, unit.line_at(found.start()), f"`{found[0]}` is not how it is written", fix
                )
        yield from _doubled_units(unit, path)


def _doubled_units(unit: TextRun, path: str) -> Iterator[Problem]:
    """Units behind a reference that brings its own."""
    for piece, following in zip(unit.pieces, unit.pieces[1:], strict=False):
        if piece.kind != "value" or following.kind != "text" or not (said := _UNIT.match(following.text)):
            continue
        asked = piece.text.split()[-1]
        if _ASKED.get(asked, asked) == said[1]:
            what = f"the unit `{said[1]}` stands behind a reference that shows it"
            yield Problem(path, following.line, what, "leave it to the reference")
