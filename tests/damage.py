"""JSON with one thing in it removed, replaced or added: what a file from outside may hold."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Place = tuple[str | int, ...]

ODD = st.sampled_from([10**400, -1, -0.0, "\ud800", "", "a" * 500, "2026-13-45T99:99:99Z", True, [], {}])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | ODD
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


def places(value: Any, above: Place = ()) -> Iterator[Place]:
    """The keys to everything in `value`, itself first."""
    yield above
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*above, key))


@st.composite
def damaged(draw: st.DrawFn, table: Any) -> Any:
    """`table` with one place in it that is another."""
    place = draw(st.sampled_from(list(places(table))))
    made = copy.deepcopy(table)
    if not place:
        return draw(ANYTHING)
    at = made
    for key in place[:-1]:
        at = at[key]
    match draw(st.sampled_from(["remove", "replace", "replace", "add"])):
        case "remove":
            del at[place[-1]]
        case "replace":
            at[place[-1]] = draw(ANYTHING)
        case _ if isinstance(at, list):
            at.append(draw(ANYTHING))
        case _:
            at[draw(st.text(max_size=8))] = draw(ANYTHING)
    return made
