"""The command line, `benchbook`: each command hands over to the module that does its work."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from benchbook.cli.changes import comment, dependencies, notebooks, propose, report
from benchbook.cli.kit import kit
from benchbook.cli.predict import coefficients, predict_memory, predictions
from benchbook.cli.problems import print_problems
from benchbook.cli.translations import new, translations
from benchbook.content.problems import BenchbookError, Problem, lacking, printable
from benchbook.content.project import find_project
from benchbook.content.records import MOST_RUNS, NO_ROOM
from benchbook.content.unforeseen import limit_time, shows_traceback, unforeseen

# Seconds of a processor: some four times what a check takes. A build, which reads the pages once for each of
# the four languages, ends after more than four times as many.
LONGEST_CHECK = 200
# The exit code where the content is not right; typer's own is 2 where the words of the command are not.
NOT_RIGHT = 1

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Measure the scripts of the handbook, and check what its pages say of them.",
)
app.add_typer(translations, name="translations")
app.add_typer(new, name="new")

Scripts = Annotated[
    list[str] | None, typer.Argument(metavar="[SCRIPT]...", help="guide/script.py, or a guide")
]


def seconds(text: str) -> float:
    """A duration such as `90s`, `10m` or `1.5h` in seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|h)?", text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration; write 90s, 10m or 1.5h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2] or "s"]


@app.command()
def record(
    scripts: Scripts = None,
    stale: Annotated[
        bool, typer.Option("--stale", help="only what is stale or missing (the default)")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="whatever is fresh too")] = False,
    machine: Annotated[str | None, typer.Option(help="the name to record this machine under")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, max=MOST_RUNS, help="runs per variant")] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(help="write one file instead, or one into this folder, named after the machine"),
    ] = None,
    begun: Annotated[
        list[Path] | None,
        typer.Option(help="with --bundle: one of an earlier campaign, for what that file lacks"),
    ] = None,
    variant: Annotated[str | None, typer.Option(help="only this variant, and its baseline beside it")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="say what would run, and for how long")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="run a sample again and compare it; record nothing")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="with --plan or --verify: as JSON")] = False,
    runners: Annotated[
        int, typer.Option(min=1, help="with --plan --json: among how many of a kind to divide the work")
    ] = 1,
    at: Annotated[
        str | None, typer.Option(metavar="REVISION", help="with --plan: what another revision holds")
    ] = None,
    venvs: Annotated[
        bool,
        typer.Option("--venvs", help="list the environments of their own that scripts need; run nothing"),
    ] = False,
    budget: Annotated[
        str | None, typer.Option(help="stop before this is spent, e.g. 10m; resumes later")
    ] = None,
    smallest: Annotated[
        bool, typer.Option("--smallest", help="run each once at its smallest; record nothing")
    ] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="others use the device too: mark its times")
    ] = False,
    recorded_by: Annotated[str | None, typer.Option(help="who measures, where not the maintainers")] = None,
) -> None:
    """Run scripts in fresh processes on this machine and write what they yield."""
    budget_seconds = seconds(budget) if budget is not None else None
    if stale and everything:
        raise typer.BadParameter("--stale and --all exclude each other")
    if as_json and not (plan or verify):
        raise typer.BadParameter("--json goes with --plan or --verify")
    if verify and (plan or smallest or stale or everything or bundle):
        raise typer.BadParameter("--verify goes with none of --plan, --smallest, --stale, --all and --bundle")
    if begun and bundle is None:
        raise typer.BadParameter("--begun goes with --bundle: name the file that goes on with it")
    if at is not None and not plan:
        raise typer.BadParameter("--at goes with --plan")
    if venvs and plan:
        return  # which runs nothing
    if not sys.platform.startswith("linux"):
        what = f"recording needs Linux, and this is {sys.platform}"
        fix = "record on Linux; building, serving and checking work here"
        raise BenchbookError(Problem("benchbook record", 1, what, fix))
    from benchbook.content.revisions import laid_out
    from benchbook.recording.command import record_command

    here = find_project()
    with laid_out(here.root, at) if at is not None else contextlib.nullcontext(here) as project:
        code = record_command(
            project,
            scripts or [],
            everything=everything,
            machine=machine,
            repeats=repeats,
            bundle=bundle,
            variant=variant,
            plan=plan,
            plan_json=as_json,
            venvs=venvs,
            budget_seconds=budget_seconds,
            smallest=smallest,
            shared=shared,
            recorded_by=recorded_by,
            verify=verify,
            runners=runners,
            begun=begun or [],
        )
    raise typer.Exit(code)


