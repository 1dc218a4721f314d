"""Record one script: its variants interleaved in rounds, each run a fresh process, one record at the end."""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from benchbook.content.formats import MOMENT, is_same
from benchbook.content.magnitudes import odd_number
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.records import (
    MOST_CAMPAIGNS,
    MOST_POINTS,
    Campaign,
    HistoryLine,
    RankRun,
    Record,
    Run,
    VariantRecord,
    campaigns_of,
    described_campaigns,
    measured_days,
)
from benchbook.content.regions import region_lines, regions_of
from benchbook.content.script import Script, Variant
from benchbook.query.freshness import all_in_one, input_digests
from benchbook.recording.endings import MAKE_ROOM
from benchbook.recording.hosts import (
    Host,
    HostError,
    Hosts,
    SilentHostError,
    preload_names,
    temporary_folder,
)
from benchbook.recording.jobs import CRASHED, FAILED, OK, OUT_OF_MEMORY, TIMED_OUT, Failure, Job, Result
from benchbook.recording.journal import Finished, Journal, read_journal, why_not_resumed
from benchbook.recording.plan import Task
from benchbook.recording.traces import entries_of, files_of, only_first
from benchbook.statistics.summary import median

STOPPED = "let the script stop no process that it has not started, nor anything on this machine"


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


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
        traces=list(script.metadata.traces),
        seeds=[metric.name for metric in script.metadata.metrics.values() if metric.seeds],
        meters=list(variant.meters),
        ranks=variant.ranks,
        timeout=min(variant.timeout, limit),
        docstring=script.docstring,
        strict=strict,
    )


def host_of(hosts: Hosts, script: Script, variant: Variant, preload: tuple[str, ...] | None = None) -> Host:
    """The host that runs a variant.

    Parameters:
        hosts: Where it is taken from.
        script: Whose variant.
        variant: What runs.
        preload: What it has imported; None for what the script imports, and nothing else.

    Raises:
        BenchbookError: There is none to run it.
    """
    if preload is None:
        preload = preload_names(cell.source for cell in script.cells)
    metadata = script.metadata
    return hosts.host(variant.environment, preload, script.path, metadata.venv, metadata.line_of("venv"))


def run_once(
    hosts: Hosts,
    task: Task,
    variant: Variant,
    root: str,
    limit: float = math.inf,
    strict: bool = False,
    preload: tuple[str, ...] | None = None,
) -> Result:
    """Run a variant once, a second time if the host and not the script gave way.

    Its parameters are those of `make_job` and `host_of`.

    Raises:
        BenchbookError: There is no host to run it, or one of its inputs changed while it ran.
    """
    script = task.script
    ends = time.monotonic() + limit
    words = ""
    for _ in range(2):
        host = host_of(hosts, script, variant, preload)
        left = max(0.0, ends - time.monotonic())
        try:
            result = host.run(make_job(script, variant, str(task.path.resolve()), root, left, strict))
        except HostError as error:
            words = str(error)
            hosts.forget(host)
            continue
        except SilentHostError as error:
            # Once more, it would take as long.
            hosts.forget(host)
            what = f"the process that watches over the script gave {error}, and was ended"
            return Result(FAILED, Failure(1, what, STOPPED))
        _see_that_inputs_are_the_same(task)
        return result
    what = f"the process that watches over the script ended twice ({words})"
    return Result(FAILED, Failure(1, what, "see whether something on this machine kills processes"))


def _see_that_inputs_are_the_same(task: Task) -> None:
    """Raise BenchbookError where an input is no longer what the record of a task will say it was."""
    changed = [
        name
        for name, digest in input_digests(task.script, task.path.parent).items()
        if digest != task.inputs[name]
    ]
    if changed:
        what = f"its input {changed[0]} changed while it was recorded, and the run that saw it is not kept"
        fix = "leave its inputs as they are until it is recorded, and record it again"
        raise BenchbookError(Problem(task.script.path, task.script.metadata.line_of("inputs"), what, fix))


