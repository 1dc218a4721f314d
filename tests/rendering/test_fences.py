"""Cells, inline values and what happens where they name nothing."""

from __future__ import annotations

import html
import re
from itertools import chain
from pathlib import Path

import pytest

from benchbook.content.fence_names import FENCES
from benchbook.content.page_source import parse_page
from benchbook.content.problems import MOST, Problem
from benchbook.content.project import Project
from benchbook.content.readings import made_size
from benchbook.content.records import load_record, write_record
from benchbook.content.references import UnresolvedError
from benchbook.content.script import read_script
from benchbook.query.library import Library
from benchbook.rendering.cells import bounded, resolve_cell
from benchbook.rendering.fences import custom_fences
from benchbook.rendering.places import check_page, page_references
from benchbook.rendering.specs import HandbookCount
from benchbook.rendering.values import resolve_value
from builders import write
from handbooks import (
    CPU,
    FIXTURE,
    GPU,
    copy_handbook,
    details,
    edit,
    plain,
    render,
    rows_of,
    set_metric,
    start,
    whole_handbook,
)

ONE = "memory/methods.py?method=plain&batch_size=1"
CHECKPOINTED = "memory/methods.py?method=checkpointing&batch_size=2"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return copy_handbook(tmp_path)


def cell(reference: str, options: str = "") -> str:
    return f"```cell{' ' + options if options else ''}\n{reference}\n```\n"


def checked(project: Project, path: Path) -> list[Problem]:
    return check_page(path, parse_page(path.read_text("utf-8")), Library(project))


def change_record(project: Project, machine: str, script: str, old: str, new: str) -> None:
    edit(project.record_path(machine, script), old, new)


# Values


def test_a_value_can_be_read_by_a_program() -> None:
    shown = render(start(Project(FIXTURE)), f"It takes `#!value {ONE}#peak_memory GiB`.")
    element = re.search(r"<data [^>]*>[^<]*</data>", shown)
    assert element is not None
    assert html.unescape(element[0]) == (
        f'<data value="2147483648" data-ref="{ONE}#peak_memory" data-machine="{CPU}"'
        ' data-bytes="2147483648" dir="ltr">2\u00a0GiB</data>'
    )


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        (f"{ONE}#step_time", "101 ms"),
        (f"{ONE}#train.seconds s", "0.56 s"),
        (f"{CHECKPOINTED}#peak_memory / {ONE}#peak_memory", "1"),
        (f"{CHECKPOINTED}#step_time / {ONE}#step_time x", "2.00×"),
        (f"1 - {CHECKPOINTED}#peak_memory / {ONE.replace('=1', '=2')}#peak_memory percent", "50%"),
        (f"{ONE}#same_weights", "yes"),
        ("memory/losses.py#loss[-1]", "0.125"),
        ("memory/losses.py#difference", "7.2 × 10⁻⁸"),
        (f"{ONE.replace('=1', '=4')}#peak_memory", "out of memory"),
    ],
)
def test_a_value_shows_the_median_in_a_sensible_unit(reference: str, text: str) -> None:
    build = start(Project(FIXTURE))
    assert plain(render(build, f"`#!value {reference}`")) == text
    assert not build.problems


def test_values_work_in_tables_lists_bold_and_links() -> None:
    value = "`#!value memory/losses.py#difference`"
    text = f"| a | b |\n|---|---|\n| {value} | x |\n\n- **{value}**\n\n[{value}](https://example.org)\n"
    assert render(start(Project(FIXTURE)), text).count("<data ") == 3


def test_what_a_ratio_is_made_of_stands_in_one_unit_in_its_details(project: Project) -> None:
    peaks = {"method=checkpointing,batch_size=1": 897 * 2**20, "method=plain,batch_size=1": 1836 * 2**20}
    set_metric(project, CPU, "peak_memory", peaks)
    smaller = ONE.replace("plain", "checkpointing")
    build = start(project)
    render(build, f"`#!value {smaller}#peak_memory / {ONE}#peak_memory x`")
    (value,) = build.here.data[CPU]["values"].values()
    medians = [text for key, text in rows_of(value["rows"], build.here.language) if key == "result"]
    assert [text.replace("\u00a0", " ") for text in medians] == [
        "0.876 GiB (median of 3)",
        "1.79 GiB (median of 3)",
    ]


