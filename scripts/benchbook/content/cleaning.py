"""Take out of the HTML of a page what no page may hold: what its text says does not run."""

from __future__ import annotations

import nh3

from benchbook.content.safe_html import (
    ATTRIBUTES,
    MADE,
    SCHEMES,
    VALUES,
    WRITTEN,
    unsafe_address,
    unsafe_class,
    unsafe_id,
)


def clean(html: str) -> str:
    """The HTML that Markdown made of a page's text, without what no page may hold."""
    return _CLEANER.clean(html)


def _filtered(tag: str, name: str, value: str) -> str | None:
    """The value of an attribute without classes that no page has; none for our ids and what is elsewhere."""
    if name == "class":
        kept = " ".join(one for one in value.split() if not unsafe_class(one, tag))
        # One that names no class is left as it is: nothing was taken from it.
        return kept if kept or not value.split() else None
    if name == "id" and tag != "input" and unsafe_id(value):
        return None
    return None if name == "src" and unsafe_address(value, within=True) else value


_CLEANER = nh3.Cleaner(
    tags=set(WRITTEN | MADE),
    attributes={tag: set(names) for tag, names in ATTRIBUTES.items()},
    tag_attribute_values=VALUES,
    url_schemes=set(SCHEMES),
    link_rel=None,
    attribute_filter=_filtered,
)
