"""A trusted workflow comments on the pull request that its event names, and proposes records and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchbook.content.problems import BenchbookError
from benchbook.contributing.hosting import MARK, comment_on_pull_request, propose_records, publish_notebooks
from benchbook.contributing.report import ChangeReport, RecordChange
from builders import MACHINE, SCRIPT, make_project, write
from hosts import FakeHost, serving
from repositories import commit_all, git

HEAD = "b" * 40
REPORT = ChangeReport("a" * 40, HEAD, stale=(RecordChange("@all", "<b>", "x", "y"),))
PULLS = "/repos/owner/name/pulls"
THREAD = "/repos/owner/name/issues/7/comments"
EVENT = {
    "workflow_run": {
        "head_sha": HEAD,
        "head_branch": "better&state=all",
        "head_repository": {"owner": {"login": "ada"}},
    }
}


def run_in(monkeypatch: pytest.MonkeyPatch, host: FakeHost, folder: Path, event: Any = EVENT) -> None:
    monkeypatch.setenv("GITHUB_API_URL", host.url)
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/name")
    monkeypatch.setenv("GITHUB_TOKEN", "t0ken")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(write(folder / "event.json", json.dumps(event))))


def pull(number: int = 7, head: str = HEAD) -> dict[str, Any]:
    return {"number": number, "head": {"sha": head}}


def test_a_report_is_shown_on_the_pull_request_of_the_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(
        {("GET", PULLS): [pull(8, "c" * 40), pull()], ("GET", THREAD): [], ("POST", THREAD): {}}
    ) as host:
        run_in(monkeypatch, host, tmp_path)
        assert comment_on_pull_request(REPORT) == "commented"
    assert host.asked[0][1] == f"{PULLS}?state=open&head=ada%3Abetter%26state%3Dall"
    method, path, content = host.asked[-1]
    assert (method, path) == ("POST", THREAD)
    assert content["body"].startswith(f"{MARK}\n## What this changes")
    assert "| `@all` | `<b>, x` | `y` |" in content["body"]
    assert host.tokens == {"Bearer t0ken"}


def test_a_comment_that_is_there_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [
        {"id": 1, "body": f"{MARK} by somebody", "user": {"type": "User"}},
        {"id": 2, "body": f"{MARK}\nold", "user": {"type": "Bot"}},
    ]
    place = "/repos/owner/name/issues/comments/2"
    with serving({("GET", PULLS): [pull()], ("GET", THREAD): known, ("PATCH", place): {}}) as host:
        run_in(monkeypatch, host, tmp_path)
        assert "brought up to date" in comment_on_pull_request(REPORT)
    assert [method for method, _, _ in host.asked] == ["GET", "GET", "PATCH"]


def test_its_comment_is_found_behind_hundreds_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [{"id": n, "body": "I agree", "user": {"type": "User"}} for n in range(100)]
    own = {"id": 900, "body": f"{MARK}\nold", "user": {"type": "Bot"}}
    pages = {("GET", f"{THREAD}?per_page=100&page={n}"): others for n in (1, 2)}
    pages["GET", f"{THREAD}?per_page=100&page=3"] = [*others[:7], own]
    place = "/repos/owner/name/issues/comments/900"
    with serving({("GET", PULLS): [pull()], **pages, ("PATCH", place): {}}) as host:
        run_in(monkeypatch, host, tmp_path)
        assert "brought up to date" in comment_on_pull_request(REPORT)
    assert [method for method, _, _ in host.asked] == ["GET", "GET", "GET", "GET", "PATCH"]


def test_a_first_comment_is_made_where_the_others_fill_their_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [{"id": n, "body": "I agree", "user": {"type": "User"}} for n in range(100)]
    pages = {("GET", f"{THREAD}?per_page=100&page=1"): others, ("GET", f"{THREAD}?per_page=100&page=2"): []}
    with serving({("GET", PULLS): [pull()], **pages, ("POST", THREAD): {}}) as host:
        run_in(monkeypatch, host, tmp_path)
        assert comment_on_pull_request(REPORT) == "commented"


def test_a_report_of_another_commit_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}) as host:
        run_in(monkeypatch, host, tmp_path)
        with pytest.raises(BenchbookError, match="the report is of cccccccccccc"):
            comment_on_pull_request(ChangeReport("a", "c" * 40))
    assert host.asked == []


def test_a_pull_request_that_moved_on_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({("GET", PULLS): [pull(head="c" * 40)]}) as host:
        run_in(monkeypatch, host, tmp_path)
        assert "no open pull request" in comment_on_pull_request(REPORT)


@pytest.mark.parametrize("event", [{}, {"workflow_run": {}}, []])
def test_outside_such_a_workflow_nobody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: Any
) -> None:
    with serving({}) as host:
        run_in(monkeypatch, host, tmp_path, event)
        with pytest.raises(BenchbookError, match="is not that of a workflow"):
            comment_on_pull_request(REPORT)
    assert host.asked == []


def test_a_host_that_refuses_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({}) as host:
        run_in(monkeypatch, host, tmp_path)
        with pytest.raises(BenchbookError, match="404"):
            comment_on_pull_request(REPORT)


def test_records_are_proposed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = make_project(tmp_path / "here")
    base = commit_all(project.root)
    git(tmp_path, "init", "--quiet", "--bare", "owner/name")
    record = project.record_path(MACHINE, "sums/add.py")
    write(record, record.read_text("utf-8").replace('"total": 7', '"total": 8'))
    write(project.snippets / "sums/add.py", SCRIPT + "# not to be proposed\n")
    write(project.records / MACHINE / "note.txt", "nor this")
    with serving({("POST", PULLS): {"html_url": "https://host/7"}}) as host:
        run_in(monkeypatch, host, tmp_path)
        monkeypatch.setenv("GITHUB_SERVER_URL", f"file://{tmp_path}")
        monkeypatch.setenv("GITHUB_REF_NAME", "main")
        monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
        assert propose_records(project, base) == "opened https://host/7"
    (_, _, content), *rest = host.asked
    assert rest == []
    assert (content["title"], content["base"]) == (f"Record on {MACHINE}", "main")
    bare = tmp_path / "owner/name"
    changed = git(bare, "diff", "--name-only", base, content["head"])
    assert changed == f"snippets/records/{MACHINE}/sums/add.json"
    assert git(bare, "rev-parse", f"{content['head']}^") == base
    # What the workflow checks, which nothing else does.
    assert (tmp_path / "output").read_text("utf-8") == f"commit={git(bare, 'rev-parse', content['head'])}\n"
    assert "t0ken" not in git(project.root, "config", "--list")


def test_without_a_changed_record_nothing_is_proposed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path)
    base = commit_all(project.root)
    with pytest.raises(BenchbookError, match="no record changed"):
        propose_records(project, base)


def test_the_notebooks_of_a_site_are_a_branch_without_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make_project(tmp_path / "here")
    commit_all(project.root)
    git(tmp_path, "init", "--quiet", "--bare", "owner/name")
    bare, site = tmp_path / "owner/name", project.root / "site"
    with serving({}) as host:
        run_in(monkeypatch, host, tmp_path)
        monkeypatch.setenv("GITHUB_SERVER_URL", f"file://{tmp_path}")
        write(site / "downloads/sums/old.ipynb", "{}")
        publish_notebooks(project, site)
        (site / "downloads/sums/old.ipynb").unlink()
        write(site / "downloads/sums/add.ipynb", '{"cells": []}')
        write(site / "downloads/sums/add.py", "no notebook")
        assert publish_notebooks(project, site) == "published 1 notebook(s)"
    assert git(bare, "ls-tree", "-r", "--name-only", "notebooks") == "sums/add.ipynb"
    assert git(bare, "show", "notebooks:sums/add.ipynb") == '{"cells": []}'
    assert git(bare, "rev-list", "--count", "notebooks") == "1"
    assert "t0ken" not in git(project.root, "config", "--list")


def test_without_a_site_no_notebook_is_published(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    with pytest.raises(BenchbookError, match="site:1: holds no notebook; build the site first"):
        publish_notebooks(project, project.root / "site")
