"""`benchbook check` names every problem of the tree in one run, each with file, line and fix."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking import checks
from benchbook.checking.checks import check_project
from benchbook.checking.site_settings import dropped_settings, site_setting_problems
from benchbook.content.formats import LARGEST_FILE, MOST_VALUES
from benchbook.content.page_source import parse_page
from benchbook.content.project import Project
from benchbook.query.library import Library
from benchbook.rendering.places import check_page, page_references
from builders import GPU_JSON, MACHINE, MACHINE_JSON, PAGE, SCRIPT, make_project, with_table, write
from handbooks import GPU, copy_handbook, edit, whole_handbook
from repositories import commit_all

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path)


def lines(project: Project) -> list[str]:
    return [str(problem) for problem in check_project(Project(project.root)).problems]


def test_a_tree_that_holds_its_promises_has_no_problem(project: Project) -> None:
    report = check_project(project)
    assert (report.problems, report.warnings) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("sums/add.py#total", "sums/sub.py#total", "sub"),
        ("sums/add.py#total", "sums/add.py#totals", "totals"),
        ("sums/add.py#total", "sums/add.py#add.totals", "totals"),
        ("sums/add.py#total", "sums/add.py?steps=9#total", "steps"),
        ("sums/add.py#add\n", "sums/add.py#subtract\n", "subtract"),
        ("The total is", "It took 5 s. The total is", "`5 s` is typed"),
        ("# Adding { #adding }", "# Adding", "has no id"),
        ("# Adding {", "# Adding `#!value sums/add.py#total` {", "a heading holds a value"),
    ],
)
def test_what_is_wrong_in_a_page_is_named_with_its_line(
    project: Project, old: str, new: str, what: str
) -> None:
    damaged = PAGE.replace(old, new)
    write(project.docs / "en/sums.md", damaged)
    number = next(n for n, line in enumerate(damaged.splitlines(), 1) if line not in PAGE.splitlines())
    (line,) = lines(project)
    # What stands in a fence is found at the fence.
    at = number - 1 if damaged.splitlines()[number - 2].startswith("```") else number
    assert line.startswith(f"docs/en/sums.md:{at}: ")
    assert what in line


def test_a_machine_that_has_predictions_alone_counts_among_those_that_pages_are_made_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = len(page_references(project.docs / "en/sums.md"))
    monkeypatch.setattr("benchbook.rendering.specs.MOST_PLACES_IN_ALL", places)
    assert lines(project) == []
    (project.predictions / "nvidia-h100-80gb").mkdir(parents=True)
    (line,) = lines(project)
    assert f"counted for each machine, and {places} are the most" in line


def test_a_machine_without_records_counts_not_among_those_that_pages_are_made_for(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = len(page_references(project.docs / "en/sums.md"))
    monkeypatch.setattr("benchbook.rendering.specs.MOST_PLACES_IN_ALL", places)
    described = json.loads((project.records / MACHINE / "machine.json").read_text())
    of_ada = {"name": "cpu-test--ada", "owner": "Ada", "title": "Ada's processor", "short": "Ada's"}
    write(project.records / "cpu-test--ada/machine.json", json.dumps(described | of_ada))
    assert lines(project) == []


def test_problems_of_all_languages_come_in_one_run(project: Project) -> None:
    for code in ("ar", "zh"):
        write(project.docs / code / "_language.yml", "strings: {}\nlabels: {}\n")
        write(project.docs / code / "sums.md", PAGE.replace("The total", "5 GiB. The total"))
    found = [line for line in lines(project) if "is typed into the text" in line]
    assert [line.partition(":")[0] for line in found] == ["docs/ar/sums.md", "docs/zh/sums.md"]


def test_a_translation_without_an_english_page_is_a_problem(project: Project) -> None:
    write(project.docs / "ja/_language.yml", "strings: {}\nlabels: {}\n")
    write(project.docs / "ja/other.md", PAGE)
    assert "translates a page that English does not have" in lines(project)[0]


def test_a_stale_record_blocks_on_a_machine_that_ci_can_run(project: Project) -> None:
    write(project.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    (line,) = lines(project)
    assert f"its record on {MACHINE} is stale: code changed" in line
    assert "benchbook record sums/add.py" in line


def test_a_stale_record_elsewhere_warns(project: Project) -> None:
    write(project.root / "pyproject.toml", f'[tool.benchbook]\nreference_machine = "{MACHINE}"\n')
    write(project.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    report = check_project(Project(project.root))
    assert report.problems == ()
    assert "is stale: code changed" in report.warnings[0].what


def test_what_another_machine_measured_is_only_owed_by_one_that_ci_can_run(project: Project) -> None:
    elsewhere = "cpu-test--ada"
    described = json.loads((project.records / MACHINE / "machine.json").read_text())
    of_ada = {"name": elsewhere, "owner": "Ada", "title": "Ada's processor", "short": "Ada's"}
    write(project.records / elsewhere / "machine.json", json.dumps(described | of_ada))
    record = project.record_path(MACHINE, "sums/add.py")
    lent = record.read_text().replace(MACHINE, elsewhere).replace("maintainers", "Ada")
    write(project.record_path(elsewhere, "sums/add.py"), lent)
    record.unlink()
    report = check_project(Project(project.root))
    assert report.problems == ()
    assert f"its record on {MACHINE} is missing" in report.warnings[0].what
    # Whoever lends a machine of their own owes nothing.
    write(project.snippets / "sums/sub.py", SCRIPT)
    (problem,) = check_project(Project(project.root)).problems
    assert problem.path == "snippets/sums/sub.py"
    assert f"its record on {MACHINE} is missing" in problem.what


def test_a_machine_that_no_guide_shows_owes_nothing_that_another_measured(project: Project) -> None:
    described = json.loads((project.records / MACHINE / "machine.json").read_text())
    other = {"name": "cpu-other", "title": "Another processor", "short": "Another"}
    write(project.records / "cpu-other" / "machine.json", json.dumps(described | other))
    edit(
        project.root / "pyproject.toml", "[tool.benchbook]\n", '[tool.benchbook]\nmachines = ["cpu-other"]\n'
    )
    report = check_project(Project(project.root))
    assert (report.problems, report.warnings) == ((), ())
    project.record_path(MACHINE, "sums/add.py").unlink()
    asked = {one.what.split()[3] for one in check_project(Project(project.root)).warnings}
    assert asked == {"cpu-other"}


def test_a_damaged_record_is_named_once_with_its_line(project: Project) -> None:
    path = project.record_path(MACHINE, "sums/add.py")
    write(path, path.read_text().replace('"total": 7', '"total": "7"'))
    found = [line for line in lines(project) if line.startswith("snippets/records/")]
    assert found
    assert all(
        re.match(rf"snippets/records/{MACHINE}/sums/add\.json:\d\d+: variants\.default\.runs", x)
        for x in found
    )


def test_times_of_two_campaigns_are_named_on_every_machine(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path / "book")
    path = project.record_path(GPU, "memory/methods.py")
    table = json.loads(path.read_text("utf-8"))
    ((name, campaign),) = table["campaigns"].items()
    table["campaigns"][f"{name}-more"] = dict(campaign)
    next(iter(table["variants"].values()))["campaign"] = f"{name}-more"
    path.write_text(json.dumps(table, indent=2), "utf-8")
    what = "its variants are of 2 campaigns, whose times cannot be compared"
    found = [one for one in check_project(Project(project.root)).problems if one.what == what]
    assert [one.path for one in found] == [project.relative(path)]


def test_what_a_page_could_not_show_of_another_machine_is_named(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path / "book")
    path = project.record_path(GPU, "memory/methods.py")
    table = json.loads(path.read_text("utf-8"))
    for variant in table["variants"].values():
        for run in variant["runs"]:
            run["metrics"]["peak_memory"] = [run["metrics"]["peak_memory"]] * 3
    path.write_text(json.dumps(table, indent=2), "utf-8")
    fence = "script: memory/methods.py\nrows: method\nwhere: {batch_size: 2}\ncolumns: [peak_memory]"
    write(project.root / "docs/en/memory.md", f"# Memory\n\n```table\n{fence}\n```\n")
    named = [line for line in lines(project) if line.startswith("docs/en/memory.md:3: ")]
    assert ["is a series of 3" in line for line in named] == [True]


def test_a_record_that_is_no_json_is_named_once(project: Project) -> None:
    write(project.record_path(MACHINE, "sums/add.py"), '{\n  "schema": 1,\n')
    (line,) = lines(project)
    assert line.startswith(f"snippets/records/{MACHINE}/sums/add.json:3: is not JSON")


@pytest.mark.parametrize("name", ["machine.json", "sums/add.json"])
@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('"' + "x" * LARGEST_FILE + '"', "it is larger than 8 MiB"),
        ("[" + "0," * MOST_VALUES + "0]", f"it holds more than {MOST_VALUES} values"),
    ],
    ids=["bytes", "values"],
)
def test_what_is_larger_than_any_record_is_named_and_not_parsed(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str, text: str, what: str
) -> None:
    write(project.records / MACHINE / name, text)
    parse = json.loads

    def loads(given: str | bytes, **options: Any) -> Any:
        assert len(given) < len(text)
        return parse(given, **options)

    monkeypatch.setattr(json, "loads", loads)
    line = lines(project)[0]
    assert line.startswith(f"snippets/records/{MACHINE}/{name}:1: cannot be read ({what})")


def test_a_record_whose_script_is_gone_is_named(project: Project) -> None:
    path = project.record_path(MACHINE, "sums/add.py")
    write(project.record_path(MACHINE, "sums/sub.py"), path.read_text().replace("sums/add.py", "sums/sub.py"))
    assert "its script sums/sub.py is not there" in "\n".join(lines(project))


def test_a_record_in_the_wrong_place_is_named(project: Project) -> None:
    path = project.record_path(MACHINE, "sums/add.py")
    write(project.record_path(MACHINE, "sums/sub.py"), path.read_text())
    assert f"move it to snippets/records/{MACHINE}/sums/add.json" in "\n".join(lines(project))


def test_a_machine_that_is_not_described_is_named(project: Project) -> None:
    path = project.records / MACHINE / "machine.json"
    table = json.loads(path.read_text())
    del table["kind"]
    write(path, json.dumps(table))
    assert f"snippets/records/{MACHINE}/machine.json:1: kind: Field required" in "\n".join(lines(project))


def test_a_script_with_broken_metadata_is_named_with_its_line(project: Project) -> None:
    write(project.snippets / "sums/add.py", SCRIPT.replace('unit = "count"', 'unit = "bananas"'))
    assert any(
        "snippets/sums/add.py:7: the metric `total` has the unknown unit" in line for line in lines(project)
    )


def test_an_input_that_is_not_there_is_named(project: Project) -> None:
    write(project.snippets / "sums/add.py", with_table('[tool.benchbook]\ninputs = ["data.txt"]'))
    assert any("its input `data.txt` is not there" in line for line in lines(project))


def test_a_reference_machine_without_records_is_a_problem(project: Project) -> None:
    write(project.root / "pyproject.toml", '[tool.benchbook]\nreference_machine = "cpu-other"\n')
    assert any("the reference machine cpu-other has no records" in line for line in lines(project))


def test_a_page_that_the_navigation_leaves_out_is_named(project: Project) -> None:
    write(project.root / "mkdocs.yml", "nav:\n  - Start: index.md\n")
    for name in ("index", "new"):
        write(project.docs / f"en/{name}.md", "---\ndescription: A page.\n---\n# Title { #title }\n")
    assert "docs/en/new.md:1: is in no navigation; list it under `nav:` in mkdocs.yml" in lines(project)
    assert not any(line.startswith("docs/en/index.md") for line in lines(project))


def test_a_site_has_the_page_that_readers_come_to_first(project: Project) -> None:
    write(project.root / "mkdocs.yml", "nav:\n  - sums.md\n")
    assert "docs/en/index.md:1: is not there, and readers come to it first; write it" in lines(project)


@pytest.mark.parametrize(
    "leads", ["javascript:alert(1)", "https://example.org/", "nowhere.md", "../README.md"]
)
def test_the_navigation_leads_to_pages_alone(project: Project, leads: str) -> None:
    write(project.root / "mkdocs.yml", f"nav:\n  - Start: index.md\n  - Train:\n    - 'Here': '{leads}'\n")
    write(project.docs / "en/index.md", "---\ndescription: A page.\n---\n# Title { #title }\n")
    what = f"mkdocs.yml:4: the navigation leads to '{leads}', which is no page of docs/en/"
    assert any(line.startswith(what) for line in lines(project))


def test_titles_and_descriptions_of_the_site_hold_no_measured_number(project: Project) -> None:
    settings = """site_name: Twice as fast
