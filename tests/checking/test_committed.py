"""What `main` has of a campaign stays as it was measured; what comes new is of the code of its commit."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking import past_records
from benchbook.checking.bundles import import_bundles
from benchbook.checking.checks import check_project
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import MOST_CAMPAIGNS, Campaign, HistoryLine, write_record
from benchbook.content.script import read_script
from benchbook.content.validation import parse_json
from builders import MACHINE, MACHINE_JSON, SCRIPT, SWEEP, make_project, make_record, packed, write
from handbooks import edit
from repositories import commit_all, git

RECORD = f"snippets/records/{MACHINE}/sums/add.json"
OTHER_CODE = "sha256:" + "0" * 64
LATER = "20260103T030405Z-test"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A checkout on a branch of `main`, which has a record."""
    project = make_project(tmp_path / "checkout")
    medians = {"default": {"total": 7}}
    line = HistoryLine("2026-01-02", "20260102T030405Z-test", ["default"], medians)
    write_record(project.root / RECORD, replace(make_record(), history=(line,)))
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    return project


def table_of(project: Project) -> dict[str, Any]:
    table: dict[str, Any] = json.loads((project.root / RECORD).read_text("utf-8"))
    return table


def put(project: Project, table: dict[str, Any]) -> None:
    write(project.root / RECORD, json.dumps(table, indent=1))


