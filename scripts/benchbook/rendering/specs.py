"""Read the YAML of a `table` or `chart` fence: known keys, known names, and the quantities it asks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, product
from typing import Any

from benchbook.content.fence_names import ERROR_FIELD, FENCES
from benchbook.content.metadata import MOST_POINTS
from benchbook.content.parameters import axis_text
from benchbook.content.problems import did_you_mean
from benchbook.content.references import (
    OverfullError,
    Reference,
    Show,
    Target,
    UnresolvedError,
    Which,
    check_unit,
    matching_variants,
    parse_reference,
    unit_of,
)
from benchbook.content.script import Script, Variant
from benchbook.content.units import Unit
from benchbook.content.yaml_text import InvalidYamlError, parse_yaml
from benchbook.query.library import Library, Machine
from benchbook.query.measurements import Figure, Measurement, check_predictable, figure, measure

# What `rows:` names in place of an axis: a row per cell, or a row per metric of one variant.
CELLS = "cells"
METRICS = "metrics"
# What the fences of one page show at most, twice the page with most: each is drawn for every machine.
MOST_CELLS = 6000
# What all pages of a language have and show together at most, six times what they do here or more: whatever
# they ask for, building them ends.
MOST_CHARACTERS_IN_ALL = 4_000_000
# Of these, each is made for every machine.
MOST_PLACES_IN_ALL = 50_000
MOST_CELLS_IN_ALL = 300_000
# On each machine, a picture takes a tenth of a second or two; here are a dozen.
MOST_PICTURES = 1000
COUNTED = ("table", "chart", "tradeoff", "trace")


@dataclass
class HandbookCount:
    """What the pages of one language have asked for so far.

    Parameters:
        machines: How many machines they may show.
        size: How many characters they have, written or as HTML, and show of scripts.
        places: How many fences of ours, inline values, and words and marks of rows.
        cells: How many cells of tables, names of rows among them, and points of pictures.
        pictures: What is drawn of them, by the key of a fence and the machine.
    """

    machines: int = 1
    size: int = 0
    places: int = 0
    cells: int = 0
    pictures: set[tuple[str, str]] = field(default_factory=set)

    @property
    def is_full(self) -> bool:
        """Whether they asked for more than a build has time for, which was said where they did."""
        return any(found > most for found, most, *_ in self._ends())

    def _ends(self) -> Iterator[tuple[int, int, str, str]]:
        """How much there is of each, how much there may be, what to say of it, and the fix."""
        less, places, cells = "leave some out", self.places * self.machines, self.cells * self.machines
        instead = "show fewer, pin some by `machine:`, or make tables of them"
        each = "counted for each machine"
        yield self.size, MOST_CHARACTERS_IN_ALL, "have, and show of scripts, {} characters", less
        yield places, MOST_PLACES_IN_ALL, f"have {{}} fences, values, notes, links and marks, {each}", less
        yield cells, MOST_CELLS_IN_ALL, f"show {{}} cells and points, {each}", less
        yield len(self.pictures), MOST_PICTURES, f"draw {{}} pictures, {each}", instead

    def add(
        self, size: int = 0, places: int = 0, cells: int = 0, pictures: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Count those of one more page or fence.

        Raises:
            OverfullError: With them there would be more of something than a build has time for.
        """
        self.size += size
        self.places += places
        self.cells += cells
        self.pictures.update(pictures)
        for found, most, what, fix in self._ends():
            if found > most:
                said = f"with this the pages of a language {what.format(found)}, and {most} are the most"
                raise OverfullError(said, fix)


