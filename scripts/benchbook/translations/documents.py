"""Pair each page of each language with its English one, parsed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchbook.content.page_limits import is_readable
from benchbook.content.page_source import PageSource, parse_page
from benchbook.content.project import FALLBACK, Project
from benchbook.content.revisions import git_answer, has_whole_history
from benchbook.translations.drift import Drift, drift_of, section_digest
from benchbook.translations.sections import Section, sections_of

# How many characters of a page's history are read, four times those of the longest here: a million take 6 s.
LONGEST_HISTORY = 12_000_000


@dataclass(frozen=True)
class Document:
    """A page of one language.

    Parameters:
        path: Its file.
        shown: Its path, for messages.
        code: Its language.
        name: Its name within the language, such as `index.md`.
        text: The file.
        page: The file, parsed.
        english: The page it translates; None for an English one, and where English has none.
    """

    path: Path
    shown: str
    code: str
    name: str
    text: str
    page: PageSource
    english: Document | None = None

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Its sections, the description first."""
        return sections_of(self.page, self.text)

    @cached_property
    def drift(self) -> list[Drift]:
        """How its sections stand to the English ones; nothing for a page without an English one."""
        theirs = self.english.sections if self.english else ()
        return drift_of(self.page, self.text, self.sections, theirs) if self.english else []

    @cached_property
    def lost(self) -> frozenset[str]:
        """The sections that it had, as far as git knows, and lost while English had them."""
        sought, lost = {one.key for one in self.drift if one.state == "missing"}, set[str]()
        if not sought or self.english is None:
            return frozenset()
        # As the branch went on which it is: what was merged counts as what the merge brought.
        places = (self.path, self.english.path)
        listed = git_answer(
            self.path.parent, "log", "--first-parent", "--format=%H", "--", *(str(place) for place in places)
        )
        for commit in (listed or b"").decode().split():
            ours, theirs = (_keys_at(commit, place) for place in places)
            lost |= sought & ours
            sought &= theirs - ours
            if not sought:
                break
        return frozenset(lost)

    @cached_property
    def past(self) -> Mapping[tuple[str, str], str] | None:
        """What its sections said in every revision, by key and digest; None if git does not know all."""
        revisions = _revisions(self.path)
        if revisions is None:
            return None
        found = {}
        for text in revisions:
            for section in sections_of(parse_page(text, inline=False), text):
                found[section.key, section_digest(section)] = section.source
        return found

    @cached_property
    def ever(self) -> str:
        """What its sections say and, as far as git knows, ever said, with single spaces.

        What YAML writes with a backslash stands there as readers see it, too.
        """
        said = [*(section.source for section in self.sections), *(self.past or {}).values()]
        seen = [text.replace('\\"', '"') for text in said if '\\"' in text]
        return " ".join(" ".join([*said, *seen]).split())


def _keys_at(commit: str, path: Path) -> set[str]:
    """The sections that a file had in a commit; none where it was not there."""
    content = git_answer(path.parent, "cat-file", "blob", f"{commit}:./{path.name}") or b""
    text = content.decode("utf-8", "replace")
    if not is_readable(text):
        return set()
    return {section.key for section in sections_of(parse_page(text, inline=False), text)}


def _revisions(path: Path) -> list[str] | None:
    """Every text that a file has had, the newest first; None where git does not know it, or not all of it.

    Texts that no check would have read are left out, and so are the oldest where all are longer than
    `LONGEST_HISTORY` together.
    """
    if not has_whole_history(path.parent):
        return None
    # Merges too, and what the file was called before.
    history = git_answer(
        path.parent, "log", "--follow", "-m", "--raw", "--no-abbrev", "--format=", "--", path.name
    )
    blobs = dict.fromkeys(line.split()[3] for line in (history or b"").splitlines() if line[:1] == b":")
    texts = []
    length = 0
    for blob in blobs:
        if not blob.strip(b"0"):
            continue
        if (content := git_answer(path.parent, "cat-file", "blob", blob.decode())) is None:
            return None
        if not is_readable(text := content.decode("utf-8", "replace")):
            continue
        if (length := length + len(text)) > LONGEST_HISTORY:
            break
        texts.append(text)
    return texts or None


def read_documents(project: Project, pages: Mapping[Path, PageSource] | None = None) -> Iterator[Document]:
    """Every page of every language, the English ones first.

    Parameters:
        project: The checkout.
        pages: Pages that are parsed already.
    """
    english: dict[str, Document] = {}
    for path in project.page_paths():
        code, _, name = path.relative_to(project.docs).as_posix().partition("/")
        text = path.read_text("utf-8")
        page = (pages or {}).get(path) or parse_page(text)
        document = Document(path, project.relative(path), code, name, text, page, english.get(name))
        if code == FALLBACK:
            english[name] = document
        yield document
