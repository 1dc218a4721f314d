"""Say what cannot be true of a well-formed record: no machine can have read it, or no clock, or no device."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import Any

from benchbook.checking.copies import SAMPLES_THAT_SCATTER, copied_run_problems
from benchbook.checking.memory_bounds import (
    bytes_of_devices,
    bytes_of_one,
    items_of,
    odd_bytes,
    odd_device,
    odd_host_bytes,
    odd_memory,
    odd_parameters,
    odd_peaks,
    peak_of,
    ranks_of,
    zero_peaks,
)
from benchbook.content.formats import MOMENT
from benchbook.content.magnitudes import MAGNITUDES, SHORTEST, odd_number
from benchbook.content.metadata import Metric
from benchbook.content.positions import json_line
from benchbook.content.problems import BenchbookError, Problem
from benchbook.content.records import CLOCK_SKEW, FIRST_DAY, measured_days
from benchbook.content.script import Script, Variant, machine_kinds
from benchbook.content.units import UNITS
from benchbook.content.validation import RECORD_AGAIN
from benchbook.machines.circumstances import STATE_FIELDS
from benchbook.machines.gpus import Sheet, ceilings_of, sheet_of
from benchbook.recording.estimate import WIDER, work_of
from benchbook.recording.jobs import MOST_SEEDS, OK, OUT_OF_MEMORY

# Time stamps are whole seconds.
ROUNDING_SECONDS = 2.0
# What a script times may go on from one cell into the next, and between them their meters are read.
BETWEEN_CELLS, BETWEEN_CELLS_SECONDS = 1.1, 0.1
# Times that agree so far are one time, written again: no two runs take the same.
AGREEMENT = 1e-9
# Who has so many times what a run held on another machine has enough.
PLENTY = 2
# Of one machine in one state.
LONGEST_CAMPAIGN = timedelta(days=7)
# How many times as fast as the reference machine another is at most, a tenfold to spare: the largest host
# beside one core, and an accelerator in formats that a processor has to emulate.
FASTEST_CPU, FASTEST = 1e4, 1e6
# And where processor and accelerator are the same: by other versions of what runs there.
FASTEST_ALIKE = 30.0
# What a version of PyTorch says of the accelerators that it was built for, and the kind of those.
TORCH_BUILD = re.compile(r"\+(cpu|cu|rocm|xpu)[0-9.]*$")
BUILT_FOR = {"cpu": "cpu", "cu": "cuda", "rocm": "rocm", "xpu": "xpu"}
# What a script says of its work is rounded: this share of what the data sheet asks for, a run takes at least.
SHARE_OF_WORK = 0.1


def plausibility_problems(
    table: Mapping[str, Any],
    machine: Mapping[str, Any],
    script: Script,
    path: str,
    text: str = "",
    now: datetime | None = None,
) -> Iterator[Problem]:
    """What cannot be true of a well-formed record of `script` on `machine`.

    Parameters:
        table: The record, already of the right shape.
        machine: The machine description, likewise.
        script: The script as it stands.
        path: The file, for messages.
        text: Its content, to find lines in.
        now: The present, in UTC.
    """
    for name, campaign in table["campaigns"].items():
        line = json_line(text, ("campaigns", name))
        for what in (
            *_odd_dates(name, campaign, now or datetime.now(UTC)),
            *_odd_build(campaign, machine),
            *_odd_state(campaign, machine),
        ):
            yield Problem(path, line, f"campaign {name}: {what}", RECORD_AGAIN)
    yield from _odd_length(table, path, text)
    yield from copied_run_problems(table, script, path, text)
    yield from _shared_places(table, path, text)
    yield from _odd_history(table, machine, script, path, text, now or datetime.now(UTC))
    declared = script.metadata.metrics
    kinds = machine_kinds(machine["kind"], machine["name"])
    variants = {one.name: one for one in script.variants(kinds)}
    # Of other code too: nobody could record it again there, and pages would show it as it is.
    measured_here = any(variant["code"] is not None for variant in table["variants"].values())
    if measured_here and not script.runs_on(kinds):
        needs = ", ".join(script.metadata.needs)
        yield Problem(path, 1, f"its script needs {needs}, which {machine['name']} is not", RECORD_AGAIN)
    for name, variant in table["variants"].items():
        line = json_line(text, ("variants", name))
        is_current = variant["code"] in script.codes
        if is_current and (more := _undeclared(variant, script)):
            what = f"it holds {', '.join(more)}, which are no cells of the script"
            yield Problem(path, line, f"variant {name}: {what}", RECORD_AGAIN)
        if variant["outcome"] != "ok":
            continue
        measured = set(variant["runs"][0]["metrics"])
        held = [set(rank["metrics"]) for run in variant["runs"] for rank in ranks_of(run)]
        differing = next((names for names in held if names != set(declared)), None)
        if differing is not None and is_current:
            odd = ", ".join(sorted(differing ^ set(declared)))
            yield Problem(
                path, line, f"variant {name}: its metrics differ from the declared ones ({odd})", RECORD_AGAIN
            )
        timed = {metric.name for metric in declared.values() if metric.blocks}
        if is_current and any(
            set(rank.get("blocks", {})) != timed for run in variant["runs"] for rank in ranks_of(run)
        ):
            what = (
                f"its runs do not hold blocks of {', '.join(sorted(timed)) or 'nothing'} alone, as declared"
            )
            yield Problem(path, line, f"variant {name}: {what}", RECORD_AGAIN)
        if is_current:
            cells = {cell.name for cell in script.cells}
            ranks = [rank for run in variant["runs"] for rank in ranks_of(run)]
            lacking = {cell for rank in ranks for cell in cells - set(rank["cells"])}
            if lacking:
                what = f"a run lacks the cells {', '.join(sorted(lacking))}"
                yield Problem(path, line, f"variant {name}: {what}", RECORD_AGAIN)
            for what in _unread(ranks, machine):
                yield Problem(path, line, f"variant {name}: {what}", RECORD_AGAIN)
        known = {metric: declared[metric] for metric in sorted(measured & set(declared))}
        work = _work(script, variants[name]) if is_current and name in variants else {}
        for what in (
            *odd_memory(variant["runs"], machine, table["campaigns"][variant["campaign"]]),
            *(odd_device(variant, script, machine) if is_current else ()),
            *odd_parameters(variant["runs"]),
            *odd_bytes(variant["runs"], known, machine),
            *odd_host_bytes(variant["runs"], known, machine),
            *odd_peaks(variant["runs"], known),
            *zero_peaks(variant["runs"], known),
            *_odd_seeds(variant["runs"], known),
            *_odd_numbers(variant["runs"], known),
            *_odd_metrics(variant["runs"], known, machine),
            *_odd_times(variant["runs"], known, "source" in table["campaigns"][variant["campaign"]]),
            *_odd_speed(variant, known, work, machine),
            *_odd_operations(variant, known, machine),
            *_odd_seconds(variant["runs"], "source" in table["campaigns"][variant["campaign"]]),
            *_odd_blocks(variant["runs"], known),
        ):
            yield Problem(path, line, f"variant {name}: {what}", RECORD_AGAIN)


def _odd_dates(called: str, campaign: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """What no calendar allows; figures that are quoted have no session to speak of, and a day at most."""
    for name, day in (
        ("measured in", campaign.get("measured")),
        ("published in", _published(campaign)),
        ("taken over at", campaign.get("taken_over")),
    ):
        if day and day > f"{now + CLOCK_SKEW:{MOMENT}}"[: len(day)]:
            yield f"it was {name} {day}, which is in the future"
    moments = {}
    for name in ("started", "finished"):
        if name not in campaign:
            return
        moments[name] = datetime.strptime(campaign[name], MOMENT).replace(tzinfo=UTC)
    if not called.startswith(begun := f"{moments['started']:%Y%m%dT%H%M%SZ}"):
        yield f"its name does not begin with its start ({begun}-...)"
    if moments["finished"] < moments["started"]:
        yield f"it finished at {campaign['finished']}, before it started at {campaign['started']}"
    elif moments["finished"] - moments["started"] > LONGEST_CAMPAIGN:
        days = (moments["finished"] - moments["started"]).days
        yield f"it lasted {days} days, and one session takes {LONGEST_CAMPAIGN.days} at most"
    sessions = [campaign["started"], *campaign.get("resumed", ()), campaign["finished"]]
    if sessions != sorted(sessions) or len(set(sessions[:-1])) < len(sessions) - 1:
        yield "its sessions did not begin one after the other, between its start and its end"
    if moments["started"] < FIRST_DAY:
        yield f"it started at {campaign['started']}, before anything was measured for this handbook"
    if moments["finished"] > now + CLOCK_SKEW:
        yield f"it finished at {campaign['finished']}, which is in the future"
    if campaign["state"].get("foreign_processes") and campaign["state"].get("shared") is not True:
        yield "others used the device, and its times are not marked as shared"


def _odd_build(campaign: Mapping[str, Any], machine: Mapping[str, Any]) -> Iterator[str]:
    """A PyTorch that was built for other accelerators than the machine's; a processor does with any."""
    version, kind = campaign["packages"].get("torch", ""), machine["kind"]
    build = TORCH_BUILD.search(version)
    if build is not None and kind not in {"cpu", BUILT_FOR[build[1]]}:
        yield f"it ran on torch {version}, which uses no accelerator of the kind {kind}"


