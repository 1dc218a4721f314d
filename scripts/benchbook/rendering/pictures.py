"""What every picture of records has around its drawing: a title, named axes, and where it comes from."""

from __future__ import annotations

from html import escape
from pathlib import Path

from benchbook.content.units import Unit
from benchbook.languages.language import Language
from benchbook.query.library import Machine
from benchbook.rendering.context import Build, Rendering
from benchbook.rendering.labels import name_label
from benchbook.rendering.provenance import details_element


def drawings_folder(build: Build) -> Path:
    """Where drawings are kept from one build to the next."""
    return build.library.project.root / ".cache" / "drawings"


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
