"""What mkdocs.yml says: names and the order of pages, the same in every language; all else is held.

MkDocs makes a link of whatever it does not know as a page, with any scheme. The plugin i18n lets each
language replace any setting. A hook, another theme or a plugin makes other pages of what was checked.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml

from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.content.readings import EXTENSIONS
from benchbook.content.site_files import ASSETS, LANGUAGE, LOADED
from benchbook.content.yaml_text import InvalidYamlError, below, parse_nodes

SETTINGS = "mkdocs.yml"
# What the entry of a language says: its own menu or styles would be read by nobody who reads another one.
_OF_LANGUAGE = ("locale", "name", "default", "build", "site_name", "site_description", "nav_translations")
_LOADING = ("extra_css", "extra_javascript")
# Settings that say something else in another handbook, or are held to something below.
_FREE = frozenset({"site_name", "site_description", "site_url", "watch", "nav", "validation", *_LOADING})
_ANYTHING = object()
# What the others are, for pages are made and checked by them; under `languages` stands what is held below.
_HELD: Mapping[str, Any] = {
    "edit_uri": "edit/main/docs/",
    "docs_dir": "docs",
    "site_dir": "site",
    "exclude_docs": f"{LANGUAGE}\n",
    "theme": {"name": "material", "language": "en", "font": False, "favicon": f"{ASSETS}/favicon.svg"},
    "plugins": {
        "benchbook": {},
        "i18n": {"docs_structure": "folder", "fallback_to_default": True, "languages": _ANYTHING},
    },
    "markdown_extensions": EXTENSIONS,
}


def site_setting_problems(project: Project, pages: Collection[str]) -> Iterator[Problem]:
    """What the navigation leads to that is no page, and the pages it leaves out; without one it lists all.

    Settings that change what pages are made of, too, or that only the readers of one language would see, and
    styles and scripts from elsewhere.

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
    yield from _held_problems(project, settings)
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


def _held_problems(project: Project, settings: yaml.Node | None) -> Iterator[Problem]:
    """Settings that nobody knows, or that are not what the pages are made and checked by."""
    held = {**_HELD, "repo_url": project.config.repository or _ANYTHING}
    for key, value in settings.value if isinstance(settings, yaml.MappingNode) else ():
        if (name := str(key.value)) in held:
            yield from _other_than(value, held[name], name, key.start_mark.line + 1)
        elif name not in _FREE:
            fix = f"remove it: there are {', '.join(sorted({*_FREE, *held}))}"
            yield Problem(SETTINGS, key.start_mark.line + 1, f"`{name}` is an unknown key", fix)


def _other_than(node: yaml.Node, held: Any, name: str, line: int) -> Iterator[Problem]:
    """Where a setting, on a line and by its name, is not what it is held to."""
    if isinstance(held, Mapping) and isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            known, place = str(key.value), key.start_mark.line + 1
            if known in held:
                yield from _other_than(value, held[known], f"{name}.{known}", place)
            else:
                what = f"`{name}.{known}` is an unknown key"
                yield Problem(SETTINGS, place, what, f"remove it: there are {', '.join(held) or 'none'}")
        for missing in held.keys() - {str(key.value) for key, _ in node.value}:
            fix = f"write `{missing}: {_written(held[missing])}` there"
            yield Problem(SETTINGS, line, f"`{name}` has no `{missing}`", fix)
    elif held is not _ANYTHING and _value(node) != held:
        what = f"`{name}` is not what pages are made and checked by"
        yield Problem(SETTINGS, line, what, f"write `{_written(held)}`")


def _value(node: yaml.Node) -> Any:
    """What a node holds; None where its tag is none of YAML's own."""
    try:
        return yaml.SafeLoader("").construct_document(node)
    except (yaml.YAMLError, ValueError, OverflowError):
        return None


def _written(value: Any) -> str:
    return json.dumps(value, default=lambda _: "...")


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
