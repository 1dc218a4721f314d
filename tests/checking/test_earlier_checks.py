"""A check that asked for too much is mended without measuring anew; nothing else may have changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchbook.checking.checks import check_project
from benchbook.checking.status import script_status
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import write_record
from benchbook.content.script import Script, parse_script
from builders import MACHINE, SCRIPT, make_project, make_record, with_table, write
from repositories import commit_all

PATH = "snippets/sums/add.py"
CHECK = "assert total >= 0"
STRICT = SCRIPT.replace(CHECK, "assert total == 3")


def parse(source: str) -> Script:
    return parse_script(source, PATH, "sums/add.py")


def naming(*digests: str, source: str = SCRIPT) -> str:
    """The script, which says that records of other code than its own are its own all the same."""
    return with_table(f"[tool.benchbook]\nearlier_checks = {list(digests)}".replace("'", '"'), source)


def measured(root: Path, past: str = STRICT) -> Project:
    """A repository in which a script was committed and recorded."""
    project = make_project(root / "checkout", past)
    write_record(project.record_path(MACHINE, "sums/add.py"), make_record(past))
    commit_all(project.root)
    return project


def said(project: Project, source: str) -> list[str]:
    write(project.root / PATH, source)
    problems = check_project(Project(project.root)).problems
    return [problem.what for problem in problems if problem.path == PATH]


def state(project: Project) -> set[str]:
    project = Project(project.root)
    script = parse((project.root / PATH).read_text("utf-8"))
    return {row.state for row in script_status(project, script, MACHINE, ("cpu", MACHINE))}


def test_a_check_is_mended_and_what_was_measured_stays_fresh(tmp_path: Path) -> None:
    project = measured(tmp_path)
    write(project.root / PATH, SCRIPT)
    assert state(project) == {"stale"}
    (stale,) = check_project(Project(project.root)).problems
    earlier = f'set `earlier_checks = ["{parse(STRICT).code_digest}"]` in [tool.benchbook]'
    assert stale.fix.endswith(f"; or, for its checks alone changed, {earlier}")
    assert said(project, naming(parse(STRICT).code_digest)) == []
    assert state(project) == {"fresh"}
    commit_all(project.root)
    assert said(project, naming(parse(STRICT).code_digest)) == []


@pytest.mark.parametrize(
    "other",
    [
        SCRIPT.replace("range(steps)", "range(1, steps)"),
        SCRIPT.replace("# %% add", "# %% sum"),
        SCRIPT.replace('unit = "count"', 'unit = "B"'),
    ],
)
def test_what_differs_by_more_than_its_checks_is_recorded_again(tmp_path: Path, other: str) -> None:
    assert parse(other).code_digest != parse(SCRIPT).code_digest
    project = measured(tmp_path)
    write(project.root / PATH, other)
    assert not any(
        "earlier_checks" in problem.fix for problem in check_project(Project(project.root)).problems
    )
    (what,) = said(project, naming(parse(STRICT).code_digest, source=other))
    assert what.endswith("is not this with other checks: it differs by more than the cell `checks`")


@pytest.mark.parametrize(
    "setting",
    [
        "total += 1",
        "for total in (1, 2):\n    pass",
        "import sys as total",
        "def total():\n    pass",
        "from math import *",
        "globals()['total'] = 5",
        "vars().update(total=5)",
        "losses[0] = 0",
        "losses.sort()",
        "del losses[0]",
        "assert losses.append(0) is None",
        "assert (total := 5)",
        "assert max([1], key=losses.append)",
        "assert [0 for losses[0] in (1, 2)]",
        "assert [0 for losses.last in (1, 2)]",
        "if losses.pop():\n    assert total == 3",
        "if total == 3:\n    total = 4",
    ],
)
def test_checks_that_may_change_what_records_hold_are_no_checks_alone(tmp_path: Path, setting: str) -> None:
    odd = STRICT.replace("assert total == 3", f"assert total == 3\n{setting}")
    project = measured(tmp_path, odd)
    (what,) = said(project, naming(parse(odd).code_digest))
    assert what.endswith("its checks differ by more than what they assert")
    mended = SCRIPT.replace(CHECK, f"{CHECK}\n{setting}")
    project = measured(tmp_path / "other")
    (what,) = said(project, naming(parse(STRICT).code_digest, source=mended))
    assert what.endswith("its checks differ by more than what they assert")


@pytest.mark.parametrize(
    "asked",
    [
        "if total > 1:\n    assert math.isclose(near, 3, rel_tol=0.1)\nelse:\n    assert total",
        "assert max(shares, key=shares.get) == 1",
        "assert sorted(shares, key=abs) == [1]",
    ],
)
def test_what_all_checks_did_is_theirs(tmp_path: Path, asked: str) -> None:
    def near(asked: str) -> str:
        return SCRIPT.replace(CHECK, f"import math\n\nnear, shares = total, {{1: total}}\n{asked}")

    past = near(asked)
    project = measured(tmp_path, past)
    assert said(project, naming(parse(past).code_digest, source=near("assert abs(near) > 0"))) == []


def test_a_digest_that_no_record_holds_goes(tmp_path: Path) -> None:
    project = measured(tmp_path)
    (what,) = said(project, naming(parse(STRICT).code_digest, "sha256:" + "0" * 64))
    assert what.startswith("the code sha256:000000000000 of `earlier_checks` is not this with other checks")
    assert what.endswith("no record holds it")


def test_code_that_the_history_does_not_have_is_not_taken_on_trust(tmp_path: Path) -> None:
    project = measured(tmp_path)
    never = STRICT.replace("== 3", "== 4")
    write_record(project.record_path(MACHINE, "sums/add.py"), make_record(never))
    (what,) = said(project, naming(parse(never).code_digest))
    assert what.endswith("no commit here has it")
    shutil.rmtree(project.root / ".git")
    assert said(project, naming(parse(never).code_digest)) == []


@pytest.mark.parametrize(
    "value", ["[]", '["sha256:12"]', '"sha256:12"', '["sha256:{0}", "sha256:{0}"]'.format("0" * 64), "[1]"]
)
def test_earlier_checks_are_digests_as_records_hold_them(value: str) -> None:
    with pytest.raises(BenchbookError, match="make it a list of digests of code that records hold"):
        parse(with_table(f"[tool.benchbook]\nearlier_checks = {value}"))


def test_what_is_of_the_same_earlier_checks_as_on_main_is_held_to_its_head_there(tmp_path: Path) -> None:
    project = measured(tmp_path)
    earlier = parse(STRICT).code_digest
    write(project.root / PATH, naming(earlier))
    commit_all(project.root)
    other = SCRIPT.replace(CHECK, "assert total > 0").replace('"count"', '"count", better = "lower"')
    write(project.root / PATH, naming(earlier, source=other))
    report = check_project(Project(project.root))
    assert report.problems == ()
    assert [told.what for told in report.warnings] == [
        "is otherwise than on `main` (its head, cell `checks` differs)",
        "declares its metric total otherwise than `main`, which its records are read by",
    ]
