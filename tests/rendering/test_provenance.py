"""Where a number comes from is told in full, and no more than once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from benchbook.rendering.provenance import environment_text


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
