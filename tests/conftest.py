"""Leaves out of `make test` what needs PyTorch and cannot have another outcome than on `main`."""

from __future__ import annotations

import pytest

from unchanged import changed_files, must_run


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make test` gives and `make test-all` does not."""
    what = "leave out tests marked `torch` of which nothing has changed since `main`"
    parser.addoption("--leave-out-unchanged", action="store_true", help=what)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave them out, and let pytest say how many; the longest files begin first, so that none is waited for."""
    items.sort(key=lambda item: [item.get_closest_marker(mark) is None for mark in ("slow", "torch")])
    if not config.getoption("--leave-out-unchanged"):
        return
    changed = changed_files()
    known: dict[object, bool] = {}

    def runs(item: pytest.Item) -> bool:
        mark = item.get_closest_marker("torch")
        if mark is None:
            return True
        key = (item.path, mark.args)
        if key not in known:
            known[key] = must_run(item.path, mark.args, changed)
        return known[key]

    left_out = [item for item in items if not runs(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if runs(item)]
