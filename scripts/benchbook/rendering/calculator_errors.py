"""How far the calculator is from the predictor, as a table made of the recorded points at each build."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from jinja2 import Template

from benchbook.calculator.listing import KINDS, all_models, kind_text
from benchbook.calculator.points import Error, Points, errors, load_points
from benchbook.content.references import UnresolvedError
from benchbook.languages.language import Language
from benchbook.query.library import Cache, Library

_ERRORS = Cache[None, list[Error]]("errors of the calculator")


def render_errors(library: Library, language: Language, template: Template) -> str:
    """The HTML of the table, in the page's language.

    Raises:
        UnresolvedError: Nothing was compared yet.
    """
    points = load_points(library.project)
    if points is None:
        fix = "run `benchbook coefficients --points 200`"
        raise UnresolvedError("the calculator was not compared with the predictor yet", fix)
    return template.render(
        text=lambda name: language.text(f"calc_{name}"),
        rows=_rows(library, points, language),
        versions=(f"torch {points.torch}", f"transformers {points.transformers}"),
    )


def _rows(
    library: Library, points: Points, language: Language
) -> list[tuple[str, int, list[tuple[str, str]]]]:
    """Of each kind of model, and of all: its name, how many points, and their errors."""
    kinds = {one.name: one.kind for one in all_models(library.project)}
    shares = library.once(_ERRORS, None, lambda: errors(library.project, points.points))
    found = list(zip(points.points, shares, strict=True))
    rows = []
    for kind in KINDS:
        of_kind = [error for point, error in found if kinds.get(point.model) == kind]
        if of_kind:
            name = language.text(kind_text(kind))
            rows.append((name, len(of_kind), _summary(of_kind, language)))
    everything = [error for _, error in found]
    return [*rows, (language.text("calc_all"), len(everything), _summary(everything, language))]


def _summary(found: Sequence[Error], language: Language) -> list[tuple[str, str]]:
    """Of what is requested and of what is allocated, the median of the errors' sizes and the largest error.

    Each is a number and a text.
    """
    cells = []
    for shares in zip(*found, strict=True):
        # What is less than a hundredth of a percent is nothing.
        typical, largest = round(median(map(abs, shares)), 4), max(shares, key=abs)
        cells.append((f"{typical:.5f}", language.percent(typical)))
        cells.append((f"{largest:.5f}", language.signed_percent(largest)))
    return cells
