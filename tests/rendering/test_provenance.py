"""Where a number comes from is told in full, and no more than once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchbook.content.records import Campaign
from benchbook.content.units import UNITS
from benchbook.languages.language import load_language
from benchbook.query.measurements import Measurement
from benchbook.rendering.provenance import (
    days_text,
    environment_text,
    machine_short,
    machine_title,
    repeats_text,
)
from benchbook.statistics.summary import summary
from builders import make_record

DOCS = Path(__file__).parents[2] / "docs"


def source(variant: str, **environment: str) -> Any:
    return SimpleNamespace(
        result=SimpleNamespace(environment=environment), variant=SimpleNamespace(name=variant)
    )


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        ([source("default")], ""),
        ([source("default", B="2", A="1")], "A=1 B=2"),
        ([source("ranks=2", A="1"), source("ranks=3", A="1")], "A=1"),
        ([source("ranks=1"), source("ranks=2", A="1"), source("ranks=2", A="1")], "A=1 (ranks=2)"),
    ],
)
def test_the_environment_is_told_with_its_variants_where_not_all_had_it(
    sources: list[Any], text: str
) -> None:
    assert environment_text(sources) == text


def measured(samples: list[float], unit: str) -> Measurement:
    """As much of a measurement as says how often and how alike."""
    told = SimpleNamespace(
        source=SimpleNamespace(quoted=False), summary=summary(samples), seeds=False, unit=UNITS[unit]
    )
    return cast(Measurement, told)


@pytest.mark.parametrize(
    ("samples", "unit", "text"),
    [
        ([0.46, 0.50, 0.54], "1", "median of 3, ±8.0%"),
        ([0.0001, 0.0003, 0.0020], "1", "median of 3"),
        ([0.0001, 0.0003, 0.0020], "s", "median of 3, ±317%"),
    ],
)
def test_a_share_of_nearly_nothing_does_not_scatter(samples: list[float], unit: str, text: str) -> None:
    assert repeats_text([measured(samples, unit)], load_language(DOCS, "en")) == text


@pytest.mark.parametrize("language", ["ar", "en", "ja", "zh"])
def test_a_machine_of_more_cores_than_a_number_holds_is_called_as_it_is(language: str) -> None:
    cores = "9" * 310
    odd = cast(Any, SimpleNamespace(title=f"{cores}-core CPU, 24 GB", short=f"CPU {cores}-core"))
    words = load_language(DOCS, language)
    assert cores in machine_title(odd, words)
    assert machine_short(odd, words) == odd.short


@pytest.mark.parametrize(
    ("language", "sessions", "text"),
    [
        ("en", 1, "January 2, 2026"),
        ("en", 3, "January 2, 2026 (in 3 sessions)"),
        ("ar", 2, "(\u2068في جلستين\u2069)"),
        ("ja", 2, "（2 回に分けて測定）"),
        ("zh", 3, "（分 3 次测量）"),
    ],
)
def test_what_was_measured_in_several_sessions_says_so(language: str, sessions: int, text: str) -> None:
    (campaign,) = make_record().campaigns.values()
    assert isinstance(campaign, Campaign)
    later = tuple(f"2026-01-0{day}T03:04:05Z" for day in range(3, 2 + sessions))
    told = days_text([campaign, replace(campaign, resumed=later)], load_language(DOCS, language))
    assert text in told
    assert (told == text) == (language == "en")


def test_values_of_more_and_of_fewer_runs_say_how_many_they_are_of() -> None:
    several = [measured([1.0, 1.0, 1.1], "s"), measured([2.0] * 8, "s")]
    assert repeats_text(several, load_language(DOCS, "en")).startswith("median of 3 to 8")
