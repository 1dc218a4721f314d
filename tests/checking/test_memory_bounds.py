"""A peak is not below what the same run says was held at once."""

from __future__ import annotations

from typing import Any

import pytest

from benchbook.checking.memory_bounds import odd_host_bytes, odd_peaks, zero_peaks
from benchbook.content.metadata import Metric
from running import parsed

GB = 10**9


def declared(*names: str, unit: str = "B") -> dict[str, Metric]:
    table = "\n".join(f'{name} = {{ unit = "{unit}", memory = "device" }}' for name in names)
    script = parsed("pass", f'needs = ["cpu"]\n[tool.benchbook.metrics]\n{table}')
    return dict(script.metadata.metrics)


def said(unit: str = "B", **values: Any) -> list[str]:
    return list(odd_peaks([{"metrics": values}], declared(*values, unit=unit)))


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (
            {"weights": GB, "gradients": GB, "optimizer_states": 2 * GB},
            "weights, gradients, optimizer_states",
        ),
        ({"weight_bytes": GB, "gradient_bytes": GB, "state_bytes": GB}, "weight_bytes, gradient_bytes, "),
        ({"gradients_at_peak": GB, "activations_at_peak": GB}, "gradients_at_peak, activations_at_peak"),
        ({"peak_step": GB}, "peak_step"),
    ],
)
@pytest.mark.parametrize("whole", ["peak", "peak_memory"])
def test_a_peak_is_not_below_what_was_held_at_once(whole: str, values: dict[str, int], names: str) -> None:
    total = sum(values.values())
    (what,) = said(**{whole: 1}, **values)
    assert what.startswith(f"{whole} is 1 B, less than the {total} B held at once ({names}")
    assert said(**{whole: total}, **values) == []


def test_it_is_looked_at_in_every_process_and_in_the_unit_of_each() -> None:
    metrics = declared("peak", "peak_step", unit="GiB")
    good: dict[str, Any] = {"metrics": {"peak": 2.0, "peak_step": 1.0}}
    assert list(odd_peaks([good], metrics)) == []
    bad = {"metrics": {"peak": 1.0, "peak_step": 2.0}}
    (what,) = odd_peaks([good | {"other_ranks": [bad]}], metrics)
    assert what.startswith("peak is 1073741824 B, less than the 2147483648 B held at once")


@pytest.mark.parametrize(
    "values",
    [
        # One after the other, as far as anybody knows.
        {"peak": 1, "weights": GB, "gradients": GB},
        {"greedy_peak": 1, "beam_peak": GB},
        {"peak": 1, "peak_of_the_other": GB},
        # A series of steps is of no one moment.
        {"peak": [1, 1], "peak_step": GB},
        {"weights": GB, "gradients": GB, "optimizer_states": GB},
    ],
)
def test_what_need_not_be_held_at_once_says_nothing_of_a_peak(values: dict[str, Any]) -> None:
    assert said(**values) == []


@pytest.mark.parametrize("value", [0, [GB, 0]])
@pytest.mark.parametrize("name", ["peak", "peak_memory", "allocated_peak"])
def test_a_peak_is_not_0_where_the_device_was_used(name: str, value: Any) -> None:
    used = {"cells": {"load": {"allocated_peak": None}, "run": {"allocated_peak": GB}}}
    run = {"metrics": {name: value}}
    assert list(zero_peaks([run | used], declared(name))) == [
        f"{name} is 0 B, and a cell of its run allocated {GB} B of the device"
    ]
    assert list(zero_peaks([{"metrics": {name: GB}} | used | {"other_ranks": [run | used]}], declared(name)))
    assert list(zero_peaks([run | {"cells": {"run": {"allocated_peak": 0}}}], declared(name))) == []


def test_a_part_of_what_is_held_at_the_peak_may_be_0() -> None:
    run = {"metrics": {"copies_at_peak": 0}, "cells": {"run": {"allocated_peak": GB}}}
    assert list(zero_peaks([run], declared("copies_at_peak"))) == []


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("peak_resident", 64 * GB, None),
        ("peak_resident", 70 * GB, "peak_resident is 70000000000 B, more than the machine's 67200000000 B"),
        ("formula", 70 * GB, None),
        ("formula", [1, 10**6 * GB], "formula is 1000000000000000 B, more than 100 times the machine's "),
    ],
)
def test_no_process_holds_more_bytes_than_its_host(name: str, value: Any, what: str | None) -> None:
    metrics = dict(parsed("pass", f'[tool.benchbook.metrics]\n{name} = {{ unit = "B" }}').metadata.metrics)
    machine = {"published": False, "memory_bytes": 64 * GB}
    found = list(odd_host_bytes([{"metrics": {name: value}}], metrics, machine))
    assert [one.startswith(what or "") for one in found] == ([True] if what else [])
