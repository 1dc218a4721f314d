"""Tables of records."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchbook.content.project import Project
from benchbook.content.references import UnresolvedError
from benchbook.query.library import Library
from benchbook.rendering.table_spec import read_table
from handbooks import (
    CPU,
    FIXTURE,
    GPU,
    QUOTED,
    copy_handbook,
    edit,
    list_points,
    on_machine,
    plain,
    render,
    set_metric,
    start,
)

METHODS = "script: memory/methods.py\nrows: [method, batch_size]\n"
ONE = "script: memory/methods.py\nrows: metrics\nwhere: {method: plain, batch_size: 1}\n"


def table(text: str) -> str:
    return f"```table\n{text}\n```\n"


def cells(shown: str) -> list[list[str]]:
    """The texts of a table's rows, without the names that only a phone shows."""
    shown = re.sub(r'<(span|bdi) class="bb-cardname".*?</\1> ', "", shown)
    rows = re.findall(r"<tr.*?</tr>", shown, re.S)
    return [[plain(cell) for cell in re.findall(r"<t[hd][ >].*?</t[hd]>", row, re.S)] for row in rows]


def test_a_variant_is_a_row_and_a_metric_a_column() -> None:
    shown = cells(render(start(Project(FIXTURE)), table(METHODS + "columns: [peak_memory, step_time]")))
    assert shown[0] == ["method", "batch_size", "peak_memory", "step_time"]
    assert shown[1] == ["plain", "1", "2 GiB", "101 ms"]
    assert shown[3] == ["plain", "4", "out of memory", "out of memory"]
    assert shown[6] == ["checkpointing", "4", "4 GiB", "404 ms"]


def test_a_column_has_one_unit_of_the_page_s_choice() -> None:
    text = METHODS + "columns: [{metric: step_time, unit: s}]"
    assert [row[2] for row in cells(render(start(Project(FIXTURE)), table(text)))[1:3]] == [
        "0.101 s",
        "0.202 s",
    ]


def test_every_entry_can_be_read_by_a_program() -> None:
    shown = render(start(Project(FIXTURE)), table(METHODS + "columns: peak_memory"))
    assert '<tr data-row="0" data-ref="memory/methods.py?method=plain&amp;batch_size=1">' in shown
    assert (
        f'<data value="2147483648" data-ref="#peak_memory" data-machine="{CPU}" '
        'data-bytes="2147483648" dir="ltr">' in shown
    )


def test_bars_and_ratios_compare_with_the_largest_and_the_first() -> None:
    shown = render(
        start(Project(FIXTURE)), table(METHODS + "columns: [{metric: peak_memory, bar: true, ratio: true}]")
    )
    assert re.findall(r"--bb-share:([\d.]+)", shown) == ["0.500", "1.000", "0.000", "0.250", "0.500", "1.000"]
    assert re.findall(r'bb-ratio" dir="ltr">([^<]*)', shown) == ["", "2.00×", "", "0.500×", "1.00×", "2.00×"]


def test_where_narrows_the_rows() -> None:
    text = "script: memory/methods.py\nwhere: {method: checkpointing}\nrows: batch_size\ncolumns: peak_memory"
    assert [row[0] for row in cells(render(start(Project(FIXTURE)), table(text)))] == [
        "batch_size",
        "1",
        "2",
        "4",
    ]


def test_where_narrows_the_rows_to_several_values_of_an_axis() -> None:
    text = METHODS + "where: {method: checkpointing, batch_size: [4, 1]}\ncolumns: peak_memory"
    shown = cells(render(start(Project(FIXTURE)), table(text)))
    assert [row[:2] for row in shown[1:]] == [["checkpointing", "1"], ["checkpointing", "4"]]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("[1, 3]", "batch_size=3"),
        ("[]", "empty list"),
        (str([*range(1001)]), "more than 1000 combinations of values"),
    ],
)
def test_each_value_that_where_names_is_one_of_the_axis(values: str, said: str) -> None:
    text = METHODS + f"where: {{batch_size: {values}}}\ncolumns: peak_memory"
    with pytest.raises(UnresolvedError, match=said):
        read_table(text, Library(Project(FIXTURE)))


def test_cells_can_be_rows_of_what_was_read_around_them() -> None:
    text = "script: memory/losses.py\nrows: cells\ncolumns: [seconds, process_memory_peak]"
    assert cells(render(start(Project(FIXTURE)), table(text))) == [
        ["Cell", "Time", "Peak process memory"],
        ["train", "560 ms", "500 MiB"],
    ]