def _odd_state(campaign: Mapping[str, Any], machine: Mapping[str, Any]) -> Iterator[str]:
    """What was read of a device on a machine that has none."""
    read = [key for key in STATE_FIELDS if campaign["state"].get(key) is not None]
    if read and machine["accelerator"] is None:
        yield f"it read {', '.join(read)} of a device, and {machine['name']} has none"


def _published(campaign: Mapping[str, Any]) -> str | None:
    """The date of what is quoted: a year, a month or a day; None of what was measured."""
    source = campaign.get("source")
    return None if source is None else str(source["published"])


def _odd_length(table: Mapping[str, Any], path: str, text: str) -> Iterator[Problem]:
    """Runs of one campaign, one behind the other, that took longer together than the campaign."""
    spent: dict[str, float] = {}
    for variant in table["variants"].values():
        campaign = variant["campaign"]
        for run in variant["runs"]:
            spent[campaign] = spent.get(campaign, 0.0) + max(map(cell_seconds, ranks_of(run)))
    for name, seconds in spent.items():
        lasted = seconds_of(table["campaigns"][name])
        if seconds > lasted + ROUNDING_SECONDS:
            what = f"campaign {name}: its runs took {seconds:.0f} s, and it lasted {lasted:.0f}"
            yield Problem(path, json_line(text, ("campaigns", name)), what, RECORD_AGAIN)


