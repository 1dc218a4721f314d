"""The command `benchbook record`: plan, run, write, and say what happened."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from rich.console import Console
from rich.table import Table

from benchbook import campaign as campaigns
from benchbook.accelerators import Found, find_accelerators
from benchbook.circumstances import DeviceWatch, commit
from benchbook.hosts import Hosts, interpreter, preload_names
from benchbook.jobs import OK, Result
from benchbook.journal import open_journal
from benchbook.machine import MAINTAINERS, NAME, Machine, describe
from benchbook.nvml import Identity, open_nvml
from benchbook.plan import Plan, Task, left, make_plan
from benchbook.problems import BenchbookError, Problem
from benchbook.project import Project
from benchbook.records import Campaign
from benchbook.script import Script
from benchbook.stores import Bundle, Checkout, Store

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
    stale: bool = True,
    everything: bool = False,
    machine: str | None = None,
    repeats: int | None = None,
    bundle: Path | None = None,
    variant: str | None = None,
    plan: bool = False,
    plan_json: bool = False,
    budget_seconds: float | None = None,
    smallest: bool = False,
    shared: bool = False,
    recorded_by: str | None = None,
) -> int:
    """Run scripts in fresh processes on this machine and write what they yield.

    Parameters:
        project: The checkout.
        scripts: `guide/script.py` or guides; none for all.
        stale: Record only what is not fresh (this is also what happens by default).
        everything: Record whatever is fresh too.
        machine: The name to record this machine under; one that begins with `cpu-` hides the accelerator.
        repeats: Runs per variant.
        bundle: Write this file instead of into `snippets/records`.
        variant: Only this one, with its baseline.
        plan: Print what would run.
        plan_json: Print it as JSON.
        budget_seconds: Stop before this is spent.
        smallest: Run everything once at its smallest and write nothing.
        shared: Record although others use the device, and mark the times.
        recorded_by: Who measures; by default the maintainers.

    Returns:
        The exit code: 0, 1 if anything is not right, 130 if interrupted.

    Raises:
        BenchbookError: Nothing could be begun.
    """
    console = Console(stderr=True, highlight=False)
    here, found = this_machine(machine, recorded_by)
    store: Store = Checkout(project, here)
    if bundle is not None:
        store = Bundle(bundle, Checkout(project, here), here)
    chosen = make_plan(
        project,
        scripts,
        here,
        lambda script: store.load(script.reference),
        which="all" if everything else "stale",
        variant=variant,
        repeats=repeats,
        smallest=smallest,
    )
    if plan:
        _print_plan(chosen, here, plan_json)
        return _report(console, chosen.problems)
    sitting = Sitting(
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
    before = _interrupt_on_terminate()
    try:
        problems = sitting.smallest(chosen.tasks) if smallest else sitting.record(chosen.tasks)
    except KeyboardInterrupt:
        console.print("interrupted; finished runs are kept, the same command goes on from them")
        return INTERRUPTED
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
    return _report(console, (*chosen.problems, *problems))


def this_machine(name: str | None = None, recorded_by: str | None = None) -> tuple[Machine, Found | None]:
    """This machine and its accelerators, under its own name or another.

    Raises:
        BenchbookError: The name is not one a machine can have.
    """
    package = Path(__file__).resolve().parent.parent
    on_cpu = name is not None and name.startswith("cpu-")
    found = find_accelerators(interpreter(), package, {**os.environ, **(HIDDEN if on_cpu else {})})
    machine = describe(found, recorded_by or MAINTAINERS)
    if name is None:
        return machine, found
    if not NAME.match(name) or (found is not None) == on_cpu:
        mend = f"use lower-case letters, digits and hyphens, as in {machine.name}"
        raise BenchbookError(Problem("--machine", 1, f"{name!r} cannot name this machine", mend))
    return replace(machine, name=name), found


@dataclass
class Sitting:
    """One use of the command.

    Parameters:
        project: The checkout.
        machine: This machine.
        found: Its accelerators.
        store: Where records go.
        console: For progress and problems.
        ends: When the budget is spent, by the monotonic clock.
        shared: Whether others may use the device.
        recorded_by: Who measures.
        environment: Variables for every script.
    """

    project: Project
    machine: Machine
    found: Found | None
    store: Store
    console: Console
    ends: float | None
    shared: bool
    recorded_by: str
    environment: Mapping[str, str]

    def record(self, tasks: Sequence[Task]) -> list[Problem]:
        """Record every task; the problems met. A task that cannot be recorded does not keep the next from it.

        Raises:
            BenchbookError: Others use the device, and that was not asked for.
        """
        if not tasks:
            self.console.print(f"{self.machine.name}: everything is fresh")
            return []
        watch = DeviceWatch(open_nvml() if self._devices else None, self._devices)
        foreign = watch.foreign()
        if foreign and not self.shared:
            what = f"{len(foreign)} other process(es) use the device, which spoils every time and some bytes"
            mend = "end them, or record with --shared, which marks the times"
            raise BenchbookError(Problem(f"snippets/records/{self.machine.name}/machine.json", 1, what, mend))
        self.console.print(f"{self.machine.name}: {left(tasks)}")
        load = os.getloadavg()[0]
        if load > 0.5:
            busy = f"the machine is busy (load average {load:.1f}), which spoils every time"
            self.console.print(f"[yellow]warning:[/] {busy}", soft_wrap=True)
        at_commit = commit(self.project.root)
        problems: list[Problem] = []
        with self._hosts(tasks) as hosts:
            for number, task in enumerate(tasks):
                try:
                    problems += self._record_task(task, hosts, watch, at_commit)
                except campaigns.BudgetError:
                    self.console.print(
                        f"the budget is spent; left: {left(tasks[number:])}; the same command goes on"
                    )
                    break
                except BenchbookError as error:
                    problems += error.problems
        return problems

    def smallest(self, tasks: Sequence[Task]) -> list[Problem]:
        """Run every variant once; what did not end well."""
        problems: list[Problem] = []
        with self._hosts(tasks) as hosts:
            for task in tasks:
                for variant in task.variants:
                    try:
                        result = campaigns.run_once(hosts, task, variant, self._root)
                    except BenchbookError as error:
                        problems += error.problems
                        break
                    self._say(task.script, variant.name, 1, 1, result)
                    if result.outcome != OK:
                        problems.append(campaigns.problem_of(task.script, variant, result))
        return problems

    @property
    def _devices(self) -> tuple[Identity, ...]:
        return self.found.identities if self.found is not None and self.found.kind == "cuda" else ()

    @property
    def _root(self) -> str:
        return str(self.project.root.resolve())

    def _hosts(self, tasks: Sequence[Task]) -> Hosts:
        names = {name for task in tasks for name in _package_names(task.script)}
        return Hosts(devices=self._devices, packages=sorted(names), environment=self.environment)

    def _record_task(
        self, task: Task, hosts: Hosts, watch: DeviceWatch, at_commit: tuple[str | None, bool]
    ) -> list[Problem]:
        first = task.variants[0]
        preload = preload_names(cell.source for cell in task.script.cells)
        packages = hosts.host(first.environment, first.ranks, preload, task.script.path).packages
        packages = {name: version for name, version in packages.items() if _matters(name, task.script)}
        state, began = watch.state(), campaigns.now()
        sitting = {
            "id": f"{began:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}",
            "started": campaigns.stamp(began),
            "commit": at_commit[0],
            "modified": at_commit[1],
            "state": state,
        }
        key = {
            "machine": self.machine.name,
            "packages": packages,
            "device": [state["driver"], state["power_limit_watts"]],
            "recorded_by": self.recorded_by,
            "shared": self.shared,
        }
        path = (self.project.journal / self.machine.name / task.script.reference).with_suffix(".jsonl")
        journal = open_journal(path, campaigns.header(task, sitting, key), began)
        total = sum(int(each["repeats"]) for each in journal.header["variants"].values())

        def tell(turn: campaigns.Turn, result: Result | None) -> None:
            if result is not None:
                self._say(task.script, turn.variant, turn.place + 1, total, result)

        with self.console.status(task.script.reference):
            gathered = campaigns.gather(
                task,
                journal,
                lambda variant: campaigns.run_once(hosts, task, variant, self._root),
                self._has_time,
                tell,
            )
        opened = journal.header["campaign"]
        foreign = watch.foreign()
        done = Campaign(
            started=opened["started"],
            finished=campaigns.stamp(campaigns.now()),
            commit=opened["commit"],
            modified=opened["modified"],
            recorded_by=self.recorded_by,
            packages=packages,
            # Whoever came while it ran is seen now.
            state={**opened["state"], "foreign_processes": foreign, "shared": self.shared or bool(foreign)},
        )
        record, problems = campaigns.lay_over(task, self.machine.name, opened["id"], done, gathered)
        if record is not None:
            self.console.print(f"  wrote {self.store.save(record)}", soft_wrap=True)
        journal.close()
        return [*gathered.problems, *problems]

    def _has_time(self, seconds: float) -> bool:
        return self.ends is None or time.monotonic() + seconds <= self.ends

    def _say(self, script: Script, variant: str, place: int, total: int, result: Result) -> None:
        colour = "green" if result.outcome == OK else "red"
        which = "" if variant == "default" else f" {variant}"
        ending = f"[{colour}]{result.outcome}[/] {result.seconds:.2f} s"
        self.console.print(f"  {place:>3}/{total} {script.reference}{which}: {ending}", soft_wrap=True)


def _package_names(script: Script) -> list[str]:
    names = []
    for dependency in script.metadata.dependencies:
        try:
            names.append(Requirement(dependency).name)
        except InvalidRequirement:
            continue
    return names


def _matters(name: str, script: Script) -> bool:
    declared = _package_names(script)
    return name in {"python", *declared} or ("torch" in declared and name in {"triton", "numpy"})


def _interrupt_on_terminate() -> Any:
    """Let SIGTERM end the command as Ctrl-C does; the handler to put back, None outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return None

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    return signal.signal(signal.SIGTERM, interrupt)


