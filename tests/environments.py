"""Environments for scripts that hold files of a line or two: nothing is downloaded."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from builders import write

# What the recorder needs in the process that runs scripts.
HERE = Path(sysconfig.get_path("purelib"))


def make_environment(folder: Path, *below: Path) -> Path:
    """An environment without pip, over others and the one that runs the tests."""
    bare_environment(folder, ())
    seen = [*map(packages_of, below), HERE]
    write(packages_of(folder) / "below.pth", "".join(f"{path}\n" for path in seen))
    return folder


def bare_environment(folder: Path, names: Iterable[str]) -> Path:
    """An environment that holds these packages, linked from the one that runs the tests, and no other."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    for name in names:
        distribution = importlib.metadata.distribution(name)
        tops = {Path(str(file)).parts[0] for file in distribution.files or ()}
        for top in tops - {"..", "__pycache__"}:
            (packages_of(folder) / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder


def packages_of(environment: Path) -> Path:
    """Where its packages lie."""
    (found,) = environment.glob("lib/python*/site-packages")
    return found


def install(environment: Path, version: str, name: str = "weights") -> None:
    """Put a package there that knows its version, in the place of another version of it."""
    for path in packages_of(environment).glob(f"{name}-*.dist-info/METADATA"):
        path.unlink()
        path.parent.rmdir()
    write(packages_of(environment) / f"{name}.py", f"version = {version!r}\n")
    information = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    write(packages_of(environment) / f"{name}-{version}.dist-info/METADATA", information)
