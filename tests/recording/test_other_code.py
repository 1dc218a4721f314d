"""A campaign that was stopped is gone on with by the same code alone, whatever way Python finds it."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import benchbook
from benchbook.content.project import Project
from benchbook.content.records import Campaign
from benchbook.recording import campaign as campaigns
from benchbook.recording import hosts
from benchbook.recording import session as sessions
from benchbook.recording.installed_packages import installed_code, versions
from benchbook.recording.jobs import Result
from benchbook.recording.loaded_code import changed_code, loaded_code
from benchbook.recording.stores import Checkout
from builders import write
from repositories import commit_all
from running import SWEEP, add_script, script_text
from stopping import (
    PLAIN,
    TIMED,
    begins_anew,
    changes_after,
    install,
    only_campaign,
    record,
    stopped,
    written,
)


def install_to_edit(site: Path, source: Path, value: int) -> None:
    """A package `gadget` that is imported from its source, where its code holds a value."""
    install(site, "1.0")
    origin = {"url": source.as_uri(), "dir_info": {"editable": True}}
    write(site / "gadget-1.0.dist-info/direct_url.json", json.dumps(origin))
    write(source / "gadget/__init__.py", f"value = {value}\n")
    os.utime(source / "gadget/__init__.py", ns=(value, value))


def needs_gadget(project: Project, table: str) -> None:
    text = script_text(PLAIN, table).replace("dependencies = []", 'dependencies = ["gadget"]')
    write(project.snippets / "guide/small.py", text)


def pulls_meanwhile(project: Project, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Commit a script, and a file of this name once two of its runs are done."""
    add_script(project.root, PLAIN, SWEEP)
    write(project.root / ".gitignore", ".benchbook\n")
    commit_all(project.root)

    def pull() -> None:
        write(project.root / name, "x = 1\n")
        commit_all(project.root)

    changes_after(monkeypatch, 2, pull)


def test_a_package_is_imported_from_where_its_version_is_installed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site := tmp_path / "site", "1.0")
    write(site / "gadget/__init__.py", "")
    # Python has a package of that name too, which nobody imports as the gadget's.
    write(site / "gadget-1.0.dist-info/RECORD", "gadget/__init__.py,,\ntest/__init__.py,,\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    text = script_text(PLAIN, SWEEP).replace("dependencies = []", 'dependencies = ["gadget"]')
    write(project.snippets / "guide/small.py", text)
    (site / "gadget").rename(tmp_path / "kept")
    (site / "gadget").symlink_to(tmp_path / "kept")
    assert record(project) == 0
    before = written(project)
    mine = write(tmp_path / "mine/gadget/__init__.py", "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "mine"), prepend=os.pathsep)
    capsys.readouterr()
    assert record(project, everything=True) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "gadget" in line]
    told = f"`import gadget` takes {mine}, and gadget 1.0 is installed in {site}; take its folder out of"
    assert line.startswith(f"snippets/guide/small.py:1: {told} PYTHONPATH")
    assert written(project) == before


def test_runs_of_two_versions_of_a_package_are_not_kept_and_that_is_said_in_one_line(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site := tmp_path / "site", "1.0")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    text = script_text(PLAIN, SWEEP).replace("dependencies = []", 'dependencies = ["gadget"]')
    write(project.snippets / "guide/small.py", text)
    changes_after(monkeypatch, 2, lambda: install(site, "2.0"))
    assert record(project) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "gadget" in line]
    assert line == (
        "snippets/guide/small.py:4: gadget changed from 1.0 to 2.0 while it was recorded, and no run of this "
        "session is kept; leave its packages as they are until it is recorded, and record it again"
    )
    assert not project.records.exists()
    (journal,) = project.journal.rglob("*.jsonl")
    assert len(journal.read_text("utf-8").splitlines()) == 1
    assert record(project) == 0
    (campaign,) = written(project).campaigns.values()
    assert isinstance(campaign, Campaign)
    assert campaign.packages["gadget"] == "2.0"


@pytest.mark.parametrize("killed", [1, 2])
def test_packages_are_asked_for_once_more_where_what_tells_of_them_is_killed(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], killed: int
) -> None:
    add_script(project.root, PLAIN)
    run, left = subprocess.run, [killed]

    def dying(arguments: list[str], **options: Any) -> Any:
        if hosts.VERSIONS_CODE in arguments and left[0]:
            left[0] -= 1
            raise subprocess.CalledProcessError(-signal.SIGKILL, arguments)
        return run(arguments, **options)

    monkeypatch.setattr(subprocess, "run", dying)
    assert record(project) == killed - 1
    what = "its interpreter does not tell which packages it has, and no run of this session is kept"
    assert (what in capsys.readouterr().err) == (killed == 2)


