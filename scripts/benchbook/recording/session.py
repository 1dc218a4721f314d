"""One use of `benchbook record`: every task in turn, under its circumstances, into the store."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from rich.console import Console
from rich.markup import escape

import benchbook
from benchbook.content.claims import predicates_about
from benchbook.content.machines import HARDWARE, MachineDescription
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import CLOCK_SKEW, FIRST_DAY, Campaign, UnwritableError, writing
from benchbook.content.script import Script, Variant
from benchbook.content.terminal import plain
from benchbook.machines.accelerators import Accelerators
from benchbook.machines.cgroups import cpu_quota
from benchbook.machines.circumstances import (
    DeviceWatch,
    changes,
    commit,
    compilers,
    cores,
    deciding_variables,
    differ,
    disk,
    file_system,
    kernel_settings,
    made,
    memory_limits,
    passed_on,
    priority,
    withheld,
)
from benchbook.machines.description import gigabytes
from benchbook.machines.nvml import Identity, open_nvml
from benchbook.recording import campaign as campaigns
from benchbook.recording.hosts import Host, Hosts, preload_names, temporary_folder
from benchbook.recording.installed_packages import code_state
from benchbook.recording.jobs import CRASHED, OK, OUT_OF_MEMORY, Result
from benchbook.recording.journal import FOREIGN, Finished, Journal, journal_path, open_journal, read_journal
from benchbook.recording.loaded_code import changed_code
from benchbook.recording.plan import Task, left
from benchbook.recording.stores import Store

# What records: this package.
RECORDER = Path(benchbook.__file__).parent
# As messages name it.
LOCK = ".benchbook/lock"
# A clock that goes by a little too fast or slow is set right bit by bit; this far it was set at once.
CLOCK_STEP = timedelta(minutes=10)


class WrongClockError(BenchbookError):
    """What this machine takes for the present cannot be: whatever is measured would be of a wrong date."""


class MovedCheckoutError(BenchbookError):
    """Another commit was checked out: whatever is measured from now on would be of two."""


@dataclass
class Session:
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
    machine: MachineDescription
    found: Accelerators | None
    store: Store
    console: Console
    ends: float | None
    shared: bool
    recorded_by: str
    environment: Mapping[str, str]
    _idle: bool = field(default=True, init=False)
    # When the files of the checkout that could change a number had changed, as it began, and its commit then.
    _files: dict[str, int | None] = field(default_factory=dict, init=False)
    _at_commit: tuple[str | None, bool] = field(default=(None, True), init=False)
    # What records, where it is not the checkout's own, whose commit tells it.
    _recorder: str = field(default="", init=False)
    # Why git does not tell it.
    _silence: list[str] = field(default_factory=list, init=False)

    def note_checkout(self) -> None:
        """Note which code is about to be recorded, before any of it is read: what changes later differs."""
        # In this order: what is edited in between differs from both.
        self._files = changes(self.project.root)
        self._at_commit = commit(self.project.root, self._silence.append)
        # Another checkout's may run, where several share an environment.
        here = self.project.root / "scripts" / "benchbook"
        if not (here.is_dir() and here.samefile(RECORDER)):
            self._recorder = code_state(RECORDER)
            if here.is_dir() and code_state(here) != self._recorder:
                self._at_commit = self._at_commit[0], True
                why = (
                    f"{RECORDER} records, which is not as the checkout's own, and every record says that its "
                )
                self._silence.append(f"{why}code was modified: start that with `python scripts/benchbook`")

    def record(self, tasks: Sequence[Task]) -> list[Problem]:
        """Record every task; the problems met. A task that cannot be recorded does not keep the next from it.

        The checkout was noted before the tasks were planned.

        Raises:
            BenchbookError: Others use the device, and that was not asked for.
        """
        self._warn_of_journals_without_a_script()
        if not tasks:
            self.console.print(f"{self.machine.name}: everything is fresh")
            return []
        return self._record(tasks, self._watch())

    def rerun(
        self, tasks: Sequence[Task], problems: list[Problem]
    ) -> Iterator[tuple[Task, Variant, list[Finished]]]:
        """Run every task again, its variants in turns as a recording does; of each variant what came of it.

        What the budget leaves no time for is left out.

        Parameters:
            tasks: What runs.
            problems: Takes in why a script cannot be run, which keeps no other from being run.

        Raises:
            BenchbookError: Others use the device, and that was not asked for.
        """
        self._watch()
        self._warn_of_variables(tasks)
        self._warn_of_limits()
        with self._hosts(tasks) as hosts:
            for task in tasks:
                variants = {variant.name: variant for variant in task.variants}
                repeats = {name: variant.repeats for name, variant in variants.items()}
                finished: dict[str, list[Finished]] = {}
                total = sum(repeats.values())
                for turn in campaigns.order(secrets.token_hex(4), task.script.reference, repeats):
                    done = finished.setdefault(turn.variant, [])
                    failed = done and done[-1].result.outcome != OK
                    if failed or self._time_left() < (task.run_seconds[turn.variant] or 0.0):
                        continue
                    try:
                        result = campaigns.run_once(hosts, task, variants[turn.variant], self._root)
                    except BenchbookError as error:
                        problems += error.problems
                        finished.clear()
                        break
                    self._say(task.script, turn.variant, turn.place + 1, total, result)
                    done.append(Finished(turn.variant, turn.round, turn.place, result))
                yield from ((task, variants[name], finished[name]) for name in variants if finished.get(name))

    def _watch(self) -> DeviceWatch:
        """What the device holds between runs.

        Raises:
            BenchbookError: Others use it, and that was not asked for.
        """
        nvml = open_nvml() if self._devices else None
        if self._devices and nvml is None:
            unseen = "what the device holds, and who else uses it, stays unknown: install nvidia-ml-py"
            self._warn(unseen)
        watch = DeviceWatch(nvml, self._devices)
        foreign = watch.foreign()
        if foreign and not self.shared:
            what = f"{len(foreign)} other process(es) use the device, which spoils every time and some bytes"
            fix = "end them, or record with --shared, which marks the times"
            raise BenchbookError(Problem(f"snippets/records/{self.machine.name}/machine.json", 1, what, fix))
        return watch

    def _record(self, tasks: Sequence[Task], watch: DeviceWatch) -> list[Problem]:
        self.console.print(f"{self.machine.name}: {left(tasks)}")
        load = os.getloadavg()[0]
        if load > 0.5:
            busy = f"the machine is busy (load average {load:.1f}), which spoils every time"
            self._warn(busy)
        for why in self._silence:
            self._warn(why)
        self._warn_of_variables(tasks)
        self._warn_of_limits()
        problems: list[Problem] = []
        unfinished: dict[str, int] = {}
        # What once used up a budget goes last, or it would do so each time.
        begun = {task.script.reference: read_journal(*self._journal(task)) for task in tasks}
        ordered = sorted(tasks, key=lambda task: bool((known := begun[task.script.reference]) and known.cuts))
        with self._telling(problems), self._hosts(tasks) as hosts:
            for task in ordered:
                if self._time_left() <= 0:
                    unfinished[task.script.reference] = runs_left(task, begun[task.script.reference])
                    continue
                try:
                    found, missing = self._record_task(task, hosts, watch, self._at_commit)
                except (UnwritableError, WrongClockError, MovedCheckoutError) as error:
                    problems += error.problems
                    break
                except BenchbookError as error:
                    problems += error.problems
                    continue
                problems += found
                if missing:
                    unfinished[task.script.reference] = missing
        if unfinished:
            rest = f"{len(unfinished)} script(s), {sum(unfinished.values())} run(s)"
            self.console.print(f"the budget is spent; left: {rest}; the same command goes on")
        return problems

    def _journal(self, task: Task) -> tuple[Path, str]:
        """The path of its journal, and as messages name it."""
        path = journal_path(self.project, self.machine.name, task.script.reference)
        return path, self.project.relative(path)

    def smallest(self, tasks: Sequence[Task]) -> list[Problem]:
        """Run every variant once; what did not end well.

        Nothing is measured: scripts have every variable that is set here. Those of one environment share a
        host, which imports what any of them does; but a script that leaves all imports to itself, to measure
        one, finds none made.
        """
        problems: list[Problem] = []
        imported = [preload_names(cell.source for cell in task.script.cells) for task in tasks]
        shared: dict[str, set[str]] = {}
        for task, names in zip(tasks, imported, strict=True):
            shared.setdefault(task.script.metadata.venv, set()).update(names)
        with self._telling(problems), self._hosts(tasks, os.environ) as hosts:
            for task, names in zip(tasks, imported, strict=True):
                preload = tuple(sorted(shared[task.script.metadata.venv])) if names else ()
                for variant in task.variants:
                    try:
                        result = campaigns.run_once(
                            hosts, task, variant, self._root, strict=True, preload=preload
                        )
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

    def _hosts(self, tasks: Sequence[Task], inherited: Mapping[str, str] | None = None) -> Hosts:
        names = {name for task in tasks for name in _package_names(task.script)}
        return Hosts(
            devices=self._devices,
            packages=sorted(names),
            environment=self.environment,
            warn=self._warn,
            inherited=inherited,
        )

    def _warn_of_variables(self, tasks: Sequence[Task]) -> None:
        """Name the variables that are set here and that scripts run without, though they do not set them."""
        environments = [variant.environment for task in tasks for variant in task.variants]
        names = [
            name
            for name in withheld(os.environ)
            if not all(name in {**self.environment, **each} for each in environments)
        ]
        if names:
            self._warn(
                f"{', '.join(names)}: set here and not passed to the scripts, for no record would tell; "
                "where a script is to run under one, name it in `environment` of its [tool.benchbook]"
            )

    def _warn_of_journals_without_a_script(self) -> None:
        """Name the journals whose scripts are not here: renamed, or of another branch."""
        known = {journal_path(self.project, self.machine.name, name) for name in self.project.scripts()}
        for path in sorted({*(self.project.journal / self.machine.name).rglob("*.jsonl")} - known):
            shown = self.project.relative(path)
            journal = read_journal(path, shown, repair=False)
            runs = f"{len(journal.finished)} finished run(s)" if journal is not None else "nothing readable"
            self._warn(
                f"{shown} holds {runs} of a script that is not here; if it was renamed, its runs are of the "
                "old name and it is measured again: remove the file, or call the script what it was called"
            )

    def _warn_of_limits(self) -> None:
        if limits := memory_limits():
            fix = " and ".join(f"`ulimit {option} unlimited`" for option in limits)
            self._warn(
                "processes have a limit of memory here, and a run out of memory would tell of that and not "
                f"of the machine: run {fix} first"
            )
        quota = cpu_quota()
        # A container may be given as many processors' time as it is described with.
        if quota is not None and quota < (self.machine.cpu.cores or 0):
            self._warn(
                f"a quota of {quota:.3g} processors: times would tell of that and not of the machine, which "
                f"has {self.machine.cpu.cores}; record in a control group without one"
            )

    @contextlib.contextmanager
    def _telling(self, problems: Sequence[Problem]) -> Iterator[None]:
        """Print `problems` where an interruption keeps them from whoever reports them in the end."""
        try:
            yield
        except KeyboardInterrupt:
            for problem in problems:
                self.console.print(str(problem), markup=False, soft_wrap=True)
            raise

    def _warn(self, what: str) -> None:
        self.console.print(f"[yellow]warning:[/] {escape(what)}", soft_wrap=True)

    def _record_task(
        self, task: Task, hosts: Hosts, watch: DeviceWatch, at_commit: tuple[str | None, bool]
    ) -> tuple[list[Problem], int]:
        """What went wrong with a script, and how many of its runs are left.

        Raises:
            BenchbookError: It cannot be run, the clock is wrong, or packages or the commit changed meanwhile.
            KeyboardInterrupt: It was interrupted; what is whole is in the store, the rest in the journal.
        """
        host = campaigns.host_of(hosts, task.script, task.variants[0])
        packages = _that_matter(host.packages, task.script)
        state, began, clock = watch.state(), campaigns.now(), _seconds_since_boot()
        self._see_that_clock_is_right(began, at_commit[0])
        session = {
            "id": f"{began:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}",
            "started": campaigns.stamp(began),
            "commit": at_commit[0],
            "modified": at_commit[1],
            "state": state | {FOREIGN: watch.foreign()},
            "predicates": predicates_about(self.project, task.script.reference),
        }
        accelerator = self.machine.accelerator
        environment = {**passed_on(os.environ), **self.environment}
        environments = [{**environment, **variant.environment} for variant in task.variants]
        key = {
            "machine": self.machine.name,
            # Machines of one name are lent with other processors, and updated.
            "processor": asdict(self.machine.cpu),
            "memory": gigabytes(self.machine.memory_bytes),
            "accelerator": accelerator and {name: getattr(accelerator, name) for name in HARDWARE},
            "kernel": self.machine.system.get("kernel"),
            "packages": packages,
            "device": [state["driver"], state["power_limit_watts"]],
            "installed": self._installed(task, hosts),
            "environment": deciding_variables(environment),
            "recorded_by": self.recorded_by,
            "shared": self.shared,
            "file_system": file_system(Path(temporary_folder())),
            "disk": disk(Path(temporary_folder())),
            "memory_limits": memory_limits(),
            "cpu_quota": cpu_quota(),
            "cores": cores(),
            "priority": priority(),
            "kernel_settings": kernel_settings(),
            "compilers": [
                compilers(path) for path in sorted({each.get("PATH", "") for each in environments})
            ],
            "recorder": self._recorder,
            "host": _told_by(host, task.variants[0]),
        }
        path, shown = self._journal(task)
        header = campaigns.header(task, session, key)
        journal = open_journal(path, header, began, shown, partial(self._unusable, task))
        if journal.instead:
            without = f", without the {journal.dropped} run(s) in it" if journal.dropped else ""
            instead = f"  {shown} {journal.instead}; a new campaign begins{without}"
            self.console.print(instead, markup=False, soft_wrap=True)
        journal.session = campaigns.stamp(began)
        size = journal.size
        total = sum(int(each["repeats"]) for each in journal.header["variants"].values())

        def tell(turn: campaigns.Turn, result: Result | None) -> None:
            if result is None:
                status.update(f"{task.script.reference} {turn.variant}, run {turn.place + 1} of {total}")
            else:
                fell = result.outcome in {CRASHED, OUT_OF_MEMORY}
                again = fell and (turn.variant, turn.round) not in journal.done
                self._say(task.script, turn.variant, turn.place + 1, total, result, again)

        opened = journal.header["campaign"]
        if at_commit[1] or differ(self.project.root, opened["commit"], at_commit[0]):
            journal.modify()

        def run(variant: Variant, limit: float) -> Result:
            self._idle = False
            result = campaigns.run_once(hosts, task, variant, self._root, limit)
            # Before the run is written down; an edit that is undone by the next one is one all the same.
            if changes(self.project.root) != self._files or commit(self.project.root)[1]:
                journal.modify()
            return result

        def moment() -> datetime:
            # By a clock that nobody sets.
            return began + timedelta(seconds=_seconds_since_boot() - clock)

        with self.console.status(task.script.reference) as status:
            gathered = campaigns.gather(task, journal, run, self._time_left, tell, self._idle, moment)
        try:
            self._see_that_commit_is_the_same(task.script, at_commit[0])
            _see_that_packages_are_the_same(task.script, packages, host)
            _see_that_imports_are_the_same(task.script, journal)
        except BenchbookError as error:
            journal.cut_back(size)
            # They have imported what was there before.
            hosts.forget_all()
            if gathered.ended != "interrupted":
                raise
            self.console.print(str(error), markup=False, soft_wrap=True)
            raise KeyboardInterrupt from error
        self._warn_of_clock(began, moment())
        # Whenever it is put into the record, a campaign ends with its last run.
        ended = journal.ended or campaigns.stamp(moment())
        problems = [*gathered.problems, *self._save(task, journal, gathered, packages, watch, ended)]
        if gathered.ended == "interrupted":
            with self._telling(problems):
                raise KeyboardInterrupt
        if gathered.ended == "spent":
            return problems, runs_left(task, journal)
        # Others of the same campaign may be half done, where only some variants were asked for; and one that
        # failed may do better next time, in the campaign that its times belong to.
        settled = set(campaigns.whole(journal)) | {variant.name for variant in task.variants}
        if settled >= campaigns.declared_in(task, journal) and not gathered.problems:
            gone = Counter(run.variant for run in journal.finished if run.variant not in task.declared)
            for name, count in gone.items():
                what = f"of variant {name}, which {task.script.reference} declares no more"
                self._warn(f"{shown} is done with, and {count} run(s) {what}, go with it")
            journal.close()
        return problems, 0

    def _installed(self, task: Task, hosts: Hosts) -> list[str]:
        """What is installed in the environments of its variants, for each way that Python is told to look."""
        ways: dict[tuple[str, ...], Variant] = {}
        for variant in task.variants:
            told = (f"{name}={value}" for name, value in variant.environment.items() if "PYTHON" in name)
            ways.setdefault(tuple(sorted(told)), variant)
        return [campaigns.host_of(hosts, task.script, variant).installed for variant in ways.values()]

    def _unusable(self, task: Task, journal: Journal) -> str:
        """Why nothing more can be measured in the campaign of a journal; empty if something can."""
        if why := campaigns.surpassed(task, journal):
            return why
        changed = min(journal.changed, default="") or changed_code(journal.loaded, self._root)
        return f"is of other code in {plain(changed)}, which its runs loaded" if changed else ""

    def _warn_of_clock(self, began: datetime, ended: datetime) -> None:
        """Say that the clock was set since a session began, where it no longer says about `ended`."""
        if abs(campaigns.now() - ended) > CLOCK_STEP:
            self._warn(
                f"the clock was set meanwhile; the campaign is dated by what it said at the start, "
                f"{campaigns.stamp(began)}, and by what it took: if that was wrong, record it again"
            )

    def _see_that_clock_is_right(self, now: datetime, at_commit: str | None) -> None:
        """Raise WrongClockError where `now` is before the commit was made that is checked out."""
        earliest, since = FIRST_DAY, "anything was measured for this handbook"
        moment = made(self.project.root, at_commit)
        if at_commit is not None and moment is not None and moment - CLOCK_SKEW > earliest:
            earliest = moment - CLOCK_SKEW
            since = f"commit {at_commit[:12]} was made, at {campaigns.stamp(moment)}"
        if now < earliest:
            shown = f"snippets/records/{self.machine.name}/machine.json"
            what = f"this machine's clock says {campaigns.stamp(now)}, before {since}"
            raise WrongClockError(Problem(shown, 1, what, "set the clock; then the same command goes on"))

    def _see_that_commit_is_the_same(self, script: Script, before: str | None) -> None:
        """Raise MovedCheckoutError where code that may change a number is of another commit than `before`."""
        after = commit(self.project.root)[0]
        if differ(self.project.root, before, after):
            names = " to ".join(each[:12] if each else "no commit" for each in (before, after))
            what = f"the checkout went from {names} while it was recorded, and no run of this session is kept"
            fix = "leave the checkout as it is until it is recorded, and record it again"
            raise MovedCheckoutError(Problem(script.path, 1, what, fix))

    def _save(
        self,
        task: Task,
        journal: Journal,
        gathered: campaigns.Gathered,
        packages: dict[str, str],
        watch: DeviceWatch,
        ended: str,
    ) -> list[Problem]:
        """Put what was gathered into the store; what could not be taken over.

        Raises:
            BenchbookError: What is there is of another machine, or cannot be read or written.
        """
        opened = journal.header["campaign"]
        # Whoever came while it ran is seen now.
        foreign = journal.see_others(watch.foreign())
        done = Campaign(
            started=opened["started"],
            finished=ended,
            commit=opened["commit"],
            modified=opened["modified"],
            recorded_by=self.recorded_by,
            packages=packages,
            state=opened["state"] | {FOREIGN: foreign, "shared": self.shared or bool(foreign)},
            predicates=opened["predicates"],
            resumed=journal.resumed,
        )
        with self.store.held():
            # Others may have come in while it ran.
            self.store.hold_machine()
            task = replace(task, record=self.store.load(task.script.reference))
            record, problems = campaigns.lay_over(task, self.machine.name, opened["id"], done, gathered)
            if record is not None:
                wrote = self.store.save(record, campaigns.trace_files(gathered))
                self.console.print(f"  wrote {wrote}", soft_wrap=True)
        return problems

    def _time_left(self) -> float:
        return math.inf if self.ends is None else self.ends - time.monotonic()

    def _say(
        self, script: Script, variant: str, place: int, total: int, result: Result, again: bool = False
    ) -> None:
        colour = "green" if result.outcome == OK else "red"
        which = "" if variant == "default" else f" {variant}"
        ending = f"[{colour}]{result.outcome}[/] {result.seconds:.2f} s{', once more' if again else ''}"
        self.console.print(f"  {place:>3}/{total} {script.reference}{which}: {ending}", soft_wrap=True)


def _seconds_since_boot() -> float:
    """Seconds by a clock that nobody sets, which goes on while the machine is suspended where it can."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def runs_left(task: Task, journal: Journal | None) -> int:
    """How many runs of a task its journal does not hold."""
    if journal is not None:
        campaigns.forget_cut_short(task, journal)
    done = journal.done if journal else set()
    wanted = ((variant.name, number) for variant in task.variants for number in range(variant.repeats))
    return sum(turn not in done for turn in wanted)


