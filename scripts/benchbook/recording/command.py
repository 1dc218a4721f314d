"""The command `benchbook record`: plan, run, write, and say what happened."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.table import Table

import benchbook
from benchbook.content.machines import CpuDescription, MachineDescription
from benchbook.content.problems import BenchbookError, Problem, printable
from benchbook.content.project import Project
from benchbook.content.records import OWNER_MARK, is_published
from benchbook.content.unfinished import finish_writing
from benchbook.machines.accelerators import VENDORS, Accelerators, find_accelerators
from benchbook.machines.description import LONGEST_NAME, MAINTAINERS, NAME, describe, slug
from benchbook.machines.rights import missing_rights
from benchbook.query.freshness import kinds_of
from benchbook.recording import verification
from benchbook.recording.campaign import kept_runs, now
from benchbook.recording.hosts import CODE, interpreter
from benchbook.recording.journal import journal_path
from benchbook.recording.plan import Plan, Task, expected_minutes, left, make_plan, matrix, rounded_minutes
from benchbook.recording.processes import end_orphans
from benchbook.recording.session import Session, only_recording
from benchbook.recording.stores import Bundle, Checkout, Store

INTERRUPTED = 130
# What hides every accelerator from a script, for records of the processor alone.
HIDDEN = {
    "CUDA_VISIBLE_DEVICES": "",
    "HIP_VISIBLE_DEVICES": "",
    "ROCR_VISIBLE_DEVICES": "",
    "ZE_AFFINITY_MASK": "",
}


def record_command(
    project: Project,
    scripts: Sequence[str],
    *,
    everything: bool = False,
    machine: str | None = None,
    repeats: int | None = None,
    bundle: Path | None = None,
    variant: str | None = None,
    plan: bool = False,
    plan_json: bool = False,
    venvs: bool = False,
    budget_seconds: float | None = None,
    smallest: bool = False,
    shared: bool = False,
    recorded_by: str | None = None,
    verify: bool = False,
    runners: int = 1,
    begun: Sequence[Path] = (),
) -> int:
    """Run scripts in fresh processes on this machine and write what they yield.

    Parameters:
        project: The checkout.
        scripts: `guide/script.py` or guides; none for all.
        everything: Record whatever is fresh too, not only what is stale or missing.
        machine: The name to record this machine under; one that begins with `cpu-` hides the accelerator.
        repeats: Runs per variant.
        bundle: Write this file instead of into `snippets/records`; in a folder, one named after the machine.
        begun: Bundles of earlier campaigns on this machine, of which that file takes over what it lacks.
        variant: Only this one, with its baseline.
        plan: Print what would run.
        plan_json: Print it, or what a verification found, as JSON.
        venvs: Print the environments of their own that it would run scripts in, and nothing else.
        budget_seconds: Stop before this is spent.
        smallest: Run everything once at its smallest and write nothing.
        shared: Record although others use the device, and mark the times.
        recorded_by: Who measures; by default the maintainers.
        verify: Run a sample of what is recorded again, compare, and write nothing.
        runners: Among how many of its kind a plan divides the work.

    Returns:
        The exit code: 0, 1 if anything is not right, 130 if interrupted.

    Raises:
        BenchbookError: Nothing could be begun.
    """
    console = Console(stderr=True, highlight=False)
    if recorded_by == "":
        raise BenchbookError(Problem("--recorded-by", 1, "is empty", "say who measures, or leave it out"))
    planned = planned_machine(project, machine) if plan and machine is not None else None
    here, found = (planned, None) if planned is not None else this_machine(machine, recorded_by)
    if bundle is not None and bundle.is_dir():
        bundle = bundle / f"{here.name}.json.gz"
    if not (plan or smallest or venvs):
        # Before anything of the checkout's own folder is read or written: it may be anyone's.
        finish_writing(project)
    # What is known is read under the lock: whoever held it before has written.
    with contextlib.nullcontext() if plan or smallest or venvs else only_recording(project, bundle):
        store: Store = Checkout(project, here)
        if bundle is not None:
            store = Bundle(bundle, Checkout(project, here), here, begun)
            for line in store.left_out:
                console.print(line, markup=False, soft_wrap=True)
        session = Session(
            project=project,
            machine=here,
            found=found,
            store=store,
            console=console,
            ends=None if budget_seconds is None else time.monotonic() + budget_seconds,
            shared=shared,
            recorded_by=recorded_by or MAINTAINERS,
            environment=HIDDEN if here.kind == "cpu" and machine is not None else {},
        )
        if not (plan or smallest or venvs or verify):
            session.note_checkout()
        chosen = make_plan(
            project,
            scripts,
            here,
            lambda script: store.load(script.reference),
            which="verify" if verify else "all" if everything else "stale",
            variant=variant,
            repeats=repeats,
            smallest=smallest,
            # Another machine's rights cannot be tried from here.
            missing=missing_rights if planned is None else lambda _: {},
        )
        if venvs:
            # What keeps a script from being run is told when it is to run.
            print("".join(f"{name}\n" for name in chosen.venvs), end="", file=sys.stdout)
            return 0
        for name, why in chosen.skipped.items():
            console.print(f"skipped {name}, which needs what it may not do here: {why}", markup=False)
        if plan:
            if not smallest:
                chosen = _with_what_is_kept(chosen, project, here, console)
            _print_plan(chosen, here, plan_json, runners)
            return _report(console, chosen.problems)
        before = _interrupt_once()
        try:
            if verify:
                found_again = verification.verify(session, chosen, bool(scripts), variant)
                verification.print_verification(found_again, here.name, plan_json, console)
                _report(console, found_again.problems)
                return 0 if found_again.holds else 1
            if ended := end_orphans(CODE):
                left_running = (
                    f"ended {len(ended)} process(es) that a recording which was killed left running"
                )
                console.print(left_running, soft_wrap=True)
            if not smallest:
                with store.held():
                    store.hold_machine()
                    store.tidy()
            if chosen.problems and not chosen.tasks:
                # Nothing ran, which does not mean that all is fresh.
                problems = []
            else:
                problems = session.smallest(chosen.tasks) if smallest else session.record(chosen.tasks)
        except KeyboardInterrupt:
            console.print("interrupted; finished runs are kept, the same command goes on from them")
            return INTERRUPTED
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return _report(console, (*chosen.problems, *problems))


def _with_what_is_kept(plan: Plan, project: Project, machine: MachineDescription, console: Console) -> Plan:
    """A plan that knows the journals of interrupted campaigns; says which would not be gone on with."""
    tasks = []
    for task in plan.tasks:
        path = journal_path(project, machine.name, task.script.reference)
        kept, why = kept_runs(task, path, now())
        if why:
            instead = f"{project.relative(path)} {why}; a new campaign begins"
            console.print(instead, markup=False, soft_wrap=True)
        tasks.append(replace(task, kept=kept))
    return replace(plan, tasks=tuple(tasks))


def planned_machine(project: Project, name: str) -> MachineDescription | None:
    """The machine called `name` as far as a plan needs it: its records here, or its vendor, tell its kind.

    None where neither does, or where it is a processor: any machine can be recorded as one.
    """
    path = project.records / name / "machine.json"
    if not NAME.match(name) or name.startswith("cpu-"):
        return None
    if path.is_file():
        kind = kinds_of(project, name)[1]
    else:
        vendors = {slug(vendor): kind for kind, vendor in VENDORS.items()}
        kind = vendors.get(name.partition("-")[0], "")
    if not kind:
        return None
    cpu = CpuDescription(None, None, None, None, [])
    return MachineDescription(name, kind, name, name, None, None, cpu, None, None, {}, False, 1)


def this_machine(
    name: str | None = None, recorded_by: str | None = None
) -> tuple[MachineDescription, Accelerators | None]:
    """This machine and its accelerators, under its own name or another.

    Raises:
        BenchbookError: The name is not one a machine can have.
    """
    package = Path(benchbook.__file__).resolve().parent.parent
    on_cpu = name is not None and name.startswith("cpu-")
    found = find_accelerators(interpreter(), package, {**os.environ, **(HIDDEN if on_cpu else {})})
    machine = describe(found, recorded_by or MAINTAINERS)
    if not NAME.match(machine.name) or len(machine.name) > LONGEST_NAME:
        what = f"{machine.name!r} would be the machine's name, with {recorded_by!r} in it, and cannot be"
        fix = "say who measures with Latin letters or digits, briefly"
        raise BenchbookError(Problem("--recorded-by", 1, what, fix))
    if is_published(name or machine.name):
        what = f"{name or machine.name!r} names a machine whose figures are quoted, not measured"
        fix = "record under this machine's own name, and say who measures in another word"
        raise BenchbookError(Problem("--machine" if name else "--recorded-by", 1, what, fix))
    if name is None:
        return machine, found
    # Whoever is not the maintainers stays part of the name, or two owners of one model would collide.
    ending = machine.name.partition(OWNER_MARK)[2]
    if ending and not name.endswith(OWNER_MARK + ending):
        name += OWNER_MARK + ending
    if not NAME.match(name) or len(name) > LONGEST_NAME or (found is not None) == on_cpu:
        fix = f"use lower-case letters, digits and hyphens, as in {machine.name}"
        raise BenchbookError(Problem("--machine", 1, f"{name!r} cannot name this machine", fix))
    return replace(machine, name=name), found


def _interrupt_once() -> dict[signal.Signals, Any]:
    """Let SIGTERM and SIGHUP end the command as Ctrl-C does, and none of them what it then tidies up.

    Returns:
        The handlers to put back; none outside the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    # What is ignored stays so: under nohup, a terminal that goes away ends nothing.
    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) != signal.SIG_IGN
    ]

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    return {number: signal.signal(number, interrupt) for number in numbers}