def _shared_places(table: Mapping[str, Any], path: str, text: str) -> Iterator[Problem]:
    """Variants of which a run has the place of another variant's: a campaign runs one behind the other."""
    taken: dict[tuple[str, int], str] = {}
    for name, variant in table["variants"].items():
        campaign = variant["campaign"]
        if "source" in table["campaigns"][campaign]:
            continue
        for run in variant["runs"]:
            other = taken.setdefault((campaign, run["place"]), name)
            if other != name:
                what = f"variant {name}: ran in place {run['place']} of campaign {campaign}, as {other} did"
                yield Problem(path, json_line(text, ("variants", name)), what, RECORD_AGAIN)
                break


def seconds_of(campaign: Mapping[str, Any]) -> float:
    """The seconds that a session lasted; without end where it is quoted."""
    if "started" not in campaign:
        return math.inf
    began, ended = (datetime.strptime(campaign[key], MOMENT) for key in ("started", "finished"))
    return (ended - began).total_seconds()


def _odd_history(
    table: Mapping[str, Any], machine: Mapping[str, Any], script: Script, path: str, text: str, now: datetime
) -> Iterator[Problem]:
    """The first odd line of the history: of a day without measurements, of no number, a campaign's second."""
    if machine["published"] and table["history"]:
        what = "it holds a history, and what is quoted has none"
        yield Problem(path, json_line(text, ("history",)), what, "remove its lines")
        return
    declared = script.metadata.metrics
    first, last = measured_days(now)
    campaigns: set[str] = set()
    for place, told in enumerate(table["history"]):
        if not first <= told["date"] <= last:
            odd: str | None = f"is of {told['date']}, when nothing was measured"
        elif told["campaign"] in campaigns:
            odd = "stands there twice"
        else:
            odd = _odd_line(told, table)
        campaigns.add(told["campaign"])
        for variant, medians in told["medians"].items():
            for name, value in medians.items():
                if name in declared and (number := odd_number(value, declared[name])) is not None:
                    odd = odd or f"says that {name} of variant {variant} is {number}"
                # Of a metric that there is no more nobody knows the unit.
                elif name not in declared and abs(value) > max(most for _, most in MAGNITUDES.values()):
                    odd = odd or f"says that {name} of variant {variant} is {value:.4g}"
        if odd is not None:
            line = json_line(text, ("history", place))
            yield Problem(path, line, f"the history of campaign {told['campaign']} {odd}", RECORD_AGAIN)
            return


