"""What pages show of predictions: marked, for want of a measurement or beside it, and never mixed with one."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.checks import check_project
from benchbook.content.predictions import load_predictions, write_predictions
from benchbook.content.project import Project
from benchbook.languages.language import load_language
from benchbook.query.judging import judging_machines
from benchbook.rendering.choice import insert_choice, page_settings
from benchbook.rendering.context import Build
from builders import write
from handbooks import CPU, GPU, build_site, edit, on_machine, plain, render, rows_of, start
from predicted import H200, METHODS, predict, predicted_handbook

ONE = "memory/methods.py?method=plain&batch_size=1#peak_memory"
TWO = "memory/methods.py?method=plain&batch_size=2#peak_memory"
# Never measured: no machine reads the allocator's peak here.
UNREAD = "memory/methods.py?method=plain&batch_size=1#train.allocated_peak"
TABLE = """```table
script: memory/methods.py
rows: method
where: {batch_size: 2}
columns:
  - peak_memory
  - {metric: peak_memory, predicted: true, bar: true, ratio: true}
  - {metric: peak_memory, error: true}
  - step_time
```
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return predicted_handbook(tmp_path)


def test_a_page_of_predictions_alone_says_whose_they_are(project: Project) -> None:
    build = start(without_records(project))
    html = render(build, f"The peak is `#!value {ONE}`.\n")
    assert list(build.here.machines) == [H200]
    assert "NVIDIA H200, 141 GB (predicted)" in plain(insert_choice(build, f"<h1>Memory</h1>{html}"))


def value_rows(build: Build, machine: str) -> dict[str, Any]:
    """The rows of the details of the only value of the page on a machine, its own and those of its origin."""
    data = build.here.data[machine]
    (value,) = data["values"].values()
    return dict(rows_of(value["rows"] + data["origins"][value["origin"]], build.here.language))


def without_records(project: Project) -> Project:
    """The project with nothing but predictions for the H200 of its methods."""
    for machine in project.machines:
        project.record_path(machine, "memory/methods.py").unlink()
    edit(project.snippets / "memory/predictions.toml", f', "{CPU}"', "")
    predict(project)
    project.prediction_path(CPU, "memory/methods.py").unlink()
    return project


def shown(build: Build, text: str) -> str:
    return plain(render(build, text)).replace("\u00a0", " ")


# A number in a sentence


def test_where_it_was_measured_the_measurement_shows(project: Project) -> None:
    build = start(project)
    html = render(build, f"`#!value {ONE}`")
    assert 'data-machine="fixture-cpu"' in html
    assert "data-kind" not in html
    assert "bb-predicted" not in html


def test_a_machine_that_was_not_measured_shows_the_prediction_as_one(project: Project) -> None:
    build = start(project)
    render(build, f"`#!value {ONE}`")
    there = on_machine(build, H200)
    assert plain(there) == "1.06 GiB≈ predicted"
    assert 'data-kind="prediction"' in there
    assert f'data-bytes="{2**30 + 2**26}"' in there


def test_a_value_that_nobody_measured_shows_its_prediction_marked(project: Project) -> None:
    build = start(project)
    html = render(build, f"`#!value {UNREAD}`")
    assert not build.problems
    assert 'data-kind="prediction"' in html
    assert plain(html).replace("\u00a0", " ") == "1.06 GiB≈ predicted"


def test_a_script_that_was_never_recorded_shows_what_was_predicted(project: Project) -> None:
    build = start(without_records(project))
    html = render(
        build, f"`#!value {ONE}`\n\n" + TABLE.replace("  - peak_memory\n", "").replace("  - step_time\n", "")
    )
    assert not build.problems
    assert html.count(f'data-machine="{H200}"') >= 3
    assert '<sup class="bb-tag" dir="auto">H200</sup>' in html


