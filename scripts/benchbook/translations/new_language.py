"""Begin a language: its folder, its `_language.yml` marked to be translated, and its entry in mkdocs.yml."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import yaml
from babel import Locale, UnknownLocaleError

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import FALLBACK, Project
from benchbook.content.records import write_together, writing
from benchbook.content.site_files import LANGUAGE_CODE, LANGUAGE_FILE
from benchbook.content.unfinished import alone
from benchbook.content.yaml_text import InvalidYamlError, below, parse_nodes
from benchbook.languages.cldr import script_of

CONFIG = "mkdocs.yml"


@dataclass(frozen=True)
class ListedLanguages:
    """The languages of mkdocs.yml.

    Parameters:
        lines: The line of each language's entry.
        end: The last line of the last entry.
        indent: How far entries are indented.
    """

    lines: dict[str, int]
    end: int
    indent: int


def listed_languages(text: str) -> ListedLanguages | None:
    """The languages that the text of mkdocs.yml lists; None where it lists none."""
    try:
        node = parse_nodes(text)
    except InvalidYamlError:
        return None
    for key in ("plugins", "i18n", "languages"):
        node = below(node, key)
    if not isinstance(node, yaml.SequenceNode) or not node.value:
        return None
    lines = {}
    for entry in node.value:
        locale = below(entry, "locale")
        if isinstance(locale, yaml.ScalarNode):
            lines[str(locale.value)] = entry.start_mark.line + 1
    return ListedLanguages(lines, last_line(node.value[-1]), node.start_mark.column)


def language_problems(project: Project) -> Iterator[Problem]:
    """Languages that are listed and have no folder, or have one and are not listed."""
    path = project.root / CONFIG
    # What is not UTF-8 in it is told with its navigation.
    listed = listed_languages(path.read_text("utf-8", "replace")) if path.is_file() else None
    if listed is None:
        return
    for code, line in listed.lines.items():
        if code not in project.languages:
            fix = f"remove the entry, or make it with `benchbook new language {code}`"
            yield Problem(CONFIG, line, f"lists `{code}`, which has no docs/{code}/{LANGUAGE_FILE}", fix)
    for code in project.languages:
        if code not in listed.lines:
            fix = f"list it under the plugin i18n in {CONFIG}, or remove the folder"
            what = f"is of a language that {CONFIG} does not list"
            yield Problem(f"docs/{code}/{LANGUAGE_FILE}", 1, what, fix)


def last_line(node: yaml.Node) -> int:
    """The last line on which something of `node` stands: the end of its last scalar."""
    if isinstance(node, yaml.MappingNode) and node.value:
        return max(last_line(value) for pair in node.value for value in pair)
    if isinstance(node, yaml.SequenceNode) and node.value:
        return max(last_line(item) for item in node.value)
    # A mark at the very beginning of a line is the end of the line before it.
    return node.end_mark.line + (node.end_mark.column > 0)


# What ends a line whose text is still English.
MARK = "  # translate"
# Blocks whose texts readers see, and blocks that only say how the language is checked.
_SHOWN = ("strings", "labels", "units")
# Scripts that put no space between words, so that a term is sought in the text itself.
_UNSPACED = frozenset({"Hans", "Hant", "Jpan", "Khmr", "Laoo", "Mymr", "Thai"})
_HEAD = """# What belongs to this language: the words around the pages and in their blocks, and its glossary.
# A line that ends in `# translate` is still English: translate it and take the mark off.
"""
_RULES = """
# CLDR knows how the language writes units behind a number, which no page types.
# Where people write them otherwise:
# unit_words: {{s: [seconds], h: [hours]}}

# What terms of the English pages are called; other languages show what else can stand here.
glossary:
  match: {match}
  terms:
