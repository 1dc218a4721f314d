"""How numbers with units, and addresses, are told in text of any language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

from benchbook.content.units import UNITS

# What a number of times is called where units are compared.
TIMES = "times"
# What stands behind a number in every language, as it is written or as people type it, and which unit it is.
_SIGNS = {
    "%": "percent",
    "٪": "percent",
    "µs": "us",
    "μs": "us",
    "°C": "degC",
    "x": TIMES,
    "×": TIMES,
    "tok/s": "tokens/s",
    "fold": TIMES,
    "msec": "ms",
    "usec": "us",
    "secs": "s",
    "mins": "min",
    "hrs": "h",
    "gigs": "GB",
    "megs": "MB",
}
# CLDR has no words for these.
_SIGNS |= {
    f"{name}byte{ending}": symbol
    for name, symbol in (("kibi", "KiB"), ("mebi", "MiB"), ("gibi", "GiB"), ("tebi", "TiB"))
    for ending in ("", "s")
}
_SYMBOLS = frozenset(unit.symbol for unit in UNITS.values() if unit.typed)
# From twenty on, words before a unit are a measurement as digits are; `two bytes` are the size of a format.
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_LARGE = "hundred|thousand|million|billion"
_SPELLED = (
    rf"(?i:(?:{_TENS}|\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten) {_LARGE})(?:[\s-][a-z]+)?)"
)
# Before a large unit every word for a number is one.
_OF_LARGE = (
    r"(?i:(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w{1,5}teen|dozen)"
    r"(?=[\s-](?:(?:kilo|kibi|mega|mebi|giga|gibi|tera|tebi)bytes?|[kmgt]i?b)(?![a-z])))"
)
_ROMAN = r"(?=[IVXLCDM]{2,})M*(?:C[MD]|D?C{0,3})(?:X[CL]|L?X{0,3})(?:I[XV]|V?I{0,3})"
# Ideographs that stand for numbers; `参`, which Unicode counts among them, is a letter of `参数`.
IDEOGRAPHS = {
    letter: int(unicodedata.numeric(letter)) for letter in "〇零一二三四五六七八九十百千万萬亿億兆"
} | {
    "两": 2,
    "両": 2,
}
# Numbers in ideographs: `九十`, `四二`, and `两`.
IDEOGRAPHIC = re.compile(f"[{''.join(IDEOGRAPHS)}]+")
_ONES = {
    "en": "zero one two three four five six seven eight nine ten",
    "ar": "صفر واحد اثنان ثلاثة أربعة خمسة ستة سبعة ثمانية تسعة عشرة",
    "ar, of what is feminine": "صفر واحدة اثنتان ثلاث أربع خمس ست سبع ثمان تسع عشر",
    "ar, in other cases": "صفر واحد اثنين ثلاثة أربعة خمسة ستة سبعة ثماني تسعة عشرة",
    "ja": "ゼロ ひとつ ふたつ みっつ よっつ いつつ むっつ ななつ やっつ ここのつ とお",
}
# What words for numbers mean, whatever a language's file says of them.
NUMERALS = {word: number for words in _ONES.values() for number, word in enumerate(words.split())}
# Words that multiply the number before them, of the languages whose numbers no ideographs say.
MAGNITUDES: dict[str, dict[str, int]] = {
    "ar": {"ألف": 10**3, "آلاف": 10**3, "مليون": 10**6, "ملايين": 10**6, "مليار": 10**9, "مليارات": 10**9},
    "en": {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12},
}
_IDEOGRAPHIC_MAGNITUDES = {"千": 10**3, "万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8}
# Stands in a text for a value that is bound to a record.
BOUND = "\ue000"
_TEN_AND_MORE = "".join(letter for letter, number in IDEOGRAPHS.items() if number >= 10)
_MULTIPLES = "|".join((*(word for words in MAGNITUDES.values() for word in words), "hundred", "dozen"))
# What beside a number would be read as part of it: digits, signs, and words that multiply or divide it.
# `bf16` is a name, `十分` and `百分点` are words, and a dash between two values is a range.
GLUED = re.compile(
    rf"(?:(?<![A-Za-z\d.,])(?<![A-Za-z]-)\d(?:[\d.,]*\d)?\s+|(?<![\d.,])[\d.,]+|[+*=~≈<>≤≥×/^√-]|(?<!{BOUND})[\u2010-\u2015]"
    rf"|(?<!{BOUND})(?<!{BOUND}\s)[\u2212÷±∓]\s*|[{''.join(IDEOGRAPHS)}]\s?|[\d{''.join(IDEOGRAPHS)}]\s?分[之の]\s?"
    rf"|\b(?i:minus|negative|half|twice|thrice)\s+|マイナス\s?|[负負]\s?|(?<!\w)(?:سالب|ناقص|ضعف)\s+){BOUND}"
    rf"|{BOUND}(?:[A-Za-z\d]|[.,\u066b\u066c]\d|\s*[%‰]|\s*\d{{3}}(?!\w)|\s+[kKMG](?!\w)|\s*[×x*·]\s?10"
    rf"|[\s-]*(?i:{_MULTIPLES})(?:ا|ًا|اً|s)?(?!\w)|\s+(?:point|and a half)\b|\s?半(?![分数])"
    rf"|\s?(?!十分|百分|万一)[{_TEN_AND_MORE}]|\s?分[之の]\s?[\d{''.join(IDEOGRAPHS)}])"
)
# A name is written with a capital behind another letter, or with digits: AdamW, DDP, bf16.
NAME = re.compile(
    r"(?<![A-Za-z\d])(?=[A-Za-z\d]*[A-Za-z])(?:[A-Za-z]+[A-Z\d][A-Za-z\d]*|[A-Z]{2,})(?![A-Za-z\d])"
)
# It ends a number; an ASCII one would be read as part of it.
_WIDE_COMMA = "，"
# An address that nothing but one looks like; in code such as `torch.compile` a dot leads nowhere.
_HOST = r"(?<![A-Za-z0-9-])(?<![A-Za-z0-9-]\.)(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}"
BARE_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://\S*|\b(?:www\.|mailto:)\S*"
    rf"|(?<![\w.+-])[\w.+-]+@[\w-]+\.\w+|{_HOST}/[^\s)]*"
)
# What else a dot may make one of, and Latin words in a row, as in a command.
_ADDRESS = re.compile(rf"{BARE_ADDRESS.pattern}|{_HOST}(?::[^\s)]*)?")
_LATIN = re.compile(r"(?<![A-Za-z0-9_.+=-])[A-Za-z][A-Za-z0-9_.+=-]*(?:[ \u00a0/|]+[A-Za-z0-9_.+=~-]+)+")


def fixed_numbers(code: str) -> tuple[dict[str, int], dict[str, int]]:
    """The words of a language for numbers, and those that multiply one, that hold whatever its file says."""
    language = code.partition("-")[0]
    named = [words for key, words in _ONES.items() if key.partition(",")[0] == language]
    numbers = {word: number for words in named for number, word in enumerate(words.split())}
    # Where ideographs say numbers, they are known by themselves (`ideographic`).
    magnitudes = _IDEOGRAPHIC_MAGNITUDES if language in ("ja", "zh") else MAGNITUDES.get(language, {})
    return numbers, magnitudes


def ideographic(digits: Sequence[int]) -> set[str]:
    """What a run of ideographs may be: `四十二` is 42 and so is `四二`; `二三` is two or three."""
    if len(digits) == 2 and digits[1] == digits[0] + 1 < 10:
        return {str(digit) for digit in digits}
    if all(digit < 10 for digit in digits):
        return {"".join(map(str, digits)).lstrip("0") or "0"}
    whole = part = last = 0
    for digit in digits:
        if digit < 10:
            last = digit
        elif digit < 10_000:
            part, last = part + (last or 1) * digit, 0
        else:
            whole, part, last = whole + ((part + last) or 1) * digit, 0, 0
    return {str(whole + part + last)}


def outermost(spans: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those places of a text, from where to where, that no larger one holds."""
    found: set[tuple[int, int]] = set()
    furthest = -1
    for start, end in sorted(set(spans), key=lambda span: (span[0], -span[1])):
        if end > furthest:
            found.add((start, end))
            furthest = end
    return found


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
    names = {unicodedata.normalize("NFKC", name) for name in _SYMBOLS | set(_SIGNS) | unit_words}
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


