"""Tell the browser what may run in a page."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

_INLINE = Path(__file__).with_name("theme") / "inline"


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