@app.command("import")
def import_(
    bundles: Annotated[list[Path], typer.Argument(help="what `record --bundle` wrote")],
    at: Annotated[
        str | None,
        typer.Option(metavar="REVISION", help="judge them by the scripts and records of another one"),
    ] = None,
    replacing: Annotated[
        bool,
        typer.Option(
            "--replace", help="let them replace what is here, or add to its campaigns; with --machine"
        ),
    ] = False,
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="take bundles of this machine, though it is here already, and refuse all others",
        ),
    ] = None,
) -> None:
    """Validate records made elsewhere and put them in place: all of them, or none."""
    from benchbook.checking.bundles import import_at, import_bundles

    if replacing and machine is None:
        raise typer.BadParameter("--replace goes with --machine: say whose records may be replaced")
    project = find_project()
    done = (
        import_bundles(project, bundles, replacing, machine=machine)
        if at is None
        else import_at(project, bundles, at, replacing, machine)
    )
    try:
        for line in done.replaced:
            typer.echo(printable(f"replaced {line}"))
        for line in done.added:
            typer.echo(printable(f"added {line}"))
        for path in done.written:
            typer.echo(f"imported {path}")
        for path in done.removed:
            typer.echo(f"removed {path}")
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _say_unwritten(error, "the records are in place, and need not be imported again")
        raise typer.Exit(NOT_RIGHT) from error


@app.command()
def status(as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False) -> None:
    """List scripts and machines: fresh, or stale and why."""
    from benchbook.checking.status import print_status, project_status

    rows = project_status(find_project())
    if as_json:
        typer.echo(json.dumps([row.as_dict() for row in rows], indent=2))
    else:
        print_status(rows)


@app.command()
def check(
    strict: Annotated[bool, typer.Option("--strict", help="let warnings fail too")] = False,
) -> None:
    """Hold the tree to everything a pull request must hold; print every problem, the first 1000 of more."""
    from benchbook.checking.checks import check_project

    limit_time(LONGEST_CHECK)
    report = check_project(find_project())
    print_problems(report.warnings, "warning: ", err=True)
    print_problems(report.problems)
    if report.problems or report.warnings:
        typer.echo(f"{len(report.problems)} problem(s), {len(report.warnings)} warning(s)", err=True)
    if report.problems or (strict and report.warnings):
        raise typer.Exit(NOT_RIGHT)


@app.command()
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="guide/script.py[?axis=value][#metric], or records")],
    b: Annotated[str, typer.Argument(metavar="B", help="the same, or a number with its unit")],
    machine: Annotated[str | None, typer.Option(help="only on this machine")] = None,
    ratio: Annotated[float, typer.Option(min=1, help="the smallest ratio that matters")] = 1.0,
    expect: Annotated[
        Literal["less", "greater", "equal"] | None, typer.Option(help="exit with 1 unless A is so")
    ] = None,
    tolerance: Annotated[float, typer.Option(min=0, help="with --expect equal: a share, e.g. 0.05")] = 0.0,
    meters: Annotated[bool, typer.Option("--meters", help="what was read around cells, too")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON")] = False,
) -> None:
    """Compare two metrics, variants or sets of records (a machine, file or folder), with an interval."""
    from benchbook.cli.compare import ComparisonOptions, compare_command
    from benchbook.content.references import UnresolvedError

    question = ComparisonOptions(ratio, tolerance, expect)
    try:
        code = compare_command(find_project(), a, b, machine, question, meters, as_json)
    except UnresolvedError as error:
        raise typer.BadParameter(printable(str(error))) from None
    raise typer.Exit(code)


for command in (report, comment, propose, notebooks, dependencies, predictions, coefficients, kit):
    app.command()(command)
app.command("predict")(predict_memory)


def _root() -> Path:
    """The checkout, or where this was called if there is none."""
    with contextlib.suppress(BenchbookError):
        return find_project().root
    return Path.cwd()


def _say_unwritten(error: OSError, fix: str) -> None:
    """Say that there was no room for all that a command writes, and print nothing more."""
    # What was to be printed, too: writing it again at the end would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    why = (error.strerror or str(error)).lower()
    typer.echo(f"not all of it could be written: {why}; {fix}", err=True)


class _Outlet(io.FileIO):
    """What is printed to; once its reader is gone, it drops what comes, and the command finishes its work."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return super().write(data)


def _outlet(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """A stream that writes as `stream` does, through an outlet."""
    return io.TextIOWrapper(
        io.BufferedWriter(_Outlet(stream.fileno(), "w", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def main() -> None:
    """Run the command line; a problem of the content is printed, never a traceback."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        # Not every terminal, and hardly a file on Windows, has the letters of every language.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _outlet(stream))
    try:
        app()
    except BenchbookError as error:
        print_problems(error.problems, err=True)
        sys.exit(NOT_RIGHT)
    except ModuleNotFoundError as error:
        # A machine that only records has less installed than the other commands need.
        typer.echo(lacking(error), err=True)
        sys.exit(NOT_RIGHT)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            _say_unwritten(error, "make room, and run it again")
        elif shows_traceback():
            raise
        else:
            print_problems([unforeseen(error, _root())], err=True)
        sys.exit(NOT_RIGHT)
