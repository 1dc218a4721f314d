"""The `claims` fence: every claim of the handbook by guide, with its verdict and the page that says why.

On the page `claims.md` it shows how many claims of each guide have which verdict, and those that any machine
refutes. All claims of a guide have a page of their own, which is made here and stands in no file: no page
grows with the number of guides.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from markdown import Markdown

from benchbook.content.claims import Claim, claim_anchor, claim_parts
from benchbook.content.problems import BenchbookError, did_you_mean
from benchbook.content.project import FALLBACK
from benchbook.content.references import UnresolvedError
from benchbook.languages.language import Language
from benchbook.languages.markup import note_html
from benchbook.query.judging import claims_of, judgements, judging_machines
from benchbook.query.library import Cache, Library
from benchbook.rendering.claims import (
    LIST,
    SIGNS,
    VERDICTS,
    Verdict,
    Words,
    claim_block,
    claim_list_page,
    listed_judgement,
    listed_on,
    verdict_of,
    verdict_word,
    words_html,
)
from benchbook.rendering.context import Build, Rendering

# In which order the claims of a page are listed, by the verdict: what contradicts a reader stands first.
_FIRST: tuple[Verdict, ...] = (
    *("refuted", "too close to call", "too few runs"),
    *("holds", "not applicable", "not measured"),
)
_SAYS_A_CLAIM = re.compile(r"(?:```|~~~) *claim |^marks:", re.MULTILINE)
_FENCE = re.compile(r"^```claims *\n(?:(\S+) *\n)?```", re.MULTILINE)
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#!|])")


@dataclass(frozen=True)
class Said:
    """What a page says of a claim: its file within a language, its title, the sentence, that language.

    Beside a row of a table it is a mark, which is plain text but for `code`.
    """

    page: str
    title: str
    sentence: str
    language: str
    is_mark: bool = False


# By language.
_BY_PAGE = Cache[str, dict[str, list[tuple[Claim, Said]]]]("claims by page")
_SENTENCES = Cache[str, dict[str, list[Said]]]("sentences of claims")


def claim_pages(library: Library, languages: Mapping[str, Language]) -> dict[str, str]:
    """The Markdown of the pages that list the claims of a guide, by their file within the docs.

    Parameters:
        library: Whose claims; one whose declarations are not in order has no such pages.
        languages: By code; one without a page `claims.md` has none.
    """
    if claims_of(library).problems:
        return {}
    pages = {}
    for code, language in languages.items():
        if not (library.project.docs / code / LIST).is_file():
            continue
        for page, found in _by_page(library, code).items():
            title = found[0][1].title
            heading = _MARKDOWN.sub(r"\\\1", " ".join(language.text("claims_of", title=title).split()))
            # Written as JSON, a text is YAML that holds this text and nothing else.
            about = json.dumps(language.text("claims_of_description", title=title), ensure_ascii=False)
            pages[f"{code}/{claim_list_page(page)}"] = (
                f"---\ndescription: {about}\n---\n\n# {heading} {{ #claims }}\n\n```claims\n{page}\n```\n"
            )
    return pages


def shown_claims(library: Library, code: str, markdown: str) -> str:
    """What other pages say of the claims that the `claims` fences of a page show, as one text.

    Parameters:
        library: Whose claims.
        code: The language of the page.
        markdown: The page.
    """
    fences = _FENCE.findall(markdown)
    if not fences:
        return ""
    by_page = _by_page(library, code)
    return repr([by_page.get(page) if page else by_page for page in fences])


def render_claims(build: Build, text: str, markdown: Markdown) -> str:
    """The HTML of a `claims` fence whose body names a page, or is empty; `markdown` makes HTML of sentences.

    Raises:
        BenchbookError: The declarations of the claims are not in order.
        UnresolvedError: It names no page that says a claim.
    """
    library, language = build.library, build.here.language
    if problems := claims_of(library).problems:
        raise BenchbookError(*problems)
    by_page = _by_page(library, language.code)
    page = _listed_page(library, text, language)
    if page:
        listed = _list_of_page(build, page, by_page[page], markdown)
    else:
        listed = _overview(build, by_page, markdown)
    none = escape(language.text("claims_none"))
    only = "" if page else ' data-only="refuted"'
    return (
        f'<div class="bb-claims"{only}>{listed}<p class="bb-no-claim" role="status" hidden>{none}</p></div>'
    )


def check_listing(library: Library, text: str, language: Language) -> None:
    """Hold a `claims` fence to the pages that it names and links to.

    Raises:
        UnresolvedError: Its body names no page that says a claim, or there is no page of all claims, without
            which none of the pages that it links to is made.
    """
    _listed_page(library, text, language)
    if not (library.project.docs / FALLBACK / LIST).is_file():
        what = f"there is no page `{LIST}`, beside which the lists of claims are made"
        fix = f"restore docs/{FALLBACK}/{LIST}, or change LIST in scripts/benchbook/rendering/claims.py"
        raise UnresolvedError(what, fix)


def check_place(page: str) -> None:
    """Hold the `claims` fences that someone wrote to one page, for each draws all claims.

    Raises:
        UnresolvedError: It stands on another page, whose file within its language is `page`.
    """
    if page != LIST:
        what = f"a list of claims stands on `{LIST}`, and on no other page that is written"
        raise UnresolvedError(what, f"link to `{LIST}`, or to the list of a guide beside it")


def _listed_page(library: Library, text: str, language: Language) -> str:
    """The page that the body of a fence names; empty for all. Raises UnresolvedError if it says no claim."""
    page, by_page = text.strip(), _by_page(library, language.code)
    if page and page not in by_page:
        raise UnresolvedError(f"no claim stands on `{page}`", did_you_mean(page, by_page, "page"))
    return page


def _by_page(library: Library, code: str) -> dict[str, list[tuple[Claim, Said]]]:
    """The claims by the page that lists them, each with what a page in the language says, or else English."""
    return library.once(_BY_PAGE, code, lambda: _read_by_page(library, code))


def _read_by_page(library: Library, code: str) -> dict[str, list[tuple[Claim, Said]]]:
    said = {one: _sentences(library, one) for one in dict.fromkeys((code, FALLBACK))}
    by_page: dict[str, list[tuple[Claim, Said]]] = {}
    for claim in claims_of(library).by_id.values():
        # One that stands on no page has no sentence; `benchbook check` says so.
        places = next((found[claim.id] for found in said.values() if claim.id in found), [])
        if places:
            name = listed_on(claim, [one.page for one in places])
            own = next(one for one in places if one.page == name)
            by_page.setdefault(name, []).append((claim, own))
    return by_page


def _overview(build: Build, by_page: Mapping[str, Sequence[tuple[Claim, Said]]], markdown: Markdown) -> str:
    """The counts of all claims, then for each guide its own and the claims that any machine refutes."""
    library, language = build.library, build.here.language

    def refuted(claim: Claim) -> bool:
        return any(one.outcome == "refuted" for one in judgements(library, claim))

    parts = [_counts(build, "counts", [claim for found in by_page.values() for claim, _ in found])]
    for page, found in by_page.items():
        address = escape(build.here.address(f"/{claim_list_page(page)}"))
        title = _in_its_language(language.words(found[0][1].title), found[0][1], language, "span")
        parts.append(f'<h2 class="bb-guide"><a href="{address}">{title}</a></h2>')
        parts.append(_counts(build, f"counts-{page}", [claim for claim, _ in found]))
        parts += _blocks(build, page, [one for one in found if refuted(one[0])], markdown, "refuted")
        more = escape(language.text("claims_all"))
        parts.append(f'<p class="bb-by" data-pagefind-ignore><a href="{address}">{more}</a></p>')
    return "".join(parts)


def _list_of_page(build: Build, page: str, found: Sequence[tuple[Claim, Said]], markdown: Markdown) -> str:
    """All claims of one page, refuted ones first, below their counts."""
    language = build.here.language
    title = _in_its_language(language.words(found[0][1].title), found[0][1], language, "span")
    guide, all_of_them = (escape(build.here.address(f"/{name}")) for name in (page, LIST))
    links = (
        f'<p class="bb-by" data-pagefind-ignore><a href="{guide}">{title}</a> · '
        f'<a href="{all_of_them}">{escape(language.text("claims_everywhere"))}</a></p>'
    )
    counts = _counts(build, "counts", [claim for claim, _ in found])
    return links + counts + _filter(language) + "".join(_blocks(build, page, found, markdown))


def _blocks(
    build: Build, page: str, found: Sequence[tuple[Claim, Said]], markdown: Markdown, only: str = ""
) -> Iterator[str]:
    """The claims of a page, what the machine shown at first refutes first; of them all, it shows `only`."""
    language = build.here.language
    outcomes = {claim.id: verdict_of(listed_judgement(build, claim)) for claim, _ in found}
    for claim, said in sorted(found, key=lambda one: _FIRST.index(outcomes[one[0].id])):
        if said.is_mark:
            html = f"<p>{note_html(said.sentence, right_to_left=language.direction == 'rtl')}</p>"
        else:
            html = words_html(build, said.sentence, markdown, language)
        sentence = _in_its_language(html, said, language, "div")
        place = build.here.address(f"/{page}#{claim_anchor(claim.id)}")
        hidden = bool(only) and outcomes[claim.id] != only
        yield claim_block(build, claim, Words(sentence, "", place, hidden))


def _counts(build: Build, key: str, claims: Sequence[Claim]) -> str:
    """How many of `claims` have which verdict, on each machine, and how many someone else has said."""
    language, reference = build.here.language, build.library.reference_machine(build.here.guide)

    def counted(machine: str) -> tuple[str, bool]:
        """The counts as `machine` has them, and whether any of them is its own."""
        found = [listed_judgement(build, claim, machine) for claim in claims]
        whose = [one.machine.name for one in found if one]
        elsewhere = len(whose) - whose.count(machine)
        return _counted(Counter(map(verdict_of, found)), elsewhere, language), elsewhere < len(whose)

    for machine in judging_machines(build.library):
        if machine.name != reference:
            text, any_own = counted(machine.name)
            if any_own:
                build.keep_block(key, machine, Rendering({"": text}))
    shown, _ = counted(reference)
    quoted = sum(claim.source is not None for claim in claims)
    said = escape(language.text("claims_quoted", quoted=quoted, total=len(claims)))
    return (
        f'<p class="bb-counts" data-bb="{escape(key)}" data-machine="{escape(reference)}" '
        f'data-pagefind-ignore>{shown}</p><p class="bb-by" data-pagefind-ignore>{said}</p>'
    )


def _counted(outcomes: Mapping[Verdict, int], elsewhere: int, language: Language) -> str:
    """The verdicts with how often each was given, and how many of them come from another machine."""
    colon = language.text("colon")
    counts = [
        f'<span class="bb-count"><span class="bb-sign" aria-hidden="true">{SIGNS[outcome]}</span> '
        f"<bdi>{escape(verdict_word(outcome, language) + colon)}{outcomes[outcome]}</bdi></span>"
        for outcome in VERDICTS
        if outcomes.get(outcome)
    ]
    if elsewhere:
        counts.append(
            f'<span class="bb-elsewhere">{escape(language.text("claims_elsewhere", n=elsewhere))}</span>'
        )
    return " ".join(counts)


def _in_its_language(html: str, said: Said, language: Language, element: str) -> str:
    """`html`, marked as another language's where the page is not translated, to readers and the search."""
    if said.language == language.code:
        return html
    return f'<{element} lang="{said.language}" dir="ltr" data-pagefind-ignore>{html}</{element}>'