def test_two_values_of_one_sentence_share_a_unit_on_each_machine(project: Project) -> None:
    smaller = ONE.replace("plain", "checkpointing")
    names = ["method=plain,batch_size=1", "method=checkpointing,batch_size=1"]
    set_metric(project, CPU, "peak_memory", dict(zip(names, (1836 * 2**20, 897 * 2**20), strict=True)))
    set_metric(project, GPU, "peak_memory", dict(zip(names, (600 * 2**20, 8 * 2**20), strict=True)))
    build = start(project)
    text = f"from `#!value {ONE}#peak_memory beside {smaller}#peak_memory` to `#!value {smaller}#peak_memory beside {ONE}#peak_memory`"
    assert plain(render(build, text)) == "from 1.79 GiB to 0.876 GiB"
    texts = [plain(value["parts"][""]) for value in build.here.data[GPU]["values"].values()]
    assert texts == ["600 MiB", "8 MiB"]
    assert f'data-ref="{ONE}#peak_memory"'.replace("&", "&amp;") in render(build, text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (f"{ONE}#peak_memory beside", "is beside nothing"),
        (f"{ONE}#peak_memory beside {ONE}#peak_memory GiB", "is beside nothing"),
        (f"{ONE}#peak_memory / {ONE}#peak_memory beside {ONE}#peak_memory", "is beside nothing"),
        (f"{ONE}#peak_memory beside {ONE}#step_time", "is in s, not in B"),
        (f"{ONE}#peak_memory beside {ONE}#peak", "no metric `peak`"),
    ],
)
def test_a_value_beside_nothing_of_its_kind_is_refused(text: str, what: str) -> None:
    with pytest.raises(UnresolvedError, match=re.escape(what)):
        resolve_value(start(Project(FIXTURE)).library, "memory", text)


def test_a_value_is_in_the_language_of_the_page() -> None:
    build = start(Project(FIXTURE), "ja")
    words = build.here.language.text("outcome_out_of_memory")
    assert f"{words}</data>" in render(build, f"`#!value {ONE.replace('=1', '=4')}#peak_memory`")


def test_another_machine_is_named_where_the_reference_machine_has_no_record(project: Project) -> None:
    project.record_path(CPU, "memory/losses.py").unlink()
    shown = render(start(project), "`#!value memory/losses.py#difference`")
    assert f'data-machine="{GPU}"' in shown
    assert '<sup class="bb-tag" dir="auto">Fixture GPU</sup>' in shown


def test_a_ratio_of_times_needs_one_campaign(project: Project) -> None:
    change_record(project, CPU, "memory/methods.py", 'Z-fixture": {', 'Z-other": {')
    text = f"{ONE}#train.seconds / memory/losses.py#train.seconds"
    path = project.record_path(CPU, "memory/methods.py")
    path.write_text(path.read_text("utf-8").replace('Z-fixture"', 'Z-other"'), "utf-8")
    build = start(project)
    with pytest.raises(UnresolvedError, match="compares times of two campaigns"):
        resolve_value(build.library, "memory", text)
    sizes = f"{ONE}#train.process_memory / memory/losses.py#train.process_memory"
    assert resolve_value(build.library, "memory", sizes)[1][0][1].value == 1


def test_a_stale_value_says_so(project: Project) -> None:
    edit(project.snippets / "memory/losses.py", "7.2e-8", "7.3e-8")
    shown = render(start(project), "`#!value memory/losses.py#difference`")
    assert "◷ older code" in plain(shown)


