"""Find copies in records: times and readings of memory of another machine, or of another run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchbook.checking.memory_bounds import items_of, ranks_of
from benchbook.content.positions import json_line
from benchbook.content.problems import Problem
from benchbook.content.script import Script
from benchbook.content.units import UNITS, Unit
from benchbook.content.validation import RECORD_AGAIN

# So many that agree were not measured twice.
SAMPLES_THAT_SCATTER = 3
# Cells that take less do little else than read the clock, and two of them may agree.
TELLING_SECONDS = 1e-4
# The same, of the cell that takes longest, where nobody knows by which factor times were changed.
TELLING_SHARE = 0.001
# Times of two machines whose ratios spread by less, in natural logarithms, are a copy that was rounded or
# moved: those of two measurements spread by some tenths.
NEARLY = 1e-3
# So many pairs of times tell that.
PAIRS_THAT_TELL = 10
# Of shorter times a microsecond more would spread the ratios further.
LONG_SECONDS = 1e-3
# What scatters less in itself, in natural logarithms, may be nearly the same on any two machines.
OWN_SCATTER = 10 * NEARLY
# What a process held: pages of whatever was loaded, which no two machines have quite as many of.
HELD = ("process_memory", "process_memory_peak")
# What they are of, for messages, and each of them, in an order that does not depend on that of the runs.
Samples = tuple[str, ...]
# Of whatever script and cell they are: times of many digits.
OF_ANY_SCRIPT = "times of cells"
# One time that one process took over a cell of any script, and one that a metric says.
TIME_OF_PROCESS, METRIC_OF_PROCESS = "time of a process", "metric of a process"
# What two campaigns of one script on one machine may have alike.
READINGS, TRACES = "readings of memory", "traces"


@dataclass(frozen=True)
class Measured:
    """Where samples were measured.

    Parameters:
        machine: Where.
        script: Of which script.
        campaign: In which session.
        variant: Of what one process measured: the variant.
        place: The place of its run.
        rank: Its rank there.
    """

    machine: str
    script: str
    campaign: str
    variant: str = ""
    place: int = 0
    rank: int = 0


# What was measured, and the script that it can be compared in, which is empty where that is any.
Key = tuple[str, Samples]
# Whose samples are.
Known = dict[Key, Measured]


def samples_of(table: Mapping[str, Any], script: Script | None = None) -> Iterator[tuple[str, Samples]]:
    """What no two machines measure alike in all runs of a variant, written so that a copy of it is the same.

    How long each cell took, and what each metric that is a time or a rate says; the same of one factor, by
    which a copy may have been made faster; the memory that each process held; and traces, which hold times.

    Parameters:
        table: The record, already of the right shape.
        script: The script as it stands; without it nothing is known of its metrics.
    """
    timed = timed_metrics(script) if script is not None else ()
    for name, variant in table["variants"].items():
        runs = variant["runs"]
        if variant["outcome"] != "ok":
            continue
        for entry in variant.get("traces", {}).values():
            yield name, (TRACES, entry["sha256"])
        ranks = [rank for run in runs for rank in ranks_of(run)]
        cells = [(cell, meters) for rank in ranks for cell, meters in rank["cells"].items()]
        seconds = [(cell, float(meters.get("seconds") or 0)) for cell, meters in cells]
        said = [(metric, float(item)) for metric in timed for item in items_of(runs, metric)]
        held = [(f"{cell} {key}", meters.get(key) or 0) for cell, meters in cells for key in HELD]
        telling = [
            (cell, f"{took:.8g}") for cell, took in seconds if took > TELLING_SECONDS and _is_telling(took)
        ]
        metrics = [f"{metric} {value:.8g}" for metric, value in said if _is_telling(value)]
        found = (
            # Of nine digits rounding may move the last: times that agree so far were not measured twice.
            ("times", [f"{cell} {took:.8g}" for cell, took in seconds if took > TELLING_SECONDS]),
            ("times, but for one factor,", _shares(seconds)),
            ("metrics", metrics),
            ("metrics, but for one factor,", _shares(said)),
            (READINGS, [f"{where} {size}" for where, size in held if size]),
        )
        for words, told in found:
            if len(set(told)) >= SAMPLES_THAT_SCATTER:
                yield name, (words, *sorted(told))
        # Some of them as well, for a copy may be altered elsewhere; a few of memory, or of a clock that ticks
        # in milliseconds, may be alike by chance.
        in_part = {
            "times in part": [f"{cell} {took}" for cell, took in telling],
            "metrics in part": metrics,
            # Whoever copies them into another script may have called its cells otherwise.
            OF_ANY_SCRIPT: [took for _, took in telling],
        }
        for words, told in in_part.items():
            some = sorted(set(told))
            for end in range(SAMPLES_THAT_SCATTER, len(some) + 1):
                yield name, (words, *some[end - SAMPLES_THAT_SCATTER : end])


def known_samples(table: Mapping[str, Any], script: Script | None = None) -> Known:
    """Whose the samples of a record are, and each time of its processes; see `samples_of`."""
    found = {_key(table, samples): _measured(table, name) for name, samples in samples_of(table, script)}
    timed = timed_metrics(script) if script is not None else ()
    for process, keys in _processes(table, timed):
        found |= dict.fromkeys(keys, process)
    return found


def _key(table: Mapping[str, Any], samples: Samples) -> Key:
    return "" if samples[0] in (OF_ANY_SCRIPT, TIME_OF_PROCESS) else table["script"], samples


def _processes(table: Mapping[str, Any], timed: Sequence[str]) -> Iterator[tuple[Measured, set[Key]]]:
    """Each process that measured a record, and each of its times that nobody measures twice.

    Quoted figures are of no process. `timed` are the metrics that are a time or a rate.
    """
    for name, variant in table["variants"].items():
        if "source" in table["campaigns"][variant["campaign"]]:
            continue
        for run in variant["runs"]:
            for number, rank in enumerate(ranks_of(run)):
                alone = {**rank, "other_ranks": ()}
                taken = (float(meters.get("seconds") or 0) for meters in rank["cells"].values())
                said = ((metric, float(item)) for metric in timed for item in items_of([alone], metric))
                told = [
                    (TIME_OF_PROCESS, f"{took:.8g}")
                    for took in taken
                    if took > TELLING_SECONDS and _is_telling(took)
                ]
                told += [
                    (METRIC_OF_PROCESS, f"{metric} {value:.8g}")
                    for metric, value in said
                    if _is_telling(value)
                ]
                process = replace(_measured(table, name), variant=name, place=run["place"], rank=number)
                yield process, {_key(table, one) for one in told}


def _same_as(process: Measured, keys: set[Key], known: Known) -> Iterator[Measured]:
    """The processes of which a process has so many times that it is a copy.

    What metrics say may be gathered, and so be the same on all ranks of a run.
    """
    shared: Counter[Measured] = Counter()
    for key in keys & known.keys():
        other = known[key]
        if key[1][0] == TIME_OF_PROCESS or replace(other, rank=0) != replace(process, rank=0):
            shared[other] += 1
    return (other for other, times in shared.items() if times >= SAMPLES_THAT_SCATTER)


def _measured(table: Mapping[str, Any], variant: str) -> Measured:
    return Measured(table["machine"], table["script"], table["variants"][variant]["campaign"])


def _near_samples(
    table: Mapping[str, Any], other: Mapping[str, Any], script: Script | None
) -> Iterator[tuple[str, str]]:
    """The variants whose times, or rates, are nearly those of another machine but for one factor.

    Variants of few times are looked at together, and named by the first of them.

    Parameters:
        table: The record.
        other: The record of the same script on the other machine.
        script: The script as it stands; without it nothing is known of its metrics.
    """
    there = _logarithms(other, script)
    pairs: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (words, variant, place), values in _logarithms(table, script).items():
        known = there.get((words, variant, place), [])
        if len(known) == len(values):
            pairs.setdefault((words, variant), []).extend(zip(sorted(values), sorted(known), strict=True))
    together: dict[str, tuple[str, list[tuple[float, float]]]] = {}
    for (words, variant), found in pairs.items():
        if len(found) < PAIRS_THAT_TELL:
            together.setdefault(words, (variant, []))[1].extend(found)
        elif _are_near(found):
            yield variant, words
    for words, (variant, found) in together.items():
        if len(found) >= PAIRS_THAT_TELL and _are_near(found):
            yield variant, words


def _logarithms(table: Mapping[str, Any], script: Script | None) -> dict[tuple[str, str, str], list[float]]:
    """The natural logarithms of measured times over a millisecond, and of rates.

    By what they are, their variant, and their cell or metric; without quoted figures.
    """
    units: dict[str, Unit] = {}
    if script is not None:
        units = {name: UNITS[script.metadata.metrics[name].unit] for name in timed_metrics(script)}
    found: dict[tuple[str, str, str], list[float]] = {}
    for name, variant in table["variants"].items():
        if "source" in table["campaigns"][variant["campaign"]]:
            continue
        for rank in (rank for run in variant["runs"] for rank in ranks_of(run)):
            for cell, meters in rank["cells"].items():
                if (took := float(meters.get("seconds") or 0)) > LONG_SECONDS:
                    found.setdefault(("times", name, f"cell {cell}"), []).append(math.log(took))
        for metric, unit in units.items():
            words, least = ("times", LONG_SECONDS / unit.factor) if unit.dimension == "time" else ("rates", 0)
            for value in map(float, items_of(variant["runs"], metric)):
                if value > least:
                    found.setdefault((words, name, f"metric {metric}"), []).append(math.log(value))
    return found


def _are_near(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether the ratios of numbers that scatter hardly do, told the logarithms of both of each pair."""
    ratios = [here - there for here, there in pairs]
    here = [value for value, _ in pairs]
    return max(ratios) - min(ratios) < NEARLY and max(here) - min(here) > OWN_SCATTER


