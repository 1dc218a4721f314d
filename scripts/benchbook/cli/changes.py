"""The commands by which a change is begun, reported on its pull request, proposed and published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchbook.cli.translations import new
from benchbook.content.project import find_project


def report(
    base: Annotated[str, typer.Argument(help="the revision before, such as main")],
    head: Annotated[str, typer.Argument(help="the revision after")] = "HEAD",
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, which `comment` shows")] = False,
) -> None:
    """Write for a pull request what lies between two revisions: numbers, claims, records."""
    from benchbook.contributing.report import dump_report, make_report
    from benchbook.contributing.report_text import markdown

    made = make_report(find_project().root, base, head)
    typer.echo(dump_report(made) if as_json else markdown(made), nl=False)


def comment(
    path: Annotated[Path, typer.Argument(metavar="REPORT", help="what `report --json` wrote, anywhere")],
    show: Annotated[bool, typer.Option("--print", help="print what would be said; ask nobody")] = False,
) -> None:
    """Show a report on the pull request that a workflow's event speaks of; its words are data."""
    from benchbook.contributing.hosting import comment_on_pull_request
    from benchbook.contributing.report import read_report
    from benchbook.contributing.report_text import markdown

    made = read_report(path)
    typer.echo(markdown(made) if show else comment_on_pull_request(made), nl=show is False)


def propose(
    at: Annotated[str, typer.Option(metavar="REVISION", help="the commit that the records were made from")],
) -> None:
    """Open a pull request with the records that `import --at` put in place, on top of that commit."""
    from benchbook.contributing.hosting import propose_records

    typer.echo(propose_records(find_project(), at))


def notebooks(
    site: Annotated[Path, typer.Argument(help="the folder of the built site")] = Path("site"),
) -> None:
    """Publish the notebooks of a built site as the branch that Colab opens them from."""
    from benchbook.contributing.hosting import publish_notebooks

    typer.echo(publish_notebooks(find_project(), site))


def dependencies(
    newest: Annotated[bool, typer.Option("--newest", help="without a limit")] = False,
    oldest: Annotated[bool, typer.Option("--oldest", help="the lowest versions that scripts admit")] = False,
    venv: Annotated[
        str, typer.Option(metavar="NAME", help="of the scripts that run in this environment of their own")
    ] = "",
) -> None:
    """List what the scripts need, for pip: the oldest versions that they admit, or any."""
    if (newest and oldest) or not (newest or oldest or venv):
        raise typer.BadParameter("say --oldest or --newest")
    from benchbook.contributing.requirements import newest_requirements, oldest_requirements

    for line in (oldest_requirements if oldest else newest_requirements)(find_project(), venv):
        typer.echo(line)


@new.command("guide")
def new_guide_(name: Annotated[str, typer.Argument(help="such as big_models")]) -> None:
    """Begin a guide with one script: it records, builds and passes the check as it is."""
    from benchbook.contributing.skeletons import new_guide

    for path in new_guide(find_project(), name):
        typer.echo(f"wrote {path}")


@new.command("script")
def new_script_(name: Annotated[str, typer.Argument(help="guide/script")]) -> None:
    """Begin a script that runs and records as it is."""
    from benchbook.contributing.skeletons import new_script

    for path in new_script(find_project(), name):
        typer.echo(f"wrote {path}")
