"""The languages that mkdocs.yml lists, and where; each has a folder, and each folder is listed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from benchbook.content.problems import Problem
from benchbook.content.project import Project
from benchbook.languages.language import FILE

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
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
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
    listed = listed_languages(path.read_text("utf-8")) if path.is_file() else None
    if listed is None:
        return
    for code, line in listed.lines.items():
        if code not in project.languages:
            mend = f"remove the entry, or make it with `benchbook new language {code}`"
            yield Problem(CONFIG, line, f"lists `{code}`, which has no docs/{code}/{FILE}", mend)
    for code in project.languages:
        if code not in listed.lines:
            mend = f"list it under the plugin i18n in {CONFIG}, or remove the folder"
            yield Problem(f"docs/{code}/{FILE}", 1, f"is of a language that {CONFIG} does not list", mend)


def below(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """What stands under `key` in a mapping, or in a list of mappings with one key each."""
    if isinstance(node, yaml.SequenceNode):
        return next((found for item in node.value if (found := below(item, key))), None)
    if isinstance(node, yaml.MappingNode):
        return next((value for name, value in node.value if name.value == key), None)
    return None


def last_line(node: yaml.Node) -> int:
    """The last line on which something of `node` stands: the end of its last scalar."""
    if isinstance(node, yaml.MappingNode) and node.value:
        return max(last_line(value) for pair in node.value for value in pair)
    if isinstance(node, yaml.SequenceNode) and node.value:
        return max(last_line(item) for item in node.value)
    # A mark at the very beginning of a line is the end of the line before it.
    return node.end_mark.line + (node.end_mark.column > 0)