site_description: Saves 40 % of memory.
nav:
  - Start 3x faster: index.md
  - Train:
      - Fit 12 GB: sums.md
plugins:
  i18n:
    languages:
      - locale: ja
        site_name: 8 hours
        nav_translations:
          Train: 12 GB
"""
    write(project.root / "mkdocs.yml", settings)
    said = [line for line in lines(project) if "holds the number" in line]
    assert [line.split(":")[1] for line in said] == ["2", "4", "6", "11", "13"]
    what = "a title or description of the site holds the number `40 %`; say it without a number"
    assert said[0] == f"mkdocs.yml:2: {what}"


def test_a_language_has_no_settings_of_its_own_but_its_names(project: Project) -> None:
    entry = (
        "{locale: ja, name: Japanese, nav_translations: {Start: Here}, nav: [Here: 'javascript:alert(1)']}"
    )
    write(project.root / "mkdocs.yml", f"plugins:\n  i18n:\n    languages:\n      - {entry}\n")
    said = [line for line in lines(project) if line.startswith("mkdocs.yml:4: ")]
    assert [line.partition(";")[0] for line in said if "unknown key" in line] == [
        "mkdocs.yml:4: the entry of a language has the unknown key `nav`"
    ]
    assert any("the navigation leads to 'javascript:alert(1)', which is no page" in line for line in said)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("watch:", "hooks: [own.py]\nwatch:", "`hooks` is an unknown key"),
        ("io/handbook/]", "io/another/]", "`site_url` is not where the repository publishes the site"),
        ("name: 日本語", "name: 简体中文", "the name of the language 'ja' is not what it calls itself"),
        ("BUILD_JA, true", "BUILD_JA, false", "`build` of the language 'ja' leaves it out"),
        ("    defer: true", "    defer: true\n    path: //own.example/a.js", "the key `path` is there twice"),
        (
            "  - scripts/benchbook",
            "  - 2001-99-99\n  - scripts/benchbook",
            "`watch` is '2001-99-99', which YAML",
        ),
        (
            "site_name: Transformer performance handbook",
            "site_name: !ENV [TOKEN]",
            "`site_name` has the tag !ENV",
        ),
        ("watch:", "INHERIT: own.yml\nwatch:", "`INHERIT` is an unknown key"),
        ("watch:", "<<: {hooks: [own.py]}\nwatch:", "`<<` is an unknown key"),
        ("watch:", "copyright: All of it is wrong.\nwatch:", "`copyright` is an unknown key"),
        ("docs_dir: docs", "docs_dir: own", "`docs_dir` is not what pages are made"),
        ("edit_uri: edit/main/docs/", "edit_uri: https://own.example/", "`edit_uri` is not what pages are"),
        ("handbook\nedit_uri", "elsewhere\nedit_uri", "`repo_url` is not what pages are made"),
        ("  font: false", "  font: false\n  custom_dir: own", "`theme.custom_dir` is an unknown key"),
        ("  name: material", "  name: mkdocs", "`theme.name` is not what pages are made"),
        ("  font: false\n", "", "`theme` has no `font`"),
        ("  benchbook: {}", "  benchbook:\n    records: false", "`plugins.benchbook.records` is an unknown"),
        ("  benchbook: {}", "  benchbook: {}\n  search: {}", "`plugins.search` is an unknown key"),
        ("  tables: {}", "  tables: !!python/name:os.system", "`tables` is '', which YAML does not"),
        (
            "  tables: {}",
            "  tables: {}\n  pymdownx.snippets: {}",
            "`markdown_extensions.pymdownx.snippets` is",
        ),
        ('permalink: "#"', "permalink: wrong", "`markdown_extensions.toc.permalink` is not what pages"),
        ("  - scripts/benchbook", "  - nosuch\n  - scripts/benchbook", "`watch` is not what pages are made"),
        ("  anchors: warn", "  anchors: ignore", "`validation.anchors` is not what pages are made"),
        ("    defer: true", "    type: application/json", "`extra_javascript` says `type` of a script"),
        ("    defer: true", "    defer: maybe", "`extra_javascript` says `defer` of a script"),
        (
            "  - assets/blocks.css",
            "  - path: assets/blocks.css",
            "`extra_css` has an entry that is no path",
        ),
        ("  - Start here: index.md", "  - Start here: index.md\n  - index.md", "leads to 'index.md' twice"),
        ("  - Start here: index.md", "  - '': index.md", "the navigation has a title of no word"),
        (
            "      - perf_train_gpu_one.md",
            "      - Deeper: [perf_train_gpu_one.md]",
            "an entry that is no page and no section of pages",
        ),
        ("  - Start here: index.md", "  - {Start: index.md, A: index.md}", "an entry that is no page and no"),
        ("site_name: Transformer performance handbook", "site_name: ' '", "`site_name` has no word"),
        (
            "        name: 日本語",
            f"        name: {'日本語' * 200}",
            "`name` has 600 characters, and 500 are the most",
        ),
        (
            "site_name: Transformer performance handbook",
            f"site_name: {'A ' * 20_000}",
            "bytes, and 40000 are the most",
        ),
        ("        name: 日本語", "        name: 日本語\n        default: yes", "'ja' is a second default"),
        ("      - locale: zh", "      - locale: ar", "the language 'ar' is there twice"),
        (
            "          Start here: はじめに",
            "          Start here: [はじめに]",
            "'ja' has no words for 'Start here'",
        ),
        (
            "          Start here: はじめに",
            "          <<: {Start here: !!python/object/apply:os.getcwd []}",
            "has the tag tag:yaml.org,2002:python/object/apply:os.getcwd",
        ),
        (
            "        nav_translations:\n          Start here: はじめに",
            "        nav_translations: !!python/object/apply:os.getcwd\n          Start here: はじめに",
            "`nav_translations` has the tag tag:yaml.org,2002:python/object/apply:os.getcwd",
        ),
    ],
)
def test_the_settings_that_pages_are_made_by_are_held(
    project: Project, old: str, new: str, what: str
) -> None:
    shutil.copy(ROOT / "pyproject.toml", project.root)
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    english = {path.name for path in (ROOT / "docs/en").glob("*.md")}
    assert settings.count(old) == 1
    path = write(project.root / "mkdocs.yml", settings)
    (project.root / "scripts/benchbook/rendering/theme").mkdir(parents=True)
    assert list(site_setting_problems(Project(project.root), english)) == []
    write(path, settings.replace(old, new))
    problem, *_ = site_setting_problems(Project(project.root), english)
    assert what in str(problem)
    line = settings.replace(old, new).split("\n")[problem.line - 1].strip()
    key = line.partition(":")[0].removeprefix("- ")
    assert key in problem.what or new.strip() in line or line in new


@pytest.mark.parametrize("key", ["theme", "plugins", "markdown_extensions", "validation", "extra_css"])
def test_no_setting_that_pages_are_made_by_goes(project: Project, key: str) -> None:
    main = (ROOT / "mkdocs.yml").read_text("utf-8")
    # A setting reaches to the next line that is not set in.
    fewer = re.sub(rf"(?m)^{key}:.*\n(?:[ #].*\n|\n)*", "", main)
    assert f"\n{key}:" in main
    assert f"\n{key}:" not in fewer
    write(project.root / "mkdocs.yml", fewer)
    assert [problem.what for problem in dropped_settings(project, main)] == [
        f"has no `{key}`, which `main` has"
    ]
    write(project.root / "mkdocs.yml", main)
    assert list(dropped_settings(project, main)) == []


@pytest.mark.parametrize(
    ("old", "new", "key", "what"),
    [
        ("site_name: Transformer performance handbook", "site_name: [A, handbook]", "site_name", "str"),
        ("site_name: Transformer performance handbook\n", "", "", "Required configuration not provided"),
        ("site_description: What to", "site_description:\n  - What to", "site_description", "str"),
        ("  - assets/site.css\n  - assets/blocks.css", "  assets/site.css", "extra_css", "list"),
        ("        default: true\n", "", "plugins", "Could not find a default language"),
        ("        name: English\n", "", "plugins", "Required configuration not provided"),
        ("        name: English", "        name: [English]", "plugins", "str"),
    ],
)
def test_what_mkdocs_refuses_is_told_as_it_says_it(
    project: Project, old: str, new: str, key: str, what: str
) -> None:
    settings = (ROOT / "mkdocs.yml").read_text("utf-8")
    english = {path.name for path in (ROOT / "docs/en").glob("*.md")}
    assert settings.count(old) == 1
    (project.root / "scripts/benchbook/rendering/theme").mkdir(parents=True)
    text = settings.replace(old, new)
    write(project.root / "mkdocs.yml", text)
    (problem,) = site_setting_problems(Project(project.root), english)
    assert problem.what.startswith(f"MkDocs refuses {f'`{key}`' if key else '`site_name`'} (")
    assert what in problem.what
    assert text.split("\n")[problem.line - 1].startswith(key)


@pytest.mark.parametrize("text", ["", "- site_name: Sums\n"])
def test_settings_that_hold_no_setting_are_refused(project: Project, text: str) -> None:
    write(project.root / "mkdocs.yml", text)
    (problem,) = site_setting_problems(Project(project.root), ())
    assert (problem.path, problem.line) == ("mkdocs.yml", 1)
    assert problem.what.startswith("MkDocs refuses ")


@pytest.mark.parametrize("key", ["extra_css", "extra_javascript"])
@pytest.mark.parametrize(
    "loads", ["https://example.org/own.js", "{path: //example.org/own.js}", "assets/own.js"]
)
def test_pages_load_the_styles_and_scripts_of_the_site_alone(project: Project, key: str, loads: str) -> None:
    write(
        project.root / "mkdocs.yml",
        f"{key}:\n  - assets/site.css\n  - assets/site.js\n  - {loads}\n",
    )
    said = [line for line in lines(project) if line.startswith("mkdocs.yml:")]
    assert sum(line.startswith(f"mkdocs.yml:4: `{key}` loads ") for line in said) == 1
    assert all(line.startswith("mkdocs.yml:4: ") for line in said)


def test_a_dead_link_is_a_problem(project: Project) -> None:
    text = "---\ndescription: A page.\n---\n# Title { #title }\n\n[x](nowhere.md)\n"
    write(project.docs / "en/linking.md", text)
    assert any(line.startswith("docs/en/linking.md:6: there is no page") for line in lines(project))


def test_a_page_with_the_calculator_is_held_to_the_pages_it_links_to(project: Project) -> None:
    text = "---\ndescription: A page.\n---\n# Title { #title }\n\n```calculator\nform\n```\n"
    write(project.docs / "en/computing.md", text)
    said = (
        "docs/en/computing.md:6: the calculator links to the page `comparing_setups.md`, which is not there"
    )
    assert sum(line.startswith(said) for line in lines(project)) == 1


@pytest.mark.parametrize("body", ["", "asserted.md\n"])
def test_a_list_of_claims_needs_the_page_of_all_claims(tmp_path: Path, body: str) -> None:
    handbook = whole_handbook(tmp_path / "handbook")
    for path in handbook.docs.glob("*/claims.md"):
        path.unlink()
    text = f"---\ndescription: A page.\n---\n# Title {{ #title }}\n\n```claims\n{body}```\n"
    write(handbook.docs / "en/verdicts.md", text)
    path = handbook.docs / "en/verdicts.md"
    (problem,) = check_page(path, parse_page(text), Library(handbook))
    assert str(problem).startswith(
        "docs/en/verdicts.md:6: there is no page `claims.md`, beside which the lists of claims are made; "
        "restore docs/en/claims.md, or change LIST in "
    )


def test_records_of_a_machine_that_nothing_describes_are_a_problem(project: Project) -> None:
    (project.records / MACHINE).rename(project.records / "cpu-lost")
    (project.records / "cpu-lost/machine.json").unlink()
    assert any(
        line.startswith("snippets/records/cpu-lost:1: holds records of a machine") for line in lines(project)
    )


TIMED = with_table("[tool.benchbook]\nrepeats = 3", SCRIPT.replace('"count"', '"samples/s"'))
LENT = f"{MACHINE}--ada"
OF_ADA = {"name": LENT, "owner": "Ada", "title": "2-core CPU, 24 GB (Ada)", "short": "CPU 2-core (Ada)"}


def lend(project: Project, name: str = LENT, by: str = "Ada", **changes: object) -> list[str]:
    """What check says of Ada's machine, put into the tree without an import."""
    described = MACHINE_JSON | OF_ADA | {"name": name} | changes
    write(project.records / name / "machine.json", json.dumps(described))
    table = json.loads(project.record_path(MACHINE, "sums/add.py").read_text("utf-8"))
    (campaign,) = table["campaigns"].values()
    campaign["recorded_by"] = by
    for variant in table["variants"].values():
        for place, run in enumerate(variant["runs"]):
            for cell in run["cells"].values():
                cell["seconds"] *= 1.37 + place / 1000
    write(project.record_path(name, "sums/add.py"), json.dumps(table | {"machine": name}))
    return [line.partition(";")[0] for line in lines(project)]


