"""Figures published elsewhere stand on a machine of their own, and never pass for what was measured here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.bundles import import_bundles
from benchbook.checking.checks import CheckReport, check_project
from benchbook.checking.status import print_status, project_status
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import (
    Publication,
    PublicationSource,
    Record,
    Run,
    VariantRecord,
    dump_record,
    load_record,
)
from benchbook.recording.command import this_machine
from benchbook.rendering.choice import insert_choice, page_settings
from builders import MACHINE, MACHINE_JSON, SCRIPT, make_project, packed, write
from handbooks import (
    CPU,
    FIXTURE,
    GPU,
    QUOTED,
    build_site,
    copy_handbook,
    details,
    edit,
    plain,
    render,
    rows_of,
    start,
)
from repositories import commit_all, git

OLD = "cpu-old--published"
ONE = "memory/methods.py?method=plain&batch_size=1"
TABLE = "```table\nscript: memory/methods.py\nrows: method\nwhere: {batch_size: 4}\n"
PINNED = f"{TABLE}columns: [peak_memory, step_time]\nmachine: {QUOTED}\n```\n"
CHART = "```chart\nscript: memory/methods.py\nx: batch_size\ny: peak_memory\nseries: method\ntitle: Peak\n"


def quoted_record() -> Record:
    """A figure of the script of `make_project`, as an imaginary paper gives it."""
    source = PublicationSource("https://example.org/paper?page=2#table", "A paper on adding", "2019-05")
    publication = Publication(source, measured="2019-04-30", recorded_by="Ada", packages={}, state={})
    variant = VariantRecord(
        campaign="paper",
        outcome="ok",
        error=None,
        parameters={"steps": 4},
        ranks=1,
        environment={},
        meters=(),
        code=None,
        inputs={},
        output={},
        runs=(Run(0, {"total": 6}, {"add": {"seconds": 2.5}}),),
    )
    return Record.of("sums/add.py", OLD, {"paper": publication}, {"default": variant})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A machine that was measured, and one whose figures are quoted, with what changed since."""
    project = make_project(tmp_path / "checkout")
    write(project.docs / "en/_language.yml", f"strings: {{}}\nlabels:\n  {OLD}: Adding is faster now.\n")
    described = MACHINE_JSON | {"name": OLD, "published": True, "title": "An old one", "short": "Old CPU"}
    write(project.records / OLD / "machine.json", json.dumps(described, indent=2))
    write(project.record_path(OLD, "sums/add.py"), dump_record(quoted_record()))
    return project


def report(project: Project) -> CheckReport:
    return check_project(Project(project.root))


def damage(path: Path, apply: Callable[[dict[str, Any]], object]) -> None:
    """Change the JSON in a file, keeping the lines that a record has."""
    table = json.loads(path.read_text("utf-8"))
    apply(table)
    write(path, json.dumps(table, indent=2))


# Records


def test_a_quoted_record_is_read_as_it_was_written(project: Project) -> None:
    assert load_record(project.record_path(OLD, "sums/add.py")) == quoted_record()


def test_it_holds_its_promises_as_it_is(project: Project) -> None:
    assert report(project) == CheckReport((), ())


def test_it_is_published_whatever_becomes_of_the_code(project: Project) -> None:
    edit(project.snippets / "sums/add.py", "range(steps)", "range(1, steps)")
    (row,) = (row for row in project_status(project) if row.machine == OLD)
    assert (row.state, row.reason) == ("published", "quoted from A paper on adding")
    assert [problem.what for problem in report(project).problems] == [
        f"its record on {MACHINE} is stale: code changed"
    ]