Ended = Literal["complete", "spent", "interrupted"]


@dataclass(frozen=True)
class Gathered:
    """What the turns of a campaign have yielded.

    Parameters:
        runs: Finished runs by variant, those of whole variants only.
        problems: What went wrong.
        ended: Whether every turn was taken; else whether the time was spent, or somebody ended it.
    """

    runs: dict[str, list[Finished]]
    problems: list[Problem]
    ended: Ended = "complete"


def gather(
    task: Task,
    journal: Journal,
    run: Callable[[Variant, float], Result],
    time_left: Callable[[], float],
    progress: Callable[[Turn, Result | None], None],
    idle: bool = True,
    moment: Callable[[], datetime] = now,
) -> Gathered:
    """Take every turn that the journal does not hold yet, as far as the time goes.

    A run that takes longer than is left is left for later, and the turns after it are taken. Where that is an
    estimate, it keeps no run from being the first. A run that crashed or found no memory by chance, it seems,
    is taken again, and so is one that ended after a shorter timeout than is declared now.

    Parameters:
        task: What runs.
        journal: Of this campaign; it holds every run that ended in time.
        run: Runs a variant once, for so many seconds at most.
        time_left: Seconds until everything must have ended; infinite where nobody set an end.
        progress: Told of each turn before it (without a result) and after.
        idle: Whether nothing ran since the time began.
        moment: Tells when a run ended.
    """
    variants = {variant.name: variant for variant in task.variants}
    forget_cut_short(task, journal)
    done = journal.done
    # A variant that ends otherwise does so again: there is nothing more to learn from further runs.
    settled = {finished.variant for finished in journal.finished if finished.result.outcome != OK}
    seconds = dict(task.run_seconds)
    estimated = set(task.estimated)
    failed: set[str] = set()
    problems: list[Problem] = []
    ended: Ended = "complete"
    try:
        turns = deque(_turns(task, journal))
        while turns:
            turn = turns.popleft()
            if turn.variant in settled or turn.variant in failed or (turn.variant, turn.round) in done:
                continue
            variant, limit = variants[turn.variant], time_left()
            known = seconds.get(turn.variant) or 0.0
            if limit <= 0 or (limit < known and (not idle or turn.variant not in estimated)):
                ended = "spent"
                continue
            progress(turn, None)
            result, idle = run(variant, limit), False
            if result.outcome == TIMED_OUT and (given := min(limit, result.seconds)) < variant.timeout:
                # It was given less than it asks for, by the budget, or by what was left of that once the host
                # of a first attempt had ended: that says nothing of it, but that others go first.
                journal.cut(turn.variant, given)
                ended = "spent"
                continue
            # Kept first, then told of: what was said to be done is done, whatever comes in between.
            if _by_chance(journal, turn, result):
                journal.take_again(
                    turn.variant, turn.round, result.failure.what if result.failure else result.outcome
                )
                progress(turn, result)
                turns.appendleft(turn)
                continue
            result = _as_declared(task.script, _few_enough(task.script, variant, result))
            if result.outcome == FAILED:
                failed.add(turn.variant)
                problems.append(problem_of(task.script, variant, result))
            else:
                result = only_first(_told_twice(journal, turn, result), turn.round)
                journal.add(Finished(turn.variant, turn.round, turn.place, result, stamp(moment())))
            progress(turn, result)
            seconds[turn.variant] = result.seconds
            estimated.discard(turn.variant)
            if result.outcome != OK:
                settled.add(turn.variant)
    except KeyboardInterrupt:
        ended = "interrupted"
    runs = {name: found for name, found in whole(journal).items() if name in variants and name not in failed}
    return Gathered(runs, problems, ended)


def forget_cut_short(task: Task, journal: Journal) -> None:
    """Leave out of a journal the runs that timed out sooner than their variants are now declared to."""
    timeouts = {variant.name: variant.timeout for variant in task.variants}
    journal.finished = [
        each
        for each in journal.finished
        if each.result.outcome != TIMED_OUT or each.result.seconds >= timeouts.get(each.variant, 0.0)
    ]


