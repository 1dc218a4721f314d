"""The `claim` fence: a sentence with the verdict of the records on it, its numbers and who said so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from markdown import Markdown

from benchbook.content.claims import (
    Claim,
    ClaimSource,
    Constant,
    Outcome,
    claim_anchor,
    claim_parts,
)
from benchbook.content.cleaning import clean
from benchbook.content.references import UnresolvedError
from benchbook.content.units import Unit, shared_unit, unit_beside
from benchbook.languages.formatting import NO_BREAK_SPACE
from benchbook.languages.language import Language
from benchbook.languages.markup import finish
from benchbook.query.judging import PLAIN, Judgement, claims_of, judgements
from benchbook.query.library import Cache, Library, Machine
from benchbook.query.measurements import Measurement
from benchbook.rendering.context import Build, Rendering
from benchbook.rendering.provenance import (
    Row,
    details_element,
    machine_short,
    render_details,
    render_rows,
    repeats_text,
    result_rows,
)
from benchbook.statistics.comparison import Doubt

# An outcome as readers are told it: what runs that are too few show may be anything but close.
Verdict = Outcome | Literal["too few runs"]
VERDICTS: tuple[Verdict, ...] = (
    *("holds", "refuted", "too close to call", "too few runs"),
    *("not applicable", "not measured"),
)

# The interface strings of a verdict: as a word, and with the machine.
_WORDS: dict[Verdict, tuple[str, str]] = {
    "holds": ("verdict_holds", "claim_holds"),
    "refuted": ("verdict_refuted", "claim_refuted"),
    "too close to call": ("verdict_too_close", "claim_too_close"),
    "too few runs": ("verdict_too_few", "claim_too_few"),
    "not applicable": ("not_applicable", "claim_not_applicable"),
    "not measured": ("not_measured", "claim_not_measured"),
}


def verdict_of(judged: Judgement | None) -> Verdict:
    """What readers are told of a judgement; of none, that nothing was measured."""
    if judged is None:
        return "not measured"
    return "too few runs" if judged.doubt == "few pairs" else judged.outcome


def verdict_word(verdict: Verdict, language: Language) -> str:
    """The word for a verdict."""
    return language.text(_WORDS[verdict][0])


def verdict_line(judged: Judgement, language: Language) -> str:
    """The verdict on one machine: "Refuted on the H200"."""
    return language.text(_WORDS[verdict_of(judged)][1], machine=machine_short(judged.machine, language))


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
        pairs = "claim_seeds" if any(part.seeds for part in judged.parts) else "claim_pairs"
        segments.append(language.text(pairs, n=found.pairs))
    if judged.doubt is not None:
        segments.append(_doubt(judged.doubt, judged, language))
    if judged.set_after:
        segments.append(language.text("claim_set_after"))
    return f"{NO_BREAK_SPACE}· ".join(segments)


def found_rows(judged: Judgement, language: Language) -> list[Row]:
    """The details of a comparison: both quantities, what was asked of them, and how sure the answer is."""
    rows: list[Row] = []
    for part, name in zip(judged.parts, _names(judged), strict=False):
        rows += result_rows(part, language, name, _shared(judged))
    claim, found = judged.claim, judged.found
    if claim.relation == "equal":
        rows.append(("tolerance", "text", f"±{language.percent(judged.tolerance)}"))
    elif claim.ratio != 1:
        rows.append(("smallest", "text", language.ratio(claim.ratio)))
    if found.p is not None:
        # A claim of a multiple is held against that multiple, and not against no difference.
        against = "chance" if judged.claim.times == 1 else "chance_of_multiple"
        rows.append((against, "text", language.number(found.p)))
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
        compared = language.text(f"claim_limit_{claim.relation}", first=first, second=said)
        # A number without a unit does not say what it counts, or what it is a share of.
        name = language.label(claim.a.name, claim.a.script) if unit.dimension in PLAIN else None
        return language.isolated(name) + language.text("colon") + compared if name else compared
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
        return language.text("doubt_unsteady", ratio=language.ratio(judged.found.noise))
    if doubt == "open" and judged.claim.relation == "equal":
        return language.text("doubt_open_equal", share=language.percent(judged.tolerance))
    if doubt == "open" and judged.claim.ratio != 1:
        return language.text("doubt_open_from", ratio=language.ratio(judged.claim.ratio))
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


# The page that counts every claim.
LIST = "claims.md"
SIGNS: dict[Verdict, str] = {
    "holds": "✓",
    "refuted": "✗",
    "too close to call": "≈",
    "too few runs": "≈",
    "not applicable": "∅",
    "not measured": "—",
}

# By claim, machine and language.
_FACTS = Cache[tuple[str, str, str], str]("details of claims")
_FINDINGS = Cache[tuple[str, str, str], str]("numbers of claims")


@dataclass(frozen=True)
class Words:
    """What a page says of a claim.

    Parameters:
        sentence: The sentence, as HTML.
        why: Why it is so, as HTML.
        place: The address of the page that says why, if that is another: in a list of claims.
        hidden: Whether the list has it for other machines than the one shown at first.
    """

    sentence: str
    why: str = ""
    place: str = ""
    hidden: bool = False


def resolve_claim(library: Library, text: str, options: Mapping[str, str]) -> Claim:
    """The claim that a fence shows.

    Raises:
        UnresolvedError: It names none, has an option it may not have, or says nothing.
        BenchbookError: The claim names something that is not there.
    """
    for name in options:
        if name != "id":
            raise UnresolvedError(f"a claim has no option `{name}`", 'name it alone: ```claim id="..."```')
    if "id" not in options:
        raise UnresolvedError("the claim has no id", 'write ```claim id="..."```')
    claim = claims_of(library).named(options["id"])
    if not text.strip():
        raise UnresolvedError(f"the claim `{claim.id}` says nothing", "write its sentence into the fence")
    judgements(library, claim)
    return claim


def listed_on(claim: Claim, pages: Sequence[str]) -> str:
    """Which of `pages`, all of which say a claim, has it in its list: that of its guide, if it is there."""
    own = f"{claim.guide}.md"
    return own if own in pages else pages[0]


def claim_list_page(page: str) -> str:
    """The page that lists the claims of `page`, both as files within a language."""
    return f"claims/{page}"


def render_claim(build: Build, text: str, options: Mapping[str, str], markdown: Markdown) -> str:
    """The HTML of a `claim` fence whose body is `text`, by `markdown`; raises as `resolve_claim`."""
    claim = resolve_claim(build.library, text, options)
    show_once(build, claim)
    sentence, why = (words_html(build, part, markdown, build.here.language) for part in claim_parts(text))
    return claim_block(build, claim, Words(sentence, why))


def show_once(build: Build, claim: Claim) -> None:
    """Note that the current page shows a claim, or raise UnresolvedError if it does already."""
    if claim.id in build.here.claims:
        raise UnresolvedError(
            f"the claim `{claim.id}` is there twice", f"link to `#{claim_anchor(claim.id)}`"
        )
    build.here.claims.add(claim.id)


def claim_mark(build: Build, claim: Claim, sentence: str, machine: Machine) -> str:
    """The HTML of a claim as a sign beside its row: the verdict, and a link to all that is behind it.

    Parameters:
        build: Whose current page shows it.
        claim: The claim.
        sentence: The page's.
        machine: Whose verdict to show, if it has one.
    """
    library, page = build.library, build.here
    known = [one for one in judgements(library, claim) if one.parts]
    own = [one for one in known if one.machine == machine]
    shown = own[0] if own else _first(library, page.guide, claim, known)
    outcome = verdict_of(shown)
    verdict = verdict_line(shown, page.language) if shown else page.language.text("claim_nowhere")
    # In a mark, code is words among words.
    plain = sentence.replace("`", "")
    words = page.language.words(plain)
    # Beside numbers of another machine, the sign says whose it is.
    whose = f" {escape(machine_short(shown.machine, page.language))}" if shown and not own else ""
    inside = (
        f'<span class="bb-sign" aria-hidden="true">{SIGNS[outcome]}{whose}</span>'
        f'<span class="bb-word">{words} <span class="bb-outcome">{escape(verdict)}</span></span>'
    )
    for guide in (claim.guide, page.guide):
        try:
            place = page.address(f"/{claim_list_page(f'{guide}.md')}#{claim_anchor(claim.id)}")
        except UnresolvedError:
            continue  # a site without lists of claims has nowhere to lead
        inside = f'<a href="{escape(place)}">{inside}</a>'
        break
    return (
        f'<span class="bb-mark" id="{claim_anchor(claim.id)}" title="{escape(plain)}" '
        f'data-machine="{escape(shown.machine.name if shown else "")}" data-outcome="{escape(outcome)}">'
        f"{inside}</span>"
    )


def words_html(build: Build, text: str, markdown: Markdown, language: Language) -> str:
    """The HTML of words of a page in `language`, finished as the site finishes what stands in no fence."""
    html = markdown.reset().convert(text)
    build.refuse_unsafe(html)
    return finish(
        clean(html), right_to_left=language.direction == "rtl", permalink=language.text("permalink")
    )


def claim_block(build: Build, claim: Claim, words: Words) -> str:
    """The HTML of a claim.

    Parameters:
        build: Whose current page shows it.
        claim: The claim.
        words: What the page says of it.
    """
    library, page = build.library, build.here
    told = _told(library, claim)
    known = _known(told)
    shown = _first(library, page.guide, claim, known)
    for one in known:
        page.machines[one.machine.name] = one.machine
        if one.parts:
            build.keep("facts", claim_anchor(claim.id), one.machine, _facts(library, one, page.language))
        if one != shown:
            build.keep_block(claim_anchor(claim.id), one.machine, _rendering(build, claim, one, told, words))
    if shown is None:
        verdict = _verdict(claim, "not measured", page.language.text("claim_nowhere"), page.language, words)
        parts = {"verdict": verdict, "finding": "", "others": "", "origin": ""}
        return _whole(claim, words, "", "not measured", parts, page.language)
    rendering = _rendering(build, claim, shown, told, words)
    return _whole(claim, words, shown.machine.name, verdict_of(shown), rendering.parts, page.language)


def _facts(library: Library, judged: Judgement, language: Language) -> str:
    """The details of a comparison, made once for the pages and lists that show the claim."""
    key = (judged.claim.id, judged.machine.name, language.code)
    return library.once(_FACTS, key, lambda: render_rows(found_rows(judged, language), language))


def listed_judgement(build: Build, claim: Claim, machine: str = "") -> Judgement | None:
    """What a list of claims on the current page shows of `machine`, or by default.

    Of a machine that has nothing to say of the claim, it is the default, which names whose it is.
    """
    known = _known(_told(build.library, claim))
    own = [one for one in known if one.machine.name == machine]
    return own[0] if own else _first(build.library, build.here.guide, claim, known)


def _told(library: Library, claim: Claim) -> list[Judgement]:
    """What the machines say that a reader may ask of a claim, if only that they have not measured it."""
    return [one for one in judgements(library, claim) if one.parts or _has_guide(library, claim, one.machine)]


def _known(told: Sequence[Judgement]) -> list[Judgement]:
    """Those of them that answer."""
    return [one for one in told if one.parts or one.outcome == "not applicable"]


def _has_guide(library: Library, claim: Claim, machine: Machine) -> bool:
    """Whether `machine` has records of the claim's guide, so that its reader may ask what it says."""
    return (library.project.records / machine.name / claim.guide).is_dir()


