"""Tell what is declared otherwise than on `main`: claims, questions, reviews, models, names, settings."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchbook.calculator.listing import FILE as MODELS
from benchbook.checking.committed import Committed
from benchbook.checking.guide_reviews import FILE as REVIEWS
from benchbook.content.bounds import load_toml
from benchbook.content.claims import FILE as CLAIMS
from benchbook.content.page_source import parse_page
from benchbook.content.positions import Keys, toml_line
from benchbook.content.prediction_declarations import FILE as PREDICTIONS
from benchbook.content.problems import BenchbookError, Problem, few
from benchbook.content.project import FALLBACK, Project, read_settings
from benchbook.content.revisions import git_answer, text_at
from benchbook.content.site_files import LANGUAGE_FILE
from benchbook.content.yaml_text import InvalidYamlError, parse_yaml
from benchbook.rendering.error_texts import known_texts
from benchbook.translations.reviews import ENTRY as REVIEWED
from benchbook.translations.reviews import section_reviews

_Key = TypeVar("_Key", str, int)


@dataclass(frozen=True)
class _Declaration:
    """A table of a file: what it is called, the keys that lead to it, and what it says."""

    name: str
    keys: Keys
    table: dict[str, Any]


def changed_declarations(project: Project, committed: Committed) -> Iterator[Problem]:
    """What `main` declares and is declared otherwise here, or no longer: a line for each.

    Parameters:
        project: The checkout.
        committed: What `main` has.
    """
    changed = [path for path in committed.changed(project.relative(project.snippets)) if _is_read(path)]
    if not changed:
        return
    # A claim may stand in the file of another guide.
    paths = [path for path in sorted(project.snippets.glob("*/*.toml")) if _is_read(path.name)]
    here = {project.relative(path): _text_of(path) for path in paths}
    found = {shown: _declarations(shown, text) for shown, text in here.items()}
    everywhere = [(shown, one) for shown, ones in found.items() for one in ones]
    for shown in changed:
        for before in _declarations(shown, committed.text(shown)):
            namesakes = [(place, one) for place, one in everywhere if one.name == before.name]
            # The file that says it on `main` goes before others: one of its name may lie anywhere.
            ranks = [(place != shown, one.table != before.table) for place, one in namesakes]
            if (False, False) in ranks:
                continue
            where, line, how = shown, 1, "is gone, and `main` has it"
            if ranks:
                where, one = namesakes[ranks.index(min(ranks))]
                line = toml_line(here[where], one.keys)
                odd = [key for key in {**before.table, **one.table} if _differs(key, before, one)]
                how = (
                    f"is otherwise than on `main` (its {few(odd)} differs)"
                    if odd
                    else f"is in {shown} on `main`"
                )
            yield Problem(where, line, f"{before.name} {how}", "say in the pull request why")


def added_maintained_machines(project: Project, committed: Committed) -> Iterator[Problem]:
    """Machines that pyproject.toml names as the maintainers' here, and not on `main`."""
    told = text_at(project.root, committed.commit, "pyproject.toml")
    # Of what is no file of settings there, nothing can be said.
    if told is None:
        return
    text = (project.root / "pyproject.toml").read_text("utf-8")
    try:
        there = read_settings(told, "pyproject.toml")
    except BenchbookError:
        return
    if new := sorted(project.config.maintained - there.maintained):
        what = f"names {few(new)} as a machine of the maintainers, and `main` does not"
        line = toml_line(text, ("tool", "benchbook"))
        yield Problem("pyproject.toml", line, what, "say in the pull request who has it")


def dropped_strings(project: Project, committed: Committed) -> Iterator[Problem]:
    """Interface texts that are gone from English, where the code that asks for them is that of `main`."""
    shown = f"docs/{FALLBACK}/{LANGUAGE_FILE}"
    told = text_at(project.root, committed.commit, shown)
    unchanged = git_answer(project.root, "diff", "--quiet", committed.commit, "--", "scripts/benchbook")
    if told is None or unchanged is None:
        return
    try:
        there, here = (
            parse_yaml(text)["strings"].keys() for text in (told, (project.root / shown).read_text("utf-8"))
        )
    except (OSError, UnicodeDecodeError, InvalidYamlError, TypeError, KeyError, AttributeError):
        return  # told elsewhere
    for key in sorted(there - here):
        what = f"`strings:` has no `{key}`, which `main` has and pages are made of"
        yield Problem(shown, 1, what, "restore it from `main`")


