"""What of a fence's body is for readers, and so translated, and what is the same in every language."""

from __future__ import annotations

from typing import Any

import yaml

from benchbook.content.page_source import CLAIM, WORDS
from benchbook.content.yaml_text import InvalidYamlError, parse_nodes, parse_yaml

# Fences that are YAML.
_YAML = frozenset({"chart", "table", "tradeoff"})


def is_prose(header: str) -> bool:
    """Whether all that a fence holds is for readers."""
    return _name(header) == CLAIM


def untranslated_part(header: str, body: str) -> Any:
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
    found: set[int] = set()
    for key, value in _entries(body):
        if key.value in WORDS:
            found.update(
                range(value.start_mark.line + 1, value.end_mark.line + 1 + (value.end_mark.column > 0))
            )
    return frozenset(found)


def _name(header: str) -> str:
    return header.strip().partition(" ")[0]


def _without_words(value: Any) -> Any:
    return sorted(map(str, value)) if isinstance(value, dict) else True


def _spec(body: str) -> dict[str, Any]:
    try:
        spec = parse_yaml(body)
    except InvalidYamlError:
        return {}
    return spec if isinstance(spec, dict) else {}


def _entries(body: str) -> list[tuple[yaml.Node, yaml.Node]]:
    """The entries of a body that is YAML, with their places in it."""
    try:
        node = parse_nodes(body)
    except InvalidYamlError:
        return []
    return node.value if isinstance(node, yaml.MappingNode) else []
