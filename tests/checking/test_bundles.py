"""A bundle from elsewhere is put in place whole, or refused with every reason and nothing written."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchbook.checking import bundles
from benchbook.checking.bundles import import_at, import_bundles
from benchbook.checking.checks import check_project
from benchbook.content import formats
from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import load_record, record_from
from benchbook.content.unfinished import finish_writing
from builders import SCRIPT, SWEEP, packed, write
from bundled import GUEST, bundle_of, campaign, committed, later, refusal
from clones import ROOT, unread


def test_records_that_are_in_place_are_so_though_no_space_is_left_to_say_it(
    project: Project, tmp_path: Path
) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    command = [sys.executable, str(ROOT / "scripts/benchbook"), "import", str(path)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, cwd=project.root, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, project.record_path(GUEST, "sums/add.py").is_file()) == (1, True)
    assert done.stderr == (
        "not all of it could be written: no space left on device; "
        "the records are in place, and need not be imported again\n"
    )


def test_records_are_in_place_though_nobody_reads_what_is_said_of_them(
    project: Project, tmp_path: Path
) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    done = unread("import", str(path), folder=project.root)
    assert (done.returncode, done.stderr) == (0, "")
    assert load_record(project.record_path(GUEST, "sums/add.py")) == record_from(bundle_of()["records"][0])


@pytest.mark.parametrize("zipped", [False, True])
def test_a_good_bundle_is_put_in_place(project: Project, tmp_path: Path, zipped: bool) -> None:
    text = packed(bundle_of()).encode()
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(text) if zipped else text)
    assert list(import_bundles(project, [path]).written) == [
        f"snippets/records/{GUEST}/machine.json",
        f"snippets/records/{GUEST}/sums/add.json",
    ]
    assert load_record(project.record_path(GUEST, "sums/add.py")) == record_from(bundle_of()["records"][0])


def test_variants_that_the_bundle_does_not_hold_stay(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/add.py", SWEEP)
    for kept, name in (("steps=1", "20260102T030405Z-one"), ("steps=2", "20260102T030405Z-two")):
        bundle = bundle_of(SWEEP)
        record = bundle["records"][0]
        record["campaigns"] = {name: campaign(bundle)}
        record["variants"] = {kept: record["variants"][kept] | {"campaign": name}}
        import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle))], replacing=True)
    here = load_record(project.record_path(GUEST, "sums/add.py"))
    assert here is not None
    assert list(here.variants) == ["steps=1", "steps=2"]


def test_more_records_than_there_are_scripts_are_not_looked_at(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    bundle["records"] = [{}] * 1000
    path = write(tmp_path / "bundle.json", packed(bundle))
    assert refusal(project, path).splitlines() == [
        f"{path}:1: it holds 1000 records, and this checkout has 1 scripts; "
        "check out the commit it was recorded from"
    ]


def test_a_record_that_would_be_too_large_to_read_is_not_put_in_place(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    monkeypatch.setattr(formats, "MOST_VALUES", 50)
    assert f"sums/add.py on {GUEST}: it holds more than 50 values" in refusal(project, path)


def test_a_bundle_of_too_many_values_is_not_read(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "MOST_MARKS", 100)
    assert "holds more than 100 values" in refusal(project, write(tmp_path / "b.json", packed(bundle_of())))


@pytest.mark.parametrize(
    "linked", ["snippets/records", f"snippets/records/{GUEST}", f"snippets/records/{GUEST}/sums"]
)
def test_nothing_is_written_through_a_link(project: Project, tmp_path: Path, linked: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = project.root / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere)
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    with pytest.raises(BenchbookError, match=f"{linked} is a link to another place"):
        import_bundles(project, [path])
    assert list(elsewhere.iterdir()) == []


def test_nothing_behind_a_link_is_removed(project: Project, tmp_path: Path) -> None:
    inbox = write(tmp_path / "inbox/bob.json.gz", "somebody's bundle").parent
    link = project.records / GUEST / "sums/add"
    link.parent.mkdir(parents=True)
    link.symlink_to(inbox)
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    with pytest.raises(BenchbookError, match="sums/add is a link to another place"):
        import_bundles(project, [path])
    assert [one.name for one in inbox.iterdir()] == ["bob.json.gz"]


def test_nothing_that_was_left_behind_a_link_is_removed(project: Project, tmp_path: Path) -> None:
    left = write(tmp_path / "elsewhere/.a.json.abcdefgh", "{}")
    project.records.symlink_to(left.parent)
    finish_writing(project)
    assert left.exists()


def test_nothing_is_written_through_a_link_that_a_revision_has_not(project: Project, tmp_path: Path) -> None:
    committed(project, "2026-01-01")
    link = project.records / GUEST
    link.parent.mkdir()
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    with pytest.raises(BenchbookError, match=f"records/{GUEST}:1: is a link to another place"):
        import_at(project, [path], "HEAD")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_check_names_records_that_lie_elsewhere(project: Project, tmp_path: Path) -> None:
    import_bundles(project, [write(tmp_path / "bundle.json", packed(bundle_of()))])
    shutil.move(project.records / GUEST, tmp_path / "elsewhere")
    (project.records / GUEST).symlink_to(tmp_path / "elsewhere")
    problems = [str(problem) for problem in check_project(Project(project.root)).problems]
    assert any(one.startswith(f"snippets/records/{GUEST}:1: is a link to another place") for one in problems)


@pytest.mark.parametrize("text", ["", "{", '{"schema": 1', "[1]", "null", '{"schema": NaN}', "[" * 100_000])
def test_a_truncated_or_foreign_file_is_refused(project: Project, tmp_path: Path, text: str) -> None:
    assert "bundle.json:1" in refusal(project, write(tmp_path / "bundle.json", text))


def test_what_is_not_a_plain_file_is_not_waited_for(project: Project, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull)):
        assert "cannot be read ([Errno 22] not a plain file" in refusal(project, path)


def test_a_truncated_archive_is_refused(project: Project, tmp_path: Path) -> None:
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(packed(bundle_of()).encode())[:-20])
    assert "cannot be read" in refusal(project, path)


def test_an_archive_that_unpacks_without_end_is_refused(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "LARGEST_BUNDLE", 1000)
    path = tmp_path / "bundle.json.gz"
    path.write_bytes(gzip.compress(b" " * 100_000))
    assert "is larger than" in refusal(project, path)


def test_an_archive_that_was_damaged_anywhere_is_refused(project: Project, tmp_path: Path) -> None:
    whole = gzip.compress(packed(bundle_of()).encode(), mtime=0)
    path = tmp_path / "bundle.json.gz"
    for place in range(10, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        assert "bundle.json.gz:1" in refusal(project, path)


def test_two_records_of_one_script_are_refused(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    bundle = bundle_of()
    bundle["records"] *= 2
    said = refusal(project, write(tmp_path / "bundle.json", packed(bundle)))
    assert "it holds 2 records of sums/add.py" in said


def test_what_is_here_already_is_not_judged_again(project: Project, tmp_path: Path) -> None:
    bundle = bundle_of()
    text = packed(bundle)
    import_bundles(project, [write(tmp_path / "bundle.json", text)])
    # The variant that was measured is gone, and another has come.
    sweep = SCRIPT.replace("# ///\n\n", "#\n# [tool.benchbook.matrix]\n# steps = [1]\n# ///\n\n", 1)
    write(project.snippets / "sums/add.py", sweep)
    newer = bundle_of(sweep)
    for run in newer["records"][0]["variants"]["steps=1"]["runs"]:
        run["place"] += 3
        run["cells"]["add"]["seconds"] *= 1 + run["place"] / 97
    newer["records"][0]["variants"] |= bundle["records"][0]["variants"]
    import_bundles(project, [write(tmp_path / "newer.json", packed(newer))], replacing=True)
    record = load_record(project.record_path(GUEST, "sums/add.py"))
    assert record is not None
    assert set(record.variants) == {"default", "steps=1"}


def test_the_wording_of_a_machine_that_is_here_already_stays(project: Project, tmp_path: Path) -> None:
    path = write(tmp_path / "bundle.json", packed(bundle_of()))
    import_bundles(project, [path])
    description = project.records / GUEST / "machine.json"
    table = json.loads(description.read_text("utf-8"))
    write(description, json.dumps(table | {"title": "A better title"}))
    import_bundles(project, [path])
    assert json.loads(description.read_text("utf-8")) == table | {"title": "A better title"}


def test_a_bundle_that_was_changed_on_its_way_is_refused(project: Project, tmp_path: Path) -> None:
    text = packed(bundle_of()).replace('"total": 7', '"total": 8')
    assert "its digest is of other content" in refusal(project, write(tmp_path / "bundle.json", text))


def test_bundles_of_several_runners_are_put_in_place_together(project: Project, tmp_path: Path) -> None:
    write(project.snippets / "sums/sub.py", SCRIPT)
    other = later(bundle_of())
    other["records"][0]["script"] = "sums/sub.py"
    paths = [write(tmp_path / f"{n}.json", packed(bundle)) for n, bundle in enumerate((bundle_of(), other))]
    assert list(import_bundles(project, paths).written) == [
        f"snippets/records/{GUEST}/machine.json",
        f"snippets/records/{GUEST}/sums/add.json",
        f"snippets/records/{GUEST}/sums/sub.json",
    ]
