"""Run every check of the translations over the tree: errors, and what only needs doing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from benchbook.content.page_source import PageSource
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import FALLBACK, Project
from benchbook.content.site_files import LANGUAGE_FILE
from benchbook.languages.language import load_language, load_languages
from benchbook.translations import leftovers, measures, names, numbers, parity, relations, terms
from benchbook.translations.characters import (
    character_problems,
    front_matter_characters,
    interface_problems,
    repeated_headings,
)
from benchbook.translations.documents import Document, read_documents
from benchbook.translations.drift import recorded_digests, unknown_digests
from benchbook.translations.front_matter import ENTRY, line_of_entry
from benchbook.translations.leftovers import (
    chatter_problems,
    code_problems,
    file_problems,
    foreign_problems,
    front_matter_problems,
    preamble_problems,
    reading_problems,
    syntax_problems,
)
from benchbook.translations.new_language import language_problems
from benchbook.translations.phrasing import phrasing_problems
from benchbook.translations.reviews import section_review_problems
from benchbook.translations.sections import DESCRIPTION, TITLE, Piece, Section, TextRun, plain_section
from benchbook.translations.settings import (
    Rules,
    foreign_renderings,
    glossary_gaps,
    load_rules,
    swapped_units,
)


class Findings:
    """What the checks found.

    Parameters:
        errors: What a pull request must not hold.
        warnings: What a translator should look at.
        drift: What follows from a change of the English page.
    """

    def __init__(self) -> None:
        self.errors: list[Problem] = []
        self.warnings: list[Problem] = []
        self.drift: list[Problem] = []


def check_translations(project: Project, pages: Mapping[Path, PageSource]) -> Findings:
    """Hold every page to the rules of its language, and every translation to its English page."""
    findings = Findings()
    findings.errors.extend(language_problems(project))
    rules = dict(_rules(project, findings))
    findings.errors.extend(glossary_gaps(rules, project))
    findings.errors.extend(foreign_renderings(rules, project))
    findings.errors.extend(swapped_units(rules, project))
    english_rules = rules.get(FALLBACK)
    findings.errors.extend(_renamed_texts(project, rules))
    for document in read_documents(project, pages):
        its = rules.get(document.code)
        # Rules that cannot be read are a problem of their own; what they say cannot be held against a page.
        if its is None or english_rules is None:
            continue
        findings.errors.extend(_page_problems(document, its, english_rules))
        if document.code != FALLBACK:
            problems, warnings = section_review_problems(document)
            findings.errors.extend(problems)
            findings.warnings.extend(warnings)
            if document.english is not None:
                _compare(document, document.english, its, english_rules, findings)
    return findings


def _rules(project: Project, findings: Findings) -> Iterator[tuple[str, Rules]]:
    for code in project.languages:
        try:
            rules = load_rules(project, code)
        except BenchbookError as error:
            findings.errors.extend(error.problems)
            continue
        findings.errors.extend(_interface_problems(project, code, rules))
        yield code, rules


def _interface_problems(project: Project, code: str, rules: Rules) -> Iterator[Problem]:
    path = project.docs / code / LANGUAGE_FILE
    try:
        language = load_language(project.docs, code)
    except BenchbookError:
        return  # told with the languages
    yield from interface_problems(language, rules, project.relative(path), path.read_text("utf-8"))


def _renamed_texts(project: Project, rules: Mapping[str, Rules]) -> Iterator[Problem]:
    try:
        languages = load_languages(project)
    except BenchbookError:
        return  # told with the languages
    for code in (code for code in rules if code != FALLBACK and FALLBACK in rules):
        path = project.docs / code / LANGUAGE_FILE
        yield from terms.renamed_texts(
            languages[code],
            languages[FALLBACK],
            rules[code],
            rules[FALLBACK],
            project.relative(path),
            path.read_text("utf-8"),
        )


def _page_problems(document: Document, rules: Rules, english_rules: Rules) -> Iterator[Problem]:
    """What is wrong with a page whatever its English one says."""
    found = list(_written_problems(document, rules, english_rules))
    yield from found
    yield from reading_problems(document.page, document.text, document.shown, found)


def _written_problems(document: Document, rules: Rules, english_rules: Rules) -> Iterator[Problem]:
    path = document.shown
    yield from file_problems(document.text, path)
    yield from code_problems(document.page, path)
    yield from front_matter_problems(document.page, document.text, path)
    yield from front_matter_characters(document.page, document.text, rules, path)
    yield from syntax_problems(document.page, document.text, path)
    yield from preamble_problems(document.page, path)
    for section in document.sections:
        yield from foreign_problems(section, path)
        yield from character_problems(section, rules, path)
        yield from chatter_problems(section, {*rules.leftovers, *english_rules.leftovers}, path)


def _compare(
    document: Document, english: Document, rules: Rules, english_rules: Rules, findings: Findings
) -> None:
    path = document.shown
    findings.drift.extend(_drift_problems(document, english))
    findings.errors.extend(_heading_problems(document, english))
    findings.errors.extend(parity.order_problems(document.sections, english.sections, path))
    behind = {one.key for one in document.drift if one.state == "changed"}
    theirs = {section.key: section for section in english.sections}
    pairs = [(section, theirs[section.key]) for section in document.sections if section.key in theirs]
    # A section that its English one has left behind need not agree with it.
    current = [pair for pair in pairs if pair[0].key not in behind]
    current += _titles(document, english, behind)
    errors, warnings = findings.errors, findings.warnings
    errors.extend(repeated_headings(document.sections, english.sections, path))
    for section, other in current:
        errors.extend(parity.section_problems(section, other, path))
        errors.extend(numbers.added_numbers(section, other, rules, english_rules, path))
        errors.extend(numbers.lost_numbers(section, other, rules, english_rules, path))
        errors.extend(measures.measure_problems(section, other, rules, english_rules, path))
        errors.extend(relations.relation_problems(section, other, rules, english_rules, path))
        errors.extend(names.device_problems(section, other, rules, english_rules, path))
        errors.extend(names.name_problems(section, other, rules, english_rules, path))
        errors.extend(leftovers.english_problems(section, other, rules, path))
        errors.extend(leftovers.added_latin(section, other.source, rules, path))
        errors.extend(terms.forbidden_terms(section, other, rules, english_rules, path))
        warnings.extend(terms.unrendered_terms(section, other, rules, english_rules, path))
        warnings.extend(parity.exchanged_pieces(section, other, rules.keeps_order, path))
    errors.extend(leftovers.added_in_front_matter(document.page, english.text, document.text, path))
    errors.extend(_behind_problems(document, english, rules, english_rules))
    for section in document.sections:
        errors.extend(terms.register_problems(section, rules, path))
        errors.extend(phrasing_problems(section, rules.code, path))
    warnings.extend(leftovers.odd_lengths(current, path))
    if not behind:
        warnings.extend(terms.missing_glosses(pairs, rules, english_rules, path))


def _titles(document: Document, english: Document, behind: Collection[str]) -> Iterator[leftovers.Pair]:
    """The title of a translation, where it has one, and the English one: that of the page or its heading."""
    ours, theirs = (side.page.front_matter.get(TITLE) for side in (document, english))
    first = next((section for section in english.sections if section.level), None)
    if theirs is None and first is not None and first.key not in behind:
        theirs = first.title
    if isinstance(ours, str) and isinstance(theirs, str):
        yield plain_section(TITLE, ours, document.text), plain_section(TITLE, theirs, english.text)


def _behind_problems(
    document: Document, english: Document, rules: Rules, english_rules: Rules
) -> Iterator[Problem]:
    """What is wrong with sections that English has left behind: it said once what they were made from."""
    behind = {one.key for one in document.drift if one.state in ("changed", "dropped")}
    if not behind:
        return
    path, past = document.shown, english.past
    if past is not None:
        yield from unknown_digests(document.page, document.text, document.drift, past, path)
    theirs = {section.key: section for section in english.sections}
    recorded = recorded_digests(document.page)
    for section in document.sections:
        if section.key not in behind or (past is None and section.key not in theirs):
            continue
        yield from leftovers.stray_problems(section, english.ever, past is not None, path)
        yield from leftovers.added_latin(section, english.ever, rules, path)
        made_from = (past or {}).get((section.key, str(recorded.get(section.key))))
        # Without what it was made from, the whole page: a number of it may be of another section by now.
        sources = [english.ever] if made_from is None else [made_from]
        texts = [TextRun(1, "text", (Piece(1, "text", source),)) for source in sources]
        now = theirs[section.key].units if section.key in theirs else ()
        known = numbers.numbers_of([*texts, *now], english_rules)
        yield from numbers.unsaid_numbers(section.units, known, rules, path)


def _drift_problems(document: Document, english: Document) -> Iterator[Problem]:
    lines = {section.key: section.line for section in english.sections}
    accept = f"`benchbook translations accept {document.code}/{document.name}"
    if not recorded_digests(document.page):
        what = "does not say which English sections it was made from"
        yield Problem(
            document.shown, line_of_entry(ENTRY, document.text), what, f"compare the two, then {accept}`"
        )
        return
    for one in document.drift:
        if one.state == "current" or one.key in document.lost:
            continue
        name = "the description" if one.key == DESCRIPTION else f"section `#{one.key}`"
        what = f"{name}: {one.reason}"
        where = f"{english.shown}:{lines[one.key]}" if one.key in lines else english.shown
        fix = {
            "missing": f"translate it from {where}, then {accept} --section {one.key}`",
            "dropped": f"remove it here too, then {accept} --section {one.key}`",
        }.get(one.state, f"follow {where}, then {accept} --section {one.key}`")
        yield Problem(document.shown, one.line, what, fix)


def _heading_problems(document: Document, english: Document) -> Iterator[Problem]:
    """Sections that one of the two pages lacks, where no change of the English page explains it."""
    ours, theirs = ([section.key for section in side.sections] for side in (document, english))
    explained = {one.key for one in document.drift if one.state in ("missing", "dropped")} - document.lost
    extra = [one for one in document.sections if one.key not in theirs and one.key not in explained]
    lost = [one for one in english.sections if one.key not in ours and one.key not in explained]
    for one, other in zip(extra, lost, strict=False):
        what = f"the heading `#{one.key}` stands for `#{other.key}`"
        yield Problem(document.shown, one.line, what, "give it the id of its English heading")
    for one in extra[len(lost) :]:
        what = f"the English page has no section `#{one.key}`"
        yield Problem(document.shown, one.line, what, "remove it, or write it in English first")
    for other in lost[len(extra) :]:
        line = _line_before(other, document, english)
        where = f"{english.shown}:{other.line}"
        if other.key == DESCRIPTION:
            continue  # every page must have one: said already
        yield Problem(document.shown, line, f"lacks the section `#{other.key}`", f"translate it from {where}")


def _line_before(lost: Section, document: Document, english: Document) -> int:
    """The line of the section after which a lost one belongs."""
    before = [section.key for section in english.sections]
    before = before[: before.index(lost.key)]
    return max((one.line for one in document.sections if one.key in before), default=1)
