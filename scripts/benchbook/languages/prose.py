"""Check the running text of pages: headings that can be linked to, and no measured number typed by hand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache

from markdown_it.token import Token

from benchbook.content.page_source import VALUE, PageSource
from benchbook.content.problems import Problem
from benchbook.content.units import UNITS

# What stands behind a number in every language, as it is written or as people type it.
_SIGNS = frozenset(
    {
        "%",
        "٪",
        "µs",
        "μs",
        "°C",
        "x",
        "×",
        "tok/s",
        "fold",
        "msec",
        "usec",
        "secs",
        "mins",
        "hrs",
        "gigs",
        "megs",
    }
)
_SYMBOLS = frozenset(unit.symbol for unit in UNITS.values() if unit.typed)
# From twenty on, words before a unit are a measurement as digits are; `two bytes` are the size of a format.
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_LARGE = "hundred|thousand|million|billion"
_SPELLED = (
    rf"(?i:(?:{_TENS}|\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten) {_LARGE})(?:[\s-][a-z]+)?)"
)
_ROMAN = r"(?=[IVXLCDM]{2,})M*(?:C[MD]|D?C{0,3})(?:X[CL]|L?X{0,3})(?:I[XV]|V?I{0,3})"
# Ideographs that stand for numbers; `参`, which Unicode counts among them, is a letter of `参数`.
IDEOGRAPHS = {
    letter: int(unicodedata.numeric(letter)) for letter in "〇零一二三四五六七八九十百千万萬亿億兆"
} | {
    "两": 2,
    "両": 2,
}
ID = re.compile(r"[a-z][a-z0-9-]*\Z")
BIND = "bind it to a record with `#!value ...`, or put a link to its source beside it"
LINK = "make it a link, `[words](address)`, or leave it out"
# How large a model or a GPU is, as people call it: `8B`, `24 GB`.
_SIZE = re.compile(r"\d+(?:\.\d+)?(?:B|\s?GB)")
# It ends a number; an ASCII one would be read as part of it.
_WIDE_COMMA = "，"
# An address that nothing but one looks like; in code such as `torch.compile` a dot leads nowhere.
_HOST = r"(?<![A-Za-z0-9-])(?<![A-Za-z0-9]\.)(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}"
_BARE = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://\S*|\b(?:www\.|mailto:)\S*"
    rf"|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+|{_HOST}/[^\s)]*"
)
# What else a dot may make one of, and Latin words in a row, as in a command.
_ADDRESS = re.compile(rf"{_BARE.pattern}|{_HOST}(?::[^\s)]*)?")
_LATIN = re.compile(r"(?<![A-Za-z0-9_.+=-])[A-Za-z][A-Za-z0-9_.+=-]*(?:[ \u00a0/|]+[A-Za-z0-9_.+=~-]+)+")


@cache
def _plain(letter: str) -> str:
    """A character as it reads: digits of every script, circle and size as Western ones, in one width."""
    plain = letter if letter == _WIDE_COMMA else unicodedata.normalize("NFKC", letter)
    if unicodedata.category(letter)[0] == "N" and not any(one.isdecimal() for one in plain):
        value = unicodedata.numeric(letter)
        return str(int(value)) if value == int(value) else str(value)
    return "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in plain)


@lru_cache(maxsize=8192)
def folded(text: str) -> tuple[str, Sequence[int]]:
    """`text` as it reads, and where each of its characters comes from, with the end of the text."""
    if text.isascii():
        return text, range(len(text) + 1)
    letters, places = [], []
    for place, letter in enumerate(text):
        for one in _plain(letter):
            letters.append(one)
            places.append(place)
    return "".join(letters), (*places, len(text))


def added_words(
    text: str, english: str, latin: bool, kept: Collection[str] = frozenset(), runs: bool = True
) -> str | None:
    """The first address, or Latin words in a row, of a text that its English source does not hold.

    Parameters:
        text: Of a translation.
        english: What it was made from, as it is written.
        latin: Whether the language itself is written in Latin letters.
        kept: Latin words that the language has of its own, in small letters.
        runs: Whether Latin words in a row are looked for at all.
    """
    plain = folded(text)[0]
    source, known = _source(english)
    for found in _ADDRESS.finditer(plain):
        if found[0].rstrip(".,;:").casefold() not in source:
            return found[0]
    if latin or not runs:
        return None
    for found in _LATIN.finditer(plain):
        for word in re.findall(r"[^\W_]+", found[0].casefold()):
            if not (word.isdecimal() or word in kept or word in known or word.removesuffix("s") in known):
                return found[0]
    return None


@lru_cache(maxsize=1024)
def _source(english: str) -> tuple[str, frozenset[str]]:
    """An English text in small letters, and its words, also without the ending of a plural."""
    source = folded(english)[0].casefold()
    words = re.findall(r"[^\W_]+", source)
    return source, frozenset(words) | {word.removesuffix("s") for word in words}


@cache
def _units(unit_words: frozenset[str], least: int) -> str:
    """What finds any unit of `least` characters or more, longer ones first."""
    names = {unicodedata.normalize("NFKC", name) for name in _SYMBOLS | _SIGNS | unit_words}
    return "|".join(
        # A letter of a script with spaces is a unit only where it stands alone.
        re.escape(name) + (r"(?!\w)" if len(name) == 1 and name.isalpha() and ord(name) < 0x2E80 else "")
        for name in sorted(names, key=len, reverse=True)
        if len(name) >= least
    )


# Where a unit ends: before no letter, and before no number, as in `4 x 512` and `8 分の 1`.
_END = (
    r"(?:/(?:s|sec|second|min|minute|h|hour)\b)?(?![A-Za-z0-9/])(?!\s?\d)"
    rf"(?!の\s?[\d{''.join(IDEOGRAPHS)}])"
)


@cache
def unit_pattern(unit_words: frozenset[str]) -> re.Pattern[str]:
    """What finds a unit right behind a number: a symbol, or one of `unit_words`."""
    return re.compile(rf"[\s-]*(?:{_units(unit_words, 1)}){_END}")


@cache
def typed_pattern(unit_words: frozenset[str]) -> re.Pattern[str]:
    """What finds a number with a unit in text that is folded: a symbol, or one of `unit_words`.

    `4 x 512` is a shape, `1990s` a decade, `bf16` and `GPT-2` are names. Letters of scripts that put no space
    before a number may stand right before it: `需要42毫秒`, `بنسبة38٪`.
    """
    digits = (
        r"(?<![A-Za-z_.,\d])(?<![A-Za-z]-)(?!\d{4}s\b)\d[\d.,\u066b\u066c]*(?:[eE][+-]?\d+)?"
        rf"(?:\s?(?:[kKMG]|{_LARGE})(?=[\s-]))?"
    )
    words = rf"(?<![A-Za-z\d-])(?:{_SPELLED}|{_ROMAN})(?=[\s-])"
    behind = r"\d(?:[\d.,]*\d)?"
    return re.compile(
        rf"(?:{digits}|{words})[\s\-\u2010-\u2015]*\(?(?:{_units(unit_words, 1)}){_END}"
        rf"|(?<![A-Za-z0-9])(?<!\d\s)×{behind}"
        rf"|(?<![A-Za-z])(?:{_units(unit_words, 2)})[)\]]?\s*[:=]\s*{behind}"
    )


def typed_places(text: str, typed: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where in `text` each number begins and its unit ends, as `typed` finds them."""
    plain, places = folded(text)
    for found in typed.finditer(plain):
        yield places[found.start()], places[found.end() - 1] + 1