def test_a_campaign_is_not_gone_on_with_once_a_package_is_edited_that_is_installed_to_be(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, source = tmp_path / "site", tmp_path / "a source"
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    needs_gadget(project, TIMED)
    for value, goes_on in ((1, True), (1, True), (2, False)):
        install_to_edit(site, source, value)
        stopped(project, monkeypatch, 2)
        assert ("a new campaign begins" not in capsys.readouterr().err) == goes_on
        # None of it is code of the package.
        for name in (".git/hook.py", "venv/pyvenv.cfg", "venv/lib/tool.py", "notes.md"):
            write(source / name, "")
        (source / f"{len(list(source.iterdir()))}.py").symlink_to("nowhere.py")
    assert record(project) == 0


def test_a_campaign_is_not_gone_on_with_where_other_code_lies_in_the_folders_of_pythonpath(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    shim = write(tmp_path / "shims/sitecustomize.py", "x = 1\n")
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", str(shim.parent), prepend=os.pathsep)
        for text in ("x = 1\n", "x = 10\n"):
            if text != shim.read_text("utf-8"):
                write(shim, text)
            capsys.readouterr()
            stopped(project, monkeypatch, 1)
            assert ("new campaign" in capsys.readouterr().err) == (text == "x = 10\n")
            stopped(project, monkeypatch, 1)
            assert "new campaign" not in capsys.readouterr().err
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_a_campaign_is_gone_on_with_where_the_same_code_was_put_into_the_folders_of_pythonpath_later(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs_gadget(project, TIMED)
    for day in ("one", "two"):
        install(site := tmp_path / day, "1.0")
        code, own = write(site / "gadget/__init__.py", ""), write(site / "own.py", "x = 1\n")
        listed = write(site / "gadget-1.0.dist-info/RECORD", "gadget/__init__.py,,\n")
        later = {"one": 0, "two": 86_400}[day] + listed.stat().st_mtime
        for path in (code, own, listed):
            os.utime(path, (later, later))
        # Nothing is waited for that is no file.
        os.mkfifo(site / "queue.py")
        monkeypatch.setenv("PYTHONPATH", str(site))
        stopped(project, monkeypatch, 1)
        assert "new campaign" not in capsys.readouterr().err
    assert record(project) == 0
    assert "new campaign" not in capsys.readouterr().err


def code_in_a_link(folder: Path, text: str) -> Path:
    write(folder / "kept/gadget/__init__.py", text)
    (folder / "site").mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / "site/gadget").symlink_to(folder / "kept/gadget")
        # It leads back to itself.
        (folder / "kept/gadget/gadget").symlink_to(folder / "kept/gadget")
    return folder / "site"


def code_in_an_archive(folder: Path, text: str) -> Path:
    with zipfile.ZipFile(folder / "site.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo("gadget.py"), text)
    return folder / "site.zip"


def code_without_a_source(folder: Path, text: str) -> Path:
    write(folder / "site/__pycache__/gadget.cpython-311.pyc", str(time.time_ns()))
    return write(folder / "site/gadget.pyc", text).parent


def code_in_a_path_file(folder: Path, text: str) -> Path:
    return write(folder / "site/gadget.pth", f"import sys; {text}").parent


def listed_file(site: Path, name: str, text: str) -> Path:
    """A file of an installed package, as the list of its files has it once it is installed."""
    path = site / name
    if not path.is_file():
        install(site, "1.0")
        write(path, text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        lines = (
            f"{name},sha256={digest},{len(text)}\ngadget/__pycache__/a.pyc,,\ngadget-1.0.dist-info/RECORD,,\n"
        )
        write(site / "gadget-1.0.dist-info/RECORD", lines)
    return path


def code_of_an_unnamed_package(folder: Path, text: str) -> Path:
    """A package that the script does not name, edited where it is installed."""
    code = listed_file(folder / "site", "gadget/__init__.py", text)
    later = code.stat().st_mtime + 60
    os.utime(write(code, text), (later, later))
    return folder / "site"


def an_older_file_of_a_package(folder: Path, text: str) -> Path:
    """As `cp -p` puts it there."""
    os.utime(write(listed_file(folder / "site", "gadget/__init__.py", text), text), (1, 1))
    return folder / "site"


def a_library_with_a_version(folder: Path, text: str) -> Path:
    write(listed_file(folder / "site", "gadget.libs/libspeed.so.1", text), text)
    return folder / "site"


def a_library_that_goes(folder: Path, text: str) -> Path:
    """A package may do without it, and be slower."""
    library = listed_file(folder / "site", "gadget/_speedups.so", text)
    if text != "x = 1\n":
        library.unlink()
    return folder / "site"


def another_build_of_a_package(folder: Path, text: str) -> Path:
    shutil.rmtree(folder / "site", ignore_errors=True)
    listed_file(folder / "site", "gadget/__init__.py", text)
    with open(folder / "site/gadget-1.0.dist-info/RECORD", "a") as file:
        file.write(f"../bin/gadget,sha256={time.time_ns()},9\n")
    write(folder / "bin/gadget", "#!python")
    return folder / "site"


@pytest.mark.parametrize(
    "put",
    [
        another_build_of_a_package,
        code_in_a_link,
        code_in_an_archive,
        code_without_a_source,
        code_in_a_path_file,
        code_of_an_unnamed_package,
        an_older_file_of_a_package,
        a_library_with_a_version,
        a_library_that_goes,
    ],
)
def test_a_campaign_is_not_gone_on_with_where_code_that_could_be_imported_is_other_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    put: Callable[[Path, str], Path],
) -> None:
    add_script(project.root, PLAIN, TIMED)
    for text in ("x = 1\n", "x = 1\n", "x = 10\n"):
        monkeypatch.setenv("PYTHONPATH", str(put(tmp_path, text)))
        assert begins_anew(project, monkeypatch, capsys) == (text == "x = 10\n")
    assert record(project) == 0


def in_a_linked_folder(place: Path) -> Path:
    """A folder that a link leads to, and which no file says is a package."""
    (place / "site").mkdir(parents=True)
    (place / "site/gadget").symlink_to(place / "kept")
    return place / "kept/part.py"


def in_an_environment(place: Path) -> Path:
    """A folder that says it is an environment of its own."""
    write(place / "site/gadget/pyvenv.cfg", "")
    return place / "site/gadget/part.py"


def beside_what_was_installed(place: Path) -> Path:
    """A module in the folder of a package that does not list it."""
    listed_file(place / "site", "gadget/__init__.py", "")
    return place / "site/gadget/part.py"


def in_what_was_installed(place: Path) -> Path:
    """A module of a package whose list was written once more: by a copy, or for another owner."""
    return listed_file(place / "site", "gadget/part.py", "n = 1\n")


def beside_a_folder_of_our_name(place: Path) -> Path:
    """A module in a folder that has another package of the name of this one."""
    write(place / "site/benchbook/__init__.py", "")
    write(place / "site/gadget/__init__.py", "")
    return place / "site/gadget/part.py"


def in_an_archive_of_the_script(place: Path) -> Path:
    """In a zip file that is looked into once the script says so; the path of that."""
    (place / "site").mkdir(parents=True)
    return place / "code.zip"


def put_code(path: Path, text: str) -> None:
    """Write a module where it is sought, which may be in an archive."""
    if path.suffix != ".zip":
        write(path, text)
        return
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("gadget/__init__.py"), "")
        archive.writestr(zipfile.ZipInfo("gadget/part.py"), text)


PARTS = [
    in_an_archive_of_the_script,
    in_a_linked_folder,
    in_an_environment,
    in_what_was_installed,
    beside_what_was_installed,
    beside_a_folder_of_our_name,
]


@pytest.mark.parametrize("put", PARTS)
def test_a_campaign_is_not_gone_on_with_where_what_its_runs_imported_is_other_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    put: Callable[[Path], Path],
) -> None:
    code = put(tmp_path / "place")
    searched = f"import sys\nsys.path.append('{tmp_path / 'place/code.zip'}')\nfrom gadget import part\n"
    add_script(project.root, PLAIN.replace("doubled =", f"{searched}doubled = part.n *"), TIMED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "place/site"))
    for text in ("n = 1\n", "n = 1\n", "n = 9\n"):
        put_code(code, text)
        for listed in tmp_path.glob("place/site/*.dist-info/RECORD"):
            listed.touch()
        assert begins_anew(project, monkeypatch, capsys) == (text == "n = 9\n")
    code.unlink()
    assert record(project) == 1
    assert "a new campaign begins" in capsys.readouterr().err