def test_a_machine_that_is_lent_under_its_measurer_s_name_holds_its_promises(project: Project) -> None:
    assert lend(project) == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"owner": None}, "belongs to the maintainers, and its name says otherwise"),
        ({"owner": "Bob"}, "belongs to Bob, and its name says otherwise"),
        ({"title": "A processor for tests"}, f"has the title 'A processor for tests', as {MACHINE} has"),
        ({"title": "\u0410 Pr\u043ecessor f\u043er tests"}, f"tests', as {MACHINE} has"),
        ({"short": "test cpu"}, f"has the short 'test cpu', as {MACHINE} has"),
        ({"title": "NVIDIA H200, 141 GB"}, "and does not describe a H200"),
        ({"title": "The maintainers' CPU"}, "and is not the maintainers'"),
        ({"kind": "cuda"}, "is of the kind cuda and describes no accelerator"),
    ],
)
def test_a_tree_is_asked_of_a_machine_what_an_import_asks(
    project: Project, changes: dict[str, object], what: str
) -> None:
    said = lend(project, **changes)
    shown = f"snippets/records/{LENT}/machine.json:1: {LENT} "
    assert [line for line in said if line.startswith(shown) and line.endswith(what)]


@pytest.mark.parametrize(
    ("name", "changes", "what"),
    [
        ("cpu-2core-24gb", {"title": "NVIDIA H200, 141 GB"}, "does not describe a H200"),
        ("cpu-2core-24gb", {"title": "AMD EPYC 9654, 24 GB"}, "and nothing of it is 9654"),
        ("cpu-2core-24gb", {"title": "2-core CPU, 24 TB"}, "and nothing of it is 24 tb"),
        ("cpu-2core-24gb", {"short": "CPU, 96 cores"}, "and nothing of it is 96 core"),
        ("cpu-2core-24gb", {"title": "2-core CPU, 24 GB", "short": "24 GB, 2 cores"}, None),
        ("cpu-2core-24gb", {"cpu": MACHINE_JSON["cpu"] | {"cores": 64}}, "is called cpu-64core-24gb"),
        ("cpu-2core-24gb-xeon", {"cpu": MACHINE_JSON["cpu"] | {"cores": 64}}, "is called cpu-64core-24gb"),
        ("cpu-2core-24gb-xeon", {"memory_bytes": 2**40}, "is called cpu-2core-1024gb"),
        ("cpu-2core-24gb-xeon", {}, None),
        ("nvidia-h200-141gb", {}, "is called cpu-2core-24gb"),
    ],
)
def test_a_machine_of_the_maintainers_is_what_its_name_and_its_words_say(
    project: Project, name: str, changes: dict[str, object], what: str | None
) -> None:
    said = lend(
        project, name, by="maintainers", **{"owner": None, "title": "A Xeon", "short": "Xeon"} | changes
    )
    shown = f"snippets/records/{name}/machine.json:1: {name} "
    told = [line for line in said if line.startswith(shown) and ("called" in line or "listed" in line)]
    assert told == [line for line in told if what is not None and line.endswith(what)]
    assert bool(told) == (what is not None)


