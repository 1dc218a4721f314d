"""Decide what a recording runs on this machine, for how long, and how runners of a kind divide it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from benchbook.content.machines import MachineDescription
from benchbook.content.metadata import NEEDS
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.records import Record, VariantRecord, described_campaigns
from benchbook.content.script import Script, Variant, read_script
from benchbook.machines.gpus import Sheet, sheet_of
from benchbook.machines.rights import missing_rights
from benchbook.query.freshness import Verdict, all_in_one, input_digests, judge_record, judge_variants
from benchbook.recording.estimate import expected_seconds
from benchbook.statistics.summary import median

# What a plan is of: what is not fresh, everything, or everything once more beside what is recorded.
Which = Literal["stale", "all", "verify"]

# What starting a process and reading its results adds to the cells of a run, and a fork server to a script:
# one for each environment.
RUN_SECONDS, SCRIPT_SECONDS = 0.1, 4.0


@dataclass(frozen=True)
class Task:
    """One script with those of its variants that will run.

    Parameters:
        script: What runs.
        path: Its file.
        inputs: Digests of its inputs.
        record: What is known on this machine so far.
        declared: The names of all its variants, in order.
        variants: In the declared order, the baseline among them.
        verdicts: On each of them, why it runs; of one that is fresh, beside what.
        run_seconds: Of one run of each by earlier records, else estimated; None where nothing tells.
        estimated: Those of which it is an estimate.
        kept: How many runs of each an interrupted campaign has left, where a plan counts them as done.
    """

    script: Script
    path: Path
    inputs: dict[str, str]
    record: Record | None
    declared: tuple[str, ...]
    variants: tuple[Variant, ...]
    verdicts: dict[str, Verdict]
    run_seconds: dict[str, float | None]
    estimated: frozenset[str] = frozenset()
    kept: Mapping[str, int] = field(default_factory=dict)

    @property
    def worth(self) -> int:
        """What is recorded first where time is short has the largest."""
        return self.script.metadata.worth

    @property
    def runs(self) -> int:
        """How many processes (or groups of ranks) it takes."""
        return sum(self.left_of(variant) for variant in self.variants)

    def left_of(self, variant: Variant) -> int:
        """How many runs of a variant are left."""
        return variant.repeats - self.kept.get(variant.name, 0)

    def reason_of(self, variant: Variant) -> str:
        """Why a variant runs, and how much of it is done."""
        reason, kept = self.verdicts[variant.name].reason, self.kept.get(variant.name, 0)
        return f"{reason}; {kept_words(kept, variant.repeats)}" if kept else reason

    @property
    def seconds(self) -> float | None:
        """How long it takes by earlier records or estimates; None if neither tells of one of its variants."""
        total = SCRIPT_SECONDS * len({tuple(sorted(each.environment.items())) for each in self.variants})
        for variant in self.variants:
            each = self.run_seconds[variant.name]
            if each is None and self.left_of(variant):
                return None
            total += self.left_of(variant) * ((each or 0.0) + RUN_SECONDS)
        return total

    def table(self) -> dict[str, Any]:
        """This task as `record --plan --json` prints it."""
        return {
            "script": self.script.reference,
            "worth": self.worth,
            "runs": self.runs,
            "expected_minutes": rounded_minutes(expected_minutes([self])),
            "estimated": bool(self.estimated),
            "at_most_minutes": round(
                sum(self.left_of(each) * each.timeout for each in self.variants) / 60, 2
            ),
            "variants": [
                {
                    "variant": variant.name,
                    "repeats": variant.repeats,
                    "kept": self.kept.get(variant.name, 0),
                    "state": self.verdicts[variant.name].state,
                    "reason": self.verdicts[variant.name].reason,
                }
                for variant in self.variants
            ],
        }


@dataclass(frozen=True)
class Plan:
    """What will run, in that order, what cannot, and what was left out.

    Parameters:
        elsewhere: Scripts for another kind of machine.
        skipped: Scripts that need what this machine does not allow, and what that is.
    """

    tasks: tuple[Task, ...]
    problems: tuple[Problem, ...]
    elsewhere: tuple[str, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def venvs(self) -> tuple[str, ...]:
        """The environments of their own that the tasks run in."""
        return tuple(sorted({task.script.metadata.venv for task in self.tasks} - {""}))

    @property
    def groups(self) -> Iterator[tuple[int, tuple[Task, ...]]]:
        """The tasks of the same worth, the largest first."""
        for worth, tasks in itertools.groupby(self.tasks, key=lambda task: task.worth):
            yield worth, tuple(tasks)


@dataclass(frozen=True)
class _Wanted:
    """Which variants of a script are meant, and how often; as `make_plan` is told."""

    which: Which
    variant: str | None
    repeats: int | None


def make_plan(
    project: Project,
    scripts: Sequence[str],
    machine: MachineDescription,
    load: Callable[[Script], Record | None],
    *,
    which: Which = "stale",
    variant: str | None = None,
    repeats: int | None = None,
    smallest: bool = False,
    missing: Callable[[Iterable[str]], Mapping[str, str]] = missing_rights,
) -> Plan:
    """What to run.

    Parameters:
        project: The checkout.
        scripts: `guide/script.py` or guides; none for all.
        machine: Where it would run.
        load: The record of a script on this machine.
        which: Only what is not fresh, everything, or everything to compare it with its record.
        variant: Only this one, with its baseline; a problem where times of others in the record would stay.
        repeats: Runs per variant, instead of what each asks for.
        smallest: Every variant at its smallest, once.
        missing: What of some rights is not there, and why.

    Raises:
        BenchbookError: A script or variant that was named does not exist, or cannot run here.
    """
    tasks: list[Task] = []
    problems: list[Problem] = []
    elsewhere: list[str] = []
    skipped: dict[str, str] = {}
    without: dict[str, list[str]] = {}
    wanted = _Wanted(which, variant, repeats)
    for path in choose(project, scripts):
        try:
            script = read_script(path, project.root)
            if not script.runs_on(machine.kinds):
                elsewhere.append(script.reference)
                continue
            if script.metadata.rights and (reasons := missing(script.metadata.rights)):
                skipped[script.reference] = "; ".join(f"{need}: {why}" for need, why in reasons.items())
                continue
            names = [each.name for each in script.variants(machine.kinds)]
            if variant is not None and variant not in names and not smallest:
                without[script.path] = names
                continue
            inputs = _inputs(script, path)
            if smallest:
                task = _smallest_task(script, path, inputs, machine)
            else:
                task = _task(script, path, inputs, machine, load(script), wanted)
        except BenchbookError as error:
            problems += error.problems
            continue
        except (RecursionError, MemoryError):
            # The parsers of Python and TOML call themselves for each level, and give up at a thousand or so.
            fix = "take its lists, tables and expressions apart"
            problems.append(Problem(project.relative(path), 1, "is nested too deeply to be read", fix))
            continue
        if task.variants:
            tasks.append(task)
    # Where several scripts are meant, only those that have the variant are.
    if variant is not None and not tasks:
        for shown, names in without.items():
            fix = did_you_mean(variant, names, "variant")
            problems.append(Problem(shown, 1, f"has no variant `{variant}`", fix))
    if scripts and elsewhere and not tasks and not problems:
        path = project.snippets / elsewhere[0]
        needs = ", ".join(read_script(path, project.root).metadata.needs)
        what = f"needs {needs}, which {machine.name} has not"
        fix = f"record it where there is one, or add one of {', '.join(NEEDS)} to its `needs`"
        raise BenchbookError(Problem(project.relative(path), 1, what, fix))
    if scripts and skipped and not tasks and not problems:
        fix = "record it where that is allowed, as root of a machine of your own; its record stays as it is"
        raise BenchbookError(
            *(
                Problem(f"snippets/{name}", 1, f"needs what it may not do here ({why})", fix)
                for name, why in skipped.items()
            )
        )
    tasks.sort(key=lambda task: -task.worth)
    return Plan(tuple(tasks), tuple(problems), tuple(elsewhere), skipped)


def choose(project: Project, named: Sequence[str]) -> tuple[Path, ...]:
    """The files that `named` means: scripts (also by path) and guides; all where none is named.

    Raises:
        BenchbookError: One is neither.
    """
    known = project.scripts()
    if not named:
        return tuple(known.values())
    chosen: dict[str, Path] = {}
    problems = []
    for name in named:
        wanted = name.replace("\\", "/").rstrip("/").removeprefix("./").removeprefix("snippets/")
        if "/" in wanted and not wanted.endswith(".py"):
            wanted += ".py"
        found = {key: path for key, path in known.items() if key == wanted or key.startswith(f"{wanted}/")}
        if not found:
            guides = {key.partition("/")[0] for key in known}
            fix = did_you_mean(
                wanted, known if "/" in wanted else guides, "script" if "/" in wanted else "guide"
            )
            problems.append(Problem(name, 1, "is neither a script nor a guide", fix))
        chosen.update(found)
    if problems:
        raise BenchbookError(*problems)
    return tuple(path for key, path in known.items() if key in chosen)


def _inputs(script: Script, path: Path) -> dict[str, str]:
    inputs = input_digests(script, path.parent)
    for name, digest in inputs.items():
        if digest == "missing":
            line = script.metadata.line_of("inputs")
            raise BenchbookError(Problem(script.path, line, f"its input {name} is not there", "add the file"))
    return inputs


def _smallest_task(script: Script, path: Path, inputs: dict[str, str], machine: MachineDescription) -> Task:
    """Every variant at its smallest, once."""
    once = tuple(replace(variant, repeats=1) for variant in script.variants(machine.kinds, smallest=True))
    verdicts = {variant.name: Verdict("missing", "at its smallest") for variant in once}
    unknown: dict[str, float | None] = dict.fromkeys(verdicts)
    return Task(script, path, inputs, None, tuple(verdicts), once, verdicts, unknown)


def _task(
    script: Script,
    path: Path,
    inputs: dict[str, str],
    machine: MachineDescription,
    record: Record | None,
    wanted: _Wanted,
) -> Task:
    variants = script.variants(machine.kinds)
    verdicts = _verdicts(script, variants, record, inputs, wanted)
    everything = wanted.which != "stale"
    first = variants[0].name
    if wanted.variant is not None:
        names = {wanted.variant, first}
        if record is not None and wanted.which != "verify":
            _see_that_no_times_mix(script, record, wanted.variant, verdicts.keys() - names)
    else:
        names = set(verdicts) if everything else not_fresh(script, verdicts)
    chosen = [variant for variant in variants if variant.name in names]
    if wanted.repeats is not None:
        chosen = [replace(variant, repeats=wanted.repeats) for variant in chosen]
    for name in names if not everything else ():
        if verdicts[name].state == "fresh":
            role = "baseline beside" if name == first else "in one campaign with"
            verdicts[name] = Verdict("fresh", f"{role} what is recorded")
    measured = record.variants if record is not None else {}
    seconds = {variant.name: run_seconds(measured.get(variant.name)) for variant in chosen}
    known = asdict(machine.accelerator) if machine.accelerator else {"name": machine.name}
    sheet = sheet_of({"accelerator": known})
    estimates = _estimates(script, [each for each in chosen if seconds[each.name] is None], sheet)
    declared = tuple(each.name for each in variants)
    return Task(
        script,
        path,
        inputs,
        record,
        declared,
        tuple(chosen),
        verdicts,
        seconds | estimates,
        frozenset(estimates),
    )


def not_fresh(script: Script, verdicts: Mapping[str, Verdict]) -> set[str]:
    """The variants that run where only what is not fresh does."""
    names = {name for name, verdict in verdicts.items() if verdict.state != "fresh"}
    # Times are compared within one campaign: one that is measured leaves none behind in another.
    return set(verdicts) if names and script.is_timed else names


def _verdicts(
    script: Script,
    variants: Sequence[Variant],
    record: Record | None,
    inputs: dict[str, str],
    wanted: _Wanted,
) -> dict[str, Verdict]:
    """The verdicts on `variants`; where only what is not fresh runs, stale is too what `check` refuses."""
    if wanted.which == "stale":
        return judge_variants(script, variants, record, inputs, wanted.repeats)
    return {variant.name: judge_record(script, variant, record, inputs) for variant in variants}


def _see_that_no_times_mix(script: Script, record: Record, variant: str, others: Collection[str]) -> None:
    """Raise BenchbookError where `variant` and the baseline leave times of another campaign in `others`."""
    if script.is_timed and described_campaigns(record.variants, script.codes, others):
        what = f"variant {variant} alone would leave times of two campaigns in one record"
        raise BenchbookError(Problem(script.path, 1, what, all_in_one(script)))


def _estimates(script: Script, variants: Sequence[Variant], sheet: Sheet | None) -> dict[str, float | None]:
    """The seconds of one run of each of `variants` that can be estimated."""
    if sheet is None:
        return {}
    found: dict[str, float | None] = {}
    for variant in variants:
        # A wrong expression, which the check names, costs an estimate and no recording.
        with contextlib.suppress(BenchbookError):
            found[variant.name] = expected_seconds(script, variant, sheet)
    return {name: seconds for name, seconds in found.items() if seconds is not None}


def run_seconds(variant: VariantRecord | None) -> float | None:
    """How long a run of a variant took: the median over its runs of all its cells together."""
    if variant is None or not variant.runs:
        return None
    return median(
        [sum(float(run.meter(cell, "seconds") or 0.0) for cell in run.cells) for run in variant.runs]
    )


def expected_minutes(tasks: Collection[Task]) -> float | None:
    """How long `tasks` take together, None where nothing tells of one of them."""
    known = [task.seconds for task in tasks if task.seconds is not None]
    return sum(known) / 60 if len(known) == len(tasks) else None


def left(tasks: Collection[Task]) -> str:
    """How much `tasks` are, in words."""
    runs = sum(task.runs for task in tasks)
    expected = expected_minutes(tasks)
    minutes = "" if expected is None else f", about {expected:.1f} minutes"
    return f"{len(tasks)} script(s), {runs} run(s){minutes}"


def kept_words(kept: int, repeats: int) -> str:
    """How many runs of a variant an interrupted campaign has left."""
    return f"{kept} of {repeats} runs are kept of a campaign that `record` goes on with"


def rounded_minutes(minutes: float | None) -> float | None:
    """Minutes as a plan in JSON writes them."""
    return None if minutes is None else round(minutes, 2)


# Of a script that was never timed there, half of what it may take at most is as good a guess as any.
SHARE_OF_MOST = 0.5


def matrix(tasks: Sequence[Task], runners: int) -> dict[str, list[dict[str, Any]]]:
    """At most `runners` shares of about the same length, as the `matrix` of a job.

    A script is never divided: its variants are compared within one session. The longest goes first, each to
    the runner that has least (Graham 1969, "Bounds on Multiprocessing Timing Anomalies").
    """
    shares: list[list[Task]] = [[] for _ in range(min(runners, len(tasks)))]
    for task in sorted(tasks, key=lambda task: (-_seconds(task), task.script.reference)):
        min(shares, key=lambda share: sum(map(_seconds, share))).append(task)
    return {
        "include": [
            {
                "share": number,
                "scripts": " ".join(sorted(task.script.reference for task in share)),
                "expected_minutes": rounded_minutes(expected_minutes(share)),
            }
            for number, share in enumerate(shares, start=1)
        ]
    }


def _seconds(task: Task) -> float:
    if task.seconds is not None:
        return task.seconds
    return SHARE_OF_MOST * sum(task.left_of(variant) * variant.timeout for variant in task.variants)
