"""What of a fence's body is for readers, and so translated, and what is the same in every language."""

from __future__ import annotations

from typing import Any

from benchbook.pages.yaml_text import InvalidYamlError, parse_yaml

# Fences that are YAML, and the key of theirs whose text readers see.
_TITLES = {"chart": "title", "table": "caption"}
# Fences whose body is a sentence.
_SENTENCES = frozenset({"claim"})


def prose_of(header: str, body: str) -> list[tuple[int, str]]:
    """The texts for readers that a fence holds, and how many lines below its head each begins."""
    name = header.partition(" ")[0]
    if name in _SENTENCES:
        return [(1, body.strip())]
    key = _TITLES.get(name)
    text = _spec(body).get(key) if key else None
    lines = (number for number, line in enumerate(body.splitlines(), 1) if line.startswith(f"{key}:"))
    return [(next(lines, 1), text)] if isinstance(text, str) else []


def constant_of(header: str, body: str) -> Any:
    """What every translation of a fence repeats; to be compared, not to be read."""
    name = header.partition(" ")[0]
    if name in _SENTENCES:
        return bool(body.strip())
    key = _TITLES.get(name)
    spec = _spec(body) if key else {}
    return {**spec, key: key in spec} if spec else body


def _spec(body: str) -> dict[str, Any]:
    try:
        spec = parse_yaml(body)
    except InvalidYamlError:
        return {}
    return spec if isinstance(spec, dict) else {}
