"""Judge claims: what the records of a machine say of the two that a claim compares."""

from __future__ import annotations

from dataclasses import dataclass

from benchbook.content.claims import Claim, Claims, Constant, Outcome, load_claims
from benchbook.content.machines import machine_capabilities
from benchbook.content.problems import BenchbookError
from benchbook.content.records import Campaign
from benchbook.content.references import Target, UnresolvedError
from benchbook.content.tolerances import TOLERANCES, tolerance_for
from benchbook.content.units import Unit, convertible, targets
from benchbook.query.library import Cache, Library, Machine
from benchbook.query.measurements import Measurement, find_target, measure
from benchbook.statistics.comparison import Comparison, Doubt, Side, compare_sides, decide

# What a number alone can be compared with.
PLAIN = ("ratio", "count")


@dataclass(frozen=True)
class Judgement:
    """What the records of one machine say of a claim.

    Parameters:
        claim: The claim.
        machine: Whose records.
        outcome: What they say.
        doubt: Why that is open, if it is.
        found: The comparison behind it, in the base units of the two.
        parts: The measurements it is made of; none where one of them is missing.
        tolerance: By what share the two may differ where they are called equal.
    """

    claim: Claim
    machine: Machine
    outcome: Outcome
    doubt: Doubt | None
    found: Comparison
    parts: tuple[Measurement, ...]
    tolerance: float = 0.0

    @property
    def set_after(self) -> bool:
        """Whether its numbers were set, or changed, after what they judge was measured.

        Of a campaign that did not note what stood when it began, nobody can tell.
        """
        for part in self.parts:
            stood = part.source.campaign.predicates if isinstance(part.source.campaign, Campaign) else None
            if stood is None or not (self.claim.names_numbers or self.claim.id in stood):
                continue
            if stood.get(self.claim.id) != self.claim.predicate:
                return True
        return False


_CLAIMS = Cache[None, Claims]("claims")
_RESOLVED = Cache[str, tuple[Target, Target | Constant]]("sides of claims")
_JUDGED = Cache[tuple[str, str], Judgement]("judgements")
_JUDGEMENTS = Cache[str, tuple[Judgement, ...]]("judgements of all machines")


def claims_of(library: Library) -> Claims:
    """Every claim of the project, read once in a build."""
    return library.once(_CLAIMS, None, lambda: load_claims(library.project))


def judge_claim(library: Library, claim: Claim, machine: Machine) -> Judgement:
    """What `machine` says of `claim`.

    Raises:
        BenchbookError: It names something that is not there, with the line of the claim that does.
    """
    return library.once(_JUDGED, (claim.id, machine.name), lambda: _judge(library, claim, machine))


def _judge(library: Library, claim: Claim, machine: Machine) -> Judgement:
    judged = _judge_measured(library, claim, machine)
    # A need that was set after the machine had measured excuses nothing.
    if claim.needs - machine_capabilities(machine.details) and not _noted_another(judged):
        return Judgement(claim, machine, "not applicable", None, Comparison(), ())
    return judged


def _noted_another(judged: Judgement) -> bool:
    """Whether a campaign noted that the claim stood otherwise when it began."""
    campaigns = [part.source.campaign for part in judged.parts]
    noted = [one.predicates or {} for one in campaigns if isinstance(one, Campaign)]
    return any(
        stood.get(judged.claim.id, judged.claim.predicate) != judged.claim.predicate for stood in noted
    )


def _judge_measured(library: Library, claim: Claim, machine: Machine) -> Judgement:
    """What the records of `machine` say of `claim`, whatever it needs."""
    first, second = resolve_sides(library, claim)
    sides = []
    parts: list[Measurement] = []
    for key, one in (("a", first), ("b", second)):
        if isinstance(one, Constant):
            assert one.unit is not None
            sides.append(Side((one.value * one.unit.factor,)))
            continue
        try:
            part = measure(library, one, machine)
            sides.append(side_of_measurement(part))
        except UnresolvedError as error:
            raise BenchbookError(error.at(claim.path, claim.at(key))) from None
        parts += [part] if part is not None and part.samples else []
    found = compare_sides(sides[0], sides[1], claim.times)
    tolerance = tolerance_of(claim, first.unit)
    outcome, doubt = decide(found, claim.relation, claim.ratio, tolerance, claim.times)
    held = () if found.first is None else tuple(parts)
    return Judgement(claim, machine, outcome, doubt, found, held, tolerance)