def timed_metrics(script: Script) -> tuple[str, ...]:
    """The metrics of a script that are a time or a rate."""
    declared = script.metadata.metrics.items()
    return tuple(name for name, metric in declared if UNITS[metric.unit].dimension in {"time", "rate"})


def _is_telling(value: float) -> bool:
    """Whether a number has so many digits that nobody measures it twice by chance."""
    return len(f"{abs(value):.8e}".partition("e")[0].rstrip("0")) > len("1.000")


def _shares(values: Sequence[tuple[str, float]]) -> list[str]:
    """What each of some numbers is of the largest of its name; of many small ones nobody could tell.

    Empty where fewer than three have many digits.
    """
    most: dict[str, float] = {}
    for name, value in values:
        most[name] = max(most.get(name, 0.0), value)
    whole = max(most.values(), default=0.0)
    told = [
        (name, value / most[name])
        for name, value in values
        if most[name] > whole * TELLING_SHARE and 0 < value < most[name]
    ]
    if sum(_is_telling(share) for _, share in told) < SAMPLES_THAT_SCATTER:
        return []
    return [f"{name} {share:.5g}" for name, share in told]


def copy_problems(
    table: Mapping[str, Any],
    others: Known,
    path: str,
    text: str = "",
    script: Script | None = None,
    elsewhere: Iterable[Mapping[str, Any]] = (),
) -> Iterator[Problem]:
    """Variants whose times, readings or traces are those of another machine, script, campaign or variant.

    Readings of memory, and traces, may repeat from one campaign or variant to the next of the same script on
    the same machine, and so may what is quoted; times may not.

    Parameters:
        table: The record, already of the right shape.
        others: Whose samples are known.
        path: The file, for messages.
        text: Its content, to find lines in.
        script: The script as it stands.
        elsewhere: Records of the same script, whose times may be nearly the same where they are of another
            machine.
    """
    told: set[str] = set()
    first: dict[Samples, str] = {}
    for name, samples in samples_of(table, script):
        here = _measured(table, name)
        other = others.get(_key(table, samples), here)
        sibling = first.setdefault(samples, name)
        repeats = samples[0] in (READINGS, TRACES) or "source" in table["campaigns"][here.campaign]
        if name in told:
            continue
        if (whose := _elsewhere(here, other, repeats)) is None:
            if sibling == name or repeats:
                continue
            whose = f"variant {sibling}"
        told.add(name)
        what = f"variant {name}: its {samples[0]} are those of {whose}"
        yield Problem(path, json_line(text, ("variants", name)), what, RECORD_AGAIN)
    # A part of a record may be copied, run by run.
    for process, keys in _processes(table, timed_metrics(script) if script is not None else ()):
        found = (_elsewhere(process, other, False) for other in _same_as(process, keys, others))
        whose = next(filter(None, found), None)
        if whose is not None and process.variant not in told:
            told.add(process.variant)
            what = (
                f"variant {process.variant}: times of its run in place {process.place} are those of {whose}"
            )
            yield Problem(path, json_line(text, ("variants", process.variant)), what, RECORD_AGAIN)
    for record in elsewhere:
        if record["machine"] == table["machine"]:
            continue
        for name, words in _near_samples(table, record, script):
            if name not in told:
                told.add(name)
                what = f"variant {name}: its {words} are nearly those of {record['machine']}"
                yield Problem(path, json_line(text, ("variants", name)), what, RECORD_AGAIN)


