"""The `chart` fence: a sweep, or a series over steps, as a line chart with the page's words around it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from benchbook.content.metadata import ParameterValue
from benchbook.content.parameters import axis_text
from benchbook.content.problems import did_you_mean
from benchbook.content.references import Target, UnfitError, UnresolvedError, axis_values
from benchbook.content.script import Script, Variant
from benchbook.content.units import Unit, convert, sensible_unit
from benchbook.languages.language import Language
from benchbook.query.library import Library, Machine
from benchbook.query.measurements import (
    Measurement,
    RecordedVariant,
    found_where_recorded,
    measure_series,
    recorded,
)
from benchbook.rendering.context import Build, Rendering
from benchbook.rendering.drawing import MAX_SERIES, SHAPES, Line, draw_chart, line_ends
from benchbook.rendering.labels import axis_label, name_label
from benchbook.rendering.provenance import counted_text, details_element, render_details, repeats_text
from benchbook.rendering.specs import PageCount, ShownQuantity, quantity_of, read_spec, variants_of


def axis_name(language: Language, name: str, scope: str, unit: Unit) -> str:
    """The HTML of the name of an axis with its unit."""
    text = "%" if unit.symbol == "percent" else language.quantity(2, unit, unit).unit
    shown = f' <span class="bb-unit"><bdi>{escape(text)}</bdi></span>' if text else ""
    return name_label(language, name, scope) + shown


def picture(
    key: str, title: str, rendering: Rendering, shown: Machine, pinned: bool, language: Language
) -> str:
    """The HTML of a picture.

    Parameters:
        key: A name that is the same in every language.
        title: The page's own words above it.
        rendering: Its parts: the "figure", which is the drawing and the words around it, and the "origin".
        shown: The machine it shows.
        pinned: Whether it shows that machine whatever a reader chooses.
        language: The page's.
    """
    # A block without a key does not follow the choice of machine.
    follows = "" if pinned else f' data-bb="{escape(key)}"'
    return (
        f'<figure class="bb-chart"{follows} data-machine="{escape(shown.name)}">'
        f"<figcaption>{language.words(title)}</figcaption>"
        f'<div class="bb-figure" data-part="figure">{rendering.parts["figure"]}</div>'
        f"{details_element(rendering.parts['origin'])}</figure>"
    )


KEYS = ("script", "x", "y", "series", "where", "title", "log", "zero", "machine")
STEP = "step"
# Up to so many lines have their names beside them where there is room; more have a legend only.
_NAMED = 4
# The shapes of drawing.SHAPES as characters, for the legend.
_SIGNS = dict(zip(SHAPES, "●■▲◆✚▼", strict=True))


@dataclass(frozen=True)
class Chart:
    """A chart as its fence asks for it; what it yields depends on the machine.

    Parameters:
        key: A name that is the same in every language.
        script: Whose variants.
        x: The axis swept from left to right, or `step`.
        y: What it shows.
        series: The axis that tells the lines apart, if any.
        variants: Those it shows.
        log: Which axes are logarithmic.
        zero: Whether the vertical axis begins at 0.
        title: The page's own words above it.
        machine: The one it shows whatever a reader chooses; None to follow the choice.
    """

    key: str
    script: Script
    x: str
    y: ShownQuantity
    series: str | None
    variants: tuple[Variant, ...]
    log: tuple[str, ...]
    zero: bool
    title: str
    machine: Machine | None = None


@dataclass(frozen=True)
class Drawn:
    """A chart on one machine: its lines with what tells them apart, and the unit of their height."""

    names: tuple[ParameterValue, ...]
    lines: tuple[Line, ...]
    unit: Unit

    @property
    def rows(self) -> list[tuple[float, list[float | None]]]:
        """Its points by place on the horizontal axis, None where a line has none."""
        by_x = [dict(line.points) for line in self.lines]
        return [
            (x, [points.get(x) for points in by_x]) for x in sorted({x for points in by_x for x in points})
        ]


def read_chart(text: str, library: Library) -> Chart:
    """The chart that the body of a fence asks for.

    Raises:
        UnresolvedError: It asks for something that is not there, or that no line chart can show.
    """
    spec = read_spec(text, KEYS, ("script", "x", "y", "title"), "chart")
    script = library.script(str(spec["script"]))
    variants = variants_of(spec, script)
    x, series = str(spec["x"]), spec.get("series")
    known = sorted({axis for variant in script.variants(()) for axis in variant.axes})
    for axis in (x, series):
        if axis is not None and axis != STEP and axis not in known:
            raise UnresolvedError(
                f"`{script.reference}` does not sweep `{axis}`",
                did_you_mean(str(axis), [*known, STEP], "axis"),
            )
    if x != STEP and not all(_is_number(variant.at(x)) for variant in variants):
        raise UnresolvedError(
            f"`{x}` is not a number, so it has no scale", "show it in a table with `bar: true`"
        )
    fixed = {axis for axis in known if len(axis_values(variants, axis)) < 2} | {x, series}
    if loose := sorted(set(known) - fixed):
        fix = f"fix by `where:` or show by `series:` each of: {', '.join(loose)}"
        raise UnresolvedError("several variants share a point of the chart", fix)
    if len(axis_values(variants, series or "")) > MAX_SERIES:
        raise UnresolvedError(
            f"the chart has more than {MAX_SERIES} lines", "leave some out by `where:`, or show a table"
        )
    log = (
        tuple(spec["log"]) if isinstance(spec.get("log"), list) else (spec["log"],) if spec.get("log") else ()
    )
    if not all(axis in ("x", "y") for axis in log):
        raise UnresolvedError("`log:` names no axis", "write `log: x`, `log: y` or `log: [x, y]`")
    y = quantity_of(spec["y"], script)
    zero = bool(spec.get("zero", True))
    made_from = (script.reference, x, spec["y"], series, spec.get("where"), log, zero)
    key = "chart-" + hashlib.sha256(repr(made_from).encode()).hexdigest()[:10]
    machine = library.pinned_machine(spec.get("machine"))
    return Chart(key, script, x, y, series, variants, log, zero, str(spec["title"]), machine)


def _chart_lines(library: Library, chart: Chart, machine: Machine) -> Drawn | None:
    """What `chart` shows on `machine`; None if nothing of it was recorded there.

    Raises:
        UnresolvedError: `y` is a series where a number is needed, or a number where a series is; or a
            logarithmic scale meets zero.
    """
    # Every line has its place even where a machine has nothing of it: colours keep their meaning.
    found: dict[str, tuple[ParameterValue, list[tuple[float, float]]]] = {}
    for variant in chart.variants:
        name = variant.at(chart.series) if chart.series else None
        found.setdefault(repr(name), (name, []))[1].extend(_points(library, chart, variant, machine))
    values = [y for _, points in found.values() for _, y in points]
    if not values:
        return None
    unit = chart.y.shown or sensible_unit(max(map(abs, values)), chart.y.unit)
    lines = tuple(
        Line(tuple((x, convert(y, chart.y.unit, unit)) for x, y in sorted(points)))
        for _, points in found.values()
    )
    for place, axis in enumerate("xy"):
        if axis in chart.log and any(point[place] <= 0 for line in lines for point in line.points):
            raise UnfitError(
                f"a logarithmic axis cannot show 0 or less, as `{axis}` has", "leave `log:` away"
            )
    return Drawn(tuple(name for name, _ in found.values()), lines, unit)


def resolve_chart(
    library: Library, guide: str, text: str, count: PageCount
) -> tuple[Chart, list[tuple[Machine, Drawn]]]:
    """The chart that a fence of `guide` asks for, and what it shows on each machine, the default one first.

    Raises:
        UnresolvedError: It asks for something that is not there, or for more than the page, whose points
            `count` takes in, has room for.
    """
    chart = read_chart(text, library)
    count.add(len(chart.variants))
    found = found_where_recorded(
        library,
        guide,
        chart.script,
        chart.machine,
        "this chart",
        lambda machine: _chart_lines(library, chart, machine),
    )
    # Of a series, each variant has as many points as that has steps.
    points = max(sum(len(line.points) for line in drawn.lines) for _, drawn in found)
    count.add(max(0, points - len(chart.variants)))
    count.draw(chart.key, (machine for machine, _ in found))
    return chart, found


def render_chart(build: Build, text: str) -> str:
    """The HTML of a `chart` fence with the body `text`; raises as `resolve_chart` does."""
    library, page = build.library, build.here
    chart, found = resolve_chart(library, page.guide, text, page.count)
    (shown, known), *others = found
    for machine, drawn in others:
        build.keep_block(chart.key, machine, _rendering(build, chart, machine, drawn))
    rendering = _rendering(build, chart, shown, known)
    return picture(chart.key, chart.title, rendering, shown, chart.machine is not None, page.language)


def _rendering(build: Build, chart: Chart, machine: Machine, drawn: Drawn) -> Rendering:
    library, language = build.library, build.here.language
    sources = [
        s for v in chart.variants if (s := recorded(library, chart.script, v.name, machine)) is not None
    ]
    origin = build.keep_origin(sources, offered=chart.machine is None)
    details = render_details(*origin, _repeats(library, chart, sources, language), language)
    figure = _figure(chart, drawn, _drawing(build, chart, drawn), language)
    return Rendering({"figure": figure, "origin": details})


def _drawing(build: Build, chart: Chart, drawn: Drawn) -> str:
    logs = ("x" in chart.log, "y" in chart.log)
    return build.once(
        (drawn.lines, chart.log, chart.zero),
        lambda: draw_chart(drawn.lines, *logs, chart.zero, build.library.project.drawings),
    )


def _figure(chart: Chart, drawn: Drawn, drawing: str, language: Language) -> str:
    """The drawing, and the words around it."""
    scope = chart.script.reference
    y_name = axis_name(language, chart.y.label_key, scope, drawn.unit)
    x_name = name_label(language, chart.x, scope)
    legend, names = "", ""
    if chart.series:
        labels = [axis_label(language, chart.series, name, scope) for name in drawn.names]
        ends = _ends(chart, drawn, drawing)
        direct = " bb-direct" if ends else ""
        items = "".join(f"<li>{_sign(index)} {label}</li>" for index, label in enumerate(labels))
        head = name_label(language, chart.series, scope)
        legend = f'<div class="bb-legend{direct}">{head}<ul>{items}</ul></div>'
        names = "".join(
            f"<li{_place(end)}>{_sign(index)} {line_name(chart, name, label, language)}</li>"
            for index, (end, name, label) in enumerate(zip(ends, drawn.names, labels, strict=False))
        )
        names = f'<ul class="bb-ends" data-pagefind-ignore>{names}</ul>' if ends else ""
    return (
        f'{legend}<div class="bb-yname">{y_name}</div><div class="bb-plot">'
        f'<div class="bb-drawing" role="img" aria-label="{escape(chart.title)}" dir="ltr">{drawing}</div>'
        f'{names}<div class="bb-xname">{x_name}</div></div>'
        f"{_data_table(chart, drawn, y_name, x_name, language)}"
    )


def _ends(chart: Chart, drawn: Drawn, drawing: str) -> list[float | None]:
    """Where the names of the lines stand, as shares of the height; none where a legend alone names them."""
    return line_ends(drawing, len(drawn.lines)) if chart.series and len(drawn.lines) <= _NAMED else []


def _sign(index: int) -> str:
    """The colour and shape of the line at `index`."""
    return (
        f'<span class="bb-sign" style="color:var(--bb-series-{index + 1})" aria-hidden="true">'
        f"{_SIGNS[SHAPES[index]]}</span>"
    )


def _place(end: float | None) -> str:
    return " hidden" if end is None else f' style="--bb-end:{end}"'


def line_name(chart: Chart, name: ParameterValue, label: str, language: Language) -> str:
    """The HTML of a line's name beside it: of a bare number or a yes, with what it is the number of."""
    scope, series = chart.script.reference, str(chart.series)
    if not isinstance(name, (int, float)) or language.label(f"{series}={axis_text(name)}", scope):
        return label
    return f"{name_label(language, series, scope)}{escape(language.text('colon'))}{label}"


