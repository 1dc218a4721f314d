"""Which words of English may say a number, a sign or a name, whatever `docs/en/_language.yml` says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_ORDINALS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
# What says a number otherwise than by its name and its place in a row.
_OTHERWISE: dict[int, str] = {
    2: "half halve halves halved halving twice both pair pairs double doubles doubled couple",
    3: "thrice triple triples tripled",
    4: "quarter quarters quadruple",
    12: "dozen dozens",
    100: "hundred hundreds hundredth hundredths",
    1000: "thousand thousands thousandth thousandths",
    10**6: "million millions millionth millionths",
    10**9: "billion billions billionth billionths",
    10**12: "trillion trillions trillionth trillionths",
}
_SAYING: dict[int, set[str]] = {number: set(words.split()) for number, words in _OTHERWISE.items()}
for _number, _words in enumerate(zip(_ONES.split(), _ORDINALS.split(), strict=True)):
    _SAYING.setdefault(_number, set()).update({*_words, f"{_words[1]}s"})
for _number, _word in enumerate(_TENS.split(), start=2):
    _SAYING.setdefault(10 * _number, set()).update({_word, f"{_word[:-1]}ieth", f"{_word[:-1]}ieths"})
_DIVIDING = frozenset({"divided by", "one in", "out of"})
# They stand in any sentence, so whatever they implied could be said anywhere.
_EVERYWHERE = (
    "a about after all also an and any are as at be been before but by can do does each even every for "
    "from had has have here how if in into is it its just made make makes may more most no nor now of "
    "off on one only onto or other our out own per same should since so some such than that the their "
    "them then there these they this those through to too up us use used uses using very was we well "
    "were what when where which while who why will with would yet you your"
)
# Of such words alone, and yet a comparison.
_COMPARING = frozenset({"more", "at most", "up to", "no more than", "other than"})
# A name with digits is that of a model, which no word stands for; but a norm is none.
_NORMS = frozenset({"L1", "L2"})

Place = tuple[str | int, ...]


def unsaid_by_english(
    tables: Mapping[str, Mapping[int, Sequence[str]]], dividing: Sequence[str]
) -> Iterator[tuple[Place, str]]:
    """Words that English is said to have for a number and that nobody reads as that number.

    Parameters:
        tables: The words for each number, by the title of the block.
        dividing: Words before a number of which something is one part.
    """
    for title, table in tables.items():
        for number, words in table.items():
            for word in words:
                # Translations need not say one, nor zero.
                if number > 1 and word.casefold() not in _SAYING.get(number, ()):
                    yield (title, number), f"`{word}` says no {number} in English"
    for phrase in dividing:
        if phrase.casefold() not in _DIVIDING:
            yield ("dividing",), f"`{phrase}` divides by no number behind it"


def implied_everywhere(
    names: Mapping[str, Sequence[str]], comparisons: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Place, str]]:
    """Words of any sentence, for which a translation could put a name or a sign; and names of models."""
    everywhere = set(_EVERYWHERE.split())
    for name in names:
        if name not in _NORMS and re.search(r"\d", name):
            yield ("implied_names", name), f"`{name}` names a model, which no other word stands for"
    for title, table in (("implied_names", names), ("comparisons", comparisons)):
        for key, phrases in table.items():
            for phrase in phrases:
                compares = title == "comparisons" and phrase.casefold() in _COMPARING
                if not compares and everywhere.issuperset(phrase.casefold().split()):
                    yield (title, key), f"`{phrase}` stands in any sentence, so it implies no `{key}`"
