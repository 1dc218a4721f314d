"""Building a site: problems, data, the same bytes, no torch."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mkdocs.commands.build import build as mkdocs_build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort, PluginError
from mkdocs.livereload import LiveReloadServer

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.unfinished import finish_writing, list_moves
from benchbook.languages.language import load_language
from benchbook.rendering.plugin import OutputLock
from handbooks import CPU, GPU, QUOTED, build_site, copy_handbook, edit, files_of, plain, whole_handbook

PAGE = """# Memory {{ #memory }}

{words} `#!value memory/losses.py#difference`.

```cell
memory/methods.py#train
```

```table
script: memory/methods.py
rows: [method, batch_size]
columns: [peak_memory, step_time]
```
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = copy_handbook(tmp_path)
    for code, words in (("en", "They differ by"), ("ar", "تختلف بمقدار"), ("ja", "差は")):
        (project.docs / code / "memory.md").write_text(PAGE.format(words=words), "utf-8")
    return project


def data_elements(page: Path) -> list[str]:
    return re.findall(r"<data ([^>]*)>", page.read_text("utf-8"))


def test_every_language_shows_the_same_record(project: Project) -> None:
    site = build_site(project)
    english, *others = (site / code / "memory/index.html" for code in ("", "ar", "ja"))
    assert len(data_elements(english)) == 13
    assert all(data_elements(other) == data_elements(english) for other in others)


def test_a_page_has_a_data_file_for_each_machine_in_its_language(project: Project) -> None:
    site = build_site(project)
    folder = site / "assets/data/memory"
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.json")} == {
        f"{code}/{machine}.json" for code in ("en", "ar", "ja") for machine in (CPU, GPU, QUOTED)
    }
    shown, elsewhere = (
        json.loads((folder / f"en/{machine}.json").read_text("utf-8")) for machine in (CPU, GPU)
    )
    key = "memory/losses.py#difference"
    assert plain(elsewhere["values"][key]["parts"][""]) == "7.2 × 10⁻⁸"
    # What the page shows is not fetched again, but for where it comes from.
    assert set(shown["values"][key]) == {"line", "rows", "origin"}
    assert "blocks" not in shown
    assert elsewhere["values"][key]["origin"] in elsewhere["origins"]


def test_a_value_without_a_record_on_a_machine_says_whose_it_is_there(project: Project) -> None:
    site = build_site(project)
    data = json.loads((site / f"assets/data/memory/en/{QUOTED}.json").read_text("utf-8"))
    there = data["values"]["memory/losses.py#difference"]
    assert set(there) == {"parts"}
    assert '<sup class="bb-tag" dir="auto">Fixture CPU</sup>' in there["parts"][""]


def test_two_builds_are_the_same_bytes(project: Project) -> None:
    first = files_of(build_site(project))
    assert files_of(build_site(project)) == first