@dataclass
class PageCount:
    """What the fences of a page have asked for so far.

    Parameters:
        handbook: The same of all pages of its language, up to this one.
        cells: How many cells of tables, and points of pictures.
        named: What they name, by the kind of the fence.
    """

    handbook: HandbookCount = field(default_factory=HandbookCount)
    cells: int = 0
    named: set[tuple[str, str]] = field(default_factory=set)

    @property
    def is_full(self) -> bool:
        """Whether they asked for more than a page shows, which was said where they did."""
        return self.cells > MOST_CELLS

    def name(self, kind: str, text: str) -> None:
        """Note what one more fence names, where it names what is drawn.

        Raises:
            UnresolvedError: Another one of the page is this one again.
        """
        if FENCES.get(kind) != "reference":
            return
        # Words of a field are its own, and it has one place on a page.
        named = kind, "" if kind == ERROR_FIELD else text.strip()
        if named in self.named:
            raise UnresolvedError(f"the page has this `{kind}` twice", "keep one, and link to it")
        self.named.add(named)

    def draw(self, key: str, machines: Iterable[Machine]) -> None:
        """Count the pictures of one more fence, one for each machine that it was recorded on.

        Raises:
            OverfullError: With them there would be too many.
        """
        self.handbook.add(pictures=[(key, machine.name) for machine in machines])

    def add(self, cells: int) -> None:
        """Count those of one more fence.

        Raises:
            OverfullError: With them the page would show more than `MOST_CELLS`, or all pages too many.
        """
        self.cells += cells
        if self.is_full:
            what = f"with this the page shows {self.cells} cells of tables and points of pictures"
            raise OverfullError(
                f"{what}, and {MOST_CELLS} are the most", "show fewer, by `where:`, or make several pages"
            )
        self.handbook.add(cells=cells)


@dataclass(frozen=True)
class ShownQuantity:
    """What a column or an axis shows.

    Parameters:
        name: The metric, or the cell whose meter it is.
        meter: What was read around the cell, if that is meant.
        index: The item of a series, if one is meant.
        unit: The unit it is recorded in.
        shown: The unit to show it in; None for a sensible one.
        device_memory: Whether it counts bytes of the device's memory.
        bar: Whether to draw a bar beside the number.
        ratio: Whether to show how it compares with the first row.
        show: What was measured, what was predicted, or how far these two differ.
        which: The first prediction, or the one made once that had been put to the test.
    """

    name: str
    meter: str | None
    index: int | None
    unit: Unit
    shown: Unit | None = None
    device_memory: bool = False
    bar: bool = False
    ratio: bool = False
    show: Show = "measured"
    which: Which = "first"

    @property
    def label_key(self) -> str:
        """By what name a language labels it."""
        return self.meter or self.name

    def reference(self, script: Script, variant: Variant) -> Reference:
        """How a page would refer to it in one variant."""
        axes = tuple((axis, axis_text(value)) for axis, value in variant.axes.items())
        return Reference(script.reference, axes, self.name, self.meter, self.index)

    def target(self, script: Script, variant: Variant) -> Target:
        """What it stands for in one variant."""
        return Target(self.reference(script, variant), script, variant, self.unit, self.device_memory)

    def measure(
        self, library: Library, script: Script, variant: Variant, machine: Machine
    ) -> Measurement | None:
        """What it amounted to in one variant on `machine`; None if that was never recorded."""
        return measure(library, self.target(script, variant), machine)

    def figure(self, library: Library, script: Script, variant: Variant, machine: Machine) -> Figure | None:
        """What a page shows of it in one variant on `machine`; None if there is nothing of it."""
        return figure(library, self.target(script, variant), machine, self.show, self.which)


def read_spec(text: str, known: Sequence[str], needed: Sequence[str], what: str) -> dict[str, Any]:
    """The mapping that the body of a fence is.

    Raises:
        UnresolvedError: It is none, has a key it may not have, or lacks one it must.
    """
    spec = _parsed(text.strip("\n"), what)
    if not isinstance(spec, dict):
        raise UnresolvedError(
            f"the {what} is not a mapping", f"give it {', '.join(f'`{key}:`' for key in needed)}"
        )
    for key in spec:
        if key not in known:
            raise UnresolvedError(f"a {what} has no key `{key}`", did_you_mean(str(key), known, "key"))
    for key in needed:
        if spec.get(key) in (None, "", []):
            raise UnresolvedError(f"the {what} has no `{key}:`", "add it")
    for key, value in spec.items():
        _check_named_once(value, f"`{key}:`")
    for key in ("caption", "title"):
        if spec.get(key) is not None:
            text_of(spec[key], f"`{key}:`")
    return spec


def _check_named_once(value: Any, where: str) -> None:
    """Raise UnresolvedError if a list in `value` has an item twice, which would be drawn for each."""
    if isinstance(value, dict):
        for key, item in value.items():
            _check_named_once(item, f"`{key}` of {where}")
    elif isinstance(value, list):
        names = [str(item) for item in value]
        for name, following in pairwise(sorted(names)):
            if name == following:
                raise UnresolvedError(f"{where} names `{name}` twice", "name it once")


