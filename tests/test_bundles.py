"""A bundle from elsewhere is put in place whole, or refused with every reason and nothing written."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchbook import bundles
from benchbook.bundles import import_bundle
from benchbook.problems import BenchbookError
from benchbook.project import Project
from benchbook.records import dump_record, load_record
from builders import MACHINE, MACHINE_JSON, SCRIPT, SWEEP, make_project, make_record, write


def bundle_of(script: str = SCRIPT, **changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "machine": json.loads(json.dumps(MACHINE_JSON)),
        "records": [json.loads(dump_record(make_record(script, **changes)))],
    }


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = make_project(tmp_path / "checkout")
    shutil.rmtree(project.records)
    return project


def refusal(project: Project, path: Path) -> str:
    with pytest.raises(BenchbookError) as caught:
        import_bundle(project, path)
    assert not project.records.exists()
    return str(caught.value)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_good_bundle_is_put_in_place(project: Project, tmp_path: Path, zipped: bool) -> None:
    text = json.dumps(bundle_of()).encode()
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(text) if zipped else text)
    assert import_bundle(project, path) == [
        f"snippets/records/{MACHINE}/machine.json",
        f"snippets/records/{MACHINE}/sums/add.json",
    ]
    assert load_record(project.record_path(MACHINE, "sums/add.py")) == make_record()


def test_variants_that_the_bundle_does_not_hold_stay(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    for kept in ("steps=1", "steps=2"):
        bundle = bundle_of(SWEEP)
        variants = bundle["records"][0]["variants"]
        bundle["records"][0]["variants"] = {kept: variants[kept]}
        import_bundle(project, write(tmp_path / "bundle.json", json.dumps(bundle)))
    record = load_record(project.record_path(MACHINE, "sums/add.py"))
    assert record is not None
    assert list(record.variants) == ["steps=1", "steps=2"]


def variant(bundle: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = bundle["records"][0]["variants"]["default"]
    return found


Damage = Callable[[dict[str, Any]], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "other code": (lambda b: variant(b).update(code="sha256:" + "0" * 64), "recorded from other code"),
    "too few runs": (lambda b: variant(b).update(runs=variant(b)["runs"][:2]), "holds 2 runs"),
    "unknown script": (
        lambda b: b["records"][0].update(script="sums/sub.py"),
        "is no script of this checkout",
    ),
    "path traversal": (
        lambda b: b["records"][0].update(script="../../etc/x.py"),
        "script: String should match",
    ),
    "machine traversal": (lambda b: b["machine"].update(name="../x"), "name: String should match"),
    "another machine": (lambda b: b["records"][0].update(machine="cpu-other"), "was recorded on cpu-other"),
    "unknown key": (lambda b: variant(b).update(extra=1), "Extra inputs are not permitted"),
    "unknown variant": (
        lambda b: b["records"][0]["variants"].update({"steps=9": variant(b)}),
        "the script has no such variant",
    ),
    "text for a number": (lambda b: variant(b)["runs"][0]["metrics"].update(total="6"), "metrics.total"),
    "no campaign": (lambda b: b["records"][0].update(campaigns={}), "is not described"),
    "a home folder": (
        lambda b: variant(b)["output"].update(add="/home/ada/x"),
        "can identify someone's machine",
    ),
    "a device id": (
        lambda b: b["machine"].update(short="GPU-8a7b6c5d-1111-2222-3333-444455556666"),
        "can identify someone's machine",
    ),
    "ranks missing": (lambda b: variant(b).update(ranks=2), "not each of its runs holds 2 ranks"),
    "two runs in one place": (
        lambda b: variant(b)["runs"][0].update(place=1),
        "two of its runs have one place",
    ),
    "a failure with runs": (lambda b: variant(b).update(outcome="crashed"), "outcome 'crashed' with 3 runs"),
    "more than the device": (
        lambda b: variant(b)["runs"][0]["cells"]["add"].update(allocated_peak=10**12),
        "more than the machine's",
    ),
    "more than the device, later": (
        lambda b: variant(b)["runs"][2]["cells"]["add"].update(allocated_peak=10**12),
        "more than the machine's",
    ),
    "a peak below the end": (
        lambda b: variant(b)["runs"][1]["cells"]["add"].update(
            process_memory=10**8, process_memory_peak=1000
        ),
        "add.process_memory_peak is 1000 B, less than the 100000000 B held at its end",
    ),
    "no list": (lambda b: b.update(records={}), "is not a bundle of records"),
}


@pytest.mark.parametrize("damage", DAMAGES, ids=str)
def test_damage_is_refused_with_the_reason(project: Project, tmp_path: Path, damage: str) -> None:
    bundle = bundle_of()
    apply, reason = DAMAGES[damage]
    apply(bundle)
    assert reason in refusal(project, write(tmp_path / "bundle.json", json.dumps(bundle)))


def test_times_that_never_scatter_are_not_believed(project: Project, tmp_path: Path) -> None:
    timed = SCRIPT.replace('"count"', '"s"')
    write(project.snippets / "sums/add.py", timed)
    bundle = bundle_of(timed)
    for run in variant(bundle)["runs"]:
        run["metrics"]["total"] = 1.5
    assert "is the same in 3 runs" in refusal(project, write(tmp_path / "bundle.json", json.dumps(bundle)))


@pytest.mark.parametrize("text", ["", "{", '{"schema": 1', "[1]", "null", '{"schema": NaN}', "[" * 100_000])
def test_a_truncated_or_foreign_file_is_refused(project: Project, tmp_path: Path, text: str) -> None:
    assert "bundle.json:1" in refusal(project, write(tmp_path / "bundle.json", text))


def test_a_truncated_archive_is_refused(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(json.dumps(bundle_of()).encode())[:-20])
    assert "cannot be read" in refusal(project, path)


def test_an_archive_that_unpacks_without_end_is_refused(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "LARGEST_BUNDLE", 1000)
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(b" " * 100_000))
    assert "is larger than" in refusal(project, path)


def test_an_archive_that_was_damaged_anywhere_is_refused(project: Project, tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps(bundle_of()).encode(), mtime=0)
    path = tmp_path / "bundle.json.gz"
    for place in range(10, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert "bundle.json.gz:1" in refusal(project, path)


def test_two_records_of_one_script_are_refused(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    bundle["records"] *= 2
    said = refusal(project, write(tmp_path / "bundle.json", json.dumps(bundle)))
    assert "it holds 2 records of sums/add.py" in said


def test_what_is_here_already_is_not_judged_again(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    text = json.dumps(bundle)
    import_bundle(project, write(tmp_path / "bundle.json", text))
    # The variant that was measured is gone, and another has come.
    sweep = SCRIPT.replace("# ///\n\n", "#\n# [tool.benchbook.matrix]\n# steps = [1]\n# ///\n\n", 1)
    write(project.snippets / "sums/add.py", sweep)
    newer = bundle_of(sweep)
    newer["records"][0]["variants"] |= bundle["records"][0]["variants"]
    import_bundle(project, write(tmp_path / "newer.json", json.dumps(newer)))
    record = load_record(project.record_path(MACHINE, "sums/add.py"))
    assert record is not None
    assert set(record.variants) == {"default", "steps=1"}


def test_the_wording_of_a_machine_that_is_here_already_stays(project: Project, tmp_path: Path) -> None:
    path = write(tmp_path / "bundle.json", json.dumps(bundle_of()))
    import_bundle(project, path)
    description = project.records / MACHINE / "machine.json"
    table = json.loads(description.read_text("utf-8"))
    write(description, json.dumps(table | {"title": "A better title", "memory_bytes": 1}))
    import_bundle(project, path)
    assert json.loads(description.read_text("utf-8")) == table | {"title": "A better title"}