def test_names_from_outside_are_escaped(project: Project) -> None:
    edit(project.records / CPU / "machine.json", '"Fixture CPU, 8 GB"', '"<script>alert(1)</script>\\"CPU"')
    build = start(project)
    shown = render(build, cell(f"{ONE}#train") + "\n\n" + f"`#!value {ONE}#peak_memory`")
    assert "<script" not in shown
    # Nor in what a reader opens, where it is text.
    assert "<script" not in str(build.here.data)
    assert any("<script>" in text for text in details(build, CPU)["machine"])


# Cells


def test_a_cell_shows_its_source_byte_for_byte_and_its_output() -> None:
    project = Project(FIXTURE)
    shown = render(start(project), cell(f"{ONE}#train"))
    source = read_script(project.snippets / "memory/methods.py", project.root).cell("train").source
    blocks = [
        html.unescape(re.sub(r"<[^>]*>", "", code)) for code in re.findall(r"<code>(.*?)</code>", shown, re.S)
    ]
    assert blocks[0] == source + "\n"
    assert blocks[1] == "<b>method=plain,batch_size=1</b> on machine 1 & more"


def test_output_is_english_and_left_to_right_in_every_language() -> None:
    build = start(Project(FIXTURE), "ar")
    shown = render(build, cell(f"{ONE}#train"))
    label = build.here.language.text("output")
    assert f'<pre lang="en" dir="ltr" tabindex="0" aria-label="{label}"><code>&lt;b&gt;' in shown


@pytest.mark.parametrize(("times", "searched"), [(166, True), (167, False)])
def test_an_output_with_a_word_without_end_is_shown_and_not_searched(
    project: Project, times: int, searched: bool
) -> None:
    change_record(project, CPU, "memory/losses.py", "<b>default</b> on", f"{'データ' * times} on")
    shown = render(start(project), cell("memory/losses.py#train"))
    assert "データ" * times in shown
    assert ("data-pagefind-ignore" not in shown.partition("データ")[0]) == searched


def test_other_parameters_of_a_machine_are_named_in_the_page_s_language() -> None:
    build = start(Project(FIXTURE), "ja")
    words = build.here.language.text("overridden")
    assert f"{words}：\u2066steps = 2\u2069" in render(build, cell(f"{ONE}#train"))


LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("old", "new", "begins"),
    [
        ('"steps": 2', f'"steps": "{LONG}"', "steps = 'xxx"),
        ('"environment": {}', f'"environment": {{"A": "{LONG}"}}', "A=xxx"),
    ],
)
def test_of_what_was_set_without_end_a_page_shows_the_beginning(
    project: Project, old: str, new: str, begins: str
) -> None:
    change_record(project, CPU, "memory/methods.py", old, new)
    build = start(project)
    shown = html.unescape(render(build, cell(f"{ONE}#train")) + str(build.here.data))
    assert begins in shown
    assert len(shown) < 20_000


def test_a_cell_of_a_sweep_shows_the_variant_that_runs_what_is_shown() -> None:
    assert "method = plain, batch_size = 1" in render(
        start(Project(FIXTURE)), cell("memory/methods.py#train")
    )


def test_a_cell_that_printed_nothing_and_is_fresh_is_its_source_alone() -> None:
    shown = render(start(Project(FIXTURE)), cell(f"{ONE}#compare"))
    assert plain(shown) == "same_weights = True"


def test_a_stale_cell_says_so(project: Project) -> None:
    edit(project.snippets / "memory/losses.py", "7.2e-8", "7.3e-8")
    assert "◷ older code" in plain(render(start(project), cell("memory/losses.py#train")))


def test_a_run_out_of_memory_is_shown_as_that() -> None:
    shown = render(start(Project(FIXTURE)), cell("memory/methods.py?method=plain&batch_size=4#train"))
    assert "<bdi>out of memory</bdi>" in shown


@pytest.mark.parametrize("place", ["below", "block", "tabbed-left", "tabbed-right"])
def test_source_goes_where_markdown_exec_puts_it(place: str) -> None:
    shown = render(start(Project(FIXTURE)), cell("memory/losses.py#train", f'source="{place}"'))
    assert shown.count('class="bb-output"') == 1
    assert "<p><div" not in shown
    assert (shown.index("bb-output") < shown.index("difference")) == (place in ("below", "tabbed-right"))


