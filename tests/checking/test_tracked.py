"""What comes with a commit is nothing that a command writes through, empties, or takes its settings from."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchbook.checking.checks import check_project
from benchbook.checking.environments import package_problems, pin_problems
from benchbook.content.project import Project
from benchbook.content.script import read_script
from benchbook.content.tracked import beside_script_problems, tracked_problems
from builders import SCRIPT, make_project, write
from clones import ROOT
from repositories import commit_all, git


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path / "checkout")
    commit_all(project.root)
    return project


def said(project: Project) -> list[str]:
    return [f"{problem.path}: {problem.what}" for problem in check_project(Project(project.root)).problems]


@pytest.mark.parametrize("name", ["scripts/kit", ".github/record"])
def test_no_link_comes_with_a_commit(project: Project, name: str) -> None:
    place = project.root / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(project.records)
    assert said(project) == []
    git(project.root, "add", "--force", name)
    assert said(project) == [
        f"{name}: is a link, and git tracks it: what is written there would be written elsewhere"
    ]


@pytest.mark.parametrize(
    "name", ["pagefind.yml", "mine.json", "site/notes/index.html", "sitecustomize.py", "docs.py", "Site/a"]
)
def test_the_root_holds_what_it_is_known_to_hold(project: Project, name: str) -> None:
    write(project.root / name, "")
    assert said(project) == []
    git(project.root, "add", "--force", name)
    first = name.partition("/")[0]
    assert said(project) == [f"{first}: stands in the root, where a command may take it for its own"]


@pytest.mark.parametrize(
    "name", ["scripts/benchbook/__pycache__/a.py", "tests/a.pyc", "docs/a.so", "scripts/kit/a.pth"]
)
def test_code_is_source_that_a_reviewer_reads(project: Project, name: str) -> None:
    write(project.root / name, "")
    git(project.root, "add", "--force", name)
    assert f"{name}: is taken for code by Python, and no reviewer reads it" in said(project)


@pytest.mark.parametrize("name", ["sitecustomize.py", "gadget/entry_points.txt", "gadget.dist-info/METADATA"])
def test_scripts_hold_what_they_are_known_to_hold(project: Project, name: str) -> None:
    write(project.root / "scripts" / name, "")
    git(project.root, "add", "--force", "scripts")
    what = "stands in scripts/, where Python may take it for a package or its own"
    assert f"scripts/{name}: {what}" in said(project)


def test_git_is_told_of_line_ends_alone(project: Project) -> None:
    lines = "# Line ends.\n* text=auto eol=lf\n*.png binary\n"
    write(project.root / ".gitattributes", lines)
    git(project.root, "add", ".gitattributes")
    assert said(project) == []
    write(project.root / ".gitattributes", f"{lines}docs/** binary\n")
    (problem,) = tracked_problems(project)
    assert (problem.line, problem.what) == (4, "`binary` keeps from a reviewer what changes in docs/**")
    write(project.root / ".gitattributes", f"{lines}*.py working-tree-encoding=ISO646-JP\n")
    (problem,) = check_project(Project(project.root)).problems
    assert (problem.path, problem.line) == (".gitattributes", 4)
    assert problem.what.startswith("`working-tree-encoding=ISO646-JP` may have git check out something else")


def test_git_is_told_of_files_in_one_place(project: Project) -> None:
    write(project.root / ".github/.gitattributes", "*.py text=auto\n")
    git(project.root, "add", "--force", ".github")
    assert said(project) == [".github/.gitattributes: tells git of files, beside that in the root"]
    write(project.root / ".github/.gitignore", "records/\n")
    git(project.root, "add", "--force", ".github")
    assert ".github/.gitignore: keeps what lies there from git" in said(project)


@pytest.mark.parametrize("name", ["conftest.py", "models/more.py", "records/here/more.py"])
def test_a_script_lies_in_the_folder_of_its_guide(project: Project, name: str) -> None:
    write(project.snippets / name, "")
    git(project.root, "add", "--force", "snippets")
    what = "lies in no guide, and commands take what lies there for one"
    assert f"snippets/{name}: {what}" in said(project)


def test_of_a_folder_of_many_files_the_folder_is_told(project: Project) -> None:
    for number in range(3):
        write(project.root / f"site/{number}.html", "")
    git(project.root, "add", "--force", "site")
    assert [problem.path for problem in tracked_problems(project)] == ["site"]


def test_this_handbook_tracks_nothing_else() -> None:
    assert list(tracked_problems(Project(ROOT))) == []


def test_a_folder_that_git_does_not_know_tracks_nothing(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    write(tmp_path / "pagefind.yml", "")
    assert list(tracked_problems(project)) == []


@pytest.mark.parametrize(
    "name", ["fast/__init__.py", "fast.c", "data.json", "more/add.py", "sub/claims.toml"]
)
def test_beside_scripts_lies_what_their_records_know(project: Project, name: str) -> None:
    write(project.snippets / "sums" / name, "")
    assert said(project) == []
    git(project.root, "add", "--force", "snippets")
    assert said(project) == [
        f"snippets/sums/{name}: lies beside scripts, which may read it without a record that tells"
    ]


def test_an_input_lies_beside_the_script_that_names_it(tmp_path: Path) -> None:
    table = '# [tool.benchbook]\n# inputs = ["data/one.json"]\n#\n# [tool.benchbook.metrics]'
    source = SCRIPT.replace("# [tool.benchbook.metrics]", table)
    project = make_project(tmp_path / "checkout", source)
    write(project.snippets / "sums/data/one.json", "{}")
    commit_all(project.root)
    assert [one for one in said(project) if "lies beside" in one] == []


@pytest.mark.parametrize(
    "statement", ["import plus", "import os, plus.more", "from plus import x", "import add", "import fast"]
)
def test_no_script_imports_from_its_own_folder(project: Project, statement: str) -> None:
    write(project.snippets / "sums/fast/__init__.py", "")
    write(project.snippets / "sums/plus.py", SCRIPT)
    source = SCRIPT.replace("total = sum", f"{statement}\ntotal = sum", 1)
    path = write(project.snippets / "sums/add.py", source)
    (told,) = (one for one in check_project(Project(project.root)).problems if "own folder" in one.what)
    assert (told.path, told.line) == (
        project.relative(path),
        source.splitlines().index(statement) + 1,
    )


def test_the_scripts_of_this_handbook_lie_beside_what_their_records_know() -> None:
    project = Project(ROOT)
    scripts = [read_script(path, ROOT) for path in project.scripts().values()]
    assert list(beside_script_problems(project, scripts)) == []


def test_a_repository_that_git_does_not_read_is_told(project: Project) -> None:
    assert check_project(project).warnings == ()
    write(project.root / ".git/HEAD", "nothing that git knows")
    (told,) = check_project(project).warnings
    assert told.what == "cannot be read by git, so that nothing is held to what was committed"


@pytest.mark.parametrize(
    "line", ["--extra-index-url https://example.org/simple/", "torch>=2", "-r more.txt", "a==1 --hash=x", "b"]
)
@pytest.mark.parametrize("name", ["constraints.txt", "constraints-more.txt"])
def test_a_file_of_pins_holds_pins_alone(project: Project, name: str, line: str) -> None:
    write(project.root / name, f"# extras: a[b]\n\na==1.0+cpu\n{line}\n")
    (problem,) = (one for one in check_project(Project(project.root)).problems if one.what == "is no pin")
    assert (problem.path, problem.line) == (name, 4)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('[build-system]\nrequires = ["a @ https://example.org/a.zip"]\n', "is installed from an address"),
        (
            '[build-system]\nrequires = []\nbackend-path = ["."]\nbuild-backend = "x"\n',
            "`build-system.backend-path` may have other code run",
        ),
        ('[project]\nname = "a"\nversion = "1"\ndependencies = ["b @ file:///b"]\n', "from an address"),
        ('[project]\nname = "a"\nversion = "1"\ndependencies = ["b=="]\n', "`b==` is no requirement"),
    ],
)
def test_pip_installs_from_the_index_alone(project: Project, text: str, what: str) -> None:
    settings = project.root / "pyproject.toml"
    write(settings, text + settings.read_text("utf-8"))
    (problem,) = (one for one in check_project(Project(project.root)).problems if what in one.what)
    assert problem.path == "pyproject.toml"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (
            '[tool.setuptools]\npackage-dir = { "a" = "snippets/a" }\n',
            2,
            "`tool.setuptools.package-dir` is {'a",
        ),
        (
            '[tool.setuptools.dynamic]\nversion = { attr = "a.b" }\n',
            1,
            "`tool.setuptools.dynamic` is {'version': {'attr': 'a.b'}}",
        ),
        ('[tool.setuptools]\ncmdclass = { build = "a.b" }\n', 2, "`tool.setuptools.cmdclass` may"),
        ('[project]\nname = "a"\ngui-scripts = { a = "b:c" }\n', 3, "`project.gui-scripts` may"),
        ('[project.entry-points.pytest11]\na = "b"\n', 1, "`project.entry-points` is {'pytest11'"),
        ('[tool.pytest.ini_options]\naddopts = "-p a"\n', 2, "`tool.pytest.ini_options.addopts` is -p a"),
        (
            '[tool.pytest.ini_options]\nfilterwarnings = ["error::a.B"]\n',
            2,
            "`tool.pytest.ini_options.filterwarnings` is ['error::a.B']",
        ),
        ('[tool.mypy]\nstrict = true\nplugins = ["a.py"]\n', 3, "`tool.mypy.plugins` may"),
        ('[tool.poe.tasks]\na = "b"\n', 1, "`tool.poe` may"),
        ('[build-system]\nrequires = ["hatchling"]\n', 2, "`hatchling` is no setuptools"),
    ],
)
def test_the_settings_of_the_package_have_only_code_run_that_is_reviewed(
    project: Project, text: str, line: int, what: str
) -> None:
    settings = project.root / "pyproject.toml"
    write(settings, text + settings.read_text("utf-8"))
    (problem,) = (one for one in check_project(Project(project.root)).problems if what in one.what)
    assert (problem.path, problem.line) == ("pyproject.toml", line)


def test_the_settings_of_this_package_are_those_that_are_held() -> None:
    assert list(package_problems(Project(ROOT))) == []
    assert list(pin_problems(Project(ROOT))) == []


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize("name", ["constraints.txt", "constraints-more.txt"])
def test_a_file_of_pins_is_read_by_pip_as_it_is_checked(project: Project, name: str, place: int) -> None:
    said = ["# pins", "# more", "# +AAo---index-url http://127.0.0.1:9/simple/+AAo-#"]
    said[place - 1] = "# The coding: utf-7 is theirs."
    write(project.root / name, "\n".join(said) + "\na==1.0\n")
    (problem,) = (one for one in check_project(Project(project.root)).problems if "encoding" in one.what)
    assert (problem.path, problem.line) == (name, place)


@pytest.mark.parametrize(
    "line",
    [
        "# without: a --log=x",
        "# without: -r list.txt",
        "# extras: a[b] -e c",
        "# without: a\x0c# -r list.txt",
    ],
)
def test_a_comment_of_pins_that_pip_is_given_names_packages_alone(project: Project, line: str) -> None:
    write(project.root / "constraints.txt", f"# without: a b-c\n{line}\n")
    (problem,) = (one for one in check_project(Project(project.root)).problems if "pip is given" in one.what)
    assert (problem.path, problem.line) == ("constraints.txt", 2)


@pytest.mark.parametrize(
    "address",
    ["javascript://github.com/%0aalert(1)", "http://github.com/a/b", "https://", "a", "https://x.y/<b>"],
)
def test_the_address_of_the_repository_is_one(project: Project, address: str) -> None:
    settings = project.root / "pyproject.toml"
    settings.write_text(f'{settings.read_text("utf-8")}repository = "{address}"\n', "utf-8")
    (told,) = said(project)
    assert told.startswith("pyproject.toml: `repository` of [tool.benchbook] is")