def test_problems_of_all_languages_are_raised_together(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    edit(project.docs / "en/memory.md", "#difference", "#diference")
    edit(project.docs / "ja/memory.md", "#train", "#trian")
    with pytest.raises(Abort):
        build_site(project)
    assert "2 problem(s)" in caplog.text
    assert "docs/en/memory.md:3: `memory/losses.py` has no metric `diference`" in caplog.text
    assert "docs/ja/memory.md:5: `memory/methods.py` has no cell `trian`" in caplog.text


def test_a_defect_of_the_fences_themselves_stops_the_build(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("a defect")

    monkeypatch.setattr("benchbook.rendering.fences.tables.render_table", broken)
    said = (
        r"docs/en/memory\.md:1: something in it was not foreseen \(RuntimeError: a defect\); restore it, or"
    )
    with pytest.raises(PluginError, match=said):
        build_site(project)
    monkeypatch.setenv("BENCHBOOK_TRACEBACK", "1")
    with pytest.raises(RuntimeError, match="a defect"):
        build_site(project)


def test_a_page_in_which_a_parser_runs_out_of_its_stack_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def deep(*_: object) -> str:
        raise RecursionError

    monkeypatch.setattr("benchbook.rendering.fences.tables.render_table", deep)
    with pytest.raises(PluginError, match=r"docs/en/memory\.md:1: nests deeper than parsers follow; nest "):
        build_site(project)


def test_a_fence_in_indented_code_stops_the_build_with_its_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = whole_handbook(tmp_path / "handbook")
    page = project.root / "docs/en/memory.md"
    whole = page.read_text("utf-8") + "\nWritten so:\n\n    ```calculator\n    peak\n    ```\n"
    page.write_text(whole, "utf-8")
    with pytest.raises(Abort):
        build_site(project)
    line = whole.count("\n") - 2
    assert f"docs/en/memory.md:{line}: a `calculator` that no reader sees" in caplog.text


@pytest.mark.parametrize("below", ["", "handbook"])
def test_a_file_where_the_site_is_built_is_one_line(
    project: Project, below: str, caplog: pytest.LogCaptureFixture
) -> None:
    site = project.root / "site"
    site.write_text("x", "utf-8")
    config = load_config(str(project.root / "mkdocs.yml"), site_dir=str(site / below))
    config.plugins.run_event("startup", command="build", dirty=False)
    with pytest.raises(Abort):
        mkdocs_build(config)
    assert "/site:1: is no folder, and the site is built there; remove it" in caplog.text
    assert site.read_text("utf-8") == "x"


def test_a_site_that_there_is_no_room_for_is_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "site/ar/index.html")

    monkeypatch.setattr("mkdocs.utils.write_file", full)
    with pytest.raises(PluginError, match=r"^site/ar/index\.html: cannot be written \(No space left"):
        build_site(project)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- " * 1500 + "a", "3: the line begins 3000 characters deep in blocks"),
        ("## Part\n" * 301, "302: the text has more than 300 headings"),
        ("```cell\nmemory/methods.py#train\n```\n\n" * 401, "1603: the text has more than 400 fences"),
    ],
)
def test_a_page_that_no_parser_may_read_stops_the_build_before_it_is_read(
    project: Project, caplog: pytest.LogCaptureFixture, text: str, problem: str
) -> None:
    (project.docs / "ja/memory.md").write_text(f"# Memory {{ #memory }}\n\n{text}\n", "utf-8")
    with pytest.raises(Abort):
        build_site(project)
    assert f"docs/ja/memory.md:{problem}" in caplog.text
    assert not (project.root / "site/memory").exists()


