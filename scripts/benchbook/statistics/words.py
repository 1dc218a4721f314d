"""Say in English what a comparison found: for the command line, and for whoever mends a claim."""

from __future__ import annotations

from benchbook.statistics.comparison import LEAST_PAIRS, Comparison, Doubt
from benchbook.statistics.paired import Interval


def found_text(found: Comparison) -> str:
    """The ratio with its interval, p and number of pairs, as far as there are any."""
    if found.ratio is None:
        return ""
    text = f"{found.ratio:.4g}x"
    if found.interval is not None:
        text += f" {interval_text(found.interval)}"
    if found.p is not None:
        text += f", p = {found.p:.2g}, {found.pairs} pair(s)"
    return text if found.interval is not None else f"{text}, the same in every run"


def interval_text(interval: Interval) -> str:
    """An interval in brackets."""
    return f"[{interval[0]:.4g}, {interval[1]:.4g}]"


def doubt_text(doubt: Doubt | None, found: Comparison) -> str:
    """Why a comparison leaves the answer open; empty where it does not."""
    same = "" if found.same is None else interval_text(found.same)
    words: dict[Doubt | None, str] = {
        None: "",
        "few pairs": f"{found.pairs} pair(s) of runs are fewer than the {LEAST_PAIRS} that decide",
        "two campaigns": "the two were not measured in one campaign",
        "shared": "others used the device meanwhile",
        "unsteady": f"the same differs from itself ({same}), and the difference is not beyond that",
        "signs": "numbers that scatter around 0 have no ratio",
        "small": "the difference is smaller than the one that matters",
        "open": "the interval leaves both open",
        "missing": "there is no measurement of both",
    }
    return words[doubt]