def test_source_can_be_left_out() -> None:
    shown = render(start(Project(FIXTURE)), cell("memory/losses.py#train", 'source="none"'))
    assert "difference" not in shown
    assert "bb-output" in shown


def test_ids_of_tabs_differ_on_a_page_and_agree_between_languages() -> None:
    project = Project(FIXTURE)
    cells = ("memory/losses.py#train", "memory/losses.py#checks")
    text = "".join(cell(one, 'source="tabbed-left"') for one in cells)
    found = {
        language: re.findall(r'<input[^>]* id="([^"]+)"', render(start(project, language), text))
        for language in ("en", "ar")
    }
    assert found["en"] == found["ar"]
    assert len(set(found["en"])) == 4


def test_output_is_bounded() -> None:
    text, cut = bounded("line\n" * 1000)
    assert (text.count("\n") + 1, cut) == (60, 940)
    text, cut = bounded("x" * 10**6)
    assert (len(text) <= 20_001, cut) == (True, 0)
    assert bounded("\n") == ("", 0)


def test_output_is_what_a_terminal_would_show_in_the_end() -> None:
    text, _ = bounded("\x1b[31mred\x1b[0m\x00\n10 %\r50 %\r100 %\r\ndone\n")
    assert text == "red\n100 %\ndone"


def test_times_of_a_shared_device_say_so(project: Project) -> None:
    change_record(project, CPU, "memory/losses.py", '"shared": false', '"shared": true')
    build = start(project)
    assert build.here.language.text("shared") in render(build, cell("memory/losses.py#train"))


def test_a_language_without_the_words_is_a_problem(project: Project) -> None:
    for code in project.languages:
        (project.docs / code / "_language.yml").write_text("strings: {}\n", "utf-8")
    build = start(project)
    assert "bb-problem" in render(build, cell("memory/losses.py#train"))
    assert "`strings:` has no" in str(*build.problems)


def test_of_a_page_with_thousands_of_wrong_references_the_first_are_told(project: Project) -> None:
    page = project.docs / "en/many.md"
    page.write_text("`#!value memory/losses.py#nothing`\n\n" * (MOST + 5), "utf-8")
    assert len(check_page(page, parse_page(page.read_text("utf-8")), Library(project))) == MOST


def test_no_text_of_a_script_is_taken_for_the_place_of_its_output(project: Project) -> None:
    strings = 'difference = 7.2e-8\nhere = "benchbook-output-goes-here"'
    edit(project.snippets / "memory/losses.py", "difference = 7.2e-8", strings)
    build = start(project)
    html = render(build, cell("memory/losses.py#train"))
    assert "benchbook-output-goes-here" in html
    assert html.count('<div class="bb-output"') == 1


def test_a_cell_no_page_can_show_as_it_stands_is_refused(project: Project) -> None:
    edit(project.snippets / "memory/losses.py", "difference = 7.2e-8", 'difference = 7.2e-8\ntab = "\t"')
    build = start(project)
    render(build, cell("memory/losses.py#train"))
    assert "holds a tab" in str(*build.problems)