def test_metrics_of_one_variant_can_be_rows() -> None:
    where = "where: {method: checkpointing, batch_size: 1}"
    columns = "columns: [{metric: peak_memory, bar: true}, {metric: peak_memory, unit: GB, bar: true}]"
    text = f"script: memory/methods.py\n{where}\nrows: metrics\n{columns}"
    found = cells(render(start(Project(FIXTURE)), table(text)))
    assert found == [["Quantity", "Value"], ["peak_memory", "1 GiB"], ["peak_memory", "1.07 GB"]]


def test_a_trace_of_the_unit_of_a_column_is_shown_in_a_smaller_one() -> None:
    where = "where: {method: checkpointing}\nrows: batch_size"
    text = f"script: memory/methods.py\n{where}\ncolumns: {{metric: peak_memory, unit: TiB}}"
    shown = cells(render(start(Project(FIXTURE)), table(text)))
    assert [row[1] for row in shown[1:]] == ["1 GiB", "0.00195 TiB", "0.00391 TiB"]


def record_peaks(project: Project, machine: str, *peaks: float) -> None:
    """Give the batches of the smaller method these peaks on `machine`."""
    names = [f"method=checkpointing,batch_size={size}" for size in (1, 2, 4)]
    set_metric(project, machine, "peak_memory", dict(zip(names, peaks, strict=True)))


SWEPT = "script: memory/methods.py\nwhere: {method: checkpointing}\nrows: batch_size\ncolumns: "


@pytest.mark.parametrize(
    ("peaks", "shown"),
    [
        ((2**29, 2**30, 5 * 2**30), ["0.5 GiB", "1 GiB", "5 GiB"]),
        ((2**29, 600 * 2**20, 2**20), ["512 MiB", "600 MiB", "1 MiB"]),
        # Less than a thousandth of the largest: in a unit that suits all, while that has no five digits.
        ((2**19, 2**30, 3 * 2**30), ["0.5 MiB", "1,024 MiB", "3,072 MiB"]),
        ((2**19, 2**30, 29 * 2**30), ["512 KiB", "1 GiB", "29 GiB"]),
        ((12, 0, 3 * 2**30), ["12 B", "0 GiB", "3 GiB"]),
    ],
)
def test_a_column_has_one_unit_in_which_all_but_a_trace_can_be_told(
    tmp_path: Path, peaks: tuple[int, ...], shown: list[str]
) -> None:
    project = copy_handbook(tmp_path)
    record_peaks(project, CPU, *peaks)
    assert [row[1] for row in cells(render(start(project), table(SWEPT + "peak_memory")))[1:]] == shown


