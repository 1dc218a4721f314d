"""Run a sample of what is recorded once more, and hold it against the record; nothing is written."""

from __future__ import annotations

import json
import random
import secrets
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Console
from rich.markup import escape

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.records import VariantRecord
from benchbook.content.script import Script
from benchbook.recording.campaign import variant_record
from benchbook.recording.plan import Plan, Task
from benchbook.recording.session import Session
from benchbook.statistics.differences import Difference, compared

OK = "ok"


@dataclass(frozen=True)
class Finding:
    """How one quantity of a variant, or its outcome, stands to the record."""

    script: str
    variant: str
    quantity: str
    unit: str
    difference: Difference

    def table(self) -> dict[str, Any]:
        """As `record --verify --json` prints it."""
        table = asdict(self)
        return {**table.pop("difference"), **table}


@dataclass(frozen=True)
class Verification:
    """What a verification found: each quantity, outcomes that changed, and what could not be compared."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]

    @property
    def holds(self) -> bool:
        """Whether something was compared, and nothing differs."""
        return bool(self.findings) and not self.problems and not self.differing

    @property
    def differing(self) -> tuple[Finding, ...]:
        """What is not as it was."""
        return tuple(each for each in self.findings if each.difference.agreement == "differs")


def sample(plan: Plan, named: bool, wanted: str | None, draw: random.Random) -> list[Task]:
    """What to run again: only what is recorded and fresh.

    Parameters:
        plan: Everything that could run here.
        named: Whether scripts were named, which run whole; otherwise one variant of each is drawn.
        wanted: The only variant that counts, if any.
        draw: Where chance comes from.
    """
    tasks = []
    for task in plan.tasks:
        recorded = task.record.variants if task.record is not None else {}
        fresh = [
            variant
            for variant in task.variants
            if task.verdicts[variant.name].state == "fresh"
            and variant.name in recorded
            and wanted in {None, variant.name}
        ]
        if fresh and not named and wanted is None:
            fresh = [draw.choice(fresh)]
        if fresh:
            tasks.append(replace(task, variants=tuple(fresh)))
    return tasks


def verify(session: Session, plan: Plan, named: bool, wanted: str | None) -> Verification:
    """Run a sample again and compare it with the records.

    Raises:
        BenchbookError: Nothing that is recorded here could be run again, or the device is in use.
    """
    tasks = sample(plan, named, wanted, random.Random(secrets.randbits(64)))
    if not tasks:
        what = f"nothing that was asked for has a fresh record on {session.machine.name}"
        raise BenchbookError(
            *plan.problems, Problem("snippets/records", 1, what, "record first: `benchbook record`")
        )
    findings: list[Finding] = []
    problems = list(plan.problems)
    for task, variant, finished in session.rerun(tasks, problems):
        assert task.record is not None
        now = variant_record(task, variant, "", finished)
        then = task.record.variants[variant.name]
        if now.outcome != then.outcome:
            what = f"variant {variant.name}: {_ending(now)}, where the record says {_ending(then)}"
            problems.append(Problem(task.script.path, 1, what, "find out why, or record it again"))
        findings += _compare(task.script, variant.name, then, now)
    return Verification(tuple(findings), tuple(problems))


def _ending(variant: VariantRecord) -> str:
    return variant.outcome if variant.error is None else f"{variant.outcome} ({variant.error})"


def _compare(script: Script, name: str, then: VariantRecord, now: VariantRecord) -> list[Finding]:
    units = {metric.name: metric.unit for metric in script.metadata.metrics.values()}
    found = [
        Finding(script.reference, name, after.name, after.unit.symbol, difference)
        for after, difference in compared(then, now, units)
    ]
    if then.outcome == now.outcome != OK:
        found.append(Finding(script.reference, name, "outcome", "", Difference("same", 0, 0, None)))
    return found


def print_verification(verification: Verification, machine: str, as_json: bool, console: Console) -> None:
    """Say what differs, and by how much: for people, or as one JSON object on standard output."""
    if as_json:
        table = {
            "machine": machine,
            "holds": verification.holds,
            "findings": [finding.table() for finding in verification.findings],
            "problems": [str(problem) for problem in verification.problems],
        }
        print(json.dumps(table, indent=2))
    for finding in verification.findings:
        if finding.difference.agreement != "same":
            console.print(_sentence(finding), soft_wrap=True)
    counts = [
        (sum(each.difference.agreement == agreement for each in verification.findings), words)
        for agreement, words in (
            ("same", "as recorded"),
            ("differs", "different"),
            ("undecided", "with too few samples to tell"),
        )
    ]
    said = ", ".join(f"{count} {words}" for count, words in counts if count)
    console.print(f"{machine}: {said or 'nothing compared'}", soft_wrap=True)


def _sentence(finding: Finding) -> str:
    difference = finding.difference
    colour = "red" if difference.agreement == "differs" else "yellow"
    which = "" if finding.variant == "default" else f" {escape(finding.variant)}"
    text = f"{difference.before:.6g} -> {difference.after:.6g} {finding.unit}"
    if difference.ratio is not None:
        text += f", {difference.ratio:.3f} times"
    if difference.interval is not None:
        text += f" [{difference.interval[0]:.3f}, {difference.interval[1]:.3f}]"
    if difference.p is not None:
        text += f", p = {difference.p:.2g}"
    place = f"{finding.script}{which}#{finding.quantity}"
    return f"[{colour}]{difference.agreement}[/] {place}: {escape(text)}"