# Problems


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (cell("memory/nothing.py#train"), "there is no script `memory/nothing.py`"),
        (cell("memory/losses.py#nothing"), "`memory/losses.py` has no cell `nothing`"),
        (cell("memory/losses.py#train.seconds"), "`memory/losses.py#train.seconds` is not a cell"),
        (cell("memory/losses.py#train", 'source="console"'), "cannot be shown with source=console"),
        (cell("memory/losses.py#train", 'exec="1"'), "a cell has no option `exec`"),
        (cell("memory/losses.py#train", 'title="Saves 12 GB of 24 GB"'), "a cell has no option `title`"),
        (cell("memory/losses.py#train", 'source="tabbed-left" tabs="It takes 3 s|b"'), "no option `tabs`"),
        (cell("memory/losses.py#train", 'linenums="1"'), "a cell has no option `linenums`"),
        ("```claims\nnope.md\n```", "no claim stands on `nope.md`"),
        ("```calculator\nzzz\n```", "the calculator has no part `zzz`"),
        ("```calculator\nform\n```", "no model has coefficients"),
        ("```calculator\nerrors\n```", "the calculator was not compared with the predictor yet"),
        ("```error-field\nhello\n```", "the fence `error-field` holds `hello`"),
        ("`#!value memory/losses.py#nothing`", "`memory/losses.py` has no metric `nothing`"),
        ("`#!value memory/losses.py#loss`", "`memory/losses.py#loss` is a series of 8"),
        ("`#!value memory/losses.py#loss[8]`", "beyond the end of a series of 8"),
        ("`#!value memory/losses.py#difference[0]`", "`difference` is one number, not a series"),
        ("`#!value memory/losses.py#difference GiB`", "1 cannot be shown in GiB"),
        ("`#!value memory/losses.py#train.allocated`", "has no reading on fixture-cpu"),
        (f"`#!value {ONE}#peak_memory / {ONE}#step_time`", "is in B"),
        ("```table\nscript: memory/losses.py\n```", "the table has no `rows:`"),
        ("```chart\nscript: [\n```", "the chart is not valid YAML"),
        (
            "```chart\nscript: a\nmetric: *x\n```",
            "the chart holds `*x`, which repeats a value under a name in",
        ),
    ],
)
def test_what_cannot_be_resolved_is_a_box_and_a_problem_with_its_line(
    project: Project, text: str, what: str
) -> None:
    page = project.docs / "en/memory.md"
    page.write_text(f"# Title {{ #title }}\n\nText.\n\n{text}\n", "utf-8")
    build = start(project)
    shown = render(build, page.read_text("utf-8"))
    assert "bb-problem" in shown
    (problem,) = build.problems
    assert what in problem.what
    assert (problem.path, problem.line) == ("docs/en/memory.md", 5)
    assert problem.fix
    assert problem in checked(project, page)


