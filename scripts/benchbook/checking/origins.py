"""Judge where records from outside come from: whose machine, which hardware, which code and libraries."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from benchbook.content.formats import from_table
from benchbook.content.machines import MachineDescription, machine_table
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import OWNER_MARK, Publication, load_record, record_from
from benchbook.content.script import Script, machine_kinds
from benchbook.content.validation import RECORD_AGAIN
from benchbook.machines.accelerators import VENDORS
from benchbook.machines.description import MAINTAINERS, gigabytes, slug
from benchbook.machines.gpus import sheet_of
from benchbook.query.freshness import input_digests, judge_record

# What two descriptions of one machine agree on, whatever was updated between them. Where there is an
# accelerator, it alone is the machine: the same model is lent in hosts of several makes.
HARDWARE = ("name", "vendor", "memory_bytes", "count", "mig", "partition")
PROCESSOR = ("model", "vendor", "cores")
# Of two descriptions of one machine the memory differs by what firmware and kernel keep for themselves.
MEMORY_AGREES = 0.05
# What a person may have worded better; an import leaves it as it is.
WORDING = ("title", "short")
UNDER_A_NAME = "record with `--recorded-by` and your name"
REVIEWED = "from a commit that was reviewed (`--at`)"


def machine_origin_problems(
    project: Project, machine: Mapping[str, Any], path: str, reviewed: bool = False
) -> Iterator[Problem]:
    """What is wrong with a well-formed description that comes from outside.

    Parameters:
        project: The checkout, whose description of a machine of the same name it must agree with.
        machine: The description.
        path: The file, for messages.
        reviewed: Whether it comes from a commit that was reviewed, as what the maintainers measured does.
    """
    name, owner, kind = machine["name"], machine["owner"], machine["kind"]
    accelerator = machine["accelerator"]
    if (kind == "cpu") != (accelerator is None):
        what = (
            f"{name} is of the kind {kind} and describes {'no' if accelerator is None else 'an'} accelerator"
        )
        yield Problem(path, 1, what, "bundle what `record --bundle` wrote")
    elif accelerator is not None and accelerator["vendor"] not in {VENDORS[kind], None}:
        what = f"{name} is of the kind {kind}, which {accelerator['vendor']} does not make"
        yield Problem(path, 1, what, "bundle what `record --bundle` wrote")
    sheet = sheet_of(machine)
    if sheet is not None and int(gigabytes(accelerator["memory_bytes"]) or 0) > sheet.memory_gb:
        what = (
            f"{name} has devices of {gigabytes(accelerator['memory_bytes'])} GB, "
            f"more than the {sheet.memory_gb} of {sheet.model}'s data sheet ({sheet.source})"
        )
        yield Problem(path, 1, what, "correct the description, or bring the data sheet up to date")
    if not machine["published"]:
        _, _, suffix = name.partition(OWNER_MARK)
        if suffix != slug(owner or ""):
            what = f"{name} belongs to {owner or 'the maintainers'}, and its name says otherwise"
            yield Problem(path, 1, what, f"{UNDER_A_NAME}, which becomes its ending")
        yield from _posing(project, machine, path, reviewed)
    known = description_here(project, name)
    differing = differing_key(known, machine) if known else None
    if differing:
        what = f"{name} is here already and is another machine (its {differing} differs)"
        fix = f"{UNDER_A_NAME}, so that two owners of one model do not collide"
        yield Problem(path, 1, what, fix)


def _posing(project: Project, machine: Mapping[str, Any], path: str, reviewed: bool) -> Iterator[Problem]:
    """A machine that passes for one of the maintainers', whose records a reviewed commit alone yields."""
    name, owner = machine["name"], machine["owner"]
    if name == project.config.reference_machine and not reviewed:
        what = f"{name} is the reference machine"
        yield Problem(path, 1, what, f"record on it in a checkout, or by the workflow, {REVIEWED}")
    elif not slug(owner or "") and not reviewed:
        what = f"{name} is described as a machine of the maintainers"
        fix = f"{UNDER_A_NAME}; the maintainers' own comes {REVIEWED} alone"
        yield Problem(path, 1, what, fix)
    elif owner is not None and _is_maintainers(owner):
        what = f"{name} belongs to {owner}, which is what the maintainers are called"
        yield Problem(path, 1, what, UNDER_A_NAME)


def _is_maintainers(name: str) -> bool:
    """Whether whoever is called `name` passes for the maintainers of the handbook."""
    return MAINTAINERS.removesuffix("s") in slug(unicodedata.normalize("NFKC", name)).replace("-", "")


