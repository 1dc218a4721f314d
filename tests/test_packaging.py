"""What `pip install` brings is what the package imports."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "scripts/benchbook"


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported() -> set[str]:
    """The top-level names that the package imports anywhere, deep in a function too."""
    names = set()
    for path in PACKAGE.rglob("*.py"):
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


# Which rooms each room may import from, the lowest first: none imports from one below it in this list.
ROOMS: dict[str, set[str]] = {
    "content": set(),
    "statistics": {"content"},
    "machines": {"content"},
    "languages": {"content"},
    "query": {"content", "statistics", "machines"},
    "predictor": {"content", "machines"},
    "predictions": {"content", "statistics", "machines", "predictor"},
    "calculator": {"content", "predictor"},
    "recording": {"content", "statistics", "machines", "query"},
    "translations": {"content", "languages"},
    "rendering": {"content", "statistics", "machines", "languages", "query", "calculator", "translations"},
    "checking": {
        *(
            "content",
            "statistics",
            "machines",
            "languages",
            "query",
            "predictions",
            "calculator",
            "recording",
        ),
        *("translations", "rendering"),
    },
    "contributing": {"content", "statistics", "machines", "query", "rendering", "checking"},
    "cli": {
        *("content", "statistics", "query", "predictor", "predictions", "calculator", "recording"),
        *("translations", "rendering", "checking", "contributing"),
    },
}


def rooms_imported(path: Path) -> set[str]:
    """The rooms that a module imports from anywhere, deep in a function too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports from a place that moves with it"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in found if name.startswith("benchbook.")}


def test_every_module_is_in_a_room() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(ROOMS)
    assert {path.name for path in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_between_the_rooms_run_one_way(room: str) -> None:
    lower = list(ROOMS)[: list(ROOMS).index(room)]
    assert ROOMS[room] <= set(lower)
    found = {path: rooms_imported(path) - {room} for path in (PACKAGE / room).rglob("*.py")}
    assert {path.name: more for path, rooms in found.items() if (more := rooms - ROOMS[room])} == {}
    # An arrow that nothing takes any more is taken out.
    assert set().union(*found.values()) == ROOMS[room]


def test_tests_are_in_the_rooms_of_what_they_test() -> None:
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))}
    assert folders - {"browser"} <= set(ROOMS)


def test_no_module_imports_itself_by_way_of_others() -> None:
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    imports: dict[str, set[str]] = {}
    for name, path in modules.items():
        # What is imported within a function is imported once both modules are there.
        found = [node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
        asked = {f"{node.module}.{alias.name}" for node in found for alias in node.names}
        asked |= {str(node.module) for node in found}
        imports[name] = {one for one in asked if one in modules}
    TopologicalSorter(imports).prepare()  # names the modules of a cycle, if there is one


def test_a_public_name_stands_for_one_thing_in_the_whole_package() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_every_declared_package_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    declared = {normal(re.split(r"[\s\[<>=!~;]", line, maxsplit=1)[0]) for line in lines} - {"benchbook"}
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert declared <= {normal(line.partition("==")[0]) for line in pins}


@pytest.mark.parametrize("path", sorted(ROOT.glob("constraints-*.txt")), ids=lambda path: path.stem)
def test_an_environment_of_its_own_pins_what_it_has_otherwise_and_nothing_else(path: Path) -> None:
    text, shared = path.read_text("utf-8"), (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pins = [line for line in text.splitlines() if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[a-z0-9-]+==[\w.+]+", line)] == []
    names = [line.partition("==")[0] for line in pins]
    assert names == sorted(set(names))
    assert {*pins}.isdisjoint(
        f"{normal(name)}=={version}" for name, _, version in (line.partition("==") for line in shared)
    )
    without = {name for line in re.findall("^# without: (.*)", text, re.MULTILINE) for name in line.split()}
    assert without.isdisjoint(names)
