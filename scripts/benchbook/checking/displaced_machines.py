"""Tell which machines pages show now where they showed those of others, which `main` has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from benchbook.checking.committed import Committed
from benchbook.content.problems import Problem, few
from benchbook.content.project import Project
from benchbook.content.records import is_published, shown_order

_FIX = "say in the pull request why"


def displaced_machines(project: Project, committed: Committed, scripts: Collection[str]) -> Iterator[Problem]:
    """Records that stand before what `main` has of their scripts on other machines, measured or predicted.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        scripts: The references of those here.
    """
    machines = [name for name in sorted(project.machines, key=shown_order) if not is_published(name)]
    predicted = sorted(path.name for path in project.predictions.glob("*/"))
    # Values of two scripts are those of a machine that has both, whichever stands first for one.
    preceded: dict[tuple[str, str], list[str]] = {}
    for reference in scripts:
        records = {name: project.record_path(name, reference) for name in machines}
        measured = [name for name, path in records.items() if path.is_file()]
        guessed = [name for name in predicted if project.prediction_path(name, reference).is_file()]
        there = [name for name in measured if project.relative(records[name]) in committed.blobs]
        foretold = [
            name
            for name in guessed
            if project.relative(project.prediction_path(name, reference)) in committed.blobs
        ]
        for first, before in _first_of_pages(project, (measured, there), (guessed, foretold)):
            was = "its record" if before in there else "what is predicted of it"
            what = f"is what pages show of {reference} now, and no longer {was} on {before}"
            shown = records[first] if first in measured else project.prediction_path(first, reference)
            yield Problem(project.relative(shown), 1, what, _FIX)
        for number, name in enumerate(measured):
            for other in measured[number + 1 :]:
                if name not in there and other in there:
                    preceded.setdefault((name, other), []).append(reference)
    for (name, other), references in preceded.items():
        what = f"stands before {other}, which `main` has, for {few(references)}"
        yield Problem(project.relative(project.records / name / "machine.json"), 1, what, _FIX)


def _first_of_pages(
    project: Project,
    measured: tuple[Sequence[str], Sequence[str]],
    predicted: tuple[Sequence[str], Sequence[str]],
) -> set[tuple[str, str]]:
    """The machine that pages show of a script now, and that of `main`, where they differ; pages of any guide.

    Parameters:
        project: The checkout.
        measured: The machines that have a record of it, in the order of pages, and those that had on `main`.
        predicted: Likewise of predictions.
    """
    found = set()
    for guide in (*project.config.guides, ""):
        wanted = project.config.reference_for(guide)
        first, before = (_first(wanted, *side) for side in zip(measured, predicted, strict=True))
        if before is not None and first is not None and first != before:
            found.add((first, before))
    return found


def _first(wanted: str, measured: Sequence[str], predicted: Sequence[str]) -> str | None:
    """The machine of `Library.first_machine`, by name; None where there is none."""
    known = measured or predicted
    return wanted if wanted in known else next(iter(known), None)
