"""A script whose dependencies clash with those of the others runs in an environment of its own, beside theirs."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import Record, load_record
from benchbook.machines.description import describe
from benchbook.recording import command as recording
from benchbook.recording import hosts as recording_hosts
from benchbook.recording.hosts import Host, Hosts, interpreter_in
from benchbook.recording.journal import read_journal
from builders import write
from environments import install, make_environment
from running import run_in, script_text, small_project

HERE = describe(None)
BODY = """
    # %% work
    import weights
    version = weights.version
    print(version)

    # %% checks
    assert version
"""
CPU = 'needs = ["cpu"]'
OWN = 'needs = ["cpu"]\nvenv = "own"'


@pytest.fixture
def below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment that runs the others."""
    made = make_environment(tmp_path / ".venv/record")
    install(made, "1.0")
    monkeypatch.setenv("BENCHBOOK_PYTHON", str(made / "bin/python"))
    return made


@pytest.fixture
def own(below: Path) -> Path:
    """One over it, with another version of a package."""
    made = make_environment(below.with_name("record-own"), below)
    install(made, "2.0")
    return made


@pytest.fixture
def project(tmp_path: Path, below: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two scripts that need one package; the first in an environment of its own."""
    monkeypatch.setattr(recording, "find_accelerators", lambda *_: None)
    project = small_project(tmp_path / "checkout")
    add(project, "alone", OWN)
    add(project, "others", CPU)
    return project


def add(project: Project, name: str, table: str, body: str = BODY) -> None:
    text = script_text(body, table).replace("dependencies = []", 'dependencies = ["weights>=1"]')
    write(project.root / f"snippets/guide/{name}.py", text)


def record(project: Project, *scripts: str, **options: bool) -> int:
    return recording.record_command(project, list(scripts), **options)


def written(project: Project, name: str) -> Record | None:
    return load_record(project.record_path(HERE.name, f"guide/{name}.py"))


def told(project: Project, name: str) -> tuple[str, str]:
    """What a script printed, and the version that its record names."""
    found = written(project, name)
    assert found is not None
    (variant,), (campaign,) = found.variants.values(), found.campaigns.values()
    return variant.output["work"].strip(), campaign.packages["weights"]


@pytest.mark.usefixtures("own")
def test_each_script_runs_in_its_environment_and_its_record_names_what_is_there(project: Project) -> None:
    assert record(project) == 0
    assert told(project, "alone") == ("2.0", "2.0")
    assert told(project, "others") == ("1.0", "1.0")


@pytest.mark.usefixtures("own")
def test_what_an_environment_has_not_comes_from_the_one_below(below: Path, tmp_path: Path) -> None:
    install(below, "3.0", "shared")
    body = "import shared, weights\nassert (shared.version, weights.version) == ('3.0', '2.0')"
    with Hosts() as hosts:
        result = run_in(hosts.host({}, (), "small.py", "own"), tmp_path, body)
    assert result.failure is None


@pytest.mark.usefixtures("own")
def test_there_is_one_process_for_each_environment(below: Path) -> None:
    with Hosts() as hosts:
        shared, alone = hosts.host({}, (), "small.py"), hosts.host({}, (), "small.py", "own")
        assert shared is not alone
        assert hosts.host({}, (), "small.py", "own") is alone


def test_where_an_environment_is_not_there_the_others_are_recorded(
    project: Project, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record(project) == 0
    before = written(project, "alone")
    own.rename(own.with_name("gone"))
    for name, table in (("alone", OWN), ("others", CPU)):
        add(project, name, table, BODY.replace("print(version)", "print(version, 'again')"))
    assert record(project) == 1
    said = capsys.readouterr().err
    assert f"snippets/guide/alone.py:8: its environment `own` is not there ({own}/bin/python)" in said
    assert "run `make .venv/record-own/.installed`" in said
    assert written(project, "alone") == before
    assert told(project, "others") == ("1.0 again", "1.0")


def test_a_folder_without_room_for_a_process_is_named_and_no_script(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> Host:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(recording_hosts, "Host", no_room)
    with Hosts() as hosts, pytest.raises(BenchbookError) as caught:
        hosts.host({}, (), "small.py")
    assert str(caught.value) == (
        f"{tempfile.gettempdir()}:1: has no room left (No space left on device); make room there"
    )


def test_where_no_make_makes_it_the_fix_says_what_belongs_there(tmp_path: Path) -> None:
    with Hosts(str(tmp_path / "python/bin/python3")) as hosts, pytest.raises(BenchbookError) as caught:
        hosts.host({}, (), "small.py", "own", 7)
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == ("small.py", 7)
    assert f"{tmp_path}/python-own/bin/python" in problem.what
    assert "`benchbook dependencies --venv own`" in problem.fix


@pytest.mark.parametrize("option", ["smallest", "verify"])
def test_what_writes_nothing_goes_on_without_an_environment_too(
    project: Project, own: Path, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert record(project) == 0
    own.rename(own.with_name("gone"))
    capsys.readouterr()
    assert record(project, **{option: True}) == 1
    said = capsys.readouterr()
    assert "its environment `own` is not there" in said.err
    assert "guide/others.py" in said.out + said.err


def test_runs_with_other_versions_in_an_environment_are_not_gone_on_with(project: Project, own: Path) -> None:
    add(project, "alone", OWN, BODY.replace("assert version", "assert not version"))
    path = project.journal / HERE.name / "guide/alone.jsonl"
    campaigns = []
    for version in ("2.0", "2.0", "2.1"):
        install(own, version)
        assert record(project, "guide/alone.py") == 1
        journal = read_journal(path)
        assert journal is not None
        assert journal.header["key"]["packages"]["weights"] == version
        campaigns.append(journal.header["campaign"]["id"])
    assert campaigns[0] == campaigns[1] != campaigns[2]


def test_the_environments_that_a_recording_needs_can_be_asked_for(
    project: Project, own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def asked(*scripts: str) -> str:
        capsys.readouterr()
        assert record(project, *scripts, venvs=True) == 0
        return capsys.readouterr().out

    assert asked() == "own\n"
    assert asked("guide/others.py") == ""
    assert not project.journal.exists()
    assert record(project) == 0
    assert asked() == ""


def test_a_link_to_an_interpreter_is_not_followed(own: Path, below: Path) -> None:
    assert (below / "bin/python").is_symlink()
    assert interpreter_in(str(below / "bin/python"), "own") == str(own / "bin/python")
    assert interpreter_in(str(below / "bin/python"), "") == str(below / "bin/python")
