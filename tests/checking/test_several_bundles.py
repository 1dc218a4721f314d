"""Bundles that come in together are held to one another as to what is here."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from benchbook.checking.bundles import import_bundles
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from builders import SCRIPT, packed, write
from bundled import GUEST, OTHER, bundle_of, further, later, renamed, variant


def test_one_bad_bundle_keeps_all_of_them_out(project: Project, tmp_path: Path) -> None:
    paths = [write(tmp_path / "good.json", packed(bundle_of())), write(tmp_path / "bad.json", "{")]
    with pytest.raises(BenchbookError, match=r"bad\.json:1: is not JSON"):
        import_bundles(project, paths)
    assert not project.records.exists()


@pytest.mark.parametrize(
    ("factor", "memory", "what"),
    [
        (1.0, 4096, "its metrics are those of"),
        (0.5, 4096, "its metrics, but for one factor, are those of"),
        (None, 0, "its readings of memory are those of"),
        (None, 4096, None),
    ],
)
def test_what_a_machine_measured_is_no_other_machine_s(
    project: Project, tmp_path: Path, factor: float | None, memory: int, what: str | None
) -> None:
    """Whatever was made of the times of the cells."""
    script = write(project.snippets / "sums/add.py", SCRIPT.replace('"count"', '"s"')).read_text("utf-8")

    def measured(name: str, owner: str, more: int, moved: bool, factor: float | None) -> Path:
        bundle = renamed(bundle_of(script), name, owner)
        runs = [copy.deepcopy(variant(bundle)["runs"][0]) | {"place": place} for place in range(8)]
        for place, run in enumerate(runs):
            scatter = (1 + place**2 / 97) * (1 + moved * place**3 / 89)
            run["metrics"]["total"] = 0.1 * ((1 + place**2 / 97) * factor if factor else scatter)
            for cell in run["cells"].values():
                cell["seconds"] *= scatter
            run["cells"]["add"]["process_memory_peak"] = 2**28 + 4096 * place + more
        variant(bundle)["runs"] = runs
        return write(tmp_path / f"{name}.json", packed(bundle))

    import_bundles(project, [measured(GUEST, "Ada", 0, False, 1.0)])
    copied = measured(OTHER, "Bob", memory, True, factor)
    if what is None:
        assert import_bundles(project, [copied]).written
        return
    with pytest.raises(BenchbookError, match=f"variant default: {what} {GUEST}"):
        import_bundles(project, [copied])


def test_one_record_in_two_bundles_is_refused(project: Project, tmp_path: Path) -> None:
    # A machine's bundles of two days have one file name.
    bundles = (later(bundle_of()), bundle_of())
    paths = [write(tmp_path / f"{n}/{GUEST}.json", packed(bundle)) for n, bundle in enumerate(bundles)]
    with pytest.raises(BenchbookError, match=f"^{paths[1]}:1: it holds .*, and so does {paths[0]}; import"):
        import_bundles(project, paths)
    assert not project.records.exists()


def test_two_bundles_may_hold_one_record_that_both_went_on_from(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    second = further(later(bundle_of()))
    both = copy.deepcopy(second)
    both["records"] += bundle_of()["records"]
    paths = [
        write(tmp_path / f"{n}/{GUEST}.json", packed(bundle)) for n, bundle in enumerate((bundle_of(), both))
    ]
    done = import_bundles(project, paths)
    assert {Path(name).name for name in done.written} == {"machine.json", "add.json", "sub.json"}


BESIDE: dict[str, tuple[dict[str, Any], str]] = {
    "a session of another script": (
        further(bundle_of()),
        f"sums/sub.py on {GUEST}: campaign 20260102T030405Z-test is of sums/add.py, and a session is of one",
    ),
    "another description": (
        further(later(bundle_of()), kernel="6.8"),
        f'it would replace snippets/records/{GUEST}/machine.json: system.kernel .null by "6.8".',
    ),
    "the times of another machine": (
        renamed(bundle_of(), OTHER, "Bob"),
        f"variant default: its times are those of {GUEST}",
    ),
}


@pytest.mark.parametrize("damage", BESIDE)
def test_a_bundle_is_held_to_those_before_it_as_to_what_is_here(
    project: Project, tmp_path: Path, damage: str
) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    second, reason = BESIDE[damage]
    paths = [write(tmp_path / f"{n}.json", packed(one)) for n, one in enumerate((bundle_of(), second))]
    with pytest.raises(BenchbookError, match=f"^{paths[1]}:1: {reason}"):
        import_bundles(project, paths)
    assert not project.records.exists()
