"""The HTML that a page's text may hold: nothing that runs, loads from elsewhere, or asks for input."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

WRITE_MARKDOWN = "write plain Markdown or an admonition (`!!! tip`); link to pages, sections and https alone"
# Where a link may lead: to a page, a section, a file beside it, or another site over TLS.
SCHEMES = frozenset({"https", "mailto"})
# What the head of a page may say. MkDocs would obey more: another template, for one.
FRONT_MATTER = ("title", "description", "synonyms", "sections", "reviewed", "draft")
# Words to search for, and how many of them a page has at most.
LONGEST_SYNONYM, MOST_SYNONYMS = 100, 100
# Titles stand on every page; descriptions here have 200 characters.
LONGEST_TITLE = 500
# What an author may write, and what Markdown makes of content tabs and of places for our own blocks.
BLOCK_TAGS = "blockquote dd details div dl dt figcaption figure h1 h2 h3 h4 h5 h6 hr li ol p pre summary ul"
_TABLES = "caption col colgroup table tbody td tfoot th thead tr"
# Not `bdo`, which would turn the digits of a number around.
_PHRASES = "a abbr b bdi br code del em i img ins kbd mark q s small span strong sub sup time u wbr"
WRITTEN = frozenset(f"{BLOCK_TAGS} {_TABLES} {_PHRASES} samp var".split())
MADE = frozenset({"input", "label"})
SLOT = "data-bb-slot"
# None that numbers the entries of a list otherwise: no check reads such a number.
ATTRIBUTES: dict[str, frozenset[str]] = {
    "*": frozenset({"class", "dir", "id", "lang", "title"}),
    "a": frozenset({"href"}),
    "col": frozenset({"span"}),
    "details": frozenset({"open"}),
    "div": frozenset({"data-tabs", SLOT}),
    "img": frozenset({"alt", "height", "loading", "src", "width"}),
    "input": frozenset({"checked", "name"}),
    "label": frozenset({"for"}),
    "span": frozenset({SLOT}),
    "td": frozenset({"align", "colspan", "headers", "rowspan"}),
    "th": frozenset({"align", "colspan", "headers", "rowspan", "scope"}),
    "time": frozenset({"datetime"}),
}
_EVERY_ATTRIBUTE = frozenset[str]().union(*ATTRIBUTES.values())
# What an input may be: nothing can be typed into it.
VALUES = {"input": {"type": {"checkbox", "radio"}}}
# Of what Markdown makes for itself, what no check reads, and what md_in_html takes for itself.
_NOT_WRITTEN = frozenset({"data-tabs", "title", SLOT})
_FOR_MARKDOWN = frozenset({"markdown"})
_ADDRESSES = frozenset({"href", "src"})
# White space and control characters, which a browser leaves out of a scheme.
_INVISIBLE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):|(//|\\\\|/\\|\\/)")
# Browsers take `https:host` for a path of the site.
_WHOLE = re.compile(r"https://[^/?#]|mailto:[^?]", re.IGNORECASE)
_TAG = re.compile(r"<[A-Za-z/!?]")
# The classes that an author may give; any other could hide text, or say of a number that it was measured.
CLASSES = frozenset({"measured", "remedies", "symptoms"})
# What a block that stands out, or opens, may be called.
_SAID = "abstract example info more note question quote tip"
_OUTCOMES = "bug danger failure success warning"
KINDS = frozenset(f"{_SAID} {_OUTCOMES}".split())
_TABS = ("tabbed-alternate", "tabbed-block", "tabbed-content", "tabbed-labels", "tabbed-set")
_MADE_CLASSES = CLASSES | KINDS | {"admonition", "admonition-title", "headerlink", "highlight", *_TABS}
# What code is coloured by: its language, and of each word the few letters of Pygments.
_LANGUAGE_CLASS = re.compile(r"language-[\w+#-]+\Z")
_WORD_CLASS = re.compile(r"(?!js)[a-z][a-z0-9]{0,2}\Z")
# How ids begin that the site itself has, by which its scripts find their elements, and links find claims.
OUR_IDS = ("bb-", "calc-", "claim-", "site-", "__")
_OUR_IDS = frozenset({"calc", "not-found"})
# What an id is made of, for it is repeated in the addresses of other places.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_-]+")
_MARKUP = re.compile(r"<[A-Za-z/!?]")


def unsafe_parts(text: str, *, written: bool = False) -> Iterator[tuple[int, str]]:
    """What of a piece of HTML no page may hold: the line within it, counted from 0, and a name for it.

    Parameters:
        text: The HTML.
        written: Whether an author wrote it; what Markdown makes may hold more.
    """
    yield from _unsafe_of_short(text, written) if len(text) < SHORT else _unsafe_of(text, written)


# Sentences of claims stand on many pages, and are read once; so much HTML is a whole page, and is not kept.
SHORT = 2000


def _unsafe_of(text: str, written: bool) -> tuple[tuple[int, str], ...]:
    if "<" not in text:
        return ()
    parser = _Reader(written)
    parser.feed(text)
    # Before it is closed, what is left is a tag that does not end.
    if _TAG.match(parser.rawdata):
        parser.found.append((parser.getpos()[0] - 1, "<"))
    parser.close()
    return tuple(parser.found)


_unsafe_of_short = lru_cache(maxsize=8192)(_unsafe_of)


def unsafe_words(what: str) -> str:
    """What is wrong with a page that holds a part of that name."""
    if what.startswith("<"):
        return f"`{what}` is not an element of HTML that a page here may hold"
    if what.startswith("."):
        return f"`{what}` is not a class that a page here may use, such as {_listed(CLASSES)}"
    if what.startswith("#"):
        if _PLAIN_ID.fullmatch(what[1:]) is None:
            return f"`{what}` is not an id of letters, digits, `_` and `-`"
        return f"`{what}` is an id that the site itself has, or may have"
    if what.endswith("="):
        return f"`{what}` is not an attribute that an element here may have"
    return f"`{what}` does not begin an address that a page here may lead to"


def unsafe_address(address: str, *, within: bool = False) -> str | None:
    """The scheme by which a link would lead where none may, or what no address is; None of one in order.

    Parameters:
        address: As it is written, entities and all.
        within: Whether it has to stay within the site: a picture is loaded from there alone.
    """
    try:
        # MkDocs takes each address apart, and dies of one that it cannot.
        urlsplit(html.unescape(address))
    except ValueError:
        return address
    found = _SCHEME.match(_INVISIBLE.sub("", html.unescape(address)))
    if found is None:
        return None
    if within or (found[1] or "").lower() not in SCHEMES:
        return found[0].lower()
    return None if _WHOLE.match(address) and _is_kept(html.unescape(address)) else address


@lru_cache(maxsize=8192)
def _is_kept(address: str) -> bool:
    """Whether the cleaner of pages leaves a link to an address in place: it takes its host and port apart."""
    try:
        import nh3
    except ImportError:  # on a machine that only records
        return True
    link = f'<a href="{html.escape(address)}">'
    return "href" in nh3.clean(link, url_schemes=set(SCHEMES), link_rel=None)


def unsafe_attribute(tag: str, name: str, *, written: bool = False) -> bool:
    """Whether an element may not have an attribute of that name; where `tag` is empty, whether none may."""
    if written and name in _FOR_MARKDOWN:
        return False
    allowed = ATTRIBUTES["*"] | ATTRIBUTES.get(tag, frozenset()) if tag else _EVERY_ATTRIBUTE
    return name not in allowed or (written and name in _NOT_WRITTEN)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`.{name}`" for name in sorted(names))


def unsafe_class(name: str, tag: str = "", *, written: bool = False) -> bool:
    """Whether an element may not have that class; Markdown gives some that no author may."""
    if written or name in _MADE_CLASSES:
        return name not in (CLASSES if written else _MADE_CLASSES)
    return not (_LANGUAGE_CLASS.match(name) or (tag == "span" and _WORD_CLASS.match(name)))


def unsafe_id(name: str) -> bool:
    """Whether no element of a page may have an id: it is one of the site's own, or of no plain letters."""
    own = name.lower().startswith(OUR_IDS) or name.lower() in _OUR_IDS
    return own or _PLAIN_ID.fullmatch(name) is None


