"""The command that derives what the memory calculator computes from, and holds it against the predictor."""

from __future__ import annotations

from typing import Annotated

import typer

from benchbook.content.project import find_project


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
