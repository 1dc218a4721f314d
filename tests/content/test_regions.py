"""Regions of a script: what a page shows of them, and that no page shows one as run that was not reached."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchbook.checking.checks import check_project
from benchbook.content.problems import BenchbookError
from benchbook.content.records import write_record
from benchbook.content.references import UnresolvedError
from benchbook.content.regions import regions_of
from benchbook.query.library import Library
from benchbook.recording.hosts import Hosts
from benchbook.rendering.cells import resolve_cell
from builders import MACHINE, make_project, make_record, with_table
from running import SWEEP, add_script, run_in

BODY = """
# %% parameters
n = 1

# %% work
if n == 1:
    # region one
    doubled = 2 * n
    # endregion
else:
    # region other
    # Twice, the long way.
    doubled = (
        n + n
    )
    # endregion


def later():
    # region never
    return 1 / 0
    # endregion


# %% checks
assert doubled == 2 * n
"""


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with Hosts() as started:
        yield started


def test_a_region_is_shown_without_its_indentation() -> None:
    (region,) = regions_of(
        "if x:\n    # region a\n    # Why.\n    y = f(\n        x\n    )\n    # endregion\n"
    )
    assert region.source == "# Why.\ny = f(\n    x\n)"


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        ("# region a\nx = 1", 1, "does not end"),
        ("x = 1\n# endregion", 2, "never began"),
        ("# region a\n# region b\nx = 1\n# endregion\n# endregion", 2, "begins within"),
        ("# region a\n# nothing\n# endregion\nx = 1", 1, "holds no statement"),
        ("if True:\n    # region a\n    x = 1\n# endregion", 4, "another indentation"),
        ("# region A b\nx = 1\n# endregion", 1, "cannot be referred to"),
        ("# region checks\nx = 1\n# endregion", 1, "is there twice"),
    ],
)
def test_a_region_out_of_order_is_named_with_its_line(
    lines: str, line: int, what: str, tmp_path: Path
) -> None:
    with pytest.raises(BenchbookError) as raised:
        add_script(tmp_path, f"# %% work\n{lines}\n\n# %% checks\nassert x")
    text = "\n".join(f"{problem.line} {problem.what}" for problem in raised.value.problems)
    start = 1 + next(
        number
        for number, one in enumerate((tmp_path / "snippets/guide/small.py").read_text().split("\n"), 1)
        if one == "# %% work"
    )
    assert what in text
    assert text.startswith(str(start + line - 1)) or "twice" in what


def test_the_record_tells_which_regions_a_run_reached(hosts: Hosts, tmp_path: Path) -> None:
    host = hosts.host({}, (), "snippets/guide/small.py")
    result = run_in(host, tmp_path, BODY, SWEEP)
    assert result.outcome == "ok", result.failure
    assert result.ranks[0]["regions"] == ["one"]


def test_a_region_counts_as_reached_in_a_process_that_was_forked_and_killed(
    hosts: Hosts, tmp_path: Path
) -> None:
    body = """
# %% work
import os, signal


def work():
    # region in_the_fork
    os.kill(os.getpid(), signal.SIGKILL)
    # endregion


for _ in range(2):
    if not (child := os.fork()):
        work()
    os.waitpid(child, 0)
x = 1

# %% checks
assert x"""
    result = run_in(hosts.host({}, (), "snippets/guide/small.py"), tmp_path, body)
    assert result.outcome == "ok", result.failure
    assert result.ranks[0]["regions"] == ["in_the_fork"]


def test_noting_a_region_raises_nothing_into_a_script_where_no_file_can_grow(
    hosts: Hosts, tmp_path: Path
) -> None:
    body = """
# %% work
import resource

resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    # region measured
    doubled = 2
    # endregion
except OSError:
    doubled = 0

# %% checks
assert doubled == 2"""
    result = run_in(hosts.host({}, (), "snippets/guide/small.py"), tmp_path, body)
    assert result.outcome == "ok", result.failure
    assert result.ranks[0]["regions"] == ["measured"]


def test_a_failure_in_a_region_still_names_its_line(hosts: Hosts, tmp_path: Path) -> None:
    host = hosts.host({}, (), "snippets/guide/small.py")
    result = run_in(host, tmp_path, BODY.replace("assert doubled", "later()\nassert doubled"), SWEEP)
    source = (tmp_path / "snippets/guide/small.py").read_text().split("\n")
    assert result.failure is not None
    assert source[result.failure.line - 1].strip() in ("return 1 / 0", "later()")


SUMS = with_table("[tool.benchbook.matrix]\nsteps = [4, 5]").replace(
    "total = sum(range(steps))",
    "if steps == 4:\n    # region short\n    total = sum(range(steps))\n    # endregion\n"
    "else:\n    # region long\n    # Slower.\n    total = sum(i for i in range(steps))\n    # endregion",
)


PAGE = """---
description: What adding costs.
---

# Adding { #adding }

```cell
sums/add.py#long
```
"""


def library_of(root: Path) -> Library:
    project = make_project(root, SUMS, PAGE)
    record = make_record(SUMS)
    reached = {"steps=4": ("short",), "steps=5": ("long",)}
    variants = {name: replace(one, regions=reached[name]) for name, one in record.variants.items()}
    write_record(project.record_path(MACHINE, "sums/add.py"), replace(record, variants=variants))
    return Library(project)


def test_what_a_record_says_of_regions_is_read_back(tmp_path: Path) -> None:
    library = library_of(tmp_path)
    record = library.record(MACHINE, "sums/add.py")
    assert record is not None
    assert record.variants["steps=5"].regions == ("long",)
    assert not check_project(library.project).problems


def test_a_page_shows_a_region_of_the_variant_that_reached_it(tmp_path: Path) -> None:
    _, part, variant, _ = resolve_cell(library_of(tmp_path), "sums", "sums/add.py#long")
    assert variant.name == "steps=5"
    assert part.source == "# Slower.\ntotal = sum(i for i in range(steps))"


def test_a_region_that_was_not_reached_is_shown_on_no_page(tmp_path: Path) -> None:
    with pytest.raises(UnresolvedError, match="was not reached in steps=4; name a variant in which it was"):
        resolve_cell(library_of(tmp_path), "sums", "sums/add.py?steps=4#long")
