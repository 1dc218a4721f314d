"""Take in records made elsewhere: a file is put in place whole, or refused with every reason."""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from benchbook.freshness import input_digests
from benchbook.machines.description import Machine, write_machine
from benchbook.plausibility import plausibility_problems
from benchbook.problems import BenchbookError, Problem
from benchbook.project import Project
from benchbook.quotations import quotation_problems
from benchbook.records import (
    BUNDLE_SCHEMA,
    LARGEST_BUNDLE,
    Publication,
    Record,
    campaigns_of,
    load_record,
    read_packed,
    record_from,
    write_record,
)
from benchbook.script import Script, machine_kinds, read_script
from benchbook.validation import (
    RECORD_AGAIN,
    machine_problems,
    parse_json,
    record_problems,
)


def import_bundle(project: Project, path: Path) -> list[str]:
    """Put the machine and the records of a bundle in place; the paths written, relative to the project.

    Raises:
        BenchbookError: Anything in it is not right; then nothing was written.
    """
    bundle = _read_bundle(path)
    machine, records = bundle["machine"], bundle["records"]
    problems = _refusals(project, machine, records, path.name)
    if problems:
        raise BenchbookError(*problems)
    folder = project.records / machine["name"]
    written = [project.relative(folder / "machine.json")]
    merged: list[tuple[Path, Record]] = []
    for table in records:
        target = project.record_path(machine["name"], table["script"])
        merged.append((target, _merge(load_record(target, project.relative(target)), record_from(table))))
    write_machine(folder / "machine.json", Machine(**machine))
    for target, record in merged:
        write_record(target, record)
        written.append(project.relative(target))
    return written


def _read_bundle(path: Path) -> dict[str, Any]:
    """The content of a bundle: `{"schema": 1, "machine": {...}, "records": [...]}`, gzipped or not.

    Raises:
        BenchbookError: It is not one, or larger than any honest one.
    """
    try:
        raw = read_packed(path, LARGEST_BUNDLE)
        text = raw.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        mend = "transfer it again, as the file that `record --bundle` wrote"
        raise BenchbookError(Problem(path.name, 1, f"cannot be read ({error})", mend)) from error
    if len(raw) > LARGEST_BUNDLE:
        mend = "bundle fewer scripts at a time"
        raise BenchbookError(Problem(path.name, 1, f"is larger than {LARGEST_BUNDLE >> 20} MiB", mend))
    bundle, problems = parse_json(text, path.name)
    if problems:
        raise BenchbookError(*problems)
    shape = isinstance(bundle, dict) and set(bundle) == {"schema", "machine", "records"}
    if not shape or bundle["schema"] != BUNDLE_SCHEMA or not isinstance(bundle["records"], list):
        mend = "pass the file that `record --bundle` wrote"
        raise BenchbookError(Problem(path.name, 1, "is not a bundle of records", mend))
    return dict(bundle)


def _refusals(project: Project, machine: Any, records: list[Any], path: str) -> list[Problem]:
    problems = machine_problems(machine, path)
    for table in records:
        problems += record_problems(table, path)
    if problems:
        return problems
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
            mend = "check out the commit it was recorded from"
            problems.append(Problem(path, 1, f"{reference} is no script of this checkout", mend))
            continue
        script = read_script(scripts[reference], project.root)
        if mixed := quotation_problems(table, machine, script, path):
            problems += mixed
            continue
        problems += _origin(project, script, machine, table, path)
        problems += plausibility_problems(table, machine, script, path)
    return problems


def _origin(
    project: Project, script: Script, machine: dict[str, Any], table: dict[str, Any], path: str
) -> list[Problem]:
    """What shows that the records do not come from the scripts as they stand here."""
    problems = []
    known = {v.name: v for v in script.variants(machine_kinds(machine["kind"], machine["name"]))}
    inputs = input_digests(script, project.snippets / script.guide)
    place = project.record_path(machine["name"], script.reference)
    here = load_record(place, project.relative(place))
    record = record_from(table)
    brought = record.variants
    for name, variant in table["variants"].items():
        # What is quoted comes from no code, and once.
        if isinstance(record.campaigns[brought[name].campaign], Publication):
            continue
        # Of a variant that is no longer measured, a bundle brings back what it found in its checkout.
        if here is not None and here.variants.get(name) == brought[name]:
            continue
        title = f"{script.reference}, variant {name}"
        if name not in known:
            problems.append(Problem(path, 1, f"{title}: the script has no such variant", RECORD_AGAIN))
            continue
        if variant["code"] != script.code_digest or variant["inputs"] != inputs:
            mend = f"{RECORD_AGAIN} from this commit"
            problems.append(Problem(path, 1, f"{title}: was recorded from other code or inputs", mend))
        if variant["outcome"] == "ok" and len(variant["runs"]) < min(3, known[name].repeats):
            what = f"{title}: holds {len(variant['runs'])} runs where {known[name].repeats} are asked for"
            problems.append(Problem(path, 1, what, RECORD_AGAIN))
    return problems


def _merge(old: Record | None, new: Record) -> Record:
    """`new` laid over `old`: variants it does not hold stay, with their campaigns and the history."""
    if old is None:
        return new
    variants = old.variants | new.variants
    campaigns = campaigns_of(variants, old.campaigns | new.campaigns)
    history = (*old.history, *(line for line in new.history if line not in old.history))
    return Record(new.script, new.machine, campaigns, variants, history, new.licence)
