"""Give each section a digest that changes with what it says, and not with how its lines are broken."""

from __future__ import annotations

import hashlib

from benchbook.translations.bodies import is_prose
from benchbook.translations.sections import Section

# Long enough that no two versions of a section share one, short enough to be read in a diff.
_LENGTH = 12
_BLANKS = " \t\n"


def section_digest(section: Section) -> str:
    """The digest of a section: its level, its blocks, and their words with single spaces.

    Fences and indented code count with every space they hold.
    """
    lines = [str(section.level)]
    for token in section.tokens:
        exact = token.type in ("fence", "code_block") and not is_prose(token.info)
        lines.append(f"{token.type}\x1f{token.tag}\x1f{_closed_up(token.info)}")
        lines.append(token.content if exact else _closed_up(token.content))
    return hashlib.sha256("\x1e".join(lines).encode("utf-8")).hexdigest()[:_LENGTH]


def _closed_up(text: str) -> str:
    for blank in _BLANKS:
        text = text.replace(blank, " ")
    return " ".join(word for word in text.split(" ") if word)