def _print_plan(plan: Plan, machine: MachineDescription, as_json: bool, runners: int) -> None:
    if as_json:
        table = {
            "machine": machine.name,
            "expected_minutes": rounded_minutes(expected_minutes(plan.tasks)),
            "groups": [_group_table(worth, tasks) for worth, tasks in plan.groups],
            "scripts": [task.table() for task in plan.tasks],
            "needs_another_machine": list(plan.elsewhere),
            "needs_what_is_not_allowed": dict(plan.skipped),
            "matrix": matrix(plan.tasks, runners),
        }
        # On one line: the outputs of a workflow's step are lines.
        print(json.dumps(table), file=sys.stdout)
        return
    rows = Table(title=f"{machine.name}: {left(plan.tasks)}", box=None, title_justify="left")
    for title in ("what", "runs", "minutes", "why"):
        rows.add_column(title, justify="right" if title in {"runs", "minutes"} else "left", overflow="fold")
    for worth, tasks in plan.groups:
        runs = str(sum(task.runs for task in tasks))
        rows.add_row(f"[bold]worth {worth}[/]", runs, _shown(expected_minutes(tasks)), "")
        for task in tasks:
            rows.add_row(
                f" [bold]{task.script.reference}[/]", str(task.runs), _shown(expected_minutes([task])), ""
            )
            for variant in task.variants:
                each = task.run_seconds[variant.name]
                mark = "≈ " if variant.name in task.estimated else ""
                runs_left = task.left_of(variant)
                minutes = _shown(None if each is None and runs_left else runs_left * (each or 0.0) / 60, mark)
                rows.add_row(f"  {variant.name}", str(runs_left), minutes, task.reason_of(variant))
    Console().print(rows)
    if any(task.estimated for task in plan.tasks):
        print("≈ estimated from the operations and bytes that a script declares; it never ran there")
    if any(task.kept for task in plan.tasks):
        print("a campaign is gone on with where packages, machine and variables are as they were")


def _group_table(worth: int, tasks: Sequence[Task]) -> dict[str, Any]:
    runs = sum(task.runs for task in tasks)
    return {"worth": worth, "runs": runs, "expected_minutes": rounded_minutes(expected_minutes(tasks))}


def _shown(minutes: float | None, mark: str = "") -> str:
    return "?" if minutes is None else f"{mark}{minutes:.1f}"


def _report(console: Console, problems: Sequence[Problem]) -> int:
    for problem in problems:
        console.print(printable(str(problem)), markup=False, soft_wrap=True)
    return 1 if problems else 0
