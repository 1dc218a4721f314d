"""What a language's `_language.yml` says of its translations: terms, numerals, register."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.project import Project
from benchbook.content.yaml_text import InvalidYamlError, parse_yaml
from benchbook.languages.language import FALLBACK, FILE, line_of_key, unit_words
from benchbook.translations.matching import Matching, PhraseIndex, words_of


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Term(_Table):
    """A term of the glossary.

    Parameters:
        find: The words that English uses for it; in English only.
        approved: Renderings, any of which will do; what one has in brackets belongs to its first use.
        forbidden: Renderings that are wrong, or that another one was chosen over.
        note: Why, for translators.
    """

    find: list[str] = Field(default_factory=list)
    approved: list[str] = Field(default_factory=list)
    forbidden: list[str] = Field(default_factory=list)
    note: str = ""


class _Glossary(_Table):
    match: Literal["words", "text"] = "words"
    prefixes: list[str] = Field(default_factory=list)
    articles: list[str] = Field(default_factory=list)
    suffixes: list[str] = Field(default_factory=list)
    alike: dict[str, str] = Field(default_factory=dict)
    terms: dict[str, Term] = Field(default_factory=dict)


class Register(_Table):
    """How a language speaks to its reader.

    Parameters:
        never: Words of another register.
        stop: What ends a sentence.
        plain: How sentences of another register end.
        polite: Endings that are right although one of `plain` is the end of them.
    """

    never: list[str] = Field(default_factory=list)
    stop: str = ""
    plain: list[str] = Field(default_factory=list)
    polite: list[str] = Field(default_factory=list)


class _Blocks(_Table):
    model_config = ConfigDict(extra="ignore", strict=True)

    glossary: _Glossary = Field(default_factory=_Glossary)
    numerals: dict[int, list[str]] = Field(default_factory=dict)
    implied: dict[int, list[str]] = Field(default_factory=dict)
    magnitudes: dict[int, list[str]] = Field(default_factory=dict)
    register_: Register = Field(default_factory=Register, alias="register")
    leftovers: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class Rules:
    """The rules of one language.

    Parameters:
        code: The language.
        matching: How its words are found.
        terms: Its glossary.
        numerals: The words for numbers.
        implied: Words of English that a translation may put a number for.
        magnitudes: Words behind a number that multiply it.
        register: How it speaks to its reader.
        leftovers: What translation tools leave behind, in this language.
        unit_words: How people write units behind a number, in this language and in English.
    """

    code: str
    matching: Matching = field(default_factory=Matching)
    terms: Mapping[str, Term] = field(default_factory=dict)
    numerals: Mapping[int, list[str]] = field(default_factory=dict)
    implied: Mapping[int, list[str]] = field(default_factory=dict)
    magnitudes: Mapping[int, list[str]] = field(default_factory=dict)
    register: Register = field(default_factory=Register)
    leftovers: tuple[str, ...] = ()
    unit_words: frozenset[str] = frozenset()

    @cached_property
    def script(self) -> str:
        """What script the language is written in, by its code in ISO 15924; Latin if unknown."""
        try:
            return script_of(Locale.parse(self.code.replace("-", "_")))
        except (UnknownLocaleError, ValueError):
            return "Latn"

    @cached_property
    def kept_words(self) -> frozenset[str]:
        """The words of its approved renderings, in small letters: those in Latin letters are no English."""
        texts = (text for term in self.terms.values() for text in term.approved)
        return frozenset(word.casefold() for text in texts for word in words_of(text))

    @cached_property
    def index(self) -> PhraseIndex:
        """The English phrases of its terms."""
        return PhraseIndex({phrase: key for key, term in self.terms.items() for phrase in term.find})


def script_of(locale: Locale) -> str:
    """What script a language is mostly written in, by its code in ISO 15924."""
    likely = get_global("likely_subtags").get(str(locale))
    return locale.script or (Locale.parse(likely).script if likely else None) or "Latn"


def load_rules(project: Project, code: str) -> Rules:
    """The rules in `docs/<code>/_language.yml`; a block that is missing has none.

    Raises:
        BenchbookError: A block is malformed; carries every problem found.
    """
    path = project.docs / code / FILE
    shown = project.relative(path)
    text = path.read_text("utf-8")
    try:
        table = parse_yaml(text)
        blocks = _Blocks.model_validate(table if isinstance(table, dict) else {})
    except InvalidYamlError as error:
        raise BenchbookError(Problem(shown, error.line, "is not valid YAML", "mend its syntax")) from error
    except ValidationError as error:
        raise BenchbookError(*(_problem(dict(found), shown, text) for found in error.errors())) from error
    glossary = blocks.glossary
    matching = Matching(
        glossary.match,
        tuple(glossary.prefixes),
        tuple(glossary.articles),
        tuple(glossary.suffixes),
        tuple(glossary.alike.items()),
    )
    return Rules(
        code,
        matching,
        glossary.terms,
        blocks.numerals,
        blocks.implied,
        blocks.magnitudes,
        blocks.register_,
        tuple(blocks.leftovers),
        unit_words(project.docs, code),
    )


def glossary_gaps(rules: Mapping[str, Rules], project: Project) -> list[Problem]:
    """Terms that one language's glossary has and English, or another language, lacks."""
    problems: list[Problem] = []
    if FALLBACK not in rules:
        return problems
    english = rules[FALLBACK].terms
    for code, its in rules.items():
        shown = project.relative(project.docs / code / FILE)
        text = (project.docs / code / FILE).read_text("utf-8")
        for key in sorted(set(english) - set(its.terms)):
            mend = "add it with a rendering that a native speaker would choose"
            problems.append(Problem(shown, line_of_key("terms:", text), f"its glossary lacks `{key}`", mend))
        for key in sorted(set(its.terms) - set(english)):
            mend = f"add it to docs/{FALLBACK}/{FILE} with the words to find it by, or remove it"
            what = f"its glossary has `{key}`, which English lacks"
            problems.append(Problem(shown, line_of_key(f"{key}: {{", text), what, mend))
    return problems


def _problem(found: dict[str, Any], path: str, text: str) -> Problem:
    where = [str(part) for part in found["loc"]]
    names = [name for name in where if not name.isdigit()]
    what = f"{'.'.join(where)}: {found['msg']}"
    return Problem(path, line_of_key(names[-1] if names else "", text), what, "mend it as its neighbours are")
