"""Replay a trace through an allocator, and say what held the memory at its peak."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from benchbook.predictor.caching_allocator import CachingAllocator
from benchbook.predictor.trace import Birth, Events

ACTIVATIONS = "activations"
TEMPORARY = "temporary"
# Where the model runs forward.
PASSES = ("forward", "prefill", "decode")
# Where the allocator gives back what is free.
EMPTIED = "empty_cache"
OPTIMIZER_MOMENTS = ("unscale", "clip", "step", "zero_grad")


@dataclass(frozen=True)
class WorkPeak:
    """One kind of work, over all times it was done.

    Parameters:
        peak: The most that was allocated during it, in bytes.
        held: What was allocated at its last end, in bytes.
    """

    peak: int
    held: int


@dataclass(frozen=True)
class Attribution:
    """What a trace comes to; bytes are those of blocks, rounding included.

    Parameters:
        peak_allocated: The most that was allocated at once.
        peak_reserved: The most that was reserved; None on a device without segments.
        peak_requested: The most that was asked for at once, without what blocks have beyond it.
        moment: When the peak was reached.
        categories: What held the peak.
        layers: Where in the model that belongs; what belongs to no layer goes by the name of its moment.
        unexplained: The part of the peak that is in no category.
        moments: Each by name, in order of their first time.
        fits: Whether the segments fit their limit; None without one.
    """

    peak_allocated: int
    peak_reserved: int | None
    peak_requested: int
    moment: str
    categories: dict[str, int]
    layers: dict[str, int]
    unexplained: int
    moments: dict[str, WorkPeak]
    fits: bool | None


@dataclass(frozen=True)
class _Replay:
    """Bytes after each event, of each birth's block, and of all segments at most; whether these fit."""

    held: list[int]
    blocks: list[int]
    reserved: int | None
    fits: bool | None


def attribute(events: Events, segments: bool, limit: int | None = None) -> Attribution:
    """Replay what a trace saw.

    Parameters:
        events: With at least one birth.
        segments: Serve requests as CUDA's caching allocator does; otherwise byte by byte.
        limit: Bytes that the segments can take of the device; None: without end.
    """
    requested = _byte_by_byte(events)
    replay = _through_segments(events, limit) if segments else requested
    peak = max(replay.held)
    at = replay.held.index(peak)
    starts = [span.first for span in events.spans]
    deaths = {~event: place for place, event in enumerate(events.order) if event < 0}
    alive = [event for event in events.order[: at + 1] if event >= 0 and deaths.get(event, at + 1) > at]
    categories: Counter[str] = Counter()
    layers: Counter[str] = Counter()
    for index in alive:
        birth = events.births[index]
        categories[_category(birth, events, starts, deaths.get(index))] += replay.blocks[index]
        layers[_layer(birth, events)] += replay.blocks[index]
    unexplained = categories.pop("", 0)
    last_span = max(index for index, start in enumerate(starts) if start <= at)
    return Attribution(
        peak,
        replay.reserved,
        max(requested.held),
        events.spans[last_span].moment,
        dict(categories.most_common()),
        dict(layers.most_common()),
        unexplained,
        _moments(events, replay.held),
        replay.fits,
    )


def _through_segments(events: Events, limit: int | None) -> _Replay:
    allocator = CachingAllocator(limit)
    addresses: dict[int, int] = {}
    held: list[int] = []
    blocks = [0] * len(events.births)
    emptied = {span.first for span in events.spans if span.moment == EMPTIED}
    for place, event in enumerate(events.order):
        if place in emptied:
            allocator.empty()
        if event >= 0:
            address = allocator.allocate(events.births[event].size, events.births[event].stream)
            addresses[event] = address
            blocks[event] = allocator.size_of(address)
        else:
            allocator.release(addresses.pop(~event))
        held.append(allocator.allocated)
    fits = None if limit is None else allocator.fits
    return _Replay(held, blocks, allocator.reserved_peak, fits)


def _byte_by_byte(events: Events) -> _Replay:
    blocks = [birth.size for birth in events.births]
    held: list[int] = []
    now = 0
    for event in events.order:
        now += blocks[event] if event >= 0 else -blocks[~event]
        held.append(now)
    return _Replay(held, blocks, None, None)


def _category(birth: Birth, events: Events, starts: list[int], death: int | None) -> str:
    """What a storage was; empty where it fits nothing.

    Activations outlive the forward pass that made them (what was read and generated so far included),
    temporaries end with the work that made them.
    """
    if birth.category:
        return birth.category
    if birth.recomputed:
        end = events.recomputed[birth.recomputed - 1]
    else:
        end = starts[birth.span + 1] if birth.span + 1 < len(starts) else len(events.order)
    if death is not None and death < end:
        return TEMPORARY
    moment = events.spans[birth.span].moment
    return ACTIVATIONS if moment in PASSES or birth.recomputed else ""


def _layer(birth: Birth, events: Events) -> str:
    if birth.layer:
        return birth.layer
    moment = events.spans[birth.span].moment
    return "optimizer" if moment in OPTIMIZER_MOMENTS else moment


def _moments(events: Events, held: list[int]) -> dict[str, WorkPeak]:
    moments: dict[str, WorkPeak] = {}
    for place, span in enumerate(events.spans):
        end = events.spans[place + 1].first if place + 1 < len(events.spans) else len(held)
        before = held[span.first - 1] if span.first else 0
        within = held[span.first : end]
        earlier = moments.get(span.moment)
        peak = max(within, default=before)
        moments[span.moment] = WorkPeak(
            max(peak, before, earlier.peak if earlier else 0), within[-1] if within else before
        )
    return moments
