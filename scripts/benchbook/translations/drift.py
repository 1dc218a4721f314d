"""Give each section a digest, and say which sections of a translation its English page has left behind."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from benchbook.content.page_source import PageSource
from benchbook.content.problems import Problem
from benchbook.translations.front_matter import ENTRY, line_of_entry
from benchbook.translations.sections import Section, is_prose

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


State = Literal["current", "changed", "unrecorded", "missing", "dropped"]
_REASONS: dict[State, str] = {
    "current": "made from the English section as it stands",
    "changed": "the English section has changed since",
    "unrecorded": "nothing says which English section it was made from",
    "missing": "the English section is new and not translated",
    "dropped": "the English page has this section no more",
}


@dataclass(frozen=True)
class Drift:
    """How one section of a translation stands to its English one.

    Parameters:
        key: The id of the section.
        state: What has become of it.
        line: Where it is in the translation, or where it would be.
    """

    key: str
    state: State
    line: int

    @property
    def reason(self) -> str:
        """The state in words."""
        return _REASONS[self.state]


def recorded_digests(page: PageSource) -> Mapping[str, Any]:
    """The digests of the English sections a page says it was made from."""
    found = page.front_matter.get(ENTRY)
    return found if isinstance(found, dict) else {}


def drift_of(
    page: PageSource, text: str, sections: Sequence[Section], english: Sequence[Section]
) -> list[Drift]:
    """How each section of a translation stands, in the English order, then those that English lacks.

    A section that the page was once made from and has lost is not drift: that is damage. Where the page does
    not say so any more, only the history tells the two apart.

    Parameters:
        page: The translation.
        text: Its file.
        sections: Its sections.
        english: Those of the English page.
    """
    recorded = recorded_digests(page)
    return [*_theirs(recorded, sections, english), *_dropped(recorded, text, sections, english)]


def _theirs(
    recorded: Mapping[str, Any], sections: Sequence[Section], english: Sequence[Section]
) -> Iterator[Drift]:
    lines = {section.key: section.line for section in sections}
    line = 1
    for section in english:
        known = recorded.get(section.key)
        if section.key in lines:
            line = lines[section.key]
            state: State = (
                "current" if known == section_digest(section) else "changed" if known else "unrecorded"
            )
            yield Drift(section.key, state, line)
        elif recorded and known is None:
            yield Drift(section.key, "missing", line)


def unknown_digests(
    page: PageSource, text: str, drift: Sequence[Drift], past: Mapping[tuple[str, str], str], path: str
) -> Iterator[Problem]:
    """Digests that no revision of the English page had: with one, a section would count as left behind.

    Parameters:
        page: The translation.
        text: Its file.
        drift: How its sections stand.
        past: What the English sections said, by key and digest.
        path: For messages.
    """
    line = line_of_entry(ENTRY, text)
    recorded = recorded_digests(page)
    for one in drift:
        digest = recorded.get(one.key)
        if one.state in ("changed", "dropped") and (one.key, str(digest)) not in past:
            at = next(
                (at for at, said in enumerate(text.split("\n")[line - 1 :], line) if f"{one.key}:" in said),
                line,
            )
            what = f"no revision of the English section `{one.key}` has the digest `{digest}`"
            fix = "compare the two, then run `benchbook translations accept` for the section"
            yield Problem(path, at, what, fix)


def _dropped(
    recorded: Mapping[str, Any], text: str, sections: Sequence[Section], english: Sequence[Section]
) -> Iterator[Drift]:
    theirs = {section.key for section in english}
    lines = {section.key: section.line for section in sections}
    for key in recorded:
        if key not in theirs:
            yield Drift(str(key), "dropped", lines.get(str(key), line_of_entry(ENTRY, text)))
