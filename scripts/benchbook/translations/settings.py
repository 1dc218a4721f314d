"""What a language's `_language.yml` says of translations, and how phrases are found in running text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import Annotated, Literal

from babel import Locale, UnknownLocaleError
from pydantic import ValidationError

from benchbook.content.formats import Limit, Stored
from benchbook.content.positions import yaml_line
from benchbook.content.problems import BenchbookError, Problem, did_you_mean
from benchbook.content.project import FALLBACK, Project
from benchbook.content.site_files import LANGUAGE_FILE
from benchbook.content.validation import adapter, shape_errors
from benchbook.content.yaml_text import InvalidYamlError, parse_yaml
from benchbook.languages.cldr import script_of
from benchbook.languages.language import load_language, unit_words
from benchbook.languages.language_file import INTERFACE
from benchbook.languages.telling import (
    IDEOGRAPHIC,
    IDEOGRAPHS,
    MAGNITUDES,
    NUMERALS,
    fixed_numbers,
    ideographic,
    outermost,
    unit_symbols,
)
from benchbook.translations.english_words import implied_everywhere, unsaid_by_english

# What every language calls so, whether a term is of it or not.
DEVICES = ("CPU", "GPU", "TPU", "NPU")
# What `charset:` may be. Others have every letter there is (UTF-8, GB 18030, IDNA), or of too many languages.
_CHARSETS = (
    *("big5", "euc_jp", "euc_kr", "gb2312", "koi8_r", "koi8_u", "shift_jis", "tis_620"),
    *(f"iso8859_{part}" for part in (*range(1, 12), *range(13, 17))),
)
_LATIN = re.compile(r"[A-Za-z][A-Za-z0-9]*")
LIKE_NEIGHBOURS = "fix it as its neighbours are"
# Several times what any language here has: each is tried at every word of every page.
MOST_AFFIXES = 100
# Twice what any language here has, of words, terms and their renderings together: likewise.
MOST_PHRASES = 1000
# What an approved rendering has in brackets.
_BRACKETED = re.compile(r"[(（].*?[)）]")
_Affixes = Annotated[list[str], Limit(max_length=MOST_AFFIXES)]
# What is left of a word once a prefix is taken off has at least this many letters.
_STEM = 2


# Compared by identity, for results are kept by it and by the text.
@dataclass(frozen=True, eq=False)
class Matching:
    """How the words of a language are found.

    Parameters:
        by: "words" where spaces separate them, "text" where nothing does.
        prefixes: What may stand before a word, and before its article, without a space.
        articles: What may stand before the stem of a word.
        suffixes: What may be joined to the end of a word.
        alike: Letters that count as another one, or as none.
    """

    by: Literal["words", "text"] = "words"
    prefixes: tuple[str, ...] = ()
    articles: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    alike: tuple[tuple[str, str], ...] = ()

    def places(self, phrase: str, text: str) -> Iterator[tuple[int, int]]:
        """Where in `text` the phrase begins and ends, each time it is there."""
        if self.by == "text":
            wanted, _ = _closed_up(phrase)
            there, offsets = _closed_up(text)
            place = there.find(wanted) if wanted else -1
            while place >= 0:
                yield offsets[place], offsets[place + len(wanted) - 1] + 1
                place = there.find(wanted, place + 1)
            return
        asked = _asked(self, phrase)
        found, known = _stemmed(self, text)
        if not asked or any(known.isdisjoint(stems) for stems in asked):
            return
        for start in range(len(found) - len(asked) + 1):
            if all(stems & found[start + step][2] for step, stems in enumerate(asked)):
                yield found[start][0], found[start + len(asked) - 1][1]

    def has(self, phrase: str, text: str) -> bool:
        """Whether the phrase is in `text`."""
        return next(self.places(phrase, text), None) is not None

    def stems(self, word: str, prefixes: Sequence[str], suffixes: Sequence[str]) -> frozenset[str]:
        """What a word may be: itself, and itself without what is joined to it."""
        word = _folded(self, word)
        lead = [_folded(self, prefix) for prefix in prefixes]
        articles = [_folded(self, article) for article in self.articles]
        forms = {word} | {word[len(start) :] for start in lead if word.startswith(start)}
        forms |= {form[len(start) :] for form in forms for start in articles if form.startswith(start)}
        forms |= {form.removesuffix(_folded(self, end)) for form in tuple(forms) for end in suffixes}
        return frozenset(form for form in forms if len(form) >= _STEM) | {word}


Stems = frozenset[str]


@lru_cache(maxsize=8192)
def _folded(matching: Matching, word: str) -> str:
    kept = (c for c in unicodedata.normalize("NFKD", word) if unicodedata.category(c) != "Mn")
    alike = dict(matching.alike)
    return "".join(alike.get(letter, letter) for letter in kept).casefold()


@lru_cache(maxsize=8192)
def _asked(matching: Matching, phrase: str) -> tuple[Stems, ...]:
    """What each word of a phrase may be: a phrase stands for itself, and nothing is joined to its words."""
    return tuple(matching.stems(word, (), ()) for word in words_of(phrase))


@lru_cache(maxsize=8192)
def _stemmed(matching: Matching, text: str) -> tuple[tuple[tuple[int, int, Stems], ...], Stems]:
    """Where each word of a text begins and ends, and what it may be; and what any of them may be."""
    found = tuple((start, start + len(word), _joined(matching, word)) for start, word in _words(text))
    return found, frozenset(stem for _, _, stems in found for stem in stems)


@lru_cache(maxsize=8192)
def _joined(matching: Matching, word: str) -> Stems:
    return matching.stems(word, matching.prefixes, matching.suffixes)


@lru_cache(maxsize=8192)
def _words(text: str) -> tuple[tuple[int, str], ...]:
    """The words of `text` and where each begins; marks above and below letters belong to them."""
    found: list[tuple[int, str]] = []
    start = None
    for offset, letter in enumerate(f"{text} "):
        inside = letter.isalnum() or unicodedata.category(letter) in ("Mn", "Mc")
        if inside and start is None:
            start = offset
        elif not inside and start is not None:
            found.append((start, text[start:offset]))
            start = None
    return tuple(found)


def words_of(text: str) -> list[str]:
    """The words of `text`, in order."""
    return [word for _, word in _words(text)]


@lru_cache(maxsize=8192)
def _closed_up(text: str) -> tuple[str, tuple[int, ...]]:
    """`text` without spaces, in one width and case, and where each of its characters comes from."""
    letters: list[str] = []
    offsets: list[int] = []
    for offset, letter in enumerate(text):
        for plain in unicodedata.normalize("NFKC", letter).casefold():
            if not plain.isspace():
                letters.append(plain)
                offsets.append(offset)
    return "".join(letters), tuple(offsets)


# Compared by identity, as what it is found by.
@dataclass(frozen=True, eq=False)
class NumberWords:
    """Words of a language for numbers: of the many that there are, a text is searched for a few.

    Parameters:
        matching: How words of the language are found.
        names: How each number is called.
    """

    matching: Matching
    names: Mapping[int, Sequence[str]]

    def places(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Each number that `text` says so, and where its words begin and end."""
        if self.matching.by == "text":
            there = self._named
        else:
            _, known = _stemmed(self.matching, text)
            places = {place for stem in known & self._by_stem.keys() for place in self._by_stem[stem]}
            there = [self._named[place] for place in sorted(places)]
        for number, name in there:
            for start, end in self.matching.places(name, text):
                yield number, start, end

    @cached_property
    def _named(self) -> list[tuple[int, str]]:
        return [(number, name) for number, names in self.names.items() for name in names]

    @cached_property
    def _by_stem(self) -> Mapping[str, list[int]]:
        """Where in `_named` those stand whose first word may be so."""
        found: dict[str, list[int]] = {}
        for place, (_, name) in enumerate(self._named):
            for stem in next(iter(_asked(self.matching, name)), ()):
                found.setdefault(stem, []).append(place)
        return found


