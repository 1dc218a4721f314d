"""Hold scripts that run in environments of their own to the files that pin those, and the reverse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.script import Script

# What the environment NAME has that constraints.txt does not, or has in other versions: `name==version`.
BEGINNING, ENDING = "constraints-", ".txt"


def environment_problems(project: Project, scripts: Iterable[Script]) -> Iterator[Problem]:
    """Environments that nothing pins, and pins of no environment.

    Parameters:
        project: The checkout.
        scripts: All that can be read. Where others cannot, they may be the ones that a file is for.
    """
    known = tuple(scripts)
    for script in known:
        venv = script.metadata.venv
        name = f"{BEGINNING}{venv}{ENDING}"
        if venv and not (project.root / name).is_file():
            what = f"its environment `{venv}` has no {name}"
            fix = "pin there, as name==version, what it has that constraints.txt does not, or has otherwise"
            yield Problem(script.path, script.metadata.line_of("venv"), what, fix)
    if len(known) < len(project.scripts()):
        return
    named = {script.metadata.venv for script in known}
    for path in sorted(project.root.glob(f"{BEGINNING}*{ENDING}")):
        venv = path.name.removeprefix(BEGINNING).removesuffix(ENDING)
        if venv not in named:
            fix = "remove it, or name the environment in a script, as `venv` of [tool.benchbook]"
            yield Problem(path.name, 1, f"pins an environment `{venv}` that no script runs in", fix)
