"""Tell what of scripts is otherwise than on `main`, by which records, quotations and predictions are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from benchbook.checking.committed import Committed, moved_from
from benchbook.checking.origins import script_in
from benchbook.content.problems import BenchbookError, Problem, few
from benchbook.content.project import Project
from benchbook.content.regions import region_lines
from benchbook.content.script import Script
from benchbook.content.validation import read_json, record_problems
from benchbook.query.measurements import shown_variant


def rearranged_scripts(
    project: Project, committed: Committed, scripts: Mapping[str, Script]
) -> Iterator[Problem]:
    """Scripts whose records and predictions say something else than on `main` now, whatever their code is.

    They are otherwise, or renamed; their variants are in another order; one that was measured is not
    declared any more; they show another, or declare a metric otherwise.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        scripts: Those here, by their reference.
    """
    for script in scripts.values():
        if committed.holds(script.path, script.source):
            continue
        is_there = script.path in committed.blobs
        main = committed.script(script) if is_there else _renamed(project, committed, script)
        if main is None:
            continue
        yield _changed(main, script)
        there, here = (side.metadata.metrics for side in (main, script))
        if odd := [name for name in here if name in there and here[name] != there[name]]:
            what = f"declares its metric {few(odd)} otherwise than `main`, which its records are read by"
            fix = "say in the pull request why"
            yield Problem(script.path, script.metadata.line_of(odd[0]), what, fix)
        before, now = ([one.name for one in side.variants(())] for side in (main, script))
        line = script.metadata.line_of("matrix")
        fix = "keep their order, or say in the pull request why the ratios change"
        if before[0] != now[0]:
            what = f"its first variant is {now[0]}, and {before[0]} on `main`: every ratio is of another"
            yield Problem(script.path, line, what, fix)
        elif _common(before, now) != _common(now, before):
            what = "its variants are in another order than on `main`: ratios may be of another"
            yield Problem(script.path, line, what, fix)
        if (shows := shown_variant(script).name) != (was := shown_variant(main).name):
            what = f"shows its variant {shows}, and on `main` {was}: what its cells print is of that one"
            yield Problem(script.path, line, what, "say in the pull request why")
        for machine in project.machines if set(before) - set(now) else ():
            shown = project.relative(project.record_path(machine, script.reference))
            yield from undeclared_variants(script, committed.record(shown) or {"variants": {}}, machine)


def _common(names: Sequence[str], others: Collection[str]) -> list[str]:
    return [name for name in names if name in others]


def _renamed(project: Project, committed: Committed, script: Script) -> Script | None:
    """The script of `main` whose record a new one has, or that git takes it for; None where there is none."""
    for machine in project.machines if committed.gone else ():
        path = project.record_path(machine, script.reference)
        shown = project.relative(path)
        table = read_json(path, shown)[0]
        if not record_problems(table, shown) and (was := moved_from(project, committed, table)) is not None:
            return committed.script_at(f"{project.relative(project.snippets)}/{was}", was)
    # One that has no record may have been predicted.
    before = committed.renamed.get(script.path, "")
    return committed.script_at(before, before.removeprefix(f"{project.relative(project.snippets)}/"))


def _changed(main: Script, script: Script) -> Problem:
    """That a script is otherwise than `main` has it, and what of it."""
    cells = [{cell.name: cell.source for cell in side.cells} for side in (main, script)]
    odd = [f"cell `{name}`" for name in {**cells[0], **cells[1]} if cells[0].get(name) != cells[1].get(name)]
    if _head(main) != _head(script):
        odd.insert(0, "head")
    named = f" (its {few(odd)} differs)" if odd else ""
    where = "on `main`" if main.path == script.path else f"{main.path} on `main`, which it was"
    return Problem(script.path, 1, f"is otherwise than {where}{named}", "say in the pull request why")


def _head(script: Script) -> str:
    """What stands above the cells of a script."""
    return "\n".join(script.source.splitlines()[: script.cells[0].line - 1])


def undeclared_variants(script: Script, table: Mapping[str, Any], machine: str) -> Iterator[Problem]:
    """The variants of a record that its script does not declare.

    Parameters:
        script: As it stands.
        table: Its record.
        machine: Where it was measured.
    """
    declared = {one.name for one in script.variants(())}
    for name in table["variants"]:
        if name not in declared:
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