"""


def new_language_file(english: str, locale: Locale) -> str:
    """The text of the file for the language `locale`.

    Parameters:
        english: The text of the English file.
        locale: The language.
    """
    node = parse_nodes(english)
    assert isinstance(node, yaml.MappingNode), "the English file has been loaded before"
    blocks = {str(key.value): value for key, value in node.value}
    lines = english.splitlines()
    out = [_HEAD]
    for name in _SHOWN:
        block = blocks.get(name)
        if isinstance(block, yaml.MappingNode) and block.value:
            out.append(f"{name}:\n")
            out.extend(f"{line}\n" for line in _block(block, lines, locale))
            out.append("\n")
    out.append(_RULES.format(match="text" if script_of(locale) in _UNSPACED else "words").lstrip("\n"))
    terms = below(blocks.get("glossary"), "terms")
    for key, _ in terms.value if isinstance(terms, yaml.MappingNode) else ():
        out.append(f"    {_quoted(key.value)}: {{approved: [{_quoted(key.value)}]}}{MARK}\n")
    return "".join(out)


def _block(block: yaml.MappingNode, lines: list[str], locale: Locale) -> Iterator[str]:
    """The lines of a block, comments among them, each text marked."""
    done = block.start_mark.line
    for key, value in block.value:
        first = key.start_mark.line
        yield from (line for line in lines[done:first] if line.strip().startswith("#"))
        done = last_line(value)
        if isinstance(value, yaml.MappingNode):
            # The forms that count are those of the new language.
            yield lines[first]
            forms = {str(name.value): str(text.value) for name, text in value.value}
            for form in sorted({*locale.plural_form.tags, "other"}):
                yield f"    {_quoted(form)}: {_quoted(forms.get(form, forms['other']))}{MARK}"
        else:
            *others, last = lines[first:done]
            yield from others
            yield f"{last}{MARK}"


def _quoted(text: str) -> str:
    """A text as YAML that no reader takes for anything else."""
    return json.dumps(text, ensure_ascii=False)


def new_language(project: Project, code: str) -> list[str]:
    """Make the language `code`: it builds at once, with English pages until they are translated.

    Returns:
        The files made or changed.

    Raises:
        BenchbookError: There is no such language, it is there already, or it cannot be written.
    """
    locale = _locale(code)
    with alone(project.root):
        return _new_language(project, code, locale)


def _new_language(project: Project, code: str, locale: Locale) -> list[str]:
    path = project.docs / code / LANGUAGE_FILE
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
    english = (project.docs / FALLBACK / LANGUAGE_FILE).read_text("utf-8")
    texts = {path: new_language_file(english, locale), config: _with_entry(text, listed, code, locale)}
    with writing(project.relative(path)):
        write_together({place: content.encode() for place, content in texts.items()})
    return [project.relative(path), CONFIG]


def _locale(code: str) -> Locale:
    fix = "name it by its code, such as `fr` or `pt-BR`"
    if not LANGUAGE_CODE.fullmatch(code):
        raise BenchbookError(Problem(code, 1, "is not a code of a language that the site can have", fix))
    try:
        locale = Locale.parse(code.replace("-", "_"))
    except (UnknownLocaleError, ValueError) as error:
        raise BenchbookError(Problem(code, 1, "is not a language that CLDR knows", fix)) from error
    language = code.partition("-")[0]
    if language != locale.language:
        what = f"begins with a code that was replaced: `{language}` is written `{locale.language}`"
        raise BenchbookError(Problem(code, 1, what, fix))
    return locale


def _with_entry(text: str, listed: ListedLanguages, code: str, locale: Locale) -> str:
    lines = text.splitlines(keepends=True)
    entry = "".join(f"{' ' * listed.indent}{line}\n" for line in _entry(text, code, locale))
    return "".join([*lines[: listed.end], entry, *lines[listed.end :]])


def _entry(text: str, code: str, locale: Locale) -> Iterator[str]:
    """The lines of the entry, what readers see of it marked to be translated."""
    root = parse_nodes(text)
    name = str(locale.get_display_name(locale) or code)
    # Norwegian is `no`, which YAML reads as a yes or no.
    yield f"- locale: {code}" if yaml.safe_load(code) == code else f'- locale: "{code}"'
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
