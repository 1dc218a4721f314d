"""Claims on pages and in `benchbook check`: judged by each machine's records, and found where they stand."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.checks import check_project
from benchbook.checking.claims import claim_problems
from benchbook.content.machines import machine_capabilities
from benchbook.content.page_source import parse_page
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.references import UnresolvedError
from benchbook.query.judging import claims_of, judge_claim, judging_machines
from benchbook.query.library import Library
from benchbook.rendering.table_spec import read_table
from handbooks import (
    CPU,
    FIXTURE,
    GPU,
    build_site,
    copy_handbook,
    details,
    edit,
    on_machine,
    plain,
    render,
    set_metric,
    start,
)

ROOT = Path(__file__).parents[2]
CLAIMS = "snippets/memory/claims.toml"
IDS = (
    "checkpointing-saves-memory",
    "checkpointing-halves-memory",
    "plain-needs-more-at-four",
    "checkpointing-costs-time",
    "the-difference-is-large",
)


def fence(name: str, text: str = "It is so.") -> str:
    return f'```claim id="{name}"\n{text}\n```\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The small handbook with one page that shows every claim, in two languages."""
    project = copy_handbook(tmp_path)
    for code in ("zh", "ja"):
        (project.docs / code / "_language.yml").unlink()
    page = "---\ndescription: Claims.\n---\n# Claims {{ #title }}\n\n{}"
    for code, words in (("en", "It is so."), ("ar", "هو كذلك.")):
        text = "\n".join(fence(name, words) for name in IDS)
        (project.docs / code / "asserted.md").write_text(page.format(text), "utf-8")
    return Project(tmp_path)


def about_claims(project: Project) -> list[Problem]:
    return [
        problem
        for problem in check_project(Project(project.root)).problems
        if "the claim" in problem.what or problem.path.endswith("claims.toml")
    ]


def outcomes(project: Project) -> dict[str, dict[str, str]]:
    library = Library(project)
    return {
        claim.id: {one.name: judge_claim(library, claim, one).outcome for one in judging_machines(library)}
        for claim in claims_of(library).by_id.values()
    }


# Verdicts


def test_each_machine_s_records_give_their_own_verdict() -> None:
    assert outcomes(Project(FIXTURE)) == {
        "checkpointing-saves-memory": {CPU: "holds", GPU: "holds"},
        "checkpointing-halves-memory": {CPU: "holds", GPU: "refuted"},
        "plain-needs-more-at-four": {CPU: "not measured", GPU: "holds"},
        "checkpointing-costs-time": {CPU: "too close to call", GPU: "too close to call"},
        "the-difference-is-large": {CPU: "refuted", GPU: "refuted"},
    }