def tolerance_of(claim: Claim, unit: Unit) -> float:
    """By what share the two sides of a claim, quantities in `unit`, may differ where it calls them equal."""
    return usual_tolerance(claim, unit) if claim.tolerance is None else claim.tolerance


def usual_tolerance(claim: Claim, unit: Unit) -> float:
    """The same, for all claims of its kind."""
    return tolerance_for(unit) if claim.kind is None else TOLERANCES[claim.kind]


def side_of_measurement(part: Measurement | None) -> Side:
    """A measurement as one side of a comparison, in the base unit of its dimension.

    Raises:
        UnresolvedError: A sample is beyond what a float holds.
    """
    if part is None:
        return Side(())
    try:
        samples = tuple(sample * part.unit.factor for sample in part.samples)
    except OverflowError:
        script, machine = part.source.script.reference, part.source.machine.name
        what = f"`{script}` has a sample on {machine} that is beyond 10 to the 308th"
        raise UnresolvedError(what, "record it again with `benchbook record`") from None
    return Side(
        samples,
        timed=part.unit.noisy,
        # Each script has campaigns of its own.
        campaign=f"{part.source.script.reference} {part.source.result.campaign}",
        shared=bool(part.source.campaign.state.get("shared")),
    )


def resolve_sides(library: Library, claim: Claim) -> tuple[Target, Target | Constant]:
    """What the two sides of `claim` stand for in the scripts.

    Raises:
        BenchbookError: One stands for nothing, or the two cannot be compared; with the line of the claim.
    """
    return library.once(_RESOLVED, claim.id, lambda: _resolve(library, claim))


def _resolve(library: Library, claim: Claim) -> tuple[Target, Target | Constant]:
    key = "a"
    try:
        first = find_target(library, claim.a)
        key = "b"
        second = (
            with_unit(claim.b, first.unit) if isinstance(claim.b, Constant) else find_target(library, claim.b)
        )
        assert second.unit is not None
        check_comparable(first.unit, second.unit)
        key = "tolerance"
        usual = usual_tolerance(claim, first.unit)
        if claim.kind is not None and first.unit.symbol != "1":
            key = "kind"
            raise UnresolvedError(f"{first.unit.symbol} is no ratio of times", "leave `kind` out")
        if tolerance_of(claim, first.unit) > usual:
            what = f"a tolerance of {claim.tolerance:g} is more than quantities in {first.unit.symbol} have"
            raise UnresolvedError(what, f"leave it out: theirs is {usual:g}")
    except UnresolvedError as error:
        raise BenchbookError(error.at(claim.path, claim.at(key))) from None
    return first, second


def with_unit(constant: Constant, unit: Unit) -> Constant:
    """`constant` with a unit: `unit`, that of what it is compared with, if it has none.

    Raises:
        UnresolvedError: A number alone does not say how much it is.
    """
    if constant.unit is not None:
        return constant
    if unit.dimension not in PLAIN:
        what = f"the number {constant.value:g} is compared with a quantity in {unit.symbol}"
        raise UnresolvedError(what, f'write its unit: "{constant.value:g} {unit.symbol}"')
    return Constant(constant.value, unit)


def check_comparable(first: Unit, second: Unit) -> None:
    """Raise UnresolvedError if two units have no ratio."""
    counted = first.dimension == second.dimension == "count"
    if not counted and not convertible(first, second):
        what = f"a quantity in {first.symbol} is compared with one in {second.symbol}"
        raise UnresolvedError(what, f"compare it with one in {' or '.join(targets(first))}")


def judging_machines(library: Library) -> tuple[Machine, ...]:
    """The machines whose records judge claims: those that measured, not those whose figures are quoted."""
    return tuple(machine for machine in library.machines.values() if not machine.published)


def judgements(library: Library, claim: Claim) -> tuple[Judgement, ...]:
    """What each machine whose records judge claims says of `claim`."""
    return library.once(
        _JUDGEMENTS,
        claim.id,
        lambda: tuple(judge_claim(library, claim, machine) for machine in judging_machines(library)),
    )
