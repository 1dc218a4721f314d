"""What becomes of what comes into a record, or a journal, while a recording runs or since it was stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.content.project import Project
from benchbook.content.records import Record
from benchbook.content.unfinished import alone
from benchbook.recording import campaign as campaigns
from benchbook.recording import command as recording
from benchbook.recording.journal import Journal
from benchbook.recording.stores import Checkout
from builders import write
from running import SWEEP, add_script
from stopping import HERE, PLAIN, TIMED, campaigns_in, changes_after, only_campaign, record, stopped, written


def meanwhile(monkeypatch: pytest.MonkeyPatch, comes_in: Callable[[], object]) -> None:
    """Something comes in once the runs of a script are done, and before its record is written."""
    real = campaigns.gather

    def gathered(*arguments: Any) -> campaigns.Gathered:
        found = real(*arguments)
        comes_in()
        return found

    monkeypatch.setattr(campaigns, "gather", gathered)


def test_what_comes_in_while_a_recording_runs_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    assert record(project) == 0
    before = written(project)
    (campaign,) = before.campaigns
    line = replace(before.history[0], campaign="another")

    def comes_in() -> None:
        further = {"n=3": replace(before.variants["n=2"], campaign="another")}
        Checkout(project, HERE).save(
            replace(
                before,
                variants=before.variants | further,
                campaigns=before.campaigns | {"another": before.campaigns[campaign]},
                history=(*before.history, line),
            )
        )

    meanwhile(monkeypatch, comes_in)
    assert record(project, everything=True) == 0
    after = written(project)
    assert list(after.variants) == ["n=1", "n=2", "n=3"]
    assert after.variants["n=3"].campaign == "another"
    assert [each.campaign for each in after.history][:2] == [campaign, "another"]


def test_nothing_comes_in_between_what_a_recording_reads_and_what_it_writes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    real, free = Checkout.load, []

    def load(store: Checkout, script: str) -> Record | None:
        with alone(project.root, waiting=False) as is_free:
            free.append(is_free)
        return real(store, script)

    monkeypatch.setattr(Checkout, "load", load)
    assert record(project) == 0
    # What is to run is planned while others write; what is written is not.
    assert free == [True, False]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("guide/small.json", "{", "guide/small.json:1: is not JSON"),
        ("machine.json", '{"kind": "cuda"}', "machine.json:1: is of another machine than this"),
    ],
)
def test_what_comes_in_and_cannot_be_gone_on_with_costs_no_runs(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str,
    said: str,
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    path = project.records / HERE.name / name
    with monkeypatch.context() as patch:
        meanwhile(patch, lambda: write(path, content))
        assert record(project) == 1
    assert said in capsys.readouterr().err
    assert path.read_text("utf-8") == content
    path.unlink()
    assert record(project) == 0
    assert "ok" not in capsys.readouterr().err.partition("wrote")[0]


@pytest.mark.parametrize("linked", ["", "guide", "guide/small", "guide/another"])
def test_a_recording_begins_beside_no_link_and_removes_nothing_behind_it(
    project: Project, tmp_path: Path, linked: str
) -> None:
    add_script(project.root, PLAIN, SWEEP)
    inbox = write(tmp_path / "inbox/bob.json.gz", "somebody's bundle").parent
    write(inbox / "small/eve.json.gz", "another bundle")
    link = project.records / HERE.name / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(inbox)
    with pytest.raises(BenchbookError, match=f"{link.name}:1: is a link to another place"):
        record(project)
    assert sorted(path.name for path in inbox.rglob("*.gz")) == ["bob.json.gz", "eve.json.gz"]


def left_finished(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record four days ago, and be ended once the record is in its place, before the journal goes."""

    def ended(_journal: Journal) -> None:
        raise KeyboardInterrupt

    then = campaigns.now() - timedelta(days=4)
    with monkeypatch.context() as patch:
        patch.setattr(campaigns, "now", lambda: then)
        patch.setattr(Journal, "close", ended)
        assert record(project) == recording.INTERRUPTED
    assert list(project.journal.rglob("*.jsonl"))


