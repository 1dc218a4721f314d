"""What of a fence's body is for readers, and so translated, and what is the same in every language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchbook.pages.yaml_text import InvalidYamlError, parse_yaml

# A text for readers, and how many lines below the head of its fence it stands.
Prose = tuple[int, str]


def prose_of(header: str, body: str) -> list[Prose]:
    """The texts for readers that a fence holds."""
    rule = _PROSE.get(_name(header))
    return rule(body) if rule else []


def constant_of(header: str, body: str) -> Any:
    """What every translation of a fence repeats; to be compared, not to be read."""
    rule = _CONSTANT.get(_name(header))
    return rule(body) if rule else body


def is_prose(header: str) -> bool:
    """Whether a fence holds nothing but text for readers."""
    return _name(header) == "claim"


def _name(header: str) -> str:
    return header.partition(" ")[0]


def _title_line(body: str) -> list[Prose]:
    """The title of a chart."""
    title = _spec(body).get("title")
    lines = (number for number, line in enumerate(body.splitlines(), 1) if line.startswith("title:"))
    return [(next(lines, 1), title)] if isinstance(title, str) else []


def _without_title(body: str) -> Any:
    spec = _spec(body)
    return {key: value for key, value in spec.items() if key != "title"} | {"title": "title" in spec} or body


def _spec(body: str) -> dict[str, Any]:
    try:
        spec = parse_yaml(body)
    except InvalidYamlError:
        return {}
    return spec if isinstance(spec, dict) else {}


def _whole(body: str) -> list[Prose]:
    return [(1, body.strip())]


def _nothing(body: str) -> Any:
    return None


_PROSE: dict[str, Callable[[str], list[Prose]]] = {"chart": _title_line, "claim": _whole}
_CONSTANT: dict[str, Callable[[str], Any]] = {"chart": _without_title, "claim": _nothing}