def _few_enough(script: Script, variant: Variant, result: Result) -> Result:
    """The result of a run, failed where all runs of the variant would hold more points than a record may."""
    points = sum(
        len(value)
        for rank in result.ranks
        for value in (*rank["metrics"].values(), *rank.get("blocks", {}).values())
        if isinstance(value, list)
    )
    if points * variant.repeats <= MOST_POINTS:
        return result
    what = (
        f"a run yields {points} points of series and blocks, and all {variant.repeats} may hold {MOST_POINTS}"
    )
    line = script.metadata.line_of("metrics")
    return replace(result, outcome=FAILED, failure=Failure(line, what, "give it fewer, such as every tenth"))


def _as_declared(script: Script, result: Result) -> Result:
    """The result of a run, failed where a metric is what none of its unit can be: no record may hold it."""
    values = (each for rank in result.ranks for each in rank["metrics"].items())
    for name, value in values:
        for item in value if isinstance(value, list) else [value]:
            if (odd := odd_number(item, script.metadata.metrics[name])) is not None:
                line, fix = script.metadata.line_of(name), "assign what was measured, in its unit"
                failure = Failure(line, f"the metric `{name}` is {odd}", fix)
                return replace(result, outcome=FAILED, failure=failure)
    return result


def _by_chance(journal: Journal, turn: Turn, result: Result) -> bool:
    """Whether a crash or a lack of memory may be no fault of the script's, and is its run's first.

    Anyone can kill a process, or take the memory; and where earlier runs of a variant went well, this one may
    after all.
    """
    if result.outcome not in {CRASHED, OUT_OF_MEMORY} or (turn.variant, turn.round) in journal.again:
        return False
    went_well = {finished.variant for finished in journal.finished if finished.result.outcome == OK}
    return result.killed or turn.variant in went_well


def _told_twice(journal: Journal, turn: Turn, result: Result) -> Result:
    """The result of a run, which says so where it crashed as the attempt before it did."""
    if result.outcome != CRASHED or result.failure is None or (turn.variant, turn.round) not in journal.again:
        return result
    what = f"{result.failure.what}, in a second attempt too"
    return replace(result, failure=replace(result.failure, what=what))


def _turns(task: Task, journal: Journal) -> list[Turn]:
    """The turns of the variants that are wanted, in their order; of those that once ran out of time, last."""
    wanted = {variant.name for variant in task.variants}
    turns = order(journal.header["campaign"]["id"], task.script.reference, repeats_in(journal))
    return sorted(
        (turn for turn in turns if turn.variant in wanted), key=lambda turn: turn.variant in journal.cuts
    )


def repeats_in(journal: Journal) -> dict[str, int]:
    """How often each variant of a campaign runs."""
    return {name: int(table["repeats"]) for name, table in journal.header["variants"].items()}


def declared_in(task: Task, journal: Journal) -> set[str]:
    """The variants of a campaign that its script still declares."""
    return set(repeats_in(journal)) & set(task.declared)


def whole(journal: Journal) -> dict[str, list[Finished]]:
    """The runs of each variant of which every round is there, or which ended otherwise."""
    runs: dict[str, list[Finished]] = {}
    for finished in journal.finished:
        runs.setdefault(finished.variant, []).append(finished)
    repeats = repeats_in(journal)
    return {
        name: found
        for name, found in runs.items()
        if len(found) == repeats[name] or any(one.result.outcome != OK for one in found)
    }


