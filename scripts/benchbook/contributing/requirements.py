"""List the packages that the scripts need, as their heads declare them: at the oldest versions, or any."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Set

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from benchbook.content.metadata import FLOORS
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.script import read_script


def oldest_requirements(project: Project, venv: str = "") -> list[str]:
    """One line per package: the lowest version that every script which needs it admits.

    Parameters:
        project: The checkout.
        venv: The environment whose scripts are meant; empty for those that share the one of all others.

    Raises:
        BenchbookError: A script names no lowest version, or one that another does not admit;
            or no script is meant.
    """
    declared = list(_declared(project, venv))
    floors: dict[str, tuple[Version, str]] = {}
    extras: dict[str, set[str]] = defaultdict(set)
    problems: list[Problem] = []
    for path, line, requirement in declared:
        lowest = [Version(each.version) for each in requirement.specifier if each.operator in FLOORS]
        if not lowest:
            what = f"its dependency `{requirement}` names no lowest version"
            problems.append(Problem(path, line, what, "write the oldest that it runs on, after `>=`"))
            continue
        name = canonicalize_name(requirement.name)
        # Scripts run in one environment: the highest of their floors is the lowest that suits all.
        extras[name] |= requirement.extras
        floors[name] = max(floors.get(name, (Version("0"), path)), (max(lowest), path))
    for path, line, requirement in declared:
        floor, other = floors.get(canonicalize_name(requirement.name), (None, ""))
        if floor is not None and not requirement.specifier.contains(floor, prereleases=True):
            what = f"its dependency `{requirement}` excludes {floor}, the lowest that {other} admits"
            problems.append(Problem(path, line, what, "let the two meet"))
    if problems:
        raise BenchbookError(*problems)
    return [f"{name}{_bracketed(extras[name])}=={version}" for name, (version, _) in sorted(floors.items())]


def _bracketed(extras: Set[str]) -> str:
    """The extras of a package as they stand behind its name."""
    return f"[{','.join(sorted(extras))}]" if extras else ""


def newest_requirements(project: Project, venv: str = "") -> list[str]:
    """One line per package and declaration: whatever release of it every script admits.

    Parameters:
        project: The checkout.
        venv: The environment whose scripts are meant; empty for those that share the one of all others.

    Raises:
        BenchbookError: No script is meant.
    """
    return sorted({str(requirement) for _, _, requirement in _declared(project, venv)})


def _declared(project: Project, venv: str) -> Iterator[tuple[str, int, Requirement]]:
    """Every dependency that holds here of every script that runs in `venv`, with its place."""
    scripts = [read_script(path, project.root) for path in project.scripts().values()]
    names = {script.metadata.venv for script in scripts}
    if venv and venv not in names:
        what = f"no script runs in an environment `{venv}`"
        raise BenchbookError(Problem("--venv", 1, what, did_you_mean(venv, names - {""}, "environment")))
    for script in scripts:
        if script.metadata.venv != venv:
            continue
        line = script.metadata.line_of("dependencies")
        for text in script.metadata.dependencies:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate():
                yield script.path, line, requirement
