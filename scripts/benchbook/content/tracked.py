"""What git tracks that no command may find: links, and what stands in the root and is none of the handbook's.

Commands write, empty and read more than pages and records: a link leads them elsewhere, and a tool that a
build starts takes its settings from a file in the folder that it is started in.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.revisions import git_answer

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
# A checkout's own, of which is told which file it is that git tracks (`benchbook.content.unfinished`).
OWN = (".benchbook", ".cache")
# How git's list of files begins the line of a link. The tests have some, which lead to what they read.
_LINK, _TESTS = "120000 ", "tests/"
_HERE = "scripts/benchbook/content/tracked.py"


def tracked_problems(project: Project) -> Iterator[Problem]:
    """Links, and files and folders of the root, that git tracks and nothing here asks for; each once.

    Parameters:
        project: The checkout; where git does not know it, nothing came with a commit.
    """
    listed = git_answer(project.root, "ls-files", "-z", "--stage") or b""
    strange = set()
    for entry in listed.decode("utf-8", "replace").split("\0"):
        mode, _, name = entry.partition("\t")
        if mode.startswith(_LINK) and not name.startswith(_TESTS):
            what = "is a link, and git tracks it: what is written there would be written elsewhere"
            yield Problem(name, 1, what, "put what it leads to in its place")
        first, inner, _ = name.partition("/")
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