def _odd_line(told: Mapping[str, Any], table: Mapping[str, Any]) -> str | None:
    """What a line of the history says otherwise than the campaign and the runs that the record holds."""
    campaign = table["campaigns"].get(told["campaign"], {})
    if "started" in campaign:
        began, ended = campaign["started"][: len("2026-01-31")], campaign["finished"][: len("2026-01-31")]
        if not began <= told["date"] <= ended:
            return f"is of {told['date']}, and the campaign of {began}"
    elif not _begun_in_time(told["campaign"], date.fromisoformat(told["date"])):
        return f"is of {told['date']}, and by its name it did not begin in the week before"
    for name, medians in told["medians"].items():
        variant = table["variants"].get(name)
        if variant is None or variant["campaign"] != told["campaign"]:
            continue
        for metric, value in medians.items():
            samples = [run["metrics"].get(metric) for run in variant["runs"]]
            known = bool(samples) and not any(one is None or isinstance(one, list) for one in samples)
            if not known or not math.isclose(median(map(float, samples)), value, rel_tol=AGREEMENT):
                return f"says that {metric} of variant {name} is {value:.4g}, and its runs do not"
    return None


def _begun_in_time(campaign: str, day: date) -> bool:
    """Whether a campaign, which is called by its start, may have ended on a day."""
    return f"{day - LONGEST_CAMPAIGN:%Y%m%d}" <= campaign <= f"{day:%Y%m%d}Z"


def _undeclared(variant: Mapping[str, Any], script: Script) -> list[str]:
    """What of a variant is of cells that its script does not have."""
    held = {cell for run in variant["runs"] for rank in ranks_of(run) for cell in rank["cells"]}
    return sorted((held | set(variant["output"])) - {cell.name for cell in script.cells})


def _unread(ranks: Sequence[Mapping[str, Any]], machine: Mapping[str, Any]) -> Iterator[str]:
    """What is read of every process and every cell, and is not there, or is nothing."""
    cells = [(name, meters) for rank in ranks for name, meters in rank["cells"].items()]
    untimed = sorted({name for name, meters in cells if not meters.get("seconds")})
    if untimed:
        yield f"a run holds no time of the cells {', '.join(untimed)}"
    held = [rank.get("baseline_memory") for rank in ranks]
    held += [meters.get("process_memory") for _, meters in cells]
    # Linux tells it of every process, and its C library stands in the description.
    if 0 in held or (machine["system"].get("libc") and None in held):
        yield "a run lacks what its process held, at its start or at the end of a cell"
    if any(meters.get("process_memory_peak") == 0 for _, meters in cells):
        yield "a process held nothing at its peak"


def _odd_times(
    runs: Sequence[Mapping[str, Any]], declared: Mapping[str, Metric], quoted: bool
) -> Iterator[str]:
    """Times, or timed blocks together, that are longer than the cells of the run that measured them."""
    for name, metric in declared.items():
        unit = UNITS[metric.unit]
        if unit.dimension != "time" or quoted:
            continue
        for run in runs:
            ranks = ranks_of(run)
            took = max(map(cell_seconds, ranks))
            blocks = max(sum(rank.get("blocks", {}).get(name, ())) for rank in ranks)
            longest = unit.factor * max(blocks, *items_of([run], name))
            if longest > took * BETWEEN_CELLS + BETWEEN_CELLS_SECONDS:
                yield f"{name} is {longest:.4g} s, and all cells of its run took {took:.4g} s"
                break