def test_a_machine_that_was_measured_tells_how_many_cores_it_has(project: Project) -> None:
    name = "cpu-0core-24gb--ada"
    said = lend(project, name, cpu=MACHINE_JSON["cpu"] | {"cores": None})
    assert any(f"{name} has no number of cores" in line for line in said)


def test_a_machine_that_nobody_measured_on_is_named_as_one_of_the_maintainers(project: Project) -> None:
    called: dict[str, Any] = {"owner": None, "title": "Another", "short": "Another"}
    (said,) = lend(project, "cpu-other", by="maintainers", **called)
    assert said == (
        "snippets/records/cpu-other/machine.json:1: cpu-other names nobody who measured, "
        "and pyproject.toml names no such machine"
    )
    edit(
        project.root / "pyproject.toml", "[tool.benchbook]\n", '[tool.benchbook]\nmachines = ["cpu-other"]\n'
    )
    assert lend(Project(project.root), "cpu-other", by="maintainers", **called) == []


def test_a_machine_is_lent_under_no_name_of_the_maintainers(project: Project) -> None:
    said = lend(project, f"{MACHINE}--maintainer5", "Maintainer5", owner="Maintainer5")
    assert any("belongs to Maintainer5, which is what the maintainers are called" in line for line in said)


def test_the_sessions_of_a_machine_are_its_owner_s(project: Project) -> None:
    (said,) = lend(project, by="maintainers")
    assert said.startswith(f"snippets/records/{LENT}/sums/add.json:1: campaign 20260102T030405Z-test was ")
    assert said.endswith("was recorded by maintainers, on a machine of Ada")


