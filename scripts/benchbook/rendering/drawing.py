"""Draw a line chart as SVG: marks, grid and digits only, so that one drawing serves every language."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchbook.content.records import write_text

# Laid out for the text of a phone, which scales the drawing down; where it is wider, the page makes the text
# smaller (blocks.css), and each label stays where it is.
WIDTH, HEIGHT, FONT_SIZE = 640, 330, 22
# From a tick to the baseline of its label: as Vega has it, and as a share of whatever size the text is.
_BASELINES = {"end": (round(0.3 * FONT_SIZE), "0.32em"), "middle": (round(0.79 * FONT_SIZE), "0.79em")}
# As near as the names of two lines may come, as a share of the height.
_NAME = 0.075
# Stand-ins for the colours of the page, replaced by custom properties once drawn.
_INK, _GRID = "#010203", "#040506"
_SERIES = tuple(f"#0a0b{index:02x}" for index in range(6))
MAX_SERIES = len(_SERIES)
# The width of a digit, and how far above or below its point a number stands.
_DIGIT, _ABOVE, _BELOW = 13, -9, 15
# Into how many pieces a line is cut to see what stands on it.
_STEPS = 40
_Box = tuple[float, float, float, float]
# Where the number of a point may stand: to its right or left, above or below; the first that is free.
_CORNERS = ((1, -1), (1, 1), (-1, -1), (-1, 1))
# Change it with what `_themed` does, so that no kept drawing outlives its look.
_THEME = 5
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


@dataclass(frozen=True)
class Line:
    """One series of a chart: its points, in the units of the axes."""

    points: tuple[tuple[float, float], ...]


def draw_chart(
    lines: Sequence[Line],
    log_x: bool = False,
    log_y: bool = False,
    zero: bool = True,
    cache: Path | None = None,
) -> str:
    """The drawing of up to six series.

    Parameters:
        lines: In the order of the legend.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is.
        zero: Whether a linear vertical axis begins at 0.
        cache: A folder that keeps drawings from one build to the next, by all that they are made from.
    """
    return _drawn(json.dumps(_specification(lines, log_x, log_y, zero)), cache)


def draw_points(
    places: Sequence[tuple[float, float] | None], front: Collection[int], cache: Path | None = None
) -> str:
    """The drawing of points, numbered from 1, with a line through those at the front.

    Parameters:
        places: x and y of each point, in the units of the axes; None for one that is left out.
        front: The indices of those at the front.
        cache: As for `draw_chart`.
    """
    shown = [(index, place) for index, place in enumerate(places) if place is not None]
    spec = _specification([Line(tuple(place for _, place in shown))], False, False, True)
    names = [str(index + 1) for index, _ in shown]
    line = sorted(place for index, place in shown if index in front)
    corners = _free_corners([place for _, place in shown], names, line)
    spec["data"] = {
        "values": [
            {"n": name, "x": x, "y": y, "front": index in front, "corner": corner}
            for (index, (x, y)), name, corner in zip(shown, names, corners, strict=True)
        ]
    }
    across = spec["encoding"]["x"]
    across["scale"] |= {"zero": True, "nice": True}
    across["axis"] = {"format": _format([x for _, (x, _) in shown]), "grid": False, "tickCount": 5}
    best = {"filter": "datum.front"}
    rest = {"filter": "!datum.front"}
    spec["layer"] = [
        {"transform": [best], "mark": {"type": "line", "color": _SERIES[0], "strokeWidth": 3}},
        {"transform": [rest], "mark": {"type": "point", "filled": True, "size": 90, "color": _SERIES[1]}},
        {"transform": [best], "mark": {"type": "point", "filled": True, "size": 160, "color": _SERIES[0]}},
        *(_numbers(*where) for where in sorted({(c, len(n)) for c, n in zip(corners, names, strict=True)})),
    ]
    return _drawn(json.dumps(spec), cache)


def _numbers(corner: int, digits: int) -> dict[str, Any]:
    """The layer that writes the numbers of so many digits that stand in `corner` of their points."""
    right, down = _CORNERS[corner]
    return {
        "transform": [{"filter": f"datum.corner === {corner} && length(datum.n) === {digits}"}],
        "mark": {
            "type": "text",
            "fontSize": FONT_SIZE,
            "color": _INK,
            "align": "left",
            "dx": 9 if right > 0 else -9 - _DIGIT * digits,
            "dy": _ABOVE if down < 0 else _BELOW,
        },
        "encoding": {"text": {"field": "n", "type": "nominal"}},
    }


def _free_corners(
    places: Sequence[tuple[float, float]], names: Sequence[str], line: Sequence[tuple[float, float]]
) -> list[int]:
    """For each point the corner where its name covers least of points, of names before it and of the line."""
    across, up = (max((abs(place[axis]) for place in places), default=1) or 1 for axis in (0, 1))

    def drawn(place: tuple[float, float]) -> tuple[float, float]:
        return place[0] / across * WIDTH, HEIGHT - place[1] / up * HEIGHT

    points = [drawn(place) for place in places]
    taken = [_around(x, y, 8) for x, y in points]
    for (x, y), (far_x, far_y) in pairwise(map(drawn, line)):
        for step in range(_STEPS):
            share = (step + 0.5) / _STEPS
            taken.append(_around(x + share * (far_x - x), y + share * (far_y - y), 3))
    chosen = []
    for (x, y), name in zip(points, names, strict=True):
        width = _DIGIT * len(name)
        boxes = []
        for right, down in _CORNERS:
            left, middle = (x + 9 if right > 0 else x - 9 - width), y + (_ABOVE if down < 0 else _BELOW)
            boxes.append((left, middle - 9, left + width, middle + 9))
        covered = [sum(_overlap(box, other) for other in taken) for box in boxes]
        best = covered.index(min(covered))
        chosen.append(best)
        taken.append(boxes[best])
    return chosen


def _around(x: float, y: float, reach: float) -> _Box:
    return x - reach, y - reach, x + reach, y + reach


def _overlap(one: _Box, other: _Box) -> float:
    """The area that two boxes share."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)


