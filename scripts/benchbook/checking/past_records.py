"""Read the samples of records that are replaced: what was measured once is not measured again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchbook.checking.copies import Known, known_samples
from benchbook.content.formats import too_large
from benchbook.content.project import Project
from benchbook.content.revisions import git_answer
from benchbook.content.script import Script
from benchbook.content.validation import parse_json, record_problems


def past_samples(
    project: Project, root: Path, commit: str, scripts: Mapping[str, Script], standing: Collection[str]
) -> Known:
    """Whose samples those are that records of some scripts held up to a commit, on whatever machine.

    Empty where git does not answer.

    Parameters:
        project: The checkout, which names the folder of records.
        root: Of the repository.
        commit: The last one that is looked at.
        scripts: As they stand, by their reference.
        standing: The campaigns that records hold still, which are known from these.
    """
    found: Known = {}
    for reference, script in scripts.items():
        anywhere = project.relative(project.record_path("*", reference))
        for table in _tables(root, commit, anywhere):
            gone = {
                name: variant
                for name, variant in table["variants"].items()
                if variant["campaign"] not in standing
            }
            found |= known_samples({**table, "variants": gone}, script)
    return found


def _tables(root: Path, commit: str, pattern: str) -> Iterator[Any]:
    """Every record that the history of a commit has at the paths of a pattern."""
    listed = ("--format=", "--raw", "--no-abbrev", "--no-renames", "--full-history", commit)
    lines = (git_answer(root, "log", *listed, "--", f":(glob){pattern}") or b"").splitlines()
    # ":<mode> <mode> <before> <after> <what>\t<path>"
    for blob in dict.fromkeys(line.split()[3].decode() for line in lines if line.startswith(b":")):
        content = git_answer(root, "cat-file", "blob", blob) if blob.strip("0") else None
        if content is None or too_large(content):
            continue  # no record ever was so
        table = parse_json(content.decode("utf-8", "replace"), pattern)[0]
        if not record_problems(table, pattern):
            yield table