def _work(script: Script, variant: Variant) -> dict[str, float]:
    """What one run of a variant does, empty where its script does not say."""
    try:
        return work_of(script, variant)
    except BenchbookError:
        return {}  # reported with the script


def _odd_speed(
    variant: Mapping[str, Any],
    declared: Mapping[str, Metric],
    work: Mapping[str, float],
    machine: Mapping[str, Any],
) -> Iterator[str]:
    """More than the devices of a run do at most, by what it says itself and by what its work takes."""
    sheet = ceilings_of(machine)
    count = (machine.get("accelerator") or {}).get("count", 1)
    # Each process has one device; who publishes figures may have added up those of all.
    devices = count if machine["published"] else min(count, variant["ranks"])
    needed = {key: amount for key, amount in work.items() if amount and _fastest(key, sheet)}
    computes = max((_fastest(key, sheet) for key in needed), default=sheet.most_tflops * 1e12)
    for name, metric in declared.items():
        unit = UNITS[metric.unit]
        if unit.symbol == "TFLOP/s":
            ceiling = computes
        elif unit.symbol in {"B/s", "GB/s"}:
            ceiling = sheet.gigabytes_per_second * 1e9 if metric.memory == "device" else math.inf
        # Whatever is counted, each takes an operation at least.
        else:
            ceiling = computes if unit.dimension == "rate" else math.inf
        most = max(items_of(variant["runs"], name), default=0) * unit.factor
        if most > ceiling * devices:
            shown, limit = most / unit.factor, ceiling * devices / unit.factor
            yield (
                f"{name} is {shown:.4g} {metric.unit}, "
                f"more than the {limit:.4g} of {sheet.model}'s data sheet ({sheet.source})"
            )
    if machine["kind"] == "cpu":
        return
    computing = sum(amount / _fastest(key, sheet) for key, amount in needed.items())
    moving = work.get("bytes", 0.0) / (sheet.gigabytes_per_second * 1e9)
    least = max(computing, moving) / devices * SHARE_OF_WORK
    took = min(cell_seconds(run) for run in variant["runs"])
    if took < least:
        yield f"a run took {took:.4g} s, and {sheet.model} needs {least:.4g} s at least for its work"


def _odd_operations(
    variant: Mapping[str, Any], declared: Mapping[str, Metric], machine: Mapping[str, Any]
) -> Iterator[str]:
    """More operations than the devices of a run do in its time, in the fastest format of their data sheet."""
    sheet = sheet_of(machine)
    if sheet is None or machine["published"]:
        return
    devices = min(machine["accelerator"]["count"], variant["ranks"])
    counts = [name for name, metric in declared.items() if UNITS[metric.unit].dimension == "compute"]
    for name in counts:
        unit = UNITS[declared[name].unit]
        for run in variant["runs"]:
            took = max(map(cell_seconds, ranks_of(run)))
            limit = sheet.most_tflops * 1e12 / unit.factor * took * devices
            most = max(items_of([run], name), default=0)
            if most > limit:
                yield (
                    f"{name} is {most:.4g} {unit.symbol}, more than the {limit:.4g} that {sheet.model} does "
                    f"in the {took:.4g} s of its run by its data sheet ({sheet.source})"
                )
                break


def _fastest(number_format: str, sheet: Sheet) -> float:
    """How many operations of a format a device does in a second at most; 0 for what is no format."""
    while number_format in WIDER and number_format not in sheet.tflops:
        number_format = WIDER[number_format]
    return sheet.tflops.get(number_format, 0.0) * 1e12