ELSEWHERE = {
    "another rank": ("if os.environ['RANK'] == '1':\n    import part", "ranks = 2\n"),
    "a child": ("if os.fork() == 0:\n    import part\n    os._exit(0)\nos.wait()", ""),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_a_campaign_is_not_gone_on_with_where_other_processes_of_a_run_imported_other_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    case: str,
) -> None:
    imports, table = ELSEWHERE[case]
    code = write(tmp_path / "elsewhere/part.py", "n = 1\n")
    lines = f"import os, sys\nsys.path.append('{code.parent}')\n{imports}\ndoubled ="
    add_script(project.root, PLAIN.replace("doubled =", lines), TIMED.replace("repeats", f"{table}repeats"))
    for text in ("n = 1\n", "n = 1\n", "n = 10\n"):
        write(code, text)
        assert begins_anew(project, monkeypatch, capsys) == (text == "n = 10\n")
    assert record(project) == 0


def two_environments(second: str) -> str:
    """A table of a script whose second variant has variables of its own."""
    matrix = f"matrix = [{{ n = 1 }}, {{ n = 2, environment = {{ {second} }} }}]"
    metrics = '[tool.benchbook.metrics]\ndoubled = { unit = "s" }'
    return f'needs = ["cpu"]\nrepeats = 3\n{matrix}\n{metrics}'


