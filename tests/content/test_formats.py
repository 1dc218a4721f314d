"""Each kind of file has one model, which lets nothing pass that it does not name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import ValidationError

import benchbook
from benchbook.content.formats import (
    Day,
    Instant,
    KindBy,
    Label,
    Limit,
    Many,
    OneOf,
    Short,
    Some,
    Stored,
    Title,
    from_table,
)
from benchbook.content.validation import UNKNOWN, adapter, shape_errors

PACKAGE = Path(benchbook.__file__).parent


@dataclass(frozen=True)
class Leaf(Stored):
    size: Annotated[int, Limit(ge=1)]
    share: float = 0.5


@dataclass(frozen=True)
class Other(Stored):
    source: str


@dataclass(frozen=True)
class Tree(Stored):
    schema: Literal[1]
    leaves: Many[Leaf]
    kind: Annotated[str, OneOf(("oak", "ash"))] = "oak"
    names: Some[str] | None = None
    grown: Annotated[Other | Leaf, KindBy("source")] | None = None
    below: Tree | None = None


@dataclass(frozen=True)
class Loose:
    size: int


@dataclass(frozen=True)
class Holding(Stored):
    loose: Many[Loose]


WHOLE: dict[str, Any] = {
    "schema": 1,
    "leaves": [{"size": 3}],
    "kind": "ash",
    "names": ["a"],
    "grown": {"source": "s"},
    "below": {"schema": 1, "leaves": []},
}
TREE = Tree(1, (Leaf(3),), "ash", ("a",), Other("s"), Tree(1, ()))


def test_with_pydantic_and_without_the_same_is_read() -> None:
    assert adapter(Tree).validate_python(WHOLE) == from_table(Tree, WHOLE) == TREE


@pytest.mark.parametrize(
    ("change", "keys", "message"),
    [
        ({"extra": 1}, ("extra",), UNKNOWN),
        ({"schema": 2}, ("schema",), "Input should be 1"),
        ({"kind": "elm"}, ("kind",), "Input should be 'oak' or 'ash'"),
        ({"names": []}, ("names",), "at least 1 item"),
        ({"leaves": [{"size": "3"}]}, ("leaves", 0, "size"), "valid integer"),
        ({"leaves": [{"size": 0}]}, ("leaves", 0, "size"), "greater than or equal to 1"),
        ({"leaves": [{"size": 1, "share": float("nan")}]}, ("leaves", 0, "share"), "finite"),
        ({"leaves": [{"size": 1, "colour": 2}]}, ("leaves", 0, "colour"), UNKNOWN),
        ({"grown": {"size": 1, "source": "s"}}, ("grown", "Other", "size"), UNKNOWN),
        ({"below": {"schema": 1, "leaves": [], "extra": 1}}, ("below", "extra"), UNKNOWN),
    ],
)
def test_what_a_model_does_not_say_is_named_by_its_keys(
    change: dict[str, Any], keys: tuple[str | int, ...], message: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        adapter(Tree).validate_python(WHOLE | change)
    ((found, _, words),) = shape_errors(raised.value)
    assert found == keys
    assert message in words


def test_of_a_list_of_wrong_items_the_first_is_told() -> None:
    with pytest.raises(ValidationError) as raised:
        adapter(Tree).validate_python(WHOLE | {"leaves": ["?"] * 1000})
    assert [keys for keys, _, _ in shape_errors(raised.value)] == [("leaves", 0)]


@pytest.mark.parametrize(
    "one", ["\n", "\r", "\0", "\x1b", "\x7f", "\x85", "\u200b", "\u2028", "\u202e", "\ufeff"]
)
@pytest.mark.parametrize("kind", [Short, Label, Title])
def test_a_line_of_text_holds_nothing_that_is_not_seen(kind: Any, one: str) -> None:
    assert adapter(kind).validate_python("Größe 2, \u5927\u304d\u3044") != ""
    with pytest.raises(ValidationError):
        adapter(kind).validate_python(f"a{one}b")


@pytest.mark.parametrize("one", ["2026-02-31", "0000-01-01", "2026-13-01"])
def test_a_day_and_a_moment_are_of_the_calendar(one: str) -> None:
    assert adapter(Day).validate_python("2024-02-29") == "2024-02-29"
    for kind, said in ((Day, one), (Instant, f"{one}T10:00:00Z"), (Instant, "2026-02-28T99:00:00Z")):
        with pytest.raises(ValidationError, match="is in no calendar"):
            adapter(kind).validate_python(said)


def test_without_pydantic_the_shape_is_held_to_too() -> None:
    with pytest.raises(TypeError, match="unknown key 'extra'"):
        from_table(Tree, WHOLE | {"extra": 1})
    with pytest.raises(ValueError, match="2 is none of 1"):
        from_table(Tree, WHOLE | {"schema": 2})
    with pytest.raises(TypeError, match="leaves"):
        from_table(Tree, {"schema": 1})


def test_a_model_that_would_let_unknown_keys_pass_is_refused() -> None:
    with pytest.raises(TypeError, match="Loose is a model of a file and is not below Stored"):
        adapter(Holding)


def test_there_is_one_way_to_validate_a_file() -> None:
    made = re.compile(r"TypeAdapter\(|\bBaseModel\b|pydantic\.dataclasses")
    places = [path for path in PACKAGE.rglob("*.py") if made.search(path.read_text("utf-8"))]
    assert [path.relative_to(PACKAGE).as_posix() for path in places] == ["content/validation.py"]