def kept_runs(task: Task, path: Path, moment: datetime) -> tuple[dict[str, int], str]:
    """How many runs of each variant a journal holds that a recording goes on with; else why it does not.

    Of a variant that ended otherwise than well no run is left, and all count. Nothing is written. Packages,
    machine and variables are taken for what they were: the recording itself sees whether they are.

    Parameters:
        task: What would run.
        path: The journal, which need not exist.
        moment: The present.
    """
    if not path.is_file():
        return {}, ""
    journal = read_journal(path, repair=False)
    if journal is None or not isinstance(journal.header, dict):
        return {}, "cannot be read"
    known = journal.header.get("key")
    now_wanted = header(task, {}, known if isinstance(known, dict) else {})
    if why := why_not_resumed(journal, now_wanted, moment) or surpassed(task, journal):
        return {}, why
    forget_cut_short(task, journal)
    done = whole(journal)
    counted = {
        variant.name: variant.repeats
        if variant.name in done
        else sum(one.variant == variant.name for one in journal.finished)
        for variant in task.variants
    }
    return {name: count for name, count in counted.items() if count}, ""


def surpassed(task: Task, journal: Journal) -> str:
    """Why a journal has nothing for the record of a task that is not there already; empty if it has.

    A recording that was killed once its record was in place leaves such a one: laid over the record again,
    its runs would take the place of what was measured since.
    """
    campaign, record = journal.header["campaign"], task.record
    declared = declared_in(task, journal)
    if record is None:
        return ""
    held = {name for name, variant in record.variants.items() if variant.campaign == campaign["id"]}
    if declared <= set(whole(journal)) & held:
        return "is in the record already"
    ended = journal.ended or campaign["started"]
    if any(_measured_since(record, variant.name, campaign["id"], ended) for variant in task.variants):
        return "is older than what the record holds"
    return ""


def _measured_since(record: Record, variant: str, campaign_id: str, ended: str) -> bool:
    """Whether a record holds a variant of another campaign than one that ended then, and of a later one.

    One that ends in the future was dated by a clock that was wrong: nothing would ever be later.
    """
    known = record.variants.get(variant)
    if known is None or known.campaign == campaign_id:
        return False
    campaign = record.campaigns[known.campaign]
    return isinstance(campaign, Campaign) and ended < campaign.finished <= stamp(now())


def problem_of(script: Script, variant: Variant, result: Result) -> Problem:
    """What a run that did not end well says to the author of the script."""
    failure = result.failure or Failure(1, result.outcome, "record it again")
    which = "" if variant.name == "default" else f" (variant {variant.name})"
    # The run's own folder is gone: what is full is the one that it lay in.
    usual = f" (by default below {temporary_folder()}; TMPDIR names another folder)"
    fix = f"{failure.fix}{usual if failure.fix == MAKE_ROOM else ''}"
    return Problem(script.path, failure.line, f"{failure.what}{which}", fix)


