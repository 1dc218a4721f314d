"""Regions: lines of a cell that a page shows alone, and the mark that tells whether they ran.

    if mode == "all":
        # region checkpointing
        model.activation_checkpointing_enable()
        # endregion

A page shows them without their indentation. While a script is recorded, a region that was reached is noted in
the record, so that no page shows lines as those of a run that went another way.
"""

from __future__ import annotations

import ast
import re
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from benchbook.content.code_lines import code_lines

REGION = re.compile(r"^(?P<indent>[ \t]*)# region(?:[ \t]+(?P<name>.*?))?[ \t]*$")
END = re.compile(r"^(?P<indent>[ \t]*)# endregion[ \t]*$")
# Many times what any cell has; each is looked for in all of it.
MOST = 100
# What a script's namespace calls the note-taker by; a name that no script has.
NOTE = "__benchbook_reached__"


@dataclass(frozen=True)
class Region:
    """Lines of a cell that a page can show alone.

    Parameters:
        name: What follows `# region`.
        first: The line of `# region` within its cell, counted from 1.
        last: That of `# endregion`.
        source: What stands between them, without the indentation that all lines have.
    """

    name: str
    first: int
    last: int
    source: str


def region_lines(source: str) -> list[str]:
    """What the lines of a region say, whatever way they are laid out and whatever is said beside them."""
    try:
        return code_lines(source)
    except (tokenize.TokenError, SyntaxError):
        # It ends amid a statement, or further out than it began.
        return [line.strip() for line in source.splitlines()]


class UnevenRegionError(ValueError):
    """A region that does not begin, or end, as it must.

    Attributes:
        line: Within the cell, counted from 1.
        fix: What to do about it.
    """

    def __init__(self, line: int, what: str, fix: str) -> None:
        super().__init__(what)
        self.line = line
        self.fix = fix


def regions_of(source: str) -> tuple[Region, ...]:
    """The regions of a cell, in order.

    Raises:
        UnevenError: One is not closed, stands within another, or holds nothing.
    """
    found: list[Region] = []
    tree: ast.Module | None = None
    opened: tuple[int, re.Match[str]] | None = None
    lines = source.split("\n")
    for number, line in enumerate(lines, start=1):
        if begin := REGION.match(line):
            if opened is not None:
                what = f"the region `{begin['name']}` begins within `{opened[1]['name']}`"
                raise UnevenRegionError(number, what, "end the one before the other begins")
            opened = number, begin
        elif end := END.match(line):
            if opened is None:
                raise UnevenRegionError(
                    number, "a region ends that never began", "begin it with `# region name`"
                )
            first, begin = opened
            name = begin["name"] or ""
            if end["indent"] != begin["indent"]:
                what = f"the region `{name}` ends at another indentation than it began"
                raise UnevenRegionError(number, what, "indent both marks alike")
            text = textwrap.dedent("\n".join(lines[first : number - 1])).strip("\n")
            if len(found) == MOST:
                raise UnevenRegionError(first, f"it has more than {MOST} regions", "show fewer parts of it")
            tree = tree or ast.parse(source)
            if _place(tree, first, number) is None:
                what = f"the region `{name}` holds no statement"
                raise UnevenRegionError(first, what, "put whole statements between its marks")
            found.append(Region(name, first, number, text))
            opened = None
    if opened is not None:
        fix = "end it with `# endregion`"
        raise UnevenRegionError(opened[0], f"the region `{opened[1]['name']}` does not end", fix)
    return tuple(found)


def with_notes(source: str, tree: ast.Module, shift: int = 0) -> ast.Module:
    """`tree` with a call of `NOTE` as the first statement of each region of `source`, which it was made of.

    Parameters:
        source: A cell whose regions are in order.
        tree: Its syntax tree; changed.
        shift: How far its lines are behind those of the source.
    """
    for region in regions_of(source):
        found = _place(tree, region.first + shift, region.last + shift)
        assert found is not None, "a region holds a statement"
        body, place = found
        note = ast.parse(f"{NOTE}({region.name!r})").body[0]
        for node in ast.walk(note):
            ast.copy_location(node, body[place])
        body.insert(place, note)
    return tree


def _place(tree: ast.AST, first: int, last: int) -> tuple[list[ast.stmt], int] | None:
    """The list of statements, and the place in it, of the first statement between two lines."""
    for body in _bodies(tree):
        for place, statement in enumerate(body):
            line = min([statement.lineno, *(one.lineno for one in getattr(statement, "decorator_list", ()))])
            if first < line and (statement.end_lineno or line) < last:
                return body, place
    return None


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements in `node`, the outer ones first."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body
    for child in ast.iter_child_nodes(node):
        yield from _bodies(child)
