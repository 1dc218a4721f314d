"""Hold claims to the records and to the pages: each is still so, and stands in every language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from markdown_it.token import Token

from benchbook.content.claims import FILE, Claims, claim_anchor
from benchbook.content.fence_names import CLAIM
from benchbook.content.page_source import PageSource, claim_sentences
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import FALLBACK
from benchbook.languages.language import unit_words
from benchbook.languages.prose import typed_numbers
from benchbook.languages.telling import typed_pattern
from benchbook.query.judging import Judgement, claims_of, judgements, judging_machines
from benchbook.query.library import Library
from benchbook.rendering.claims import listed_on
from benchbook.statistics.comparison import doubt_text, found_text

Pages = Mapping[Path, PageSource]


@dataclass(frozen=True)
class Place:
    """A `claim` fence: on which page, in which language, on which line."""

    path: str
    language: str
    page: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def claim_problems(library: Library, pages: Pages) -> tuple[list[Problem], list[Problem]]:
    """What is wrong with the claims of a project and their places in `pages`, and what is good to know."""
    claims = claims_of(library)
    places = claim_places(library, pages)
    problems = [*claims.problems, *_parity_problems(places)]
    project = library.project
    words = {code: unit_words(project.docs, code) for code in project.languages}
    for path, page in pages.items():
        typed = typed_pattern(frozenset(words[path.relative_to(project.docs).parts[0]]))
        problems += _sentence_problems(page, project.relative(path), claims, typed)
    warnings: list[Problem] = []
    try:
        judging_machines(library)  # what is wrong with a machine is said once, not with each claim
    except BenchbookError as error:
        return [*problems, *error.problems], warnings
    # Marks lead to the list of the claims of their guide.
    listing = {place.page for found in places.values() for place in found if place.language == FALLBACK}
    for claim in claims.by_id.values():
        shown = places.get(claim.id, [])
        english = {place.page: place.path for place in shown if place.language == FALLBACK}
        own = f"{claim.guide}.md"
        if not english:
            what = f"the claim `{claim.id}` stands on no English page"
            fix = f'show it there with a fence ```claim id="{claim.id}"```, or remove it'
            problems.append(Problem(claim.path, claim.line, what, fix))
        elif listed_on(claim, sorted(english)) == "index.md":
            # Its list would have the address of that of all claims.
            what = f"the claim `{claim.id}` stands on the first page, which has no list of its claims"
            problems.append(Problem(claim.path, claim.line, what, "show it on the page of its guide"))
        elif own in listing and own not in english:
            away = next(iter(english.values()))
            what = f"the claim `{claim.id}` stands on {away}, and not on that of its guide, where others are"
            fix = f"declare it in snippets/{Path(away).stem}/{FILE}"
            problems.append(Problem(claim.path, claim.line, what, fix))
        if claim.source is not None and not claim.source.quote:
            what = f"the claim `{claim.id}` names a source and not its words"
            fix = 'quote them: source = { ..., quote = "...", date = "2026-01-31" }'
            warnings.append(Problem(claim.path, claim.at("source"), what, fix))
        try:
            judged = judgements(library, claim)
        except BenchbookError as error:
            problems += error.problems
            continue
        problems += (_fallen(one, shown) for one in judged if _declared(one) not in (None, one.outcome))
        warnings += (
            _unnamed(one) for one in judged if _declared(one) is None and one.outcome != "not measured"
        )
    return problems, warnings


def claim_places(library: Library, pages: Pages) -> dict[str, list[Place]]:
    """Where each claim stands, by its id."""
    found: dict[str, list[Place]] = {}
    docs = library.project.docs
    for path, page in pages.items():
        language, _, name = path.relative_to(docs).as_posix().partition("/")
        for line, claim, *_ in claim_sentences(page):
            place = Place(library.project.relative(path), language, name, line)
            found.setdefault(claim, []).append(place)
    return found


def _declared(judged: Judgement) -> str | None:
    return judged.claim.machines.get(judged.machine.name)


def _said(judged: Judgement) -> str:
    """What the records say, with the numbers, in words."""
    numbers = found_text(judged.found)
    reason = doubt_text(judged.doubt, judged.found)
    inside = "; ".join(filter(None, (numbers, reason)))
    return f"{judged.outcome} ({inside})" if inside else judged.outcome


def _fallen(judged: Judgement, places: Iterable[Place]) -> Problem:
    claim, machine = judged.claim, judged.machine.name
    declared = f"the claim `{claim.id}` is declared as {claim.machines[machine]!r} on {machine}"
    what = f"{declared}, and is {_said(judged)}"
    standing = ", ".join(map(str, places))
    fix = f"record again, or declare what is so and fix its sentence at {standing or 'its place'}"
    return Problem(claim.path, claim.at(machine), what, fix)


def _unnamed(judged: Judgement) -> Problem:
    claim, machine = judged.claim, judged.machine.name
    what = f"the claim `{claim.id}` does not name {machine}, where it is {_said(judged)}"
    return Problem(claim.path, claim.line, what, f"to hold it to that, add {machine} to its `machines`")


def _parity_problems(places: Mapping[str, list[Place]]) -> Iterator[Problem]:
    """Claims that stand twice on a page, or on a page in one language and not in another."""
    by_page: dict[tuple[str, str], dict[str, Place]] = {}
    for claim, found in places.items():
        for place in found:
            page = by_page.setdefault((place.language, place.page), {})
            if claim in page:
                what = f"the claim `{claim}` is there twice (first on line {page[claim].line})"
                yield Problem(place.path, place.line, what, f"link to it instead: `#{claim_anchor(claim)}`")
            page.setdefault(claim, place)
    for (_, name), here in by_page.items():
        english = by_page.get(("en", name), {})
        for claim in here.keys() - english.keys():
            place = here[claim]
            what = f"the claim `{claim}` does not stand on the English page"
            yield Problem(place.path, place.line, what, "remove it here, or add it there")


def _sentence_problems(
    page: PageSource, path: str, claims: Claims, typed: re.Pattern[str]
) -> Iterator[Problem]:
    """What a claim's sentence may not hold: a link or value, which the list cannot show, or a bare number."""
    for token in page.inlines():
        if not token.meta.get("sentence") or token.meta[CLAIM] not in claims.by_id:
            continue
        claim = claims.by_id[token.meta[CLAIM]]
        assert token.map is not None
        if "#!" in token.content:
            what = f"the sentence of the claim `{claim.id}` holds a value, or what looks like one"
            fix = "put it into the paragraph below: the verdict shows the numbers of the sentence"
            yield Problem(path, token.map[0] + 1, what, fix)
        elif _has_link(token):
            what = f"the sentence of the claim `{claim.id}` holds a link"
            fix = f"put it into the paragraph below, or name who said so under `source` in {FILE}"
            yield Problem(path, token.map[0] + 1, what, fix)
        elif claim.source is None:
            yield from typed_numbers(token, path, typed)


def _has_link(token: Token) -> bool:
    return any(child.type in ("link_open", "image") for child in token.children or ())
