"""Read `claims.toml`: what each claim compares, when it holds, where it is meant to, and who said so."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, cast

from benchbook.content.formats import HIDDEN, on_calendar
from benchbook.content.machines import CAPABILITIES
from benchbook.content.positions import parse_toml, toml_line
from benchbook.content.problems import BenchbookError, Problem, did_you_mean, unreadable
from benchbook.content.project import Project
from benchbook.content.records import is_published
from benchbook.content.references import Reference, UnresolvedError, parse_reference
from benchbook.content.safe_html import unsafe_address
from benchbook.content.tolerances import SMALLEST_RATIO, TOLERANCES
from benchbook.content.units import UNITS, Dimension, Unit

Relation = Literal["less", "greater", "equal"]
Outcome = Literal["holds", "refuted", "too close to call", "not applicable", "not measured"]
# What a claim can be meant to be on a machine, and last what it is where there is no record.
OUTCOMES: tuple[Outcome, ...] = ("holds", "refuted", "too close to call", "not applicable", "not measured")

FILE = "claims.toml"
RELATIONS = ("less", "greater", "equal")
NEEDED = ("id", "a", "relation", "b", "machines")
KEYS = (*NEEDED, "ratio", "tolerance", "times", "kind", "needs", "source")
SOURCE_KEYS = ("title", "url", "quote", "date")
# One sentence at most: what is quoted stands beside a claim, and is someone's.
LONGEST_QUOTE = 200
_DATE = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-[0-3][0-9])?)?\Z")
ID = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
# Far above all that is measured, and small enough to be scaled by a unit.
LARGEST = 1e100
_CONSTANT = re.compile(r"(?P<value>[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d+)?)\s+(?P<unit>\S+)\Z")


@dataclass(frozen=True)
class Constant:
    """A number that someone named; its unit is that of what it is compared with if it has none of its own."""

    value: float
    unit: Unit | None = None


@dataclass(frozen=True)
class ClaimSource:
    """Who said so: what it is called, where it stands, and its own words with their date."""

    title: str
    url: str
    quote: str = ""
    date: str = ""


@dataclass(frozen=True)
class Claim:
    """What a page asserts, and what decides it.

    Parameters:
        id: Its name, the same in every language.
        path: The file that declares it, relative to the project.
        guide: The guide whose it is.
        a: What is compared.
        b: What it is compared with.
        relation: "less", "greater" or "equal".
        ratio: For "less" and "greater", the smallest ratio that matters: 1 where the claim names the number.
        tolerance: For "equal", by what share the two may differ; None for as much as their kind may.
        times: What `b` is multiplied by.
        kind: "time" for ratios of times, which scatter as times do; None where the unit tells.
        machines: The outcome that it is meant to have, by machine.
        needs: What a machine must have for the claim to be about it at all (`CAPABILITIES`).
        source: Who said so, where it is folklore.
        lines: The line of each of its keys; that of "" is the claim's own.
    """

    id: str
    path: str
    guide: str
    a: Reference
    b: Reference | Constant
    relation: Relation
    machines: dict[str, Outcome]
    ratio: float = 1.0
    tolerance: float | None = None
    times: float = 1.0
    kind: Dimension | None = None
    needs: frozenset[str] = frozenset()
    source: ClaimSource | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """Where it is declared."""
        return self.lines[""]

    @property
    def names_numbers(self) -> bool:
        """Whether it has numbers of its own, beyond those that hold for every claim of its kind."""
        return isinstance(self.b, Constant) or any(
            key in self.lines for key in ("times", "ratio", "tolerance")
        )

    @cached_property
    def predicate(self) -> str:
        """`sha256:...` of what decides it: the two sides, the relation, numbers, and what a machine needs."""
        other: object = str(self.b)
        if isinstance(self.b, Constant):
            other = [self.b.value, self.b.unit.symbol if self.b.unit is not None else None]
        allowed = TOLERANCES if self.tolerance is None else self.tolerance
        kinds = [] if self.kind is None else [self.kind]
        needs = [f"needs {one}" for one in sorted(self.needs)]
        what = [str(self.a), self.relation, other, self.times, self.ratio, allowed, *kinds, *needs]
        return "sha256:" + hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()

    def at(self, key: str) -> int:
        """The line on which `key` is set, or that of the claim."""
        return self.lines.get(key, self.line)


def claim_parts(text: str) -> tuple[str, str]:
    """The sentence of a claim, its first paragraph, and what is said below it."""
    sentence, _, why = text.strip().partition("\n\n")
    return sentence, why.strip()


def claim_anchor(claim: str) -> str:
    """The id on a page by which a link points at a claim."""
    return f"claim-{claim}"


@dataclass(frozen=True)
class Claims:
    """Every claim of a project, by id, in a stable order, and what is wrong with their declarations."""

    by_id: dict[str, Claim]
    problems: tuple[Problem, ...]

    def named(self, name: str) -> Claim:
        """The claim called `name`.

        Raises:
            BenchbookError: The declarations are not in order, and so it may be missing for that.
            UnresolvedError: There is none.
        """
        if name in self.by_id:
            return self.by_id[name]
        if self.problems:
            raise BenchbookError(*self.problems)
        fix = did_you_mean(name, self.by_id, "claim")
        raise UnresolvedError(f"there is no claim `{name}`", f"declare it in {FILE}, or {fix}")


def load_claims(project: Project) -> Claims:
    """Every claim that the guides declare."""
    by_id: dict[str, Claim] = {}
    problems: list[Problem] = []
    measuring = [name for name in project.machines if not is_published(name)]
    for path in sorted(project.snippets.glob(f"*/{FILE}")):
        try:
            found, wrong = parse_claims(path.read_text("utf-8"), project.relative(path), path.parent.name)
        except (OSError, UnicodeDecodeError) as error:
            problems.append(unreadable(project.relative(path), error))
            continue
        problems += wrong
        for claim in found:
            first = by_id.setdefault(claim.id, claim)
            if first is not claim:
                what = f"the claim `{claim.id}` is there twice (first at {first.path}:{first.line})"
                problems.append(Problem(claim.path, claim.at("id"), what, "rename one of the two"))
            problems += _machine_problems(claim, measuring)
    return Claims(by_id, tuple(problems))


def predicates_about(project: Project, script: str) -> dict[str, str]:
    """What decides each claim that names `script`, by its id: the digests that stand now."""
    return {
        claim.id: claim.predicate
        for claim in load_claims(project).by_id.values()
        if script in (claim.a.script, claim.b.script if isinstance(claim.b, Reference) else None)
    }


def parse_claims(text: str, path: str, guide: str) -> tuple[list[Claim], list[Problem]]:
    """The claims that `text` declares, and everything that is wrong with the others.

    Parameters:
        text: The content of a claims.toml.
        path: The file, for messages.
        guide: Whose claims they are.
    """
    try:
        table = parse_toml(text, path)
    except BenchbookError as error:
        return [], list(error.problems)
    problems = []
    for key in table:
        if key != "claim":
            fix = "begin each claim with a line [[claim]]"
            problems.append(Problem(path, toml_line(text, (key,)), f"has the unknown key `{key}`", fix))
    tables = table.get("claim", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        what, fix = "`claim` is not a list of tables", "begin each claim with a line [[claim]]"
        return [], [*problems, Problem(path, toml_line(text, ("claim",)), what, fix)]
    claims = []
    for number, declared in enumerate(tables):
        lines = _lines(text, number, declared)
        wrong = list(_claim_problems(declared, path, lines))
        problems += wrong
        if not wrong:
            claims.append(_build(declared, path, guide, lines))
    return claims, problems


def parse_constant(text: str) -> Constant | None:
    """The number with a unit that `text` is, such as "18 B/parameter"; None if it is none.

    Raises:
        UnresolvedError: Its unit is unknown, or nothing here is as large.
    """
    match = _CONSTANT.match(text.strip())
    if match is None:
        return None
    if match["unit"] not in UNITS:
        raise UnresolvedError(f"`{match['unit']}` is not a unit", did_you_mean(match["unit"], UNITS, "unit"))
    if abs(value := float(match["value"])) > LARGEST:
        raise UnresolvedError(f"`{match['value'][:40]}` is beyond {LARGEST:g}", "name a smaller number")
    return Constant(value, UNITS[match["unit"]])


def side_of(value: object) -> Reference | Constant:
    """What `b` names: a number, a number with its unit, or a reference.

    Raises:
        UnresolvedError: It is none of them.
    """
    if _is_number(value):
        return Constant(float(cast(float, value)))
    if not isinstance(value, str):
        raise UnresolvedError(f"{value!r} is nothing to compare with", _SIDE)
    return parse_constant(value) or parse_reference(value)


_SIDE = 'write "guide/script.py#metric", "18 B/parameter", or a number'


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= LARGEST


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


# What each key must be: a test, and the words that say so. `a` and `b` are read by `side_of`.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "id": (
        lambda value: isinstance(value, str) and ID.match(value) is not None,
        "make it lower-case letters, digits and hyphens, beginning with a letter",
    ),
    "relation": (lambda value: value in RELATIONS, f"make it one of {', '.join(RELATIONS)}"),
    "ratio": (
        lambda value: _is_number(value) and value >= SMALLEST_RATIO,
        f"leave it out for {SMALLEST_RATIO}, or ask for more; a number that its words name is `times`",
    ),
    "tolerance": (
        lambda value: _is_number(value) and 0 <= value < 1,
        "make it a share; 0 where the two must be the same",
    ),
    "times": (lambda value: _is_number(value) and value > 0, "make it a number above 0"),
    "kind": (lambda value: value == "time", 'make it "time", for a ratio of times, or leave it out'),
    "machines": (
        lambda value: isinstance(value, dict) and bool(value),
        'name at least one: machines = { "machine" = "holds" }',
    ),
    "needs": (
        lambda value: isinstance(value, list) and bool(value) and set(map(str, value)) <= CAPABILITIES,
        f"make it a list of {', '.join(sorted(CAPABILITIES))}",
    ),
    "source": (
        lambda value: isinstance(value, dict),
        'write source = { title = "...", url = "https://..." }',
    ),
}


def _claim_problems(declared: Mapping[str, Any], path: str, lines: Mapping[str, int]) -> Iterator[Problem]:
    def problem(key: str, what: str, fix: str) -> Problem:
        return Problem(path, lines.get(key, lines[""]), what, fix)

    name = declared.get("id") if _is_text(declared.get("id")) else "without an id"
    for key in NEEDED:
        if key not in declared:
            yield problem("", f"the claim {_quoted(name)} lacks `{key}`", "add it")
    for key, value in declared.items():
        if key not in KEYS:
            what = f"the claim {_quoted(name)} has the unknown key `{key}`"
            yield problem(key, what, did_you_mean(key, KEYS, "key"))
        elif key in _RULES and not _RULES[key][0](value):
            yield problem(key, f"the `{key}` of the claim {_quoted(name)} is {value!r}", _RULES[key][1])
    yield from _relation_problems(declared, _quoted(name), problem)
    for key in ("a", "b"):
        try:
            if key in declared and isinstance(side_of(declared[key]), Constant) and key == "a":
                yield problem(
                    "a", "a claim begins with a number", "put it into `b`, and what was measured into `a`"
                )
        except UnresolvedError as error:
            yield problem(key, error.what, error.fix)
    machines = declared.get("machines")
    for machine, outcome in machines.items() if isinstance(machines, dict) else ():
        if outcome not in OUTCOMES[:-1]:
            fix = f"make it one of {', '.join(OUTCOMES[:-1])}"
            yield problem(machine, f"the outcome on {machine} is {outcome!r}", fix)
    if isinstance(declared.get("source"), dict):
        yield from _source_problems(declared["source"], problem)


def _quoted(name: object) -> str:
    return str(name) if name == "without an id" else f"`{name}`"


def _relation_problems(
    declared: Mapping[str, Any], name: str, problem: Callable[[str, str, str], Problem]
) -> Iterator[Problem]:
    relation = declared.get("relation")
    wanted, other = ("tolerance", "ratio") if relation == "equal" else ("ratio", "tolerance")
    if relation in RELATIONS and other in declared:
        what = f"the claim {name} says `{relation}` with a `{other}`"
        yield problem(other, what, f"write `{wanted}` instead")


def _source_problems(
    source: Mapping[str, Any], problem: Callable[[str, str, str], Problem]
) -> Iterator[Problem]:
    for key in source:
        if key not in SOURCE_KEYS:
            yield problem(key, f"a source has no key `{key}`", f"it has {', '.join(SOURCE_KEYS)}")
        elif (hidden := HIDDEN.search(str(source[key]))) is not None:
            what = f"the {key} of the source holds an invisible character (U+{ord(hidden[0]):04X})"
            yield problem(key, what, "remove it")
    if not _is_text(source.get("title")):
        yield problem("source", "the source has no title", 'add title = "..."')
    url = str(source.get("url", ""))
    if not url.startswith("https://") or unsafe_address(url):
        yield problem("url", "the source has no address", 'add url = "https://..."')
    quote, date = source.get("quote"), source.get("date")
    if (quote is None) != (date is None):
        yield problem("source", "`quote` and `date` of a source go together", "add the other of the two")
    if quote is not None and not (_is_text(quote) and len(quote) <= LONGEST_QUOTE):
        fix = f"quote a sentence at most, of {LONGEST_QUOTE} characters"
        yield problem("quote", f"the quotation is {quote!r}", fix)
    if date is not None and not _is_date(date):
        yield problem(
            "date", f"the date of the source is {date!r}", 'write it as "2026", "2026-01" or "2026-01-31"'
        )


def _is_date(value: object) -> bool:
    """Whether it is a year, a month or a day of the calendar."""
    try:
        return isinstance(value, str) and bool(_DATE.match(value) and on_calendar(value))
    except ValueError:
        return False


def _machine_problems(claim: Claim, known: Sequence[str]) -> Iterator[Problem]:
    for machine in claim.machines:
        if machine not in known:
            what = f"the claim `{claim.id}` names the machine {machine}, which measured nothing here"
            yield Problem(claim.path, claim.at(machine), what, did_you_mean(machine, known, "machine"))


def _build(declared: Mapping[str, Any], path: str, guide: str, lines: Mapping[str, int]) -> Claim:
    b = side_of(declared["b"])
    named = isinstance(b, Constant) or "times" in declared
    numbers = {"ratio": 1.0 if named else SMALLEST_RATIO} | {
        key: float(declared[key]) for key in ("ratio", "tolerance", "times") if key in declared
    }
    return Claim(
        id=declared["id"],
        path=path,
        guide=guide,
        a=cast(Reference, side_of(declared["a"])),
        b=b,
        relation=declared["relation"],
        machines=dict(declared["machines"]),
        kind=declared.get("kind"),
        needs=frozenset(declared.get("needs", ())),
        source=ClaimSource(**declared["source"]) if "source" in declared else None,
        lines=lines,
        **numbers,
    )


def _lines(text: str, number: int, declared: Mapping[str, Any]) -> dict[str, int]:
    """The line of the claim with that number (under "") and of its keys, those within tables of it too."""
    found = {"": toml_line(text, ("claim", number))}
    for key, value in declared.items():
        for below in value if isinstance(value, dict) else ():
            found[below] = toml_line(text, ("claim", number, key, below))
        found[key] = toml_line(text, ("claim", number, key))
    return found
