"""A problem names the line of what is wrong, in JSON, YAML and TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from benchbook.content.positions import Keys, json_line, toml_key_lines, toml_line, yaml_line
from benchbook.content.validation import parse_json

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
TABLES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)


def leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    if isinstance(value, dict | list) and value:
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in entries:
            yield from leaves(item, (*keys, key))
    else:
        yield keys, value


@given(TABLES, st.sampled_from([None, 1]))
def test_every_value_of_json_is_found_on_its_line(table: Any, indent: int | None) -> None:
    text = json.dumps(table, indent=indent)
    lines = text.split("\n")
    for keys, value in leaves(table):
        line = lines[json_line(text, keys) - 1]
        assert json.dumps(value) in line
        if indent and keys and isinstance(keys[-1], str):
            assert line.strip().startswith(json.dumps(keys[-1]))


def test_two_values_alike_in_two_tables_are_told_apart() -> None:
    text = json.dumps({"a": {"x": 1}, "b": {"x": 1}, "c": [[], {"x": 1}]}, indent=1)
    found = [json_line(text, keys) for keys in (("a", "x"), ("b", "x"), ("c", 1, "x"), ("c", 5), ("d",))]
    assert found == [3, 6, 11, 8, 1]


def test_a_key_that_json_has_twice_is_refused_with_the_line_of_the_second() -> None:
    text = '{"runs": [\n {"total": 7},\n {"total": 7,\n  "total": 8}\n]}'
    value, (problem,) = parse_json(text, "a.json")
    assert value is None
    assert str(problem).startswith("a.json:4: has the key `total` twice in one table; ")
    assert parse_json(text.replace('7,\n  "total"', '7,\n  "other"'), "a.json")[1] == []


def test_a_key_of_yaml_is_found_below_the_keys_that_lead_to_it() -> None:
    text = "strings:\n  total: Total\nlabels:\n  - total: 1\n  - {other: 2,\n     total: 3}\n"
    keys = [("strings", "total"), ("labels", 0, "total"), ("labels", 1, "total"), ("labels", 7), ("none",)]
    assert [yaml_line(text, one) for one in keys] == [2, 4, 6, 3, 1]


def test_a_key_of_toml_is_found_in_its_table() -> None:
    text = """first = 1
[[claim]]
id = "a"
machines = { one = "holds" }
[claim.source]
url = "x"
[[claim]]
id = "b"
"two" = 3
"""
    assert tomllib.loads(text)["claim"][1]["two"] == 3
    keys = [
        *(("first",), ("claim", 0), ("claim", 0, "machines", "one"), ("claim", 0, "source", "url")),
        *(("claim", 1, "two"), ("claim", 1, "machines"), ("claim", 4)),
    ]
    assert [toml_line(text, one) for one in keys] == [1, 2, 4, 6, 9, 7, 2]
    assert toml_line('claim = [{ id = "a" }]', ("claim", 0, "id")) == 1
    assert toml_key_lines(text)["source"] == 5