def test_a_gpu_in_the_tree_is_what_is_known_of_its_model(project: Project) -> None:
    gpu = {**GPU_JSON["accelerator"], "compute_capability": "8.0"}
    called = {"title": "NVIDIA H200, 141 GB (Ada)", "short": "H200 (Ada)"}
    name = "nvidia-h200-141gb--ada"
    said = lend(project, name, **called, kind="cuda", accelerator=gpu)
    assert any("has the compute capability 8.0, and NVIDIA H200" in line for line in said)


def test_too_few_runs_in_the_tree_are_named_as_those_of_a_bundle(project: Project) -> None:
    path = project.record_path(MACHINE, "sums/add.py")
    table = json.loads(path.read_text("utf-8"))
    del table["variants"]["default"]["runs"][1:]
    write(path, json.dumps(table, indent=2))
    (line,) = lines(project)
    where = r"snippets/records/cpu-test/sums/add\.json:\d\d+: "
    assert re.match(f"{where}variant default: holds 1 runs where 2 are asked for; ", line)
    # More is asked for, and the maintainers have the machine no longer.
    settings = project.root / "pyproject.toml"
    edit(settings, f'blocking_machines = ["{MACHINE}"]', f'blocking_machines = []\nmachines = ["{MACHINE}"]')
    assert not [line for line in lines(project) if "are asked for" in line]
    edit(settings, "blocking_machines = []", f'blocking_machines = ["{MACHINE}"]')
    # What was measured before the script changed is stale, and no more.
    write(project.snippets / "sums/add.py", SCRIPT.replace("range(steps)", "range(1, steps)"))
    assert not [line for line in lines(project) if "are asked for" in line]


