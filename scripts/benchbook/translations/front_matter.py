"""Read and rewrite single entries of a page's front matter, leaving the rest of the file as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchbook.content.records import write_text
from benchbook.content.yaml_text import InvalidYamlError, parse_nodes

# The entry of a translation that holds the digests of the English sections it was made from.
ENTRY = "sections"
_FENCE = "---\n"


def front_matter_lines(text: str) -> int:
    """How many lines of a file its front matter takes, with those that begin and end it."""
    end = _end(text)
    return text.count("\n", 0, end + 1) + 1 if end >= 0 else 0


def line_of_entry(key: str, text: str) -> int:
    """The line of the entry `key`; 1 if there is none."""
    node = _entries(text).get(key)
    return node[0] + 1 if node else 1


def with_entry(text: str, key: str, value: Mapping[str, Any]) -> str:
    """The file `text` with `key: value` in its front matter, in the place of the old one or at its end.

    Raises:
        ValueError: The file has no front matter.
    """
    end = _end(text)
    if end < 0:
        raise ValueError("the page has no front matter")
    lines = text[: end + 1].splitlines(keepends=True)
    first, last = _entries(text).get(key, (len(lines), len(lines)))
    entry = yaml.safe_dump({key: dict(value)}, sort_keys=False, allow_unicode=True)
    return "".join([*lines[:first], entry, *lines[last:]]) + text[end + 1 :]


def write_entry(path: Path, key: str, value: Mapping[str, Any]) -> None:
    """Put `key: value` into the front matter of a page as it stands by now, for an editor may have saved it.

    Raises:
        ValueError: The file has no front matter.
    """
    write_text(path, with_entry(path.read_text("utf-8"), key, value))


def _end(text: str) -> int:
    """Where the front matter of a file ends, before its last line break; -1 if it has none."""
    return text.find(f"\n{_FENCE}", len(_FENCE) - 1) if text.startswith(_FENCE) else -1


def _entries(text: str) -> dict[str, tuple[int, int]]:
    """The lines, first and one past the last, of every top-level entry, counted from 0."""
    end = _end(text)
    if end < 0:
        return {}
    try:
        node = parse_nodes(text[len(_FENCE) : end + 1])
    except InvalidYamlError:
        return {}
    if not isinstance(node, yaml.MappingNode):
        return {}
    starts = [key.start_mark.line + 1 for key, _ in node.value]
    ends = [*starts[1:], text[: end + 1].count("\n")]
    return {
        str(key.value): (start, stop) for (key, _), start, stop in zip(node.value, starts, ends, strict=True)
    }
