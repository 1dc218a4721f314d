"""Take in records made elsewhere: a file is put in place whole, or refused with every reason."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchbook.checking.origins import differing_key, machine_origin_problems, record_origin_problems
from benchbook.checking.plausibility import plausibility_problems
from benchbook.checking.quotations import quotation_problems
from benchbook.content.formats import from_table
from benchbook.content.machines import MachineDescription, write_machine
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import (
    LARGEST_BUNDLE,
    Record,
    bundle_digest,
    campaigns_of,
    load_record,
    read_packed,
    record_from,
    write_record,
    write_text,
)
from benchbook.content.revisions import laid_out
from benchbook.content.script import read_script
from benchbook.content.validation import machine_problems, parse_json, record_problems


def import_bundles(project: Project, paths: Sequence[Path]) -> list[str]:
    """Put the machines and the records of bundles in place; the paths written, relative to the project.

    Several may hold the records of one machine, as where several of a kind shared the work.

    Raises:
        BenchbookError: Anything in any of them is not right; then nothing was written.
    """
    problems: list[Problem] = []
    bundles = []
    for path in paths:
        try:
            bundles.append((path, _read_bundle(path)))
        except BenchbookError as error:
            problems += error.problems
    seen: dict[tuple[str, str], str] = {}
    machines: dict[str, Any] = {}
    for path, bundle in bundles:
        machine = bundle["machine"]
        refused = _refusals(project, machine, bundle["records"], path.name)
        problems += refused or _repeated(bundle, path.name, seen)
        if not refused and (odd := differing_key(machines.setdefault(machine["name"], machine), machine)):
            what = f"another of the bundles describes {machine['name']} otherwise (its {odd} differs)"
            problems.append(Problem(path.name, 1, what, "record with `--recorded-by` and your name"))
    if problems:
        raise BenchbookError(*problems)
    # All is read before anything is written: a record here that cannot be read keeps everything out.
    merged = [(bundle["machine"], _merged(project, bundle)) for _, bundle in bundles]
    return list(dict.fromkeys(place for each in merged for place in _put_in_place(project, *each)))


def import_at(project: Project, paths: Sequence[Path], revision: str) -> list[str]:
    """As `import_bundles`, judged by what `revision` holds, as data, and laid over its records.

    Raises:
        BenchbookError: There is no such revision, or anything in the bundles is not right.
    """
    with laid_out(project.root, revision) as there:
        written = import_bundles(there, paths)
        for name in written:
            write_text(project.root / name, (there.root / name).read_text("utf-8"))
    return written


def _merged(project: Project, bundle: dict[str, Any]) -> dict[Path, Record]:
    """The records of a bundle by their place, laid over those that are there."""
    merged = {}
    for table in bundle["records"]:
        target = project.record_path(table["machine"], table["script"])
        merged[target] = _merge(load_record(target, project.relative(target)), record_from(table))
    return merged


def _put_in_place(project: Project, machine: dict[str, Any], records: dict[Path, Record]) -> list[str]:
    described = project.records / machine["name"] / "machine.json"
    write_machine(described, from_table(MachineDescription, machine))
    for target, record in records.items():
        write_record(target, record)
    return [project.relative(path) for path in (described, *records)]


def _repeated(bundle: dict[str, Any], path: str, seen: dict[tuple[str, str], str]) -> list[Problem]:
    """Records that another of the bundles holds too: which of the two is meant, nobody can tell."""
    problems = []
    for table in bundle["records"]:
        other = seen.setdefault((table["machine"], table["script"]), path)
        if other != path:
            what = f"it holds a record of {table['script']} on {table['machine']}, and so does {other}"
            problems.append(Problem(path, 1, what, "import one of the two"))
    return problems


def _read_bundle(path: Path) -> dict[str, Any]:
    """The content of a bundle, gzipped or not: `machine`, `records`, and the `digest` of both.

    Raises:
        BenchbookError: It is not one, or damaged, or larger than any honest one.
    """
    fix = "transfer it again, as the file that `record --bundle` wrote"
    try:
        raw = read_packed(path, LARGEST_BUNDLE)
        text = raw.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise BenchbookError(Problem(path.name, 1, f"cannot be read ({error})", fix)) from error
    if len(raw) > LARGEST_BUNDLE:
        what = f"is larger than {LARGEST_BUNDLE >> 20} MiB"
        raise BenchbookError(Problem(path.name, 1, what, "bundle fewer scripts at a time"))
    bundle, problems = parse_json(text, path.name)
    if problems:
        raise BenchbookError(*problems)
    shape = isinstance(bundle, dict) and set(bundle) == {"schema", "digest", "machine", "records"}
    if not shape or bundle["schema"] != 1 or not isinstance(bundle["records"], list):
        fix = "pass the file that `record --bundle` wrote"
        raise BenchbookError(Problem(path.name, 1, "is not a bundle of records", fix))
    try:
        digest = bundle_digest(bundle["machine"], bundle["records"])
    except (ValueError, RecursionError) as error:
        raise BenchbookError(Problem(path.name, 1, f"is not a bundle of records ({error})", fix)) from error
    if bundle["digest"] != digest:
        what = "was changed since it was written: its digest is of other content"
        raise BenchbookError(Problem(path.name, 1, what, fix))
    return dict(bundle)


def _refusals(project: Project, machine: Any, records: list[Any], path: str) -> list[Problem]:
    problems = machine_problems(machine, path)
    for table in records:
        problems += record_problems(table, path)
    if problems:
        return problems
    problems += machine_origin_problems(project, machine, path)
    scripts = project.scripts()
    for reference, times in Counter(table["script"] for table in records).items():
        if times > 1:
            what = f"it holds {times} records of {reference}"
            problems.append(Problem(path, 1, what, "pass the file that `record --bundle` wrote"))
    for table in records:
        reference = table["script"]
        if table["machine"] != machine["name"]:
            what = f"{reference} was recorded on {table['machine']}, not on {machine['name']}"
            problems.append(Problem(path, 1, what, "bundle the records of one machine"))
        if reference not in scripts:
            fix = "check out the commit it was recorded from"
            problems.append(Problem(path, 1, f"{reference} is not a script of this checkout", fix))
            continue
        script = read_script(scripts[reference], project.root)
        if mixed := quotation_problems(table, machine, script, path):
            problems += mixed
            continue
        problems += record_origin_problems(project, script, machine, table, path)
        problems += plausibility_problems(table, machine, script, path)
    return problems


def _merge(old: Record | None, new: Record) -> Record:
    """`new` laid over `old`: variants it does not hold stay, with their campaigns and the history."""
    if old is None:
        return new
    variants = old.variants | new.variants
    campaigns = campaigns_of(variants, old.campaigns | new.campaigns)
    # A campaign that was stopped wrote a line, and another of the same name once it had gone on.
    renewed = {line.campaign for line in new.history}
    history = (*(line for line in old.history if line.campaign not in renewed), *new.history)
    return replace(new, campaigns=campaigns, variants=variants, history=history)