def first_typed(text: str, typed: re.Pattern[str]) -> str | None:
    """The first number with a unit in `text`, as it stands there."""
    return next((text[start:end].strip() for start, end in typed_places(text, typed)), None)


def prose_problems(page: PageSource, path: str, unit_words: Collection[str]) -> Iterator[Problem]:
    """What is wrong with the text of one page, whose language has `unit_words` for units."""
    typed = typed_pattern(frozenset(unit_words))
    if page.broken is not None:
        yield Problem(path, 1, f"its front matter is not YAML ({page.broken})", "fix the YAML")
    elif not isinstance(page.front_matter.get("description"), str):
        yield Problem(
            path, 1, "has no description", "add `description:` to its front matter, for search engines"
        )
    yield from _head_problems(page, path, typed)
    yield from _heading_problems(page, path)
    for token in page.inlines():
        yield from _bare_addresses(token, path)
        # A claim may be folklore, with its source beside it; what checks claims sees to their sentences.
        if not _has_source(token.children or []) and not token.meta.get("sentence"):
            yield from typed_numbers(token, path, typed)


def _head_problems(page: PageSource, path: str, typed: re.Pattern[str]) -> Iterator[Problem]:
    """Measured numbers in the title, the description and the synonyms: nothing binds them to a record there.

    People search for a figure of folklore: a synonym may hold one that the page names, with its source.
    """
    named = {
        number for token in page.inlines() for found in _typed(token, typed) for number in _digits(found[1])
    }
    for key in ("title", "description", "synonyms"):
        value = page.front_matter.get(key)
        for said in value if isinstance(value, list) else [value]:
            found = first_typed(said, typed) if isinstance(said, str) else None
            folklore = key == "synonyms" and found and (_digits(found) <= named or _SIZE.fullmatch(found))
            if found and not folklore:
                what = f"its {key} holds the number `{found}`"
                yield Problem(path, 1, what, "say it without a number")
            if isinstance(said, str) and (address := _BARE.search(folded(said)[0])):
                yield Problem(path, 1, f"its {key} holds the address `{address[0]}`", "say it in words")


