"""Predictions are records of their own kind: declared, made, kept where they were blind, and held to it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from benchbook.checking.checks import check_project
from benchbook.checking.committed import Committed, committed_records
from benchbook.checking.predictions import (
    changed_predictions,
    forgotten_predictions,
    late_predictions,
    prediction_rows,
    predictions_found,
)
from benchbook.checking.status import print_status, project_status
from benchbook.cli import main as cli
from benchbook.content.predictions import PREDICTOR, digest_of, dump_predictions, load_predictions
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import (
    HistoryLine,
    Publication,
    PublicationSource,
    load_record,
    write_record,
)
from benchbook.content.schemas import schema
from benchbook.machines.gpus import described
from benchbook.predictions import making
from benchbook.predictions.asking import Question
from benchbook.predictions.freshness import stale_prediction
from benchbook.predictor.room import ASSUMED_CONTEXT, room_of
from builders import MACHINE, make_record, write
from handbooks import edit
from predicted import ADDING, DECLARED, H200, H200_ROOM, MADE, STAMP, adding, multiplied, predict, said
from repositories import commit_all, git

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return adding(tmp_path)


def questions(project: Project) -> dict[tuple[str, str], Question]:
    found = making.read_questions(Project(project.root)).questions
    return {(one.machine, one.variant): one for one in found}


def describe_h200(
    project: Project, name: str = "NVIDIA H200", memory_bytes: int | None = None, published: bool = False
) -> None:
    """Put the machine.json of the GPU in place."""
    table = {
        "schema": 1,
        "name": H200,
        "kind": "cuda",
        "title": "NVIDIA H200, 141 GB",
        "short": "H200",
        "accelerator": {"name": name, "vendor": "NVIDIA", "memory_bytes": memory_bytes, "count": 1},
        "published": published,
    }
    write(project.records / H200 / "machine.json", json.dumps(table))


def damage(path: Path, apply: Callable[[dict[str, Any]], object]) -> None:
    table = json.loads(path.read_text("utf-8"))
    apply(table)
    write(path, json.dumps(table, indent=2))


def h200(project: Project) -> Path:
    return project.prediction_path(H200, "sums/add.py")


# What is asked


def test_a_parameter_has_the_value_of_the_variant_on_the_machine(project: Project) -> None:
    asked = questions(project)
    assert asked[H200, "mode=plain"].workload["batch"] == 8
    assert asked[MACHINE, "mode=plain"].workload["batch"] == 4
    assert asked[H200, "mode=plain"].model == {"model_type": "bert", "num_hidden_layers": 8}


def test_a_case_changes_what_it_names_where_it_holds(project: Project) -> None:
    asked = questions(project)
    assert asked[H200, "mode=lean"].workload == {"batch": 8, "sequence": 16, "checkpointing": True}
    assert asked[MACHINE, "mode=plain"].workload == {"batch": 4, "sequence": 8}


def test_a_cpu_is_not_asked_what_it_reserves(project: Project) -> None:
    asked = questions(project)
    assert asked[H200, "mode=plain"].values["add.reserved_peak"] == ("peak_reserved",)
    assert "add.reserved_peak" not in asked[MACHINE, "mode=plain"].values


def test_a_case_can_say_why_the_predictor_is_not_asked(tmp_path: Path) -> None:
    skipped = DECLARED.replace("training = { checkpointing = true }", 'skip = "no such kernel"')
    assert {variant for _, variant in questions(adding(tmp_path, skipped))} == {"mode=plain"}


def test_a_script_can_be_asked_of_some_variants_on_machines_of_its_own(tmp_path: Path) -> None:
    own = f'name = "add.py"\nmachines = ["{H200}"]\nwhere = {{ mode = ["lean"] }}'
    asked = questions(adding(tmp_path, DECLARED.replace('name = "add.py"', own)))
    assert list(asked) == [(H200, "mode=lean")]


def test_a_model_is_taken_from_its_file_with_what_is_said_beside_it(tmp_path: Path) -> None:
    project = adding(
        tmp_path, DECLARED.replace('config = { model_type = "bert", ', 'model = "tiny"\nconfig = { ')
    )
    write(
        project.snippets / "models/tiny.json",
        '{"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 9}',
    )
    model = questions(project)[H200, "mode=plain"].model
    assert model == {"model_type": "llama", "num_hidden_layers": 8, "vocab_size": 9}


def test_a_declaration_asks_of_a_few_machines(tmp_path: Path) -> None:
    many = ", ".join(f'"nvidia-h200-{size}gb"' for size in range(100, 121))
    with pytest.raises(BenchbookError, match=r"machines.*at most 20"):
        questions(
            adding(tmp_path, DECLARED.replace(f'machines = ["{H200}", "cpu-test"]', f"machines = [{many}]"))
        )


RUNNING = f"""machines = ["{H200}"]

