"""The command that makes predictions, which pages show where nothing was measured."""

from __future__ import annotations

from typing import Annotated

import typer

from benchbook.content.project import find_project


def predictions(
    scripts: Annotated[
        list[str] | None, typer.Argument(metavar="[SCRIPT]...", help="guide/script.py, or a guide")
    ] = None,
    machine: Annotated[str, typer.Option(help="only on this machine, such as nvidia-h200-141gb")] = "",
    everything: Annotated[bool, typer.Option("--all", help="whatever is up to date too")] = False,
) -> None:
    """Predict what each predictions.toml asks, into snippets/predictions; blind ones stay once measured."""
    from benchbook.predictions.making import ask_predictor, make_predictions, stamp_now

    project = find_project()
    for one in make_predictions(
        project, ask_predictor, stamp_now(project), scripts or (), machine, everything
    ):
        reason = f" ({one.reason})" if one.reason else ""
        typer.echo(f"{one.what:9}  {one.machine}  {one.script}  {one.variant}{reason}")
