"""What the fences are called that the site draws, for readers of pages with and without a parser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

CLAIM = "claim"
ERROR_FIELD = "error-field"
# Every fence that the site draws, and what stands in it: YAML, words of the page, or a reference.
FENCES: Mapping[str, Literal["yaml", "words", "reference"]] = {
    "cell": "reference",
    "table": "yaml",
    "chart": "yaml",
    "tradeoff": "yaml",
    "trace": "yaml",
    CLAIM: "words",
    "claims": "reference",
    "calculator": "reference",
    ERROR_FIELD: "reference",
}
