"""The `tradeoff` fence: the variants of a script by two of its metrics, and which nothing beats in both.

    title: Memory against speed
    script: perf_train_gpu_one/techniques.py
    points: technique
    x: peak_memory
    y: samples_per_second

The drawing holds digits alone, so that one serves every language: each point has a number, and the names
stand below, those on the Pareto front in bold. Which end of an axis is the better one, the metrics declare.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from benchbook.content.metadata import ParameterValue
from benchbook.content.problems import did_you_mean
from benchbook.content.references import UnresolvedError
from benchbook.content.script import Script, Variant
from benchbook.content.units import Unit, convert, shared_unit
from benchbook.languages.language import Language
from benchbook.query.library import Library, Machine
from benchbook.query.measurements import (
    Measurement,
    RecordedVariant,
    check_one_campaign,
    found_where_recorded,
)
from benchbook.rendering.charts import axis_name, picture
from benchbook.rendering.context import Build, Rendering
from benchbook.rendering.drawing import draw_points
from benchbook.rendering.labels import axis_label
from benchbook.rendering.provenance import render_details, repeats_text
from benchbook.rendering.specs import PageCount, ShownQuantity, quantity_of, read_spec, variants_of

KEYS = ("script", "points", "x", "y", "where", "title", "machine")
MOST_POINTS = 30


@dataclass(frozen=True)
class Tradeoff:
    """A trade-off as its fence asks for it; what it yields depends on the machine.

    Parameters:
        key: A name that is the same in every language.
        script: Whose variants.
        points: The axis that names the points.
        x: What lies on the horizontal axis.
        y: What lies on the vertical axis.
        variants: Those it shows, one a point.
        title: The page's own words above it.
        machine: The one it shows whatever a reader chooses; None to follow the choice.
    """

    key: str
    script: Script
    points: str
    x: ShownQuantity
    y: ShownQuantity
    variants: tuple[Variant, ...]
    title: str
    machine: Machine | None = None


@dataclass(frozen=True)
class Plotted:
    """A trade-off on one machine: a place for each point that was measured, None for any other."""

    places: tuple[tuple[float, float] | None, ...]
    front: frozenset[int]
    units: tuple[Unit, Unit]
    measured: tuple[Measurement, ...]

    @property
    def sources(self) -> list[RecordedVariant]:
        """The recorded variants behind it, each once."""
        return list({one.source.variant.name: one.source for one in self.measured}.values())


def read_tradeoff(text: str, library: Library) -> Tradeoff:
    """The trade-off that the body of a fence asks for.

    Raises:
        UnresolvedError: It asks for something that is not there, or its metrics have no better end.
    """
    spec = read_spec(text, KEYS, ("script", "points", "x", "y", "title"), "tradeoff")
    script = library.script(str(spec["script"]))
    variants = variants_of(spec, script)
    points = str(spec["points"])
    known = sorted({axis for variant in script.variants(()) for axis in variant.axes})
    if points not in known:
        what = f"`{script.reference}` does not sweep `{points}`"
        raise UnresolvedError(what, did_you_mean(points, known, "axis"))
    if len({repr(variant.at(points)) for variant in variants}) < len(variants):
        raise UnresolvedError("two variants share a point", "fix the other axes by `where:`")
    if len(variants) > MOST_POINTS:
        what = f"the trade-off has {len(variants)} points, and a picture at most {MOST_POINTS}"
        raise UnresolvedError(what, "leave some out by `where:`")
    x, y = (quantity_of(spec[axis], script) for axis in "xy")
    for axis, quantity in (("x", x), ("y", y)):
        if quantity.meter is None and script.metadata.metrics[quantity.name].better is None:
            what = f"`{quantity.name}` on `{axis}:` has no better end"
            raise UnresolvedError(what, 'declare `better = "lower"` or `"higher"` for it in the script')
    made_from = (script.reference, points, spec["x"], spec["y"], spec.get("where"))
    key = "tradeoff-" + hashlib.sha256(repr(made_from).encode()).hexdigest()[:10]
    machine = library.pinned_machine(spec.get("machine"))
    return Tradeoff(key, script, points, x, y, variants, str(spec["title"]), machine)


def pareto_front(
    places: Sequence[tuple[float, float] | None], higher_x: bool, higher_y: bool
) -> frozenset[int]:
    """The places of those points that no other beats in one measure without losing in the other.

    Parameters:
        places: x and y of each point; None for one that is missing.
        higher_x: Whether more of x is better.
        higher_y: Whether more of y is better.
    """
    signs = (1 if higher_x else -1, 1 if higher_y else -1)
    found = {
        index: (signs[0] * place[0], signs[1] * place[1])
        for index, place in enumerate(places)
        if place is not None
    }

    def beaten(one: tuple[float, float]) -> bool:
        return any(other[0] >= one[0] and other[1] >= one[1] and other != one for other in found.values())

    return frozenset(index for index, one in found.items() if not beaten(one))


def _plotted(library: Library, tradeoff: Tradeoff, machine: Machine) -> Plotted | None:
    """What `tradeoff` shows on `machine`; None if nothing of it was recorded there.

    Raises:
        UnresolvedError: A metric is a series, or times of two campaigns would be compared.
    """
    pairs = [_measured(library, tradeoff, variant, machine) for variant in tradeoff.variants]
    known = [pair for pair in pairs if pair is not None]
    if not known:
        return None
    for pair in known[1:]:
        check_one_campaign(known[0][1], pair[1])
    units = tuple(
        quantity.shown or shared_unit([(abs(pair[axis].value or 0), quantity.unit) for pair in known])
        for axis, quantity in enumerate((tradeoff.x, tradeoff.y))
    )
    places = tuple(
        None
        if pair is None
        else (
            convert(pair[0].value or 0, tradeoff.x.unit, units[0]),
            convert(pair[1].value or 0, tradeoff.y.unit, units[1]),
        )
        for pair in pairs
    )
    front = pareto_front(places, *(_higher(tradeoff.script, one) for one in (tradeoff.x, tradeoff.y)))
    return Plotted(places, front, (units[0], units[1]), tuple(one for pair in known for one in pair))


def _measured(
    library: Library, tradeoff: Tradeoff, variant: Variant, machine: Machine
) -> tuple[Measurement, Measurement] | None:
    """What a point is made of; None where one of the two was not measured."""
    x, y = (one.measure(library, tradeoff.script, variant, machine) for one in (tradeoff.x, tradeoff.y))
    if x is None or y is None or x.value is None or y.value is None:
        return None
    return x, y


def _higher(script: Script, quantity: ShownQuantity) -> bool:
    return quantity.meter is None and script.metadata.metrics[quantity.name].better == "higher"


def resolve_tradeoff(
    library: Library, guide: str, text: str, count: PageCount
) -> tuple[Tradeoff, list[tuple[Machine, Plotted]]]:
    """The trade-off that a fence of `guide` asks for, and what it shows on each machine, the default first.

    Raises:
        UnresolvedError: It asks for something that is not there, or for more than the page, whose points
            `count` takes in, has room for.
    """
    tradeoff = read_tradeoff(text, library)
    count.add(len(tradeoff.variants))
    found = found_where_recorded(
        library,
        guide,
        tradeoff.script,
        tradeoff.machine,
        "this picture",
        lambda machine: _plotted(library, tradeoff, machine),
    )
    count.draw(tradeoff.key, (machine for machine, _ in found))
    return tradeoff, found


def render_tradeoff(build: Build, text: str) -> str:
    """The HTML of a `tradeoff` fence with the body `text`; raises as `resolve_tradeoff` does."""
    library, page = build.library, build.here
    tradeoff, found = resolve_tradeoff(library, page.guide, text, page.count)
    (shown, known), *others = found
    for machine, plotted in others:
        build.keep_block(tradeoff.key, machine, _rendering(build, tradeoff, plotted))
    rendering = _rendering(build, tradeoff, known)
    return picture(
        tradeoff.key, tradeoff.title, rendering, shown, tradeoff.machine is not None, page.language
    )


def _rendering(build: Build, tradeoff: Tradeoff, plotted: Plotted) -> Rendering:
    language = build.here.language
    origin = build.keep_origin(plotted.sources, offered=tradeoff.machine is None)
    details = render_details(*origin, repeats_text(plotted.measured, language), language)
    figure = _figure(tradeoff, plotted, _drawing(build, plotted), language)
    return Rendering({"figure": figure, "origin": details})


def _drawing(build: Build, plotted: Plotted) -> str:
    return build.once(
        (plotted.places, sorted(plotted.front)),
        lambda: draw_points(plotted.places, plotted.front, build.library.project.drawings),
    )


def _figure(tradeoff: Tradeoff, plotted: Plotted, drawing: str, language: Language) -> str:
    scope = tradeoff.script.reference
    x_name, y_name = (
        axis_name(language, quantity.label_key, scope, unit)
        for quantity, unit in zip((tradeoff.x, tradeoff.y), plotted.units, strict=True)
    )
    points = "".join(
        f'<li class="{_state(index, plotted)}">{_label(tradeoff, variant, language)}</li>'
        for index, variant in enumerate(tradeoff.variants)
    )
    front = escape(language.text("pareto_front"))
    return (
        f'<div class="bb-yname">{y_name}</div><div class="bb-plot">'
        f'<div class="bb-drawing" role="img" aria-label="{escape(tradeoff.title)}" dir="ltr">{drawing}</div>'
        f'<div class="bb-xname">{x_name}</div></div>'
        f'<p class="bb-front-hint">{front}</p><ol class="bb-points" data-pagefind-ignore>{points}</ol>'
    )


def _state(index: int, plotted: Plotted) -> str:
    """The class of a point's name: on the front, off it, or not measured."""
    if plotted.places[index] is None:
        return "bb-absent"
    return "bb-front" if index in plotted.front else "bb-behind"


def _label(tradeoff: Tradeoff, variant: Variant, language: Language) -> str:
    value: ParameterValue = variant.at(tradeoff.points)
    return axis_label(language, tradeoff.points, value, tradeoff.script.reference)
