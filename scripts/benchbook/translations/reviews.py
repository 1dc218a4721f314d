"""Record which sections of a translation a native reader has read, and say which stand as they were read."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import ValidationError

from benchbook.content.formats import Day, Limit, Stored
from benchbook.content.page_source import PageSource
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import Project
from benchbook.content.records import writing
from benchbook.content.unfinished import alone
from benchbook.content.validation import adapter, shape_errors
from benchbook.translations.documents import Document, read_documents
from benchbook.translations.drift import section_digest
from benchbook.translations.front_matter import line_of_entry, write_entry

ENTRY = "reviewed"
LIKE = "record it with `benchbook translations review PAGE --done SECTION --by NAME --native LANGUAGE`"
Digest = Annotated[str, Limit(pattern=r"^[0-9a-f]{12}$")]


@dataclass(frozen=True)
class SectionReview(Stored):
    """That someone read a section beside its English one.

    Parameters:
        by: Who.
        native: The language that they say is theirs, as a code.
        date: When.
        read: The digest of the section as it stood.
        english: That of the English section beside it.
    """

    by: Annotated[str, Limit(min_length=2, max_length=80, pattern=r"^[^<>\x00-\x1f]+$")]
    native: Annotated[str, Limit(pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$")]
    date: Day
    read: Digest
    english: Digest


def section_reviews(page: PageSource) -> dict[str, SectionReview]:
    """The reviews that a page holds, by section; of what is malformed, which `check` names, nothing."""
    found = {}
    recorded = page.front_matter.get(ENTRY)
    for key, table in recorded.items() if isinstance(recorded, dict) else ():
        try:
            found[str(key)] = adapter(SectionReview).validate_python(table)
        except ValidationError:
            continue
    return found


def standing_reviews(document: Document) -> dict[str, SectionReview]:
    """The reviews of sections that are still what was read, beside what is still their English section."""
    ours, theirs = _digests(document), _digests(document.english)
    return {
        key: review
        for key, review in section_reviews(document.page).items()
        if review.read == ours.get(key) and review.english == theirs.get(key)
    }


def _digests(document: Document | None) -> Mapping[str, str]:
    return {one.key: section_digest(one) for one in document.sections} if document else {}


def section_review_problems(document: Document) -> tuple[list[Problem], list[Problem]]:
    """What is wrong with the reviews of a translation, and which of them no longer hold."""
    problems: list[Problem] = []
    warnings: list[Problem] = []
    recorded = document.page.front_matter.get(ENTRY)
    if recorded is None:
        return problems, warnings
    line = line_of_entry(ENTRY, document.text)
    if not isinstance(recorded, dict):
        return [Problem(document.shown, line, "`reviewed:` is not a table of sections", LIKE)], warnings
    standing = standing_reviews(document)
    keys = [section.key for section in document.sections]
    for key, table in recorded.items():
        try:
            review = adapter(SectionReview).validate_python(table)
        except ValidationError as error:
            for place, _, message in shape_errors(error, 3):
                where = ".".join(map(str, (ENTRY, key, *place)))
                problems.append(Problem(document.shown, line, f"{where}: {message}", LIKE))
            continue
        if review.native.partition("-")[0] != document.code.partition("-")[0]:
            what = f"`{key}` was reviewed by a reader of {review.native}, whose language the page is not in"
            problems.append(
                Problem(document.shown, line, what, "have a native reader of its language read it")
            )
        elif key not in keys:
            what = f"a review of `{key}` is here, and no such section"
            problems.append(Problem(document.shown, line, what, did_you_mean(str(key), keys, "section")))
        elif key not in standing:
            what = f"`{key}` has changed, here or in English, since {review.by} read it"
            warnings.append(
                Problem(document.shown, line, what, "have it read again; the page says nothing of it")
            )
    return problems, warnings


def translated_document(project: Project, target: str) -> Document:
    """The translation called `ja/index.md`, or `ja/index`.

    Raises:
        BenchbookError: There is none.
    """
    documents = {f"{one.code}/{one.name}": one for one in read_documents(project) if one.english is not None}
    name = target.removeprefix("docs/").removesuffix(".md") + ".md"
    if name not in documents:
        fix = did_you_mean(target, documents, "translation")
        raise BenchbookError(Problem(target, 1, "is not a page that is translated", fix))
    return documents[name]


def record_review(
    project: Project, target: str, section: str, by: str, native: str, today: datetime.date
) -> str:
    """Note that `by`, a native reader of `native`, has read a section; what was noted, for messages.

    Of several at once each waits for the one before it, whose note it keeps.

    Parameters:
        project: The checkout.
        target: The page, such as `ja/index.md`.
        section: The id of the section.
        by: Who has read it.
        native: The language that they say is theirs.
        today: The date.

    Raises:
        BenchbookError: There is no such page or section, its language is not theirs, or it cannot be written.
    """
    with alone(project.root):
        return _record(project, target, section, by, native, today)


def _record(project: Project, target: str, section: str, by: str, native: str, today: datetime.date) -> str:
    document = translated_document(project, target)
    ours, theirs = _digests(document), _digests(document.english)
    known = [key for key in ours if key in theirs]
    if section not in known:
        fix = did_you_mean(section, known, "section")
        raise BenchbookError(
            Problem(document.shown, 1, f"has no section `{section}` beside an English one", fix)
        )
    if native.partition("-")[0] != document.code.partition("-")[0]:
        what = f"is in {document.code}, and {by} reads {native} as a native"
        fix = "only a native reader of its language can say that it reads well"
        raise BenchbookError(Problem(document.shown, 1, what, fix))
    review = SectionReview(by, native, today.isoformat(), ours[section], theirs[section])
    try:
        adapter(SectionReview).validate_python(asdict(review))
    except ValidationError as error:
        ((keys, _, message), *_) = shape_errors(error)
        raise BenchbookError(
            Problem(document.shown, 1, f"{'.'.join(map(str, keys))}: {message}", LIKE)
        ) from None
    recorded = document.page.front_matter.get(ENTRY)
    table = {**(recorded if isinstance(recorded, dict) else {}), section: asdict(review)}
    ordered = {key: table[key] for key in (*known, *table) if key in table}
    with writing(document.shown):
        write_entry(document.path, ENTRY, ordered)
    return f"{document.shown}#{section}"