def test_each_machine_s_column_has_the_unit_that_suits_it(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    record_peaks(project, CPU, 2**20, 2**21, 2**22)
    record_peaks(project, GPU, 2**29, 2**30, 2**31)
    build = start(project)
    shown = cells(render(build, table(SWEPT + "peak_memory")))
    assert [row[1] for row in shown[1:]] == ["1 MiB", "2 MiB", "4 MiB"]
    there = cells(on_machine(build, GPU))
    assert [row[1] for row in there] == ["0.5 GiB", "1 GiB", "2 GiB"]


def test_a_share_far_below_the_others_of_its_column_stays_a_percentage(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    edit(project.snippets / "memory/methods.py", 'peak_memory = { unit = "B"', 'peak_memory = { unit = "1"')
    edit(project.snippets / "memory/methods.py", ', memory = "device"', "")
    record_peaks(project, CPU, 8.6e-8, 0.84, 0)
    shown = cells(render(start(project), table(SWEPT + "{metric: peak_memory, unit: percent}")))
    assert [row[1] for row in shown[1:]] == ["8.6 × 10⁻⁶ %", "84%", "0%"]
    record_peaks(project, CPU, 1, 1.333333, 0)
    shown = cells(render(start(project), table(SWEPT + "peak_memory")))
    assert [row[1] for row in shown[1:]] == ["1.00", "1.33", "0"]


def test_a_point_without_a_value_on_an_axis_shows_the_one_that_runs(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    list_points(project)
    found = read_table(METHODS + "columns: peak_memory", Library(project))
    assert [row.names for row in found.rows] == [
        (("method", "plain"), ("batch_size", 1)),
        (("method", "plain"), ("batch_size", 2)),
    ]


def rows_of(shown: str) -> list[str]:
    return re.findall(r'<tr data-row="(\d+)"', shown)


def test_rows_stand_best_first_where_the_page_asks_for_it() -> None:
    shown = render(
        start(Project(FIXTURE)), table(METHODS + "columns: [peak_memory, step_time]\nsort: peak_memory")
    )
    # 2, 4 and no GiB for one method, 1, 2 and 4 GiB for the other: equals stay in the declared order.
    assert rows_of(shown) == ["3", "0", "4", "1", "5", "2"]
    assert re.findall(r'<th scope="col"[^>]*aria-sort="([a-z]+)"[^>]*><code[^>]*>([^<]*)', shown) == [
        ("ascending", "peak_memory")
    ]


def test_where_more_is_better_the_most_stands_first(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    script = project.snippets / "memory/methods.py"
    edit(
        script,
        'peak_memory = { unit = "B", better = "lower"',
        'peak_memory = { unit = "B", better = "higher"',
    )
    shown = render(start(project), table(METHODS + "columns: peak_memory\nsort: peak_memory"))
    assert rows_of(shown) == ["1", "5", "0", "4", "3", "2"]
    assert 'aria-sort="descending"' in shown


def test_a_row_can_have_a_link_and_a_line_of_the_page_s_own() -> None:
    text = (
        "script: memory/methods.py\nwhere: {batch_size: 1}\nrows: method\ncolumns: peak_memory\n"
        "links: {plain: 'memory.md#plain'}\nnotes: {checkpointing: 'Compute <twice>: `checkpoint(f)`'}"
    )
    build = start(Project(FIXTURE))
    build.here.address = lambda link: f"there/{link}"
    plain_name, checkpointing_name = re.findall(r'<th scope="row">.*?</th>', render(build, table(text)))
    assert '<a href="there/memory.md#plain"><code lang="en" dir="ltr">plain</code></a>' in plain_name
    assert "bb-note" not in plain_name
    assert "<a " not in checkpointing_name
    assert (
        '<span class="bb-note">Compute &lt;twice&gt;: <code lang="en" dir="ltr">checkpoint(f)</code></span>'
        in checkpointing_name
    )


def test_labels_are_the_language_s_own_and_escaped(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    edit(project.docs / "en/_language.yml", "labels:\n", "labels:\n  method: Method\n  method=plain: Plain\n")
    edit(
        project.docs / "ar/_language.yml",
        "labels:\n",
        'labels:\n  method: "< الطريقة"\n  method=plain: عادية\n',
    )
    shown = cells(render(start(project, "ar"), table(METHODS + "columns: peak_memory")))
    assert shown[0][0] == "< الطريقة"
    assert shown[1][0] == "عادية"


def test_the_line_below_says_where_it_comes_from() -> None:
    shown = plain(render(start(Project(FIXTURE)), table(METHODS + "columns: step_time")))
    assert "Fixture CPU · torch 2.12 · Nov 2026 · median of 3, ±1%" in shown


def test_other_machines_go_to_the_data_of_the_guide() -> None:
    build = start(Project(FIXTURE))
    render(build, table(METHODS + "columns: peak_memory"))
    assert [name for name, data in build.here.data.items() if "blocks" in data] == [GPU, QUOTED]
    assert (
        f'<data value="2684354560" data-ref="#peak_memory" data-machine="{GPU}" data-bytes="2684354560" '
        'dir="ltr">2.5\u00a0GiB</data>'
    ) in on_machine(build, GPU)


def test_a_table_has_the_same_key_in_every_language() -> None:
    keys = set()
    for language, caption in (("en", "Both"), ("ja", "両方")):
        shown = render(
            start(Project(FIXTURE), language), table(f"{METHODS}columns: peak_memory\ncaption: {caption}")
        )
        keys.update(re.findall(r'data-bb="([^"]+)"', shown))
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("- 1", "not a mapping"),
        ("script: memory/methods.py\nrows: method\ncolumns: peak_memory", "share a row"),
        ("script: memory/methods.py\nrows: methods\ncolumns: peak_memory", "does not sweep `methods`"),
        (METHODS + "columns: peak", "no metric `peak`"),
        (METHODS + "columns: [{metric: peak_memory, unit: s}]", "cannot be shown in s"),
        (METHODS + "columns: [{metric: peak_memory, unit: [s]}]", "`['s']` is not a unit"),
        (METHODS + "columns: peak_memory\nmachine: [a]", "there is no machine `['a']`"),
        (METHODS + "columns: peak_memory\nmachine: {a: b}", "there is no machine `{'a': 'b'}`"),
        (METHODS + "columns: [{metric: peak_memory, bars: true}]", "no key `bars`"),
        (METHODS + "columns: [{unit: B}]", "names no metric"),
        (METHODS + "columns: peak_memory\ncolour: red", "no key `colour`"),
        (METHODS + "columns: peak_memory\nwhere: {batch_size: 3}", "no variant with batch_size=3"),
        (METHODS + "columns: peak_memory\nsort: step_time", "`sort:` names no column `step_time`"),
        (ONE + "columns: peak_memory\nsort: peak_memory", "`sort:` does not go with `rows: metrics`"),
        (METHODS + "columns: peak_memory\nnotes: {plain: x}", "names rows by one axis"),
        (ONE + "columns: peak_memory\nnotes: x", "`notes:` is not a mapping"),
        (METHODS + "columns: peak_memory\ncaption: [a, b]", "`caption:` is not text"),
        (METHODS + "columns: peak_memory\ncaption: {a: b}", "`caption:` is not text"),
        (METHODS + "columns: peak_memory\ncaption: 2026-01-01", "`caption:` is not text"),
        (ONE + "columns: peak_memory\nnotes: {peak_memory: [a]}", "`peak_memory` of `notes:` is not text"),
        (ONE + "columns: peak_memory\nlinks: {peak_memory: }", "`peak_memory` of `links:` is not text"),
        (ONE + "columns: peak_memory\nlinks: {peak: x.md}", "`links:` names no row `peak`"),
        (METHODS + "columns: peak_memory\nwhere: 3", "`where:` is not a mapping"),
        ("script: memory/methods.py\nrows: cells\ncolumns: seconds", "6 variants"),
        ("script: memory/losses.py\nrows: cells\ncolumns: loss", "`loss` is not a meter"),
        ("script: memory/methods.py\nrows: metrics\ncolumns: peak_memory", "`rows: metrics` shows one"),
        (ONE + "columns: [peak_memory, step_time]", "compare metrics of one unit"),
    ],
)
def test_a_table_of_what_is_not_there_is_refused(text: str, what: str) -> None:
    with pytest.raises(UnresolvedError, match=re.escape(what)):
        read_table(text, Library(Project(FIXTURE)))


def test_only_the_cells_that_are_named_are_rows_in_their_order() -> None:
    text = "script: memory/losses.py\nrows: cells\ncells: [train]\ncolumns: seconds"
    shown = cells(render(start(Project(FIXTURE)), table(text)))
    assert [row[0] for row in shown[1:]] == ["train"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("script: memory/losses.py\nrows: cells\ncells: [trian]\ncolumns: seconds", "has no cell `trian`"),
        ("script: memory/losses.py\nrows: cells\ncells: train\ncolumns: seconds", "`cells:` is not a list"),
        (METHODS + "cells: [train]\ncolumns: peak_memory", "goes with `rows: cells`"),
    ],
)
def test_cells_that_cannot_be_rows_are_a_problem(text: str, what: str) -> None:
    with pytest.raises(UnresolvedError, match=what):
        read_table(text, Library(Project(FIXTURE)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("rows: [method, method, batch_size]\ncolumns: step_time", "`rows:` names `method` twice"),
        (
            "rows: batch_size\nwhere: {method: [plain, plain]}\ncolumns: step_time",
            "`method` of `where:` names `plain`",
        ),
        (
            "rows: [method, batch_size]\ncolumns: [step_time, peak_memory, step_time]",
            "`columns:` names `step_time` twice",
        ),
        ("rows: cells\ncells: [train, train]\ncolumns: seconds", "`cells:` names `train` twice"),
    ],
)
def test_what_a_table_names_twice_is_refused(text: str, what: str) -> None:
    """Each row would show it for each time that it is named."""
    with pytest.raises(UnresolvedError, match=re.escape(what)):
        read_table(f"script: memory/methods.py\n{text}", Library(Project(FIXTURE)))


def test_a_table_has_an_end_of_columns() -> None:
    columns = [f"loss[{step}]" for step in range(31)]
    asked = f"script: memory/losses.py\nrows: metrics\ncolumns: {columns}"
    with pytest.raises(UnresolvedError, match="`columns:` has 31 items, and 30 are the most"):
        read_table(asked, Library(Project(FIXTURE)))
