"""A claim says what the records of other machines make of it, in words that tell why one is open."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from benchbook.content.claims import Outcome
from benchbook.content.project import Project
from benchbook.languages.language import load_language
from benchbook.query.judging import Judgement
from benchbook.rendering.claims import _others
from benchbook.statistics.comparison import Doubt
from handbooks import FIXTURE


def judged(machine: str, outcome: Outcome, doubt: Doubt | None = None) -> Judgement:
    named: Any = SimpleNamespace(name=machine, short=machine, title=machine)
    return cast(Judgement, SimpleNamespace(machine=named, outcome=outcome, doubt=doubt))


def test_a_difference_that_too_few_runs_show_is_not_called_close() -> None:
    shown = judged("CPU", "holds")
    told = [
        judged("H100", "too close to call", "few pairs"),
        judged("L4", "too close to call", "open"),
        shown,
        judged("L40S", "too close to call", "few pairs"),
        judged("H200", "refuted"),
    ]
    said = _others(shown, told, load_language(Project(FIXTURE).docs, "en"))
    plain = said.replace("\u2068", "").replace("\u2069", "").replace("\u00a0", " ")
    assert plain.split(" · ") == [
        "H200: refuted",
        "L4: too close to call",
        "H100, L40S: too few runs to decide",
    ]