def _digits(text: str) -> set[str]:
    """The numbers in a text; without digits, the text."""
    return set(re.findall(r"\d+", folded(text)[0])) or {text}


def _bare_addresses(token: Token, path: str) -> Iterator[Problem]:
    """Addresses in running text that are no link: readers copy them, and nothing checks where they lead."""
    assert token.map is not None
    line, inside = token.map[0] + 1, 0
    for child in token.children or []:
        inside += child.nesting if child.type in ("link_open", "link_close") else 0
        line += child.type in ("softbreak", "hardbreak")
        if child.type == "text" and not inside and (found := _BARE.search(folded(child.content)[0])):
            yield Problem(path, line, f"the address `{found[0]}` stands in the text", LINK)


def _heading_problems(page: PageSource, path: str) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for heading in page.headings():
        if heading.id is None:
            fix = "end it with an id, the same in every language: `## Title { #title }`"
            yield Problem(path, heading.line, f"the heading `{heading.text}` has no id", fix)
            continue
        if not ID.match(heading.id):
            fix = "use lower-case letters, digits and hyphens, beginning with a letter"
            yield Problem(path, heading.line, f"the id `{heading.id}` is not plain", fix)
        if heading.id in seen:
            what = f"the id `{heading.id}` is there twice (first on line {seen[heading.id]})"
            yield Problem(path, heading.line, what, "rename one of the two")
        seen.setdefault(heading.id, heading.line)


def _has_source(children: Sequence[Token]) -> bool:
    return any(
        token.type == "link_open" and str(token.attrGet("href")).startswith(("http://", "https://"))
        for token in children
    )


def typed_numbers(token: Token, path: str, typed: re.Pattern[str]) -> Iterator[Problem]:
    """The measured numbers that are typed into a block of running text, as `typed` finds them."""
    for line, found in _typed(token, typed):
        yield Problem(path, line, f"the measured number `{found}` is typed into the text", BIND)


def _typed(token: Token, typed: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """The numbers with units in a block of running text, each with its line."""
    assert token.map is not None
    first = token.map[0] + 1
    text = ""
    for child in token.children or []:
        if child.type in {"softbreak", "hardbreak"}:
            text += "\n"
        elif child.type == "text":
            text += child.content
        elif child.type == "code_inline":
            if (
                not child.content.startswith(VALUE)
                and first_typed(child.content, typed) == child.content.strip()
            ):
                yield first + text.count("\n"), child.content.strip()
            # Code is no part of a number, and has lines.
            text += "\0" + "\n" * child.content.count("\n")
    # Bold or not, it is one number.
    for start, end in typed_places(text, typed):
        yield first + text.count("\n", 0, start), text[start:end].strip()