def test_a_value_from_another_machine_names_it_until_that_is_chosen(project: Project) -> None:
    build = start(without_records(project))
    html = render(build, f"`#!value {ONE}`")
    assert '<sup class="bb-tag" dir="auto">H200</sup>' in html
    assert "bb-tag" not in on_machine(build, H200)
    assert plain(on_machine(build, H200)) == "1.06 GiB≈ predicted"


def test_a_run_that_failed_is_not_hidden_by_a_prediction(project: Project) -> None:
    build = start(project)
    assert (
        shown(build, "`#!value memory/methods.py?method=plain&batch_size=4#peak_memory`") == "out of memory"
    )


def test_the_largest_misses_stand_first_where_the_page_asks_for_it(project: Project) -> None:
    table = TABLE.replace("where: {batch_size: 2}", "where: {batch_size: [1, 2]}")
    html = render(start(project), table.replace("rows: method", "rows: [method, batch_size]\nsort: error"))
    assert 'aria-sort="other"' in html
    found = re.findall(r'<data value="([-+.\d]+)"[^>]*>[-+\u2212]?[\d.]+\u00a0?%', html)
    sizes = [abs(float(value)) for value in found]
    assert len(sizes) >= 2
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] != sizes[-1]


def test_predicted_shows_the_prediction_beside_what_was_measured(project: Project) -> None:
    build = start(project)
    html = render(build, f"`#!value {ONE} predicted MiB`")
    assert f'data-machine="{CPU}" data-kind="prediction"' in html
    assert plain(html).replace("\u00a0", " ") == "1,088 MiB≈ predicted"


def test_error_is_signed_and_of_what_was_measured(project: Project) -> None:
    build = start(project)
    html = render(build, f"`#!value {ONE} error`")
    assert 'data-kind="error"' in html
    assert plain(html) == "\u221247%"
    assert value_rows(build, CPU)["error"] == "\u221247%"
    assert H200 not in build.here.data


def test_what_was_measured_is_never_divided_by_what_was_predicted(project: Project) -> None:
    build = start(project)
    html = render(build, f"`#!value {ONE} / {UNREAD}`")
    # Both are predicted where one of the two is.
    assert 'data-kind="prediction"' in html
    assert 'value="1.0"' in html
    edit(project.snippets / "memory/predictions.toml", 'peak_memory = "peak_allocated", ', "")
    predict(project)
    build = start(project)
    render(build, f"`#!value {ONE} / {UNREAD}`")
    (problem,) = build.problems
    assert "was never recorded on fixture-cpu" in problem.what


def test_two_predictions_have_a_ratio(project: Project) -> None:
    build = start(project)
    render(build, f"`#!value {TWO} / {ONE}`")
    there = on_machine(build, H200)
    assert 'data-kind="prediction"' in there
    assert f'value="{(2**31 + 2**26) / (2**30 + 2**26):.9g}"' in there


