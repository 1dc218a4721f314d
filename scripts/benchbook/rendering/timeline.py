"""Draw a profiler's trace as a timeline in SVG: few elements, whatever the trace."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape

from benchbook.content.traces import ANNOTATION, DEVICE, OPERATORS, ProfilerTrace, TraceEvent

# As wide as charts are, with text of their size, which the page makes smaller where it is wider (blocks.css).
WIDTH, FONT_SIZE = 640, 22
# How many blocks each lane has at most, and how many of them hold their name.
MOST_SPANS, MOST_INSIDE, MOST_GPU, MOST_NAMED = 60, 80, 80, 20
# So many names have a colour of their own; the others share that of the text.
# None is that of the host or of its operators, which lie right below.
COLOURS = (3, 4, 5, 6)
INSIDE, HOST, GPU = "var(--bb-series-1)", "var(--bb-series-2)", "var(--bb-series-6)"
# The room for the name of a lane, its height, and what is narrower than anyone sees.
_HEAD, _LANE, _NARROW = 32, 34, 1.0
_TICKS = 5
# Of a letter and of a character of Chinese or Japanese, as shares of the size of the text.
_LETTER, _WIDE = 0.6, 1.0
# A profiler's own frame around each step, in which the script's annotations lie; and how the engine of the
# backward pass calls what it does in a thread of its own, for which the main one waits.
_FRAME, _BACKWARD = "ProfilerStep#", "autograd::engine::"


@dataclass(frozen=True)
class Block:
    """What is drawn as one: from when to when, in microseconds, what it is called, and of how many events."""

    start: float
    end: float
    name: str = ""
    events: int = 1

    @property
    def lasts(self) -> float:
        """Microseconds."""
        return self.end - self.start


@dataclass(frozen=True)
class Timeline:
    """What a trace says of where the time went.

    Parameters:
        spans: The script's own annotations in its main thread, those that lie in no other.
        inside: When the host was inside an operator.
        gpu: When a device was at work; empty where there was none.
        first: When the main thread began, in microseconds.
        last: When it ended.
        length: When everything was over.
        events: How many events it has.
    """

    spans: tuple[Block, ...]
    inside: tuple[Block, ...]
    gpu: tuple[Block, ...]
    first: float
    last: float
    length: float
    events: int

    @cached_property
    def inside_time(self) -> float:
        """Microseconds inside operators."""
        return sum(block.lasts for block in self.inside)

    @property
    def host_time(self) -> float:
        """Microseconds of the main thread outside operators."""
        return max(0.0, self.last - self.first - self.inside_time)

    @cached_property
    def gpu_time(self) -> float:
        """Microseconds in which a device was at work."""
        return sum(block.lasts for block in self.gpu)

    @cached_property
    def totals(self) -> dict[str, float]:
        """Microseconds of all annotations of a name, in the order in which names came first."""
        found: dict[str, float] = {}
        for span in self.spans:
            found[span.name] = found.get(span.name, 0.0) + span.lasts
        return found


@dataclass(frozen=True)
class TimelineWords:
    """What stands in a drawing, in the language of the page.

    Parameters:
        title: What the picture shows.
        described: The same in a sentence or two, for those who do not see it.
        code: The name of the lane of annotations.
        inside: The name of the lane of the host.
        gpu: The name of the lane of the devices.
        names: What an annotation is called, by its name in the script.
        right_to_left: Whether the language is written so.
    """

    title: str
    described: str
    code: str
    inside: str
    gpu: str
    names: dict[str, str]
    right_to_left: bool = False


def timeline(trace: ProfilerTrace) -> Timeline:
    """What `trace` says of where the time went."""
    host = [event for event in trace.traceEvents if event.cat not in DEVICE]
    main = _main_thread(host)
    own = [event for event in host if event.tid == main]
    engine = {event.tid for event in host if event.name.startswith(_BACKWARD)}
    inside = [one for one in host if one.cat in OPERATORS and (one.tid == main or one.tid in engine)]
    annotations = [event for event in own if event.cat == ANNOTATION]
    given = [event for event in annotations if not event.name.startswith(_FRAME)]
    around = own or list(trace.traceEvents)
    return Timeline(
        spans=tuple(_outermost(given or annotations)),
        inside=tuple(_united(inside)),
        gpu=tuple(_united(event for event in trace.traceEvents if event.cat in DEVICE)),
        first=min(event.ts for event in around),
        last=max(event.end for event in (*around, *inside)),
        length=max(event.end for event in trace.traceEvents),
        events=len(trace.traceEvents),
    )


def _main_thread(events: Iterable[TraceEvent]) -> int | None:
    """The thread with most time in annotations, else in operators; the first of several."""
    totals: dict[int, tuple[float, float]] = {}
    for event in events:
        annotated, inside = totals.get(event.tid, (0.0, 0.0))
        if event.cat == ANNOTATION:
            totals[event.tid] = annotated + event.dur, inside
        else:
            totals[event.tid] = annotated, inside + event.dur
    return max(totals, key=lambda tid: (totals[tid], -tid), default=None)


def _outermost(events: Sequence[TraceEvent]) -> list[Block]:
    """The events that lie in no other, in their order."""
    found: list[Block] = []
    for event in sorted(events, key=lambda one: (one.ts, -one.dur)):
        # Rounded to tenths, one may seem to begin just before the last has ended.
        if not found or event.ts >= found[-1].end - 0.1:
            found.append(Block(event.ts, event.end, event.name))
    return found


def _united(events: Iterable[TraceEvent]) -> list[Block]:
    """When any of the events was under way."""
    found: list[Block] = []
    for event in sorted(events, key=lambda one: one.ts):
        if found and event.ts <= found[-1].end:
            last = found[-1]
            found[-1] = replace(last, end=max(last.end, event.end), events=last.events + 1)
        else:
            found.append(Block(event.ts, event.end))
    return found


def merged(blocks: Sequence[Block], gap: float, most: int) -> list[Block]:
    """Few blocks in the place of many: those that no more than a gap parts are one, named as most of it is.

    Parameters:
        blocks: In their order.
        gap: Microseconds that nobody sees; wider where there would be more blocks than `most`.
        most: How many there may be.
    """
    while True:
        groups: list[list[Block]] = []
        for block in blocks:
            last = groups[-1][-1] if groups else None
            near = last is not None and block.start - last.end < gap
            alike = last is not None and (block.name == last.name or block.end - groups[-1][0].start < gap)
            if near and alike:
                groups[-1].append(block)
            else:
                groups.append([block])
        if len(groups) <= most:
            return [_one_of(group) for group in groups]
        gap *= 2


def _one_of(group: Sequence[Block]) -> Block:
    totals: dict[str, float] = {}
    for block in group:
        totals[block.name] = totals.get(block.name, 0.0) + block.lasts
    name = max(totals, key=lambda one: totals[one])
    return Block(group[0].start, group[-1].end, name, sum(block.events for block in group))


def colour_of(place: int) -> str:
    """The colour of the annotations whose name came as the one at `place`, counted from 0."""
    return f"var(--bb-series-{COLOURS[place]})" if place < len(COLOURS) else "var(--bb-ink)"


def drawn_blocks(shown: Timeline) -> tuple[list[Block], list[Block], list[Block]]:
    """What the lanes hold: the annotations, the operators, and the devices."""
    # Of what took no time at all, a tenth of a microsecond is more than nothing.
    gap = max(_NARROW * shown.length / WIDTH, 0.1)
    return (
        merged(shown.spans, gap, MOST_SPANS),
        merged(shown.inside, gap, MOST_INSIDE),
        merged(shown.gpu, gap, MOST_GPU),
    )


def draw_timeline(shown: Timeline, words: TimelineWords) -> str:
    """The drawing of a timeline.

    Two lanes or three: the annotations; the host, low outside operators and high inside; the devices. The
    axis, in milliseconds, runs from left to right in every language.
    """
    scale = WIDTH / (shown.length or 1.0)
    spans, inside, gpu = drawn_blocks(shown)
    parts: list[str] = []
    below = 0.0
    if spans:
        parts.append(_head(words.code, below, words.right_to_left))
        colours = {name: colour_of(place) for place, name in enumerate(shown.totals)}
        below += _HEAD
        parts += [_rectangle(span, scale, below, _LANE, colours[span.name]) for span in spans]
        parts += _names(spans, scale, below, words)
        below += _LANE
    parts.append(_head(words.inside, below, words.right_to_left))
    below += _HEAD
    host = Block(shown.first, shown.last)
    parts.append(_rectangle(host, scale, below + _LANE * 2 / 3, _LANE / 3, HOST))
    # In the place of the host's, not on it: the page's colour around them keeps narrow ones apart from it.
    parts += [_rectangle(block, scale, below, _LANE, INSIDE) for block in inside]
    below += _LANE
    if gpu:
        parts.append(_head(words.gpu, below, words.right_to_left))
        below += _HEAD
        parts += [_rectangle(block, scale, below, _LANE, GPU) for block in gpu]
        below += _LANE
    parts.append(_axis(shown.length, scale, below + 8))
    box = f'viewBox="0 0 {WIDTH} {below + 8 + 7 + FONT_SIZE:g}"'
    direction = "rtl" if words.right_to_left else "ltr"
    named = (
        f'<title direction="{direction}">{escape(words.title)}</title><desc>{escape(words.described)}</desc>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-size="{FONT_SIZE}" direction="ltr" role="img" '
        f'focusable="false">{named}{"".join(parts)}</svg>'
    )


def _rectangle(block: Block, scale: float, top: float, height: float, colour: str) -> str:
    # However short, it is seen.
    width = max(block.lasts * scale, _NARROW)
    left = min(block.start * scale, WIDTH - width)
    return (
        f'<rect x="{_text(left)}" y="{_text(top)}" width="{_text(width)}" height="{_text(height)}" '
        f'fill="{colour}"/>'
    )


def _head(name: str, top: float, right_to_left: bool) -> str:
    """The name of a lane, above it on the side where the page's lines begin."""
    place, direction = (WIDTH, "rtl") if right_to_left else (0, "ltr")
    return (
        f'<text x="{place}" y="{_text(top + _HEAD - 8)}" direction="{direction}" fill="var(--bb-ink)">'
        f"{escape(name)}</text>"
    )


