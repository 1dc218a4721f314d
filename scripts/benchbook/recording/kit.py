"""Pack what a machine without a network needs to record: this commit, the packages, and how to go on."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.revisions import commit_of, laid_out
from benchbook.content.script import Script, machine_kinds, read_script
from benchbook.machines.circumstances import commit

# What the recorder itself imports.
RECORDER = ("nvidia-ml-py", "packaging", "psutil", "pyyaml", "rich", "typer")
# What must be there: built for the machine's own driver, or large.
THERE = ("torch", "numpy")
# What a recording reads of the repository.
PACKED = ("mkdocs.yml", "pyproject.toml", "LICENSE", "scripts", "snippets")
RUNNER = "scripts/kit/campaign.py"
CONTENT = {"campaign.py", "handbook.tar.gz", "kit.json", "state", "wheels"}
# Versions of the C library that wheels name; pip takes only those it is told.
GLIBC = range(5, 42)
BITSANDBYTES = "bitsandbytes"


def pack_kit(
    project: Project,
    folder: Path,
    python: str = "3.12",
    cuda: str | None = "13.0",
    architecture: str = "x86_64",
    state: Path | None = None,
    at: str | None = None,
    scripts: Sequence[str] = (),
) -> list[str]:
    """Write a kit into `folder`, in the place of an earlier one; what it holds, for people.

    Parameters:
        project: The checkout, whose commit is packed.
        folder: Where the kit goes; not inside what is packed.
        python: The version of Python on the machine, as `3.12`.
        cuda: The version that its PyTorch was built for (`torch.version.cuda`), None for a machine without.
        architecture: Of its processor, as `uname -m` names it.
        state: What earlier campaigns handed back, to go on from there.
        at: Another revision to pack, whose files are read as data; by default what is checked out.
        scripts: Those that are to run there ("guide/script.py"), whose packages alone it then carries; by
            default all.

    Raises:
        BenchbookError: The checkout differs from its commit, or a package is not to be had for that machine.
    """
    packed = _revision(project, at)
    if not re.fullmatch(r"3\.\d+", python):
        raise BenchbookError(
            Problem("--python", 1, f"{python!r} is not a version of Python", "write it as 3.12")
        )
    if state is not None and not state.is_dir():
        what = "is not a folder"
        raise BenchbookError(Problem(str(state), 1, what, "name what an earlier campaign handed back"))
    _refuse_to_replace(folder)
    with laid_out(project.root, packed) as there:
        names = packages(there, python, architecture, cuda, scripts)
        left_out = without_environment(there, cuda, scripts)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside the place it goes to: a kit is there whole, or the earlier one still is.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as temporary:
        made = Path(temporary) / "made"
        (made / "state").mkdir(parents=True)
        if state is not None:
            shutil.copytree(state, made / "state", dirs_exist_ok=True)
        _download(made / "wheels", names, python, architecture)
        for wheel in (made / "wheels").glob(f"{BITSANDBYTES}-*.whl"):
            cut_libraries(wheel, cuda)
        _archive(project.root, packed, made / "handbook.tar.gz")
        shutil.copy(project.root / RUNNER, made / "campaign.py")
        table = {"id": _content(made), "commit": packed, "python": python, "cuda": cuda}
        text = json.dumps(table | {"architecture": architecture, "scripts": list(scripts)}, indent=2) + "\n"
        (made / "kit.json").write_text(text, "utf-8")
        if folder.exists():
            folder.rename(Path(temporary) / "before")
        made.rename(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    shown = ", ".join(f"{name} {version}" for name, version in sorted(names.items()))
    return [
        f"{folder}: {size / 1e6:.1f} MB of commit {packed[:12]}, for Python {python}, {architecture}, "
        + (f"CUDA {cuda}" if cuda else "no CUDA"),
        f"packages: {shown}",
        *(f"without the environment that {name} runs in" for name in left_out),
        f"take the folder there and run: python3 {folder.name}/campaign.py --budget 9m --out out",
    ]


def _revision(project: Project, at: str | None) -> str:
    """The commit to pack."""
    head, modified = commit(project.root)
    packed = commit_of(project.root, at) if at is not None else head
    if packed is None or (packed == head and modified):
        what = "differs from its commit, or has none: nobody could tell what a record came from"
        raise BenchbookError(Problem("snippets", 1, what, "commit first, then pack the kit"))
    return packed


def _refuse_to_replace(folder: Path) -> None:
    """Raise BenchbookError unless `folder` is not there, is empty, or holds a kit and nothing else."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_symlink() or not folder.is_dir():
        raise BenchbookError(Problem(str(folder), 1, "is there, and is not a folder", "name another place"))
    held = {path.name for path in folder.iterdir()}
    if strange := sorted(held - CONTENT if "kit.json" in held else held):
        what = f"holds {strange[0]}, which packing would remove"
        raise BenchbookError(Problem(str(folder), 1, what, "move it elsewhere, or name another folder"))
    if (folder / "state").is_dir() and any((folder / "state").iterdir()):
        what = "holds what an earlier campaign handed back, which packing would remove"
        fix = "move its `state` elsewhere, and name that by --state"
        raise BenchbookError(Problem(str(folder), 1, what, fix))


def _content(made: Path) -> str:
    """What tells a kit from every other: a digest of its packages and of the checkout."""
    digest = hashlib.sha256()
    for path in (*sorted((made / "wheels").glob("*.whl")), made / "handbook.tar.gz"):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def packages(
    project: Project, python: str, architecture: str, cuda: str | None, scripts: Sequence[str] = ()
) -> dict[str, str]:
    """What scripts and recorder need beside `THERE`, by name, each in the version that is installed here.

    Scripts that run in an environment of their own are left out.

    Raises:
        BenchbookError: Something that such a machine needs is not installed here, or there is no such script.
    """
    wanted = {canonicalize_name(name) for name in RECORDER}
    for script in _scripts_for(project, cuda, scripts):
        for text in script.metadata.dependencies if not script.metadata.venv else ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate():
                wanted.add(canonicalize_name(requirement.name))
    return closure(wanted, target_environment(python, architecture), without=THERE)