def test_status_names_the_publication(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    print_status(project_status(project))
    assert f"published  {OLD}  default: quoted from A paper on adding" in capsys.readouterr().out


def test_what_no_publication_names_is_not_missing(project: Project) -> None:
    project.record_path(OLD, "sums/add.py").unlink()
    assert {row.machine for row in project_status(project)} == {MACHINE}
    assert report(project) == CheckReport((), ())


def test_it_blocks_nothing_where_its_machine_is_said_to_block(project: Project) -> None:
    edit(project.root / "pyproject.toml", f'["{MACHINE}"]', f'["{MACHINE}", "{OLD}"]')
    assert report(project) == CheckReport((), ())


Mixing = Callable[[dict[str, Any]], object]
OWN = {
    "started": "2026-01-02T03:04:05Z",
    "finished": "2026-01-02T03:05:05Z",
    "commit": None,
    "modified": False,
    "recorded_by": "maintainers",
    "packages": {},
    "state": {},
}


def source(table: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = table["campaigns"]["paper"]["source"]
    return found


def variant(table: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = table["variants"]["default"]
    return found


# By what was done to the record: the key on whose line it is found, and a part of what is said.
MIXED: dict[str, tuple[Mixing, str, str]] = {
    "a campaign of one's own": (lambda t: t["campaigns"].update(paper=OWN), "paper", "has no `source`"),
    "a commit": (
        lambda t: t["campaigns"]["paper"].update(commit="0" * 40),
        "commit",
        "campaigns.paper.commit: there is no such key",
    ),
    "a digest of code": (
        lambda t: variant(t).update(code="sha256:" + "0" * 64),
        "default",
        "is quoted, and claims `code`",
    ),
    "an output": (lambda t: variant(t).update(output={"add": "6"}), "default", "claims `output`"),
    "an unknown variant": (
        lambda t: t["variants"].update({"steps=9": t["variants"].pop("default")}),
        "steps=9",
        "is quoted, and sums/add.py has no such variant",
    ),
    "an unknown metric": (
        lambda t: variant(t)["runs"][0].update(metrics={"sum": 6}),
        "default",
        "quotes sum, which sums/add.py does not yield",
    ),
    "an unknown cell": (
        lambda t: variant(t)["runs"][0].update(cells={"subtract": {"seconds": 1.0}}),
        "default",
        "quotes subtract, which sums/add.py does not yield",
    ),
    "a history": (
        lambda t: t["history"].append(
            {"date": "2019-05-01", "campaign": "paper", "variants": ["default"], "medians": {}}
        ),
        "history",
        "it holds a history, and what is quoted has none",
    ),
    "no title": (lambda t: source(t).pop("title"), "source", "campaigns.paper.source.title: Field required"),
    "markup in the title": (
        lambda t: source(t).update(title="<b>x</b>"),
        "title",
        "paper.source.title: it holds what is not seen, such as a line break, or markup",
    ),
    "a direction mark in the title": (
        lambda t: source(t).update(title="A \u202epaper"),
        "title",
        "paper.source.title: it holds what is not seen",
    ),
    "a month that is none": (
        lambda t: source(t).update(published="2019-13"),
        "published",
        "source.published",
    ),
} | {
    f"the address {url}": (
        lambda t, url=url: source(t).update(url=url),  # type: ignore[misc]
        "url",
        "campaigns.paper.source.url: String should match",
    )
    for url in (
        "javascript:alert(1)",
        "JavaScript:alert(1)//https://example.org/",
        "http://example.org/",
        "//example.org/",
        "data:text/html,x",
        'https://example.org/"onmouseover="x',
        "https://example.org/<script>",
        "https://example.org/ x",
        "https://example.org/\nx",
        "https://example.org/x\n",
        "https://user:word@localhost/",
        "https://example.org\\@evil.example/",
        "",
    )
}


@pytest.mark.parametrize("name", MIXED)
def test_what_is_mixed_up_is_one_error_with_its_line_and_the_fix(project: Project, name: str) -> None:
    apply, key, what = MIXED[name]
    path = project.record_path(OLD, "sums/add.py")
    damage(path, apply)
    (problem,) = report(project).problems
    lines = path.read_text("utf-8").splitlines()
    assert (problem.path, what in problem.what) == (project.relative(path), True)
    assert f'"{key}"' in lines[problem.line - 1]
    assert problem.fix


@pytest.mark.parametrize("name", MIXED)
def test_a_bundle_with_the_same_is_refused_in_one_line(project: Project, tmp_path: Path, name: str) -> None:
    apply, _, what = MIXED[name]
    table = json.loads(dump_record(quoted_record()))
    apply(table)
    machine = json.loads((project.records / OLD / "machine.json").read_text("utf-8"))
    shutil.rmtree(project.records / OLD)
    bundle = {"schema": 1, "machine": machine, "records": [table]}
    with pytest.raises(BenchbookError) as caught:
        import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))])
    (problem,) = caught.value.problems
    assert what in problem.what
    assert not (project.records / OLD).exists()


def test_a_bundle_of_quoted_figures_is_put_in_place(project: Project, tmp_path: Path) -> None:
    machine = json.loads((project.records / OLD / "machine.json").read_text("utf-8"))
    shutil.rmtree(project.records / OLD)
    bundle = {"schema": 1, "machine": machine, "records": [json.loads(dump_record(quoted_record()))]}
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))])
    assert load_record(project.record_path(OLD, "sums/add.py")) == quoted_record()


