"""The `claims` fence: every claim of the handbook, by guide, with its verdict and the page that says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from markdown import Markdown

from benchbook.claims.comparison import OUTCOMES, Outcome
from benchbook.claims.declaration import Claim, claim_anchor
from benchbook.claims.judging import claims_of
from benchbook.pages.claim_words import outcome_word
from benchbook.pages.claims import SIGNS, Words, claim_block, listed_outcome, split, words_html
from benchbook.pages.context import Build
from benchbook.pages.languages import FALLBACK, Language
from benchbook.pages.library import Library
from benchbook.problems import BenchbookError
from benchbook.project import Project

# In which order the claims of a page are listed, by the verdict: what contradicts a reader stands first.
_FIRST: tuple[Outcome, ...] = ("refuted", "too close to call", "holds", "not measured")


@dataclass(frozen=True)
class Said:
    """What a page says of a claim: its file within a language, its title, the sentence, that language."""

    page: str
    title: str
    sentence: str
    language: str


def render_claims(build: Build, markdown: Markdown) -> str:
    """The HTML of a `claims` fence; `markdown` makes HTML of the sentences.

    Raises:
        BenchbookError: The declarations of the claims are not in order.
    """
    claims, language = claims_of(build.library), build.here.language
    if claims.problems:
        raise BenchbookError(*claims.problems)
    said = {code: _sentences(build.library, code) for code in dict.fromkeys((language.code, FALLBACK))}
    by_page: dict[str, list[tuple[Claim, Said]]] = {}
    for claim in claims.by_id.values():
        # One that stands on no page has no sentence; `benchbook check` says so.
        places = next((found[claim.id] for found in said.values() if claim.id in found), [])
        if places:
            own = next((one for one in places if one.page == f"{claim.guide}.md"), places[0])
            by_page.setdefault(own.page, []).append((claim, own))
    outcomes = {claim.id: listed_outcome(build, claim) for found in by_page.values() for claim, _ in found}
    listed = "".join(_listed(build, page, found, outcomes, markdown) for page, found in by_page.items())
    counts = _counts(list(outcomes.values()), language)
    none = escape(language.text("claims_none"))
    return (
        f'<div class="bb-claims">{counts}{_filter(language)}{listed}'
        f'<p class="bb-no-claim" role="status" hidden>{none}</p></div>'
    )


def _counts(outcomes: Sequence[Outcome], language: Language) -> str:
    """How many claims have each verdict."""
    colon = language.text("colon")
    counted = ((outcome, outcomes.count(outcome)) for outcome in OUTCOMES)
    texts = (
        f'<span class="bb-count" data-outcome="{outcome}"{"" if count else " hidden"}>'
        f'<span class="bb-sign" aria-hidden="true">{SIGNS[outcome]}</span> '
        f"<bdi>{escape(outcome_word(outcome, language) + colon)}<data>{count}</data></bdi></span>"
        for outcome, count in counted
    )
    return f'<p class="bb-counts" data-pagefind-ignore>{" ".join(texts)}</p>'


def _listed(
    build: Build,
    page: str,
    found: Sequence[tuple[Claim, Said]],
    outcomes: Mapping[str, Outcome],
    markdown: Markdown,
) -> str:
    """The claims of one page, below its title and how many have which verdict, refuted ones first."""
    language = build.here.language
    title = _in_its_language(language.words(found[0][1].title), found[0][1], language, "span")
    parts = [f'<h2 class="bb-guide"><a href="{escape(build.here.address(page))}">{title}</a></h2>']
    parts.append(_counts([outcomes[claim.id] for claim, _ in found], language))
    for claim, said in sorted(found, key=lambda one: _FIRST.index(outcomes[one[0].id])):
        sentence = _in_its_language(words_html(said.sentence, markdown, language), said, language, "div")
        place = build.here.address(f"{page}#{claim_anchor(claim.id)}")
        parts.append(claim_block(build, claim, Words(sentence), place))
    return "".join(parts)


def _in_its_language(html: str, said: Said, language: Language, element: str) -> str:
    """`html`, marked as another language's where the page is not translated, to readers and the search."""
    if said.language == language.code:
        return html
    return f'<{element} lang="{said.language}" dir="ltr" data-pagefind-ignore>{html}</{element}>'


def _sentences(library: Library, language: str) -> dict[str, list[Said]]:
    """What the pages of `language` say of each claim, by its id."""
    return library.once(("sentences", language), lambda: _read_sentences(library.project, language))


def _read_sentences(project: Project, language: str) -> dict[str, list[Said]]:
    # Loads a second Markdown parser, which only the page that lists all claims needs.
    from benchbook.page_source import claim_sentences, parse_page

    found: dict[str, list[Said]] = {}
    folder = project.docs / language
    for path in sorted(folder.glob("**/*.md")):
        page = parse_page(path.read_text("utf-8"))
        title = next((heading.text for heading in page.headings()), path.stem)
        name = path.relative_to(folder).as_posix()
        for _, claim, text in claim_sentences(page):
            sentence, _ = split(text)
            found.setdefault(claim, []).append(Said(name, title, sentence, language))
    return found


def _filter(language: Language) -> str:
    """The choice of a verdict, which only a script can act on."""
    words = {"": language.text("verdict_any")}
    words |= {outcome: outcome_word(outcome, language) for outcome in OUTCOMES}
    options = "".join(f'<option value="{name}">{escape(word)}</option>' for name, word in words.items())
    label = escape(language.text("verdict"))
    return (
        f'<p class="bb-live bb-filter" data-pagefind-ignore><label for="bb-outcome">{label}</label> '
        f'<select id="bb-outcome" dir="auto" autocomplete="off">{options}</select></p>'
    )