def without_environment(project: Project, cuda: str | None, scripts: Sequence[str] = ()) -> list[str]:
    """The scripts that such a machine would run, but in environments of their own: a kit holds none."""
    return [script.reference for script in _scripts_for(project, cuda, scripts) if script.metadata.venv]


def _scripts_for(project: Project, cuda: str | None, scripts: Sequence[str]) -> list[Script]:
    """Of `scripts`, or of all where none is named, those that run on a machine with that CUDA, or without."""
    known = project.scripts()
    for name in scripts:
        if name not in known:
            what = f"there is no script `{name}`"
            raise BenchbookError(Problem("scripts", 1, what, did_you_mean(name, known, "script")))
    kinds = machine_kinds("cpu" if cuda is None else "cuda", "")
    read = [read_script(path, project.root) for name, path in known.items() if name in scripts or not scripts]
    for script in read:
        if scripts and not script.runs_on(kinds):
            needs = ", ".join(script.metadata.needs)
            there = ", ".join(kinds[:-1])
            what = f"{script.reference} needs {needs}, and the kit is for a machine that is {there}"
            raise BenchbookError(Problem("scripts", 1, what, "leave it out, or name another --cuda"))
    return [script for script in read if script.runs_on(kinds)]


def target_environment(python: str, architecture: str) -> dict[str, str]:
    """The markers of a machine of that kind, on which `pip` would judge requirements."""
    own: Mapping[str, object] = default_environment()
    return {key: str(value) for key, value in own.items()} | {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "implementation_version": f"{python}.0",
        "platform_machine": architecture,
        "platform_system": "Linux",
        "sys_platform": "linux",
    }


def closure(
    names: Iterable[str], environment: Mapping[str, str], without: Collection[str] = ()
) -> dict[str, str]:
    """`names` and all they need in `environment`, each with the version that is installed here.

    Parameters:
        names: Of packages.
        environment: The markers of a machine.
        without: What is left out, with what nothing else needs.

    Raises:
        BenchbookError: One is not installed here.
    """
    found: dict[str, str] = {}
    waiting = [(name, frozenset[str]()) for name in sorted(names)]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        if name in without:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError as error:
            what = f"{name} is not installed here, which a machine of that kind needs"
            fix = "install it, or pack the kit in the recording environment (`make kit`)"
            raise BenchbookError(Problem("pyproject.toml", 1, what, fix)) from error
        found[name] = distribution.version
        for text in distribution.requires or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is not None and not any(
                marker.evaluate({**environment, "extra": extra}) for extra in extras or {""}
            ):
                continue
            needed = (canonicalize_name(requirement.name), frozenset(requirement.extras))
            if needed not in seen:
                seen.add(needed)
                waiting.append(needed)
    return found


def _download(folder: Path, names: Mapping[str, str], python: str, architecture: str) -> None:
    platforms = [f"manylinux_2_{minor}_{architecture}" for minor in GLIBC]
    platforms += [f"manylinux2014_{architecture}", f"manylinux1_{architecture}", f"linux_{architecture}"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--implementation", "cp", "--python-version", python]
    command += [word for platform in platforms for word in ("--platform", platform)]
    command += ["--dest", str(folder), *(f"{name}=={version}" for name, version in sorted(names.items()))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        said = [line for line in lines if line.startswith("ERROR")] or lines[-1:]
        what = f"a package is not to be had for Python {python} on {architecture} ({' '.join(said)[:300]})"
        raise BenchbookError(Problem("constraints.txt", 1, what, "name another version of Python"))


def cut_libraries(wheel: Path, cuda: str | None) -> None:
    """Leave of bitsandbytes' libraries, one for each version of CUDA, that for `cuda` and the CPU's alone.

    Raises:
        BenchbookError: It has none for that version.
    """
    kept = {"libbitsandbytes_cpu.so"} | (
        {f"libbitsandbytes_cuda{cuda.replace('.', '')}.so"} if cuda else set()
    )
    beside = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as new:
        libraries = {name.rpartition("/")[2] for name in old.namelist() if "/libbitsandbytes_" in name}
        if lacking := kept - libraries:
            beside.unlink()
            known = sorted(re.findall(r"cuda(\d+)(\d)\.so", " ".join(libraries)))
            fix = f"use one of {', '.join(f'{major}.{minor}' for major, minor in known)}"
            raise BenchbookError(Problem("--cuda", 1, f"{BITSANDBYTES} has no {lacking.pop()}", fix))
        lines, index = [], ""
        for info in old.infolist():
            if info.filename.endswith(".dist-info/RECORD"):
                index = info.filename
                continue
            name = info.filename.rpartition("/")[2]
            if name in libraries - kept:
                continue
            data = old.read(info)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{info.filename},sha256={digest},{len(data)}\n")
            new.writestr(info, data)
        new.writestr(index, "".join(lines) + f"{index},,\n")
    beside.replace(wheel)


def _archive(root: Path, packed: str, path: Path) -> None:
    command = [
        "git",
        "-C",
        str(root),
        "archive",
        "--format=tar.gz",
        f"--output={path}",
        packed,
        "--",
        *PACKED,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchbookError(
            Problem(str(root), 1, f"git cannot pack it ({done.stderr.strip()})", "see above")
        )
