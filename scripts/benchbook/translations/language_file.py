"""Make the `_language.yml` of a new language from the English one, every text marked to be translated."""

from __future__ import annotations

import json
from collections.abc import Iterator

import yaml
from babel import Locale

from benchbook.translations.rules import script_of
from benchbook.translations.site_languages import below, last_line

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
# unit_words: [seconds, hours]

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
    node = yaml.compose(english, Loader=yaml.SafeLoader)
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
