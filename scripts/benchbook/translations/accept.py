"""Record in a translation which English sections it follows, and say of every page how it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import FALLBACK, Project
from benchbook.content.records import writing
from benchbook.content.site_files import LANGUAGE_FILE
from benchbook.content.unfinished import alone
from benchbook.translations.documents import Document, read_documents
from benchbook.translations.drift import Drift, recorded_digests, section_digest
from benchbook.translations.front_matter import ENTRY, write_entry
from benchbook.translations.new_language import MARK
from benchbook.translations.reviews import SectionReview, standing_reviews


def accept(project: Project, target: str | None, section: str | None, all_languages: bool) -> list[str]:
    """Record the English sections as they stand in the translations that `target` names.

    Of several at once each waits for the one before it.

    Parameters:
        project: The checkout.
        target: A language, or a page: `ja/index.md`, or `index` in all languages.
        section: The one section to accept; None for all of a page.
        all_languages: Whether to accept in every language that has the page.

    Returns:
        What was recorded: `docs/ja/index.md#section`, in order.

    Raises:
        BenchbookError: Nothing is called so, a section is not translated, or a page cannot be written.
    """
    with alone(project.root):
        return _accept(project, target, section, all_languages)


def _accept(project: Project, target: str | None, section: str | None, all_languages: bool) -> list[str]:
    documents = [one for one in read_documents(project) if one.english is not None]
    chosen = [one for one in documents if _names(target, one, all_languages)]
    if not chosen:
        raise BenchbookError(_unknown(target or "docs", documents, all_languages))
    if section is not None:
        chosen = _with_section(chosen, section)
    done = []
    for document in chosen:
        entry, changed = _accepted(document, section)
        if entry != recorded_digests(document.page):
            with writing(document.shown):
                write_entry(document.path, ENTRY, entry)
        done += [f"{document.shown}#{key}" for key in changed]
    return done


def _names(target: str | None, document: Document, all_languages: bool) -> bool:
    if target is None:
        return all_languages
    name = target.removeprefix("docs/").removesuffix(".md")
    page = document.name.removesuffix(".md")
    if all_languages:
        return name in (page, f"{document.code}/{page}", f"{FALLBACK}/{page}")
    return name.rstrip("/") in (document.code, f"{document.code}/{page}")


def _unknown(target: str, documents: Sequence[Document], all_languages: bool) -> Problem:
    pages = {f"{one.code}/{one.name}" for one in documents}
    known = {one.name for one in documents} if all_languages else pages | {one.code for one in documents}
    fix = did_you_mean(target, known, "translation")
    return Problem(target, 1, "is neither a translated page nor a language", fix)


def _with_section(chosen: Sequence[Document], section: str) -> list[Document]:
    """The pages of `chosen` that have the section, or once had it."""
    having = [one for one in chosen if section in (*recorded_digests(one.page), *_keys(one))]
    if having:
        return having
    lacking = next((one for one in chosen if one.english and section in _keys(one.english)), None)
    fix = did_you_mean(section, {key for one in chosen for key in _keys(one)}, "section")
    if lacking is not None:
        fix = "translate it first"
    what = f"has no section `{section}`"
    raise BenchbookError(Problem((lacking or chosen[0]).shown, 1, what, fix))


def _keys(document: Document) -> list[str]:
    return [section.key for section in document.sections]


def _accepted(document: Document, section: str | None) -> tuple[dict[str, str], list[str]]:
    """The digests the page will record, in the English order, and the sections whose entry changes."""
    there = {one.key for one in document.sections}
    before = {str(key): str(known) for key, known in recorded_digests(document.page).items()}
    entry = {}
    for english in document.english.sections if document.english else ():
        key = english.key
        if section in (None, key) and key in there:
            entry[key] = section_digest(english)
        elif key in before:
            entry[key] = before[key]
    # Other sections that English has no more stay, until they are accepted themselves.
    if section is not None:
        entry |= {key: known for key, known in before.items() if key not in entry and key != section}
    return entry, [key for key in {**before, **entry} if before.get(key) != entry.get(key)]


@dataclass(frozen=True)
class PageState:
    """How one page stands in one language.

    Parameters:
        language: The language.
        page: The page's name.
        document: The translation; None where readers see the English page.
    """

    language: str
    page: str
    document: Document | None

    @property
    def reviewed(self) -> Mapping[str, SectionReview]:
        """Its sections that stand as a native reader read them."""
        return standing_reviews(self.document) if self.document else {}

    @property
    def drift(self) -> Sequence[Drift]:
        """How its sections stand."""
        return self.document.drift if self.document else ()

    def as_dict(self) -> dict[str, Any]:
        """The page as `benchbook translations status --json` prints it."""
        return {
            "language": self.language,
            "page": self.page,
            "path": self.document.shown if self.document else None,
            "translated": self.document is not None,
            "reviewed": {key: asdict(review) for key, review in self.reviewed.items()},
            "sections": [
                {"section": one.key, "state": one.state, "reason": one.reason, "line": one.line}
                for one in self.drift
            ],
        }


def translation_states(project: Project) -> list[PageState]:
    """Every English page in every other language, languages first."""
    documents = {(one.code, one.name): one for one in read_documents(project)}
    names = [name for code, name in documents if code == FALLBACK]
    return [
        PageState(code, name, documents.get((code, name)))
        for code in project.languages
        if code != FALLBACK
        for name in names
    ]


def untranslated_lines(project: Project) -> dict[str, int]:
    """How many lines of each language's interface are still marked to be translated."""
    files = {code: project.docs / code / LANGUAGE_FILE for code in project.languages if code != FALLBACK}
    return {
        code: sum(line.endswith(MARK) for line in path.read_text("utf-8").splitlines())
        for code, path in files.items()
    }


def print_states(states: Iterable[PageState], marked: dict[str, int]) -> None:
    """Print the pages, each with the sections that need work."""
    console = Console(highlight=False, soft_wrap=True)
    language = ""
    for state in states:
        if state.language != language:
            language = state.language
            left = marked.get(language, 0)
            note = f" [yellow]{left} lines of its {LANGUAGE_FILE} to translate[/]" if left else ""
            console.print(f"[bold]{language}[/]{note}")
        if state.document is None:
            console.print(f"  [yellow]untranslated[/]  {state.page}")
            continue
        behind = [one for one in state.drift if one.state != "current"]
        read, whole = len(state.reviewed), len(state.document.sections)
        review = f", {read} of {whole} sections reviewed" if read else ", not reviewed"
        word = f"[yellow]{len(behind)} to do[/]" if behind else "[green]current[/]"
        console.print(f"  {word}  {state.page}{review}")
        for one in behind:
            where = escape(f"{state.document.shown}:{one.line}")
            console.print(f"    {where}: `#{escape(one.key)}`: {one.reason}")
