"""Find the line on which a key stands in JSON, YAML or TOML: their parsers keep values, and no lines.

Keys lead from the whole file to a value: names, and places in lists counted from 0. Where they lead to
nothing, the line is that of the last of them that is there; 1 if none is.
"""

from __future__ import annotations

import json
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import yaml

from benchbook.content.bounds import load_toml
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.yaml_text import InvalidYamlError, parse_nodes

Keys = tuple[str | int, ...]

# Possessive, or each character of a long text would take a hundred bytes.
_JSON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]+')


def json_line(text: str, keys: Keys) -> int:
    """The line of `text`, valid JSON, on which the value below `keys` begins."""
    lines, _ = _json_lines(text)
    return next((lines[keys[:count]] for count in range(len(keys), -1, -1) if keys[:count] in lines), 1)


def repeated_json_key(text: str) -> tuple[str, int] | None:
    """The first key that a table in `text`, valid JSON, has twice, and the line of the second; else None."""
    return _json_lines(text)[1]


@lru_cache(maxsize=4)
def _json_lines(text: str) -> tuple[Mapping[Keys, int], tuple[str, int] | None]:
    ends = [match.start() for match in re.finditer("\n", text)]
    found: dict[Keys, int] = {}
    repeated: tuple[str, int] | None = None
    for keys, offset in _json_values(text):
        line = bisect_right(ends, offset) + 1
        if keys in found and repeated is None:
            repeated = str(keys[-1]), line
        found.setdefault(keys, line)
    return found, repeated


def _json_values(text: str) -> Iterator[tuple[Keys, int]]:
    """Every value with its keys and the offset at which it begins."""
    opened: list[str] = []
    keys: list[str | int] = []
    awaits_key = False
    for token in _JSON_TOKEN.finditer(text):
        word = token[0]
        if word in "}]":
            opened.pop()
            keys.pop()
            awaits_key = False
        elif word == ",":
            awaits_key = opened[-1] == "{"
            if not awaits_key:
                keys[-1] = int(keys[-1]) + 1
        elif word == ":":
            continue
        elif awaits_key:
            keys[-1] = json.loads(word) if "\\" in word else word[1:-1]
            awaits_key = False
        else:
            yield tuple(keys), token.start()
            if word in "{[":
                opened.append(word)
                keys.append("" if word == "{" else 0)
                awaits_key = word == "{"


def yaml_line(text: str, keys: Keys) -> int:
    """The line of `text`, a YAML file, on which the last of `keys` stands."""
    try:
        node = parse_nodes(text)
    except InvalidYamlError as error:
        return error.line
    line = 1
    for key in keys:
        below = _yaml_entry(node, key)
        if below is None:
            break
        mark, node = below
        line = mark.start_mark.line + 1
    return line


def _yaml_entry(node: yaml.Node | None, key: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Where the entry `key` of a node stands, and its value."""
    if isinstance(node, yaml.MappingNode):
        return next(((name, value) for name, value in node.value if name.value == str(key)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(key, int) and key < len(node.value):
        return node.value[key], node.value[key]
    return None


def toml_error_line(error: tomllib.TOMLDecodeError) -> int | None:
    """The line at which a text stops to be TOML; None where it ends too early."""
    at = re.search(r"at line (\d+)", str(error))
    return int(at[1]) if at else None


def parse_toml(text: str, path: str) -> dict[str, Any]:
    """The table that `text` holds.

    Parameters:
        text: The content of a file.
        path: The file, for messages.

    Raises:
        BenchbookError: It is not TOML.
    """
    try:
        return load_toml(text)
    except tomllib.TOMLDecodeError as error:
        line = toml_error_line(error) or text.count("\n") + 1
        raise BenchbookError(Problem(path, line, f"is not valid TOML ({error})", "fix the TOML")) from error


def toml_line(text: str, keys: Keys) -> int:
    """The line of `text`, valid TOML, on which the value below `keys` is set, or its table begins.

    Heads of tables in lists are counted; a key is looked for below the head of its table.
    """
    lines = _lines(text)
    first, last = 0, len(lines)
    rest = list(keys)
    head = ""
    while len(rest) > 1 and isinstance(rest[1], int):
        head = f"{head}.{rest[0]}" if head else str(rest[0])
        heads = _toml_heads(text, head)
        place = bisect_left(heads, first) + rest[1]
        if place >= bisect_left(heads, last):
            break  # a list may also be written in one line, without heads
        first = heads[place]
        last = next((at for at in range(first + 1, last) if _ends(head, lines[at])), last)
        rest = rest[2:]
    for key in rest:
        if isinstance(key, int):
            continue
        pattern = re.compile(rf'(?:^\s*|[{{,.]\s*|\[\[?\s*(?:[\w.]+\.)?)"?{re.escape(key)}"?\s*[=\].]')
        at = next((at for at in range(first, last) if pattern.search(lines[at])), None)
        if at is None:
            break
        first = at
    return first + 1


# A file of a thousand claims asks for some thousands of its lines.
@lru_cache(maxsize=4)
def _lines(text: str) -> list[str]:
    return text.split("\n")


@lru_cache(maxsize=16)
def _toml_heads(text: str, name: str) -> list[int]:
    """Where the tables of the list `name` begin, among the lines of `text`, TOML."""
    begin = re.compile(rf"\s*\[\[\s*{re.escape(name)}\s*\]\]")
    return [at for at, line in enumerate(_lines(text)) if begin.match(line)]


def _ends(head: str, line: str) -> bool:
    """Whether `line` begins a table that lies outside of the one that `head` began."""
    match = re.match(r"\s*\[\[?\s*([\w.]+)\s*\]", line)
    return match is not None and not match[1].startswith(f"{head}.")


def toml_key_lines(text: str) -> dict[str, int]:
    """The line of `text`, TOML, on which each key or table stands first, whatever table it is in."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        key = re.match(r"\s*\[*([A-Za-z0-9_.-]+)\]*", line)
        if key:
            found.setdefault(key[1], number)
            found.setdefault(key[1].rpartition(".")[2], number)
    return found
