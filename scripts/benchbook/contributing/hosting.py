"""Talk to the host of the repository from a trusted workflow: comment on a pull request, or open one."""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.revisions import commit_of
from benchbook.content.traces import ENDING
from benchbook.contributing.report import ChangeReport, make_report
from benchbook.contributing.report_text import literal, markdown
from benchbook.rendering.downloads import BRANCH, FOLDER

# By this line a comment is found again, and replaced.
MARK = "<!-- benchbook report -->"
REPOSITORY = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+\Z")
SECONDS = 60
# The host hands out a list in pages of so many at most.
PAGE = 100


def comment_on_pull_request(report: ChangeReport) -> str:
    """Show a report on the pull request whose check wrote it; what was done, in a sentence.

    Which one that is, the event of this workflow says, never the report.

    Raises:
        BenchbookError: This is no such workflow, the report is of another commit, or the host refuses.
    """
    run = _event().get("workflow_run", {})
    head, owner = run.get("head_sha"), (run.get("head_repository") or {}).get("owner", {}).get("login")
    if not head or not owner:
        raise _problem("the event is not that of a workflow that ran", "run it in a workflow_run workflow")
    if report.head != head:
        raise _problem(f"the report is of {report.head[:12]}, not of {head[:12]}", "report on the head")
    place = f"/repos/{_repository()}"
    query = urlencode({"state": "open", "head": f"{owner}:{run.get('head_branch')}"})
    pulls = [pull for pull in _ask("GET", f"{place}/pulls?{query}") if pull["head"]["sha"] == head]
    if not pulls:
        return "no open pull request has this commit at its head"
    body = f"{MARK}\n{markdown(report)}"
    thread = f"{place}/issues/{int(pulls[0]['number'])}/comments"
    for known in _ask_for_all(thread):
        if known["body"].startswith(MARK) and known["user"]["type"] == "Bot":
            _ask("PATCH", f"{place}/issues/comments/{int(known['id'])}", {"body": body})
            return "the comment was brought up to date"
    _ask("POST", thread, {"body": body})
    return "commented"


def propose_records(project: Project, revision: str) -> str:
    """Commit the changed records on top of `revision`, push them as a branch and open a pull request.

    The commit is handed on to later jobs, as the output `commit`: what is opened with the token of a workflow
    starts no other, so the same one checks it.

    Raises:
        BenchbookError: No record changed, or the host refuses.
    """
    base = commit_of(project.root, revision)
    folder = project.relative(project.records)
    listed = _git(project, "ls-files", "-z", "--modified", "--others", "--exclude-standard", "--", folder)
    # Records, and the traces beside them; those of a record that was replaced are gone.
    paths = sorted({path for path in listed.split("\0") if path.endswith((".json", ENDING))})
    if not paths:
        raise BenchbookError(Problem(folder, 1, "no record changed", "import what was recorded first"))
    files = {path: project.root / path for path in paths}
    commit = _commit(project, base, files, "Put in place what was recorded")
    machines = ", ".join(sorted({Path(path).relative_to(folder).parts[0] for path in paths}))
    branch = f"records-{commit[:12]}"
    _push(project, f"{commit}:refs/heads/{branch}")
    body = f"Recorded from {literal(base)}.\n\n{markdown(make_report(project.root, base, commit))}"
    made = {"title": f"Record on {machines}", "head": branch, "base": _branch(), "body": body}
    answer = _ask("POST", f"/repos/{_repository()}/pulls", made)
    _hand_on("commit", commit)
    return f"opened {answer['html_url']}"


def publish_notebooks(project: Project, site: Path) -> str:
    """Make the notebooks of a built site the content of the branch that Colab opens them from.

    The branch has one commit, without a parent: what it held before is in the history of the scripts.

    Parameters:
        project: Whose repository.
        site: The folder of the site.

    Raises:
        BenchbookError: There is no notebook, or the host refuses.
    """
    folder = site.resolve() / FOLDER
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.glob("*/*.ipynb"))}
    if not files:
        raise BenchbookError(Problem(project.relative(site), 1, "holds no notebook", "build the site first"))
    commit = _commit(project, None, files, "Put in place the notebooks of the site")
    _push(project, f"+{commit}:refs/heads/{BRANCH}")
    return f"published {len(files)} notebook(s)"


