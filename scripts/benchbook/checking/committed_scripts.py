"""Hold scripts to what `main` has of them: fresh records, and quoted ones, are read by what they declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.checking.committed import Committed
from benchbook.checking.origins import script_in
from benchbook.content.problems import BenchbookError, Problem, few
from benchbook.content.project import Project
from benchbook.content.records import is_published
from benchbook.content.regions import region_lines
from benchbook.content.script import Script


def rearranged_scripts(
    project: Project, committed: Committed, scripts: Mapping[str, Script]
) -> Iterator[Problem]:
    """Scripts whose fresh records, or quoted ones, say something else than on `main` now, by their heads.

    They begin with another variant, lack one that was measured, or declare a metric otherwise.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        scripts: Those here, by their reference.
    """
    for script in scripts.values():
        if committed.holds(script.path, script.source) or (main := committed.script(script)) is None:
            continue
        # What is quoted is stale by no code.
        if not (main.codes & script.codes or _is_quoted(project, script)):
            continue
        there, here = (side.metadata.metrics for side in (main, script))
        if odd := [name for name in here if name in there and here[name] != there[name]]:
            what = f"declares its metric {few(odd)} otherwise than `main`, which its records are read by"
            fix = "say in the pull request why"
            yield Problem(script.path, script.metadata.line_of(odd[0]), what, fix)
        before, now = ([one.name for one in side.variants(())] for side in (main, script))
        if before[0] != now[0]:
            what = f"its first variant is {now[0]}, and {before[0]} on `main`: every ratio is of another"
            fix = "keep that first, or say in the pull request why the ratios change"
            yield Problem(script.path, script.metadata.line_of("matrix"), what, fix)
        for machine in project.machines if set(before) - set(now) else ():
            shown = project.relative(project.record_path(machine, script.reference))
            yield from undeclared_variants(script, committed.record(shown) or {"variants": {}}, machine)


def _is_quoted(project: Project, script: Script) -> bool:
    quoted = filter(is_published, project.machines)
    return any(project.record_path(machine, script.reference).is_file() for machine in quoted)


def undeclared_variants(script: Script, table: Mapping[str, Any], machine: str) -> Iterator[Problem]:
    """The quoted variants of a record, and those of the same code, that its script does not declare.

    Parameters:
        script: As it stands.
        table: Its record.
        machine: Where it was measured.
    """
    declared = {one.name for one in script.variants(())}
    for name, variant in table["variants"].items():
        if (variant["code"] is None or variant["code"] in script.codes) and name not in declared:
            what = f"its variant {name}, measured on {machine}, is not declared any more, and on no page"
            fix = "declare it again, or say in the pull request why it goes"
            yield Problem(script.path, script.metadata.line_of("matrix"), what, fix)


def moved_region_problems(
    project: Project, committed: Committed, table: Mapping[str, Any], script: Script, text: str
) -> Iterator[Problem]:
    """Regions whose marks stand around other lines than when a record noted that they were reached.

    Marks are comments, which no digest has. The lines are those that `main` has in the region, or the commit
    that was measured; of a new campaign whose commit is not here nothing can be said.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        table: A record of the script, of the right shape.
        script: As it stands.
        text: The content of the record.
    """
    shown = project.relative(project.record_path(table["machine"], table["script"]))
    if committed.holds(script.path, script.source) and committed.holds(shown, text):
        return
    reached: dict[str, set[str]] = {}
    for variant in table["variants"].values():
        if variant["code"] in script.codes:
            for name in variant.get("regions", ()):
                reached.setdefault(name, set()).add(variant["campaign"])
    if not (names := sorted(reached.keys() & script.regions.keys())):
        return
    main = committed.same_code(script)
    known = (committed.record(shown) or {"campaigns": {}})["campaigns"]
    for name in names:
        lines = _lines(script, name)
        for campaign in sorted(reached[name]):
            if campaign in known and _lines(main, name) == lines:
                continue
            there, where = _measured_script(project, table["campaigns"][campaign], script), "measured"
            if there is None and campaign in known:
                there, where = main, "on `main`"
            if there is not None and _lines(there, name) != lines:
                what = f"the region `{name}` holds other lines than those {where}, which "
                what += f"{table['machine']} reached in campaign {campaign}"
                fix = "put its marks back, or give these lines a name of their own and record again"
                yield Problem(script.path, script.regions[name].line, what, fix)


def _lines(script: Script | None, region: str) -> list[str] | None:
    """What the lines of a region say; None where there is no such region."""
    cell = script.regions.get(region) if script is not None else None
    return region_lines(cell.source) if cell is not None else None


def _measured_script(project: Project, campaign: Mapping[str, Any], script: Script) -> Script | None:
    """A script as it was measured in a campaign; None where that is not known, or was of other code."""
    if campaign.get("commit") is None or campaign["modified"]:
        return None
    try:
        found = script_in(project.root, f"{campaign['commit']}:./{script.path}", script.reference)
    except BenchbookError:
        return None
    return found if found is not None and found.code_digest in script.codes else None
