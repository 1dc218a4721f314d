"""The files beside the pages: what the site hands out as it is, and what would run in a reader's browser."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.parsers import expat

from benchbook.content.formats import DEVICE_NAME
from benchbook.content.problems import Problem
from benchbook.content.project import Project

# Where pages, scripts, records and the settings lie.
SOURCES = ("docs", "mkdocs.yml", "pyproject.toml", "snippets")
ASSETS = "assets"
LANGUAGE_FILE = "_language.yml"
# Styles, scripts and pictures of the site; a picture of vectors is a document, and may hold scripts.
SUFFIXES = frozenset({".css", ".js", ".png", ".svg", ".webp", ".woff2"})
# The styles and scripts that mkdocs.yml, the templates and each other load: no other has a reader.
_STYLES = "blocks.css calculator.css site.css"
_SCRIPTS = (
    "blocks.js calculator.js choice.js dimensions.js errors.js gpu_field.js gpus.js keeping.js "
    "memory_model.js picture.js search.js site.js"
)
LOADED = frozenset(f"{_STYLES} {_SCRIPTS}".split())
# Where the theme and the build put files of their own, whose place one of ours at the same path would take.
OTHERS_FOLDERS = frozenset({"coefficients", "data", "images", "javascripts", "stylesheets"})
# The same below the site itself, where a page of that name would have its folder, as one of a language would.
SITE_FOLDERS = frozenset({ASSETS, "downloads", "pagefind", "schemas"})
# A name becomes an address, and stands in links; the same on systems that do not tell `A` from `a`.
_PAGE = re.compile(r"[a-z0-9_]+\.md")
_ASSET = re.compile(r"[a-z0-9_][a-z0-9_.-]*")
# The codes that mkdocs-static-i18n takes for a language, and for the name of its folder.
LANGUAGE_CODE = re.compile(r"[a-z]{2}(-[A-Z][a-z]{3})?(-[A-Z]{2})?")
# So much of the words in a picture is told.
_SHOWN = 40
# Four times what any name here has, and four folders more than lie in each other.
LONGEST_NAME, DEEPEST = 120, 8
# Endings by which files are found and read.
_READ = frozenset({".json", ".md", ".py", ".toml", ".txt", ".yml"})
# What a picture of vectors is drawn with; text in it would be words that no check reads, but for its name.
_SVG = "http://www.w3.org/2000/svg"
_WORDED = frozenset({"desc", "title"})
_SHAPES = "circle ellipse line path polygon polyline rect"
_ELEMENTS = frozenset(f"{_SHAPES} desc g svg title".split())
_PLACES = "cx cy d height points r rx ry transform viewBox width x x1 x2 y y1 y2"
_PAINT = "clip-rule fill fill-opacity fill-rule opacity stroke stroke-dasharray stroke-dashoffset"
_LINES = "stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width"
_ATTRIBUTES = frozenset(f"{_PLACES} {_PAINT} {_LINES} aria-hidden aria-label id role version".split())
# Words, numbers and colours; of what has brackets, what loads nothing.
_VALUE = re.compile(
    r"(?:[\w\s#%+,.-]|(?:hsl|matrix|rgb|rotate|scale|skewX|skewY|translate)\([\s\d%+,.e-]*\))*"
)


def unreadable_tree(project: Project) -> Iterator[Problem]:
    """What nothing may look through: folders without end, names that no file can have, other encodings."""
    waiting = [*(project.root / name for name in SOURCES), *project.root.glob("constraints*.txt")]
    while waiting:
        path = waiting.pop()
        shown = path.relative_to(project.root).as_posix()
        if len(path.name) > LONGEST_NAME:
            what = f"has a name of {len(path.name)} characters, and {LONGEST_NAME} are the most"
            yield Problem(shown, 1, what, "give it a shorter one")
        elif path.is_symlink():
            pass  # told with the tree
        elif path.is_dir() and shown.count("/") >= DEEPEST:
            what = f"is a folder in {DEEPEST} others, and nothing lies as deep"
            yield Problem(shown, 1, what, "put what it holds further up")
        elif path.is_dir():
            waiting += path.iterdir()
        elif path.is_file() and path.suffix in _READ:
            try:
                path.read_text("utf-8")
            except UnicodeDecodeError as error:
                yield Problem(shown, 1, f"is not UTF-8 ({error.reason})", "save it as UTF-8")


def tree_problems(project: Project, names: Iterable[str] = SOURCES) -> Iterator[Problem]:
    """What neither checks nor the site may read where pages, scripts and records lie: links, pipes, devices.

    MkDocs publishes what a link leads to, wherever that is; a pipe keeps its reader waiting. On Windows some
    names are those of devices.
    """
    for name in names:
        top = project.root / name
        for path in (top, *(() if top.is_symlink() else sorted(top.rglob("*")))):
            shown = path.relative_to(project.root).as_posix()
            if path.is_symlink():
                yield Problem(shown, 1, "is a link to another place", "put what it leads to in its place")
            elif re.match(DEVICE_NAME, path.name, re.IGNORECASE):
                what = "has a name that Windows keeps for a device, so that nobody there can check it out"
                yield Problem(shown, 1, what, "give it another name")
            elif path.is_dir() and path.suffix in _READ:
                what = f"is a folder with the name of a file ({path.suffix})"
                yield Problem(shown, 1, what, "give it another name, or put a file in its place")
            elif path.exists() and not path.is_dir() and not path.is_file():
                yield Problem(shown, 1, "is neither a file nor a folder", "put a file in its place")


def site_file_problems(project: Project) -> Iterator[Problem]:
    """Files below docs/ that are neither pages, nor words of a language, nor what the site is drawn with."""
    yield from tree_problems(project)
    for path in sorted(project.docs.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        folder, _, rest = path.relative_to(project.docs).as_posix().partition("/")
        shown = path.relative_to(project.root).as_posix()
        if folder == ASSETS and rest:
            yield from _asset_problems(path, rest, shown)
        elif folder not in project.languages or not (path.suffix == ".md" or rest == LANGUAGE_FILE):
            fix = f"put pages into docs/<language>/ as .md, and pictures into docs/{ASSETS}/"
            yield Problem(shown, 1, "is neither a page of a language nor a file of the site", fix)
        elif rest == LANGUAGE_FILE and not LANGUAGE_CODE.fullmatch(folder):
            what = "lies in a folder that no code of a language names"
            yield Problem(shown, 1, what, "name it by its code, such as `fr` or `pt-BR`")
        elif rest != LANGUAGE_FILE:
            yield from _page_name_problems(project, folder, rest, shown)


def _page_name_problems(project: Project, language: str, name: str, shown: str) -> Iterator[Problem]:
    if "/" in name:
        yield Problem(shown, 1, "is a page in a folder of its own", f"put it into docs/{language}/ itself")
    elif not _PAGE.fullmatch(name):
        fix = "name it in lower-case letters, digits and underscores, ending in .md"
        yield Problem(shown, 1, "has a name that is no address of a page", fix)
    elif name.removesuffix(".md") in {*SITE_FOLDERS, *project.languages}:
        what = "has the name of a folder that the site has for something else, whose place it would take"
        yield Problem(shown, 1, what, "give it another name")


def _asset_problems(path: Path, name: str, shown: str) -> Iterator[Problem]:
    if not all(map(_ASSET.fullmatch, name.split("/"))):
        what = "has a name, or lies in a folder with one, that is no address of a file"
        yield Problem(shown, 1, what, "name it in lower-case letters, digits, `_`, `-` and `.`")
    elif (folder := name.partition("/")[0]) in OTHERS_FOLDERS:
        what = f"lies where the theme or the build puts files of its own ({ASSETS}/{folder}/)"
        yield Problem(shown, 1, what, "put it into another folder")
    elif path.suffix in (".css", ".js") and name not in LOADED:
        fix = "remove it; a new one is loaded by a template, and named in `LOADED` of content/site_files.py"
        yield Problem(shown, 1, "is a style or a script that no page loads", fix)
    elif path.suffix not in SUFFIXES:
        what = f"is of a kind that the site has none of ({path.suffix or 'no ending'})"
        yield Problem(shown, 1, what, f"use one of {', '.join(sorted(SUFFIXES))}")
    elif path.suffix == ".svg" and (refused := _refused_in(path.read_bytes())) is not None:
        yield Problem(shown, *refused)
    elif path.suffix == ".css":
        # Who records looks at no style, and has no parser of them.
        from benchbook.content.style_sheets import worded_style

        try:
            worded = worded_style(path.read_text("utf-8"))
        except UnicodeDecodeError:
            worded = 1, "is not UTF-8", "save it as UTF-8"
        if worded is not None:
            yield Problem(shown, *worded)


class _RefusedError(Exception):
    """A part of a picture that no picture here has: its line and how it begins."""


def _refused_in(source: bytes) -> tuple[int, str, str] | None:
    """The first part of a picture of vectors that is no plain shape: its line, what it is, and the fix."""
    # Browsers and parsers guess at other encodings, each their own way.
    if source.startswith(BOM_UTF8):
        return 1, "begins with a byte order mark", "remove it"
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return 1, "is not UTF-8", "save it as UTF-8"
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")

    def refusing(held_in: Callable[..., str | None]) -> Callable[..., None]:
        def handle(*parts: Any) -> None:
            if (held := held_in(*parts)) is not None:
                raise _RefusedError(parser.CurrentLineNumber, held)

        return handle

    parser.XmlDeclHandler = refusing(_held_in_declaration)
    parser.StartDoctypeDeclHandler = refusing(lambda *_: "<!DOCTYPE")
    parser.ProcessingInstructionHandler = refusing(lambda target, _: f"<?{target}")
    open_elements: list[str] = []

    def begun(name: str, attributes: Mapping[str, str]) -> str | None:
        held = _held_in_element(name, attributes, is_root=not open_elements)
        open_elements.append(name.rpartition(" ")[2])
        return held

    def said(text: str) -> str | None:
        return text.strip()[:_SHOWN] or None if open_elements[-1] not in _WORDED else None

    parser.StartElementHandler = refusing(begun)
    parser.EndElementHandler = lambda _: open_elements.pop()
    parser.CharacterDataHandler = refusing(said)
    try:
        parser.Parse(text, True)
    except _RefusedError as error:
        line, held = error.args
        what = f"holds `{held}`, and opened alone a picture is a page that runs or shows it"
        return line, what, "draw with shapes and attributes alone"
    except expat.ExpatError as error:
        what = f"is not XML ({expat.ErrorString(error.code)})"
        return error.lineno, what, "export it again, as plain SVG"
    return None


def _held_in_declaration(version: str, encoding: str | None, standalone: int) -> str | None:
    return f'encoding="{encoding}"' if encoding is not None and encoding.lower() != "utf-8" else None


def _held_in_element(name: str, attributes: Mapping[str, str], is_root: bool) -> str | None:
    # A name has that of its namespace before it: by whatever prefix it was written, it ends the same.
    namespace, _, element = name.rpartition(" ")
    if namespace != _SVG or element not in _ELEMENTS or is_root != (element == "svg"):
        return f"<{element}"
    for full_name, value in attributes.items():
        attribute = full_name.rpartition(" ")[2]
        if attribute not in _ATTRIBUTES:
            return f"{attribute}="
        if not _VALUE.fullmatch(value):
            return f'{attribute}="{value}"'
    return None
