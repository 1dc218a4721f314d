"""What is installed in this environment: versions, code that was edited, and where an import leads.

It imports nothing that is installed, so that a process of its own can tell it at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Not what a script depends on, but what may change its numbers.
COMPANIONS = (
    "torch",
    "transformers",
    "accelerate",
    "numpy",
    "triton",
    *(f"nvidia-{library}-cu{version}" for library in ("cudnn", "nccl") for version in (12, 13)),
    # From CUDA 13 on named without it.
    "nvidia-cublas",
)
LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
# Its own code is told by the commit that is checked out, and whether it is modified.
OWN = "benchbook"
# Code as it is imported, and what kernels are compiled from as a script runs.
CODE_SUFFIXES = (".py", ".so", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp")
# What is imported by one name, as a package lists its files.
_MODULE = re.compile(r"([^/]+)(?:/__init__)?\.py")


def print_versions() -> None:
    """Print what is installed here of the packages that the arguments name, as JSON."""
    print(json.dumps(versions(sys.argv[1:])))


def versions(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The versions of packages that are installed here, and the state of their code."""
    return {"packages": _packages(names), "sources": _sources(names)}


def _packages(names: Sequence[str]) -> dict[str, str]:
    """The version of Python, and of each package that is installed here."""
    found = {"python": platform.python_version()}
    for name in sorted({*names, *COMPANIONS}):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def stray_import(names: Sequence[str]) -> str:
    """Which of some packages an import would take from elsewhere than where it is installed; empty if none.

    Its version is that of what is installed, and says nothing of what is imported.
    """
    for name in names:
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        # Of one that is installed to be edited, the files lie in its checkout.
        if _source(package) is not None:
            continue
        there = Path(str(package.locate_file(""))).resolve()
        record = package.read_text("RECORD")
        # Of what came without a wheel another file lists them, and takes longer.
        files = map(str, package.files or ()) if record is None else _listed(record)
        modules = {match[1] for file in files if (match := _MODULE.fullmatch(file))}
        for module in sorted(modules):
            found = importlib.util.find_spec(module)
            if found is None or not found.origin:
                continue
            where = Path(found.origin)
            # Installers may link a package to where they keep it: what counts is which folder it is found in.
            # A package may bring a folder `test`, which Python has one of its own of.
            if where.parents[where.name == "__init__.py"].resolve() not in {there, LIBRARY}:
                return (
                    f"`import {module}` takes {where}, and {name} {package.version} is installed in {there}"
                )
    return ""


def installed_code(pythonpath: str | None, sources: Mapping[str, str]) -> str:
    """A digest of all that a script could import here, but for the standard library and this package.

    Parameters:
        pythonpath: That of the scripts.
        sources: The state of the code of packages, as far as it was looked at.
    """
    packages = {_identity(each, sources) for each in importlib.metadata.distributions()}
    # In their order: of two modules of one name the first is imported.
    places = [_state(place) for place in _places([*(pythonpath or "").split(os.pathsep), *sys.path])]
    return hashlib.sha256("\n".join([*sorted(packages), *places]).encode()).hexdigest()[:16]


def _places(path: Sequence[str]) -> list[Path]:
    """The folders and archives of a search path that hold code of others, in its order."""
    found = dict.fromkeys(Path(os.path.realpath(entry)) for entry in path if entry and os.path.exists(entry))
    return [
        place
        for place in found
        if place not in {LIBRARY, LIBRARY / "lib-dynload"} and not (place / OWN).is_dir()
    ]


def _identity(package: importlib.metadata.Distribution, sources: Mapping[str, str]) -> str:
    """Name and version, and what was edited; of one that is from no index its files too.

    Those may change under one version. `sources` as in `installed_code`.
    """
    # Each look at it parses it anew.
    metadata = package.metadata
    name, version = metadata["Name"], f"{metadata['Name']}=={metadata['Version']}"
    if name == OWN:
        return version
    known = sources.get(name)
    told = [version, _code_of(package) if known is None else known]
    if (origin := package.read_text("direct_url.json")) is not None:
        told += [origin, package.read_text("RECORD") or ""]
    return "\n".join(told)


def _sources(names: Sequence[str]) -> dict[str, str]:
    """The state of the code of packages, as far as it is not what was installed."""
    found = {}
    for name in names:
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name != OWN:
            found[name] = _code_of(package)
    return found


def _code_of(package: importlib.metadata.Distribution) -> str:
    """The state of its code, as far as it is not what was installed."""
    source = _source(package)
    return _edits(package) if source is None else _state(source)


def _edits(package: importlib.metadata.Distribution) -> str:
    """A digest of the code of an installed package that was written after it was installed."""
    digest = hashlib.sha256()
    place = str(package.locate_file(""))
    names = _listed(package.read_text("RECORD") or "")
    listed = os.path.join(place, next((name for name in names if name.endswith(".dist-info/RECORD")), ""))
    if not os.path.isfile(listed):
        return ""
    # The list is written last.
    latest = os.stat(listed).st_mtime + 1
    place = os.path.join(place, "")
    for name in names:
        if name.endswith(CODE_SUFFIXES):
            # What is gone since fails by itself. `contextlib.suppress` would take longer than the look.
            try:
                if os.stat(place + name).st_mtime > latest:
                    digest.update(Path(place + name).read_bytes())
            except OSError:
                continue
    return digest.hexdigest()[:16]


@cache
def _listed(record: str) -> tuple[str, ...]:
    """The files that the `RECORD` of a package lists, from the folder that it is installed in."""
    # `Distribution.files` takes a second for ten thousand. No code has a comma in its name.
    return tuple(line.partition(",")[0] for line in record.splitlines())


def _source(package: importlib.metadata.Distribution) -> Path | None:
    """The folder of a package that is installed to be edited; None for any other."""
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
        edited = origin.get("dir_info", {}).get("editable", False)
        return Path(unquote(urlsplit(origin["url"]).path)) if edited else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _state(folder: Path) -> str:
    """A digest of the code below a folder, but for the packages that were installed there, or of an archive.

    Of what it holds, and not of when it was written: the same code on another machine is the same.
    """
    digest = hashlib.sha256()
    installed = {
        name.partition("/")[0]
        for record in folder.glob("*.dist-info/RECORD")
        for name in _listed(record.read_text("utf-8", errors="replace"))
    }
    for path in [str(folder)] if folder.is_file() else _code_below(str(folder), installed, set()):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            told = os.path.relpath(path, folder), hashlib.file_digest(file, "sha256").digest()
            digest.update(repr(told).encode())
    return digest.hexdigest()[:16]


def _code_below(folder: str, left_out: Collection[str], seen: set[str]) -> Iterator[str]:
    """The files of code below a folder, in order.

    Parameters:
        folder: Where they lie.
        left_out: Names in that folder itself.
        seen: Folders that are not looked at again; takes in this one.
    """
    seen.add(os.path.realpath(folder))
    for place, folders, files in os.walk(folder):
        out = left_out if place == folder else ()
        # What is hidden, or is an environment, is not the package's.
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in out
            and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        )
        for path in (os.path.join(place, name) for name in sorted(files) if name not in out):
            if path.endswith(CODE_SUFFIXES) and os.path.isfile(path):
                yield path
        # A package may be linked to where it is kept. Other links may lead to all that a machine has.
        for linked in (os.path.join(place, name) for name in folders):
            is_package = os.path.islink(linked) and os.path.isfile(os.path.join(linked, "__init__.py"))
            if is_package and os.path.realpath(linked) not in seen:
                yield from _code_below(linked, (), seen)