def speed_problems(
    table: Mapping[str, Any],
    machine: Mapping[str, Any],
    known: Mapping[str, Any],
    known_machine: Mapping[str, Any],
    script: Script,
    path: str,
    text: str = "",
) -> Iterator[Problem]:
    """Times and rates that are better than the reference machine's by more than machines differ.

    Parameters:
        table: The record, already of the right shape.
        machine: Its machine, likewise.
        known: The record of the reference machine.
        known_machine: That machine.
        script: The script as it stands.
        path: The file, for messages.
        text: Its content, to find lines in.
    """
    most = FASTEST_CPU if machine["kind"] == known_machine["kind"] == "cpu" else FASTEST
    if _hardware(machine) == _hardware(known_machine) and machine["cpu"]["model"]:
        most = FASTEST_ALIKE
    for name, variant in table["variants"].items():
        there = known["variants"].get(name)
        # What was here before it changed is compared with what was.
        if there is None or there["outcome"] != "ok" or "source" in table["campaigns"][variant["campaign"]]:
            continue
        for metric, declared in script.metadata.metrics.items():
            dimension = UNITS[declared.unit].dimension
            ours, theirs = (
                [item for item in items_of(runs, metric) if not isinstance(item, bool) and item > 0]
                for runs in (variant["runs"], there["runs"])
            )
            if dimension not in {"time", "rate"} or not ours or not theirs:
                continue
            times = max(theirs) / min(ours) if dimension == "time" else max(ours) / min(theirs)
            if times > most:
                what = (
                    f"{metric} is {times:.0e} times as good as on {known['machine']}, and none is {most:.0e}"
                )
                yield Problem(
                    path, json_line(text, ("variants", name)), f"variant {name}: {what}", RECORD_AGAIN
                )


def _hardware(machine: Mapping[str, Any]) -> tuple[Any, ...]:
    """What computes on a machine, as far as its description tells."""
    cpu, accelerator = machine["cpu"], machine["accelerator"] or {}
    return cpu["model"], cpu["cores"], accelerator.get("name"), accelerator.get("count")


def memory_warnings(
    table: Mapping[str, Any],
    machine: Mapping[str, Any],
    others: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]],
    path: str,
    text: str = "",
) -> Iterator[Problem]:
    """Variants that found too little memory where a machine of the kind measured them with no more of it.

    Parameters:
        table: The record, already of the right shape.
        machine: Its machine, likewise.
        others: The records of its script on other machines, each with that machine.
        path: The file, for messages.
        text: Its content.
    """
    alike = [(known, bytes_of_one(there)) for known, there in others if there["kind"] == machine["kind"]]
    here = bytes_of_one(machine)
    for name, variant in table["variants"].items():
        for known, size in alike if variant["outcome"] == OUT_OF_MEMORY else ():
            there = known["variants"].get(name)
            if there is None or there["outcome"] != OK or there["code"] != variant["code"]:
                continue
            if min(size, PLENTY * peak_of(there["runs"], machine["kind"])) <= here:
                what = f"variant {name}: {OUT_OF_MEMORY}, and {known['machine']} measured it with no more"
                fix = f"see what else took memory there, and {RECORD_AGAIN}"
                yield Problem(path, json_line(text, ("variants", name)), what, fix)
                break


def kind_problems(
    table: Mapping[str, Any], others: Iterable[Mapping[str, Any]], path: str, text: str = ""
) -> Iterator[Problem]:
    """Metrics that are of another kind here than on every other machine: a series, one number, or yes or no.

    What a page says of a metric, it says of all machines.

    Parameters:
        table: The record, already of the right shape.
        others: Those of its script on other machines, likewise.
        path: The file, for messages.
        text: Its content, to find lines in.
    """
    runs = (run for other in others for variant in other["variants"].values() for run in variant["runs"][:1])
    known = {name: _kind(value) for run in runs for name, value in run["metrics"].items()}
    for name, variant in table["variants"].items():
        for metric, value in (variant["runs"][0]["metrics"] if variant["runs"] else {}).items():
            here = _kind(value)
            if (there := known.get(metric, here)) != here:
                what = f"variant {name}: {metric} is {here}, and {there} on other machines"
                yield Problem(path, json_line(text, ("variants", name)), what, RECORD_AGAIN)


def _kind(value: Any) -> str:
    """What a value of a metric is: Python itself takes True for 1."""
    if isinstance(value, list):
        return "a series of yes and no" if any(isinstance(item, bool) for item in value) else "a series"
    return "yes or no" if isinstance(value, bool) else "one number"


def cell_seconds(run: Mapping[str, Any]) -> float:
    """How long all cells of a process took together."""
    return sum(float(meters.get("seconds") or 0.0) for meters in run["cells"].values())