def test_a_campaign_that_is_in_the_record_is_not_put_there_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    left_finished(project, monkeypatch)
    (before,) = campaigns_in(project)
    capsys.readouterr()
    assert record(project, everything=True) == 0
    said = capsys.readouterr().err
    assert "guide/small.jsonl is in the record already; a new campaign begins" in said
    assert said.count(": ok") == 9
    assert campaigns_in(project) != {before}
    assert not list(project.journal.rglob("*.jsonl"))


NOT_THREE = PLAIN.replace("assert doubled", "assert n < 3")


def test_a_variant_that_failed_and_is_declared_no_more_keeps_nothing_from_being_measured(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, NOT_THREE, SWEEP.replace("[1, 2]", "[1, 2, 3]"))
    assert record(project) == 1
    (before,) = campaigns_in(project)
    add_script(project.root, NOT_THREE, SWEEP)
    capsys.readouterr()
    assert record(project, everything=True) == 0
    assert capsys.readouterr().err.count(": ok") == 4
    assert before not in campaigns_in(project)
    assert not list(project.journal.rglob("*.jsonl"))


@pytest.mark.parametrize("source", [NOT_THREE, NOT_THREE.replace("assert n < 3", "assert n > 0")])
def test_a_campaign_is_over_once_all_that_is_still_declared_is_measured_and_says_which_runs_go(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    add_script(project.root, source, SWEEP.replace("[1, 2]", "[1, 2, 3]"))

    def interrupted() -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        changes_after(patch, 4, interrupted)
        assert record(project) == recording.INTERRUPTED
    add_script(project.root, source, SWEEP)
    assert record(project) == 0
    assert len(campaigns_in(project)) == 1
    assert not list(project.journal.rglob("*.jsonl"))
    gone = "of variant n=3, which guide/small.py declares no more, go with it"
    assert (gone in capsys.readouterr().err) is (source != NOT_THREE)


def test_runs_whose_script_is_renamed_are_told_of(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    stopped(project, monkeypatch, 4)
    old = project.snippets / "guide/small.py"
    old.rename(old.with_name("tiny.py"))
    capsys.readouterr()
    assert record(Project(project.root)) == 0
    left = f".benchbook/{HERE.name}/guide/small.jsonl holds 4 finished run(s) of a script that is not here"
    assert f"warning: {left}" in capsys.readouterr().err


def test_what_was_measured_since_a_journal_was_left_is_not_undone_by_it(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    left_finished(project, monkeypatch)
    (journal,) = project.journal.rglob("*.jsonl")
    kept = journal.read_text("utf-8")
    assert record(project, everything=True) == 0
    (since,) = campaigns_in(project)
    write(journal, kept)
    capsys.readouterr()
    assert record(project, everything=True) == 0
    said = capsys.readouterr().err
    assert "guide/small.jsonl is older than what the record holds; a new campaign begins" in said
    assert since not in campaigns_in(project)
    assert only_campaign(project).finished >= campaigns.stamp(campaigns.now() - timedelta(minutes=5))


def test_a_campaign_ends_with_its_last_run_whenever_it_is_put_into_the_record(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_script(project.root, PLAIN, TIMED)
    then = campaigns.now() - timedelta(days=4)
    with monkeypatch.context() as patch:
        patch.setattr(campaigns, "now", lambda: then)
        patch.setattr(Checkout, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert record(project) == recording.INTERRUPTED
    assert record(project) == 0
    assert only_campaign(project).finished < campaigns.stamp(then + timedelta(hours=1))
    assert written(project).history[-1].date == only_campaign(project).finished[:10]


def test_a_later_campaign_that_comes_in_while_a_recording_runs_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add_script(project.root, PLAIN, TIMED)
    assert record(project) == 0
    before = written(project)
    later = campaigns.now() + timedelta(hours=1)

    def comes_in() -> None:
        variants = {name: replace(one, campaign="another") for name, one in before.variants.items()}
        another = replace(only_campaign(project), finished=campaigns.stamp(later))
        Checkout(project, HERE).save(replace(before, variants=variants, campaigns={"another": another}))
        monkeypatch.setattr(campaigns, "now", lambda: later)

    meanwhile(monkeypatch, comes_in)
    assert record(project, everything=True) == 1
    assert campaigns_in(project) == {"another"}
    assert "variant n=2: a later campaign has come in meanwhile" in capsys.readouterr().err