def holds_markup(text: str) -> bool:
    """Whether a plain text would be taken for HTML, as it stands or once its entities are read."""
    return bool(_MARKUP.search(text) or _MARKUP.search(html.unescape(text)))


class _Reader(HTMLParser):
    def __init__(self, written: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[int, str]] = []
        self._written = written
        self._tags = WRITTEN if written else WRITTEN | MADE

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self._tags:
            self._tell(f"<{tag}>")
            return
        for name, value in attrs:
            if value in VALUES.get(tag, {}).get(name, ()):
                continue
            if unsafe_attribute(tag, name, written=self._written):
                self._tell(f"{name}=")
            elif name == "class":
                for one in (value or "").split():
                    if unsafe_class(one, tag, written=self._written):
                        self._tell(f".{one}")
            # The switch of a tab has one of Markdown's.
            elif name == "id" and tag != "input" and unsafe_id(value or ""):
                self._tell(f"#{value}")
            elif name in _ADDRESSES and (scheme := unsafe_address(value or "", within=name == "src")):
                self._tell(scheme)

    def handle_comment(self, data: str) -> None:
        # What is never closed takes the rest of a page along.
        self._tell("<!--")

    def handle_decl(self, decl: str) -> None:
        self._tell("<!")

    def unknown_decl(self, data: str) -> None:
        self._tell("<!")

    def handle_pi(self, data: str) -> None:
        self._tell("<?")

    def _tell(self, what: str) -> None:
        self.found.append((self.getpos()[0] - 1, what))


def places_in(text: str) -> set[str]:
    """What stands in the places that a piece of HTML has for our own blocks, whatever its words say."""
    parser = _Places()
    parser.feed(text)
    parser.close()
    return parser.found


class _Places(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {value or "" for name, value in attrs if name == SLOT}


def accept_options(
    language: str, inputs: dict[str, str], options: dict[str, Any], attrs: dict[str, Any], md: Any
) -> bool:
    """Let SuperFences take every option: wrong ones become problems, with their line, once it is rendered."""
    options.update(inputs)
    inputs.clear()
    return True
