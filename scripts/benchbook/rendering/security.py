"""Keep a page from running what its text says: clean the text, and tell the browser what may run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

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

_INLINE = Path(__file__).with_name("theme") / "inline"


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


@cache
def inline_script(name: str) -> str:
    """A script that stands in the pages themselves, as it stands there: `theme/inline/<name>.js`."""
    return (_INLINE / f"{name}.js").read_text("utf-8").strip()


@cache
def content_security_policy() -> str:
    """What a browser may load and run of a page: files of the site, and our own scripts within the pages.

    Source: https://www.w3.org/TR/CSP3/
    """
    names = sorted(path.stem for path in _INLINE.glob("*.js"))
    # WebAssembly is what the search is made of.
    scripts = " ".join(["'self'", "'wasm-unsafe-eval'", *map(_hash, names)])
    directives = {
        "default-src": "'none'",
        "script-src": scripts,
        "style-src": "'self' 'unsafe-inline'",
        "img-src": "'self' data: blob:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "worker-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'self'",
    }
    return "; ".join(f"{name} {sources}" for name, sources in directives.items())


def _hash(name: str) -> str:
    digest = hashlib.sha256(inline_script(name).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
