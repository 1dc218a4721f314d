"""The `trace` fence: a profiler's trace of one variant as a timeline, and the file to take away.

    script: debugging/slow.py
    where: {cause: data}
    trace: steps
    title: Four steps that wait for data

The drawing is made of the recorded file itself. Annotations are labelled as values of the axis `span` are.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from html import escape

from benchbook.content.problems import did_you_mean
from benchbook.content.references import UnresolvedError
from benchbook.content.script import Script, Variant
from benchbook.content.traces import ProfilerTrace, TraceEntry
from benchbook.content.units import UNITS
from benchbook.languages.formatting import NO_BREAK_SPACE
from benchbook.languages.language import Language
from benchbook.query.library import Cache, Library, Machine
from benchbook.query.measurements import RecordedVariant, found_where_recorded, recorded
from benchbook.rendering.charts import axis_name, picture
from benchbook.rendering.context import Build, Rendering
from benchbook.rendering.downloads import trace_path
from benchbook.rendering.labels import axis_label
from benchbook.rendering.provenance import render_details
from benchbook.rendering.specs import PageCount, read_spec, variants_of
from benchbook.rendering.timeline import (
    GPU,
    HOST,
    INSIDE,
    MOST_GPU,
    MOST_INSIDE,
    MOST_SPANS,
    Timeline,
    TimelineWords,
    colour_of,
    draw_timeline,
    drawn_blocks,
    timeline,
)

KEYS = ("script", "where", "trace", "title", "machine")
# What labels call an annotation of a script: `span=load`.
SPAN = "span"
# So many annotations are named below the drawing.
MOST_LISTED = 8
PERFETTO = "https://ui.perfetto.dev"
# By the digest of the file.
_TIMELINES = Cache[str, Timeline]("timelines")
# What stands in a sentence for the link to it, and for the address that no page may link to.
_PERFETTO, _CHROME = "\ue000", "\ue001"


@dataclass(frozen=True)
class TraceBlock:
    """A trace as its fence asks for it; what it yields depends on the machine.

    Parameters:
        key: A name that is the same in every language.
        script: Whose variant.
        variant: The one whose trace it is.
        name: What the script calls the trace.
        title: The page's own words above it.
        machine: The one it shows whatever a reader chooses; None to follow the choice.
    """

    key: str
    script: Script
    variant: Variant
    name: str
    title: str
    machine: Machine | None = None


@dataclass(frozen=True)
class RecordedTrace:
    """A trace on one machine: where it was recorded, what the record says of it, and what it holds."""

    source: RecordedVariant
    entry: TraceEntry
    trace: ProfilerTrace


def read_trace_block(text: str, library: Library) -> TraceBlock:
    """The trace that the body of a fence asks for.

    Raises:
        UnresolvedError: It asks for something that is not there, or for several variants.
    """
    spec = read_spec(text, KEYS, ("script", "trace", "title"), "trace")
    script = library.script(str(spec["script"]))
    variants = variants_of(spec, script)
    if len(variants) > 1:
        known = "; ".join(variant.name for variant in variants)
        raise UnresolvedError(f"the trace is of {len(variants)} variants", f"choose one by `where:`: {known}")
    name = str(spec["trace"])
    if name not in script.metadata.traces:
        what = f"`{script.reference}` declares no trace `{name}`"
        raise UnresolvedError(what, did_you_mean(name, script.metadata.traces, "trace"))
    made_from = (script.reference, variants[0].name, name)
    key = "trace-" + hashlib.sha256(repr(made_from).encode()).hexdigest()[:10]
    machine = library.pinned_machine(spec.get("machine"))
    return TraceBlock(key, script, variants[0], name, str(spec["title"]), machine)


def _recorded(library: Library, block: TraceBlock, machine: Machine) -> RecordedTrace | None:
    """The trace on `machine`; None if none was recorded there.

    Raises:
        BenchbookError: The file is not what the record describes.
    """
    source = recorded(library, block.script, block.variant.name, machine)
    entry = source.result.traces.get(block.name) if source is not None else None
    if source is None or entry is None:
        return None
    trace = library.trace(machine.name, block.script.reference, block.name, entry)
    return RecordedTrace(source, entry, trace)


def resolve_trace(
    library: Library, guide: str, text: str, count: PageCount
) -> tuple[TraceBlock, list[tuple[Machine, RecordedTrace]]]:
    """The trace that a fence of `guide` asks for, and what it is on each machine, the default one first.

    Raises:
        UnresolvedError: It asks for something that is not there, or the page shows too much with it.
    """
    block = read_trace_block(text, library)
    count.add(MOST_SPANS + MOST_INSIDE + MOST_GPU)
    found = found_where_recorded(
        library,
        guide,
        block.script,
        block.machine,
        "this trace",
        lambda machine: _recorded(library, block, machine),
    )
    # Its words are drawn with it: another title is another drawing.
    count.draw(f"{block.key} {block.title}", (machine for machine, _ in found))
    return block, found


def render_trace(build: Build, text: str) -> str:
    """The HTML of a `trace` fence with the body `text`; raises as `resolve_trace` does."""
    library, page = build.library, build.here
    block, found = resolve_trace(library, page.guide, text, page.count)
    (shown, known), *others = found
    for machine, one in others:
        build.keep_block(block.key, machine, _rendering(build, block, one))
    rendering = _rendering(build, block, known)
    return picture(block.key, block.title, rendering, shown, block.machine is not None, page.language)


def _rendering(build: Build, block: TraceBlock, found: RecordedTrace) -> Rendering:
    language = build.here.language
    origin = build.keep_origin([found.source], offered=block.machine is None)
    details = render_details(*origin, "", language)
    shown = build.library.once(_TIMELINES, found.entry.sha256, lambda: timeline(found.trace))
    figure = _figure(block, shown, language) + _download(build, block, found)
    return Rendering({"figure": figure, "origin": details})


def _figure(block: TraceBlock, shown: Timeline, language: Language) -> str:
    """The drawing, its axis, and what the colours are."""
    drawing = draw_timeline(shown, _words(block, shown, language))
    time = axis_name(language, "seconds", block.script.reference, UNITS["ms"])
    return (
        f'<div class="bb-plot" data-pagefind-ignore><div class="bb-drawing" dir="ltr">{drawing}</div>'
        f'<div class="bb-xname">{time}</div></div>{_legend(block, shown, language)}'
    )


def _words(block: TraceBlock, shown: Timeline, language: Language) -> TimelineWords:
    def lasting(value: float) -> str:
        return _milliseconds(value, language)

    told = [
        language.text(
            "trace_described",
            length=lasting(shown.length),
            host=lasting(shown.host_time),
            inside=lasting(shown.inside_time),
        )
    ]
    if shown.gpu:
        told.append(language.text("trace_gpu_described", time=lasting(shown.gpu_time)))
    blocks = [one for lane in drawn_blocks(shown) for one in lane]
    drawn = sum(one.events for one in blocks)
    told.append(
        language.text("trace_merged", events=shown.events, blocks=len(blocks), merged=drawn - len(blocks))
    )
    return TimelineWords(
        title=block.title,
        described=" ".join(told),
        code=language.text("trace_code"),
        inside=language.text("trace_lane"),
        gpu=language.text("trace_gpu"),
        names={name: _name(block, name, language) for name in shown.totals},
        right_to_left=language.direction == "rtl",
    )


def _name(block: TraceBlock, name: str, language: Language) -> str:
    """What the language calls an annotation, else its name in the script."""
    return language.label(f"{SPAN}={name}", block.script.reference) or name


def _legend(block: TraceBlock, shown: Timeline, language: Language) -> str:
    """How long each annotation took, then the host in and outside operators, and the devices."""
    annotated = [
        _item(colour_of(place), axis_label(language, SPAN, name, block.script.reference), time, language)
        for place, (name, time) in enumerate(shown.totals.items())
    ]
    if len(annotated) > MOST_LISTED:
        annotated[MOST_LISTED:] = ["<li>…</li>"]
    host = [(HOST, "trace_host", shown.host_time)]
    host.append((INSIDE, "trace_operators" if shown.gpu else "trace_with_kernels", shown.inside_time))
    host += [(GPU, "trace_gpu", shown.gpu_time)] if shown.gpu else []
    rest = [_item(colour, language.words(language.text(key)), time, language) for colour, key, time in host]
    lists = [f"<ul>{''.join(items)}</ul>" for items in (annotated, rest) if items]
    return "".join(f'<div class="bb-legend bb-spans">{one}</div>' for one in lists)


def _item(colour: str, name: str, time: float, language: Language) -> str:
    sign = f'<span class="bb-sign" style="color:{colour}" aria-hidden="true">■</span>'
    told = escape(_milliseconds(time, language))
    return f'<li>{sign} {name}{NO_BREAK_SPACE}<bdi class="bb-time">{told}</bdi></li>'


def _milliseconds(value: float, language: Language) -> str:
    """Microseconds as the page writes milliseconds."""
    return language.quantity(value / 1000, UNITS["ms"], UNITS["ms"]).text


def _download(build: Build, block: TraceBlock, found: RecordedTrace) -> str:
    """The link to the file, and how to open it."""
    language = build.here.language
    machine = found.source.machine.name
    address = build.here.root + trace_path(machine, block.script.reference, block.name, found.entry.sha256)
    variant = "" if block.variant.name == "default" else f".{block.variant.name}"
    file = f"{block.script.stem}{variant}.{block.name}.json.gz"
    size = language.quantity(found.entry.bytes, UNITS["B"]).text
    text = language.text("with_remark", text=language.text("trace_download"), remark=size)
    link = f'<a href="{escape(address)}" download="{escape(file)}">{language.words(text)}</a>'
    opened = language.text("trace_open").replace("{perfetto}", _PERFETTO).replace("{chrome}", _CHROME)
    opened = language.words(opened).replace(
        _PERFETTO, f'<a href="{PERFETTO}"><bdi dir="ltr">ui.perfetto.dev</bdi></a>'
    )
    opened = opened.replace(_CHROME, '<code lang="en" dir="ltr">chrome://tracing</code>')
    return f'<p class="bb-trace-file" data-pagefind-ignore>{link}{NO_BREAK_SPACE}· {opened}</p>'