def _names(spans: Sequence[Block], scale: float, top: float, words: TimelineWords) -> list[str]:
    """The names of the widest annotations, in those that have room for them."""
    direction = ' direction="rtl"' if words.right_to_left else ""
    found = [
        f'<text x="{_text((span.start + span.end) / 2 * scale)}" y="{_text(top + _LANE - 10)}" '
        f'text-anchor="middle"{direction} fill="var(--site-bg)">{escape(words.names[span.name])}</text>'
        for span in sorted(spans, key=lambda one: -one.lasts)
        if _width(words.names[span.name]) + 8 < span.lasts * scale
    ]
    return found[:MOST_NAMED]


def _width(text: str) -> float:
    """How wide a text is, about, in units of the drawing."""
    return sum(FONT_SIZE * (_WIDE if ord(character) > 0x2E7F else _LETTER) for character in text)


def _axis(length: float, scale: float, top: float) -> str:
    """The axis of time, in milliseconds."""
    path = f"M0,{_text(top)}H{WIDTH}"
    texts = ""
    for tick in _ticks(length / 1000):
        place = tick * 1000 * scale
        path += f"M{_text(place)},{_text(top)}v6"
        anchor = "start" if place < FONT_SIZE else "end" if place > WIDTH - FONT_SIZE else "middle"
        where = f'x="{_text(place)}" y="{_text(top + 6)}" dy="0.9em" text-anchor="{anchor}"'
        texts += f"<text {where}>{tick:,g}</text>"
    return f'<path d="{path}" fill="none" stroke="var(--bb-ink)"/><g fill="var(--bb-ink)">{texts}</g>'


def _ticks(length: float) -> list[float]:
    """Some five round numbers from 0 to `length`."""
    if length <= 0:
        return [0.0]
    power = 10 ** math.floor(math.log10(length / _TICKS))
    step = next(power * size for size in (1, 2, 5, 10) if power * size * _TICKS >= length)
    return [round(step * number, 9) for number in range(int(length / step + 1e-9) + 1)]


def _text(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