def _drawn(spec: str, cache: Path | None) -> str:
    """The drawing of `spec`, from the cache if it holds it."""
    if cache is None:
        return _render(spec)
    made_from = f"{version('vl-convert-python')}\n{_THEME}\n{spec}"
    path = cache / f"{hashlib.sha256(made_from.encode()).hexdigest()}.svg"
    drawing = _kept(path)
    if drawing is None:
        drawing = _render(spec)
        # Where there is no room to keep it, it is drawn again the next time.
        with suppress(OSError):
            write_text(cache / ".gitignore", "*\n")
            write_text(path, drawing)
    return drawing


def _kept(path: Path) -> str | None:
    """The drawing in a file; None where there is none that can be read."""
    try:
        drawing = path.read_text("utf-8")
        ElementTree.fromstring(drawing)
    except (OSError, UnicodeDecodeError, ElementTree.ParseError):
        return None
    return drawing


def line_ends(svg: str, lines: int) -> list[float | None]:
    """How far below the top of a drawing the name of each line belongs: by its end, none on another.

    Parameters:
        svg: What `draw_chart` made.
        lines: How many lines it may have.

    Returns:
        Shares of the height; None for a line without a point.
    """
    found: dict[int, float] = {}

    def search(element: ElementTree.Element, top: float) -> None:
        moved = re.match(r"translate\([-\d.]+,([-\d.]+)\)", element.get("transform", ""))
        top += float(moved[1]) if moved else 0
        line = re.match(r"var\(--bb-series-(\d+)\)", element.get("stroke", ""))
        if line and not element.get("fill"):
            last = re.findall(r"[-\d.]+,([-\d.]+)", element.get("d", ""))[-1]
            found[int(line[1]) - 1] = (top + float(last)) / HEIGHT
        for child in element:
            search(child, top)

    search(ElementTree.fromstring(svg), 0)
    places = _apart([found[index] for index in sorted(found)])
    apart = dict(zip(sorted(found), places, strict=True))
    return [round(apart[index], 3) if index in apart else None for index in range(lines)]