def _data_table(chart: Chart, drawn: Drawn, y_name: str, x_name: str, language: Language) -> str:
    scope = chart.script.reference
    if chart.series:
        heads = [axis_label(language, chart.series, name, scope) for name in drawn.names]
    else:
        heads = [y_name]
    rows = ""
    for first, *others in _figures(drawn, language):
        cells = "".join(f'<td><bdi dir="ltr">{escape(text)}</bdi></td>' for text in others)
        rows += f'<tr><th scope="row"><bdi dir="ltr">{escape(first)}</bdi></th>{cells}</tr>'
    head = "".join(f'<th scope="col">{text}</th>' for text in (x_name, *heads))
    title = escape(language.text("chart_data"))
    shown = escape(language.text("show_data"))
    return (
        f'<details class="bb-figures" data-pagefind-ignore><summary>{shown}</summary>'
        f'<div class="bb-scroll" tabindex="0" role="group" aria-label="{title}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _figures(drawn: Drawn, language: Language) -> list[list[str]]:
    """The points as a table of texts: the place on the horizontal axis, then each line."""
    return [
        [language.number(x), *("—" if value is None else language.number(value) for value in values)]
        for x, values in drawn.rows
    ]


def _points(library: Library, chart: Chart, variant: Variant, machine: Machine) -> list[tuple[float, float]]:
    if chart.x == STEP:
        target = Target(chart.y.reference(chart.script, variant), chart.script, variant, chart.y.unit)
        series = measure_series(library, target, machine)
        return [(index + 1, value) for index, value in enumerate(series or ())]
    measured = chart.y.measure(library, chart.script, variant, machine)
    place = variant.at(chart.x)
    if measured is None or measured.value is None or not isinstance(place, (int, float)):
        return []
    return [(place, measured.value)]


def _repeats(library: Library, chart: Chart, sources: Sequence[RecordedVariant], language: Language) -> str:
    if chart.x == STEP:
        return counted_text([len(source.result.runs) for source in sources], language)
    found: list[Measurement] = []
    for source in sources:
        measured = chart.y.measure(library, chart.script, source.variant, source.machine)
        if measured is not None:
            found.append(measured)
    return repeats_text(found, language)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