def _print_plan(plan: Plan, machine: Machine, as_json: bool) -> None:
    if as_json:
        known = [task.seconds for task in plan.tasks if task.seconds is not None]
        table = {
            "machine": machine.name,
            "expected_minutes": round(sum(known) / 60, 2) if len(known) == len(plan.tasks) else None,
            "scripts": [task.table() for task in plan.tasks],
            "needs_another_machine": list(plan.elsewhere),
        }
        print(json.dumps(table, indent=2), file=sys.stdout)
        return
    rows = Table(title=f"{machine.name}: {left(plan.tasks)}", box=None, title_justify="left")
    for title in ("script", "variant", "runs", "minutes", "why"):
        rows.add_column(title, justify="right" if title in {"runs", "minutes"} else "left", overflow="fold")
    for task in plan.tasks:
        for variant in task.variants:
            each = task.run_seconds[variant.name]
            minutes = "?" if each is None else f"{variant.repeats * each / 60:.1f}"
            reason = task.verdicts[variant.name].reason
            rows.add_row(task.script.reference, variant.name, str(variant.repeats), minutes, reason)
    Console().print(rows)


def _report(console: Console, problems: Sequence[Problem]) -> int:
    for problem in problems:
        console.print(str(problem), markup=False, soft_wrap=True)
    return 1 if problems else 0
