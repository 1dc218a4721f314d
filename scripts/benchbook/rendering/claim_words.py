"""What a judgement on a claim is called in a language: the verdict, the numbers behind it, why it is open."""

from __future__ import annotations

from benchbook.content.claims import Claim, Constant, Outcome
from benchbook.content.conversion import shared_unit, unit_beside
from benchbook.content.units import Unit
from benchbook.languages.formatting import NO_BREAK_SPACE
from benchbook.languages.language import Language
from benchbook.query.judging import Judgement
from benchbook.query.measurements import Measurement
from benchbook.rendering.machine_names import machine_short
from benchbook.rendering.provenance import Row, result_rows
from benchbook.statistics.comparison import Doubt

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
        ratio = language.ratio(found.ratio)
        segments.append(
            language.isolated(ratio)
            if found.interval is None
            else language.text(
                "claim_interval", ratio=ratio, interval=language.ratio_range(*found.interval, found.ratio)
            )
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
        rows += result_rows(part, language, name, _shared(judged))
    claim, found = judged.claim, judged.found
    if claim.relation == "equal":
        rows.append(("tolerance", "text", f"±{language.percent(claim.tolerance)}"))
    elif claim.ratio != 1:
        rows.append(("smallest", "text", language.ratio(claim.ratio)))
    if found.p is not None:
        rows.append(("chance", "text", language.number(found.p)))
    if found.same is not None:
        rows.append(("same", "text", language.ratio_range(*found.same, 1)))
    return rows


def _names(judged: Judgement) -> list[str]:
    sides = (judged.claim.a, judged.claim.b)
    return [str(side) for side in sides if not isinstance(side, Constant)]


def _measured(judged: Judgement, language: Language) -> str:
    """What was measured, and what it is compared with."""
    claim, shared = judged.claim, _shared(judged)
    first, *others = (_value(part, shared, language) for part in judged.parts)
    if isinstance(claim.b, Constant):
        value, unit = _bound(claim, claim.b, judged.parts[0])
        said = language.quantity(value, unit, unit_beside(value, unit, shared)).text
        return language.text(f"claim_limit_{claim.relation}", first=first, second=said)
    return language.text("claim_against", first=first, second=others[0])


def _shared(judged: Judgement) -> Unit:
    """The unit of both sides: that which the claim names, else one that suits both."""
    claim = judged.claim
    if isinstance(claim.b, Constant):
        return claim.b.unit or shared_unit(
            [_amount(judged.parts[0]), _bound(claim, claim.b, judged.parts[0])]
        )
    return shared_unit([_amount(part) for part in judged.parts])


def _bound(claim: Claim, constant: Constant, part: Measurement) -> tuple[float, Unit]:
    """The number that `part` is compared with, and its unit."""
    return constant.value * claim.times, constant.unit or part.unit


def _amount(part: Measurement) -> tuple[float, Unit]:
    assert part.value is not None
    return part.value, part.unit


def _value(part: Measurement, shared: Unit, language: Language) -> str:
    value, unit = _amount(part)
    if part.flag:
        return language.flag(bool(value))
    return language.quantity(value, unit, unit_beside(value, unit, shared)).text


def _is_telling(judged: Judgement) -> bool:
    """Whether the ratio says more than the two numbers, as it does not beside a bound that was only named."""
    return judged.claim.relation == "equal" or not isinstance(judged.claim.b, Constant)


def _doubt(doubt: Doubt, judged: Judgement, language: Language) -> str:
    if doubt == "unsteady" and judged.found.same is not None:
        return language.text("doubt_unsteady", interval=language.ratio_range(*judged.found.same, 1))
    if doubt == "small":
        return language.text("doubt_small", ratio=language.ratio(judged.claim.ratio))
    keys: dict[Doubt, str] = {
        "few pairs": "doubt_few_pairs",
        "two campaigns": "doubt_two_campaigns",
        "shared": "shared",
        "signs": "doubt_signs",
        "open": "doubt_open",
    }
    return language.text(keys[doubt])