def test_a_source_on_a_measuring_machine_is_an_error(project: Project) -> None:
    path = project.record_path(MACHINE, "sums/add.py")
    write(path, dump_record(quoted_record()).replace(OLD, MACHINE))
    (problem,) = report(project).problems
    assert "campaign paper has a `source`, on cpu-test, where figures are measured" in problem.what
    assert "whose name ends in `--published`" in problem.fix


def test_what_was_measured_has_a_digest(project: Project) -> None:
    path = project.record_path(MACHINE, "sums/add.py")
    damage(path, lambda table: variant(table).update(code=None))
    assert "was measured, and holds no digest of its code" in report(project).problems[0].what


@pytest.mark.parametrize(("machine", "published"), [(OLD, False), (MACHINE, True)])
def test_the_name_of_a_machine_says_whether_it_is_published(
    project: Project, machine: str, published: bool
) -> None:
    damage(project.records / machine / "machine.json", lambda table: table.update(published=published))
    found = [p for p in report(project).problems if p.path.endswith(f"{machine}/machine.json")]
    (problem,) = found
    assert "`published` is" in problem.what


def test_what_changed_since_must_be_said(project: Project) -> None:
    write(project.docs / "en/_language.yml", "strings: {}\nlabels: {}\n")
    (problem,) = report(project).problems
    assert (problem.path, f"has no `{OLD}`" in problem.what) == ("docs/en/_language.yml", True)


@pytest.mark.parametrize(
    "settings",
    [
        f'reference_machine = "{OLD}"\nmachines = ["{MACHINE}"]',
        f'reference_machine = "{MACHINE}"\n[tool.benchbook.guides.sums]\nreference_machine = "{OLD}"',
    ],
)
def test_a_machine_never_measured_is_no_reference(project: Project, settings: str) -> None:
    write(project.root / "pyproject.toml", f"[tool.benchbook]\n{settings}\n")
    (problem,) = report(project).problems
    assert f"the reference machine {OLD} was never measured here" in problem.what


@pytest.mark.parametrize(("name", "by"), [("cpu-old--published", None), (None, "Published")])
def test_nothing_is_recorded_under_such_a_name(name: str | None, by: str | None) -> None:
    with pytest.raises(BenchbookError, match="names a machine whose figures are quoted, not measured"):
        this_machine(name, by)


# What `main` has of quoted figures


@pytest.fixture
def change(project: Project) -> Project:
    """The project on a branch of `main`."""
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    return project


def quoted_path(project: Project) -> Path:
    return project.record_path(OLD, "sums/add.py")


NOTED, LATER = "2026-11-20T10:00:00Z", "2026-11-23T10:00:00Z"


@pytest.mark.parametrize(
    ("before", "here", "fix"),
    [
        (None, LATER, "remove it: nobody noted it when the figures came"),
        (NOTED, LATER, f"set it to {NOTED}"),
        (NOTED, None, f"set it to {NOTED}"),
    ],
)
@pytest.mark.parametrize("called", ["paper", "paper-again"])
def test_when_figures_of_main_were_taken_over_stays_as_it_is(
    project: Project, before: str | None, here: str | None, fix: str, called: str
) -> None:
    def noted(table: dict[str, Any], name: str, moment: str | None) -> None:
        publication = table["campaigns"].pop("paper")
        publication.pop("taken_over", None)
        table["campaigns"][name] = publication | ({"taken_over": moment} if moment else {})
        variant(table)["campaign"] = name

    damage(quoted_path(project), lambda table: noted(table, "paper", before))
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    assert report(project) == CheckReport((), ())
    damage(quoted_path(project), lambda table: noted(table, called, here))
    (problem,) = report(project).problems
    assert (problem.what, problem.fix) == (
        f"campaign {called} has another `taken_over` than its figures on `main` ({before or 'none'})",
        fix,
    )
    assert f'"{called}"' in quoted_path(project).read_text("utf-8").splitlines()[problem.line - 1]


def test_figures_that_main_lacks_say_when_they_were_taken_over(change: Project) -> None:
    record = json.loads(quoted_path(change).read_text("utf-8"))
    quoted_path(change).unlink()
    commit_all(change.root)
    git(change.root, "branch", "--force", "main")
    record["campaigns"]["paper"]["taken_over"] = NOTED
    write(quoted_path(change), json.dumps(record, indent=2))
    assert report(change).problems == ()


def test_nothing_was_taken_over_in_the_future(project: Project) -> None:
    moment = "2999-01-01T00:00:00Z"
    damage(quoted_path(project), lambda table: table["campaigns"]["paper"].update(taken_over=moment))
    (problem,) = report(project).problems
    assert problem.what == f"campaign paper: it was taken over at {moment}, which is in the future"


