"""Judge where records from outside come from: whose machine, which hardware, which code and libraries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from benchbook.content.problems import Problem
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


def machine_origin_problems(project: Project, machine: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """What is wrong with a well-formed description that comes from outside.

    Parameters:
        project: The checkout, whose description of a machine of the same name it must agree with.
        machine: The description.
        path: The file, for messages.
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
    if machine["published"]:
        return
    _, _, suffix = name.partition(OWNER_MARK)
    if suffix != slug(owner or ""):
        what = f"{name} belongs to {owner or 'the maintainers'}, and its name says otherwise"
        yield Problem(path, 1, what, "record with `--recorded-by` and your name, which becomes its ending")
    known = _described_here(project, name)
    differing = differing_key(known, machine) if known else None
    if differing:
        what = f"{name} is here already and is another machine (its {differing} differs)"
        fix = "record with `--recorded-by` and your name, so that two owners of one model do not collide"
        yield Problem(path, 1, what, fix)


def differing_key(here: Mapping[str, Any], there: Mapping[str, Any]) -> str | None:
    """In what two descriptions under one name are not of one machine; None if they are."""
    return next((key for key, one, other in _compared(here, there) if one != other), None)


def _described_here(project: Project, name: str) -> Mapping[str, Any] | None:
    try:
        table = json.loads((project.records / name / "machine.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return table if isinstance(table, dict) else None


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
