"""Hold dependencies of scripts, and environments of their own, to the files that pin them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from benchbook.content.positions import parse_toml, toml_line
from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.script import Script

# What the environment NAME has that constraints.txt does not, or has in other versions: `name==version`.
BEGINNING, ENDING = "constraints-", ".txt"
# What pins the packages of all other environments.
SHARED = "constraints.txt"
# What alone builds the package.
_BACKEND = "setuptools"
# Where pip looks for the encoding of a file, in its first two lines: a comment is options in some.
_ENCODING = re.compile(r"coding[:=]")
# What `pyproject.toml` may hold: keys that are free, and those that decide which code runs whenever the
# package is installed, tested or typed, which are this or not there.
_FREE = object()
_SETTINGS: Mapping[str, Mapping[str, object]] = {
    "build-system": {"requires": _FREE, "build-backend": "setuptools.build_meta"},
    "project": {
        **dict.fromkeys(("name", "version", "description", "readme", "requires-python", "license"), _FREE),
        **dict.fromkeys(("license-files", "authors", "keywords", "classifiers", "urls"), _FREE),
        **dict.fromkeys(("dependencies", "optional-dependencies"), _FREE),
        "dynamic": ["version"],
        "scripts": {"benchbook": "benchbook.cli.main:main"},
        "entry-points": {"mkdocs.plugins": {"benchbook": "benchbook.rendering.plugin:BenchbookPlugin"}},
    },
    "tool": dict.fromkeys(("setuptools", "benchbook", "ruff", "mypy", "pytest"), _FREE),
    "tool.setuptools": {
        "package-data": _FREE,
        "package-dir": {"": "scripts"},
        "packages": {"find": {"where": ["scripts"], "include": ["benchbook*"]}},
        "dynamic": {"version": {"attr": "benchbook.__version__"}},
    },
    "tool.mypy": dict.fromkeys(
        ("python_version", "strict", "untyped_calls_exclude", "mypy_path", "packages", "overrides"), _FREE
    ),
    "tool.pytest": {"ini_options": _FREE},
    "tool.pytest.ini_options": {
        "markers": _FREE,
        "testpaths": ["tests"],
        "addopts": "-q --strict-markers --import-mode=importlib",
        "filterwarnings": ["error"],
        "pythonpath": ["scripts", "scripts/benchmarks", "tests"],
    },
}
# A comment that names a package with the extras that scripts may ask of it: pip knows none in a constraint.
_EXTRAS = "# extras: "
# Packages that pip is told to take out again.
_WITHOUT = "# without: "
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_PIN = re.compile(_NAME + r"==[A-Za-z0-9][A-Za-z0-9.+!]*")
# What the words of a comment that is read are.
_WORDS = {_EXTRAS: re.compile(rf"{_NAME}\[{_NAME}\]"), _WITHOUT: re.compile(_NAME)}


def environment_problems(project: Project, scripts: Iterable[Script]) -> Iterator[Problem]:
    """Environments that nothing pins, and pins of no environment.

    Parameters:
        project: The checkout.
        scripts: All that can be read. Where others cannot, they may be the ones that a file is for.
    """
    known = tuple(scripts)
    for script in known:
        venv = script.metadata.venv
        name = f"{BEGINNING}{venv}{ENDING}"
        if venv and not (project.root / name).is_file():
            what = f"its environment `{venv}` has no {name}"
            fix = "pin there, as name==version, what it has that constraints.txt does not, or has otherwise"
            yield Problem(script.path, script.metadata.line_of("venv"), what, fix)
    if len(known) < len(project.scripts()):
        return
    named = {script.metadata.venv for script in known}
    for path in sorted(project.root.glob(f"{BEGINNING}*{ENDING}")):
        venv = path.name.removeprefix(BEGINNING).removesuffix(ENDING)
        if venv not in named:
            fix = "remove it, or name the environment in a script, as `venv` of [tool.benchbook]"
            yield Problem(path.name, 1, f"pins an environment `{venv}` that no script runs in", fix)


def pin_problems(project: Project) -> Iterator[Problem]:
    """Lines of the files of pins that are no pins: of any other, pip takes options, such as another index.

    Parameters:
        project: The checkout.
    """
    for path in (project.root / SHARED, *sorted(project.root.glob(f"{BEGINNING}*{ENDING}"))):
        # As pip and sed part them, and not where Python does, such as at a form feed.
        for number, line in enumerate(path.read_text("utf-8").split("\n") if path.is_file() else (), 1):
            if not line.isprintable():
                yield Problem(path.name, number, "holds a character that is not seen", "remove it")
            if number <= 2 and _ENCODING.search(line):
                yield Problem(path.name, number, "names an encoding, which pip would read it in", "remove it")
            if line.strip() and not line.startswith("#") and _PIN.fullmatch(line) is None:
                yield Problem(path.name, number, "is no pin", "write name==version, or a comment")
            for begins, form in _WORDS.items():
                words = line.removeprefix(begins).split() if line.startswith(begins) else ()
                if odd := [word for word in words if form.fullmatch(word) is None]:
                    fix = f"write `{begins}` and names of packages alone"
                    yield Problem(path.name, number, f"`{odd[0]}` is no package, and pip is given it", fix)


def package_problems(project: Project) -> Iterator[Problem]:
    """What pip would do with `pyproject.toml` beside installing packages from the index.

    Parameters:
        project: The checkout; one without the file installs nothing.
    """
    path = project.root / "pyproject.toml"
    if not path.is_file():
        return
    text = path.read_text("utf-8")
    table = parse_toml(text, path.name)
    for name, keys in _SETTINGS.items():
        for key, said in _at(table, name).items():
            if (value := keys.get(key)) is _FREE or said == value:
                continue
            line = toml_line(text, (*name.split("."), key))
            if value is None:
                what, fix = f"`{name}.{key}` may have other code run than this project's", "remove it"
            else:
                what = f"`{name}.{key}` is {said}, and may have other code run than this project's"
                fix = f"write {value}"
            yield Problem(path.name, line, what, fix)
    build, described = _at(table, "build-system"), _at(table, "project")
    asked = [*build.get("requires", ()), *described.get("dependencies", ())]
    for extra in described.get("optional-dependencies", {}).values():
        asked += extra
    for one in map(str, asked):
        odd: str | None = None
        try:
            wanted = Requirement(one)
        except InvalidRequirement:
            odd = "is no requirement that pip can read"
        else:
            if wanted.url is not None:
                odd = "is installed from an address"
            elif one in build.get("requires", ()) and wanted.name != _BACKEND:
                odd = f"is no {_BACKEND}, and would run whenever the package is installed"
        if odd is not None:
            line = text[: text.find(one)].count("\n") + 1
            yield Problem(path.name, line, f"`{one}` {odd}", "name the package and its version")


def _at(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The table called `name`; empty where there is none."""
    for key in name.split("."):
        found = table.get(key)
        table = found if isinstance(found, Mapping) else {}
    return table


