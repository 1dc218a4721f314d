"""What a judgement on a claim is called in a language: the verdict, the numbers behind it, why it is open."""

from __future__ import annotations

from benchbook.claims.comparison import Doubt, Outcome
from benchbook.claims.declaration import Constant
from benchbook.claims.judging import Judgement
from benchbook.pages.languages import Language
from benchbook.pages.machine_names import machine_short
from benchbook.pages.measurements import Measurement
from benchbook.pages.provenance import Row, result_rows
from benchbook.pages.quantities import NO_BREAK_SPACE
from benchbook.paired import Interval

# The interface strings of a verdict: as a word, and with the machine.
_WORDS: dict[Outcome, tuple[str, str]] = {
    "holds": ("verdict_holds", "claim_holds"),
    "refuted": ("verdict_refuted", "claim_refuted"),
    "too close to call": ("verdict_too_close", "claim_too_close"),
    "not measured": ("not_measured", "claim_not_measured"),
}


def outcome_word(outcome: Outcome, language: Language) -> str:
    """The word for an outcome."""
    return language.text(_WORDS[outcome][0])


def outcome_line(judged: Judgement, language: Language) -> str:
    """The verdict on one machine: "Refuted on the H200"."""
    return language.text(_WORDS[judged.outcome][1], machine=machine_short(judged.machine, language))


def finding(judged: Judgement, language: Language) -> str:
    """The numbers behind a verdict, and why it is open if it is; empty where nothing was measured."""
    if not judged.parts:
        return ""
    found = judged.found
    segments = [_measured(judged, language)]
    if found.ratio is not None and (found.ratio != 1 or found.interval) and _is_telling(judged):
        ratio = f"{language.number(found.ratio)}{language.text('times')}"
        segments.append(
            language.isolated(ratio)
            if found.interval is None
            else language.text("claim_interval", ratio=ratio, interval=_interval(found.interval, language))
        )
    if found.pairs:
        segments.append(language.text("claim_pairs", n=found.pairs))
    if judged.doubt is not None:
        segments.append(_doubt(judged.doubt, judged, language))
    return f"{NO_BREAK_SPACE}· ".join(segments)


def found_rows(judged: Judgement, language: Language) -> list[Row]:
    """The details of a comparison: both quantities, what was asked of them, and how sure the answer is."""
    rows: list[Row] = []
    for part, name in zip(judged.parts, _names(judged), strict=False):
        rows += result_rows(part, language, name)
    claim, found = judged.claim, judged.found
    if claim.relation == "equal":
        rows.append(("tolerance", "text", f"±{language.percent(claim.tolerance)}"))
    elif claim.ratio != 1:
        rows.append(("smallest", "text", f"{language.number(claim.ratio)}{language.text('times')}"))
    if found.p is not None:
        rows.append(("chance", "text", language.number(found.p)))
    if found.same is not None:
        rows.append(("same", "text", _interval(found.same, language)))
    return rows


def _names(judged: Judgement) -> list[str]:
    sides = (judged.claim.a, judged.claim.b)
    return [str(side) for side in sides if not isinstance(side, Constant)]


def _measured(judged: Judgement, language: Language) -> str:
    """What was measured, and what it is compared with."""
    claim, first = judged.claim, judged.parts[0]
    if isinstance(claim.b, Constant):
        unit = claim.b.unit or first.unit
        said = language.quantity(claim.b.value * claim.times, unit, claim.b.unit).text
        return language.text(f"claim_limit_{claim.relation}", first=_value(first, language), second=said)
    return language.text(
        "claim_against", first=_value(first, language), second=_value(judged.parts[1], language)
    )


def _value(part: Measurement, language: Language) -> str:
    assert part.value is not None
    return language.flag(bool(part.value)) if part.flag else language.quantity(part.value, part.unit).text


def _is_telling(judged: Judgement) -> bool:
    """Whether the ratio says more than the two numbers, as it does not beside a bound that was only named."""
    return judged.claim.relation == "equal" or not isinstance(judged.claim.b, Constant)


def _interval(interval: Interval, language: Language) -> str:
    lower, upper = (language.number(end) for end in interval)
    return f"{lower}–{upper}"


def _doubt(doubt: Doubt, judged: Judgement, language: Language) -> str:
    if doubt == "unsteady" and judged.found.same is not None:
        return language.text("doubt_unsteady", interval=_interval(judged.found.same, language))
    if doubt == "small":
        ratio = f"{language.number(judged.claim.ratio)}{language.text('times')}"
        return language.text("doubt_small", ratio=ratio)
    keys: dict[Doubt, str] = {
        "few pairs": "doubt_few_pairs",
        "two campaigns": "doubt_two_campaigns",
        "shared": "shared",
        "signs": "doubt_signs",
        "open": "doubt_open",
    }
    return language.text(keys[doubt])
