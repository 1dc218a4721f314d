"""The `claims` fence: every claim of the handbook, by guide, with its verdict and the page that says why."""

from __future__ import annotations

from html import escape

from markdown import Markdown

from benchbook.claims.comparison import OUTCOMES
from benchbook.claims.declaration import claim_anchor
from benchbook.claims.judging import claims_of
from benchbook.pages.claim_words import outcome_word
from benchbook.pages.claims import Words, claim_block, split
from benchbook.pages.context import Build
from benchbook.pages.languages import FALLBACK, Language
from benchbook.problems import BenchbookError
from benchbook.project import Project


def render_claims(build: Build, markdown: Markdown) -> str:
    """The HTML of a `claims` fence; `markdown` makes HTML of the sentences.

    Raises:
        BenchbookError: The declarations of the claims are not in order.
    """
    claims, language = claims_of(build.library), build.here.language
    if claims.problems:
        raise BenchbookError(*claims.problems)
    project = build.library.project
    said = {
        **build.library.once(("sentences", FALLBACK), lambda: sentences(project, FALLBACK)),
        **build.library.once(("sentences", language.code), lambda: sentences(project, language.code)),
    }
    parts, guide = [_filter(language)], ""
    for claim in claims.by_id.values():
        # One that stands on no page has no sentence; `benchbook check` says so.
        if claim.id not in said:
            continue
        page, title, sentence = said[claim.id]
        if page != guide:
            guide = page
            address = escape(build.here.address(page))
            parts.append(f'<h2 class="bb-guide"><a href="{address}">{language.words(title)}</a></h2>')
        place = build.here.address(f"{page}#{claim_anchor(claim.id)}")
        parts.append(claim_block(build, claim, Words(markdown.reset().convert(sentence)), place))
    none = escape(language.text("claims_none"))
    return (
        f'<div class="bb-claims">{"".join(parts)}<p class="bb-no-claim" role="status" hidden>{none}</p></div>'
    )


def sentences(project: Project, language: str) -> dict[str, tuple[str, str, str]]:
    """By claim: the page of `language` on which it first stands, that page's title, its sentence there."""
    # Loads a second Markdown parser, which only the page that lists all claims needs.
    from benchbook.page_source import CLAIM, fence_name, fence_options, parse_page

    found: dict[str, tuple[str, str, str]] = {}
    folder = project.docs / language
    for path in sorted(folder.glob("**/*.md")):
        page = parse_page(path.read_text("utf-8"))
        title = next((heading.text for heading in page.headings()), path.stem)
        name = path.relative_to(folder).as_posix()
        for token in page.tokens:
            if fence_name(token) == CLAIM:
                sentence, _ = split(token.content)
                found.setdefault(fence_options(token).get("id", ""), (name, title, sentence))
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
