"""Hold declarations and predictions to their promises: well formed, unedited, up to date, truly blind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchbook.checking.committed import Committed
from benchbook.content.formats import MOMENT, from_table, is_same, too_large
from benchbook.content.positions import json_line
from benchbook.content.prediction_declarations import load_declarations
from benchbook.content.predictions import (
    PredictionRecord,
    StoredPrediction,
    contradictions,
    load_predictions,
)
from benchbook.content.problems import BenchbookError, Problem, few
from benchbook.content.project import Project
from benchbook.content.records import CLOCK_SKEW, Campaign, Record, load_record, record_from
from benchbook.content.revisions import git_answer, has_whole_history, moment_of, text_at
from benchbook.content.validation import prediction_problems, read_json
from benchbook.predictions.asking import Asked, Question, ask
from benchbook.predictions.freshness import came_too_late, measured_at, stale_prediction
from benchbook.predictions.making import read_questions
from benchbook.query.freshness import State

# What a prediction answered: a later version of a script may be written otherwise, and ask the same.
ANSWER = (
    "made",
    "values",
    "stands_for",
    "moment",
    "peak_allocated",
    "peak_reserved",
    "categories",
    "moments",
)

_RESTORE = "restore the file: predictions are not edited"


@dataclass(frozen=True)
class PredictionProblems:
    """What is wrong, and what only needs doing."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def predictions_found(project: Project) -> PredictionProblems:
    """What is wrong with the declarations and predictions of `project`, and which predictions are missing."""
    declarations, problems = load_declarations(project)
    asked = ask(project, declarations)
    problems += asked.problems
    asked = replace(asked, problems=tuple(problems))
    warnings: list[Problem] = []
    there: set[tuple[str, str, str]] = set()
    for path in sorted(project.predictions.glob("*/*/*.json")):
        shown = project.relative(path)
        table, text, unreadable = read_json(path, shown)
        misshapen = unreadable or list(prediction_problems(table, shown, text))
        problems += misshapen
        if misshapen:
            continue
        record = from_table(PredictionRecord, table)
        place = project.prediction_path(record.machine, record.script)
        if place != path:
            what = f"is the prediction of {record.script} on {record.machine}"
            problems.append(Problem(shown, 1, what, f"move it to {project.relative(place)}"))
            continue
        there |= {(record.script, record.machine, variant) for variant in record.variants}
        measured, held = _record(project, record), cache(partial(_at_commit, project.root, shown))
        problems += _of_file(record, measured, held, asked, shown, text)
        warnings += _unproven(project, record, measured, held, shown, text)
    # Where a declaration is wrong, what it lacks is not told apart from what it does not say.
    for question in () if asked.problems else asked.questions:
        if (question.script, question.machine, question.variant) not in there:
            warnings.append(_missing(question))
    return PredictionProblems(tuple(problems), tuple(warnings))


def _missing(question: Question) -> Problem:
    path = f"snippets/{question.script.partition('/')[0]}/predictions.toml"
    what = f"{question.script}, variant {question.variant}, is not predicted on {question.machine} yet"
    return Problem(path, 1, what, f"run `benchbook predictions {question.script}`")


def _of_file(
    record: PredictionRecord,
    measured: Record | None,
    held: Callable[[str], str | None],
    asked: Asked,
    shown: str,
    text: str,
) -> Iterator[Problem]:
    """What is wrong with the predictions of a file."""
    questions = asked.of(record.script, record.machine)
    for variant, prediction in record.variants.items():
        line = json_line(text, ("variants", variant))
        for one in filter(None, (prediction, prediction.anew)):
            for what in contradictions(one):
                yield Problem(shown, line, f"variant {variant}: {what}", _RESTORE)
            if one.made > f"{datetime.now(UTC) + CLOCK_SKEW:{MOMENT}}":
                what = f"variant {variant} was predicted at {one.made}, which is in the future"
                yield Problem(shown, line, what, _RESTORE)
        when = measured_at(measured, variant)
        question = questions.get(variant)
        settled = prediction.blind and when is not None
        if question is None:
            # Where the declarations are wrong, they may well ask for it.
            if not asked.problems and not settled:
                what = f"predicts variant {variant} of {record.script}, which no predictions.toml asks for"
                yield Problem(shown, line, what, "run `benchbook predictions`, which removes it")
        elif reason := stale_prediction(prediction, question):
            what = f"its prediction of variant {variant} is stale: {reason}"
            yield Problem(shown, line, what, f"run `benchbook predictions {record.script}`")
        if settled and when is not None and measured is not None:
            yield from _blind(record, variant, measured, held, shown, line, when)