def _first(library: Library, guide: str, claim: Claim, known: Sequence[Judgement]) -> Judgement | None:
    """The judgement to show by default: that of the reference machine if it has one, else of another."""
    wanted = (library.reference_machine(guide), library.reference_machine(claim.guide))
    by_name = {one.machine.name: one for one in known}
    return next((by_name[name] for name in (*wanted, *by_name) if name in by_name), None)


def _others(shown: Judgement, told: Sequence[Judgement], language: Language) -> str:
    """What the records of other machines say, those of one verdict together."""
    groups = []
    for verdict in VERDICTS:
        names = [
            machine_short(one.machine, language)
            for one in told
            if verdict_of(one) == verdict and one != shown
        ]
        if names:
            machines = language.text("comma").join(language.isolated(name) for name in names)
            groups.append(f"{machines}{language.text('colon')}{verdict_word(verdict, language)}")
    return f"{NO_BREAK_SPACE}· ".join(groups)


def _rendering(
    build: Build, claim: Claim, judged: Judgement, told: Sequence[Judgement], words: Words
) -> Rendering:
    """What a judgement changes in the block of a claim."""
    language = build.here.language
    details = ""
    if judged.parts:
        origin = build.keep_origin([part.source for part in judged.parts])
        details = render_details(*origin, repeats_text(judged.parts, language), language)
    parts = {
        "verdict": _verdict(claim, verdict_of(judged), verdict_line(judged, language), language, words),
        "finding": _finding(build.library, judged, language),
        "others": escape(_others(judged, told, language)),
        "origin": details,
    }
    return Rendering(parts, {"data-outcome": verdict_of(judged)})