def _elsewhere(here: Measured, other: Measured, repeats: bool) -> str | None:
    """Where samples were measured, if not in the session that they are given for.

    Parameters:
        here: Where they are said to be measured.
        other: Where the same were.
        repeats: Whether one session of a script on a machine may measure what another did.
    """
    if other.machine != here.machine:
        return other.machine if other.script == here.script else f"{other.script} on {other.machine}"
    # A script that is called otherwise now keeps its sessions.
    if other.script != here.script and other.campaign != here.campaign:
        return f"{other.script} on {other.machine}"
    if other.campaign != here.campaign and not repeats:
        return f"campaign {other.campaign}"
    return None


def copied_run_problems(
    table: Mapping[str, Any], script: Script, path: str, text: str = ""
) -> Iterator[Problem]:
    """The first run of each variant that took as long as another run in the record, in all cells or in part.

    So is a rank whose cells took as long as those of another. What is counted, and bytes, may well be the
    same in two runs; quoted figures are of no run at all.

    Parameters:
        table: The record, already of the right shape.
        script: The script as it stands, which says what of its metrics is a time or a rate.
        path: The file, for messages.
        text: Its content, to find lines in.
    """
    found: dict[str, str] = {}
    timed = timed_metrics(script)
    seen: dict[Samples, tuple[str, int]] = {}
    for name, variant in table["variants"].items():
        if "source" in table["campaigns"][variant["campaign"]]:
            continue
        for run in variant["runs"]:
            times = _times_of(run, timed)
            other, place = seen.setdefault(times, (name, run["place"]))
            if len(times) >= SAMPLES_THAT_SCATTER and (other, place) != (name, run["place"]):
                of = "" if other == name else f" of variant {other}"
                found.setdefault(
                    name, f"the times of its run in place {run['place']} are those in place {place}{of}"
                )
    known: Known = {}
    for process, keys in _processes(table, timed):
        for one in _same_as(process, keys, known):
            of = "" if one.variant == process.variant else f" of variant {one.variant}"
            here, there = (f"in place {side.place}, rank {side.rank}," for side in (process, one))
            what = f"times of its run {here} are those {there[:-1]}{of}"
            found.setdefault(process.variant, what)
        for key in keys:
            known.setdefault(key, process)
    for name, what in found.items():
        yield Problem(path, json_line(text, ("variants", name)), f"variant {name}: {what}", RECORD_AGAIN)


def _times_of(run: Mapping[str, Any], timed: Sequence[str]) -> Samples:
    """How long each cell of a run took, written as by `samples_of`; of few, what its metrics say too."""
    ranks = list(enumerate(ranks_of(run)))
    cells = ((number, *cell) for number, rank in ranks for cell in sorted(rank["cells"].items()))
    taken = ((number, name, meters.get("seconds") or 0) for number, name, meters in cells)
    times = [f"{number} {name} {took:.8g}" for number, name, took in taken if took > TELLING_SECONDS]
    if len(times) < SAMPLES_THAT_SCATTER:
        said = ((number, name, rank["metrics"].get(name)) for number, rank in ranks for name in timed)
        times += [f"{number} {name} {value}" for number, name, value in said if value is not None]
    return tuple(times)
