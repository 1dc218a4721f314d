"""Make predictions: ask the predictor what is declared and write what it says; blind ones stay."""

from __future__ import annotations

import datetime
import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchbook.content.formats import from_table
from benchbook.content.prediction_declarations import load_declarations
from benchbook.content.predictions import (
    PREDICTOR,
    RESERVED,
    PredictionRecord,
    StoredMoment,
    StoredPrediction,
    dump_predictions,
    is_measured,
    load_predictions,
    predicted_quantity,
    write_predictions,
)
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.records import Record, load_record
from benchbook.content.script import read_script
from benchbook.predictions.asking import Asked, Question, ask
from benchbook.predictions.freshness import measured_at, stale_prediction
from benchbook.statistics.summary import median

if TYPE_CHECKING:
    from benchbook.predictor import Prediction
    from benchbook.predictor.gpus import Gpu
    from benchbook.predictor.workload import ScriptRun, Workload

PACKAGES = ("torch", "transformers")
_SETTLED = "blind, and measured since"


@dataclass(frozen=True)
class Answer:
    """What the predictor says, in bytes.

    Parameters:
        moment: When the peak comes.
        peak_allocated: By the allocator.
        peak_reserved: Taken from the device; None on a CPU.
        categories: At the peak, by category.
        moments: By moment, its `peak` and what is `held` at its end.
        unexplained: What no category explains.
        fits: Whether the room that was asked for suffices; None where none was.
    """

    moment: str
    peak_allocated: int
    peak_reserved: int | None
    categories: dict[str, int]
    moments: dict[str, dict[str, int]]
    unexplained: int
    fits: bool | None = None


Predict = Callable[[Question], Answer]


@dataclass(frozen=True)
class Stamp:
    """From what predictions are made.

    Parameters:
        commit: What is checked out.
        modified: Whether what could change a prediction differs from it.
        packages: Versions.
        clock: Tells the time, as `2026-11-20T17:30:00Z`.
    """

    commit: str | None
    modified: bool
    packages: dict[str, str]
    clock: Callable[[], str]


@dataclass(frozen=True)
class Outcome:
    """What became of one variant: "predicted", "as it was", "kept", "removed" or "anew", with the reason."""

    script: str
    variant: str
    machine: str
    what: str
    reason: str = ""


def make_predictions(
    project: Project,
    predict: Predict,
    stamp: Stamp,
    scripts: Sequence[str] = (),
    machine: str = "",
    everything: bool = False,
) -> Iterator[Outcome]:
    """Predict what is missing or stale, writing each file once its script is done.

    Parameters:
        project: The checkout.
        predict: The predictor.
        stamp: What goes into each.
        scripts: Only these ("guide/script.py", or a guide).
        machine: Only this one.
        everything: Predict also what is fresh. A blind prediction that was measured since is kept even then;
            where it no longer holds, another is made beside it.

    Raises:
        BenchbookError: A declaration is not in order, or nothing of that name is declared.
    """
    asked = read_questions(project)
    chosen = _chosen(asked.questions, scripts, machine)
    for script, where in dict.fromkeys((question.script, question.machine) for question in chosen):
        yield from _predict_file(project, predict, stamp, asked.of(script, where), script, where, everything)


def read_questions(project: Project) -> Asked:
    """What the declarations of `project` ask.

    Raises:
        BenchbookError: One is not in order.
    """
    declarations, problems = load_declarations(project)
    asked = ask(project, declarations)
    if problems or asked.problems:
        raise BenchbookError(*problems, *asked.problems)
    return asked


def _chosen(questions: Sequence[Question], scripts: Sequence[str], machine: str) -> list[Question]:
    known = {name for question in questions for name in (question.script, question.script.partition("/")[0])}
    for name in scripts:
        if name not in known:
            what = f"no prediction of `{name}` is declared"
            fix = did_you_mean(name, known, "script")
            raise BenchbookError(Problem("snippets", 1, what, f"declare it in a predictions.toml, or {fix}"))
    machines = {question.machine for question in questions}
    if machine and machine not in machines:
        what = f"no prediction for the machine `{machine}` is declared"
        raise BenchbookError(Problem("snippets", 1, what, did_you_mean(machine, machines, "machine")))
    return [
        question
        for question in questions
        if (not scripts or {question.script, question.script.partition("/")[0]} & set(scripts))
        and (not machine or question.machine == machine)
    ]


def _predict_file(
    project: Project,
    predict: Predict,
    stamp: Stamp,
    questions: Mapping[str, Question],
    script: str,
    machine: str,
    everything: bool,
) -> Iterator[Outcome]:
    path = project.prediction_path(machine, script)
    known = load_predictions(path, project.relative(path)) or PredictionRecord.of(script, machine)
    place = project.record_path(machine, script)
    record = load_record(place, project.relative(place))
    kept = {name: one for name, one in known.variants.items() if _is_settled(one, record, name)}
    made: dict[str, StoredPrediction] = {}
    for name, question in questions.items():
        before = known.variants.get(name)
        stale = stale_prediction(before, question) if before else None
        if before is not None and name in kept:
            if stale:
                anew = make_prediction(question, predict(question), stamp, record)
                made[name] = replace(before, anew=anew)
                yield Outcome(script, name, machine, "anew", f"beside one that was {_SETTLED}; {stale}")
            else:
                made[name] = before
                yield Outcome(script, name, machine, "kept", _SETTLED)
        elif before is not None and not stale and not everything:
            made[name] = before
            yield Outcome(script, name, machine, "as it was")
        else:
            made[name] = make_prediction(question, predict(question), stamp, record)
            yield Outcome(script, name, machine, "predicted", stale or "")
    # What is asked no longer goes, but for what was predicted and measured.
    ordered = {**made, **{name: one for name, one in kept.items() if name not in made}}
    written = replace(known, variants=ordered)
    if not path.is_file() or dump_predictions(written) != path.read_text("utf-8"):
        write_predictions(path, written)
    for name, one in known.variants.items():
        if name in kept and name not in questions:
            yield Outcome(script, name, machine, "kept", f"{_SETTLED}; no predictions.toml asks for it")
        elif name not in questions:
            state = "blind, and not measured yet" if one.blind else "not blind"
            yield Outcome(script, name, machine, "removed", f"{state}; no predictions.toml asks for it")