def test_a_claim_about_what_a_machine_lacks_does_not_apply_to_it(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    edit(
        project.snippets / "memory/claims.toml",
        'id = "plain-needs-more-at-four"',
        'id = "plain-needs-more-at-four"\nneeds = ["accelerator"]',
    )
    found = outcomes(project)["plain-needs-more-at-four"]
    assert found == {CPU: "not applicable", GPU: "holds"}
    edit(project.snippets / "memory/claims.toml", 'needs = ["accelerator"]', 'needs = ["an accelerator"]')
    fixes = [problem.fix for problem in about_claims(project)]
    assert "make it a list of accelerator, driver context, tensor cores" in fixes


@pytest.mark.parametrize(
    ("described", "has"),
    [
        ({"kind": "cpu", "accelerator": None}, set()),
        ({"kind": "mps", "accelerator": {"compute_capability": None}}, {"accelerator"}),
        (
            {"kind": "rocm", "accelerator": {"compute_capability": "gfx942"}},
            {"accelerator", "driver context"},
        ),
        ({"kind": "cuda", "accelerator": {"compute_capability": "6.1"}}, {"accelerator", "driver context"}),
        (
            {"kind": "cuda", "accelerator": {"compute_capability": "7.0"}},
            {"accelerator", "driver context", "tensor cores"},
        ),
    ],
)
def test_what_a_machine_has_follows_from_its_description(described: dict[str, Any], has: set[str]) -> None:
    assert machine_capabilities(described) == has


# The fence


def test_a_claim_that_holds_is_a_sentence_with_its_numbers_and_provenance() -> None:
    build = start(Project(FIXTURE))
    shown = render(build, fence(IDS[0], "`a` needs less."))
    assert 'id="claim-checkpointing-saves-memory"' in shown
    assert f'data-machine="{CPU}" data-outcome="holds"' in shown
    assert '<div class="bb-sentence"><p><code>a</code> needs less.</p></div>' in shown
    text = plain(shown)
    assert "✓ Holds on the Fixture CPU" in text
    assert "Measured 2 GiB against 4 GiB · 0.500×" in text
    assert "Fixture GPU: holds" in text
    told = details(build, CPU)
    assert told["smallest"] == ["1.50×"]
    assert told["command"] == ["benchbook record memory/methods.py"]


def record_peaks(project: Project, **peaks: int) -> None:
    """Give the methods these peaks at a batch of 2 on the CPU."""
    values = {f"method={method},batch_size=2": peak for method, peak in peaks.items()}
    set_metric(project, CPU, "peak_memory", values)


def test_both_sides_of_a_claim_and_its_details_are_in_one_unit(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    record_peaks(project, checkpointing=897 * 2**20, plain=1836 * 2**20)
    build = start(project)
    text = plain(render(build, fence("checkpointing-saves-memory")))
    assert "Measured 0.876 GiB against 1.79 GiB · 0.489×" in text
    results = [text.replace("\u00a0", " ") for text in details(build, CPU)["result"]]
    assert results == ["0.876 GiB (median of 3)", "1.79 GiB (median of 3)"]


def test_what_was_measured_is_in_the_unit_of_the_bound_that_the_claim_names(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    record_peaks(project, checkpointing=897 * 2**20)
    edit(
        project.snippets / "memory/claims.toml",
        'b = "memory/methods.py?method=plain&batch_size=2#peak_memory"\nratio = 1.5',
        'b = "2 GiB"\nratio = 1.5',
    )
    text = plain(render(start(project), fence("checkpointing-saves-memory")))
    assert "Measured 0.876 GiB; claimed: less than 2 GiB" in text


def test_a_ratio_below_one_is_a_percentage_in_chinese(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    record_peaks(project, checkpointing=897 * 2**20, plain=1836 * 2**20)
    shown = plain(render(start(project, "zh"), fence("checkpointing-saves-memory")))
    assert "实测 0.876 GiB，对比 1.79 GiB · 48.9%" in shown


def test_a_refuted_claim_says_so_in_a_word_and_names_who_said_it() -> None:
    shown = render(start(Project(FIXTURE)), fence("the-difference-is-large"))
    assert 'data-outcome="refuted"' in shown
    assert "✗ Refuted on the Fixture CPU" in plain(shown)
    assert "Measured 7.2 × 10⁻⁸; claimed: more than 0.001" in plain(shown)
    assert '<a href="https://handbook.example/guide"><bdi lang="en">A made-up guide</bdi></a>' in shown


def test_a_number_without_a_unit_is_called_by_its_name(tmp_path: Path) -> None:
    project = copy_handbook(tmp_path)
    edit(
        project.docs / "en/_language.yml",
        "labels:\n",
        'labels:\n  "memory/losses.py#difference": "Part of the loss"\n',
    )
    shown = plain(render(start(project), fence("the-difference-is-large")))
    assert "Part of the loss: Measured 7.2 × 10⁻⁸; claimed: more than 0.001" in shown


def test_a_claim_left_open_says_why() -> None:
    text = plain(render(start(Project(FIXTURE)), fence("checkpointing-costs-time")))
    assert "≈ Too few runs to decide on the Fixture CPU" in text
    assert "3 pairs · fewer than the eight pairs that decide" in text


def test_a_claim_that_the_reference_machine_did_not_measure_shows_another_s_verdict() -> None:
    text = plain(render(start(Project(FIXTURE)), fence("plain-needs-more-at-four")))
    assert "Holds on the Fixture GPU" in text
    assert "Fixture CPU: not measured" in text


def test_what_stands_below_the_sentence_may_hold_values_and_links() -> None:
    why = "It is so.\n\nIt takes `#!value memory/losses.py#difference`, see [there](https://example.org)."
    shown = render(start(Project(FIXTURE)), fence(IDS[0], why))
    assert '<div class="bb-why"><p>It takes ' in shown
    assert 'data-ref="memory/losses.py#difference"' in shown
    assert '<a href="https://example.org">there</a>' in shown


def test_latin_words_in_an_arabic_claim_are_isolated() -> None:
    shown = render(start(Project(FIXTURE), "ar"), fence(IDS[0], "يحتاج GPT-2 ذاكرة أقل."))
    assert '<bdi dir="ltr">GPT-2</bdi>' in shown


def test_another_machine_s_verdict_is_in_the_data_of_the_guide() -> None:
    build = start(Project(FIXTURE))
    render(build, fence("checkpointing-halves-memory"))
    assert [name for name, data in build.here.data.items() if "blocks" in data] == [GPU]
    (tree,) = build.here.data[GPU]["blocks"].values()
    assert tree["attributes"] == {"data-machine": GPU, "data-outcome": "refuted"}
    assert plain(tree["parts"]["verdict"]) == "✗ Refuted on the Fixture GPU#"
    assert plain(tree["parts"]["finding"]) == "Measured 2.5 GiB against 4.5 GiB · 0.556×"
    assert tree["parts"]["others"] == "Fixture CPU: holds"
    (origin,) = build.here.data[GPU]["origins"]
    assert f'<dl data-origin="{origin}">' in tree["parts"]["origin"]


@pytest.mark.parametrize("language", ["ar", "zh", "ja"])
def test_a_claim_speaks_the_language_of_its_page(language: str) -> None:
    shown = render(start(Project(FIXTURE), language), "".join(map(fence, IDS)))
    assert not re.search(r"Holds|Refuted|Measured|Too close|Said by", shown)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (fence("no-such-claim"), "there is no claim `no-such-claim`"),
        ("```claim\nIt is so.\n```\n", "the claim has no id"),
        ('```claim id="x" tone="loud"\nIt is so.\n```\n', "a claim has no option `tone`"),
        (fence(IDS[0], ""), "says nothing"),
    ],
)
def test_a_fence_that_shows_no_claim_is_a_box_and_a_problem(project: Project, text: str, what: str) -> None:
    page = project.docs / "en/memory.md"
    page.write_text(f"---\ndescription: A page.\n---\n# Title {{ #title }}\n\n{text}", "utf-8")
    build = start(project)
    assert "bb-problem" in render(build, page.read_text("utf-8"))
    (problem,) = build.problems
    assert (problem.path, problem.line) == ("docs/en/memory.md", 6)
    assert what in problem.what
    assert problem in check_project(project).problems


# The check


def test_claims_that_hold_and_stand_in_every_language_are_no_problem(project: Project) -> None:
    assert about_claims(project) == []


def test_one_sample_that_turns_a_claim_fails_it_and_names_every_place(project: Project) -> None:
    record = project.record_path(CPU, "memory/methods.py")
    whole = record.read_text("utf-8")
    # 2 GiB of one run in place of 4: the others do not agree with it, and three decide nothing.
    variant = whole.index('"method=plain,batch_size=2"')
    at = whole.index('"peak_memory": 4294967296', variant)
    changed = whole[:at] + whole[at:].replace("4294967296", "2147483648", 1)
    record.write_text(changed, "utf-8")
    first, second = about_claims(project)
    assert (first.path, first.line) == (CLAIMS, 9)
    assert f"`checkpointing-saves-memory` is declared as 'holds' on {CPU}" in first.what
    assert "too close to call (0.5x [0.5, 1]" in first.what
    assert "3 pair(s) of runs are fewer than the 8" in first.what
    assert first.fix.endswith("docs/en/asserted.md:6, docs/ar/asserted.md:6")
    assert "checkpointing-halves-memory" in second.what
    assert second.fix.endswith("docs/en/asserted.md:10, docs/ar/asserted.md:10")
    record.write_text(whole, "utf-8")
    assert about_claims(project) == []


def test_a_verdict_on_a_machine_that_the_claim_does_not_name_is_only_reported(project: Project) -> None:
    report = check_project(project)
    (warning,) = [found for found in report.warnings if "the-difference-is-large" in found.what]
    assert (warning.path, warning.line) == (CLAIMS, 37)
    assert f"does not name {GPU}, where it is refuted" in warning.what


def test_a_claim_that_stands_nowhere_is_a_problem(project: Project) -> None:
    for code in ("en", "ar"):
        path = project.docs / code / "asserted.md"
        path.write_text(
            path.read_text("utf-8").replace(fence(IDS[0]), "").replace(fence(IDS[0], "هو كذلك."), "")
        )
    (problem,) = about_claims(project)
    assert (problem.path, problem.line) == (CLAIMS, 3)
    assert "stands on no English page" in problem.what


@pytest.mark.parametrize("beside", [[], ["more.md"]], ids=["alone", "with one behind it"])
def test_a_claim_that_would_be_listed_with_the_first_page_is_a_problem_for_that_has_no_list(
    project: Project, beside: list[str]
) -> None:
    edit(project.docs / "en/asserted.md", fence(IDS[0]), "")
    for name in ("index.md", *beside):
        (project.docs / "en" / name).write_text(f"# First {{ #first }}\n\n{fence(IDS[0])}", "utf-8")
    assert f"the claim `{IDS[0]}` stands on the first page, which has no list of its claims" in {
        problem.what for problem in about_claims(project)
    }


def test_a_claim_stands_on_the_page_of_its_guide_where_the_others_of_it_do(project: Project) -> None:
    edit(project.docs / "en/asserted.md", fence(IDS[1]), "")
    (project.docs / "en/memory.md").write_text(f"# Memory {{ #memory }}\n\n{fence(IDS[1])}", "utf-8")
    what = (
        f"the claim `{IDS[0]}` stands on docs/en/asserted.md, and not on that of its guide, where others are"
    )
    found = [problem for problem in about_claims(project) if problem.what == what]
    assert [problem.fix for problem in found] == ["declare it in snippets/asserted/claims.toml"]
    edit(project.docs / "en/memory.md", fence(IDS[1]), fence(IDS[1]) + fence(IDS[0]))
    assert what not in {problem.what for problem in about_claims(project)}


def test_a_claim_that_only_a_translation_shows_is_a_problem(project: Project) -> None:
    edit(project.docs / "en/asserted.md", fence(IDS[1]), "")
    assert {problem.what for problem in about_claims(project)} == {
        "the claim `checkpointing-halves-memory` stands on no English page",
        "the claim `checkpointing-halves-memory` does not stand on the English page",
    }


def test_a_claim_that_stands_twice_on_a_page_is_a_problem(project: Project) -> None:
    for code in ("en", "ar"):
        path = project.docs / code / "asserted.md"
        path.write_text(path.read_text("utf-8") + "\n" + fence(IDS[0]), "utf-8")
    found = about_claims(project)
    assert [problem.path for problem in found] == ["docs/ar/asserted.md", "docs/en/asserted.md"]
    assert all("is there twice (first on line 6)" in problem.what for problem in found)


def test_only_folklore_may_hold_a_number_and_no_sentence_a_link(project: Project) -> None:
    path = project.docs / "en/asserted.md"
    edit(path, fence(IDS[0]), fence(IDS[0], "It saves 38 %."))
    edit(path, fence(IDS[1]), fence(IDS[1], "It saves 50 %."))
    edit(path, fence(IDS[2]), fence(IDS[2], "It is [so](https://example.org)."))
    edit(path, fence(IDS[3]), fence(IDS[3], "It is so.\n\nBy 38 %."))
    value = "`#!value memory/methods.py?method=plain&batch_size=2#peak_memory`"
    edit(path, fence(IDS[4]), fence(IDS[4], f"It is {value}.\n\nThat is {value}."))
    found = [problem for problem in check_project(project).problems if problem.path == "docs/en/asserted.md"]
    assert [(problem.line, problem.what) for problem in found] == [
        (7, "the measured number `38 %` is typed into the text"),
        (15, "the sentence of the claim `plain-needs-more-at-four` holds a link"),
        (21, "the measured number `38 %` is typed into the text"),
        (25, f"the sentence of the claim `{IDS[4]}` holds a value, or what looks like one"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("methods.py?method=checkpointing", "method.py?method=checkpointing", 5, "there is no script"),
        ("batch_size=2#peak_memory", "batch_size=2#peak_memoir", 5, "has no metric `peak_memoir`"),
        ("method=plain&batch_size=2", "method=plane&batch_size=2", 7, "no variant with method=plane"),
        ("plain&batch_size=2#peak_memory", "plain&batch_size=2#step_time", 7, "is compared with one in s"),
        ("fixture-cpu", "fixture-gpu", 9, "names the machine fixture-gpu, which measured nothing here"),
        ("b = 0.001", "b = 0.001\nb = 1", 42, "is not valid TOML"),
        ('id = "checkpointing-costs-time"', f'id = "{IDS[0]}"', 30, "is there twice (first at"),
    ],
)
def test_what_a_claim_names_must_be_there(project: Project, old: str, new: str, line: int, what: str) -> None:
    path = project.root / CLAIMS
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    found = [problem for problem in about_claims(project) if what in problem.what]
    assert found, about_claims(project)
    assert (found[0].path, found[0].line) == (CLAIMS, line)


def test_a_number_alone_is_no_amount_of_memory(project: Project) -> None:
    path = project.root / CLAIMS
    other = 'b = "memory/methods.py?method=plain&batch_size=2#peak_memory"\nratio'
    edit(path, other, "b = 4\nratio")
    assert any('write its unit: "4 B"' in problem.fix for problem in about_claims(project))
    edit(path, "b = 4\nratio", 'b = "4 GiB"\nratio')
    assert about_claims(project) == []


def test_a_series_is_no_side_of_a_claim(project: Project) -> None:
    edit(project.root / CLAIMS, "memory/losses.py#difference", "memory/losses.py#loss")
    found = {(problem.line, problem.what) for problem in about_claims(project)}
    assert (39, "`memory/losses.py#loss` is a series of 8") in found


def test_a_claim_of_the_handbook_falls_with_one_sample_and_names_every_page(tmp_path: Path) -> None:
    for folder in ("docs", "snippets"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    handbook = Project(tmp_path)
    record = handbook.record_path("cpu-2core-24gb", "comparing_setups/accumulate_loop.py")
    whole = record.read_text("utf-8")
    fallen = "the claim `zero-grad-first-loses-the-group` is declared as 'holds'"
    assert not any(fallen in problem.what for problem in held(handbook))
    difference = r'"zero_grad_first_difference": [^,}]+'
    record.write_text(re.sub(difference, '"zero_grad_first_difference": 1e-8', whole, count=1), "utf-8")
    (problem,) = [problem for problem in held(handbook) if fallen in problem.what]
    assert problem.path == "snippets/comparing_setups/claims.toml"
    for code in handbook.languages:
        assert re.search(rf"docs/{code}/comparing_setups\.md:\d+", problem.fix)
    record.write_text(whole, "utf-8")
    assert not any(fallen in problem.what for problem in held(handbook))


def held(project: Project) -> list[Problem]:
    pages = {path: parse_page(path.read_text("utf-8")) for path in project.page_paths()}
    problems, _ = claim_problems(Library(project), pages)
    return problems


# Building

LISTED = "```claims\nasserted.md\n```\n"


def test_links_lead_to_claims_and_from_them(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    edit(
        project.docs / "en/asserted.md",
        fence(IDS[0]),
        fence(IDS[0], "So.\n\nSee [below](#claim-{0}), [x](asserted.md#title).").format(IDS[1]),
    )
    (project.docs / "en/claims.md").write_text("# Claims { #claims }\n\n```claims\n```\n", "utf-8")
    (project.root / "mkdocs.yml").write_text(
        (project.root / "mkdocs.yml").read_text().replace("      - {locale: ja, name: Japanese}\n", "")
    )
    assert not any(
        "no such anchor" in problem.what or "no section" in problem.what
        for problem in check_project(project).problems
    )
    site = build_site(project)
    assert "claim-" not in caplog.text
    asserted = (site / "asserted/index.html").read_text("utf-8")
    assert '<a href="#claim-checkpointing-halves-memory">below</a>' in asserted
    listed = (site / "claims/index.html").read_text("utf-8")
    assert '<h2 class="bb-guide"><a href="asserted/">Claims</a></h2>' in listed
    assert listed.count('class="bb-claim"') == 2
    every = (site / "claims/asserted/index.html").read_text("utf-8")
    assert every.count('class="bb-claim"') == len(IDS)
    assert '<a href="../../asserted/#claim-checkpointing-costs-time">Where it stands</a>' in every
    assert '<a href="../">Claims of all guides</a>' in every
    arabic = (site / "ar/claims/index.html").read_text("utf-8")
    # A page without a translation shows English, and so do the claims on it.
    assert "It is so." in arabic


def test_a_list_of_claims_names_a_page_that_says_one() -> None:
    build = start(Project(FIXTURE))
    render(build, "```claims\nasserting.md\n```\n")
    (problem,) = build.problems
    assert problem.what == "no claim stands on `asserting.md`"
    assert "asserted.md" in problem.fix


def test_a_verdict_that_one_machine_alone_has_is_there_but_not_shown_for_the_others() -> None:
    shown = render(start(Project(FIXTURE)), "```claims\n```\n")
    found = re.findall(r'<div class="bb-claim" id="claim-([^"]*)"[^>]*?( hidden)? data-machine', shown)
    assert found == [("the-difference-is-large", ""), ("checkpointing-halves-memory", " hidden")]


def test_the_counts_of_another_machine_are_in_the_data_of_the_page() -> None:
    build = start(Project(FIXTURE))
    shown = render(build, LISTED)
    assert "✗ refuted: 1" in plain(shown)
    assert "✗ refuted: 2" in plain(on_machine(build, GPU, "counts"))


def test_a_claim_is_listed_in_english_where_its_page_is_not_translated(project: Project) -> None:
    (project.docs / "ar/asserted.md").unlink()
    shown = render(start(project, "ar"), LISTED)
    assert shown.count('<div lang="en" dir="ltr" data-pagefind-ignore><p>It is so.</p></div>') == len(IDS)


def test_claims_are_listed_below_the_page_of_their_guide(project: Project) -> None:
    page = (project.docs / "en/asserted.md").read_text("utf-8")
    (project.docs / "en/memory.md").write_text(page.replace("# Claims", "# Memory"), "utf-8")
    shown = render(start(project), "```claims\n```\n")
    assert re.findall(r'<h2 class="bb-guide"><a href="([^"]*)">([^<]*)</a>', shown) == [
        ("/claims/memory.md", "Memory")
    ]


def test_a_machine_that_has_measured_none_of_the_claims_of_a_guide_is_not_offered_on_their_list(
    project: Project,
) -> None:
    build = start(project)
    render(build, LISTED)
    assert {CPU, GPU} <= set(build.here.machines)
    shutil.rmtree(project.records / GPU / "memory")
    build = start(project)
    render(build, LISTED)
    assert GPU not in build.here.machines


def test_the_list_of_claims_uses_the_sentences_of_its_language(project: Project) -> None:
    shown = render(start(project, "ar"), LISTED)
    assert shown.count("هو كذلك.") == len(IDS)
    assert [found for found in re.findall(r'<option value="([^"]*)"', shown) if found] == [
        "holds",
        "refuted",
        "too close to call",
        "too few runs",
        "not applicable",
        "not measured",
    ]


# Marks of rows


MARKED = """```table
script: memory/methods.py
rows: [method, batch_size]
columns: [peak_memory, step_time]
marks:
  checkpointing-saves-memory: Checkpointing takes less memory.
```
"""


def test_a_claim_about_a_number_of_a_table_may_be_a_mark_on_its_row() -> None:
    shown = render(start(Project(FIXTURE)), MARKED)
    rows = re.findall(r"<tr data-row.*?</tr>", shown, re.S)
    (marked,) = [row for row in rows if "bb-mark" in row]
    assert "method checkpointing" in plain(marked)
    assert "batch_size 2" in plain(marked)
    assert 'id="claim-checkpointing-saves-memory"' in marked
    assert 'data-outcome="holds"' in marked
    assert "Checkpointing takes less memory." in marked


def test_a_mark_has_the_verdict_of_the_machine_that_the_table_shows() -> None:
    build = start(Project(FIXTURE))
    render(build, MARKED.replace("checkpointing-saves-memory", "checkpointing-halves-memory"))
    assert 'data-outcome="refuted"' in on_machine(build, GPU)
    assert "Refuted on the Fixture GPU" in on_machine(build, GPU)


def test_a_mark_counts_as_a_place_of_its_claim_and_links_reach_it(project: Project) -> None:
    page = project.docs / "en/asserted.md"
    (project.docs / "ar/asserted.md").unlink()
    page.write_text(
        page.read_text("utf-8").replace(fence("checkpointing-saves-memory"), MARKED)
        + "\n[so](#claim-checkpointing-saves-memory)\n",
        "utf-8",
    )
    found = [problem.what for problem in check_project(Project(project.root)).problems]
    assert not [what for what in found if "checkpointing-saves-memory" in what]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("checkpointing-saves-memory:", "checkpointing-saves:", "there is no claim `checkpointing-saves`"),
        ("columns: [peak_memory, step_time]", "columns: [step_time]", "which this table does not show"),
        (": Checkpointing takes less memory.", ":", "says nothing"),
    ],
)
def test_a_mark_without_its_number_is_refused(old: str, new: str, what: str) -> None:
    text = MARKED.removeprefix("```table\n").removesuffix("```\n").replace(old, new)
    with pytest.raises(UnresolvedError, match=what):
        read_table(text, Library(Project(FIXTURE)))


def test_a_list_of_claims_knows_every_way_to_begin_a_fence(project: Project) -> None:
    edit(project.docs / "en/asserted.md", fence(IDS[0]), fence(IDS[0], "So it is.").replace("```", "~~~"))
    for name in IDS[1:]:
        edit(project.docs / "en/asserted.md", fence(name), "")
    assert "So it is." in render(start(project), "```claims\nasserted.md\n```\n")


def test_a_list_of_claims_shows_a_mark_as_its_table_does(project: Project) -> None:
    page = project.docs / "en/asserted.md"
    odd = "Checkpointing takes *less* `memory`, <b>so</b> [[[[ $x$."
    marked = MARKED.replace("Checkpointing takes less memory.", json.dumps(odd))
    edit(page, fence("checkpointing-saves-memory"), marked)
    shown = render(start(project), "```claims\nasserted.md\n```\n")
    (told,) = re.findall(r"<p>(Checkpointing takes.*?)</p>", shown)
    code = '<code lang="en" dir="ltr">memory</code>'
    assert told == f"Checkpointing takes *less* {code}, &lt;b&gt;so&lt;/b&gt; [[[[ $x$."
    edit(page, "`memory`", "`#!value memory/methods.py#none`")
    found = [problem.what for problem in check_project(Project(project.root)).problems]
    assert (
        "the sentence of the claim `checkpointing-saves-memory` holds a value, or what looks like one"
        in found
    )


def test_who_said_so_is_quoted_with_the_date(project: Project) -> None:
    claim = next(one for one in claims_of(Library(project)).by_id.values() if one.source)
    shown = render(start(project), fence(claim.id))
    assert '<q lang="en" dir="ltr">Checkpointing costs a third of the time.</q> (May 2024)' in shown
    path = project.snippets / "memory/claims.toml"
    quoted = ', quote = "Checkpointing costs a third of the time.", date = "2024-05"'
    path.write_text(path.read_text("utf-8").replace(quoted, ""), "utf-8")
    warnings = [str(warning) for warning in check_project(Project(project.root)).warnings]
    assert any(f"the claim `{claim.id}` names a source and not its words" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ('quote = "x"', "`quote` and `date` of a source go together"),
        (f'quote = "{"x" * 201}", date = "2024"', "the quotation is"),
        ('quote = "x", date = "May 2024"', "the date of the source is 'May 2024'"),
        ('quote = "x", date = "2026-02-31"', "the date of the source is '2026-02-31'"),
    ],
)
def test_a_quotation_that_is_not_one_is_named(project: Project, words: str, what: str) -> None:
    path = project.snippets / "memory/claims.toml"
    quoted = 'quote = "Checkpointing costs a third of the time.", date = "2024-05"'
    path.write_text(path.read_text("utf-8").replace(quoted, words), "utf-8")
    assert any(what in problem.what for problem in about_claims(project))


def test_the_address_of_a_source_can_be_taken_apart(project: Project) -> None:
    path = project.snippets / "memory/claims.toml"
    path.write_text(re.sub(r'url = "https://[^"]*"', 'url = "https://["', path.read_text("utf-8")), "utf-8")
    assert any("the source has no address" in problem.what for problem in about_claims(project))
