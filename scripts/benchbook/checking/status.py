"""Say of every script on every machine whether its records are fresh, and why not."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import is_published, load_record
from benchbook.content.script import Script, read_script
from benchbook.query.freshness import State, Verdict, input_digests, judge_record, judge_variants, kinds_of
from benchbook.recording.journal import journal_path
from benchbook.recording.plan import Task, not_fresh


@dataclass(frozen=True)
class StatusRow:
    """The verdict on one variant of one script on one machine, or on its prediction there."""

    script: str
    variant: str
    machine: str
    state: State
    reason: str
    kind: Literal["record", "prediction"] = "record"

    def as_dict(self) -> dict[str, str]:
        """The row as `benchbook status --json` prints it."""
        return asdict(self)


def script_status(
    project: Project, script: Script, machine: str, kinds: Sequence[str], together: bool = False
) -> list[StatusRow]:
    """The verdicts on each variant of `script` on `machine`, of `kinds`; none if it cannot run there.

    On a machine whose figures are quoted, what no publication names is not missing: nobody can record it.

    Parameters:
        project: The checkout.
        script: Whose variants.
        machine: The name of a machine.
        kinds: What it is (`machine_kinds`).
        together: Whether stale is too what `check` says of the record as a whole, and the reason names the
            runs that an interrupted campaign has left.
    """
    if not script.runs_on(kinds):
        return []
    path = project.record_path(machine, script.reference)
    variants = script.variants(kinds)
    digests = input_digests(script, project.snippets / script.guide)
    try:
        record = load_record(path, project.relative(path))
    except BenchbookError as error:
        verdicts = [Verdict("invalid", error.problems[0].what)] * len(variants)
    else:
        if together:
            # As for `check`, a machine that is lent cannot run more as soon as more is asked for.
            most = 1 if is_lent(project, machine) else None
            judged = judge_variants(script, variants, record, digests, most)
            names = not_fresh(script, judged)
            chosen = tuple(variant for variant in variants if variant.name in names)
            script_path = project.snippets / script.reference
            task = Task(script, script_path, digests, record, tuple(judged), chosen, judged, {})
            kept = _with_what_is_kept(task, journal_path(project, machine, script.reference))
            verdicts = [*kept.values()]
        else:
            verdicts = [judge_record(script, variant, record, digests) for variant in variants]
    return [
        StatusRow(script.reference, variant.name, machine, verdict.state, verdict.reason)
        for variant, verdict in zip(variants, verdicts, strict=True)
        if not (verdict.state == "missing" and is_published(machine))
    ]


def is_lent(project: Project, machine: str) -> bool:
    """Whether a machine is lent to the maintainers, who cannot record there whenever they want."""
    return machine in project.config.machines and machine not in project.config.blocking_machines


def _with_what_is_kept(task: Task, path: Path) -> dict[str, Verdict]:
    """The verdicts on all variants, with the runs that the journal in `path` holds of those of the task."""
    if not path.is_file():
        return task.verdicts
    # It imports what only a machine that records has.
    from benchbook.recording.campaign import kept_runs, now

    task = replace(task, kept=kept_runs(task, path, now())[0])
    told = {
        each.name: Verdict(task.verdicts[each.name].state, task.reason_of(each)) for each in task.variants
    }
    return task.verdicts | told


def project_status(project: Project) -> list[StatusRow]:
    """The verdicts on every script on every machine, scripts first, and on what is predicted of them.

    Raises:
        BenchbookError: A script, a machine's description, or a declaration of predictions cannot be read.

    """
    # What validates declarations need not be there to record.
    from benchbook.checking.predictions import prediction_rows

    scripts = [read_script(path, project.root) for path in project.scripts().values()]
    machines = {machine: kinds_of(project, machine) for machine in project.machines}
    predicted = prediction_rows(project)
    return [
        row
        for script in scripts
        for row in (
            *(
                row
                for machine, kinds in machines.items()
                for row in script_status(project, script, machine, kinds, together=True)
            ),
            *(
                StatusRow(**asdict(row), kind="prediction")
                for row in predicted
                if row.script == script.reference
            ),
        )
    ]


def print_status(rows: Iterable[StatusRow]) -> None:
    """Print the rows, script by script, with the reason of each that is not fresh."""
    console = Console(highlight=False, soft_wrap=True)
    colours = {
        "fresh": "green",
        "stale": "yellow",
        "missing": "yellow",
        "invalid": "red",
        "published": "blue",
        "predicted": "blue",
    }
    for script, group in itertools.groupby(rows, key=lambda row: row.script):
        console.print(f"[bold]{script}[/]")
        for row in group:
            reason = "" if row.state == "fresh" else f": {escape(row.reason)}"
            if row.kind == "prediction" and row.state != "predicted":
                reason = f" (prediction){reason}"
            console.print(f"  [{colours[row.state]}]{row.state:9}[/]  {row.machine}  {row.variant}{reason}")