CORRECTIONS: dict[str, Mixing] = {
    "a figure": lambda t: variant(t)["runs"][0]["cells"]["add"].update(seconds=2.6),
    "the source": lambda t: source(t).update(title="Another paper"),
}


@pytest.mark.parametrize("name", CORRECTIONS)
def test_what_is_quoted_otherwise_than_on_main_is_a_warning(change: Project, name: str) -> None:
    assert report(change) == CheckReport((), ())
    damage(quoted_path(change), CORRECTIONS[name])
    assert report(change).problems == ()
    (warning,) = report(change).warnings
    assert warning.what == f"changes what is quoted of variant default of sums/add.py on {OLD}"
    assert warning.fix == "say in the pull request where the source says so"


def test_figures_of_one_publication_go_each_by_their_own_name(change: Project) -> None:
    one = quoted_path(change)
    two = one.with_name("two.json")
    table = json.loads(one.read_text("utf-8"))
    other = json.loads(json.dumps(table).replace('"total": 6', '"total": 7')) | {"script": "sums/two.py"}
    write(change.snippets / "sums/two.py", SCRIPT)
    write(two, json.dumps(other, indent=2))
    commit_all(change.root)
    git(change.root, "branch", "--force", "main")
    for gone in (two, change.snippets / "sums/add.py", change.snippets / "sums/two.py"):
        gone.unlink()
    write(change.snippets / "sums/new.py", SCRIPT)
    write(one.with_name("new.json"), json.dumps(table | {"script": "sums/new.py"}, indent=2))
    one.unlink()
    whats = {(one.path.rpartition("/")[2], one.what) for one in report(change).warnings}
    assert ("two.json", f"lacks variant default of sums/two.py on {OLD}, which `main` has") in whats
    moved = f"snippets/records/{OLD}/sums/new.json"
    assert ("add.json", f"is called {moved} now, and what `main` has in it is of sums/add.py") in whats


def test_a_publication_of_which_no_figure_is_quoted_is_an_error(project: Project) -> None:
    path = project.record_path(OLD, "sums/add.py")
    damage(path, lambda t: t["campaigns"].update(another=t["campaigns"]["paper"]))
    (problem,) = report(project).problems
    assert problem.what == "campaign another is quoted of no variant of the record"


@pytest.mark.parametrize("key", ["title", "short", "cpu.model"])
def test_a_machine_of_a_publication_that_is_described_otherwise_than_on_main_is_a_warning(
    change: Project, key: str
) -> None:
    path = change.records / OLD / "machine.json"

    def renamed(table: dict[str, Any]) -> None:
        *above, last = key.split(".")
        (table[above[0]] if above else table)[last] = "Another"

    damage(path, renamed)
    (warning,) = report(change).warnings
    assert (warning.path, warning.what) == (
        change.relative(path),
        f"describes the machine otherwise than `main` ({key})",
    )


# Pages


def test_a_pinned_table_names_its_machine_and_says_it_was_not_measured_here() -> None:
    build = start(Project(FIXTURE))
    shown = render(build, PINNED)
    assert not build.problems
    assert f'data-machine="{QUOTED}"' in shown
    assert "Old fixture GPU · published 2019, not measured here" in plain(shown).replace("\u00a0", " ")
    assert "one run" not in plain(shown)


def test_what_a_publication_does_not_give_is_a_dash() -> None:
    shown = plain(render(start(Project(FIXTURE)), PINNED))
    assert "plain——checkpointing5 GiB2 s" in shown.replace("\u00a0", " ")


def test_a_pinned_block_does_not_follow_the_choice() -> None:
    build = start(Project(FIXTURE))
    shown = render(build, PINNED + CHART + f"machine: {GPU}\n```\n")
    assert 'class="bb-chart"' in shown
    assert "data-bb=" not in shown
    assert {section for data in build.here.data.values() for section in data} == {"origins"}
    assert build.here.machines == {}
    assert build.here.scripts == {"memory/methods.py"}


@pytest.mark.parametrize("block", [PINNED, f"{CHART}machine: {QUOTED}\n```\n"])
def test_a_pin_to_no_machine_is_a_problem_with_its_line(tmp_path: Path, block: str) -> None:
    project = copy_handbook(tmp_path)
    write(project.docs / "en/memory.md", "# Memory { #memory }\n\n" + block.replace("16gb", "17gb"))
    found = [p for p in check_project(project).problems if p.path == "docs/en/memory.md" and p.line == 3]
    assert [problem.what for problem in found] == ["there is no machine `fixture-gpu-17gb--published`"]


