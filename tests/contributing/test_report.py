"""A report says what lies between two revisions, and nothing in them is taken for markup or run."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from benchbook.content.predictions import load_predictions, write_predictions
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.revisions import BENCHMARKS, laid_out
from benchbook.contributing.benchmark_results import BenchmarkResult, keep_results, load_results
from benchbook.contributing.report import (
    LARGEST_REPORT,
    LISTS,
    Change,
    ChangeReport,
    Direction,
    Moved,
    PredictionChange,
    RecordChange,
    Timed,
    dump_report,
    make_report,
    read_report,
)
from benchbook.contributing.report_text import LONGEST, MOST_ROWS, literal, markdown
from benchbook.contributing.shortening import shortened
from builders import MACHINE, SCRIPT, SWEEP, make_project, make_record, write
from predicted import H200, adding, predict
from repositories import commit_all, git


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def record(project: Project) -> Path:
    return project.record_path(MACHINE, "sums/add.py")


def test_a_number_that_changed_is_named_with_both_and_their_ratio(project: Project) -> None:
    base = commit_all(project.root)
    text = record(project).read_text("utf-8")
    write(record(project), text.replace('"total": 6', '"total": 9').replace('"total": 8', '"total": 9'))
    head = commit_all(project.root)
    report = make_report(project.root, base, head)
    assert report.changes == ()
    (change,) = report.undecided
    assert (change.machine, change.script, change.variant, change.quantity) == (
        MACHINE,
        "sums/add.py",
        "default",
        "total",
    )
    assert (change.before, change.after) == (7, 9)
    assert change.ratio == pytest.approx(9 / 7)
    said = markdown(report)
    assert "| `cpu-test` | `sums/add.py#total` | `7 count` | `9 count` | `1.286 [" in said
    assert "too few samples to tell" in said


def test_an_exact_number_that_changed_is_certain(project: Project) -> None:
    text = record(project).read_text("utf-8")
    for total in (6, 8):
        text = text.replace(f'"total": {total}', '"total": 7')
    write(record(project), text)
    base = commit_all(project.root)
    write(record(project), text.replace('"total": 7', '"total": 70'))
    report = make_report(project.root, base, commit_all(project.root))
    assert report.undecided == ()
    (change,) = report.changes
    assert (change.before, change.after) == (7, 70)


def test_a_record_that_became_stale_is_named_with_the_reason(project: Project) -> None:
    base = commit_all(project.root)
    write(project.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    head = commit_all(project.root)
    assert make_report(project.root, base, head).stale == (
        RecordChange(MACHINE, "sums/add.py", "default", "stale: code changed"),
    )
    assert make_report(project.root, head, base).fresh == (
        RecordChange(MACHINE, "sums/add.py", "default", "stale: code changed"),
    )


def test_a_metric_whose_better_end_is_another_is_named(project: Project) -> None:
    path = project.snippets / "sums/add.py"
    write(path, SCRIPT.replace('{ unit = "count" }', '{ unit = "count", better = "lower" }'))
    base = commit_all(project.root)
    write(path, SCRIPT.replace('{ unit = "count" }', '{ unit = "count", better = "higher" }'))
    report = make_report(project.root, base, commit_all(project.root))
    assert report.directions == (Direction("sums/add.py", "total", "lower", "higher"),)
    assert "| `sums/add.py#total` | `lower` | `higher` |" in markdown(report)
    assert make_report(project.root, base, base).directions == ()


def test_predictions_that_are_another_are_named_and_those_that_are_new(tmp_path: Path) -> None:
    project = adding(tmp_path)
    base = commit_all(project.root)
    predict(project)
    first = commit_all(project.root)
    new = make_report(project.root, base, first).predictions
    assert {one.machine for one in new} == {H200, MACHINE}
    assert {one.before for one in new} == {None}
    path = project.prediction_path(MACHINE, "sums/add.py")
    record = load_predictions(path)
    assert record is not None
    plain = record.variants["mode=plain"]
    larger = replace(plain, values=plain.values | {"peak": 3 * plain.values["peak"]})
    sealed = {"mode=plain": larger.sealed("sums/add.py", "mode=plain", MACHINE)}
    write_predictions(path, replace(record, variants=sealed))
    report = make_report(project.root, first, commit_all(project.root))
    peak = plain.values["peak"]
    changed, *gone = report.predictions
    assert changed == PredictionChange(MACHINE, "sums/add.py", "mode=plain", "peak", peak, 3 * peak)
    assert {(one.variant, one.after) for one in gone} == {("mode=lean", None)}
    said = markdown(report)
    assert f"| `{MACHINE}` | `sums/add.py?mode=plain#peak` | `{peak} B` | `{3 * peak} B` | `3.000` |" in said
    assert f"{len(report.predictions)} prediction(s) are another" in said


def test_a_prediction_made_anew_is_named_beside_the_blind_one(tmp_path: Path) -> None:
    project = adding(tmp_path)
    predict(project)
    base = commit_all(project.root)
    path = project.prediction_path(H200, "sums/add.py")
    record = load_predictions(path)
    assert record is not None
    blind = record.variants["mode=plain"]
    anew = replace(blind, blind=False).sealed("sums/add.py", "mode=plain", H200)
    both = replace(record, variants=record.variants | {"mode=plain": replace(blind, anew=anew)})
    write_predictions(path, both)
    report = make_report(project.root, base, commit_all(project.root))
    assert {(one.quantity, one.before) for one in report.predictions} == {
        (f"{name}, anew", None) for name in blind.values
    }


def test_damaged_predictions_are_a_problem_and_no_end(tmp_path: Path) -> None:
    project = adding(tmp_path)
    predict(project)
    base = commit_all(project.root)
    path = project.prediction_path(H200, "sums/add.py")
    write(path, path.read_text("utf-8").replace('"schema": 1', '"schema": 2'))
    report = make_report(project.root, base, commit_all(project.root))
    assert [one for one in report.problems if one.startswith(project.relative(path))]
    assert {one.after for one in report.predictions} == {None}


def test_records_that_come_and_go_are_named(project: Project) -> None:
    base = commit_all(project.root)
    write(project.snippets / "sums/add.py", SWEEP)
    from benchbook.content.records import write_record

    write_record(record(project), make_record(SWEEP))
    report = make_report(project.root, base, commit_all(project.root))
    assert [each.variant for each in report.came] == ["steps=1", "steps=2"]
    assert [each.variant for each in report.went] == ["default"]


CLAIM = f"""[[claim]]
id = "sums-are-large"
a = "sums/add.py#total"
relation = "greater"
b = 5
machines = {{ "{MACHINE}" = "holds" }}
"""


def with_total(project: Project, total: int) -> None:
    """Let every run of the record have yielded the same."""
    text = re.sub(r'"total": \d+', f'"total": {total}', record(project).read_text("utf-8"))
    write(record(project), text)


def test_a_claim_that_moved_is_named_with_both_outcomes(project: Project) -> None:
    with_total(project, 7)
    unclaimed = commit_all(project.root)
    write(project.snippets / "sums/claims.toml", CLAIM)
    base = commit_all(project.root)
    with_total(project, 3)
    head = commit_all(project.root)
    assert make_report(project.root, unclaimed, base).claims == (
        Moved("sums-are-large", MACHINE, None, "holds"),
    )
    report = make_report(project.root, base, head)
    assert report.claims == (Moved("sums-are-large", MACHINE, "holds", "refuted"),)
    assert "| `sums-are-large` | `cpu-test` | `holds` | `refuted` |" in markdown(report)


def test_a_claim_that_cannot_be_judged_is_a_problem(project: Project) -> None:
    base = commit_all(project.root)
    write(project.snippets / "sums/claims.toml", CLAIM.replace("#total", "#absent"))
    (problem,) = make_report(project.root, base, commit_all(project.root)).problems
    assert problem.startswith("snippets/sums/claims.toml:3: ")


def test_what_nothing_changed_is_said_to_be_so(project: Project) -> None:
    base = commit_all(project.root)
    assert "no number and no claim moved" in markdown(make_report(project.root, base, base))


def test_a_damaged_record_is_a_problem_and_no_end(project: Project) -> None:
    base = commit_all(project.root)
    write(record(project), "{")
    report = make_report(project.root, base, commit_all(project.root))
    assert len(report.problems) == 1
    assert "is not JSON" in report.problems[0]
    assert "1 problem(s)" in markdown(report)


def test_the_working_tree_is_neither_read_nor_touched(project: Project) -> None:
    base = commit_all(project.root)
    write(record(project), "unfinished")
    assert make_report(project.root, base, "HEAD").problems == ()
    assert record(project).read_text("utf-8") == "unfinished"


@pytest.mark.parametrize("revision", ["no-such-branch", "", "--upload-pack=touch x", "HEAD:snippets"])
def test_what_is_no_revision_is_refused(project: Project, revision: str) -> None:
    commit_all(project.root)
    with pytest.raises(BenchbookError, match="is not a revision"):
        make_report(project.root, revision, "HEAD")


def test_links_and_what_git_would_run_are_left_out(project: Project, tmp_path: Path) -> None:
    (project.snippets / "sums/passwd.py").symlink_to("/etc/passwd")
    write(project.root / "snippets/.gitattributes", "*.py filter=evil export-ignore\n")
    git_evil = f"touch {tmp_path / 'evil'}"
    commit_all(project.root)
    git(project.root, "config", "filter.evil.smudge", git_evil)
    with laid_out(project.root, "HEAD") as found:
        assert sorted(found.scripts()) == ["sums/add.py"]
        assert (found.snippets / "sums/add.py").read_text("utf-8") == SCRIPT
    assert not (tmp_path / "evil").exists()


def commit_of_trees(root: Path, names: list[str], depth: int) -> str:
    """A commit whose `docs` holds, in so many folders, one folder of nothing under each name: few objects."""

    def tree(listed: str) -> str:
        command = ["git", "-C", str(root), "mktree"]
        return subprocess.run(
            command, input=listed, capture_output=True, text=True, check=True
        ).stdout.strip()

    inner = tree("")
    for _ in range(depth):
        inner = tree("".join(f"040000 tree {inner}\t{name}\n" for name in names))
    return git(root, "commit-tree", "-m", "Trees", tree(f"040000 tree {inner}\tdocs\n"))


@pytest.mark.parametrize(
    ("names", "depth", "what"),
    [
        (list("0123456789"), 6, "lists more than 100000 files and folders of pages and records; leave out"),
        (["a", "b"], 60, "has files in more than 8 folders below `docs`, and nothing lies as deep; put"),
        (
            ["x" * 121],
            1,
            "has a name of 121 characters below `docs`; give it a shorter one: 120 are the most",
        ),
        (["x" * 200_000], 1, "has a name of "),
    ],
    ids=["wide", "deep", "long", "longer than is read"],
)
def test_a_tree_that_has_no_end_is_refused_while_it_is_listed(
    project: Project, names: list[str], depth: int, what: str
) -> None:
    commit_all(project.root)
    bomb = commit_of_trees(project.root, names, depth)
    with pytest.raises(BenchbookError) as caught:
        make_report(project.root, "HEAD", bomb)
    assert str(caught.value).startswith(f"{bomb}:1: {what}")
    assert "\n" not in str(caught.value)


# What the report holds is anybody's


HOSTILE = [
    "@everyone",
    "<img src=x onerror=alert(1)>",
    "</code><script>alert(1)</script>",
    "[here](https://example.org)",
    "![x](https://example.org/x.png)",
    "https://example.org www.example.org a@example.org",
    "a|b|c",
    "`code` ``more``",
    "a\\|b\\\\|c\\",
    "line\nbreak\r\n\n# heading",
    "\u202eturned\u2066",
    "#1 owner/name#1 GH-1",
    " ",
    "",
]
REPORT = ChangeReport("a" * 40, "b" * 40)


def cells(text: str) -> list[Token]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    at = [number for number, token in enumerate(tokens) if token.type == "td_open"]
    return [tokens[number + 1] for number in at]


def is_literal(token: Token) -> bool:
    return [child.type for child in token.children or []] == ["code_inline"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_are_shown_and_never_markup(text: str) -> None:
    change = Change(text, text, text, text, text, 1.0, 2.0, 2.0, (1.5, 2.5))
    recorded = RecordChange(text, text, text, text)
    report = ChangeReport(
        text,
        text,
        claims=(Moved(text, text, text, None),),
        changes=(change,),
        came=(recorded,),
        went=(recorded,),
        stale=(recorded,),
        problems=(text,),
    )
    found = cells(markdown(report))
    assert len(found) == 4 + 5 + 2 + 2 + 3 + 1
    assert all(is_literal(cell) for cell in found)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_one_literal_cell(text: str) -> None:
    found = cells(f"| a | b |\n| --- | --- |\n| {literal(text)} | {literal(text)} |\n")
    assert len(found) == 2
    assert all(is_literal(cell) for cell in found)


# A change may be large, and so may its words


def changed(number: int) -> Change:
    variant = f"batch_size={number},precision=bf16"
    return Change(MACHINE, "sums/add.py", variant, "train.allocated_peak", "B", 1.0, 2.0, 2.0, (1.9, 2.1))


def moved(number: int, length: int = 0) -> Moved:
    return Moved(f"claim-{number}-".ljust(length, "c"), MACHINE, "holds", "refuted")


LONG = "word" * 300
MANY = tuple(RecordChange(LONG, LONG, f"{LONG}{n}", LONG) for n in range(600))
CHANGES = (Change(LONG, LONG, LONG, LONG, LONG, 1.0, 2.0, 2.0, (1.5, 2.5)),) * 600
FULL = ChangeReport(
    "a" * 40,
    "b" * 40,
    claims=tuple(moved(n) for n in range(600)),
    directions=(Direction(LONG, LONG, "lower", None),) * 600,
    changes=CHANGES,
    undecided=CHANGES,
    predictions=(PredictionChange(LONG, LONG, LONG, LONG, 2**50, None),) * 600,
    came=MANY,
    went=MANY,
    stale=MANY,
    fresh=MANY,
    problems=(LONG,) * 600,
    benchmarks=(Timed(LONG, LONG, LONG, LONG, 1.0, 2.0, 1.5),) * 600,
)
HEADINGS = re.compile(r"^### (.*)$", re.MULTILINE)


def claims_shown(text: str) -> int:
    return text.count("| `holds` | `refuted` |")


def on_its_way(report: ChangeReport, folder: Path) -> ChangeReport:
    """What is read of it where it is shown."""
    return read_report(write(folder / "report.json", dump_report(report)))


def test_five_thousand_changed_numbers_are_reported_with_their_count(tmp_path: Path) -> None:
    report = replace(REPORT, claims=(moved(1),), changes=tuple(map(changed, range(5000))))
    shown = on_its_way(report, tmp_path)
    assert shown.count("changes") == 5000
    said = markdown(shown)
    assert "5000 number(s) changed" in said
    assert f"... and {5000 - MOST_ROWS} more." in said
    assert claims_shown(said) == 1


@pytest.mark.parametrize("word", [LONG, "\U0001f600" * 5000, "\x00" * 5000, '"\\' * 5000])
def test_whatever_is_written_can_be_read_and_keeps_its_counts(tmp_path: Path, word: str) -> None:
    many = (RecordChange(word, word, word, word),) * 3000
    changes = (Change(word, word, word, word, word, 1.0, 2.0, 2.0, (1.5, 2.5)),) * 3000
    lists = dict.fromkeys(("came", "went", "stale", "fresh"), many)
    report = replace(FULL, **lists, changes=changes, undecided=changes, problems=(word,) * 3000)
    written = dump_report(report)
    assert len(written.encode()) <= LARGEST_REPORT
    shown = on_its_way(report, tmp_path)
    assert {name: shown.count(name) for name in LISTS} == {name: report.count(name) for name in LISTS}
    assert shown.claims == report.claims
    assert dump_report(shown) == written


def test_what_does_not_fit_is_left_out_from_the_end_and_named_with_its_count() -> None:
    said = markdown(FULL)
    assert len(said.encode()) <= LONGEST
    assert HEADINGS.findall(said)[:2] == ["Claims that moved", "Metrics whose better end is another"]
    assert said.endswith("Benchmarks of the package (600); What cannot be read (600).\n")


@pytest.mark.parametrize("length", [0, 60, 200])
def test_claims_that_moved_are_all_shown_before_anything_else_is(length: int) -> None:
    report = replace(FULL, claims=tuple(moved(n, length) for n in range(500)))
    said = markdown(report)
    assert claims_shown(said) == 500
    assert len(said.encode()) <= LONGEST


def test_more_claims_than_a_comment_holds_are_counted(tmp_path: Path) -> None:
    shown = on_its_way(replace(FULL, claims=tuple(map(moved, range(20_000)))), tmp_path)
    said = markdown(shown)
    assert len(said.encode()) <= LONGEST
    assert HEADINGS.findall(said) == ["Claims that moved"]
    (more,) = re.findall(r"\.\.\. and (\d+) more\.", said)
    assert claims_shown(said) + int(more) == 20_000
    assert claims_shown(said) > 500


def test_long_words_are_shortened_and_no_table_is_taken_away() -> None:
    few = replace(FULL, claims=(moved(1, 2000),))
    said = markdown(few)
    assert len(said.encode()) <= LONGEST
    assert len(HEADINGS.findall(said)) == len(LISTS)
    assert "`claim-1-ccc" in said


def test_a_word_is_shortened_in_its_middle() -> None:
    assert literal("snippets/" + "x" * 200 + "?batch=1", 20) == "`snippets/xxxx…atch=1`"
    assert literal("x" * 20, 20) == f"`{'x' * 20}`"


@given(st.text(), st.integers(4, 50))
def test_a_shortened_text_keeps_its_ends(text: str, longest: int) -> None:
    cut = shortened(text, longest)
    assert len(cut) == min(len(text), longest)
    assert (cut[:1], cut[-1:]) == (text[:1], text[-1:])


def test_claims_with_another_outcome_come_before_those_that_are_new(project: Project) -> None:
    with_total(project, 7)
    write(project.snippets / "sums/claims.toml", CLAIM)
    base = commit_all(project.root)
    with_total(project, 3)
    write(project.snippets / "sums/claims.toml", CLAIM.replace("sums-are-large", "a-new-one") + CLAIM)
    report = make_report(project.root, base, commit_all(project.root))
    assert [(one.claim, one.before) for one in report.claims] == [
        ("sums-are-large", "holds"),
        ("a-new-one", None),
    ]


def test_a_report_survives_its_way(project: Project, tmp_path: Path) -> None:
    report = ChangeReport(
        "a" * 40,
        "b" * 40,
        claims=(Moved("x", MACHINE, "holds", None),),
        changes=(Change(MACHINE, "sums/add.py", "default", "total", "s", 1.0, 2.0, None, (1.0, 2.0)),),
        problems=("p",),
    )
    assert read_report(write(tmp_path / "report.json", dump_report(report))) == report


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"base": 1, "head": "b"}',
        '{"base": "a"}',
        json.dumps({"base": "a", "head": "b", "claims": 1}),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BenchbookError, match="is not a report"):
        read_report(write(tmp_path / "report.json", text))


def test_a_report_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchbookError, match="is larger than"):
        read_report(write(tmp_path / "report.json", " " * (LARGEST_REPORT + 1)))


def test_a_count_that_no_change_has_is_refused(tmp_path: Path) -> None:
    table = {"base": "a", "head": "b", "left_out": {"claims": 10**4000}}
    with pytest.raises(BenchbookError, match="is not a report"):
        read_report(write(tmp_path / "report.json", json.dumps(table)))


def test_a_benchmark_that_found_something_else_is_compared_with_its_bar(project: Project) -> None:
    kept = BenchmarkResult("serving", "a saved page", 0.9, "s", 1.0, MACHINE, "2026-11-20")
    keep_results(project.root, [kept, replace(kept, benchmark="building", unit="")])
    base = commit_all(project.root)
    keep_results(project.root, [replace(kept, value=1.2, measured="2026-11-22")])
    report = make_report(project.root, base, commit_all(project.root))
    assert report.benchmarks == (Timed("serving", "a saved page", MACHINE, "s", 0.9, 1.2, 1.0),)
    said = markdown(report)
    assert f"| `{MACHINE}` | `serving: a saved page` | `0.9 s` | `1.2 s` | `1 s, missed` |" in said
    path = project.root / "report.json"
    path.write_text(dump_report(report), "utf-8")
    assert read_report(path) == report


@pytest.mark.parametrize("text", ["{}", "[{}]", '[{"benchmark": 1}]', "nothing"])
def test_a_file_of_benchmarks_that_is_none_is_a_problem_of_the_report(project: Project, text: str) -> None:
    base = commit_all(project.root)
    write(project.root / BENCHMARKS, text)
    (problem,) = make_report(project.root, base, commit_all(project.root)).problems
    assert problem.startswith(f"{BENCHMARKS}:1: holds no results of benchmarks")


def test_the_kept_results_are_of_the_benchmarks_that_there_are() -> None:
    root = Path(__file__).parents[2]
    kept = {one.benchmark.partition(",")[0] for one in load_results(root)}
    assert kept
    assert kept <= {path.stem for path in (root / "scripts/benchmarks").glob("*.py")}
