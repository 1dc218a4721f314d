"""Hold apart what was measured and what is quoted: on one machine there is only one of the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchbook.content.positions import json_line
from benchbook.content.problems import Problem, few_known
from benchbook.content.records import PUBLISHED
from benchbook.content.script import Script, machine_kinds
from benchbook.content.validation import QUOTE_AGAIN, RECORD_AGAIN


def quotation_problems(
    table: Mapping[str, Any], machine: Mapping[str, Any], script: Script | None, path: str, text: str = ""
) -> list[Problem]:
    """Where a well-formed record mixes the two, or quotes what its script does not yield.

    Parameters:
        table: The record, already of the right shape.
        machine: The machine description, likewise.
        script: The script as it stands, None where there is none.
        path: The file, for messages.
        text: Its content, to find lines in.
    """
    mixed = list(_mixed_campaigns(table, machine, path, text))
    if mixed:
        return mixed
    variants = None if script is None else {v.name for v in script.variants(_kinds(machine))}
    problems = []
    for name, variant in table["variants"].items():
        if "source" not in table["campaigns"][variant["campaign"]]:
            if variant["code"] is None:
                what = f"variant {name}: was measured, and holds no digest of its code"
                problems.append(Problem(path, json_line(text, ("variants", name)), what, RECORD_AGAIN))
            continue
        line = json_line(text, ("variants", name))
        claimed = [key for key in ("code", "inputs", "output") if variant[key]]
        if claimed:
            what = f"variant {name}: is quoted, and claims `{claimed[0]}` of a run of this script"
            problems.append(Problem(path, line, what, "leave `inputs` and `output` empty, and `code` null"))
        if script is None or variants is None:
            continue
        if name not in variants:
            what = f"variant {name}: is quoted, and {script.reference} has no such variant"
            problems.append(Problem(path, line, what, f"use one of: {few_known(sorted(variants))}"))
        elif unknown := sorted(_named(variant) - _yielded(script)):
            what = f"variant {name}: quotes {unknown[0]}, which {script.reference} does not yield"
            problems.append(Problem(path, line, what, QUOTE_AGAIN))
    return problems


def _mixed_campaigns(
    table: Mapping[str, Any], machine: Mapping[str, Any], path: str, text: str
) -> Iterator[Problem]:
    for name, campaign in table["campaigns"].items():
        quoted = "source" in campaign
        if quoted == machine["published"]:
            continue
        line = json_line(text, ("campaigns", name))
        if quoted:
            what = f"campaign {name} has a `source`, on {machine['name']}, where figures are measured"
            fix = f"put what is quoted on a machine of its own, whose name ends in `{PUBLISHED}`"
        else:
            what = f"campaign {name} has no `source`, on {machine['name']}, where figures are quoted"
            fix = "give it the `source` of its figures, or record on the machine under its own name"
        yield Problem(path, line, what, fix)


def _kinds(machine: Mapping[str, Any]) -> tuple[str, ...]:
    return machine_kinds(machine["kind"], machine["name"])


def _named(variant: Mapping[str, Any]) -> set[str]:
    """The metrics and cells that a variant holds figures of."""
    return {name for run in variant["runs"] for name in (*run["metrics"], *run["cells"])}


def _yielded(script: Script) -> set[str]:
    return {*script.metadata.metrics, *(cell.name for cell in script.cells)}
