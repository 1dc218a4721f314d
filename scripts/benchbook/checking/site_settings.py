"""What mkdocs.yml says: names and the order of pages, the same in every language; all else is held.

MkDocs makes a link of whatever it does not know as a page, with any scheme. The plugin i18n lets each
language replace any setting. A hook, another theme or a plugin makes other pages of what was checked.
What is left is read by MkDocs itself, for a build that it refuses has no pages at all.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import yaml
from babel import Locale, UnknownLocaleError
from mkdocs.config.defaults import MkDocsConfig

from benchbook.content.problems import Problem
from benchbook.content.project import FALLBACK, Project
from benchbook.content.readings import EXTENSIONS
from benchbook.content.safe_html import LONGEST_TITLE
from benchbook.content.site_files import ASSETS, LANGUAGE_FILE, LOADED
from benchbook.content.yaml_text import InvalidYamlError, below, parse_nodes
from benchbook.languages.language import unit_words
from benchbook.languages.telling import first_typed, typed_pattern

SETTINGS = "mkdocs.yml"
# What the entry of a language says: its own menu or styles would be read by nobody who reads another one.
_OF_LANGUAGE = ("locale", "name", "default", "build", "site_name", "site_description", "nav_translations")
_YAML = "tag:yaml.org,2002:"
_TEXT = f"{_YAML}str"
_QUOTE = "write it in quotes"
_PLAIN = tuple(f"{_YAML}{kind}" for kind in ("bool", "int", "null"))
# Ten times what it has: some of it stands on every page.
_MOST_BYTES = 40_000
# Python reads no number of some thousand digits.
_LONGEST_PLAIN = 10
# What may come from a variable of the environment.
_OF_ENVIRONMENT = ("build", "site_url")
# What has words in it, of the site or of a language.
_WORDS = ("name", "site_description", "site_name")
# What MkDocs makes no sense of unless it is text.
_TEXTS = (
    "edit_uri",
    "locale",
    "name",
    "nav",
    "path",
    "repo_url",
    "site_description",
    "site_name",
    "site_url",
)
_LOADING = ("extra_css", "extra_javascript")
HOME = "index.md"
# What may be said of a script beside its path. Of a style, MkDocs knows its path alone.
_OF_SCRIPT: Mapping[str, Any] = {"defer": True, "type": "module"}
# Settings that say something else in another handbook, or are held to something below.
_FREE = frozenset({"site_name", "site_description", "site_url", "nav", *_LOADING})
_ANYTHING = object()
# What the others are, for pages are made and checked by them; under `languages` stands what is held below.
_HELD: Mapping[str, Any] = {
    "edit_uri": "edit/main/docs/",
    "docs_dir": "docs",
    "site_dir": "site",
    "exclude_docs": f"{LANGUAGE_FILE}\n",
    "watch": ["scripts/benchbook/rendering/theme"],
    "theme": {"name": "material", "language": "en", "font": False, "favicon": f"{ASSETS}/favicon.svg"},
    "plugins": {
        "benchbook": {},
        "i18n": {"docs_structure": "folder", "fallback_to_default": True, "languages": _ANYTHING},
    },
    "markdown_extensions": EXTENSIONS,
    "validation": {
        "omitted_files": "info",
        **dict.fromkeys(("not_found", "absolute_links", "unrecognized_links", "anchors"), "warn"),
    },
}


def site_setting_problems(project: Project, pages: Collection[str]) -> Iterator[Problem]:
    """What the navigation leads to that is no page, and the pages it leaves out; without one it lists all.

    Settings that change what pages are made of, too, or that only the readers of one language would see,
    styles and scripts from elsewhere, and what MkDocs refuses.

    Parameters:
        project: The checkout.
        pages: The names of the English pages.
    """
    path = project.root / SETTINGS
    if path.is_file() and (size := path.stat().st_size) > _MOST_BYTES:
        yield Problem(
            SETTINGS, 1, f"has {size} bytes, and {_MOST_BYTES} are the most", "write fewer settings"
        )
        return
    try:
        settings = parse_nodes(path.read_text("utf-8")) if path.is_file() else None
    except (InvalidYamlError, UnicodeDecodeError) as error:
        line = error.line if isinstance(error, InvalidYamlError) else 1
        yield Problem(SETTINGS, line, f"is not valid YAML ({error})", "fix its syntax")
        return
    # A tag that is not held would run code where MkDocs reads it.
    found = list(_own_problems(project, settings, pages))
    yield from found
    if path.is_file() and not any(problem.path == SETTINGS for problem in found):
        yield from _refusals(project, settings)


def _own_problems(project: Project, settings: yaml.Node | None, pages: Collection[str]) -> Iterator[Problem]:
    """All but what MkDocs itself says."""
    yield from _odd_nodes(settings)
    yield from _held_problems(project, settings)
    yield from _address_problems(project, settings)
    yield from _language_setting_problems(settings)
    yield from _loading_problems(settings)
    yield from _number_problems(project, settings)
    menu = below(settings, "nav")
    if menu is not None:
        yield from _menu_problems(menu)
    listed = set()
    for line, name in (leaf for found in _named(settings, "nav") for leaf in _leaves(found)):
        if name in listed:
            yield Problem(SETTINGS, line, f"the navigation leads to {name!r} twice", "remove one of the two")
        listed.add(name)
        if name not in pages:
            what = f"the navigation leads to {name!r}, which is no page of docs/en/"
            yield Problem(
                SETTINGS, line, what, "name a page that is there; other places are linked in a page"
            )
    if menu is not None:
        if HOME not in pages:
            yield Problem(f"docs/en/{HOME}", 1, "is not there, and readers come to it first", "write it")
        for name in sorted(set(pages) - listed):
            yield Problem(f"docs/en/{name}", 1, "is in no navigation", f"list it under `nav:` in {SETTINGS}")


def _refusals(project: Project, settings: yaml.Node | None) -> Iterator[Problem]:
    """What MkDocs refuses to build by, as it says it; nothing is built."""
    path = (project.root / SETTINGS).absolute()
    config = MkDocsConfig(config_file_path=str(path))
    try:
        # Material tells whoever loads it about MkDocs.
        with contextlib.redirect_stderr(io.StringIO()), path.open("rb") as file:
            config.load_file(file)
            refused, _ = config.validate()
    except Exception as raised:
        refused = [("", raised)]
    lines = dict(_key_lines(settings))
    for key, error in refused:
        said = " ".join(str(error).split()) or type(error).__name__
        what = f"MkDocs refuses {f'`{key}`' if key else 'it'} ({said})"
        yield Problem(SETTINGS, lines.get(key, 1), what, "write what MkDocs takes there")


def _key_lines(settings: yaml.Node | None) -> Iterator[tuple[str, int]]:
    for key, _ in settings.value if isinstance(settings, yaml.MappingNode) else ():
        yield str(key.value), key.start_mark.line + 1


def _menu_problems(items: yaml.Node, section: bool = False) -> Iterator[Problem]:
    """What is not a page, a page with a title, or a section of those: a menu shows no more."""
    fix = "write `- page.md`, `- Title: page.md`, or `- Title:` with a list of those below it"
    if not isinstance(items, yaml.SequenceNode) or not items.value:
        yield Problem(SETTINGS, items.start_mark.line + 1, "the navigation has no list of pages here", fix)
        return
    for item in items.value:
        leads = item
        if isinstance(item, yaml.MappingNode) and len(item.value) == 1:
            title, leads = item.value[0]
            if not str(title.value).strip():
                yield Problem(
                    SETTINGS, item.start_mark.line + 1, "the navigation has a title of no word", fix
                )
        if not isinstance(leads, yaml.ScalarNode):
            if leads is item or section:
                what = "the navigation has an entry that is no page and no section of pages"
                yield Problem(SETTINGS, item.start_mark.line + 1, what, fix)
            else:
                yield from _menu_problems(leads, section=True)


def _odd_nodes(node: yaml.Node | None, key: str = "") -> Iterator[Problem]:
    """Keys that are there twice, and values that are neither text, yes or no, nor a number of steps."""
    if isinstance(node, yaml.MappingNode):
        if node.tag != f"{_YAML}map":
            yield _tagged(node, key)
        seen: set[str] = set()
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode) or name.tag != _TEXT:
                # What merges another mapping is an unknown key as well.
                if (name.tag, name.value) != (f"{_YAML}merge", "<<"):
                    yield Problem(SETTINGS, name.start_mark.line + 1, "has a key that is no text", _QUOTE)
                yield from _odd_nodes(value, key)
                continue
            if name.value in seen:
                what = f"the key `{name.value}` is there twice"
                yield Problem(SETTINGS, name.start_mark.line + 1, what, "remove one of them")
            seen.add(name.value)
            yield from _odd_nodes(value, name.value)
    elif isinstance(node, yaml.SequenceNode):
        if node.tag != f"{_YAML}seq" and (node.tag != "!ENV" or key not in _OF_ENVIRONMENT):
            yield _tagged(node, key)
        for item in node.value:
            yield from _odd_nodes(item, key)
    elif isinstance(node, yaml.ScalarNode):
        line = node.start_mark.line + 1
        plain = key not in _TEXTS and len(node.value) <= _LONGEST_PLAIN
        if node.tag not in ((_TEXT, *_PLAIN) if plain else (_TEXT,)):
            what = f"`{key}` is {node.value[:40]!r}, which YAML does not read as a text"
            yield Problem(SETTINGS, line, what, _QUOTE)
        elif len(node.value) > LONGEST_TITLE:
            what = f"`{key}` has {len(node.value)} characters, and {LONGEST_TITLE} are the most"
            yield Problem(SETTINGS, line, what, "say it in fewer words")
        elif key in _WORDS and not node.value.strip():
            yield Problem(SETTINGS, line, f"`{key}` has no word", "write what it is called")


def _tagged(node: yaml.Node, key: str) -> Problem:
    what = f"`{key}` has the tag {node.tag}"
    return Problem(SETTINGS, node.start_mark.line + 1, what, "write it out, without a tag")


def _address_problems(project: Project, settings: yaml.Node | None) -> Iterator[Problem]:
    """Where the site says that it lies, if not where its repository publishes it."""
    node = below(settings, "site_url")
    repository = re.fullmatch(r"https://github\.com/([\w-]+)/([\w.-]+)", project.config.repository or "")
    if node is None or repository is None:
        return
    wanted = f"https://{repository[1].lower()}.github.io/{repository[2]}/"
    values = node.value[1:] if isinstance(node, yaml.SequenceNode) and node.tag == "!ENV" else [node]
    if [getattr(value, "value", None) for value in values] != [wanted]:
        what = "`site_url` is not where the repository publishes the site"
        yield Problem(SETTINGS, node.start_mark.line + 1, what, f"write `!ENV [SITE_URL, {wanted}]`")


def _held_problems(project: Project, settings: yaml.Node | None) -> Iterator[Problem]:
    """Settings that nobody knows, or that are not what the pages are made and checked by."""
    held = {**_HELD, "repo_url": project.config.repository or _ANYTHING}
    for key, value in settings.value if isinstance(settings, yaml.MappingNode) else ():
        if (name := str(key.value)) in held:
            yield from _other_than(value, held[name], name, key.start_mark.line + 1)
        elif name not in _FREE:
            fix = f"remove it: there are {', '.join(sorted({*_FREE, *held}))}"
            yield Problem(SETTINGS, key.start_mark.line + 1, f"`{name}` is an unknown key", fix)


def dropped_settings(project: Project, there: str) -> Iterator[Problem]:
    """Settings that pages are made and checked by, which `main` has and nothing here says.

    Parameters:
        project: The checkout.
        there: The settings of `main`.
    """
    try:
        known, here = (
            {str(key.value) for key, _ in node.value} if isinstance(node, yaml.MappingNode) else set()
            for node in (parse_nodes(there), parse_nodes((project.root / SETTINGS).read_text("utf-8")))
        )
    except (OSError, InvalidYamlError, UnicodeDecodeError):
        return  # told elsewhere
    for name in sorted((known - here) & {*_HELD, *_LOADING, "repo_url", "site_url"}):
        yield Problem(SETTINGS, 1, f"has no `{name}`, which `main` has", "restore it from `main`")


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
    seen: set[str] = set()
    main = None
    for entry in (entry for found in _named(settings, "languages") for entry in _items(found)):
        code = str(getattr(below(entry, "locale"), "value", ""))
        if code in seen:
            what = f"the language {code!r} is there twice"
            yield Problem(SETTINGS, entry.start_mark.line + 1, what, "remove one of the two")
        seen.add(code)
        for key, value in entry.value if isinstance(entry, yaml.MappingNode) else ():
            place = key.start_mark.line + 1
            if key.value == "default" and _value(value) is True:
                if main is not None:
                    what = f"{code!r} is a second default language, beside {main!r}"
                    yield Problem(SETTINGS, place, what, f"remove `default` of {code!r}")
                main = code
            if key.value == "name" and not _is_named(code, value):
                what = f"the name of the language {code!r} is not what it calls itself"
                yield Problem(SETTINGS, place, what, "write it as its speakers do")
            if key.value == "nav_translations" and isinstance(value, yaml.MappingNode):
                for title, said in value.value:
                    if not isinstance(said, yaml.ScalarNode) or not said.value.strip():
                        what = f"the language {code!r} has no words for {title.value!r}"
                        yield Problem(SETTINGS, title.start_mark.line + 1, what, "write its title")
            if key.value == "build" and not _is_built(code, value):
                what = f"`build` of the language {code!r} leaves it out"
                yield Problem(SETTINGS, place, what, f"write `!ENV [{_variable(code)}, true]`")
            if key.value not in _OF_LANGUAGE:
                what = f"the entry of a language has the unknown key `{key.value}`"
                fix = f"remove it: it has {', '.join(_OF_LANGUAGE)}; all else is the same in every language"
                yield Problem(SETTINGS, place, what, fix)


def _is_named(code: Any, name: yaml.Node) -> bool:
    """Whether a language is called what it calls itself, among other words; any if nobody knows its code."""
    try:
        locale = Locale.parse(str(code).replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        return True
    return locale.languages.get(locale.language, "").casefold() in str(name.value).casefold()


def _variable(code: Any) -> str:
    return f"BUILD_{str(code).replace('-', '_').upper()}"


def _is_built(code: Any, node: yaml.Node) -> bool:
    """Whether a language is built unless its variable says otherwise."""
    if not isinstance(node, yaml.SequenceNode):
        return str(node.value) == "true"
    return node.tag == "!ENV" and [item.value for item in node.value] == [_variable(code), "true"]


def _number_problems(project: Project, settings: yaml.Node | None) -> Iterator[Problem]:
    """Measured numbers in titles and descriptions of every page: nothing binds them to a record there."""
    for code, node in _shown_texts(settings):
        words = unit_words(project.docs, code if code in project.languages else FALLBACK)
        found = first_typed(str(node.value), typed_pattern(frozenset(words)))
        if found is not None:
            what = f"a title or description of the site holds the number `{found}`"
            yield Problem(SETTINGS, node.start_mark.line + 1, what, "say it without a number")


def _shown_texts(settings: yaml.Node | None) -> Iterator[tuple[str, yaml.Node]]:
    """The texts that readers see of the settings, each with the language it is in."""
    entries = [entry for found in _named(settings, "languages") for entry in _items(found)]
    tables: list[tuple[str, yaml.Node | None]] = [(FALLBACK, settings)]
    tables += [(str(getattr(below(entry, "locale"), "value", "")), entry) for entry in entries]
    for code, table in tables:
        texts = [below(table, "site_name"), below(table, "site_description")]
        texts += _titles(below(table, "nav"))
        said = below(table, "nav_translations")
        texts += [text for _, text in said.value] if isinstance(said, yaml.MappingNode) else []
        yield from ((code, text) for text in texts if isinstance(text, yaml.ScalarNode))


def _titles(items: yaml.Node | None) -> Iterator[yaml.Node]:
    """The titles in a navigation."""
    for item in items.value if isinstance(items, yaml.SequenceNode) else ():
        for title, leads in item.value if isinstance(item, yaml.MappingNode) else ():
            yield title
            yield from _titles(leads)


def _loading_problems(settings: yaml.Node | None) -> Iterator[Problem]:
    """Styles and scripts that pages would load and that are none of the site's own."""
    ours = {f"{ASSETS}/{name}" for name in LOADED}
    for key in _LOADING:
        for item in (item for found in _named(settings, key) for item in _items(found)):
            path = below(item, "path") if isinstance(item, yaml.MappingNode) else item
            name = None if path is None else path.value
            if isinstance(item, yaml.MappingNode):
                yield from _odd_loading(item, key)
            if not isinstance(name, str) or name not in ours:
                what = f"`{key}` loads {name!r}, which is no style or script of the site"
                fix = f"name one in docs/{ASSETS}/ that `LOADED` of content/site_files.py names"
                yield Problem(SETTINGS, item.start_mark.line + 1, what, fix)


def _odd_loading(item: yaml.MappingNode, key: str) -> Iterator[Problem]:
    """What an entry says of a style or a script beside its path."""
    place = item.start_mark.line + 1
    if key == "extra_css":
        yield Problem(SETTINGS, place, f"`{key}` has an entry that is no path", "write the path alone")
        return
    for name, value in item.value:
        known = str(name.value)
        if known != "path" and (known not in _OF_SCRIPT or _value(value) != _OF_SCRIPT[known]):
            what = f"`{key}` says `{known}` of a script, otherwise than the site has it"
            allowed = ", ".join(f"`{one}: {_written(said)}`" for one, said in _OF_SCRIPT.items())
            yield Problem(SETTINGS, name.start_mark.line + 1, what, f"write {allowed}, or nothing")


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
