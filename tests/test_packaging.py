"""What `pip install` brings is what the package imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """The top-level names that the package imports anywhere, deep in a function too."""
    names = set()
    for path in (ROOT / "scripts/benchbook").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"benchbook"}


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["site"], *extras["record"]]
    declared = {normal(re.split(r"[\s\[<>=!~;]", line, maxsplit=1)[0]) for line in lines}
    providers = packages_distributions()
    undeclared = [
        name for name in imported() if not declared & {normal(found) for found in providers.get(name, [name])}
    ]
    assert not undeclared


def test_arrows_between_the_rooms_run_one_way() -> None:
    rooms = {"machines": set(), "recorder": {"machines"}, "pages": set(), "website": {"pages"}}
    for room, allowed in rooms.items():
        text = "".join(path.read_text("utf-8") for path in (ROOT / "scripts/benchbook" / room).glob("*.py"))
        found = set(re.findall(r"^ *(?:from|import) benchbook\.(\w+)", text, re.MULTILINE))
        assert found & {*rooms, "cli"} <= {room, *allowed}


def test_every_declared_package_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    declared = {normal(re.split(r"[\s\[<>=!~;]", line, maxsplit=1)[0]) for line in lines} - {"benchbook"}
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert declared <= {normal(line.partition("==")[0]) for line in pins}