def forgotten_predictions(project: Project, committed: Committed) -> Iterator[Problem]:
    """Blind predictions that `main` has, with what they predict, and that are otherwise here, or not at all.

    Parameters:
        project: The checkout.
        committed: What `main` has.
    """
    for shown, text, known, here in _changed_from_main(project, committed):
        place = project.relative(project.record_path(known.machine, known.script))
        told = committed.record(place)
        was, measured = record_from(told) if told is not None else None, _record(project, known)
        for variant, prediction in known.variants.items():
            # What is measured no longer, or was not yet, may be predicted otherwise.
            if not prediction.blind or None in (measured_at(was, variant), measured_at(measured, variant)):
                continue
            if here is None or variant not in here or here[variant].digest != prediction.digest:
                what = f"variant {variant} was predicted blind otherwise on `main`, and measured since"
                fix = "restore it from `main`: right or wrong, it stays"
                yield Problem(shown, json_line(text, ("variants", variant)), what, fix)


def late_predictions(project: Project, committed: Committed) -> Iterator[Problem]:
    """Predictions that say they were blind where `main` has the figures, and no such prediction.

    Parameters:
        project: The checkout.
        committed: What `main` has.
    """
    for shown, text, record in _changed_here(project, committed):
        told = committed.record(project.relative(project.record_path(record.machine, record.script)))
        on_main = _on_main(committed, shown)
        known = on_main.variants if on_main is not None else {}
        for variant, prediction in record.variants.items():
            if not prediction.blind or told is None or variant not in told["variants"]:
                continue
            before = known.get(variant)
            was_blind = before is not None and before.blind
            if before is None or not was_blind or before.digest != prediction.digest:
                what = f"variant {variant} says it was predicted blind, and `main` has its figures already"
                fix = "restore it from `main`" if was_blind else _not_blind(record.script)
                yield Problem(shown, json_line(text, ("variants", variant)), what, fix)


def changed_predictions(project: Project, committed: Committed) -> Iterator[Problem]:
    """Predictions that are otherwise than on `main`, or not at all, and those that it lacks.

    Parameters:
        project: The checkout.
        committed: What `main` has.
    """
    for shown, text, record, here in _changed_from_main(project, committed):
        if here is None:
            continue  # told elsewhere
        known = record.variants
        gone = [variant for variant in known if variant not in here]
        other = [variant for variant in here if variant in known and _differs(known[variant], here[variant])]
        for names, how in ((other, "otherwise than `main`"), (gone, "no longer, and `main` does")):
            if names:
                line = json_line(text, ("variants", names[0]))
                what = f"predicts variant {few(names)} {how}"
                yield Problem(shown, line, what, "say in the pull request why")
    for shown, text, record in _changed_here(project, committed):
        on_main, measured = _on_main(committed, shown), _record(project, record)
        known = on_main.variants if on_main is not None else {}
        new = [name for name in record.variants if name not in known]
        late = [
            name for name in new if record.variants[name].blind and measured_at(measured, name) is not None
        ]
        early = [name for name in new if name not in late]
        for names, how in (
            (late, "says of a variant that is measured that it was predicted blind"),
            (early, "predicts"),
        ):
            if names:
                what = f"{how}: {few(names)} of {record.script}, of which `main` has no prediction"
                fix = "say in the pull request who predicted it, and when"
                yield Problem(shown, json_line(text, ("variants", names[0])), what, fix)


def _changed_here(project: Project, committed: Committed) -> Iterator[tuple[str, str, PredictionRecord]]:
    """The files of predictions that `main` lacks, or has otherwise: path, text and content."""
    for path in sorted(project.predictions.glob("*/*/*.json")):
        shown = project.relative(path)
        table, text, _ = read_json(path, shown)
        # What is no prediction is told elsewhere.
        if not committed.holds(shown, text) and not prediction_problems(table, shown):
            yield shown, text, from_table(PredictionRecord, table)


def _changed_from_main(
    project: Project, committed: Committed
) -> Iterator[tuple[str, str, PredictionRecord, Mapping[str, StoredPrediction] | None]]:
    """The files of predictions that `main` has, and that are otherwise here or gone.

    Path, text here, what `main` has, and the predictions here: None of a file that is there and holds none.
    """
    for shown in committed.changed(project.relative(project.predictions)):
        # Of what is no prediction there, or one of another form, nothing can be said.
        if (before := _on_main(committed, shown)) is None:
            continue
        table, text, _ = read_json(project.root / shown, shown)
        if not prediction_problems(table, shown):
            yield shown, text, before, from_table(PredictionRecord, table).variants
        else:
            yield shown, text, before, None if (project.root / shown).is_file() else {}


def _on_main(committed: Committed, shown: str) -> PredictionRecord | None:
    """The predictions that `main` has in a file; None where it has none, or of another form."""
    table = committed.table(shown)
    return None if prediction_problems(table, shown) else from_table(PredictionRecord, table)


def _differs(before: StoredPrediction, prediction: StoredPrediction) -> bool:
    """Whether a prediction, or its `anew`, says something else, of something else, or was made anew."""
    return _digests(before) != _digests(prediction)


def _digests(prediction: StoredPrediction) -> list[str]:
    return [one.digest for one in (prediction, prediction.anew) if one is not None]


def _record(project: Project, record: PredictionRecord) -> Record | None:
    try:
        return load_record(project.record_path(record.machine, record.script))
    except BenchbookError:
        return None  # reported with the records