def dependency_problems(project: Project, scripts: Iterable[Script]) -> Iterator[Problem]:
    """Packages, and extras of them, that no pins name: whoever runs a script, or its notebook, installs them.

    Parameters:
        project: The checkout; one without `constraints.txt` pins nothing.
        scripts: All that can be read.
    """
    if not (project.root / SHARED).is_file():
        return
    for script in scripts:
        venv, line = script.metadata.venv, script.metadata.line_of("dependencies")
        own = f"{BEGINNING}{venv}{ENDING}" if venv else SHARED
        pinned, extras = _pins(project, {SHARED, own})
        for requirement in map(Requirement, script.metadata.dependencies):
            name = canonicalize_name(requirement.name)
            if name not in pinned:
                what = f"its dependency `{requirement.name}` is a package that nothing pins"
                fix = f"where it is the one that you mean, add {name}==VERSION to {own}, as you tried it"
                yield Problem(script.path, line, what, fix)
            for extra in sorted({f"{name}[{extra}]" for extra in requirement.extras} - extras):
                what = f"its dependency asks for `{extra}`, an extra that no file of pins names"
                fix = f"where it needs that, add the line `{_EXTRAS}{extra}` to {own}"
                yield Problem(script.path, line, what, fix)


def _pins(project: Project, files: Iterable[str]) -> tuple[set[str], set[str]]:
    """The packages that files of pins name, and those with an extra."""
    pinned: set[str] = set()
    extras: set[str] = set()
    for path in (project.root / name for name in files):
        for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
            if line.startswith(_EXTRAS):
                extras.update(line.removeprefix(_EXTRAS).split())
            elif not line.startswith("#"):
                pinned.add(canonicalize_name(line.partition("==")[0].strip()))
    return pinned, extras
