"""The command that packs a kit for a machine without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from benchbook.content.project import find_project


def kit(
    folder: Annotated[Path, typer.Argument(help="where the kit goes, in the place of an earlier one")],
    scripts: Annotated[
        list[str] | None,
        typer.Argument(help="carry what these need, and record them alone"),
    ] = None,
    python: Annotated[str, typer.Option(help="the version of Python there, e.g. 3.12")] = "3.12",
    cuda: Annotated[
        str, typer.Option(help="the version of CUDA that PyTorch there was built for, or none")
    ] = "13.0",
    architecture: Annotated[str, typer.Option(help="of the processor there, as `uname -m` says")] = "x86_64",
    state: Annotated[
        Path | None, typer.Option(help="what an earlier campaign handed back, to go on from there")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="REVISION", help="what another revision holds, and not the checkout")
    ] = None,
) -> None:
    """Pack this commit and its packages for a machine that has Python, PyTorch and NumPy, and no network."""
    from benchbook.recording.kit import pack_kit

    built_for = None if cuda in {"", "none"} else cuda
    for line in pack_kit(find_project(), folder, python, built_for, architecture, state, at, scripts or ()):
        typer.echo(line)