def _sentences(library: Library, language: str) -> dict[str, list[Said]]:
    """What the pages of `language` say of each claim, by its id."""
    return library.once(_SENTENCES, language, lambda: _read_sentences(library, language))


def _read_sentences(library: Library, language: str) -> dict[str, list[Said]]:
    found: dict[str, list[Said]] = {}
    folder = library.project.docs / language
    for path in sorted(folder.glob("**/*.md")):
        name = path.relative_to(folder).as_posix()
        for claim, title, sentence, is_mark in library.read(path, _said_in):
            found.setdefault(claim, []).append(Said(name, title, sentence, language, is_mark))
    return found


def _said_in(path: Path) -> list[tuple[str, str, str, bool]]:
    """The claims of a page: id, the title of the page, the sentence, and whether it is a mark."""
    text = path.read_text("utf-8")
    if not _SAYS_A_CLAIM.search(text):
        return []
    # Loads a second Markdown parser, which a site without claims does not need.
    from benchbook.content.page_source import claim_sentences, parse_page

    page = parse_page(text, inline=False)
    title = next((heading.text for heading in page.headings()), path.stem)
    return [
        (claim, title, text if is_mark else claim_parts(text)[0], is_mark)
        for _, claim, text, is_mark in claim_sentences(page)
    ]


def _filter(language: Language) -> str:
    """The choice of a verdict, which only a script can act on."""
    words = {"": language.text("verdict_any")}
    words |= {outcome: verdict_word(outcome, language) for outcome in VERDICTS}
    options = "".join(f'<option value="{name}">{escape(word)}</option>' for name, word in words.items())
    label = escape(language.text("verdict"))
    return (
        f'<p class="bb-live bb-filter" data-pagefind-ignore><label for="bb-outcome">{label}</label> '
        f'<select id="bb-outcome" dir="auto" autocomplete="off">{options}</select></p>'
    )
