"""Whatever stands in a reference, a head, a bundle or a page, it is answered in words; nothing of it is run."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mkdocs.utils.meta import get_data

from benchbook.checking.bundles import import_bundles
from benchbook.checking.checks import check_project
from benchbook.content.metadata import read_metadata
from benchbook.content.page_limits import endless, unreadable_pages
from benchbook.content.page_source import parse_page
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import LARGEST_BUNDLE, dump_record, write_record
from benchbook.content.references import UnresolvedError, parse_reference, parse_value, target_of
from benchbook.content.script import parse_script
from benchbook.languages.language import load_languages
from benchbook.query.library import Library
from benchbook.rendering.claim_list import claim_pages
from builders import MACHINE, MACHINE_JSON, PAGE, SCRIPT, make_project, make_record, packed, with_table, write
from handbooks import copy_handbook, whole_handbook

ROOT = Path(__file__).resolve().parents[2]
PIECES = st.sampled_from(
    [
        *"?#&=./[]- ",
        "..",
        "sums/add.py",
        "#total",
        "/etc/passwd",
        "1 - ",
        " / ",
        "percent",
        "__class__",
        "\0",
        "%2e",
    ]
)
REFERENCES = st.text(max_size=60) | st.lists(PIECES | st.text(max_size=4), max_size=8).map("".join)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("project"))


# Settings


@pytest.mark.parametrize(
    "setting",
    [
        *("reference_machine = 3", 'reference_machine = ["a"]'),
        *("blocking_machines = 3", 'blocking_machines = "cpu-test"', "blocking_machines = [[1]]"),
        *("guides = 3", "guides = { sums = 3 }", "guides = { sums = { reference_machine = 3 } }"),
        *("repository = 3", "pattern = 3", "pattern = { sums = 3 }", 'translation_drift = ["x"]'),
    ],
)
def test_a_setting_is_what_it_must_be_or_named_with_its_line(tmp_path: Path, setting: str) -> None:
    write(tmp_path / "pyproject.toml", f"[tool.other]\na = 1\n[tool.benchbook]\n{setting}\n")
    with pytest.raises(BenchbookError) as caught:
        _ = Project(tmp_path).config
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == ("pyproject.toml", 4)
    assert problem.what.startswith(f"`{setting.partition(' ')[0]}` of [tool.benchbook] is ")


@pytest.mark.parametrize(
    "content", [b"tool = 3", b"[tool]\nbenchbook = 3", b"# \xff", b"[tool", b"a." * 4000 + b"a = 1"]
)
def test_settings_that_are_no_table_are_one_problem(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    with pytest.raises(BenchbookError, match=r"^pyproject\.toml:1: "):
        _ = Project(tmp_path).config


def test_a_configuration_of_the_site_that_is_no_text_is_one_problem(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (tmp_path / "mkdocs.yml").write_bytes(b"site_name: Test \xff")
    (problem,) = check_project(project).problems
    assert str(problem).startswith("mkdocs.yml:1: is not UTF-8 (invalid start byte); save it as UTF-8")


# References


@settings(deadline=None)
@given(REFERENCES)
def test_a_reference_is_parsed_or_answered(text: str) -> None:
    for parse in (parse_reference, parse_value):
        try:
            answer = str(parse(text))
        except UnresolvedError as error:
            answer = error.fix
        assert answer


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(REFERENCES)
def test_a_reference_stands_for_what_the_project_holds_or_is_answered(project: Project, text: str) -> None:
    library = Library(project)
    try:
        reference = parse_reference(text)
        target = target_of(reference, library.script(reference.script))
    except UnresolvedError:
        return
    assert target.script.reference == "sums/add.py"


@pytest.mark.parametrize(
    "reference",
    [
        "../../etc/passwd.py#x",
        "sums/../../x.py#total",
        "/sums/add.py#total",
        "records/add.py#total",
        "sums/add.py/#x",
        # Longer than the name of a file can be.
        f"{'a' * 300}/{'b' * 300}.py#total",
    ],
)
def test_a_reference_that_leaves_its_folder_is_a_problem_of_the_page(tmp_path: Path, reference: str) -> None:
    project = make_project(tmp_path, page=PAGE.replace("sums/add.py#total", reference))
    (problem,) = check_project(project).problems
    assert (problem.path, problem.line) == ("docs/en/sums.md", 7)


def test_an_input_whose_name_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    name = "a" * 300
    project = make_project(tmp_path, script=with_table(f'[tool.benchbook]\ninputs = ["{name}"]'))
    write_record(
        project.record_path(MACHINE, "sums/add.py"), make_record(SCRIPT, inputs={name: "sha256:" + "0" * 64})
    )
    said = [problem.what for problem in check_project(project).problems]
    assert f"its input `{name}` is not there" in said


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.text(max_size=80), info=REFERENCES)
def test_a_page_of_anything_is_checked_in_words(project: Project, body: str, info: str) -> None:
    text = body.encode("utf-8", "replace").decode() + f"\n\n`#!value {info}`\n\n```cell\n{info}\n```\n"
    path = write(project.docs / "en/any.md", text.encode("utf-8", "replace").decode())
    try:
        assert all(isinstance(problem, Problem) for problem in check_project(Project(project.root)).problems)
    finally:
        path.unlink()


# Heads of scripts

TOML = st.recursive(
    st.sampled_from(
        ["1", "-1", "1e400", "nan", "true", '""', '"../x"', '"/etc/passwd"', "[]", "{}", "1979-05-27"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(st.sampled_from(["a", "unit", "ranks", "steps"]), inner, max_size=2).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
        )
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        "needs",
        "ranks",
        "timeout",
        "repeats",
        "environment",
        "meters",
        "inputs",
        "metrics",
        "on",
        "smallest",
        "matrix",
    ]
)


@settings(deadline=None)
@given(st.dictionaries(KEYS, TOML, max_size=4))
def test_a_head_of_anything_is_read_or_answered(table: dict[str, str]) -> None:
    lines = "".join(f"# {key} = {value}\n" for key, value in table.items())
    head = (
        f"# /// script\n# requires-python = '>=3.11'\n# dependencies = []\n# [tool.benchbook]\n{lines}# ///\n"
    )
    source = f'"""Any."""\n{head}\n# %% parameters\nsteps = 1\n\n# %% checks\nassert steps\n'
    metadata, problems = read_metadata(source, "snippets/g/s.py")
    assert (metadata is None) == bool(problems)
    try:
        script = parse_script(source, "snippets/g/s.py", "g/s.py")
    except BenchbookError:
        return
    assert script.variants(("cpu",)) is not None
    assert not any(name.startswith(("/", "~")) or ".." in name.split("/") for name in script.metadata.inputs)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_a_head_that_is_no_toml_is_answered(text: str) -> None:
    commented = "".join(f"# {line}\n" for line in text.splitlines())
    source = f"# /// script\n{commented}# ///\n"
    metadata, problems = read_metadata(source, "snippets/g/s.py")
    assert metadata is None or not problems


# Pages

CLAIM_FILE = """
[[claim]]
id = "adding-is-large"
a = "sums/add.py#total"
relation = "greater"
b = "1 count"
machines = { cpu-test = "too close to call" }
"""


def claimed(folder: Path, words: str) -> list[str]:
    page = f'{PAGE}\n```claim id="adding-is-large"\n{words}\n```\n'
    project = make_project(folder, page=page)
    write(project.snippets / "sums/claims.toml", CLAIM_FILE)
    return [str(problem) for problem in check_project(project).problems]


def test_a_claim_is_words_code_values_and_links(tmp_path: Path) -> None:
    why = "It *is*, **as** `code` and `#!value sums/add.py#total` and [a page](sums.md)\nsay."
    assert claimed(tmp_path, f"Adding is large.\n\n{why}") == []


@pytest.mark.parametrize(
    ("words", "line", "held"),
    [
        ("It is.\n\n<s>\n\nWhy.", 16, "<s>"),
        ("It is.\n\n<small>\n\nWhy.", 16, "<small>"),
        ("It is.\n\nWhy\n<sup>not</sup>.", 17, "<sup>"),
        ("It is.\n\n<!-- x -->\n\nWhy.", 16, "<!-- x -->"),
        ("It is, <!-- x --> it is.", 14, "<!-- x -->"),
        ("~~It is.~~", 14, "~~"),
        ("# It is", 14, "#"),
        ("It is.\n\n![Why](assets/a.png)", 16, "Why"),
        ("It is.\n\n- Why.", 16, "-"),
        ("It is.\n\n!!! warning\n    Why.", 16, "Warning"),
        ("It is.\n\n    Why.", 16, "Why."),
    ],
)
def test_markup_in_a_claim_is_named_with_its_line(tmp_path: Path, words: str, line: int, held: str) -> None:
    what = f"docs/en/sums.md:{line}: the claim `adding-is-large` holds `{held}`"
    assert any(one.startswith(what) for one in claimed(tmp_path, words))


@pytest.mark.parametrize(
    ("more", "has"),
    [
        ("\n".join(["And so it goes on."] * 60), "1157 characters, and 1000 are the most"),
        ("Or [so]. " * 11, "11 `[`, and 10 are the most"),
    ],
)
def test_a_claim_is_short_for_each_list_repeats_it(tmp_path: Path, more: str, has: str) -> None:
    (problem,) = claimed(tmp_path, f"Adding is large.\n{more.strip()}")
    assert problem.startswith(f"docs/en/sums.md:13: the claim `adding-is-large` has {has}; ")


@pytest.mark.parametrize("sentence", [".", "&nbsp;", "`code`", "\\\\", "42"])
def test_the_sentence_of_a_claim_says_something(tmp_path: Path, sentence: str) -> None:
    what = "docs/en/sums.md:14: the claim `adding-is-large` has a sentence without words"
    assert any(one.startswith(what) for one in claimed(tmp_path, f"{sentence}\n\nAdding is large."))


def test_syntax_of_other_tools_in_a_claim_is_named(tmp_path: Path) -> None:
    (problem,) = claimed(tmp_path, "Adding is {{ large }}.")
    assert problem.startswith("docs/en/sums.md:14: `{{ large }}` is syntax of another documentation tool")


@pytest.mark.parametrize("attributes", ["#adding #other", "#adding id=other", "id=other #adding"])
def test_a_heading_has_one_id(tmp_path: Path, attributes: str) -> None:
    project = make_project(tmp_path, page=PAGE.replace("{ #adding }", f"{{ {attributes} }}"))
    said = [str(problem) for problem in check_project(project).problems]
    assert any(one.startswith("docs/en/sums.md:5: ") and "has no id" in one for one in said)


@pytest.mark.parametrize("attributes", ["#adding", "#adding .measured"])
def test_a_heading_may_have_an_id_and_classes(tmp_path: Path, attributes: str) -> None:
    project = make_project(tmp_path, page=PAGE.replace("{ #adding }", f"{{ {attributes} }}"))
    assert check_project(project).problems == ()


def test_no_interface_text_adds_to_a_page_that_is_made_of_it(tmp_path: Path) -> None:
    project = whole_handbook(tmp_path / "handbook")
    path = project.docs / "en/_language.yml"
    text = path.read_text("utf-8")
    for key in ("claims_of", "claims_of_description"):
        hostile = json.dumps(f"{{title}} \\x \n---\ntitle: {key}\n\n# Hidden")
        text = re.sub(rf"^  {key}: .*$", lambda _: f"  {key}: {hostile}", text, count=1, flags=re.MULTILINE)  # noqa: B023
    write(path, text)
    made = claim_pages(Library(project), load_languages(project))["en/claims/asserted.md"]
    body, front_matter = get_data(made)
    assert list(front_matter) == ["description"]
    assert front_matter["description"].endswith(" \\x \n---\ntitle: claims_of_description\n\n# Hidden")
    assert [token.type for token in parse_page(body).tokens] == [
        *("heading_open", "inline", "heading_close", "fence")
    ]


LONG = 40_000


def nested(block: str, count: int) -> str:
    return "\n".join("    " * place + block for place in range(count))


@pytest.mark.parametrize(
    ("added", "line", "what"),
    [
        ("word " + "[" * 3000, 15, "the paragraph has more than 100 `[` that nothing closes"),
        ("[word\n" * 101, 115, "the paragraph has more than 100 `[` that nothing closes"),
        ("[x](" * 200, 15, "the paragraph has more than 100 `(` that nothing closes"),
        (("word " + "<b " * 90 + "\n\n") * 400, 21, "the text has more than 300 `<` that nothing closes"),
        (("<b\n\n") * 400, 615, "the text has more than 300 `<` that nothing closes"),
        (("(`)`" * 500 + "\n") * 3, 17, "the paragraph has more than 1000 `(`"),
        ("![a`]`" * 600, 15, "the text has too many `[` in long paragraphs"),
        (("![a" * 100 + "\\]" * 100 + "\n\n") * 50, 71, "the text has too many `[` in long paragraphs"),
        ("[a\n\u00a0\n" * 101, 215, "the paragraph has more than 100 `[` that nothing closes"),
        ("<!--\\>\n\n" * 1001, 2015, "the text has more than 1000 `<`"),
        ("*a" * 501 + "\n" + "_a" * 500, 16, "the paragraph has more than 1000 `*` and `_`"),
        (("*a* " * 490 + "\n\n") * 30, 55, "the text has more than 20000 `*` and `_`"),
        ("<a " * 1000, 15, "the paragraph has more than 100 `<` that nothing closes"),
        (("&#1; " * 500 + "\n") * 3, 17, "the paragraph has more than 1000 `&`"),
        ("{{ " * 100, 15, "the paragraph has more than 100 `{` that nothing closes"),
        ("{{} }" * 501, 15, "the paragraph has more than 1000 `{`"),
        ("a" * LONG, 15, "the line has 40000 characters, and 4000 are the most"),
        ("\n".join(["a b c " * 500] * 20), 17, "the paragraph has more than 8000 characters"),
        ("- " * 1500 + "a", 15, "the line begins 3000 characters deep in blocks, and 60 are the most"),
        ("1. " * 21 + "a", 15, "the line begins 63 characters deep in blocks"),
        ("a\n\n" + "> " * 31 + "a", 17, "the line begins 62 characters deep in blocks"),
        (nested("!!! tip", 200), 31, "the line begins 64 characters deep in blocks"),
        (nested('=== "a"', 17), 31, "the line begins 64 characters deep in blocks"),
        ('<div class="a"\n MARKDOWN>\n\n' * 101, 315, "the text has more than 100 tags that hold Markdown"),
        ("# a\n" * 300, 312, "the text has more than 300 headings"),
        ("> a\n> =\n\n" * 300, 907, "the text has more than 300 headings"),
        ("<h2>a</h2>\n\n" * 300, 609, "the text has more than 300 headings"),
        ("# a\n" * 40_000, 4001, "the text has 40015 lines, and 4000 are the most"),
        ("```\n" * 1000, 813, "the text has more than 400 fences"),
        ("- ~~~ trace\n  script: sums/add.py\n  ~~~\n\n" * 401, 1611, "the text has more than 400 fences"),
        ("`a` `b`\n\n" * 1300, 2513, "the text has more than 5000 marks of code"),
        ("`" * 1900 + " a " + "`" * 1900, 15, "a mark of code has at most 20 characters"),
        ("~" * 21, 15, "a mark of code has at most 20 characters"),
        ("| a " * 900 + "|", 15, "the line has 901 `|`, and 30 are the most"),
        ("```autoit\nx  x\n```", 15, "code begins with `autoit`, and is none of bash, diff, json,"),
        ("> 1. ~~~  Make\n>    a\n>    ~~~", 15, "code begins with `Make`, and is none of"),
        ("``` {.make}\na\n```", 15, "code begins with `{`, and is none of"),
        ("```bash\nprintf $'" + "\\1" * 26 + "\n```", 16, "`$'` is on no page"),
        ("```bash\ncat <<\u4e00aaaa\n```", 16, "`<<` is on no page"),
        ("Some <![if x]> words.", 15, "`<![` is on no page"),
        ("As `#!autoit x   x` is.", 15, "code in a line has a language"),
        ("As ``:::make\nx`` is.", 15, "code in a line has a language"),
        ("a b\n\n" * LONG * 3, 1, "bytes, and a page has at most 250000"),
    ],
)
def test_a_text_that_parsers_take_minutes_over_is_one_problem_and_is_not_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added: str, line: int, what: str
) -> None:
    project = make_project(tmp_path, page=f"{PAGE}\nMore.\n\n{added}\n")
    monkeypatch.setattr("benchbook.checking.checks.parse_page", None)
    (problem,) = check_project(project).problems
    assert (problem.path, problem.line, what in problem.what) == ("docs/en/sums.md", line, True)
    assert problem.fix


@pytest.mark.parametrize("sign", list("\x00\x02\x0b\f\x1c\x1d\x1e\x1f\x7f\x85\x9f\u2028\u2029"))
@pytest.mark.parametrize(
    "around", ["More {}words.", "    $ make{}done", "- a\n\n    ```text\n    a{}```\n    ```"]
)
def test_a_sign_that_only_some_parsers_break_a_line_at_is_a_problem_to_check_and_build(
    tmp_path: Path, sign: str, around: str
) -> None:
    added = around.format(sign)
    project = make_project(tmp_path, page=f"{PAGE}\nMore.\n\n{added}\n")
    (problem,) = check_project(project).problems
    line = 15 + added[: added.index(sign)].count("\n")
    assert (problem.path, problem.line, problem.fix) == ("docs/en/sums.md", line, "remove it")
    assert problem.what.startswith(f"the line holds U+{ord(sign):04X}, which parsers read differently")
    assert list(unreadable_pages(project)) == [problem]


def test_a_page_of_everything_that_pages_are_made_of_is_far_from_these_ends(tmp_path: Path) -> None:
    blocks = [
        nested("- a", 8),
        "> > - a",
        nested("!!! tip", 4),
        "`a` " * 100,
        "- - 1. a",
        "***",
        "| `a` |\n|---|",
    ]
    fences = "```text\n# a\n```\n\n" * 200
    page = PAGE + fences + "\n\n".join(blocks * 10)
    assert endless(page) is None
    project = make_project(tmp_path)
    write(project.docs / "en/sums.md", page)
    assert list(unreadable_pages(project)) == []


@pytest.mark.parametrize("parser", ["checking.checks.parse_page", "translations.leftovers.site_reading"])
def test_a_page_that_a_parser_gives_up_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parser: str
) -> None:
    def gives_up(*_: object) -> None:
        raise RecursionError

    project = make_project(tmp_path)
    monkeypatch.setattr(f"benchbook.{parser}", gives_up)
    (problem,) = check_project(project).problems
    assert str(problem).startswith("docs/en/sums.md:1: nests deeper than parsers follow; nest lists, ")


def test_a_page_that_is_no_text_is_a_problem(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    (project.docs / "en/sums.md").write_bytes(b"# Adding \xff")
    (problem,) = check_project(project).problems
    assert problem.what.startswith("is not UTF-8")


@pytest.mark.parametrize("value", ["[" * 5000, "\\x5b" * 5000, "word " * 10_000])
def test_a_text_of_a_language_that_parsers_take_minutes_over_is_one_problem(
    tmp_path: Path, value: str
) -> None:
    project = make_project(tmp_path)
    write(project.docs / "en/_language.yml", f'labels: {{}}\nstrings:\n  output: "{value}"\n')
    (problem,) = check_project(Project(project.root)).problems
    assert (problem.path, problem.line) == ("docs/en/_language.yml", 3)
    assert problem.what.startswith("`strings.output`: the ")


# Bundles


def bundle_text() -> str:
    return packed({"schema": 1, "machine": MACHINE_JSON, "records": [json.loads(dump_record(make_record()))]})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_bundle_cut_anywhere_is_refused_and_nothing_is_written(data: st.DataObject) -> None:
    text = bundle_text()
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    refuse(cut.encode() if data.draw(st.booleans()) else gzip.compress(text.encode())[: len(cut) // 4])


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200))
def test_a_bundle_of_any_bytes_is_refused(content: bytes) -> None:
    refuse(content)
    refuse(gzip.compress(content))


def refuse(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        project = make_project(Path(folder) / "checkout")
        before = sorted(project.root.rglob("*"))
        path = Path(folder) / "bundle.json"
        path.write_bytes(content)
        with pytest.raises(BenchbookError):
            import_bundles(project, [path], reviewed=True)
        assert sorted(project.root.rglob("*")) == before


def test_a_bundle_that_is_too_large_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    project = make_project(tmp_path / "checkout")
    path = tmp_path / "bundle.json.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(LARGEST_BUNDLE // 2**20 + 1):
            file.write(b" " * 2**20)
    with pytest.raises(BenchbookError, match="is larger than 64 MiB"):
        import_bundles(project, [path], reviewed=True)


def test_a_record_of_very_many_variants_is_refused_in_few_words(tmp_path: Path) -> None:
    project = make_project(tmp_path / "checkout")
    record = json.loads(dump_record(make_record()))
    record["variants"] |= {
        f"steps={number}": record["variants"]["default"] | {"ranks": 0} for number in range(3000)
    }
    text = packed({"schema": 1, "machine": MACHINE_JSON, "records": [record]})
    with pytest.raises(BenchbookError) as caught:
        import_bundles(project, [write(tmp_path / "bundle.json", text)], reviewed=True)
    assert 0 < len(caught.value.problems) <= 30


def test_a_link_in_place_of_a_record_is_not_followed_out_of_the_checkout(tmp_path: Path) -> None:
    project = make_project(tmp_path / "checkout")
    outside = write(tmp_path / "outside.json", "untouched")
    place = project.record_path("cpu-test", "sums/add.py")
    place.unlink()
    place.symlink_to(outside)
    path = write(tmp_path / "bundle.json", bundle_text())
    with pytest.raises(BenchbookError):
        import_bundles(project, [path], reviewed=True)
    place.unlink()
    place.symlink_to(tmp_path / "nowhere.json")
    with pytest.raises(BenchbookError, match="is a link to another place"):
        import_bundles(project, [path], reviewed=True)
    assert outside.read_text("utf-8") == "untouched"
    assert not (tmp_path / "nowhere.json").exists()


# Nothing is executed

CANARY = """
import pathlib
pathlib.Path({path!r}).touch()
"""
# Fails as soon as code of a script or a page of the folder named first runs, or a process that is not git or the indexer starts.
WATCH = """
import os, sys
folder, harmless = sys.argv[1], ("git", "pagefind", "pagefind_extended", "pagefind_bin")
def watch(event, arguments):
    name = str(getattr(arguments[0], "co_filename", "")) if event == "exec" else ""
    if name.startswith((folder + "/snippets", folder + "/docs", "<code block")):
        os.write(2, f"ran {arguments[0].co_filename}".encode()); os._exit(9)
    if event in {"os.system", "os.posix_spawn", "os.exec"}:
        os.write(2, f"{event} {arguments}".encode()); os._exit(9)
    if event == "subprocess.Popen":
        started = os.path.basename(os.fsdecode(arguments[0]))
        words = [os.fsdecode(word) for word in arguments[1]]
        if started not in harmless and not any(word.startswith("pagefind") for word in words):
            os.write(2, f"started {words}".encode()); os._exit(9)