def _is_settled(prediction: StoredPrediction, record: Record | None, variant: str) -> bool:
    """Whether a prediction was made blind and has been put to the test since."""
    return prediction.blind and measured_at(record, variant) is not None


def make_prediction(
    question: Question, answer: Answer, stamp: Stamp, record: Record | None
) -> StoredPrediction:
    """The prediction that an answer of the predictor makes.

    Parameters:
        question: What was asked.
        answer: What the predictor said.
        stamp: From what.
        record: What the machine has of the script, if anything.

    Raises:
        BenchbookError: The answer has not what is declared to stand for a value.
    """
    said = vars(answer)
    values = {
        name: sum(_part(part, said, question, record) for part in parts)
        for name, parts in question.values.items()
    }
    return StoredPrediction(
        made=stamp.clock(),
        commit=stamp.commit,
        modified=stamp.modified,
        blind=measured_at(record, question.variant) is None,
        predictor=PREDICTOR,
        packages=stamp.packages,
        parameters=question.parameters,
        model=question.model,
        kind=question.kind,
        workload=question.workload,
        values=values,
        stands_for=question.values,
        room=question.room,
        **said | {"moments": {name: StoredMoment(**moment) for name, moment in answer.moments.items()}},
    ).sealed(question.script, question.variant, question.machine)


def _part(part: str, said: Mapping[str, Any], question: Question, record: Record | None) -> int:
    if is_measured(part):
        found = _measured(part, question.variant, record)
        fix = "record it there first, or let another quantity stand for it"
        lacking = f"`{part}` was not measured on {question.machine}"
    else:
        found = predicted_quantity(part, said)
        fix = f"use one of: {', '.join(_quantities(said))}"
        lacking = f"the predictor has no `{part}`"
    if found is None:
        what = f"{lacking}, which stands for a value of {question.script}, variant {question.variant}"
        raise BenchbookError(
            Problem(f"snippets/{question.script.partition('/')[0]}/predictions.toml", 1, what, fix)
        )
    return found


def _quantities(said: Mapping[str, Any]) -> list[str]:
    """What an answer of the predictor has."""
    moments = [f"moments.{name}.{key}" for name in said["moments"] for key in ("peak", "held")]
    return ["peak_allocated", RESERVED, *(f"categories.{name}" for name in said["categories"]), *moments]


def _measured(part: str, variant: str, record: Record | None) -> int | None:
    """The median of what a metric or meter read on the machine."""
    name, _, meter = part.removeprefix("#").partition(".")
    result = record.variants.get(variant) if record else None
    found = [
        run.meter(name, meter) if meter else run.metrics.get(name) for run in (result.runs if result else ())
    ]
    numbers = [value for value in found if isinstance(value, (int, float))]
    return round(median(numbers)) if numbers else None


def stamp_now(project: Project) -> Stamp:
    """The stamp of this checkout and this environment."""
    from benchbook.machines.circumstances import commit

    head, modified = commit(project.root)
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return Stamp(head, modified, versions, _now)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ask_predictor(question: Question) -> Answer:
    """What the predictor of this package says; it needs torch and transformers.

    Raises:
        BenchbookError: It cannot be predicted.
    """
    from benchbook.predictor.gpus import H200, gpu_named
    from benchbook.predictor.workload import WORKLOADS, UnpredictableError

    workload = from_table(WORKLOADS[question.kind], question.workload)
    try:
        gpu = gpu_named(question.machine)
    except UnpredictableError:
        gpu = H200
    try:
        said = _predicted(question, workload, gpu)
    except UnpredictableError as error:
        guide = question.script.partition("/")[0]
        what = f"{question.script}, variant {question.variant}, on {question.machine}: {error.what}"
        raise BenchbookError(Problem(f"snippets/{guide}/predictions.toml", 1, what, error.fix)) from error
    moments = {name: {"peak": moment.peak, "held": moment.held} for name, moment in said.moments.items()}
    return Answer(
        said.moment,
        said.peak_allocated,
        said.peak_reserved,
        dict(said.categories),
        moments,
        said.unexplained,
        said.fits,
    )


def _predicted(question: Question, workload: Workload | ScriptRun, gpu: Gpu) -> Prediction:
    from benchbook.predictor import predict
    from benchbook.predictor.running import predict_script
    from benchbook.predictor.workload import ScriptRun

    if not isinstance(workload, ScriptRun):
        return predict(question.model, workload, question.device, gpu, question.room)
    assert question.path is not None
    script = read_script(question.path, question.path.parents[2])
    return predict_script(
        script, question.path, question.parameters, workload, question.device, gpu, question.room
    )
