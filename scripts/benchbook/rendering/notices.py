"""Tell the reader of a translation which of its sections the English page has left behind."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

from benchbook.content.page_source import parse_page
from benchbook.languages.language import Language
from benchbook.translations.documents import Document
from benchbook.translations.drift import section_digest
from benchbook.translations.reviews import standing_reviews
from benchbook.translations.sections import DESCRIPTION, sections_of

# The digests of English pages by file, with the time stamp they were read at: every language asks for them.
_kept: dict[Path, tuple[int, dict[str, str]]] = {}


def english_digests(path: Path) -> Mapping[str, str]:
    """The digest of every section of an English page, in order."""
    stamp = path.stat().st_mtime_ns
    kept = _kept.get(path)
    if kept is None or kept[0] != stamp:
        text = path.read_text("utf-8")
        sections = sections_of(parse_page(text), text)
        kept = _kept[path] = (
            stamp,
            {one.key: section_digest(one) for one in sections if one.key != DESCRIPTION},
        )
    return kept[1]


def reviewed_sections(path: Path, english: Path) -> frozenset[str]:
    """The sections of a translation that stand as a native reader read them beside their English ones."""
    sides = []
    for one in (english, path):
        text = one.read_text("utf-8")
        sides.append(Document(one, one.name, one.parent.name, one.name, text, parse_page(text)))
    return frozenset(standing_reviews(replace(sides[1], english=sides[0])))


def with_notices(
    html: str,
    recorded: Mapping[str, object],
    english: Mapping[str, str],
    language: Language,
    address: str,
    reviewed: Container[str] = (),
) -> str:
    """The HTML of a translation with a notice below each heading that English has left behind.

    A section that is not translated has a notice in its place, which what links to it can point at.

    Parameters:
        html: What Markdown made of the page.
        recorded: The digests of the English sections it was made from.
        english: Those of the English page as it stands.
        language: The language of the page.
        address: That of the English page, from this one.
        reviewed: The sections that stand as a native reader read them.
    """
    out: list[str] = []
    waiting: list[str] = []
    place = 0
    for key, now in english.items():
        heading = re.compile(rf'<h[1-6](?=[^>]* id="{re.escape(key)}")').search(html, place)
        if heading is None:
            if key not in recorded:
                waiting.append(_notice("section_missing", key, language, address, f' id="{escape(key)}"'))
            continue
        begin, end = heading.start(), html.index(">", html.index("</h", heading.end())) + 1
        out += [html[place:begin], *waiting, html[begin:end]]
        waiting.clear()
        place = end
        if recorded.get(key, now) != now:
            out.append(_notice("section_changed", key, language, address, ""))
        elif key in reviewed:
            words = escape(language.text("section_reviewed"))
            out.append(f'\n<p class="site-reviewed" data-pagefind-ignore>{words}</p>\n')
    return "".join([*out, html[place:], *waiting])


def _notice(text: str, key: str, language: Language, address: str, name: str) -> str:
    link = (
        f'<a hreflang="en" href="{escape(address)}#{escape(key)}">{escape(language.text("read_english"))}</a>'
    )
    return f'\n<p class="site-drift"{name} data-pagefind-ignore>{escape(language.text(text))} {link}</p>\n'
