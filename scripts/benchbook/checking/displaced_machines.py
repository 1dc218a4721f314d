"""Tell which machines pages show now where they showed those of others, which `main` has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from benchbook.checking.committed import Committed
from benchbook.content.problems import Problem, few
from benchbook.content.project import Project
from benchbook.content.records import is_published, shown_order

_FIX = "say in the pull request why"


def displaced_machines(project: Project, committed: Committed, scripts: Collection[str]) -> Iterator[Problem]:
    """Records and predictions that stand before what `main` has of their scripts on other machines.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        scripts: The references of those here.
    """
    # In the order of `Library.shown_on`.
    machines = sorted(project.machines, key=shown_order)
    known = (*machines, *sorted({path.name for path in project.predictions.glob("*/")} - {*machines}))
    # Values of two scripts are those of a machine that has both, whichever stands first for one.
    preceded: dict[tuple[str, str], list[str]] = {}
    for reference in scripts:
        records = _files(known, project.record_path, reference)
        guesses = _files(known, project.prediction_path, reference)
        measured = [name for name in records if not is_published(name)]
        on_main = {name for name, path in records.items() if project.relative(path) in committed.blobs}
        foretold = {name for name, path in guesses.items() if project.relative(path) in committed.blobs}
        there = [name for name in measured if name in on_main]
        for first, before in _first_of_pages(
            project, (measured, there), ([*guesses], [name for name in guesses if name in foretold])
        ):
            was = "its record" if before in there else "what is predicted of it"
            what = f"is what pages show of {reference} now, and no longer {was} on {before}"
            yield Problem(project.relative((records if first in measured else guesses)[first]), 1, what, _FIX)
        shown = [*records, *(name for name in guesses if name not in records)]
        for number, name in enumerate(shown):
            if name not in (on_main if name in records else foretold):
                for other in shown[number + 1 :]:
                    if other in on_main | foretold:
                        preceded.setdefault((name, other), []).append(reference)
    for (name, other), references in preceded.items():
        described = project.records / name / "machine.json"
        place = described if name in machines else project.prediction_path(name, references[0])
        what = f"stands before {other}, which `main` has, for {few(references)}"
        yield Problem(project.relative(place), 1, what, _FIX)


def _files(names: Iterable[str], place: Callable[[str, str], Path], script: str) -> dict[str, Path]:
    """The files of a script of those machines that have one, in their order."""
    paths = {name: place(name, script) for name in names}
    return {name: path for name, path in paths.items() if path.is_file()}


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
