"""Check that what a page links to is there: pages, their sections, and files beside them."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from benchbook.content.claims import claim_anchor
from benchbook.content.page_source import CODE_SPAN, ROW, PageSource, claim_sentences, fence_name
from benchbook.content.problems import Problem, did_you_mean
from benchbook.content.site_files import ASSETS, LANGUAGE_FILE
from benchbook.rendering.calculator_form import FORM, GUIDE_LINKS

# A full address, or one of another host: not ours to follow.
_SCHEME = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
# An address within the site that holds the begin of an entity.
_ENTITY = re.compile(r"\]\(\s*<?(?!//)(?P<address>[^\s:)>&]*&[^\s)>]*)")
# What needs no resolving; with another scheme it is refused elsewhere.
_LEFT = re.compile(r"#.|[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_IMAGE = "image"
_BREAKS = ("softbreak", "hardbreak")

# The ids of the headings and claims of each page, which has one name in every language.
Anchors = Mapping[str, frozenset[str]]


def anchors(pages: Mapping[str, PageSource]) -> Anchors:
    """What a link can point at, by the name of the page."""
    return {
        name: frozenset(heading.id for heading in page.headings() if heading.id is not None) | _claims(page)
        for name, page in pages.items()
    }


def _claims(page: PageSource) -> frozenset[str]:
    return frozenset(claim_anchor(claim) for _, claim, *_ in claim_sentences(page))


def link_problems(page: PageSource, name: str, folder: Path, path: str, known: Anchors) -> Iterator[Problem]:
    """What the links and images of a page point at and is not there.

    Parameters:
        page: The page.
        name: Its name within its language, such as `index.md`.
        folder: That language's folder.
        path: The page's path, for messages.
        known: The pages there are, which every language shows, and their sections.
    """
    yield from _raw_problems(page, path)
    yield from _entity_problems(page, path)
    for line, address, kind in _links(page):
        of_row = kind == ROW
        target, mark, anchor = address.partition("#")
        if kind == _IMAGE and (not target or target.startswith("/") or target.endswith(".md")):
            fix = f"write the path of its file from the page's folder, such as `../{ASSETS}/name.svg`"
            yield Problem(path, line, f"the picture `{address}` is no file of the site", fix)
            continue
        if of_row and _SCHEME.match(target):
            yield Problem(path, line, f"`{address}` is no page that a row leads to", "name a page of ours")
            continue
        if not address or (target.startswith("/") and not of_row):
            what = f"the link to `{address}` leads to no page, section or file of the site"
            yield Problem(path, line, what, "name one from the page's folder, or write the full address")
            continue
        if mark and not anchor:
            fix = "name a section behind `#`, or leave the `#` away"
            yield Problem(path, line, f"`{address}` leads to a section without a name", fix)
            continue
        target = _row_target(target, name) if of_row else _target(unquote(target), name)
        if target not in known:
            if target.endswith(".md"):
                fix = did_you_mean(target, known, "page")
                yield Problem(path, line, f"there is no page `{target}` to link to", fix)
            # Outside docs/ nothing is published, nor is a file of interface texts. Path.is_file raises where
            # a name is longer than any file's.
            elif (
                target.startswith("../../")
                or posixpath.basename(target) == LANGUAGE_FILE
                or not os.path.isfile(folder / target)
            ):
                yield Problem(
                    path, line, f"there is no file `{target}` to link to", "add it, or name another"
                )
        elif anchor and anchor not in known[target]:
            fix = did_you_mean(anchor, known[target], "heading id")
            yield Problem(path, line, f"`{target}` has no section `#{anchor}` to link to", fix)


def calculator_link_problems(page: PageSource, path: str, known: Anchors) -> Iterator[Problem]:
    """What the calculator's form links to and is not there; `path` and `known` as in `link_problems`."""
    change = "or change GUIDE_LINKS in scripts/benchbook/rendering/calculator_form.py"
    for token in page.tokens:
        if fence_name(token) != "calculator" or token.content.strip() != FORM:
            continue
        assert token.map is not None
        line = token.map[0] + 1
        links = [link.partition("#") for link in dict.fromkeys(GUIDE_LINKS.values())]
        for target in dict.fromkeys(target for target, _, _ in links if target not in known):
            what = f"the calculator links to the page `{target}`, which is not there"
            yield Problem(path, line, what, f"restore the page, {change}")
        for target, _, anchor in links:
            if target in known and anchor not in known[target]:
                what = f"the calculator links to the section `#{anchor}` of `{target}`, which is not there"
                yield Problem(path, line, what, f"restore the heading id, {change}")


def _entity_problems(page: PageSource, path: str) -> Iterator[Problem]:
    """Addresses of the site that are written with entities: the build resolves none of them."""
    for token in page.inlines():
        assert token.map is not None
        said = CODE_SPAN.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), token.content)
        for found in _ENTITY.finditer(said):
            line = token.map[0] + 1 + said.count("\n", 0, found.start())
            what = f"`{found['address']}` holds `&`, which the build takes for itself"
            yield Problem(path, line, what, "write the address as it is")


def _target(address: str, name: str) -> str:
    """What an address on the page `name` leads to, from the folder of its language."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), address)) if address else name


def _row_target(address: str, name: str) -> str:
    """The same for the link of a row, as the build resolves it: a slash leads from that folder."""
    return posixpath.normpath(address.lstrip("/")) if address.startswith("/") else _target(address, name)


def _links(page: PageSource) -> Iterator[tuple[int, str, str]]:
    """Line, address and kind of every link and image that stays within the site: "link", "image" or of a row.

    A row leads to pages of the site alone, an image to a file of it.
    """
    for token in page.inlines():
        assert token.map is not None
        line = token.map[0] + 1
        for child in token.children or ():
            if child.type in _BREAKS:
                line += 1
            if child.type == "image":
                address = str(child.attrGet("src") or "")
                if not _SCHEME.match(address):
                    yield line, address, _IMAGE
            elif child.type == "link_open":
                address = str(child.attrGet("href") or "")
                of_row = ROW in token.meta
                if of_row or not _SCHEME.match(address):
                    yield line, address, ROW if of_row else "link"


def _raw_problems(page: PageSource, path: str) -> Iterator[Problem]:
    """Links and pictures in HTML that lead within the site: the build resolves those of Markdown alone."""
    for token in page.tokens:
        line = token.map[0] + 1 if token.map else 1
        parts = [token] if token.type == "html_block" else token.children or ()
        for part in parts:
            if part.type in ("html_block", "html_inline"):
                for below, tag, address in _Addresses(part.content).found:
                    mark = "!" if tag == "img" else ""
                    what = f"`<{tag}>` leads to `{address}`, and the build resolves no address in HTML"
                    yield Problem(path, line + below, what, f"write `{mark}[words]({address})`")
            line += part.content.count("\n") if part.type == "html_inline" else part.type in _BREAKS


class _Addresses(HTMLParser):
    """Where the tags in a piece of HTML lead within the site: line from 0, tag and address."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[tuple[int, str, str]] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in (("a", "href"), ("img", "src")) and not _LEFT.match(value or ""):
                self.found.append((self.getpos()[0] - 1, tag, value or ""))