@contextlib.contextmanager
def only_recording(project: Project, bundle: Path | None = None) -> Iterator[None]:
    """Hold off another recording in the same checkout, and one from elsewhere into the same bundle.

    Two at once would spoil each other's times, and each would write over what the other wrote since it began.

    Raises:
        BenchbookError: One is under way, or there is no writing there.
    """
    what = "another recording is under way in this checkout"
    here = Problem(LOCK, 1, what, "wait for it to end, or end it")
    with contextlib.ExitStack() as held:
        held.enter_context(_only_holder(project.journal / "lock", here))
        if bundle is not None:
            what = "another recording writes this bundle"
            there = Problem(bundle.name, 1, what, "wait for it to end, or name another file")
            held.enter_context(_only_holder(bundle.with_name(f".{bundle.name}.lock"), there))
        yield


@contextlib.contextmanager
def _only_holder(path: Path, taken: Problem) -> Iterator[None]:
    """Hold the lock that `path` is, a file that goes with it; `taken` is said where another process does.

    Raises:
        BenchbookError: Another process holds it, or it cannot be written.
    """
    if path.is_symlink():
        raise BenchbookError(Problem(path.name, 1, "is a link to another place", "remove it"))
    with writing(taken.path):
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    with file:
        try:
            # Released with the process, however that ends.
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BenchbookError(taken) from error
        # Who held it may have ended, and removed it, since it was opened: then another may hold a new one.
        if not _is_file_at(file.fileno(), path):
            raise BenchbookError(taken)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()