# By what a page says: a part of what is wrong with it.
WRONG = {
    f"`#!value {ONE} error GiB`": "is not an error",
    f"`#!value {ONE} / {TWO} error`": "is not an error",
    f"`#!value {ONE} predict`": "`predict` is not a unit",
    "`#!value memory/methods.py?method=plain&batch_size=1#step_time predicted`": "counts no bytes of the device's",
    "`#!value memory/losses.py#train.allocated_peak predicted`": "was never predicted",
    TABLE.replace("error: true", "error: true, predicted: true"): "is both `predicted:` and `error:`",
    TABLE.replace("error: true", "error: true, unit: GiB"): "the error of `peak_memory` has a `unit:`",
    TABLE.replace("predicted: true", "predicted: again"): "`predicted:` of `peak_memory` is 'again'",
    TABLE.replace("error: true", "error: true, bar: true"): "the error of `peak_memory` has a `bar:`",
    TABLE.replace(
        "- step_time", "- {metric: step_time, error: true}"
    ): "counts no bytes of the device's memory",
    TABLE.replace(
        "peak_memory", "train.reserved_peak"
    ): "`reserved_peak` of `memory/methods.py` was never predicted",
    TABLE.replace(
        "rows: method\nwhere: {batch_size: 2}", "rows: metrics\nwhere: {batch_size: 2, method: plain}"
    ): ("a column has no key `predicted`"),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_cannot_be_predicted_is_a_problem_with_its_line_and_a_fix(project: Project, text: str) -> None:
    write(project.docs / "en/memory.md", "# Memory { #memory }\n\n" + text)
    (problem,) = [one for one in check_project(project).problems if WRONG[text] in one.what]
    assert (problem.path, problem.line) == ("docs/en/memory.md", 3)
    assert problem.fix


# A table


def test_a_table_shows_predicted_measured_and_signed_error(project: Project) -> None:
    build = start(project)
    html = render(build, TABLE)
    assert not build.problems
    heads = [plain(part.split("</th>")[0]) for part in html.split('<th scope="col">')[1:]]
    assert heads == ["method", "peak_memory", "peak_memory (predicted)", "peak_memory (error)", "step_time"]
    row = plain(html.split('<tbody data-part="rows">')[1].split("</tr>")[0]).replace("\u00a0", " ")
    assert row.endswith(
        "peak_memory 4 GiBpeak_memory (predicted) 2.06 GiB ≈ predicted peak_memory (error) \u221248%step_time 202 ms"
    )


def test_its_cells_say_of_what_kind_they_are(project: Project) -> None:
    html = render(start(project), TABLE)
    row = html.split('<tbody data-part="rows">')[1].split("</tr>")[0]
    kinds = [part.split("<data ")[1].split(">")[0] for part in row.split("<td")[1:]]
    assert [("prediction" in kind, "error" in kind) for kind in kinds] == [
        (False, False),
        (True, False),
        (False, True),
        (False, False),
    ]


def test_what_was_predicted_anew_has_columns_of_its_own(project: Project) -> None:
    path = project.prediction_path(CPU, "memory/methods.py")
    record = load_predictions(path)
    assert record is not None
    anew = {
        name: dataclasses.replace(
            one,
            blind=True,
            anew=dataclasses.replace(one, blind=False, values=one.values | {"peak_memory": 2**32 + 2**28}),
        )
        for name, one in record.variants.items()
    }
    write_predictions(path, dataclasses.replace(record, variants=anew))
    columns = TABLE.replace("predicted: true", "predicted: anew").replace("error: true", "error: anew")
    text = shown(start(project), columns)
    assert "peak_memory (predicted anew)peak_memory (error, anew)" in text
    assert "peak_memory (predicted anew) 4.25 GiB ≈ predicted peak_memory (error, anew) +6.2%" in text


def test_what_ran_with_other_parameters_has_no_error(project: Project) -> None:
    edit(project.snippets / "memory/methods.py", "# steps = 2", "# steps = 3")
    predict(project)
    assert shown(start(project), TABLE).count("peak_memory (error) —") == 2


def test_on_a_machine_that_was_not_measured_a_prediction_stands_in_its_own_column_alone(
    project: Project,
) -> None:
    build = start(project)
    render(build, TABLE)
    entries = on_machine(build, H200).split("</tr>")[0].split("<td")[1:]
    texts = [re.findall(r"<data [^>]*>([^<]*)</data>", entry)[0] for entry in entries]
    assert texts == ["—", "2.06\u00a0GiB", "—", "—"]
    assert ['data-kind="prediction"' in entry for entry in entries] == [False, True, False, False]


def test_a_ratio_compares_one_kind_alone(project: Project) -> None:
    edit(
        project.snippets / "memory/predictions.toml",
        'name = "methods.py"',
        'name = "methods.py"\nwhere = { method = "plain" }',
    )
    predict(project)
    record = project.record_path(CPU, "memory/methods.py")
    table = json.loads(record.read_text("utf-8"))
    del table["variants"]["method=plain,batch_size=2"]
    write(record, json.dumps(table))
    build = start(project)
    render(build, TABLE.replace("  - peak_memory\n", "  - {metric: peak_memory, ratio: true}\n"))
    html = render(build, TABLE.replace("  - peak_memory\n", "  - {metric: peak_memory, ratio: true}\n"))
    first = html.split('data-row="1"')[1].split("<td>")[1]
    assert 'value="2147483648"' in first
    assert '<span class="bb-ratio" dir="ltr"></span>' in first


def test_the_line_below_says_that_some_values_are_predicted(project: Project) -> None:
    text = shown(start(project), TABLE)
    assert "Fixture CPU · torch 2.12 · Nov 2026 · some values predicted · median of 3" in text


def test_where_all_are_predicted_it_says_that_nothing_was_measured(project: Project) -> None:
    build = start(project)
    render(build, TABLE)
    line = re.findall(r'<span class="bb-line">(.*?)</span></summary>', on_machine(build, H200))
    assert list(map(plain, line)) == ["H200 · torch 2.13 · predicted Nov 2026, not measured"]


def test_the_details_say_how_it_was_predicted_and_how_to_do_it_again(project: Project) -> None:
    build = start(project)
    render(build, f"`#!value {ONE}`")
    rows = value_rows(build, H200)
    assert rows["prediction"] == "1.06\u00a0GiB (Predicted, not measured)"
    assert rows["peak"] == "Activations\u00a0816\u00a0MiB · Weights\u00a0272\u00a0MiB"
    assert rows["predicted_on"] == "November 20, 2026"
    assert rows["predictor"] == "rules 1, torch 2.13.0+cpu, transformers 5.23.0, 000000000000"
    assert (rows["blind"], rows["model"]) == ("yes", "model_type = bert")
    assert rows["workload"] == "batch = 1, sequence = 512"
    assert rows["record"] == [
        ("raw prediction: memory/methods.py", f"downloads/predictions/{H200}/memory/methods.json")
    ]
    assert rows["command"] == f"benchbook predictions memory/methods.py --machine {H200}"
    assert "by" not in rows


def test_a_block_can_be_pinned_to_a_gpu_that_nobody_measured_on(project: Project) -> None:
    build = start(project)
    html = render(build, TABLE.replace("rows: method", f"rows: method\nmachine: {H200}"))
    assert not build.problems
    assert f'class="bb-table" data-machine="{H200}"' in html
    assert {section for data in build.here.data.values() for section in data} == {"origins"}
    assert build.here.machines == {}


# What does not fit the machine

LARGE = METHODS.replace('batch = "$batch_size"', "batch = 140")


@pytest.fixture
def large(tmp_path: Path) -> Project:
    """Trainings of 140 samples: plain they need 140 GiB and more, with checkpointing half of it."""
    return predicted_handbook(tmp_path, LARGE)


def test_a_value_of_a_run_that_does_not_fit_says_so(large: Project) -> None:
    build = start(large)
    render(build, f"`#!value {ONE}`")
    assert plain(on_machine(build, H200)) == "140 GiB≈ predicted, does not fit"
    hint = "this run needs more memory than the device has room for)"
    assert value_rows(build, H200)["prediction"].endswith(hint)


def test_one_that_fits_or_was_measured_says_nothing_of_it(large: Project) -> None:
    build = start(large)
    lean = ONE.replace("plain", "checkpointing")
    html = render(build, f"`#!value {lean}` `#!value {ONE}`")
    assert "does not fit" not in on_machine(build, H200, lean)
    assert "does not fit" in on_machine(build, H200, ONE)
    assert "does not fit" not in html


def test_a_ratio_with_a_run_that_does_not_fit_says_so(large: Project) -> None:
    build = start(large)
    render(build, f"`#!value {ONE.replace('plain', 'checkpointing')} / {ONE}`")
    assert "does not fit" in on_machine(build, H200)


def test_a_table_says_so_in_each_cell_of_such_a_run(large: Project) -> None:
    build = start(large)
    render(build, TABLE)
    rows = on_machine(build, H200).split("</tr>")[:2]
    assert [["does not fit" in entry for entry in row.split("<td")[1:]] for row in rows] == [
        [False, True, False, False],
        [False, False, False, False],
    ]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("en", "≈ predicted, does not fit"),
        ("ar", "≈ تنبؤ، لا تكفي الذاكرة"),
        ("zh", "≈ 预测，显存不足"),
        ("ja", "≈ 予測値、メモリに収まらない"),
    ],
)
def test_a_cell_says_in_every_language_that_it_does_not_fit(large: Project, code: str, words: str) -> None:
    build = start(large, code)
    html = render(build, TABLE.replace("rows: method", f"rows: method\nmachine: {H200}"))
    assert plain(html).count(words) == 1
    hint = load_language(large.docs, code).text("predicted_fits_not_hint")
    assert html.count(f'<abbr class="bb-predicted" title="{hint}">') == 1


