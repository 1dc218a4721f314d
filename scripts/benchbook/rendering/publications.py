"""What a page says of figures published elsewhere: when, where, and what has changed since."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchbook.content.records import Publication
from benchbook.languages.language import Language
from benchbook.query.library import Machine


def published_line(publications: Sequence[Publication], language: Language) -> list[str]:
    """The segment of the one line that no reader may miss: "published 2022, not measured here"."""
    years = dict.fromkeys(language.year(each.source.published + "-01-01") for each in publications)
    listed = language.text("comma").join(years)
    return [language.text("published_in", year=listed)] if publications else []


def published_rows(
    publications: Sequence[Publication], machine: Machine, language: Language
) -> list[tuple[str, str, Any]]:
    """The details: each source with its address and date, and what has changed since."""
    if not publications:
        return []
    sources = {each.source.url: each.source for each in publications}.values()
    days = dict.fromkeys(language.date(source.published) for source in sources)
    changed = language.label(machine.name)
    return [
        ("source", "links", [(source.title, source.url) for source in sources]),
        ("published", "text", language.text("comma").join(days)),
        *([("changed", "text", changed)] if changed else []),
    ]