def _finding(library: Library, judged: Judgement, language: Language) -> str:
    """The HTML of the numbers behind a verdict, made once for the pages and lists that show the claim."""
    key = (judged.claim.id, judged.machine.name, language.code)
    return library.once(_FINDINGS, key, lambda: escape(finding(judged, language)))


def _verdict(claim: Claim, outcome: Verdict, text: str, language: Language, words: Words) -> str:
    """The HTML of a verdict, with a link to the claim where it stands here and not in a list."""
    name = escape(language.text("permalink"))
    permalink = f'<a class="headerlink" href="#{claim_anchor(claim.id)}" aria-label="{name}">#</a>'
    return (
        f'<span class="bb-sign" aria-hidden="true">{SIGNS[outcome]}</span> <span class="bb-said">'
        f'<strong class="bb-outcome">{escape(text)}</strong>{"" if words.place else permalink}</span>'
    )


def _quoted(source: ClaimSource, language: Language) -> str:
    """The HTML of the words of a source, which are English, with their date."""
    if not source.quote:
        return ""
    words = f'<q lang="en" dir="ltr">{escape(source.quote)}</q>'
    return f' <span class="bb-quote">{words} ({escape(language.date(source.date))})</span>'


def _whole(
    claim: Claim,
    words: Words,
    machine: str,
    outcome: Verdict,
    parts: Mapping[str, str],
    language: Language,
) -> str:
    source = away = ""
    if claim.source is not None:
        title = f'<a href="{escape(claim.source.url)}"><bdi lang="en">{escape(claim.source.title)}</bdi></a>'
        said_by = escape(language.text("said_by") + language.text("colon"))
        source = f'<p class="bb-by">{said_by}{title}{_quoted(claim.source, language)}</p>'
    if words.place:
        away = (
            f'<p class="bb-by"><a href="{escape(words.place)}">{escape(language.text("claim_place"))}</a></p>'
        )
    why = f'<div class="bb-why">{words.why}</div>' if words.why else ""
    key = claim_anchor(claim.id)
    return (
        f'<div class="bb-claim" id="{key}" data-bb="{key}"{" hidden" if words.hidden else ""} '
        f'data-machine="{escape(machine)}" data-outcome="{escape(outcome)}">'
        f'<p class="bb-verdict" data-part="verdict">{parts["verdict"]}</p>'
        f'<div class="bb-sentence">{words.sentence}</div>'
        f'<p class="bb-finding" data-part="finding">{parts["finding"]}</p>{why}{source}'
        f'<p class="bb-others" data-part="others">{parts["others"]}</p>{away}'
        f"{details_element(parts['origin'])}</div>"
    )
