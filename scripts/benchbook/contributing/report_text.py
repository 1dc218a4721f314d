"""Write a report as Markdown for a pull request, in which nothing of the report is taken for markup."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeVar

from benchbook.contributing.report import Change, ChangeReport, Moved, RecordChange, Timed

# What a comment may hold is 65536 characters; a row takes a few hundred.
MOST_ROWS = 40
LONGEST_WORD = 160
LONGEST = 60_000
LOOK_ALIKES = str.maketrans({"`": "\N{RIGHT SINGLE QUOTATION MARK}", "|": "\N{BROKEN BAR}"})

T = TypeVar("T")


def literal(text: str) -> str:
    """`text` as a code span, whatever it holds: no markup, link, mention or reference is read in one.

    The two characters that could end the span or the cell of a table show as ones that look like them.
    """
    cut = text if len(text) <= LONGEST_WORD else text[: LONGEST_WORD - 1] + "…"
    # Line breaks, control characters and those that turn the direction of what follows.
    shown = "".join("\N{REPLACEMENT CHARACTER}" if _is_unseen(character) else character for character in cut)
    return f"`{shown.translate(LOOK_ALIKES).strip() or '-'}`"


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character)[0] == "C" or unicodedata.category(character) in {"Zl", "Zp"}


def markdown(report: ChangeReport) -> str:
    """The report, what matters most first."""
    sections = [
        _table("Claims that moved", report.claims, "| claim | machine | was | is |", _claim_row),
        _table(
            "Numbers that changed",
            [change for change in report.changes if change.certain],
            "| machine | quantity | before | after | ratio |",
            _change_row,
        ),
        _table(
            "Numbers that may have changed: too few samples to tell",
            [change for change in report.changes if not change.certain],
            "| machine | quantity | before | after | ratio |",
            _change_row,
        ),
        _table("Records that became stale", report.stale, "| machine | script | why |", _record_row),
        _table("Records that are fresh again", report.fresh, "| machine | script | were |", _record_row),
        _table("New records", report.came, "| machine | script |", _place_row),
        _table("Records that are gone", report.went, "| machine | script |", _place_row),
        _table(
            "Benchmarks of the package",
            report.benchmarks,
            "| machine | benchmark | before | after | bar |",
            _timed_row,
        ),
        _table("What cannot be read", report.problems, "| problem |", lambda text: [literal(text)]),
    ]
    head = [
        "## What this changes",
        f"From {literal(report.base[:12])} to {literal(report.head[:12])}: {_summary(report)}.",
    ]
    text = "\n\n".join(filter(None, [*head, *sections])) + "\n"
    return text if len(text) <= LONGEST else "\n\n".join(head) + "\n\nToo much to show here.\n"


def _summary(report: ChangeReport) -> str:
    counts = (
        (len(report.claims), "claim(s) moved"),
        (sum(change.certain for change in report.changes), "number(s) changed"),
        (report.same, "number(s) measured again and the same"),
        (len(report.came), "new record(s)"),
        (len(report.stale), "record(s) became stale"),
        (len(report.benchmarks), "benchmark(s) found something else"),
        (len(report.problems), "problem(s)"),
    )
    return ", ".join(f"{count} {words}" for count, words in counts if count) or "no number and no claim moved"


def _table(title: str, items: Sequence[T], head: str, row: Callable[[T], list[str]]) -> str:
    if not items:
        return ""
    rule = "|" + " --- |" * (head.count("|") - 1)
    rows = ["| " + " | ".join(row(item)) + " |" for item in items[:MOST_ROWS]]
    more = f"\n\n... and {len(items) - MOST_ROWS} more." if len(items) > MOST_ROWS else ""
    return "\n".join([f"### {title}", "", head, rule, *rows]) + more


def _claim_row(moved: Moved) -> list[str]:
    ends = (literal(end or "") for end in (moved.before, moved.after))
    return [literal(moved.claim), literal(moved.machine), *ends]


def _change_row(change: Change) -> list[str]:
    which = "" if change.variant == "default" else f"?{change.variant}"
    ratio = "" if change.ratio is None else f"{change.ratio:.3f}"
    if change.interval is not None:
        ratio += f" [{change.interval[0]:.3f}, {change.interval[1]:.3f}]"
    return [
        literal(change.machine),
        literal(f"{change.script}{which}#{change.quantity}"),
        *(literal(f"{number:.6g} {change.unit}") for number in (change.before, change.after)),
        literal(ratio),
    ]


def _timed_row(timed: Timed) -> list[str]:
    ends = ("-" if number is None else f"{number:.6g} {timed.unit}" for number in (timed.before, timed.after))
    name = f"{timed.benchmark}: {timed.quantity}"
    over = timed.after is not None and timed.after > timed.bar
    bar = f"{timed.bar:.6g} {timed.unit}"
    return [*map(literal, (timed.machine, name, *ends)), literal(f"{bar}, missed" if over else bar)]


def _place_row(record: RecordChange) -> list[str]:
    which = "" if record.variant == "default" else f", {record.variant}"
    return [literal(record.machine), literal(f"{record.script}{which}")]


def _record_row(record: RecordChange) -> list[str]:
    return [*_place_row(record), literal(record.why)]
