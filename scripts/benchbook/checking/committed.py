"""Hold records to what `main` has of them: what was measured is measured again, and never edited."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchbook.checking.origins import recorded_code_problems
from benchbook.checking.overlays import SESSION
from benchbook.content.positions import json_line
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.revisions import git_answer
from benchbook.content.validation import parse_json, record_problems

RESTORE = "restore it from `main`; what is measured again is a campaign of its own"


@dataclass(frozen=True)
class Committed:
    """The records of the commit where this branch left `main`.

    Parameters:
        blobs: What git calls the content of each, by its path.
        gone: Whether one of them is not there any more: it may have another name now.
    """

    blobs: Mapping[str, str]
    gone: bool


def committed_records(project: Project) -> Committed | None:
    """What `main` has of the records; None where git cannot tell."""
    for name in ("origin/main", "main", "HEAD"):
        if (base := git_answer(project.root, "merge-base", "HEAD", name)) is not None:
            break
    else:
        return None
    folder = project.relative(project.records)
    listed = git_answer(project.root, "ls-tree", "-r", "-z", base.decode().strip(), "--", folder)
    if listed is None:
        return None
    entries = (entry.partition("\t") for entry in listed.decode("utf-8", "replace").split("\0") if entry)
    blobs = {path: head.split()[2] for head, _, path in entries if path.endswith(".json")}
    return Committed(blobs, not all((project.root / path).is_file() for path in blobs))


def edited_problems(
    project: Project, committed: Committed, table: Mapping[str, Any], path: Path, text: str
) -> Iterator[Problem]:
    """Where a record says something else of a campaign than `main` does, or has what its commit cannot yield.

    What is quoted may be corrected.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        table: The record, of the right shape.
        path: Its file.
        text: Its content.
    """
    shown = project.relative(path)
    blob = committed.blobs.get(shown)
    if blob is not None and blob == _blob_of(text, len(blob)):
        return
    before: Any = {"campaigns": {}, "variants": {}}
    if blob is not None:
        content = git_answer(project.root, "cat-file", "blob", blob) or b""
        before, _ = parse_json(content.decode("utf-8", "replace"), shown)
        # Of what is no record there, or one of another form, nothing can be said.
        if record_problems(before, shown):
            return
    measured = {name: one for name, one in table["campaigns"].items() if "source" not in one}
    for name in measured.keys() & before["campaigns"].keys():
        known, campaign = before["campaigns"][name], measured[name]
        if odd := [key for key in SESSION if known.get(key) != campaign.get(key)]:
            what = f"campaign {name} is of another session on `main` (its {', '.join(odd)} differs)"
            yield Problem(shown, json_line(text, ("campaigns", name)), what, RESTORE)
    added = []
    for name, variant in table["variants"].items():
        known = before["variants"].get(name, {})
        if variant["campaign"] not in measured:
            continue
        if known.get("campaign") != variant["campaign"]:
            added.append(name)
        elif odd := sorted(
            key for key in known.keys() | variant.keys() if known.get(key) != variant.get(key)
        ):
            what = (
                f"variant {name} is otherwise on `main`, of the same campaign (its {', '.join(odd)} differs)"
            )
            yield Problem(shown, json_line(text, ("variants", name)), what, RESTORE)
    yield from recorded_code_problems(project.root, table, added, shown, text, may_be_renamed=committed.gone)


def _blob_of(text: str, length: int) -> str:
    """What git calls a content, by a name of so many digits."""
    content = text.encode()
    content = b"blob %d\0" % len(content) + content
    made = hashlib.sha1(content, usedforsecurity=False) if length == 40 else hashlib.sha256(content)
    return made.hexdigest()