def _apart(places: Sequence[float]) -> list[float]:
    """`places` moved as little as keeps them apart and inside the drawing, in their order."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = list(places)
    for before, index in pairwise(order):
        moved[index] = max(moved[index], moved[before] + _NAME)
    bottom = 1 - _NAME / 2
    for index in reversed(order):
        moved[index] = min(moved[index], bottom)
        bottom = moved[index] - _NAME
    return moved


def _render(spec: str) -> str:
    import vl_convert  # loads a JavaScript engine; a build without a new chart need not wait for it

    return _themed(vl_convert.vegalite_to_svg(spec, vl_version="5.20"))


def _specification(lines: Sequence[Line], log_x: bool, log_y: bool, zero: bool) -> dict[str, Any]:
    rows = [{"s": index, "x": x, "y": y} for index, line in enumerate(lines) for x, y in line.points]
    xs, ys = [row["x"] for row in rows], [row["y"] for row in rows]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": WIDTH,
        "height": HEIGHT,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": None,
        "data": {"values": rows},
        "config": {
            "font": "inherit",
            "view": {"stroke": None},
            "axis": {
                "labelFontSize": FONT_SIZE,
                "labelColor": _INK,
                "labelLimit": 0,
                "labelFlush": False,
                "domainColor": _INK,
                "tickColor": _INK,
                "gridColor": _GRID,
                "title": None,
            },
        },
        "encoding": {
            "x": {
                "field": "x",
                "type": "quantitative",
                "scale": {"type": "log" if log_x else "linear", "zero": False, "nice": False},
                "axis": {"format": _format(xs), "grid": False, **_ticks(xs)},
            },
            "y": {
                "field": "y",
                "type": "quantitative",
                "scale": {"type": "log" if log_y else "linear", "zero": zero and not log_y, "nice": True},
                "axis": {"format": _format(ys), "tickCount": 5},
            },
        },
        "layer": [_layer(index, len(lines), len(line.points)) for index, line in enumerate(lines)],
    }


def _layer(index: int, lines: int, points: int) -> dict[str, Any]:
    """One line with its points: earlier ones wider, so that they show where a later one lies on them."""
    wider = lines - 1 - index if lines <= 3 else 0
    mark: dict[str, Any] = {"type": "line", "color": _SERIES[index], "strokeWidth": 2 + 2 * wider}
    if points <= 40:
        size = 70 + 75 * wider if points <= 12 else 24 + 40 * wider
        mark["point"] = {"size": size, "filled": True, "color": _SERIES[index], "shape": SHAPES[index]}
    return {"transform": [{"filter": f"datum.s === {index}"}], "mark": mark}


def _format(values: Sequence[float]) -> str:
    """How d3 writes the ticks: plain digits where they are short, powers of ten elsewhere."""
    sizes = [abs(value) for value in values if value]
    if not sizes or (max(sizes) < 1e6 and max(sizes) >= 1e-3):
        return ",.4~g"
    return ".2~e"


def _ticks(values: Sequence[float]) -> dict[str, Any]:
    """Where the horizontal axis has its ticks: at the points of a short sweep, at steps of a long one."""
    points = sorted(set(values))
    if len(points) <= 8:
        return {"values": points, "labelOverlap": "greedy", "labelSeparation": 6}
    return {"tickCount": 5, "tickMinStep": 1 if all(value == int(value) for value in points) else 0}


def _themed(svg: str) -> str:
    """`svg` with the page's colours and size instead of its own, and without a name of its own."""
    svg = svg.replace(_INK, "var(--bb-ink)").replace(_GRID, "var(--bb-grid)")
    for index, stand_in in enumerate(_SERIES):
        svg = svg.replace(stand_in, f"var(--bb-series-{index + 1})")
    # The page names the figure; inside it, the drawing is decoration.
    svg = re.sub(r' (?:role|aria-roledescription|aria-label)="[^"]*"', "", svg)
    svg = re.sub(r'<path class="(?:background|foreground)"[^>]*/>', "", svg)
    # Vega keeps the label of a tick that would overlap another, unseen.
    svg = re.sub(r'<text [^>]*(?<=\s)opacity="0"[^>]*>[^<]*</text>', "", svg)
    svg = re.sub(r' (?:class|pointer-events|opacity|font-family|aria-hidden)="[^"]*"', "", svg)
    svg = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)
    svg = re.sub(
        r'<text text-anchor="(end|middle)" transform="translate\(([^,]+),([^)]+)\)" font-size="[^"]*"',
        _relative,
        svg,
    )
    svg = svg.replace(f' font-size="{FONT_SIZE}px"', "")  # the page says how large
    head = re.match(r"<svg [^>]*>", svg)
    assert head is not None
    box = re.search(r'viewBox="[^"]*"', head[0])
    assert box is not None
    hidden = 'direction="ltr" aria-hidden="true" focusable="false"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]} font-size="{FONT_SIZE}" {hidden}>'
    return opening + svg[head.end() :]


def _relative(label: re.Match[str]) -> str:
    """The label of a tick at a distance from it that follows the size of the text, which the page sets."""
    anchor, x, y = label.groups()
    below, distance = _BASELINES[anchor]
    place = f"{x},{float(y) - below:.2f}".removesuffix(".00")
    return f'<text text-anchor="{anchor}" transform="translate({place})" dy="{distance}"'
