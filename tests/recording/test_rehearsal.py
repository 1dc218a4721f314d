"""The whole way of a first campaign: packed here, run where nothing but PyTorch is, handed back, shown on a page."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from benchbook.recording.command import INTERRUPTED
from benchbook.recording.kit import THERE, closure, target_environment
from clones import fresh_clone, shell
from environments import bare_environment, packages_of
from handbooks import edit
from repositories import commit_all

pytestmark = pytest.mark.slow

PYTHON = "{}.{}".format(*sys.version_info)
MACHINE = "cpu-rehearsal"
# In the order of their worth: torch alone, a model, and Trainer (which imports peft and bitsandbytes) on one and
# two ranks. The first two have eight runs.
SCRIPTS = (
    "perf_train_gpu_one/number_formats.py",
    "comparing_setups/gradient_accumulation.py",
    "comparing_setups/trainer_batch.py",
)
# Ends any process that would reach beyond this machine, and leaves a note.
NO_NETWORK = """
import os
import sys


def refuse(event, arguments):
    if event in {"socket.getaddrinfo", "socket.gethostbyname"}:
        host = str(arguments[0])
    elif event in {"socket.connect", "socket.sendto"} and isinstance(arguments[1], tuple):
        host = str(arguments[1][0])
    else:
        return
    if host not in {"127.0.0.1", "::1", "localhost", "None", "", "0.0.0.0", os.uname().nodename}:
        with open(NOTE, "a") as note:
            note.write(f"{event} {host}\\n")
        os._exit(77)


sys.addaudithook(refuse)
"""


def bare_image(folder: Path, note: Path) -> Path:
    """A Python that has torch and numpy and what they need, no pydantic, no pip and no network; its executable."""
    names = closure(map(canonicalize_name, THERE), target_environment(PYTHON, "x86_64"))
    site = packages_of(bare_environment(folder, names))
    (site / "sitecustomize.py").write_text(f"NOTE = {str(note)!r}\n{NO_NETWORK}")
    return folder / "bin/python"


def imported_there(python: Path, name: str) -> bool:
    command = [str(python), "-c", f"import {name}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def made(clone: Path, target: str, **variables: str) -> subprocess.CompletedProcess[str]:
    done = shell(clone, f"make --silent {target}", variables)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done


def campaign(clone: Path, python: Path, budget: str, temporary: Path) -> str:
    """Run one as the workflow does, on a machine of its own; what it said."""
    temporary.mkdir()
    variables = {"BUDGET": budget, "MACHINE": MACHINE, "SCRIPTS": " ".join(SCRIPTS), "TMPDIR": str(temporary)}
    command = f"env --unset=PYTHONPATH make --silent campaign PYTHON={python}"
    done = shell(clone, command, variables)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def stopped_campaign(clone: Path, python: Path, after: int, temporary: Path) -> str:
    """Run one, and end it once so many runs are done, as whoever lent the machine may; what it said."""
    command = [
        str(python),
        ".kit/campaign.py",
        "--budget",
        "30m",
        "--out",
        "out",
        "--machine",
        MACHINE,
        *SCRIPTS,
    ]
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    with subprocess.Popen(
        command,
        cwd=clone,
        env=environment | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said, told = "", False
        for line in process.stdout:
            said += line
            if len(runs_in(said)) == after and not told:
                process.terminate()
                told = True
    assert process.returncode == INTERRUPTED, said[-3000:]
    return said


def runs_in(said: str) -> set[tuple[str, str]]:
    """Place and script of each run that a campaign told of; twice, where it was interrupted while it did."""
    return set(re.findall(r"^ +(\d+)/\d+ (\S+\.py)\b.*: ok ", said, re.MULTILINE))


def test_a_campaign_without_a_network_goes_on_where_it_stopped_and_ends_on_a_page(tmp_path: Path) -> None:
    clone, note = fresh_clone(tmp_path / "clone"), tmp_path / "network"
    python = bare_image(tmp_path / "image", note)
    assert not any(
        imported_there(python, name) for name in ("pydantic", "typer", "transformers", "benchbook")
    )
    assert not note.exists()

    # The maintainers name the machine that they are lent.
    edit(
        clone / "pyproject.toml",
        'machines = ["cpu-2core-24gb", ',
        f'machines = ["{MACHINE}", "cpu-2core-24gb", ',
    )
    head = commit_all(clone)
    said = made(clone, "kit", KIT_PYTHON=PYTHON, KIT_CUDA="none").stdout
    assert f"commit {head[:12]}" in said
    assert "the budget is spent; left: 3 script(s)" in campaign(clone, python, "9s", tmp_path / "one")
    assert not list((clone / "out").glob("*.json.gz"))
    # What that unpacked is still there.
    # In the middle of the third script.
    first = stopped_campaign(clone, python, 12, tmp_path / "one")
    (clone / "out").rename(clone / "handed-back")
    # Another day, another machine of the kind: what came back is all there is.
    made(clone, "kit", KIT_PYTHON=PYTHON, KIT_CUDA="none", KIT_STATE="handed-back")
    second = campaign(clone, python, "30m", tmp_path / "two")
    assert not note.exists(), note.read_text()

    (bundle,) = (clone / "out").glob("*.json.gz")
    table: dict[str, Any] = json.loads(gzip.decompress(bundle.read_bytes()))
    assert bundle.name == f"{MACHINE}.json.gz"
    assert sorted(record["script"] for record in table["records"]) == sorted(SCRIPTS)
    wanted = 0
    for record in table["records"]:
        # One campaign of the packed commit, although two days measured it, and no run of it was lost or repeated.
        (found,) = record["campaigns"].values()
        assert (found["commit"], found["modified"]) == (head, False)
        wanted += sum(len(variant["runs"]) for variant in record["variants"].values())
    assert len(runs_in(first)) in {12, 13}
    assert runs_in(first).isdisjoint(runs_in(second))
    assert len(runs_in(first) | runs_in(second)) == wanted

    made(clone, "import", BUNDLES="out", COMMIT=head, MACHINE=MACHINE)
    assert (clone / f"snippets/records/{MACHINE}/machine.json").is_file()
    made(clone, "check")
    made(clone, "site", BUILD_AR="false", BUILD_JA="false", BUILD_ZH="false")
    pages = [path for path in (clone / "site").rglob("*") if path.suffix in {".html", ".json"}]
    shown = {
        path.relative_to(clone / "site").parts[0] for path in pages if MACHINE in path.read_text("utf-8")
    }
    assert shown, "no page knows of the machine"