def campaign(table: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = table["campaigns"].values()
    return found


def said(project: Project) -> list[str]:
    problems = check_project(Project(project.root)).problems
    return [problem.what for problem in problems if problem.path == RECORD]


EDITS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "runs": (
        lambda table: table["variants"]["default"]["runs"][0]["metrics"].update(total=9),
        "variant default is otherwise on `main`, of the same campaign (its runs differs)",
    ),
    "code": (
        lambda table: table["variants"]["default"].update(code=OTHER_CODE),
        "variant default is otherwise on `main`, of the same campaign (its code differs)",
    ),
    "a metric as another kind of number": (
        lambda table: table["variants"]["default"]["runs"][0]["metrics"].update(total=6.0),
        "variant default is otherwise on `main`, of the same campaign (its runs differs)",
    ),
    "a parameter as another kind of number": (
        lambda table: table["variants"]["default"]["parameters"].update(steps=4.0),
        "variant default is otherwise on `main`, of the same campaign (its parameters differs)",
    ),
    "the commit": (
        lambda table: campaign(table).update(commit="1" * 40),
        "is of another session on `main` (its commit differs)",
    ),
    "what decided": (
        lambda table: campaign(table).update(predicates={"a-claim": OTHER_CODE}),
        "is of another session on `main` (its predicates differs)",
    ),
    "the end": (
        lambda table: campaign(table).update(finished="2026-01-02T03:04:59Z"),
        "is of another session on `main` (its finished differs)",
    ),
    "the load": (
        lambda table: campaign(table)["state"].update(load_average=3.5),
        "is of another session on `main` (its state.load_average differs)",
    ),
    "that its code was modified": (
        lambda table: campaign(table).update(modified=True),
        "is otherwise on `main` (its modified differs), and nothing more was measured in it",
    ),
    "a line of the history": (
        lambda table: table["history"][0]["medians"]["default"].update(total=9),
        "the history of campaign 20260102T030405Z-test is otherwise on `main`",
    ),
    "a median as another kind of number": (
        lambda table: table["history"][0]["medians"]["default"].update(total=7.0),
        "the history of campaign 20260102T030405Z-test is otherwise on `main`",
    ),
    "the history": (
        lambda table: table["history"].clear(),
        "the history of campaign 20260102T030405Z-test is otherwise on `main`",
    ),
    "the start": (
        lambda table: campaign(table).update(started="2026-01-02T03:04:06Z"),
        "is of another session on `main` (its started differs)",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("committing", [False, True])
def test_a_campaign_that_main_has_stays_as_it_was_measured(
    project: Project, edit: str, committing: bool
) -> None:
    assert said(project) == []
    table = table_of(project)
    change, what = EDITS[edit]
    change(table)
    put(project, table)
    if committing:
        commit_all(project.root)
    assert [one for one in said(project) if what in one]


def test_a_record_that_main_has_goes_only_with_what_its_script_was(project: Project) -> None:
    (project.root / RECORD).unlink()
    assert said(project) == ["lacks variant default, which `main` has, and which sums/add.py measures still"]
    write(project.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    assert said(project) == []
    lacks = f"lacks variant default of sums/add.py on {MACHINE}, which `main` has"
    assert record_warned(project) == [lacks]
    (project.snippets / "sums/add.py").unlink()
    assert record_warned(project) == [lacks]


def test_a_variant_that_goes_with_the_code_of_its_script_is_a_warning(tmp_path: Path) -> None:
    project = swept(tmp_path)
    table = table_of(project)
    del table["variants"]["steps=2"]
    put(project, table)
    write(project.snippets / "sums/add.py", SWEEP.replace("range(steps)", "range(1, steps)"))
    assert record_warned(project) == [f"lacks variant steps=2 of sums/add.py on {MACHINE}, which `main` has"]


def record_warned(project: Project) -> list[str]:
    warnings = check_project(Project(project.root)).warnings
    return [one.what for one in warnings if one.path == RECORD and "main" in one.what]


GUEST = f"{MACHINE}--ada"


def test_what_is_gone_from_one_machine_is_not_put_under_another(telling: Project) -> None:
    table = table_of(telling)
    (telling.root / RECORD).unlink()
    write(telling.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    described = MACHINE_JSON | {"name": GUEST, "owner": "Ada"}
    write(telling.records / GUEST / "machine.json", json.dumps(described))
    path = write(telling.record_path(GUEST, "sums/add.py"), json.dumps(table | {"machine": GUEST}))
    assert f"variant default: its times are those of {MACHINE}" in on(telling, path)


def test_what_main_has_is_no_copy_of_a_machine_whose_name_sorts_first(telling: Project) -> None:
    first = "a-machine--ada"
    described = MACHINE_JSON | {"name": first, "owner": "Ada"}
    write(telling.records / first / "machine.json", json.dumps(described))
    copied = table_of(telling) | {"machine": first}
    path = write(telling.record_path(first, "sums/add.py"), json.dumps(copied))
    assert f"variant default: its times are those of {MACHINE}" in on(telling, path)
    assert said(telling) == []


@pytest.fixture
def telling(project: Project) -> Project:
    """The checkout, whose `main` has times of many digits."""
    table = table_of(project)
    for place, run in enumerate(table["variants"]["default"]["runs"]):
        for number, cell in enumerate(run["cells"].values()):
            cell["seconds"] *= 1.01234567 + place / 97 + number / 89
    put(project, table)
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    return project


def test_what_main_has_is_not_measured_again_by_another_date(telling: Project) -> None:
    old, table = table_of(telling), measured_now(telling, git(telling.root, "rev-parse", "HEAD"))
    put(telling, table)
    assert said(telling) == []
    (before,) = old["campaigns"]
    table["variants"]["default"]["runs"] = old["variants"]["default"]["runs"]
    write(telling.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    put(telling, table)
    assert f"variant default: its times are those of campaign {before}" in said(telling)
    for place, run in enumerate(table["variants"]["default"]["runs"]):
        run["cells"]["parameters"]["seconds"] *= 1.5 + place / 89
    put(telling, table)
    assert f"variant default: its times in part are those of campaign {before}" in said(telling)


def copied(project: Project, **changes: Any) -> Path:
    """The record as of another script, and of a machine."""
    path = project.record_path(changes.get("machine", MACHINE), "sums/plus.py")
    write(project.snippets / "sums/plus.py", SCRIPT)
    return write(path, json.dumps(table_of(project) | changes | {"script": "sums/plus.py"}))


def test_a_campaign_is_of_one_script(project: Project) -> None:
    path = copied(project)
    what = "campaign 20260102T030405Z-test is of sums/add.py, and a session is of one script"
    assert what in on(project, path)


def test_a_campaign_of_main_stays_with_its_script(project: Project) -> None:
    path = copied(project)
    put(project, renewed(project, None))
    what = "campaign 20260102T030405Z-test is of sums/add.py on `main`, and a session is of one script"
    assert what in on(project, path)


@pytest.mark.parametrize("cell", ["add", "sum"])
def test_the_times_of_one_script_are_not_those_of_another(telling: Project, cell: str) -> None:
    table = renewed(telling, None)
    for run in table["variants"]["default"]["runs"]:
        run["cells"] = {cell if name == "add" else name: one for name, one in run["cells"].items()}
    path = copied(telling, campaigns=table["campaigns"], variants=table["variants"])
    assert f"variant default: its times of cells are those of sums/add.py on {MACHINE}" in on(telling, path)


def test_what_main_has_stays_under_another_name_and_with_other_code(project: Project) -> None:
    git(project.root, "mv", "snippets/sums/add.py", "snippets/sums/plus.py")
    write(project.snippets / "sums/plus.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    table = table_of(project) | {"script": "sums/plus.py"}
    (project.root / RECORD).unlink()
    table["variants"]["default"]["runs"][0]["metrics"].update(total=9)
    table["variants"]["default"]["code"] = OTHER_CODE
    table["history"][0]["medians"]["default"].update(total=9)
    path = write(project.record_path(MACHINE, "sums/plus.py"), json.dumps(table))
    what = "variant default is otherwise on `main`, of the same campaign (its code, runs differs)"
    assert {what, EDITS["a line of the history"][1]} <= set(on(project, path))


def test_a_new_record_beside_one_that_is_gone_has_a_commit_with_its_script(project: Project) -> None:
    commit = git(project.root, "rev-parse", "HEAD")
    write(project.snippets / "sums/plus.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    table = renewed(project, commit) | {"script": "sums/plus.py", "history": []}
    table["variants"]["default"]["code"] = OTHER_CODE
    (project.root / RECORD).unlink()
    path = write(project.record_path(MACHINE, "sums/plus.py"), json.dumps(table))
    what = f"variant default was recorded from commit {commit[:12]}, which has no sums/plus.py"
    assert what in on(project, path)


@pytest.mark.parametrize("name", ["20260101T000000Z-dead", "20260102T030404Z-zzzz"])
def test_a_line_that_main_lacks_is_of_a_later_campaign(project: Project, name: str) -> None:
    table = table_of(project)
    table["history"].insert(0, table["history"][0] | {"campaign": name})
    put(project, table)
    assert said(project) == [f"the history of campaign {name} is otherwise on `main`"]


def test_only_the_oldest_lines_go_where_there_are_too_many(project: Project) -> None:
    table = table_of(project)
    first = table["history"][0]
    names = [f"20260103T{n // 60:02}{n % 60:02}00Z-test" for n in range(MOST_CAMPAIGNS)]
    lines = [first | {"campaign": name, "date": "2026-01-03"} for name in names]
    put(project, table | {"history": [first, *lines[:-1]]})
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    again = measured_now(project, git(project.root, "rev-parse", "HEAD"))
    (name,) = again["campaigns"]
    medians = {"default": {"total": 8}}
    last = first | {"campaign": name, "date": campaign(again)["finished"][:10], "medians": medians}
    put(project, again | {"history": [*lines[:-1], last]})
    assert said(project) == []
    put(project, again | {"history": [first, lines[0], *lines[2:-1], last]})
    assert said(project) == [f"the history of campaign {names[1]} is otherwise on `main`"]


def test_lines_of_main_stay_in_their_order_and_those_of_no_variant_are_told(project: Project) -> None:
    table = table_of(project)
    first = table["history"][0]
    lines = [
        first | {"campaign": f"20260103T00{n // 60:02}{n % 60:02}Z-test", "date": "2026-01-03"}
        for n in range(MOST_CAMPAIGNS)
    ]
    put(project, table | {"history": [first, lines[0]]})
    assert said(project) == []
    what = f"adds campaign {lines[0]['campaign']} to the history, of which nothing stands in the record"
    warnings = check_project(Project(project.root)).warnings
    assert what in {one.what for one in warnings if one.path == RECORD}
    put(project, table | {"history": lines})
    assert said(project) == [f"the history of campaign {first['campaign']} is otherwise on `main`"]
    put(project, table | {"history": [first, lines[0]]})
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    put(project, table | {"history": [lines[0], first]})
    (told,) = said(project)
    assert "is otherwise on `main`" in told


def test_a_variant_that_joins_a_campaign_of_main_is_a_warning(tmp_path: Path) -> None:
    project = swept(tmp_path)
    whole = table_of(project)
    table = table_of(project)
    del table["variants"]["steps=2"]
    put(project, table)
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    put(project, whole)
    what = f"adds variant steps=2 of sums/add.py on {MACHINE} to a campaign that `main` has"
    assert record_warned(project) == [what]
    (grown,) = whole["campaigns"].values()
    grown |= {"modified": True, "state": grown["state"] | {"shared": True}}
    put(project, whole)
    (name,) = whole["campaigns"]
    said = f"campaign {name} says otherwise of itself than on `main` (state.shared, modified)"
    assert record_warned(project) == [said, what]


def test_a_variant_that_takes_the_place_of_main_s_in_another_campaign_of_main_s_is_a_warning(
    tmp_path: Path,
) -> None:
    project = swept(tmp_path)
    (name,) = table_of(project)["campaigns"]
    table = table_of(project)
    late = "20260103T030405Z-late"
    moments = {"started": "2026-01-03T03:04:05Z", "finished": "2026-01-03T03:05:05Z"}
    table["campaigns"][late] = table["campaigns"][name] | moments
    table["variants"]["steps=2"]["campaign"] = late
    put(project, table)
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    table["variants"]["steps=1"]["campaign"] = late
    put(project, table)
    where = f"variant steps=1 of sums/add.py on {MACHINE}"
    assert record_warned(project) == [f"replaces {where}, which `main` has, by campaign {late}"]


def test_a_variant_that_main_has_goes_only_once_it_is_measured_no_longer(tmp_path: Path) -> None:
    project = swept(tmp_path)
    table = table_of(project)
    del table["variants"]["steps=2"]
    put(project, table)
    assert said(project) == ["lacks variant steps=2, which `main` has, and which sums/add.py measures still"]
    write(project.snippets / "sums/add.py", SWEEP.replace("[1, 2]", "[1]"))
    assert said(project) == []


def test_a_machine_that_is_withdrawn_is_a_warning(project: Project) -> None:
    write(project.root / "pyproject.toml", "[tool.benchbook]\n")
    shutil.rmtree(project.records / MACHINE)
    report = check_project(Project(project.root))
    assert [one for one in report.problems if "main" in one.what] == []
    assert "is gone, with all that was measured on that machine" in {one.what for one in report.warnings}


def test_a_variant_that_is_measured_and_not_declared_any_more_is_a_warning(tmp_path: Path) -> None:
    project = swept(tmp_path)
    write(project.snippets / "sums/add.py", SWEEP.replace("[1, 2]", "[1]"))
    told = "its variant steps=2, measured on cpu-test, is not declared any more, and on no page"
    assert warned(project) == [HEAD, told]
    table = table_of(project)
    del table["variants"]["steps=2"]
    put(project, table)
    assert warned(project) == [HEAD, told]


def test_another_first_variant_which_ratios_are_of_is_a_warning(tmp_path: Path) -> None:
    project = swept(tmp_path)
    assert warned(project) == []
    write(project.snippets / "sums/add.py", SWEEP.replace("[1, 2]", "[2, 1]"))
    what = "its first variant is steps=2, and steps=1 on `main`: every ratio is of another"
    shows = "shows its variant steps=2, and on `main` steps=1: what its cells print is of that one"
    assert warned(project) == [HEAD, what, shows]


def test_a_metric_that_is_declared_otherwise_by_the_same_code_is_a_warning(project: Project) -> None:
    write(project.snippets / "sums/add.py", SCRIPT.replace('"count"', '"count", better = "lower"'))
    what = "declares its metric total otherwise than `main`, which its records are read by"
    assert warned(project) == [HEAD, what]


HEAD = "is otherwise than on `main` (its head differs)"


def warned(project: Project) -> list[str]:
    warnings = check_project(Project(project.root)).warnings
    return [one.what for one in warnings if one.path == "snippets/sums/add.py"]


def swept(root: Path) -> Project:
    """A checkout on a branch of `main`, which has a record of two variants."""
    project = make_project(root / "checkout", SWEEP)
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    return project


def machine_said(project: Project, **changes: Any) -> list[str]:
    """What is said of the machine once its description is another."""
    path = project.records / MACHINE / "machine.json"
    write(path, json.dumps(MACHINE_JSON | changes))
    problems = check_project(Project(project.root)).problems
    return [problem.what for problem in problems if problem.path == project.relative(path)]


def test_a_machine_that_main_has_stays_that_machine_and_may_be_worded_better(project: Project) -> None:
    cpu = MACHINE_JSON["cpu"] | {"vendor": "Intel"}
    assert machine_said(project, title="A processor for many tests") == []
    assert machine_said(project, cpu=cpu) == [
        "describes another machine than on `main` (its cpu vendor differs)"
    ]


@pytest.mark.parametrize(
    "setting",
    [
        'machines = ["cpu-ada"]',
        f'blocking_machines = ["{MACHINE}", "cpu-ada"]',
        'guides = { sums = { reference_machine = "cpu-ada" } }',
    ],
)
def test_a_machine_that_becomes_one_of_the_maintainers_is_a_warning(project: Project, setting: str) -> None:
    kept = [f'reference_machine = "{MACHINE}"']
    kept += [] if setting.startswith("blocking") else [f'blocking_machines = ["{MACHINE}"]']
    write(project.root / "pyproject.toml", "\n".join(["[tool.benchbook]", *kept, setting]) + "\n")
    assert settings_warned(project) == [
        (1, "names cpu-ada as a machine of the maintainers, and `main` does not")
    ]
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    assert settings_warned(project) == []


def test_a_tag_that_is_called_as_main_is_not_main(project: Project) -> None:
    table = table_of(project)
    table["variants"]["default"]["output"] = {"add": "total 7\n"}
    put(project, table)
    commit_all(project.root)
    git(project.root, "tag", "origin/main")
    (what,) = said(project)
    assert what.endswith("of the same campaign (its output differs)")


def test_a_setting_of_the_site_that_main_has_stays(project: Project) -> None:
    path = project.root / "mkdocs.yml"
    held = write(path, f"{path.read_text('utf-8')}docs_dir: docs\n").read_text("utf-8")
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    assert check_project(Project(project.root)).problems == ()
    write(path, held.replace("docs_dir: docs\n", ""))
    (problem,) = check_project(Project(project.root)).problems
    assert str(problem) == "mkdocs.yml:1: has no `docs_dir`, which `main` has; restore it from `main`"


def test_an_interface_text_stays_as_long_as_the_code_that_asks_for_it_is_that_of_main(
    project: Project,
) -> None:
    path = project.docs / "en/_language.yml"
    held = path.read_text("utf-8")
    write(path, "strings: {greeting: Hello}\nlabels: {}\n")
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    write(path, held)
    (problem,) = check_project(Project(project.root)).problems
    what = "`strings:` has no `greeting`, which `main` has and pages are made of"
    assert (problem.path, problem.what) == ("docs/en/_language.yml", what)
    write(project.root / "scripts/benchbook/asks.py", "nothing = None\n")
    commit_all(project.root)
    assert check_project(Project(project.root)).problems == ()


def settings_warned(project: Project) -> list[tuple[int, str]]:
    warnings = check_project(Project(project.root)).warnings
    return [(one.line, one.what) for one in warnings if one.path == "pyproject.toml"]


def test_a_machine_is_described_anew_once_something_was_measured_there(project: Project) -> None:
    system = {"kernel": "6.12"}
    assert machine_said(project, system=system) == [
        "is otherwise on `main` (system.kernel), and nothing was measured since"
    ]
    put(project, renewed(project, None))
    assert machine_said(project, system=system) == []
    shown = f"snippets/records/{MACHINE}/machine.json"
    warnings = check_project(Project(project.root)).warnings
    assert [one.what for one in warnings if one.path == shown] == [
        "describes the machine otherwise than `main` (system.kernel)"
    ]


def test_a_campaign_that_measured_no_variant_is_refused_and_unlocks_no_machine(project: Project) -> None:
    table = table_of(project)
    table["campaigns"] |= renewed(project, None)["campaigns"]
    put(project, table)
    assert said(project) == [f"campaign {LATER} measured no variant of the record"]
    assert machine_said(project, system={"kernel": "6.12"}) == [
        "is otherwise on `main` (system.kernel), and nothing was measured since"
    ]


def test_a_campaign_that_was_gone_on_with_has_more_than_on_main(tmp_path: Path) -> None:
    project = make_project(tmp_path / "checkout", SWEEP)
    whole, (first, second) = make_record(SWEEP), ("steps=1", "steps=2")
    (name,) = whole.campaigns
    line = HistoryLine("2026-01-02", name, [first], {first: {"total": 7}})
    stopped = replace(whole, variants={first: whole.variants[first]}, history=(line,))
    write_record(project.root / RECORD, stopped)
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    campaign = whole.campaigns[name]
    assert isinstance(campaign, Campaign)
    later = replace(campaign, finished="2026-01-02T04:05:05Z")
    longer = replace(line, variants=[first, second], medians={first: {"total": 7}, second: {"total": 7}})
    write_record(project.root / RECORD, replace(whole, campaigns={name: later}, history=(longer,)))
    assert said(project) == []


def test_where_git_has_no_history_nothing_is_said_of_it(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    table = table_of(project)
    table["variants"]["default"]["runs"][0]["metrics"].update(total=9)
    put(project, table)
    assert not [one for one in said(project) if "main" in one]


def renewed(
    project: Project, commit: str | None, started: str = "2026-01-03T03:04:05Z", name: str = LATER
) -> dict[str, Any]:
    """The record measured again, from that commit, for two minutes."""
    table = table_of(project)
    ended = started.replace(":04:", ":06:")
    session = {"commit": commit, "modified": False, "started": started, "finished": ended}
    table["campaigns"] = {name: campaign(table) | session}
    table["variants"]["default"]["campaign"] = name
    return table


def measured_now(project: Project, commit: str | None) -> dict[str, Any]:
    """The record measured again from that commit, at this moment, with other results."""
    now = datetime.now(UTC)
    table = renewed(project, commit, f"{now:%Y-%m-%dT%H:%M:%SZ}", f"{now:%Y%m%dT%H%M%SZ}-test")
    campaign(table)["finished"] = f"{now + timedelta(seconds=2):%Y-%m-%dT%H:%M:%SZ}"
    for run in table["variants"]["default"]["runs"]:
        run["metrics"]["total"] += 1
        for cell in run["cells"].values():
            cell["seconds"] *= 1.01 + run["place"] / 97
    return table


def test_what_is_measured_again_later_takes_the_place_of_what_main_has_and_is_told(project: Project) -> None:
    table = measured_now(project, git(project.root, "rev-parse", "HEAD"))
    put(project, table)
    assert said(project) == []
    (name,) = table["campaigns"]
    warnings = check_project(Project(project.root)).warnings
    (told,) = (one.what for one in warnings if one.path == RECORD)
    assert told == (
        f"replaces variant default of sums/add.py on {MACHINE}, which `main` has, by campaign {name}"
    )


def test_what_a_machine_of_main_measures_for_the_first_time_is_told(project: Project) -> None:
    path = copied(project, campaigns=renewed(project, None)["campaigns"], history=[])
    table = json.loads(path.read_text("utf-8"))
    table["variants"]["default"]["campaign"] = LATER
    write(path, json.dumps(table))
    warnings = check_project(Project(project.root)).warnings
    what = f"adds variant default of sums/plus.py on {MACHINE}, a machine that `main` has"
    assert what in [one.what for one in warnings if one.path == project.relative(path)]


def test_what_main_had_before_is_not_measured_again_elsewhere(project: Project) -> None:
    bobs = copy.deepcopy(table_of(project))
    for run in bobs["variants"]["default"]["runs"]:
        for number, cell in enumerate(run["cells"].values()):
            cell["seconds"] *= 1.01234567 + run["place"] / 97 + number / 89
    put(project, bobs)
    commit_all(project.root)
    put(project, measured_now(project, git(project.root, "rev-parse", "HEAD")))
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    assert said(project) == []
    there = f"{MACHINE}--bob"
    write(
        project.records / there / "machine.json", json.dumps(MACHINE_JSON | {"name": there, "owner": "bob"})
    )
    campaign(bobs)["recorded_by"] = "bob"
    path = write(project.record_path(there, "sums/add.py"), json.dumps(bobs | {"machine": there}))
    what = f"variant default: its times are those of {MACHINE}"
    assert what in on(Project(project.root), path)
    git(project.root, "add", "--all")
    git(project.root, "checkout", "--quiet", "main")
    path.unlink()
    bundle = {"schema": 1, "machine": MACHINE_JSON | {"name": there, "owner": "bob"}}
    bundle["records"] = [bobs | {"machine": there, "history": []}]
    handed_in = write(project.root / "bundle.json", packed(bundle))
    with pytest.raises(BenchbookError, match=what):
        import_bundles(Project(project.root), [handed_in])


def test_a_record_that_goes_has_not_moved_into_one_that_main_has(project: Project) -> None:
    copied(project)
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    (project.root / RECORD).unlink()
    report = check_project(Project(project.root))
    said = [one.what for one in (*report.problems, *report.warnings)]
    assert any(what.startswith("lacks variant default") for what in said)


def test_a_record_stays_with_its_script_as_long_as_that_is_there(project: Project) -> None:
    copied(project)
    (project.root / RECORD).unlink()
    what = "lacks variant default, which `main` has, and which sums/add.py measures still"
    assert what in said(project)
    write(project.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    assert record_warned(project) == [f"lacks variant default of sums/add.py on {MACHINE}, which `main` has"]
    (project.snippets / "sums/add.py").unlink()
    moved = f"snippets/records/{MACHINE}/sums/plus.json"
    assert record_warned(project) == [f"is called {moved} now, and what `main` has in it is of sums/add.py"]


def test_a_machine_whose_record_pages_show_instead_of_main_s_is_told(project: Project) -> None:
    def told() -> list[str]:
        warnings = check_project(Project(project.root)).warnings
        return [f"{one.path}: {one.what}" for one in warnings if "what pages show" in one.what]

    edit(project.root / "pyproject.toml", f'reference_machine = "{MACHINE}"', 'reference_machine = ""')
    names = ("a-cpu--ada", "a-cpu")
    for name, before in zip(names, ([], []), strict=True):
        assert told() == before
        described = MACHINE_JSON | {"name": name, "owner": "Ada" if "--" in name else None}
        write(project.records / name / "machine.json", json.dumps(described))
        write(project.record_path(name, "sums/add.py"), json.dumps(table_of(project) | {"machine": name}))
    what = f"is what pages show of sums/add.py now, and no longer its record on {MACHINE}"
    assert told() == [f"snippets/records/a-cpu/sums/add.json: {what}"]


def test_coefficients_that_are_otherwise_or_gone_are_told(project: Project) -> None:
    names = ("coefficients/one", "models/two")
    files = [write(project.snippets / f"{name}.json", "{}\n") for name in names]
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    files[0].write_text("[]\n", "utf-8")
    files[1].unlink()
    told = {
        one.path.rpartition("/")[2]: one.what
        for one in check_project(Project(project.root)).warnings
        if "calculator" in one.what
    }
    assert told["one.json"].startswith("is otherwise than on `main`")
    assert told["two.json"].startswith("is gone, and `main` has it")


def test_a_branch_that_left_main_twice_is_merged_first(project: Project) -> None:
    for branch in ("main", "change"):
        git(project.root, "checkout", "--quiet", branch)
        write(project.root / f"{branch}.txt", "")
        commit_all(project.root)
    heads = {branch: git(project.root, "rev-parse", branch).strip() for branch in ("main", "change")}
    git(project.root, "merge", "--quiet", "--no-edit", heads["main"])
    git(project.root, "checkout", "--quiet", "main")
    git(project.root, "merge", "--quiet", "--no-edit", heads["change"])
    git(project.root, "checkout", "--quiet", "change")
    report = check_project(Project(project.root))
    (problem,) = (one for one in report.problems if one.path == ".")
    assert problem.what == "left `main` at 2 commits, and none of them has what each holds"
    git(project.root, *problem.fix.removeprefix("run git ").split(), "--quiet", "--no-edit")
    assert not any(one.path == "." for one in check_project(Project(project.root)).problems)


def test_of_the_history_nothing_is_read_that_is_larger_than_a_record(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = write(project.records / "elsewhere/sums/add.json", f"[{'[],' * 5000}[]]")
    commit_all(project.root)
    huge.unlink()
    head = commit_all(project.root)
    monkeypatch.setattr("benchbook.content.formats.MOST_VALUES", 5000)
    read: list[str] = []

    def parse(text: str, where: str) -> tuple[Any, list[Problem]]:
        read.append(text)
        return parse_json(text, where)

    monkeypatch.setattr(past_records, "parse_json", parse)
    script = read_script(project.scripts()["sums/add.py"], project.root)
    assert past_records.past_samples(project, project.root, head, {script.reference: script}, ())
    assert len(read) == 1


def test_nothing_replaces_what_main_has_without_a_commit_of_this_history(project: Project) -> None:
    git(project.root, "checkout", "--quiet", "--detach")
    beside = commit_all(project.root)
    git(project.root, "checkout", "--quiet", "change")
    for commit, odd in (
        (None, "names no commit that it was recorded from"),
        ("1" * 40, f"was recorded from commit {'1' * 12}, which is not in this history"),
        (beside, f"was recorded from commit {beside[:12]}, which is not in this history"),
    ):
        table = measured_now(project, commit)
        put(project, table)
        (name,) = table["campaigns"]
        assert said(project) == [f"campaign {name} would replace what `main` has, and {odd}"]
        git(project.root, "checkout", "--quiet", "--", RECORD)


def test_of_a_history_that_is_not_whole_no_commit_is_asked(project: Project, tmp_path: Path) -> None:
    commit_all(project.root)
    shallow = tmp_path / "shallow"
    git(project.root, "clone", "--quiet", "--depth=1", f"file://{project.root}", str(shallow))
    put(Project(shallow), measured_now(project, "1" * 40))
    assert said(Project(shallow)) == []


def test_what_main_has_stays_under_another_name_of_its_script(project: Project) -> None:
    git(project.root, "mv", "snippets/sums/add.py", "snippets/sums/plus.py")
    table = table_of(project) | {"script": "sums/plus.py"}
    (project.root / RECORD).unlink()
    moved = project.record_path(MACHINE, "sums/plus.py")
    write(moved, json.dumps(table))
    assert on(project, moved) == []
    table["variants"]["default"]["runs"][0]["metrics"].update(total=9)
    write(moved, json.dumps(table))
    assert EDITS["runs"][1] in on(project, moved)


def on(project: Project, path: Path) -> list[str]:
    problems = check_project(Project(project.root)).problems
    return [problem.what for problem in problems if problem.path == project.relative(path)]


@pytest.mark.parametrize("started", ["2026-01-02T03:04:05Z", "2026-01-02T03:05:04Z", "2026-01-01T03:04:05Z"])
def test_what_main_has_is_not_replaced_by_a_campaign_that_did_not_come_later(
    project: Project, started: str
) -> None:
    name = f"{started.replace('-', '').replace(':', '')}-aaaa"
    table = renewed(project, None, started, name)
    campaign(table)["modified"] = True
    put(project, table)
    assert (
        f"variant default was measured until 2026-01-02T03:05:05Z on `main`, and campaign {name}, which "
        f"began at {started}, would take its place"
    ) in said(project)


@pytest.mark.parametrize("modified", [False, True])
def test_a_new_campaign_has_the_code_of_its_commit(project: Project, modified: bool) -> None:
    write(project.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    commit = commit_all(project.root)
    table = renewed(project, commit)
    campaign(table)["modified"] = modified
    put(project, table)
    what = (
        f"variant default has other code than sums/add.py in commit {commit[:12]}, which it was recorded from"
    )
    assert (what in said(project)) is not modified


def test_a_new_campaign_is_of_a_commit_that_has_its_script(project: Project) -> None:
    git(project.root, "rm", "--quiet", "snippets/sums/add.py")
    commit = commit_all(project.root)
    git(project.root, "checkout", "--quiet", "main", "--", "snippets/sums/add.py")
    put(project, renewed(project, commit))
    assert f"variant default was recorded from commit {commit[:12]}, which has no sums/add.py" in said(
        project
    )


REGIONS = SCRIPT.replace(
    "total = sum(range(steps))\n",
    """# region first
total = sum(range(steps))
# endregion
# region second
more = 1
# endregion
""",
)


def exchanged(source: str) -> str:
    """A script whose two regions have each other's name."""
    return (
        source.replace("region first", "region x")
        .replace("region second", "region first")
        .replace("region x", "region second")
    )


def test_the_marks_of_a_region_stay_around_the_lines_that_were_reached(tmp_path: Path) -> None:
    project = with_regions(tmp_path)
    script = project.snippets / "sums/add.py"
    write(script, REGIONS.replace("# region first", "# A comment\n\n# region first"))
    assert regions_said(project) == []
    write(script, exchanged(REGIONS))
    assert regions_said(project) == [
        "the region `first` holds other lines than those on `main`, which cpu-test reached in campaign "
        "20260102T030405Z-test"
    ]


def test_a_region_that_moved_is_measured_from_the_commit_that_moved_it(tmp_path: Path) -> None:
    project = with_regions(tmp_path)
    write(project.snippets / "sums/add.py", exchanged(REGIONS))
    commit = commit_all(project.root)
    put(project, renewed(project, commit))
    assert regions_said(project) == []
    write(project.snippets / "sums/add.py", REGIONS)
    assert [one.partition(",")[0] for one in regions_said(project)] == [
        "the region `first` holds other lines than those measured"
    ]


def with_regions(root: Path) -> Project:
    """A checkout on a branch of `main`, whose record reached the first of two regions of its script."""
    project = make_project(root / "checkout", REGIONS)
    write_record(project.root / RECORD, make_record(REGIONS, regions=("first",)))
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    return project


def regions_said(project: Project) -> list[str]:
    problems = check_project(Project(project.root)).problems
    return [problem.what for problem in problems if "region" in problem.what]


def tree(root: Path, *entries: str) -> str:
    """The name that git gives a folder of these entries, as it lists them."""
    command = ["git", "-C", str(root), "mktree"]
    listed = "".join(f"{entry}\n" for entry in entries)
    return subprocess.run(command, input=listed, capture_output=True, text=True, check=True).stdout.strip()


def test_a_commit_of_files_without_end_is_one_problem(project: Project) -> None:
    root = project.root
    folder = tree(root)
    for _ in range(30):
        folder = tree(root, *(f"040000 tree {folder}\t{name}" for name in "abcdefghij"))
    endless = git(root, "commit-tree", tree(root, f"040000 tree {folder}\tsnippets"), "-m", "Endless")
    here = git(root, "commit-tree", git(root, "write-tree"), "-p", endless, "-m", "Here")
    git(root, "update-ref", "refs/heads/main", endless)
    git(root, "update-ref", "refs/heads/change", here)
    (problem,) = check_project(Project(root)).problems
    assert (problem.path, problem.line) == (endless, 1)
    assert problem.what == "has files in more than 8 folders below `snippets`, and nothing lies as deep"