def _is_file_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _package_names(script: Script) -> list[str]:
    names = []
    for dependency in script.metadata.dependencies:
        try:
            names.append(Requirement(dependency).name)
        except InvalidRequirement:
            continue
    return names


def _told_by(host: Host, variant: Variant) -> dict[str, Any]:
    """What a host says of its circumstances, but for what the variant sets."""
    variables = host.circumstances["environment"]
    others = {name: digest for name, digest in variables.items() if name not in variant.environment}
    return {**host.circumstances, "environment": others}


def _that_matter(packages: Mapping[str, str], script: Script) -> dict[str, str]:
    return {name: version for name, version in packages.items() if _matters(name, script)}


def _see_that_packages_are_the_same(script: Script, before: Mapping[str, str], host: Host) -> None:
    """Raise BenchbookError where a script's environment holds other versions than `before`, or other code."""
    line = script.metadata.line_of("dependencies")
    if (now := host.packages_now()) is None:
        what = "its interpreter does not tell which packages it has, and no run of this session is kept"
        fix = "see that it starts, and record it again"
        raise BenchbookError(Problem(script.path, line, what, fix))
    packages, sources = now
    after = _that_matter(packages, script)
    changed = [
        f"{name} changed from {before.get(name, 'none')} to {after.get(name, 'none')}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    changed += [
        f"the code of {name} changed"
        for name in _package_names(script)
        if host.sources.get(name) != sources.get(name)
    ]
    if changed:
        how = changed[0]
        what = f"{how} while it was recorded, and no run of this session is kept"
        fix = "leave its packages as they are until it is recorded, and record it again"
        raise BenchbookError(Problem(script.path, line, what, fix))


def _see_that_imports_are_the_same(script: Script, journal: Journal) -> None:
    """Raise BenchbookError where two runs of a campaign loaded one file with different content."""
    if journal.changed:
        name = plain(min(journal.changed))
        what = f"{name} changed while it was recorded, and no run of this session is kept"
        fix = "leave what it imports as it is until it is recorded, and record it again"
        raise BenchbookError(Problem(script.path, 1, what, fix))


def _matters(name: str, script: Script) -> bool:
    declared = _package_names(script)
    return name in {"python", *declared} or ("torch" in declared and name in {"triton", "numpy"})
