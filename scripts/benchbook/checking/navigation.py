"""The navigation in mkdocs.yml: it lists the English pages, each of them, and nothing else.

MkDocs makes a link of whatever it does not know as a page, with any scheme.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import yaml

from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.yaml_text import InvalidYamlError, below, parse_nodes

SETTINGS = "mkdocs.yml"


def navigation_problems(project: Project, pages: Collection[str]) -> Iterator[Problem]:
    """What the navigation leads to that is no page, and the pages it leaves out; without one it lists all.

    Parameters:
        project: The checkout.
        pages: The names of the English pages.
    """
    path = project.root / SETTINGS
    try:
        found = below(parse_nodes(path.read_text("utf-8")), "nav") if path.is_file() else None
    except (InvalidYamlError, UnicodeDecodeError) as error:
        line = error.line if isinstance(error, InvalidYamlError) else 1
        yield Problem(SETTINGS, line, f"is not valid YAML ({error})", "fix its syntax")
        return
    if found is None:
        return
    listed = set()
    for line, name in _leaves(found):
        listed.add(name)
        if name not in pages:
            what = f"the navigation leads to {name!r}, which is no page of docs/en/"
            yield Problem(
                SETTINGS, line, what, "name a page that is there; other places are linked in a page"
            )
    for name in sorted(set(pages) - listed):
        yield Problem(f"docs/en/{name}", 1, "is in no navigation", f"list it under `nav:` in {SETTINGS}")


def _leaves(node: yaml.Node) -> Iterator[tuple[int, str]]:
    """Where the navigation leads, and on which line it says so."""
    if isinstance(node, yaml.SequenceNode):
        for below_it in node.value:
            yield from _leaves(below_it)
    elif isinstance(node, yaml.MappingNode):
        for _, below_it in node.value:
            yield from _leaves(below_it)
    else:
        yield node.start_mark.line + 1, str(node.value)
