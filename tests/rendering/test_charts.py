"""Charts of records."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.metadata import MOST_TINY
from benchbook.content.project import Project
from benchbook.content.references import UnresolvedError
from benchbook.query.library import Library
from benchbook.rendering import tradeoffs
from benchbook.rendering.charts import line_name, read_chart, render_chart, resolve_chart
from benchbook.rendering.drawing import Line, draw_chart, draw_points, line_ends
from benchbook.rendering.labels import axis_label
from benchbook.rendering.specs import PageCount
from benchbook.rendering.tradeoffs import MOST_POINTS, pareto_front, read_tradeoff
from handbooks import FIXTURE, GPU, copy_handbook, list_points, on_machine, plain, render, start

SWEEP = "script: memory/methods.py\nx: batch_size\ny: peak_memory\nseries: method\ntitle: Peak & batch"
SERIES = "script: memory/losses.py\nx: step\ny: loss\ntitle: Loss"


def chart(text: str) -> str:
    return f"```chart\n{text}\n```\n"


def drawing(shown: str) -> str:
    found = re.search(r"<svg.*?</svg>", shown, re.S)
    assert found is not None
    return found[0]


def test_the_drawing_holds_digits_and_the_page_s_colours_only() -> None:
    svg = drawing(render(start(Project(FIXTURE)), chart(SWEEP)))
    assert re.fullmatch(r"[\d.,−]*", "".join(re.findall(r">([^<]*)<", svg)))
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb", svg)
    assert "var(--bb-series-1)" in svg
    assert "var(--bb-series-2)" in svg


def test_the_words_are_html_in_the_page_s_language() -> None:
    build = start(Project(FIXTURE), "zh")
    shown = plain(render(build, chart(SERIES)))
    assert build.here.language.text("show_data") in shown
    assert str(build.here.language.label("step")) in shown


def test_the_drawing_has_a_name_and_its_figures_a_table() -> None:
    shown = render(start(Project(FIXTURE)), chart(SWEEP))
    assert 'role="img" aria-label="Peak &amp; batch" dir="ltr"' in shown
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", shown)
    assert [plain(row.replace("</td>", " ")) for row in rows] == ["12 1", "24 2", "4— 4"]


def names(shown: str) -> list[tuple[str, str]]:
    """Where the names beside the lines stand, and what they say."""
    found = re.findall(r'<li( hidden| style="--bb-end:[^"]*")>(.*?)</li>', shown)
    return [
        (place.strip().removeprefix('style="--bb-end:').rstrip('"'), plain(name)) for place, name in found
    ]


def test_up_to_four_lines_have_their_names_beside_their_last_points() -> None:
    shown = render(start(Project(FIXTURE)), chart(SWEEP))
    assert '<div class="bb-legend bb-direct">' in shown
    (first, plain_name), (second, checkpointing_name) = names(shown)
    assert (plain_name, checkpointing_name) == ("● plain", "■ checkpointing")
    # Both end at 4 GiB, the top of the scale: side by side, none on the other.
    assert float(first) < 0.1
    assert float(second) - float(first) == pytest.approx(0.075, abs=0.001)


def test_a_line_without_a_point_has_no_name_beside_it() -> None:
    shown = render(start(Project(FIXTURE)), chart(SWEEP + "\nwhere: {batch_size: 4}"))
    assert [place == "hidden" for place, _ in names(shown)] == [True, False]


def test_a_name_that_is_a_number_says_of_what() -> None:
    sweep = SWEEP.replace("x: batch_size", "x: step").replace("series: method", "series: batch_size")
    text = sweep.replace("y: peak_memory", "y: step_time") + "\nwhere: {method: plain}"
    with pytest.raises(UnresolvedError, match="one number, not a series"):
        render_chart(start(Project(FIXTURE)), text)
    build = start(Project(FIXTURE))
    read = read_chart(text, build.library)
    label = axis_label(build.here.language, "batch_size", 2, "memory/methods.py")
    assert plain(line_name(read, 2, label, build.here.language)) == "batch_size: 2"
    assert line_name(read, "plain", "plain", build.here.language) == "plain"


def test_more_than_four_lines_have_a_legend_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchbook.rendering.charts._NAMED", 1)
    shown = render(start(Project(FIXTURE)), chart(SWEEP))
    assert '<div class="bb-legend">' in shown
    assert "bb-ends" not in shown


def test_names_keep_apart_in_the_order_of_their_lines_and_inside_the_drawing() -> None:
    lines = [Line(((0, 0.0), (1, height))) for height in (0.0, 10.0, 0.01, 5.0)] + [Line(())]
    bottom, top, above, middle, none = line_ends(draw_chart(lines), len(lines))
    assert none is None
    assert top is not None
    assert middle is not None
    assert above is not None
    assert bottom is not None
    assert 0 <= top < middle < above < bottom < 1
    assert bottom - above == pytest.approx(0.075, abs=0.002)


@pytest.mark.parametrize("first", [MOST_TINY, 1.0, math.nextafter(1 / MOST_TINY, 0)])
@pytest.mark.parametrize("log", [False, True])
def test_values_beside_each_other_are_drawn_at_the_ends_of_what_an_axis_holds(
    first: float, log: bool
) -> None:
    values = [first]
    while len(values) < 10:
        values.append(math.nextafter(values[-1], 0 if first > 1 else 1))
    for points in ([(x, float(y)) for y, x in enumerate(values, 1)], [(1.0, y) for y in values]):
        assert "NaN" not in draw_chart([Line(tuple(points))], log_x=log, log_y=log)


def test_one_drawing_serves_all_languages() -> None:
    project = Project(FIXTURE)
    assert drawing(render(start(project, "en"), chart(SWEEP))) == drawing(
        render(start(project, "ar"), chart(SWEEP.replace("Peak & batch", "ذروة")))
    )


def test_two_drawings_of_the_same_points_are_the_same_bytes() -> None:
    lines = [Line(((1, 1e-8), (2, 3e-8))), Line(((1, 2e-8),))]
    assert draw_chart(lines, log_y=True) == draw_chart(lines, log_y=True)


def test_the_labels_of_a_drawing_keep_their_places_at_any_size_of_text() -> None:
    svg = draw_chart([Line(((1, 1.0), (2, 3.0)))])
    assert re.search(r'<svg [^>]*font-size="22"', svg)
    labels = re.findall(r"<text[^>]*>", svg)
    assert labels
    assert all(re.search(r' dy="0\.(32|79)em"', label) and "font-size" not in label for label in labels)


def test_the_data_of_a_chart_unfold_under_a_word_that_says_so() -> None:
    for code in ("en", "ar", "zh", "ja"):
        build = start(Project(FIXTURE), code)
        word = build.here.language.text("show_data")
        assert f"<summary>{word}</summary>" in render(build, chart(SERIES))


def test_a_drawing_is_kept_from_one_build_to_the_next(tmp_path: Path) -> None:
    lines = [Line(((1, 1.0), (2, 3.0)))]
    drawn = draw_chart(lines, cache=tmp_path)
    (kept,) = tmp_path.glob("*.svg")
    assert kept.read_text("utf-8") == drawn == draw_chart(lines)
    kept.write_text("<svg/>", "utf-8")
    assert draw_chart(lines, cache=tmp_path) == "<svg/>"
    assert draw_chart(lines, log_y=True, cache=tmp_path) != "<svg/>"


def test_a_drawing_that_was_kept_by_half_or_not_at_all_is_drawn_again(tmp_path: Path) -> None:
    lines = [Line(((1, 1.0), (2, 3.0)))]
    drawn = draw_chart(lines, cache=tmp_path)
    (kept,) = tmp_path.glob("*.svg")
    kept.write_text(drawn[:-9], "utf-8")
    assert draw_chart(lines, cache=tmp_path) == drawn == kept.read_text("utf-8")
    assert draw_chart(lines, cache=kept / "a file is no folder") == drawn


def test_a_label_that_would_lie_on_another_is_left_out() -> None:
    sweep = [Line(tuple((float(2**power), 1.0) for power in range(7)))]
    labels = re.findall(r'<text text-anchor="middle"[^>]*>([^<]*)<', draw_chart(sweep))
    assert labels == ["1", "8", "16", "32", "64"]
    spread = re.findall(r'<text text-anchor="middle"[^>]*>([^<]*)<', draw_chart(sweep, log_x=True))
    assert spread == ["1", "2", "4", "8", "16", "32", "64"]


def test_a_line_keeps_its_colour_where_another_has_no_point() -> None:
    project = Project(FIXTURE)
    text = SWEEP + "\nwhere: {batch_size: 4}"
    shown = render(start(project), chart(text))
    assert "var(--bb-series-2)" in drawing(shown)
    assert "var(--bb-series-1)" not in drawing(shown)


def test_other_machines_go_to_the_data_of_the_guide() -> None:
    build = start(Project(FIXTURE))
    render(build, chart(SERIES))
    shown = on_machine(build, GPU)
    assert '<th scope="row"><bdi dir="ltr">2</bdi></th><td><bdi dir="ltr">0.25</bdi></td>' in shown
    assert "bb-ends" not in shown
    assert drawing(shown) != drawing(render(build, chart(SERIES)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (
            SWEEP.replace("x: batch_size", "x: method").replace("series: method", "series: batch_size"),
            "no scale",
        ),
        (SWEEP.replace("\nseries: method", ""), "share a point"),
        (SWEEP.replace("batch_size", "batches"), "does not sweep `batches`"),
        (SWEEP + "\nlog: z", "`log:` names no axis"),
        (SWEEP + "\nlog: {x: 1}", "`log:` names no axis"),
        (SWEEP.replace("title: Peak & batch", ""), "has no `title:`"),
        (SWEEP.replace("title: Peak & batch", "title: [Peak, batch]"), "`title:` is not text"),
        (SERIES.replace("loss\n", "lost\n"), "no metric `lost`"),
    ],
)
def test_a_chart_of_what_is_not_there_is_refused(text: str, what: str) -> None:
    with pytest.raises(UnresolvedError, match=re.escape(what)):
        read_chart(text, Library(Project(FIXTURE)))


def test_a_point_without_a_value_on_the_axis_stands_where_it_runs(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    list_points(project)
    read = read_chart(SWEEP, Library(project))
    assert [variant.at(read.x) for variant in read.variants] == [1, 2]


def test_a_series_needs_steps_and_a_number_an_axis() -> None:
    library = Library(Project(FIXTURE))
    with pytest.raises(UnresolvedError, match="one number, not a series"):
        resolve_chart(library, "memory", SERIES.replace("y: loss", "y: difference"), PageCount())


# Trade-offs


TRADEOFF = """title: Memory against time
script: memory/methods.py
points: method
where: {batch_size: 2}
x: peak_memory
y: step_time
"""


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    places = [(1.0, 5.0), (2.0, 4.0), (2.0, 6.0), None, (3.0, 3.0), (3.0, 3.5)]
    assert pareto_front(places, higher_x=False, higher_y=False) == {0, 1, 4}
    assert pareto_front(places, higher_x=False, higher_y=True) == {0, 2}
    assert pareto_front([(1.0, 1.0), (1.0, 1.0)], higher_x=False, higher_y=False) == {0, 1}


def test_a_trade_off_numbers_its_points_and_names_them_below() -> None:
    shown = render(start(Project(FIXTURE)), f"```tradeoff\n{TRADEOFF}```\n")
    assert re.findall(r"<text[^>]*>([0-9]+)</text>", shown)[-2:] == ["1", "2"]
    names = re.findall(r'<li class="(bb-\w+)">(.*?)</li>', shown)
    assert [plain(name) for _, name in names] == ["plain", "checkpointing"]
    assert {state for state, _ in names} <= {"bb-front", "bb-behind"}
    assert "Memory against time" in shown


def test_a_trade_off_is_drawn_once_for_all_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def noted(*what: Any) -> str:
        drawn.append(repr(what))
        return draw_points(*what)

    monkeypatch.setattr(tradeoffs, "draw_points", noted)
    project = Project(FIXTURE)
    build = start(project)
    for language in ("en", "ja"):
        build.page = start(project, language).page
        assert "<svg" in render(build, f"```tradeoff\n{TRADEOFF}```\n")
    assert len(drawn) == len(set(drawn)) > 0


def test_a_point_that_was_not_measured_keeps_its_number() -> None:
    text = TRADEOFF.replace("batch_size: 2", "batch_size: 4")
    shown = render(start(Project(FIXTURE)), f"```tradeoff\n{text}```\n")
    assert re.findall(r'<li class="(bb-\w+)">', shown) == ["bb-absent", "bb-front"]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("points: method", "points: methods", "does not sweep `methods`"),
        ("where: {batch_size: 2}\n", "", "two variants share a point"),
        ("x: peak_memory", "x: peak", "has no metric `peak`"),
        ("y: step_time\n", "", "the tradeoff has no `y:`"),
    ],
)
def test_a_trade_off_that_asks_for_what_is_not_there_is_refused(old: str, new: str, what: str) -> None:
    with pytest.raises(UnresolvedError, match=what):
        read_tradeoff(TRADEOFF.replace(old, new), Library(Project(FIXTURE)))


def test_a_picture_has_at_most_three_hundred_elements() -> None:
    places = [(float(n), float((n * 7) % 30)) for n in range(MOST_POINTS)]
    assert draw_points(places, frozenset(range(MOST_POINTS))).count("<") < 300


def test_the_numbers_of_neighbouring_points_keep_clear_of_each_other() -> None:
    svg = draw_points([(100.0, 10.0), (101.0, 10.1), (50.0, 5.0)], frozenset({0}))
    found = re.findall(
        r'<text text-anchor="start" transform="translate\(([^,]+),([^)]+)\)"[^>]*>(\d)</text>', svg
    )
    places = {name: (float(x), float(y)) for x, y, name in found}
    assert set(places) == {"1", "2", "3"}
    (x, y), (other_x, other_y) = places["1"], places["2"]
    assert abs(x - other_x) >= 13 or abs(y - other_y) >= 16
