"""Compare the names that stay Latin, text by text: AdamW, bf16, H100, and those of devices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchbook.content.problems import Problem
from benchbook.content.units import UNITS
from benchbook.languages.telling import NAME, folded
from benchbook.translations.numbers import aligned
from benchbook.translations.sections import Section, TextRun
from benchbook.translations.settings import DEVICES, Rules

_DEVICE = re.compile(rf"(?<![A-Za-z])({'|'.join(DEVICES)})s?(?![A-Za-z])")
# In a text of another script, a Latin word with a capital is a name, too: Adafactor.
_CAPITAL = re.compile(r"(?<![A-Za-z\d_.])[A-Z][a-z]{2,}(?![A-Za-z\d_])")
_WORD = re.compile(r"[A-Za-z\d]+")
# Units are compared with the numbers before them.
_UNITS = {symbol for symbol, unit in UNITS.items() if unit.typed} | {"KB"}
_ADDED = "name what the English text names; docs/en/_language.yml has what its words imply (`implied_names:`)"


@dataclass(frozen=True)
class _Name:
    """A name in a text: as it is written, where it stands, and what it is compared by."""

    shown: str
    line: int

    @property
    def key(self) -> str:
        return _key(self.shown)


def device_problems(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Where a translation names another number of CPUs, GPUs and TPUs than its English section."""
    for name, (often, there) in sorted(_miscounted(section, english, rules, english_rules).items()):
        line = next((u.line_at(m.start()) for u in section.units for m in _named(name, u)), section.line)
        what = f"{section.called} says {name} {often} times, in English {there} times"
        yield Problem(path, line, what, f"say {name} where the English section does, and only there")


def name_problems(
    section: Section, english: Section, rules: Rules, english_rules: Rules, path: str
) -> Iterator[Problem]:
    """Names that a text has and its English one lacks, names that it lacks, and one in place of another."""
    whole = {word for unit in section.units for word in _WORD.findall(folded(unit.spoken)[0])}
    told = {_key(name) for name in _miscounted(section, english, rules, english_rules)}
    for ours, theirs in aligned(section, english):
        here = [name for unit in ours for name in _names(unit)]
        there = [name for unit in theirs for name in _names(unit)]
        implied = _implied_devices(theirs, rules, english_rules)
        known = _words(theirs) | _implied_names(theirs, rules, english_rules)
        said = {_key(word) for unit in ours for word in _WORD.findall(folded(unit.spoken)[0])}
        added = [name for name in here if name.key not in known | told]
        kept = said | told | {_key(name) for name in implied}
        lost = {name.key: name for name in there if name.key not in kept}
        for name in added:
            yield Problem(path, name.line, f"the name {name.shown} is not in the English text", _ADDED)
        for name in lost.values():
            what = f"the name {name.shown} of the English text is not here"
            yield Problem(path, ours[0].line, what, "keep it, in Latin letters")
        if rules.script != "Latn":
            here += [name for unit in ours for name in _names(unit, _CAPITAL)]
            there += [name for unit in theirs for name in _names(unit, _CAPITAL) if name.shown in whole]
        if not (added or lost):
            yield from _exchanged(here, there, theirs, implied, path)


def is_proper_name(word: str) -> bool:
    """Whether a word is a name that every language writes the same: AdamW, DDP, bf16."""
    return NAME.fullmatch(word) is not None or _DEVICE.fullmatch(word) is not None


def _exchanged(
    here: Sequence[_Name],
    there: Sequence[_Name],
    theirs: Sequence[TextRun],
    implied: Counter[str],
    path: str,
) -> Iterator[Problem]:
    """Where a text names one thing more often than the English text, and another one less often."""
    ours, english = (Counter(name.key for name in side) for side in (here, there))
    # An ordinary word of the English text, as well as a name.
    ordinary = Counter(_key(word) for unit in theirs for word in _WORD.findall(folded(unit.spoken)[0]))
    seldom = english - ours - Counter({_key(name): often for name, often in implied.items()})
    instead = [name for name in here if ours[name.key] > max(english[name.key], ordinary[name.key])]
    for name, other in zip({one.key: one for one in instead}.values(), seldom, strict=False):
        shown = next(one.shown for one in there if one.key == other)
        what = f"{name.shown} stands where the English text has {shown}"
        yield Problem(path, name.line, what, "name the same as the English text, as often")


def _miscounted(
    section: Section, english: Section, rules: Rules, english_rules: Rules
) -> dict[str, tuple[int, int]]:
    """The devices that a section names more or less often than its English one: how often each does."""
    ours, theirs = (
        Counter(name for unit in side.units for name in _DEVICE.findall(unit.prose))
        for side in (section, english)
    )
    implied = _implied_devices(english.units, rules, english_rules)
    return {
        name: (ours[name], theirs[name])
        for name in ours | theirs
        if not theirs[name] - implied[name] <= ours[name] <= theirs[name]
    }


def _names(unit: TextRun, pattern: re.Pattern[str] = NAME) -> Iterator[_Name]:
    plain, places = folded(unit.prose)
    for found in pattern.finditer(plain):
        if found[0] not in _UNITS:
            yield _Name(found[0], unit.line_at(places[found.start()]))


def _key(word: str) -> str:
    """What a name is compared by: languages write `FP16` or `fp16`, and `GPU` for several."""
    return word.casefold().removesuffix("s")


def _words(units: Sequence[TextRun]) -> set[str]:
    """The Latin words of texts, of their code, and of where their links and references lead."""
    return {_key(word) for unit in units for piece in unit.pieces for word in _WORD.findall(piece.text)}


def _implied_names(units: Sequence[TextRun], rules: Rules, english_rules: Rules) -> set[str]:
    """The names that words of English texts stand for, by the glossary and in the English file."""
    found = {phrase for unit in units for phrase in english_rules.naming.found_in(unit.spoken)}
    names = {name for name, phrases in english_rules.implied_names.items() if found & set(phrases)}
    terms = {key for unit in units for key in english_rules.index.found_in(unit.spoken)}
    said = [text for key in terms if key in rules.terms for text in rules.terms[key].approved]
    return {_key(name) for name in names} | {_key(word) for text in said for word in _WORD.findall(text)}


def _implied_devices(units: Sequence[TextRun], rules: Rules, english_rules: Rules) -> Counter[str]:
    """How often a language can do without a device's name, for its word for a term says it."""
    implied: Counter[str] = Counter()
    for unit in units:
        for key, often in english_rules.index.found_in(unit.prose).items():
            term = rules.terms.get(key)
            silent = term and not all(_DEVICE.search(text) for text in term.approved)
            for name in _DEVICE.findall(key) if silent else ():
                implied[name] += often
    return implied


def _named(name: str, unit: TextRun) -> Iterator[re.Match[str]]:
    return (match for match in _DEVICE.finditer(unit.prose) if match[1] == name)
