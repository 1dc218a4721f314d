"""Whatever `main` has, and a branch has otherwise, is told to whoever looks at the branch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchbook.checking.checks import check_project
from benchbook.content.project import Project
from benchbook.content.records import Record, write_record
from builders import MACHINE, MACHINE_JSON, SCRIPT, SWEEP, make_project, make_record, write
from handbooks import edit
from predicted import ADDING, DECLARED, adding, predict
from repositories import commit_all, git

ADD = "sums/add.py"
HEAD = "---\ndescription: What adding costs.\n---\n\n# Adding { #adding }\n\n"
VALUE = f"The total is `#!value {ADD}#total`.\n"
TABLE = f"```table\nscript: {ADD}\nrows: steps\ncolumns: [total]\n```\n"
LENT = f'[tool.benchbook]\nreference_machine = "{MACHINE}"\nmachines = ["{MACHINE}"]\n'
CLAIM = f'[[claim]]\nid = "one"\na = "{ADD}#total"\nrelation = "greater"\nb = 1\n'
OTHERWISE = "is otherwise than on `main`"


def words(project: Project) -> set[str]:
    report = check_project(Project(project.root))
    return {f"{one.path}: {one.what}" for one in (*report.problems, *report.warnings)}


def branch(project: Project) -> set[str]:
    """Leave `main`; what is said there."""
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    return words(project)


def told(project: Project, before: set[str]) -> set[str]:
    """What is said of the branch alone."""
    commit_all(project.root)
    return words(project) - before


def stale(root: Path, source: str, page: str) -> Project:
    """A handbook whose script changed on `main` since its lent machine recorded it."""
    project = make_project(root, source, HEAD + page)
    write(project.root / "pyproject.toml", LENT)
    edit(project.snippets / ADD, "range(steps)", "range(0, steps)")
    return project


def lend(project: Project, owner: str, record: Record) -> str:
    """Put a machine of its own there, with a record of the script; its name."""
    name = f"{MACHINE}--{owner}"
    described = {"name": name, "owner": owner, "title": f"That of {owner}", "short": owner}
    write(project.records / name / "machine.json", json.dumps(MACHINE_JSON | described))
    campaigns = {key: replace(one, recorded_by=owner) for key, one in record.campaigns.items()}
    write_record(project.record_path(name, ADD), replace(record, machine=name, campaigns=campaigns))
    return name


def predicted_only(root: Path, page: str) -> Project:
    """A handbook whose script nobody recorded: its peaks are predicted for a GPU."""
    project = adding(root, DECLARED.replace(', "cpu-test"', ""))
    write(project.docs / "en/sums.md", HEAD + page)
    project.record_path(MACHINE, ADD).unlink()
    write(project.root / "pyproject.toml", LENT)
    predict(project)
    return project


def test_a_unit_of_what_is_stale_is_told(tmp_path: Path) -> None:
    project = stale(tmp_path, SCRIPT.replace('"count"', '"B"'), VALUE)
    before = branch(project)
    edit(project.snippets / ADD, '"B"', '"GiB"')
    what = "declares its metric total otherwise than `main`, which its records are read by"
    assert told(project, before) == {
        f"snippets/{ADD}: {OTHERWISE} (its head differs)",
        f"snippets/{ADD}: {what}",
    }


def test_a_variant_of_other_code_that_is_declared_no_more_is_told(tmp_path: Path) -> None:
    project = stale(tmp_path, SWEEP, TABLE)
    before = branch(project)
    edit(project.snippets / ADD, "[1, 2]", "[1]")
    what = f"its variant steps=2, measured on {MACHINE}, is not declared any more, and on no page"
    assert f"snippets/{ADD}: {what}" in told(project, before)


def test_another_order_of_variants_behind_the_first_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path, SWEEP.replace("[1, 2]", "[1, 2, 3]"), HEAD + TABLE)
    before = branch(project)
    edit(project.snippets / ADD, "[1, 2, 3]", "[1, 3, 2]")
    what = "its variants are in another order than on `main`: ratios may be of another"
    assert f"snippets/{ADD}: {what}" in told(project, before)


def test_another_variant_that_a_script_shows_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path, SWEEP, HEAD + TABLE)
    before = branch(project)
    edit(project.snippets / ADD, "\nsteps = 4", "\nsteps = 2")
    what = "shows its variant steps=2, and on `main` steps=1: what its cells print is of that one"
    assert f"snippets/{ADD}: {what}" in told(project, before)


def test_a_script_whose_regions_are_exchanged_is_told_though_its_record_is_stale(tmp_path: Path) -> None:
    lines = "# region first\ntotal = sum(range(steps))\n# endregion\n# region second\nmore = 1\n# endregion\n"
    project = stale(
        tmp_path, SCRIPT.replace("total = sum(range(steps))\n", lines), f"```cell\n{ADD}#first\n```\n"
    )
    before = branch(project)
    for old, new in (("first", "x"), ("second", "first"), ("x", "second")):
        edit(project.snippets / ADD, f"region {old}", f"region {new}")
    assert told(project, before) == {f"snippets/{ADD}: {OTHERWISE} (its cell `add` differs)"}


def test_what_else_changes_of_a_script_that_is_renamed_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path, SWEEP.replace('"count"', '"count", better = "lower"'), HEAD + TABLE)
    before = branch(project)
    edit(project.docs / "en/sums.md", ADD, "sums/plus.py")
    folder = f"snippets/records/{MACHINE}/sums"
    git(project.root, "mv", f"{folder}/add.json", f"{folder}/plus.json")
    edit(project.record_path(MACHINE, "sums/plus.py"), ADD, "sums/plus.py")
    git(project.root, "mv", "snippets/sums/add.py", "snippets/sums/plus.py")
    edit(project.snippets / "sums/plus.py", '"lower"', '"higher"')
    said = told(project, before)
    where = f"snippets/{ADD} on `main`, which it was"
    assert f"snippets/sums/plus.py: is otherwise than {where} (its head differs)" in said
    assert any("declares its metric total otherwise" in one for one in said)
    assert f"snippets/{ADD}: is gone, and `main` has it" in said


def test_what_else_changes_of_a_script_that_is_renamed_and_only_predicted_is_told(tmp_path: Path) -> None:
    project = predicted_only(tmp_path, f"The peak is `#!value {ADD}?mode=plain#peak`.\n")
    before = branch(project)
    git(project.root, "mv", "snippets/sums/add.py", "snippets/sums/plus.py")
    edit(project.snippets / "sums/plus.py", '["plain", "lean"]', '["lean", "plain"]')
    what = f"is otherwise than snippets/{ADD} on `main`, which it was (its head differs)"
    assert f"snippets/sums/plus.py: {what}" in told(project, before)


def test_a_model_is_told_whoever_else_declares_one_of_its_name(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    models = '[one]\ntitle = "One"\nparameters = 1000\n'
    write(project.snippets / "models/models.toml", models)
    before = branch(project)
    write(project.snippets / "models/models.toml", models.replace("1000", "3000"))
    write(project.snippets / "predictions/models.toml", models)
    what = f"the model `one` {OTHERWISE} (its parameters differs)"
    assert f"snippets/models/models.toml: {what}" in told(project, before)


def test_a_claim_that_moves_to_another_guide_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    path = write(project.snippets / "sums/claims.toml", CLAIM)
    before = branch(project)
    path.unlink()
    write(project.snippets / "others/claims.toml", CLAIM)
    what = "the claim `one` is in snippets/sums/claims.toml on `main`"
    assert f"snippets/others/claims.toml: {what}" in told(project, before)


def test_the_page_that_was_called_finished_is_told_where_it_is_another(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    review = '[frozen]\ndate = "2026-01-02"\npage = "sha256:%s"\n'
    path = write(project.snippets / "sums/review.toml", review % ("0" * 64))
    before = branch(project)
    write(path, review % ("1" * 64))
    what = f"the page of sums that was called finished {OTHERWISE} (its page differs)"
    assert f"snippets/sums/review.toml: {what}" in told(project, before)


@pytest.mark.parametrize(
    ("after", "how"),
    [("by: Eve", "is another, by Eve"), ("# by: nobody", "is gone")],
)
def test_a_native_review_that_is_gone_or_another_s_is_told(tmp_path: Path, after: str, how: str) -> None:
    project = make_project(tmp_path)
    page = (
        "---\ndescription: 足し算\nreviewed:\n  adding:\n    by: Aiko\n    native: ja\n    date: '2026-01-02'\n"
        f"    read: '{'0' * 12}'\n    english: '{'0' * 12}'\n---\n\n# 足し算 {{ #adding }}\n"
    )
    path = write(project.docs / "ja/sums.md", page)
    before = branch(project)
    write(path, page.replace("by: Aiko", after))
    what = f"the review of `adding` by Aiko, which `main` has, {how}"
    assert f"docs/ja/sums.md: {what}" in told(project, before)


def test_a_record_that_pages_show_instead_of_a_prediction_is_told(tmp_path: Path) -> None:
    project = predicted_only(tmp_path, f"The peak is `#!value {ADD}?mode=plain#peak`.\n")
    (gpu,) = (path.name for path in project.predictions.glob("*/"))
    before = branch(project)
    name = lend(project, "bob", make_record(ADDING))
    what = f"is what pages show of {ADD} now, and no longer what is predicted of it on {gpu}"
    assert f"snippets/records/{name}/sums/add.json: {what}" in told(project, before)


def test_a_machine_that_stands_before_another_of_main_s_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path, page=HEAD + VALUE)
    zoe = lend(project, "zoe", make_record())
    before = branch(project)
    ada = lend(project, "ada", make_record())
    what = f"stands before {zoe}, which `main` has, for {ADD}"
    assert f"snippets/records/{ada}/machine.json: {what}" in told(project, before)


def test_a_machine_that_stands_before_a_prediction_is_told_though_others_stand_before_both(
    tmp_path: Path,
) -> None:
    project = adding(tmp_path)
    predict(project)
    gpu = next(name for name in (path.name for path in project.predictions.glob("*/")) if name != MACHINE)
    before = branch(project)
    eve = lend(project, "eve", make_record(ADDING))
    # A value of two scripts may be of the one machine that has both.
    what = f"stands before {gpu}, which `main` has, for {ADD}"
    assert f"snippets/records/{eve}/machine.json: {what}" in told(project, before)


def test_a_machine_that_pages_of_other_guides_show_now_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path, page=HEAD + VALUE)
    project.record_path(MACHINE, ADD).unlink()
    zoe = lend(project, "zoe", make_record())
    guides = f'guides = {{ sums = {{ reference_machine = "{zoe}" }} }}\n'
    write(project.root / "pyproject.toml", LENT + guides)
    before = branch(project)
    ada = lend(project, "ada", make_record())
    what = f"is what pages show of {ADD} now, and no longer its record on {zoe}"
    assert f"snippets/records/{ada}/sums/add.json: {what}" in told(project, before)


def test_a_blind_prediction_that_main_lacks_is_told_once_it_is_measured(tmp_path: Path) -> None:
    project = adding(tmp_path)
    measured = project.record_path(MACHINE, ADD).read_text("utf-8")
    project.record_path(MACHINE, ADD).unlink()
    predict(project)
    path = project.prediction_path(MACHINE, ADD)
    blind = path.read_text("utf-8")
    path.unlink()
    before = branch(project)
    write(path, blind)
    write(project.record_path(MACHINE, ADD), measured)
    names = "mode=plain, mode=lean of sums/add.py, of which `main` has no prediction"
    what = f"says of a variant that is measured that it was predicted blind: {names}"
    assert f"{project.relative(path)}: {what}" in told(project, before)


def test_a_prediction_that_main_lacks_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    project = predicted_only(tmp_path, f"The peak is `#!value {ADD}?mode=plain#peak`.\n")
    (path,) = project.predictions.glob("*/sums/add.json")
    guessed = path.read_text("utf-8")
    path.unlink()
    before = branch(project)
    write(path, guessed)
    names = "mode=plain, mode=lean of sums/add.py, of which `main` has no prediction"
    assert f"{project.relative(path)}: predicts: {names}" in told(project, before)


def test_a_branch_that_has_nothing_in_common_with_main_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    before = branch(project)
    git(project.root, "checkout", "--quiet", "--orphan", "other")
    write(project.docs / "en/sums.md", HEAD + VALUE)
    what = "has no commit in common with main, and nothing here is held to what that has"
    assert f".: {what}" in told(project, before)


def test_any_other_file_of_data_that_is_otherwise_or_gone_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    more = write(project.snippets / "sums/more.toml", "[one]\n")
    before = branch(project)
    more.unlink()
    record = project.record_path(MACHINE, ADD)
    write(record, json.dumps(json.loads(record.read_text("utf-8")), indent=3))
    assert told(project, before) == {
        f"{project.relative(record)}: {OTHERWISE}",
        "snippets/sums/more.toml: is gone, and `main` has it",
    }


def test_a_file_of_any_kind_that_a_script_reads_is_told_where_it_is_another(tmp_path: Path) -> None:
    table = '# [tool.benchbook]\n# inputs = ["rows.txt"]\n#\n# [tool.benchbook.metrics]'
    write(tmp_path / "snippets/sums/rows.txt", "1 2 3\n")
    project = make_project(tmp_path, SCRIPT.replace("# [tool.benchbook.metrics]", table))
    before = branch(project)
    write(project.snippets / "sums/rows.txt", "1 2 4\n")
    assert f"snippets/sums/rows.txt: {OTHERWISE}" in told(project, before)


def test_a_machine_that_main_does_not_have_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    before = branch(project)
    name = "cpu-attic--eve"
    write(project.records / name / "machine.json", json.dumps(MACHINE_JSON | {"name": name, "owner": "eve"}))
    what = f"describes {name}, a machine that `main` does not have"
    assert f"snippets/records/{name}/machine.json: {what}" in told(project, before)


def test_a_text_of_an_error_that_main_does_not_know_is_told(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    before = branch(project)
    parts = 'fixed_parts = {"arguments": ["CUDA out of memory"]}\ntotal = sum(range(steps))'
    write(project.snippets / "sums/words.py", SCRIPT.replace("total = sum(range(steps))", parts))
    what = "provokes arguments: what readers paste may lead there, and not where it does on `main`"
    assert f"snippets/sums/words.py: {what}" in told(project, before)


def test_what_is_changed_is_told_before_all_else(tmp_path: Path) -> None:
    project = make_project(tmp_path, SWEEP, HEAD + TABLE)
    write(project.root / "pyproject.toml", LENT)
    write(project.snippets / "sums/zeros.toml", "[one]\n")
    branch(project)
    (project.snippets / "sums/zeros.toml").unlink()
    write(project.snippets / "aside/never.py", SWEEP.replace("[1, 2]", "[1, 2, 3]"))
    commit_all(project.root)
    first, *others = check_project(Project(project.root)).warnings
    assert first.path == "snippets/sums/zeros.toml"
    assert any(one.path < first.path for one in others)
