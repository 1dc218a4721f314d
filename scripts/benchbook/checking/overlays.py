"""Say what a record from outside would change of the one here: what goes, and what joins a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchbook.content.formats import has_same, is_same
from benchbook.content.problems import few
from benchbook.content.records import Campaign, HistoryLine, Publication, Record

# What a session is told by, and stays however long it goes on; and of the device all but who else used it.
SESSION = ("started", "commit", "recorded_by", "packages", "predicates")
# What becomes of a campaign with each session that goes on with it.
GOING_ON = frozenset({"finished", "resumed"})
WHO_ELSE = ("foreign_processes", "shared")
LATEST_STAYS = "record again: what was measured last stays"


@dataclass
class Changes:
    """What a bundle would change of what is here, a line for each change.

    Parameters:
        replaced: What goes, for something else.
        added: What joins a session that is here, or stands beside it in one record.
        joined: Records of further scripts, on a machine that is here.
        refused: What was measured later or is of another session, and stays in any case; with the fix.
    """

    replaced: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    joined: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)


def compare_records(old: Record, new: Record, merged: Record, found: Changes) -> None:
    """Put into `found` what `new`, laid over `old` as `merged`, changes of it."""
    title = f"{new.script} on {new.machine}"
    _compare_variants(old, new, title, found)
    _compare_campaigns(old, new, title, found)
    _compare_histories(old, new, merged, title, found)


def _compare_variants(old: Record, new: Record, title: str, found: Changes) -> None:
    """Variants that would go, and those that would join a session that is here."""
    gone = [
        name
        for name, variant in new.variants.items()
        if name in old.variants and not is_same(old.variants[name], variant)
    ]
    if gone:
        listed = f"{title}: {_listed(gone)}"
        found.replaced.append(f"{listed}, measured {_dates(old, gone)}, by {_dates(new, gone)}")
    if late := [name for name in gone if _finished(new, name) <= _finished(old, name)]:
        what = f"{title}: {_listed(late)} was measured {_dates(new, late)}, "
        found.refused.append((f"{what}and is here as measured {_dates(old, late)}", LATEST_STAYS))
    for name in sorted(new.campaigns.keys() - old.campaigns.keys()):
        if beside := _added_to(name, old, new):
            found.added.append(f"{title}: {_listed(beside)}, of campaign {name}, beside those that are here")
    for name in old.campaigns:
        if joining := _added_to(name, old, new):
            found.added.append(f"{title}: {_listed(joining)}, to campaign {name}, which is here")
        if isinstance(old.campaigns[name], Campaign) and (twice := _taken_places(name, old, new)):
            what = f"{_listed(twice)} ran in places of campaign {name} that others have here"
            found.refused.append((f"{title}: {what}", "record them again, in a campaign of their own"))


def _added_to(campaign: str, old: Record, new: Record) -> list[str]:
    """The variants that a campaign would have, and does not have here."""
    return [
        name
        for name, variant in new.variants.items()
        if variant.campaign == campaign and name not in old.variants
    ]


def _taken_places(campaign: str, old: Record, new: Record) -> list[str]:
    """The variants that are not here so, of whose runs one has the place of another variant's."""
    merged = {name: v for name, v in (old.variants | new.variants).items() if v.campaign == campaign}
    others: dict[int, set[str]] = {}
    for name, variant in merged.items():
        for run in variant.runs:
            others.setdefault(run.place, set()).add(name)
    return [
        name
        for name, variant in merged.items()
        if not is_same(old.variants.get(name), variant)
        and any(others[run.place] != {name} for run in variant.runs)
    ]


def _compare_campaigns(old: Record, new: Record, title: str, found: Changes) -> None:
    """Campaigns of one name that are not the same session, or an earlier state of it."""
    for name in sorted(old.campaigns.keys() & new.campaigns.keys()):
        known, campaign = old.campaigns[name], new.campaigns[name]
        if is_same(known, campaign):
            continue
        here = f"{title}: campaign {name} is here already"
        if not (isinstance(known, Campaign) and isinstance(campaign, Campaign)):
            found.refused.append((f"{here}, and is another publication", "quote it under a name of its own"))
            continue
        differing, gone_on = session_differences(known, campaign)
        if differing:
            what = f"{here}, of another session (its {', '.join(differing)} differs)"
            found.refused.append((what, LATEST_STAYS))
        elif not GOING_ON.issuperset(gone_on) or not _added_to(name, old, new):
            found.replaced.append(f"{title}: {', '.join(gone_on)} of campaign {name}")


def session_differences(known: Campaign, campaign: Campaign) -> tuple[list[str], list[str]]:
    """In which fields two are not one session, and in which the second is the first gone on with."""
    differing = [key for key in SESSION if not is_same(getattr(known, key), getattr(campaign, key))]
    gone_on: list[str] = []
    for key in sorted(known.state.keys() | campaign.state.keys()):
        before, after = known.state.get(key), campaign.state.get(key)
        if not is_same(before, after):
            less = key not in WHO_ELSE or (key == "shared" and before is True)
            (differing if less else gone_on).append(f"state.{key}")
    if known.modified != campaign.modified:
        (differing if known.modified else gone_on).append("modified")
    if known.finished != campaign.finished:
        (differing if campaign.finished < known.finished else gone_on).append("finished")
    if known.resumed != campaign.resumed:
        (gone_on if set(known.resumed) < set(campaign.resumed) else differing).append("resumed")
    return differing, gone_on


def _compare_histories(old: Record, new: Record, merged: Record, title: str, found: Changes) -> None:
    """Lines of the history that would go or be others, and those of campaigns that neither record holds."""
    gone = [line.campaign for line in old.history if not any(continues(line, one) for one in merged.history)]
    if gone:
        found.replaced.append(f"{title}: the history of campaign {few(list(dict.fromkeys(gone)))}")
    # What a campaign was is known once it is done: its lines change only with what it has measured since.
    going_on = {one.campaign for name, one in new.variants.items() if name not in old.variants}
    done = {name for name, one in old.campaigns.items() if is_same(new.campaigns.get(name), one)} - going_on
    forged = [
        line.campaign for line in merged.history if line.campaign in done and not has_same(old.history, line)
    ]
    if forged:
        found.replaced.append(f"{title}: the history of campaign {few(list(dict.fromkeys(forged)))}")
    known = {*old.campaigns, *merged.campaigns, *(line.campaign for line in old.history)}
    strange = [line.campaign for line in new.history if line.campaign not in known]
    if strange:
        found.added.append(f"{title}: the history of campaign {few(list(dict.fromkeys(strange)))}")


def continues(line: HistoryLine, later: HistoryLine) -> bool:
    """Whether `later` says what `line` does, or more, as of a campaign that was gone on with."""
    return (
        later.campaign == line.campaign
        and later.date >= line.date
        and set(later.variants) >= set(line.variants)
        and all(is_same(later.medians.get(name), one) for name, one in line.medians.items())
    )


def _listed(variants: Sequence[str]) -> str:
    """The names of a few variants, and how many more there are."""
    return f"variant {few(variants)}"


def _finished(record: Record, variant: str) -> str:
    """When the campaign of a variant ended; of what is quoted, the day of the publication."""
    campaign = record.campaigns[record.variants[variant].campaign]
    return campaign.source.published if isinstance(campaign, Publication) else campaign.finished


def _dates(record: Record, variants: Sequence[str]) -> str:
    return " and ".join(sorted({_finished(record, name)[:10] for name in variants}))
