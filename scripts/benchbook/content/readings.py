"""What the checks read of a page and what its readers see of it: two parsers, which must read it alike.

The checks read a page with markdown-it, which knows lines; the site is made by Python-Markdown. Where the two
disagree, words would reach readers that no check has seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from html.parser import HTMLParser
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import unquote

from markdown_it.token import Token

from benchbook.content.claims import claim_parts
from benchbook.content.fence_names import CLAIM, FENCES
from benchbook.content.page_source import (
    ATTRIBUTE_LIST,
    HEADING_ID,
    VALUE,
    PageSource,
    fence_name,
    fence_options,
    is_word,
    parse_page,
)
from benchbook.content.problems import Problem
from benchbook.content.safe_html import BLOCK_TAGS, SLOT, accept_options

if TYPE_CHECKING:
    from markdown import Markdown

# The Markdown that pages are written in; `check` holds mkdocs.yml to it.
EXTENSIONS: Mapping[str, Mapping[str, Any]] = {
    "admonition": {},
    "attr_list": {},
    "md_in_html": {},
    "tables": {},
    "toc": {"permalink": "#", "permalink_title": "Permanent link", "toc_depth": 3},
    "pymdownx.details": {},
    "pymdownx.highlight": {"use_pygments": True},
    "pymdownx.inlinehilite": {},
    "pymdownx.superfences": {},
    "pymdownx.tabbed": {"alternate_style": True},
}
# A word, or a sign that no syntax of Markdown takes away.
_WORD = re.compile(r"[^\W_]+|[^\w\s!-/:-@\[-`{-~]|[%<=]")
# What Markdown takes a tab for.
_TAB = 4
_BLOCKS = frozenset(f"{BLOCK_TAGS} table tbody td tfoot th thead tr".split())
_VOID = frozenset({"br", "col", "hr", "img", "input", "wbr"})
_HEADING = re.compile(r"h[1-6]\Z")
# So many words in a row say where a page is meant.
_SHOWN = 5
_FIX = (
    "write it as the other pages do: a blank line above and below blocks and tags that stand alone, "
    "the lines of a fence as far in as its first, `\\` before a sign that means itself"
)


class Item(NamedTuple):
    """A part of what a page says.

    Parameters:
        kind: "text", "code" or a heading's tag for a word; "link", "image", "title", "value" or the name of a
            fence; "id" where a heading ends; "break" where a block begins.
        text: The word, the id, the address, or what stands in the fence.
    """

    kind: str
    text: str


_NO_ID = Item("id", "")
# What stands in a slot, by its number: the name of the fence or "value", its options, and its source.
Slot = tuple[str, Mapping[str, str], str]
Placed = tuple[Item, int]
Part = TypeVar("Part")


def differences(ours: Sequence[Placed], theirs: Sequence[Item], path: str) -> Iterator[Problem]:
    """The first place of each section where two readings part, as problems; `ours` has lines.

    Parameters:
        ours: What the checks read.
        theirs: What readers see.
        path: For the messages.
    """
    sides = _sections(ours, lambda placed: placed[0]), _sections(theirs, lambda item: item)
    # Where one has headings that the other lacks, what follows cannot be told apart.
    pairs = zip(*sides, strict=True) if len(sides[0]) == len(sides[1]) else [(ours, theirs)]
    for one, other in pairs:
        yield from _first_difference(one, other, path)


def _first_difference(ours: Sequence[Placed], theirs: Sequence[Item], path: str) -> Iterator[Problem]:
    for place, (one, other) in enumerate(zip_longest(ours, theirs)):
        if one and other and one[0] == _NO_ID and other.kind == _NO_ID.kind:
            continue  # the site makes one up, and that there is none is a problem of its own
        if (one[0] if one else None) != other:
            line = one[1] if one else ours[-1][1] if ours else 1
            read = _shown([item for item, _ in ours[place : place + _SHOWN]])
            what = f"text: the checks read {read}, readers see {_shown(theirs[place : place + _SHOWN])}"
            yield Problem(path, line, f"{what}: both parsers must read a page alike", _FIX)
            return


def unseen_problems(
    places: Collection[str], slots: Mapping[str, Slot], text: str, path: str
) -> Iterator[Problem]:
    """Fences and values that the site makes, for it makes them before it knows what is code, and nobody sees.

    Parameters:
        places: What stands in the page for a slot (`places_in`).
        slots: What was made for it.
        text: The file of the page.
        path: For the messages.
    """
    for number, (name, _, _) in slots.items():
        if number not in places:
            what = f"a `{name}` that no reader sees, for it stands in code, is made nevertheless"
            fix = "show how it is written within a fence of four backticks (````markdown), or take it out"
            yield Problem(path, _line_of_unseen(name, text), what, fix)


def _line_of_unseen(name: str, text: str) -> int:
    """The first line that begins such a fence where the checks read code, else anywhere; else 1."""
    lines = text.split("\n")
    begins = re.compile(rf"(?:`{{3}}|~{{3}})[`~ {{.]*{re.escape(name)}\b")
    blocks = [each.map or (0, 0) for each in parse_page(text).tokens if each.type == "code_block"]
    code = [number for first, last in blocks for number in range(first, last)]
    return next((number + 1 for number in (*code, *range(len(lines))) if begins.search(lines[number])), 1)


def _sections(parts: Sequence[Part], item_of: Callable[[Part], Item]) -> list[Sequence[Part]]:
    """What stands from one heading to the next."""
    kinds = [item_of(part).kind for part in parts]
    starts = [
        place
        for place, kind in enumerate(kinds)
        if place and _HEADING.match(kind) and kinds[place - 1] == "break"
    ]
    return [parts[start:end] for start, end in pairwise([0, *starts, len(parts)])]


def _shown(items: Sequence[Item]) -> str:
    if not items:
        return "nothing more"
    kind, text = items[0]
    if kind == "break":
        return "a block that begins " + _shown(items[1:])
    if _is_word_kind(kind):
        words = []
        for item in items:
            if item.kind != kind:
                break
            words.append(item.text)
        what = {"text": "", "code": " as code"}.get(kind, " as a heading")
        return f"“{' '.join(words)}”{what}"
    return f"the {kind} `{text}`"


def _is_word_kind(kind: str) -> bool:
    return kind in ("text", "code") or _HEADING.match(kind) is not None


class _Collector:
    """Takes in pieces of text, and makes words of those that nothing parts."""

    def __init__(self) -> None:
        self.items: list[Placed] = []
        self._buffer = ""
        self._kind = "text"
        self._parted = False
        self.line = 1

    def part(self) -> None:
        """Note that a block ends here, or begins."""
        self.flush()
        self._parted = True

    def say(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self.flush()
            self._kind = kind
        if not self._buffer:
            self._start = self.line
        self._buffer += text

    def flush(self) -> None:
        if self._buffer:
            # An address that is text, too, is decoded by one parser.
            buffer, self._buffer = unquote(self._buffer), ""
            line, place = self._start, 0
            for word in _WORD.finditer(buffer):
                line += buffer.count("\n", place, word.start())
                place = word.start()
                self._add(Item(self._kind, word[0]), line)

    def put(self, kind: str, text: str) -> None:
        self.flush()
        self._add(Item(kind, text), self.line)

    def _add(self, item: Item, line: int) -> None:
        if self._parted:
            self._parted = False
            self.items.append((Item("break", ""), line))
        self.items.append((item, line))

    def link(self, kind: str, address: str) -> None:
        # Each parser writes an address its own way: what leads to the same place is the same.
        self.put(kind, unquote(address).strip())


def page_items(page: PageSource) -> list[Placed]:
    """What the checks read of a page, in its order, each part with its line."""
    words = [token for token in page.tokens if CLAIM in token.meta and not token.meta.get("mark")]
    return _items_of([token for token in page.tokens if not is_word(token)], words)


def _items_of(tokens: Sequence[Token], claims: Sequence[Token] = ()) -> list[Placed]:
    found = _Collector()
    kind = "text"
    for place, token in enumerate(tokens):
        if token.map is not None:
            found.line = token.map[0] + 1
        if token.type == "heading_close":
            named = HEADING_ID.search(tokens[place - 1].content)
            found.put("id", named["id"] if named else "")
        if token.type != "inline":
            found.part()
        if token.type == "heading_open":
            kind = token.tag
        elif token.type == "heading_close":
            kind = "text"
        elif token.type == "inline":
            _inline(found, token, kind)
        elif token.type == "fence" and (name := fence_name(token)) in FENCES:
            _fence(found, name, token, claims)
        elif token.type in ("fence", "code_block"):
            found.line += token.type == "fence"
            found.say("code", token.content)
        # What stands between the tags of a block of HTML, nothing checks.
        found.flush()
    return found.items


def _fence(found: _Collector, name: str, token: Token, claims: Sequence[Token]) -> None:
    assert token.map is not None
    found.put(name, _stated(fence_options(token), token.content))
    if name == CLAIM:
        first, last = token.map
        inside = [one for one in claims if one.map is not None and first < one.map[0] < last]
        found.items += _items_of(inside)


def _stated(options: Mapping[str, str], source: str) -> str:
    stated = [f"{key}={value}" for key, value in sorted(options.items())]
    # Of YAML, what a line begins with decides too.
    lines = (line.expandtabs(_TAB).rstrip() for line in source.strip("\n").split("\n"))
    return " ".join([*stated, "\n".join(lines)])


def _inline(found: _Collector, token: Token, kind: str) -> None:
    children = token.children or []
    for place, child in enumerate(children):
        if child.type in ("softbreak", "hardbreak"):
            found.say(kind, "\n")
            # What began on another line counts its own.
            found.flush()
            found.line += 1
        elif child.type == "text":
            text = child.content
            if kind != "text" and place == len(children) - 1:
                text = HEADING_ID.sub("", text)
            found.say(kind, ATTRIBUTE_LIST.sub("", text))
        elif child.type == "code_inline" and child.content.startswith(VALUE):
            found.put("value", " ".join(child.content.removeprefix(VALUE).split()))
        elif child.type == "code_inline":
            found.say("code", child.content.replace("\n", " "))
        elif child.type == "link_open":
            found.link("link", str(child.attrGet("href") or ""))
        elif child.type == "image":
            found.link("image", str(child.attrGet("src") or ""))
            found.say(kind, child.content)
        elif child.type == "html_inline":
            tag = _Tag(child.content)
            if tag.name in _BLOCKS:
                found.part()
            for what, address in tag.addresses:
                found.link(what, address)
    found.flush()


class _Tag(HTMLParser):
    """One tag that stands in running text: its name, and where it leads."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.name = ""
        self.addresses: list[tuple[str, str]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.name = tag
        self.addresses += _addresses(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        self.name = tag


def _addresses(tag: str, attrs: Sequence[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    for name, value in attrs:
        if (tag, name) in (("a", "href"), ("img", "src")):
            yield "link" if tag == "a" else "image", value or ""


def _as_it_is(item: Item) -> Item:
    return item


def html_items(
    html: str, slots: Mapping[str, Slot], leading: Callable[[Item], Item] = _as_it_is
) -> list[Item]:
    """What readers see of the HTML that Markdown made of a page, in the order of the page.

    Parameters:
        html: The HTML.
        slots: What its slots stand for, by the value of their attribute.
        leading: What makes of a part of a claim one whose address is as those in `html` are.
    """
    reader = _Html(slots, leading)
    reader.feed(html)
    reader.close()
    reader.found.flush()
    return [item for item, _ in reader.found.items]


class _Html(HTMLParser):
    def __init__(self, slots: Mapping[str, Slot], leading: Callable[[Item], Item]) -> None:
        super().__init__(convert_charrefs=True)
        self.found = _Collector()
        self._leading = leading
        self._slots = slots
        self._open: list[str] = []
        # Of each set of tabs that is open, the labels that stand above all tabs and belong to one each.
        self._labels: list[list[list[Placed]]] = []
        self._outside: list[list[Placed]] = []
        self._sets: list[int] = []
        self._id = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = values.get("class", "").split()
        if tag in _BLOCKS or tag == "label":
            self.found.part()
        if tag not in _VOID:
            self._open.append(tag)
        if _HEADING.match(tag):
            self._id = values.get("id", "")
        if (slot := self._slots.get(values.get(SLOT, ""))) is not None:
            self._slot(*slot)
        if "headerlink" in classes and values.get("href", "").startswith("#"):
            return
        for kind, address in _addresses(tag, attrs):
            self.found.link(kind, address)
        for name, value in values.items():
            if name == "title":
                self.found.put("title", value)
            elif name == "alt":
                self.found.say(self._kind(), value)
        if "tabbed-set" in classes:
            self._sets.append(len(self._open))
            self._labels.append([])
        elif tag == "label" and self._labels:
            self._outside.append(self.found.items)
            self.found.items = []
        elif "tabbed-block" in classes and self._labels and self._labels[-1]:
            self.found.items += self._labels[-1].pop(0)

    def handle_endtag(self, tag: str) -> None:
        if _HEADING.match(tag):
            self.found.put("id", self._id)
        if tag in _BLOCKS or tag == "label":
            self.found.part()
        if tag in self._open:
            while self._open.pop() != tag:
                pass
        if tag == "label" and self._outside:
            self._labels[-1].append(self.found.items)
            self.found.items = self._outside.pop()
        if self._sets and len(self._open) < self._sets[-1]:
            self._sets.pop()
            self.found.items += [item for label in self._labels.pop() for item in label]

    def handle_data(self, data: str) -> None:
        self.found.say(self._kind(), data)

    def _kind(self) -> str:
        for tag in reversed(self._open):
            if tag in ("code", "pre"):
                return "code"
            if _HEADING.match(tag):
                return tag
        return "text"

    def _slot(self, name: str, options: Mapping[str, str], source: str) -> None:
        if name not in FENCES:
            self.found.put(name, " ".join(source.split()))
            return
        self.found.put(name, _stated(options, source))
        if name == CLAIM:
            for part in claim_parts(source):
                self.found.items += [(self._leading(item), 1) for item in _claim_items(part)]


@lru_cache(maxsize=4096)
def _claim_items(text: str) -> tuple[Item, ...]:
    html, slots = _conversion(_claim_markdown(), text)
    return tuple(html_items(html, slots))


# What is counted first is read later, once all pages are counted: a reading of each of them is kept.
@lru_cache(maxsize=4096)
def site_reading(text: str) -> tuple[str, Mapping[str, Slot]]:
    """The HTML that the site makes of a page, with slots for our own blocks, and what these stand for.

    Parameters:
        text: Of its file.
    """
    # Takes the front matter as MkDocs does.
    from mkdocs.utils.meta import get_data

    return _conversion(_page_markdown(), get_data(text)[0])


def made_size(text: str) -> int:
    """How many characters a page takes, as it is written or as HTML without our own blocks: what is more.

    Parameters:
        text: Of its file. One that the parser gives up is as long as it is.
    """
    try:
        return max(len(text), len(site_reading(text)[0]))
    except RecursionError:
        return len(text)


Reading = Callable[..., str]
# What the slots of the page that is being read stand for.
_slots: dict[str, Slot] = {}


def _conversion(markdown: Markdown, text: str) -> tuple[str, Mapping[str, Slot]]:
    outer = dict(_slots)
    _slots.clear()
    try:
        return markdown.reset().convert(text), dict(_slots)
    finally:
        _slots.clear()
        _slots.update(outer)


def _slot(element: str, name: str, options: Mapping[str, str], source: str) -> str:
    number = str(len(_slots))
    _slots[number] = (name, dict(options), source)
    return f'<{element} {SLOT}="{number}"></{element}>'


def _fence_format(name: str) -> Reading:
    def made(source: str, language: str, css_class: str, options: dict[str, Any], md: Any, **_: Any) -> str:
        return _slot("div", name, options, source)

    return made


def _value_format(source: str, language: str, css_class: str, md: Any) -> str:
    return _slot("span", "value", {}, source)


_INLINE = {"custom_inline": [{"name": "value", "class": "value", "format": _value_format}]}


@cache
def _page_markdown() -> Markdown:
    from markdown import Markdown

    fences = [
        {"name": name, "class": name, "format": _fence_format(name), "validator": accept_options}
        for name in FENCES
    ]
    settings = {name: dict(options) for name, options in EXTENSIONS.items()}
    settings["pymdownx.superfences"]["custom_fences"] = fences
    settings["pymdownx.inlinehilite"] |= _INLINE
    return Markdown(extensions=list(settings), extension_configs=settings)


@cache
def _claim_markdown() -> Markdown:
    from markdown import Markdown

    inline = "pymdownx.inlinehilite"
    return Markdown(extensions=[inline], extension_configs={inline: _INLINE})
