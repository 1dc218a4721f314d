"""The `claim` fence: a sentence with the verdict of the records on it, its numbers and who said so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markdown import Markdown

from benchbook.claims.comparison import OUTCOMES, Outcome
from benchbook.claims.declaration import Claim, claim_anchor
from benchbook.claims.judging import Judgement, claims_of, judge, judging_machines
from benchbook.pages.claim_words import finding, found_rows, outcome_line, outcome_word
from benchbook.pages.context import Build
from benchbook.pages.languages import Language
from benchbook.pages.library import Library, Machine
from benchbook.pages.machine_names import machine_short
from benchbook.pages.markup import finish
from benchbook.pages.provenance import render_details, repeats_text
from benchbook.pages.quantities import NO_BREAK_SPACE
from benchbook.pages.references import UnresolvedError

# The page that lists every claim.
LIST = "claims.md"
SIGNS: dict[Outcome, str] = {"holds": "✓", "refuted": "✗", "too close to call": "≈", "not measured": "—"}


@dataclass(frozen=True)
class Words:
    """What a page says of a claim, as HTML: the sentence, and why it is so."""

    sentence: str
    why: str = ""


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
    for machine in judging_machines(library):
        judge(library, claim, machine)
    return claim


def split(text: str) -> tuple[str, str]:
    """The sentence of a claim, its first paragraph, and what is said below it."""
    sentence, _, why = text.strip().partition("\n\n")
    return sentence, why.strip()


def render_claim(build: Build, text: str, options: Mapping[str, str], markdown: Markdown) -> str:
    """The HTML of a `claim` fence whose body is `text`, by `markdown`; raises as `resolve_claim`."""
    claim = resolve_claim(build.library, text, options)
    _show_once(build, claim)
    sentence, why = (words_html(part, markdown, build.here.language) for part in split(text))
    return claim_block(build, claim, Words(sentence, why))


def _show_once(build: Build, claim: Claim) -> None:
    """Note that the current page shows a claim, or raise UnresolvedError if it does already."""
    if claim.id in build.here.claims:
        raise UnresolvedError(
            f"the claim `{claim.id}` is there twice", f"link to `#{claim_anchor(claim.id)}`"
        )
    build.here.claims.add(claim.id)


def claim_mark(build: Build, claim: Claim, sentence: str) -> str:
    """The HTML of a claim as a sign beside its row: the verdict, and a link to all that is behind it.

    Raises:
        UnresolvedError: The page shows the claim already.
    """
    library, page = build.library, build.here
    _show_once(build, claim)
    known = [one for machine in judging_machines(library) if (one := judge(library, claim, machine)).parts]
    shown = _first(library, page.guide, claim, known)
    key = f"mark-{claim.id}"
    for one in known:
        if one != shown:
            tree = {"outcome": one.outcome, "verdict": outcome_line(one, page.language)}
            build.keep("blocks", key, one.machine, tree)
    outcome: Outcome = shown.outcome if shown else "not measured"
    verdict = outcome_line(shown, page.language) if shown else page.language.text("claim_nowhere")
    words = page.language.words(sentence)
    inside = (
        f'<span class="bb-sign" aria-hidden="true">{SIGNS[outcome]}</span>'
        f'<span class="bb-word">{words} <span class="bb-outcome">{escape(verdict)}</span></span>'
    )
    try:
        place = page.address(f"{LIST}#{claim_anchor(claim.id)}")
        inside = f'<a href="{escape(place)}">{inside}</a>'
    except UnresolvedError:
        pass  # a site without a list of claims has nowhere to lead
    return (
        f'<span class="bb-mark" id="{claim_anchor(claim.id)}" data-bb="{escape(key)}" title="{words}" '
        f'data-machine="{escape(shown.machine.name if shown else "")}" data-outcome="{escape(outcome)}">'
        f"{inside}</span>"
    )


def words_html(text: str, markdown: Markdown, language: Language) -> str:
    """The HTML of words of a page in `language`, finished as the site finishes what stands in no fence."""
    html = markdown.reset().convert(text)
    return finish(html, right_to_left=language.direction == "rtl", permalink=language.text("permalink"))


def claim_block(build: Build, claim: Claim, words: Words, place: str = "") -> str:
    """The HTML of a claim.

    Parameters:
        build: Whose current page shows it.
        claim: The claim.
        words: What the page says of it.
        place: The address of the page that says why, if that is another: the list of claims.
    """
    library, page = build.library, build.here
    judged = [judge(library, claim, machine) for machine in judging_machines(library)]
    told = [one for one in judged if one.parts or _has_guide(library, claim, one.machine)]
    # In the list, a reader looks for what one machine says; elsewhere, for what any machine does.
    known = judged if place else [one for one in judged if one.parts]
    shown = _first(library, page.guide, claim, known)
    key = claim_anchor(claim.id)
    for one in known:
        page.machines[one.machine.name] = one.machine
        if one.parts:
            build.keep("facts", key, one.machine, found_rows(one, page.language))
        if one != shown:
            build.keep("blocks", key, one.machine, _tree(build, one, told))
    if shown is None:
        texts = (page.language.text("claim_nowhere"), "", "")
        return _whole(
            claim, key, "not measured", "", _body(claim, words, "not measured", texts, page.language)
        )
    texts = _texts(shown, told, page.language)
    body = _body(claim, words, shown.outcome, texts, page.language, place)
    if shown.parts:
        origin = build.keep_origin([part.source for part in shown.parts])
        repeats = repeats_text(shown.parts, page.language)
        body += render_details(*origin, repeats, page.language, page.root)
    return _whole(claim, key, shown.outcome, shown.machine.name, body)


def listed_outcome(build: Build, claim: Claim) -> Outcome:
    """The verdict that the list of claims on the current page shows by default."""
    judged = [judge(build.library, claim, machine) for machine in judging_machines(build.library)]
    shown = _first(build.library, build.here.guide, claim, judged)
    return shown.outcome if shown else "not measured"


def _has_guide(library: Library, claim: Claim, machine: Machine) -> bool:
    """Whether `machine` has records of the claim's guide, so that its reader may ask what it says."""
    return (library.project.records / machine.name / claim.guide).is_dir()


