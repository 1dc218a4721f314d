"""The `cell` fence: the source of a cell and what it printed when it ran, never run here."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from html import escape

from markdown import Markdown
from markdown_exec import base_format

from benchbook.content.cleaning import clean
from benchbook.content.parameters import axis_text, parameters_text
from benchbook.content.problems import few_known
from benchbook.content.references import (
    UnfitError,
    UnresolvedError,
    cell_of,
    matching_variants,
    parse_reference,
)
from benchbook.content.script import ENDLESS_WORD, PARAMETERS, Cell, Script, Variant
from benchbook.content.terminal import plain
from benchbook.languages.language import Language
from benchbook.languages.markup import plain_code
from benchbook.query.library import Library, Machine
from benchbook.query.measurements import RecordedVariant, missing_fix, recorded, shown_variant
from benchbook.rendering.context import Build, Rendering
from benchbook.rendering.labels import OUTCOMES
from benchbook.rendering.provenance import details_element, render_details

PLACES = ("above", "below", "block", "tabbed-left", "tabbed-right", "none")
MAX_LINES, MAX_CHARACTERS = 60, 20_000
_FENCE = "`" * 8
# markdown-exec numbers ids over the whole build, which would make them differ from language to language.
_COUNTED_ID = re.compile(r'\b(id|for|name)="exec-\d+--')
# Stands for the output until that is put in its place; drawn by each build, so that no script holds it.
_OUTPUT = f"benchbook-output-{secrets.token_hex(16)}"


def resolve_cell(library: Library, guide: str, text: str) -> tuple[Script, Cell, Variant, RecordedVariant]:
    """What the body of a `cell` fence in `guide` shows by default.

    Raises:
        UnresolvedError: It names nothing, or nothing was recorded for it.
        UnfitError: No variant that it may show reached the region that it names.
    """
    reference = parse_reference(text)
    script = library.script(reference.script)
    if reference.meter or reference.index is not None:
        raise UnresolvedError(
            f"`{reference}` is not a cell", "name the cell alone, or use an inline value for a number"
        )
    cell = shown_part(script, reference.name)
    _check_shown(script, cell)
    machine = library.machine_for(guide, script.reference)
    among: Sequence[Variant] = matching_variants(script, reference.axes)
    if cell.name in script.regions:
        among = _reached(library, script, among, machine, cell.name) or among
    variant = shown_variant(script, among)
    found = recorded(library, script, variant.name, machine)
    if found is None:
        fix = missing_fix(machine, script.reference)
        raise UnresolvedError(
            f"`{script.reference}`, variant {variant.name}, was never recorded on {machine.name}", fix
        )
    if cell.name in script.regions and cell.name not in found.result.regions:
        others = _reached(library, script, script.variants(()), machine, cell.name)
        what = f"the region `{cell.name}` of `{script.reference}` was not reached in {variant.name}"
        fix = f"name a variant in which it was: {few_known([one.name for one in others], '; ')}"
        # One that was never recorded may still reach it.
        all_here = all(recorded(library, script, one.name, machine) is not None for one in among)
        kind = UnfitError if all_here else UnresolvedError
        raise kind(what, fix if others else missing_fix(machine, script.reference))
    return script, cell, variant, found


def shown_size(cell: Cell, found: RecordedVariant) -> int:
    """How many characters a page shows of a cell and of what it printed in one variant."""
    return len(cell.source) + len(bounded(found.result.output.get(cell.name, ""))[0])


def shown_part(script: Script, name: str) -> Cell:
    """The cell, or the region, that is called `name`."""
    return script.regions.get(name) or cell_of(script, name)


def _reached(
    library: Library, script: Script, among: Sequence[Variant], machine: Machine, region: str
) -> list[Variant]:
    """Those of `among` whose record on `machine` says that the region was reached."""
    found = ((variant, recorded(library, script, variant.name, machine)) for variant in among)
    return [variant for variant, one in found if one is not None and region in one.result.regions]


def check_options(options: Mapping[str, str]) -> None:
    """Raise UnresolvedError if the header of a `cell` fence holds an option it has not."""
    place = options.get("source", "above")
    if place not in PLACES:
        raise UnresolvedError(
            f"a cell cannot be shown with source={place}", f"use one of: {', '.join(PLACES)}"
        )
    for name in options:
        # Those of markdown-exec beside it are words of the page, which no check would read.
        if name != "source":
            raise UnresolvedError(f"a cell has no option `{name}`", "use only: source")


def render_cell(build: Build, text: str, options: Mapping[str, str], md: Markdown) -> str:
    """The HTML of a `cell` fence with the body `text`.

    Raises:
        UnresolvedError: It names nothing, or nothing was recorded for it.
    """
    check_options(options)
    library, page = build.library, build.here
    script, cell, variant, shown = resolve_cell(library, page.guide, text)
    if cell.name in script.regions:
        # What its lines printed belongs to the whole cell.
        return _beside(_with_source(build, cell, "above", md), "")
    key = f"{script.reference}?{variant.name}#{cell.name}"
    for machine in library.machines_with(script.reference):
        found = shown if machine == shown.machine else recorded(library, script, variant.name, machine)
        # What is quoted from a publication has figures, and seldom a word that a cell printed.
        if found is not None and found != shown and not found.quoted:
            build.keep_block(key, machine, _rendering(build, cell, found))
    output = _render_output(build, key, cell, shown)
    place = options.get("source", "above")
    if place == "none":
        return output
    return _beside(_with_source(build, cell, place, md), output)


def _beside(html: str, output: str) -> str:
    """A source with `output` in the place of the word that stands for it."""
    # In a tab, Markdown makes a paragraph of the word, which no block may stand in.
    return html.replace(f"<p>{_OUTPUT}</p>", _OUTPUT).replace(_OUTPUT, output)


def _with_source(build: Build, cell: Cell, place: str, md: Markdown) -> str:
    """The source, highlighted by markdown-exec, with a word in the place of the output."""
    language = build.here.language
    build.here.cells += 1
    titles = (escape(language.text("tab_source")), escape(language.text("output")))
    # Ids of tabs must differ between the cells of a page, and be the same in every language and build.
    prefix = f"cell-{build.here.cells}-" if place.startswith("tabbed") else ""

    def highlighted() -> str:
        shown = base_format(
            language="python",
            run=lambda code, **_: _OUTPUT,
            code=cell.source,
            md=md,
            html=True,
            source=place,
            tabs=titles,
            update_toc=False,
            extra={},
        )
        # As a plain text: markupsafe's own would escape the output that takes the word's place.
        return plain_code(clean(str(shown)))

    shown = build.once((cell.source, place, titles if prefix else ""), highlighted)
    return _COUNTED_ID.sub(rf'\1="{prefix}', shown)


def _render_output(build: Build, key: str, cell: Cell, source: RecordedVariant) -> str:
    rendering = _rendering(build, cell, source)
    inside = rendering.parts[""]
    return (
        f'<div class="bb-output" data-bb="{escape(key)}" data-machine="{escape(source.machine.name)}"'
        f"{'' if inside else ' hidden'}>{inside}</div>"
    )


def _rendering(build: Build, cell: Cell, source: RecordedVariant) -> Rendering:
    """What a cell printed, and what is to be said of it; it does not show where there is neither."""
    language = build.here.language
    text, cut = bounded(source.result.output.get(cell.name, ""))
    notes = _notes(cell, source, bool(text), language)
    if cut:
        notes.append(language.text("output_cut", n=cut))
    key, origin = build.keep_origin([source])
    if not text and not notes and not origin.stale:
        return Rendering({"": ""}, {"hidden": ""})
    shown = "".join(f"<li><bdi>{escape(note)}</bdi></li>" for note in notes)
    shown = f'<ul class="bb-notes">{shown}</ul>' if notes else ""
    if text:
        name = escape(language.text("output"))
        # Nobody searches for such a word, and the index takes minutes over many of them.
        unsearched = " data-pagefind-ignore" if ENDLESS_WORD.search(text) else ""
        shown += (
            f'<pre lang="en" dir="ltr" tabindex="0" aria-label="{name}"{unsearched}>'
            f"<code>{escape(text)}</code></pre>"
        )
    return Rendering(
        {"": shown + details_element(render_details(key, origin, "", language))}, {"hidden": None}
    )


def _notes(cell: Cell, source: RecordedVariant, printed: bool, language: Language) -> list[str]:
    notes = []
    if source.result.outcome != "ok":
        notes.append(language.text(OUTCOMES[source.result.outcome]))
    if not printed and cell.name != PARAMETERS:
        return notes
    if source.variant.axes and printed:
        point = ", ".join(f"{axis} = {axis_text(value)}" for axis, value in source.variant.axes.items())
        notes.append(f"{language.text('variant')}{language.text('colon')}\u2066{point}\u2069")
    if changed := source.overridden:
        text = parameters_text(changed)
        notes.append(f"{language.text('overridden')}{language.text('colon')}\u2066{text}\u2069")
    return notes


def bounded(text: str) -> tuple[str, int]:
    """`text` without its last line break, cut to what a page can hold, and the number of lines cut."""
    lines = plain(text).rstrip("\n").split("\n") if text.strip() else []
    kept: list[str] = []
    size = 0
    for line in lines[:MAX_LINES]:
        size += len(line) + 1
        if size > MAX_CHARACTERS:
            kept.append(line[: max(0, MAX_CHARACTERS - size + len(line) + 1)] + "…")
            break
        kept.append(line)
    return "\n".join(kept), len(lines) - len(kept)


def _check_shown(script: Script, cell: Cell) -> None:
    """Raise UnresolvedError if Markdown could not show the source byte for byte."""
    for text, name in (
        ("\t", "a tab"),
        (_FENCE, "eight backticks"),
        ("markdown-exec: hide", "`markdown-exec: hide`"),
    ):
        if text in cell.source:
            what = f"the cell `{cell.name}` of `{script.reference}` holds {name}, which no page can show"
            raise UnresolvedError(what, "write it another way")