def test_a_campaign_is_not_gone_on_with_where_another_variant_finds_other_code(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = write(tmp_path / "elsewhere/part.py", "n = 1\n")
    add_script(project.root, PLAIN, two_environments(f'PYTHONPATH = "{code.parent}"'))
    for text in ("n = 1\n", "n = 1\n", "n = 10\n"):
        write(code, text)
        assert begins_anew(project, monkeypatch, capsys) == (text == "n = 10\n")


def test_a_campaign_is_not_gone_on_with_where_the_path_of_a_variant_finds_another_compiler(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler = tmp_path / "found/g++"
    add_script(project.root, PLAIN, two_environments(f'PATH = "{compiler.parent}"'))
    for text in ("#!/bin/sh\n", "", "#!/bin/sh\nexit 1\n"):
        if text:
            write(compiler, text).chmod(0o755)
        assert begins_anew(project, monkeypatch, capsys) == ("exit" in text)


@pytest.mark.parametrize("before", ["PYTHONMALLOC=debug exec", "exec nice -n 5", "ulimit -n 512; exec"])
def test_a_campaign_is_not_gone_on_with_by_an_interpreter_that_changes_what_it_is_granted(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    before: str,
) -> None:
    add_script(project.root, PLAIN, TIMED)
    python = tmp_path / "python"
    monkeypatch.setenv("BENCHBOOK_PYTHON", str(python))
    for words in ("exec", "exec", before):
        write(python, f'#!/bin/sh\n{words} {sys.executable} "$@"\n').chmod(0o755)
        assert begins_anew(project, monkeypatch, capsys) == (words == before)


def test_a_campaign_is_not_gone_on_with_by_the_recorder_of_another_checkout(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 2)
    stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    monkeypatch.setattr(sessions, "RECORDER", write(tmp_path / "other/__init__.py", "x = 1\n").parent)
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["x = 1\n", "x = 2\n"])
def test_what_another_recorder_than_the_checkout_s_measures_is_of_modified_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    write(project.root / "scripts/benchbook/__init__.py", "x = 1\n")
    write(project.root / ".gitignore", ".benchbook\nother\n")
    commit_all(project.root)
    monkeypatch.setattr(sessions, "RECORDER", write(tmp_path / "other/__init__.py", text).parent)
    assert record(project) == 0
    said = f"{tmp_path / 'other'} records, which is not as the checkout's own" in capsys.readouterr().err
    assert said == only_campaign(project).modified == (text == "x = 2\n")


def test_runs_from_before_and_after_an_edit_of_what_they_import_are_not_kept(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = write(tmp_path / "site/gadget.py", "n = 1\n")
    add_script(project.root, PLAIN.replace("doubled =", "import gadget\ndoubled = gadget.n *"), SWEEP)
    monkeypatch.setenv("PYTHONPATH", str(code.parent))
    changes_after(monkeypatch, 2, lambda: write(code, "n = 2\n"))
    assert record(project) == 1
    assert (
        "snippets/guide/small.py:1: site/gadget.py changed while it was recorded, and no run of this session is "
        "kept; leave what it imports as it is until it is recorded, and record it again"
    ) in capsys.readouterr().err.splitlines()
    assert not project.records.exists()
    assert record(project) == 0


def test_code_counts_wherever_python_looks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # As a `.pth` file has it, or `setup.py develop`.
    code = write(tmp_path / "checkout/gadget.py", "x = 1\n")
    without = installed_code(None, {})
    monkeypatch.syspath_prepend(code.parent)
    before = installed_code(None, {})
    assert before == installed_code(None, {}) != without
    write(code, "x = 2\n")
    assert installed_code(None, {}) not in {before, without}
    # Of two modules of one name the first is imported.
    other = write(tmp_path / "other/gadget.py", "x = 3\n")
    places = [str(code.parent), str(other.parent)]
    assert installed_code(os.pathsep.join(places), {}) != installed_code(
        os.pathsep.join(reversed(places)), {}
    )


def test_what_was_edited_where_it_is_installed_is_told_from_what_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = listed_file(tmp_path, "gadget/__init__.py", "x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = [versions(["gadget"])["sources"]]
    later = (tmp_path / "gadget-1.0.dist-info/RECORD").stat().st_mtime + 60
    for text in ("x = 1\n", "x = 2\n", "x = 3\n", "x = 10\n"):
        os.utime(write(code, text), (later, later))
        found.append(versions(["gadget"])["sources"])
    assert found[0] == found[1]
    assert len({told["gadget"] for told in found}) == 4


def test_what_modules_say_of_their_files_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    code = write(tmp_path / "below/part.py", "x = 1\n")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    made = write(tmp_path / "temporary/bb-x/made.py", "x = 1\n")
    files = [str(tmp_path / name) for name in ("pipe.py", "below", "gone.py", "below/part.py")]
    root = str(tmp_path / "checkout")
    told = loaded_code([*files, "/dev/zero", os.__file__, benchbook.__file__, str(made)], root)
    assert list(told) == ["../below", "../below/part.py", os.__file__]
    assert changed_code(told, root) == ""
    write(code, "x = 2\n")
    assert changed_code(told, root) == "../below"


def test_a_large_library_is_told_by_its_size_and_its_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    library = tmp_path / "large.so"
    whole = bytearray(6 * 2**20)
    found = []
    for changes in ([0], [-1], []):
        for place in changes:
            whole[place] += 1
        whole += b"" if changes else b"0"
        library.write_bytes(whole)
        found.append(loaded_code([str(library)], str(tmp_path / "checkout"))["../large.so"])
    assert len(set(found)) == 3


def test_an_edit_that_keeps_the_time_of_an_older_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = listed_file(tmp_path, "gadget/__init__.py", "x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    as_installed = versions(["gadget"])["sources"]
    # What was written in the second after the list may be of the installation.
    time.sleep(1.1)
    os.utime(write(code, "x = 2\n"), (1, 1))
    assert versions(["gadget"])["sources"] != as_installed


def test_another_python_of_the_same_version_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = write(tmp_path / "bin/python3", "one build")
    found = [installed_code(None, {}), installed_code(None, {})]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(program))
        found.append(installed_code(None, {}))
        write(program, "another build")
        found.append(installed_code(None, {}))
    assert found[0] == found[1]
    assert len(set(found)) == 3


@pytest.mark.parametrize("file", ["direct_url.json", "RECORD"])
def test_a_campaign_is_not_gone_on_with_where_a_package_of_the_same_version_is_of_other_code(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: str,
) -> None:
    install(site := tmp_path / "site", "1.0")
    origin = {"url": "https://example.org/gadget", "vcs_info": {"vcs": "git", "commit_id": "a" * 40}}
    write(site / "gadget-1.0.dist-info/direct_url.json", json.dumps(origin))
    write(site / "gadget-1.0.dist-info/RECORD", f"gadget/__init__.py,sha256={'a' * 43},9\n")
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    needs_gadget(project, TIMED)
    for _ in range(2):
        stopped(project, monkeypatch, 2)
    assert "new campaign" not in capsys.readouterr().err
    path = site / "gadget-1.0.dist-info" / file
    path.write_text(path.read_text("utf-8").replace("aaa", "bbb"), "utf-8")
    assert record(project) == 0
    assert "a new campaign begins" in capsys.readouterr().err


def test_an_edit_of_what_records_is_not_one_of_an_installed_package(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    site = tmp_path / "site"
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    write(site / "benchbook-9.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: benchbook\nVersion: 9.0\n")
    origin = {"url": project.root.as_uri(), "dir_info": {"editable": True}}
    write(site / "benchbook-9.0.dist-info/direct_url.json", json.dumps(origin))
    stopped(project, monkeypatch, 2)
    write(project.root / "scripts/tool.py", "x = 1\n")
    assert record(project) == 0
    assert "new campaign" not in capsys.readouterr().err


def test_runs_from_before_and_after_an_edit_of_a_package_are_not_kept_and_that_is_said_in_one_line(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, source = tmp_path / "site", tmp_path / "source"
    install_to_edit(site, source, 1)
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    needs_gadget(project, SWEEP)
    changes_after(monkeypatch, 2, lambda: install_to_edit(site, source, 2))
    assert record(project) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "gadget" in line]
    assert line == (
        "snippets/guide/small.py:4: the code of gadget changed while it was recorded, and "
        "no run of this session is kept; leave its packages as they are until it is recorded, and record it again"
    )
    assert not project.records.exists()
    assert record(project) == 0


def test_runs_of_two_commits_are_not_kept_and_no_further_script_is_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, SWEEP, "guide/well.py")
    pulls_meanwhile(project, monkeypatch, "scripts/tool.py")
    assert record(project) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if "the checkout went from" in line]
    assert line.startswith("snippets/guide/small.py:1: the checkout went from ")
    assert line.endswith("leave the checkout as it is until it is recorded, and record it again")
    assert not project.records.exists()
    assert record(project) == 0


def test_code_that_is_committed_once_it_was_read_is_not_recorded_as_of_that_commit(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    write(project.root / ".gitignore", ".benchbook\n")
    commit_all(project.root)

    def commit_meanwhile(_store: Checkout) -> None:
        add_script(project.root, PLAIN.replace("2.0", "3.0"), SWEEP)
        commit_all(project.root)

    with monkeypatch.context() as patch:
        patch.setattr(Checkout, "hold_machine", commit_meanwhile)
        assert record(project) == 1
    assert "the checkout went from" in capsys.readouterr().err
    assert not project.records.exists()


def test_a_commit_of_pages_and_records_costs_no_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulls_meanwhile(project, monkeypatch, "docs/page.md")
    assert record(project) == 0


def edits_meanwhile(project: Project, monkeypatch: pytest.MonkeyPatch, *edits: Callable[[], object]) -> None:
    """Commit a script and a tool, and make an edit after each of the first runs."""
    add_script(project.root, PLAIN, SWEEP)
    write(project.root / ".gitignore", ".benchbook\n")
    write(project.root / "scripts/tool.py", "x = 1\n")
    write(project.root / "docs/page.md", "x = 1\n")
    commit_all(project.root)
    run_once, left = campaigns.run_once, iter(edits)

    def editing(*arguments: Any, **named: Any) -> Result:
        result = run_once(*arguments, **named)
        if (edit := next(left, None)) is not None:
            edit()
        return result

    monkeypatch.setattr(campaigns, "run_once", editing)


@pytest.mark.parametrize("undone", [False, True])
@pytest.mark.parametrize(
    ("name", "modified"),
    [("scripts/tool.py", True), ("scripts/another.py", True), ("docs/page.md", False)],
)
def test_a_record_says_of_code_that_was_edited_meanwhile_that_it_differed_from_its_commit(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, modified: bool, undone: bool
) -> None:
    path, kept = project.root / name, project.root / "docs/kept.md"

    def undo() -> None:
        # As it was, with the moment at which it was written.
        path.unlink()
        if kept.exists():
            kept.rename(path)

    def edit() -> None:
        if path.exists():
            path.rename(kept)
        write(path, "x = 2\n")

    edits_meanwhile(project, monkeypatch, edit, *([undo] if undone else []))
    assert record(project) == 0
    assert only_campaign(project).modified is modified


def test_an_edit_that_is_made_and_undone_during_one_run_is_noted(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.root / "scripts/tool.py"

    def edit_and_undo() -> None:
        write(path, "x = 2\n")
        write(path, "x = 1\n")

    edits_meanwhile(project, monkeypatch, edit_and_undo)
    assert record(project) == 0
    assert only_campaign(project).modified


def test_an_edit_in_a_session_that_was_stopped_is_in_the_record_of_the_one_that_goes_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project.root / "scripts/tool.py"
    edits_meanwhile(project, monkeypatch, lambda: write(path, "x = 2\n"))
    stopped(project, monkeypatch, 2)
    write(path, "x = 1\n")
    assert record(project) == 0
    assert only_campaign(project).modified