def test_a_page_that_shows_more_than_its_room_is_refused_where_it_does_and_draws_no_more(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchbook.rendering.specs.MOST_CELLS", 26)
    rows = "script: memory/methods.py\nrows: [method, batch_size]\ncolumns: [peak_memory, step_time]"
    where = "script: memory/methods.py\nwhere: {method: plain}\n"
    blocks = [
        f"```table\n{rows}\n```",
        f"```tradeoff\n{where}points: batch_size\nx: peak_memory\ny: step_time\ntitle: A\n```",
        f"```table\n{rows}\ncaption: Again\n```",
        f"```chart\n{where}x: batch_size\ny: step_time\ntitle: B\n```",
    ]
    page = project.docs / "en/memory.md"
    page.write_text("# T { #t }\n\n" + "\n\n".join(blocks) + "\n", "utf-8")
    build = start(project)
    shown = render(build, page.read_text("utf-8"))
    (problem,) = build.problems
    assert (problem.path, problem.line) == ("docs/en/memory.md", 9)
    assert "shows 27 cells of tables and points of pictures, and 26 are the most" in problem.what
    assert shown.count("<table") == 1
    assert "<figure" not in shown
    assert checked(project, page) == [problem]


def test_a_chart_of_a_series_takes_the_room_of_all_its_points(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    fence = "```chart\nscript: memory/losses.py\nx: step\ny: loss\ntitle: A{}\n```\n\n"
    page = project.docs / "en/memory.md"
    page.write_text("# T { #t }\n\n" + "".join(map(fence.format, range(3))), "utf-8")
    assert checked(project, page) == []
    monkeypatch.setattr("benchbook.rendering.specs.MOST_CELLS", 2 * 8)
    (problem,) = checked(project, page)
    assert "shows 17 cells of tables and points of pictures, and 16 are the most" in problem.what


def test_pages_that_draw_more_pictures_than_a_build_has_time_for_are_refused_where_they_do(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of each machine; what another page has drawn already costs no more."""
    where = "script: memory/methods.py\nwhere: {method: plain}\n"
    chart = f"```chart\n{where}x: batch_size\ny: step_time\ntitle: A\n```\n"
    tradeoff = f"```tradeoff\n{where}points: batch_size\nx: peak_memory\ny: step_time\ntitle: B\n```\n"
    handbook = HandbookCount()

    def checked_too(name: str, *blocks: str) -> list[Problem]:
        text = "# T { #t }\n\n" + "\n".join(blocks)
        return check_page(
            write(project.docs / f"en/{name}.md", text), parse_page(text), Library(project), handbook
        )

    assert checked_too("one", chart) == []
    assert {machine for _, machine in handbook.pictures} >= {CPU, GPU}
    monkeypatch.setattr("benchbook.rendering.specs.MOST_PICTURES", len(handbook.pictures))
    (problem,) = checked_too("two", chart, tradeoff)
    assert (problem.path, problem.line) == ("docs/en/two.md", 11)
    assert f"draw {len(handbook.pictures)} pictures, counted for each machine" in problem.what


@pytest.mark.parametrize(
    ("end", "most", "line", "said"),
    [
        ("MOST_CHARACTERS_IN_ALL", 600, 1, "have, and show of scripts, {} characters, and 600"),
        (
            "MOST_PLACES_IN_ALL",
            11,
            12,
            "have 12 fences, values, notes, links and marks, counted for each machine, and 11",
        ),
        ("MOST_CELLS_IN_ALL", 107, 5, "show 108 cells and points, counted for each machine, and 107"),
    ],
)
def test_what_the_pages_of_a_language_have_together_has_an_end_which_is_told_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, end: str, most: int, line: int, said: str
) -> None:
    """Each page for itself is in order."""
    table = "```table\nscript: memory/methods.py\nrows: [method, batch_size]\ncolumns: [step_time]\n```\n"
    values = "\n\n".join(f"`#!value memory/losses.py#loss[{place}]`" for place in range(2))
    text = f"# T {{ #t }}\n\nWords of a page.\n\n{table}{values}\n"
    pages = [write(project.docs / f"en/{name}.md", text) for name in ("one", "three", "two")]
    assert 2 * made_size(text) < 600 < 3 * made_size(text)
    assert [checked(project, page) for page in pages] == [[], [], []]
    monkeypatch.setattr(f"benchbook.rendering.specs.{end}", most)
    handbook = HandbookCount(machines=2)
    library = Library(project)
    told = [check_page(page, parse_page(text), library, handbook) for page in pages]
    (problem,) = chain.from_iterable(told)
    assert problem.line == line
    assert said.format(3 * made_size(text)) in problem.what


def test_what_a_cell_shows_counts_among_the_characters_of_the_pages(project: Project) -> None:
    text = "# T { #t }\n\n```cell\nmemory/losses.py#train\n```\n"
    page = write(project.docs / "en/memory.md", text)
    handbook = HandbookCount()
    assert check_page(page, parse_page(text), Library(project), handbook) == []
    _, cell, _, found = resolve_cell(Library(project), "memory", "memory/losses.py#train")
    printed = found.result.output["train"].rstrip("\n")
    assert printed
    assert handbook.size == made_size(text) + len(cell.source) + len(printed)


def test_each_claim_note_and_link_of_a_row_is_a_place_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = whole_handbook(tmp_path / "handbook")
    page = project.docs / "en/remedies.md"
    fences = len(page_references(page))
    handbook = HandbookCount()
    assert check_page(page, parse_page(page.read_text("utf-8")), Library(project), handbook) == []
    assert handbook.places == fences + 3
    monkeypatch.setattr("benchbook.rendering.specs.MOST_PLACES_IN_ALL", handbook.places - 1)
    (problem,) = checked(project, page)
    assert (
        f"have {handbook.places} fences, values, notes, links and marks, counted for each machine"
        in problem.what
    )


def test_a_page_has_room_for_some_traces_alone(project: Project) -> None:
    fence = "```trace\nscript: memory/losses.py\ntrace: timeline\ntitle: A{}\n```\n\n"
    page = project.docs / "en/memory.md"
    page.write_text("# T { #t }\n\n" + "".join(map(fence.format, range(40))), "utf-8")
    (problem,) = checked(project, page)
    assert "cells of tables and points of pictures" in problem.what


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("```cell\nmemory/losses.py#train\n```", '```cell source="none"\nmemory/losses.py#train\n\n```'),
        ("```claims\n```", "```claims\n\n```"),
        ("```error-field\na: one\n```", "```error-field\nb: another\n```"),
    ],
)
def test_what_a_fence_names_stands_once_on_a_page(project: Project, first: str, second: str) -> None:
    page = project.docs / "en/memory.md"
    page.write_text(f"# T {{ #t }}\n\n{first}\n", "utf-8")
    assert not [problem for problem in checked(project, page) if "twice" in problem.what]
    page.write_text(f"# T {{ #t }}\n\n{first}\n\n{second}\n", "utf-8")
    (problem,) = (problem for problem in checked(project, page) if "twice" in problem.what)
    assert (problem.path, problem.line) == ("docs/en/memory.md", first.count("\n") + 5)
    build = start(project)
    render(build, page.read_text("utf-8"))
    assert problem in build.problems


def test_a_page_is_checked_without_building_it(project: Project) -> None:
    page = project.docs / "en/memory.md"
    page.write_text("# T { #t }\n\n`#!value a/b.py#c`\n\n`#!value d/e.py#f`\n\n" + cell("g/h.py#i"), "utf-8")
    assert [problem.line for problem in checked(project, page)] == [3, 5, 7]


def test_a_value_in_a_heading_is_a_problem(project: Project) -> None:
    page = project.docs / "en/memory.md"
    page.write_text("# Title `#!value memory/losses.py#difference` { #t }\n", "utf-8")
    assert [problem.what for problem in checked(project, page)] == ["a heading holds a value"]


def test_references_are_found_with_their_lines_wherever_markdown_nests_them(tmp_path: Path) -> None:
    text = (
        "---\ntitle: T\n---\n\nA paragraph with\n`#!value a/b.py#c` on its second line.\n\n"
        '=== "Tab"\n\n    ```cell source="below"\n    a/b.py#d\n    ```\n\n'
        "!!! note\n\n    - `#!value a/b.py#e`\n\n| x |\n|---|\n| `#!value a/b.py#f` |\n"
    )
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    found = [(line, kind, body.strip()) for line, kind, body in page_references(page)]
    assert found == [
        (6, "value", "a/b.py#c"),
        (10, "cell", "a/b.py#d"),
        (16, "value", "a/b.py#e"),
        (20, "value", "a/b.py#f"),
    ]


def test_a_record_without_the_variant_is_a_problem(project: Project) -> None:
    path = project.record_path(CPU, "memory/losses.py")
    record = load_record(path)
    assert record is not None
    record.variants.clear()
    write_record(path, record)
    build = start(project)
    render(build, cell("memory/losses.py#train"))
    assert "was never recorded on fixture-cpu" in str(*build.problems)


def test_no_line_begins_with_the_full_stop_after_a_value() -> None:
    build = start(Project(FIXTURE), "ja")
    shown = render(build, f"値は `#!value {ONE}#peak_memory`。次へ")
    assert '<span class="bb-kept"><button' in shown
    assert "</button>。</span>次へ" in shown
    shown = render(start(Project(FIXTURE)), f"It is `#!value {ONE}#peak_memory`. Next")
    assert "</button>.</span> Next" in shown


def test_every_fence_is_known_to_what_reads_pages_and_to_what_draws_them() -> None:
    assert {one["name"] for one in custom_fences()} == set(FENCES)