def test_what_differs_in_the_tree_from_the_reference_machine_is_named_as_of_a_bundle(tmp_path: Path) -> None:
    project = make_project(tmp_path, TIMED)
    # The lent one has the earlier name.
    name = "cpu-1core--ada"
    words = {"title": "1-core CPU (Ada)", "short": "CPU 1-core (Ada)"}
    assert lend(project, name, cpu=MACHINE_JSON["cpu"] | {"cores": 1}, memory_bytes=None, **words) == []
    path = project.record_path(name, "sums/add.py")
    table = json.loads(path.read_text("utf-8"))
    where = rf"snippets/records/{name}/sums/add\.json:\d\d+: variant default: "

    def said(value: Any) -> list[str]:
        for place, run in enumerate(table["variants"]["default"]["runs"]):
            run["metrics"]["total"] = value(1 + place / 100)
        write(path, json.dumps(table, indent=2))
        return [line for line in lines(project) if "docs/" not in line]

    (line,) = said(lambda size: 1e12 * size)
    assert re.match(f"{where}total is .* times as good as on {MACHINE}, and none is 1e.04; ", line)
    (line,) = said(lambda size: [6 * size, 7 * size])
    assert re.match(f"{where}total is a series, and one number on other machines; ", line)
    # Of another version of the script, nothing can be said.
    write(project.snippets / "sums/add.py", TIMED.replace("range(steps)", "range(1, steps)"))
    assert not [line for line in lines(project) if "on other machines" in line]


