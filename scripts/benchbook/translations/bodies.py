"""What of a fence's body is for readers, and so translated, and what is the same in every language."""

from __future__ import annotations

from typing import Any

from benchbook.page_source import WORDS
from benchbook.pages.yaml_text import InvalidYamlError, parse_yaml

# Fences that are YAML, and fences whose body is a sentence.
_YAML = frozenset({"chart", "table"})
_SENTENCES = frozenset({"claim"})


def is_prose(header: str) -> bool:
    """Whether all that a fence holds is for readers."""
    return _name(header) in _SENTENCES


def constant_of(header: str, body: str) -> Any:
    """What every translation of a fence repeats; to be compared, not to be read."""
    if is_prose(header):
        return bool(body.strip())
    spec = _spec(body) if _name(header) in _YAML else {}
    return {key: _without_words(value) if key in WORDS else value for key, value in spec.items()} or body


def lines_for_readers(header: str, body: str) -> frozenset[int]:
    """The lines of a body that hold words for readers, counted from 1."""
    lines = body.splitlines()
    if is_prose(header):
        return frozenset(range(1, len(lines) + 1))
    if _name(header) not in _YAML:
        return frozenset()
    words = [text for key, value in _spec(body).items() if key in WORDS for text in _texts(value)]
    first = [text.split("\n", 1)[0] for text in words]
    return frozenset(number for number, line in enumerate(lines, 1) if any(one in line for one in first))


def _name(header: str) -> str:
    return header.strip().partition(" ")[0]


def _texts(value: Any) -> list[str]:
    return [str(text) for text in (value.values() if isinstance(value, dict) else [value])]


def _without_words(value: Any) -> Any:
    return sorted(map(str, value)) if isinstance(value, dict) else True


def _spec(body: str) -> dict[str, Any]:
    try:
        spec = parse_yaml(body)
    except InvalidYamlError:
        return {}
    return spec if isinstance(spec, dict) else {}
