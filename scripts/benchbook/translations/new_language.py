"""Begin a language: its folder with what the interface says, and its entry in mkdocs.yml."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import yaml
from babel import Locale, UnknownLocaleError

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.records import write_text
from benchbook.languages.language import FALLBACK, FILE
from benchbook.translations.language_file import MARK, new_language_file
from benchbook.translations.site_languages import CONFIG, ListedLanguages, below, listed_languages

# The codes that mkdocs-static-i18n takes for a language, and for the name of its folder.
_CODE = re.compile(r"[a-z]{2}(-[A-Z][a-z]{3})?(-[A-Z]{2})?")


def new_language(project: Project, code: str) -> list[str]:
    """Make the language `code`: it builds at once, with English pages until they are translated.

    Returns:
        The files made or changed.

    Raises:
        BenchbookError: There is no such language, or it is there already.
    """
    locale = _locale(code)
    path = project.docs / code / FILE
    config = project.root / CONFIG
    text = config.read_text("utf-8")
    listed = listed_languages(text)
    if path.exists() or (listed and code in listed.lines):
        raise BenchbookError(
            Problem(project.relative(path), 1, f"the language `{code}` is there already", "name another one")
        )
    if listed is None:
        what = "lists no languages below the plugin i18n"
        raise BenchbookError(Problem(CONFIG, 1, what, f"list English there: `- locale: {FALLBACK}`"))
    english = (project.docs / FALLBACK / FILE).read_text("utf-8")
    write_text(path, new_language_file(english, locale))
    write_text(config, _with_entry(text, listed, code, locale))
    return [project.relative(path), CONFIG]


def _locale(code: str) -> Locale:
    mend = "name it by its code, such as `fr` or `pt-BR`"
    if not _CODE.fullmatch(code):
        raise BenchbookError(Problem(code, 1, "is no code of a language that the site can have", mend))
    try:
        return Locale.parse(code.replace("-", "_"))
    except (UnknownLocaleError, ValueError) as error:
        raise BenchbookError(Problem(code, 1, "is no language that CLDR knows", mend)) from error


def _with_entry(text: str, listed: ListedLanguages, code: str, locale: Locale) -> str:
    lines = text.splitlines(keepends=True)
    entry = "".join(f"{' ' * listed.indent}{line}\n" for line in _entry(text, code, locale))
    return "".join([*lines[: listed.end], entry, *lines[listed.end :]])


def _entry(text: str, code: str, locale: Locale) -> Iterator[str]:
    """The lines of the entry, what readers see of it marked to be translated."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    name = str(locale.get_display_name(locale) or code)
    yield f"- locale: {code}"
    yield f"  name: {json.dumps(name[:1].upper() + name[1:], ensure_ascii=False)}"
    yield f"  build: !ENV [BUILD_{code.upper().replace('-', '_')}, true]"
    for key in ("site_name", "site_description"):
        said = below(root, key)
        if isinstance(said, yaml.ScalarNode):
            yield f"  {key}: {json.dumps(str(said.value), ensure_ascii=False)}{MARK}"
    titles = list(_nav_titles(root))
    if titles:
        yield "  nav_translations:"
        yield from (
            f"    {json.dumps(title, ensure_ascii=False)}: {json.dumps(title, ensure_ascii=False)}{MARK}"
            for title in titles
        )


def _nav_titles(root: yaml.Node | None) -> Iterator[str]:
    """The English titles of the navigation that other languages translate."""
    languages = below(below(below(root, "plugins"), "i18n"), "languages")
    entries = languages.value if isinstance(languages, yaml.SequenceNode) else []
    tables = (below(entry, "nav_translations") for entry in entries)
    first = next((table for table in tables if isinstance(table, yaml.MappingNode)), None)
    if first is not None:
        yield from (str(title.value) for title, _ in first.value)
