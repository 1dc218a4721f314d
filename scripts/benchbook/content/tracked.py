"""What git tracks that no command may find: links, and what in the root or beside scripts is not known.

Commands write, empty and read more than pages and records: a link leads them elsewhere, and a tool that a
build starts takes its settings from a file in the folder that it is started in. What a script imports from
its own folder is measured, and in no digest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from benchbook.content.problems import Problem
from benchbook.content.project import DATA_FOLDERS, Project
from benchbook.content.revisions import git_answer
from benchbook.content.script import Script

# What stands in the root, beside the files of pins.
FOLDERS = (".ci", ".github", "docs", "scripts", "snippets", "tests")
FILES = (
    ".gitattributes",
    ".gitignore",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "README.md",
    "mkdocs.yml",
    "pyproject.toml",
)
PINS = ("constraints", ".txt")
# What stands in scripts/, and what Python takes for code, or for a package, beside sources that are reviewed.
_IN_SCRIPTS = ("benchbook", "benchmarks", "kit")
_UNREVIEWED = (".pyc", ".pyo", ".pyd", ".so", ".pth", ".egg", ".zip")
_UNREVIEWED_FOLDERS = ("__pycache__", ".dist-info", ".egg-info")
# What stands in a guide's folder below snippets/, beside its scripts and their inputs.
BESIDE_SCRIPTS = ("claims.toml", "predictions.toml", "review.toml")
# A checkout's own, of which is told which file it is that git tracks (`benchbook.content.unfinished`).
OWN = (".benchbook", ".cache")
# What git may make of files: the same for a reviewer as for whoever checks them out.
ATTRIBUTES = ".gitattributes"
IGNORED = ".gitignore"
_PLAIN = frozenset({"text=auto", "eol=lf", "binary"})
# Files of which git may show no lines: of others a reviewer must see what changed.
_PICTURES = ("*.png", "*.woff2", "*.gz")
# How git's list of files begins the line of a link. The tests have some, which lead to what they read.
_LINK, _TESTS = "120000 ", "tests/"
_HERE = "scripts/benchbook/content/tracked.py"


def tracked_problems(project: Project) -> Iterator[Problem]:
    """Links, and files and folders of the root, that git tracks and nothing here asks for; each once.

    Parameters:
        project: The checkout; where git does not know it, nothing came with a commit.
    """
    strange = set()
    for mode, name in _tracked(project):
        if mode.startswith(_LINK) and not name.startswith(_TESTS):
            what = "is a link, and git tracks it: what is written there would be written elsewhere"
            yield Problem(name, 1, what, "put what it leads to in its place")
        if PurePosixPath(name).name == ATTRIBUTES:
            yield from _attribute_problems(project, name)
        if PurePosixPath(name).name == IGNORED and name != IGNORED:
            yield Problem(name, 1, "keeps what lies there from git", f"put it into {IGNORED} in the root")
        if _is_unreviewed(name):
            what = "is taken for code by Python, and no reviewer reads it"
            yield Problem(name, 1, what, "remove it")
        first, inner, rest = name.partition("/")
        if first == "scripts" and rest.partition("/")[0] not in _IN_SCRIPTS:
            what = "stands in scripts/, where Python may take it for a package or its own"
            yield Problem(name, 1, what, f"remove it; what belongs there is named in {_HERE}")
        pins = first.startswith(PINS[0]) and first.endswith(PINS[1])
        if (
            name
            and first.casefold() not in OWN
            and not (first in FOLDERS if inner else first in FILES or pins)
        ):
            strange.add(first)
    for name in sorted(strange):
        what = "stands in the root, where a command may take it for its own"
        yield Problem(name, 1, what, f"remove it; what belongs there is named in {_HERE}")


def _is_unreviewed(name: str) -> bool:
    """Whether Python takes a file for code, or for a package, that is no source."""
    *folders, last = PurePosixPath(name.casefold()).parts or ("",)
    return last.endswith(_UNREVIEWED) or any(folder.endswith(_UNREVIEWED_FOLDERS) for folder in folders)


def _attribute_problems(project: Project, name: str) -> Iterator[Problem]:
    """What else git is told of files than how lines end: they may be others here than where they are read."""
    path = project.root / name
    if name != ATTRIBUTES:
        yield Problem(name, 1, "tells git of files, beside that in the root", f"put it into {ATTRIBUTES}")
        return
    if path.is_symlink() or not path.is_file():
        return
    for number, line in enumerate(path.read_text("utf-8", "replace").split("\n"), 1):
        pattern, *words = line.split() or ("",)
        odd = [word for word in words if word not in _PLAIN]
        if "binary" in words and pattern not in _PICTURES and not line.startswith("#"):
            what = f"`binary` keeps from a reviewer what changes in {pattern}"
            yield Problem(name, number, what, f"leave it out; {', '.join(_PICTURES)} are known")
        if odd and not line.startswith("#"):
            what = f"`{odd[0]}` may have git check out something else than it shows"
            yield Problem(name, number, what, f"leave it out; {', '.join(sorted(_PLAIN))} are known")


def _tracked(project: Project) -> Iterator[tuple[str, str]]:
    """How git stages each file that it tracks, mode first, and its path from the checkout's root."""
    listed = git_answer(project.root, "ls-files", "-z", "--stage") or b""
    for entry in listed.decode("utf-8", "replace").split("\0"):
        mode, _, name = entry.partition("\t")
        yield mode, name


def beside_script_problems(project: Project, scripts: Iterable[Script]) -> Iterator[Problem]:
    """Files that git tracks in a guide's folder that no digest has, or in none; imports from such a folder.

    Parameters:
        project: The checkout; where git does not know it, nothing came with a commit.
        scripts: All of them.
    """
    inputs = {str(PurePosixPath(one.guide, name)) for one in scripts for name in one.metadata.inputs}
    snippets = f"{project.relative(project.snippets)}/"
    for _, name in _tracked(project):
        if not name.startswith(snippets):
            continue
        guide, _, inner = name.removeprefix(snippets).partition("/")
        if (not inner or guide in DATA_FOLDERS) and name.endswith(".py"):
            what = "lies in no guide, and commands take what lies there for one"
            yield Problem(name, 1, what, f"put it into the folder of its guide, `{snippets}<guide>/`")
        is_of_guide = inner and guide not in DATA_FOLDERS
        is_script = inner.endswith(".py") and "/" not in inner
        if is_of_guide and not (is_script or inner in BESIDE_SCRIPTS or f"{guide}/{inner}" in inputs):
            what = "lies beside scripts, which may read it without a record that tells"
            yield Problem(name, 1, what, "name it in the `inputs` of the script that reads it, or remove it")
    for script in scripts:
        yield from _import_problems(project, script)


def _import_problems(project: Project, script: Script) -> Iterator[Problem]:
    """Imports of what lies in a script's folder, itself included: Python looks there before anywhere else."""
    beside = {path.name.partition(".")[0] for path in (project.snippets / script.guide).iterdir()}
    for node in ast.walk(ast.parse(script.source)):
        match node:
            case ast.Import(names=aliases):
                modules = [alias.name for alias in aliases]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case _:
                continue
        for top in sorted({module.partition(".")[0] for module in modules} & beside):
            what = f"imports `{top}` from its own folder, whose code is not in its record"
            fix = (
                f"put that code into the script, or, if a package is meant, rename what is called {top} here"
            )
            yield Problem(script.path, node.lineno, what, fix)