def _odd_seeds(runs: Sequence[Mapping[str, Any]], declared: Mapping[str, Metric]) -> Iterator[str]:
    """More seeds than any script takes."""
    for name in (name for name, metric in declared.items() if metric.seeds):
        values = (run["metrics"][name] for run in runs)
        if (most := max(len(value) if isinstance(value, list) else 0 for value in values)) > MOST_SEEDS:
            yield f"{name} has {most} seeds, and {MOST_SEEDS} are the most that a script takes"


def _odd_numbers(runs: Sequence[Mapping[str, Any]], declared: Mapping[str, Metric]) -> Iterator[str]:
    """What no number of its unit is, the first of each metric: words, crumbs, more than there is anywhere.

    A metric is yes or no in every run or in none, though Python takes True for 1.
    """
    for name, metric in declared.items():
        if len({isinstance(item, bool) for item in items_of(runs, name)}) > 1:
            yield f"{name} is yes or no in some of its runs, and a number in others"
        if what := next(filter(None, (odd_number(item, metric) for item in items_of(runs, name))), None):
            yield f"{name} is {what}"


def _odd_metrics(
    runs: Sequence[Mapping[str, Any]],
    declared: Mapping[str, Metric],
    machine: Mapping[str, Any],
) -> Iterator[str]:
    """What declared metrics cannot be: times that never scatter, more than the device has."""
    device = bytes_of_devices(machine)
    for name, metric in declared.items():
        unit = UNITS[metric.unit]
        values = [run["metrics"][name] for run in runs]
        items = [*items_of(runs, name)]
        # A thermometer may well show the same whole degree each time.
        scatters = unit.dimension in {"time", "rate"} and len(values) >= SAMPLES_THAT_SCATTER
        if scatters and _agree(values):
            yield f"{name} is the same in {len(values)} runs, as no time is"
        most = max(items) * unit.factor
        if unit.dimension == "memory" and metric.memory == "device" and most > device:
            yield f"{name} is {most:.0f} B, more than the machine's {device:.0f} B"


def _odd_seconds(runs: Sequence[Mapping[str, Any]], quoted: bool) -> Iterator[str]:
    """Runs that took no time; cells that took less than a clock tells, or the same in every run."""
    ranks = [rank for run in runs for rank in ranks_of(run)]
    for name in sorted({name for rank in ranks for name in rank["cells"]}):
        taken = [rank["cells"].get(name, {}).get("seconds") or 0 for rank in ranks]
        if any(0 < seconds < SHORTEST for seconds in taken):
            yield f"{name}.seconds is {min(filter(None, taken))} s, less than any clock tells"
    if not quoted and any(cell_seconds(rank) < SHORTEST for rank in ranks):
        yield "all cells of a run took 0 s together, so it did not run"
    if len(runs) < SAMPLES_THAT_SCATTER:
        return
    for cell in runs[0]["cells"]:
        times = [run["cells"].get(cell, {}).get("seconds") for run in runs]
        if times[0] and None not in times and _agree(times):
            yield f"{cell}.seconds is the same in {len(times)} runs, as no time is"


def _odd_blocks(runs: Sequence[Mapping[str, Any]], declared: Mapping[str, Metric]) -> Iterator[str]:
    """Timed blocks of one process that took the same time to the last digit, or none."""
    for name, metric in declared.items():
        if UNITS[metric.unit].dimension not in {"time", "rate"}:
            continue
        for values in (rank.get("blocks", {}).get(name, ()) for run in runs for rank in ranks_of(run)):
            if any(value <= 0 for value in values):
                yield f"a block of {name} is not positive"
                return
            if len(values) >= SAMPLES_THAT_SCATTER and _agree(values):
                yield f"{name} is the same in {len(values)} blocks, as no time is"
                return


def _agree(values: Sequence[Any]) -> bool:
    """Whether all values, numbers or series, are the same but for what is less than any clock tells."""
    first = values[0] if isinstance(values[0], list) else [values[0]]
    for value in values[1:]:
        items = value if isinstance(value, list) else [value]
        if len(items) != len(first):
            return False
        pairs = zip(first, items, strict=True)
        if any(abs(one - other) > AGREEMENT * max(abs(one), abs(other)) for one, other in pairs):
            return False
    return True