def _first(library: Library, guide: str, claim: Claim, known: Sequence[Judgement]) -> Judgement | None:
    """The judgement to show by default: that of the reference machine if it has one, else of another."""
    wanted = (library.reference_machine(guide), library.reference_machine(claim.guide))
    by_name = {one.machine.name: one for one in known}
    return next((by_name[name] for name in (*wanted, *by_name) if name in by_name), None)


def _texts(judged: Judgement, told: Sequence[Judgement], language: Language) -> tuple[str, str, str]:
    """The verdict, the numbers behind it, and the verdicts elsewhere, as plain text."""
    others = _others(judged, told, language)
    return outcome_line(judged, language), finding(judged, language), others


def _others(shown: Judgement, told: Sequence[Judgement], language: Language) -> str:
    """What the records of other machines say, those of one verdict together."""
    groups = []
    for outcome in OUTCOMES:
        names = [
            machine_short(one.machine, language) for one in told if one.outcome == outcome and one != shown
        ]
        if names:
            machines = language.text("comma").join(language.isolated(name) for name in names)
            groups.append(f"{machines}{language.text('colon')}{outcome_word(outcome, language)}")
    return f"{NO_BREAK_SPACE}· ".join(groups)


def _tree(build: Build, judged: Judgement, told: Sequence[Judgement]) -> dict[str, Any]:
    """What another machine changes in the block."""
    language = build.here.language
    verdict, numbers, others = _texts(judged, told, language)
    tree = {"outcome": judged.outcome, "verdict": verdict, "finding": numbers, "others": others}
    if judged.parts:
        tree["origin"], _ = build.keep_origin([part.source for part in judged.parts])
        tree["repeats"] = repeats_text(judged.parts, language)
    return tree


def _body(
    claim: Claim,
    words: Words,
    outcome: Outcome,
    texts: tuple[str, str, str],
    language: Language,
    place: str = "",
) -> str:
    verdict, numbers, others = texts
    colon = language.text("colon")
    source, away, permalink = "", "", ""
    if claim.source is not None:
        title = f'<a href="{escape(claim.source.url)}"><bdi lang="en">{escape(claim.source.title)}</bdi></a>'
        source = f'<p class="bb-by">{escape(language.text("said_by") + colon)}{title}</p>'
    if place:
        away = f'<p class="bb-by"><a href="{escape(place)}">{escape(language.text("claim_place"))}</a></p>'
    else:
        name = escape(language.text("permalink"))
        permalink = f'<a class="headerlink" href="#{claim_anchor(claim.id)}" aria-label="{name}">#</a>'
    why = f'<div class="bb-why">{words.why}</div>' if words.why else ""
    return (
        f'<p class="bb-verdict"><span class="bb-sign" aria-hidden="true">{SIGNS[outcome]}</span> '
        f'<span class="bb-said"><strong class="bb-outcome">{escape(verdict)}</strong>{permalink}</span></p>'
        f'<div class="bb-sentence">{words.sentence}</div>'
        f"{_paragraph('finding', numbers)}{why}{source}{_paragraph('others', others)}{away}"
    )


def _paragraph(name: str, text: str) -> str:
    hidden = "" if text else " hidden"
    return f'<p class="bb-{name}"{hidden}>{escape(text)}</p>'


def _whole(claim: Claim, key: str, outcome: Outcome, machine: str, body: str) -> str:
    return (
        f'<div class="bb-claim" id="{claim_anchor(claim.id)}" data-bb="{escape(key)}" '
        f'data-machine="{escape(machine)}" data-outcome="{escape(outcome)}">{body}</div>'
    )