@pytest.mark.parametrize(
    "name", ["ja.md", "ja/index.md", "sitemap.xml.md", "assets/site.css.md", "README.md", 'x"><meta>.md']
)
def test_a_page_that_would_take_the_place_of_another_file_is_named_and_left_out(
    project: Project, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    build_site(project)
    before = files_of(project.root / "site")
    path = project.docs / "en" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("# Another { #another }\n", "utf-8")
    with pytest.raises(Abort):
        build_site(project)
    assert f"1 problem(s) in the pages:\ndocs/en/{name}:1: " in caplog.text
    assert {
        place: text for place, text in files_of(project.root / "site").items() if text != before[place]
    } == {}


def test_records_that_were_put_in_place_by_half_are_a_problem_of_the_build(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    path = project.record_path(CPU, "memory/losses.py")
    new = path.with_name(f".{path.name}.abcdefgh")
    new.write_bytes(path.read_bytes() + b"\n")
    list_moves(project.root, [(new, path, None)], written)
    with pytest.raises(Abort):
        build_site(project)
    assert ".benchbook/writing.json:1: a command was killed while it put 1 files in place" in caplog.text
    finish_writing(project)
    build_site(project)


def written(path: Path, content: bytes) -> Path:
    """Write a file beside its place, as an import does."""
    path.parent.mkdir(exist_ok=True)
    beside = path.with_name(f".{path.name}.abcdefgh")
    beside.write_bytes(content)
    return beside


def test_a_served_page_shows_its_problems_and_stays_up(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    edit(project.docs / "en/memory.md", "#difference", "#diference")
    shown = (build_site(project, "serve") / "memory/index.html").read_text("utf-8")
    assert "docs/en/memory.md:3: `memory/losses.py` has no metric `diference`" in caplog.text
    assert "bb-problem" in shown


def test_a_page_without_a_translation_speaks_english_in_its_blocks(project: Project) -> None:
    (project.docs / "ja/memory.md").unlink()
    shown = (build_site(project) / "ja/memory/index.html").read_text("utf-8")
    assert "Numbers from" in shown
    assert "計測" not in shown


LINKED = """# Start {{ #start }}

```table
script: memory/methods.py
where: {{batch_size: 1}}
rows: method
columns: peak_memory
links:
  plain: {target}
```
"""


def test_a_row_links_to_a_page_in_its_language(project: Project) -> None:
    for code in ("en", "ja"):
        (project.docs / code / "index.md").write_text(LINKED.format(target="memory.md#memory"), "utf-8")
    (project.docs / "ja/memory.md").unlink()  # in Japanese, the English page stands at its address
    site = build_site(project)
    for page in ("index.html", "ja/index.html", "ar/index.html"):
        assert '<a href="memory/#memory">' in (site / page).read_text("utf-8")


def test_a_row_that_links_to_no_page_stops_the_build(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    (project.docs / "en/index.md").write_text(LINKED.format(target="memories.md"), "utf-8")
    with pytest.raises(Abort):
        build_site(project)
    assert "docs/en/index.md:3: there is no page `memories.md` to link to" in caplog.text


def test_the_machine_is_named_without_a_script(project: Project) -> None:
    shown = plain((build_site(project) / "memory/index.html").read_text("utf-8"))
    assert "Numbers from Fixture CPU, 8 GB (measured)" in shown


def test_a_machine_that_only_lacks_what_a_claim_is_about_is_not_offered(project: Project) -> None:
    edit(
        project.snippets / "memory/claims.toml",
        'id = "plain-needs-more-at-four"',
        'id = "plain-needs-more-at-four"\nneeds = ["accelerator"]',
    )
    (project.docs / "en/memory.md").write_text(
        PAGE.format(words="They differ by")
        + '\n```claim id="plain-needs-more-at-four"\nWithout it, more is needed.\n```\n',
        "utf-8",
    )
    described = json.loads((project.records / CPU / "machine.json").read_text("utf-8"))
    (project.records / "cpu-other").mkdir()
    (project.records / "cpu-other/machine.json").write_text(
        json.dumps({**described, "name": "cpu-other", "title": "Another", "short": "Other"}), "utf-8"
    )
    page = (build_site(project) / "memory/index.html").read_text("utf-8")
    assert f'<option value="{CPU}"' in page
    assert "Other" not in plain(page)


def test_a_page_ends_with_the_downloads_of_every_script_behind_it(project: Project) -> None:
    site = build_site(project)
    page = site / "ar/memory/index.html"
    links = re.findall(r'href="([^"]+)" download', page.read_text("utf-8"))
    assert len(links) == 9
    assert all((page.parent / link).is_file() for link in links)


def test_every_link_of_the_details_leads_to_a_file(project: Project) -> None:
    page = build_site(project) / "memory/index.html"
    details = re.findall(r"<details.*?</details>", page.read_text("utf-8"), re.S)
    links = [link for one in details for link in re.findall(r'href="([^"]+)"', one)]
    assert links
    assert all((page.parent / link).is_file() for link in links)


def test_a_guide_without_an_accelerator_says_so(project: Project) -> None:
    for script in ("methods", "losses"):
        for machine in (GPU, QUOTED):
            project.record_path(machine, f"memory/{script}.py").unlink(missing_ok=True)
    shown = (build_site(project) / "ar/memory/index.html").read_text("utf-8")
    assert load_language(project.docs, "ar").text("not_on_gpu") in shown
    assert "<select" not in shown


def test_a_replay_build_imports_no_torch(tmp_path: Path) -> None:
    config = whole_handbook(tmp_path / "handbook").root / "mkdocs.yml"
    code = (
        "import sys; from mkdocs.__main__ import cli\n"
        f"cli(['build', '-q', '-f', {str(config)!r}, '-d', {str(tmp_path / 'site')!r}],"
        " standalone_mode=False)\n"
        "sys.exit(int(any(name in sys.modules for name in ('torch', 'transformers', 'accelerate', 'numpy'))))"
    )
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2] / "scripts")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_plugins_start_without_the_second_markdown_parser() -> None:
    code = "import sys, benchbook.rendering.plugin\nsys.exit(int('markdown_it' in sys.modules))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "scripts")}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


# BENCHBOOK_EXECUTE. The interpreter is a stand-in: what it is asked is the promise here.

STAND_IN = """#!{python}
import json, os, pathlib, sys
root = pathlib.Path(os.environ["BENCHBOOK_ROOT"])
with (root / "asked.txt").open("a") as asked:
    asked.write(" ".join(sys.argv[1:]) + "\\n")
if "--plan" in sys.argv:
    print(json.dumps({{"machine": "{machine}"}}))
sys.exit({code})
"""


def stand_in(project: Project, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> Path:
    path = project.root / "python"
    path.write_text(STAND_IN.format(python=sys.executable, machine=GPU, code=code), "utf-8")
    path.chmod(0o755)
    monkeypatch.setenv("BENCHBOOK_PYTHON", str(path))
    return project.root / "asked.txt"


@pytest.mark.parametrize("mode", ["stale", "all"])
def test_a_build_records_once_for_all_languages_and_shows_this_machine(
    project: Project, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    asked = stand_in(project, monkeypatch)
    monkeypatch.setenv("BENCHBOOK_EXECUTE", mode)
    site = build_site(project)
    assert asked.read_text("utf-8").splitlines() == [
        f"-m benchbook record --{mode}",
        "-m benchbook record --plan --json",
    ]
    for code in ("", "ar", "ja"):
        assert all(
            f'data-machine="{GPU}"' in element for element in data_elements(site / code / "memory/index.html")
        )


def test_recording_that_fails_stops_the_build(
    project: Project, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stand_in(project, monkeypatch, code=1)
    monkeypatch.setenv("BENCHBOOK_EXECUTE", "stale")
    with pytest.raises(Abort):
        build_site(project)
    assert "recording on this machine failed" in caplog.text


def test_an_unknown_mode_or_a_missing_interpreter_is_a_problem(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchbook.rendering.execution import record_here

    with pytest.raises(BenchbookError, match="`always` is no way to execute"):
        record_here(project, "always")
    monkeypatch.setenv("BENCHBOOK_PYTHON", "nowhere/python")
    with pytest.raises(BenchbookError, match="there is no interpreter"):
        record_here(project, "stale")


def test_editing_a_script_re_records_just_that_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCHBOOK_PYTHON", sys.executable)
    monkeypatch.setenv("BENCHBOOK_EXECUTE", "stale")
    build_site(project)
    (here,) = set(project.machines) - {CPU, GPU, QUOTED}
    methods, losses = (project.record_path(here, f"memory/{name}.py") for name in ("methods", "losses"))
    before = methods.read_bytes()
    edit(project.snippets / "memory/losses.py", "difference = 7.2e-8", "difference = 9e-8")
    capfd.readouterr()
    site = build_site(project)
    assert methods.read_bytes() == before
    assert capfd.readouterr().err.count("wrote snippets/records") == 1
    assert (
        json.loads(losses.read_text("utf-8"))["variants"]["default"]["runs"][0]["metrics"]["difference"]
        == 9e-8
    )
    for code in ("", "ar", "ja"):
        assert 'value="9e-08"' in data_elements(site / code / "memory/index.html")[0]


def test_a_served_site_follows_its_pages_its_configuration_and_its_records(project: Project) -> None:
    config = load_config(str(project.root / "mkdocs.yml"), site_dir=str(project.root / "site"))
    config.plugins.run_event("startup", command="serve", dirty=False)
    mkdocs_build(config)
    server = LiveReloadServer(builder=lambda: None, host="127.0.0.1", port=0, root=config.site_dir)
    server.watch(config.docs_dir)
    server.watch(str(config.config_file_path))
    config.plugins.on_serve(server, config=config, builder=lambda: None)
    watched = {emitter.watch.path for emitter in server.observer.emitters}
    config.plugins.run_event("shutdown")
    # A file is looked at through its folder.
    assert watched == {config.docs_dir, str(project.root), str(project.snippets)}


# Two builds at once


def held(path: Path) -> int:
    """Lock a file, as a build in another process would."""
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return file


def test_a_second_build_into_the_same_folder_is_refused_with_one_line(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    before = files_of(build_site(project))
    caplog.clear()
    file = held(project.root / ".site.lock")
    with pytest.raises(Abort):
        build_site(project)
    said = [record.getMessage() for record in caplog.records if "another build" in record.getMessage()]
    assert said == ["site:1: another build writes into this folder; wait for it to end, or end it"]
    assert files_of(project.root / "site") == before
    os.close(file)
    assert files_of(build_site(project)) == before


@pytest.mark.parametrize("language", ["en", "ja"])
def test_a_build_that_ends_leaves_no_lock_behind(project: Project, language: str) -> None:
    site = build_site(project)
    edit(project.docs / language / "memory.md", "#difference", "#diference")
    with pytest.raises(Abort):
        build_site(project)
    edit(project.docs / language / "memory.md", "#diference", "#difference")
    build_site(project)
    assert not [path for path in (*site.rglob("*"), *project.root.iterdir()) if path.suffix == ".lock"]


def test_the_folder_is_locked_until_the_last_language_is_built(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def lock(*_: object) -> None:
        with pytest.raises(BlockingIOError):
            held(project.root / ".site.lock")
        seen.append(True)

    monkeypatch.setattr("benchbook.rendering.replay.write_error_texts", lock)
    build_site(project)
    assert seen == [True]


def test_a_site_is_served_beside_a_build(project: Project) -> None:
    file = held(project.root / ".site.lock")
    assert (build_site(project, "serve") / "memory/index.html").is_file()
    os.close(file)


def test_where_a_system_has_no_locks_nothing_is_held_off(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = held(project.root / ".site.lock")
    monkeypatch.setattr("benchbook.rendering.plugin.fcntl", None)
    assert (build_site(project) / "memory/index.html").is_file()
    os.close(file)


def test_a_lock_that_was_removed_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, beside = fcntl.flock, tmp_path / ".site.lock"
    removed = iter([True])

    def late(file: int, how: int) -> None:
        flock(file, how)
        if next(removed, False):
            beside.unlink()

    monkeypatch.setattr(fcntl, "flock", late)
    lock = OutputLock()
    lock.take(tmp_path / "site")
    with pytest.raises(BlockingIOError):
        held(beside)
    lock.release()
    assert not beside.exists()


def test_a_folder_that_is_a_link_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "site").symlink_to(tmp_path / "kept")
    with pytest.raises(PluginError, match=r"^site:1: is a link to another place, which a build would empty;"):
        OutputLock().take(tmp_path / "site")


def test_a_link_in_the_folder_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/notes").symlink_to(tmp_path)
    with pytest.raises(
        PluginError, match=r"^site/notes:1: is a link, which would be published with the site;"
    ):
        OutputLock().take(tmp_path / "site")


def test_a_link_is_no_lock_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".site.lock").symlink_to(tmp_path / "made")
    OutputLock().take(tmp_path / "site")
    assert not (tmp_path / "made").exists()
