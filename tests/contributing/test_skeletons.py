"""What is begun by a command records, builds and passes the check as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.checking.checks import check_project
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.script import read_script
from benchbook.contributing.skeletons import new_guide, new_script
from benchbook.machines.description import describe
from benchbook.recording import command as recording
from builders import make_project, write
from handbooks import build_site, copy_handbook, edit

NAV = "site_name: Test\nnav:\n  - Start: index.md\n  - Understand:\n      - sums.md\n\nplugins: []\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    return make_project(tmp_path)


def test_a_guide_records_builds_and_passes_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    project = copy_handbook(tmp_path)
    assert new_guide(project, "adding_up") == ["snippets/adding_up/first.py", "docs/en/adding_up.md"]
    assert recording.record_command(project, ["adding_up"]) == 0
    edit(
        project.root / "pyproject.toml",
        'reference_machine = "',
        f'reference_machine = "{describe(None).name}" #"',
    )
    project = Project(project.root)
    report = check_project(project)
    assert [problem for problem in report.problems if "adding_up" in str(problem)] == []
    html = (build_site(project) / "adding_up/index.html").read_text("utf-8")
    assert '<data value="0.5"' in html
    assert "bfloat16" in html


def test_before_it_is_recorded_the_check_says_what_to_do(project: Project) -> None:
    new_guide(project, "adding_up")
    said = [str(problem) for problem in check_project(project).problems]
    assert any(
        "has no record on any machine; record it: benchbook record adding_up/first.py" in x for x in said
    )


def test_a_guide_is_listed_where_pages_are_listed(project: Project) -> None:
    write(project.root / "mkdocs.yml", NAV)
    assert new_guide(project, "adding_up")[-1] == "mkdocs.yml"
    wanted = NAV.replace("      - sums.md\n", "      - sums.md\n  - adding_up.md\n")
    assert (project.root / "mkdocs.yml").read_text("utf-8") == wanted


def test_a_list_of_pages_that_is_not_utf_8_is_named(project: Project) -> None:
    (project.root / "mkdocs.yml").write_bytes("# ä".encode("latin-1"))
    with pytest.raises(BenchbookError, match=r"mkdocs.yml:1: cannot be read .*save it as UTF-8"):
        new_guide(project, "adding_up")
    assert not (project.docs / "en/adding_up.md").exists()


def test_a_script_is_well_formed_and_runs_at_its_smallest(project: Project) -> None:
    assert new_script(project, "sums/other") == ["snippets/sums/other.py"]
    script = read_script(project.snippets / "sums/other.py", project.root)
    assert [variant.name for variant in script.variants(("cpu",))] == [
        "precision=float32",
        "precision=bfloat16",
    ]
    assert recording.record_command(project, ["sums/other.py"], smallest=True) == 0


@pytest.mark.parametrize(
    "name", ["other", "sums/Other", "../x/y", "sums/../y", "records/x", "sums/", "/etc/x", "a/b/c"]
)
def test_what_cannot_name_a_script_is_refused(project: Project, name: str) -> None:
    with pytest.raises(BenchbookError, match="cannot name a script"):
        new_script(project, name)


@pytest.mark.parametrize(
    "name", ["Adding", "../adding", "records", "models", "coefficients", "1st", "a-b", ""]
)
def test_what_cannot_name_a_guide_is_refused(project: Project, name: str) -> None:
    with pytest.raises(BenchbookError, match="cannot name a guide"):
        new_guide(project, name)


def test_nothing_that_is_there_is_overwritten(project: Project) -> None:
    for begin, name in ((new_script, "sums/add"), (new_guide, "sums")):
        with pytest.raises(BenchbookError, match="is there already"):
            begin(project, name)