OWN = with_table('[tool.benchbook]\nvenv = "own"')


def test_an_environment_of_its_own_is_pinned_and_pins_are_of_one(project: Project) -> None:
    script = write(project.snippets / "sums/add.py", OWN)
    (line,) = lines(project)
    assert line.startswith("snippets/sums/add.py:9: its environment `own` has no constraints-own.txt; ")
    write(project.root / "constraints-own.txt", "engine==0.32\n")
    assert lines(project) == []
    write(script, SCRIPT)
    (line,) = lines(project)
    assert line.startswith("constraints-own.txt:1: pins an environment `own` that no script runs in; ")


def test_pins_that_may_be_of_a_script_that_cannot_be_read_are_left_alone(project: Project) -> None:
    write(project.root / "constraints-own.txt", "engine==0.32\n")
    write(project.snippets / "sums/add.py", OWN.replace("[]", "["))
    assert not [line for line in lines(project) if line.startswith("constraints")]


def test_what_readers_install_is_a_package_that_a_file_of_pins_names(project: Project) -> None:
    write(project.root / "constraints.txt", "# Why.\n# extras: the-engine[fast]\nThe_Engine==1.0\n")
    script = project.snippets / "sums/add.py"

    def said(dependencies: str, source: str = SCRIPT) -> list[str]:
        write(script, source.replace("= []", f"= {dependencies}"))
        return [one for one in lines(project) if "add.py:4: " in one]

    assert said('["the.engine[fast]>=1"]') == []
    assert said("""["the-engnie>=1; python_version < '3'"]""") == [
        "snippets/sums/add.py:4: its dependency `the-engnie` is a package that nothing pins; where it is the one "
        "that you mean, add the-engnie==VERSION to constraints.txt, as you tried it"
    ]
    assert said('["the-engine[fast,evil]>=1"]') == [
        "snippets/sums/add.py:4: its dependency asks for `the-engine[evil]`, an extra that no file of pins names; "
        "where it needs that, add the line `# extras: the-engine[evil]` to constraints.txt"
    ]
    write(project.root / "constraints-own.txt", "engine==0.32\n")
    assert said('["engine>=0.1", "the-engine>=1"]', OWN) == []
    (line,) = said('["wheel>=0.1"]', OWN)
    assert line.endswith("add wheel==VERSION to constraints-own.txt, as you tried it")


