"""Record one script: its variants interleaved in rounds, each run a fresh process, one record at the end."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from benchbook.problems import Problem
from benchbook.recorder.hosts import HostError, Hosts, preload_names
from benchbook.recorder.jobs import CRASHED, FAILED, OK, TIMED_OUT, Failure, Job, Result
from benchbook.recorder.journal import TIME, Finished, Journal
from benchbook.recorder.plan import Task
from benchbook.records import Campaign, RankRun, Record, Run, VariantRecord, campaigns_of
from benchbook.script import Script, Variant
from benchbook.stats import median


@dataclass(frozen=True)
class Turn:
    """One run in the order of a campaign."""

    variant: str
    round: int
    place: int


def order(campaign: str, script: str, repeats: dict[str, int]) -> tuple[Turn, ...]:
    """Every run of a campaign: rounds in which each variant runs once, in an order drawn anew for each.

    Parameters:
        campaign: Its id, which with the script's name is the seed: a resumed campaign goes on as planned.
        script: "guide/script.py".
        repeats: How often each variant runs.
    """
    draw = random.Random(f"{campaign} {script}")
    turns: list[Turn] = []
    for number in range(max(repeats.values(), default=0)):
        names = [name for name, times in repeats.items() if times > number]
        draw.shuffle(names)
        turns += [Turn(name, number, len(turns) + place) for place, name in enumerate(names)]
    return tuple(turns)


def make_job(
    script: Script, variant: Variant, path: str, root: str, limit: float = math.inf, strict: bool = False
) -> Job:
    """The job that runs `variant` once, for `limit` seconds at most.

    Parameters:
        script: Whose.
        variant: What runs.
        path: The file.
        root: The project's folder.
        limit: Seconds that are left, where that is less than it may take.
        strict: Whether a library's deprecation is an error too, and not only the script's own.
    """
    return Job(
        script=path,
        root=root,
        source=script.source,
        cells=[(cell.name, cell.start, cell.source) for cell in script.cells],
        overridden=variant.overridden,
        metrics=list(script.metadata.metrics),
        blocks=[metric.name for metric in script.metadata.metrics.values() if metric.blocks],
        meters=list(variant.meters),
        ranks=variant.ranks,
        timeout=min(variant.timeout, limit),
        docstring=script.docstring,
        strict=strict,
    )


def run_once(
    hosts: Hosts, task: Task, variant: Variant, root: str, limit: float = math.inf, strict: bool = False
) -> Result:
    """Run a variant once, a second time if the host and not the script gave way; else as `make_job` says.

    Raises:
        BenchbookError: There is no host to run it.
    """
    script = task.script
    preload = preload_names(cell.source for cell in script.cells)
    job = make_job(script, variant, str(task.path.resolve()), root, limit, strict)
    words = ""
    for _ in range(2):
        host = hosts.host(variant.environment, preload, script.path)
        try:
            return host.run(job)
        except HostError as error:
            words = str(error)
            hosts.forget(host)
    what = f"the process that watches over the script ended twice ({words})"
    return Result(FAILED, Failure(1, what, "see whether something on this machine kills processes"))


class BudgetError(Exception):
    """The time that was given is spent: the next run would not end within it, or the last one did not."""


@dataclass(frozen=True)
class Gathered:
    """What the turns of a campaign have yielded: finished runs by variant, and what went wrong."""

    runs: dict[str, list[Finished]]
    problems: list[Problem]


def gather(
    task: Task,
    journal: Journal,
    run: Callable[[Variant, float], Result],
    time_left: Callable[[], float],
    progress: Callable[[Turn, Result | None], None],
) -> Gathered:
    """Take every turn that the journal does not hold yet.

    Parameters:
        task: What runs.
        journal: Of this campaign.
        run: Runs a variant once, for so many seconds at most.
        time_left: Seconds until everything must have ended; infinite where nobody set an end.
        progress: Told of each turn before it (without a result) and after.

    Raises:
        BudgetError: The time is spent; the journal holds every run that ended within it.
    """
    variants = {variant.name: variant for variant in task.variants}
    repeats = {name: int(table["repeats"]) for name, table in journal.header["variants"].items()}
    done = {(finished.variant, finished.round) for finished in journal.finished}
    # A variant that ends otherwise does so again: there is nothing more to learn from further runs.
    settled = {finished.variant for finished in journal.finished if finished.result.outcome != OK}
    seconds = dict(task.run_seconds)
    problems: list[Problem] = []
    for turn in order(journal.header["campaign"]["id"], task.script.reference, repeats):
        if turn.variant not in variants or turn.variant in settled or (turn.variant, turn.round) in done:
            continue
        variant, limit = variants[turn.variant], time_left()
        if limit <= 0 or limit < (seconds.get(turn.variant) or 0.0):
            raise BudgetError
        progress(turn, None)
        result = run(variant, limit)
        if result.outcome == TIMED_OUT and limit < variant.timeout:
            # It was given less than it asks for: that says nothing of it.
            raise BudgetError
        # Kept first, then told of: what was said to be done is done, whatever comes in between.
        if result.outcome == FAILED:
            problems.append(problem_of(task.script, variant, result))
        else:
            journal.add(Finished(turn.variant, turn.round, turn.place, result))
        progress(turn, result)
        seconds[turn.variant] = result.seconds
        if result.outcome != OK:
            settled.add(turn.variant)
    failed = settled - {finished.variant for finished in journal.finished if finished.result.outcome != OK}
    runs: dict[str, list[Finished]] = {}
    for finished in journal.finished:
        if finished.variant in variants and finished.variant not in failed:
            runs.setdefault(finished.variant, []).append(finished)
    return Gathered(runs, problems)


def whole(task: Task, journal: Journal) -> Gathered:
    """What a campaign that was stopped has of whole variants: every round of them, or how else they ended."""
    repeats = {name: int(table["repeats"]) for name, table in journal.header["variants"].items()}
    runs: dict[str, list[Finished]] = {}
    for finished in journal.finished:
        runs.setdefault(finished.variant, []).append(finished)
    wanted = {variant.name for variant in task.variants}
    return Gathered(
        {
            name: found
            for name, found in runs.items()
            if name in wanted
            and (len(found) == repeats[name] or any(one.result.outcome != OK for one in found))
        },
        [],
    )


def problem_of(script: Script, variant: Variant, result: Result) -> Problem:
    """What a run that did not end well says to the author of the script."""
    failure = result.failure or Failure(1, result.outcome, "record it again")
    which = "" if variant.name == "default" else f" (variant {variant.name})"
    return Problem(script.path, failure.line, f"{failure.what}{which}", failure.mend)


def lay_over(
    task: Task, machine: str, campaign_id: str, campaign: Campaign, gathered: Gathered
) -> tuple[Record | None, list[Problem]]:
    """The record with what a campaign has yielded (None if nothing), and what it could not take over.

    A timeout or a crash never replaces a measurement that still describes the script: it says something of
    this sitting, and the measurement would be lost.
    """
    old = task.record or Record(task.script.reference, machine)
    variants = dict(old.variants)
    problems = []
    written = []
    for variant in task.variants:
        if variant.name not in gathered.runs:
            continue
        new = variant_record(task, variant, campaign_id, gathered.runs[variant.name])
        known = old.variants.get(variant.name)
        if new.outcome != OK and known is not None and known.outcome == OK and _unchanged(known, new):
            what = f"{new.outcome} ({new.error}), where an earlier campaign measured it, whose record stays"
            mend = (
                "find out why; if it is so from now on, delete the variant from its record and record again"
            )
            problems.append(Problem(task.script.path, 1, f"variant {variant.name}: {what}", mend))
            continue
        variants[variant.name] = new
        written.append(variant.name)
        if new.outcome in {TIMED_OUT, CRASHED}:
            problems.append(problem_of(task.script, variant, _bad(gathered.runs[variant.name])))
    if not written:
        return None, problems
    campaigns = campaigns_of(variants, old.campaigns | {campaign_id: campaign})
    line = {
        "date": campaign.finished[:10],
        "campaign": campaign_id,
        "variants": written,
        "medians": {name: medians(variants[name].runs) for name in written},
    }
    history = list(old.history)
    if history and history[-1]["campaign"] == campaign_id:
        # What was whole when it was stopped is in the record already.
        before = history.pop()
        line["variants"] = [*dict.fromkeys([*before["variants"], *written])]
        line["medians"] = before["medians"] | line["medians"]
    # In the order the script declares them; those it no longer has come last.
    place = {name: number for number, name in enumerate(task.declared)}
    ranked = sorted(variants, key=lambda name: place.get(name, len(place)))
    ordered = {name: variants[name] for name in ranked}
    return replace(old, campaigns=campaigns, variants=ordered, history=(*history, line)), problems


def _unchanged(old: VariantRecord, new: VariantRecord) -> bool:
    same = ("code", "parameters", "ranks", "environment", "meters", "inputs")
    return all(getattr(old, name) == getattr(new, name) for name in same)


def _bad(runs: Sequence[Finished]) -> Result:
    return next(finished.result for finished in runs if finished.result.outcome != OK)


def variant_record(
    task: Task, variant: Variant, campaign: str, finished: Sequence[Finished]
) -> VariantRecord:
    """What the runs of a variant amount to: all of them if each ended well, else none and the reason."""
    ordered = sorted(finished, key=lambda each: each.place)
    bad = next((each for each in ordered if each.result.outcome != OK), None)
    told = bad or ordered[0]
    error = None
    if bad is not None:
        failure = bad.result.failure or Failure(1, bad.result.outcome, "")
        error = (
            f"{task.script.path}:{failure.line}: {failure.what} (run {bad.round + 1} of {variant.repeats})"
        )
    return VariantRecord(
        campaign=campaign,
        outcome=told.result.outcome,
        error=error,
        parameters=variant.parameters,
        ranks=variant.ranks,
        environment=variant.environment,
        meters=variant.meters,
        code=task.script.code_digest,
        inputs=task.inputs,
        output=told.result.output,
        runs=() if bad else tuple(_run(each) for each in ordered),
    )


def _run(finished: Finished) -> Run:
    first, *others = finished.result.ranks
    return Run(
        place=finished.place,
        metrics=first["metrics"],
        cells=first["cells"],
        baseline_memory=first["baseline_memory"],
        other_ranks=tuple(
            RankRun(rank["metrics"], rank["cells"], rank["baseline_memory"], rank.get("blocks", {}))
            for rank in others
        ),
        blocks=first.get("blocks", {}),
    )


def medians(runs: Sequence[Run]) -> dict[str, float]:
    """The median of each metric that is one number."""
    if not runs:
        return {}
    found = {}
    for name in runs[0].metrics:
        values = [value for run in runs if not isinstance(value := run.metrics[name], list)]
        if len(values) == len(runs):
            found[name] = float(median(values))
    return found


def header(task: Task, campaign: dict[str, Any], key: dict[str, Any]) -> dict[str, Any]:
    """The header of a campaign's journal: what must be as it was for its runs to count together."""
    return {
        "campaign": campaign,
        "key": {**key, "code": task.script.code_digest, "inputs": task.inputs},
        "variants": {
            variant.name: {
                "parameters": variant.parameters,
                "ranks": variant.ranks,
                "environment": variant.environment,
                "meters": list(variant.meters),
                "repeats": variant.repeats,
            }
            for variant in task.variants
        },
    }


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """`moment` as records write it."""
    return moment.strftime(TIME)
