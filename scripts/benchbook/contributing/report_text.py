"""Write a report as Markdown for a pull request, in which nothing of the report is taken for markup."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchbook.contributing.report import (
    CLAIMS,
    LISTS,
    LONGEST_WORD,
    Change,
    ChangeReport,
    Direction,
    Moved,
    PredictionChange,
    RecordChange,
    Timed,
)
from benchbook.contributing.shortening import shortened

# A table has so many rows; that of the claims that moved has all that a comment can hold.
MOST_ROWS = 40
# A comment may hold 65536 characters. This is in bytes of UTF-8: whatever the host counts, it is no more.
LONGEST = 60_000
# Of that, what is kept from the claims: for the summary, and the names of what is left out.
BESIDE_CLAIMS = 4_000
# Where the tables are too long with words of one length, they are tried with the next.
WORDS = (LONGEST_WORD, 80, 40)
LOOK_ALIKES = str.maketrans({"`": "\N{RIGHT SINGLE QUOTATION MARK}", "|": "\N{BROKEN BAR}"})


def literal(text: str, longest: int = LONGEST_WORD) -> str:
    """`text` as a code span, whatever it holds: no markup, link, mention or reference is read in one.

    The two characters that could end the span or the cell of a table show as ones that look like them.
    """
    cut = shortened(text, longest)
    # Line breaks, control characters and those that turn the direction of what follows.
    shown = "".join("\N{REPLACEMENT CHARACTER}" if _is_unseen(character) else character for character in cut)
    return f"`{shown.translate(LOOK_ALIKES).strip() or '-'}`"


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character)[0] == "C" or unicodedata.category(character) in {"Zl", "Zp"}


def markdown(report: ChangeReport) -> str:
    """The report, what matters most first, as long as a comment may be.

    Where it would be longer, words are cut; then sections are left out from the end, and named with their
    counts. Claims that moved stay, all that a comment can hold.
    """
    head = "\n\n".join(
        (
            "## What this changes",
            f"From {literal(report.base[:12])} to {literal(report.head[:12])}: {_summary(report)}.",
        )
    )
    for longest in WORDS:
        sections = {name: _section(report, name, longest) for name in LISTS if report.count(name)}
        if _size(text := _joined(head, sections)) <= LONGEST:
            return text
    left_out: list[str] = []
    while _size(text) > LONGEST and sections.keys() - {CLAIMS}:
        name, _ = sections.popitem()
        left_out.insert(0, f"{TABLES[name].title} ({report.count(name)})")
        text = _joined(head, sections, left_out)
    if _size(text) > LONGEST:
        sections[CLAIMS] = _section(report, CLAIMS, longest, LONGEST - BESIDE_CLAIMS)
        text = _joined(head, sections, left_out)
    return text


def _joined(head: str, sections: Mapping[str, str], left_out: Sequence[str] = ()) -> str:
    end = f"No room is left for: {'; '.join(left_out)}." if left_out else ""
    return "\n\n".join(filter(None, (head, *sections.values(), end))) + "\n"


def _size(text: str) -> int:
    return len(text.encode())


def _summary(report: ChangeReport) -> str:
    counts = (
        (report.count(CLAIMS), "claim(s) moved"),
        (report.count("directions"), "metric(s) whose better end is another"),
        (report.count("changes"), "number(s) changed"),
        (report.count("predictions"), "prediction(s) are another"),
        (report.same, "number(s) measured again and the same"),
        (report.count("came"), "new record(s)"),
        (report.count("stale"), "record(s) became stale"),
        (report.count("benchmarks"), "benchmark(s) found something else"),
        (report.count("problems"), "problem(s)"),
    )
    return ", ".join(f"{count} {words}" for count, words in counts if count) or "no number and no claim moved"


def _section(report: ChangeReport, name: str, longest: int, room: float = math.inf) -> str:
    """The heading and the table of one list, and how many more of it there are."""
    table = TABLES[name]
    items: Sequence[Any] = getattr(report, name)
    lines = [
        f"### {table.title}",
        "",
        f"| {' | '.join(table.columns)} |",
        "|" + " --- |" * len(table.columns),
    ]
    shown = 0
    for item in items if name == CLAIMS else items[:MOST_ROWS]:
        line = "| " + " | ".join(literal(word, longest) for word in table.row(item)) + " |"
        room -= _size(line) + 1
        if room < 0:
            break
        lines.append(line)
        shown += 1
    more = report.count(name) - shown
    return "\n".join(lines) + (f"\n\n... and {more} more." if more else "")


def _claim_row(moved: Moved) -> list[str]:
    return [moved.claim, moved.machine, moved.before or "", moved.after or ""]


def _direction_row(turned: Direction) -> list[str]:
    return [f"{turned.script}#{turned.metric}", turned.before or "neither", turned.after or "neither"]


def _change_row(change: Change) -> list[str]:
    ratio = "" if change.ratio is None else f"{change.ratio:.3f}"
    if change.interval is not None:
        ratio += f" [{change.interval[0]:.3f}, {change.interval[1]:.3f}]"
    return [
        change.machine,
        _quantity(change.script, change.variant, change.quantity),
        *(f"{number:.6g} {change.unit}" for number in (change.before, change.after)),
        ratio,
    ]


def _prediction_row(change: PredictionChange) -> list[str]:
    ratio = f"{change.after / change.before:.3f}" if change.before and change.after is not None else ""
    return [
        change.machine,
        _quantity(change.script, change.variant, change.quantity),
        *("-" if number is None else f"{number} B" for number in (change.before, change.after)),
        ratio,
    ]


def _quantity(script: str, variant: str, quantity: str) -> str:
    return f"{script}{'' if variant == 'default' else f'?{variant}'}#{quantity}"


def _timed_row(timed: Timed) -> list[str]:
    ends = ("-" if number is None else f"{number:.6g} {timed.unit}" for number in (timed.before, timed.after))
    over = timed.after is not None and timed.after > timed.bar
    bar = f"{timed.bar:.6g} {timed.unit}"
    return [timed.machine, f"{timed.benchmark}: {timed.quantity}", *ends, f"{bar}, missed" if over else bar]


def _place_row(record: RecordChange) -> list[str]:
    which = "" if record.variant == "default" else f", {record.variant}"
    return [record.machine, f"{record.script}{which}"]


def _record_row(record: RecordChange) -> list[str]:
    return [*_place_row(record), record.why]


@dataclass(frozen=True)
class _Table:
    """How a list is shown.

    Parameters:
        title: Its heading.
        columns: Their headings.
        row: The words of an item, one for each column, as they are: they become literal afterwards.
    """

    title: str
    columns: tuple[str, ...]
    row: Callable[[Any], list[str]]


NUMBERS = ("machine", "quantity", "before", "after", "ratio")
TABLES = {
    CLAIMS: _Table("Claims that moved", ("claim", "machine", "was", "is"), _claim_row),
    "directions": _Table(
        "Metrics whose better end is another", ("metric", "better was", "better is"), _direction_row
    ),
    "changes": _Table("Numbers that changed", NUMBERS, _change_row),
    "undecided": _Table("Numbers that may have changed: too few samples to tell", NUMBERS, _change_row),
    "predictions": _Table("Predictions that are another", NUMBERS, _prediction_row),
    "stale": _Table("Records that became stale", ("machine", "script", "why"), _record_row),
    "fresh": _Table("Records that are fresh again", ("machine", "script", "were"), _record_row),
    "came": _Table("New records", ("machine", "script"), _place_row),
    "went": _Table("Records that are gone", ("machine", "script"), _place_row),
    "benchmarks": _Table(
        "Benchmarks of the package", ("machine", "benchmark", "before", "after", "bar"), _timed_row
    ),
    "problems": _Table("What cannot be read", ("problem",), lambda text: [text]),
}