def changed_reviews(project: Project, committed: Committed) -> Iterator[Problem]:
    """Native reviews that `main` has of a translation, and that are otherwise here, or gone.

    Parameters:
        project: The checkout.
        committed: What `main` has.
    """
    asked = ("grep", "-l", f"^{REVIEWED}:", committed.commit, "--", "docs/*.md")
    for line in (git_answer(project.root, *asked) or b"").decode("utf-8", "replace").splitlines():
        shown = line.partition(":")[2]
        path = project.root / shown
        there, here = (
            section_reviews(parse_page(text))
            for text in (text_at(project.root, committed.commit, shown) or "", _text_of(path))
        )
        for section, review in there.items():
            if (now := here.get(section)) != review:
                how = "is gone" if now is None else f"is another, by {now.by}"
                what = f"the review of `{section}` by {review.by}, which `main` has, {how}"
                yield Problem(shown, 1, what, f"say in the pull request that {review.by} knows")


def added_error_texts(project: Project, committed: Committed) -> Iterator[Problem]:
    """Texts of errors that a script of which `main` has nothing says it provokes: readers search by them.

    Parameters:
        project: The checkout.
        committed: What `main` has.
    """
    try:
        texts = known_texts(project)
    except BenchbookError:
        return  # told elsewhere
    new: dict[str, list[str]] = {}
    for text in texts:
        if f"{project.relative(project.snippets)}/{text.script}" not in committed.blobs:
            new.setdefault(text.script, []).append(text.id)
    for script, names in new.items():
        what = f"provokes {few(names)}: what readers paste may lead there, and not where it does on `main`"
        yield Problem(
            f"{project.relative(project.snippets)}/{script}", 1, what, "say in the pull request why"
        )


def otherwise_changed(project: Project, committed: Committed, told: Collection[str]) -> Iterator[Problem]:
    """The files that `main` has below snippets/, and that are otherwise here, or gone, where nothing says so.

    Parameters:
        project: The checkout.
        committed: What `main` has.
        told: The paths of which something is said.
    """
    for shown in committed.changed(project.relative(project.snippets)):
        if shown not in told:
            is_here = (project.root / shown).is_file()
            what = "is otherwise than on `main`" if is_here else "is gone, and `main` has it"
            yield Problem(shown, 1, what, "say in the pull request why")


def changed_coefficients(project: Project, committed: Committed) -> Iterator[Problem]:
    """Coefficients, their points and models' configurations that are otherwise than on `main`, or gone.

    Parameters:
        project: The checkout.
        committed: What `main` has.
    """
    folders = [project.relative(project.snippets / name) for name in ("coefficients", "models")]
    changed = [path for folder in folders for path in committed.changed(folder) if path.endswith(".json")]
    for shown in changed:
        is_here = (project.root / shown).is_file()
        how = "is otherwise than on `main`" if is_here else "is gone, and `main` has it"
        yield Problem(shown, 1, f"{how}, and the calculator answers by it", "say in the pull request why")


def _differs(key: str, one: _Declaration, other: _Declaration) -> bool:
    return one.table.get(key) != other.table.get(key)


def _is_read(path: str) -> bool:
    return Path(path).name in (*_KINDS, MODELS)


def _text_of(path: Path) -> str:
    """The content of a file; empty where it cannot be read, which is told elsewhere."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _declarations(shown: str, text: str) -> list[_Declaration]:
    """What a file declares; nothing where it is no TOML, or of another form, which is told elsewhere."""
    try:
        table = load_toml(text)
    except tomllib.TOMLDecodeError:
        return []
    name, guide = Path(shown).name, Path(shown).parent.name
    if name == MODELS:
        return [_Declaration(f"the model `{key}`", (key,), one) for key, one in _tables(table.items())]
    kind, called = _KINDS[name]
    listed = table.get(kind)
    entries = _tables(enumerate(listed)) if isinstance(listed, list) else ()
    found = [_Declaration(called(guide, one), (kind, number), one) for number, one in entries]
    if name == PREDICTIONS and "machines" in table:
        asked = {"machines": table["machines"]}
        found.append(_Declaration(f"the list of machines of {guide}", ("machines",), asked))
    if name == REVIEWS and isinstance(table.get("frozen"), dict):
        finished = f"the page of {guide} that was called finished"
        found.append(_Declaration(finished, ("frozen",), table["frozen"]))
    return found


def _tables(entries: Iterable[tuple[_Key, Any]]) -> Iterator[tuple[_Key, dict[str, Any]]]:
    return ((key, one) for key, one in entries if isinstance(one, dict))


def _review(guide: str, review: dict[str, Any]) -> str:
    by = f"{review.get('role')} ({review.get('language', 'en')})"
    return f"the review of {guide} by the {by} of {review.get('date')}"


# What list each file holds, and what an entry of it is called, by its guide and its table.
_KINDS: dict[str, tuple[str, Callable[[str, dict[str, Any]], str]]] = {
    CLAIMS: ("claim", lambda _, claim: f"the claim `{claim.get('id')}`"),
    REVIEWS: ("review", _review),
    PREDICTIONS: ("script", lambda guide, script: f"the question of {guide}/{script.get('name')}"),
}
