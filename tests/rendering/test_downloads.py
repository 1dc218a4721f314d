"""Scripts, executed notebooks and records to take away."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from markdown_it import MarkdownIt

from benchbook.content.project import Project
from benchbook.content.script import read_script
from benchbook.query.library import Library
from benchbook.rendering.downloads import (
    FOLDER,
    Downloads,
    colab_address,
    notebook,
    notebook_path,
    record_path,
    script_path,
)
from benchbook.rendering.kept_pages import write_files
from benchbook.rendering.reproduce import append_files
from builders import write
from handbooks import CPU, copy_handbook, edit, plain, start


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return copy_handbook(tmp_path)


@pytest.fixture
def site(project: Project) -> Path:
    folder = project.root / "site"
    write_files(folder / FOLDER, Downloads().files(Library(project)))
    return folder


def test_scripts_and_records_are_copied_byte_for_byte(project: Project, site: Path) -> None:
    script = project.snippets / "memory/methods.py"
    assert (site / script_path("memory/methods.py")).read_bytes() == script.read_bytes()
    record = project.record_path(CPU, "memory/methods.py")
    assert (site / record_path(CPU, "memory/methods.py")).read_bytes() == record.read_bytes()


def test_of_what_lies_among_records_only_what_a_record_names_is_published(project: Project) -> None:
    beside = project.record_path(CPU, "memory/losses.py").with_suffix("")
    published = Downloads().files(Library(project))
    (trace,) = beside.iterdir()
    assert published[trace.relative_to(project.snippets).as_posix()] == trace
    write(beside / "stray.json.gz", "not a trace")
    write(beside / "folder.json.gz/readme", "a folder")
    write(project.records / "nobody/memory/losses/stray.json.gz", "nobody's")
    write(project.records / "nobody/memory/losses.json", "{}")
    (project.records / CPU / "memory/folder.json").mkdir()
    assert Downloads().files(Library(Project(project.root))) == published


def test_a_notebook_has_the_cells_of_its_script_with_the_recorded_outputs(
    project: Project, site: Path
) -> None:
    made = nbformat.read(site / notebook_path("memory/methods.py"), as_version=4)
    nbformat.validate(made)
    script = read_script(project.snippets / "memory/methods.py", project.root)
    about, install, *cells = made.cells
    assert install.source == '%pip install --quiet "torch>=2.11"'
    assert [(cell.id, cell.source) for cell in cells] == [(cell.name, cell.source) for cell in script.cells]
    outputs = {cell.id: cell.outputs[0].text for cell in cells if cell.outputs}
    assert outputs == {"train": "<b>method=plain,batch_size=1</b> on machine 1 & more\n"}
    assert "recorded on fixture-cpu on 2026-11-11" in about.source
    assert "There it ran with `steps = 2`." in about.source


def test_a_notebook_of_several_processes_says_how_to_start_it(project: Project) -> None:
    edit(
        project.snippets / "memory/losses.py",
        "# [tool.benchbook]\n",
        "# [tool.benchbook]\n# ranks = 2\n",
    )
    script = read_script(project.snippets / "memory/losses.py", project.root)
    assert "torchrun --nproc-per-node 2 losses.py" in json.loads(notebook(script, {}))["cells"][0]["source"]


def test_a_value_stays_code_in_a_notebook_whatever_backticks_it_holds(project: Project) -> None:
    hostile = "` ![x](https://evil.example/pixel.png) `` [y](https://evil.example/)"
    path = project.record_path(CPU, "memory/losses.py")
    table = json.loads(path.read_text("utf-8"))
    shown = Library(project).script("memory/losses.py").shown
    for variant in table["variants"].values():
        variant["parameters"] = dict.fromkeys(shown, hostile)
    path.write_text(json.dumps(table), "utf-8")
    text = Downloads().files(Library(Project(project.root)))["memory/losses.ipynb"]
    assert isinstance(text, str)
    about = json.loads(text)["cells"][0]["source"]
    assert hostile in about
    children = [child for token in MarkdownIt("commonmark").parse(about) for child in token.children or ()]
    assert not [child for child in children if child.type in ("image", "link_open")]
    assert [hostile in child.content for child in children if child.type == "code_inline"][-1:] == [True]


def test_a_notebook_of_a_script_never_recorded_has_no_outputs(project: Project) -> None:
    for machine in project.machines:
        project.record_path(machine, "memory/losses.py").unlink(missing_ok=True)
    write_files(project.root / "site" / FOLDER, Downloads().files(Library(project)))
    made = nbformat.read(project.root / "site" / notebook_path("memory/losses.py"), as_version=4)
    assert not any(cell.get("outputs") for cell in made.cells)


def test_two_notebooks_of_the_same_record_are_the_same_bytes(project: Project, site: Path) -> None:
    again = project.root / "again"
    write_files(again / FOLDER, Downloads().files(Library(project)))
    path = notebook_path("memory/methods.py")
    assert (again / path).read_bytes() == (site / path).read_bytes()


def test_a_changed_script_gets_its_notebook_anew(project: Project) -> None:
    downloads, library = Downloads(), Library(project)
    downloads.files(library)
    edit(project.snippets / "memory/losses.py", '"""A made-up loss per step', '"""A changed docstring')
    library.refresh("")
    assert "A changed docstring" in str(downloads.files(library)["memory/losses.ipynb"])


def test_the_foot_of_a_page_lists_every_script_of_its_guide(project: Project) -> None:
    never = project.snippets / "memory/never.py"
    never.write_text((project.snippets / "memory/losses.py").read_text("utf-8"), "utf-8")
    build = start(project)
    assert append_files(build, "<p>no number</p>") == "<p>no number</p>"
    build.here.scripts.add("memory/methods.py")
    shown = plain(append_files(build, ""))
    assert "memory/methods.py script · executed notebook · raw record" in shown
    assert "memory/never.py script · notebook · not measured" in shown


REPOSITORY = "https://github.com/owner/handbook"


def test_a_notebook_that_runs_alone_is_opened_in_colab(project: Project) -> None:
    build = start(project)
    build.repository = REPOSITORY
    build.here.scripts.add("memory/methods.py")
    html = append_files(build, "")
    address = "https://colab.research.google.com/github/owner/handbook/blob/notebooks/memory/methods.ipynb"
    assert f'<a href="{address}">open in Colab</a>' in html
    script = read_script(project.snippets / "memory/methods.py", project.root)
    assert colab_address(f"{REPOSITORY}.git", script) == address
    assert notebook_path("memory/methods.py") == f"{FOLDER}/{address.partition('/notebooks/')[2]}"


@pytest.mark.parametrize("declared", ["ranks = 2", 'inputs = ["methods.py"]'])
def test_a_notebook_that_does_not_run_alone_is_not(project: Project, declared: str) -> None:
    edit(
        project.snippets / "memory/losses.py",
        "# [tool.benchbook]\n",
        f"# [tool.benchbook]\n# {declared}\n",
    )
    script = read_script(project.snippets / "memory/losses.py", project.root)
    assert colab_address(REPOSITORY, script) is None


def test_colab_opens_nothing_of_another_host(project: Project) -> None:
    script = read_script(project.snippets / "memory/methods.py", project.root)
    assert colab_address("https://gitlab.com/owner/handbook", script) is None
    assert colab_address("", script) is None