[[script]]
name = "add.py"
run = {{ until = "add" }}
values = {{ peak = "peak_allocated" }}
"""


def test_a_script_that_is_run_has_no_model_and_is_asked_anew_once_it_changes(tmp_path: Path) -> None:
    project = adding(tmp_path, RUNNING)
    before = questions(project)[H200, "mode=plain"]
    path = project.snippets / "sums/add.py"
    assert (before.kind, before.model, before.path) == ("run", {}, path)
    answer = multiplied(dataclasses.replace(before, workload={"batch": 1}))
    prediction = making.make_prediction(before, answer, STAMP, None)
    assert stale_prediction(prediction, before) is None
    edit(path, "# %% checks", "another = 1\n\n# %% checks")
    changed = stale_prediction(prediction, questions(project)[H200, "mode=plain"])
    assert changed is not None
    assert changed.startswith("workload changed (code: sha256:")


def test_a_gpu_that_nobody_measured_on_is_called_what_the_recorder_would_call_it() -> None:
    found = described(H200)
    assert found is not None
    assert (found["title"], found["short"], found["kind"]) == ("NVIDIA H200, 141 GB", "H200", "cuda")
    assert described("amd-mi300x-192gb") is not None
    assert [described(name) for name in ("amd-h200-141gb", "nvidia-h200-142gb", "nvidia-141gb", "h200")] == [
        None
    ] * 4


def test_a_machine_without_records_has_the_room_of_its_data_sheet(project: Project) -> None:
    asked = questions(project)
    assert asked[H200, "mode=plain"].room == H200_ROOM
    assert asked[MACHINE, "mode=plain"].room is None


def test_a_smaller_gpu_of_the_same_model_has_what_its_name_says(tmp_path: Path) -> None:
    asked = questions(adding(tmp_path, DECLARED.replace(H200, "nvidia-a100-40gb")))
    assert asked["nvidia-a100-40gb", "mode=plain"].room == 40 * 10**9 - ASSUMED_CONTEXT


def test_a_recorded_machine_has_the_room_that_was_measured_there(project: Project) -> None:
    describe_h200(project, memory_bytes=2**37)
    assert questions(project)[H200, "mode=plain"].room == 2**37 - ASSUMED_CONTEXT
    record = make_record(ADDING)
    woken = {"first_tensor": {"device_memory": 2**29}}
    variants = {
        name: dataclasses.replace(
            one, runs=tuple(dataclasses.replace(run, cells=run.cells | woken) for run in one.runs)
        )
        for name, one in record.variants.items()
    }
    write_record(
        project.record_path(H200, "sums/add.py"),
        dataclasses.replace(record, machine=H200, variants=variants),
    )
    assert questions(project)[H200, "mode=plain"].room == 2**37 - 2**29


def test_the_maintainers_machine_says_what_room_a_gpu_has_and_not_one_that_is_lent(project: Project) -> None:
    describe_h200(project, memory_bytes=2**36)
    lent = project.records / "a-gpu--eve"
    (project.records / H200).rename(lent)
    describe_h200(project, memory_bytes=2**37)
    assert room_of("H200", project).memory == 2**37
    assert room_of(lent.name, project).memory == 2**36


def test_a_published_machine_and_an_unknown_gpu_have_no_known_room(project: Project) -> None:
    describe_h200(project, published=True)
    assert questions(project)[H200, "mode=plain"].room is None
    describe_h200(project, name="NVIDIA Unheard Of")
    assert questions(project)[H200, "mode=plain"].room is None


# By what is replaced in the declaration: by what, the line of the problem, a part of what is said, of the fix.
WRONG: dict[str, tuple[str, int, str, str]] = {
    '"$steps" }': ('"$step" }', 5, "`$step` is not a parameter of `add.py`", "steps"),
    '{ mode = "lean" }': ('{ mode = "fat" }', 10, "has no variant with mode=fat", "lean, plain"),
    "{ mode = ": ("{ node = ", 10, "does not sweep `node`", "mode"),
    "sequence = 16": ('sequence = "x"', 6, "training.sequence: Input should be a valid integer", "--help"),
    "batch = ": ("batches = ", 6, "training.batches: there is no such key", "batch"),
    "checkpointing = true": ("precision = 'fp8'", 11, "training.precision: Input should be 'fp32'", "--help"),
    'name = "add.py"': ('name = "ad.py"', 4, "there is no script `sums/ad.py`", "add.py"),
    'config = { model_type = "bert", ': (
        'model = "none"\nconfig = { ',
        5,
        "there is no model `none`",
        "model",
    ),
    'model_type = "bert", ': ("", 4, "its model has no `model_type`", "snippets/models"),
    "nvidia-h200": (
        "nvidia-h201",
        1,
        "no machine `nvidia-h201-141gb`, and no data sheet",
        "nvidia-h200-141gb",
    ),
    "peak = ": ("total = ", 7, "`total` of `sums/add.py` counts no bytes of the device's memory", "device"),
    '"add.allocated"': ('"add.process_memory"', 12, "counts no bytes of the device's memory", "allocator"),
    '"add.reserved_peak"': ('"sub.reserved_peak"', 7, "has no cell `sub`", "add"),
    '= "peak_reserved"': (
        '= "peak_kept"',
        7,
        "'peak_kept' is not a quantity of a prediction",
        "prediction_declarations.py",
    ),
    "on = ": ("off = ", 15, "script.case.off: there is no such key", "prediction_declarations.py"),
    "training = { batch": (
        "inference = { batch",
        4,
        "is asked as training and inference",
        "`run`, one of them",
    ),
    "[[script.case]]": ("[[script.case]", 9, "is not valid TOML", "fix the TOML"),
}


@pytest.mark.parametrize("old", WRONG)
def test_what_is_wrong_with_a_declaration_is_said_with_its_line_and_the_fix(tmp_path: Path, old: str) -> None:
    new, line, what, fix = WRONG[old]
    assert old in DECLARED
    found = predictions_found(adding(tmp_path, DECLARED.replace(old, new))).problems
    assert any(
        (one.path, one.line) == ("snippets/sums/predictions.toml", line)
        and what in one.what
        and fix in one.fix
        for one in found
    ), found


def test_a_script_is_declared_once(tmp_path: Path) -> None:
    project = adding(tmp_path, DECLARED + '[[script]]\nname = "add.py"\n')
    (problem,) = predictions_found(project).problems
    assert (problem.line, problem.what) == (18, "`add.py` is there twice")


# What is made


def test_a_prediction_says_what_was_asked_and_from_what_it_was_made(project: Project) -> None:
    predict(project)
    record = load_predictions(h200(project))
    assert record is not None
    one = record.variants["mode=plain"]
    assert one.values == {"peak": 8 * 2**30 + 2**26, "add.reserved_peak": (8 * 2**30 + 2**26) * 21 // 20}
    assert one.workload == {"batch": 8, "sequence": 16}
    assert (one.made, one.commit, one.packages, one.predictor) == (
        MADE,
        STAMP.commit,
        STAMP.packages,
        PREDICTOR,
    )


def test_a_prediction_says_what_room_there_was_and_whether_it_fits(tmp_path: Path) -> None:
    project = adding(tmp_path, DECLARED.replace('batch = "$steps"', "batch = 140"))
    predict(project)
    for machine, said_of in (
        (H200, {"mode=plain": (H200_ROOM, False), "mode=lean": (H200_ROOM, True)}),
        (MACHINE, {"mode=plain": (None, None), "mode=lean": (None, None)}),
    ):
        record = load_predictions(project.prediction_path(machine, "sums/add.py"))
        assert record is not None
        assert {name: (one.room, one.fits) for name, one in record.variants.items()} == said_of
    assert predictions_found(Project(project.root)).problems == ()


def test_a_prediction_without_a_room_is_written_as_it_always_was(project: Project) -> None:
    predict(project)
    text = project.prediction_path(MACHINE, "sums/add.py").read_text("utf-8")
    assert '"room"' not in text
    assert '"fits"' not in text


def test_the_same_predictions_are_the_same_file(project: Project) -> None:
    predict(project)
    before = h200(project).read_text("utf-8")
    outcomes = predict(project, dataclasses.replace(STAMP, clock=lambda: "2026-11-21T10:00:00Z"))
    assert set(said(outcomes).values()) == {"as it was"}
    assert h200(project).read_text("utf-8") == before


def test_what_it_writes_is_read_as_it_was_written(project: Project) -> None:
    predict(project)
    record = load_predictions(h200(project))
    assert record is not None
    assert dump_predictions(record) == h200(project).read_text("utf-8")


def test_it_fits_the_schema_that_is_published(project: Project) -> None:
    predict(project)
    table = json.loads(h200(project).read_text("utf-8"))
    validator = jsonschema.Draft202012Validator(schema("prediction-1.json"))
    assert [error.message for error in validator.iter_errors(table)] == []
    table["variants"]["mode=plain"]["blind"] = "yes"
    assert list(validator.iter_errors(table))


def test_only_what_was_not_measured_yet_is_predicted_blind(project: Project) -> None:
    predict(project)
    for machine, blind in ((H200, True), (MACHINE, False)):
        record = load_predictions(project.prediction_path(machine, "sums/add.py"))
        assert record is not None
        assert {one.blind for one in record.variants.values()} == {blind}


def test_a_value_can_be_a_sum_with_what_the_machine_measured(tmp_path: Path) -> None:
    summed = DECLARED.replace('peak = "peak_allocated"', 'peak = ["peak_allocated", "#add.reserved"]')
    project = adding(tmp_path, summed.replace(f'"{H200}", ', ""))
    record = make_record(ADDING)
    variants = {
        name: dataclasses.replace(
            one,
            runs=tuple(dataclasses.replace(run, cells={"add": {"reserved": 2**20}}) for run in one.runs),
        )
        for name, one in record.variants.items()
    }
    write_record(project.record_path(MACHINE, "sums/add.py"), dataclasses.replace(record, variants=variants))
    predict(project)
    made = load_predictions(project.prediction_path(MACHINE, "sums/add.py"))
    assert made is not None
    assert made.variants["mode=plain"].values["peak"] == 4 * 2**30 + 2**26 + 2**20


def test_a_sum_with_what_was_never_measured_is_refused(tmp_path: Path) -> None:
    summed = DECLARED.replace('peak = "peak_allocated"', 'peak = ["peak_allocated", "#add.reserved"]')
    with pytest.raises(BenchbookError, match=r"`#add.reserved` was not measured on nvidia-h200-141gb"):
        predict(adding(tmp_path, summed))


def test_a_quantity_that_the_predictor_has_not_is_refused_with_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(BenchbookError, match=r"has no `moments.clip.held`.*moments.step.held") as caught:
        predict(adding(tmp_path, DECLARED.replace("moments.step.held", "moments.clip.held")))
    assert caught.value.problems[0].path == "snippets/sums/predictions.toml"


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({"machine": H200}, {H200}),
        ({"scripts": ["sums/add.py"]}, {H200, MACHINE}),
        ({"scripts": ["sums"], "machine": MACHINE}, {MACHINE}),
    ],
)
def test_it_predicts_what_it_is_told_to(project: Project, options: dict[str, Any], made: set[str]) -> None:
    assert {machine for machine, _ in said(predict(project, **options))} == made


@pytest.mark.parametrize("options", [{"machine": "nvidia-h100-80gb"}, {"scripts": ["sums/ad.py"]}])
def test_what_is_not_declared_is_not_predicted(project: Project, options: dict[str, Any]) -> None:
    with pytest.raises(BenchbookError, match="is declared"):
        predict(project, **options)


def test_the_command_says_what_became_of_each(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHBOOK_ROOT", str(project.root))
    monkeypatch.setattr(making, "ask_predictor", multiplied)
    shown = CliRunner().invoke(cli.app, ["predictions", "--machine", H200])
    assert shown.exit_code == 0, shown.output
    assert f"predicted  {H200}  sums/add.py  mode=plain" in shown.output


# When it no longer holds

CHANGES: dict[str, tuple[str, str, str]] = {
    "sequence = 16": ("predictions.toml", "sequence = 32", "workload changed (sequence: 16 -> 32)"),
    'model_type = "bert"': (
        "predictions.toml",
        'model_type = "llama"',
        "model changed (model_type: bert -> llama)",
    ),
    '"peak_reserved"': (
        "predictions.toml",
        '"peak_allocated"',
        "values changed (add.reserved_peak: peak_res",
    ),
    "steps = 8": ("add.py", "steps = 9", "parameter changed (steps: 8 -> 9)"),
}


@pytest.mark.parametrize("old", CHANGES)
def test_what_is_asked_otherwise_is_stale_until_it_is_predicted_anew(project: Project, old: str) -> None:
    name, new, reason = CHANGES[old]
    predict(project)
    edit(project.snippets / "sums" / name, old, new)
    found = [one for one in predictions_found(Project(project.root)).problems if H200 in one.path]
    assert any(f"variant mode=plain is stale: {reason}" in one.what for one in found)
    assert said(predict(project))[H200, "mode=plain"] == "predicted"
    assert not [one for one in predictions_found(Project(project.root)).problems if H200 in one.path]


def test_a_predictor_of_other_rules_makes_it_stale(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    predict(project)
    monkeypatch.setattr("benchbook.predictions.freshness.PREDICTOR", PREDICTOR + 1)
    found = predictions_found(Project(project.root)).problems
    assert all(f"predictor changed (rules {PREDICTOR} -> {PREDICTOR + 1})" in one.what for one in found)
    assert len(found) == 4


def test_what_says_nothing_of_a_room_that_is_known_is_stale(project: Project) -> None:
    describe_h200(project, published=True)
    predict(project)
    describe_h200(project, memory_bytes=2**37)
    room = 2**37 - ASSUMED_CONTEXT
    problems = [one.what for one in predictions_found(Project(project.root)).problems]
    assert any(f"stale: room changed (not known -> {room} B)" in one for one in problems)
    assert said(predict(project))[H200, "mode=plain"] == "predicted"


@pytest.mark.parametrize(("memory", "stale"), [(2**36, False), (2**33, True)])
def test_another_room_makes_it_stale_only_where_it_changes_what_fits(
    project: Project, memory: int, stale: bool
) -> None:
    predict(project)
    describe_h200(project, memory_bytes=memory)
    room = memory - ASSUMED_CONTEXT
    problems = [one.what for one in predictions_found(Project(project.root)).problems]
    assert any(
        f"mode=plain is stale: room changed ({H200_ROOM} B -> {room} B)" in one for one in problems
    ) == (stale)


def test_what_did_not_fit_is_stale_once_there_is_room(project: Project) -> None:
    describe_h200(project, memory_bytes=2**33)
    predict(project)
    describe_h200(project, memory_bytes=2**34)
    problems = [one.what for one in predictions_found(Project(project.root)).problems]
    assert any("mode=plain is stale: room changed" in one for one in problems)


def test_what_is_not_predicted_yet_only_needs_doing(project: Project) -> None:
    found = predictions_found(project)
    assert found.problems == ()
    assert len(found.warnings) == 4
    assert "is not predicted on nvidia-h200-141gb yet" in found.warnings[0].what


def ask_for_plain_alone(project: Project) -> None:
    edit(
        project.snippets / "sums/predictions.toml",
        'name = "add.py"',
        'name = "add.py"\nwhere = { mode = "plain" }',
    )
    edit(
        project.snippets / "sums/predictions.toml",
        '[[script.case]]\nwhere = { mode = "lean" }',
        "[[script.case]]",
    )
    edit(project.snippets / "sums/predictions.toml", "training = { checkpointing = true }\n", "")


def test_what_is_asked_no_longer_is_a_problem_until_it_is_gone(project: Project) -> None:
    predict(project)
    ask_for_plain_alone(project)
    problems = [one.what for one in predictions_found(Project(project.root)).problems]
    assert any(
        "predicts variant mode=lean of sums/add.py, which no predictions.toml asks for" in one
        for one in problems
    )
    predict(project)
    assert predictions_found(Project(project.root)).problems == ()


def test_status_tells_predictions_from_records(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    predict(project)
    rows = project_status(Project(project.root))
    kinds = {(row.machine, row.kind): row.state for row in rows}
    assert kinds == {
        (MACHINE, "record"): "fresh",
        (MACHINE, "prediction"): "predicted",
        (H200, "prediction"): "predicted",
    }
    print_status(rows)
    assert f"predicted  {H200}  mode=plain: 2026-11-20, blind" in capsys.readouterr().out


def test_status_says_what_does_not_fit(tmp_path: Path) -> None:
    project = adding(tmp_path, DECLARED.replace('batch = "$steps"', "batch = 140"))
    predict(project)
    rows = {row.variant: row.reason for row in prediction_rows(project) if row.machine == H200}
    assert rows == {
        "mode=plain": "2026-11-20, blind, does not fit",
        "mode=lean": "2026-11-20, blind",
    }


def test_a_project_with_predictions_holds_its_promises(project: Project) -> None:
    predict(project)
    report = check_project(Project(project.root))
    assert (report.problems, report.warnings) == ((), ())


# Predicted blind, then measured


def measure_on_h200(project: Project, started: str, commit: str | None = None) -> None:
    """Put a record of the GPU in place, as if measured then."""
    record = make_record(ADDING)
    (name,) = record.campaigns
    campaign = dataclasses.replace(record.campaigns[name], started=started, finished=started, commit=commit)  # type: ignore[type-var]
    variants = {
        key: dataclasses.replace(one, parameters=one.parameters | {"steps": 8})
        for key, one in record.variants.items()
    }
    changed = dataclasses.replace(record, machine=H200, campaigns={name: campaign}, variants=variants)
    write_record(project.record_path(H200, "sums/add.py"), changed)
    described_machine = {
        "schema": 1,
        "name": H200,
        "kind": "cuda",
        "title": "NVIDIA H200, 141 GB",
        "short": "H200",
    }
    write(project.records / H200 / "machine.json", json.dumps(described_machine))


def blind_problems(project: Project) -> list[str]:
    return [one.what for one in predictions_found(Project(project.root)).problems]


def test_a_blind_prediction_stays_once_it_was_measured(project: Project) -> None:
    predict(project)
    before = h200(project).read_text("utf-8")
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    outcomes = [one for one in predict(project, everything=True) if one.machine == H200]
    assert {(one.what, one.reason) for one in outcomes} == {("kept", "blind, and measured since")}
    assert h200(project).read_text("utf-8") == before


REMADE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "made after it": lambda table: resealed(table, blind=False),
    "made better": lambda table: resealed(
        table, peak_allocated=9, moments={"backward": {"peak": 9, "held": 9}}
    ),
    "left out": lambda table: table["variants"].pop("mode=plain"),
}


@pytest.mark.parametrize("change", REMADE)
def test_a_blind_prediction_that_main_has_stays_right_or_wrong(project: Project, change: str) -> None:
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    commit_all(project.root)
    assert forgotten(project) == []
    damage(h200(project), REMADE[change])
    assert forgotten(project) == [
        "variant mode=plain was predicted blind otherwise on `main`, and measured since"
    ]


def test_a_blind_prediction_that_main_has_goes_with_its_file_only_with_the_record(project: Project) -> None:
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    commit_all(project.root)
    h200(project).unlink()
    assert len(forgotten(project)) == 2
    project.record_path(H200, "sums/add.py").unlink()
    assert forgotten(project) == []


def test_a_blind_prediction_is_made_anew_until_main_has_it_measured(project: Project) -> None:
    predict(project)
    commit_all(project.root)
    damage(h200(project), lambda table: resealed(table, made="2026-11-20T10:30:00Z"))
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    assert forgotten(project) == []


def held_to_main(project: Project, check: Callable[[Project, Committed], Iterable[Problem]]) -> list[str]:
    """What a check says of the project beside its `main`."""
    committed = committed_records(Project(project.root))
    assert committed is not None
    return [one.what for one in check(Project(project.root), committed)]


def forgotten(project: Project) -> list[str]:
    return held_to_main(project, forgotten_predictions)


QUOTED = "nvidia-h200-141gb--published"


def quoted_on_main(tmp_path: Path) -> Project:
    """A branch of a `main` that quotes figures of one variant, and has predictions of both, none blind."""
    project = adding(tmp_path, DECLARED.replace(H200, QUOTED))
    describe_h200(project, published=True)
    (project.records / H200).rename(project.records / QUOTED)
    damage(project.records / QUOTED / "machine.json", lambda table: table.update(name=QUOTED))
    record = make_record(ADDING)
    source = PublicationSource("https://example.org/paper", "A paper on adding", "2019-05")
    paper = Publication(source, measured=None, recorded_by="Ada", packages={}, state={})
    plain = dataclasses.replace(record.variants["mode=plain"], campaign="paper", code=None)
    quoted = dataclasses.replace(
        record, machine=QUOTED, campaigns={"paper": paper}, variants={"mode=plain": plain}
    )
    write_record(project.record_path(QUOTED, "sums/add.py"), quoted)
    predict(project)
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    return project


def late(project: Project) -> list[str]:
    return held_to_main(project, late_predictions)


LATE = "variant mode=plain says it was predicted blind, and `main` has its figures already"


def test_a_prediction_of_figures_that_main_has_is_not_blind(tmp_path: Path) -> None:
    project = quoted_on_main(tmp_path)
    path = project.prediction_path(QUOTED, "sums/add.py")
    assert late(project) == []
    damage(path, lambda table: resealed(table, blind=True, made="2026-11-21T10:00:00Z"))
    damage(
        project.record_path(QUOTED, "sums/add.py"),
        lambda table: table["campaigns"]["paper"].update(taken_over="2026-11-22T10:00:00Z"),
    )
    assert late(project) == [LATE]
    assert LATE in [one.what for one in check_project(Project(project.root)).problems]


def test_nor_is_it_once_its_figures_are_gone_or_in_a_file_of_its_own(tmp_path: Path) -> None:
    project = quoted_on_main(tmp_path)
    path = project.prediction_path(QUOTED, "sums/add.py")
    path.unlink()
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    project.record_path(QUOTED, "sums/add.py").unlink()
    predict(project)
    assert late(project) == [LATE]


def test_a_blind_prediction_comes_with_its_figures_and_stays_blind(project: Project) -> None:
    commit_all(project.root)
    git(project.root, "checkout", "--quiet", "-b", "change")
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    assert late(project) == []
    commit_all(project.root)
    git(project.root, "branch", "--force", "main")
    edit(project.snippets / "sums/predictions.toml", "sequence = 16", "sequence = 32")
    predict(project)
    assert late(project) == []
    damage(h200(project), lambda table: resealed(table, made="2026-11-20T10:30:00Z"))
    assert late(project) == [LATE]


def edited(project: Project) -> list[str]:
    return held_to_main(project, changed_predictions)


EDITED = "predicts variant mode=plain otherwise than `main`"


@pytest.mark.parametrize(
    "made", [{}, {"made": "2026-11-21T10:00:00Z", "packages": {"torch": "2.13.0.post1"}}]
)
def test_a_prediction_that_is_edited_and_sealed_again_is_a_warning(
    project: Project, made: dict[str, Any]
) -> None:
    predict(project)
    commit_all(project.root)
    path = project.prediction_path(MACHINE, "sums/add.py")
    better: dict[str, Any] = {"values": {"peak": 9}, "peak_allocated": 9, "categories": {"weights": 9}}
    better |= {"moments": {"backward": {"peak": 9, "held": 9}}, "stands_for": {"peak": ["peak_allocated"]}}
    damage(path, lambda table: resealed(table, **better, **made))
    assert edited(project) == [EDITED]
    warnings = check_project(Project(project.root)).warnings
    assert [one.fix for one in warnings if one.what.startswith(EDITED)] == ["say in the pull request why"]


def test_a_prediction_of_the_future_is_an_error(project: Project) -> None:
    predict(project)
    path = project.prediction_path(MACHINE, "sums/add.py")
    damage(path, lambda table: resealed(table, made="2999-01-01T00:00:00Z"))
    what = "variant mode=plain was predicted at 2999-01-01T00:00:00Z, which is in the future"
    assert what in {one.what for one in check_project(Project(project.root)).problems}


def test_so_is_one_that_stands_beside_a_blind_one(project: Project) -> None:
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    edit(project.snippets / "sums/predictions.toml", "sequence = 16", "sequence = 32")
    predict(project)
    commit_all(project.root)

    def beside(table: dict[str, Any]) -> None:
        one = table["variants"]["mode=plain"]["anew"]
        one["categories"] = {"weights": sum(one["categories"].values())}
        one["digest"] = digest_of(one, table["script"], "mode=plain", table["machine"])

    damage(h200(project), beside)
    assert edited(project) == [EDITED]


def test_one_of_another_question_is_told_and_so_is_the_same_one_made_again(project: Project) -> None:
    predict(project)
    commit_all(project.root)
    damage(
        project.prediction_path(MACHINE, "sums/add.py"),
        lambda table: resealed(table, made="2026-11-21T10:00:00Z", commit="1" * 40, packages={}),
    )
    assert edited(project) == [EDITED]
    edit(project.snippets / "sums/predictions.toml", "sequence = 16", "sequence = 32")
    predict(project, dataclasses.replace(STAMP, clock=lambda: "2026-11-21T10:00:00Z"))
    assert edited(project)
    assert all("otherwise than `main`" in what for what in edited(project))


def test_what_is_predicted_no_longer_is_told_and_so_is_one_beside_a_blind_one(project: Project) -> None:
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    commit_all(project.root)
    edit(project.snippets / "sums/predictions.toml", "sequence = 16", "sequence = 32")
    predict(project, machine=H200)
    assert any("otherwise than `main`" in what for what in edited(project))
    commit_all(project.root)
    h200(project).unlink()
    (what,) = edited(project)
    assert what.endswith(" no longer, and `main` does")


def test_what_is_predicted_anew_stands_beside_a_blind_one(project: Project) -> None:
    predict(project)
    before = load_predictions(h200(project))
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    edit(project.snippets / "sums/predictions.toml", "sequence = 16", "sequence = 32")
    assert "is stale: workload changed (sequence: 16 -> 32)" in blind_problems(project)[-1]
    (first, _) = (one for one in predict(project) if one.machine == H200)
    assert first.what == "anew"
    assert first.reason.endswith("blind, and measured since; workload changed (sequence: 16 -> 32)")
    after = load_predictions(h200(project))
    assert before is not None
    assert after is not None
    for variant, one in after.variants.items():
        assert dataclasses.replace(one, anew=None) == before.variants[variant]
        assert one.anew is not None
        assert (one.anew.blind, one.anew.workload["sequence"]) == (False, 32)
    assert blind_problems(project) == []
    assert set(said(predict(project, machine=H200)).values()) == {"kept"}


def test_what_is_asked_no_longer_is_removed_or_kept_in_words(project: Project) -> None:
    predict(project)
    ask_for_plain_alone(project)
    removed = {one.machine: one.reason for one in predict(project) if one.what == "removed"}
    assert removed == {
        H200: "blind, and not measured yet; no predictions.toml asks for it",
        MACHINE: "not blind; no predictions.toml asks for it",
    }
    assert {one.what for one in predict(project)} == {"as it was"}


def test_a_blind_prediction_that_was_measured_is_kept_though_nothing_asks_for_it(project: Project) -> None:
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    ask_for_plain_alone(project)
    kept = {one.variant: one.reason for one in predict(project, machine=H200) if one.what == "kept"}
    assert kept["mode=lean"] == "blind, and measured since; no predictions.toml asks for it"
    written = load_predictions(h200(project))
    assert written is not None
    assert "mode=lean" in written.variants


def test_an_edited_one_beside_a_blind_one_is_found_too(project: Project) -> None:
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    edit(project.snippets / "sums/predictions.toml", "sequence = 16", "sequence = 32")
    predict(project)
    damage(h200(project), lambda table: table["variants"]["mode=plain"]["anew"]["values"].update(peak=1))
    assert "variants.mode=plain.anew: its digest is not that of what it says" in blind_problems(project)


def test_a_prediction_that_was_not_blind_is_made_anew(project: Project) -> None:
    predict(project)
    assert said(predict(project, everything=True))[MACHINE, "mode=plain"] == "predicted"


def test_one_that_was_measured_later_holds_its_promise(project: Project) -> None:
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    assert blind_problems(project) == []


@pytest.mark.parametrize("started", ["2026-11-20T09:59:59Z", "2026-11-19T23:00:00Z"])
def test_one_that_was_measured_before_was_not_blind(project: Project, started: str) -> None:
    predict(project)
    measure_on_h200(project, started)
    (first, second) = blind_problems(project)
    assert (
        first == f"variant mode=plain says it was predicted blind, on {MADE}, and was measured on {started}"
    )
    assert "mode=lean" in second


def test_an_earlier_campaign_counts_as_having_measured_it(project: Project) -> None:
    predict(project)
    measure_on_h200(project, "2026-11-20T11:00:00Z")
    path = project.record_path(H200, "sums/add.py")
    record = load_record(path)
    assert record is not None
    earlier = HistoryLine("2026-11-19", "earlier", ["mode=lean"], {})
    write_record(path, dataclasses.replace(record, history=(earlier,)))
    (problem,) = blind_problems(project)
    assert "mode=lean" in problem
    assert "was measured on 2026-11-19" in problem


def test_the_commit_that_was_measured_must_hold_the_prediction(project: Project) -> None:
    before = commit_all(project.root)
    predict(project)
    after = commit_all(project.root)
    measure_on_h200(project, "2026-11-20T11:00:00Z", after)
    assert blind_problems(project) == []
    measure_on_h200(project, "2026-11-20T11:00:00Z", before)
    assert f"commit {before[:12]}, measured, lacks it" in blind_problems(project)[0]


def test_where_the_measured_commit_is_not_known_a_prediction_that_no_earlier_one_holds_is_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    predict(project)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-20T10:30:00Z")
    commit_all(project.root)
    measure_on_h200(project, "2026-11-20T11:00:00Z", "1" * 40)
    assert blind_problems(project) == []
    # An hour later nobody can say any more that it was blind.
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-20T12:00:00Z")
    damage(h200(project), lambda table: resealed(table, made="2026-11-20T10:00:01Z"))
    commit_all(project.root)
    assert blind_problems(project) == []
    (warning,) = [one for one in predictions_found(Project(project.root)).warnings if "blind" in one.what]
    assert warning.what.startswith(
        "variant mode=plain says it was predicted blind; no commit holds it from before"
    )


@pytest.mark.parametrize("past", ["[" * 200_000, "{}"], ids=["without end", "of the year 10000"])
def test_what_a_file_of_predictions_was_once_is_no_reason_to_stop(
    project: Project, monkeypatch: pytest.MonkeyPatch, past: str
) -> None:
    predict(project)
    text = h200(project).read_text("utf-8")
    monkeypatch.setenv(
        "GIT_COMMITTER_DATE", "2026-11-20T10:20:00Z" if past != "{}" else "@253402300900 +0000"
    )
    h200(project).write_text(past, "utf-8")
    commit_all(project.root)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-20T10:30:00Z")
    h200(project).write_text(text, "utf-8")
    commit_all(project.root)
    measure_on_h200(project, "2026-11-20T11:00:00Z", "1" * 40)
    assert blind_problems(project) == []


def resealed(table: dict[str, Any], **changes: Any) -> None:
    """Change what a prediction says, with the digest of that."""
    one = table["variants"]["mode=plain"]
    one.update(changes)
    one["digest"] = digest_of(one, table["script"], "mode=plain", table["machine"])


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"values": {"peak": 9, "add.reserved_peak": 9}}, "peak is 9 B, and peak_allocated is not"),
        ({"peak_allocated": 1, "peak_reserved": 1}, "peak_allocated is 1 B, and its moments say otherwise"),
        ({"categories": {"weights": 1}}, "its categories add up to 1 B, and peak_allocated is"),
        (
            {"moments": {"backward": {"peak": 2**33 + 2**26, "held": 2**34}}},
            "moments.backward holds 17179869184 B at its end, more than its peak",
        ),
    ],
)
def test_a_sealed_prediction_agrees_with_its_own_fields(
    project: Project, changes: dict[str, Any], what: str
) -> None:
    predict(project)
    damage(h200(project), lambda table: resealed(table, **changes))
    assert any(
        one.what.startswith(f"variant mode=plain: {what}") for one in predictions_found(project).problems
    )


@pytest.mark.parametrize(
    "key", ["values", "workload", "made", "blind", "categories", "parameters", "room", "digest"]
)
def test_a_prediction_that_was_edited_is_found_by_its_digest(project: Project, key: str) -> None:
    predict(project)

    def edited(table: dict[str, Any]) -> None:
        one = table["variants"]["mode=plain"]
        match one[key]:
            case bool(value):
                one[key] = not value
            case int(value):
                one[key] = value + 1
            case str(value):
                one[key] = value.replace("0", "1")
            case dict(value):
                name = next(name for name, number in value.items() if isinstance(number, int))
                value[name] += 1

    damage(h200(project), edited)
    (problem,) = [one for one in predictions_found(project).problems if "digest" in one.what]
    assert problem.what == "variants.mode=plain: its digest is not that of what it says"
    assert '"digest"' in h200(project).read_text("utf-8").splitlines()[problem.line - 1]


MISSHAPEN: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "an unknown key": (lambda t: t.update(extra=1), "extra: there is no such key"),
    "another licence": (lambda t: t.update(licence="MIT"), "licence: Input should be 'CC0-1.0'"),
    "a date that is none": (
        lambda t: t["variants"]["mode=plain"].update(made="yesterday"),
        "variants.mode=plain.made: String should match",
    ),
    "a moment of no calendar": (
        lambda t: t["variants"]["mode=plain"].update(made="2026-02-31T10:00:00Z"),
        "variants.mode=plain.made: 2026-02-31T10:00:00Z is in no calendar",
    ),
    "fewer bytes reserved": (
        lambda t: t["variants"]["mode=plain"].update(peak_reserved=1),
        "it reserves less than it allocates",
    ),
    "a room without an outcome": (
        lambda t: t["variants"]["mode=plain"].pop("fits"),
        "`room` and `fits` go together",
    ),
    "an outcome that its bytes contradict": (
        lambda t: t["variants"]["mode=plain"].update(fits=False),
        "`fits` is not what `peak_reserved` and `room` say",
    ),
    "a moment that is none": (
        lambda t: t["variants"]["mode=plain"].update(moment="lunch"),
        "its moment 'lunch' is not among its moments",
    ),
}


@pytest.mark.parametrize("name", MISSHAPEN)
def test_what_has_not_the_shape_of_a_prediction_is_refused(project: Project, name: str) -> None:
    apply, what = MISSHAPEN[name]
    predict(project)
    damage(h200(project), apply)
    assert any(what in one.what for one in check_project(Project(project.root)).problems)


@pytest.mark.parametrize(
    "key", ["packages", "model", "workload", "values", "stands_for", "categories", "moments"]
)
def test_what_a_prediction_may_note_freely_has_an_end(project: Project, key: str) -> None:
    predict(project)

    def inflated(table: dict[str, Any]) -> None:
        one = table["variants"]["mode=plain"]
        some = "torch 2" if key in ("packages", "model", "workload") else next(iter(one[key].values()))
        one[key] |= {f"many_{number}_{'x' * 40}": some for number in range(200)}
        one["digest"] = digest_of(one, table["script"], "mode=plain", table["machine"])

    damage(h200(project), inflated)
    said = [problem.what for problem in predictions_found(project).problems]
    assert any(
        what.startswith(f"variants.mode=plain.{key}: ") and ("are the most" in what or "at most" in what)
        for what in said
    )


def test_a_model_that_no_digest_can_be_made_of_is_refused(project: Project) -> None:
    predict(project)
    text = h200(project).read_text("utf-8")
    write(h200(project), text.replace('"model": {', '"model": { "odd": 1e999,', 1))
    assert [problem.path for problem in predictions_found(project).problems if "model" in problem.what]


def test_a_file_in_the_wrong_place_is_told_where_it_belongs(project: Project) -> None:
    predict(project)
    place = project.prediction_path("nvidia-h100-80gb", "sums/add.py")
    write(place, h200(project).read_text("utf-8"))
    assert [one.fix for one in predictions_found(project).problems] == [
        "move it to snippets/predictions/nvidia-h200-141gb/sums/add.json"
    ]


# The committed ones


def test_every_committed_prediction_fits_its_schema_and_its_digest() -> None:
    paths = sorted((ROOT / "snippets/predictions").glob("*/*/*.json"))
    assert paths
    validator = jsonschema.Draft202012Validator(schema("prediction-1.json"))
    for path in paths:
        assert [error.message for error in validator.iter_errors(json.loads(path.read_text("utf-8")))] == []
    assert [one for one in predictions_found(Project(ROOT)).problems if "digest" in one.what] == []


def test_what_is_committed_is_written_again_byte_for_byte() -> None:
    for path in (ROOT / "snippets/predictions").glob("*/*/*.json"):
        record = load_predictions(path)
        assert record is not None
        assert dump_predictions(record) == path.read_text("utf-8")
        for name, one in record.variants.items():
            assert one.sealed(record.script, name, record.machine).digest == one.digest


def test_predictions_of_a_cpu_and_of_a_publication_are_asked_without_a_room() -> None:
    asked = making.read_questions(Project(ROOT)).questions
    roomy = {one.machine for one in asked if one.room is not None}
    assert roomy == {"nvidia-h100-80gb", H200, "nvidia-l4-24gb"}


def test_the_predictor_still_says_what_is_committed() -> None:
    """Whoever changes a rule raises `PREDICTOR`: then the committed predictions are stale, and are made anew."""
    asked = making.read_questions(Project(ROOT))
    for machine in ("cpu-2core-24gb", H200):
        question = asked.of("model_memory_anatomy/remedies.py", machine)["change=no_attention_dropout"]
        record = load_predictions(Project(ROOT).prediction_path(machine, question.script))
        assert record is not None
        committed = record.variants[question.variant]
        # One that was blind stays as older rules made it.
        if committed.predictor == PREDICTOR:
            assert making.ask_predictor(question).peak_allocated == committed.peak_allocated


def test_a_sequence_longer_than_the_models_positions_is_one_line_that_names_the_script() -> None:
    asked = making.read_questions(Project(ROOT))
    question = asked.of("model_memory_anatomy/remedies.py", H200)["change=no_attention_dropout"]
    too_long = dataclasses.replace(question, workload={**question.workload, "sequence": 513})
    with pytest.raises(BenchbookError) as refused:
        making.ask_predictor(too_long)
    (problem,) = refused.value.problems
    assert str(problem) == (
        "snippets/model_memory_anatomy/predictions.toml:1: model_memory_anatomy/remedies.py, "
        f"variant change=no_attention_dropout, on {H200}: 513 tokens are more than the 512 positions of bert; "
        "give 512 at most, or another model"
    )