def test_a_pin_to_a_machine_without_a_figure_of_it_is_a_problem() -> None:
    build = start(Project(FIXTURE))
    render(build, f"{TABLE}columns: same_weights\nmachine: {QUOTED}\n```\n")
    (problem,) = build.problems
    assert "nothing of this table was recorded on" in problem.what
    assert "quote it in its record" in problem.fix


def test_the_details_lead_to_the_source_and_claim_no_way_to_reproduce_it(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    path = project.docs / "en/_language.yml"
    write(
        path,
        path.read_text("utf-8").replace(
            "\nlabels:\n", f"\nlabels:\n  {QUOTED}: It was slower, 2 < 3 & more.\n"
        ),
    )
    build = start(project)
    render(build, PINNED)
    told = details(build, QUOTED)
    assert told["source"] == [[("Figures of an old GPU", "https://example.org/old-figures")]]
    assert told["published"] == ["May 2019"]
    assert told["changed"] == ["It was slower, 2 < 3 & more."]
    assert {"command", "cite", "bibtex"}.isdisjoint(told)


@pytest.mark.parametrize(("code", "words"), [("ar", "نُشر عام"), ("zh", "2019 年发表"), ("ja", "2019年公表")])
def test_every_language_says_so_in_its_own_words(code: str, words: str) -> None:
    assert words in plain(render(start(Project(FIXTURE), code), PINNED))


def test_a_value_has_the_figure_only_where_the_publication_gives_it() -> None:
    build = start(Project(FIXTURE))
    render(
        build, f"`#!value {ONE}#peak_memory` `#!value {ONE}#step_time` `#!value memory/losses.py#difference`"
    )
    ((key, tree),) = build.here.data[QUOTED]["values"].items()
    assert key == f"{ONE}#peak_memory"
    assert plain(tree["parts"][""]) == "3 GiB Old fixture GPU"
    assert "runs" not in plain(tree["line"])
    assert ("figure", "3\u00a0GiB") in rows_of(tree["rows"], build.here.language)


def test_a_table_and_a_cell_without_a_figure_keep_the_machine_they_show() -> None:
    build = start(Project(FIXTURE))
    cell = "```cell\nmemory/methods.py?method=plain&batch_size=1#train\n```\n"
    render(build, f"{cell}\n{TABLE}columns: same_weights\n```\n")
    assert {name: len(data["blocks"]) for name, data in build.here.data.items() if "blocks" in data} == {
        GPU: 2
    }


def test_the_choice_marks_it_and_lists_it_last() -> None:
    build = start(Project(FIXTURE))
    render(build, f"`#!value {ONE}#peak_memory`")
    shown = insert_choice(build, "<h1>Memory</h1>")
    assert f'<option value="{QUOTED}">Old fixture GPU, 16\u00a0GB (published)</option></select>' in shown
    assert page_settings(build, build.here)["machines"] == [CPU, GPU, QUOTED]


def test_it_is_no_measurement_on_a_gpu(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    shutil.rmtree(project.records / GPU)
    build = start(project)
    render(build, f"`#!value {ONE}#peak_memory`")
    assert "Not measured on a GPU yet." in plain(insert_choice(build, "<h1>Memory</h1>"))


def test_what_is_only_published_is_shown_where_a_block_is_pinned_to_it_alone(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    for machine in (CPU, GPU):
        project.record_path(machine, "memory/methods.py").unlink()
    build = start(project)
    render(build, PINNED)
    assert not build.problems
    for block in (f"`#!value {ONE}#peak_memory`", f"{TABLE}columns: peak_memory\n```\n", CHART + "```\n"):
        build.problems.clear()
        render(build, block)
        (problem,) = build.problems
        assert "benchbook record memory/methods.py" in problem.fix


def test_a_notebook_claims_no_output_of_it(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    write(project.docs / "en/memory.md", f"# Memory {{ #memory }}\n\n{PINNED}")
    for machine in (CPU, GPU):
        project.record_path(machine, "memory/methods.py").unlink()
    notebook = build_site(project) / "downloads/memory/methods.ipynb"
    assert "recorded on" not in notebook.read_text("utf-8")


def test_a_quoted_figure_keeps_its_unit_whatever_becomes_of_the_code(change: Project) -> None:
    edit(change.snippets / "sums/add.py", 'unit = "count"', 'unit = "B"')
    whats = [one.what for one in report(change).warnings]
    assert "declares its metric total otherwise than `main`, which its records are read by" in whats