def recorded(project: Project, **changes: object) -> list[str]:
    """What check says once the only campaign of the reference machine says otherwise."""
    path = project.record_path(MACHINE, "sums/add.py")
    table = json.loads(path.read_text("utf-8"))
    (campaign,) = table["campaigns"].values()
    campaign.update(changes)
    write(path, json.dumps(table))
    return lines(project)


def test_a_session_does_not_begin_before_its_commit_was_made(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What is committed of a record stays as it is.
    write(project.root / ".gitignore", "/snippets/records/\n")
    commit = commit_all(project.root)
    (early,) = recorded(project, commit=commit)
    assert f"started at 2026-01-02T03:04:05Z, before its commit {commit[:12]} was made" in early
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-02T03:00:00Z")
    assert recorded(project, commit=commit_all(project.root)) == []


def test_a_record_ran_on_a_python_that_its_script_admits(project: Project) -> None:
    (line,) = recorded(project, packages={"python": "2.7.0"})
    assert "ran on Python 2.7.0, where sums/add.py asks for >=3.11" in line


def test_a_record_of_a_machine_that_its_script_no_longer_runs_on_is_an_error_whatever_its_code(
    project: Project,
) -> None:
    assert lines(project) == []
    other = with_table('[tool.benchbook]\nneeds = ["mps"]', SCRIPT).replace("range(steps)", "range(0, steps)")
    write(project.snippets / "sums/add.py", other)
    assert any(f"its script needs mps, which {MACHINE} is not" in line for line in lines(project))


def test_a_list_of_claims_stands_on_its_own_page_alone(tmp_path: Path) -> None:
    handbook = whole_handbook(tmp_path / "handbook")
    own = handbook.docs / "en/claims.md"
    assert check_page(own, parse_page(own.read_text("utf-8")), Library(handbook)) == []
    text = "---\ndescription: A page.\n---\n# Title { #title }\n\n```claims\n```\n"
    path = write(handbook.docs / "en/verdicts.md", text)
    (problem,) = check_page(path, parse_page(text), Library(handbook))
    assert str(problem).startswith(
        "docs/en/verdicts.md:6: a list of claims stands on `claims.md`, and on no other page that is written; "
    )


def test_a_handbook_has_no_more_pages_than_can_be_built(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = len(list(project.docs.glob("en/*.md")))
    monkeypatch.setattr(checks, "MOST_PAGES", number)
    assert not [line for line in lines(project) if "pages, and" in line]
    monkeypatch.setattr(checks, "MOST_PAGES", number - 1)
    said = f"docs/en:1: holds {number} pages, and {number - 1} are the most; say it on fewer pages"
    assert said in lines(project)
