"""The commands that make predictions, and that derive what the memory calculator computes from."""

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


def coefficients(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="names in snippets/models, or families")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="whatever is up to date too")] = False,
    points: Annotated[
        int, typer.Option(min=0, help="predict so many random setups instead, to compare with")
    ] = 0,
    seed: Annotated[int, typer.Option(help="with --points: another one draws other setups")] = 1,
) -> None:
    """Derive coefficients into snippets/coefficients: what is missing or stale, or what is named."""
    from benchbook.calculator.deriving import derive_all, predict_points

    project = find_project()
    lines = predict_points(project, points, seed) if points else derive_all(project, models or (), everything)
    for line in lines:
        typer.echo(line)
