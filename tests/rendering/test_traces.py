"""Traces of records on a page: a timeline of few elements, in each language, and the file to take away."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchbook.content.page_source import parse_page
from benchbook.content.project import Project
from benchbook.content.references import UnresolvedError
from benchbook.content.traces import (
    CATEGORIES,
    LONGEST,
    MOST_EVENTS,
    ProfilerTrace,
    TraceEvent,
    published_events,
)
from benchbook.query.library import Library
from benchbook.rendering import traces
from benchbook.rendering.places import check_page
from benchbook.rendering.specs import HandbookCount
from benchbook.rendering.timeline import (
    WIDTH,
    Timeline,
    TimelineWords,
    draw_timeline,
    drawn_blocks,
    merged,
    timeline,
)
from benchbook.rendering.traces import read_trace_block
from handbooks import (
    CPU,
    FIXTURE,
    GPU,
    build_site,
    copy_handbook,
    edit,
    files_of,
    on_machine,
    plain,
    render,
    start,
)
from tracing import AUTOGRAD, STREAM, event

FENCE = "script: memory/losses.py\ntrace: timeline\ntitle: Waiting & working"
MOST_OF_A_PICTURE = 300


def fence(text: str = FENCE) -> str:
    return f"```trace\n{text}\n```\n"


def drawing(shown: str) -> str:
    found = re.search(r"<svg.*?</svg>", shown, re.S)
    assert found is not None
    return found[0]


def texts(svg: str) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def timeline_of(events: list[dict[str, Any]]) -> Timeline:
    made = published_events({"traceEvents": events})
    return timeline(ProfilerTrace(tuple(TraceEvent(**one) for one in made)))


def drawn(shown: Timeline) -> str:
    return draw_timeline(
        shown, TimelineWords("t", "d", "code", "host", "gpu", {name: name for name in shown.totals})
    )


def elements(svg: str) -> int:
    return svg.count("<") - svg.count("</")


# Where the time went


def test_host_is_the_time_of_the_main_thread_outside_its_operators() -> None:
    shown = timeline_of(
        [
            event("train", 0, 100, "user_annotation"),
            event("aten::linear", 10, 20),
            event("aten::addmm", 12, 10),
            event("aten::relu", 50, 5),
            event("aten::copy_", 60, 30, at=("4711", "9")),
        ]
    )
    assert (shown.host_time, shown.inside_time) == (75, 25)
    assert [(block.start, block.end, block.events) for block in shown.inside] == [(10, 30, 2), (50, 55, 1)]


def test_the_main_thread_is_inside_while_the_backward_pass_runs_in_another() -> None:
    backward = event("autograd::engine::evaluate_function: AddmmBackward0", 40, 50, at=AUTOGRAD)
    shown = timeline_of([event("train", 0, 100, "user_annotation"), event("aten::linear", 0, 10), backward])
    assert (shown.host_time, shown.inside_time) == (40, 60)


def test_annotations_within_others_and_the_profilers_own_frame_are_left_out() -> None:
    shown = timeline_of(
        [
            event("ProfilerStep#1", 0, 100, "user_annotation"),
            event("load", 0, 40, "user_annotation"),
            event("read", 5, 10, "user_annotation"),
            event("train", 40, 60, "user_annotation"),
        ]
    )
    assert [span.name for span in shown.spans] == ["load", "train"]
    assert shown.totals == {"load": 40, "train": 60}


def test_a_device_is_at_work_while_any_of_its_streams_is() -> None:
    shown = timeline_of(
        [
            event("aten::mm", 0, 5),
            event("kernel_a", 3, 10, "kernel", STREAM),
            event("Memcpy HtoD", 8, 10, "gpu_memcpy", ("0", "9")),
            event("kernel_b", 30, 2, "kernel", STREAM),
        ]
    )
    assert (shown.gpu_time, shown.last, shown.length) == (17, 5, 32)


# Numbers only


_TIMES = st.integers(0, 10 * LONGEST).map(lambda tenths: tenths / 10)
_EVENTS = st.lists(st.tuples(st.sampled_from(CATEGORIES), _TIMES, _TIMES), min_size=1, max_size=12)


@given(events=_EVENTS)
@example(events=[("cpu_op", 0.0, 0.1)])
@example(events=[("kernel", 0.0, 0.0)])
def test_whatever_trace_is_let_in_has_a_picture_of_numbers(events: list[tuple[str, float, float]]) -> None:
    shown = timeline_of([event("a", start, lasts, kind) for kind, start, lasts in events])
    assert not re.search(r"\b(?:nan|inf)\b", drawn(shown))


# Few elements


MANY = {
    "apart": [event(f"part {n % 7}", 10 * n, 4, "user_annotation") for n in range(MOST_EVENTS // 2)]
    + [event("aten::op", 10 * n + 5, 3) for n in range(MOST_EVENTS // 2)],
    "uneven": [event("a", n * n, 1, "user_annotation" if n % 2 else "cpu_op") for n in range(MOST_EVENTS)],
    "on a device": [
        event("k", 3 * n, 1, "kernel" if n % 2 else "cpu_op", STREAM) for n in range(MOST_EVENTS)
    ],
    "at once": [event("a", 0, 0, "user_annotation")] * MOST_EVENTS,
    "thousand names": [event(f"n{n % 1000}", n, 1, "user_annotation") for n in range(MOST_EVENTS)],
}


@pytest.mark.parametrize("case", MANY)
def test_twenty_thousand_events_are_at_most_three_hundred_elements(case: str) -> None:
    shown = timeline_of(MANY[case])
    svg = drawn(shown)
    assert elements(svg) <= MOST_OF_A_PICTURE
    blocks = [block for lane in drawn_blocks(shown) for block in lane]
    spread = [one for lane in (shown.spans, shown.inside, shown.gpu) for one in lane]
    assert sum(block.events for block in blocks) == sum(one.events for one in spread)
    for left, width in re.findall(r'<rect x="([^"]*)" y="[^"]*" width="([^"]*)"', svg):
        assert 0 <= float(left) <= float(left) + float(width) <= WIDTH + 0.11


def test_what_is_apart_by_less_than_a_pixel_is_one_block_of_what_took_longest() -> None:
    spans = timeline_of(
        [
            event(name, ts, dur, "user_annotation")
            for name, ts, dur in (("a", 0, 2), ("b", 2.5, 5), ("a", 90, 9))
        ]
    ).spans
    assert [(one.name, one.start, one.end, one.events) for one in merged(spans, 8, 10)] == [
        ("b", 0, 7.5, 2),
        ("a", 90, 99, 1),
    ]


def test_the_description_says_how_many_events_were_merged() -> None:
    shown = render(start(Project(FIXTURE)), fence())
    described = re.findall(r"<desc>(.*?)</desc>", shown)[0].replace("\xa0", " ")
    assert "Events in the trace: 56; blocks drawn: 32; merged into others: 24." in described
    assert "Timeline of 198 ms. Host outside operators: 155 ms; in operators: 43.2 ms." in described


# On a page


def test_the_drawing_has_a_name_and_the_page_s_colours_only() -> None:
    svg = drawing(render(start(Project(FIXTURE)), fence()))
    assert 'role="img"' in svg
    assert re.search(r"<title[^>]*>Waiting &amp; working</title>", svg)
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb|style=|<script|href", svg)
    assert {"var(--bb-series-1)", "var(--bb-series-2)", "var(--bb-ink)"} <= set(
        re.findall(r"var\([^)]*\)", svg)
    )


@pytest.mark.parametrize("code", ["en", "ar", "zh", "ja"])
def test_lanes_are_named_in_the_language_of_the_page_and_time_runs_from_the_left(code: str) -> None:
    build = start(Project(FIXTURE), code)
    svg = drawing(render(build, fence()))
    language = build.here.language
    assert texts(svg)[0] == language.text("trace_code")
    assert language.text("trace_lane") in texts(svg)
    assert language.text("trace_gpu") not in texts(svg)
    ticks = re.findall(r'<text x="([\d.]+)"[^>]* text-anchor="[a-z]*">(\d+)</text>', svg)
    assert [number for _, number in ticks] == ["0", "50", "100", "150"]
    assert [float(place) for place, _ in ticks] == sorted(float(place) for place, _ in ticks)
    side = f'x="{WIDTH if code == "ar" else 0}"'
    (head,) = re.findall(rf"<text ([^>]*)>{re.escape(language.text('trace_lane'))}<", svg)
    assert side in head
    assert f'direction="{"rtl" if code == "ar" else "ltr"}"' in head


def test_annotations_are_called_what_the_language_calls_them(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path / "handbook")
    for code, word in (("en", "loading"), ("ja", "読み込み")):
        label = f'labels:\n  "memory/losses.py#span=load": {word}\n'
        edit(project.docs / code / "_language.yml", "labels:\n", label)
    shown = render(start(project, "ja"), fence())
    assert "読み込み" in texts(drawing(shown))
    assert "読み込み 120 ms" in plain(shown)
    assert "train 72 ms" in plain(shown)


def test_a_gpu_has_a_lane_of_its_own_where_a_reader_chooses_it() -> None:
    build = start(Project(FIXTURE))
    render(build, fence())
    elsewhere = on_machine(build, GPU).replace("\xa0", " ")
    assert "GPU" in texts(drawing(elsewhere))
    assert "GPU at work: 48 ms." in elsewhere
    assert f"downloads/records/{GPU}/memory/losses/" in elsewhere


def test_the_origin_and_its_state_are_told_below(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path / "handbook")
    assert "bb-stale" not in render(start(project), fence())
    edit(project.snippets / "memory/losses.py", "1 / (1 + step)", "2 / (2 + step)")
    shown = render(start(project), fence())
    assert "Fixture CPU · torch 2.12 · Nov 2026" in plain(shown).replace("\xa0", " ")
    assert "older code" in plain(shown)


def test_the_file_can_be_taken_away_and_opened() -> None:
    shown = render(start(Project(FIXTURE), root="../"), fence())
    (address, name) = re.findall(r'<a href="([^"]*)" download="([^"]*)">', shown)[0]
    assert name == "losses.timeline.json.gz"
    assert (FIXTURE / "snippets" / address.removeprefix("../downloads/")).is_file()
    assert '<a href="https://ui.perfetto.dev">' in shown
    assert "To open it, drag the file to ui.perfetto.dev or chrome://tracing." in plain(shown)


def test_two_builds_are_the_same_bytes_and_hold_the_file_once(tmp_path: Path) -> None:
    sites = []
    for name in ("one", "two"):
        project = copy_handbook(tmp_path / name)
        for code in ("en", "ar"):
            (project.docs / code / "memory.md").write_text(f"# A {{ #a }}\n\n{fence()}", "utf-8")
        sites.append(files_of(build_site(project)))
    assert sites[0] == sites[1]
    packed = [name for name in sites[0] if name.endswith(".json.gz")]
    assert sorted(name.split("/")[2] for name in packed) == [CPU, GPU]


# What is refused


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (FENCE.replace("timeline", "timelin"), "declares no trace `timelin`"),
        (FENCE.replace("trace: timeline\n", ""), "the trace has no `trace:`"),
        (FENCE + "\nx: step", "a trace has no key `x`"),
        (FENCE.replace("losses", "loss"), "there is no script `memory/loss.py`"),
        (FENCE + "\nmachine: gpu", "there is no machine `gpu`"),
        (FENCE + "\nwhere: {n: 2}", "does not sweep `n`"),
        (FENCE.replace("losses", "methods"), "the trace is of 6 variants"),
        ("script: memory/methods.py\nwhere: {method: plain, batch_size: 1}\ntrace: t\ntitle: T", "declares no trace"),
    ],
)  # fmt: skip
def test_a_fence_that_asks_for_what_is_not_there_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnresolvedError) as caught:
        read_trace_block(text, Library(Project(FIXTURE)))
    assert why in str(caught.value)


def test_a_variant_without_a_trace_is_told_with_the_line_of_the_fence(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path / "handbook")
    path = project.record_path(CPU, "memory/losses.py")
    record = json.loads(path.read_text("utf-8"))
    del record["variants"]["default"]["traces"]
    path.write_text(json.dumps(record), "utf-8")
    page = project.docs / "en/memory.md"
    page.write_text(f"# A {{ #a }}\n\n{fence()}", "utf-8")
    (problem,) = check_page(page, parse_page(page.read_text("utf-8")), Library(project))
    assert str(problem) == (
        f"docs/en/memory.md:3: nothing of this trace was recorded on {CPU}; "
        "record it there: benchbook record memory/losses.py"
    )
    build = start(project)
    assert "bb-problem" in render(build, fence())
    assert build.failures == []


def test_a_file_that_is_gone_or_changed_is_told(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path / "handbook")
    (path,) = (project.records / CPU).rglob("*.json.gz")
    for damage, why in (
        (lambda: path.write_bytes(b"x"), "its digest differs"),
        (path.unlink, "is not there"),
    ):
        damage()
        build = start(project)
        assert "bb-problem" in render(build, fence())
        assert why in str(build.problems)
        assert build.failures == []


def test_a_timeline_is_made_once_for_all_fences_and_languages(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def noted(trace: ProfilerTrace) -> Timeline:
        made.append(id(trace))
        return timeline(trace)

    monkeypatch.setattr(traces, "timeline", noted)
    project = Project(FIXTURE)
    build = start(project)
    for language in ("en", "ja"):
        build.page = start(project, language).page
        assert "<svg" in render(build, fence() + "\n" + fence(FENCE.replace("Waiting", "Again")))
    assert len(made) == len(set(made)) > 0


def test_each_title_of_a_trace_is_a_picture_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copy_handbook(tmp_path)
    page = project.docs / "en/memory.md"
    text = "# T { #t }\n\n" + "\n".join(fence(FENCE.replace("Waiting", name)) for name in ("One", "Two"))
    page.write_text(text, "utf-8")
    handbook = HandbookCount()
    assert check_page(page, parse_page(text), Library(project), handbook) == []
    monkeypatch.setattr("benchbook.rendering.specs.MOST_PICTURES", len(handbook.pictures) - 1)
    (problem,) = check_page(page, parse_page(text), Library(project))
    assert f"draw {len(handbook.pictures)} pictures, counted for each machine" in problem.what


def test_a_fence_pinned_to_a_machine_follows_no_choice() -> None:
    build = start(Project(FIXTURE))
    shown = render(build, fence(f"{FENCE}\nmachine: {GPU}"))
    assert f'data-machine="{GPU}"' in shown
    assert "data-bb=" not in shown