def unit_symbols(unit_words: Mapping[str, str]) -> dict[str, str]:
    """Which unit each word or symbol behind a number is, as folded text reads; "" if nothing says it."""
    known = {symbol: symbol for symbol in _SYMBOLS} | _SIGNS
    known |= {word: symbol for word, symbol in unit_words.items() if symbol or word not in known}
    return {unicodedata.normalize("NFKC", word): symbol for word, symbol in known.items()}


@cache
def measure_pattern(unit_words: frozenset[str]) -> re.Pattern[str]:
    """What finds the unit right behind a number, and what it is per: `GB`, `字节/秒`."""
    units = _units(unit_words, 1)
    return re.compile(
        rf"[\s\-\u2010-\u2015]*\(?(?P<unit>{units})(?:\s?/\s?(?P<per>{units}))?(?![A-Za-z0-9])(?!\s?\d)"
        rf"(?!の\s?[\d{''.join(IDEOGRAPHS)}])"
    )


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
    words = rf"(?<![A-Za-z\d-])(?:{_SPELLED}|{_ROMAN}|{_OF_LARGE})(?=[\s-])"
    behind = r"\d(?:[\d.,]*\d)?"
    return re.compile(
        rf"(?:{digits}|{words})[\s\-\u2010-\u2015]*\(?(?:in )?(?:{_units(unit_words, 1)}){_END}"
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


def visible(text: str) -> str:
    """A text without what only says where a line may break, and which way it runs."""
    return "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
