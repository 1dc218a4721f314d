"""Hold the words of a translation to the glossary and the register of its language."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from benchbook.content.positions import yaml_line
from benchbook.content.problems import Problem
from benchbook.content.project import FALLBACK
from benchbook.content.site_files import LANGUAGE_FILE
from benchbook.languages.language import Language
from benchbook.languages.telling import visible
from benchbook.translations.sections import Section, TextRun
from benchbook.translations.settings import Rules, Term

_BRACKETS = str.maketrans("（）", "()")
# What may close a quotation: whose words end there is not for the page to choose.
_QUOTED = tuple("」』》】）)”’\"' ")


def forbidden_terms(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Renderings that the glossary forbids for a term of the English section."""
    for key in sorted({key for unit in english.units for key in english_rules.index.found_in(unit.spoken)}):
        term = rules.terms.get(key, Term())
        for wrong in term.forbidden:
            for unit in section.units:
                for place, _ in rules.matching.places(wrong, unit.prose):
                    what = f"`{wrong}` is not a rendering of “{key}”"
                    yield Problem(path, unit.line_at(place), what, f"write {_choice(term)}")


def unrendered_terms(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Terms of the English section that the translation renders in no approved way."""
    there = [unit.spoken for unit in section.units]
    for key in sorted({key for unit in english.units for key in english_rules.index.whole_in(unit.prose)}):
        term = rules.terms.get(key, Term())
        stems = [_plain(text)[0] for text in term.approved]
        if stems and not any(rules.matching.has(stem, text) for stem in stems for text in there):
            what = f"{section.called} has no approved rendering of “{key}”"
            fix = f"write {_choice(term)}, or approve what stands there in docs/{rules.code}/_language.yml"
            yield Problem(path, section.line, what, fix)


def missing_glosses(
    pairs: Sequence[tuple[Section, Section]], rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Terms whose English name the first section to use them does not give in brackets."""
    named: set[str] = set()
    for section, english in pairs:
        if not section.level:
            continue
        for key in sorted(
            {key for unit in english.units for key in english_rules.index.whole_in(unit.prose)}
        ):
            renderings = [_plain(text) for text in rules.terms.get(key, Term()).approved]
            first = next(
                (
                    (unit, stem, place)
                    for unit in section.units
                    for stem, _ in renderings
                    for place, _ in rules.matching.places(stem, unit.prose)
                ),
                None,
            )
            if first is None or key in named:
                continue
            named.add(key)
            for gloss in (gloss for _, gloss in renderings if gloss):
                if not any(rules.matching.has(gloss, unit.spoken) for unit in section.units):
                    what = f"`{first[1]}` stands here first, without `{gloss}`"
                    fix = f"put ({gloss}) behind “{key}” where a page first names it"
                    yield Problem(path, first[0].line_at(first[2]), what, fix)


def renamed_texts(
    language: Language, english: Language, rules: Rules, english_rules: Rules, path: str, text: str
) -> Iterator[Problem]:
    """Texts of the interface, and labels, that do not call a term of their English text as the glossary does.

    A term is in an English text where its words are, and where the text is the term. A translation may also
    keep the English words, as in a name or in code.
    """
    tables = (("strings", english.strings, language.strings), ("labels", english.labels, language.labels))
    for title, sources, texts in tables:
        for key in (key for key in sources if key in texts):
            theirs, ours = _whole(sources[key]), _whole(texts[key])
            said = visible(ours)
            meant = english_rules.index.found_in(theirs)
            # A label of one script is named as its page needs it.
            named = {term for term in rules.terms if term.casefold() == theirs.casefold() and "#" not in key}
            kept = english_rules.index.found_in(said)
            wanted = named | {term for term in english_rules.index.whole_in(theirs) if term not in kept}
            for term in sorted(wanted & rules.terms.keys()):
                approved = rules.terms[term].approved
                if approved and not _says(said, term, named | meant.keys(), rules):
                    what = f"`{key}` is `{ours}`, which is not what the glossary calls “{term}”"
                    source = f"docs/{FALLBACK}/{LANGUAGE_FILE}"
                    fix = f"write {_choice(rules.terms[term])}, as {source} does: {theirs}"
                    yield Problem(path, yaml_line(text, (title, key)), what, fix)


def _says(said: str, term: str, meant: Collection[str], rules: Rules) -> bool:
    """Whether a text has a rendering of a term that is not part of one of a term that it does not mean."""
    own, others = (
        [
            place
            for key in keys
            for rendering in rules.terms[key].approved
            for place in rules.matching.places(_plain(rendering)[0], said)
        ]
        for keys in ([term], [key for key in rules.terms if key not in meant])
    )
    return any(
        not any(first <= start and end <= last and (first, last) != (start, end) for first, last in others)
        for start, end in own
    )


def _whole(value: str | Mapping[str, str]) -> str:
    """A text of the interface in one, with the form for every number that it has."""
    return value if isinstance(value, str) else " ".join(value.values())


def register_problems(section: Section, rules: Rules, path: str) -> Iterator[Problem]:
    """Words and sentences of another register than the language's own."""
    register = rules.register
    for unit in section.units:
        for word in register.never:
            for place, _ in rules.matching.places(word, unit.prose):
                what = f"`{word}` is of another register than the other pages"
                fix = f"address the reader as `register:` of docs/{rules.code}/_language.yml says"
                yield Problem(path, unit.line_at(place), what, fix)
        # Cells and notes need no whole sentences.
        if register.stop and unit.kind not in ("cell", "note"):
            yield from _plain_sentences(unit, rules, path)


def _plain_sentences(unit: TextRun, rules: Rules, path: str) -> Iterator[Problem]:
    register = rules.register
    end = 0
    *sentences, _ = unit.prose.split(register.stop)
    for sentence in sentences:
        end += len(sentence) + len(register.stop)
        if sentence.endswith(_QUOTED) or sentence.endswith(tuple(register.polite)):
            continue
        if sentence.endswith(tuple(register.plain)):
            what = f"the sentence ending in `{sentence[-6:].strip()}` is of another register than the others"
            fix = f"end it like one of {', '.join(register.polite[:4])}"
            yield Problem(path, unit.line_at(end - 1), what, fix)


def _plain(rendering: str) -> tuple[str, str]:
    """A rendering without what it has in brackets, and that."""
    stem, _, rest = rendering.translate(_BRACKETS).partition("(")
    return stem.strip(), rest.rstrip(") ")


def _choice(term: Term) -> str:
    return " or ".join(f"`{text}`" for text in term.approved) or "it as its neighbours do"