def _blind(
    record: PredictionRecord,
    variant: str,
    measured: Record,
    held: Callable[[str], str | None],
    shown: str,
    line: int,
    when: str,
) -> Iterator[Problem]:
    """What shows that a prediction which says it was blind came after what it predicts was measured."""
    prediction = record.variants[variant]
    fix = _not_blind(record.script)
    if came_too_late(prediction, when):
        what = (
            f"variant {variant} says it was predicted blind, on {prediction.made}, and was measured on {when}"
        )
        yield Problem(shown, line, what, fix)
        return
    commit = _commit_of(measured, variant)
    text = held(commit)
    if text is not None and prediction.digest not in text:
        what = f"variant {variant} says it was predicted blind; commit {commit[:12]}, measured, lacks it"
        yield Problem(shown, line, what, fix)


def _not_blind(script: str) -> str:
    """The fix of a prediction that was not blind."""
    return f"take it out of the file and run `benchbook predictions {script}`, which says what it is"


def _unproven(
    project: Project,
    record: PredictionRecord,
    measured: Record | None,
    held: Callable[[str], str | None],
    shown: str,
    text: str,
) -> Iterator[Problem]:
    """The blind predictions of which this history does not show that they came before what they predict.

    They may have: a history that was squashed, or that begins later, does not show it either.
    """
    earlier = cache(partial(_committed_before, project.root, shown))
    for variant, prediction in record.variants.items():
        when = measured_at(measured, variant)
        if measured is None or when is None or not prediction.blind or came_too_late(prediction, when):
            continue
        if held(_commit_of(measured, variant)) is not None:
            continue
        before = earlier(when)
        if before is not None and not any(_answers(one, variant, prediction) for one in before):
            what = f"variant {variant} says it was predicted blind; no commit holds it from before {when}, "
            fix = "merge predictions and records without squashing them"
            line = json_line(text, ("variants", variant))
            yield Problem(shown, line, f"{what}when it was measured", fix)


def _commit_of(measured: Record, variant: str) -> str:
    """The commit that was measured; empty where none is told."""
    campaign = measured.campaigns.get(measured.variants[variant].campaign)
    return (campaign.commit or "") if isinstance(campaign, Campaign) else ""


def _answers(table: Any, variant: str, prediction: StoredPrediction) -> bool:
    """Whether an earlier state of a file holds the answer of a prediction."""
    with suppress(KeyError, TypeError):
        there, here = table["variants"][variant], json.loads(json.dumps(asdict(prediction)))
        return bool(there["blind"]) and all(is_same(there[key], here[key]) for key in ANSWER)
    return False


def _committed_before(root: Path, path: str, when: str) -> list[Any] | None:
    """What a file held in each commit of this history from before `when`, a day or a time.

    None where nobody can tell: the history is not whole, or the file is of no repository.
    """
    if not has_whole_history(root):
        return None
    told = git_answer(root, "log", "--no-show-signature", "--full-history", "--format=%H %ct", "--", path)
    states = []
    for commit, seconds in (line.split() for line in (told or b"").decode().splitlines()):
        moment = moment_of(seconds)
        if moment is not None and f"{moment:{MOMENT}}"[: len(when)] <= when:
            content = git_answer(root, "show", f"{commit}:./{path}") or b""
            if not too_large(content):
                with suppress(ValueError, RecursionError):
                    states.append(json.loads(content))
    return states


def _at_commit(root: Path, path: str, commit: str) -> str | None:
    """What a file held at a commit, empty if it was not there; None where git does not know the commit."""
    if not commit or git_answer(root, "cat-file", "-e", f"{commit}^{{commit}}") is None:
        return None
    return text_at(root, commit, path) or ""


@dataclass(frozen=True)
class PredictionRow:
    """The state of one prediction, as `benchbook status` lists it."""

    script: str
    variant: str
    machine: str
    state: State
    reason: str


def prediction_rows(project: Project) -> list[PredictionRow]:
    """The state of every prediction that is declared or there: predicted, stale or missing, with the reason.

    Raises:
        BenchbookError: A declaration, or a file of predictions, cannot be read.
    """
    asked = read_questions(project)
    rows: list[PredictionRow] = []
    for script, machine in dict.fromkeys((question.script, question.machine) for question in asked.questions):
        path = project.prediction_path(machine, script)
        known = load_predictions(path, project.relative(path))
        predictions: Mapping[str, StoredPrediction] = known.variants if known else {}
        for variant, question in asked.of(script, machine).items():
            rows.append(PredictionRow(script, variant, machine, *_state(predictions.get(variant), question)))
    return rows


def _state(prediction: StoredPrediction | None, question: Question) -> tuple[State, str]:
    if prediction is None:
        return "missing", "never predicted"
    reason = stale_prediction(prediction, question)
    if reason:
        return "stale", reason
    anew = f", anew {prediction.anew.made[:10]}" if prediction.anew else ""
    outcome = ", does not fit" if prediction.fits is False else ""
    return "predicted", f"{prediction.made[:10]}{', blind' if prediction.blind else ''}{outcome}{anew}"