def lay_over(
    task: Task, machine: str, campaign_id: str, campaign: Campaign, gathered: Gathered
) -> tuple[Record | None, list[Problem]]:
    """The record with what a campaign has yielded (None if nothing), and what it could not take over.

    What was measured last stays. A timeout or a crash never replaces a measurement that still describes the
    script: it says something of this session, and the measurement would be lost. What a campaign has of a
    timed script replaces none of another one where any of that would stay: times are compared within a
    campaign. The history has one line of each campaign, the newest if there are too many; a line goes that a
    clock dated which was wrong.
    """
    old = task.record or Record.of(task.script.reference, machine)
    new: dict[str, VariantRecord] = {}
    problems = []
    for variant in task.variants:
        if variant.name not in gathered.runs:
            continue
        found = variant_record(task, variant, campaign_id, gathered.runs[variant.name])
        known = old.variants.get(variant.name)
        if _measured_since(old, variant.name, campaign_id, campaign.finished):
            what = f"variant {variant.name}: a later campaign has come in meanwhile, whose record stays"
            problems.append(Problem(task.script.path, 1, what, "record it again if that is meant"))
            continue
        if (
            found.outcome != OK
            and known is not None
            and known.outcome == OK
            and _unchanged(task, known, found)
        ):
            what = (
                f"{found.outcome} ({found.error}), where an earlier campaign measured it, whose record stays"
            )
            fix = "find out why; if it is so from now on, delete the variant from its record and record again"
            problems.append(Problem(task.script.path, 1, f"variant {variant.name}: {what}", fix))
            continue
        new[variant.name] = found
        if found.outcome in {TIMED_OUT, CRASHED}:
            problems.append(problem_of(task.script, variant, _bad(gathered.runs[variant.name])))
        elif found.outcome == OUT_OF_MEMORY and (
            well := sum(one.result.outcome == OK for one in gathered.runs[variant.name])
        ):
            what = f"variant {variant.name}: {OUT_OF_MEMORY} ({found.error}), where {well} run(s) went well"
            fix = "see what else takes memory here; then delete the variant from its record and record again"
            problems.append(Problem(task.script.path, 1, what, fix))
    over = gathered.ended == "complete"
    if task.script.is_timed and _mixes(task, old, campaign_id, new, baseline=not over):
        if new:
            what = "what was measured would stand beside times of another campaign, whose record stays"
            problems.append(Problem(task.script.path, 1, what, all_in_one(task.script)))
        return None, problems if over else []
    if not new:
        return None, problems
    variants = old.variants | new
    written = [*new]
    campaigns = campaigns_of(variants, old.campaigns | {campaign_id: campaign})
    found_medians = {name: medians(variants[name].runs) for name in written}
    first, last = measured_days(now())
    history = {line.campaign: line for line in old.history if first <= line.date <= last}
    if (before := history.get(campaign_id)) is not None:
        # What was whole when it was stopped is in the record already.
        written = [*dict.fromkeys([*before.variants, *written])]
        found_medians = before.medians | found_medians
    # In the place of its line before, if there is one: lines keep their order.
    history[campaign_id] = HistoryLine(campaign.finished[:10], campaign_id, written, found_medians)
    # In the order the script declares them; those it no longer has come last.
    place = {name: number for number, name in enumerate(task.declared)}
    ranked = sorted(variants, key=lambda name: place.get(name, len(place)))
    ordered = {name: variants[name] for name in ranked}
    kept = tuple(history.values())[-MOST_CAMPAIGNS:]
    return replace(old, campaigns=campaigns, variants=ordered, history=kept), problems


def _mixes(task: Task, old: Record, campaign_id: str, new: dict[str, VariantRecord], baseline: bool) -> bool:
    """Whether a record with `new` would hold variants of two campaigns that still describe the script.

    Parameters:
        task: What ran.
        old: The record so far.
        campaign_id: Of the campaign that yielded `new`.
        new: What it yielded, by variant.
        baseline: Whether it is too little, too, where the baseline is not of this campaign.
    """
    variants = old.variants | new
    others = described_campaigns(variants, task.script.codes, task.declared) - {campaign_id}
    first = variants.get(task.declared[0])
    return bool(others) or (baseline and (first is None or first.campaign != campaign_id))


def _unchanged(task: Task, old: VariantRecord, new: VariantRecord) -> bool:
    same = ("parameters", "ranks", "environment", "meters", "inputs")
    return old.code in task.script.codes and all(
        is_same(getattr(old, name), getattr(new, name)) for name in same
    )


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
        regions=() if bad else tuple(told.result.ranks[0].get("regions", ())),
        traces={} if bad else entries_of(told.result),
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


def trace_files(gathered: Gathered) -> dict[str, bytes]:
    """The files of every trace that a campaign has yielded, by their digest."""
    return {
        digest: packed
        for runs in gathered.runs.values()
        for one in runs
        for digest, packed in files_of(one.result).items()
    }


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
        "key": {
            **key,
            "code": task.script.code_digest,
            "inputs": task.inputs,
            "regions": _places(task.script),
        },
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


def _places(script: Script) -> dict[str, list[int]]:
    """Of each region the number of its cell, and how many lines of code stand before it there, and in it."""
    return {
        region.name: [
            number,
            len(region_lines("\n".join(cell.source.split("\n")[: region.first - 1]))),
            len(region_lines(region.source)),
        ]
        for number, cell in enumerate(script.cells)
        for region in regions_of(cell.source)
    }


def stamp(moment: datetime) -> str:
    """`moment` as records write it."""
    return moment.strftime(MOMENT)
