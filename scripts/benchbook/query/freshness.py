"""Judge whether a record still describes its script as it stands, and say why not."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from benchbook.content.formats import is_same, json_text
from benchbook.content.parameters import on_a_line
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import Publication, Record, VariantRecord, described_campaigns
from benchbook.content.script import Script, Variant, machine_kinds
from benchbook.content.terminal import plain

# Characters of an error that a table has room for; a record may hold a thousand times as many.
MOST_SHOWN = 200
# Why most are stale: the check tells whether only what a script asks of its results did.
CODE_CHANGED = "code changed"
# Of what is quoted from a publication nobody here can say whether it is fresh; a prediction is not a record.
State = Literal["fresh", "stale", "missing", "invalid", "published", "predicted"]


@dataclass(frozen=True)
class Verdict:
    """Whether a variant's record can be believed, and the reason."""

    state: State
    reason: str


def judge_record(script: Script, variant: Variant, record: Record | None, inputs: dict[str, str]) -> Verdict:
    """The verdict on `variant`, the same under every version of Python.

    Parameters:
        script: As it stands now.
        variant: As it would run on the record's machine now.
        record: What was measured there, if anything.
        inputs: The digests of the script's declared inputs now (`input_digests`).

    """
    measured = record.variants.get(variant.name) if record is not None else None
    if record is None or measured is None:
        return Verdict("missing", "never measured here")
    campaign = record.campaigns.get(measured.campaign)
    if campaign is None:
        return Verdict("invalid", f"its campaign {measured.campaign} is not described")
    differences = chain(
        _changes(script, variant, measured, inputs),
        _out_of_range(script.metadata.dependencies, campaign.packages),
    )
    if not isinstance(campaign, Publication) and (reason := next(differences, None)) is not None:
        return Verdict("stale", reason)
    if measured.outcome in {"timed out", "crashed"}:
        why = " ".join(plain(measured.error or "no more is known").split())
        return Verdict("invalid", f"{measured.outcome}: {why[:MOST_SHOWN]}")
    if isinstance(campaign, Publication):
        return Verdict("published", f"quoted from {campaign.source.title}")
    return Verdict("fresh", "measured as it stands")


def judge_variants(
    script: Script,
    variants: Sequence[Variant],
    record: Record | None,
    inputs: dict[str, str],
    most: int | None = None,
) -> dict[str, Verdict]:
    """The verdicts on `variants` together: stale is too what `check` refuses of a record that is fresh.

    Parameters:
        script: As it stands now.
        variants: All that it has on the record's machine, as they would run there now.
        record: What was measured there, if anything.
        inputs: The digests of the script's declared inputs now (`input_digests`).
        most: How many runs suffice where a variant asks for more; None for what each asks for.
    """
    verdicts = {variant.name: judge_record(script, variant, record, inputs) for variant in variants}
    if record is None:
        return verdicts
    mixed = script.is_timed and len(described_campaigns(record.variants, script.codes, verdicts)) > 1
    for variant in variants:
        asked = min(variant.repeats, most or variant.repeats)
        if verdicts[variant.name].state != "fresh":
            continue
        if mixed:
            verdicts[variant.name] = Verdict("stale", "times of two campaigns in one record")
        elif too_few_runs(record.variants[variant.name], asked) is not None:
            verdicts[variant.name] = Verdict("stale", "fewer runs than declared")
    return verdicts


def input_digests(script: Script, folder: Path) -> dict[str, str]:
    """`sha256:...` of each file that `script` declares as its input; "missing" where there is none.

    Parameters:
        script: Whose inputs.
        folder: The script's folder, which they are relative to.

    """
    digests = {}
    for name in sorted(script.metadata.inputs):
        path = folder / name
        digests[name] = (
            "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest() if os.path.isfile(path) else "missing"
        )
    return digests


def too_few_runs(measured: VariantRecord, asked: int) -> str | None:
    """That a variant was measured in fewer runs than are asked for; None if it was not."""
    if measured.outcome == "ok" and len(measured.runs) < asked:
        return f"holds {len(measured.runs)} runs where {asked} are asked for"
    return None


def all_in_one(script: Script) -> str:
    """How to fix a record of times that are of two campaigns, or would be."""
    return f"record all its variants in one campaign: `benchbook record --all {script.reference}`"


def _changes(
    script: Script, variant: Variant, measured: VariantRecord, inputs: dict[str, str]
) -> Iterator[str]:
    if measured.code not in script.codes:
        yield CODE_CHANGED
    for name in sorted(set(variant.parameters) | set(measured.parameters)):
        old, new = (side.get(name, "not set") for side in (measured.parameters, variant.parameters))
        if not is_same(old, new):
            yield on_a_line(f"parameter changed ({name}: {old} -> {new})")
    if measured.ranks != variant.ranks:
        yield f"parameter changed (ranks: {measured.ranks} -> {variant.ranks})"
    for name in sorted(set(inputs) | set(measured.inputs)):
        if inputs.get(name) != measured.inputs.get(name):
            yield f"input changed ({name})"
    if measured.environment != variant.environment:
        yield "environment changed"
    if set(measured.meters) != set(variant.meters):
        yield "meters changed"


def _out_of_range(dependencies: tuple[str, ...], packages: dict[str, str]) -> Iterator[str]:
    versions = {canonicalize_name(name): version for name, version in packages.items()}
    for text in dependencies:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            yield f"libraries out of range ({text} is not a requirement)"
            continue
        version = versions.get(canonicalize_name(requirement.name))
        if version is None and not _was_needed(requirement, packages):
            continue
        if version is None:
            yield f"libraries out of range ({requirement.name} was not recorded)"
        elif not is_among(version, requirement.specifier):
            what = f"{requirement.name} {version[:MOST_SHOWN]} is not {requirement.specifier}"
            yield f"libraries out of range ({what})"


def _was_needed(requirement: Requirement, packages: dict[str, str]) -> bool:
    """Whether a record must have it: a marker of Pythons says so, one of systems may not have held."""
    marker, python = requirement.marker, packages.get("python")
    if marker is None:
        return True
    if python is None or "python" not in str(marker).partition(" ")[0]:
        return False
    known = {"python_version": ".".join(python.split(".")[:2]), "python_full_version": python}
    try:
        return marker.evaluate(known)
    except ValueError:
        # It is not a version, or has a number of more digits than Python reads.
        return False


def is_among(version: str, specifier: SpecifierSet) -> bool:
    """Whether `version`, as a record has it, is one that `specifier` names."""
    try:
        return specifier.contains(version, prereleases=True)
    except ValueError:
        # It is not a version, or has a number of more digits than Python reads.
        return False


def kinds_of(project: Project, machine: str) -> tuple[str, ...]:
    """What a machine that has records here is (`machine_kinds`).

    Raises:
        BenchbookError: Its machine.json does not say.

    """
    path = project.records / machine / "machine.json"
    try:
        kind = json.loads(json_text(path))["kind"]
    except (OSError, RecursionError, ValueError, KeyError, TypeError) as error:
        what = f"does not describe the machine ({error})"
        raise BenchbookError(
            Problem(project.relative(path), 1, what, "record on the machine again")
        ) from error
    return machine_kinds(str(kind), machine)