@dataclass
class PhraseIndex:
    """English phrases, found in one pass; a phrase with a capital letter is found only as it is written.

    Parameters:
        phrases: What each phrase stands for.
    """

    phrases: Mapping[str, str]
    _by_first: dict[str, list[tuple[tuple[str, ...], str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for phrase, key in self.phrases.items():
            words = tuple(words_of(phrase))
            self._by_first.setdefault(words[0], []).append((words, key))

    def found_in(self, text: str) -> Counter[str]:
        """What the phrases in `text` stand for, and how often each is there."""
        return Counter(key for _, _, key in self._spans(text))

    def whole_in(self, text: str) -> set[str]:
        """What the phrases in `text` stand for that are not part of a longer one."""
        spans = list(self._spans(text))
        whole = outermost((start, end) for start, end, _ in spans)
        return {key for start, end, key in spans if (start, end) in whole}

    def _spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        forms = [_forms(word) for word in words_of(text)]
        for start, first in enumerate(forms):
            for words, key in (phrase for form in sorted(first) for phrase in self._by_first.get(form, ())):
                end = start + len(words)
                if end <= len(forms) and all(word in forms[start + at] for at, word in enumerate(words)):
                    yield start, end, key


@lru_cache(maxsize=8192)
def _forms(word: str) -> frozenset[str]:
    """An English word as it is written and in small letters, both also without the ending of a plural."""
    forms = {word, word.lower()}
    forms |= {form.removesuffix(ending) for form in tuple(forms) for ending in ("s", "es")}
    return frozenset(forms)


@dataclass(frozen=True)
class Term(Stored):
    """A term of the glossary.

    Parameters:
        find: The words that English uses for it; in English only.
        approved: Renderings, any of which will do; what one has in brackets belongs to its first use.
        forbidden: Renderings that are wrong, or that another one was chosen over.
        note: Why, for translators.
    """

    find: list[str] = field(default_factory=list)
    approved: list[str] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class _Glossary(Stored):
    match: Literal["words", "text"] = "words"
    prefixes: _Affixes = field(default_factory=list)
    articles: _Affixes = field(default_factory=list)
    suffixes: _Affixes = field(default_factory=list)
    alike: Annotated[dict[str, str], Limit(max_length=MOST_AFFIXES)] = field(default_factory=dict)
    terms: dict[str, Term] = field(default_factory=dict)


@dataclass(frozen=True)
class Register(Stored):
    """How a language speaks to its reader.

    Parameters:
        never: Words of another register.
        stop: What ends a sentence.
        plain: How sentences of another register end.
        polite: Endings that are right although one of `plain` is the end of them.
    """

    never: list[str] = field(default_factory=list)
    stop: str = ""
    plain: list[str] = field(default_factory=list)
    polite: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Blocks(Stored):
    # What stands beside these is the interface's (`benchbook.languages.language`).
    __pydantic_config__ = Stored.__pydantic_config__ | {"extra": "ignore"}

    glossary: _Glossary = field(default_factory=_Glossary)
    numerals: dict[int, list[str]] = field(default_factory=dict)
    implied: dict[int, list[str]] = field(default_factory=dict)
    implied_names: dict[str, list[str]] = field(default_factory=dict)
    fractions: dict[int, list[str]] = field(default_factory=dict)
    dividing: list[str] = field(default_factory=list)
    comparisons: dict[str, list[str]] = field(default_factory=dict)
    magnitudes: dict[int, list[str]] = field(default_factory=dict)
    register: Register = field(default_factory=Register)
    leftovers: list[str] = field(default_factory=list)
    charset: str = ""
    keeps_order: list[Literal["code", "value"]] = field(default_factory=list)


# Compared by identity, as what they hold.
@dataclass(frozen=True, eq=False)
class Rules:
    """The rules of one language.

    Parameters:
        code: The language.
        matching: How its words are found.
        terms: Its glossary.
        numerals: The words for numbers.
        implied: Words of English that a translation may put a number for.
        implied_names: By name, words of English that a translation may put it for.
        fractions: By a number, words of English for one part of so many.
        dividing: Words of English before a number of which something is one part.
        comparisons: By a sign, `<`, `>`, `≠` or `^`, words that say it; `^` is a power.
        magnitudes: Words behind a number that multiply it.
        register: How it speaks to its reader.
        leftovers: What translation tools leave behind, in this language.
        charset: An encoding that has every letter it uses of its script, of `_CHARSETS`; "" for none.
        keeps_order: What stands in its texts in the English order, as links do in every language.
        units: How people write units behind a number, in this language and in English, and which each is.
    """

    code: str
    matching: Matching = field(default_factory=Matching)
    terms: Mapping[str, Term] = field(default_factory=dict)
    numerals: Mapping[int, list[str]] = field(default_factory=dict)
    implied: Mapping[int, list[str]] = field(default_factory=dict)
    implied_names: Mapping[str, list[str]] = field(default_factory=dict)
    fractions: Mapping[int, list[str]] = field(default_factory=dict)
    dividing: tuple[str, ...] = ()
    comparisons: Mapping[str, list[str]] = field(default_factory=dict)
    magnitudes: Mapping[int, list[str]] = field(default_factory=dict)
    register: Register = field(default_factory=Register)
    leftovers: tuple[str, ...] = ()
    charset: str = ""
    keeps_order: tuple[Literal["code", "value"], ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def script(self) -> str:
        """What script the language is written in, by its code in ISO 15924; Latin if unknown."""
        try:
            return script_of(Locale.parse(self.code.replace("-", "_")))
        except (UnknownLocaleError, ValueError):
            return "Latn"

    @cached_property
    def unit_words(self) -> frozenset[str]:
        """How people write units behind a number."""
        return frozenset(self.units)

    @cached_property
    def unit_symbols(self) -> Mapping[str, str]:
        """Which unit each word or symbol behind a number is, as folded text reads."""
        return unit_symbols(self.units)

    @cached_property
    def numbers(self) -> NumberWords:
        """Its words for numbers, as they are found."""
        return NumberWords(self.matching, self.numerals)

    @cached_property
    def implied_numbers(self) -> NumberWords:
        """What implies a number, likewise."""
        return NumberWords(self.matching, self.implied)

    @cached_property
    def parts(self) -> NumberWords:
        """Its words for one part of so many, likewise."""
        return NumberWords(self.matching, self.fractions)

    @cached_property
    def longest_magnitude(self) -> int:
        """How many letters the longest word that multiplies a number has."""
        return max((len(word) for words in self.magnitudes.values() for word in words), default=0)

    @cached_property
    def kept_words(self) -> frozenset[str]:
        """The words of its approved renderings, in small letters: those in Latin letters are no English."""
        texts = (text for term in self.terms.values() for text in term.approved)
        return frozenset(word.casefold() for text in texts for word in words_of(text))

    @cached_property
    def index(self) -> PhraseIndex:
        """The English phrases of its terms."""
        return PhraseIndex({phrase: key for key, term in self.terms.items() for phrase in term.find})

    @cached_property
    def naming(self) -> PhraseIndex:
        """The English phrases that imply a name."""
        return PhraseIndex({phrase: phrase for phrases in self.implied_names.values() for phrase in phrases})


def load_rules(project: Project, code: str) -> Rules:
    """The rules in `docs/<code>/_language.yml`; a block that is missing has none.

    Raises:
        BenchbookError: A block is malformed; carries every problem found.
    """
    path = project.docs / code / LANGUAGE_FILE
    shown = project.relative(path)
    text = path.read_text("utf-8")
    try:
        table = parse_yaml(text)
        blocks = adapter(_Blocks).validate_python(table if isinstance(table, dict) else {})
    except InvalidYamlError as error:
        raise BenchbookError(Problem(shown, error.line, error.what, error.fix)) from error
    except ValidationError as error:
        problems = (
            Problem(shown, yaml_line(text, keys), f"{'.'.join(map(str, keys))}: {message}", LIKE_NEIGHBOURS)
            for keys, _, message in shape_errors(error)
        )
        raise BenchbookError(*problems) from error
    known = [*INTERFACE, *(one.name for one in fields(_Blocks))]
    if stray := [str(name) for name in table or () if name not in known]:
        what, fix = f"`{stray[0]}:` is nothing that a language has", did_you_mean(stray[0], known, "block")
        raise BenchbookError(Problem(shown, yaml_line(text, (stray[0],)), what, fix))
    counted = {one.name: _count(table.get(one.name)) for one in fields(_Blocks)} if table else {}
    if sum(counted.values()) > MOST_PHRASES:
        most = max(counted, key=lambda name: counted[name])
        what = f"`{most}:` has {counted[most]} texts, and all blocks for translations {MOST_PHRASES} at most"
        fix = "keep those that pages here have"
        raise BenchbookError(Problem(shown, yaml_line(text, (most,)), what, fix))
    for many in blocks.magnitudes:
        if many < 10 or str(many).strip("0") != "1":
            fix = "name powers of ten: `1000: [thousand]`"
            what = f"`magnitudes:` has {many}, which is no power of ten"
            raise BenchbookError(Problem(shown, yaml_line(text, ("magnitudes", str(many))), what, fix))
    if blocks.charset not in ("", *_CHARSETS):
        what = f"`charset:` is {blocks.charset!r}, which is not known as an encoding of one script"
        fix = f"name one of {', '.join(_CHARSETS)}, or leave it out"
        raise BenchbookError(Problem(shown, yaml_line(text, ("charset",)), what, fix))
    if wordless := list(_wordless(blocks)):
        fix = "give it a word to be found by"
        raise BenchbookError(*(Problem(shown, yaml_line(text, keys), what, fix) for keys, what in wordless))
    glossary = blocks.glossary
    matching = Matching(
        glossary.match,
        tuple(glossary.prefixes),
        tuple(glossary.articles),
        tuple(glossary.suffixes),
        tuple(glossary.alike.items()),
    )
    if odd := list(_odd_numbers(blocks, code, matching)):
        fix = "put it below the number that it says, and below that alone"
        raise BenchbookError(*(Problem(shown, yaml_line(text, keys), what, fix) for keys, what in odd))
    if code == FALLBACK and (odd := list(_odd_english(blocks))):
        fix = "remove it, or change scripts/benchbook/translations/english_words.py where every reader agrees"
        raise BenchbookError(*(Problem(shown, yaml_line(text, keys), what, fix) for keys, what in odd))
    numerals, magnitudes = fixed_numbers(code)
    return Rules(
        code,
        matching,
        glossary.terms,
        _with_fixed(blocks.numerals, numerals if matching.by == "words" else {}),
        blocks.implied,
        blocks.implied_names,
        blocks.fractions,
        tuple(blocks.dividing),
        blocks.comparisons,
        _with_fixed(blocks.magnitudes, magnitudes),
        blocks.register,
        tuple(blocks.leftovers),
        blocks.charset,
        tuple(blocks.keeps_order),
        unit_words(project.docs, code),
    )


def _count(value: object) -> int:
    """How many texts a block of a language's file holds."""
    match value:
        case Mapping():
            return sum(map(_count, value.values()))
        case list():
            return sum(map(_count, value))
    return 1


def _odd_english(blocks: _Blocks) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Words of English for numbers, signs and names that are none."""
    tables = {"numerals": blocks.numerals, "implied": blocks.implied, "fractions": blocks.fractions}
    yield from unsaid_by_english(tables, blocks.dividing)
    yield from implied_everywhere(blocks.implied_names, blocks.comparisons)


def _with_fixed(named: Mapping[int, list[str]], fixed: Mapping[str, int]) -> dict[int, list[str]]:
    """What a file says numbers are called, with what they are called whatever it says."""
    found = {number: list(words) for number, words in named.items()}
    known = {word for words in named.values() for word in words}
    for word, number in fixed.items():
        if word not in known:
            found.setdefault(number, []).append(word)
    return found


def _wordless(blocks: _Blocks) -> Iterator[tuple[tuple[str, ...], str]]:
    """English phrases that hold no word, so that nothing can be found by them."""
    tables: dict[tuple[str, ...], list[str]] = {
        ("glossary", "terms", key, "find"): term.find for key, term in blocks.glossary.terms.items()
    }
    tables |= {("implied_names", name): phrases for name, phrases in blocks.implied_names.items()}
    for keys, phrases in tables.items():
        yield from ((keys, f"`{phrase}` holds no word") for phrase in phrases if not words_of(phrase))


def _odd_numbers(
    blocks: _Blocks, code: str, matching: Matching
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Words for numbers that mean another one, or two: by them, numbers are told from other numbers."""
    meant: dict[str, int] = {}
    for title, table in (("numerals", blocks.numerals), ("magnitudes", blocks.magnitudes)):
        for number, words in table.items():
            for word in words:
                known = meant.setdefault(unicodedata.normalize("NFKC", word).casefold(), number)
                if known != number:
                    yield (title, number), f"`{word}` means {known} and {number}"
                elif title == "magnitudes" and not _multiplies(word, number, code, matching):
                    yield (title, number), f"`{word}` is no word that multiplies a number by {number}"
                elif not _means(word, number, matching):
                    yield (title, number), f"`{word}` does not mean {number}"


def _means(word: str, number: int, matching: Matching) -> bool:
    """Whether nothing in a word for a number says another one."""
    for run in IDEOGRAPHIC.findall(word):
        if str(number) not in ideographic([IDEOGRAPHS[letter] for letter in run]):
            return False
    parts = words_of(word)
    if number > 10 and len(parts) > 1:
        return True  # `ثلاثة عشر` is made of three and ten
    said = frozenset().union(*(matching.stems(part, matching.prefixes, ()) for part in parts))
    return all(number == known for name, known in NUMERALS.items() if matching.stems(name, (), ()) & said)


def _multiplies(word: str, number: int, code: str, matching: Matching) -> bool:
    """Whether a word behind a number multiplies it; of languages that nobody listed, any single word may."""
    if matching.by == "text":
        run = IDEOGRAPHIC.fullmatch(word)
        return run is not None and str(number) in ideographic([IDEOGRAPHS[letter] for letter in word])
    listed = MAGNITUDES.get(code.partition("-")[0])
    return words_of(word) == [word] if listed is None else listed.get(word) == number


def foreign_renderings(rules: Mapping[str, Rules], project: Project) -> list[Problem]:
    """Latin words of renderings that no English term has: text that holds them would pass for translated."""
    if FALLBACK not in rules:
        return []
    terms = rules[FALLBACK].terms
    english = {word for key, term in terms.items() for text in (key, *term.find) for word in _latin(text)}
    english |= {name.casefold() for name in DEVICES}
    problems = []
    for code, its in rules.items():
        path = project.docs / code / LANGUAGE_FILE
        for key, term in its.terms.items() if its.script != "Latn" else ():
            for rendering in term.approved:
                if foreign := sorted(_latin(rendering) - english):
                    line = yaml_line(path.read_text("utf-8"), ("glossary", "terms", key, "approved"))
                    what = f"`{rendering}` for `{key}` holds `{foreign[0]}`, which no English term has"
                    problems.append(Problem(project.relative(path), line, what, "translate it"))
    return problems


def swapped_units(rules: Mapping[str, Rules], project: Project) -> list[Problem]:
    """Names of units that hold what the glossary calls something else: tokens that are called samples."""
    problems = []
    for code, its in rules.items():
        path = project.docs / code / LANGUAGE_FILE
        text = path.read_text("utf-8")
        try:
            names = load_language(project.docs, code).units if code != FALLBACK else {}
        except BenchbookError:
            continue  # told with the languages
        for key, term in its.terms.items():
            # In brackets stands what it is called in English.
            words = {_BRACKETED.sub("", rendering).strip() for rendering in term.approved}
            holding = {unit for unit, name in names.items() if any(word in name for word in words)}
            of_it = {unit for unit in names if key in {word.removesuffix("s") for word in unit.split("/")}}
            for unit in sorted(holding - of_it) if of_it else ():
                what = f"`{unit}` is called `{names[unit]}`, which is the glossary's word for `{key}`"
                fix = "call each unit by its own name"
                problems.append(Problem(project.relative(path), yaml_line(text, ("units", unit)), what, fix))
    return problems


def _latin(text: str) -> set[str]:
    """The Latin words of a text, in small letters, without the ending of a plural."""
    return {word.casefold().removesuffix("s") for word in _LATIN.findall(unicodedata.normalize("NFKC", text))}


def glossary_gaps(rules: Mapping[str, Rules], project: Project) -> list[Problem]:
    """Terms that one language's glossary has and English, or another language, lacks."""
    problems: list[Problem] = []
    if FALLBACK not in rules:
        return problems
    english = rules[FALLBACK].terms
    for code, its in rules.items():
        shown = project.relative(project.docs / code / LANGUAGE_FILE)
        text = (project.docs / code / LANGUAGE_FILE).read_text("utf-8")
        for key in sorted(set(english) - set(its.terms)):
            fix = "add it with a rendering that a native speaker would choose"
            problems.append(
                Problem(shown, yaml_line(text, ("glossary", "terms")), f"its glossary lacks `{key}`", fix)
            )
        for key in sorted(set(its.terms) - set(english)):
            fix = f"add it to docs/{FALLBACK}/{LANGUAGE_FILE} with the words to find it by, or remove it"
            what = f"its glossary has `{key}`, which English lacks"
            problems.append(Problem(shown, yaml_line(text, ("glossary", "terms", key)), what, fix))
    return problems
