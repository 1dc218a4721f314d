"""Hold the words of a translation to the glossary and the register of its language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchbook.content.problems import Problem
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