def changed_fields(project: Project, machine: MachineDescription) -> list[tuple[str, Any, Any]]:
    """What of the description that is here would be another: the field, what it holds, and what it would.

    Raises:
        BenchbookError: There is one here, and it cannot be read.
    """
    known = description_here(project, machine.name)
    if known is None:
        return []
    try:
        here = _fields(machine_table(from_table(MachineDescription, known)))
    except (TypeError, ValueError, AttributeError) as error:
        raise BenchbookError(_unreadable(project, machine.name, error)) from error
    there = _fields(machine_table(machine))
    # A key with nothing in it says no more than none.
    pairs = ((key, here.get(key), there.get(key)) for key in {**here, **there} if key not in WORDING)
    return [(name, old, new) for name, old, new in pairs if old != new]


def _fields(table: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Every value in a description, by the keys that lead to it."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= _fields(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return found


def differing_key(here: Mapping[str, Any], there: Mapping[str, Any]) -> str | None:
    """In what two descriptions under one name are not of one machine; None if they are."""
    return next((key for key, one, other in _compared(here, there) if one != other), None)


def description_here(project: Project, name: str) -> Mapping[str, Any] | None:
    """What the machine.json of a machine holds; None where there is none.

    Raises:
        BenchbookError: It cannot be read.
    """
    try:
        table = json.loads((project.records / name / "machine.json").read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise BenchbookError(_unreadable(project, name, error)) from error
    if not isinstance(table, dict):
        raise BenchbookError(_unreadable(project, name, "it is no table"))
    return table


def _unreadable(project: Project, name: str, error: object) -> Problem:
    shown = project.relative(project.records / name / "machine.json")
    return Problem(shown, 1, f"cannot be read ({error})", "restore the file")


def _compared(here: Mapping[str, Any], there: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    yield from ((key, here.get(key), there.get(key)) for key in ("kind", "owner", "published"))
    has_accelerator = here.get("accelerator") is not None and there.get("accelerator") is not None
    part, keys = ("accelerator", HARDWARE) if has_accelerator else ("cpu", PROCESSOR)
    one, other = here.get(part) or {}, there.get(part) or {}
    yield from ((f"{part} {key}", one.get(key), other.get(key)) for key in keys)
    sizes = [int(side.get("memory_bytes") or 0) for side in (here, there)]
    if not has_accelerator and 0 < min(sizes) < max(sizes) * (1 - MEMORY_AGREES):
        yield "memory", sizes[0], sizes[1]


def record_origin_problems(
    project: Project, script: Script, machine: Mapping[str, Any], table: Mapping[str, Any], path: str
) -> Iterator[Problem]:
    """What shows that a well-formed record does not come from `script` as it stands here, run as it asks."""
    known = {v.name: v for v in script.variants(machine_kinds(machine["kind"], machine["name"]))}
    inputs = input_digests(script, project.snippets / script.guide)
    place = project.record_path(machine["name"], script.reference)
    here = load_record(place, project.relative(place))
    record = record_from(table)
    asked: set[str] = set()
    for name, variant in record.variants.items():
        # What is quoted comes from no code, and once.
        if isinstance(record.campaigns[variant.campaign], Publication):
            continue
        # Of a variant that is no longer measured, a bundle brings back what it found in its checkout.
        if here is not None and here.variants.get(name) == variant:
            continue
        asked.add(variant.campaign)
        title = f"{script.reference}, variant {name}"
        if name not in known:
            yield Problem(path, 1, f"{title}: the script has no such variant", RECORD_AGAIN)
            continue
        verdict = judge_record(script, known[name], record, inputs)
        if verdict.state == "stale":
            what = f"{title}: was recorded from other code, values or libraries ({verdict.reason})"
            yield Problem(path, 1, what, f"{RECORD_AGAIN} from this commit")
        if variant.outcome == "ok" and len(variant.runs) < known[name].repeats:
            what = f"{title}: holds {len(variant.runs)} runs where {known[name].repeats} are asked for"
            yield Problem(path, 1, what, RECORD_AGAIN)
    measurer = machine["owner"] or MAINTAINERS
    for name, campaign in table["campaigns"].items():
        if "source" in campaign and _is_maintainers(campaign["recorded_by"]):
            what = f"campaign {name} is quoted, and says that the maintainers measured it"
            yield Problem(path, 1, what, "name who is said to have measured it")
    for name in sorted(asked):
        campaign = table["campaigns"][name]
        if campaign["recorded_by"] != measurer:
            what = f"campaign {name} was recorded by {campaign['recorded_by']}, on a machine of {measurer}"
            yield Problem(path, 1, what, "record under one name")
        python = campaign["packages"].get("python")
        if python is None or not _admits(script.metadata.requires_python, python):
            what = f"campaign {name} ran on Python {python}, where {script.reference} asks for "
            what += script.metadata.requires_python
            yield Problem(path, 1, what, "record with a Python that the script admits")


def _admits(specifier: str, version: str) -> bool:
    try:
        return SpecifierSet(specifier).contains(version, prereleases=True)
    except InvalidSpecifier:
        return False
