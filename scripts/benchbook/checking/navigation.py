"""What mkdocs.yml leads to: the English pages alone, the same in every language, and the site's own files.

MkDocs makes a link of whatever it does not know as a page, with any scheme. The plugin i18n lets each
language replace any setting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import yaml

from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.site_files import ASSETS, LOADED
from benchbook.content.yaml_text import InvalidYamlError, below, parse_nodes

SETTINGS = "mkdocs.yml"
# What the entry of a language says: its own menu or styles would be read by nobody who reads another one.
_OF_LANGUAGE = ("locale", "name", "default", "build", "site_name", "site_description", "nav_translations")
_LOADING = ("extra_css", "extra_javascript")


def navigation_problems(project: Project, pages: Collection[str]) -> Iterator[Problem]:
    """What the navigation leads to that is no page, and the pages it leaves out; without one it lists all.

    Settings that only the readers of one language would see, too, and styles and scripts from elsewhere.

    Parameters:
        project: The checkout.
        pages: The names of the English pages.
    """
    path = project.root / SETTINGS
    try:
        settings = parse_nodes(path.read_text("utf-8")) if path.is_file() else None
    except (InvalidYamlError, UnicodeDecodeError) as error:
        line = error.line if isinstance(error, InvalidYamlError) else 1
        yield Problem(SETTINGS, line, f"is not valid YAML ({error})", "fix its syntax")
        return
    yield from _language_setting_problems(settings)
    yield from _loading_problems(settings)
    listed = set()
    for line, name in (leaf for found in _named(settings, "nav") for leaf in _leaves(found)):
        listed.add(name)
        if name not in pages:
            what = f"the navigation leads to {name!r}, which is no page of docs/en/"
            yield Problem(
                SETTINGS, line, what, "name a page that is there; other places are linked in a page"
            )
    if below(settings, "nav") is not None:
        for name in sorted(set(pages) - listed):
            yield Problem(f"docs/en/{name}", 1, "is in no navigation", f"list it under `nav:` in {SETTINGS}")


def _language_setting_problems(settings: yaml.Node | None) -> Iterator[Problem]:
    """Settings that a language has for itself, and none may."""
    entries = (entry for found in _named(settings, "languages") for entry in _items(found))
    for entry in entries:
        for key, _ in entry.value if isinstance(entry, yaml.MappingNode) else ():
            if key.value not in _OF_LANGUAGE:
                what = f"the entry of a language has the unknown key `{key.value}`"
                fix = f"remove it: it has {', '.join(_OF_LANGUAGE)}; all else is the same in every language"
                yield Problem(SETTINGS, key.start_mark.line + 1, what, fix)


def _loading_problems(settings: yaml.Node | None) -> Iterator[Problem]:
    """Styles and scripts that pages would load and that are none of the site's own."""
    ours = {f"{ASSETS}/{name}" for name in LOADED}
    for key in _LOADING:
        for item in (item for found in _named(settings, key) for item in _items(found)):
            path = below(item, "path") if isinstance(item, yaml.MappingNode) else item
            name = None if path is None else path.value
            if not isinstance(name, str) or name not in ours:
                what = f"`{key}` loads {name!r}, which is no style or script of the site"
                fix = f"name one in docs/{ASSETS}/ that `LOADED` of content/site_files.py names"
                yield Problem(SETTINGS, item.start_mark.line + 1, what, fix)


def _named(node: yaml.Node | None, key: str) -> Iterator[yaml.Node]:
    """Everything under a key, however deep; of a key that is there twice, MkDocs takes the last."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _named(item, key)
    elif isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if name.value == key:
                yield value
            yield from _named(value, key)


def _items(node: yaml.Node) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else [node]


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