def _push(project: Project, what: str) -> None:
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com")
    _git(project, "push", "--quiet", f"{server}/{_repository()}", what, extra=_login(server))


def _commit(project: Project, base: str | None, files: Mapping[str, Path], message: str) -> str:
    """A commit of `files`, by their path in it, on top of `base` if there is one; what is not there goes."""
    with tempfile.TemporaryDirectory(prefix="benchbook-index-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        if base is not None:
            _git(project, "read-tree", base, extra=index)
        for path, file in files.items():
            if not file.is_file():
                _git(project, "update-index", "--force-remove", "--", path, extra=index)
                continue
            blob = _git(project, "hash-object", "-w", "--no-filters", "--", str(file))
            _git(project, "update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", extra=index)
        tree = _git(project, "write-tree", extra=index)
    names = ("AUTHOR", "COMMITTER")
    who = {f"GIT_{name}_NAME": "benchbook" for name in names}
    who |= {f"GIT_{name}_EMAIL": "benchbook@users.noreply.github.com" for name in names}
    parent = () if base is None else ("-p", base)
    return _git(project, "commit-tree", tree, *parent, "-m", message, extra=who)


def _login(server: str) -> dict[str, str]:
    """The token for one push, where no list of processes and no configuration file shows it."""
    token = base64.b64encode(f"x-access-token:{_token()}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{server}/.extraheader",
        "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {token}",
    }


def _git(project: Project, *arguments: str, extra: Mapping[str, str] | None = None) -> str:
    command = ["git", "-C", str(project.root), "-c", "core.hooksPath=/dev/null", *arguments]
    answer = subprocess.run(
        command, env={**os.environ, **(extra or {})}, capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        said = (answer.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BenchbookError(Problem(".git", 1, f"git {arguments[0]} failed ({said})", "see what it says"))
    return answer.stdout.rstrip("\n")


def _ask_for_all(path: str) -> Iterator[Any]:
    """The items of a list, page by page."""
    for page in itertools.count(1):
        items = _ask("GET", f"{path}?per_page={PAGE}&page={page}")
        yield from items
        if len(items) < PAGE:
            return


def _ask(method: str, path: str, content: Any = None) -> Any:
    server = os.environ.get("GITHUB_API_URL", "https://api.github.com")
    request = urllib.request.Request(
        server + path,
        None if content is None else json.dumps(content).encode(),
        {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {_token()}",
            "Content-Type": "application/json",
        },
        method=method,
    )
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise _problem(f"{method} {path.partition('?')[0]} failed ({error})", "see whether it may") from error


def _event() -> dict[str, Any]:
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text("utf-8"))
    except (KeyError, OSError, ValueError) as error:
        raise _problem(f"no event can be read ({error!r})", "run it in a workflow") from error
    return event if isinstance(event, dict) else {}


def _hand_on(name: str, value: str) -> None:
    """Make `value` an output of the step of a workflow; elsewhere nobody waits for one."""
    if path := os.environ.get("GITHUB_OUTPUT"):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(f"{name}={value}\n")


def _repository() -> str:
    name = os.environ.get("GITHUB_REPOSITORY", "")
    if not REPOSITORY.match(name):
        raise _problem(f"GITHUB_REPOSITORY is {name!r}", "set it to owner/name")
    return name


def _branch() -> str:
    return os.environ.get("GITHUB_REF_NAME", "main")


def _token() -> str:
    token = os.environ.get("GITHUB_TOKEN", "")
    if not token:
        raise _problem("GITHUB_TOKEN is not set", "give this step, and no other, the token")
    return token


def _problem(what: str, fix: str) -> BenchbookError:
    return BenchbookError(Problem(".github/workflows", 1, what, fix))
