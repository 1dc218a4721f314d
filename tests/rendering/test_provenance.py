"""Where a number comes from is told in full, and no more than once."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from benchbook.content.units import UNITS
from benchbook.languages.language import load_language
from benchbook.query.measurements import Measurement
from benchbook.rendering.provenance import environment_text, machine_short, machine_title, repeats_text
from benchbook.statistics.summary import summary

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


def test_values_of_more_and_of_fewer_runs_say_how_many_they_are_of() -> None:
    several = [measured([1.0, 1.0, 1.1], "s"), measured([2.0] * 8, "s")]
    assert repeats_text(several, load_language(DOCS, "en")).startswith("median of 3 to 8")