def test_the_details_say_what_room_there_was(large: Project) -> None:
    build = start(large)
    render(build, f"`#!value {ONE}`")
    assert value_rows(build, H200)["room"] == "140\u00a0GiB"


# The choice, the claims, the files


def test_the_choice_offers_the_gpu_and_marks_it(project: Project) -> None:
    build = start(project)
    render(build, f"`#!value {ONE}`")
    html = insert_choice(build, "<h1>Memory</h1>")
    assert f'<option value="{H200}">NVIDIA H200, 141\u00a0GB (predicted)</option>' in html
    names = page_settings(build, build.here)["machines"]
    assert names.index(GPU) < names.index(H200)


def test_a_prediction_is_no_measurement_on_a_gpu(project: Project) -> None:
    for path in (project.records / GPU).glob("*/*.json"):
        path.unlink()
    build = start(project)
    render(build, f"`#!value {ONE}`")
    assert "Not measured on a GPU yet." in plain(insert_choice(build, "<h1>Memory</h1>"))


def test_no_claim_is_judged_by_it(project: Project) -> None:
    assert H200 not in {machine.name for machine in judging_machines(start(project).library)}


def test_its_raw_file_lies_where_the_details_lead(project: Project) -> None:
    write(project.docs / "en/memory.md", f"# Memory {{ #memory }}\n\n{TABLE}")
    site = build_site(project)
    path = f"predictions/{H200}/memory/methods.json"
    assert (site / "downloads" / path).read_bytes() == (project.snippets / path).read_bytes()


@pytest.mark.parametrize(
    ("code", "word", "line"),
    [("ar", "تنبؤ", "لم يُقَس"), ("zh", "预测", "未实测"), ("ja", "予測値", "未測定")],
)
def test_every_language_says_so_in_its_own_words(project: Project, code: str, word: str, line: str) -> None:
    build = start(project, code)
    assert f"≈ {word}" in plain(render(build, f"`#!value {UNREAD}`"))
    render(build, TABLE)
    assert line in plain(on_machine(build, H200))


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0314, "+3.1%"),
        (-0.004, "\u22120.4%"),
        (0.0002, "0.0%"),
        (-0.62, "\u221262%"),
        (3.98, "+398%"),
        (0, "0.0%"),
    ],
)
def test_an_error_has_a_sign_and_a_tenth(share: float, text: str) -> None:
    assert load_language(Project(Path(__file__).parents[2]).docs, "en").signed_percent(share) == text


def test_a_declaration_without_predictions_changes_nothing(tmp_path: Path) -> None:
    project = predicted_handbook(tmp_path, METHODS)
    for path in project.predictions.glob("*/*/*.json"):
        path.unlink()
    build = start(project)
    render(build, f"`#!value {ONE}`")
    assert H200 not in build.here.data