def text_of(words: Any, where: str) -> str:
    """Words of a page in a fence, which YAML may read as a list, a number or a date.

    Raises:
        UnresolvedError: It did, or there are none.
    """
    if not isinstance(words, str):
        raise UnresolvedError(f"{where} is not text", "write words behind it, in quotes")
    return words


@cache
def _parsed(text: str, what: str) -> Any:
    """The YAML of a fence, parsed once: a page has the same one in every language."""
    try:
        return parse_yaml(text)
    except InvalidYamlError as error:
        raise UnresolvedError(f"the {what} {error.what} in its line {error.line}", error.fix) from None


def variants_of(spec: Mapping[str, Any], script: Script) -> tuple[Variant, ...]:
    """The variants that `where:` leaves of `script`, in the declared order; an axis has one value or a list.

    Raises:
        UnresolvedError: `where:` names an axis or a value that is not there.
    """
    where = spec.get("where") or {}
    if not isinstance(where, dict):
        raise UnresolvedError("`where:` is not a mapping", "write `where: {axis: value}`")
    choices = [
        [(str(axis), axis_text(value)) for value in (values if isinstance(values, list) else [values])]
        for axis, values in where.items()
    ]
    if math.prod(map(len, choices)) > MOST_POINTS:
        what = f"`where:` names more than {MOST_POINTS} combinations of values"
        raise UnresolvedError(what, "name each value once, and leave away the axes that it does not narrow")
    kept = {variant.name for point in product(*choices) for variant in matching_variants(script, point)}
    if not kept:
        raise UnresolvedError("`where:` has an empty list", "name the values to show, or leave the axis away")
    return tuple(variant for variant in script.variants(()) if variant.name in kept)


def quantity_of(item: Any, script: Script, options: Sequence[str] = ()) -> ShownQuantity:
    """The quantity that a column or axis of a block names.

    Parameters:
        item: "metric", "metric[3]", "cell.meter", or a mapping with `metric:` and options.
        script: Whose metric it is.
        options: The keys it may have besides `metric` and `unit`.

    Raises:
        UnresolvedError: It names nothing the script yields, has an unknown option, or asks to predict a time.
    """
    table = item if isinstance(item, dict) else {"metric": item}
    for key in table:
        if key not in ("metric", "unit", *options):
            raise UnresolvedError(
                f"a column has no key `{key}`", did_you_mean(str(key), ("metric", "unit", *options), "key")
            )
    if not table.get("metric"):
        raise UnresolvedError("a column names no metric", "write `metric: name`")
    reference = parse_reference(f"{script.reference}#{table['metric']}")
    unit, device_memory = unit_of(script, reference.name, reference.meter)
    shown = check_unit(unit, table.get("unit"))
    bar, ratio = (name in options and bool(table.get(name)) for name in ("bar", "ratio"))
    show, which = _show_of(table)
    quantity = ShownQuantity(
        reference.name, reference.meter, reference.index, unit, shown, device_memory, bar, ratio, show, which
    )
    check_predictable(quantity.target(script, script.variants(())[0]), show)
    return quantity


def _show_of(table: Mapping[str, Any]) -> tuple[Show, Which]:
    """What a column shows of its metric, and of which prediction."""
    for key in ("predicted", "error"):
        if table.get(key, False) not in (True, False, "anew"):
            what = f"`{key}:` of `{table['metric']}` is {table[key]!r}"
            raise UnresolvedError(what, f"write `{key}: true`, or `{key}: anew`")
    if table.get("predicted") and table.get("error"):
        fix = "make them two columns"
        raise UnresolvedError(f"a column of `{table['metric']}` is both `predicted:` and `error:`", fix)
    which: Which = "anew" if "anew" in (table.get("predicted"), table.get("error")) else "first"
    if not table.get("error"):
        return ("predicted" if table.get("predicted") else "measured"), which
    for key in ("unit", "bar", "ratio"):
        if table.get(key):
            what = f"the error of `{table['metric']}` has a `{key}:`"
            raise UnresolvedError(what, "leave it away: an error is a percentage with its sign")
    return "error", which