sys.addaudithook(watch)
from pathlib import Path
"""
IMPORTING = """
from benchbook.checking.bundles import import_bundles
from benchbook.content.project import Project
import_bundles(Project(Path(folder)), [Path(sys.argv[2])], reviewed=True)
"""
BUILDING = """
sys.path.insert(0, sys.argv[2])
from handbooks import build_site
from benchbook.content.project import Project
build_site(Project(Path(folder)))
"""


def watched(code: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WATCH + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=arguments[0].parent)


def with_canary(source: str, canary: Path) -> str:
    return source.replace("# %% checks", f"# %% canary{CANARY.format(path=str(canary))}\n# %% checks")


def test_import_executes_nothing(tmp_path: Path) -> None:
    script = with_canary(SCRIPT, tmp_path / "canary")
    project = make_project(tmp_path / "checkout", script)
    record: dict[str, Any] = json.loads(dump_record(make_record(script)))
    text = packed({"schema": 1, "machine": MACHINE_JSON, "records": [record]})
    done = watched(IMPORTING, project.root, write(tmp_path / "bundle.json", text))
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "canary").exists()


def test_a_replay_build_executes_nothing(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path / "handbook")
    path = project.snippets / "memory/losses.py"
    write(path, with_canary(path.read_text("utf-8"), tmp_path / "canary"))
    page = "---\ndescription: x\n---\n# Title { #title }\n\n```cell\nmemory/losses.py#canary\n```\n"
    write(
        project.docs / "en/memory.md",
        f'{page}\n```python exec="on"\nopen({str(tmp_path / "canary")!r}, "w")\n```\n',
    )
    done = watched(BUILDING, project.root, ROOT / "tests")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "canary").exists()
    assert (project.root / "site/memory/index.html").is_file()


def test_the_watch_sees_what_is_executed(tmp_path: Path) -> None:
    path = write(tmp_path / "checkout/snippets/evil.py", "x = 1")
    run = f"exec(compile(open({str(path)!r}).read(), {str(path)!r}, 'exec'))"
    assert watched(run, tmp_path / "checkout").returncode == 9
    assert watched("import subprocess; subprocess.run(['true'])", tmp_path).returncode == 9
    assert watched("os.system('true')", tmp_path).returncode == 9


# Records and machines that somebody wrote by hand


@pytest.mark.parametrize("key", ["inputs", "packages", "parameters", "runs", "code", "meters", "regions"])
@pytest.mark.parametrize("value", ["$", ["$"], 3, {"$": None}])
def test_a_record_with_a_value_of_another_kind_is_named_and_not_read_on(
    tmp_path: Path, key: str, value: object
) -> None:
    project = make_project(tmp_path)
    path = next(project.records.glob("*/sums/*.json"))
    table = json.loads(path.read_text("utf-8"))
    table["variants"][next(iter(table["variants"]))][key] = value
    write(path, json.dumps(table))
    assert project.relative(path) in {problem.path for problem in check_project(project).problems}


@pytest.mark.parametrize("key", ["kind", "title", "short", "cpu", "accelerator", "published"])
@pytest.mark.parametrize("value", [["cpu"], {}, 3])
def test_a_machine_with_a_value_of_another_kind_is_named_and_not_read_on(
    tmp_path: Path, key: str, value: object
) -> None:
    project = make_project(tmp_path)
    path = next(project.records.glob("*/machine.json"))
    write(path, json.dumps(json.loads(path.read_text("utf-8")) | {key: value}))
    assert project.relative(path) in {problem.path for problem in check_project(project).problems}
