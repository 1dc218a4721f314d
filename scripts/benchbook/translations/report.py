"""Say of every page in every language whether it is translated, reviewed and up to date."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape

from benchbook.content.project import Project
from benchbook.languages.language import FALLBACK, FILE
from benchbook.translations.documents import Document, read_documents
from benchbook.translations.drift import Drift
from benchbook.translations.language_file import MARK


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
    def reviewed(self) -> Any:
        """Who reviewed it and when; None where nobody has."""
        return self.document.page.front_matter.get("reviewed") if self.document else None

    @property
    def drift(self) -> Sequence[Drift]:
        """How its sections stand."""
        return self.document.drift if self.document else ()

    def as_dict(self) -> dict[str, Any]:
        """The page as `benchbook translations status --json` prints it."""
        review = self.reviewed
        return {
            "language": self.language,
            "page": self.page,
            "path": self.document.shown if self.document else None,
            "translated": self.document is not None,
            "reviewed": {key: str(said) for key, said in review.items()}
            if isinstance(review, dict)
            else None,
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
    files = {code: project.docs / code / FILE for code in project.languages if code != FALLBACK}
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
            note = f" [yellow]{left} lines of its {FILE} to translate[/]" if left else ""
            console.print(f"[bold]{language}[/]{note}")
        if state.document is None:
            console.print(f"  [yellow]untranslated[/]  {state.page}")
            continue
        behind = [one for one in state.drift if one.state != "current"]
        review = "" if state.reviewed else ", not reviewed"
        word = f"[yellow]{len(behind)} to do[/]" if behind else "[green]current[/]"
        console.print(f"  {word}  {state.page}{review}")
        for one in behind:
            where = escape(f"{state.document.shown}:{one.line}")
            console.print(f"    {where}: `#{escape(one.key)}`: {one.reason}")
